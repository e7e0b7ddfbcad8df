"""Gower's distance, used by methods of other authors: the mean over features of the step divided by the range."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from acex.arrays import FloatArray
from benchmarks.task import Task


def widths(task: Task) -> FloatArray:
    """The range of each feature in the reference, 1 if it is constant, (d,)."""
    width = np.ptp(task.scenario.reference, axis=0)
    return np.where(width > 0, width, 1.0)


def gower(task: Task, X: FloatArray, Y: FloatArray) -> FloatArray:
    """Distances of points, (n, d), from others, (m, d), codes of categories taken as numbers, (n, m)."""
    width = widths(task)
    distances: FloatArray = cdist(X / width, Y / width, "cityblock") / len(width)
    return distances
