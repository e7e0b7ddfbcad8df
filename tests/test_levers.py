"""Common levers: real queries, within their budget, measured on rows that had no part in the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.run.levers import Move, candidates
from acex.run.lines import Line
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
    explainer = acex.Explainer(bank, DATA, ledger=ledger, model_id="bank")
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
