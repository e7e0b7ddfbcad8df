"""Branch and bound over the features that hold few values.

A node has fixed the first features of an order and left the others free. What is fixed already costs
something, and how near to the evidence and how far from it the free ones can take a point is known, so
the score has an upper bound over the whole node (see `Score.bound`). A node whose bound does not beat the
best point so far is cut off. Nodes are taken best bound first, many at a time so that arrays do the work.

    e   pieces of evidence     v   values of a feature     g   nodes taken together
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search.climb import Accept, Proposal, Score, along_climbs, best_acceptable
from acex.space.cost import CostFunction
from acex.space.feature import MISSING_CODE
from acex.space.region import Region

MOST_NODES = 2000
NODES_AT_ONCE = 64
MOST_LEAF_CLIMBS = 3  # leaves, the best first, whose relaxed features are optimised


@dataclass(frozen=True, eq=False)
class _Level:
    """One discrete feature: what each of its values costs and adds to the distances."""

    feature: int
    values: FloatArray  # (v,)
    steps: FloatArray  # |z| of each value, (v,)
    added: FloatArray  # squared distance to the evidence, (v, e)
    free_nearest: FloatArray  # least that the features still free below this level add, (e,)
    free_farthest: FloatArray  # most that they add, (e,)


@dataclass(frozen=True, eq=False)
class _Node:
    """The first features fixed to `values`; totals of what they cost and add."""

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
    known: tuple[FloatArray, float] | None,
    accept: Accept,
) -> Proposal | None:
    """The best acceptable point, given the best one known so far and its score.

    Relaxed features take the values of the factual and of the best starts while the tree is searched; at the best
    leaves they are optimised. Of very many categories those are tried that the evidence or a start, (s, d), has: to
    the score all others are one. The proposal is exhaustive when nothing is relaxed or left out and no node was left.
    """
    levels = _levels(score, cost, region, relaxed, starts)
    base = region.snap(np.vstack([cost.factual, starts[best_starts]]))
    base = np.unique(np.where(relaxed, base, cost.factual), axis=0)
    best, best_score = known if known is not None else (None, 0.0)
    leaves: list[tuple[float, FloatArray]] = []
    order = count()
    root = _Node((), 0.0, 0.0, np.zeros(len(score.evidence)))
    heap: list[tuple[float, int, int, _Node]] = [(-np.inf, 0, next(order), root)]
    n_nodes = 1
    while heap and n_nodes < MOST_NODES:
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
    finished = all(-bound <= best_score for bound, *_ in heap)
    if leaves:
        chosen = np.array([x for _, x in heapq.nsmallest(MOST_LEAF_CLIMBS, leaves, key=lambda leaf: leaf[0])])
        ends = along_climbs(score, cost, region, chosen, relaxed)
        found = best_acceptable(ends, score(ends), accept, above=best_score)
        if found is not None:
            best, best_score = found
    complete = not relaxed.any() and not any(region.space.features[level.feature].has_many for level in levels)
    return None if best is None else Proposal(best, best_score, exhaustive=finished and complete)


def _levels(score: Score, cost: CostFunction, region: Region, relaxed: BoolArray, starts: FloatArray) -> list[_Level]:
    discrete = [int(j) for j in np.flatnonzero(region.movable & ~relaxed)]
    # The feature that costs most to change first: its branches are cut off soonest.
    discrete.sort(key=lambda j: -cost.per_unit[j])
    others = np.setdiff1d(np.arange(len(region.space)), discrete)
    E = score.evidence
    nearest, farthest = np.zeros(len(E)), np.zeros(len(E))
    for j in others:  # anywhere in the box: for the fixed ones it is a single value
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
    square: FloatArray = (scale.space.features[j].steps(value, E[:, j]) * scale.per_unit[j]) ** 2
    differ = np.not_equal(np.equal(value, MISSING_CODE), E[:, j] == MISSING_CODE)
    # Here a gap is fixed; from the numbers of others it is as far as in coordinates, at least.
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
    """Leaves as points, each with every row of `base`, (b, d), for what is not discrete, (n, d)."""
    X = np.repeat(base, len(leaves), axis=0)
    if leaves:
        X[:, [level.feature for level in levels]] = np.tile([leaf.values for leaf in leaves], (len(base), 1))
    return X
