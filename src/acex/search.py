"""A search as a value: what was asked and answered so far, and the next question that follows from it.

`ask` is a pure function of problem, strategy, history and seed: the same answers lead to the same next
question, in every process. Points only; rows and labels belong to `explainer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from acex import feasible, penalty
from acex.arrays import FloatArray, IntArray
from acex.feasible import Feasible
from acex.penalty import Penalty
from acex.problem import History, Problem, Query, Stop

Strategy: TypeAlias = Feasible | Penalty


@dataclass(frozen=True, eq=False)
class Search:
    """The search for counterfactuals of one factual, at one moment."""

    problem: Problem
    strategy: Strategy
    seed: int
    history: History

    @classmethod
    def begin(cls, problem: Problem, strategy: Strategy, seed: int = 0) -> Search:
        """A search that knows only that the factual is not a hit."""
        factual = Query(problem.factual, "factual")
        return cls(problem, strategy, seed, History((factual,), (False,)))

    def ask(self) -> Query | None:
        """The next point to ask; None when the search has stopped."""
        return self._next if isinstance(self._next, Query) else None

    def tell(self, query: Query, hit: bool) -> Search:
        """The search that has learnt whether the query was a hit."""
        return Search(self.problem, self.strategy, self.seed, self.history.told(query, hit))

    @property
    def settled(self) -> str | None:
        """Why the search has stopped: "settled", "exhausted", "unlikely"; None while it goes on."""
        return self._next.reason if isinstance(self._next, Stop) else None

    @cached_property
    def _next(self) -> Query | Stop:
        match self.strategy:
            case Feasible():
                return feasible.next_query(self.problem, self.strategy, self.history, self.seed)
            case Penalty():
                return penalty.next_query(self.problem, self.strategy, self.history, self.seed)

    @cached_property
    def best(self) -> FloatArray | None:
        """The cheapest counterfactual so far, (d,)."""
        ranked = self.ranked
        return self.history.X[ranked[0]] if len(ranked) else None

    @cached_property
    def ranked(self) -> IntArray:
        """Positions of the counterfactuals in the history, cheapest first."""
        X = self.history.X
        good = np.flatnonzero(self.history.is_hit)
        good = good[self.problem.plausible(X[good]) & self.problem.region.contains(X[good])]
        return good[np.argsort(self.problem.cost(X[good]), kind="stable")]
