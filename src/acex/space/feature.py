"""The interface of a kind of feature; each kind is one class, and `kinds` defines five.

    value   what a row holds, such as "cook"        code   the float that represents it in a point

The distance between two codes of an *ordered* kind is their difference. Codes of other kinds count from 0, and the kind
defines the distance. A *gap* is a missing value. If a feature may have gaps (`gaps`), they have a code of their own:
one that no number has, or one more category.

A new kind is a frozen dataclass with the decorator `register`. It implements the methods that raise NotImplementedError
here, and `low` and `high`, and overrides what differs.
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

MOST_ONE_HOT = 50  # largest number of categories that are one-hot encoded in coordinates
LATER = ("grid", "digits", "values", "gaps", "other")  # fields added after 0.1.0
MISSING_CODE = -(2.0**500)  # the code of a gap in ordered features: below all numbers, and its square is finite
MISSING = "missing"  # text displayed for a gap
MOST_LISTED = 10_000  # a feature with more values than this is not enumerated


@dataclass(frozen=True)
class Feature:
    """One column: its name, how it may be changed, and the behaviour of its kind."""

    name: str
    frozen: bool = field(default=False, kw_only=True)
    direction: Direction | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)
    gaps: bool = field(default=False, kw_only=True)  # whether values may be missing

    ordered = True  # whether values have an order
    is_number = False  # whether codes are the numbers that people read
    is_whole = True  # whether codes are integers
    lists_codes = False  # whether allowed codes are listed one by one, as for categories
    grid = 1.0  # a search uses multiples of it; 0 for any float
    digits = 0  # without a grid, a search uses numbers with this many significant digits; 0 for any float
    unit = ""  # unit of a number

    if TYPE_CHECKING:  # the smallest and the largest code: fields of some kinds, properties of others

        @property
        def low(self) -> float: ...
        @property
        def high(self) -> float: ...
        @property
        def values(self) -> tuple[Any, ...]: ...
    else:
        values = ()  # the only values that a search uses in addition to the factual's; empty: any

    def __post_init__(self) -> None:
        self._set(name=str(self.name), weight=plain(self.weight))
        if self.direction is not None and self.direction not in get_args(Direction):
            raise ValueError(f"{self.name!r}: direction {self.direction!r} is neither 'increase' nor 'decrease'.")
        if self.direction is not None and not self.ordered:
            raise ValueError(f"{self.name!r}: a {self.kind} feature has no order, so no direction; use Ordinal.")
        check_positive(f"{self.name!r}: weight", self.weight)
        self._set(weight=float(self.weight))  # 3 and 3.0 must give the same fingerprint
        for what, value in (("frozen", self.frozen), ("gaps", self.gaps)):
            if not isinstance(value, bool):
                raise ValueError(f"{self.name!r}: {what} must be True or False, got {value!r}.")

    def _set(self, **values: Any) -> None:
        """Replace arguments by their normalized values, during construction."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def is_counted(self) -> bool:
        """Whether relations and rules can calculate with the codes: numbers, Booleans, and dates counted in days."""
        return self.is_number

    @property
    def kind(self) -> str:
        """Name of the kind in files."""
        return type(self).__name__.lower()

    # -- its column ------------------------------------------------------------------------------

    @property
    def gap(self) -> float:
        """The code of a gap; NaN, which equals no code, if the feature cannot have gaps."""
        return MISSING_CODE if self.gaps else np.nan

    def read(self, code: float) -> Any:
        """The value of a code; None for a gap."""
        return None if code == self.gap else self.value(code)

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        """The feature inferred from these values, with their grid; None unless they are clearly of this kind."""
        return None

    def check(self, dtype: Any) -> None:
        """Raise for a dtype that cannot hold the feature's values: the model would get other values."""
        raise NotImplementedError

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        """The codes of values, none of which is missing, (n,); they may lie outside `low` and `high`."""
        raise NotImplementedError

    def value(self, code: float) -> Any:
        """The value of a code that is not a gap."""
        raise NotImplementedError

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        """The column for codes, (n,)."""
        column: pd.Series[Any] = pd.Series([self.value(code) for code in x.tolist()], dtype=dtype)
        return column

    # -- allowed codes ---------------------------------------------------------------------------
    # An ascending array: the lower and upper bound; or every allowed code, for categories and with `values`.

    def every(self, low: float, high: float) -> FloatArray:
        """The allowed codes (see above) if nothing but low and high limits the feature."""
        return np.array([low, high])

    def limit(self, value: Any) -> float:
        """The code of a lower or upper bound."""
        return float(self.encode(pd.Series([value]))[0])

    def ends(self, pair: Any) -> tuple[float, float]:
        """The codes of a pair (low, high) in `ranges`; None and infinity mean no bound."""
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
        """The codes of a list of allowed `values`, ascending; None means a gap."""
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
        """The codes of values, (n,); an unknown value raises, even if the feature has a category `other`."""
        return self.encode(pd.Series(values, dtype=object).infer_objects())

    def code_in(self, text: str) -> float:
        """The code of a value given as text."""
        return float(self.exact([self.value_in(text)])[0])

    def limits(self, allowed: FloatArray, *, listed: bool = False) -> tuple[Any, Any] | list[Any]:
        """Allowed codes as readable values: (low, high), or the list of all values."""
        if listed or self.lists_codes or allowed[0] == self.gap:
            return [self.read(code) for code in allowed]
        return self.value(allowed[0]), self.value(allowed[-1])

    def value_in(self, text: str) -> Any:
        """The value that a text represents."""
        return text

    def reaching(self, x: FloatArray) -> Feature:
        """The feature, with bounds widened to include these codes, (n,), if its kind allows that."""
        return self

    def count(self, allowed: FloatArray) -> float:
        """Number of codes from the lower to the upper bound; infinite without a grid."""
        width = float(allowed[-1] - allowed[0])
        return 1.0 if width == 0 else 1.0 + round(width / self.grid) if self.grid else np.inf

    def codes(self, allowed: FloatArray) -> FloatArray | None:
        """All codes from the lower to the upper bound, ascending; None if there are too many to list."""
        if self.count(allowed) > MOST_LISTED:
            return None
        return Grid(self.grid).every(allowed[0], allowed[-1]) if self.grid else allowed[:1]

    @property
    def is_stepped(self) -> bool:
        """Whether a search uses only some of the codes: those that `rounded` returns."""
        return self.grid > self.is_whole or self.digits > 0

    def rounded(self, x: FloatArray) -> FloatArray:
        """The nearest codes on the grid, or with the feature's number of digits, (n,)."""
        return rounded([self], x[:, None])[:, 0]

    def inwards(self, low: float, high: float) -> tuple[float, float]:
        """The smallest and the largest rounded code from low to high; descending if there is none."""
        if self.grid:
            return Grid(self.grid).within(low, high)
        return within_digits(low, high, self.digits) if self.digits else (low, high)

    @property
    def has_many(self) -> bool:
        """Whether it has too many categories for one-hot coordinates; they are then compared by code."""
        return not self.ordered and self.high >= MOST_ONE_HOT

    # -- text -------------------------------------------------------------------------

    def text(self, value: Any, digits: int = 4) -> str:
        """A value as readable text; "missing" for a gap."""
        return MISSING if is_missing(value) else self.written(value, digits)

    def written(self, value: Any, digits: int = 4) -> str:
        """A value that is not missing as readable text."""
        return readable(value, digits)

    def texts(self, before: Any, after: Any) -> tuple[str, str]:
        """Both values as readable text, with enough digits to differ."""
        return readable_pair(before, after, self.text)

    def way(self, step: float, *values: Any) -> Way:
        """The direction of a change between values; "other" for nominal features and from or to a gap."""
        return "other" if not self.ordered or any(map(is_missing, values)) else "up" if step > 0 else "down"

    def span(self, limits: tuple[Any, ...] | list[Any] | None = None) -> str:
        """The full range, a pair (low, high), or a list of values as text; None in a pair means the feature's bound."""
        if isinstance(limits, list):
            return joined_words([self.text(value) for value in limits], "or")
        ends = self.value(self.low), self.value(self.high)
        low, high = ends if limits is None else (e if m is None else m for e, m in zip(ends, limits, strict=True))
        return f"{self.text(low)} to {self.text(high)}"


def rounded(features: Sequence[Feature], X: FloatArray) -> FloatArray:
    """`Feature.rounded` for each column of X with its feature, (n, d)."""
    out = X.copy()
    if on_grid := [j for j, feature in enumerate(features) if feature.grid]:
        out[:, on_grid] = nearest_multiples(X[:, on_grid], [features[j].grid for j in on_grid])
    if by_digits := [j for j, feature in enumerate(features) if feature.digits and not feature.grid]:
        digits = np.array([features[j].digits for j in by_digits])
        out[:, by_digits] = with_digits(X[:, by_digits], digits)
    return out


AnyKind = TypeVar("AnyKind", bound=type[Feature])
KINDS: dict[str, type[Feature]] = {}


def register(kind: AnyKind) -> AnyKind:
    """Register a kind for files and for `Space.infer`, which tries the last registered kind first."""
    KINDS[kind.__name__.lower()] = kind
    return kind


def kind_named(name: str, kind: Any) -> type[Feature]:
    """The kind with the name given in a file for this column."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"{name!r}: kind {kind!r} is not one of {listed(KINDS)}.")
    return KINDS[kind]


def feature_to_json(feature: Feature) -> dict[str, Any]:
    """The feature as JSON-compatible values; categories of other types become text."""
    # Fields added after 0.1.0 are omitted at their defaults, to keep the fingerprints of earlier explanations.
    defaults = {f.name for f in fields(feature) if f.name in LATER and getattr(feature, f.name) == f.default}
    written = [(k, v) for k, v in asdict(feature).items() if k not in defaults]
    return {"kind": feature.kind, **{k: [as_json(v) for v in x] if isinstance(x, tuple) else x for k, x in written}}


def feature_from_json(written: Mapping[str, Any]) -> Feature:
    """The feature that `feature_to_json` wrote."""
    given = {key: value for key, value in written.items() if key != "kind"}
    return kind_named(given["name"], written["kind"])(**given)
