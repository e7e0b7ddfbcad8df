"""The kinds of features: real numbers, integers, categories with and without an order, dates.

Codes of dates count days since 1970-01-01, or a smaller unit such as hours if the data have times.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from math import inf, isfinite
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
import pandas as pd
from pandas.api import types

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.feature import Feature, register
from acex.space.grid import Grid, digits_of, few_values, readable_digits, shows_digits, step_of
from acex.values import (
    THOUSANDS,
    check_count,
    did_you_mean,
    is_finite,
    is_hashable,
    is_missing,
    listed,
    plain,
    readable,
)

LARGEST_EXACT_INTEGER = 2**53  # above it, not every integer has a float of its own
LIKE_A_NUMBER = re.compile(r"[-+]?[^\w\s.,]?\s?[-+]?\d[\d,' ]*(\.\d+)?\s?([^\w\s]|[a-zA-Z]{1,3})?")  # $1,200 and 12.5 %
DECIMAL_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?")  # 3,5 and 1.250,75
MOST_CODES = 100  # distinct texts, or distinct numbers in a column named like an id; more identify rows
ENOUGH_IDS = 20  # fewest distinct values of a column that identifies rows
# Names of columns, in snake_case, whose values identify rows, or an entity that several rows share, ...
IDENTIFIER = re.compile(
    r"(^|[^a-z])([cghprstu]|uu|gu|hh)?ids?$|^id([^a-z]|(no|nr|num|code)$)|^(psu|seqn)$|[a-z]{2,}nr$|nummer$"
    r"|(case|cust|customer|user|patient|person|client|member|acct|account|rec|record|row|sample|subj|subject|emp|employee"
    r"|stud|student|order|item|prod|product|household|family|resp|respondent|loan|policy|claim|seq|serial|invoice)"
    r"[^a-z]?(id|no|num|number)$"
)
# ... and names that mean an identifier only if all values are distinct: a price index or an amount of NO matches too.
ROW_NUMBER = re.compile(r"(^|[^a-z])(index|idx|nr|no|row|rownames?|key)$|^unnamed: \d+$")
LIKE_A_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{2,4}")
MOST_SHOWN = 12  # digits; longer numbers are rounded in texts
LARGEST = 1e150  # distances are sums of squares, and the square of a larger number may overflow

TimeUnit: TypeAlias = Literal["D", "h", "min", "s", "ms", "us"]
UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)
MICROSECONDS = {"D": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
# Date formats that are inferred. Those in EITHER must be unambiguous: only one of the two may fit the whole column.
ISO_TIMES = tuple(f"%Y-%m-%d{t}%H:%M:%S{zone}" for t in " T" for zone in ("", "Z", ".000Z", "+00:00"))
FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%d %H:%M", *ISO_TIMES)
EITHER = ("%m/%d/%Y", "%d/%m/%Y")
# Formats for columns that are declared as dates; each is also parsed without leading zeros.
DAYS = (*FORMS[:3], *EITHER, "%d.%m.%y", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d", "%Y.%m.%d")
TIMES = ("", " %H:%M", *(form.removeprefix("%Y-%m-%d") for form in ISO_TIMES))


ZERO = pd.Timestamp("1970-01-01").as_unit("us")  # the timestamp with code 0


@dataclass(frozen=True)
class Numeric(Feature):
    """Base class of `Continuous` and `Integer`.

    `unit`, such as "months", is only displayed; nothing is converted. With a `grid`, such as 50 or 0.001, a search uses
    multiples of it; with `values`, only these. A row may hold any other number, and may keep it.
    """

    low: float
    high: float
    unit: str = field(default="", kw_only=True)
    grid: float = field(default=0.0, kw_only=True)
    values: tuple[float, ...] = field(default=(), kw_only=True)

    is_number = True
    is_whole = False
    number: ClassVar[type] = float  # Python type of a value

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(low=plain(self.low), high=plain(self.high))
        if any(isinstance(end, (int, float)) and LARGEST < abs(end) < inf for end in (self.low, self.high)):
            raise ValueError(f"{self.name!r}: numbers beyond {LARGEST:g} are too large; rescale the column.")
        if not (is_finite(self.low) and is_finite(self.high) and self.low <= self.high):
            raise ValueError(f"{self.name!r}: expected finite low <= high, got {self.low!r} and {self.high!r}.")
        if not isinstance(self.unit, str):
            raise ValueError(f"{self.name!r}: unit must be text, such as 'months', got {self.unit!r}.")
        self._set(grid=plain(self.grid))
        if not (is_finite(self.grid) and self.grid >= 0) or isinstance(self.grid, bool):
            raise ValueError(f"{self.name!r}: grid must be a step such as 50 or 0.001, got {self.grid!r}.")
        if self.grid and not self.is_whole and max(abs(self.low), abs(self.high)) / self.grid > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: a grid of {self.grid:g} is too fine for numbers up to {self.high:g}.")
        is_list = isinstance(self.values, (list, tuple))
        if not is_list or not all(is_finite(v) and not isinstance(v, bool) for v in self.values):
            raise ValueError(f"{self.name!r}: values must be numbers, such as (25, 33, 50), got {self.values!r}.")
        if wrong := [v for v in self.values if not self.low <= v <= self.high or (self.is_whole and v != round(v))]:
            what = f"{'whole ' if self.is_whole else ''}numbers from {plain(self.low)} to {plain(self.high)}, its range"
            raise ValueError(f"{self.name!r}: values must be {what}, got {plain(wrong[0])!r}.")
        self._set(values=tuple(sorted({self.number(v) for v in self.values})))

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
        try:
            x = values.to_numpy(dtype=np.float64)
        except OverflowError:
            raise ValueError(f"{self.name!r}: a number is larger than any float.") from None
        refuse(self.name, values, ~np.isfinite(x), "is not finite.")
        refuse(self.name, values, self.is_whole & (x != np.rint(x)), "is not a whole number.")
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
            number = inf
        if not isfinite(number):
            raise ValueError(f"expected a number, with a decimal point, got {text!r}.")
        return int(number) if number.is_integer() else number

    def reaching(self, x: FloatArray) -> Feature:
        low, high = float(x.min(initial=self.low)), float(x.max(initial=self.high))
        return self if (low, high) == (self.low, self.high) else replace(self, low=low, high=high)

    def written(self, value: Any, digits: int = 4) -> str:
        if self.grid and is_finite(value) and abs(value) < LARGEST_EXACT_INTEGER:
            grid = Grid(self.grid)
            if grid.decimals and grid.nearest(value) == value:
                return grid.text(value)
        digits = max(digits, self.digits)
        more = range(digits, MOST_SHOWN + 1 if self.digits and is_finite(value) else digits)
        return next((text for n in more if float(text := readable(value, n)) == value), readable(value, digits))


@register
@dataclass(frozen=True)
class Continuous(Numeric):
    """A real number between `low` and `high`; a search uses numbers with `digits` significant digits (0: any)."""

    digits: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(f"{self.name!r}: digits", self.digits, least=0)

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        if not types.is_float_dtype(column.dtype):
            return None
        _refuse_long(name, column.dtype)
        feature = cls(name, float(column.min()), float(column.max()))  # raises for an infinite value
        step, digits = step_of(column), digits_of(column)
        is_stepped = step > 0 and not shows_digits(column, step, digits)
        form: dict[str, Any] = {"grid": step} if is_stepped else {"digits": digits or readable_digits(column)}
        return replace(feature, values=few_values(column, step), **form)


@register
@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number between `low` and `high`."""

    grid: float = field(default=1, kw_only=True)

    number = int
    is_whole = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(f"{self.name!r}: the grid of an integer", self.grid)
        if self.low != round(self.low) or self.high != round(self.high):
            raise ValueError(f"{self.name!r}: an integer's range must be whole, got {self.low!r} to {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(
                f"{self.name!r}: integers beyond 2**53 have no exact float; leave the column out if it identifies "
                f"rows, otherwise rescale it."
            )
        self._set(low=int(self.low), high=int(self.high))

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        is_whole = types.is_integer_dtype(column.dtype) or all(type(v) is int for v in column.tolist())
        if not is_whole:
            return None
        feature = cls(name, column.min(), column.max())  # raises for a number that is too large
        grid = max(int(step_of(column)), 1)
        return replace(feature, grid=grid, values=few_values(column, grid))


@dataclass(frozen=True)
class Categorical(Feature):
    """Base class of `Ordinal` and `Nominal`: codes are positions in `categories`, and allowed codes are listed.

    An unknown value is an error unless a category is given as `other`, which then replaces all unknown values.
    """

    categories: tuple[Hashable, ...]
    other: Hashable = field(default=None, kw_only=True)

    lists_codes = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(other=plain(self.other))
        if isinstance(self.categories, str) or not isinstance(self.categories, Iterable):
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
        if not _holds(dtype, list(self.categories)):
            raise ValueError(f"{self.name!r}: the column in data ({dtype}) cannot hold {listed(self.categories)}.")

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        which, distinct = _distinct(values) if len(values) > 1 else (np.arange(len(values)), values.tolist())
        codes = [self._code_of(value, self.other) for value in distinct]
        if None in codes:
            unknown = distinct[codes.index(None)]
            what = f"{self.name!r}: {unknown!r} is not a known category; there are {listed(self.categories)}"
            raise ValueError(f"{what}. Declare it or name one for all others: other= (in the shell --schema, --other).")
        return np.array(codes, dtype=float)[which]

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        return {category: code for code, category in enumerate(self.categories)}

    def _code_of(self, value: Any, other: Hashable = None) -> int | None:
        """The code of a value, or of the category `other` if the value is unknown; None without such a category."""
        is_known = is_hashable(value) and value in self._codes
        return self._codes.get(value if is_known else other)

    def unknown(self, values: Iterable[Any]) -> list[Any]:
        """The values that are not among the categories."""
        return [value for value in values if self._code_of(value) is None]

    def value(self, code: float) -> Any:
        return self.categories[int(code)]

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        if not isinstance(dtype, pd.CategoricalDtype):
            return super().decode(x, dtype)
        at = np.array([dtype.categories.get_loc(self.value(code)) for code in x.tolist()], dtype=int)
        return pd.Series(pd.Categorical.from_codes(at, dtype=dtype))

    def every(self, low: float, high: float) -> FloatArray:
        return np.arange(len(self.categories), dtype=float)

    def exact(self, values: list[Any]) -> FloatArray:
        if unknown := self.unknown(values):
            what = f"{self.name!r}: {listed(unknown)} {'is' if len(unknown) == 1 else 'are'} not known"
            meant = did_you_mean(unknown[0], self.categories)
            raise ValueError(f"{what}; there are {listed(self.categories)}.{meant}")
        return np.array([self._code_of(value) for value in values], dtype=float)

    def value_in(self, text: str) -> Any:
        by_text = {str(category): category for category in self.categories}
        return by_text.get(text, by_text.get(text.capitalize(), text))  # accepts true for True

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
    """One of `categories`, which have no order."""

    ordered = False

    @property
    def is_counted(self) -> bool:
        return self.categories == (False, True)  # these have the codes 0 and 1

    @property
    def high(self) -> float:
        return len(self.categories) - 1.0 + self.gaps

    @property
    def gap(self) -> float:
        return float(len(self.categories)) if self.gaps else np.nan  # one more category

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return None if dtype.ordered else cls(name, tuple(dtype.categories.tolist()))
        if types.is_bool_dtype(dtype):
            return cls(name, (False, True))
        values = _distinct(column)[1]
        if not all(isinstance(v, str) for v in values):
            return None
        refuse_commas(name, values)
        if (
            len(values) == len(column) >= ENOUGH_IDS
            or identifies_rows(name, len(values), len(column))
            or (len(values) > max(MOST_CODES, len(column) / 2))
        ):
            what = f"{name!r}: {len(values)} different texts in {len(column)} rows look like an identifier"
            form = f"dates={{{name!r}: '%d/%m/%Y'}}, in the shell --date '{name}=%d/%m/%Y'"
            dates = f"name the format of its dates ({form}), " if LIKE_A_DATE.match(values[0]) else ""
            numbers = "convert it to numbers, " if LIKE_A_NUMBER.fullmatch(values[0]) else ""
            raise ValueError(
                f"{what}. Drop the column (in the shell --drop {name!r}, or --id-column {name!r} if it names rows), "
                f"{dates}{numbers}or declare it as acex.Nominal({name!r}, (...))."
            )
        return cls(name, tuple(sorted(values)))


@register
@dataclass(frozen=True)
class Date(Feature):
    """A date, or a date with a time, from `first` to `last`, counted in units of `step`.

    `form` is the format of the column: "" for pandas dates, "date" for Python dates, or that of texts, such as
    "%d.%m.%Y". `zone` is the time zone in which days begin at midnight; other times with a zone are counted in UTC.
    """

    first: Any
    last: Any
    step: TimeUnit = field(default="D", kw_only=True)
    form: str = field(default="", kw_only=True)
    zone: str = field(default="", kw_only=True)
    values: tuple[Any, ...] = field(default=(), kw_only=True)  # with some, a search uses only these dates

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step not in UNITS:
            raise ValueError(f"{self.name!r}: step must be one of {', '.join(UNITS)}, got {self.step!r}.")
        self._set(first=self.text(self._parsed(self.first)), last=self.text(self._parsed(self.last)))
        values = self.values if isinstance(self.values, (list, tuple)) else [self.values]
        self._set(values=tuple(map(self.text, sorted({self._parsed(value) for value in values}))))
        if not self.low <= self.high:
            raise ValueError(f"{self.name!r}: expected first <= last, got {self.first} and {self.last}.")
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: too far from 1970 to be counted in {self.step}; use a coarser step.")

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        form = ""
        if not types.is_datetime64_any_dtype(column.dtype):
            values = _distinct(column)[1]
            if all(type(v) is date for v in values):
                form = "date"
            elif all(isinstance(v, str) for v in values):
                form = _form_of(values)
            if not form:
                return None
        return cls._from(name, column, form)

    @classmethod
    def declared(cls, name: str, column: pd.Series[Any], form: str | None = None) -> Self:
        """The feature of a column declared as dates, in this format or in the only one that fits its values.

        Raises:
            ValueError: no format fits, or several do, such as with days and months exchanged.
        """
        if not all(isinstance(value, str) for value in column.tolist()):
            if (found := cls.infer(name, column)) is None:
                raise ValueError(f"{name!r}: expected dates, got {column.dtype} such as {plain(column.iloc[0])!r}.")
            return found
        given = [form] if form else [f"{day}{time}" for day in DAYS for time in TIMES]
        parsed = {each: pd.to_datetime(column, format=each, errors="coerce") for each in given}
        fitting = [each for each in given if parsed[each].notna().all()]
        if len(fitting) > 1:
            raise ValueError(
                f"{name!r}: {column.iloc[0]!r} may be {' or '.join(fitting)}, and no value of the column shows which; "
                f'name the format: dates={{{name!r}: {fitting[-1]!r}}}, in the shell --date "{name}={fitting[-1]}".'
            )
        if not fitting:
            least = parsed[min(given, key=lambda each: int(parsed[each].isna().sum()))]
            wrong, what = column[least.isna()].iloc[0], f"dates in the format {form}" if form else "dates of one format"
            raise ValueError(f"{name!r}: expected {what}, such as 2026-11-30 or 30.11.2026, got {wrong!r}.")
        return cls._from(name, column, fitting[0])

    @classmethod
    def _from(cls, name: str, column: pd.Series[Any], form: str) -> Self:
        if form:
            column = pd.to_datetime(column, format=None if form == "date" else form)
        zone = ""
        if column.dt.tz is not None:
            zone = _zone_of_days(column)
            column = column.dt.tz_convert(zone or "UTC").dt.tz_localize(None)
        moments = column.to_numpy().astype("M8[us]").astype("i8")
        step = next(unit for unit in UNITS if (moments % MICROSECONDS[unit] == 0).all())
        feature = cls(name, column.min(), column.max(), step=step, form=form, zone=zone)
        few = few_values(pd.Series(moments / MICROSECONDS[step]), 1)
        return replace(feature, values=tuple(map(feature._moment, few)))

    def check(self, dtype: Any) -> None:
        is_text = types.is_object_dtype(dtype) or types.is_string_dtype(dtype)
        if not (is_text if self.form else types.is_datetime64_any_dtype(dtype)):
            hint = " For texts name their format, such as form = '%Y-%m-%d'." if is_text else ""
            raise ValueError(f"{self.name!r}: declared Date, but the column in data is {dtype}.{hint}")

    @property
    def is_counted(self) -> bool:
        return self.step == "D"

    @cached_property
    def low(self) -> float:
        return self.limit(self.first)

    @cached_property
    def high(self) -> float:
        return self.limit(self.last)

    def limit(self, value: Any) -> float:
        return int((self._parsed(value) - ZERO) // pd.Timedelta(1, unit="us")) / MICROSECONDS[self.step]

    def _parsed(self, value: Any) -> Any:
        """A value of any type as a timestamp; texts in the column's format or ISO 8601 (pandas would guess others)."""
        has_form = isinstance(value, str) and self.form not in ("", "date")
        if has_form and not is_missing(parsed := pd.to_datetime(value, format=self.form, errors="coerce")):
            return parsed
        try:
            moment = datetime.fromisoformat(value) if isinstance(value, str) else value
            parsed = None if isinstance(moment, (int, float, np.number, np.bool_)) else pd.Timestamp(moment)
        except (ValueError, TypeError, OverflowError):
            parsed = None
        if parsed is None or is_missing(parsed):
            form = f" in the format {self.form}, or" if has_form else ""
            raise ValueError(f"{self.name!r}: expected a date{form} such as '2026-11-30', got {plain(value)!r}.")
        return parsed if parsed.tz is None else parsed.tz_convert(self.zone or "UTC").tz_localize(None)

    def _moment(self, code: float) -> Any:
        return ZERO + pd.Timedelta(round(code) * MICROSECONDS[self.step], unit="us")

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        x = np.array([self.limit(v) for v in values.tolist()], dtype=float)
        whole: FloatArray = np.rint(x)
        refuse(self.name, values, x != whole, f"is finer than the data, which are counted in {self.step}.")
        return whole

    def value_in(self, text: str) -> Any:
        return self._parsed(text)

    def reaching(self, x: FloatArray) -> Feature:
        low, high = float(x.min(initial=self.low)), float(x.max(initial=self.high))
        if (low, high) == (self.low, self.high):
            return self
        return replace(self, first=self._moment(low), last=self._moment(high))

    def value(self, code: float) -> Any:
        moment = self._moment(code)
        return moment.date() if self.form == "date" else moment.strftime(self.form) if self.form else moment

    def written(self, value: Any, digits: int = 4) -> str:
        return str(value).removesuffix(" 00:00:00")

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        if self.form:
            return super().decode(x, dtype)
        moments = pd.Series([self._moment(code) for code in x.tolist()])
        if isinstance(dtype, pd.DatetimeTZDtype):
            return _in_zone(moments, self.zone).astype(dtype)
        return moments.astype(dtype or "datetime64[us]")


def _zone_of_days(column: pd.Series[Any]) -> str:
    """The column's time zone if all its timestamps are midnights there; "" if not, or if they are midnights in UTC."""
    zone, local = str(column.dt.tz), column.dt.tz_localize(None)
    if (local != local.dt.normalize()).any() or (column.dt.tz_convert("UTC").dt.hour == 0).all():
        return ""
    try:
        return zone if (_in_zone(local, zone) == column).all() else ""
    except (KeyError, ValueError):  # a zone that cannot be looked up by name
        return ""


def _in_zone(moments: pd.Series[Any], zone: str) -> pd.Series[Any]:
    """Local times localized in this zone: the first of an ambiguous hour; a nonexistent time is shifted forward."""
    is_first = np.ones(len(moments), dtype=bool)
    localized: pd.Series[Any] = moments.dt.tz_localize(zone or "UTC", ambiguous=is_first, nonexistent="shift_forward")
    return localized


def identifies_rows(name: str, n_different: int, n_rows: int) -> bool:
    """Whether a column with this name and number of distinct integers or texts identifies rows."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    if n_different < ENOUGH_IDS or not (IDENTIFIER.search(words) or ROW_NUMBER.search(words)):
        return False
    return n_different == n_rows or (IDENTIFIER.search(words) is not None and n_different > min(MOST_CODES, n_rows / 2))


def refuse(name: str, values: pd.Series[Any], bad: BoolArray, why: str) -> None:
    """Raise a ValueError that names the first bad value, if any; `bad` is a mask, (n,)."""
    if bad.any():
        raise ValueError(f"{name!r}: {plain(values.iloc[int(bad.argmax())])!r} {why}")


def has_decimal_commas(values: list[Any], marks: str = ",") -> bool:
    """Whether all values are numeric strings such as 1.250,75, and some contain one of the marks."""
    is_number = all(isinstance(v, str) and DECIMAL_COMMA.fullmatch(v) for v in values)
    return is_number and not set(marks).isdisjoint("".join(values))


def refuse_commas(name: str, values: list[Any]) -> None:
    """Raise a ValueError if the values look like numbers with decimal commas."""
    if has_decimal_commas(values):
        commas = [v for v in values if "," in v]
        what = f"{name!r}: texts such as {commas[0]!r} look like numbers with decimal commas. "
        what += "Read the file with pandas.read_csv(..., decimal=','), in the shell --decimal ','."
        if all(map(THOUSANDS.fullmatch, commas)):
            what += " If the commas separate thousands, use thousands=',' instead; in the shell, remove them first."
        raise ValueError(what)


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


def _distinct(values: pd.Series[Any]) -> tuple[IntArray, list[Any]]:
    """The position of each value in the list of distinct values, (n,), and that list, in order of appearance."""
    try:
        which, distinct = pd.factorize(values)
    except TypeError:  # a value that cannot be hashed
        return np.arange(len(values)), values.tolist()
    return which, distinct.tolist()


def _form_of(texts: list[str]) -> str:
    """The date format of all texts; "" if none fits, or if day and month cannot be distinguished."""
    if not texts or not texts[0][:1].isdigit():
        return ""
    if any(fitting := [form for form in FORMS if _fits(form, texts)]):
        return fitting[0]
    either = [form for form in EITHER if _fits(form, texts)]
    return either[0] if len(either) == 1 else ""


def _fits(form: str, texts: list[str]) -> bool:
    """Whether all texts are dates written exactly in this format."""
    for some in (texts[:1], texts):
        moments = pd.to_datetime(pd.Series(some), format=form, errors="coerce")
        if moments.isna().any() or moments.dt.strftime(form).tolist() != some:
            return False
    return True
