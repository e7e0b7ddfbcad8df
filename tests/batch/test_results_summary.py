"""A summary counts what the explanations have in common."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

import acex
from toys import POINTS, sums

LOW = POINTS[sums(POINTS) == 0]


def test_a_summary_counts_what_the_explanations_say() -> None:
    rows = np.vstack([LOW[:6], POINTS[sums(POINTS) == 1][:1]])
    many = acex.Explainer(sums, POINTS).explain_many(rows, budget=8, target=1, n_jobs=1)
    summary, counted = many.summary(), Counter(f for e in many for f in e.changes["feature"])
    assert dict(zip(summary.changes["feature"], summary.changes["rows"], strict=True)) == counted
    assert (summary.changes[["up", "down"]].sum(axis=1) == summary.changes["rows"]).all()
    assert (summary.changes["other"] == 0).all()  # numbers all
    assert summary.outcomes.to_dict() == Counter(e.outcome for e in many)
    assert summary.queries == sum(e.n_queries for e in many)
    text = str(summary)
    assert text.startswith("7 rows: ") and "What has to change:" in text
    asked = acex.Explainer(lambda rows: ["low"] * len(rows), POINTS)
    nothing = asked.explain_many(LOW[:2], budget=3, n_jobs=1).summary()
    assert nothing.not_found.tolist() == ["budget_spent"] * 2 and nothing.changes.empty
    assert "2 budget spent." in str(nothing) and "Without a result:\n  0: budget spent" in str(nothing)


def test_changes_that_were_not_checked_are_counted() -> None:
    many = acex.Explainer(sums, POINTS).explain_many(LOW[:6], budget=3, target=1, n_jobs=1)
    marks = [mark for e in many for mark in e.changes["needed"]]
    n = marks.count("not checked")
    assert 0 < n == many.summary().n_not_checked == many.table()["n_not_checked"].sum()
    assert f"{n} changes were not checked and may not be needed." in str(many.summary())
    enough = acex.Explainer(sums, POINTS).explain_many(LOW[:6], budget=30, target=1, n_jobs=1)
    assert "not checked" not in str(enough.summary())


def test_a_summary_of_no_row_and_of_one() -> None:
    assert str(acex.Explainer(sums, POINTS).explain_many(LOW[:0]).summary()).startswith("0 rows: none to explain. 0 ")
    met = acex.Explainer(sums, POINTS).explain_many(LOW[:1], target=0, n_jobs=1).summary()
    assert str(met) == "1 row: 1 already target. 1 query, 1.0 a row."


def test_queries_of_earlier_runs_are_not_shown_as_new(tmp_path: Path) -> None:
    asked = acex.Explainer(acex.Model(sums, name="sums"), POINTS, ledger=tmp_path / "answers.db")
    first = asked.explain_many(LOW[:2], budget=5, target=1, n_jobs=1).summary()
    assert first.earlier == 0 and "earlier" not in str(first)
    again = asked.explain_many(LOW[:3], budget=5, target=1, n_jobs=1).summary()
    assert again.queries > again.earlier == first.queries > 0
    assert (
        f"{again.queries} queries ({first.queries} in earlier runs, {again.queries - first.queries} in this one)"
        in str(again)
    )


def test_queries_of_earlier_runs_are_not_shown_as_new_where_a_row_fails(tmp_path: Path) -> None:
    with acex.Ledger(tmp_path / "answers.db") as ledger:
        asked = acex.Explainer(acex.Model(sums, name="sums"), POINTS, ledger=ledger)
        first = asked.explain_many(LOW[:2], budget=5, target=1, n_jobs=1).summary()
        ledger.budget("sums", rows=first.queries)
        again = asked.explain_many(LOW[:2], budget=20, target=1, n_jobs=1).summary()
        assert again.outcomes["failed"] > 0 and again.earlier == again.queries == first.queries


def test_a_change_of_category_is_neither_up_nor_down() -> None:
    rows = pd.DataFrame({"job": ["clerk", "cook"] * 10, "age": range(20)})
    asked = acex.Explainer(lambda r: ["yes" if job == "cook" else "no" for job in r["job"]], rows)
    changes = asked.explain_many(rows.iloc[[0, 2]], budget=20, n_jobs=1).summary().changes.to_dict("list")
    counted = ("feature", "rows", "up", "down", "other")
    assert [changes[name] for name in counted] == [["job"], [2], [0], [0], [2]]
