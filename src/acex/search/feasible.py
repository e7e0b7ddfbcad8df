"""Strategy "feasible": the cost of a point is known before it is asked; only whether it is a hit is not.

So a query is worth what it would save times the probability that it is a hit. P(hit) is a `Belief` that was learned.

1. *Until there is a hit* there is no cost to save from. Candidates are reference rows moved into the region, what known
   outcomes suggest, and after some misses points from anywhere in the region; where there is no hope, near its edges.
   Asked is the one of least log cost + patience / P(hit): a likely hit may cost more. Patience grows with every miss.
2. *Then* the candidate of greatest expected saving: simpler versions and variations of the best hits, moves towards
   rows, and rows themselves, since the first hit may have been the wrong one to start from.
3. The search has *settled* when ten more queries are unlikely to save 5% (see `outlook`).
4. *Last*, changes of the counterfactuals that nobody has checked are undone one by one (see `prune`). Nothing cheaper
   is looked for that could not be checked any more, unless the whole budget is to be spent.

With a `margin` a hit is a success only if the surrogate holds its neighbourhood for hits too.
For several counterfactuals the search goes through rounds, one for each: the same steps with all evidence so far,
among points that are different (see `Problem`) from what the rounds before have found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search import answer
from acex.search.belief import Belief
from acex.search.candidates import anywhere, beyond_hits, everything, from_hits, from_reference, simplified
from acex.search.climb import best_position
from acex.search.evidence import Ground, Points, in_common, joined
from acex.search.problem import History, Problem, Query, Stop
from acex.search.reverts import Undoings
from acex.search.stopping import Outlook
from acex.search.strategy import Strategy, best_cost
from acex.values import is_finite

PATIENCE, MORE_PATIENCE = 0.3, 1.08  # log cost that certainty of a first hit is worth, and its growth with every miss
N_DRAWN = 16  # points drawn near the edges, of which one that may be asked is taken
ANYWHERE_FROM = 8  # so many misses, and the reference alone may not hold a hit
HOPELESS = 0.05  # where no P(hit) is above this, every second query is a point near the edges of the region
N_TOWARDS, N_VARIED, N_ANYWHERE = 600, 1200, 400  # candidates: moves towards rows, variations of hits, points anywhere
PARENTS, IMAGINED = 5, 2  # best hits that are varied, and hits that known outcomes suggest
N_JUDGED, N_RANDOM = 300, 80  # the most promising by the Gaussian process, and some more, go through the network
SHARPER = 4.0  # a power that puts near candidates first
LEAST_SAVING = 0.003  # a share of the best cost below which nobody would ask
STALE = 15  # queries without a better hit, after which every second one starts afresh
IMAGINED_ROUNDS = 5
MOST_STEADY = 200  # candidates, the likeliest, whose neighbourhood is looked at
UNLIKELY, UNLIKELY_FOR = 0.005, 10  # give up when the greatest P(hit) stays below this for so many asks
EARLIEST_END = 40  # but not before so many queries, or half of the budget


@dataclass(frozen=True)
class Feasible(Strategy):
    """The settings of strategy "feasible".

    Args:
        tolerance: the search ends when the chance that ten more queries save 5% has fallen below this. 0 goes on until
            the budget is spent.
        margin: say it to `explain`; here it is deprecated. How probable a hit must be, by the surrogate, in a small
            neighbourhood of a counterfactual (a tenth of a standard deviation in every number); None for no such wish.
            The surrogate's word, not the model's: no guarantee.
    """

    name: ClassVar[str] = "feasible"
    revision: ClassVar[int] = 4
    finds_several: ClassVar[bool] = True
    uses_hints: ClassVar[bool] = True
    prunes: ClassVar[bool] = True

    tolerance: float = 0.05
    margin: float | None = None

    def __post_init__(self) -> None:
        if not (is_finite(self.tolerance) and 0 <= self.tolerance < 1):
            raise ValueError(f"tolerance must be a chance from 0 to below 1, such as 0.05, got {self.tolerance!r}.")
        if not (self.margin is None or (is_finite(self.margin) and 0 < self.margin < 1)):
            raise ValueError(f"margin must be None or a probability between 0 and 1, such as 0.7, got {self.margin!r}.")

    @property
    def steady(self) -> float | None:
        return self.margin

    def with_margin(self, margin: float) -> Feasible:
        return replace(self, margin=margin)

    def spending(self) -> Feasible:
        return replace(self, tolerance=0.0)

    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """What to ask next: of the search, and when that has ended or the budget nearly so, a change undone."""
        undoings = Undoings(problem, history, answer.chosen(problem, history, count, self.steady), self.steady)
        next_: Query | Stop = Stop("settled")
        if not undoings.is_due(budget):
            next_ = self._search_on(problem, history, seed=seed, count=count, budget=budget)
        if isinstance(next_, Query) and next_.purpose == "refine" and self.tolerance:
            hit = Undoings(problem, history.told(next_, True), np.array([len(history.queries)]))
            next_ = Stop("settled") if hit.is_short(budget) else next_
        return next_ if isinstance(next_, Query) else undoings.next(budget) or next_

    def _search_on(self, problem: Problem, history: History, *, seed: int, count: int, budget: float) -> Query | Stop:
        """What to ask to find something cheaper: round by round, one for each counterfactual that is wanted."""
        begun = [q.round for q in history.queries]
        for round_ in range(begun[-1], count):
            start = begun.index(round_) if round_ in begun else len(begun)
            found = _found(problem, history.until(start), round_) if round_ else ()
            if len(found) < round_:
                break  # nothing different was found in the round before
            # The first counterfactual gets two shares of the budget, each further one a share.
            over = len(begun) >= budget * (round_ + 2) / (count + 1) and round_ < count - 1
            if over and _found(problem, history, round_ + 1)[round_:]:
                continue
            next_ = _Round(problem.apart_from(found), self, history, start, seed, budget).next()
            if isinstance(next_, Query):
                return replace(next_, round=round_)
            if round_ == 0 and next_.reason != "settled":
                return next_
        return Stop("settled")

    def worth(self, problem: Problem, history: History) -> float:
        """The greatest expected saving in sight."""
        ahead = self._ahead(problem, history)
        if not ahead.success.any():
            return np.inf
        return float((ahead.judged.saving * ahead.judged.probability).max(initial=0.0)) * best_cost(problem, history)

    def closer(self, problem: Problem, history: History) -> tuple[float, ...]:
        """The chances, see `outlook`; none before the first counterfactual."""
        ahead = self._ahead(problem, history)
        return ahead.outlook.closer if ahead.success.any() else ()

    def _ahead(self, problem: Problem, history: History) -> _Round:
        return history.once((self, problem), lambda: _Round(problem, self, history, 0, 0))


def _found(problem: Problem, history: History, count: int) -> tuple[frozenset[int], ...]:
    """What the cheapest counterfactuals rest on, each different from those before."""
    hits = history.X[history.is_hit & problem.plausible(history.X)]
    hits = hits[np.argsort(problem.cost(hits), kind="stable")]
    return tuple(problem.rests_on(hits[i]) for i in problem.alternatives(hits, count))


@dataclass(frozen=True, eq=False)
class Judged:
    """Candidates with their P(hit) and what they would save, as a share of the best cost, (n,) each."""

    points: Points
    probability: FloatArray
    saving: FloatArray


class _Round:
    """The search for one counterfactual, from position `start` of the history on; what came before is evidence."""

    def __init__(
        self, problem: Problem, settings: Feasible, history: History, start: int, seed: int, budget: float = np.inf
    ) -> None:
        self.problem, self.settings, self.history, self.start, self.budget = problem, settings, history, start, budget
        self.ground = problem.once(Ground)
        self.rng = np.random.default_rng([seed, len(history.queries)])
        self.success = self._successes()
        self.n_asked = len(history.queries) - start

    @cached_property
    def belief(self) -> Belief:
        """What the evidence says; worked out only where it is needed."""
        return Belief(self.problem, self.history, self.success)

    def _successes(self) -> BoolArray:
        """Which queries were hits as wanted, (n,)."""
        X = self.history.X
        good = self.history.is_hit & self.problem.plausible(X) & self.problem.different(X)
        if self.settings.margin is not None and good.any():
            good[good] = Belief(self.problem, self.history).steadiness(X[good]) >= self.settings.margin
        return good

    def next(self) -> Query | Stop:
        """The next query of this round, or why there is none."""
        known = self._known_hit()
        if known is not None:
            return Query(known, "known")
        return self._cheaper_hit() if self.success.any() else self._first_hit()

    def _known_hit(self) -> FloatArray | None:
        """The cheapest hit known from elsewhere, (d,), if it is better than what was found: it costs nothing."""
        if self.history.known is None:
            return None
        X = self.history.known.X[self.history.known.is_hit]
        costs = self.problem.cost(X)
        cheaper = (costs < self.best) & (costs > 0)
        chosen = best_position(X[cheaper], 1 / costs[cheaper], self._may_ask)
        return None if chosen is None else X[cheaper][chosen]

    @cached_property
    def best(self) -> float:
        """The least cost of a success; infinite before the first."""
        return float(self.problem.cost(self.history.X[self.success]).min(initial=np.inf))

    @cached_property
    def judged(self) -> Judged:
        """What may be asked next."""
        points = self._first_candidates() if self.best == np.inf else self._cheaper_candidates()
        saving = 1 - points.costs / self.best if self.best < np.inf else np.zeros(len(points))
        return Judged(points, self._chance(points) if len(points) else np.zeros(0), saving)

    @cached_property
    def outlook(self) -> Outlook:
        """How likely something cheaper is, now that there is a success."""
        return Outlook.of(self.belief.evidence, self.judged.probability, self.judged.saving)

    # -- before the first hit ------------------------------------------------------------------------------

    def _first_hit(self) -> Query | Stop:
        recent = [q.hope for q in self.history.queries[self.start :]][-UNLIKELY_FOR:]
        if self.n_asked >= min(self.budget / 2, EARLIEST_END) and max(recent, default=1.0) < UNLIKELY:
            return Stop("unlikely")
        unusual = self.problem.once(_unusual_hit)
        if unusual is not None and self.n_asked == 1:
            return Query(unusual, "first")
        points, probability = self.judged.points, self.judged.probability
        score = self._first_score()
        if self.n_asked >= ANYWHERE_FROM and self.n_asked % 2 == 0 and probability.max(initial=0.0) < HOPELESS:
            points = _costing(Points(self.ground, anywhere(self.problem, self.rng, N_DRAWN, at_edges=True)))
            probability = self._chance(points)
            score = self.rng.random(len(points))
        chosen = best_position(points.X, score, self._may_ask)
        if chosen is None:
            more = np.vstack([from_reference(self.problem, self.rng, N_VARIED), self._anywhere()])
            points = _costing(Points(self.ground, more))
            probability = self._chance(points)
            chosen = best_position(points.X, probability, self._may_ask)
        if chosen is None:
            return Stop("exhausted")
        likeliest = best_position(points.X, probability, self._may_ask)
        hope = 0.0 if likeliest is None else float(probability[likeliest])
        return Query(points.X[chosen], "first", hope=hope, chance=float(probability[chosen]))

    def _first_score(self) -> FloatArray:
        """What it is worth to begin with each candidate, (n,), above zero."""
        patience = PATIENCE * MORE_PATIENCE**self.n_asked
        score = -np.log(self.judged.points.costs) - patience / (self.judged.probability + 1e-6)
        return np.asarray(np.exp(np.clip(score - score.max(initial=-np.inf), -600, 0)))

    def _first_candidates(self) -> Points:
        """Candidates for a first hit."""
        problem, imagined = self.problem, self.problem.once(_imagined_hits)
        X = everything(problem)
        if X is not None:
            return self._promising(_costing(Points(self.ground, X)))
        families = []
        unsteady = self.history.X[self.history.is_hit]
        if len(unsteady) and self.settings.margin is not None:
            families.append(beyond_hits(problem, self.rng, unsteady, N_VARIED))
        # Numbers tell the way before there is a hit, and with few changes rows as they are may not be asked.
        if any(told is not None for told in (problem.hint, problem.width, problem.region.max_changes)):
            families.append(from_reference(problem, self.rng, N_TOWARDS))
        if len(imagined):
            families += [imagined, from_hits(problem, self.rng, imagined, N_VARIED)]
        if self.n_asked >= ANYWHERE_FROM:
            families.append(self._anywhere())
        others = (_costing(Points(self.ground, X)) for X in families)
        return self._promising(joined(_costing(self.ground.candidates), *others))

    def _anywhere(self) -> FloatArray:
        return anywhere(self.problem, self.rng, N_ANYWHERE)

    # -- after it ------------------------------------------------------------------------------------------

    def _cheaper_hit(self) -> Query | Stop:
        if len(self.judged.points) == 0 or (self.settings.tolerance and self.outlook.soon < self.settings.tolerance):
            return Stop("settled")
        expected = self.judged.probability * self.judged.saving
        since = len(self.history.queries) - 1 - int(np.flatnonzero(self.success)[-1])
        if since >= STALE and since % 2:
            expected = expected * self._unlike_hits()
        chosen = best_position(self.judged.points.X, expected, self._may_ask)
        if chosen is None:
            return Stop("settled")
        probability = float(self.judged.probability[chosen])
        return Query(self.judged.points.X[chosen], "refine", hope=probability, chance=probability)

    def _unlike_hits(self) -> FloatArray:
        """The share of each candidate's changes that none of the best hits makes, (n,): a fresh start elsewhere."""
        points = self.judged.points
        common = in_common(points.S, Points(self.ground, self._cheapest_hits[:PARENTS]).S)
        return np.asarray(1 - common.max(axis=1) / (points.S.sum(axis=1) + 1e-12))

    @cached_property
    def _cheapest_hits(self) -> FloatArray:
        """The successes, cheapest first, (n, d)."""
        hits = self.history.X[self.success]
        return hits[np.argsort(self.problem.cost(hits), kind="stable")]

    def _cheaper_candidates(self) -> Points:
        """Candidates that are cheaper than the best hit."""
        problem, rng, most = self.problem, self.rng, (1 - LEAST_SAVING) * self.best
        X = everything(problem)
        if X is not None:
            return self._promising(_costing(Points(self.ground, X), most))
        hits = self._cheapest_hits
        parents = np.vstack([hits[:PARENTS], problem.once(_imagined_hits)[:IMAGINED]])
        simpler, towards, varied = (
            _costing(Points(self.ground, X), most)
            for X in (
                simplified(problem, hits[0]),
                from_reference(problem, rng, N_TOWARDS),
                from_hits(problem, rng, parents, N_VARIED),
            )
        )
        rows = _costing(self.ground.candidates, most)
        return joined(simpler, self._promising(joined(rows, towards, varied)))

    def _promising(self, points: Points) -> Points:
        """The candidates that are worth the network's judgement: by the Gaussian process, and some at random."""
        if len(points) <= N_JUDGED + N_RANDOM:
            return points
        probability = self.belief.evidence.by_posterior(points)
        if self.best < np.inf:
            scores = [probability**0.7 * (1 - points.costs / self.best)]
        else:
            rank = self.ground.rank(points.costs)
            scores = [probability * (1 - rank), probability * (1 - rank) ** SHARPER]
        chosen = [np.argsort(-score, kind="stable")[: N_JUDGED // len(scores)] for score in scores]
        return points[np.unique(np.concatenate([*chosen, self.rng.permutation(len(points))[:N_RANDOM]]))]

    def _chance(self, points: Points) -> FloatArray:
        """The probability of success of points, (n,); with a margin zero for all but the likeliest."""
        probability = self.belief.probability(points)
        if self.settings.margin is None:
            return probability
        likeliest = np.argsort(-probability, kind="stable")[:MOST_STEADY]
        chance = np.zeros(len(points))
        chance[likeliest] = probability[likeliest] * self.belief.steadiness(points.X[likeliest])
        return chance

    @property
    def _may_ask(self) -> Callable[[FloatArray], BoolArray]:
        return lambda X: self.problem.admissible(X, self.history.useless)


def _costing(points: Points, most: float = np.inf) -> Points:
    """The points that cost something, and at most this."""
    return points[(points.costs > 0) & (points.costs <= most)]


def _unusual_hit(problem: Problem) -> FloatArray | None:
    """The cheapest row that known outcomes call a hit, (d,), if all such rows are unusual: are the outcomes right?"""
    if problem.hint is None:
        return None
    hits = problem.projected[problem.hint(problem.projected) > 0.5]
    hits = hits[problem.region.contains(hits) & problem.different(hits)] if len(hits) else hits
    costs = problem.cost(hits)
    if not (costs > 0).any() or problem.plausible(hits[costs > 0]).any():
        return None
    return np.asarray(hits[costs > 0][costs[costs > 0].argmin()])


def _imagined_hits(problem: Problem) -> FloatArray:
    """The cheapest plausible points that would be hits by the known outcomes, (n, d)."""
    hits = np.empty((0, len(problem.factual)))
    if problem.hint is None:
        return hits
    rng = np.random.default_rng(0)
    candidates = np.vstack([problem.once(Ground).candidates.X, from_reference(problem, rng, N_VARIED)])
    for _ in range(IMAGINED_ROUNDS):
        candidates = candidates[(problem.hint(candidates) > 0.5) & (problem.cost(candidates) > 0)]
        hits = np.unique(np.vstack([hits, candidates]), axis=0)
        hits = hits[np.argsort(problem.cost(hits), kind="stable")][:200]
        hits = hits[problem.admissible(hits, ())][:20]
        if len(hits) == 0:
            break
        candidates = from_hits(problem, rng, hits, 2 * N_VARIED)
    return hits
