"""Strategy "feasible": the cost of a point is known before it is asked; only whether it is a hit is not.

1. *Until there is a hit*, reference rows moved into the region are asked, those of greatest P(hit) * (1 - rank of cost)
   first; where the model has answered much before, whatever promises the greatest saving over such a row. After a few
   misses every second one is drawn instead: whatever the surrogate believes, one row in so many is a hit.
2. *A row that is a hit is polished* by rule (see `polish`), and later the best hit, when little else succeeds.
3. *Then* the next query is the likeliest hit among candidates that save one to three times a share `step` of the best
   cost. Each new best hit is also tried without its smallest change.
   A success makes the step longer, a miss shorter, as in an evolution strategy: where the surrogate hopes too
   much, the search comes back to what it knows. It has settled when the step is below `tolerance`.
   Every third query is the reference row of greatest expected saving instead: the first hit may have been the wrong
   one to start from.

P(hit) is a `Belief`. With a `margin` a hit is a success only if the surrogate holds its neighbourhood for hits too.
For several counterfactuals the search goes through rounds, one for each: the same steps with all evidence so far,
among points that are different (see `Problem`) from what the rounds before have found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search import polish
from acex.search.belief import Belief
from acex.search.climb import best_position
from acex.search.families import beyond_hits, everything, from_hits, from_reference
from acex.search.problem import History, Problem, Query, Stop, key
from acex.search.strategy import Strategy, best_cost
from acex.values import is_finite

STEP, LONGER, SHORTER, LONGEST = 0.25, 1.6, 0.85, 0.5  # share of the best cost to save next, and how it changes
SPAN = 3.0  # no more than so many steps at once: far below the best cost lies nothing but hope
STUCK = 0.05  # a step below this has seen many misses: time to polish the best hit too
TEMPER = 1.5  # power of P(hit) in the expected saving of a first hit: what looks cheapest is believed too likely
FIRST_DRAWN = 6  # from this query on, every second one before the first hit is drawn
ROW_EVERY = 3  # after it, one query in so many is a reference row
IMAGINED_ROUNDS = 5
N_CANDIDATES = 1500  # of each family
MOST_ROWS = 4000  # of the reference are looked at for a hit
MOST_STEADY = 200  # candidates, the likeliest, whose neighbourhood is looked at
UNLIKELY, PATIENCE = 0.07, 10  # give up when the greatest P(hit) stays below this for so many asks


@dataclass(frozen=True)
class Feasible(Strategy):
    """The settings of strategy "feasible".

    Args:
        tolerance: the search ends when the share of the best cost that it tries to save next has shrunk below this.
            0 goes on until the budget is spent.
        margin: how probable a hit must be, by the surrogate, in a small neighbourhood of a counterfactual (a tenth of
            a standard deviation in every number); None for no such wish. 0.7 is a useful value. The surrogate's word,
            not the model's: no guarantee. Where no hit comes up to it, the steadiest one is given.
    """

    name: ClassVar[str] = "feasible"
    revision: ClassVar[int] = 1
    finds_several: ClassVar[bool] = True
    uses_hints: ClassVar[bool] = True

    tolerance: float = 0.01
    margin: float | None = None

    def __post_init__(self) -> None:
        if not (is_finite(self.tolerance) and 0 <= self.tolerance < 1):
            raise ValueError(f"tolerance must be a share from 0 to below 1, such as 0.01, got {self.tolerance!r}.")
        if not (self.margin is None or (is_finite(self.margin) and 0 < self.margin < 1)):
            raise ValueError(f"margin must be None or a probability between 0 and 1, such as 0.7, got {self.margin!r}.")

    @property
    def steady(self) -> float | None:
        return self.margin

    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """What to ask next: round by round, one for each counterfactual that is wanted."""
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
            next_ = _Round(problem.apart_from(found), self, history, start, seed).next()
            if isinstance(next_, Query):
                return replace(next_, round=round_)
            if round_ == 0 and next_.reason != "settled":
                return next_
        return Stop("settled")

    def worth(self, problem: Problem, history: History) -> float:
        """The share of the best cost that the search tries to save next, which follows success, times that cost."""
        best = best_cost(problem, history)
        asked = zip(history.queries, history.hits, strict=True)
        tried = [hit for query, hit in asked if query.purpose in ("explore", "refine")]
        return best if best == np.inf else best * _step_after(tried)


def _found(problem: Problem, history: History, count: int) -> tuple[frozenset[int], ...]:
    """What the cheapest counterfactuals rest on, each different from those before."""
    hits = history.X[history.is_hit & problem.plausible(history.X)]
    hits = hits[np.argsort(problem.cost(hits), kind="stable")]
    return tuple(problem.rests_on(hits[i]) for i in problem.alternatives(hits, count))


class _Round:
    """The search for one counterfactual, from position `start` of the history on; what came before is evidence."""

    def __init__(self, problem: Problem, settings: Feasible, history: History, start: int, seed: int) -> None:
        self.problem, self.settings, self.history, self.start = problem, settings, history, start
        self.rng = np.random.default_rng([seed, len(history.queries)])
        self.success = self._successes()
        self.purposes = [q.purpose for q in history.queries[start:]]

    @cached_property
    def belief(self) -> Belief:
        """What the evidence says; worked out only where it is needed."""
        return Belief(self.problem, self.history)

    def _successes(self) -> BoolArray:
        """Which queries were hits as wanted, (n,)."""
        X = self.history.X
        good = self.history.is_hit & self.problem.plausible(X) & self.problem.different(X)
        if self.settings.margin is not None and good.any():
            good[good] = self.belief.steadiness(X[good]) >= self.settings.margin
        return good

    def next(self) -> Query | Stop:
        """The next query of this round, or why there is none."""
        problem, X = self.problem, self.history.X
        known = self._known_hit()
        if known is not None:
            return Query(known, "known")
        if not self.success.any():
            return self._first_hit()
        answers = {} if self.history.known is None else dict(self.history.known.answers)
        answers.update(zip(map(key, X), self.success.tolist(), strict=True))
        hits = X[self.success]
        hits = hits[np.argsort(problem.cost(hits), kind="stable")]
        for hit in self._to_polish(hits[0]):
            point = polish.next_step(problem, hit, answers, X[~self.success])
            if point is not None:
                return Query(point, "polish")
        point = polish.without_smallest(problem, hits[0], answers)
        if point is not None:
            return Query(point, "polish")
        return self._cheaper_hit(hits)

    def _known_hit(self) -> FloatArray | None:
        """The cheapest hit known from elsewhere, (d,), if it is better than what was found: it costs nothing."""
        if self.history.known is None:
            return None
        X = self.history.known.X[self.history.known.is_hit]
        costs = self.problem.cost(X)
        best = self.problem.cost(self.history.X[self.success]).min(initial=np.inf)
        cheaper = (costs < best) & (costs > 0)
        chosen = best_position(X[cheaper], 1 / costs[cheaper], self._may_ask)
        return None if chosen is None else X[cheaper][chosen]

    def _to_polish(self, best: FloatArray) -> list[FloatArray]:
        """Rows that are hits; what there was before the round; and the best hit when the search is stuck."""
        asked = zip(self.history.X[self.start :], self.success[self.start :], self.purposes, strict=True)
        rows = [x for x, success, purpose in asked if success and purpose in ("first", "row", "known")]
        before = self.history.X[: self.start][self.success[: self.start]]
        rows = [*before[self.problem.cost(before).argsort(kind="stable")][:1], *rows]
        return [*rows, best] if self._step() < STUCK else rows

    def _first_hit(self) -> Query | Stop:
        problem, history = self.problem, self.history
        recent = [q.hope for q in history.queries[self.start :]][-PATIENCE:]
        if len(recent) == PATIENCE and max(recent) < UNLIKELY:
            return Stop("unlikely")
        X = self._where_to_begin()
        costs = problem.cost(X)
        probability = self._chance(X)
        score = self._first_score(probability, costs)
        score[costs == 0] = 0.0
        chosen = best_position(X, score, self._may_ask)
        if chosen is None:
            X = from_reference(problem, self.rng, N_CANDIDATES)
            probability = self.belief.probability(X)
            chosen = best_position(X, probability, self._may_ask)
        if chosen is None:
            return Stop("exhausted")
        likeliest = best_position(X, probability, self._may_ask)
        hope = 0.0 if likeliest is None else float(probability[likeliest])
        return Query(X[chosen], "first", hope=hope)

    def _where_to_begin(self) -> FloatArray:
        """Candidates for a first hit, (n, d)."""
        problem, imagined = self.problem, self.problem.once(_imagined_hits)
        families = [problem.once(_first_candidates)]
        unsteady = self.history.X[self.history.is_hit]
        if len(unsteady) and self.settings.margin is not None:
            families.append(beyond_hits(problem, self.rng, unsteady, N_CANDIDATES))
        if problem.learnt and len(imagined):
            families.append(from_hits(problem, self.rng, imagined, 2 * N_CANDIDATES))
            families.append(from_reference(problem, self.rng, N_CANDIDATES))
        return np.vstack(families)

    def _first_score(self, probability: FloatArray, costs: FloatArray) -> FloatArray:
        """What it is worth to begin with candidates of these probabilities and costs, (n,)."""
        n = len(self.purposes)
        if n >= FIRST_DRAWN and n % 2 == 0:
            return np.asarray(probability * self.rng.random(len(costs)))
        if self.problem.learnt:
            typical = np.median(self.problem.cost(self.problem.projected))
            return np.asarray(probability**TEMPER * np.maximum(typical - costs, 0.0))
        return probability * (1 - np.searchsorted(np.sort(costs), costs) / len(costs))

    def _cheaper_hit(self, hits: FloatArray) -> Query | Stop:
        problem, step = self.problem, self._step()
        if step < self.settings.tolerance:
            return Stop("settled")
        best = float(problem.cost(hits[:1])[0])
        if len(self.history.queries) % ROW_EVERY == 0:
            row = self._row_that_saves((1 - step) * best)
            if row is not None:
                return Query(row, "row")
        families = self._families(hits[:5])
        X = np.vstack(list(families.values()))
        sizes = [len(f) for f in families.values()]
        purposes = np.repeat(list(families), sizes)
        trust = np.repeat([self._trust(purpose) for purpose in families], sizes)
        costs = problem.cost(X)
        # Where nothing lies within these bounds, anything cheaper will do.
        for least, most in ((step, SPAN * step), (1e-3, 1.0)):
            saves = np.flatnonzero((costs <= (1 - least) * best) & (costs >= (1 - most) * best) & (costs > 0))
            if len(saves) == 0:
                continue
            score = trust[saves] * self._chance(X[saves])
            chosen = best_position(X[saves], score, self._may_ask)
            if chosen is not None:
                return Query(X[saves[chosen]], str(purposes[saves[chosen]]), hope=float(score[chosen]))
        return Stop("settled")

    def _row_that_saves(self, most: float) -> FloatArray | None:
        """The reference row of greatest P(hit) * saving, (d,), among those that cost less than `most`."""
        X = _sample(self.problem.projected)
        costs = self.problem.cost(X)
        cheap = (costs < most) & (costs > 0)
        if not cheap.any():
            return None
        X, saving = X[cheap], most - costs[cheap]
        chosen = best_position(X, self._chance(X) * saving, self._may_ask)
        return None if chosen is None else X[chosen]

    def _families(self, hits: FloatArray) -> dict[str, FloatArray]:
        """Candidates, (n, d), by the purpose of asking them."""
        X = everything(self.problem)
        if X is not None:
            return {"refine": X}
        parents = np.vstack([hits, self.problem.once(_imagined_hits)[:2]])
        return {
            "explore": from_reference(self.problem, self.rng, N_CANDIDATES),
            "refine": from_hits(self.problem, self.rng, parents, 2 * N_CANDIDATES),
        }

    def _chance(self, X: FloatArray) -> FloatArray:
        """The probability of success of points, (n,); with a margin zero for all but the likeliest."""
        probability = self.belief.probability(X)
        if self.settings.margin is None:
            return probability
        likeliest = np.argsort(-probability, kind="stable")[:MOST_STEADY]
        chance = np.zeros(len(X))
        chance[likeliest] = probability[likeliest] * self.belief.steadiness(X[likeliest])
        return chance

    def _trust(self, purpose: str) -> float:
        """How often asks of this purpose have succeeded so far, beginning with one in two."""
        asked = [success for q, success in zip(self.history.queries, self.success, strict=True) if q.purpose == purpose]
        return float((sum(asked) + 1) / (len(asked) + 2))

    def _step(self) -> float:
        asked = zip(self.purposes, self.success[self.start :].tolist(), strict=True)
        return _step_after(success for purpose, success in asked if purpose in ("explore", "refine"))

    @property
    def _may_ask(self) -> Callable[[FloatArray], BoolArray]:
        return lambda X: self.problem.admissible(X, self.history.useless)


def _step_after(successes: Iterable[bool]) -> float:
    """The share of the best cost to save next, from how the asks for cheaper hits have gone in this round."""
    step = STEP
    for success in successes:
        step = min(step * LONGER, LONGEST) if success else step * SHORTER
    return step


def _first_candidates(problem: Problem) -> FloatArray:
    """Where a first hit is looked for, (n, d): everywhere in a small region, else among reference rows and the
    hits that known outcomes suggest."""
    X = everything(problem)
    return np.vstack([_sample(problem.projected), problem.once(_imagined_hits)]) if X is None else X


def _sample(rows: FloatArray) -> FloatArray:
    """At most `MOST_ROWS` of the rows, the same each time."""
    if len(rows) <= MOST_ROWS:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False)]


def _imagined_hits(problem: Problem) -> FloatArray:
    """The cheapest plausible points that would be hits by the known outcomes, (n, d)."""
    hits = np.empty((0, len(problem.factual)))
    if problem.hint is None:
        return hits
    rng = np.random.default_rng(0)
    candidates = np.vstack([_sample(problem.projected), from_reference(problem, rng, N_CANDIDATES)])
    for _ in range(IMAGINED_ROUNDS):
        candidates = candidates[(problem.hint(candidates) > 0.5) & (problem.cost(candidates) > 0)]
        hits = np.unique(np.vstack([hits, candidates]), axis=0)
        hits = hits[np.argsort(problem.cost(hits), kind="stable")][:200]
        hits = hits[problem.admissible(hits, ())][:20]
        if len(hits) == 0:
            break
        candidates = from_hits(problem, rng, hits, 2 * N_CANDIDATES)
    return hits
