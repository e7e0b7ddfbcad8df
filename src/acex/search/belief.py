"""P(hit) as strategy "feasible" believes it.

A Gaussian process in quantile coordinates, with a prior mean that knows where the factual is: near it a point is a
miss. Known outcomes of the reference (`Problem.hint`) give another prior mean; the evidence decides between the two by
marginal likelihood. Misses close by, relative to the distance to the factual, count against a point once more.
Labels go through a classifier; where the model gives scores, their log odds are the latent function itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit

from acex.arrays import FloatArray
from acex.search.problem import Hint, History, Problem
from acex.search.surrogate import Hyperprior, Posterior, fit, regress
from acex.space.metric import Metric

PRIOR_FAR, PRIOR_DEPTH = -0.7, 4.0  # latent prior mean a typical distance away, and how much lower at the factual
HYPERPRIOR = Hyperprior(variance=(9.0, 0.3))  # labels have no noise, but much larger variances are too sure
SCORED = Hyperprior(variance=(4.0, 1.0))
SCORE_NOISE, SCORE_LIMIT = 0.3, 4.0  # of log odds: what is smaller than the first or beyond the second says nothing
PART_OF_MISS = 0.1  # P(hit) of a point that changes less, in every feature, than a known miss
REPULSION = 0.5  # reach of a miss, as a share of the distance to the factual
TUNING = 30  # answers from elsewhere, besides the search's own, that variance and length scale are fitted to
HINT_CLIP = 0.03  # outcomes never make a point more certain than this
HINT_ODDS = 1.0  # log odds for the known outcomes before any evidence
NEARBY, NEIGHBOURS = 0.1, 16  # a neighbourhood: deviation in every number, in standard deviations, and how many points


class Belief:
    """What the evidence says about points that were not asked."""

    def __init__(self, problem: Problem, history: History) -> None:
        self.problem, self.ground = problem, problem.once(_Ground.of)
        X, self.hits, odds = history.X, history.is_hit, history.odds
        if history.known is not None:
            X, self.hits = np.vstack([X, history.known.X]), np.append(self.hits, history.known.is_hit)
            odds = (*odds, *history.known.odds)
        self.n_tuning = len(history.queries) + TUNING  # what is known from elsewhere comes nearest first
        self.is_scored = len(odds) == len(X)
        self.depth = PRIOR_DEPTH
        if self.is_scored:
            self.odds = np.clip(odds, -SCORE_LIMIT, SCORE_LIMIT)
            self.depth = max(PRIOR_FAR - float(self.odds[0]), 0.0)  # the first query is the factual
        Z = problem.quantiles.coordinates(X)
        self.misses, self.missed = X[~self.hits], Z[~self.hits]
        self.hinted = False
        self.posterior = self._fit(Z, self._distance_prior(Z))
        if problem.hint is not None:
            hinted = self._fit(Z, _hinted_prior(problem.hint, X))
            self.hinted = hinted.log_marginal_likelihood + HINT_ODDS > self.posterior.log_marginal_likelihood
            self.posterior = hinted if self.hinted else self.posterior

    def _fit(self, Z: FloatArray, prior: FloatArray) -> Posterior:
        typical = float(np.sqrt(len(self.problem.factual)))
        common: Any = {"prior_mean": prior, "typical": typical, "n_tuning": self.n_tuning, "metric": self.ground.metric}
        if self.is_scored:
            return regress(Z, self.odds, noise=SCORE_NOISE, hyperprior=SCORED, **common)
        return fit(Z, self.hits.astype(float), hyperprior=HYPERPRIOR, **common)

    def probability(self, X: FloatArray) -> FloatArray:
        """P(hit) of points to ask, (n,)."""
        Z = self.problem.quantiles.coordinates(X)
        reach = REPULSION * self.ground.distance(Z) + 1e-9
        nearest_miss = np.sqrt(self.ground.metric.squared(Z, self.missed).min(axis=1))
        apart: FloatArray = -np.expm1(-((nearest_miss / reach) ** 2))
        part = self.problem.is_part_of(X, self.misses)
        return self._by_posterior(X, Z) * apart * np.where(part, PART_OF_MISS, 1.0)

    def steadiness(self, X: FloatArray) -> FloatArray:
        """Mean P(hit) in a small neighbourhood of points, (n,), by the surrogate alone."""
        if len(X) == 0:  # a forest of known outcomes refuses to be asked about nothing
            return np.zeros(0)
        near = (X[:, None] + self._cloud).reshape(-1, X.shape[1])
        near = self.problem.region.space.snap(near)
        probability = self._by_posterior(near, self.problem.quantiles.coordinates(near))
        return np.asarray(probability.reshape(len(X), -1).mean(axis=1))

    @cached_property
    def _cloud(self) -> FloatArray:
        """Steps to neighbours, (NEIGHBOURS, d); the same each time."""
        scale = self.problem.scale
        steps = np.random.default_rng(0).normal(size=(NEIGHBOURS, len(scale.deviations)))
        cloud: FloatArray = steps * NEARBY * np.where(scale.is_nominal, 0.0, scale.deviations)
        return cloud

    def _by_posterior(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        hint = self.problem.hint
        prior = _hinted_prior(hint, X) if self.hinted and hint is not None else self._distance_prior(Z)
        return self.posterior.positive(Z, prior) if self.is_scored else self.posterior.probability(Z, prior)

    def _distance_prior(self, Z: FloatArray) -> FloatArray:
        """The latent prior mean by distance alone, (n,): near the factual a point is a miss."""
        nearness = 1 - np.minimum(self.ground.distance(Z) / self.ground.typical_distance, 1.0)
        return PRIOR_FAR - self.depth * nearness


def _hinted_prior(hint: Hint, X: FloatArray) -> FloatArray:
    """The latent prior mean that known outcomes suggest, (n,)."""
    prior: FloatArray = logit(np.clip(hint(X), HINT_CLIP, 1 - HINT_CLIP))
    return prior


@dataclass(frozen=True, eq=False)
class _Ground:
    """What a problem looks like before anything is asked; worked out once."""

    factual: FloatArray  # in quantile coordinates, (D,)
    typical_distance: float  # of the reference from it
    metric: Metric

    @classmethod
    def of(cls, problem: Problem) -> _Ground:
        factual = problem.quantiles.coordinates(problem.factual[None])[0]
        metric = problem.scale.metric
        distances = metric.from_one(problem.quantiles.coordinates(problem.reference), factual)
        return cls(factual, max(float(np.median(distances)), 1e-9), metric)

    def distance(self, Z: FloatArray) -> FloatArray:
        """Distance to the factual, (n,)."""
        return self.metric.from_one(Z, self.factual)
