"""How far apart two values of a feature are, measured on the reference.

    s   standard deviation of each feature over the reference, (d,). A nominal feature with shares p_c
        has that of its one-hot code, sqrt((1 - sum p_c^2) / 2): the usual value for two categories.

A numeric step counts (x - y) / s, a change of category 1 / s. Features that never vary have s = 0 and
count nothing. Gaps of the reference are left out of s; from a gap to a number, and back, it is `gap_step` standard
deviations, whichever number it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.feature import MISSING_CODE
from acex.space.metric import Metric
from acex.space.space import Space

GAP_STEP = 2.0  # deviations, as between two categories that are equally frequent
CONSTANT = 1e-10  # a standard deviation below this share of the largest value is rounding, not variation


@dataclass(frozen=True, eq=False)
class Scale:
    """Standard deviations, and the coordinates in which distances are Euclidean."""

    space: Space
    deviations: FloatArray  # (d,), zero where the reference never varies
    known_middle: FloatArray | None = None  # a median of the known values of each feature, (d,), where there are gaps
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
            deviations[j] = space.features[j].deviation(reference[:, j])
        deviations[deviations < CONSTANT * np.abs(reference).max(axis=0)] = 0.0
        return cls(space, deviations, middle)

    @cached_property
    def middle(self) -> FloatArray:
        """A usual value of each feature, (d,)."""
        return (self.space.low + self.space.high) / 2 if self.known_middle is None else self.known_middle

    def filled(self, X: FloatArray) -> FloatArray:
        """The points with usual values in place of gaps, as far as features have an order; of the same shape."""
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
        """Signed steps from x, (d,), to each point, (n, d); 1 from one category to another."""
        steps = X - x
        steps = np.where(self.is_nominal, steps != 0, steps)
        for j in self._own_steps:
            steps[:, j] = self.space.features[j].steps(X[:, j], x[j])
        gapped = self.space.gapped
        if len(gapped):
            differ = (X[:, gapped] == MISSING_CODE) != (x[gapped] == MISSING_CODE)
            steps[:, gapped] = np.where(differ, self.gap_step * self.deviations[gapped], steps[:, gapped])
        return steps

    @cached_property
    def _own_steps(self) -> list[int]:
        """The features without an order whose categories are not all equally far apart."""
        return [j for j, f in enumerate(self.space.features) if not f.ordered and f.has_own("steps")]

    def differences(self, X: FloatArray, x: FloatArray) -> FloatArray:
        """The same in standard deviations, (n, d)."""
        return self.steps(X, x) * self.per_unit

    @cached_property
    def numeric(self) -> IntArray:
        """Positions of the features that are numbers in the coordinates too."""
        return np.flatnonzero(~self.is_nominal)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Points between which the distance, by `metric`, is the length of `differences`, (n, D).

        Numeric features come first, then a block for each nominal one. A gap lies at the middle, and `gap_step` beside
        all numbers.
        """
        return np.hstack([self.filled(X)[:, self.numeric] * self.per_unit[self.numeric], *self.blocks(X)])

    def blocks(self, X: FloatArray) -> list[FloatArray]:
        """Which numbers are missing, and the coordinates of nominal features, (n, k) each.

        Two categories lie 1 / s apart. Those of features with very many categories come last, and are the codes.
        """
        beside = [self.gap_step * (X[:, self.space.gapped] == MISSING_CODE)] if len(self.space.gapped) else []
        blocks = (self.space.features[j].block(X[:, j], self.per_unit[j]) for j in self._few)
        return [*beside, *blocks, *(X[:, [j]] for j in self._many)]

    @cached_property
    def metric(self) -> Metric:
        """How coordinates are compared."""
        return Metric(self.per_unit[self._many] ** 2)

    @cached_property
    def _few(self) -> list[int]:
        """The features without an order that have a block of their own."""
        return [j for j, f in enumerate(self.space.features) if not f.ordered and not f.has_many]

    @cached_property
    def _many(self) -> list[int]:
        """The features with very many categories."""
        return [j for j, f in enumerate(self.space.features) if f.has_many]

    def pull_back(self, gradient: FloatArray) -> FloatArray:
        """A gradient in coordinates, (..., D), as one in features, (..., d); 0 for nominal ones."""
        out = np.zeros((*gradient.shape[:-1], len(self.deviations)))
        out[..., self.numeric] = gradient[..., : len(self.numeric)] * self.per_unit[self.numeric]
        return out
