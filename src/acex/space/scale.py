"""Distances between values and between points, relative to the reference.

    s   standard deviation of each feature over the reference, (d,). For a nominal feature with shares p_c
        it is that of the one-hot code, sqrt((1 - sum p_c^2) / 2): the usual value for two categories.

A numeric step counts (x - y) / s, a change of category 1 / s. Features that never vary have s = 0 and
count nothing. Gaps of the reference are left out of s. A step between a gap and any number is `gap_step` standard
deviations.

`Scale` has the coordinates in which these distances are Euclidean, `Metric` compares them, and `Quantiles` has
coordinates in which each numeric feature is its quantile. In a heavy-tailed feature, a few very large values dominate
the standard deviation and nearly all rows look alike; in quantiles they spread evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.feature import MISSING_CODE
from acex.space.space import Space

GAP_STEP = 2.0  # in standard deviations, as between two equally frequent categories
CONSTANT = 1e-10  # a standard deviation below this share of the largest value is rounding, not variation
AT_ONCE = 4_000_000  # number of distances that are computed together


@dataclass(frozen=True, eq=False)
class Metric:
    """Euclidean distances between points in coordinates; the last columns may hold codes of categories.

    A feature with thousands of categories would need as many one-hot columns. Here it is one column of codes, which are
    compared for equality; the distances are the same. A is (a, D), B is (b, D).
    """

    squares: FloatArray  # amount that different codes add to the squared distance, (w,)

    def squared(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Squared distances, (a, b)."""
        from scipy.spatial.distance import cdist

        w = len(self.squares)
        squared: FloatArray = cdist(A[:, : A.shape[1] - w], B[:, : B.shape[1] - w], "sqeuclidean")
        for j, square in enumerate(self.squares, start=-w):
            squared += square * (A[:, j, None] != B[:, j])
        return squared

    def from_one(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """Distances of points from one point b, (D,), as an array (a,)."""
        if len(self.squares) == 0:
            return np.asarray(np.linalg.norm(A - b, axis=1))
        return np.sqrt(self.squared(A, b[None])[:, 0])

    def total_variance(self, Z: FloatArray) -> float:
        """The sum of the variances of all coordinates, with one-hot columns in place of codes."""
        w = len(self.squares)
        total = float(Z[:, : Z.shape[1] - w].var(axis=0).sum())
        for j, square in enumerate(self.squares, start=-w):
            shares = np.unique(Z[:, j], return_counts=True)[1] / len(Z)
            total += float(square) / 2 * (1.0 - float((shares**2).sum()))
        return total

    def nearest(self, A: FloatArray, B: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
        """Distances from each point in A to its k nearest in B, ascending, and the positions of these, (a, k) each."""
        at_once = np.array_split(A, len(A) * len(B) // AT_ONCE + 1)
        parts = [nearest(self.squared(part, B), k) for part in at_once]
        squared, which = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.sqrt(squared), which


def nearest(distances: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """The k smallest of each row of distances, (a, b), ascending, and their positions, (a, k) each."""
    some = np.argpartition(distances, k - 1, axis=1)[:, :k]
    order = np.take_along_axis(distances, some, axis=1).argsort(axis=1, kind="stable")
    some = np.take_along_axis(some, order, axis=1)
    return np.take_along_axis(distances, some, axis=1), some


EUCLIDEAN = Metric(np.zeros(0))


@dataclass(frozen=True, eq=False)
class Scale:
    """Standard deviations, and the coordinates in which distances are Euclidean."""

    space: Space
    deviations: FloatArray  # (d,), zero for features that never vary
    known_middle: FloatArray | None = None  # medians of the known values of features with gaps, (d,); None without gaps
    gap_step: float = GAP_STEP

    @classmethod
    def of(cls, space: Space, reference: FloatArray) -> Scale:
        """The scale of reference points, (m, d)."""
        middle, gapped = None, space.gapped
        if len(gapped):
            middle = (space.low + space.high) / 2
            known = [np.sort(reference[reference[:, j] != MISSING_CODE, j]) for j in gapped]
            middle[gapped] = [x[len(x) // 2] if len(x) else middle[j] for j, x in zip(gapped, known, strict=True)]
            reference = np.where(reference == MISSING_CODE, middle, reference)
        deviations = reference.std(axis=0)
        if len(gapped):
            deviations[gapped] = [x.std() if len(x) else 0.0 for x in known]
        for j in np.flatnonzero(space.is_nominal):
            known_codes = reference[reference[:, j] != space.gap_codes[j], j].astype(int)
            shares = np.bincount(known_codes) / len(known_codes)
            deviations[j] = np.sqrt(max(1.0 - (shares**2).sum(), 0.0) / 2)
        deviations[deviations < CONSTANT * np.abs(reference).max(axis=0)] = 0.0
        return cls(space, deviations, middle)

    @cached_property
    def middle(self) -> FloatArray:
        """A typical value of each feature, (d,)."""
        return (self.space.low + self.space.high) / 2 if self.known_middle is None else self.known_middle

    def filled(self, X: FloatArray) -> FloatArray:
        """The points with typical values in place of the gaps of ordered features, in the same shape."""
        return np.where(X == MISSING_CODE, self.middle, X) if len(self.space.gapped) else X

    @property
    def is_nominal(self) -> BoolArray:
        """Which features have no order, (d,)."""
        return self.space.is_nominal

    @cached_property
    def per_unit(self) -> FloatArray:
        """1 / s, and 0 for constant features, (d,)."""
        varies = self.deviations > 0
        return np.where(varies, 1.0 / np.where(varies, self.deviations, 1.0), 0.0)

    def steps(self, X: FloatArray, x: FloatArray) -> FloatArray:
        """Signed steps from x, (d,), to each point, (n, d); 1 for a change of category."""
        steps = X - x
        steps = np.where(self.is_nominal, steps != 0, steps)
        gapped = self.space.gapped
        if len(gapped):
            differ = (X[:, gapped] == MISSING_CODE) != (x[gapped] == MISSING_CODE)
            steps[:, gapped] = np.where(differ, self.gap_step * self.deviations[gapped], steps[:, gapped])
        return steps

    def differences(self, X: FloatArray, x: FloatArray) -> FloatArray:
        """The same in standard deviations, (n, d)."""
        return self.steps(X, x) * self.per_unit

    @cached_property
    def numeric(self) -> IntArray:
        """Positions of the ordered features, which are numbers in the coordinates too."""
        return np.flatnonzero(~self.is_nominal)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Coordinates in which the distance by `metric` is the length of `differences`, (n, D).

        Numeric features come first, then a block for each nominal one. A gap is at the middle in its feature, and
        `gap_step` away from all numbers in an additional coordinate.
        """
        return np.hstack([self.filled(X)[:, self.numeric] * self.per_unit[self.numeric], *self.blocks(X)])

    def blocks(self, X: FloatArray) -> list[FloatArray]:
        """Coordinates that mark missing numbers, and the coordinates of nominal features, (n, k) each.

        Two categories are 1 / s apart. Features with very many categories come last, as codes.
        """
        beside = [self.gap_step * (X[:, self.space.gapped] == MISSING_CODE)] if len(self.space.gapped) else []
        units = self.per_unit / np.sqrt(2)
        blocks = ((X[:, [j]] == np.arange(self.space.n_codes[j])) * units[j] for j in self._one_hot)
        return [*beside, *blocks, *(X[:, [j]] for j in self._as_codes)]

    @cached_property
    def metric(self) -> Metric:
        """The metric of the coordinates."""
        return Metric(self.per_unit[self._as_codes] ** 2)

    @cached_property
    def _one_hot(self) -> list[int]:
        """Positions of the nominal features with a one-hot block."""
        return [j for j, f in enumerate(self.space.features) if not f.ordered and not f.has_many]

    @cached_property
    def _as_codes(self) -> list[int]:
        """Positions of the features with very many categories."""
        return [j for j, f in enumerate(self.space.features) if f.has_many]

    def pull_back(self, gradient: FloatArray) -> FloatArray:
        """A gradient by coordinates, (..., D), as a gradient by features, (..., d); 0 for nominal ones."""
        out = np.zeros((*gradient.shape[:-1], len(self.deviations)))
        out[..., self.numeric] = gradient[..., : len(self.numeric)] * self.per_unit[self.numeric]
        return out


@dataclass(frozen=True, eq=False)
class Quantiles:
    """For each feature, its distinct values in the reference, ascending, and their mean ranks.

    Every feature has unit variance over the reference; nominal ones keep the scaled one-hot blocks of `Scale`.
    """

    scale: Scale
    knots: tuple[tuple[FloatArray, FloatArray], ...]  # (values, ranks in 0..1), (v,) each
    deviations: FloatArray  # standard deviation of the ranks over the reference, (d,); 1 where constant

    @classmethod
    def of(cls, scale: Scale, reference: FloatArray) -> Quantiles:
        """The quantiles of reference points, (m, d)."""
        knots, deviations = [], []
        for column in (known[known != MISSING_CODE] for known in reference.T):
            values, counts = np.unique(column, return_counts=True)
            shares = counts / len(column)
            ranks = np.cumsum(shares) - shares / 2
            knots.append((values, ranks))
            deviations.append(np.sqrt((shares * (ranks - 0.5) ** 2).sum()))  # their mean is one half
        return cls(scale, tuple(knots), np.where(scale.deviations > 0, deviations, 1.0))

    def ranks(self, X: FloatArray) -> FloatArray:
        """Rank of each value among the reference, 0 to 1, interpolated between its values, (n, d)."""
        X = self.scale.filled(X)
        return np.column_stack([np.interp(x, *knots) for x, knots in zip(X.T, self.knots, strict=True)])

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Coordinates in which the kernel measures distance, (n, D)."""
        numeric = (self.ranks(X) / self.deviations)[:, self.scale.numeric]
        return np.hstack([numeric, *self.scale.blocks(X)])

    def between(
        self,
        x: FloatArray,
        X: FloatArray,
        share: FloatArray,
        in_ranks: BoolArray,
        wanted: BoolArray | Literal[True] = True,
    ) -> FloatArray:
        """Points between x and each of X, at this share of the way, (n, d); share broadcasts against (n, d).

        Args:
            in_ranks: for which points the way is measured in ranks instead of values, (n, 1). A nominal feature
                takes the new category from half of the way on.
            wanted: which values are needed, (n, d); interpolating ranks takes time.
        """
        x, X = self.scale.filled(x), self.scale.filled(X)
        share = np.broadcast_to(share, X.shape)
        moved = x + share * (X - x)
        curved = in_ranks & wanted & (share != 0) & (share != 1) & ~self.scale.is_nominal
        column, row = np.nonzero(curved.T)
        bounds = np.searchsorted(column, np.arange(len(x) + 1))
        starts, ends, shares = self.ranks(x[None])[0], X[row, column], share[row, column]
        for start, (values, ranks), low, high in zip(starts, self.knots, bounds[:-1], bounds[1:], strict=True):
            if low < high:
                end = np.interp(ends[low:high], values, ranks)
                ends[low:high] = np.interp(start + shares[low:high] * (end - start), ranks, values)
        moved[row, column] = ends
        moved = np.where(share == 0, x, np.where(share == 1, X, moved))  # the ends exactly
        return np.where(self.scale.is_nominal, np.where(share >= 0.5, X, x), moved)
