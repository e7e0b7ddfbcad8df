"""What a strategy is: from what was asked and answered, the next question.

A strategy is a frozen dataclass of its settings with two methods, pure functions of their arguments: the same answers
lead to the same next question, in every process. A new one is a file with such a class and a line in `strategies`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from acex.search.problem import History, Problem, Query, Stop
from acex.space.plausibility import Kind


class Strategy(ABC):
    """How the next point is chosen. Settings are the fields of the dataclass that implements it."""

    name: ClassVar[str]
    revision: ClassVar[int]  # another one as soon as the same history leads to another question
    finds_several: ClassVar[bool] = False  # can it look for counterfactuals that differ from each other?
    uses_hints: ClassVar[bool] = False  # does it ask `Problem.hint` where to look?
    prunes: ClassVar[bool] = False  # does it undo changes that are not needed, and leave alone what nobody would see?
    plausibility: ClassVar[Kind] = "joint"  # the kind of filter, where nobody chose one

    @property
    def steady(self) -> float | None:
        """How steady a counterfactual has to be, by the surrogate, if at all."""
        return None

    def spending(self) -> Strategy:
        """The same strategy for somebody who wants the whole budget spent (`effort="spend"`)."""
        raise ValueError(f"effort='spend' needs strategy 'feasible'; strategy {self.name!r} ends where it ends.")

    def with_margin(self, margin: float) -> Strategy:
        """The strategy that looks for counterfactuals this steady.

        Raises:
            ValueError: it cannot.
        """
        raise ValueError(f"margin needs strategy 'feasible', got strategy {self.name!r}.")

    @property
    def described(self) -> dict[str, Any]:
        """Name, revision and settings, in plain values: what a plan says of it."""
        return {"name": self.name, "revision": self.revision, **asdict(self)}  # type: ignore[call-overload]

    @abstractmethod
    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """What to ask next, or why there is nothing more to ask.

        Args:
            count: how many counterfactuals, different from each other, are wanted.
            budget: how many queries there will be at most.
        """

    @abstractmethod
    def worth(self, problem: Problem, history: History) -> float:
        """What one more query is expected to save, in cost; infinite while there is no counterfactual."""


def best_cost(problem: Problem, history: History) -> float:
    """The least cost of a counterfactual in the history; infinite without one."""
    hits = history.X[history.is_hit]
    hits = hits[problem.plausible(hits) & problem.region.contains(hits)]
    return float(problem.cost(hits).min(initial=np.inf))
