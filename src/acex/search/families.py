"""Candidates: points worth scoring, made from the factual, reference rows and hits.

All are snapped into the region. Half of the moves are straight in values, half in quantiles.
"""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from acex.search.problem import Problem

MOST_CHANGED = 4  # features that a sparse move changes, at most
NOISE = 0.3  # largest deviation of local noise, in standard deviations of the reference
MOST_ENUMERATED = 4096  # a region of at most so many points is listed in full


def everything(problem: Problem) -> FloatArray | None:
    """All points of a small region, (n, d); None when there are too many."""
    region = problem.region
    if region.size > MOST_ENUMERATED:
        return None
    axes = [region.values(j) for j in range(len(region.space))]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def from_reference(problem: Problem, rng: np.random.Generator, n: int) -> FloatArray:
    """Moves towards reference rows, (n, d): two thirds of them sparse, the rest of the whole row."""
    rows = problem.projected[rng.integers(len(problem.projected), size=n)]
    movable = np.flatnonzero(problem.region.movable)
    order = rng.random((n, len(movable))).argsort(axis=1).argsort(axis=1)
    n_changed = rng.integers(1, min(MOST_CHANGED, len(movable)) + 1, size=(n, 1))
    n_changed[: n // 3] = len(movable)
    chosen = np.zeros(rows.shape, dtype=bool)
    chosen[:, movable] = order < n_changed
    share = np.where(rng.random((n, 1)) < 1 / 3, 1.0, rng.random((n, 1)))
    moved = problem.quantiles.between(problem.factual, rows, share, rng.random((n, 1)) < 0.5)
    return problem.released(problem.region.snap(np.where(chosen, moved, problem.factual)))


def from_hits(problem: Problem, rng: np.random.Generator, hits: FloatArray, n: int) -> FloatArray:
    """Variations of hits, (h, d), that are cheaper or close by, (n, d).

    A third undoes some changes and shrinks the rest, a third shrinks each change by its own share, a third adds
    a little noise to one or two features.
    """
    x, d = problem.factual, len(problem.factual)
    V = hits[rng.integers(len(hits), size=n)]
    kind = np.arange(n)[:, None] % 3
    common = 1 - rng.random((n, 1)) ** 2
    share = np.where(kind == 0, common, 1 - rng.random((n, d)) ** 2 * (rng.random((n, d)) < 0.5))
    X = problem.quantiles.between(x, V, share, rng.random((n, 1)) < 0.5)
    undone = rng.random((n, d)) > rng.random((n, 1))
    X = np.where((kind == 0) & undone, x, X)
    noise = rng.normal(size=(n, d)) * problem.scale.deviations * NOISE * rng.random((n, 1)) ** 2
    touched = (rng.random((n, d)) < 2 / d) & ~problem.scale.is_nominal
    return problem.released(problem.region.snap(np.where(kind == 2, V + noise * touched, X)))


def beyond_hits(problem: Problem, rng: np.random.Generator, hits: FloatArray, n: int) -> FloatArray:
    """Points further from the factual than hits, (h, d), up to twice as far, (n, d)."""
    V = hits[rng.integers(len(hits), size=n)]
    further = V + rng.random((n, 1)) * (V - problem.factual)
    return problem.region.snap(np.where(problem.scale.is_nominal, V, further))
