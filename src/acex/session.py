"""One explanation in the making: the search in points, and its rows, labels and place in the ledger.

`ask` gives the rows that want a label, `tell` takes the labels: for code that asks the model itself (a laboratory, a
person, a nightly job). `acex.explain` does the same with a model at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, Rows
from acex.blackbox import BlackBox, canonical
from acex.explanation import Explanation, Outcome, StoppedBy
from acex.ledger import Answer, Ask, Question
from acex.models import Label
from acex.problem import Hint, Known, Problem, Query, key
from acex.search import Search, Strategy
from acex.space import Space
from acex.target import Target

MOST_KNOWN = 150  # answers from elsewhere that a search takes into account, the nearest
NEWEST = 5000  # of all answers are looked at for them


class Session:
    """The questions and answers of one explanation. Made by `Explainer.search`.

    Args:
        box: the door to the model and its ledger.
        identity: what tells this explanation from others, in this ledger or any.
        recorded: the questions that this explanation has asked before, if it is resumed.
        hint: from the factual's label to what known outcomes say.
        pool: use what the same model was asked for other reasons.
        per_round: how many rows are asked at once.
    """

    def __init__(
        self,
        box: BlackBox,
        space: Space,
        problem: Problem,
        target: Target,
        strategy: Strategy,
        settings: dict[str, Any],
        *,
        seed: int,
        count: int,
        budget: int,
        identity: str = "",
        recorded: Sequence[Ask] = (),
        hint: Callable[[Label], Hint | None] = lambda label: None,
        pool: bool = True,
        per_round: int = 1,
    ) -> None:
        self.box, self.space, self.problem, self.target = box, space, problem, target
        self._settings, self._hint, self._per_round = settings, hint, per_round
        self.identity = identity
        self._begin = partial(Search.begin, strategy=strategy, seed=seed, count=count, budget=budget)
        self._seen = {ask.position: ask.seen for ask in recorded}
        self._pool = _Pool(box, space, problem) if pool else None
        self._search: Search | None = None
        self.labels: list[Label] = []  # of the search's queries, the factual's first
        self._round: list[Query] = []  # asked, and not all answered
        self._answers: dict[str, Answer] = {}  # of the round, by row
        self.stopped_by: StoppedBy = "budget"
        self.outcome: Outcome | None = None  # None while it goes on

    # -- for code that asks the model itself ---------------------------------------------------------------------

    def ask(self) -> Rows | None:
        """The rows that want a label, in the form of the data; None when the explanation is complete.

        They stay the same until all of them have been told. What is known already is not asked.
        """
        while True:
            wanted, why = self.next_round()
            if wanted is None:
                self.finish()
                return None
            new = [i for i, form in enumerate(canonical(wanted)) if form not in self._answers]
            part = wanted.iloc[new] if isinstance(wanted, pd.DataFrame) else wanted[new]
            told = self.box.hand_out(part, [why[i] for i in new])
            self.take([answer for answer in told if answer is not None])
            if self._round:
                open_ = [i for i, form in enumerate(canonical(wanted)) if form not in self._answers]
                return wanted.iloc[open_] if isinstance(wanted, pd.DataFrame) else wanted[open_]

    def tell(self, rows: Rows, labels: Any) -> None:
        """The labels of rows that were asked: some of them or all, in any order, as the model gave them."""
        if self.ask() is None:
            raise ValueError("The explanation is complete: no label is wanted any more.")
        rows = self.space.decode(self.space.encode(rows))
        wanted = set(canonical(self._rows()))
        strange = [form for form in canonical(rows) if form not in wanted]
        if strange:
            raise ValueError(f"{len(strange)} of the rows were not asked for, such as {strange[0]}; see ask().")
        self.take(self.box.take_in(rows, labels))

    # -- rounds ----------------------------------------------------------------------------------------------

    def next_round(self) -> tuple[Rows | None, list[Question]]:
        """The rows of the present round, and why they are asked; None when there are no more."""
        if not self._round and self.outcome is None:
            self._round = self._propose()
        if not self._round:
            return None, []
        position = len(self.labels)
        seen = self._visible(position)
        notes = self._notes()
        questions = [Question("", q.purpose, position + i, seen, notes[i]) for i, q in enumerate(self._round)]
        return self._rows(), questions

    def finish(self) -> None:
        """Write down how the explanation ended, where the ledger keeps such things."""
        if self.box.explanation is not None:
            self.box.ledger.finish(self.box.explanation, self.explanation().outcome)

    def take(self, answers: Sequence[Answer]) -> None:
        """Answers to rows of the present round; when all are there, the search goes on."""
        self._answers.update({answer.row: answer for answer in answers})
        forms = canonical(self._rows())
        if any(form not in self._answers for form in forms):
            return
        for query, form in zip(self._round, forms, strict=True):
            self._tell(query, self._answers[form])
        self._round, self._answers = [], {}

    def _rows(self) -> Rows:
        return self.space.decode(np.array([query.point for query in self._round]))

    def _notes(self) -> list[dict[str, Any]]:
        """The cost of each row, and whether it would be a counterfactual: what the ledger alone cannot work out."""
        X = np.array([query.point for query in self._round])
        counts = self.problem.plausible(X) & self.problem.region.contains(X)
        return [{"cost": c, "counts": k} for c, k in zip(self.problem.cost(X).tolist(), counts.tolist(), strict=True)]

    def _visible(self, position: int) -> int:
        """The newest answer that the question at this position may know of; the same when it is asked again."""
        if position not in self._seen:
            self._seen[position] = self.box.ledger.last_sequence(self.box.model_id)
        return self._seen[position]

    def _propose(self) -> list[Query]:
        if self._search is None:
            return [Query(self.problem.factual, "factual")]
        if self._pool is not None:
            known = self._pool.known(self._visible(len(self.labels)), self._search, self._is_hit)
            self._search = self._search.knowing(known)
        queries = self._search.propose(self._per_round)
        if not queries:
            reason = self._search.settled
            self.stopped_by = "exhausted" if reason == "exhausted" else "settled"
            self.outcome = "exhausted" if reason == "exhausted" else "unlikely"
            return []
        affordable = self._affordable(queries)
        if not affordable:
            self.outcome = "budget_spent"
        return affordable

    def _affordable(self, queries: list[Query]) -> list[Query]:
        """As many of the queries, from the first on, as the budget allows."""
        left, chosen = self.box.remaining, []
        for query in queries:
            if left < 1 and not self.box.knows(self.space.decode(query.point)):
                break
            left -= 1
            chosen.append(query)
        return chosen

    def _tell(self, query: Query, answer: Answer) -> None:
        self.labels.append(answer.label)
        if self._search is not None:
            hit, odds = self._is_hit(answer)
            self._search = self._search.tell(query, hit, odds)
            return
        if self.target.wanted is not None and answer.label in self.target.wanted:
            self.outcome, self.stopped_by = "already_target", "settled"
        self.problem = replace(self.problem, hint=self._hint(answer.label))
        odds = self.target.odds(answer.label, answer.scores, answer.label)
        self._search = self._begin(self.problem, odds=odds)

    def _is_hit(self, answer: Answer) -> tuple[bool, float | None]:
        hit = self.target.is_hit(answer.label, self.labels[0])
        return hit, self.target.odds(answer.label, answer.scores, self.labels[0])

    # -- what came of it -------------------------------------------------------------------------------------

    @property
    def best_cost(self) -> float | None:
        """The cost of the best counterfactual so far."""
        if self._search is None or self._search.best is None:
            return None
        return float(self.problem.cost(self._search.best[None])[0])

    def explanation(self) -> Explanation:
        """The state so far.

        Raises:
            ValueError: not even the factual's label is known.
        """
        if self._search is None:
            raise ValueError("Nothing is known yet: the first row to be told is the factual itself.")
        search, problem = self._search, self.problem
        history = search.history
        costs = problem.cost(history.X)
        is_counterfactual = np.isin(np.arange(len(costs)), search.ranked)
        best_so_far = np.minimum.accumulate(np.where(is_counterfactual, costs, np.inf))
        chosen = search.chosen
        points = history.X[chosen]
        plain = problem.density is None or not len(chosen)
        affinity = np.ones(len(chosen)) if plain else problem.density.affinity(points)  # type: ignore[union-attr]
        asked = self.space.frame(history.X)
        return Explanation(
            factual=asked.iloc[0].rename(None),
            label_before=self.labels[0],
            label_after=self.labels[chosen[0]] if len(chosen) else None,
            target=self._settings["target"],
            outcome="found" if len(chosen) else self.outcome or "budget_spent",
            stopped_by=self.stopped_by,
            counterfactuals=asked.iloc[chosen].reset_index(drop=True),
            costs=tuple(costs[chosen].tolist()),
            affinities=tuple(affinity.tolist()),
            steadiness=() if search.margin is None else tuple(search.steadiness(points).tolist()),
            n_queries=self.box.n_queries,
            n_reused=self.box.n_reused,
            contradictions=self.box.ledger.n_contradictions(self.box.model_id),
            queries=pd.DataFrame(
                {
                    "purpose": [q.purpose for q in history.queries],
                    "label": self.labels,
                    "hit": history.is_hit,
                    "cost": costs,
                    "best": best_so_far,
                }
            ),
            asked=asked,
            settings={**self._settings, "labels": problem.hint is not None},
            space=self.space,
            scale=problem.scale,
        )


class _Pool:
    """Answers of the same model that were asked for other reasons, as points."""

    def __init__(self, box: BlackBox, space: Space, problem: Problem) -> None:
        self.box, self.space, self.problem = box, space, problem
        self.home = problem.quantiles.coordinates(problem.factual[None])
        self._points: dict[str, FloatArray | None] = {}

    def known(self, seen: int, search: Search, is_hit: Callable[[Answer], tuple[bool, float | None]]) -> Known | None:
        """The nearest of the answers that could be seen then and are not the search's own."""
        answers = self.box.ledger.answers(self.box.model_id, up_to=seen, newest=NEWEST)
        self._read([a.row for a in answers if a.row not in self._points])
        points = [(self._points[a.row], a) for a in answers]
        others = [(x, a) for x, a in points if x is not None and key(x) not in search.history.asked]
        if not others:
            return None
        X = np.array([x for x, _ in others])
        distance = np.linalg.norm(self.problem.quantiles.coordinates(X) - self.home, axis=1)
        nearest = np.argsort(distance, kind="stable")[:MOST_KNOWN]
        told = [is_hit(others[i][1]) for i in nearest]
        odds = tuple(o for _, o in told if o is not None)
        return Known(X[nearest], np.array([hit for hit, _ in told]), odds if len(odds) == len(told) else ())

    def _read(self, forms: list[str]) -> None:
        """The points of rows; None for those of another shape or with values that this space does not have."""
        try:
            self._points.update(zip(forms, self._encode(forms), strict=True))
        except (ValueError, TypeError):
            for form in forms:
                try:
                    self._points[form] = self._encode([form])[0]
                except (ValueError, TypeError):
                    self._points[form] = None

    def _encode(self, forms: list[str]) -> FloatArray:
        if not forms:
            return np.empty((0, len(self.space)))
        return self.space.encode(pd.DataFrame([json.loads(form) for form in forms], columns=self.space.names))
