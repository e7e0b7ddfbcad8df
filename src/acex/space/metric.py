"""Distances between points in coordinates (see `Scale.coordinates`).

    A   (a, D)     B   (b, D)     the last w of D columns hold codes of categories, the others are Euclidean

A feature of thousands of categories would need as many one-hot columns; here it is one column, and whether two points
differ in it is counted. The distances are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acex.arrays import FloatArray, IntArray

AT_ONCE = 4_000_000  # distances that are looked at together


@dataclass(frozen=True, eq=False)
class Metric:
    """Euclidean distance, and for each code that differs its square on top."""

    squares: FloatArray  # what a difference adds to the squared distance, (w,)

    def squared(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Squared distances, (a, b)."""
        from scipy.spatial.distance import cdist

        w = len(self.squares)
        squared: FloatArray = cdist(A[:, : A.shape[1] - w], B[:, : B.shape[1] - w], "sqeuclidean")
        for j, square in enumerate(self.squares, start=-w):
            squared += square * (A[:, j, None] != B[:, j])
        return squared

    def from_one(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """Distances of points from one, (D,), (a,)."""
        if len(self.squares) == 0:
            return np.asarray(np.linalg.norm(A - b, axis=1))
        return np.sqrt(self.squared(A, b[None])[:, 0])

    def total_variance(self, Z: FloatArray) -> float:
        """The sum of the variances of all coordinates, one-hot columns in place of codes."""
        w = len(self.squares)
        total = float(Z[:, : Z.shape[1] - w].var(axis=0).sum())
        for j, square in enumerate(self.squares, start=-w):
            shares = np.unique(Z[:, j], return_counts=True)[1] / len(Z)
            total += float(square) / 2 * (1.0 - float((shares**2).sum()))
        return total

    def nearest(self, A: FloatArray, B: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
        """For each of A its distances to the k nearest of B, ascending, and which these are, (a, k) each."""
        at_once = np.array_split(A, len(A) * len(B) // AT_ONCE + 1)
        parts = [nearest(self.squared(part, B), k) for part in at_once]
        squared, which = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.sqrt(squared), which


def nearest(distances: FloatArray, k: int) -> tuple[FloatArray, IntArray]:
    """In each row of distances, (a, b), the k least, ascending, and where they are, (a, k) each."""
    some = np.argpartition(distances, k - 1, axis=1)[:, :k]
    order = np.take_along_axis(distances, some, axis=1).argsort(axis=1, kind="stable")
    some = np.take_along_axis(some, order, axis=1)
    return np.take_along_axis(distances, some, axis=1), some


EUCLIDEAN = Metric(np.zeros(0))
