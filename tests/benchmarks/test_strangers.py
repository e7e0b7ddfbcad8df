"""Tables that were not prepared for acex: what its defaults must keep on each of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.suite import ROOT, Job, Line
from benchmarks.suites import SUITES
from benchmarks.suites.strangers import (
    DEFAULTS,
    MANY_CHANGES,
    N_ROWS,
    TABLES,
    WHOLE_BUDGET,
    few_valued,
    holds,
    measure,
    missing,
    refusal,
    stranger,
)

N_MEASURED = 2  # rows of each table that the slow tests measure; the committed results have all
MUCH_CHEAPER = 2.0  # times the least cost known: so much above it, an answer should say something


@cache
def measured(name: str) -> list[Line]:
    """The first rows of a table, measured now."""
    needed = missing(name, DEFAULTS)
    if needed:
        pytest.skip(needed)
    return [line for row in range(N_MEASURED) for line in measure(Job(name, DEFAULTS, row, 0))]


@cache
def committed(name: str) -> list[Line]:
    """The rows of a table that the page reports on."""
    lines = SUITES["strangers"].read()
    chosen: Any = lines[(lines["data"] == name) & (lines["method"] == DEFAULTS)].to_dict("records")
    return list(chosen)


def found(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line["outcome"] == "found"]


def is_said(line: Line) -> bool:
    """Does a remark say that the answer is long or may be improved?"""
    return any("What helps" in remark for remark in line["remarks"])


in_both = pytest.mark.parametrize("lines_of", [committed, pytest.param(measured, marks=pytest.mark.slow)])


def has_uneven_steps(column: pd.Series[Any]) -> bool:
    """Is something between values that both occur five times left out? Rare ends of a score leave out more."""
    counts = column.value_counts().sort_index()
    steps = np.diff(counts.index.to_numpy(dtype=float))
    is_common = np.minimum(counts.to_numpy()[1:], counts.to_numpy()[:-1]) >= 5
    return bool(len(steps) > 1 and ((steps != 1) & is_common).any())


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_the_file_has_what_the_entry_says(name: str) -> None:
    assert len(measured(name)) == N_MEASURED
    table = stranger(name)
    assert all(holds(text, row) for text in table.entry.relations for _, row in table.rows.iterrows())
    for a, b in table.entry.lookups:
        assert (table.data.dropna().groupby(a)[b].nunique() == 1).all()


@pytest.mark.slow
def test_the_tables_have_what_people_complain_about() -> None:
    read = [stranger(name) for name in TABLES if measured(name)]
    assert max(table.data.shape[1] for table in read) >= 60
    assert min(min(table.share.values()) for table in read) < 0.02
    assert any(table.data.isna().any(axis=None) for table in read)
    assert any(not table.data.to_csv().isascii() for table in read)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, entry in TABLES.items() if entry.refused])
def test_a_column_that_is_refused_is_named(name: str) -> None:
    assert measured(name)
    message = refusal(name)
    assert all(f"'{column}'" in message and f"--drop {column}" in message for column in TABLES[name].refused)


@pytest.mark.parametrize("name", TABLES)
def test_the_page_reports_on_all_rows(name: str) -> None:
    assert [line["row"] for line in committed(name)] == list(range(N_ROWS))


@in_both
@pytest.mark.parametrize("name", TABLES)
def test_a_counterfactual_is_found_wherever_one_is_known(name: str, lines_of: Callable[[str], list[Line]]) -> None:
    assert [i for i, line in enumerate(lines_of(name)) if line["known"] and line["outcome"] != "found"] == []


@in_both
@pytest.mark.parametrize("kind", ["unseen", "digits", "ids", "broken"])
@pytest.mark.parametrize("name", TABLES)
def test_an_answer_has_nothing_that_does_not_fit_the_file(
    name: str, kind: str, lines_of: Callable[[str], list[Line]]
) -> None:
    """Values that do not occur among few, more digits, changed identifiers, broken relations of numbers."""
    lines = found(lines_of(name))
    assert [f"row {i}: {line[kind]}, {line['changed']}" for i, line in enumerate(lines) if line[kind]] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_remarks_tell_what_was_inferred(name: str) -> None:
    lines = measured(name)
    table = stranger(name)
    for line in lines:
        text = " ".join(line["remarks"])
        if table.data.isna().any(axis=None):
            assert "gaps" in text
        uneven = [name for name in few_valued(table.data) if has_uneven_steps(table.data[name])]
        assert not uneven or any(name in text for name in uneven), f"no remark names one of {uneven}"
        sensitive = table.entry.sensitive
        assert all(column in text for column in sensitive), f"{sensitive} are free to change, and no remark says so"


@in_both
@pytest.mark.parametrize("name", TABLES)
def test_an_answer_with_many_changes_says_so(name: str, lines_of: Callable[[str], list[Line]]) -> None:
    silent = [line["changed"] for line in found(lines_of(name)) if line["changes"] > MANY_CHANGES and not is_said(line)]
    assert silent == []


def test_the_page_has_how_many_answers_that_are_far_from_the_best_say_so() -> None:
    far = [line for name in TABLES for line in found(committed(name)) if line["cost"] > MUCH_CHEAPER * line["best"]]
    sentence = f"Of the {len(far)} answers that cost more than twice the least known, {sum(map(is_said, far))} say"
    assert sentence in " ".join((ROOT / "docs" / "strangers.md").read_text(encoding="utf-8").split())


def test_stopping_early_costs_at_most_3_percent() -> None:
    lines = SUITES["strangers"].read().pivot(index=["data", "row"], columns="method", values="cost").dropna()
    assert len(lines) >= 48
    assert np.log(lines[DEFAULTS] / lines[WHOLE_BUDGET]).mean() <= 0.03
