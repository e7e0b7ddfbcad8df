"""Numbers as people write them: multiples of a step, or so many digits; and what a column of numbers shows of either.

A search moves on a grid. It is not a limit: a row may hold any number, and keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import BoolArray, FloatArray, IntArray

USUAL = 0.95  # share of a column's values that have its usual digits; the others may be longer
MOST_COUNTED = 3  # times that the same value counts for that, so that many zeros do not decide
CHANCE = 1e-6  # a step is believed where rows without one would show it less often than this
ENOUGH = 7  # rows that all happen to end in 0 are as rare
NOISE = 1e-6  # steps: what rounding does to a multiple, such as 0.1 + 0.2
ROUGH = 1e-3  # steps: so far from a multiple may the values of a column lie, such as 3.849999 among 3.8 and 3.86
MOST_EXACT = 2.0**53  # beyond it not every whole number is a float
FIRST = 1000  # numbers, about, that are looked at before all others: most guesses fail there
FULL = 1e-7  # a step that is a smaller share of the standard deviation shows no grid, only digits
SHOWN = 4  # significant digits of a number in texts
# Chosen on simulated columns, and tested on others (docs/research.md).
MOST_FEW = 30  # different values that are few
ROWS_PER_VALUE = 3  # on average, before values are few
REPEATS = 5  # on both sides of values left out, all together


@cache
def _fraction(step: float) -> tuple[float, float]:
    """A step as two whole numbers, the second a power of ten: products and quotients of these are exact."""
    written = Decimal(repr(float(step))).normalize()
    power = 10 ** max(-int(written.as_tuple().exponent), 0)
    return float(written * power), float(power)


@dataclass(frozen=True)
class Grid:
    """The multiples of a step; each is the float that its decimal digits stand for."""

    step: float

    @property
    def decimals(self) -> int:
        """Digits behind the point of its multiples."""
        return len(f"{_fraction(self.step)[1]:.0f}") - 1

    def position(self, x: Any) -> Any:
        """Where numbers lie, counted in steps from 0: whole ones for multiples, exactly."""
        top, bottom = _fraction(self.step)
        at = np.asarray(x, dtype=float) * bottom / top
        whole = np.rint(at)
        return np.where(np.abs(at - whole) <= NOISE, whole, at)

    def at(self, position: Any) -> Any:
        """The multiples at whole positions."""
        top, bottom = _fraction(self.step)
        return position * top / bottom

    def nearest(self, x: FloatArray) -> FloatArray:
        """The nearest multiples, (n,)."""
        return nearest_multiples(x, [self.step])

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


def nearest_multiples(X: FloatArray, steps: Sequence[float]) -> FloatArray:
    """In each column the nearest multiples of its step, (n, d)."""
    top, bottom = np.array([_fraction(step) for step in steps]).T
    out: FloatArray = np.rint(X * bottom / top) * top / bottom
    return out


def with_digits(x: FloatArray, digits: int | IntArray) -> FloatArray:
    """The nearest numbers of so many significant digits; `digits` broadcasts."""
    size = np.abs(x)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    power = digits - 1 - exponent
    up, down = 10.0 ** np.clip(power, 0, 300), 10.0 ** np.clip(-power, 0, 300)
    out: FloatArray = np.rint(x * up / down) / up * down
    return out


def within_digits(low: float, high: float, digits: int) -> tuple[float, float]:
    """The least and the greatest number of so many significant digits from low to high; descending if there is none."""
    size = np.abs([low, high])
    ends = with_digits(np.array([low, high]), digits)
    unit = 10.0 ** (np.floor(np.log10(np.where(size > 0, size, 1.0))) - digits + 1)
    inner = with_digits(ends + unit * [ends[0] < low, -1.0 * (ends[1] > high)], digits)
    return float(inner[0]), float(inner[1])


def step_of(values: pd.Series[Any]) -> float:
    """The step in which these numbers come: 50, 1, 0.001; 0 where they show none."""
    x, precision = _numbers(values)
    decimals = _decimals(x, precision)
    if decimals is None or len(x) < ENOUGH:
        return 0.0
    unit = Grid(float(f"1e-{decimals}"))
    if unit.step < FULL * float(x.std()):
        return 0.0
    at = np.unique(x[_has_decimals(x, decimals, precision)])
    common = float(np.gcd.reduce(np.rint(unit.position(at)).astype(np.int64)))
    by_chance = common ** -(len(at) - 1.0) if common > 1 else 1.0
    return float(unit.at(common if by_chance <= CHANCE else 1.0))


def digits_of(values: pd.Series[Any]) -> int:
    """How many significant digits these numbers usually have; 0 where they use all that their dtype has."""
    x, precision = _numbers(values)
    x = _counted(x[x != 0])
    for digits in range(1, precision if len(values) >= ENOUGH and len(x) else 0):
        if _are_usually(partial(_has_digits, digits=digits, precision=precision), x):
            return digits
    return 0


def readable_digits(values: pd.Series[Any]) -> int:
    """How many significant digits tell numbers apart that differ by a thousandth of the deviation; 4 or more.

    People are shown four, and what is shown should be what is sent. 0 where it takes all that the dtype has.
    """
    x, precision = _numbers(values)
    spread, largest = float(x.std()), float(np.abs(x).max(initial=0.0))
    if spread == 0 or len(x) < ENOUGH:
        return 0
    digits = SHOWN + max(int(np.log10(largest / spread)), 0)
    return digits if digits < precision else 0


def shows_digits(values: pd.Series[Any], step: float, digits: int) -> bool:
    """Do nearly all large numbers have fewer digits than the step would give them, more often than by chance?

    Four significant digits from 0.0001234 to 0.1631 are all multiples of 1e-7; 0.1631141 has more than four.
    """
    x, precision = _numbers(values)
    x = x[x != 0]
    to_spare = np.floor(np.log10(np.maximum(np.abs(x) / step, 1.0)) + NOISE) + 1 - digits  # zeros at the end of each
    large, few_digits = to_spare > 0, _has_digits(x, max(digits, 1), precision)
    chance = 10.0 ** -float(to_spare[large & few_digits].sum())
    return digits > 0 and chance <= CHANCE and bool(few_digits[large].mean() >= USUAL)


def few_values(values: pd.Series[Any], step: float) -> tuple[float, ...]:
    """The different numbers of a column that has few of them and leaves out others; empty for all other columns.

    Ages and counts leave out a multiple of the step only where rows are rare. Here both neighbours of what is left out
    occur repeatedly.
    """
    occurring, counts = np.unique(_numbers(values)[0], return_counts=True)
    if len(occurring) > MOST_FEW or counts.sum() < ROWS_PER_VALUE * len(occurring):
        return ()
    leaves_out = np.diff(occurring) > 1.5 * step
    repeats = np.minimum(counts[1:], counts[:-1])[leaves_out] - 1
    return tuple(occurring.tolist()) if repeats.sum() >= REPEATS else ()


def _numbers(values: pd.Series[Any]) -> tuple[FloatArray, int]:
    """The numbers, (n,), and how many decimal digits their dtype holds for sure."""
    dtype: Any = getattr(values.dtype, "numpy_dtype", values.dtype)
    dtype = getattr(dtype, "subtype", dtype)  # of a sparse column
    precision = int(np.finfo(dtype).precision) if dtype.kind == "f" else 15
    return values.to_numpy(dtype=np.float64), precision


def _decimals(x: FloatArray, precision: int) -> int | None:
    """Digits behind the point that these usually have at most; None where it takes all digits there are."""
    largest = float(np.abs(x).max(initial=0.0))
    x = _counted(x)
    for decimals in range(precision):
        if largest * 10.0**decimals >= min(10.0**precision, MOST_EXACT):
            break
        if _are_usually(partial(_has_decimals, decimals=decimals, precision=precision), x):
            return decimals
    return None


def _counted(x: FloatArray) -> FloatArray:
    """Each number a few times at most."""
    values, counts = np.unique(x, return_counts=True)
    return np.repeat(values, np.minimum(counts, MOST_COUNTED))


def _are_usually(holds: Callable[[FloatArray], BoolArray], x: FloatArray) -> bool:
    """Does this hold for nearly all numbers? Most guesses fail clearly on some of them."""
    some = x[:: 1 + len(x) // FIRST]
    return bool(holds(some).mean() >= USUAL - 0.05 and holds(x).mean() >= USUAL)


def _has_digits(x: FloatArray, digits: int, precision: int) -> BoolArray:
    """Which numbers have no more significant digits, (n,)."""
    return np.asarray(np.abs(with_digits(x, digits) - x) <= 10.0**-precision * np.abs(x))


def _has_decimals(x: FloatArray, decimals: int, precision: int) -> BoolArray:
    """Which numbers have no more digits behind the point, (n,)."""
    at = x * 10.0**decimals
    near = np.abs(at - np.rint(at)) <= np.maximum(ROUGH, np.abs(at) * 10.0**-precision)
    return np.asarray(near & ((np.rint(at) != 0) | (x == 0)))  # 5e-11 is no 0
