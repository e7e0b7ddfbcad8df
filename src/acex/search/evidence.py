"""The evidence of a search: coordinates and steps of points, and the posteriors of Gaussian processes.

    Z   points in quantile coordinates, (n, D)
    S   steps from the factual in each direction, in units of cost, (n, p): a number has two directions, a category one
        per code. All entries are at least zero, so min(S_i, S_j) is what two changes have in common.
    R   the same in ranks

A number moves in one direction only, so its two columns can be replaced by one with a sign (net_S, net_R). The
distances are the same with half as many columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logit, ndtr, ndtri

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search.problem import History, Problem, keys
from acex.search.surrogate import Hyperprior, Posterior, fit, moderated, regress
from acex.space.feature import MISSING_CODE

PRIOR_FAR, PRIOR_DEPTH = -0.7, 4.0  # latent prior mean a typical distance away, and how much lower at the factual
HYPERPRIOR = Hyperprior(variance=(9.0, 0.3))  # labels have no noise, but much larger variances are overconfident
SCORED = Hyperprior(variance=(4.0, 1.0))
SCORE_NOISE, SCORE_LIMIT = 0.3, 4.0  # of log odds: deviation of each, and where they are clipped
NUMBER_NOISE = 0.1  # the same for numeric answers, which have no decision threshold of their own
NUMBER_SPREAD = 2.0  # log odds that one standard deviation of the numbers seen counts for
TUNING = 30  # answers of other searches, in addition to its own, that variance and length scale are fitted to
MAX_OWN = 80  # queries of its own that a search learns from
HINT_CLIP = 0.03  # the P(hit) of known outcomes is clipped to [0.03, 0.97]
HINT_ODDS = 1.0  # prior log odds that the known outcomes are right
MAX_ROWS = 4000  # largest number of reference rows that are candidates
MAX_CODES = 256  # columns per feature for comparing changes; more categories than this share columns
N_ROWS = 400  # number of reference rows that points are compared with


class SearchContext:
    """What depends on the problem but not on the answers; use `problem.cached(SearchContext)`."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.start = problem.quantiles.ranks(problem.factual[None])  # the factual's ranks, (1, d)
        self.factual = problem.quantiles.coordinates(problem.factual[None])[0]  # (D,)
        rows = problem.reference
        if len(rows) > N_ROWS:
            rows = rows[np.random.default_rng(0).choice(len(rows), N_ROWS, replace=False)]
        self.rows = Points(self, rows)  # a sample of the reference
        self.typical = max(float(np.median(self.distance(self.rows.Z))), 1e-9)
        self.typical_change = max(float(np.median(self.rows.R.sum(axis=1))), 1e-9)  # in ranks
        self.row_costs = np.sort(problem.cost(problem.projected))  # of all different rows in the region
        self.typical_cost = max(float(np.median(self.row_costs)), 1e-9)
        C = np.cov(self.rows.Z.T).reshape(self.rows.Z.shape[1], -1)
        # From 0 for independent features to 1 if one component has all the variance.
        self.dependence = float((C**2).sum() / max(np.trace(C) ** 2, 1e-12))

    @cached_property
    def candidates(self) -> Points:
        """The reference rows moved into the region, or a sample of them: candidates for a query."""
        rows = self.problem.projected
        if len(rows) > MAX_ROWS:
            rows = rows[np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False)]
        return joined(Points(self, rows))  # computes their coordinates once

    @cached_property
    def candidate_keys(self) -> frozenset[bytes]:
        """The keys of the candidates."""
        return frozenset(keys(self.candidates.X))

    @cached_property
    def hinted_rows(self) -> FloatArray:
        """P(hit) of the rows by known outcomes, ascending, (r,); empty without outcomes."""
        return np.zeros(0) if self.problem.hint is None else np.sort(self.rows.hint)

    def distance(self, Z: FloatArray) -> FloatArray:
        """Distance to the factual, (n,)."""
        return self.problem.scale.metric.from_one(Z, self.factual)

    def rank(self, costs: FloatArray) -> FloatArray:
        """Share of the rows that cost less, (n,)."""
        return np.asarray(np.searchsorted(self.row_costs, costs) / len(self.row_costs))

    def distance_prior(self, Z: FloatArray, depth: float = PRIOR_DEPTH) -> FloatArray:
        """The latent prior mean by distance alone, (n,): points near the factual are misses."""
        return np.asarray(PRIOR_FAR - depth * (1 - np.minimum(self.distance(Z) / self.typical, 1.0)))


@dataclass(frozen=True, eq=False)
class Points:
    """Points, (n, d), with derived arrays that are computed at most once."""

    context: SearchContext
    X: FloatArray

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, chosen: IntArray | BoolArray | slice) -> Points:
        """Some of the points, with the arrays computed so far."""
        part = Points(self.context, self.X[chosen])
        names = ("ranks", "Z", "S", "R", "costs", "hinted_prior", "hint")
        part.__dict__.update({name: self.__dict__[name][chosen] for name in names if name in self.__dict__})
        return part

    @cached_property
    def ranks(self) -> FloatArray:
        return self.context.problem.quantiles.ranks(self.X)

    @cached_property
    def Z(self) -> FloatArray:
        """In quantile coordinates, (n, D)."""
        problem = self.context.problem
        scale, nominal = problem.scale, problem.scale.is_nominal
        if not nominal.any() and not len(scale.space.gapped):
            return self.ranks / problem.quantiles.deviations
        one_hot = scale.coordinates(self.X)[:, len(scale.numeric) :]
        return np.hstack([(self.ranks / problem.quantiles.deviations)[:, ~nominal], one_hot])

    @cached_property
    def S(self) -> FloatArray:
        """Steps in each direction, in units of cost, (n, p)."""
        return self._directions(self.context.problem.cost.steps(self.X))

    @cached_property
    def R(self) -> FloatArray:
        """The same in ranks, (n, p)."""
        problem = self.context.problem
        steps = (self.ranks - self.context.start) / problem.quantiles.deviations
        nominal = problem.scale.is_nominal
        leaps = nominal | ((self.X == MISSING_CODE) != (problem.factual == MISSING_CODE))  # these steps have no rank
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
        up, down, codes = np.split(by_direction, np.array([1, 2]) * len(self.context.problem.scale.numeric), axis=1)
        return np.hstack([up - down, codes])

    @cached_property
    def costs(self) -> FloatArray:
        return self.context.problem.cost(self.X)

    @property
    def is_row(self) -> BoolArray:
        """Which points are reference rows moved into the region, (n,)."""
        return np.array([k in self.context.candidate_keys for k in keys(self.X)], dtype=bool)

    @cached_property
    def hint(self) -> FloatArray:
        """P(hit) by known outcomes, (n,)."""
        assert self.context.problem.hint is not None
        return self.context.problem.hint(self.X) if len(self.X) else np.zeros(0)

    @cached_property
    def hinted_prior(self) -> FloatArray:
        """The latent prior mean by known outcomes, (n,)."""
        prior: FloatArray = logit(np.clip(self.hint, HINT_CLIP, 1 - HINT_CLIP))
        return prior

    def _directions(self, steps: FloatArray) -> FloatArray:
        scale = self.context.problem.scale
        numbers = steps[:, scale.numeric]
        blocks = [np.maximum(numbers, 0.0), np.maximum(-numbers, 0.0)]
        for j in np.flatnonzero(scale.is_nominal):
            buckets = min(scale.space.n_codes[j], MAX_CODES)
            codes = self.X[:, j, None] % buckets == np.arange(buckets)
            blocks.append(codes * np.abs(steps[:, j, None]))
        return np.hstack(blocks)


def joined(*parts: Points) -> Points:
    """All of these points, with the coordinates and costs of each."""
    whole = Points(parts[0].context, np.vstack([part.X for part in parts]))
    for name in ("ranks", "Z", "costs"):
        whole.__dict__[name] = np.concatenate([getattr(part, name) for part in parts])
    return whole


def in_common(S: FloatArray, T: FloatArray) -> FloatArray:
    """What changes have in common, (n, m): the sum over all directions of the smaller step.

    min(a, b) = (a + b - |a - b|) / 2, which also holds for the net columns.
    """
    return np.asarray((np.abs(S).sum(axis=1)[:, None] + np.abs(T).sum(axis=1) - cdist(S, T, "cityblock")) / 2)


def unit_of(beyond: FloatArray) -> float:
    """The difference of numeric answers that counts as log odds of 1.

    Args:
        beyond: how far each answer lies beyond the near end of the target range, (n,), the factual's first.
    """
    spread = max(float(beyond.std()), abs(float(beyond[0])) / 2)
    return spread / NUMBER_SPREAD if spread > 0 else 1.0


def one_sided(mean: FloatArray, variance: FloatArray, width: float) -> FloatArray:
    """The means, (n,), for which P(f > 0) equals P(0 < f < width) at the given means."""
    deviation = np.sqrt(variance + 1e-12)
    inside = ndtr((width - mean) / deviation) - ndtr(-mean / deviation)
    return np.asarray(deviation * ndtri(np.clip(inside, 1e-12, 1 - 1e-12)))


def _informative(problem: Problem, history: History, success: BoolArray) -> tuple[History, BoolArray]:
    """The history, and which of its queries are successes; of a long one, `MAX_OWN` queries.

    The time of a query grows with the square of the evidence. Kept are the factual, the latest queries, the cheapest
    successes, and the cheapest of the others: candidates are cheaper than the best hit.
    """
    n = len(history.queries)
    if n <= MAX_OWN:
        return history, success
    cheapest = np.flatnonzero(success)[np.argsort(problem.cost(history.X[success]), kind="stable")]
    order = problem.cost(history.X)
    order[[0, *range(n - MAX_OWN // 2, n), *cheapest[: MAX_OWN // 4]]] = -1.0  # before all costs
    chosen = np.sort(np.argsort(order, kind="stable")[:MAX_OWN])
    return history.only(chosen), success[chosen]


class Evidence:
    """All answers: the factual first, then the search's own queries, then answers of other searches.

    Of a long search only the most informative queries count (see `_informative`).

    Args:
        success: which own queries are hits that count, (n,): plausible, and different from earlier counterfactuals.
    """

    def __init__(self, problem: Problem, history: History, success: BoolArray) -> None:
        history, success = history.cached(
            (problem, "evidence", success.tobytes()), lambda: _informative(problem, history, success)
        )
        self.problem, self.history = problem, history
        self.context = problem.cached(SearchContext)
        X, self.hits, odds = history.X, history.is_hit, history.odds
        if history.known is not None:
            X, self.hits = np.vstack([X, history.known.X]), np.append(self.hits, history.known.is_hit)
            odds = (*odds, *history.known.odds)
        self.points = Points(self.context, X)
        self.labels = self._labels()
        self.is_miss = ~self.hits  # without the factual, which is treated on its own
        self.is_miss[0] = False
        self.is_scored = len(odds) == len(X)
        self.width, self.noise = np.inf, SCORE_NOISE  # width of the range of odds that are hits; deviation of each
        if self.is_scored and problem.width is not None:
            unit = unit_of(np.array(odds))
            odds, self.width, self.noise = tuple(np.array(odds) / unit), problem.width / unit, NUMBER_NOISE
        self.odds = np.clip(odds, -SCORE_LIMIT, SCORE_LIMIT + self.width) if self.is_scored else np.zeros(0)
        # The first entry is the factual.
        self.depth = max(PRIOR_FAR - float(self.odds[0]), 0.0) if self.is_scored else PRIOR_DEPTH
        found = np.flatnonzero(success)
        self.best = int(found[self.points.costs[found].argmin()]) if len(found) else None  # position of the best hit

    @cached_property
    def by_distance(self) -> Posterior:
        """The posterior with a prior mean by the distance to the factual."""
        prior = self.context.distance_prior
        return self.history.cached((self.problem, "by_distance"), lambda: self._fit(prior(self.points.Z, self.depth)))

    @cached_property
    def by_hint(self) -> Posterior | None:
        """The posterior with a prior mean by known outcomes; None without outcomes."""
        if self.problem.hint is None:
            return None
        return self.history.cached((self.problem, "by_hint"), lambda: self._fit(self.points.hinted_prior))

    @cached_property
    def for_hint(self) -> float:
        """Log odds that the known outcomes are right, given the evidence; 0 without outcomes."""
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
        return fit(self.points.Z, self.labels, hyperprior=HYPERPRIOR, **common)

    def _labels(self) -> FloatArray:
        """P(hit) of the evidence itself, (n,): 0 or 1, unless answers may be wrong."""
        labels, noise = self.hits.astype(float), self.history.noise
        if noise:
            labels = noise + (1 - 2 * noise) * labels
            labels[: len(self.history.certainty)] = self.history.certainty
        return labels

    def latent(
        self, points: Points, *, hinted: bool, squared: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the latent function, positive for hits, (n,) each; see `Posterior.latent`."""
        if hinted and self.by_hint is not None:
            mean, variance = self.by_hint.latent(points.Z, points.hinted_prior, squared)
        else:
            prior = self.context.distance_prior(points.Z, self.depth)
            mean, variance = self.by_distance.latent(points.Z, prior, squared)
        return (mean if self.width == np.inf else one_sided(mean, variance, self.width)), variance

    def squared(self, points: Points) -> FloatArray:
        """Squared distances between points and evidence, (n, e)."""
        return self.problem.scale.metric.squared(points.Z, self.points.Z)

    @cached_property
    def of_rows(self) -> FloatArray:
        """P(hit) of the context's rows by the Gaussian process alone, (r,)."""
        return self.by_posterior(self.context.rows)

    def by_posterior(self, points: Points) -> FloatArray:
        """P(hit) by the Gaussian process alone, with the prior that fits the evidence better, (n,)."""
        hinted = self.for_hint > 0
        if self.is_scored:
            mean, variance = self.latent(points, hinted=hinted)
            return np.asarray(ndtr(mean / np.sqrt(variance + 1e-12)))
        return moderated(*self.latent(points, hinted=hinted))
