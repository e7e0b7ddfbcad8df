"""Rounded numbers, as multiples of a step or to significant digits, and how to infer the step or digits of a column.

A search uses multiples of a grid. The grid is not a constraint: a row may hold any other number, and may keep it.
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

USUAL = 0.95  # share of a column's values with the usual number of digits; the others may have more
MOST_COUNTED = 3  # how often the same value counts for that share, so that many zeros do not decide
CHANCE = 1e-6  # a step is accepted if data without one would show it by chance less often than this
ENOUGH = 7  # number of rows that all end in 0 by chance about as rarely
NOISE = 1e-6  # in steps: rounding error of a multiple, such as 0.1 + 0.2
ROUGH = 1e-3  # in steps: largest distance of a value from a multiple, such as 3.849999 among 3.8 and 3.86
MOST_EXACT = 2.0**53  # above it, not every integer is a float
FIRST = 1000  # about how many numbers are checked before the others: most guesses fail on these
FULL = 1e-7  # a step below this share of the standard deviation is no grid; only significant digits are inferred
SHOWN = 4  # significant digits of a displayed number
# Chosen on simulated columns, and tested on others (docs/research.md).
MOST_FEW = 30  # most distinct values that count as few
ROWS_PER_VALUE = 3  # least average number of rows per distinct value
REPEATS = 5  # least total number of repetitions of the values next to those left out


@cache
def _fraction(step: float) -> tuple[float, float]:
    """A step as two integers, the second a power of ten: products and quotients of these are exact."""
    written = Decimal(repr(float(step))).normalize()
    power = 10 ** max(-int(written.as_tuple().exponent), 0)
    return float(written * power), float(power)


@dataclass(frozen=True)
class Grid:
    """The multiples of a step; each is the float nearest to its decimal notation."""

    step: float

    @property
    def decimals(self) -> int:
        """Number of decimals of its multiples."""
        return len(f"{_fraction(self.step)[1]:.0f}") - 1

    def position(self, x: Any) -> Any:
        """Numbers divided by the step; exact integers for multiples."""
        top, bottom = _fraction(self.step)
        at = np.asarray(x, dtype=float) * bottom / top
        whole = np.rint(at)
        return np.where(np.abs(at - whole) <= NOISE, whole, at)

    def at(self, position: Any) -> Any:
        """The multiples at integer positions."""
        top, bottom = _fraction(self.step)
        return position * top / bottom

    def nearest(self, x: FloatArray) -> FloatArray:
        """The nearest multiples, (n,)."""
        return nearest_multiples(x, [self.step])

    def within(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest multiple from low to high; descending if there is none."""
        return float(self.at(np.ceil(self.position(low)))), float(self.at(np.floor(self.position(high))))

    def every(self, low: float, high: float) -> FloatArray:
        """All multiples from low to high, ascending."""
        out: FloatArray = self.at(np.arange(np.ceil(self.position(low)), np.floor(self.position(high)) + 1))
        return out

    def text(self, value: float) -> str:
        """A multiple with all its decimals, without trailing zeros."""
        written = f"{value:.{self.decimals}f}"
        return written.rstrip("0").rstrip(".") if "." in written else written


def nearest_multiples(X: FloatArray, steps: Sequence[float]) -> FloatArray:
    """The nearest multiples of the step of each column, (n, d)."""
    top, bottom = np.array([_fraction(step) for step in steps]).T
    out: FloatArray = np.rint(X * bottom / top) * top / bottom
    return out


def with_digits(x: FloatArray, digits: int | IntArray) -> FloatArray:
    """Numbers rounded to this many significant digits; `digits` broadcasts."""
    size = np.abs(x)
    exponent = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    power = digits - 1 - exponent
    up, down = 10.0 ** np.clip(power, 0, 300), 10.0 ** np.clip(-power, 0, 300)
    out: FloatArray = np.rint(x * up / down) / up * down
    return out


def within_digits(low: float, high: float, digits: int) -> tuple[float, float]:
    """The smallest and the largest number with this many significant digits in [low, high]; descending if none."""
    size = np.abs([low, high])
    ends = with_digits(np.array([low, high]), digits)
    unit = 10.0 ** (np.floor(np.log10(np.where(size > 0, size, 1.0))) - digits + 1)
    inner = with_digits(ends + unit * [ends[0] < low, -1.0 * (ends[1] > high)], digits)
    return float(inner[0]), float(inner[1])


def step_of(values: pd.Series[Any]) -> float:
    """The step of which these numbers are multiples, such as 50, 1 or 0.001; 0 if none is evident."""
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
    """The usual number of significant digits; 0 if the values use the full precision of their dtype."""
    x, precision = _numbers(values)
    x = _counted(x[x != 0])
    for digits in range(1, precision if len(values) >= ENOUGH and len(x) else 0):
        if _are_usually(partial(_has_digits, digits=digits, precision=precision), x):
            return digits
    return 0


def readable_digits(values: pd.Series[Any]) -> int:
    """The significant digits, 4 or more, that distinguish numbers a thousandth of the standard deviation apart.

    Four digits are displayed, and the values displayed should be those sent. 0 for the full precision of the dtype.
    """
    x, precision = _numbers(values)
    spread, largest = float(x.std()), float(np.abs(x).max(initial=0.0))
    if spread == 0 or len(x) < ENOUGH:
        return 0
    digits = SHOWN + max(int(np.log10(largest / spread)), 0)
    return digits if digits < precision else 0


def shows_digits(values: pd.Series[Any], step: float, digits: int) -> bool:
    """Whether nearly all large numbers have fewer digits than multiples of the step would have by chance.

    From 0.0001234 to 0.1631, numbers of four significant digits are all multiples of 1e-7; 0.1631141 has more digits.
    """
    x, precision = _numbers(values)
    x = x[x != 0]
    to_spare = np.floor(np.log10(np.maximum(np.abs(x) / step, 1.0)) + NOISE) + 1 - digits  # trailing zeros of each
    large, few_digits = to_spare > 0, _has_digits(x, max(digits, 1), precision)
    chance = 10.0 ** -float(to_spare[large & few_digits].sum())
    return digits > 0 and chance <= CHANCE and bool(few_digits[large].mean() >= USUAL)


def few_values(values: pd.Series[Any], step: float) -> tuple[float, ...]:
    """The distinct numbers of a column that has few of them and skips some multiples of the step; otherwise empty.

    Ages and counts skip a multiple only where rows are rare. Here the values on both sides of those skipped occur
    repeatedly.
    """
    occurring, counts = np.unique(_numbers(values)[0], return_counts=True)
    if len(occurring) > MOST_FEW or counts.sum() < ROWS_PER_VALUE * len(occurring):
        return ()
    leaves_out = np.diff(occurring) > 1.5 * step
    repeats = np.minimum(counts[1:], counts[:-1])[leaves_out] - 1
    return tuple(occurring.tolist()) if repeats.sum() >= REPEATS else ()


def _numbers(values: pd.Series[Any]) -> tuple[FloatArray, int]:
    """The numbers, (n,), and how many significant decimal digits their dtype guarantees."""
    dtype: Any = getattr(values.dtype, "numpy_dtype", values.dtype)
    dtype = getattr(dtype, "subtype", dtype)  # for a sparse column
    precision = int(np.finfo(dtype).precision) if dtype.kind == "f" else 15
    return values.to_numpy(dtype=np.float64), precision


def _decimals(x: FloatArray, precision: int) -> int | None:
    """The usual number of decimals; None if the values use the full precision of their dtype."""
    largest = float(np.abs(x).max(initial=0.0))
    x = _counted(x)
    for decimals in range(precision):
        if largest * 10.0**decimals >= min(10.0**precision, MOST_EXACT):
            break
        if _are_usually(partial(_has_decimals, decimals=decimals, precision=precision), x):
            return decimals
    return None


def _counted(x: FloatArray) -> FloatArray:
    """The numbers, each at most `MOST_COUNTED` times."""
    values, counts = np.unique(x, return_counts=True)
    return np.repeat(values, np.minimum(counts, MOST_COUNTED))


def _are_usually(holds: Callable[[FloatArray], BoolArray], x: FloatArray) -> bool:
    """Whether this holds for nearly all numbers; checks some of them first, on which most guesses clearly fail."""
    some = x[:: 1 + len(x) // FIRST]
    return bool(holds(some).mean() >= USUAL - 0.05 and holds(x).mean() >= USUAL)


def _has_digits(x: FloatArray, digits: int, precision: int) -> BoolArray:
    """Which numbers have at most this many significant digits, (n,)."""
    return np.asarray(np.abs(with_digits(x, digits) - x) <= 10.0**-precision * np.abs(x))


def _has_decimals(x: FloatArray, decimals: int, precision: int) -> BoolArray:
    """Which numbers have at most this many decimals, (n,)."""
    at = x * 10.0**decimals
    near = np.abs(at - np.rint(at)) <= np.maximum(ROUGH, np.abs(at) * 10.0**-precision)
    return np.asarray(near & ((np.rint(at) != 0) | (x == 0)))  # 5e-11 is not 0
