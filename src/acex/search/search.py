"""A search as a value: what was asked and answered so far, and the next query that follows from it.

`ask` is a pure function of problem, strategy, history and seed: the same answers lead to the same next query in every
process. This package works with points only; rows and labels are converted elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.search.belief import Belief
from acex.search.feasible import Feasible
from acex.search.penalty import Penalty
from acex.search.problem import History, Known, Problem, Query, Stop
from acex.search.reverts import Reverts
from acex.search.strategy import Strategy, best_counterfactuals
from acex.search.votes import Noise, Tally
from acex.space.cost import n_changed
from acex.values import listed

FEW_CHANGES = 4  # most changes of a short counterfactual, which is added to a result with more changes
SHARE_OF_SHORT = 0.1  # largest share of the budget for a short counterfactual, chosen on simulated tasks
STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in (Feasible, Penalty)}


def as_strategy(strategy: Any) -> Strategy:
    """The strategy given as an object or by name.

    Raises:
        ValueError: it is neither a strategy nor the name of one.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]()
    examples = " or ".join(f"acex.{kind.__name__}(...)" for kind in STRATEGIES.values())
    raise ValueError(f"strategy: expected one of {listed(STRATEGIES)}, or an object {examples}, got {strategy!r}.")


@dataclass(frozen=True, eq=False)
class Search:
    """The search for counterfactuals of one factual, after a number of answers."""

    problem: Problem
    strategy: Strategy
    seed: int
    history: History
    count: int = 1
    budget: float = np.inf
    noise: Noise | None = None
    offers_short: bool = False

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
        offers_short: bool = False,
    ) -> Search:
        """A search in which only the factual was asked, and is not a hit.

        Args:
            count: number of counterfactuals to look for, different from each other.
            budget: largest number of queries; a search for several counterfactuals divides them.
            odds: the model's log odds of a hit for the factual, if the model gives scores.
            noise: for a model whose answers vary; asking a point again is a vote.
            offers_short: if the best counterfactual changes many features, look for one with few changes too.
        """
        history = History((), ()).with_answer(Query(problem.factual, "factual"), False, odds)
        return cls(problem, strategy, seed, history, count, budget, noise, offers_short)

    def ask(self) -> Query | None:
        """The next point to ask; None when the search has stopped."""
        return self._next if isinstance(self._next, Query) else None

    def tell(self, query: Query, hit: bool, odds: float | None = None) -> Search:
        """The search with the answer to a query, and the model's log odds of a hit if the model gives scores."""
        return replace(self, history=self.history.with_answer(query, hit, odds))

    def propose(self, n: int) -> list[Query]:
        """Up to n points to ask at once: each is chosen as if those before it were misses.

        A round that looks for cheaper hits ends before changes are reverted, because its answers decide which these
        are. A round that reverts changes leaves enough of the budget to revert the others again after a hit.

        The search for a short counterfactual gets the remaining budget. Queries are reserved for it only if more than a
        few changes of the best one are needed; otherwise the search may still make that one short.
        """
        max_short = round(SHARE_OF_SHORT * self.budget) if self.offers_short else 0
        n_short = max_short - sum(query.purpose == "short" for query in self.history.queries)
        if n_short <= 0 or not self.is_long:
            return self._proposed(n)
        n_asked, n_needed = len(self.history.queries), int((~self.reverts.open).sum())
        if n_needed > FEW_CHANGES:
            kept = self.budget - n_short
            queries = replace(self, budget=kept)._proposed(int(min(n, kept - n_asked)))
        else:
            queries = self._proposed(n)
        if not queries:
            short = replace(self.short(), budget=min(self.budget, n_asked + n_short))
            queries = [replace(query, purpose="short") for query in short.propose(min(n, n_short))]
        return queries or self._proposed(n)

    def _proposed(self, n: int) -> list[Query]:
        queries: list[Query] = []
        search = self
        while len(queries) < n and (query := search.ask()) is not None:
            is_revert = query.purpose == "undo"
            if queries and is_revert != (queries[0].purpose == "undo"):
                break
            if is_revert and not queries and n > 1:
                n_left, n_open = self.budget - len(self.merged_history.queries), int(self.reverts.open.sum())
                n = int(min(n, max(n_left - n_open + 1, 1)))
            queries.append(query)
            odds = min(search.history.odds, default=None)
            search = search.tell(query, False, odds)
        return queries

    def with_known(self, known: Known | None) -> Search:
        """The search with these answers of other searches."""
        return replace(self, history=replace(self.history, known=known))

    def short(self) -> Search:
        """The search on the same evidence for a counterfactual with few changes, whether it is plausible or not."""
        return replace(self, problem=self.problem.cached(_with_few_changes), count=1, offers_short=False)

    @property
    def is_long(self) -> bool:
        """Whether the best counterfactual changes more than a few features."""
        return self.best is not None and int(n_changed(self.best[None], self.problem.factual)[0]) > FEW_CHANGES

    @property
    def stop_reason(self) -> str | None:
        """Why the search has stopped: "settled", "exhausted", "unlikely", "budget"; None while it continues."""
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
        """Answers counted by point, if the model's answers vary; otherwise None."""
        return None if self.noise is None else Tally(self.noise, self.history)

    @property
    def merged_history(self) -> History:
        """The history that the strategy reads: with noise, each point once with the result of its votes."""
        return self.history if self.tally is None else self.tally.history

    @cached_property
    def improvement_odds(self) -> tuple[float, ...]:
        """Probabilities that a counterfactual at least 10%, 25%, 50% cheaper exists; empty if not estimated."""
        return self.strategy.improvement_odds(self.problem, self.merged_history)

    @cached_property
    def best(self) -> FloatArray | None:
        """The best counterfactual so far, (d,)."""
        return self.history.X[self.counterfactuals[0]] if len(self.counterfactuals) else None

    @cached_property
    def counterfactuals(self) -> IntArray:
        """Positions in the history of up to `count` counterfactuals, best first, each different from those before."""
        if self.tally is None:
            return self._merged_positions
        return np.array([self.tally.position(i) for i in self._merged_positions], dtype=int)

    @cached_property
    def _merged_positions(self) -> IntArray:
        """The counterfactuals as positions in `merged_history`."""
        if self.tally is not None:
            return self.tally.counterfactuals(self.problem, self.count, self.strategy.margin)
        return best_counterfactuals(self.problem, self.history, self.count, self.strategy.margin)

    @property
    def votes(self) -> list[tuple[int, int, float]]:
        """For each counterfactual: answers for it, all its answers, P(hit); empty without noise."""
        t = self.tally
        if t is None:
            return []
        return [(int(t.n_for[i]), int(t.n_asked[i]), float(t.certainty[i])) for i in self._merged_positions]

    @cached_property
    def reverts(self) -> Reverts:
        """The counterfactuals with each change reverted alone."""
        return Reverts(self.problem, self.merged_history, self._merged_positions, self.strategy.margin)

    @cached_property
    def robustness(self) -> FloatArray:
        """The surrogate's P(hit) in a small neighbourhood of each counterfactual, (c,)."""
        return Belief(self.problem, self.merged_history).robustness(self.history.X[self.counterfactuals])


def _with_few_changes(problem: Problem) -> Problem:
    return replace(problem, region=replace(problem.region, max_changes=FEW_CHANGES), density=None)
