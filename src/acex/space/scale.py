"""How far apart two values of a feature are, measured on the reference.

    s   standard deviation of each feature over the reference, (d,). A nominal feature with shares p_c
        has that of its one-hot code, sqrt((1 - sum p_c^2) / 2): the usual value for two categories.

A numeric step counts (x - y) / s, a change of category 1 / s. Features that never vary have s = 0 and
count nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.space import Space

CONSTANT = 1e-10  # a standard deviation below this share of the largest value is rounding, not variation


@dataclass(frozen=True, eq=False)
class Scale:
    """Standard deviations, and the coordinates in which distances are Euclidean."""

    deviations: FloatArray  # (d,), zero where the reference never varies
    is_nominal: BoolArray  # (d,)
    n_codes: IntArray  # (d,), categories of each nominal feature, 0 for the others

    @classmethod
    def of(cls, space: Space, reference: FloatArray) -> Scale:
        """The scale of reference points, (m, d)."""
        deviations = reference.std(axis=0)
        for j in np.flatnonzero(space.is_nominal):
            shares = np.bincount(reference[:, j].astype(int)) / len(reference)
            deviations[j] = np.sqrt(max(1.0 - (shares**2).sum(), 0.0) / 2)
        deviations[deviations < CONSTANT * np.abs(reference).max(axis=0)] = 0.0
        return cls.given(space, deviations)

    @classmethod
    def given(cls, space: Space, deviations: FloatArray) -> Scale:
        """The scale with these standard deviations, (d,), which somebody wrote down."""
        return cls(deviations, space.is_nominal, space.n_codes)

    @cached_property
    def per_unit(self) -> FloatArray:
        """1 / s, and 0 for constant features, (d,)."""
        varies = self.deviations > 0
        return np.where(varies, 1.0 / np.where(varies, self.deviations, 1.0), 0.0)

    def differences(self, X: FloatArray, x: FloatArray) -> FloatArray:
        """Signed steps from x, (d,), to each point in standard deviations, (n, d)."""
        steps = X - x
        return np.where(self.is_nominal, steps != 0, steps) * self.per_unit

    @cached_property
    def numeric(self) -> IntArray:
        """Positions of the features that are numbers in the coordinates too."""
        return np.flatnonzero(~self.is_nominal)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """Points in which Euclidean distance is the length of `differences`, (n, D).

        Numeric features come first, then a one-hot block for each nominal one, scaled so that two
        different categories lie 1 / s apart.
        """
        blocks = [X[:, self.numeric] * self.per_unit[self.numeric]]
        for j in np.flatnonzero(self.is_nominal):
            one_hot = X[:, j, None] == np.arange(self.n_codes[j])
            blocks.append(one_hot * (self.per_unit[j] / np.sqrt(2)))
        return np.hstack(blocks)

    def pull_back(self, gradient: FloatArray) -> FloatArray:
        """A gradient in coordinates, (..., D), as one in features, (..., d); 0 for nominal ones."""
        out = np.zeros((*gradient.shape[:-1], len(self.deviations)))
        out[..., self.numeric] = gradient[..., : len(self.numeric)] * self.per_unit[self.numeric]
        return out
