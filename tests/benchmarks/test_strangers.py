"""Tables that were not prepared for acex: what its defaults must keep on each of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.suite import Job, Line
from benchmarks.suites.strangers import (
    MANY_CHANGES,
    N_ROWS,
    TABLES,
    few_valued,
    holds,
    measure,
    missing,
    refusal,
    stranger,
)

pytestmark = pytest.mark.slow
MUCH_CHEAPER = 2.0  # times the least cost known: so much above it, an answer has to say something


@cache
def lines(name: str) -> list[Line]:
    """The measured rows of a table."""
    needed = missing(name, "defaults")
    if needed:
        pytest.skip(needed)
    return [line for row in range(N_ROWS) for line in measure(Job(name, "defaults", row, 0))]


def found(name: str) -> list[Line]:
    return [line for line in lines(name) if line["outcome"] == "found"]


def has_uneven_steps(column: pd.Series[Any]) -> bool:
    """Whether whole numbers between the values of a column do not occur, or its values are not whole."""
    steps = np.diff(np.unique(column.dropna()))
    return bool(len(steps) > 1 and (steps != 1).any())


@pytest.mark.parametrize("name", TABLES)
def test_the_file_has_what_the_entry_says(name: str) -> None:
    assert len(lines(name)) == N_ROWS
    table = stranger(name)
    assert all(holds(text, row) for text in table.entry.relations for _, row in table.rows.iterrows())
    for a, b in table.entry.lookups:
        assert (table.data.dropna().groupby(a)[b].nunique() == 1).all()


def test_the_tables_have_what_people_complain_about() -> None:
    read = [stranger(name) for name in TABLES if lines(name)]
    assert max(table.data.shape[1] for table in read) >= 60
    assert min(min(table.share.values()) for table in read) < 0.02
    assert any(table.data.isna().any(axis=None) for table in read)
    assert any(not table.data.to_csv().isascii() for table in read)


@pytest.mark.parametrize("name", [name for name, entry in TABLES.items() if entry.refused])
def test_a_column_that_is_refused_is_named(name: str) -> None:
    assert lines(name)
    message = refusal(name)
    assert all(f"'{column}'" in message and f"--drop {column}" in message for column in TABLES[name].refused)


@pytest.mark.parametrize("name", TABLES)
def test_a_counterfactual_is_found_wherever_one_is_known(name: str) -> None:
    assert [i for i, line in enumerate(lines(name)) if line["known"] and line["outcome"] != "found"] == []


@pytest.mark.parametrize("kind", ["unseen", "digits", "ids", "broken"])
@pytest.mark.parametrize("name", TABLES)
def test_an_answer_has_nothing_that_does_not_fit_the_file(name: str, kind: str) -> None:
    """Values that do not occur among few, more digits, changed identifiers, broken relations of numbers."""
    violations = [f"row {i}: {line[kind]}, {line['changed']}" for i, line in enumerate(found(name)) if line[kind]]
    assert violations == []


@pytest.mark.parametrize("name", TABLES)
def test_remarks_tell_what_was_inferred(name: str) -> None:
    table = stranger(name) if lines(name) else None
    assert table is not None
    for line in lines(name):
        text = " ".join(line["remarks"])
        if table.data.isna().any(axis=None):
            assert "gaps" in text
        uneven = [name for name in few_valued(table.data) if has_uneven_steps(table.data[name])]
        assert not uneven or any(name in text for name in uneven), f"no remark names one of {uneven}"
        sensitive = table.entry.sensitive
        assert all(column in text for column in sensitive), f"{sensitive} are free to change, and no remark says so"


@pytest.mark.parametrize("name", TABLES)
def test_an_answer_that_is_long_or_far_from_the_best_says_so(name: str) -> None:
    silent = [
        f"row {i}: {line['changes']} changes, {line['cost'] / line['best']:.1f} times the least cost known"
        for i, line in enumerate(found(name))
        if (line["changes"] > MANY_CHANGES or line["cost"] > MUCH_CHEAPER * line["best"]) and not line["warnings"]
    ]
    assert silent == []
