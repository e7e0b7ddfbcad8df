"""Dates: whole days, or as fine as the data are. Codes count days, hours, ... from the first of January 1970 on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import pandas as pd
from pandas.api import types

from acex.arrays import FloatArray
from acex.space.feature import Feature, register
from acex.space.kinds import LARGEST_EXACT_INTEGER, refuse
from acex.values import is_missing, plain

TimeUnit: TypeAlias = Literal["D", "h", "min", "s", "ms", "us"]
UNITS: tuple[TimeUnit, ...] = get_args(TimeUnit)
MICROSECONDS = {"D": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}
# Ways to write a date in a file. Where days and months could be exchanged, a column must show which is which.
FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")
EITHER = ("%m/%d/%Y", "%d/%m/%Y")


ZERO = pd.Timestamp("1970-01-01").as_unit("us")  # the moment with the code 0


@register
@dataclass(frozen=True)
class Date(Feature):
    """A day, or a moment of it, from `first` to `last`, counted in steps of `step`.

    `form` says how the column writes it: "" as dates of pandas, "date" as Python's, or as text such as "%d.%m.%Y".
    """

    first: Any
    last: Any
    step: TimeUnit = field(default="D", kw_only=True)
    form: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step not in UNITS:
            raise ValueError(f"{self.name!r}: step must be one of {', '.join(UNITS)}, got {self.step!r}.")
        self._set(first=self.text(self._parsed(self.first)), last=self.text(self._parsed(self.last)))
        if not self.low <= self.high:
            raise ValueError(f"{self.name!r}: expected first <= last, got {self.first} and {self.last}.")
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: too far from 1970 to be counted in {self.step}; take a coarser step.")

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        form = ""
        if not types.is_datetime64_any_dtype(column.dtype):
            values = column.tolist()
            if all(type(v) is date for v in values):
                form = "date"
            elif all(isinstance(v, str) for v in values):
                form = _form_of(values)
            if not form:
                return None
            column = pd.to_datetime(column, format=None if form == "date" else form)
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        moments = column.to_numpy().astype("M8[us]").astype("i8")
        step = next(unit for unit in UNITS if (moments % MICROSECONDS[unit] == 0).all())
        return cls(name, column.min(), column.max(), step=step, form=form)

    @classmethod
    def fields_of(cls, column: pd.Series[Any]) -> dict[str, Any]:
        found = cls.infer("", column)
        return {} if found is None else {"first": found.first, "last": found.last}

    def check(self, dtype: Any) -> None:
        is_text = types.is_object_dtype(dtype) or types.is_string_dtype(dtype)
        if not (is_text if self.form else types.is_datetime64_any_dtype(dtype)):
            raise ValueError(f"{self.name!r}: declared Date, but the column in data is {dtype}.")

    @cached_property
    def low(self) -> float:
        return self.limit(self.first)

    @cached_property
    def high(self) -> float:
        return self.limit(self.last)

    def limit(self, value: Any) -> float:
        return int((self._parsed(value) - ZERO) // pd.Timedelta(1, unit="us")) / MICROSECONDS[self.step]

    def _parsed(self, value: Any) -> Any:
        """A value of any type as a timestamp."""
        if isinstance(value, str) and self.form not in ("", "date"):
            try:
                return pd.to_datetime(value, format=self.form)
            except ValueError:
                pass  # as acex writes it in files
        try:
            parsed = pd.Timestamp(plain(value)) if not isinstance(value, (bool, int, float)) else None
        except (ValueError, TypeError, OverflowError):
            parsed = None
        if parsed is None or is_missing(parsed):
            raise ValueError(f"{self.name!r}: expected a date such as '2026-11-30', got {plain(value)!r}.")
        return parsed if parsed.tz is None else parsed.tz_convert("UTC").tz_localize(None)

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
            return moments.dt.tz_localize("UTC").astype(dtype)
        return moments.astype(dtype or "datetime64[us]")


def _form_of(texts: list[str]) -> str:
    """How all of these texts write dates; "" if they do not, or if day and month cannot be distinguished."""
    if not texts or not texts[0][:1].isdigit():
        return ""
    if any(fitting := [form for form in FORMS if _fits(form, texts)]):
        return fitting[0]
    either = [form for form in EITHER if _fits(form, texts)]
    return either[0] if len(either) == 1 else ""


def _fits(form: str, texts: list[str]) -> bool:
    """Are these exactly what is written in this form?"""
    for some in (texts[:1], texts):
        moments = pd.to_datetime(pd.Series(some), format=form, errors="coerce")
        if moments.isna().any() or moments.dt.strftime(form).tolist() != some:
            return False
    return True
