"""The region of a factual: the points that a counterfactual may be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import BoolArray, FloatArray, aligned_answer, row_wise_advice
from acex.space.cost import n_changed
from acex.space.feature import MISSING_CODE, Feature, rounded
from acex.space.grid import with_digits
from acex.space.rules import EqualitySolver, Rule, RuleFunction, as_rules
from acex.space.space import Column, Space

ROUNDED = 12  # significant digits of a number computed from others, to remove floating-point noise


@dataclass(frozen=True, eq=False)
class Region:
    """The points that one factual may become: bounds or a set of codes for each feature, and rules.

    `allowed[j]` is an ascending array: the lower and upper bound of feature j or, for the features in `listed`, every
    allowed code. A step from the factual shorter than `min_step` counts as no step.
    """

    space: Space
    factual: FloatArray
    allowed: tuple[FloatArray, ...]
    listed: frozenset[int] = frozenset()
    rules: tuple[Rule, ...] = ()
    functions: tuple[RuleFunction, ...] = ()
    min_step: FloatArray | None = None  # (d,)
    max_changes: int | None = None  # features that may differ from the factual
    middle: FloatArray | None = None  # (d,), replaces a gap if a value is needed and the factual has none
    following: frozenset[int] = frozenset()  # features that are computed from others by an equality

    @classmethod
    def of(
        cls,
        space: Space,
        factual: FloatArray,
        *,
        ranges: Mapping[str | int, Any] | None = None,
        values: Mapping[str | int, Any] | None = None,
        constant: BoolArray | None = None,
        rules: Any = (),
        min_step: FloatArray | None = None,
        max_changes: int | None = None,
        middle: FloatArray | None = None,
    ) -> Region:
        """The region of a factual, (d,); the relations of the space that the factual satisfies become rules.

        Args:
            ranges: for numbers and dates, a pair (low, high); None and infinity mean no bound.
            values: for any feature, a list of allowed values. A gap stays a gap unless ranges or values are given, and
                a value cannot become a gap unless `values` contains None.
            constant: features that stay as they are because the reference never varies in them, (d,).
            rules: texts, and functions from rows to one True or False per row; see `as_rules`.
            min_step: steps from the factual shorter than this count as no step, (d,).
            max_changes: how many features may change.
            middle: a typical value of each feature, (d,); by default the middle of its range.
        """
        texts, functions = as_rules(rules, space) if rules else ((), ())
        relations = as_rules(space.relations, space)[0] if space.relations else ()
        kept = [rule for rule in relations if rule.holds(factual[None], factual).all()]
        stays = np.array([f.frozen for f in space.features]) | (False if constant is None else constant)
        following = _following((*kept, *texts), stays | space.is_nominal, [f.grid for f in space.features])
        space = space.with_grid({space.names[j]: None for j in following})  # any value that satisfies the equality
        pairs, lists = space.by_index("ranges", ranges), space.by_index("values", values)
        listed = lists.keys() | {j for j, feature in enumerate(space.features) if feature.lists_codes}
        allowed = []
        off_grid: dict[str | int, None] = {}  # features whose limits contain no multiple of their grid
        for j, feature in enumerate(space.features):
            wanted = _wanted(space.held[j], pairs.get(j), lists.get(j), factual[j])
            if feature.values and j not in lists and wanted[0] != feature.gap:
                some = np.unique(space.held[j].nearest(feature.exact([*feature.values])))
                some = some[(some >= wanted[0]) & (some <= wanted[-1])]
                if j not in pairs or (some != factual[j]).any():  # without any, the range allows every number
                    listed |= {j}
                    wanted = np.union1d(some, factual[j]) if wanted[0] <= factual[j] <= wanted[-1] else some
            left = _directed(feature, wanted, factual[j], bool(stays[j]), is_listed=j in listed)
            if feature.is_stepped and left[0] != feature.gap and j not in listed:
                stepped = _grid_bounds(space.held[j], left, factual[j])
                if stepped[0] <= stepped[-1]:
                    left = stepped
                else:
                    off_grid[feature.name] = None
            allowed.append(left)
        space = space.with_grid(off_grid) if off_grid else space
        region = cls(space, factual, tuple(allowed), frozenset(listed), (*kept, *texts), functions, middle=middle)
        if not region.movable.any():
            raise ValueError(
                "No feature can change: every one is frozen, constant in data, missing in the row (ranges or values "
                "let it change), or left with a single value by ranges, values and directions. Free at least one."
            )
        for function in functions:
            region._holds(function, factual[None])  # so that errors are raised before the first query
        may_stay = region.snap(factual[None])[0] == factual
        n_forced = int((~may_stay).sum())
        if max_changes is not None and n_forced > max_changes:
            raise ValueError(
                f"max_changes is {max_changes}, but by ranges and values {n_forced} features cannot stay as they are."
            )
        may_stay[[*following]] = False  # no smallest step for these
        min_step = None if min_step is None else np.where(may_stay, min_step, 0.0)
        return replace(region, min_step=min_step, max_changes=max_changes, following=following)

    @cached_property
    def low(self) -> FloatArray:
        """Smallest allowed value of each feature, (d,)."""
        return np.array([a[0] for a in self.allowed])

    @cached_property
    def high(self) -> FloatArray:
        """Largest allowed value of each feature, (d,)."""
        return np.array([a[-1] for a in self.allowed])

    @cached_property
    def movable(self) -> BoolArray:
        """Which features can take a value other than the factual's, (d,)."""
        moves: BoolArray = (self.low != self.factual) | (self.high != self.factual)
        return moves

    def values(self, j: int) -> FloatArray | None:
        """All values feature j may take, ascending; None if there are too many to list."""
        feature, allowed = self.space.features[j], self.allowed[j]
        if j in self.listed or allowed[0] == feature.gap:
            return allowed
        codes = feature.codes(allowed)
        if codes is None or not feature.is_stepped:
            return codes
        return np.unique(self._to_grid([j], np.concatenate([codes, allowed])[:, None]))

    @cached_property
    def size(self) -> float:
        """Number of points, ignoring rules; infinite if a number has no grid."""
        counts = [
            float(len(allowed)) if j in self.listed else feature.count(allowed)
            for j, (feature, allowed) in enumerate(zip(self.space.features, self.allowed, strict=True))
        ]
        with np.errstate(over="ignore"):  # the number of points of an image overflows
            return float(np.prod(counts))

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points of the region, (n, d); of the rules, only equalities are taken into account.

        A nominal code that is not allowed becomes the factual's or, if that is not allowed, the first allowed one.
        Equalities are satisfied by changing other features, if possible.
        """
        X = self._snapped(np.atleast_2d(X))
        return X if self._solver is None else self._solver(X)

    def completed(self, X: FloatArray, fixed: BoolArray) -> FloatArray:
        """Points, (n, d), moved until equalities hold, computed features first; values in `fixed`, (n, d), stay."""
        return X if self._solver is None else self._solver(X, fixed, self.computed)

    @cached_property
    def computed(self) -> frozenset[int]:
        """The features that equalities compute from others, including equalities that hold up to rounding."""
        nearly = [e for rule in self.rules for e in rule.equalities if e.limit]
        return self.following.union(*(e.formula.columns(e.left) for e in nearly))

    @cached_property
    def tied(self) -> BoolArray:
        """Which pairs of features are connected by equalities, directly or through others, (d, d)."""
        tied = np.eye(len(self.space), dtype=bool)
        for equality in (equality for rule in self.rules for equality in rule.equalities):
            tied[np.ix_(equality.columns, equality.columns)] = True
        for _ in range(len(tied).bit_length()):
            tied = tied @ tied
        return tied

    @cached_property
    def _solver(self) -> EqualitySolver | None:
        rules = [rule for rule in self.rules if rule.equalities]
        if not rules:
            return None
        return EqualitySolver(rules, self.factual, self.movable, self.low, self.high, self._snapped_column)

    def _snapped_column(self, j: int, x: FloatArray) -> FloatArray:
        """The nearest values that feature j may have, (n,)."""
        X = np.tile(self.factual, (len(x), 1))
        X[:, j] = x
        return self._snapped(X, [j])[:, j]

    def _snapped(self, X: FloatArray, chosen: Collection[int] | None = None) -> FloatArray:
        """The nearest points, (n, d), with each feature snapped on its own; only the `chosen` ones need to be valid."""
        chosen = range(len(self.space)) if chosen is None else chosen
        if self._requires_value.any():
            X = np.where((X == MISSING_CODE) & self._requires_value, self._gap_values, X)
        X = self.space.snap(np.where(self.space.is_nominal, X, np.clip(X, self.low, self.high)))
        for j in self.following.intersection(chosen):
            X[:, j] = np.where(X[:, j] == self.factual[j], X[:, j], with_digits(X[:, j], ROUNDED))
        if steps := [j for j in self._steps if j in chosen]:
            X[:, steps] = self._to_grid(steps, X[:, steps])
        for j in (j for j in self._partial if j in chosen):
            X[:, j] = self._confined(j, X[:, j])
        if self.min_step is not None:
            X = np.where(np.abs(X - self.factual) < self.min_step, self.factual, X)
        return X + 0.0  # -0.0 and 0.0 are one value

    @cached_property
    def _requires_value(self) -> BoolArray:
        """Which ordered features have a value in this region, though other rows may have gaps, (d,)."""
        return np.asarray((self.space.gap_codes == MISSING_CODE) & (self.low != MISSING_CODE))

    @cached_property
    def _gap_values(self) -> FloatArray:
        """The value that replaces a gap of another row: the factual's or, if that is a gap, a typical one, (d,)."""
        middle = (self.low + self.high) / 2 if self.middle is None else self.middle
        return np.where(self.factual == MISSING_CODE, middle, self.factual)

    @cached_property
    def _steps(self) -> list[int]:
        """Positions of the features that are rounded to a grid or to significant digits."""
        return [j for j, feature in enumerate(self.space.features) if feature.is_stepped and j not in self.listed]

    def _to_grid(self, columns: list[int], X: FloatArray) -> FloatArray:
        """The nearest values on the features' grids, (n, k); the factual's value replaces the one nearest to it."""
        low, high, home = self.low[columns], self.high[columns], self.factual[columns]
        steps = rounded([self.space.features[j] for j in columns], np.vstack([home, X]))
        held = np.column_stack([self.space.held[j].nearest(x) for j, x in zip(columns, steps[1:].T, strict=True)])
        is_home = (steps[1:] == steps[0]) & (low <= home) & (home <= high)
        return np.where(is_home, home, np.clip(held, low, high))

    def _confined(self, j: int, x: FloatArray) -> FloatArray:
        """The nearest allowed codes of feature j, (n,); for a nominal feature, see `snap`."""
        feature, allowed = self.space.features[j], self.allowed[j]
        if feature.ordered:
            return np.asarray(allowed[np.abs(x[:, None] - allowed).argmin(axis=1)])
        home = self.factual[j]
        return np.where(np.isin(x, allowed), x, home if home in allowed else allowed[0])

    @cached_property
    def _partial(self) -> list[int]:
        """Positions of the features whose allowed codes clipping to the bounds does not enforce."""
        partial = []
        for j, (feature, column) in enumerate(zip(self.space.features, self.space.held, strict=True)):
            is_whole = feature.lists_codes and np.array_equal(self.allowed[j], column.every) and not feature.gaps
            if (j in self.listed or not feature.ordered) and not is_whole:
                partial.append(j)
        return partial

    def contains(self, X: FloatArray) -> BoolArray:
        """Which points are in the region and satisfy all rules, (n,)."""
        X = np.atleast_2d(X)
        inside = np.asarray((self._snapped(X) == X).all(axis=1), dtype=bool)
        for rule in self.rules:
            inside[inside] = rule.holds(X[inside], self.factual)
        if self.max_changes is not None:
            inside &= n_changed(X, self.factual) <= self.max_changes
        for function in self.functions:
            if inside.any():
                inside[inside] = self._holds(function, X[inside])
        return inside

    def _holds(self, function: RuleFunction, X: FloatArray) -> BoolArray:
        """Which points satisfy a rule that is a function of rows, (n,)."""
        try:
            rows = self.space.decode(X)
            mask = np.asarray(aligned_answer(function, rows))
        except Exception as error:
            if advice := row_wise_advice(error):
                raise ValueError(f"rules: the function raised {type(error).__name__}: {error}{advice}") from error
            error.add_note("Raised by a function in rules, which is called with rows like those of data.")
            raise
        if mask.shape != (len(X),) or mask.dtype != np.bool_:
            raise ValueError(
                f"rules: a function must return one True or False per row: expected a boolean array of shape "
                f"({len(X)},), got {mask.dtype} of shape {mask.shape}.{row_wise_advice(mask)}"
            )
        return mask


def _wanted(column: Column, pair: Any, values: Any, value: float) -> FloatArray:
    """The codes of a feature that `ranges` or `values` allow; `value` is the factual's code."""
    if pair is not None:
        return column.within(pair)
    if values is not None:
        return column.listed(values)
    return np.array([value]) if value == column.feature.gap else column.every


def _following(rules: Iterable[Rule], stays: BoolArray, grids: Sequence[float]) -> frozenset[int]:
    """For each equality, the feature that is computed from the others: the one with the finest grid that may change.

    A whole number of games won is seldom the product of games and a rounded rate. Ties go to the left side.
    """
    following: set[int] = set()
    for equality in (equality for rule in rules for equality in rule.equalities):
        if equality.limit or len(equality.columns) < 2:  # with a limit, features can stay on their grids
            continue
        left = sorted(equality.formula.columns(equality.left))
        free = [j for j in (*reversed(left), *reversed(equality.columns)) if not stays[j] and j not in following]
        following.update(sorted(free, key=lambda j: grids[j])[:1])
    return frozenset(following)


def _directed(feature: Feature, allowed: FloatArray, value: float, stays: bool, *, is_listed: bool) -> FloatArray:
    """The codes that remain if the feature is frozen or has a direction; `value` is the factual's code."""
    way = None if feature.gap in (value, allowed[0]) else feature.direction  # nothing lies above or below a gap
    least = value if stays or way == "increase" else -np.inf
    most = value if stays or way == "decrease" else np.inf
    if is_listed:
        left = allowed[(allowed >= least) & (allowed <= most)]
    else:
        left = np.array([max(allowed[0], least), min(allowed[-1], most)])
    if len(left) == 0 or left[0] > left[-1]:
        limit = "it stays as it is" if stays else f"it may only {feature.direction}"
        limits = feature.limits(allowed, listed=is_listed)
        raise ValueError(
            f"{feature.name!r}: ranges and values allow {limits!r}, but the row has {feature.read(value)!r} and "
            f"{limit}; nothing is left."
        )
    return left


def _grid_bounds(column: Column, allowed: FloatArray, value: float) -> FloatArray:
    """The bounds of the allowed values on the feature's grid and the factual's value; descending if there are none."""
    feature = column.feature
    low, high = feature.inwards(allowed[0], allowed[-1])
    if allowed[0] <= value <= allowed[-1]:
        near = feature.rounded(np.array([value]))[0]
        low = value if low > value or low == near else low
        high = value if high < value or high == near else high
    elif low > high:
        return np.array([low, high])
    return np.clip(column.nearest([low, high]), allowed[0], allowed[-1])  # bounds hold exactly
