"""Removal of unneeded changes: before a counterfactual is returned, each of its changes is reverted alone and asked.

A change is not needed if the point without it is allowed, plausible and still a hit: that point costs less and replaces
the counterfactual. If an equality connects features (total == a + b), the total is adjusted too, or all of them are
reverted. A change is *needed* if the point without it was a miss, in this or another search, or cannot replace the
counterfactual: it is not allowed, not plausible, less robust than the margin, or no longer different from a cheaper
counterfactual. All of this follows from the history, so a resumed search marks and asks the same.

The last queries of a budget are reserved for these checks: as many as there are changes to check and a few more (at
most a share `SPARE` of the budget), but not more than a share `RESERVED`. Until then a search asks the same points as
with any larger budget. It stops with queries left over if all it could ask is a cheaper hit that could not be checked
any more. After a reverted change that hits, earlier misses belong to another point and must be asked again. So the
likeliest come first, and some queries are spare. If there are more changes than queries, several are reverted together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.search.belief import Belief
from acex.search.evidence import Points, SearchContext
from acex.search.maximise import best_position
from acex.search.problem import History, Problem, Query, key

Mark: TypeAlias = Literal[
    "needed (asked)",
    "needed (rules)",
    "needed (plausibility)",
    "needed (margin)",
    "needed (alternatives)",
    "not checked",
]

# Shares of the budget, chosen on simulated tasks: most queries reserved for reverts, and most of these that are spare.
RESERVED, SPARE = 0.5, 0.15


@dataclass(frozen=True, eq=False)
class Reverts:
    """The counterfactuals of a search with each change reverted alone, u points, and what is known about these.

    Args:
        chosen: positions of the counterfactuals in the history, (c,).
        margin: least robustness of a counterfactual; None: not considered.
    """

    problem: Problem
    history: History
    chosen: IntArray
    margin: float | None = None

    @cached_property
    def of(self) -> IntArray:
        """The counterfactual of each point, (u,)."""
        n_changes = (self.history.X[self.chosen] != self.problem.factual).sum(axis=1)
        return np.repeat(np.arange(len(self.chosen)), n_changes)

    @cached_property
    def features(self) -> IntArray:
        """The feature that is reverted in each point, (u,)."""
        return np.nonzero(self.history.X[self.chosen] != self.problem.factual)[1]

    @cached_property
    def X(self) -> FloatArray:
        """The points, (u, d)."""
        X = self.history.X[self.chosen][self.of].copy()
        X[np.arange(len(X)), self.features] = self.problem.factual[self.features]
        return self._with_followers(X, self.history.X[self.chosen][self.of])

    def _with_followers(self, X: FloatArray, of: FloatArray) -> FloatArray:
        """Counterfactuals `of`, (n, d), with some changes reverted, X, (n, d), adjusted to satisfy equalities.

        A point that equalities forbid is replaced by one in which the features computed from others are adjusted, or by
        the nearest allowed one, if that keeps these changes reverted and costs less than the counterfactual; otherwise
        all features connected with them are reverted.
        """
        region, x = self.problem.region, self.problem.factual
        if not any(rule.equalities for rule in region.rules) or not len(X):
            return X
        reverted, forbidden = (x == X) & (x != of), ~region.contains(X)
        together, out = np.where(reverted @ region.tied, x, X), X
        for points in (together, region.snap(X), region.completed(X, reverted)):  # the best comes last
            keeps = ((points == x) | ~reverted).all(axis=1) & (self.problem.cost(points) < self.problem.cost(of))
            good = forbidden & keeps & region.contains(points) & (points != x).any(axis=1)
            out = np.where(good[:, None], points, out)
        return out

    @cached_property
    def marks(self) -> list[Mark]:
        """Whether each change is needed, and why."""
        marks: list[Mark] = []
        allowed, plausible = self._is_allowed, self.problem.plausible(self.X)
        for i, x in enumerate(self.X):
            if self._is_miss_alone[i]:
                marks.append("needed (asked)")
            elif not allowed[i] or self._answers.get(key(x)) is False:  # a rule forbids reverting it alone
                marks.append("needed (rules)")
            elif not plausible[i]:
                marks.append("needed (plausibility)")
            elif not self._robust_enough[i]:
                marks.append("needed (margin)")
            elif not self.problem.is_different(x[None], self._others[self.of[i]])[0]:
                marks.append("needed (alternatives)")
            else:
                marks.append("not checked")
        return marks

    @cached_property
    def _is_allowed(self) -> BoolArray:
        """Which points the region contains, (u,)."""
        return self.problem.region.contains(self.X)

    @cached_property
    def _is_miss_alone(self) -> BoolArray:
        """Whether the point without this change, and with what is computed from it adjusted, was a miss, (u,)."""
        region, hits = self.problem.region, self.history.X[self.chosen][self.of]
        reverted = np.zeros(hits.shape, dtype=bool)
        reverted[np.arange(len(hits)), self.features] = True
        alone, X, forbidden = np.where(reverted, self.problem.factual, hits), self.X.copy(), ~self._is_allowed
        X[forbidden] = region.completed(alone[forbidden], reverted[forbidden])
        is_miss = np.array([self._answers.get(key(x)) is False for x in X], dtype=bool)
        is_computed = np.isin(np.arange(X.shape[1]), list(region.computed))
        # Without the change of a computed feature, others that it is computed from would have to move.
        may_move = is_computed & (hits != self.problem.factual) & ~is_computed[self.features][:, None]
        return np.asarray(is_miss & ((alone == X) | may_move).all(axis=1))

    @property
    def open(self) -> BoolArray:
        """Which points were not asked but may be hits, (u,)."""
        return np.array([mark == "not checked" for mark in self.marks], dtype=bool)

    def next(self, budget: float = np.inf) -> Query | None:
        """The point whose answer is expected to check most changes; None if all changes are checked.

        Several changes reverted together are checked only by a hit; a single one also by a miss, which shows that it is
        needed. A miss counts less if the budget does not suffice to ask every change.
        """
        if not self.open.any():
            return None
        success = np.zeros(len(self.history.queries), dtype=bool)
        success[self.chosen] = True
        belief, context = Belief(self.problem, self.history, success), self.problem.cached(SearchContext)
        alone = belief.probability(Points(context, self.X))
        X, n_reverted = self.X[self.open], np.ones(int(self.open.sum()))
        for i in range(len(self.chosen) if self.margin is None else 0):
            together = self._together(i, np.flatnonzero(self.open & (self.of == i)), alone)
            X, n_reverted = np.vstack([X, together]), np.append(n_reverted, 2 + np.arange(len(together)))
        probability = belief.probability(Points(context, X))
        n_checked = probability * n_reverted
        # Queries proposed together may exceed the budget, hence the clip.
        n_checked[n_reverted == 1] += np.clip(self._left(budget) / self.open.sum(), 0, 1)
        best = best_position(X, n_checked, lambda X: self.problem.admissible(X, self.history.redundant), above=-1.0)
        assert best is not None  # an open point is admissible
        p_hit = float(probability[best])
        return Query(X[best], "undo", self.history.queries[-1].round, max_p_hit=p_hit, p_hit=p_hit)

    def _together(self, i: int, open_: IntArray, alone: FloatArray) -> FloatArray:
        """Counterfactual i with its two, three, ... open changes reverted that are least likely needed, (n, d).

        One answer then checks several changes, if there are more than can be asked one by one.
        """
        likeliest = self.features[open_[np.argsort(-alone[open_], kind="stable")]]
        X = np.repeat(self.history.X[self.chosen[i]][None], len(likeliest), axis=0)
        for n, j in enumerate(likeliest):
            X[n:, j] = self.problem.factual[j]
        X = self._with_followers(X, np.repeat(self.history.X[self.chosen[i]][None], len(X), axis=0))
        good = np.asarray((self.problem.factual != X).any(axis=1)) & self.problem.is_different(X, self._others[i])
        return X[1:] if good[1:].all() else X[1 : 1 + int(good[1:].argmin())]

    def is_due(self, budget: float) -> bool:
        """Whether the remaining budget is reserved for the open points."""
        n_open = int(self.open.sum())
        return n_open > 0 and self._left(budget) <= min(n_open + min(n_open, SPARE * budget), RESERVED * budget)

    def is_short(self, budget: float) -> bool:
        """Whether the remaining budget is too small to check the points."""
        left, reserved = self._left(budget), RESERVED * budget
        return left < min(len(self.X), reserved) and left < min(int(self.open.sum()), reserved)

    def _left(self, budget: float) -> float:
        return budget - len(self.history.queries)

    @cached_property
    def _answers(self) -> dict[bytes, bool]:
        """Whether each point asked in this or another search was a hit, by key."""
        own = dict(zip((key(q.point) for q in self.history.queries), self.history.hits, strict=True))
        return own if self.history.known is None else {**self.history.known.answers, **own}

    @cached_property
    def _robust_enough(self) -> BoolArray:
        if self.margin is None or not len(self.X):
            return np.ones(len(self.X), dtype=bool)
        X = np.vstack([self.X, self.history.X[self.chosen]])
        robustness = np.minimum(Belief(self.problem, self.history).robustness(X), self.margin)
        return np.asarray(robustness[: len(self.X)] >= robustness[len(self.X) :][self.of])

    @cached_property
    def _others(self) -> list[list[frozenset[int]]]:
        """For each counterfactual the main features of those before it, which are cheaper."""
        sets = [self.problem.main_features(x) for x in self.history.X[self.chosen]]
        return [sets[:i] for i in range(len(sets))]
