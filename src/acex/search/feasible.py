"""Strategy "feasible": the cost of a point is known before it is asked; only whether it is a hit is not.

    J(x)       cost of a point; J_best is the least cost of a hit so far
    p(x)       P(hit | x), a `Belief` that was learned on simulated searches
    gain(x) =  (J_best - J(x))+ p(x), the expected saving of asking x

1. *Before the first hit* there is no cost to save. Candidates are reference rows moved into the region, points that
   known outcomes suggest, and after some misses points from anywhere in the region; if all of them are unlikely, points
   near its edges. The point of least log J + patience / p is asked, so a likely hit may cost more. Patience grows with
   every miss.
2. *After it* the candidate of largest gain is asked: simpler versions and variations of the best hits, the best hit
   with groups of its changes reverted (see `candidates`, with a P(hit) of their own), moves towards reference rows, and
   rows themselves, because the first hit may have been a bad one to start from.
3. The search has *settled* when ten more queries are unlikely to save 5% (see `stopping`).
4. *Last*, changes that were not checked yet are reverted one by one (see `reverts`). Unless the whole budget is to be
   spent, the search asks no cheaper point whose changes could not be checked any more.

With a `margin`, a hit counts only if the surrogate predicts hits in its neighbourhood too.
A search for several counterfactuals has one round for each: the same steps, with all evidence so far, among points that
are different (see `Problem`) from what earlier rounds have found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, logit

from acex.arrays import BoolArray, FloatArray, unique_rows
from acex.search.belief import Belief
from acex.search.candidates import (
    beyond_hits,
    enumerate_region,
    from_hits,
    from_reference,
    random_points,
    reverted_groups,
    simplified,
)
from acex.search.evidence import Points, SearchContext, in_common, joined
from acex.search.maximise import best_position
from acex.search.problem import History, Problem, Query, Stop
from acex.search.reverts import Reverts
from acex.search.stopping import Forecast
from acex.search.strategy import Strategy, best_counterfactuals
from acex.space.cost import n_changed
from acex.values import is_finite

PATIENCE, PATIENCE_GROWTH = 0.45, 1.08  # weight of 1 / p against log cost for a first hit, and its growth per miss
N_DRAWN = 16  # number of points drawn near the edges, of which one admissible point is asked
ANYWHERE_FROM = 8  # number of misses after which points outside the reference are candidates too
HOPELESS = 0.05  # if no P(hit) exceeds this, every second query is a point near the edges of the region
N_TOWARDS, N_VARIED, N_ANYWHERE = 600, 1200, 400  # candidates: moves towards rows, variations of hits, points anywhere
N_PARENTS, N_HINTED = 5, 2  # best hits that are varied, and hits that known outcomes suggest
N_JUDGED, N_RANDOM = 300, 80  # candidates that the network evaluates: best by the Gaussian process, and random ones
GROUP_WEIGHT = 0.7  # weight of the log odds by group testing; the rest is that of the network
SHARPER = 4.0  # exponent that favours cheap candidates
MIN_SAVING = 0.003  # share of the best cost below which a saving is not worth a query
STALE = 15  # queries without a better hit, after which every second query looks elsewhere
HINTED_HIT_ROUNDS = 5
MAX_ROBUSTNESS_CHECKS = 200  # number of likeliest candidates whose neighbourhood is evaluated
UNLIKELY, UNLIKELY_FOR = 0.005, 10  # give up if the largest P(hit) stays below this for this many queries
EARLIEST_END = 40  # but not before this many queries, or half of the budget


@dataclass(frozen=True)
class Feasible(Strategy):
    """Settings of strategy "feasible".

    Args:
        effort: "settle" stops when the search has settled; "spend" continues until the budget is spent.
        tolerance: with effort "settle", the search stops when the estimated probability that ten more queries save 5%
            of the cost falls below this.
        margin: the least robustness of a counterfactual: the surrogate's mean P(hit) in a small neighbourhood (a tenth
            of a standard deviation in every number). If no counterfactual reaches it, the most robust one is returned.
            An estimate of the surrogate, not a guarantee. None: not considered; 0.7 is a useful value.

    Raises:
        ValueError: a setting is invalid.

    Example:
        >>> strategy = acex.Feasible(effort="spend", margin=0.7)
        >>> acex.explain(model, row, rows, strategy=strategy)  # doctest: +SKIP
    """

    name: ClassVar[str] = "feasible"
    revision: ClassVar[int] = 6
    uses_hints: ClassVar[bool] = True
    limits_changes: ClassVar[bool] = True
    default_per_category: ClassVar[float | None] = 1.0  # at most four small changes of numbers (docs/decisions.md)

    effort: Literal["settle", "spend"] = "settle"
    tolerance: float = 0.05
    margin: float | None = None

    def __post_init__(self) -> None:
        if self.effort not in ("settle", "spend"):
            raise ValueError(f"effort: expected 'settle' or 'spend', got {self.effort!r}.")
        if not (is_finite(self.tolerance) and 0 < self.tolerance < 1):
            raise ValueError(
                f"tolerance: expected a probability between 0 and 1, such as 0.05, got {self.tolerance!r}; "
                f"to spend the whole budget use effort='spend'."
            )
        if not (self.margin is None or (is_finite(self.margin) and 0 < self.margin < 1)):
            raise ValueError(
                f"margin: expected None or a probability between 0 and 1, such as 0.7, got {self.margin!r}."
            )

    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """The next query of the search; once that ends or the budget is nearly spent, a reverted change."""
        chosen = best_counterfactuals(problem, history, count, self.margin)
        reverts = Reverts(problem, history, chosen, self.margin)
        next_: Query | Stop = Stop("budget")  # the rest is reserved for checks
        if not reverts.is_due(budget):
            next_ = self._search_on(problem, history, seed=seed, count=count, budget=budget)
        if isinstance(next_, Query) and next_.purpose == "refine" and self.effort == "settle":
            if_hit = Reverts(problem, history.with_answer(next_, True), np.array([len(history.queries)]))
            next_ = Stop("budget") if if_hit.is_short(budget) else next_
        return next_ if isinstance(next_, Query) else reverts.next(budget) or next_

    def _search_on(self, problem: Problem, history: History, *, seed: int, count: int, budget: float) -> Query | Stop:
        """The next query for a cheaper hit, in one round per counterfactual."""
        rounds = [q.round for q in history.queries]
        for round_ in range(rounds[-1], count):
            start = rounds.index(round_) if round_ in rounds else len(rounds)
            found = _found(problem, history.only(np.arange(start)), round_) if round_ else ()
            if len(found) < round_:
                break  # the round before found nothing different
            # The first counterfactual gets two shares of the budget, each further one a share.
            over = len(rounds) >= budget * (round_ + 2) / (count + 1) and round_ < count - 1
            if over and _found(problem, history, round_ + 1)[round_:]:
                continue
            next_ = _Round(problem.excluding(found), self, history, start, seed, budget).next()
            if isinstance(next_, Query):
                return replace(next_, round=round_)
            if round_ == 0 and next_.reason != "settled":
                return next_
        return Stop("settled")

    def improvement_odds(self, problem: Problem, history: History) -> tuple[float, ...]:
        """See `stopping`; empty before the first counterfactual, and if no cheaper candidate may be asked.

        The estimate ignores rules, which may exclude everything cheaper.
        """
        round_ = _Round(problem, self, history, 0, 0)
        if not round_.success.any():
            return ()
        cheaper = best_position(round_.scored.points.X, round_.scored.saving, round_._is_admissible)
        return () if cheaper is None else round_.forecast.improvement_odds


def _found(problem: Problem, history: History, count: int) -> tuple[frozenset[int], ...]:
    """The main features of the cheapest counterfactuals, each different from those before."""
    hits = history.X[history.is_hit & problem.plausible(history.X)]
    hits = hits[np.argsort(problem.cost(hits), kind="stable")]
    return tuple(problem.main_features(hits[i]) for i in problem.alternatives(hits, count))


@dataclass(frozen=True, eq=False)
class ScoredCandidates:
    """Candidates with their P(hit), and their saving as a share of the best cost, (n,) each."""

    points: Points
    probability: FloatArray
    saving: FloatArray


class _Round:
    """The search for one counterfactual, from position `start` of the history on; earlier answers are evidence."""

    def __init__(
        self, problem: Problem, settings: Feasible, history: History, start: int, seed: int, budget: float = np.inf
    ) -> None:
        self.problem, self.settings, self.history, self.start, self.budget = problem, settings, history, start, budget
        self.seed = seed
        self.context = problem.cached(SearchContext)
        self.rng = np.random.default_rng([seed, len(history.queries)])
        self.success = self._successes()
        self.n_asked = len(history.queries) - start

    @cached_property
    def belief(self) -> Belief:
        """P(hit) given the evidence; computed only if needed."""
        return Belief(self.problem, self.history, self.success)

    def _successes(self) -> BoolArray:
        """Which queries were hits that count, (n,): plausible, different from earlier rounds, robust enough."""
        X = self.history.X
        good = self.history.is_hit & self.problem.plausible(X) & self.problem.is_different(X)
        if self.problem.region.max_changes is not None:  # hits of an earlier search on this evidence may have more
            good &= n_changed(X, self.problem.factual) <= self.problem.region.max_changes
        if self.settings.margin is not None and good.any():
            good[good] = Belief(self.problem, self.history).robustness(X[good]) >= self.settings.margin
        return good

    def next(self) -> Query | Stop:
        """The next query of this round, or why it stops."""
        known = self._known_hit()
        if known is not None:
            return Query(known, "known")
        return self._cheaper_hit() if self.success.any() else self._first_hit()

    def _known_hit(self) -> FloatArray | None:
        """The cheapest hit of other searches, (d,), if it is cheaper than the best hit; its answer costs nothing."""
        if self.history.known is None:
            return None
        X = self.history.known.X[self.history.known.is_hit]
        costs = self.problem.cost(X)
        cheaper = (costs < self.best) & (costs > 0)
        chosen = best_position(X[cheaper], 1 / costs[cheaper], self._is_admissible)
        return None if chosen is None else X[cheaper][chosen]

    @cached_property
    def best(self) -> float:
        """The smallest cost of a success; infinite before the first."""
        return float(self.problem.cost(self.history.X[self.success]).min(initial=np.inf))

    @cached_property
    def scored(self) -> ScoredCandidates:
        """The candidates for the next query."""
        if self.best == np.inf:
            points = self._first_candidates()
            return ScoredCandidates(points, self._p_success(points), np.zeros(len(points)))
        points, (groups, p_left) = self._cheaper_candidates(), self._groups()
        p_network = self._p_success(groups)
        odds = (1 - GROUP_WEIGHT) * logit(p_network.clip(1e-6, 1 - 1e-6)) + GROUP_WEIGHT * logit(p_left)
        probability = np.append(self._p_success(points), np.maximum(p_network, expit(odds)))
        points = joined(points, groups)
        return ScoredCandidates(points, probability, 1 - points.costs / self.best)

    @cached_property
    def forecast(self) -> Forecast:
        """How likely a cheaper counterfactual is; used after the first success."""
        key = (self.problem, self.settings, self.start, self.seed)
        return self.history.cached(
            key, lambda: Forecast.of(self.belief.evidence, self.scored.probability, self.scored.saving)
        )

    # -- before the first hit ------------------------------------------------------------------------------

    def _first_hit(self) -> Query | Stop:
        recent = [q.max_p_hit for q in self.history.queries[self.start :]][-UNLIKELY_FOR:]
        if self.n_asked >= min(self.budget / 2, EARLIEST_END) and max(recent, default=1.0) < UNLIKELY:
            return Stop("unlikely")
        implausible = self.problem.cached(_implausible_hit)
        if implausible is not None and self.n_asked == 1:
            return Query(implausible, "first")
        points, probability = self.scored.points, self.scored.probability
        score = self._first_score()
        if self.n_asked >= ANYWHERE_FROM and self.n_asked % 2 == 0 and probability.max(initial=0.0) < HOPELESS:
            points = _with_cost(Points(self.context, random_points(self.problem, self.rng, N_DRAWN, at_edges=True)))
            probability = self._p_success(points)
            score = self.rng.random(len(points))
        chosen = best_position(points.X, score, self._is_admissible)
        if chosen is None:
            rows = from_reference(self.problem, self.rng, N_VARIED)
            anywhere = random_points(self.problem, self.rng, N_ANYWHERE)
            points = _with_cost(Points(self.context, np.vstack([rows, anywhere])))
            probability = self._p_success(points)
            chosen = best_position(points.X, probability, self._is_admissible)
        if chosen is None:
            return Stop("exhausted")
        likeliest = best_position(points.X, probability, self._is_admissible)
        max_p_hit = 0.0 if likeliest is None else float(probability[likeliest])
        return Query(points.X[chosen], "first", max_p_hit=max_p_hit, p_hit=float(probability[chosen]))

    def _first_score(self) -> FloatArray:
        """The score of each candidate for a first hit, (n,), above zero."""
        patience = PATIENCE * PATIENCE_GROWTH**self.n_asked
        score = -np.log(self.scored.points.costs) - patience / (self.scored.probability + 1e-6)
        return np.asarray(np.exp(np.clip(score - score.max(initial=-np.inf), -600, 0)))

    def _first_candidates(self) -> Points:
        """Candidates for a first hit."""
        problem, hinted = self.problem, self.problem.cached(_hinted_hits)
        X = enumerate_region(problem)
        if X is not None:
            return self._promising(_with_cost(Points(self.context, X)))
        families = []
        fragile = self.history.X[self.history.is_hit]
        if len(fragile) and self.settings.margin is not None:
            families.append(beyond_hits(problem, self.rng, fragile, N_VARIED))
        # Outcomes and numeric answers guide moves before the first hit. With max_changes, whole rows are not allowed.
        if any(value is not None for value in (problem.hint, problem.width, problem.region.max_changes)):
            families.append(from_reference(problem, self.rng, N_TOWARDS))
        if len(hinted):
            families += [hinted, from_hits(problem, self.rng, hinted, N_VARIED)]
        if self.n_asked >= ANYWHERE_FROM:
            families.append(random_points(problem, self.rng, N_ANYWHERE))
        others = (_with_cost(Points(self.context, X)) for X in families)
        return self._promising(joined(_with_cost(self.context.candidates), *others))

    # -- after the first hit ---------------------------------------------------------------------------------

    def _cheaper_hit(self) -> Query | Stop:
        if len(self.scored.points) == 0:
            return Stop("settled")
        if self.settings.effort == "settle" and self.forecast.saves_soon < self.settings.tolerance:
            return Stop("settled")
        expected = self.scored.probability * self.scored.saving
        since = len(self.history.queries) - 1 - int(np.flatnonzero(self.success)[-1])
        if since >= STALE and since % 2:
            expected = expected * self._unlike_hits()
        chosen = best_position(self.scored.points.X, expected, self._is_admissible)
        if chosen is None:
            return Stop("settled")
        probability = float(self.scored.probability[chosen])
        return Query(self.scored.points.X[chosen], "refine", max_p_hit=probability, p_hit=probability)

    def _unlike_hits(self) -> FloatArray:
        """The share of each candidate's changes that none of the best hits makes, (n,)."""
        points = self.scored.points
        common = in_common(points.S, Points(self.context, self._cheapest_hits[:N_PARENTS]).S)
        return np.asarray(1 - common.max(axis=1) / (points.S.sum(axis=1) + 1e-12))

    @cached_property
    def _cheapest_hits(self) -> FloatArray:
        """The successes, cheapest first, (n, d)."""
        hits = self.history.X[self.success]
        return hits[np.argsort(self.problem.cost(hits), kind="stable")]

    def _cheaper_candidates(self) -> Points:
        """Candidates that are cheaper than the best hit."""
        problem, rng, max_cost = self.problem, self.rng, (1 - MIN_SAVING) * self.best
        X = enumerate_region(problem)
        if X is not None:
            return self._promising(_with_cost(Points(self.context, X), max_cost))
        hits = self._cheapest_hits
        parents = np.vstack([hits[:N_PARENTS], problem.cached(_hinted_hits)[:N_HINTED]])
        simpler, towards, varied = (
            _with_cost(Points(self.context, X), max_cost)
            for X in (
                simplified(problem, hits[0]),
                from_reference(problem, rng, N_TOWARDS),
                from_hits(problem, rng, parents, N_VARIED),
            )
        )
        rows = _with_cost(self.context.candidates, max_cost)
        return joined(simpler, self._promising(joined(rows, towards, varied)))

    def _groups(self) -> tuple[Points, FloatArray]:
        """The best hit with groups of its changes reverted, and their P(hit) by group testing, (n,)."""
        X, p_left = reverted_groups(self.problem, self.history, self._cheapest_hits[0], self.rng)
        points = Points(self.context, X)
        useful = (points.costs > 0) & (points.costs <= (1 - MIN_SAVING) * self.best)
        return points[useful], p_left[useful] if self.settings.margin is None else self._p_success(points[useful])

    def _promising(self, points: Points) -> Points:
        """The candidates that the network evaluates: the best by the Gaussian process, and some at random."""
        if len(points) <= N_JUDGED + N_RANDOM:
            return points
        probability = self.belief.evidence.by_posterior(points)
        if self.best < np.inf:
            scores = [probability**0.7 * (1 - points.costs / self.best)]
        else:
            rank = self.context.rank(points.costs)
            scores = [probability * (1 - rank), probability * (1 - rank) ** SHARPER]
        chosen = [np.argsort(-score, kind="stable")[: N_JUDGED // len(scores)] for score in scores]
        return points[np.unique(np.concatenate([*chosen, self.rng.permutation(len(points))[:N_RANDOM]]))]

    def _p_success(self, points: Points) -> FloatArray:
        """The probability that points are successes, (n,); with a margin, zero for all but the likeliest."""
        probability = self.belief.probability(points) if len(points) else np.zeros(0)
        if self.settings.margin is None:
            return probability
        likeliest = np.argsort(-probability, kind="stable")[:MAX_ROBUSTNESS_CHECKS]
        p_success = np.zeros(len(points))
        p_success[likeliest] = probability[likeliest] * self.belief.robustness(points.X[likeliest])
        return p_success

    def _is_admissible(self, X: FloatArray) -> BoolArray:
        return self.problem.admissible(X, self.history.redundant)


def _with_cost(points: Points, max_cost: float = np.inf) -> Points:
    """The points of a cost above zero and at most `max_cost`."""
    return points[(points.costs > 0) & (points.costs <= max_cost)]


def _implausible_hit(problem: Problem) -> FloatArray | None:
    """The cheapest row that is a hit by known outcomes, (d,), if all such rows are implausible.

    Asking it shows whether the outcomes agree with the model.
    """
    if problem.hint is None:
        return None
    hits = problem.projected[problem.hint(problem.projected) > 0.5]
    hits = hits[problem.region.contains(hits) & problem.is_different(hits)] if len(hits) else hits
    costs = problem.cost(hits)
    if not (costs > 0).any() or problem.plausible(hits[costs > 0]).any():
        return None
    return np.asarray(hits[costs > 0][costs[costs > 0].argmin()])


def _hinted_hits(problem: Problem) -> FloatArray:
    """The cheapest plausible points that would be hits by the known outcomes, (n, d)."""
    hits = np.empty((0, len(problem.factual)))
    if problem.hint is None:
        return hits
    rng = np.random.default_rng(0)
    candidates = np.vstack([problem.cached(SearchContext).candidates.X, from_reference(problem, rng, N_VARIED)])
    for _ in range(HINTED_HIT_ROUNDS):
        candidates = candidates[(problem.hint(candidates) > 0.5) & (problem.cost(candidates) > 0)]
        hits = unique_rows(np.vstack([hits, candidates]))
        hits = hits[np.argsort(problem.cost(hits), kind="stable")][:200]
        hits = hits[problem.admissible(hits, ())][:20]
        if len(hits) == 0:
            break
        candidates = from_hits(problem, rng, hits, 2 * N_VARIED)
    return hits
