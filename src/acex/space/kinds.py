"""What a feature can hold: a real number, a whole number, one of some categories with or without an order."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from acex.arrays import FloatArray
from acex.values import as_json, is_finite, is_hashable, is_missing, listed, plain

Direction: TypeAlias = Literal["increase", "decrease"]

LARGEST_EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart
LARGEST = 1e150  # distances are sums of squares, and the square of more than this may overflow


@dataclass(frozen=True)
class _Feature:
    """What all features have: a name, and how far they may be changed."""

    name: str
    frozen: bool = field(default=False, kw_only=True)
    direction: Direction | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        self._set(name=str(self.name), weight=plain(self.weight))
        if self.direction is not None and self.direction not in get_args(Direction):
            raise ValueError(f"{self.name!r}: direction {self.direction!r} is neither 'increase' nor 'decrease'.")
        if not (is_finite(self.weight) and self.weight > 0):
            raise ValueError(f"{self.name!r}: weight must be a positive number, got {self.weight!r}.")

    def _set(self, **values: Any) -> None:
        """Replace what was passed by its plain form, while the feature is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Numeric(_Feature):
    """What `Continuous` and `Integer` share. `unit` is a word for people, such as "months"; nothing is converted."""

    low: float
    high: float
    unit: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(low=plain(self.low), high=plain(self.high))
        if not (is_finite(self.low) and is_finite(self.high) and self.low <= self.high):
            raise ValueError(f"{self.name!r}: expected finite low <= high, got {self.low!r} and {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise ValueError(f"{self.name!r}: numbers beyond {LARGEST:g} are too large; rescale the column.")
        if not isinstance(self.unit, str):
            raise ValueError(f"{self.name!r}: unit must be text, such as 'months', got {self.unit!r}.")

    def wanted(self, ends: Any) -> tuple[float, float]:
        """The (low, high) that `ranges` wants of this feature; whole for an integer."""
        try:
            low, high = (float(v) for v in ends)
        except (TypeError, ValueError):
            raise ValueError(f"ranges[{self.name!r}]: expected a pair (low, high), got {ends!r}.") from None
        if not low <= high:
            raise ValueError(f"ranges[{self.name!r}]: expected low <= high, got {low:g} and {high:g}.")
        return low, high


@dataclass(frozen=True)
class Continuous(Numeric):
    """A real number between `low` and `high`."""


@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number between `low` and `high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != round(self.low) or self.high != round(self.high):
            raise ValueError(f"{self.name!r}: an integer's range must be whole, got {self.low!r} to {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: integers beyond 2**53 have no exact float; rescale the column.")
        self._set(low=int(self.low), high=int(self.high))

    def wanted(self, ends: Any) -> tuple[float, float]:
        low, high = super().wanted(ends)
        return float(np.ceil(low)), float(np.floor(high))


@dataclass(frozen=True)
class Categorical(_Feature):
    """What `Ordinal` and `Nominal` share: values are positions in `categories`."""

    categories: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
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

    @property
    def low(self) -> float:
        return 0.0

    @property
    def high(self) -> float:
        return len(self.categories) - 1.0

    def wanted(self, categories: Any) -> FloatArray:
        """The codes, ascending, of the categories that `ranges` wants of this feature."""
        where, known = f"ranges[{self.name!r}]", self.categories
        if isinstance(categories, str) or not isinstance(categories, Collection):
            raise ValueError(f"{where}: expected a list of the allowed categories, got {categories!r}.")
        unknown = [c for c in categories if c not in known]
        if unknown:
            raise ValueError(f"{where}: {listed(unknown)} is not a known category; there are {listed(known)}.")
        if len(categories) == 0:
            raise ValueError(f"{where}: expected at least one category, got none.")
        return np.unique([float(known.index(c)) for c in categories])


@dataclass(frozen=True)
class Ordinal(Categorical):
    """One of `categories`, listed from lowest to highest."""


@dataclass(frozen=True)
class Nominal(Categorical):
    """One of `categories`, in no order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direction is not None:
            raise ValueError(f"{self.name!r}: a nominal feature has no order, so no direction; use Ordinal.")


Feature: TypeAlias = Continuous | Integer | Ordinal | Nominal


def feature_to_json(feature: Feature) -> dict[str, Any]:
    """The feature in plain values; categories that JSON does not know become text."""
    written = {"kind": type(feature).__name__.lower(), **asdict(feature)}
    if isinstance(feature, Categorical):
        written["categories"] = [as_json(c) for c in feature.categories]
    return written


def feature_from_json(written: Mapping[str, Any]) -> Feature:
    """The feature that `feature_to_json` wrote down."""
    kinds: dict[str, type[Feature]] = {kind.__name__.lower(): kind for kind in get_args(Feature)}
    return kinds[written["kind"]](**{name: value for name, value in written.items() if name != "kind"})
