"""The interface of a kind of feature; a kind is one class, and `kinds` has five.

    value   what a row holds, such as "cook"        code   the float that stands for it in a point

The distance of two codes of an *ordered* kind is their difference. Codes of other kinds count from 0, and the kind
defines the distance. Where values may be missing (`gaps`), a gap has its own code: one that no number has, or one more
category.

A new kind is a frozen dataclass with the decorator `register`. It implements what raises NotImplementedError here, its
`low` and `high`, and overrides what differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, get_args

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.space.grid import Grid, nearest_multiples, with_digits, within_digits
from acex.values import as_json, check_positive, is_missing, joined_words, listed, plain, readable, readable_pair

Direction: TypeAlias = Literal["increase", "decrease"]
Way: TypeAlias = Literal["up", "down", "other"]

MOST_ONE_HOT = 50  # categories, up to which each has a coordinate of its own
LATER = ("grid", "digits", "values", "gaps", "other")  # fields that came after 0.1.0
MISSING_CODE = -(2.0**500)  # the code of a gap in ordered values: beyond all numbers, and its square is a float
MISSING = "missing"  # a gap as text
MOST_LISTED = 10_000  # a feature with more values than this is not listed value by value


@dataclass(frozen=True)
class Feature:
    """One column: its name, how far it may be changed, and what depends on its kind."""

    name: str
    frozen: bool = field(default=False, kw_only=True)
    direction: Direction | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    gaps: bool = field(default=False, kw_only=True)  # may values be missing?

    ordered = True  # is there a way between two values?
    is_number = False  # are codes the numbers that people read?
    is_whole = True  # are codes whole numbers?
    lists_codes = False  # are the codes allowed listed one by one, as those of categories?
    grid = 1.0  # what a search moves on: multiples of it; 0 for any float
    digits = 0  # what a search moves on without a grid: numbers of so many significant digits; 0 for all there are
    unit = ""  # what a number counts

    if TYPE_CHECKING:  # the least and the greatest code, fields of some kinds and properties of others

        @property
        def low(self) -> float: ...
        @property
        def high(self) -> float: ...
        @property
        def values(self) -> tuple[Any, ...]: ...
    else:
        values = ()  # the only values that a search uses, in addition to the factual's; empty for all

    def __post_init__(self) -> None:
        self._set(name=str(self.name), weight=plain(self.weight))
        if self.direction is not None and self.direction not in get_args(Direction):
            raise ValueError(f"{self.name!r}: direction {self.direction!r} is neither 'increase' nor 'decrease'.")
        if self.direction is not None and not self.ordered:
            raise ValueError(f"{self.name!r}: a {self.kind} feature has no order, so no direction; use Ordinal.")
        check_positive(f"{self.name!r}: weight", self.weight)
        self._set(weight=float(self.weight))  # 3 and 3.0 are the same weight, and the same explanation
        for what, value in (("frozen", self.frozen), ("gaps", self.gaps)):
            if not isinstance(value, bool):
                raise ValueError(f"{self.name!r}: {what} must be True or False, got {value!r}.")

    def _set(self, **values: Any) -> None:
        """Replace what was passed by its plain form, while the feature is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def is_counted(self) -> bool:
        """Can relations and rules calculate with the codes: numbers, Booleans, and dates that are counted in days?"""
        return self.is_number

    @property
    def kind(self) -> str:
        """What files call the kind."""
        return type(self).__name__.lower()

    # -- its column ------------------------------------------------------------------------------

    @property
    def gap(self) -> float:
        """The code of a gap, where there may be some; NaN, which no code equals, where there are none."""
        return MISSING_CODE if self.gaps else np.nan

    def read(self, code: float) -> Any:
        """What a code stands for; None for a gap."""
        return None if code == self.gap else self.value(code)

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        """The feature with these values, and the grid that they show; None unless they are surely of this kind."""
        return None

    def check(self, dtype: Any) -> None:
        """Refuse a dtype that cannot hold the feature's values: the model would be asked something else."""
        raise NotImplementedError

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        """The codes of values, none of which is missing, (n,); they may lie beyond `low` and `high`."""
        raise NotImplementedError

    def value(self, code: float) -> Any:
        """What a code stands for."""
        raise NotImplementedError

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        """The column for codes, (n,)."""
        column: pd.Series[Any] = pd.Series([self.value(code) for code in x.tolist()], dtype=dtype)
        return column

    # -- what it may become ----------------------------------------------------------------------
    # The codes allowed are an ascending array: both ends of a box; or every code, for categories and with `values`.

    def every(self, low: float, high: float) -> FloatArray:
        """All codes from low to high."""
        return np.array([low, high])

    def limit(self, value: Any) -> float:
        """The code of one end of a range."""
        return float(self.encode(pd.Series([value]))[0])

    def ends(self, pair: Any) -> tuple[float, float]:
        """The codes of a pair (low, high) of `ranges`; None and infinity are open ends."""
        is_list = isinstance(pair, Iterable) and not isinstance(pair, (str, bytes, Set, Mapping))
        given = [*pair] if is_list else []
        if len(given) != 2 or self.lists_codes:
            what = f"ranges[{self.name!r}]: expected (low, high), got {pair!r}"
            raise ValueError(f"{what}; for a list of allowed values use values=.")
        try:
            low, high = (
                end if v is None else v if isinstance(v, float) and np.isinf(v) else self.limit(v)
                for v, end in zip(given, (-np.inf, np.inf), strict=True)
            )
        except ValueError as error:
            raise ValueError(f"ranges[{self.name!r}]: expected (low, high), got {pair!r}; {error}") from None
        if not low <= high:
            raise ValueError(f"ranges[{self.name!r}]: expected low <= high, got {given[0]} and {given[1]}.")
        return (float(np.ceil(low)), float(np.floor(high))) if self.is_whole else (low, high)

    def choices(self, values: Any) -> FloatArray:
        """The codes of a list of `values`, ascending; None stands for a gap."""
        where = f"values[{self.name!r}]"
        if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Collection):
            raise ValueError(f"{where}: expected a list of allowed values, got {values!r}.")
        known = [value for value in values if not is_missing(value)]
        has_gap = len(known) < len(values)
        if len(values) == 0:
            raise ValueError(f"{where}: expected at least one value, got none.")
        if has_gap and not self.gaps:
            raise ValueError(f'{where}: got {values!r}, but this column cannot be missing; see missing="keep".')
        if has_gap and known and self.ordered:
            raise ValueError(f"{where}: expected values, or [None] alone for a missing value, got {values!r}.")
        try:
            return np.unique([*self.exact(known), *([self.gap] if has_gap else [])])
        except ValueError as error:
            raise ValueError(f"{where}: {str(error).removeprefix(f'{self.name!r}: ')}") from None

    def exact(self, values: list[Any]) -> FloatArray:
        """The codes of values, each of which the feature has to know, (n,)."""
        return self.encode(pd.Series(values, dtype=object).infer_objects())

    def code_in(self, text: str) -> float:
        """The code of the value that a text stands for."""
        return float(self.exact([self.value_in(text)])[0])

    def limits(self, allowed: FloatArray, *, listed: bool = False) -> tuple[Any, Any] | list[Any]:
        """The codes allowed as people read them: (low, high), or the list of all values."""
        if listed or self.lists_codes or allowed[0] == self.gap:
            return [self.read(code) for code in allowed]
        return self.value(allowed[0]), self.value(allowed[-1])

    def value_in(self, text: str) -> Any:
        """The value that a text stands for."""
        return text

    def reaching(self, x: FloatArray) -> Feature:
        """The feature with room for these codes, (n,), where it can have more."""
        return self

    def count(self, allowed: FloatArray) -> float:
        """How many codes there are between both ends."""
        width = float(allowed[-1] - allowed[0])
        return 1.0 if width == 0 else 1.0 + round(width / self.grid) if self.grid else np.inf

    def codes(self, allowed: FloatArray) -> FloatArray | None:
        """All codes between both ends, ascending; None where they are too many to be listed."""
        if self.count(allowed) > MOST_LISTED:
            return None
        return Grid(self.grid).every(allowed[0], allowed[-1]) if self.grid else allowed[:1]

    @property
    def is_stepped(self) -> bool:
        """Does a search use only some of the codes, those of `rounded`?"""
        return self.grid > self.is_whole or self.digits > 0

    def rounded(self, x: FloatArray) -> FloatArray:
        """The nearest codes that people would write, (n,)."""
        return rounded([self], x[:, None])[:, 0]

    def inwards(self, low: float, high: float) -> tuple[float, float]:
        """The least and the greatest code of `rounded` from low to high; descending if there is none."""
        if self.grid:
            return Grid(self.grid).within(low, high)
        return within_digits(low, high, self.digits) if self.digits else (low, high)

    @property
    def has_many(self) -> bool:
        """Has it so many codes, each as far from any other, that differences are counted without a block?"""
        return not self.ordered and self.high >= MOST_ONE_HOT

    # -- words ------------------------------------------------------------------------

    def text(self, value: Any, digits: int = 4) -> str:
        """A value as people write it; "missing" for a gap."""
        return MISSING if is_missing(value) else self.written(value, digits)

    def written(self, value: Any, digits: int = 4) -> str:
        """The same for a value that is not missing."""
        return readable(value, digits)

    def texts(self, before: Any, after: Any) -> tuple[str, str]:
        """Both values as people write them, with enough digits to differ."""
        return readable_pair(before, after, self.text)

    def way(self, step: float, *values: Any) -> Way:
        """The direction of a change between values; "other" without an order, or from or to a gap."""
        return "other" if not self.ordered or any(map(is_missing, values)) else "up" if step > 0 else "down"

    def span(self, limits: tuple[Any, ...] | list[Any] | None = None) -> str:
        """All values, those of a pair (low, high), or those of a list, in words; None in a pair is an open end."""
        if isinstance(limits, list):
            return joined_words([self.text(value) for value in limits], "or")
        ends = self.value(self.low), self.value(self.high)
        low, high = ends if limits is None else (e if m is None else m for e, m in zip(ends, limits, strict=True))
        return f"{self.text(low)} to {self.text(high)}"


def rounded(features: Sequence[Feature], X: FloatArray) -> FloatArray:
    """In each column the nearest codes of its feature that people would write, (n, d)."""
    out = X.copy()
    if on_grid := [j for j, feature in enumerate(features) if feature.grid]:
        out[:, on_grid] = nearest_multiples(X[:, on_grid], [features[j].grid for j in on_grid])
    if with_so_many := [j for j, feature in enumerate(features) if feature.digits and not feature.grid]:
        digits = np.array([features[j].digits for j in with_so_many])
        out[:, with_so_many] = with_digits(X[:, with_so_many], digits)
    return out


AnyKind = TypeVar("AnyKind", bound=type[Feature])
KINDS: dict[str, type[Feature]] = {}


def register(kind: AnyKind) -> AnyKind:
    """Make a kind known to files, and to `Space.infer`, which asks the newest first."""
    KINDS[kind.__name__.lower()] = kind
    return kind


def kind_named(name: str, kind: Any) -> type[Feature]:
    """The kind that a file names for a column."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{name!r}: kind {kind!r} is not one of {listed(KINDS)}.")
    return KINDS[kind]


def feature_to_json(feature: Feature) -> dict[str, Any]:
    """The feature in plain values; those that JSON does not know become text."""
    # Fields that 0.1.0 did not have are left out at their defaults: fingerprints of explanations include this form.
    defaults = {f.name for f in fields(feature) if f.name in LATER and getattr(feature, f.name) == f.default}
    written = [(k, v) for k, v in asdict(feature).items() if k not in defaults]
    return {"kind": feature.kind, **{k: [as_json(v) for v in x] if isinstance(x, tuple) else x for k, x in written}}


def feature_from_json(written: Mapping[str, Any]) -> Feature:
    """The feature that `feature_to_json` wrote down."""
    given = {key: value for key, value in written.items() if key != "kind"}
    return kind_named(given["name"], written["kind"])(**given)
