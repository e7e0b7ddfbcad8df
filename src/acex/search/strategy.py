"""The interface of a strategy, and which of the queried points are the counterfactuals.

A strategy is a frozen dataclass whose fields are its settings. Its methods are pure functions of their arguments: the
same answers lead to the same next query in every process. To add one, write the class and list it in
`search.STRATEGIES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from acex.arrays import IntArray
from acex.search.belief import Belief
from acex.search.problem import History, Problem, Query, Stop
from acex.space.cost import n_changed
from acex.space.plausibility import Kind


class Strategy(ABC):
    """How the next point is chosen. Settings are the fields of the dataclass that implements it."""

    name: ClassVar[str]
    revision: ClassVar[int]  # increased whenever the same history leads to another query
    uses_hints: ClassVar[bool] = False  # reads `Problem.hint`
    limits_changes: ClassVar[bool] = False  # supports max_changes, a fixed cost per change and a smallest step
    default_per_category: ClassVar[float | None] = None  # cost of a changed category; None: 1 / its deviation (paper)
    default_plausibility: ClassVar[Kind] = "joint"

    @property
    def margin(self) -> float | None:
        """Least robustness of a counterfactual; None if the strategy has no such setting or it is not used."""
        return None

    @property
    def described(self) -> dict[str, Any]:
        """Name, revision and settings as plain values, as a plan records them."""
        return {"name": self.name, "revision": self.revision, **asdict(self)}  # type: ignore[call-overload]

    @abstractmethod
    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """The next query, or why the search stops.

        Args:
            count: number of counterfactuals to look for, different from each other.
            budget: largest number of queries, including those of the history.
        """

    def improvement_odds(self, problem: Problem, history: History) -> tuple[float, ...]:
        """Probabilities that a counterfactual at least 10%, 25%, 50% cheaper exists; empty if not estimated."""
        return ()


def ranked_counterfactuals(problem: Problem, history: History, margin: float | None = None) -> IntArray:
    """Positions of all counterfactuals in the history, cheapest first.

    Of equally cheap ones, the one with fewer changes comes first: steps below a feature's resolution cost nothing.

    Args:
        margin: counterfactuals of at least this robustness come first, then the more robust ones.
    """
    X = history.X
    found = np.flatnonzero(history.is_hit)
    if len(found) == 0:
        return found
    found = found[problem.plausible(X[found]) & problem.region.contains(X[found])]
    order = [n_changed(X[found], problem.factual), problem.cost(X[found])]
    if margin is not None and len(found):
        order.append(-np.minimum(Belief(problem, history).robustness(X[found]), margin))
    return found[np.lexsort(order)]


def best_counterfactuals(problem: Problem, history: History, count: int, margin: float | None = None) -> IntArray:
    """Positions of up to `count` counterfactuals, best first, each different from those before."""
    ranked = ranked_counterfactuals(problem, history, margin)
    return ranked[problem.alternatives(history.X[ranked], count)]
