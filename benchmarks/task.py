"""The input of a method: a row to explain, and a model that counts every query."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.engine.blackbox import BlackBox
from acex.ledger import MemoryLedger
from acex.models.model import Model
from acex.space.region import Region
from benchmarks.scenario import Scenario

UNLIMITED = 10**9
MOST_REJECTED = 1_000_000  # number of implausible points of one row after which a method is stopped

Panel: TypeAlias = Literal["own", "none", "filter"]
"""Who uses the plausibility filter: each method as it does by itself, no method, or every method.

In panel "filter" the filter is given to every method: an implausible point is a miss, and known to be one without a
query.
"""


class CapReached(Exception):
    """The query cap is reached; the best hit so far is the method's answer."""


@dataclass(frozen=True, eq=False)
class Task:
    """A row to explain, and everything else that a method may know without a query."""

    scenario: Scenario
    x: FloatArray  # the factual, (d,)
    panel: Panel = "own"

    @cached_property
    def region(self) -> Region:
        """The points that the row may become: frozen and constant features stay, integers stay integers."""
        return Region.of(self.scenario.space, self.x, constant=self.scenario.is_constant)

    @property
    def movable(self) -> BoolArray:
        """Which features may change, (d,)."""
        return self.region.movable

    def project(self, X: FloatArray) -> FloatArray:
        """The nearest points that the row may become, (n, d)."""
        return self.region.snap(X)

    def allowed(self, X: FloatArray) -> BoolArray:
        """Which points the row may become, (n,)."""
        moved = np.abs(self.project(X) - X)
        return np.asarray((moved <= 1e-9 * (1 + np.abs(X))).all(axis=1))

    def plausible(self, X: FloatArray) -> BoolArray:
        """Which points pass the filter of panel "filter", (n,); every point in the other panels."""
        if self.panel != "filter":
            return np.ones(len(X), dtype=bool)
        return self.scenario.density.plausible(X)

    def cost(self, X: FloatArray) -> FloatArray:
        """J = d2n + 5 g1n of points, (n,)."""
        return self.scenario.cost(X, self.x)


class CountedModel:
    """The model as a black box that counts every row, including rows queried before.

    The row to explain is the first query of every method, whether the method queries it or not. If the reference is a
    history, its rows are free. The curve holds pairs: number of queries so far, least J of an allowed hit among them;
    the distinct curve counts a repeated row once. In panel "filter" only plausible hits are in the curves.

    Args:
        cap: number of queries after which `CapReached` stops the method.
    """

    def __init__(self, task: Task, cap: int = UNLIMITED) -> None:
        self.task, self.cap = task, cap
        self._box = BlackBox(Model(task.scenario.predict), MemoryLedger(), UNLIMITED)
        self.queries = 0
        self.rejected = 0  # implausible points, in panel "filter"
        self.curve: list[tuple[int, float]] = []
        self.distinct_curve: list[tuple[int, float]] = []
        self.best: FloatArray | None = None  # the allowed hit of least J, (d,)
        self._before: int | None = None
        self._asked: set[bytes] = set()
        self._plausible: dict[bytes, bool] = {}  # cache of the filter's results

    @property
    def before(self) -> int:
        """The model's label of the row to explain."""
        if self._before is None:
            self._numbers(self.task.x[None])
            self._before = int(self._ask(self.task.x[None])[0])
        return self._before

    @property
    def distinct(self) -> int:
        """Number of distinct rows queried, which is the price with a ledger."""
        return self._box.n_queries

    @property
    def answers(self) -> list[tuple[list[float], int]]:
        """The distinct rows queried, in order, each with its label."""
        answers = self._box.ledger.answers(self._box.model_id)
        return [(json.loads(answer.row), int(answer.label)) for answer in answers]

    def predict(self, X: FloatArray) -> IntArray:
        """The labels, 0 or 1, of points, (n,); in panel "filter" an implausible point gets the factual's label."""
        rows = np.asarray(X, dtype=float)
        if self.task.panel != "filter":
            return self.labels(rows)
        labels = np.full(len(rows), self.before)
        plausible = self.plausible(rows)
        self.rejected += int((~plausible).sum())
        if self.rejected > MOST_REJECTED:
            raise CapReached
        labels[plausible] = self.labels(rows[plausible])
        return labels

    def labels(self, X: FloatArray) -> IntArray:
        """The model's own labels of points, (n,), for methods that apply the filter themselves.

        Raises:
            CapReached: after querying the rows that the cap still allows.
        """
        rows = np.asarray(X, dtype=float)
        if self._before is None and len(rows) == 1 and (rows[0] == self.task.x).all():
            return np.array([self.before])
        before = self.before
        is_new = ~self._is_known(rows)
        new = rows[is_new][: max(self.cap - self.queries, 0)]
        asked = self.queries
        numbers = self._numbers(new)
        answers = self._ask(new)
        self._note(new, answers != before, asked, numbers)
        if len(new) < is_new.sum():
            raise CapReached
        labels = np.empty(len(rows), dtype=np.intp)
        labels[is_new] = answers
        labels[~is_new] = self.task.scenario.predict(rows[~is_new]) if not is_new.all() else ()
        return labels

    def _is_known(self, rows: FloatArray) -> BoolArray:
        """Which rows belong to a history and are therefore free, (n,)."""
        g = self.task.scenario
        return np.array([g.is_history and g.in_reference(row) for row in rows], dtype=bool)

    def scores(self, X: FloatArray) -> FloatArray:
        """The model's probabilities of labels 0 and 1, (n, 2), for methods that use them; each row is a query."""
        self.predict(X)
        probabilities: FloatArray = np.array(self.task.scenario.model.predict_proba(X), dtype=float)
        probabilities[~self.plausible(np.asarray(X, dtype=float))] = np.eye(2)[self.before]
        return probabilities

    def plausible(self, X: FloatArray) -> BoolArray:
        """Like `Task.plausible`, but cached, since some methods query the same points many times."""
        keys = [row.tobytes() for row in X]
        new = [i for i, key in enumerate(keys) if key not in self._plausible]
        if new:
            self._plausible.update(zip((keys[i] for i in new), self.task.plausible(X[new]).tolist(), strict=True))
        return np.array([self._plausible[key] for key in keys], dtype=bool)

    def is_hit(self, X: FloatArray) -> BoolArray:
        """Which points have a label other than that of the row to explain, (n,)."""
        hits: BoolArray = self.predict(X) != self.before
        return hits

    def _ask(self, rows: FloatArray) -> IntArray:
        self.queries += len(rows)
        return np.array([answer.label for answer in self._box.ask(rows)] if len(rows) else [], dtype=np.intp)

    def _numbers(self, rows: FloatArray) -> list[int]:
        """The number of distinct rows queried up to and including each of these."""
        numbers = []
        for row in rows + 0.0:  # no negative zeros
            self._asked.add(row.tobytes())
            numbers.append(len(self._asked))
        return numbers

    def _note(self, rows: FloatArray, is_hit: BoolArray, asked: int, numbers: list[int]) -> None:
        """Record which of these rows, queried after `asked` others, improve on the best so far."""
        hits = np.flatnonzero(is_hit)
        if len(hits) == 0:
            return
        counts = self.task.allowed(rows[hits]) & self.task.plausible(rows[hits])
        J = np.where(counts, self.task.cost(rows[hits]), np.inf)
        least = self.curve[-1][1] if self.curve else np.inf
        for i, cost in zip(hits, J.tolist(), strict=True):
            if cost < least:
                least, self.best = cost, rows[i]
                self.curve.append((asked + int(i) + 1, cost))
                self.distinct_curve.append((numbers[i], cost))


Explain = Callable[[Task, CountedModel, int], FloatArray]
"""A method: from task, model and seed to its candidates, (k, d), best or not; none when it found nothing."""
