"""What a feature can hold: a real number, a whole number, one of some categories with or without an order."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from math import isfinite, nan
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from pandas.api import types

from acex.arrays import BoolArray, FloatArray
from acex.space.feature import MOST_LISTED, Direction, Feature, register
from acex.space.grid import Grid, digits_of, step_of, with_digits
from acex.values import is_count, is_finite, is_hashable, is_missing, listed, plain

LARGEST_EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart
DECIMAL_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")  # 3,5 and 1.250,75
MOST_TEXTS = 100  # different ones, beyond which a column may be one of names
TRUTHS = {"yes": True, "no": False, "true": True, "false": False, "1": True, "0": False, "y": True, "n": False}
LARGEST = 1e150  # distances are sums of squares, and the square of more than this may overflow


@dataclass(frozen=True)
class Numeric(Feature):
    """What `Continuous` and `Integer` share.

    `unit` is shown to people, such as "months"; nothing is converted. With a `grid` a search moves on its multiples,
    such as 50 or 0.001; a row may hold what lies between.
    """

    low: float
    high: float
    unit: str = field(default="", kw_only=True)
    grid: float = field(default=0.0, kw_only=True)

    is_number = True
    is_whole = False
    number: ClassVar[type] = float  # what values are made of

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(low=plain(self.low), high=plain(self.high))
        if not (is_finite(self.low) and is_finite(self.high) and self.low <= self.high):
            raise ValueError(f"{self.name!r}: expected finite low <= high, got {self.low!r} and {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise ValueError(f"{self.name!r}: numbers beyond {LARGEST:g} are too large; rescale the column.")
        if not isinstance(self.unit, str):
            raise ValueError(f"{self.name!r}: unit must be text, such as 'months', got {self.unit!r}.")
        self._set(grid=plain(self.grid))
        if not (is_finite(self.grid) and self.grid >= 0) or isinstance(self.grid, bool):
            raise ValueError(f"{self.name!r}: grid must be a step such as 50 or 0.001, got {self.grid!r}.")
        if self.grid and not self.is_whole and max(abs(self.low), abs(self.high)) / self.grid > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: a grid of {self.grid:g} is too fine for numbers up to {self.high:g}.")

    @classmethod
    def fields_of(cls, column: pd.Series[Any]) -> dict[str, Any]:
        return {"low": cls.number(column.min()), "high": cls.number(column.max())}

    def check(self, dtype: Any) -> None:
        _refuse_long(self.name, dtype)
        is_whole = types.is_integer_dtype(dtype)
        if types.is_float_dtype(dtype) or types.is_object_dtype(dtype) or (is_whole and self.is_whole):
            return
        raise ValueError(
            f"{self.name!r}: declared {type(self).__name__}, but the column in data is {dtype}. Declare it "
            f"{'Integer' if is_whole else 'Nominal or Ordinal'}, or convert the column to float."
        )

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        if not types.is_numeric_dtype(values.dtype):
            strange = [v for v in values.tolist() if not isinstance(v, (Real, Decimal))]
            if strange:
                raise ValueError(f"{self.name!r}: expected a number, got {plain(strange[0])!r}.")
        x = values.to_numpy(dtype=np.float64)
        refuse(self.name, values, ~np.isfinite(x), "is not finite.")
        refuse(self.name, values, x != self.snap(x), "is not a whole number.")
        return x

    def value(self, code: float) -> Any:
        return self.number(code)

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        column: pd.Series[Any] = pd.Series(x.astype(self.number))
        return column if dtype is None or dtype == column.dtype else column.astype(dtype)

    def limit(self, value: Any) -> float:
        if not isinstance(value, (Real, Decimal)) or isinstance(value, bool):
            raise ValueError(f"{plain(value)!r} is not a number.")
        return float(value)

    def value_in(self, text: str) -> Any:
        try:
            number = float(text)
        except ValueError:
            number = nan
        if not isfinite(number):
            raise ValueError(f"expected a number, got {text!r}.")
        return int(number) if number.is_integer() else number

    def reaching(self, x: FloatArray) -> Feature:
        low, high = float(x.min(initial=self.low)), float(x.max(initial=self.high))
        return self if (low, high) == (self.low, self.high) else replace(self, low=low, high=high)

    def as_written(self, column: pd.Series[Any]) -> Feature:
        return replace(self, grid=step_of(column))

    @property
    def is_stepped(self) -> bool:
        return self.grid > 0

    def rounded(self, x: FloatArray) -> FloatArray:
        return Grid(self.grid).nearest(x) if self.grid else x

    def inwards(self, low: float, high: float) -> tuple[float, float]:
        return Grid(self.grid).within(low, high) if self.grid else (low, high)

    def codes(self, allowed: FloatArray) -> FloatArray | None:
        if not self.grid or self.count(allowed) > MOST_LISTED:
            return super().codes(allowed)
        return Grid(self.grid).every(allowed[0], allowed[-1])

    def written(self, value: Any, digits: int = 4) -> str:
        if self.grid and is_finite(value) and abs(value) < LARGEST_EXACT_INTEGER:
            grid = Grid(self.grid)
            if grid.decimals and grid.nearest(value) == value:
                return grid.text(value)
        return super().written(value, digits)

    def verb(self, before: Any, after: Any) -> Direction:
        return "increase" if after > before else "decrease"


@register
@dataclass(frozen=True)
class Continuous(Numeric):
    """A real number between `low` and `high`, for a search one of so many significant `digits`; 0 for all there are."""

    digits: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_count(self.digits, least=0):
            raise ValueError(f"{self.name!r}: digits must be a whole number, 0 or more, got {self.digits!r}.")

    def as_written(self, column: pd.Series[Any]) -> Feature:
        step = step_of(column)
        return replace(self, grid=step, digits=0 if step else digits_of(column))

    @property
    def is_stepped(self) -> bool:
        return self.grid > 0 or self.digits > 0

    def rounded(self, x: FloatArray) -> FloatArray:
        return super().rounded(x) if self.grid or not self.digits else with_digits(x, self.digits)

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        if not types.is_float_dtype(column.dtype):
            return None
        _refuse_long(name, column.dtype)
        low, high = float(column.min()), float(column.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{name!r}: holds an infinite value, {low if np.isinf(low) else high}.")
        return cls(name, low, high)

    @classmethod
    def adopted(cls, column: pd.Series[Any]) -> pd.Series[Any]:
        return column.astype("float64") if types.is_integer_dtype(column.dtype) else column


@register
@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number between `low` and `high`."""

    grid: float = field(default=1, kw_only=True)

    number = int
    is_whole = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_count(self.grid):
            raise ValueError(f"{self.name!r}: the grid of an integer must be a whole number, got {self.grid!r}.")
        if self.low != round(self.low) or self.high != round(self.high):
            raise ValueError(f"{self.name!r}: an integer's range must be whole, got {self.low!r} to {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: integers beyond 2**53 have no exact float; rescale the column.")
        self._set(low=int(self.low), high=int(self.high))

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        is_whole = types.is_integer_dtype(column.dtype) or all(type(v) is int for v in column.tolist())
        return cls(name, column.min(), column.max()) if is_whole else None

    def as_written(self, column: pd.Series[Any]) -> Feature:
        return replace(self, grid=max(int(step_of(column)), 1))

    @property
    def is_stepped(self) -> bool:
        return self.grid > 1


@dataclass(frozen=True)
class Categorical(Feature):
    """What `Ordinal` and `Nominal` share: codes are positions in `categories`, and those allowed are all listed.

    An unknown value is an error, unless one of the categories, `other`, stands for all unknown values.
    """

    categories: tuple[Hashable, ...]
    other: Hashable = field(default=None, kw_only=True)

    lists_codes = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(other=plain(self.other))
        if isinstance(self.categories, str):
            raise ValueError(f"{self.name!r}: expected a list of categories, got {self.categories!r}.")
        self._set(categories=tuple(plain(c) for c in self.categories))
        if not self.categories:
            raise ValueError(f"{self.name!r}: expected at least one category.")
        for category in self.categories:
            if not is_hashable(category) or is_missing(category):
                raise ValueError(f"{self.name!r}: {category!r} cannot be a category.")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"{self.name!r}: a category appears twice in {listed(self.categories)}.")
        if self.other is not None and self.other not in self.categories:
            known = listed(self.categories)
            raise ValueError(f"{self.name!r}: other must be one of the categories, {known}, got {self.other!r}.")

    @property
    def low(self) -> float:
        return 0.0

    @property
    def high(self) -> float:
        return len(self.categories) - 1.0

    def check(self, dtype: Any) -> None:
        every = list(self.categories)
        unheld = [] if _holds(dtype, every) else [c for c in every if not _holds(dtype, [c])]
        if unheld:
            what = f"{self.name!r}: {listed(unheld)}"
            raise ValueError(f"{what} has no place in the column in data, which is {dtype}.")

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        try:
            return np.array([self._codes[v] for v in values.tolist()], dtype=float)
        except (KeyError, TypeError):
            codes = [self._code_of(v) for v in values.tolist()]
            if self.other is not None:
                codes = [self._codes[self.other] if code is None else code for code in codes]
            if None not in codes:
                return np.array(codes, dtype=float)
            unknown = values.tolist()[codes.index(None)]
            what = f"{self.name!r}: {unknown!r} is not a known category; there are {listed(self.categories)}"
            raise ValueError(f"{what}. If one of them stands for all others, say which: other=.") from None

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        return {category: code for code, category in enumerate(self.categories)}

    def unknown(self, values: pd.Series[Any]) -> list[Any]:
        """The values that are no category, and count as `other`."""
        return [v for v in values.dropna().tolist() if self.other is not None and self._code_of(v) is None]

    def _code_of(self, value: Any) -> int | None:
        """The code of a value, also of a yes or no in other words than the column's; None if it is not known."""
        if not is_hashable(value):
            return None
        return self._codes.get(value, self._truths.get(truth(value)))

    @cached_property
    def _truths(self) -> dict[bool | None, int]:
        """The codes of False and True, for categories such as yes and no."""
        truths = [truth(category) for category in self.categories]
        return dict(zip(truths, range(2), strict=True)) if sorted(map(str, truths)) == ["False", "True"] else {}

    def value(self, code: float) -> Any:
        return self.categories[int(code)]

    def every(self, low: float, high: float) -> FloatArray:
        return np.arange(len(self.categories), dtype=float)

    def choices(self, values: Any) -> FloatArray:
        codes = [self._code_of(value) for value in values]
        unknown = [value for value, code in zip(values, codes, strict=True) if code is None]
        if unknown:
            what = "is not a known category" if len(unknown) == 1 else "are not known categories"
            raise ValueError(f"values[{self.name!r}]: {listed(unknown)} {what}; there are {listed(self.categories)}.")
        return np.unique([float(code) for code in codes if code is not None])

    def value_in(self, text: str) -> Any:
        return {str(category): category for category in self.categories}.get(text, text)

    def codes(self, allowed: FloatArray) -> FloatArray | None:
        return allowed

    def written(self, value: Any, digits: int = 4) -> str:
        return str(value)

    def span(self, limits: tuple[Any, ...] | list[Any] | None = None) -> str:
        return super().span([*(self.categories if limits is None else limits)])


@register
@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of `categories`, listed from lowest to highest."""

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        dtype = column.dtype
        is_ordinal = isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
        return cls(name, tuple(column.cat.categories.tolist())) if is_ordinal else None

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        return super().decode(x, dtype or pd.CategoricalDtype(list(self.categories), ordered=True))


@register
@dataclass(frozen=True)
class Nominal(Categorical):
    """One of `categories`, in no order."""

    ordered = False

    @property
    def high(self) -> float:
        return len(self.categories) - 1.0 + self.gaps

    @property
    def gap(self) -> float:
        return float(len(self.categories)) if self.gaps else np.nan  # one more category

    def deviation(self, x: FloatArray) -> float:
        return super().deviation(x[x != self.gap])

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return None if dtype.ordered else cls(name, tuple(dtype.categories.tolist()))
        if types.is_bool_dtype(dtype):
            return cls(name, (False, True))
        if not all(isinstance(v, str) for v in column.tolist()):
            return None
        values = column.unique().tolist()
        if all(DECIMAL_COMMA.fullmatch(v) for v in values) and any("," in v for v in values):
            what = f"{name!r}: texts such as {values[0]!r} look like numbers with decimal commas"
            raise ValueError(
                f"{what}. Read the file so: pandas.read_csv(..., decimal=','), in the shell --decimal ','."
            )
        if len(values) > MOST_TEXTS and len(values) > len(column) / 2:
            what = f"{name!r}: {len(values)} different texts in {len(column)} rows look like an identifier"
            raise ValueError(
                f"{what}. Drop the column (in the shell --drop {name}, or --id-column {name} if rows are called so), "
                f"or declare it as acex.Nominal({name!r}, (...))."
            )
        return cls(name, tuple(sorted(values)))

    @classmethod
    def fields_of(cls, column: pd.Series[Any]) -> dict[str, Any]:
        return {"categories": tuple(sorted(column.unique().tolist()))}


def truth(value: Any) -> bool | None:
    """The truth value of yes, true, 1 and the like; None for anything else."""
    return TRUTHS.get(str(value).strip().lower().removesuffix(".0"))


def refuse(name: str, values: pd.Series[Any], bad: BoolArray, why: str) -> None:
    """Name the first of the bad values, (n,), if there is one."""
    if bad.any():
        raise ValueError(f"{name!r}: {plain(values.iloc[int(bad.argmax())])!r} {why}")


def _refuse_long(name: str, dtype: Any) -> None:
    if types.is_float_dtype(dtype) and getattr(dtype, "itemsize", 8) > 8:
        raise ValueError(f"{name!r}: {dtype} has digits that would be lost; convert it first: astype('float64').")


def _holds(dtype: Any, categories: list[Hashable]) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        return all(category in dtype.categories for category in categories)
    if types.is_object_dtype(dtype):
        return True
    try:
        array = np.array(categories, dtype) if isinstance(dtype, np.dtype) else pd.array(categories, dtype)
    except (ValueError, TypeError, OverflowError):
        return False
    return bool(array.tolist() == categories)
