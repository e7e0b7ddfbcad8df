"""Sixty searches whose rows are on record in `recorded_searches.json`: a change of the code must not change them.

Fifteen kinds of search on each of four data sets. The record holds a digest of every row sent, in order, because the
published tables themselves are not part of the project. After a new revision of a strategy,
`PYTHONPATH=. python tests/recorded_searches.py` writes it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import acex
from benchmarks.published import load

RECORD = Path(__file__).with_suffix(".json")
DATA = ("diabetes", "kc2", "german_credit", "tic_tac_toe")
RULES = {
    "diabetes": ["glucose >= 90", "if bmi > 30 then blood_pressure < 100"],
    "kc2": ["loc >= lines_code", "branch_count <= 60"],
    "german_credit": ["credit_amount <= 400 * duration", "housing != 'free'"],
    "tic_tac_toe": ["middle_middle != 'b'"],
}
LIMITS: dict[str, dict[str, Any]] = {
    "diabetes": {"ranges": {"glucose": (60, 170)}, "directions": {"bmi": "decrease"}},
    "kc2": {"ranges": {"loc": (0, 400)}, "directions": {"halstead_effort": "decrease"}},
    "german_credit": {"values": {"purpose": ["car", "radio/TV"]}, "directions": {"duration": "decrease"}},
    "tic_tac_toe": {"values": {"top_left": ["x", "o"]}},
}


@dataclass(frozen=True)
class Task:
    """A data set with its black box and the rows to explain."""

    data: pd.DataFrame
    outcomes: pd.Series
    space: acex.Space
    target: Any
    predict: Callable[[Any], Any]
    predict_proba: Callable[[Any], pd.DataFrame]
    rows: pd.DataFrame

    @classmethod
    def of(cls, name: str) -> Task:
        data = load(name)
        forest = RandomForestClassifier(30, random_state=0).fit(data.codes, data.outcomes)
        labels = pd.Series(forest.predict(data.codes))

        def predict_proba(rows: Any) -> pd.DataFrame:
            return pd.DataFrame(forest.predict_proba(data.space.encode(rows)), columns=forest.classes_)

        return cls(
            data.rows,
            data.outcomes,
            data.space,
            data.target,
            lambda rows: forest.predict(data.space.encode(rows)),
            predict_proba,
            data.rows[(labels != data.target).to_numpy()].iloc[::7].head(6),
        )


def searches(name: str) -> dict[str, Callable[[], acex.Explanation]]:
    """Each kind of search on this data set, by name; calling one runs it."""
    task = Task.of(name)
    first = task.data.columns[0]
    cap = task.data[first].max() if task.data[first].dtype.kind in "if" else None

    def keeps_first(rows: pd.DataFrame) -> Any:
        return rows[first] <= cap if cap is not None else rows[first] != "b"

    def explain(row: int, model: Any = task.predict, **options: Any) -> Callable[[], acex.Explanation]:
        given = {"data": task.data, "space": task.space, "target": task.target} | options
        return lambda: acex.explain(model, task.rows.iloc[row], **given)

    def pooled() -> acex.Explanation:
        explainer = acex.Explainer(task.predict, task.data, space=task.space)
        for row in (0, 1):
            explainer.explain(task.rows.iloc[row], target=task.target, budget=10)
        return explainer.explain(task.rows.iloc[2], target=task.target, budget=12)

    scored = acex.Model(task.predict_proba, scores=True)
    spend, cost = acex.Feasible(effort="spend"), acex.Cost(per_change=0.5, weights={first: 2.0})
    return {
        "labels": explain(0, budget=15),
        "labels, longer": explain(1, budget=30),
        "outcomes": explain(0, outcomes=task.outcomes, budget=12),
        "outcomes, another seed": explain(2, outcomes=task.outcomes, budget=20, seed=1),
        "scores": explain(0, scored, budget=12),
        "scores and outcomes in rounds": explain(1, scored, outcomes=task.outcomes, budget=12, queries_per_round=3),
        "rules": explain(0, rules=RULES[name], budget=15),
        "a function as a rule, a frozen feature": explain(
            1, rules=[keeps_first], freeze=[task.data.columns[1]], budget=15
        ),
        "rounds": explain(2, queries_per_round=4, budget=17),
        "three counterfactuals": explain(0, count=3, budget=30),
        "few changes within limits": explain(3, max_changes=2, budget=15, **LIMITS[name]),
        "pooled answers": pooled,
        "no plausibility, whole budget": explain(4, plausibility=None, strategy=spend, cost=cost, budget=15),
        "penalty": explain(0, strategy=acex.Penalty(n0=8), budget=20),
        "penalty with scores": explain(5, scored, strategy=acex.Penalty(n0=8), budget=16),
    }


def digests(explanation: acex.Explanation) -> list[str]:
    """A short digest of each row that was sent, in order; numbers count to nine digits."""
    rows = [[f"{v:.9g}" if isinstance(v, float | int) else str(v) for v in s.row.values()] for s in explanation.steps]
    return [hashlib.sha256(json.dumps(row).encode()).hexdigest()[:8] for row in rows]


def asked(name: str) -> dict[str, list[str]]:
    """The digests of all searches on this data set."""
    return {kind: digests(run()) for kind, run in searches(name).items()}


def revisions() -> dict[str, int]:
    """The revisions of the strategies that asked."""
    strategies = (acex.Feasible, acex.Penalty)
    return {kind.__name__.lower(): kind.revision for kind in strategies}


if __name__ == "__main__":
    searched = {name: {kind: " ".join(rows) for kind, rows in asked(name).items()} for name in DATA}
    RECORD.write_text(json.dumps({"revisions": revisions(), "searches": searched}, indent=1) + "\n")
    print(sum(len(kinds) for kinds in searched.values()), "searches recorded")
