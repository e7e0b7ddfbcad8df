"""What one factual may become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, Rows, row_wise_advice
from acex.space.columns import Column
from acex.space.kinds import Categorical, Continuous, Feature, Integer, Nominal, Numeric, Ordinal
from acex.space.space import Space

Constraint: TypeAlias = Callable[[Rows], Any]

MOST_LISTED = 10_000  # an integer feature with more values than this is not listed value by value


@dataclass(frozen=True, eq=False)
class Region:
    """The points that one factual may become: a box or a set of codes for each feature, and a constraint.

    `allowed[j]` is a pair (low, high) for continuous and integer features, and the sorted allowed codes
    for ordinal and nominal ones.
    """

    space: Space
    factual: FloatArray
    allowed: tuple[FloatArray, ...]
    constraint: Constraint | None = None

    @classmethod
    def of(
        cls,
        space: Space,
        factual: FloatArray,
        *,
        ranges: Mapping[str | int, Any] | None = None,
        constant: BoolArray | None = None,
        constraint: Constraint | None = None,
    ) -> Region:
        """What this factual, (d,), may become in a space.

        Args:
            ranges: for numeric features a pair (low, high), either end of which may be infinite; for the
                others the categories allowed.
            constant: features that stay as they are because the reference never varies in them, (d,).
            constraint: from rows to one truth value a row; rows where it is false are never asked.
        """
        limits = space.by_index("ranges", ranges)
        allowed = []
        for j, feature in enumerate(space.features):
            stays = feature.frozen or (constant is not None and bool(constant[j]))
            values = _allowed(space.held[j], limits.get(j))
            allowed.append(_onward(feature, values, float(factual[j]), stays, limits.get(j)))
        region = cls(space, factual, tuple(allowed), constraint)
        if not region.movable.any():
            raise ValueError(
                "No feature can change: every one is frozen, constant in data, or left with a single "
                "value by ranges and directions. Free at least one."
            )
        if constraint is not None:
            region._meets_constraint(factual[None])  # what is wrong with it shows before anything is asked
        return region

    @cached_property
    def low(self) -> FloatArray:
        """Least allowed value of each feature, (d,)."""
        return np.array([a[0] for a in self.allowed])

    @cached_property
    def high(self) -> FloatArray:
        """Greatest allowed value of each feature, (d,)."""
        return np.array([a[-1] for a in self.allowed])

    @cached_property
    def movable(self) -> BoolArray:
        """Which features can take a value other than the factual's, (d,)."""
        moves: BoolArray = (self.low != self.factual) | (self.high != self.factual)
        return moves

    def values(self, j: int) -> FloatArray | None:
        """All values feature j may take, ascending; None where they are too many to be listed."""
        if self.low[j] == self.high[j]:
            return self.low[j : j + 1]
        match self.space.features[j]:
            case Ordinal() | Nominal():
                return self.allowed[j]
            case Integer() if self._count(j) <= MOST_LISTED:
                return np.arange(self.low[j], self.high[j] + 1.0)
            case _:
                return None

    @cached_property
    def size(self) -> float:
        """How many points there are before the constraint; infinite with a continuous feature."""
        with np.errstate(over="ignore"):  # an image has more points than a float can count
            return float(np.prod([self._count(j) for j in range(len(self.space))]))

    def _count(self, j: int) -> float:
        """How many values feature j may take."""
        match self.space.features[j]:
            case Ordinal() | Nominal():
                return float(len(self.allowed[j]))
            case Continuous() if self.low[j] < self.high[j]:
                return np.inf
            case _:
                return float(self.high[j] - self.low[j] + 1)

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points of the region (the constraint aside), (n, d).

        A nominal code that is not allowed becomes the factual's, or the first allowed one.
        """
        X = np.atleast_2d(X)
        X = self.space.snap(np.where(self.space.is_nominal, X, np.clip(X, self.low, self.high)))
        for j in np.flatnonzero(self._is_partial):
            codes = self.allowed[j]
            if self.space.is_nominal[j]:
                home = self.factual[j] if self.factual[j] in codes else codes[0]
                X[:, j] = np.where(np.isin(X[:, j], codes), X[:, j], home)
            else:
                X[:, j] = codes[np.abs(X[:, j, None] - codes).argmin(axis=1)]
        return X + 0.0  # -0.0 and 0.0 are one value

    @cached_property
    def _is_partial(self) -> BoolArray:
        """Which categorical features may take only some of their categories, (d,)."""
        features = zip(self.space.features, self.allowed, strict=True)
        return np.array([isinstance(f, Categorical) and len(a) < len(f.categories) for f, a in features])

    def contains(self, X: FloatArray) -> BoolArray:
        """Which points keep to the region, the constraint included, (n,)."""
        X = np.atleast_2d(X)
        inside = np.asarray((self.snap(X) == X).all(axis=1), dtype=bool)
        if self.constraint is not None and inside.any():
            inside[inside] = self._meets_constraint(X[inside])
        return inside

    def _meets_constraint(self, X: FloatArray) -> BoolArray:
        """Which points the user's constraint lets pass, (n,)."""
        assert self.constraint is not None
        try:
            mask = np.asarray(self.constraint(self.space.decode(X)))
        except Exception as error:
            if advice := row_wise_advice(error):
                raise ValueError(f"constraint raised {type(error).__name__}: {error}{advice}") from error
            error.add_note("This was raised by the constraint, which is called with rows like those of data.")
            raise
        if mask.shape != (len(X),) or mask.dtype != np.bool_:
            raise ValueError(
                f"constraint must give one True or False a row: expected a boolean array of shape "
                f"({len(X)},), got {mask.dtype} of shape {mask.shape}.{row_wise_advice(mask)}"
            )
        return mask


def _allowed(column: Column, wanted: Any) -> FloatArray:
    """(low, high) of a numeric feature, or the codes, ascending, of a categorical one; None wants all."""
    feature = column.feature
    if isinstance(feature, Categorical):
        return np.arange(len(feature.categories), dtype=float) if wanted is None else feature.wanted(wanted)
    low, high = (-np.inf, np.inf) if wanted is None else feature.wanted(wanted)
    bounds = column.within(max(low, column.low), min(high, column.high))  # a bound such as 0.1 has no float32
    if bounds[0] > bounds[1]:
        raise ValueError(f"ranges[{feature.name!r}]: no value of the feature lies within {wanted!r}.")
    return bounds


def _onward(feature: Feature, allowed: FloatArray, value: float, stays: bool, wanted: Any) -> FloatArray:
    """What is left of (low, high), or of the codes allowed, for a feature that has this value now."""
    is_numeric = isinstance(feature, Numeric)
    if stays or feature.direction == "increase":
        allowed = np.maximum(allowed, [value, -np.inf]) if is_numeric else allowed[allowed >= value]
    if stays or feature.direction == "decrease":
        allowed = np.minimum(allowed, [np.inf, value]) if is_numeric else allowed[allowed <= value]
    if len(allowed) == 0 or allowed[0] > allowed[-1]:
        limit = "it stays as it is" if stays else f"it may only {feature.direction}"
        raise ValueError(
            f"{feature.name!r}: ranges allows {wanted!r}, but the factual's value lies outside and {limit}; "
            f"nothing is left."
        )
    return allowed
