"""No change that is not needed: before a counterfactual is the answer, each of its changes is undone alone, and asked.

A change is *needless* when the row without it is allowed, looks real and is still a hit: that row costs less, and takes
the counterfactual's place. So it is *needed* when the row without it was asked and missed, also by somebody else, or
need not be asked: it may not be, it does not look real, it is not as steady as was wished, or no longer different from
the other counterfactuals. Everything follows from the history: a search that goes on later marks and asks the same.

The last queries of a budget are kept for it, as many as there are changes to check and a few to `SPARE`, `RESERVED` of
the budget at most; until then a search asks what it would ask with any larger budget. It ends, with queries left over,
where all that it would ask is a cheaper hit that could not be checked any more. After an undoing that hits, what missed
before was asked of another row, and has to be asked again: so the likeliest come first, and some queries are spare.
Where there are more changes than queries, several are undone together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search import answer
from acex.search.belief import Belief
from acex.search.climb import best_position
from acex.search.evidence import Ground, Points
from acex.search.problem import History, Problem, Query, key

Mark: TypeAlias = Literal[
    "needed (asked)",
    "needed (rules)",
    "needed (plausibility)",
    "needed (margin)",
    "needed (alternatives)",
    "not checked",
]

# Shares of the budget, chosen on simulated tasks: what is kept for undoing at most, and of it for asking again.
RESERVED, SPARE = 0.5, 0.15


@dataclass(frozen=True, eq=False)
class Undoings:
    """The counterfactuals of a search with each change undone alone, u of them, and what is known of that.

    Args:
        chosen: positions of the counterfactuals in the history, (c,).
        steady: with a margin, how steady a counterfactual should be.
    """

    problem: Problem
    history: History
    chosen: IntArray
    steady: float | None = None

    @cached_property
    def of(self) -> IntArray:
        """Which counterfactual each belongs to, (u,)."""
        n_changes = (self.history.X[self.chosen] != self.problem.factual).sum(axis=1)
        return np.repeat(np.arange(len(self.chosen)), n_changes)

    @cached_property
    def features(self) -> IntArray:
        """Which feature each leaves as it is in the factual, (u,)."""
        return np.nonzero(self.history.X[self.chosen] != self.problem.factual)[1]

    @cached_property
    def X(self) -> FloatArray:
        """The points, (u, d)."""
        X = self.history.X[self.chosen][self.of].copy()
        X[np.arange(len(X)), self.features] = self.problem.factual[self.features]
        return X

    @cached_property
    def marks(self) -> list[Mark]:
        """Is the change needed, and who says so? One for each."""
        marks: list[Mark] = []
        allowed, plausible = self.problem.region.contains(self.X), self.problem.plausible(self.X)
        for i, x in enumerate(self.X):
            hit = self._answers.get(key(x))
            if hit is False:
                marks.append("needed (asked)")
            elif not allowed[i]:
                marks.append("needed (rules)")
            elif not plausible[i]:
                marks.append("needed (plausibility)")
            elif not self._steady_enough[i]:
                marks.append("needed (margin)")
            elif not self._different(i):
                marks.append("needed (alternatives)")
            else:
                marks.append("not checked")
        return marks

    @property
    def open(self) -> BoolArray:
        """Which of them nobody has asked, though they may be hits, (u,)."""
        return np.array([mark == "not checked" for mark in self.marks], dtype=bool)

    def next(self, budget: float = np.inf) -> Query | None:
        """The row that settles most changes, in expectation; None when all changes are checked.

        Several that are undone together are settled by a hit alone, and a single one also by a miss: then it is needed.
        That is worth less where not every change can be asked.
        """
        if not self.open.any():
            return None
        success = np.zeros(len(self.history.queries), dtype=bool)
        success[self.chosen] = True
        belief, ground = Belief(self.problem, self.history, success), self.problem.once(Ground)
        alone = belief.probability(Points(ground, self.X))
        X, n_undone = self.X[self.open], np.ones(int(self.open.sum()))
        for i in range(len(self.chosen) if self.steady is None else 0):
            together = self._together(i, np.flatnonzero(self.open & (self.of == i)), alone)
            X, n_undone = np.vstack([X, together]), np.append(n_undone, 2 + np.arange(len(together)))
        probability = belief.probability(Points(ground, X))
        settled = probability * n_undone
        # A round that is proposed at once may go beyond the budget.
        settled[n_undone == 1] += np.clip(self._left(budget) / self.open.sum(), 0, 1)
        best = best_position(X, settled, self._may_ask, above=-1.0)
        assert best is not None  # a change that is open may be undone
        chance = float(probability[best])
        return Query(X[best], "undo", self.history.queries[-1].round, hope=chance, chance=chance)

    def _together(self, i: int, open_: IntArray, alone: FloatArray) -> FloatArray:
        """Counterfactual number i without the likeliest two, three, ... of its open changes, (n, d).

        One answer then checks several of them, where there are more than can be asked one by one.
        """
        likeliest = self.features[open_[np.argsort(-alone[open_], kind="stable")]]
        X = np.repeat(self.history.X[self.chosen[i]][None], len(likeliest), axis=0)
        for n, j in enumerate(likeliest):
            X[n:, j] = self.problem.factual[j]
        good = np.asarray((self.problem.factual != X).any(axis=1)) & self.problem.different(X, self._others[i])
        return X[1:] if good[1:].all() else X[1 : 1 + int(good[1:].argmin())]

    def _may_ask(self, X: FloatArray) -> BoolArray:
        return self.problem.admissible(X, self.history.useless)

    def is_due(self, budget: float) -> bool:
        """Is what is left of the budget wanted for them?"""
        n_open = int(self.open.sum())
        return n_open > 0 and self._left(budget) <= min(n_open + min(n_open, SPARE * budget), RESERVED * budget)

    def is_short(self, budget: float) -> bool:
        """Is less left of the budget than it takes to check them?"""
        left, most = self._left(budget), RESERVED * budget
        return left < min(len(self.X), most) and left < min(int(self.open.sum()), most)

    def _left(self, budget: float) -> float:
        return budget - len(self.history.queries)

    @cached_property
    def _answers(self) -> dict[bytes, bool]:
        """Was it a hit? For all points that were asked, here or elsewhere."""
        own = dict(zip((key(q.point) for q in self.history.queries), self.history.hits, strict=True))
        return own if self.history.known is None else {**self.history.known.answers, **own}

    @cached_property
    def _steady_enough(self) -> BoolArray:
        if self.steady is None or not len(self.X):
            return np.ones(len(self.X), dtype=bool)
        steadiness = answer.steadiness(self.problem, self.history, np.vstack([self.X, self.history.X[self.chosen]]))
        undone, whole = np.minimum(steadiness, self.steady)[: len(self.X)], steadiness[len(self.X) :][self.of]
        return np.asarray(undone >= np.minimum(whole, self.steady))

    def _different(self, i: int) -> bool:
        """Is it still different from the other counterfactuals?"""
        return bool(self.problem.different(self.X[i : i + 1], self._others[self.of[i]])[0])

    @cached_property
    def _others(self) -> list[list[frozenset[int]]]:
        """For each counterfactual what the others rest on."""
        sets = [self.problem.rests_on(x) for x in self.history.X[self.chosen]]
        return [sets[:i] + sets[i + 1 :] for i in range(len(sets))]
