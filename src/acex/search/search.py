"""A search as a value: what was asked and answered so far, and the next question that follows from it.

`ask` is a pure function of problem, strategy, history and seed: the same answers lead to the same next
question, in every process. Points only; rows and labels belong to the rooms after this one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.search import answer
from acex.search.problem import History, Known, Problem, Query, Stop
from acex.search.reverts import Undoings
from acex.search.strategy import Strategy
from acex.search.votes import Noise, Tally


@dataclass(frozen=True, eq=False)
class Search:
    """The search for counterfactuals of one factual, at one moment."""

    problem: Problem
    strategy: Strategy
    seed: int
    history: History
    count: int = 1
    budget: float = np.inf
    noise: Noise | None = None

    @classmethod
    def begin(
        cls,
        problem: Problem,
        strategy: Strategy,
        seed: int = 0,
        *,
        count: int = 1,
        budget: float = np.inf,
        odds: float | None = None,
        noise: Noise | None = None,
    ) -> Search:
        """A search that knows only that the factual is not a hit.

        Args:
            count: how many counterfactuals, different from each other, are wanted.
            budget: how many queries there will be at most; a search for several divides them.
            odds: the model's log odds of a hit for the factual, where it gives scores.
            noise: for a model that contradicts itself; a point that is told again is a vote.
        """
        nothing = History((), ())
        history = nothing.told(Query(problem.factual, "factual"), False, odds)
        return cls(problem, strategy, seed, history, count, budget, noise)

    def ask(self) -> Query | None:
        """The next point to ask; None when the search has stopped."""
        return self._next if isinstance(self._next, Query) else None

    def tell(self, query: Query, hit: bool, odds: float | None = None) -> Search:
        """The search that has learnt whether the query was a hit, with the model's log odds where it gives scores."""
        return replace(self, history=self.history.told(query, hit, odds))

    def propose(self, n: int) -> list[Query]:
        """The next points to ask at once, n or fewer: each is chosen as if those before it were misses."""
        queries: list[Query] = []
        search = self
        while len(queries) < n and (query := search.ask()) is not None:
            queries.append(query)
            odds = min(search.history.odds, default=None)
            search = search.tell(query, False, odds)
        return queries

    def knowing(self, known: Known | None) -> Search:
        """The search with these answers from elsewhere at hand."""
        return replace(self, history=replace(self.history, known=known))

    @property
    def settled(self) -> str | None:
        """Why the search has stopped: "settled", "exhausted", "unlikely"; None while it goes on."""
        return self._next.reason if isinstance(self._next, Stop) else None

    @cached_property
    def _next(self) -> Query | Stop:
        if self.tally is not None:
            return self.tally.next_query(
                self.problem, self.strategy, seed=self.seed, count=self.count, budget=self.budget
            )
        return self.strategy.next_query(
            self.problem, self.history, seed=self.seed, count=self.count, budget=self.budget
        )

    @cached_property
    def tally(self) -> Tally | None:
        """The answers row by row, of a model that contradicts itself; None for others."""
        return None if self.noise is None else Tally(self.noise, self.history)

    @property
    def learnt(self) -> History:
        """What the strategy learns from: the history, each row once and with its votes where there are any."""
        return self.history if self.tally is None else self.tally.history

    @cached_property
    def worth(self) -> float:
        """What one more query is expected to save, in cost; infinite while there is no counterfactual."""
        return self.strategy.worth(self.problem, self.learnt)

    @cached_property
    def closer(self) -> tuple[float, ...]:
        """The chances that a counterfactual at least 10%, 25%, 50% cheaper exists; empty where nobody can tell."""
        return self.strategy.closer(self.problem, self.learnt)

    @cached_property
    def best(self) -> FloatArray | None:
        """The best counterfactual so far, (d,)."""
        chosen = self.chosen
        return self.history.X[chosen[0]] if len(chosen) else None

    @cached_property
    def chosen(self) -> IntArray:
        """Positions in the history of up to `count` counterfactuals, best first, each different from those before."""
        if self.tally is None:
            return self._rows
        return np.array([self.tally.position(i) for i in self._rows], dtype=int)

    @cached_property
    def _rows(self) -> IntArray:
        """The same as positions in what was learnt."""
        if self.tally is not None:
            return self.tally.chosen(self.problem, self.count, self.strategy.steady)
        return answer.chosen(self.problem, self.history, self.count, self.strategy.steady)

    @property
    def votes(self) -> list[tuple[int, int, float]]:
        """For each counterfactual its answers for it, all its answers, and P(hit); empty without noise."""
        t = self.tally
        return [] if t is None else [(int(t.n_for[i]), int(t.n_asked[i]), float(t.certainty[i])) for i in self._rows]

    @cached_property
    def undoings(self) -> Undoings:
        """The counterfactuals with each change undone alone: is it needed?"""
        return Undoings(self.problem, self.learnt, self._rows, self.strategy.steady)

    @cached_property
    def steadiness(self) -> FloatArray:
        """The surrogate's P(hit) in a small neighbourhood of each counterfactual, (c,)."""
        return answer.steadiness(self.problem, self.learnt, self.history.X[self.chosen])
