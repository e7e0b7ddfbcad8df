"""What has been asked, prepared for judging points that have not: coordinates, steps, and what Gaussian processes say.

Z   points in quantile coordinates, (n, D)
S   how far points go from the factual in each direction, in units of cost, (n, p): a number has two directions, a
    category each of its codes. All entries are at least zero, so min(S_i, S_j) is what two changes have in common.
R   the same in ranks

A number goes one way or the other, so its two columns fit into one with a sign (net_S, net_R): changes are as far apart
in these, and there are half as many to look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logit, ndtr, ndtri

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search.problem import History, Problem
from acex.search.surrogate import Hyperprior, Posterior, fit, moderated, regress
from acex.space.feature import MISSING_CODE

PRIOR_FAR, PRIOR_DEPTH = -0.7, 4.0  # latent prior mean a typical distance away, and how much lower at the factual
HYPERPRIOR = Hyperprior(variance=(9.0, 0.3))  # labels have no noise, but much larger variances are too sure
SCORED = Hyperprior(variance=(4.0, 1.0))
SCORE_NOISE, SCORE_LIMIT = 0.3, 4.0  # of log odds: what is smaller than the first or beyond the second says nothing
NUMBER_NOISE = 0.1  # the same of numbers, which have no threshold of their own that a model may decide by
NUMBER_SPREAD = 2.0  # log odds that stand for a standard deviation of the numbers seen
TUNING = 30  # answers from elsewhere, besides the search's own, that variance and length scale are fitted to
HINT_CLIP = 0.03  # outcomes never make a point more certain than this
HINT_ODDS = 1.0  # log odds for the known outcomes before any evidence
MOST_ROWS = 4000  # of the reference are looked at for a hit
MOST_CODES = 256  # columns for the categories of a feature where changes are compared; more than these share columns
N_ROWS = 400  # of the reference stand for all of it where points are compared with rows


class Ground:
    """What a problem looks like before anything is asked; worked out once (`problem.once(Ground)`)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.start = problem.quantiles.ranks(problem.factual[None])  # the factual's ranks, (1, d)
        self.factual = problem.quantiles.coordinates(problem.factual[None])[0]  # (D,)
        rows = problem.reference
        if len(rows) > N_ROWS:
            rows = rows[np.random.default_rng(0).choice(len(rows), N_ROWS, replace=False)]
        self.rows = Points(self, rows)  # some of the reference
        self.typical = max(float(np.median(self.distance(self.rows.Z))), 1e-9)
        self.typical_change = max(float(np.median(self.rows.R.sum(axis=1))), 1e-9)  # in ranks
        self.row_costs = np.sort(problem.cost(problem.projected))  # of all different rows of the region
        self.typical_cost = max(float(np.median(self.row_costs)), 1e-9)
        C = np.cov(self.rows.Z.T).reshape(self.rows.Z.shape[1], -1)
        # From 0 for independent features to 1 where one component holds everything.
        self.dependence = float((C**2).sum() / max(np.trace(C) ** 2, 1e-12))

    @cached_property
    def candidates(self) -> Points:
        """The rows that may be asked: all, or a sample of them, moved into the region."""
        rows = self.problem.projected
        if len(rows) > MOST_ROWS:
            rows = rows[np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False)]
        return joined(Points(self, rows))  # their coordinates are worked out once

    @cached_property
    def hinted_rows(self) -> FloatArray:
        """P(hit) of the rows by known outcomes, ascending, (r,); none without outcomes."""
        return np.zeros(0) if self.problem.hint is None else np.sort(self.rows.hint)

    def distance(self, Z: FloatArray) -> FloatArray:
        """Distance to the factual, (n,)."""
        return self.problem.scale.metric.from_one(Z, self.factual)

    def rank(self, costs: FloatArray) -> FloatArray:
        """Which share of the rows costs less, (n,)."""
        return np.asarray(np.searchsorted(self.row_costs, costs) / len(self.row_costs))

    def distance_prior(self, Z: FloatArray, depth: float = PRIOR_DEPTH) -> FloatArray:
        """The latent prior mean by distance alone, (n,): near the factual a point is a miss."""
        return np.asarray(PRIOR_FAR - depth * (1 - np.minimum(self.distance(Z) / self.typical, 1.0)))


@dataclass(frozen=True, eq=False)
class Points:
    """Points, (n, d), with what is worked out of them at most once."""

    ground: Ground
    X: FloatArray

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, chosen: IntArray | BoolArray | slice) -> Points:
        """Some of the points, with what is known of them."""
        part = Points(self.ground, self.X[chosen])
        names = ("ranks", "Z", "S", "R", "costs", "hinted_prior", "_hint")
        part.__dict__.update({name: self.__dict__[name][chosen] for name in names if name in self.__dict__})
        return part

    @cached_property
    def ranks(self) -> FloatArray:
        return self.ground.problem.quantiles.ranks(self.X)

    @cached_property
    def Z(self) -> FloatArray:
        """In quantile coordinates, (n, D)."""
        problem = self.ground.problem
        scale, nominal = problem.scale, problem.scale.is_nominal
        if not nominal.any() and not len(scale.space.gapped):
            return self.ranks / problem.quantiles.deviations
        one_hot = scale.coordinates(self.X)[:, len(scale.numeric) :]
        return np.hstack([(self.ranks / problem.quantiles.deviations)[:, ~nominal], one_hot])

    @cached_property
    def S(self) -> FloatArray:
        """How far each goes in each direction, in units of cost, (n, p)."""
        return self._directions(self.ground.problem.cost.steps(self.X))

    @cached_property
    def R(self) -> FloatArray:
        """The same in ranks, (n, p)."""
        problem = self.ground.problem
        steps = (self.ranks - self.ground.start) / problem.quantiles.deviations
        nominal = problem.scale.is_nominal
        leaps = nominal | ((self.X == MISSING_CODE) != (problem.factual == MISSING_CODE))  # not along the ranks
        if leaps.any():
            steps = np.where(leaps, problem.scale.differences(self.X, problem.factual), steps)
        return self._directions(steps)

    @cached_property
    def net_S(self) -> FloatArray:
        return self._net(self.S)

    @cached_property
    def net_R(self) -> FloatArray:
        return self._net(self.R)

    def _net(self, by_direction: FloatArray) -> FloatArray:
        up, down, codes = np.split(by_direction, np.array([1, 2]) * len(self.ground.problem.scale.numeric), axis=1)
        return np.hstack([up - down, codes])

    @cached_property
    def costs(self) -> FloatArray:
        return self.ground.problem.cost(self.X)

    @cached_property
    def _hint(self) -> FloatArray:
        assert self.ground.problem.hint is not None
        return self.ground.problem.hint(self.X) if len(self.X) else np.zeros(0)

    @property
    def hint(self) -> FloatArray:
        """P(hit) by known outcomes, (n,)."""
        return self._hint

    @cached_property
    def hinted_prior(self) -> FloatArray:
        """The latent prior mean that known outcomes suggest, (n,)."""
        prior: FloatArray = logit(np.clip(self.hint, HINT_CLIP, 1 - HINT_CLIP))
        return prior

    def _directions(self, steps: FloatArray) -> FloatArray:
        scale = self.ground.problem.scale
        numbers = steps[:, scale.numeric]
        blocks = [np.maximum(numbers, 0.0), np.maximum(-numbers, 0.0)]
        for j in np.flatnonzero(scale.is_nominal):
            buckets = min(scale.space.n_codes[j], MOST_CODES)
            codes = self.X[:, j, None] % buckets == np.arange(buckets)
            blocks.append(codes * np.abs(steps[:, j, None]))
        return np.hstack(blocks)


def joined(*parts: Points) -> Points:
    """All of these points, with the coordinates and costs of each."""
    whole = Points(parts[0].ground, np.vstack([part.X for part in parts]))
    for name in ("ranks", "Z", "costs"):
        whole.__dict__[name] = np.concatenate([getattr(part, name) for part in parts])
    return whole


def in_common(S: FloatArray, T: FloatArray) -> FloatArray:
    """What changes have in common, (n, m): the sum over all directions of the smaller step.

    min(a, b) = (a + b - |a - b|) / 2. Of net changes the same.
    """
    if len(T) == 0:
        return np.zeros((len(S), 0))
    return np.asarray((np.abs(S).sum(axis=1)[:, None] + np.abs(T).sum(axis=1) - cdist(S, T, "cityblock")) / 2)


def unit_of(beyond: FloatArray) -> float:
    """What counts as log odds of 1 where numbers lie so far beyond the near end of the range, (n,), the factual first.

    Numbers are compared with those seen so far: their spread, and how far the factual is off.
    """
    spread = max(float(beyond.std()), abs(float(beyond[0])) / 2)
    return spread / NUMBER_SPREAD if spread > 0 else 1.0


def one_sided(mean: FloatArray, variance: FloatArray, width: float) -> FloatArray:
    """The means, (n,), for which P(f > 0) would be what P(0 < f < width) is."""
    deviation = np.sqrt(variance + 1e-12)
    inside = ndtr((width - mean) / deviation) - ndtr(-mean / deviation)
    return np.asarray(deviation * ndtri(np.clip(inside, 1e-12, 1 - 1e-12)))


class Evidence:
    """The search's own queries and what is known from elsewhere, as one: the factual first, then own, then known.

    Args:
        success: which own queries were hits as wanted, (n,): plausible, different from what was found before.
    """

    def __init__(self, problem: Problem, history: History, success: BoolArray) -> None:
        self.problem, self.history = problem, history
        self.ground = problem.once(Ground)
        X, self.hits, odds = history.X, history.is_hit, history.odds
        if history.known is not None:
            X, self.hits = np.vstack([X, history.known.X]), np.append(self.hits, history.known.is_hit)
            odds = (*odds, *history.known.odds)
        self.points = Points(self.ground, X)
        self.believed = self._believed()
        self.is_miss = ~self.hits  # the factual aside, which is one of its own kind
        self.is_miss[0] = False
        self.is_scored = len(odds) == len(X)
        self.width, self.noise = np.inf, SCORE_NOISE  # of the range of odds that are hits; of each
        if self.is_scored and problem.width is not None:
            unit = unit_of(np.array(odds))
            odds, self.width, self.noise = tuple(np.array(odds) / unit), problem.width / unit, NUMBER_NOISE
        self.odds = np.clip(odds, -SCORE_LIMIT, SCORE_LIMIT + self.width) if self.is_scored else np.zeros(0)
        # The first query is the factual.
        self.depth = max(PRIOR_FAR - float(self.odds[0]), 0.0) if self.is_scored else PRIOR_DEPTH
        found = np.flatnonzero(success)
        self.best = int(found[self.points.costs[found].argmin()]) if len(found) else None  # where the best hit is

    @cached_property
    def by_distance(self) -> Posterior:
        """What the evidence says where nothing but the distance to the factual is known before."""
        return self._fit(self.ground.distance_prior(self.points.Z, self.depth))

    @cached_property
    def by_hint(self) -> Posterior | None:
        """What it says where known outcomes count as well; None where there are none."""
        return None if self.problem.hint is None else self._fit(self.points.hinted_prior)

    @cached_property
    def for_hint(self) -> float:
        """Log odds for the known outcomes in the light of the evidence; 0 without any."""
        if self.by_hint is None:
            return 0.0
        return self.by_hint.log_marginal_likelihood - self.by_distance.log_marginal_likelihood + HINT_ODDS

    def _fit(self, prior: FloatArray) -> Posterior:
        common: Any = {
            "prior_mean": prior,
            "typical": float(np.sqrt(len(self.problem.factual))),
            "n_tuning": len(self.history.queries) + TUNING,
            "metric": self.problem.scale.metric,
        }
        if self.is_scored:
            return regress(self.points.Z, self.odds, noise=self.noise, hyperprior=SCORED, **common)
        return fit(self.points.Z, self.believed, hyperprior=HYPERPRIOR, **common)

    def _believed(self) -> FloatArray:
        """P(hit) of the evidence itself, (n,): 0 or 1, unless answers may be wrong."""
        told, noise = self.hits.astype(float), self.history.noise
        if noise:
            told = noise + (1 - 2 * noise) * told
            told[: len(self.history.certainty)] = self.history.certainty
        return told

    def latent(
        self, points: Points, *, hinted: bool, squared: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the latent function, above zero for a hit, (n,) each; see `Posterior.latent`."""
        if hinted and self.by_hint is not None:
            mean, variance = self.by_hint.latent(points.Z, points.hinted_prior, squared)
        else:
            prior = self.ground.distance_prior(points.Z, self.depth)
            mean, variance = self.by_distance.latent(points.Z, prior, squared)
        return (mean if self.width == np.inf else one_sided(mean, variance, self.width)), variance

    def squared(self, points: Points) -> FloatArray:
        """Squared distances of points from the evidence, (n, e)."""
        return self.problem.scale.metric.squared(points.Z, self.points.Z)

    def by_posterior(self, points: Points) -> FloatArray:
        """P(hit) by the Gaussian process alone, with the prior that the evidence prefers, (n,)."""
        hinted = self.for_hint > 0
        if self.is_scored:
            mean, variance = self.latent(points, hinted=hinted)
            return np.asarray(ndtr(mean / np.sqrt(variance + 1e-12)))
        return moderated(*self.latent(points, hinted=hinted))
