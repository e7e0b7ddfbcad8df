"""One value, of whatever make: is it what was expected, and how is it written down?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

Label: TypeAlias = Hashable  # what a model says of a row: text, a whole number or a truth value


def is_finite(value: Any) -> bool:
    """Is this a number, and a finite one?"""
    return isinstance(value, (int, float, np.number)) and bool(np.abs(value) < np.inf)


def is_count(value: Any, least: int = 1) -> bool:
    """Is this a whole number, `least` or more?"""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def is_missing(value: Any) -> bool:
    """Is this None, NaN, NaT or pandas' NA?"""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def is_hashable(value: Any) -> bool:
    """Can this be a key, with all that it holds?"""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def plain(value: Any) -> Any:
    """A scalar of numpy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def as_json(value: Any) -> Any:
    """A value as JSON knows it: itself, or its text."""
    value = plain(value)
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def fingerprint(value: Any) -> str:
    """A short hash of anything JSON can hold: the same for equal values, on every machine."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=as_json)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]


def listed(items: Iterable[Any], most: int = 12) -> str:
    """A readable list of at most a dozen items."""
    items = list(items)
    shown = ", ".join(repr(plain(item)) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"
