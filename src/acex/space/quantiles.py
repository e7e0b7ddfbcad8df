"""Coordinates in which each numeric feature is its quantile among the reference.

On a heavy-tailed feature the standard deviation is that of a few giants, and nearly all rows look alike; in
quantiles they spread evenly. Every feature has unit variance over the reference; nominal ones keep the scaled
one-hot blocks of `scale`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.space.feature import MISSING_CODE
from acex.space.scale import Scale


@dataclass(frozen=True, eq=False)
class Quantiles:
    """For each feature its values in the reference, ascending, and the middle of the ranks they hold."""

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
        """Points in which the kernel measures distance, (n, D)."""
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
        """Points a share of the way from x to each of X, (n, d); share broadcasts against (n, d).

        Args:
            in_ranks: where the way is measured in ranks instead of values, (n, 1). A nominal feature takes
                the new category from half of the way on.
            wanted: which values somebody looks at, (n, d); the way in ranks takes time.
        """
        x, X = self.scale.filled(x), self.scale.filled(X)
        share = np.broadcast_to(share, X.shape)
        moved = x + share * (X - x)
        curved = in_ranks & wanted & (share != 0) & (share != 1)
        for j in self.scale.numeric:
            i, (values, ranks) = np.flatnonzero(curved[:, j]), self.knots[j]
            start, end = np.interp(x[j], values, ranks), np.interp(X[i, j], values, ranks)
            moved[i, j] = np.interp(start + share[i, j] * (end - start), ranks, values)
        moved = np.where(share == 0, x, np.where(share == 1, X, moved))  # the ends exactly
        return np.where(self.scale.is_nominal, np.where(share >= 0.5, X, x), moved)
