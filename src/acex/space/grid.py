"""Numbers as people write them: multiples of a step, or so many digits; and what a column of numbers shows of either.

A search moves on a grid. It is not a limit: a row may hold any number, and keeps its value.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray

CHANCE = 1e-6  # a step is believed where rows without one would show it less often than this
ENOUGH = 7  # rows that all happen to end in 0 are as rare
NOISE = 1e-6  # steps: what rounding does to a multiple, such as 0.1 + 0.2
ROUGH = 1e-3  # steps: so far from a multiple may the values of a column lie, such as 3.849999 among 3.8 and 3.86
MOST_EXACT = 2.0**53  # beyond it not every whole number is a float
FIRST = 1000  # numbers that are looked at before all others: most guesses fail there
FULL = 1e-7  # a step that is a smaller share of the standard deviation shows no grid, only digits


@dataclass(frozen=True)
class Grid:
    """The multiples of a step; each is the float that its decimal digits stand for."""

    step: float

    @cached_property
    def _fraction(self) -> tuple[float, float]:
        """The step as two whole numbers, the second a power of ten: products and quotients of these are exact."""
        written = Decimal(repr(float(self.step))).normalize()
        power = 10 ** max(-int(written.as_tuple().exponent), 0)
        return float(written * power), float(power)

    @property
    def decimals(self) -> int:
        """Digits behind the point of its multiples."""
        return len(f"{self._fraction[1]:.0f}") - 1

    def position(self, x: Any) -> Any:
        """Where numbers lie, counted in steps from 0: whole ones for multiples, exactly."""
        top, bottom = self._fraction
        at = np.asarray(x, dtype=float) * bottom / top
        whole = np.rint(at)
        return np.where(np.abs(at - whole) <= NOISE, whole, at)

    def at(self, position: Any) -> Any:
        """The multiples at whole positions."""
        top, bottom = self._fraction
        return position * top / bottom

    def nearest(self, x: FloatArray) -> FloatArray:
        """The nearest multiples, (n,)."""
        out: FloatArray = self.at(np.rint(self.position(x)))
        return out

    def within(self, low: float, high: float) -> tuple[float, float]:
        """The least and the greatest multiple from low to high; descending if there is none."""
        return float(self.at(np.ceil(self.position(low)))), float(self.at(np.floor(self.position(high))))

    def every(self, low: float, high: float) -> FloatArray:
        """All multiples from low to high, ascending."""
        out: FloatArray = self.at(np.arange(np.ceil(self.position(low)), np.floor(self.position(high)) + 1))
        return out

    def text(self, value: float) -> str:
        """A multiple, in full."""
        written = f"{value:.{self.decimals}f}"
        return written.rstrip("0").rstrip(".") if "." in written else written


def with_digits(x: FloatArray, digits: int) -> FloatArray:
    """The nearest numbers of so many significant digits, (n,)."""
    size = np.abs(x)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    power = digits - 1 - exponent
    up, down = 10.0 ** np.clip(power, 0, 300), 10.0 ** np.clip(-power, 0, 300)
    out: FloatArray = np.rint(x * up / down) / up * down
    return out


def step_of(values: pd.Series[Any]) -> float:
    """The step in which these numbers come: 50, 1, 0.001; 0 where they show none."""
    x, precision = _numbers(values)
    decimals = _decimals(x, precision)
    if decimals is None or len(x) < ENOUGH:
        return 0.0
    unit = Grid(float(f"1e-{decimals}"))
    if unit.step < FULL * float(x.std()):
        return 0.0
    common = float(np.gcd.reduce(np.rint(unit.position(x)).astype(np.int64)))
    by_chance = common ** -(len(np.unique(x)) - 1.0) if common > 1 else 1.0
    return float(unit.at(common if by_chance <= CHANCE else 1.0))


def digits_of(values: pd.Series[Any]) -> int:
    """How many significant digits these numbers have; 0 where they use all that their dtype has."""
    x, precision = _numbers(values)
    x = x[x != 0]

    def suffice(digits: int, x: FloatArray) -> bool:
        return bool(np.all(np.abs(with_digits(x, digits) - x) <= 10.0**-precision * np.abs(x)))

    for digits in range(1, precision if len(values) >= ENOUGH and len(x) else 0):
        if suffice(digits, x[:FIRST]) and suffice(digits, x):
            return digits
    return 0


def shows_digits(values: pd.Series[Any], step: float, digits: int) -> bool:
    """Have large numbers fewer digits than the step would give them, more often than by chance?

    Four significant digits from 0.0001234 to 0.1631 are all multiples of 1e-7, and 0.1631141 is none of their kind.
    """
    x, _ = _numbers(values)
    n_steps = np.abs(x[x != 0]) / step
    to_spare = np.floor(np.log10(np.maximum(n_steps, 1.0)) + NOISE) + 1 - digits  # zeros at the end of each number
    return digits > 0 and 10.0 ** -float(to_spare.clip(min=0).sum()) <= CHANCE


def _numbers(values: pd.Series[Any]) -> tuple[FloatArray, int]:
    """The numbers, (n,), and how many decimal digits their dtype holds for sure."""
    dtype: Any = getattr(values.dtype, "numpy_dtype", values.dtype)
    precision = int(np.finfo(dtype).precision) if dtype.kind == "f" else 15
    return values.to_numpy(dtype=np.float64), precision


def _decimals(x: FloatArray, precision: int) -> int | None:
    """Digits behind the point that all of these have at most; None where it takes all digits there are."""
    largest = float(np.abs(x).max(initial=0.0))
    for decimals in range(precision):
        if largest * 10.0**decimals >= min(10.0**precision, MOST_EXACT):
            break
        if all(_are_whole(part, decimals, precision) for part in (x[:FIRST], x)):
            return decimals
    return None


def _are_whole(x: FloatArray, decimals: int, precision: int) -> bool:
    """Have all of these at most so many digits behind the point?"""
    at = x * 10.0**decimals
    near = np.abs(at - np.rint(at)) <= np.maximum(ROUGH, np.abs(at) * 10.0**-precision)
    return bool(np.all(near & ((np.rint(at) != 0) | (x == 0))))  # 5e-11 is no 0
