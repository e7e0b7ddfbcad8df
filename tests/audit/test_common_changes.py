"""Common changes: real queries, within their budget, measured on rows that had no part in the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.audit.common_changes import Move, candidates
from acex.engine.row_result import RowResult
from acex.space.kinds import Continuous, Integer, Nominal
from acex.space.space import Space
from toys import Counted

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "score": RNG.integers(300, 850, 200),
        "income": RNG.uniform(1000, 6000, 200).round(-1),
        "guarantor": RNG.choice(["no", "yes"], 200),
        "age": RNG.integers(18, 80, 200),
    }
)


def decide(rows: pd.DataFrame) -> Any:
    """Approve a good score, or a guarantor with some income."""
    good = (rows["score"] >= 640) | ((rows["guarantor"] == "yes") & (rows["income"] > 3000))
    return np.where(good, "approved", "rejected")


def explained(bank: Counted, n: int = 16, ledger: Path | None = None, **options: Any) -> acex.Explanations:
    rows = DATA[decide(DATA) == "rejected"].head(n)
    explainer = acex.Explainer(acex.Model(bank, name="bank"), DATA, ledger=ledger)
    many = explainer.explain_many(rows, target="approved", budget=5, n_jobs=1, freeze=["age"], **options)
    many.frame()
    return many


def test_common_changes_turn_as_many_rows_as_they_say() -> None:
    bank = Counted(decide)
    many = explained(bank)
    before = len(bank)
    common = many.common_changes(budget=120)
    assert len(bank) - before == common.queries <= 120
    assert 1 <= len(common.changes) <= 3 and common.rows == 16
    rows = DATA[decide(DATA) == "rejected"].head(16)
    best = common.changes[0]
    assert best.turned > 0 and best.tried >= best.turned
    moved = rows.copy()
    for move in best.moves:
        moved[move.feature] = move.to if move.by is None else moved[move.feature] + move.by
    inside = (moved["score"] <= 850) & (moved["income"] <= DATA["income"].max())
    true = float(((decide(moved) == "approved") & inside).mean())
    assert best.share.low - 0.05 <= true <= best.share.high + 0.05
    assert best not in common.without([best.moves[0].feature]).changes
    assert best.words() in str(common) and "turns" in str(common)
    assert common.frame()["change"].tolist() == [change.words() for change in common.changes]
    assert not [move for change in common.changes for move in change.moves if move.feature == "age"]


def test_a_small_budget_is_a_cap_and_answers_are_kept(tmp_path: Path) -> None:
    bank = Counted(decide)
    many = explained(bank, 6, tmp_path / "l.db")
    before = len(bank)
    first = many.common_changes(budget=10)
    assert len(bank) - before == first.queries <= 10
    again = many.common_changes(budget=10)
    assert again.queries <= 10
    with pytest.raises(ValueError, match=r"budget: .*got 0"):
        many.common_changes(budget=0)


def test_without_counterfactuals_there_are_none_and_nothing_is_asked() -> None:
    bank = Counted(decide)
    rows = DATA[decide(DATA) == "rejected"].head(3)
    explainer = acex.Explainer(bank, DATA)
    options: Any = {"ranges": {"score": (300, 500)}, "freeze": ["guarantor", "income", "age"]}
    many = explainer.explain_many(rows[rows["score"] <= 500], target="approved", budget=4, n_jobs=1, **options)
    many.frame()
    before = len(bank)
    common = many.common_changes(budget=50)
    assert common.changes == () and len(bank) == before
    assert "No change is common" in str(common)


# -- a bank whose answer is known by hand --------------------------------------------------------------------------

# Rows 0 to 19 have scores of 400, 410, ..., 590. From 600 on it is yes: +10 turns the last row, +200 turns them all.
SCORES = pd.DataFrame({"score": [*range(400, 600, 10), *range(600, 1000, 20)], "noise": [0.0, 1.0] * 20})


def from_600_on(rows: pd.DataFrame) -> Any:
    return np.where(rows["score"] >= 600, "yes", "no")


def turned_by_hand(by: float) -> int:
    return sum(score + by >= 600 for score in range(400, 600, 10))


def test_the_share_of_a_change_is_the_one_that_is_known_by_hand() -> None:
    assert [turned_by_hand(by) for by in (10, 100, 200)] == [1, 10, 20]
    bank = Counted(from_600_on)
    many = acex.Explainer(bank, SCORES, plausibility=None).explain_many(
        SCORES.head(20), target="yes", budget=12, n_jobs=1, freeze=["noise"], ranges={"score": (0, 2000)}
    )
    assert (many.frame()["outcome"] == "found").all()
    paid, before = int(many.frame()["queries"].sum()), len(bank)
    assert paid == before
    common = many.common_changes(budget=2000, count=1)  # enough for every candidate on every row
    assert len(bank) - before == common.queries
    [change] = common.changes
    [move] = change.moves
    assert move.feature == "score" and move.by is not None
    # The second half of a random order measures it: count these by hand.
    order = np.random.default_rng([0, 0x6C]).permutation(range(20)).tolist()
    fresh = [400 + 10 * i for i in order[10:]]
    true = sum(score + move.by >= 600 for score in fresh)
    assert (change.tried, change.turned) == (10, true)
    # The best of what was common: 0.9 of the counterfactuals go no further.
    far = sorted(changed["score"][1] - changed["score"][0] for changed in many.frame()["changes"])
    assert move.by >= np.quantile(far, 0.9) and turned_by_hand(move.by) >= 18
    cost = [e.costs[0] * move.by / (e.counterfactual["score"] - e.factual["score"]) for e in many]
    assert change.cost == pytest.approx(cost[0])  # the same step costs the same for every row


def asked(model: Any, n: int = 12, **setup: Any) -> acex.Explanations:
    """The lowest scores, explained with few queries."""
    target, budget = setup.pop("target", None), setup.pop("budget", 3)
    many = acex.Explainer(model, SCORES, plausibility=None, **setup).explain_many(
        SCORES.head(n), target=target, budget=budget, n_jobs=1, freeze=["noise"], ranges={"score": (0, 2000)}
    )
    many.frame()
    return many


def turned_of_fresh(change: Any, n: int = 12) -> int:
    """How many of the rows that had no part in the choice a change turns, by hand."""
    order = np.random.default_rng([0, 0x6C]).permutation(range(n)).tolist()
    return sum(400 + 10 * i + change.moves[0].by >= 600 for i in order[n // 2 :])


def test_the_model_s_own_count_never_exceeds_the_budget_and_nothing_is_paid_twice() -> None:
    bank = Counted(from_600_on)
    many = asked(bank, target="yes")
    for budget in (2, 3, 7, 20, 200):
        before = len(bank)
        common = many.common_changes(budget=budget)
        assert len(bank) - before == common.queries <= budget
    assert len({tuple(row.values()) for row in bank.sent}) == len(bank)
    again = many.common_changes(budget=200)  # known rows cost nothing
    assert again.queries == 0 and [change.moves for change in again.changes] == [
        change.moves for change in common.changes
    ]


def test_common_changes_of_labels_with_names_turn_only_what_they_turn() -> None:
    many = asked(acex.Model(Counted(from_600_on), class_names={"yes": "approved", "no": "rejected"}), budget=6)
    common = many.common_changes(budget=200)
    assert [change.turned for change in common.changes] == [turned_of_fresh(change) for change in common.changes]
    assert any(change.turned < change.tried for change in common.changes)


def test_common_changes_reach_a_number() -> None:
    many = asked(lambda rows: rows["score"].to_numpy() / 10.0, target=acex.AtLeast(60))
    common = many.common_changes(budget=200)
    assert common.changes and [v.turned for v in common.changes] == [turned_of_fresh(v) for v in common.changes]


def test_candidates_are_what_counterfactuals_have_in_common() -> None:
    space = Space((Integer("score", 0, 1000), Continuous("debt", 0, 1), Nominal("job", ("a", "b"))))

    def line(**changes: tuple[Any, Any]) -> RowResult:
        return RowResult("found", "no", "yes", 1.0, len(changes), 0, changes, 5, 0, None)

    lines = [
        line(score=(500, 580)),
        line(score=(500, 540)),
        line(score=(500, 560)),
        line(job=("a", "b"), debt=(0.5, 0.1)),
    ]
    found = candidates(lines, space)
    assert found[0] == (Move("score", 60.0),)  # the median of 80, 40 and 60
    assert (Move("job", None, "b"),) in found and (Move("debt", -0.4),) in found
    assert (Move("debt", -0.4), Move("job", None, "b")) in found
    assert candidates([], space) == []
