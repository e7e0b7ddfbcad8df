"""What has been asked, prepared for judging points that have not: coordinates, steps, and what Gaussian processes say.

    Z   points in quantile coordinates, (n, D)
    S   how far points go from the factual in each direction, in units of cost, (n, p): a number has two directions, a
        category each of its codes. All entries are at least zero, so min(S_i, S_j) is what two changes have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logit

from acex.arrays import BoolArray, FloatArray
from acex.search.problem import History, Problem
from acex.search.surrogate import Hyperprior, Posterior, fit, regress

PRIOR_FAR, PRIOR_DEPTH = -0.7, 4.0  # latent prior mean a typical distance away, and how much lower at the factual
HYPERPRIOR = Hyperprior(variance=(9.0, 0.3))  # labels have no noise, but much larger variances are too sure
SCORED = Hyperprior(variance=(4.0, 1.0))
SCORE_NOISE, SCORE_LIMIT = 0.3, 4.0  # of log odds: what is smaller than the first or beyond the second says nothing
TUNING = 30  # answers from elsewhere, besides the search's own, that variance and length scale are fitted to
HINT_CLIP = 0.03  # outcomes never make a point more certain than this
HINT_ODDS = 1.0  # log odds for the known outcomes before any evidence
N_ROWS = 400  # of the reference stand for all of it where points are compared with rows


@dataclass(frozen=True, eq=False)
class Ground:
    """What a problem looks like before anything is asked; worked out once."""

    problem: Problem
    factual: FloatArray  # in quantile coordinates, (D,)
    typical: float  # distance of the reference from it, the median
    rows: FloatArray  # some of the reference, (r, d)
    Z_rows: FloatArray
    row_costs: FloatArray  # of all different rows of the region, ascending
    dependence: float  # from 0 for independent features to 1 where one component holds everything

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, problem: Problem) -> Ground:
        """The ground of a problem; the same object each time."""
        rows = problem.reference
        if len(rows) > N_ROWS:
            rows = rows[np.random.default_rng(0).choice(len(rows), N_ROWS, replace=False)]
        factual = problem.quantiles.coordinates(problem.factual[None])[0]
        Z = problem.quantiles.coordinates(rows)
        typical = max(float(np.median(np.linalg.norm(Z - factual, axis=1))), 1e-9)
        C = np.cov(Z.T).reshape(Z.shape[1], -1)
        concentration = float((C**2).sum() / max(np.trace(C) ** 2, 1e-12))
        return cls(problem, factual, typical, rows, Z, np.sort(problem.cost(problem.projected)), concentration)

    def distance(self, Z: FloatArray) -> FloatArray:
        """Distance to the factual, (n,)."""
        return np.asarray(np.linalg.norm(Z - self.factual, axis=1))

    @cached_property
    def typical_cost(self) -> float:
        """Of the rows, the median."""
        return max(float(np.median(self.row_costs)), 1e-9)

    @cached_property
    def hinted_rows(self) -> FloatArray:
        """P(hit) of the rows by known outcomes, ascending, (r,); none without outcomes."""
        hint = self.problem.hint
        return np.zeros(0) if hint is None else np.sort(hint(self.rows))

    def directions(self, X: FloatArray) -> FloatArray:
        """S of points, (n, p)."""
        return _directions(self.problem, X, self.problem.cost.steps(X))

    def rank_directions(self, X: FloatArray) -> FloatArray:
        """The same in quantiles instead of units of cost, (n, p)."""
        q = self.problem.quantiles
        steps = (q.ranks(X) - q.ranks(self.problem.factual[None])) / q.deviations
        nominal = self.problem.scale.is_nominal
        if nominal.any():
            steps = np.where(nominal, self.problem.scale.differences(X, self.problem.factual), steps)
        return _directions(self.problem, X, steps)

    def distance_prior(self, Z: FloatArray, depth: float = PRIOR_DEPTH) -> FloatArray:
        """The latent prior mean by distance alone, (n,): near the factual a point is a miss."""
        return np.asarray(PRIOR_FAR - depth * (1 - np.minimum(self.distance(Z) / self.typical, 1.0)))

    def hinted_prior(self, X: FloatArray) -> FloatArray:
        """The latent prior mean that known outcomes suggest, (n,)."""
        assert self.problem.hint is not None
        prior: FloatArray = logit(np.clip(self.problem.hint(X), HINT_CLIP, 1 - HINT_CLIP))
        return prior


def _directions(problem: Problem, X: FloatArray, steps: FloatArray) -> FloatArray:
    scale = problem.scale
    numbers = steps[:, scale.numeric]
    blocks = [np.maximum(numbers, 0.0), np.maximum(-numbers, 0.0)]
    for j in np.flatnonzero(scale.is_nominal):
        codes = X[:, j, None] == np.arange(scale.n_codes[j])
        blocks.append(codes * np.abs(steps[:, j, None]))
    return np.hstack(blocks)


def in_common(S: FloatArray, T: FloatArray) -> FloatArray:
    """What changes have in common, (n, m): the sum over all directions of the smaller step.

    min(a, b) = (a + b - |a - b|) / 2.
    """
    if len(T) == 0:
        return np.zeros((len(S), 0))
    return np.asarray((S.sum(axis=1)[:, None] + T.sum(axis=1) - cdist(S, T, "cityblock")) / 2)


class Evidence:
    """The search's own queries and what is known from elsewhere, as one: the factual first, then own, then known."""

    def __init__(self, problem: Problem, history: History) -> None:
        self.problem, self.history, self.ground = problem, history, Ground.of(problem)
        self.X, self.hits, odds = history.X, history.is_hit, history.odds
        if history.known is not None:
            self.X, self.hits = np.vstack([self.X, history.known.X]), np.append(self.hits, history.known.is_hit)
            odds = (*odds, *history.known.odds)
        self.is_scored = len(odds) == len(self.X)
        self.odds = np.clip(odds, -SCORE_LIMIT, SCORE_LIMIT) if self.is_scored else np.zeros(0)
        # The first query is the factual.
        self.depth = max(PRIOR_FAR - float(self.odds[0]), 0.0) if self.is_scored else PRIOR_DEPTH
        self.Z = problem.quantiles.coordinates(self.X)

    @cached_property
    def by_distance(self) -> Posterior:
        """What the evidence says where nothing but the distance to the factual is known before."""
        return self._fit(self.ground.distance_prior(self.Z, self.depth))

    @cached_property
    def by_hint(self) -> Posterior | None:
        """What it says where known outcomes count as well; None where there are none."""
        return None if self.problem.hint is None else self._fit(self.ground.hinted_prior(self.X))

    @cached_property
    def for_hint(self) -> float:
        """Log odds for the known outcomes in the light of the evidence; 0 without any."""
        if self.by_hint is None:
            return 0.0
        return self.by_hint.log_marginal_likelihood - self.by_distance.log_marginal_likelihood + HINT_ODDS

    def _fit(self, prior: FloatArray) -> Posterior:
        typical, n = np.sqrt(len(self.problem.factual)), len(self.history.queries) + TUNING
        if self.is_scored:
            return regress(
                self.Z, self.odds, noise=SCORE_NOISE, prior_mean=prior, typical=typical, hyperprior=SCORED, n_tuning=n
            )
        t = self.hits.astype(float)
        return fit(self.Z, t, prior_mean=prior, typical=typical, hyperprior=HYPERPRIOR, n_tuning=n)

    def latent(self, X: FloatArray, Z: FloatArray, *, hinted: bool) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the latent function, (n,) each."""
        if hinted and self.by_hint is not None:
            return self.by_hint.latent(Z, self.ground.hinted_prior(X))
        return self.by_distance.latent(Z, self.ground.distance_prior(Z, self.depth))

    def by_posterior(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """P(hit) by the Gaussian process alone, with the prior that the evidence prefers, (n,)."""
        posterior, prior = self.by_distance, None
        if self.for_hint > 0 and self.by_hint is not None:
            posterior, prior = self.by_hint, self.ground.hinted_prior(X)
        if prior is None:
            prior = self.ground.distance_prior(Z, self.depth)
        return posterior.positive(Z, prior) if self.is_scored else posterior.probability(Z, prior)

    # -- what `traits` needs of all evidence, worked out once an ask -------------------------------------------

    @cached_property
    def S(self) -> FloatArray:
        return self.ground.directions(self.X)

    @cached_property
    def R(self) -> FloatArray:
        """As S, in quantiles."""
        return self.ground.rank_directions(self.X)

    @cached_property
    def costs(self) -> FloatArray:
        return self.problem.cost(self.X)

    @cached_property
    def is_miss(self) -> BoolArray:
        """Which points are misses, the factual aside, (n,)."""
        miss: BoolArray = ~self.hits
        miss = miss.copy()
        miss[0] = False
        return miss
