"""Frames as JSON knows them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from acex.values import as_json, is_missing


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame in plain values; infinity and what is missing become null."""
    columns = {str(c): [_plain(v) for v in frame[c].tolist()] for c in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:
    value = None if is_missing(value) else as_json(value)
    return None if isinstance(value, float) and math.isinf(value) else value
