"""BayCon (Romashov et al. 2022, "BayCon: Model-agnostic Bayesian Counterfactual Generator").

    score   of a point: 0 for a miss, (1 - Gower distance) * (share of unchanged features) for a hit
    forest  regression of the score on the change, its l1 norm and the number of unchanged features

A round draws neighbours of the points queried last and random points, queries the 20 with the greatest expected
improvement (the spread among the trees is the uncertainty), and fits the forest again. At the end all neighbours ever
drawn are queried, and the hits that are inliers by the local outlier factor are returned. The constants are those of
the authors' code, including its limit of 100 epochs. As there, numbers are drawn between their 5 % and 95 % quantiles,
and Gower's distance divides them by that range plus one; categories are drawn from all values that occur, and count as
equal or different. A number whose two quantiles are equal is not changed (in the authors' code it would become 0).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import norm
from sklearn.ensemble import RandomForestRegressor

from acex.arrays import BoolArray, FloatArray, IntArray
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

FIRST, NEIGHBOURS, RANDOM = 200, 100, 1000  # draws that change one feature; half as many change two, ...
ROUNDS = 100
ASKED = 20  # queries per round
PATIENCE, ENOUGH = 10, 100  # stop after 10 rounds without a better score, if 100 hits are known
OVERSAMPLED = 10  # extra copies of a new best point in the training data of the forest
NEARER = 0.95  # least nearness of an origin relative to that of a draw
EPSILON = 0.001  # the least improvement that counts
GRID = 0.01  # values are rounded to this fraction of a feature's range
QUANTILES = 0.05, 0.95  # between which numbers are drawn


@method("baycon", revision=2, style={"color": "#CC79A7"})
def baycon(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """All plausible hits that were queried, (k, d)."""
    rng = np.random.default_rng(seed)
    X = around(task, rng)
    is_hit = model.is_hit(X)
    scores = score(task, X, is_hit)
    shown, shown_scores = X, scores
    latest = X[[np.argmax(scores)]]
    drawn = np.empty((0, len(task.x)))
    stale = 0
    for _ in range(ROUNDS):
        if stale >= PATIENCE and is_hit.sum() >= ENOUGH:
            break
        stale += 1
        near = [new(task, row, towards(task, rng, row, NEIGHBOURS // len(latest)), X) for row in latest]
        far = new(task, X[np.argmax(scores)], anywhere(task, rng), X)
        drawn = np.unique(np.vstack([drawn, *near]), axis=0)
        candidates = np.unique(np.vstack([far, *near]), axis=0)
        if len(candidates) == 0:
            continue
        forest = RandomForestRegressor(100, max_depth=100, random_state=int(rng.integers(2**31)))
        forest.fit(described(task, shown), shown_scores)
        latest = candidates[most_promising(forest, described(task, X), described(task, candidates))]
        hits = model.is_hit(latest)
        latest_scores = score(task, latest, hits)
        shown, shown_scores = np.vstack([shown, latest]), np.append(shown_scores, latest_scores)
        if latest_scores.max() > scores.max():
            stale = 0
            shown = np.vstack([shown, np.tile(latest[np.argmax(latest_scores)], (OVERSAMPLED, 1))])
            shown_scores = np.append(shown_scores, np.full(OVERSAMPLED, latest_scores.max()))
        X, is_hit, scores = np.vstack([X, latest]), np.append(is_hit, hits), np.append(scores, latest_scores)
    found = np.unique(np.vstack([X[is_hit], drawn[model.is_hit(drawn)]]), axis=0)
    plausible: FloatArray = found[task.scenario.density.plausible(found)]
    return plausible


def score(task: Task, X: FloatArray, is_hit: BoolArray) -> FloatArray:
    """How good points are, from 0 to 1, (n,)."""
    scores: FloatArray = np.round(is_hit * nearness(task, X) * (task.x == X).mean(axis=1), 5)
    return scores


def nearness(task: Task, X: FloatArray) -> FloatArray:
    """One minus the Gower distance to the factual, (n,)."""
    low, high = ends(task)
    parts = np.where(task.scenario.is_category, task.x != X, np.abs(X - task.x) / (high - low + 1))
    near: FloatArray = 1 - parts.mean(axis=1)
    return near


def described(task: Task, X: FloatArray) -> FloatArray:
    """The inputs of the forest for points, (n, d + 2)."""
    change = X - task.x
    return np.column_stack([change, np.abs(change).sum(axis=1), (change == 0).sum(axis=1)])


def most_promising(forest: RandomForestRegressor, known: FloatArray, candidates: FloatArray) -> IntArray:
    """The candidates with the greatest expected improvement, in descending order, (ASKED,) or fewer."""
    trees = np.stack([tree.predict(candidates) for tree in forest.estimators_])
    gain = trees.mean(axis=0) - forest.predict(known).max() - EPSILON
    spread = trees.std(axis=0)
    z = gain / (spread + 1e-9)  # finite even if all trees agree
    improvement = gain * norm.cdf(z) + spread * norm.pdf(z)
    return np.argsort(-improvement, kind="stable")[:ASKED]


def around(task: Task, rng: np.random.Generator) -> FloatArray:
    """Draws from a normal distribution around the factual, cut off at the quantiles, (n, d)."""
    low, high = ends(task)
    which = _features(task, rng, FIRST)
    spread = np.sqrt(np.abs(low + high) / 2)
    return _changed(task, rng, which, _normal(rng, len(which), task.x, spread, low, high))


def towards(task: Task, rng: np.random.Generator, origin: FloatArray, n: int) -> FloatArray:
    """Draws from a normal distribution around an origin, cut off there and at the factual, (m, d)."""
    which = _features(task, rng, n)
    between = np.minimum(task.x, origin), np.maximum(task.x, origin)
    return _changed(task, rng, which, _normal(rng, len(which), origin, np.sqrt(np.abs(origin)), *between))


def anywhere(task: Task, rng: np.random.Generator) -> FloatArray:
    """Uniform draws, (n, d)."""
    which = _features(task, rng, RANDOM)
    return _changed(task, rng, which, rng.uniform(*ends(task), which.shape))


def new(task: Task, origin: FloatArray, X: FloatArray, known: FloatArray) -> FloatArray:
    """The distinct draws that are not known yet and not much nearer than their origins, (m, d)."""
    X = np.unique(X[NEARER * nearness(task, X) <= nearness(task, origin[None])], axis=0)
    seen = {row.tobytes() for row in known}
    unseen: FloatArray = X[np.array([row.tobytes() not in seen for row in X], dtype=bool)]
    return unseen


@lru_cache(maxsize=1)  # called thousands of times in a row
def ends(task: Task) -> tuple[FloatArray, FloatArray]:
    """The limits between which numbers are drawn, (d,) each; the factual may lie outside."""
    low, high = np.quantile(task.scenario.reference, QUANTILES, axis=0)
    return low, high


@lru_cache(maxsize=1)
def categories(task: Task) -> dict[int, FloatArray]:
    """The values of each categorical feature in the reference."""
    return {int(j): np.unique(task.scenario.reference[:, j]) for j in np.flatnonzero(task.scenario.is_category)}


def _features(task: Task, rng: np.random.Generator, n: int) -> BoolArray:
    """Which features to change: n times one, n/2 times two (or twice the same one), n/3 times three, ..., (m, d)."""
    d = len(task.x)
    counts = [(k, max(n // k, 1)) for k in range(1, max(d, 2))]
    which = np.zeros((sum(m for _, m in counts), d), dtype=bool)
    start = 0
    for k, m in counts:
        which[start + np.arange(m)[:, None], rng.integers(0, d, (m, k))] = True
        start += m
    return which


def _normal(
    rng: np.random.Generator, n: int, mean: FloatArray, spread: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Normal draws between two limits, (n, d); the mean itself if the spread is 0 or the limits are equal."""
    is_free = (spread > 0) & (high > low)
    unit = np.where(is_free, spread, 1.0)
    # Mirrored so that the limits lie in the lower tail, where logarithms stay accurate.
    side = np.where(low + high > 2 * mean, -1.0, 1.0)
    a, b = np.sort(side * (np.stack([low, high]) - mean) / unit, axis=0)
    u = rng.random((n, len(mean)))
    step = side * ndtri_exp(log_ndtr(b) + np.log(u + (1 - u) * np.exp(log_ndtr(a) - log_ndtr(b))))
    return np.where(is_free, np.clip(mean + step * unit, low, high), mean)


def _changed(task: Task, rng: np.random.Generator, which: BoolArray, values: FloatArray) -> FloatArray:
    """The factual with these features set to these values, categories to random ones; only changed rows, (m, d)."""
    low, high = ends(task)
    grid = GRID * (high - low)
    values = (
        np.round(values / np.where(grid > 0, grid, 1.0)) * grid + 0.0
    )  # no -0.0, which would count as a different value
    moved = which & (np.abs(values - task.x) > grid) & (grid > 0)
    X = np.where(moved, values, task.x)
    for j, known in categories(task).items():
        X[:, j] = np.where(which[:, j], rng.choice(known, len(X)), task.x[j])
    X = task.project(X)
    changed: FloatArray = X[(task.x != X).any(axis=1)]
    return changed
