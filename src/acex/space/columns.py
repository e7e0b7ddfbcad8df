"""Tables and their columns: rows as a frame, what kind of feature a column is, its values as floats and back.

A column's dtype limits what it can *hold*: of 0.1 the nearest float32, of 300 the greatest int8.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from acex.arrays import BoolArray, FloatArray, Rows
from acex.space.kinds import Categorical, Continuous, Feature, Integer, Nominal, Numeric, Ordinal
from acex.values import as_json, is_hashable, listed, plain


@dataclass(frozen=True)
class Column:
    """A feature and the dtype of its column; None for that of the feature."""

    feature: Feature
    dtype: Any = None

    def check(self) -> None:
        """Refuse a dtype that cannot hold the feature's values: the model would be asked something else."""
        feature, dtype = self.feature, self.dtype
        if isinstance(feature, Categorical):
            unheld = [c for c in feature.categories if not _holds(dtype, c)]
            if unheld:
                what = f"{feature.name!r}: {listed(unheld)}"
                raise ValueError(f"{what} has no place in the column in data, which is {dtype}.")
            return
        is_whole = types.is_integer_dtype(dtype)
        if types.is_float_dtype(dtype) or types.is_object_dtype(dtype) or (is_whole and isinstance(feature, Integer)):
            return
        raise ValueError(
            f"{feature.name!r}: declared {type(feature).__name__}, but the column in data is {dtype}. Declare it "
            f"{'Integer' if is_whole else 'Nominal or Ordinal'}, or convert the column to float."
        )

    @cached_property
    def number_dtype(self) -> np.dtype[Any]:
        """How numbers are held here: float64 unless the column is coarser or whole."""
        dtype = getattr(self.dtype, "numpy_dtype", self.dtype)
        is_number = isinstance(dtype, np.dtype) and dtype.kind in "fiu"
        return dtype if is_number and isinstance(self.feature, Numeric) else np.dtype(np.float64)

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
        return held

    def within(self, low: float, high: float) -> FloatArray:
        """The widest (low, high) within these whose ends can be held here; low > high if there is none."""
        number = self.number_dtype.type
        least, most = self.nearest([low, high])
        if least < low:
            least = np.nextafter(number(least), number(np.inf))
        if most > high:
            most = np.nextafter(number(most), number(-np.inf))
        return np.array([least, most], dtype=np.float64)

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        """Codes, or numbers as they are held here, (n,)."""
        name, feature = self.feature.name, self.feature
        _refuse_missing(name, values)
        if isinstance(feature, Categorical):
            codes = {category: code for code, category in enumerate(feature.categories)}
            try:
                return np.array([codes[v] for v in values.tolist()], dtype=float)
            except (KeyError, TypeError):
                unknown = next(v for v in values.tolist() if not is_hashable(v) or v not in codes)
                known = listed(feature.categories)
                raise ValueError(f"{name!r}: {unknown!r} is not a known category; there are {known}.") from None
        if not types.is_numeric_dtype(values.dtype):
            strange = [v for v in values.tolist() if not isinstance(v, (Real, Decimal))]
            if strange:
                raise ValueError(f"{name!r}: expected a number, got {plain(strange[0])!r}.")
        x = np.asarray(values.astype("float64"), dtype=np.float64)
        _refuse(name, values, ~np.isfinite(x), "is not finite.")
        if isinstance(feature, Integer):
            _refuse(name, values, x != np.rint(x), "is not a whole number.")
        if self.number_dtype.kind == "f":
            x = self.nearest(x)
        low, high = self.low, self.high
        advice = f"If it is a real value, widen the feature: ranges={{{name!r}: (low, high)}}, or a space of your own."
        _refuse(name, values, (x < low) | (x > high), f"is outside {low:.15g} to {high:.15g}. {advice}")
        return x

    def decode(self, x: FloatArray) -> pd.Series[Any]:
        """The column for snapped codes or numbers, (n,)."""
        match self.feature:
            case Continuous():
                return pd.Series(x, dtype=self.dtype or "float64")
            case Integer():
                return pd.Series(x.astype(np.int64)).astype(self.dtype or "int64")
            case Ordinal() | Nominal() as feature:
                return pd.Series([feature.categories[int(code)] for code in x], dtype=self.dtype)


def _holds(dtype: Any, category: Hashable) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        return category in dtype.categories
    if types.is_object_dtype(dtype):
        return True
    one = [category]
    try:
        array = np.array(one, dtype) if isinstance(dtype, np.dtype) else pd.array(one, dtype)
    except (ValueError, TypeError, OverflowError):
        return False
    return bool(array.tolist() == one)


def _refuse(name: str, values: pd.Series[Any], bad: BoolArray, why: str) -> None:
    if bad.any():
        raise ValueError(f"{name!r}: {plain(values.iloc[int(bad.argmax())])!r} {why}")


def _refuse_missing(name: str, values: pd.Series[Any]) -> None:
    missing = values.isna().to_numpy()
    if len(values) == 1 and missing[0]:
        raise ValueError(f"{name!r}: the value is missing, got {plain(values.iloc[0])!r}.")
    if missing.any():
        raise ValueError(
            f"{name!r}: {int(missing.sum())} of {len(values)} values are missing (first in row "
            f"{int(missing.argmax())}). Fill them in or drop the column."
        )


def infer_feature(name: str, column: pd.Series[Any]) -> Feature:
    """The feature whose values these are; see `Space.infer`."""
    dtype = column.dtype
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype) or dtype.kind == "m":
        what = f"{name!r}: holds dates or times ({dtype})"
        raise ValueError(f"{what}. Turn it into a number first, such as days since a fixed day.")
    _refuse_missing(name, column)
    if isinstance(dtype, pd.CategoricalDtype):
        kind = Ordinal if dtype.ordered else Nominal
        return kind(name, tuple(dtype.categories.tolist()))
    if types.is_bool_dtype(dtype):
        return Nominal(name, (False, True))
    if types.is_integer_dtype(dtype):
        return Integer(name, int(column.min()), int(column.max()))
    if types.is_float_dtype(dtype):
        low, high = float(column.min()), float(column.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{name!r}: holds an infinite value, {low if np.isinf(low) else high}.")
        return Continuous(name, low, high)
    declare = f"declare it as acex.Nominal({name!r}, (...))"
    examples = {type(v): v for v in column.tolist()}
    if not all(issubclass(kind, str) for kind in examples):
        found = ", ".join(f"{v!r} ({kind.__name__})" for kind, v in examples.items())
        raise ValueError(
            f"{name!r}: expected numbers only or texts only, got {found}. Convert the column, or {declare}."
        )
    values = column.unique().tolist()
    if len(values) > 100 and len(values) > len(column) / 2:
        what = f"{name!r}: {len(values)} different texts in {len(column)} rows"
        raise ValueError(f"{what} look like an identifier. Drop the column, or {declare}.")
    return Nominal(name, tuple(sorted(values)))


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
        raise ValueError(f"Expected a DataFrame, a Series, a mapping or a 2-D array, got {what}.")
    return pd.DataFrame(np.atleast_2d(array))


def as_data(data: Rows) -> pd.DataFrame:
    """Many rows, of the two forms that say how a model wants them, as a new data frame."""
    if not isinstance(data, pd.DataFrame) and np.ndim(data) != 2:
        raise ValueError(f"data must be a DataFrame or a 2-D array, got {type(data).__name__}.")
    return as_frame(data)


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
    frame = pd.DataFrame(values, columns=form["columns"])
    if form["dtypes"] is None:
        return frame
    dtypes = [dtype_from_json(written) for written in form["dtypes"]]
    return pd.DataFrame({c: frame[c].astype(d) for c, d in zip(frame.columns, dtypes, strict=True)})
