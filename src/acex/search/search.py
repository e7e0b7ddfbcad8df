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
from acex.search.prune import Undoings
from acex.search.strategy import Strategy


@dataclass(frozen=True, eq=False)
class Search:
    """The search for counterfactuals of one factual, at one moment."""

    problem: Problem
    strategy: Strategy
    seed: int
    history: History
    count: int = 1
    budget: float = np.inf

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
    ) -> Search:
        """A search that knows only that the factual is not a hit.

        Args:
            count: how many counterfactuals, different from each other, are wanted.
            budget: how many queries there will be at most; a search for several divides them.
            odds: the model's log odds of a hit for the factual, where it gives scores.
        """
        nothing = History((), ())
        history = nothing.told(Query(problem.factual, "factual"), False, odds)
        return cls(problem, strategy, seed, history, count, budget)

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
        return self.strategy.next_query(
            self.problem, self.history, seed=self.seed, count=self.count, budget=self.budget
        )

    @cached_property
    def worth(self) -> float:
        """What one more query is expected to save, in cost; infinite while there is no counterfactual."""
        return self.strategy.worth(self.problem, self.history)

    @cached_property
    def best(self) -> FloatArray | None:
        """The best counterfactual so far, (d,)."""
        chosen = self.chosen
        return self.history.X[chosen[0]] if len(chosen) else None

    @cached_property
    def chosen(self) -> IntArray:
        """Positions in the history of up to `count` counterfactuals, best first, each different from those before."""
        return answer.chosen(self.problem, self.history, self.count, self.strategy.steady)

    @cached_property
    def undoings(self) -> Undoings:
        """The counterfactuals with each change undone alone: is it needed?"""
        return Undoings(self.problem, self.history, self.chosen, self.strategy.steady)

    def steadiness(self, X: FloatArray) -> FloatArray:
        """The surrogate's P(hit) in a small neighbourhood of points, (n,)."""
        return answer.steadiness(self.problem, self.history, X)
