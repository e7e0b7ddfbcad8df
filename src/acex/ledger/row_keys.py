"""Rows, labels and keys as text, identical on every machine and in every version."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.values import fingerprint, json_value, plain

PlainLabel: TypeAlias = str | int | float | bool
Scores: TypeAlias = list[tuple[PlainLabel, float]]


def canonical(rows: Rows) -> list[str]:
    """The canonical text of each row: equal for equal values, on every machine and in every version."""
    return [canonical_text(row) for row in row_values(rows)]


def canonical_text(values: Iterable[Any]) -> str:
    """The canonical text of one row."""
    return json.dumps([_plain(value) for value in values], ensure_ascii=True)


def row_values(rows: Rows) -> list[tuple[Any, ...]]:
    """The values of each row, with NumPy scalars converted to Python's types."""
    if isinstance(rows, pd.DataFrame):
        columns = [column.tolist() for _, column in rows.items()]
    else:
        columns = [column.tolist() for column in np.asarray(rows).T]
    return [tuple(map(plain, row)) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """The value for JSON; a float without a fraction becomes an integer, so -0.0 becomes 0."""
    value = json_value(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def as_vote(key: str, times: int) -> str:
    """The key of a row that is asked for the n-th time: a different row to the ledger, so it is paid for again."""
    return key if times == 1 else f'{key[:-1]}, {{"vote": {times}}}]'


def without_vote(key: str) -> str:
    """The canonical row of a vote's key; other keys are returned unchanged."""
    return f"{key[: key.rindex(', {')]}]" if is_vote(key) else key


def next_result(key: str) -> str:
    """The key of the next result of the same question: a laboratory may measure a sample several times at once."""
    mark = json.loads(key[key.rindex("{") : -1]) if is_vote(key) else {"vote": 1}
    mark["replicate"] = mark.get("replicate", 1) + 1
    return f"{without_vote(key)[:-1]}, {json.dumps(mark)}]"


def first_result(key: str) -> str:
    """The key of the question that a result belongs to."""
    return as_vote(without_vote(key), json.loads(key[key.rindex("{") : -1])["vote"]) if is_vote(key) else key


def is_vote(key: str) -> bool:
    """Whether this is the key of a second or later answer to a row."""
    return key.endswith("}]")


def query_id(model: str, row: str) -> str:
    """The key of a row among all rows of all models."""
    return fingerprint([model, row])


def label_text(label: Any) -> str:
    """A label as JSON, which distinguishes 1, 1.0, true and "1"."""
    label = plain(label)
    if not isinstance(label, (str, bool, int, float)) or (isinstance(label, float) and not math.isfinite(label)):
        raise TypeError(f"A label must be text, a finite number or a truth value, got {label!r}.")
    return json.dumps(label)


def plain_label(label: Any) -> PlainLabel:
    """A label as the ledger returns it: NumPy scalars become Python's types."""
    value: PlainLabel = json.loads(label_text(label))
    return value


def now_text() -> str:
    """The current time in UTC, as text."""
    return iso(datetime.now(UTC))


def iso(moment: datetime) -> str:
    """A time as text of fixed length, so that texts sort chronologically."""
    return moment.isoformat(timespec="microseconds")
