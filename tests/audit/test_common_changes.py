"""Common levers: real queries, within their budget, measured on rows that had no part in the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.audit.common_changes import Move, candidates
from acex.engine.row_result import Line
from acex.space.kinds import Continuous, Integer, Nominal
from acex.space.space import Space

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "score": RNG.integers(300, 850, 200),
        "income": RNG.uniform(1000, 6000, 200).round(-1),
        "guarantor": RNG.choice(["no", "yes"], 200),
        "age": RNG.integers(18, 80, 200),
    }
)


class Bank:
    """Approves a good score, or a guarantor with some income; counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.asked += len(rows)
        good = (rows["score"] >= 640) | ((rows["guarantor"] == "yes") & (rows["income"] > 3000))
        return np.where(good, "approved", "rejected")


def explained(bank: Bank, n: int = 16, ledger: Path | None = None, **options: Any) -> acex.Explanations:
    rows = DATA[Bank()(DATA) == "rejected"].head(n)
    explainer = acex.Explainer(acex.Model(bank, name="bank"), DATA, ledger=ledger)
    many = explainer.explain_many(rows, target="approved", budget=5, n_jobs=1, freeze=["age"], **options)
    many.frame()
    return many


def test_levers_turn_as_many_rows_as_they_say() -> None:
    bank = Bank()
    many = explained(bank)
    before = bank.asked
    levers = many.levers(budget_levers=120)
    assert bank.asked - before == levers.queries <= 120
    assert 1 <= len(levers.levers) <= 3 and levers.rows == 16
    rows = DATA[Bank()(DATA) == "rejected"].head(16)
    best = levers.levers[0]
    assert best.turned > 0 and best.tried >= best.fitting >= best.turned
    moved = rows.copy()
    for move in best.moves:
        moved[move.feature] = move.to if move.by is None else moved[move.feature] + move.by
    inside = (moved["score"] <= 850) & (moved["income"] <= DATA["income"].max())
    true = float(((Bank()(moved) == "approved") & inside).mean())
    assert best.share.low - 0.05 <= true <= best.share.high + 0.05
    assert best.words() in str(levers) and "turns" in str(levers)
    assert levers.frame()["lever"].tolist() == [lever.words() for lever in levers.levers]
    assert not [move for lever in levers.levers for move in lever.moves if move.feature == "age"]


def test_a_small_budget_is_a_cap_and_answers_are_kept(tmp_path: Path) -> None:
    bank = Bank()
    many = explained(bank, 6, tmp_path / "l.db")
    before = bank.asked
    first = many.levers(budget_levers=10)
    assert bank.asked - before == first.queries <= 10
    again = many.levers(budget_levers=10)
    assert again.queries <= 10
    with pytest.raises(ValueError, match="budget_levers must be a whole number of at least 2"):
        many.levers(budget_levers=0)


def test_without_counterfactuals_there_are_none_and_nothing_is_asked() -> None:
    bank = Bank()
    rows = DATA[Bank()(DATA) == "rejected"].head(3)
    explainer = acex.Explainer(bank, DATA)
    options: Any = {"ranges": {"score": (300, 500)}, "freeze": ["guarantor", "income", "age"]}
    many = explainer.explain_many(rows[rows["score"] <= 500], target="approved", budget=4, n_jobs=1, **options)
    many.frame()
    before = bank.asked
    levers = many.levers(budget_levers=50)
    assert levers.levers == () and bank.asked == before
    assert "No change is common" in str(levers)


# -- a bank whose answer is known by hand --------------------------------------------------------------------------

# Rows 0 to 19 have scores of 400, 410, ..., 590. From 600 on it is yes: +10 turns the last row, +200 turns them all.
SCORES = pd.DataFrame({"score": [*range(400, 600, 10), *range(600, 1000, 20)], "noise": [0.0, 1.0] * 20})


class Counting:
    """Yes from a score of 600 on; writes down each row that it is asked."""

    def __init__(self) -> None:
        self.bill: list[tuple[float, ...]] = []

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.bill += [tuple(row) for row in rows.itertuples(index=False)]
        return np.where(rows["score"] >= 600, "yes", "no")


def turned_by_hand(by: float) -> int:
    return sum(score + by >= 600 for score in range(400, 600, 10))


def test_the_share_of_a_lever_is_the_one_that_is_known_by_hand() -> None:
    assert [turned_by_hand(by) for by in (10, 100, 200)] == [1, 10, 20]
    bank = Counting()
    many = acex.Explainer(bank, SCORES, plausibility=None).explain_many(
        SCORES.head(20), target="yes", budget=12, n_jobs=1, freeze=["noise"], ranges={"score": (0, 2000)}
    )
    assert (many.frame()["outcome"] == "found").all()
    paid, before = int(many.frame()["queries"].sum()), len(bank.bill)
    assert paid == before
    levers = many.levers(budget_levers=2000, most=1)  # enough for every candidate on every row
    assert len(bank.bill) - before == levers.queries
    [lever] = levers.levers
    [move] = lever.moves
    assert move.feature == "score" and move.by is not None
    # Those of the second half of a drawn order measure it, so by brute force: each of them is asked here once more.
    order = np.random.default_rng([0, 0x6C]).permutation(range(20)).tolist()
    fresh = [400 + 10 * i for i in order[10:]]
    true = sum(score + move.by >= 600 for score in fresh)
    assert (lever.tried, lever.fitting, lever.turned) == (10, 10, true)
    # The best of what was common: 0.9 of the counterfactuals go no further.
    far = sorted(change["score"][1] - change["score"][0] for change in many.frame()["changes"])
    assert move.by >= np.quantile(far, 0.9) and turned_by_hand(move.by) >= 18
    cost = [e.costs[0] * move.by / (e.counterfactual["score"] - e.factual["score"]) for e in many]
    assert lever.cost == pytest.approx(cost[0])  # the same step costs the same for every row


def asked(model: Any, n: int = 12, **setup: Any) -> acex.Explanations:
    """The lowest scores, explained with few queries."""
    target = setup.pop("target", None)
    many = acex.Explainer(model, SCORES, plausibility=None, **setup).explain_many(
        SCORES.head(n), target=target, budget=3, n_jobs=1, freeze=["noise"], ranges={"score": (0, 2000)}
    )
    many.frame()
    return many


def turned_of_fresh(lever: Any, n: int = 12) -> int:
    """How many of the rows that had no part in the choice a lever turns, by hand."""
    order = np.random.default_rng([0, 0x6C]).permutation(range(n)).tolist()
    return sum(400 + 10 * i + lever.moves[0].by >= 600 for i in order[n // 2 :])


def test_the_model_s_own_count_never_exceeds_the_budget_of_levers_and_nothing_is_paid_twice() -> None:
    bank = Counting()
    many = asked(bank, target="yes")
    for budget in (2, 3, 7, 20, 200):
        before = len(bank.bill)
        levers = many.levers(budget_levers=budget)
        assert len(bank.bill) - before == levers.queries <= budget
    assert len(set(bank.bill)) == len(bank.bill)
    again = many.levers(budget_levers=200)  # known rows cost nothing
    assert again.queries == 0 and [lever.moves for lever in again.levers] == [lever.moves for lever in levers.levers]


def test_levers_of_labels_with_names_turn_only_what_they_turn() -> None:
    many = asked(Counting(), class_names={"yes": "approved", "no": "rejected"})  # any other label than the row's own
    levers = many.levers(budget_levers=200)
    assert [lever.turned for lever in levers.levers] == [turned_of_fresh(lever) for lever in levers.levers]
    assert any(lever.turned < lever.tried for lever in levers.levers)


def test_levers_reach_a_number() -> None:
    many = asked(lambda rows: rows["score"].to_numpy() / 10.0, target=acex.AtLeast(60))
    levers = many.levers(budget_levers=200)
    assert levers.levers and [v.turned for v in levers.levers] == [turned_of_fresh(v) for v in levers.levers]


def test_candidates_are_what_counterfactuals_have_in_common() -> None:
    space = Space((Integer("score", 0, 1000), Continuous("debt", 0, 1), Nominal("job", ("a", "b"))))

    def line(**changes: tuple[Any, Any]) -> Line:
        return Line("found", "no", "yes", 1.0, len(changes), changes, 5, 0, None)

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
