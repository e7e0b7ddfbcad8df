"""Candidates for a query, made from the factual, reference rows and hits.

    d   features     n   candidates     h   hits

All are snapped into the region. Half of the moves are linear in values, half in quantiles.

The first hit in a wide table changes nearly every column, and reverting its changes one by one takes more queries than
the budget has. So groups of changes are reverted together, which shows which of them are needed:

    C      the features that the hit changes, c of them
    q_j    P(change j is needed), given the answers so far, (c,)
    U      a group of changes to revert; if none of them is needed, the rest is a hit:  P(hit) = prod_{j in U} (1 - q_j)

This is group testing. The answers update q in turn, as if the changes were independent (assumed density filtering of a
noisy OR):

    after a hit    q_j <- FORGOTTEN q_j     for j in U: none of them seems to be needed
    after a miss   q_j <- q_j / P(miss)     for j in U: at least one is,
                   P(miss) = 1 - (1 - CHANCE) prod_{j in U} (1 - q_j)

The group of greatest saving times P(hit) contains the changes that save most for their risk -log(1 - q_j). Its best
size follows from the sums over the changes in this order.
"""

from __future__ import annotations

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search.problem import History, Problem

MAX_CHANGED = 4  # largest number of features that a sparse move changes
NOISE = 0.3  # largest deviation of local noise, in standard deviations of the reference
SHRUNK = (0.3, 0.5, 0.7, 0.85, 0.93)  # shares of the way to a hit
BEYOND = 0.25  # how far random points may lie outside the reference, as a share of its range
MAX_ENUMERATED = 4096  # a region of at most this many points is enumerated
MIN_CHANGES = 10  # of a hit whose changes are reverted in groups; the network knows small ones better
EXPECTED = 3.0  # prior expectation of the number of needed changes
MAX_NEEDED, MIN_NEEDED = 0.5, 1e-3  # upper bound on the prior of q, and lower bound on q
CHANCE, FORGOTTEN = 0.1, 0.1  # P(miss) if no reverted change is needed, and factor of q after a hit
REVERTED, KEPT = 0.25, 0.9  # a change counts as reverted up to the first share of it, and as kept from the second
MAX_BETWEEN = 0.2  # a miss is ignored if a larger share of the changes is between these
N_ORDERS, SPREAD = 24, 0.8  # number of random orders of the changes, and deviation of the log factors for them
SIZES = (0.5, 1.0, 2.0, 4.0)  # sizes of groups, relative to the best size


def enumerate_region(problem: Problem) -> FloatArray | None:
    """All points of a small region, (n, d); None if there are too many."""
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
    x, d, between = problem.factual, len(problem.factual), problem.quantiles.between
    X = hits[rng.integers(len(hits), size=n)]
    common, own, shrunk = rng.random((n, 1)), rng.random((n, d)), rng.random((n, d)) < 0.5
    in_ranks, draws, limit = rng.random((n, 1)) < 0.5, rng.random((n, d)), rng.random((n, 1))
    noise, size, touched = rng.normal(size=(n, d)), rng.random((n, 1)), rng.random((n, d)) < 2 / d
    i = slice(0, None, 3)
    reverted = draws[i] > limit[i]
    X[i] = np.where(reverted, x, between(x, X[i], 1 - common[i] ** 2, in_ranks[i], ~reverted))
    i = slice(1, None, 3)
    X[i] = between(x, X[i], 1 - own[i] ** 2 * shrunk[i], in_ranks[i])
    i = slice(2, None, 3)
    touched = touched[i] & ~problem.scale.is_nominal
    X[i] += noise[i] * problem.scale.deviations * NOISE * size[i] ** 2 * touched
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
        at_edges: half of the changes go to a bound of their range; used if nothing similar to the reference was a hit.
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


# -- groups of changes -----------------------------------------------------------------------------------


def reverted_groups(
    problem: Problem, history: History, hit: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """A hit, (d,), with groups of its changes reverted, (n, d), and their P(hit), (n,).

    No points if the hit has few changes, or the region is so small that all of its points are candidates.
    """
    changed = np.flatnonzero((hit != problem.home) & problem.region.movable)
    if len(changed) < MIN_CHANGES or problem.region.size <= MAX_ENUMERATED:
        return np.empty((0, len(hit))), np.empty(0)
    risk = -np.log1p(-p_needed(problem, history, hit, changed))
    saving = np.abs(problem.cost.steps(hit[None])[0])[changed]
    points, probability = [], []
    for factors in np.exp(SPREAD * rng.normal(size=(N_ORDERS, len(changed)))):
        order = np.argsort(-saving / risk * factors, kind="stable")
        risks = np.cumsum(risk[order])
        size = int((np.cumsum(saving[order]) * np.exp(-risks)).argmax()) + 1
        for n in sorted({min(max(int(size * share), 1), len(changed) - 1) for share in SIZES}):
            point = hit.copy()
            point[changed[order[:n]]] = problem.home[changed[order[:n]]]
            points.append(point)
            probability.append(np.exp(-risks[n - 1]).clip(1e-6, 1 - 1e-6))
    return problem.region.snap(np.array(points)), np.array(probability)


def p_needed(problem: Problem, history: History, hit: FloatArray, changed: IntArray) -> FloatArray:
    """The probability that each of the changes of a hit is needed, (c,)."""
    q = np.full(len(changed), min(MAX_NEEDED, EXPECTED / len(changed)))
    shares = _shares(problem, history.X[1:], hit, changed)
    for share, is_hit in zip(shares, history.is_hit[1:], strict=True):
        U: BoolArray = share <= REVERTED
        if not U.any() or U.all():
            continue
        if is_hit:
            q[U] *= FORGOTTEN
        elif ((share > REVERTED) & (share < KEPT)).mean() <= MAX_BETWEEN:
            q[U] /= 1 - (1 - CHANCE) * np.prod(1 - q[U])
        q = np.clip(q, MIN_NEEDED, 1 - MIN_NEEDED)
    return q


def _shares(problem: Problem, X: FloatArray, hit: FloatArray, changed: IntArray) -> FloatArray:
    """The share of each change of the hit that points make, (n, c): 0 for none of it, 1 or more for all of it."""
    home, there, X = problem.home[changed], hit[changed], X[:, changed]
    return np.asarray(np.where(problem.scale.is_nominal[changed], there == X, (X - home) / (there - home)))
