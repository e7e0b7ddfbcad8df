"""Values as the ledger writes them: rows, labels and keys, the same on every machine and in every version."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.values import as_json, fingerprint, is_missing, plain

PlainLabel: TypeAlias = str | int | float | bool
Scores: TypeAlias = list[tuple[PlainLabel, float]]


def canonical(rows: Rows) -> list[str]:
    """One text a row, the same for the same values on every machine and in every version."""
    if isinstance(rows, pd.DataFrame):
        columns = [rows[c].tolist() for c in rows.columns]
    else:
        columns = [column.tolist() for column in np.asarray(rows).T]
    return [json.dumps([_plain(v) for v in row], ensure_ascii=True) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """The value as JSON knows it; -0.0 is 0.0, and a whole float is written like an integer."""
    value = None if is_missing(value) else as_json(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def as_vote(form: str, times: int) -> str:
    """A canonical row that is asked for this many times: a row of its own to the ledger, and so paid for once more."""
    return form if times == 1 else f'{form[:-1]}, {{"vote": {times}}}]'


def without_vote(form: str) -> str:
    """The canonical row that a vote is about; others as they are."""
    return f"{form[: form.rindex(', {')]}]" if is_vote(form) else form


def is_vote(form: str) -> bool:
    """Is this a row that is asked once more?"""
    return form.endswith("}]")


def query_id(model: str, row: str) -> str:
    """The key of a row among all rows of all models."""
    return fingerprint([model, row])


def label_text(label: Any) -> str:
    """A label as JSON, which tells 1, 1.0, true and "1" apart."""
    label = plain(label)
    if not isinstance(label, (str, bool, int, float)) or (isinstance(label, float) and not math.isfinite(label)):
        raise TypeError(f"A label must be text, a finite number or a truth value, got {label!r}.")
    return json.dumps(label)


def iso(moment: datetime) -> str:
    """A time as text: as long as any other, so that later is greater."""
    return moment.isoformat(timespec="microseconds")
