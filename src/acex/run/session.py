"""One explanation in the making: the search in points, and its rows, labels and place in the ledger.

`ask` gives the rows that want a label, `tell` takes the labels: for code that asks the model itself (a laboratory, a
person, a nightly job). `acex.explain` does the same with a model at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import ThreadpoolController

from acex.arrays import FloatArray, Rows
from acex.errors import LedgerFailed, OutOfStep
from acex.ledger import Answer, Ask, Question, canonical
from acex.plan.target import Target
from acex.run.blackbox import BlackBox
from acex.run.explanation import Explanation, Outcome, StoppedBy
from acex.run.pool import Nearest, Pool, points_of
from acex.run.recorded import contradictions
from acex.search.feasible import Feasible
from acex.search.problem import Hint, Problem, Query
from acex.search.search import Search, Strategy
from acex.space.space import Space
from acex.values import Label

NOTED = ("round", "penalty", "hope")  # of a query, what the search needs to go on from it


class Session:
    """The questions and answers of one explanation. Made by `Explainer.search`.

    Args:
        box: the door to the model and its ledger.
        identity: what tells this explanation from others, in this ledger or any.
        recorded: the questions that this explanation has asked before, if it is resumed.
        hint: from the factual's label to what known outcomes say.
        pool: what the same model was asked for other reasons, where it is to be used.
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
        pool: Pool | None = None,
        per_round: int = 1,
    ) -> None:
        self.box, self.space, self.problem, self.target = box, space, problem, target
        self._settings, self._hint, self._per_round = settings, hint, per_round
        self.identity = identity
        self._begin = partial(Search.begin, strategy=strategy, seed=seed, count=count, budget=budget)
        self._recorded = {ask.position: ask for ask in recorded}
        # What ended once stays ended, whatever others have asked since; a larger budget goes on from there.
        self._ended = None if box.explanation is None else box.ledger.seen_at_end(box.explanation)
        self._n_ended = len(recorded)
        self._seen: tuple[int, int] = (-1, 0)  # a position, and the newest answer that its question may know of
        self._pool, self._has_learnt = pool, False  # from the pool
        self._home = problem.quantiles.coordinates(problem.factual[None])
        self._nearest = Nearest(np.empty((0, len(space))), ())  # of the pool
        self._own: set[int] = set()  # the numbers of the answers to its own questions
        self._search: Search | None = None
        self.labels: list[Label] = []  # of the search's queries, the factual's first
        self._round: list[Query] = []  # asked, and not all answered
        self._decoded: tuple[list[Query], Rows] = ([], None)  # a round, and its rows
        self._answers: dict[str, Answer] = {}  # of the round, by row
        self.stopped_by: StoppedBy = "budget"
        self.outcome: Outcome | None = None  # None while it goes on

    # -- for code that asks the model itself ---------------------------------------------------------------------

    def ask(self) -> Rows | None:
        """The rows that want a label, in the form of the data; None when the explanation is complete.

        They stay the same until all of them have been told. What is known already is not asked.
        """
        # Ends: each turn but the last one adds rows to the history that have an answer, and none is asked twice.
        while True:
            wanted, why = self.next_round()
            if wanted is None:
                return None
            new = self._unanswered()
            try:
                told = self.box.hand_out(_part(wanted, new), [why[i] for i in new])
            except OutOfStep as ahead:
                self._follow(ahead)
                continue
            self.take([answer for answer in told if answer is not None])
            if self._round:
                return _part(wanted, self._unanswered())

    def tell(self, rows: Rows, labels: Any) -> None:
        """The labels of rows that were asked: some of them or all, in any order, as the model gave them.

        What was told before may be told again; another label than before does not count, but is remembered as a
        contradiction.

        Raises:
            ValueError: a row was not asked for, or the labels are not one a row. Nothing was taken.
        """
        complete = self.ask() is None
        rows = self.space.decode(self.space.encode(rows))
        told = canonical(rows)
        before = [] if self._search is None else canonical(self.space.decode(self._search.history.X))
        strange = [form for form in told if form not in {*before, *self._forms()}]
        if strange and complete:
            raise ValueError("The explanation is complete: no label is wanted any more.")
        if strange:
            raise ValueError(f"{len(strange)} of the rows were not asked for, such as {strange[0]}; see ask().")
        self.take([answer for answer in self.box.take_in(rows, labels) if answer.row not in before])

    def run(self, note: Callable[[Session], object] = lambda session: None) -> Explanation:
        """The explanation, once the model at hand has been asked all there is to ask; `note` is called each round.

        An error carries what was found before it, as `explanation`.
        """
        try:
            while True:
                rows, why = self.next_round()
                if rows is None:
                    return self.explanation()
                self.put(rows, why)
                note(self)
        except BaseException as failure:
            # Also after Ctrl-C or a callback that raises: what was paid for travels with the error.
            failure.explanation = self.explanation() if self.labels else None  # type: ignore[attr-defined]
            raise

    # -- rounds ----------------------------------------------------------------------------------------------

    def next_round(self) -> tuple[Rows | None, list[Question]]:
        """The rows of the present round, and why they are asked; None when there are no more."""
        if not self._round and self.outcome is None:
            with one_blas_thread():
                self._round = self._propose()
        if not self._round:
            self._finish()
            return None, []
        position = len(self.labels)
        first = self._recorded[position].note["first"] if position in self._recorded else position
        seen = self._visible(position)
        notes = [{"first": first, **_note(q), **cost} for q, cost in zip(self._round, self._costs(), strict=True)]
        questions = [Question("", q.purpose, position + i, seen, notes[i]) for i, q in enumerate(self._round)]
        return self._rows(), questions

    def put(self, rows: Rows, why: list[Question]) -> None:
        """Ask the model for the rows of the present round."""
        try:
            self.take(self.box.ask(rows, why))
        except OutOfStep as ahead:
            self._follow(ahead)

    def take(self, answers: Sequence[Answer]) -> None:
        """Answers to rows of the present round; when all are there, the search goes on."""
        self._answers.update({answer.row: answer for answer in answers})
        forms = self._forms()
        if any(form not in self._answers for form in forms):
            return
        for query, form in zip(self._round, forms, strict=True):
            self._tell(query, self._answers[form])
        self._round, self._answers = [], {}

    def _rows(self) -> Rows:
        """The rows of the present round; they are needed several times, and decoding is slow."""
        if self._decoded[0] is not self._round:
            self._decoded = self._round, self.space.decode(np.array([query.point for query in self._round]))
        return self._decoded[1]

    def _costs(self) -> list[dict[str, Any]]:
        """What the ledger alone cannot work out of each row: its cost, whether it would be a counterfactual, and how
        much it looks like the reference."""
        X = np.array([query.point for query in self._round])
        counts = self.problem.plausible(X) & self.problem.region.contains(X)
        columns = {"cost": self.problem.cost(X), "counts": counts, "affinity": self._affinity(X)}
        lines = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(columns, line, strict=True)) for line in lines]

    def _affinity(self, X: FloatArray) -> FloatArray:
        """How much points look like the reference, 1 for all where nobody wants to know, (n,)."""
        density = self.problem.density
        return np.ones(len(X)) if density is None or not len(X) else density.affinity(X)

    def _forms(self) -> list[str]:
        return canonical(self._rows()) if self._round else []

    def _unanswered(self) -> list[int]:
        """Places in the round that want an answer, each row once."""
        first = {form: i for i, form in reversed(list(enumerate(self._forms()))) if form not in self._answers}
        return sorted(first.values())

    def _visible(self, position: int) -> int:
        """The newest answer that the question at this position may know of; the same when it is asked again."""
        if position in self._recorded:
            return self._recorded[position].seen
        if self._seen[0] != position:
            is_end = self._ended is not None and position == self._n_ended
            newest = self._ended if is_end else self.box.ledger.last_sequence(self.box.model_id)
            self._seen = position, newest or 0
        return self._seen[1]

    def _propose(self) -> list[Query]:
        """The next round; empty, with the outcome, when there is none."""
        queries = self._recorded_round() or self._new_round()
        if queries and len(queries) > self.box.remaining:
            affordable = self.box.affordable(self.space.decode(np.array([q.point for q in queries])))
            queries = queries[:affordable]
            self.outcome = None if queries else "budget_spent"
        return queries

    def _recorded_round(self) -> list[Query]:
        """What was asked here before: read, not worked out again, so that another machine cannot see it differently.

        Empty where nothing was, or where the values are of kinds that the ledger does not give back.
        """
        asks: list[Ask] = []
        while (ask := self._recorded.get(len(self.labels) + len(asks))) is not None:
            if asks and ask.note["first"] != asks[0].note["first"]:
                break
            asks.append(ask)
        points = [x for x in points_of(self.space, [ask.row for ask in asks]) if x is not None]
        if len(points) < len(asks):
            return []
        return [Query(x, a.purpose, *(a.note[name] for name in NOTED)) for x, a in zip(points, asks, strict=True)]

    def _new_round(self) -> list[Query]:
        if self._search is None:
            return [Query(self.problem.factual, "factual")]
        if self._pool is not None:
            if not self._has_learnt:
                self._learn(self._pool)
            seen, asked = self._visible(len(self.labels)), self._search.history.asked
            nearest = self._pool.nearest(self._home, seen, asked, self._own)
            if nearest.answers != self._nearest.answers:
                self._nearest = nearest
                self._search = self._search.knowing(nearest.known(self._is_hit))
        queries = self._search.propose(self._per_round)
        if not queries:
            reason = self._search.settled
            self.stopped_by = "exhausted" if reason == "exhausted" else "settled"
            self.outcome = "exhausted" if reason == "exhausted" else "unlikely"
        return queries

    def _learn(self, pool: Pool) -> None:
        """Take what the first question after the factual could see for a hint, unless known outcomes give one."""
        self._has_learnt = True
        if self._search is None or self.problem.hint is not None or not isinstance(self._search.strategy, Feasible):
            return
        wanted = (None, self.labels[0]) if self.target.wanted is None else self.target.wanted
        hint = pool.hint(self._visible(1), wanted, self._is_hit)
        if hint is not None:
            self.problem = replace(self.problem, hint=hint, learnt=True)
            self._search = replace(self._search, problem=self.problem)

    def _follow(self, ahead: OutOfStep) -> None:
        """Go on as the same explanation did elsewhere, which is ahead of this one."""
        if self.box.explanation is None or len(self.labels) in self._recorded:
            raise ahead  # this one did know what was asked, and cannot follow
        self._recorded = {ask.position: ask for ask in self.box.ledger.asks(self.box.explanation)}
        self._round, self._answers = [], {}

    def _finish(self) -> None:
        """Write down how it ended, once."""
        is_news = self._ended is None or len(self.labels) > self._n_ended
        if self.box.explanation is not None and is_news and self._search is not None:
            self.box.ledger.finish(self.box.explanation, self._result, self._found())
            self._ended, self._n_ended = self._visible(len(self.labels)), len(self.labels)

    def _found(self) -> dict[str, Any]:
        """What the questions in the ledger do not say: which of them are the answer, and how sure it is."""
        assert self._search is not None
        e = self.explanation()
        return {
            "asked": len(e.asked),
            "counterfactuals": self._search.chosen.tolist(),
            "steadiness": e.steadiness,
            "stopped_by": e.stopped_by,
            "warnings": self._fewer(),
            "settings": {name: e.settings[name] for name in ("budget", "labels")},  # what may change as it goes on
        }

    def _tell(self, query: Query, answer: Answer) -> None:
        self._own.add(answer.sequence)
        if self._search is not None:
            self.labels.append(answer.label)
            hit, odds = self._is_hit(answer)
            self._search = self._search.tell(query, hit, odds)
            return
        self.problem = replace(self.problem, hint=self._hint(answer.label))
        self.labels.append(answer.label)
        if self.target.wanted is not None and answer.label in self.target.wanted:
            self.outcome, self.stopped_by = "already_target", "settled"
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

    @property
    def _result(self) -> Outcome:
        found = self._search is not None and len(self._search.chosen) > 0
        return "found" if found else self.outcome or "budget_spent"

    def _warnings(self) -> tuple[str, ...]:
        """What a reader of the explanation should know."""
        return (*self._fewer(), *self._contradictions())

    def _fewer(self) -> tuple[str, ...]:
        wanted, found = self._settings["count"], 0 if self._search is None else len(self._search.chosen)
        if self.outcome is None or found == 0 or found >= wanted:
            return ()
        return (
            f"{found} of {wanted} counterfactuals were found; no other rests on different features within the budget.",
        )

    def _contradictions(self) -> tuple[str, ...]:
        if self._search is None:
            return ()
        with suppress(LedgerFailed):  # if it cannot be read, that will be said elsewhere
            asked = canonical(self.space.decode(self._search.history.X))
            return contradictions(self.box.ledger, self.box.model_id, asked)
        return ()

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
        asked = self.space.frame(history.X)
        return Explanation(
            factual=asked.iloc[0].rename(None),
            label_before=self.labels[0],
            label_after=self.labels[chosen[0]] if len(chosen) else None,
            target=self._settings["target"],
            outcome=self._result,
            stopped_by=self.stopped_by,
            counterfactuals=asked.iloc[chosen].reset_index(drop=True),
            costs=tuple(costs[chosen].tolist()),
            affinities=tuple(self._affinity(points).tolist()),
            steadiness=() if search.margin is None else tuple(search.steadiness(points).tolist()),
            n_queries=self.box.n_queries,
            n_reused=self.box.n_reused,
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
            settings={**self._settings, "labels": problem.hint is not None and not problem.learnt},
            warnings=self._warnings(),
            space=self.space,
            scale=problem.scale,
        )


def _note(query: Query) -> dict[str, Any]:
    return {name: getattr(query, name) for name in NOTED}


def _part(rows: Rows, places: list[int]) -> Rows:
    return rows.iloc[places] if isinstance(rows, pd.DataFrame) else rows[places]


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Small matrices are slower on several threads, and much slower on a machine that is busy."""
    with _threads().limit(limits=1):
        yield
