"""Tables and their columns: rows as a frame, what kind of feature a column is, its values as floats and back.

A column's dtype limits what it can *hold*: of 0.1 the nearest float32, of 300 the greatest int8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from pandas.api import types

from acex.arrays import BoolArray, FloatArray, Rows
from acex.space.feature import KINDS, Feature
from acex.space.kinds import refuse
from acex.space.times import Date, Duration
from acex.values import Remark, as_json, listed, plain

T = TypeVar("T")
Missing: TypeAlias = Literal["drop", "keep"]

IDENTIFIER = re.compile(r"(?i:(^|[^a-z])(id|ids|index|idx|nr|no|row|rownames?|key)$|^unnamed: \d+$)|[a-z]ID$")
ENOUGH_IDS = 20  # rows that all differ, before a column of whole numbers of such a name is one of identifiers
TIMES = (Date, Duration)  # imported here so that they are registered


@dataclass(frozen=True)
class Column:
    """A feature and the dtype of its column; None for that of the feature."""

    feature: Feature
    dtype: Any = None
    none: bool = False  # is a gap written as None, where the dtype leaves it open?

    @cached_property
    def number_dtype(self) -> np.dtype[Any]:
        """How numbers are held here: float64 unless the column is coarser or whole."""
        dtype = getattr(self.dtype, "numpy_dtype", self.dtype)
        is_number = isinstance(dtype, np.dtype) and dtype.kind in "fiu"
        return dtype if is_number and self.feature.is_number else np.dtype(np.float64)

    @property
    def low(self) -> float:
        """The feature's least value, as it is held here."""
        return float(self.nearest(self.feature.low))

    @property
    def high(self) -> float:
        """The feature's greatest value, as it is held here."""
        return float(self.nearest(self.feature.high))

    def nearest(self, values: Any) -> FloatArray:
        """The nearest values that can be held here."""
        dtype = self.number_dtype
        if dtype == np.float64:
            return np.asarray(values, dtype=np.float64)
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        held: FloatArray = np.clip(values, float(limits.min), float(limits.max)).astype(dtype).astype(np.float64)
        return np.where(np.equal(values, self.feature.gap), values, held) if self.feature.gaps else held

    @property
    def every(self) -> FloatArray:
        """All codes of the feature, as they are held here."""
        return self.feature.every(self.low, self.high)

    def within(self, pair: Any) -> FloatArray:
        """The ends that `ranges` leaves of the feature; one such as 0.1, which has no float32, moves inwards."""
        least, most = self.feature.ends(pair)
        wanted = np.array([max(least, self.low), min(most, self.high)])
        held, number = self.nearest(wanted), self.number_dtype.type
        if held[0] < wanted[0]:
            held[0] = np.nextafter(number(held[0]), number(np.inf))
        if held[-1] > wanted[-1]:
            held[-1] = np.nextafter(number(held[-1]), number(-np.inf))
        if held[0] > held[-1]:
            raise ValueError(f"ranges[{self.feature.name!r}]: no value of the feature lies within {pair!r}.")
        return held

    def listed(self, values: Any) -> FloatArray:
        """The codes of a list of `values`, ascending; of 0.1 in a column of float32 the nearest."""
        codes = self.feature.choices(values)
        held = self.nearest(codes)
        lost = codes[(held < self.low) | (held > self.high) | ((held != codes) & (self.number_dtype.kind != "f"))]
        if len(lost):
            raise ValueError(
                f"values[{self.feature.name!r}]: {self.feature.text(self.feature.value(lost[0]), 15)} does not fit "
                f"the column ({self.dtype}), whose values are {self.feature.span()}."
            )
        return np.unique(held)

    def codes(self, values: pd.Series[Any]) -> FloatArray:
        """The codes of values, as they are held here, (n,); they may lie beyond the feature's ends."""
        missing = np.asarray(values.array.isna(), dtype=bool)
        if missing.any() and self.feature.gaps:
            x = np.full(len(values), self.feature.gap)
            x[~missing] = self.codes(values[~missing])
            return x
        if missing.any():
            _refuse_missing(self.feature.name, values)
        x = self.feature.encode(values)
        return self.nearest(x) if self.number_dtype.kind == "f" else x

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        """The column for codes, (n,): a gap is what the dtype has for it."""
        known = np.flatnonzero(x != self.feature.gap)
        if len(known) == len(x):
            return self.feature.decode(x, dtype)
        column = self.feature.decode(x[known], dtype).set_axis(known).reindex(range(len(x)))
        return column.where(column.notna(), None) if self.none else column

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        """The codes of values, as they are held here, (n,)."""
        name, low, high = self.feature.name, self.low, self.high
        x = self.codes(values)
        bad = ((x < low) | (x > high)) & (x != self.feature.gap)
        if bad.any():
            ends = " to ".join(self.feature.text(self.feature.value(end), 15) for end in (low, high))
            advice = f"widen the feature: ranges={{{name!r}: (low, high)}}, or a space of your own."
            refuse(name, values, bad, f"is outside {ends}. If it is a real value, {advice}")
        return x


def _refuse_missing(name: str, values: pd.Series[Any]) -> None:
    missing = values.isna().to_numpy()
    keep = 'missing="keep" (in the shell --missing keep)'
    if len(values) == 1 and missing[0]:
        got = f"{name!r}: the value is missing, got {plain(values.iloc[0])!r}"
        raise ValueError(f"{got}. Fill it in; or, for a model that takes gaps and a column that holds them, {keep}.")
    if missing.any():
        raise ValueError(
            f"{name!r}: {int(missing.sum())} of {len(values)} values are missing (first in row "
            f"{int(missing.argmax())}). Fill them in or drop the column; or, for a model that takes gaps, {keep}."
        )


def holds_gaps(dtype: Any) -> bool:
    """Can a column of this dtype hold a gap?"""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


def infer_feature(name: str, column: pd.Series[Any]) -> Feature:
    """The feature whose values these are, none of which is missing; see `Space.infer`."""
    _refuse_missing(name, column)
    for kind in reversed(KINDS.values()):
        feature = kind.infer(name, column)
        if feature is not None:
            return replace(feature, frozen=True) if _is_identifier(feature, column) else feature
    dtype = column.dtype
    if isinstance(dtype, pd.PeriodDtype):
        raise ValueError(f"{name!r}: holds periods ({dtype}). Turn them into dates: .dt.to_timestamp().")
    found = ", ".join(f"{v!r} ({kind.__name__})" for kind, v in {type(v): v for v in column.tolist()}.items())
    raise ValueError(
        f"{name!r}: expected numbers only or texts only, got {found}. Convert the column, or declare it as "
        f"acex.Nominal({name!r}, (...))."
    )


def _is_identifier(feature: Feature, column: pd.Series[Any]) -> bool:
    """Is this a distinct number for each row, by its name an identifier? Such a column is frozen."""
    is_named = IDENTIFIER.search(feature.name) is not None and feature.is_whole and feature.is_number
    return is_named and len(column) >= ENOUGH_IDS and column.is_unique


def as_frame(rows: Rows) -> pd.DataFrame:
    """Rows of any accepted form as a new data frame; arrays get the columns 0, 1, ..."""
    match rows:
        case pd.DataFrame():
            return rows.copy(deep=False)
        case pd.Series():
            return pd.DataFrame([rows.tolist()], columns=rows.index)
        case Mapping():
            return pd.DataFrame({name: [value] for name, value in rows.items()})
    if isinstance(rows, list) and rows and all(isinstance(r, Mapping) for r in rows):
        return pd.DataFrame(rows)
    array = np.asarray(rows)
    if array.ndim not in (1, 2):
        what = f"{type(rows).__name__} of {array.ndim} dimensions"
        raise ValueError(f"Expected rows as a DataFrame, a Series, a mapping or a 2-D array, got {what}.")
    return pd.DataFrame(np.atleast_2d(array))


def as_data(data: Rows) -> pd.DataFrame:
    """Known rows, a DataFrame or a 2-D array, as a new data frame."""
    if not isinstance(data, pd.DataFrame) and np.ndim(data) != 2:
        raise ValueError(f"data must be a DataFrame or a 2-D array, got {type(data).__name__}.")
    return as_frame(data)


def labels_to_json(labels: Iterable[Hashable]) -> list[Any]:
    """The labels of columns in plain values, tuples as lists."""
    return [[as_json(part) for part in c] if isinstance(c, tuple) else as_json(c) for c in labels]


def labels_from_json(written: Iterable[Any]) -> tuple[Hashable, ...]:
    """The labels that `labels_to_json` wrote down."""
    return tuple(tuple(c) if isinstance(c, list) else c for c in written)


def index_of(labels: Sequence[Hashable], *, nested: bool) -> pd.Index[Any]:
    """The index that holds exactly these labels: tuples as they are, or as several levels if they are nested."""
    index: pd.Index[Any] = pd.Index(labels, tupleize_cols=nested)
    is_same = all(a is b or a == b for a, b in zip(index, labels, strict=True))  # among texts None becomes NaN
    return index if is_same else pd.Index(labels, dtype=object, tupleize_cols=False)


def dtype_to_json(dtype: Any) -> Any:
    """The dtype in plain values."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    categories = dtype.categories.tolist()
    written = [as_json(c) for c in categories]
    of = str(dtype.categories.dtype)
    if written != categories or (of == "object" and all(isinstance(c, str) for c in categories)):
        of = "str"  # also what pandas 2 calls object
    return {"categories": written, "of": of, "ordered": bool(dtype.ordered)}


def dtype_from_json(written: Any) -> Any:
    """The dtype that `dtype_to_json` wrote down."""
    if written == "str":
        return pd.Series([""]).dtype  # object before pandas 3
    if not isinstance(written, dict):
        return types.pandas_dtype(written)
    return pd.CategoricalDtype(pd.Index(written["categories"], dtype=written["of"]), ordered=written["ordered"])


def rows_in_form(values: list[list[Any]], form: Mapping[str, Any]) -> Rows:
    """Rows as a model is used to them, from plain values and what `Space.form` wrote down."""
    if form["array_dtype"] is not None:
        return np.array(values, dtype=form["array_dtype"])
    frame = pd.DataFrame(values)
    if form["dtypes"] is not None:
        dtypes = [dtype_from_json(written) for written in form["dtypes"]]
        frame = pd.DataFrame({c: frame[c].astype(d) for c, d in zip(frame.columns, dtypes, strict=True)})
        for j in form.get("nones", ()):
            frame[j] = frame[j].where(frame[j].notna(), None)
    if form["columns"] is not None:
        frame.columns = index_of(labels_from_json(form["columns"]), nested=form.get("nested", False))
    return frame


# -- missing values, and all errors of a table at once --------------------------------------------------------


def is_complete(data: Rows) -> BoolArray:
    """Which rows of a frame or an array have no gap, (n,)."""
    gaps = data.isna().to_numpy() if isinstance(data, pd.DataFrame) else pd.isna(np.asarray(data))
    return np.asarray(~gaps.any(axis=1), dtype=bool)


def known_values(data: pd.DataFrame, missing: Missing) -> Iterator[tuple[Hashable, pd.Series[Any]]]:
    """The label of each column, and its values that are not missing.

    Raises:
        ValueError: there are none.
    """
    rows = data[is_complete(data)] if missing == "drop" and len(data) else data
    if len(rows) < min(len(data), 1):
        raise ValueError(
            f"every row of data has a gap: {_counted(data)}. Leave out the columns that have most of them (in the "
            f"shell --drop), or fill them in."
        )
    empty = [label for label, column in rows.items() if len(rows) and column.isna().all()]
    if empty:
        raise ValueError(f"{listed(empty)}: every value is missing. Leave out the column (in the shell --drop).")
    for label, column in rows.items():
        yield label, column.dropna().infer_objects()


def drop_incomplete(data: Rows, outcomes: Any, missing: Missing) -> tuple[Rows, Any, tuple[Remark, ...]]:
    """The rows that a space with this `missing` keeps, with their outcomes, and a remark about those dropped.

    If every row has a gap, all are kept: `Space.infer` and `Space.encode` raise the error.
    """
    if missing == "keep" or not (isinstance(data, pd.DataFrame) or np.ndim(data) == 2):
        return data, outcomes, ()
    complete = is_complete(data)
    if complete.all() or not complete.any():
        return data, outcomes, ()
    n = int((~complete).sum())
    counts = _counted(data if isinstance(data, pd.DataFrame) else pd.DataFrame(data))
    what = f"{n} of {len(complete)} rows of data {'has a gap and was' if n == 1 else 'have gaps and were'} left out"
    if outcomes is not None and len(outcomes) == len(complete):
        outcomes = [outcome for outcome, keep in zip(outcomes, complete, strict=True) if keep]
    return data[complete], outcomes, (Remark("rows_dropped", f"{what} ({counts})."),)


def _counted(table: pd.DataFrame, most: int = 5) -> str:
    """In which columns values are missing, and how many."""
    counts = table.isna().sum()
    worst = counts[counts > 0].sort_values(ascending=False, kind="stable")
    named = ", ".join(f"{name} {n}" for name, n in worst.iloc[:most].items())
    return named if len(worst) <= most else f"{named} and {len(worst) - most} more columns"


def all_at_once(work: Iterable[Callable[[], T]]) -> list[T]:
    """The results of all functions; errors are raised together.

    Raises:
        ValueError: with the message of each function that failed.
    """
    done: list[T] = []
    problems: list[str] = []
    for piece in work:
        try:
            done.append(piece())
        except ValueError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        raise ValueError("\n- ".join([f"{len(problems)} columns cannot be taken as they are:", *problems]))
    return done
