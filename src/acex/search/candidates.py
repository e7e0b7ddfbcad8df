"""Candidates for a query, made from the factual, reference rows and hits.

    d   features     n   candidates     h   hits

All are snapped into the region. Half of the moves are linear in values, half in quantiles.
"""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from acex.search.problem import Problem

MAX_CHANGED = 4  # largest number of features that a sparse move changes
NOISE = 0.3  # largest deviation of local noise, in standard deviations of the reference
SHRUNK = (0.3, 0.5, 0.7, 0.85, 0.93)  # shares of the way to a hit
BEYOND = 0.25  # how far random points may lie outside the reference, as a share of its range
MAX_ENUMERATED = 4096  # a region of at most this many points is enumerated


def enumerate_region(problem: Problem) -> FloatArray | None:
    """All points of a small region, (n, d); None when there are too many."""
    region = problem.region
    if region.size > MAX_ENUMERATED:
        return None
    axes = [region.values(j) for j in range(len(region.space))]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def from_reference(problem: Problem, rng: np.random.Generator, n: int) -> FloatArray:
    """Moves towards reference rows, (n, d): two thirds are sparse, the others move all features."""
    rows = problem.projected[rng.integers(len(problem.projected), size=n)]
    movable = np.flatnonzero(problem.region.movable)
    draws = rng.random((n, len(movable)))
    n_changed = rng.integers(1, min(MAX_CHANGED, len(movable)) + 1, size=(n, 1))
    n_changed[: n // 3] = len(movable)
    chosen = np.zeros(rows.shape, dtype=bool)
    chosen[:, movable] = draws <= np.take_along_axis(np.sort(draws, axis=1), n_changed - 1, axis=1)
    share = np.where(rng.random((n, 1)) < 1 / 3, 1.0, rng.random((n, 1)))
    moved = problem.quantiles.between(problem.factual, rows, share, rng.random((n, 1)) < 0.5, chosen)
    return problem.made_different(problem.region.snap(np.where(chosen, moved, problem.factual)))


def from_hits(problem: Problem, rng: np.random.Generator, hits: FloatArray, n: int) -> FloatArray:
    """Variations of hits, (h, d), that are cheaper or close by, (n, d).

    A third reverts some changes and shrinks the others alike, a third shrinks each change by its own share, a third
    adds a little noise to one or two features.
    """
    x, d = problem.factual, len(problem.factual)
    X = hits[rng.integers(len(hits), size=n)]
    kind = np.arange(n)[:, None] % 3
    common = 1 - rng.random((n, 1)) ** 2
    share = np.where(kind == 0, common, 1 - rng.random((n, d)) ** 2 * (rng.random((n, d)) < 0.5))
    in_ranks = rng.random((n, 1)) < 0.5
    reverted = (kind == 0) & (rng.random((n, d)) > rng.random((n, 1)))
    noise = rng.normal(size=(n, d)) * problem.scale.deviations * NOISE * rng.random((n, 1)) ** 2
    touched = (rng.random((n, d)) < 2 / d) & ~problem.scale.is_nominal
    noisy, moved = kind[:, 0] == 2, kind[:, 0] != 2
    X[noisy] += (noise * touched)[noisy]
    way = problem.quantiles.between(x, X[moved], share[moved], in_ranks[moved], ~reverted[moved])
    X[moved] = np.where(reverted[moved], x, way)
    return problem.made_different(problem.region.snap(X))


def beyond_hits(problem: Problem, rng: np.random.Generator, hits: FloatArray, n: int) -> FloatArray:
    """Points further from the factual than hits, (h, d), up to twice as far, (n, d)."""
    V = hits[rng.integers(len(hits), size=n)]
    further = V + rng.random((n, 1)) * (V - problem.origin)
    return problem.region.snap(np.where(problem.scale.is_nominal, V, further))


def simplified(problem: Problem, hit: FloatArray) -> FloatArray:
    """Simpler versions of a hit, (n, d): each change reverted or halved, the smallest reverted, all shrunk alike."""
    x, home = problem.origin, problem.home
    changed = np.flatnonzero(hit != problem.factual)
    each = np.arange(len(changed))
    reverted, halved = np.repeat(hit[None], len(changed), axis=0), np.repeat(hit[None], len(changed), axis=0)
    reverted[each, changed] = home[changed]
    halved[each, changed] = np.where(problem.scale.is_nominal, hit, (hit + x) / 2)[changed]
    by_size = changed[np.argsort(np.abs(problem.cost.steps(hit[None])[0])[changed], kind="stable")]
    together = np.repeat(hit[None], max(len(changed) - 2, 0), axis=0)
    for k, point in enumerate(together):
        point[by_size[: k + 2]] = home[by_size[: k + 2]]
    shrunk = np.where(problem.scale.is_nominal, hit, x + np.array(SHRUNK)[:, None] * (hit - x))
    return problem.region.snap(np.vstack([reverted, halved, together, shrunk]))


def random_points(problem: Problem, rng: np.random.Generator, n: int, *, at_edges: bool = False) -> FloatArray:
    """Points spread over the region and a little beyond the reference, (n, d), with any number of changes.

    Args:
        at_edges: half of the changes go to an end of their range; used when nothing like the reference was a hit.
    """
    x, movable = problem.factual, np.flatnonzero(problem.region.movable)
    low, high = problem.ends
    low, high = np.minimum(low, problem.origin), np.maximum(high, problem.origin)
    beyond = BEYOND * (high - low)
    low = np.maximum(problem.region.low, low - beyond)
    high = np.minimum(problem.region.high, high + beyond)
    shares = rng.random((n, len(x)))
    if at_edges:
        shares = np.where(rng.random(shares.shape) < 0.5, np.rint(shares), shares)
    X = low + shares * np.maximum(high - low, 0.0)
    order = rng.random((n, len(movable))).argsort(axis=1).argsort(axis=1)
    chosen = np.zeros(X.shape, dtype=bool)
    chosen[:, movable] = order < rng.integers(1, len(movable) + 1, size=(n, 1))
    return problem.made_different(
        problem.region.snap(np.where(chosen, np.where(problem.scale.is_nominal, np.rint(X), X), x))
    )
