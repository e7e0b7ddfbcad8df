"""A surrogate that is fitted to what an explanation holds, and slices through the space that it knows.

It has the kernel and the prior of strategy "feasible", but measures in standard deviations, not in quantiles of a
reference that is not at hand, and knows no labels from elsewhere. So it resembles the one that led the search, and
its P(hit) is no answer of the model.
"""

from __future__ import annotations

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search.evidence import HYPERPRIOR, PRIOR_DEPTH, PRIOR_FAR
from acex.search.surrogate import fit
from acex.space.scale import Scale

NEAR = 0.1  # standard deviations that a point may lie off a slice in any feature and still count as on it


class Surrogate:
    """P(hit) by a Gaussian process on the features in standard deviations; near the factual a point is a miss."""

    def __init__(self, scale: Scale, X: FloatArray, is_hit: BoolArray) -> None:
        self.scale = scale
        Z = scale.coordinates(X)
        self.home = Z[0]
        n_varying = int((scale.deviations > 0).sum())
        self.far = np.sqrt(2 * max(n_varying, 1))  # distance of two points that have nothing to do with each other
        prior, typical = self._prior(Z), np.sqrt(max(n_varying, 1))
        self.posterior = fit(
            Z, is_hit.astype(float), prior_mean=prior, typical=typical, hyperprior=HYPERPRIOR, metric=scale.metric
        )

    def _prior(self, Z: FloatArray) -> FloatArray:
        nearness = 1 - np.minimum(self.scale.metric.from_one(Z, self.home) / self.far, 1.0)
        return np.asarray(PRIOR_FAR - PRIOR_DEPTH * nearness)

    def probability(self, X: FloatArray) -> FloatArray:
        """P(hit) of points, (n,)."""
        Z = self.scale.coordinates(X)
        return self.posterior.probability(Z, self._prior(Z))


class Slice:
    """The points of a slice along a pair of features that holds two points, `start` and `end`.

    Where these differ in other features too, the others go along: from the one to the other, as a point's nearest
    place on the line between the two has it.
    """

    def __init__(self, scale: Scale, start: FloatArray, end: FloatArray, pair: list[int]) -> None:
        self.scale, self.start, self.end, self.pair = scale, start, end, pair
        self.along = start != end  # the other features that go along, (d,)
        self.along[pair] = False
        self.way = scale.differences(end[None], start)[0, pair]
        if not self.way.any():  # both are one point on the slice, which then is the factual's
            self.along[:] = False

    def points(self, places: FloatArray) -> FloatArray:
        """The points at these values of the pair, (n, 2); (n, d)."""
        X = np.tile(self.start, (len(places), 1))
        X[:, self.pair] = places
        if self.along.any():
            steps = self.scale.differences(X, self.start)[:, self.pair]
            # A category is on the way only if it is the end's own.
            steps = np.where(self.scale.is_nominal[self.pair] & (places != self.end[self.pair]), 0.0, steps)
            share = np.clip(steps @ self.way / (self.way @ self.way), 0.0, 1.0)[:, None]
            moved = np.where(
                self.scale.is_nominal,
                np.where(share >= 0.5, self.end, self.start),
                self.start + share * (self.end - self.start),
            )
            X[:, self.along] = moved[:, self.along]
        return X

    def holds(self, X: FloatArray) -> BoolArray:
        """Which points lie on the slice, (n,)."""
        if not len(X):
            return np.zeros(0, dtype=bool)
        own = self.points(X[:, self.pair])
        apart = np.where(self.scale.is_nominal, own != X, np.abs(X - own) * self.scale.per_unit)
        return np.asarray((apart <= NEAR).all(axis=1))
