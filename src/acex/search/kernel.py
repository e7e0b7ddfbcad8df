"""Matern covariance of coordinates (see `scale`), with distances by `metric`.

    A   (a, D)     B   (b, D)     ell   length scale     q = |A - B|^2 / ell^2, (a, b)

    nu = 5/2:  k = variance * (1 + r + r^2/3) exp(-r),  r = sqrt(5 q)
    nu = 3/2:  k = variance * (1 + r) exp(-r),          r = sqrt(3 q)

The derivative with respect to q has no singularity at q = 0, so gradients are exact everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from acex.arrays import FloatArray
from acex.space.scale import EUCLIDEAN, Metric

KernelName: TypeAlias = Literal["matern52", "matern32"]


@dataclass(frozen=True)
class Matern:
    """k(A, B) with one length scale."""

    variance: float
    ell: float
    name: KernelName = "matern52"
    metric: Metric = EUCLIDEAN

    def __call__(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Covariances, (a, b)."""
        return self.of_distance(self.metric.squared(A, B))

    def of_distance(self, squared: FloatArray) -> FloatArray:
        """Covariances at these squared distances."""
        q = squared / self.ell**2
        if self.name == "matern32":
            r = np.sqrt(3 * q)
            return self.variance * (1 + r) * np.exp(-r)
        r = np.sqrt(5 * q)
        return self.variance * (1 + r + r**2 / 3) * np.exp(-r)

    def slope(self, squared: FloatArray) -> FloatArray:
        """dk / d(squared distance) at these squared distances; never positive."""
        q = squared / self.ell**2
        if self.name == "matern32":
            return -1.5 * self.variance / self.ell**2 * np.exp(-np.sqrt(3 * q))
        r = np.sqrt(5 * q)
        return -5 / 6 * self.variance / self.ell**2 * (1 + r) * np.exp(-r)
