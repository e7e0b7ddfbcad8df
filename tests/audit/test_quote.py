"""What a batch would cost: known before it runs, for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acex

X = np.random.default_rng(0).normal(size=(80, 2)).round(4)
LOW = X[X[:, 0] < 0]


def model(rows: Any) -> Any:
    return np.where(rows[:, 0] > 0.8, "high", "low")


def explainer(ledger: Any) -> acex.Explainer:
    return acex.Explainer(acex.Model(model, name="m"), X, ledger=ledger)


def test_nothing_is_known_of_a_new_model_but_the_most(tmp_path: Path) -> None:
    rows = np.vstack([LOW[:5], LOW[:2], [[np.inf, 0.0]]])
    told = explainer(tmp_path / "l.db").quote(rows, target="high", budget=9)
    assert (told.rows, told.different, told.wrong, told.most_queries) == (8, 5, 1, 45)
    assert (told.expected_queries, told.seconds, told.most_money) == (None, None, None)
    assert "8 rows, 2 of them the same as others, 1 of them wrong. At most 45 queries. How many" in str(told)


def test_what_the_ledger_knows_is_counted_and_nothing_is_asked(tmp_path: Path) -> None:
    desk = explainer(tmp_path / "l.db")
    many = desk.explain_many(LOW[:6], target="high", budget=9, n_jobs=1)
    done = many.frame()
    desk.ledger.budget("m", money=100, price_per_row=0.25)
    assert isinstance(desk.ledger, acex.Ledger)
    before = desk.ledger.tables.models().to_dict("records")
    told = desk.quote(LOW[:10], target="high", budget=12)
    assert desk.ledger.tables.models().to_dict("records") == before
    paid, mean = int(done["queries"].sum()), float(done["queries"].mean())
    left = [0 if e.stopped_by != "budget" else 12 - e.n_queries for e in many]
    assert told.paid_before == paid and told.ended == left.count(0)
    assert told.most_queries == 4 * 12 + sum(left)
    assert told.expected_queries == round(4 * mean + sum(min(mean, more) for more in left))
    assert told.expected_money == pytest.approx(told.expected_queries * 0.25)
    assert told.most_money == pytest.approx(told.most_queries * 0.25)
    assert told.seconds is not None and told.seconds > 0
    assert "queries for" in str(told) and "one after the other" in str(told)


def test_budgets_of_the_batch_and_of_the_lifetime_are_kept(tmp_path: Path) -> None:
    desk = explainer(tmp_path / "l.db")
    assert desk.quote(LOW[:10], budget=9, budget_total=30).most_queries == 30
    desk.ledger.budget("m", rows=7)
    assert desk.quote(LOW[:10], budget=9, budget_total=30).most_queries == 7


def test_the_batch_does_not_exceed_the_most(tmp_path: Path) -> None:
    desk = explainer(tmp_path / "l.db")
    told = desk.quote(LOW[:6], target="high", budget=5)
    assert desk.explain_many(LOW[:6], target="high", budget=5, n_jobs=1).frame()["queries"].sum() <= told.most_queries
