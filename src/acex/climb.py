"""Climb a score with L-BFGS-B over the relaxed features, and choose among what was met on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from scipy.optimize import minimize

from acex.cost import Cost
from acex.space import BoolArray, FloatArray, Region

MOST_ITERATIONS = 25
FLOOR = 1e-14  # scores below this are rounding; keeps their logarithm finite
BACKSTEPS = (0.0, 0.1, 0.25, 0.5, 0.75)  # shares of the way back from where a climb ended

Accept: TypeAlias = Callable[[FloatArray], BoolArray]


class Score(Protocol):
    """What is maximised: never negative, and a function of a point through its cost and smoothly of its values."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores of points, (n,)."""

    def with_gradient(self, x: FloatArray) -> tuple[float, float, FloatArray]:
        """Score of one point, (d,); its derivative by the cost; its gradient at fixed cost, (d,)."""

    def bound(self, known_cost: FloatArray, nearest: FloatArray, farthest: FloatArray) -> FloatArray:
        """Upper bounds, (n,), over sets of points that cost at least `known_cost`, (n,), and lie between
        these squared distances from each piece of evidence, (n, e) each."""

    @property
    def evidence(self) -> FloatArray:
        """The points from which those distances are taken, in the scale of the cost, (e, d)."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """The best acceptable point found, (d,), and whether nothing better can exist."""

    point: FloatArray
    score: float
    exhaustive: bool


def climb(score: Score, cost: Cost, region: Region, start: FloatArray, relaxed: BoolArray) -> FloatArray:
    """Where L-BFGS-B ends from a start, (d,), moving the relaxed features only; not snapped.

    A relaxed feature is factual + p - q with p, q >= 0, in standard deviations: the l1 norm is then
    linear, so the optimiser meets no kink and unchanged features stay unchanged exactly.
    """
    index = np.flatnonzero(relaxed)
    unit = 1 / cost.per_unit[index]  # what moves also varies, so this is finite
    low, high = ((b[index] - cost.factual[index]) / unit for b in (region.low, region.high))
    bounds = [*zip(np.maximum(low, 0), np.maximum(high, 0), strict=True)]
    bounds += [*zip(np.maximum(-high, 0), np.maximum(-low, 0), strict=True)]
    resting = cost.steps(np.where(relaxed, cost.factual, start)[None])[0]  # what the other features cost
    resting_square = float(resting @ resting)
    n = len(index)

    def point(pq: FloatArray) -> FloatArray:
        x = start.copy()
        x[index] = cost.factual[index] + (pq[:n] - pq[n:]) * unit
        return x

    def loss(pq: FloatArray) -> tuple[float, FloatArray]:
        value, by_cost, gradient = score.with_gradient(point(pq))
        z = pq[:n] - pq[n:]
        length = np.sqrt(resting_square + z @ z)
        by_z = gradient[index] * unit + by_cost * z / max(length, 1e-12)
        by_pq = np.concatenate([by_z, -by_z]) + by_cost * cost.beta
        value = max(value, 0.0) + FLOOR
        return -float(np.log(value)), -by_pq / value

    z = (start[index] - cost.factual[index]) / unit
    found = minimize(
        loss,
        np.concatenate([np.maximum(z, 0), np.maximum(-z, 0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": MOST_ITERATIONS, "ftol": 1e-4},
    )
    return point(found.x)


def along_climbs(
    score: Score, cost: Cost, region: Region, starts: FloatArray, relaxed: BoolArray
) -> FloatArray:
    """Where climbs from the starts, (s, d), end and what lies on the way, snapped, (n, d).

    The way is kept because the end may be implausible where something on the way is not: from the start
    to the end, and from the end back to the factual's values.
    """
    out = []
    for start in starts:
        end = climb(score, cost, region, start, relaxed)
        home = np.where(relaxed, cost.factual, start)
        out += [end + share * (other - end) for other in (start, home) for share in BACKSTEPS]
    return region.snap(np.array(out))


def best_acceptable(
    candidates: FloatArray, scores: FloatArray, accept: Accept, above: float = 0.0
) -> tuple[FloatArray, float] | None:
    """The acceptable candidate of greatest score, (d,), with its score; None if none is above `above`."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > above]
    for chunk in np.split(order, range(8, len(order), 32)):  # most often the first few will do
        good = chunk[accept(candidates[chunk])] if len(chunk) else chunk
        if len(good):
            return candidates[good[0]], float(scores[good[0]])
    return None
