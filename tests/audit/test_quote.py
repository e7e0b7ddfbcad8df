"""The price of a batch is estimated before it runs, and nothing is sent."""

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
    quote = explainer(tmp_path / "l.db").explain_many(rows, target="high", budget=9, n_jobs=1).quote()
    assert (quote.rows, [*quote.wrong], quote.most_queries) == (8, ["7"], 45)
    assert (quote.expected_queries, quote.money(quote.most_queries)) == (None, None)
    assert f"8 rows. 1 would fail, such as 7: {quote.wrong['7']} Model: m. At most 45 queries." in str(quote)


def test_what_the_ledger_knows_is_counted_and_nothing_is_asked(tmp_path: Path) -> None:
    asked = explainer(tmp_path / "l.db")
    many = asked.explain_many(LOW[:6], target="high", budget=9, n_jobs=1)
    done = many.frame()
    asked.ledger.budget("m", money=100, price_per_row=0.25)
    assert isinstance(asked.ledger, acex.Ledger)
    before = asked.ledger.tables.models().to_dict("records")
    quote = asked.explain_many(LOW[:10], target="high", budget=12, n_jobs=1).quote()
    assert asked.ledger.tables.models().to_dict("records") == before
    paid, mean = int(done["queries"].sum()), float(done["queries"].mean())
    left = [0 if e.stopped_by != "budget" else 12 - e.n_queries for e in many]
    assert quote.paid_before == paid and quote.ended == left.count(0)
    assert quote.most_queries == 4 * 12 + sum(left)
    assert quote.expected_queries == round(4 * mean + sum(min(mean, more) for more in left))
    assert quote.money(quote.most_queries) == pytest.approx(quote.most_queries * 0.25)
    assert "queries for" in str(quote)


def test_budgets_of_the_batch_and_of_the_lifetime_are_kept(tmp_path: Path) -> None:
    asked = explainer(tmp_path / "l.db")
    assert asked.explain_many(LOW[:10], budget=9, budget_total=30, n_jobs=1).quote().most_queries == 30
    asked.ledger.budget("m", rows=7)
    quote = asked.explain_many(LOW[:10], budget=9, budget_total=30, n_jobs=1).quote(0.5)
    assert (quote.most_queries, quote.beyond_budget) == (7, 23)
    assert "At most 7 queries for 3.50. " in str(quote) and "30 queries for 15.00 may be needed" in str(quote)


def test_a_quote_says_that_the_money_is_too_little(tmp_path: Path) -> None:
    asked = explainer(tmp_path / "l.db")
    asked.ledger.budget("m", money=2)
    many = asked.explain_many(LOW[:10], budget=9, n_jobs=1)
    assert (many.quote(0.5).most_queries, many.quote(0.5).beyond_budget) == (4, 86)
    assert many.quote(0.01).beyond_budget == 0 and "may be needed" not in str(many.quote(0.01))
    assert many.quote().most_queries == 90  # without a price, nothing is known of the money


def test_a_quote_warns_of_a_total_that_is_small_for_the_number_of_rows(tmp_path: Path) -> None:
    asked = explainer(tmp_path / "l.db")
    assert "too few for most rows" in str(asked.explain_many(LOW, budget=10, budget_total=2 * len(LOW)).quote())
    assert "for most rows" not in str(asked.explain_many(LOW, budget=10).quote())


def test_a_price_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="price_per_row"):
        explainer(None).explain_many(X[:2]).quote(price_per_row=-1.0)


def test_the_batch_does_not_exceed_the_most(tmp_path: Path) -> None:
    asked = explainer(tmp_path / "l.db")
    quote = asked.explain_many(LOW[:6], target="high", budget=5, n_jobs=1).quote()
    assert asked.explain_many(LOW[:6], target="high", budget=5, n_jobs=1).frame()["queries"].sum() <= quote.most_queries
