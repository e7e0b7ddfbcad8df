"""What a strategy is: a toy one from outside goes all the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import acex
from acex.search.problem import History, Problem, Query, Stop
from acex.search.search import STRATEGIES, as_strategy
from acex.search.strategy import Strategy


@dataclass(frozen=True)
class RowByRow(Strategy):
    """Reference rows by increasing cost, each so many at most."""

    name: ClassVar[str] = "row by row"
    revision: ClassVar[int] = 3

    most: int = 5

    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        if len(history.queries) > self.most:
            return Stop("settled")
        rows = problem.projected[np.argsort(problem.cost(problem.projected), kind="stable")]
        rows = rows[problem.admissible(rows, history.asked)]
        return Query(rows[0], "next row") if len(rows) else Stop("exhausted")


DATA = pd.DataFrame({"income": np.arange(1000, 5000, 100), "debt": np.linspace(0, 1, 40)})


def model(rows: pd.DataFrame) -> list[str]:
    return ["good" if ok else "bad" for ok in rows["income"] > 1500]


@pytest.fixture
def by_name(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(STRATEGIES, RowByRow.name, RowByRow)  # the one line
    return RowByRow.name


def test_a_strategy_from_outside_explains_a_row_by_name_and_with_settings(by_name: str) -> None:
    e = acex.explain(model, DATA.iloc[0], data=DATA, strategy=by_name, plausibility=None)
    assert [step.purpose for step in e.steps] == ["factual", *["next row"] * 5]
    assert e.trace["cost"].is_monotonic_increasing
    few = acex.explain(model, DATA.iloc[0], data=DATA, strategy=RowByRow(most=2), plausibility=None)
    assert len(few.steps) == 3
    assert few.settings["strategy"] == {"name": "row by row", "revision": 3, "most": 2}


def test_it_goes_through_ledger_resume_batch_and_report(by_name: str, tmp_path: Path) -> None:

    def explain(budget: int) -> acex.Explanation:
        told = acex.Explainer(acex.Model(model, name="m"), DATA, plausibility=None, ledger=tmp_path / "ledger.db")
        return told.explain(DATA.iloc[0], strategy=by_name, budget=budget)

    first, whole = explain(3), explain(20)
    assert (first.n_queries, whole.n_queries) == (3, 3)
    assert "row by row" in whole.to_html()
    explainer = acex.Explainer(model, DATA, plausibility=None)
    many = explainer.explain_many(DATA.iloc[:3], strategy=by_name, budget_total=12, n_jobs=1)
    assert many.frame()["queries"].sum() <= 12


def test_what_it_cannot_do_is_refused_before_anything_is_asked(by_name: str) -> None:
    with pytest.raises(ValueError, match="row by row"):
        acex.explain(model, DATA.iloc[0], data=DATA, strategy=by_name, count=2)


def test_another_revision_or_setting_is_another_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = acex.Explainer(model, DATA)
    same = explainer.search(DATA.iloc[0], strategy=RowByRow()).plan.identity
    assert explainer.search(DATA.iloc[0], strategy=RowByRow()).plan.identity == same
    assert explainer.search(DATA.iloc[0], strategy=RowByRow(most=9)).plan.identity != same
    monkeypatch.setattr(RowByRow, "revision", 4)
    assert explainer.search(DATA.iloc[0], strategy=RowByRow()).plan.identity != same


@pytest.mark.parametrize("said", ["feasable", 5, None, RowByRow])
def test_what_is_no_strategy_is_refused_with_those_there_are(said: object) -> None:
    with pytest.raises(ValueError, match="'feasible'"):
        as_strategy(said)
