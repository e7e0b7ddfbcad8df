"""What one factual may become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, Rows, row_wise_advice
from acex.space.columns import Column
from acex.space.cost import n_changed
from acex.space.feature import NOTHING, Feature
from acex.space.rules import Along, Rule
from acex.space.space import Space

Constraint: TypeAlias = Callable[[Rows], Any]


@dataclass(frozen=True, eq=False)
class Region:
    """The points that one factual may become: a box or a set of codes for each feature, and a constraint.

    `allowed[j]` is an ascending array: the ends of what feature j may take, or every code, as its kind has it. A step
    from the factual that is shorter than its `crumb` is no step: nobody would see it.
    """

    space: Space
    factual: FloatArray
    allowed: tuple[FloatArray, ...]
    constraint: Constraint | None = None
    rules: tuple[Rule, ...] = ()
    crumb: FloatArray | None = None  # (d,)
    max_changes: int | None = None  # features that may differ from the factual
    middle: FloatArray | None = None  # (d,), what a gap becomes where a value is wanted and the factual has none

    @classmethod
    def of(
        cls,
        space: Space,
        factual: FloatArray,
        *,
        ranges: Mapping[str | int, Any] | None = None,
        constant: BoolArray | None = None,
        constraint: Constraint | None = None,
        rules: tuple[Rule, ...] = (),
        crumb: FloatArray | None = None,
        max_changes: int | None = None,
        middle: FloatArray | None = None,
    ) -> Region:
        """What this factual, (d,), may become in a space.

        Args:
            ranges: for numeric features a pair (low, high), either end of which may be infinite; for the
                others the categories allowed. A gap stays a gap unless values are wanted here, and a value a value
                unless a gap is: [None], or None among the categories.
            constant: features that stay as they are because the reference never varies in them, (d,).
            constraint: from rows to one truth value a row; rows where it is false are never asked.
            rules: what else has to be true of a row.
            crumb: steps from the factual shorter than this are taken for none, (d,).
            max_changes: how many features may change.
            middle: of each feature a usual value, (d,); by default the middle of its range.
        """
        limits = space.by_index("ranges", ranges)
        allowed = []
        finer: dict[str | int, None] = {}  # features of whose grid the limits leave nothing
        for j, feature in enumerate(space.features):
            stays = feature.frozen or (constant is not None and bool(constant[j]))
            left = _onward(feature, _wanted(space.held[j], limits.get(j), factual[j]), factual[j], stays, limits.get(j))
            is_stepped = feature.is_stepped and left[0] != feature.gap
            stepped = _stepped(space.held[j], left, factual[j]) if is_stepped else left
            if stepped[0] > stepped[-1]:
                finer[feature.name], stepped = None, left
            allowed.append(stepped)
        space = space.moving_on(finer) if finer else space
        region = cls(space, factual, tuple(allowed), constraint, rules, middle=middle)
        if not region.movable.any():
            raise ValueError(
                "No feature can change: every one is frozen, constant in data, or left with a single "
                "value by ranges and directions. Free at least one."
            )
        if constraint is not None:
            region._meets_constraint(factual[None])  # what is wrong with it shows before anything is asked
        may_stay = region.snap(factual[None])[0] == factual  # where it may not, there is no going back to it
        n_forced = int((~may_stay).sum())
        if max_changes is not None and n_forced > max_changes:
            raise ValueError(f"max_changes is {max_changes}, but by ranges {n_forced} features cannot stay as they are")
        return replace(region, crumb=None if crumb is None else np.where(may_stay, crumb, 0.0), max_changes=max_changes)

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
        if self.allowed[j][0] == self.space.features[j].gap:
            return self.allowed[j]
        codes = self.space.features[j].codes(self.allowed[j])
        if codes is None or not self.space.features[j].is_stepped:
            return codes
        return np.unique(self._moved(j, np.concatenate([codes, self.allowed[j]])))

    @cached_property
    def size(self) -> float:
        """How many points there are before the constraint; infinite with a continuous feature."""
        with np.errstate(over="ignore"):  # an image has more points than a float can count
            features = zip(self.space.features, self.allowed, strict=True)
            return float(np.prod([feature.count(allowed) for feature, allowed in features]))

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points of the region (the constraint aside), (n, d).

        A nominal code that is not allowed becomes the factual's, or the first allowed one. What rules say is equal
        becomes so, where other features can make up for it.
        """
        X = self._snapped(np.atleast_2d(X))
        return X if self._along is None else self._along(X)

    @cached_property
    def _along(self) -> Along | None:
        if not any(rule.equalities for rule in self.rules):
            return None
        return Along(self.rules, self.factual, self.movable, self.low, self.high, self._snapped_column)

    def _snapped_column(self, j: int, x: FloatArray) -> FloatArray:
        """The nearest values that feature j may have, (n,)."""
        X = np.tile(self._snapped(self.factual[None]), (len(x), 1))
        X[:, j] = x
        return self._snapped(X)[:, j]

    def _snapped(self, X: FloatArray) -> FloatArray:
        """The nearest points that features may have, each by itself, (n, d)."""
        if self._filled.any():
            X = np.where((X == NOTHING) & self._filled, self._stand_in, X)
        X = self.space.snap(np.where(self.space.is_nominal, X, np.clip(X, self.low, self.high)))
        for j in self._steps:
            X[:, j] = self._moved(j, X[:, j])
        for j in self._partial:
            X[:, j] = self.space.features[j].confined(X[:, j], self.allowed[j], self.factual[j])
        if self.crumb is not None:
            X = np.where(np.abs(X - self.factual) < self.crumb, self.factual, X)
        return X + 0.0  # -0.0 and 0.0 are one value

    @cached_property
    def _filled(self) -> BoolArray:
        """Which features with an order have values here, and gaps elsewhere, (d,)."""
        return np.asarray((self.space.gap_codes == NOTHING) & (self.low != NOTHING))

    @cached_property
    def _stand_in(self) -> FloatArray:
        """What a gap of another row becomes here: the factual's own value, or a usual one, (d,)."""
        middle = (self.low + self.high) / 2 if self.middle is None else self.middle
        return np.where(self.factual == NOTHING, middle, self.factual)

    @cached_property
    def _steps(self) -> list[int]:
        """The features that move on a grid."""
        return [j for j, feature in enumerate(self.space.features) if feature.is_stepped]

    def _moved(self, j: int, x: FloatArray) -> FloatArray:
        """The nearest values on the grid of feature j, (n,); the factual's own in place of the one nearest to it."""
        feature, home = self.space.features[j], self.factual[j]
        steps = feature.rounded(x)
        out: FloatArray = np.clip(self.space.held[j].nearest(steps), self.low[j], self.high[j])
        if self.low[j] <= home <= self.high[j]:
            out[steps == feature.rounded(np.array([home]))] = home
        return out

    @cached_property
    def _partial(self) -> list[int]:
        """The features that may take some of their codes only, where clipping does not lead to these."""
        alone = [j for j, f in enumerate(self.space.features) if not f.ordered or f.has_own("confined")]
        held = self.space.held
        is_all = [np.array_equal(self.allowed[j], held[j].allowed(None)) and not held[j].feature.gaps for j in alone]
        return [j for j, whole in zip(alone, is_all, strict=True) if not whole]

    def contains(self, X: FloatArray) -> BoolArray:
        """Which points keep to the region, rules and constraint included, (n,)."""
        X = np.atleast_2d(X)
        inside = np.asarray((self._snapped(X) == X).all(axis=1), dtype=bool)
        for rule in self.rules:
            inside[inside] = rule.holds(X[inside], self.factual)
        if self.max_changes is not None:
            inside &= n_changed(X, self.factual) <= self.max_changes
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


def _wanted(column: Column, limits: Any, value: float) -> FloatArray:
    """The codes that `ranges` leaves of a feature that has this one now."""
    feature = column.feature
    if limits is None and value == feature.gap:
        return np.array([value])
    known, may_be_missing = feature.parted(limits)
    if may_be_missing and known is None:
        return np.array([feature.gap])
    allowed = column.allowed(known)
    return np.append(allowed, feature.gap) if may_be_missing else allowed


def _onward(feature: Feature, allowed: FloatArray, value: float, stays: bool, limits: Any) -> FloatArray:
    """What is left of the codes allowed for a feature that has this one now."""
    way = None if feature.gap in (value, allowed[0]) else feature.direction  # nothing lies above or below a gap
    least = value if stays or way == "increase" else -np.inf
    most = value if stays or way == "decrease" else np.inf
    left = feature.between(allowed, least, most)
    if len(left) == 0 or left[0] > left[-1]:
        limit = "it stays as it is" if stays else f"it may only {feature.direction}"
        raise ValueError(
            f"{feature.name!r}: ranges allows {limits!r}, but the factual's value lies outside and {limit}; "
            f"nothing is left."
        )
    return left


def _stepped(column: Column, allowed: FloatArray, value: float) -> FloatArray:
    """The ends of what is left on the feature's grid, its own value included; descending if there is nothing."""
    feature = column.feature
    low, high = feature.inwards(allowed[0], allowed[-1])
    if allowed[0] <= value <= allowed[-1]:
        near = feature.rounded(np.array([value]))[0]
        low = value if low > value or low == near else low
        high = value if high < value or high == near else high
    elif low > high:
        return np.array([low, high])
    return np.clip(column.nearest([low, high]), allowed[0], allowed[-1])  # a limit holds to the last digit
