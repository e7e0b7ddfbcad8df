"""Maximise a score over a region: L-BFGS-B over the relaxed features, branch and bound over the others.

    d   features     s   starts     e   pieces of evidence     v   values of a feature     g   nodes expanded together

*Relaxed* features (continuous ones, and integers of more than 20 values) are optimised as real numbers and snapped
afterwards. The other features that can move are *discrete*, and branch and bound fixes them one by one.

A node has fixed the first discrete features and left the others free. The cost of the fixed features is known, and so
are the smallest and largest distance to the evidence that the free features allow. That gives an upper bound of the
score over the node (`Score.bound`). A node whose bound does not exceed the best score so far is discarded. Nodes are
expanded best bound first, many at a time so that NumPy does the work.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeAlias

import numpy as np
from scipy.optimize import Bounds, minimize

from acex.arrays import BoolArray, FloatArray, IntArray, unique_rows
from acex.space.cost import CostFunction
from acex.space.feature import MISSING_CODE
from acex.space.region import Region

MAX_VALUES = 20  # an integer feature with more values than this is relaxed and snapped
MAX_BRANCHING = 64  # with more features than this, as in an image, every ordered one is relaxed
MAX_CLIMBS = 3  # number of best starts from which L-BFGS-B climbs
MAX_ITERATIONS = 25
MIN_SCORE = 1e-14  # scores below this are rounding errors, which differ between machines; keeps logarithms finite
BACKSTEPS = (0.0, 0.1, 0.25, 0.5, 0.75)  # shares of the way back from the end of a climb
MAX_NODES = 2000
NODES_AT_ONCE = 64
MAX_LEAF_CLIMBS = 3  # number of best leaves whose relaxed features are optimised

Accept: TypeAlias = Callable[[FloatArray], BoolArray]
Scored: TypeAlias = tuple[FloatArray, float]  # a point, (d,), and its score


class Score(Protocol):
    """The function to maximise: never negative, a smooth function of a point's values and of its cost."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores of points, (n,)."""

    def with_gradient(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, (n,); their derivatives by the cost, (n,); their gradients at fixed cost, (n, d)."""

    def bound(self, known_cost: FloatArray, nearest: FloatArray, farthest: FloatArray) -> FloatArray:
        """Upper bounds, (n,), over sets of points.

        The points of a set cost at least `known_cost`, (n,); their squared distances to each piece of evidence are
        from `nearest` to `farthest`, (n, e) each.
        """

    @property
    def evidence(self) -> FloatArray:
        """The points that these distances are measured from, (e, d)."""


def relaxed_features(region: Region) -> BoolArray:
    """Which features are optimised as real numbers, (d,)."""
    out = np.zeros(len(region.space), dtype=bool)
    few = 1 if region.movable.sum() > MAX_BRANCHING else MAX_VALUES
    for j in np.flatnonzero(region.movable):
        values = region.values(int(j))
        out[j] = values is None or (len(values) > few and not region.space.is_nominal[j])
    return out


def maximise(score: Score, cost: CostFunction, region: Region, starts: FloatArray, accept: Accept) -> Scored | None:
    """The best acceptable point reached from the starts, (s, d); None if none scores more than `MIN_SCORE`."""
    relaxed = relaxed_features(region)
    starts = region.snap(starts)
    scores = score(starts)
    best = np.argsort(-scores, kind="stable")[:MAX_CLIMBS]
    if (region.movable & ~relaxed).any():
        known = best_acceptable(starts, scores, accept, above=MIN_SCORE)
        return branch_and_bound(score, cost, region, relaxed, starts, best, known, accept)
    ends = along_climbs(score, cost, region, starts[best], relaxed)
    candidates, scores = np.vstack([starts, ends]), np.concatenate([scores, score(ends)])
    return best_acceptable(candidates, scores, accept, above=MIN_SCORE)


# -- L-BFGS-B ------------------------------------------------------------------------------------------


def climb(score: Score, cost: CostFunction, region: Region, starts: FloatArray, relaxed: BoolArray) -> FloatArray:
    """Where L-BFGS-B ends from the starts, (s, d), moving the relaxed features only; not snapped.

    A relaxed feature is factual + p - q with p, q >= 0, in standard deviations: the l1 norm is then
    linear, so the optimiser meets no kink and unchanged features stay unchanged exactly. All starts climb
    together as one problem whose value is the sum of their log scores, so that one call evaluates them all.
    """
    s, index = len(starts), np.flatnonzero(relaxed)
    unit = 1 / cost.per_unit[index]  # a feature that can move varies in the reference, so this is finite
    low, high = ((b[index] - cost.factual[index]) / unit for b in (region.low, region.high))
    least = np.stack([np.maximum(low, 0), np.maximum(-high, 0)])
    most = np.stack([np.maximum(high, 0), np.maximum(-low, 0)])
    others = cost.steps(np.where(relaxed, cost.factual, starts))  # steps of the features that stay fixed
    squares = (others**2).sum(axis=1)

    def points(pq: FloatArray) -> tuple[FloatArray, FloatArray]:
        p, q = pq.reshape(2, s, -1)
        X = starts.copy()
        X[:, index] = cost.factual[index] + (p - q) * unit
        return X, p - q

    def loss(pq: FloatArray) -> tuple[float, FloatArray]:
        X, z = points(pq)
        value, by_cost, gradient = score.with_gradient(X)
        length = np.maximum(np.sqrt(squares + (z**2).sum(axis=1)), 1e-12)
        by_z = gradient[:, index] * unit + (by_cost / length)[:, None] * z
        by_pq = np.stack([by_z, -by_z]) + cost.beta * by_cost[:, None]
        value = value + MIN_SCORE
        return -float(np.log(value).sum()), -(by_pq / value[:, None]).ravel()

    z = (starts[:, index] - cost.factual[index]) / unit
    found = minimize(
        loss,
        np.stack([np.maximum(z, 0), np.maximum(-z, 0)]).ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(*(np.repeat(b[:, None], s, axis=1).ravel() for b in (least, most))),
        options={"maxiter": MAX_ITERATIONS, "ftol": 1e-4},
    )
    return points(found.x)[0]


def along_climbs(
    score: Score, cost: CostFunction, region: Region, starts: FloatArray, relaxed: BoolArray
) -> FloatArray:
    """The ends of climbs from the starts, (s, d), and points on the way, snapped, (n, d).

    Points on the way from the end back to the start, and back to the factual's values, may be plausible even if the
    end is not.
    """
    ends = climb(score, cost, region, starts, relaxed)
    home = np.where(relaxed, cost.factual, starts)
    back = [ends + share * (other - ends) for other in (starts, home) for share in BACKSTEPS]
    return region.snap(np.vstack(back))


def best_position(candidates: FloatArray, scores: FloatArray, accept: Accept, above: float = 0.0) -> int | None:
    """Position of the acceptable candidate with the largest score; None if no acceptable score exceeds `above`."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > above]
    for chunk in np.split(order, range(8, len(order), 32)):  # one of the first few is usually acceptable
        good = chunk[accept(candidates[chunk])] if len(chunk) else chunk
        if len(good):
            return int(good[0])
    return None


def best_acceptable(candidates: FloatArray, scores: FloatArray, accept: Accept, above: float) -> Scored | None:
    """The candidate at `best_position` with its score."""
    best = best_position(candidates, scores, accept, above)
    return None if best is None else (candidates[best], float(scores[best]))


# -- branch and bound -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Level:
    """One discrete feature, with the cost of each of its values and what it adds to the distances."""

    feature: int
    values: FloatArray  # (v,)
    steps: FloatArray  # |z| of each value, (v,)
    added: FloatArray  # squared distance to the evidence, (v, e)
    free_nearest: FloatArray  # least squared distance that the features still free below this level add, (e,)
    free_farthest: FloatArray  # largest squared distance that they add, (e,)


@dataclass(frozen=True, eq=False)
class _Node:
    """The first features fixed to `values`, with the sums over these features."""

    values: tuple[float, ...]
    square: float  # sum of z^2
    absolute: float  # sum of |z|
    added: FloatArray  # squared distance to the evidence, (e,)


def branch_and_bound(
    score: Score,
    cost: CostFunction,
    region: Region,
    relaxed: BoolArray,
    starts: FloatArray,
    best_starts: IntArray,
    known: Scored | None,
    accept: Accept,
) -> Scored | None:
    """The best acceptable point, given the best one known so far and its score.

    While the tree is searched, relaxed features have the values of the factual and of the best starts; at the best
    leaves they are optimised. Of a feature with very many categories, only those in the evidence or in a start, (s, d),
    are tried: the score does not distinguish the others.
    """
    levels = _levels(score, cost, region, relaxed, starts)
    base = region.snap(np.vstack([cost.factual, starts[best_starts]]))
    base = unique_rows(np.where(relaxed, base, cost.factual))
    best, best_score = known if known is not None else (None, MIN_SCORE)
    leaves: list[tuple[float, FloatArray]] = []
    order = count()
    root = _Node((), 0.0, 0.0, np.zeros(len(score.evidence)))
    heap: list[tuple[float, int, int, _Node]] = [(-np.inf, 0, next(order), root)]
    n_nodes = 1
    while heap and n_nodes < MAX_NODES:
        taken = [heapq.heappop(heap) for _ in range(min(NODES_AT_ONCE, len(heap)))]
        by_level: dict[int, list[_Node]] = {}
        for bound, _, _, node in taken:
            if -bound > best_score:
                by_level.setdefault(len(node.values), []).append(node)
        for depth, nodes in by_level.items():
            children, bounds = _expand(score, cost, levels[depth], nodes)
            n_nodes += len(children)
            keep = np.flatnonzero(bounds > best_score)
            if depth + 1 < len(levels):
                for i in keep:
                    heapq.heappush(heap, (-bounds[i], -depth, next(order), children[i]))
                continue
            X = _points([children[i] for i in keep], levels, base)
            scores = score(X) if len(X) else np.zeros(0)
            leaves += [(-s, x) for s, x in zip(scores, X, strict=True)] if relaxed.any() else []
            found = best_acceptable(X, scores, accept, above=best_score)
            if found is not None:
                best, best_score = found
    if leaves:
        chosen = np.array([x for _, x in heapq.nsmallest(MAX_LEAF_CLIMBS, leaves, key=lambda leaf: leaf[0])])
        ends = along_climbs(score, cost, region, chosen, relaxed)
        found = best_acceptable(ends, score(ends), accept, above=best_score)
        if found is not None:
            best, best_score = found
    return None if best is None else (best, best_score)


def _levels(score: Score, cost: CostFunction, region: Region, relaxed: BoolArray, starts: FloatArray) -> list[_Level]:
    discrete = [int(j) for j in np.flatnonzero(region.movable & ~relaxed)]
    # The feature that costs most to change comes first: its branches are discarded soonest.
    discrete.sort(key=lambda j: -cost.per_unit[j])
    others = np.setdiff1d(np.arange(len(region.space)), discrete)
    E = score.evidence
    nearest, farthest = np.zeros(len(E)), np.zeros(len(E))
    for j in others:  # anywhere in the box; for a fixed feature low equals high
        low, high = region.low[j], region.high[j]
        nearest = nearest + _added(cost, j, np.clip(E[:, j], low, high), E)
        farthest = farthest + np.maximum(_added(cost, j, low, E), _added(cost, j, high, E))
    levels: list[_Level] = []
    for j in reversed(discrete):
        values = region.values(j)
        assert values is not None
        if region.space.features[j].has_many:
            values = np.intersect1d(values, np.concatenate([E[:, j], starts[:, j]]))
        added = _added(cost, j, values[:, None], E)
        X = np.repeat(cost.factual[None], len(values), axis=0)
        X[:, j] = values
        levels.insert(0, _Level(j, values, np.abs(cost.steps(X)[:, j]), added, nearest, farthest))
        nearest, farthest = nearest + added.min(axis=0), farthest + added.max(axis=0)
    return levels


def _added(cost: CostFunction, j: int, value: float | FloatArray, E: FloatArray) -> FloatArray:
    """Squared distance that feature j adds between this value and each piece of evidence, (e,); for (v, 1), (v, e)."""
    scale = cost.scale
    steps = np.not_equal(value, E[:, j]) if scale.is_nominal[j] else value - E[:, j]
    square: FloatArray = (steps * scale.per_unit[j]) ** 2
    differ = np.not_equal(np.equal(value, MISSING_CODE), E[:, j] == MISSING_CODE)
    # A gap cannot change here. Its distance to a number is at least `gap_step`, as in coordinates.
    return np.where(differ, scale.gap_step**2, square)


def _expand(score: Score, cost: CostFunction, level: _Level, nodes: list[_Node]) -> tuple[list[_Node], FloatArray]:
    """The children of nodes of one level and their bounds, (g v,)."""
    square = (np.array([n.square for n in nodes])[:, None] + level.steps**2).ravel()
    absolute = (np.array([n.absolute for n in nodes])[:, None] + level.steps).ravel()
    added = (np.array([n.added for n in nodes])[:, None] + level.added).reshape(len(square), -1)
    bounds = score.bound(
        np.sqrt(square) + cost.beta * absolute, added + level.free_nearest, added + level.free_farthest
    )
    values = [(*n.values, float(v)) for n in nodes for v in level.values]
    children = [_Node(*parts) for parts in zip(values, square, absolute, added, strict=True)]
    return children, bounds


def _points(leaves: list[_Node], levels: list[_Level], base: FloatArray) -> FloatArray:
    """Leaves as points, (n, d), each combined with every row of `base`, (b, d), for the features not discrete."""
    X = np.repeat(base, len(leaves), axis=0)
    if leaves:
        X[:, [level.feature for level in levels]] = np.tile([leaf.values for leaf in leaves], (len(base), 1))
    return X
