"""Climb a score with L-BFGS-B over the relaxed features, and choose among what was met on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from scipy.optimize import Bounds, minimize

from acex.arrays import BoolArray, FloatArray
from acex.space.cost import CostFunction
from acex.space.region import Region

MOST_ITERATIONS = 25
FLOOR = 1e-14  # scores below this are rounding; keeps their logarithm finite
BACKSTEPS = (0.0, 0.1, 0.25, 0.5, 0.75)  # shares of the way back from where a climb ended

Accept: TypeAlias = Callable[[FloatArray], BoolArray]


class Score(Protocol):
    """What is maximised: never negative, and a function of a point through its cost and smoothly of its values."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Scores of points, (n,)."""

    def with_gradient(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, (n,); their derivatives by the cost, (n,); their gradients at fixed cost, (n, d)."""

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


def climb(score: Score, cost: CostFunction, region: Region, starts: FloatArray, relaxed: BoolArray) -> FloatArray:
    """Where L-BFGS-B ends from the starts, (s, d), moving the relaxed features only; not snapped.

    A relaxed feature is factual + p - q with p, q >= 0, in standard deviations: the l1 norm is then
    linear, so the optimiser meets no kink and unchanged features stay unchanged exactly. All starts climb
    together, as one problem whose value is the sum of their log scores: one call evaluates them all.
    """
    s, index = len(starts), np.flatnonzero(relaxed)
    unit = 1 / cost.per_unit[index]  # what moves also varies, so this is finite
    low, high = ((b[index] - cost.factual[index]) / unit for b in (region.low, region.high))
    least = np.stack([np.maximum(low, 0), np.maximum(-high, 0)])
    most = np.stack([np.maximum(high, 0), np.maximum(-low, 0)])
    at_rest = cost.steps(np.where(relaxed, cost.factual, starts))  # what the other features cost
    squares = (at_rest**2).sum(axis=1)

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
        value = value + FLOOR
        return -float(np.log(value).sum()), -(by_pq / value[:, None]).ravel()

    z = (starts[:, index] - cost.factual[index]) / unit
    found = minimize(
        loss,
        np.stack([np.maximum(z, 0), np.maximum(-z, 0)]).ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(*(np.repeat(b[:, None], s, axis=1).ravel() for b in (least, most))),
        options={"maxiter": MOST_ITERATIONS, "ftol": 1e-4},
    )
    return points(found.x)[0]


def along_climbs(
    score: Score, cost: CostFunction, region: Region, starts: FloatArray, relaxed: BoolArray
) -> FloatArray:
    """Where climbs from the starts, (s, d), end and what lies on the way, snapped, (n, d).

    The way is kept because the end may be implausible where something on the way is not: from the start
    to the end, and from the end back to the factual's values.
    """
    ends = climb(score, cost, region, starts, relaxed)
    home = np.where(relaxed, cost.factual, starts)
    back = [ends + share * (other - ends) for other in (starts, home) for share in BACKSTEPS]
    return region.snap(np.vstack(back))


def best_position(candidates: FloatArray, scores: FloatArray, accept: Accept, above: float = 0.0) -> int | None:
    """Position of the acceptable candidate of greatest score; None if none is above `above`."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] > above]
    for chunk in np.split(order, range(8, len(order), 32)):  # most often the first few will do
        good = chunk[accept(candidates[chunk])] if len(chunk) else chunk
        if len(good):
            return int(good[0])
    return None


def best_acceptable(
    candidates: FloatArray, scores: FloatArray, accept: Accept, above: float = 0.0
) -> tuple[FloatArray, float] | None:
    """That candidate, (d,), with its score."""
    best = best_position(candidates, scores, accept, above)
    return None if best is None else (candidates[best], float(scores[best]))
