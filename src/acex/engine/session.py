"""One explanation in the making: from the plan to its steps.

`for step in session` asks the model at hand and gives a step for each answer. `ask` gives the rows that need a label
and `tell` takes the labels, for code that asks the model itself: a laboratory, a person, a nightly job.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import FloatArray, Rows, one_blas_thread, rows_at
from acex.engine.blackbox import BlackBox
from acex.engine.explanation import Explanation
from acex.engine.pool import PoolEvidence, points_of
from acex.errors import LedgerFailed, OutOfStep
from acex.ledger import Answer, Ask, BaseLedger, Question
from acex.ledger.row_keys import as_vote, canonical, canonical_text, next_result, now_text, row_values, without_vote
from acex.models.labels import without_class_names
from acex.plan.plan import Plan
from acex.plan.step import Ending, Note, Outcome, Step, StoppedBy, factual_label, factual_lead, judged
from acex.plan.target import Target
from acex.search.feasible import Feasible
from acex.search.hints import obstacles
from acex.search.problem import Hint, Problem, Query
from acex.search.search import FEW_CHANGES, Search
from acex.search.strategy import Strategy
from acex.space.space import Space
from acex.values import Label, Remark, counted, joined_words

MOST_FACTUAL = 3  # times `confirm`: votes on the factual, at most
ENDINGS: dict[str, tuple[Outcome, StoppedBy]] = {  # of searches that propose nothing more, by their reason
    "exhausted": ("exhausted", "exhausted"),
    "budget": ("budget_spent", "budget"),
}
HIGH_ODDS = 0.2  # stated chance of a counterfactual at half the cost from which on a remark says so


class Session:
    """The questions and answers of one explanation. Made by `Explainer.search`.

    Args:
        plan: what is to be explained, and how.
        problem: the same as the search sees it.
        box: the model with its budget and its ledger.
        learn: from the factual's label to what known outcomes say.
        relaxed: the problem without each option that limits it, by the name of the option.
        pool_evidence: the answers to other explanations of the same model, where they are to be used.
        time_limit: seconds from the first query on, after which nothing more is asked.
        metadata: what else an explanation records, such as versions.

    Example:
        >>> import acex
        >>> loans = acex.datasets.loan()
        >>> model = lambda rows: (rows["income"] > 3000).map({True: "approved", False: "rejected"})
        >>> session = acex.Explainer(model, loans.rows).search(loans.rows.iloc[0], budget=5)
        >>> [step.position for step in session]
        [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        plan: Plan,
        problem: Problem,
        strategy: Strategy,
        box: BlackBox,
        *,
        learn: Callable[[Label], Hint | None] = lambda label: None,
        relaxed: Callable[[], Mapping[str, Problem]] = dict,
        pool_evidence: PoolEvidence | None = None,
        time_limit: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.plan, self.box = plan, box
        self.steps: list[Step] = []
        self._problem = problem  # until the search knows more of it
        self._strategy, self._learn, self._relaxed = strategy, learn, relaxed
        self._pool_evidence, self._metadata = pool_evidence, metadata or {}
        self._time_limit, self._deadline = time_limit, math.inf
        self._budget = plan.budget
        self._search: Search | None = None  # from the factual's label on
        self._round: _Round | None = None  # asked, and not all answered
        self._end: tuple[Outcome, StoppedBy] | None = None  # None while it goes on
        self._asked: list[str] = []  # the canonical row of each question
        self._further: dict[str, Query] = {}  # with noise, for each question: the key that its next result would have
        self._names: tuple[str, ...] = ()  # what the factual is called
        self._labels: list[Label] = []  # that the model is known to give

    @property
    def problem(self) -> Problem:
        """What is to be explained, as the search sees it now."""
        return self._problem if self._search is None else self._search.problem

    @property
    def space(self) -> Space:
        """What each feature can hold."""
        return self.plan.space

    def extend(self, budget: int) -> None:
        """Continue up to this many rows in all, also after the search has settled; call it before the first step.

        The explanation stays the same one: neither the budget of its plan nor its identity changes.
        """
        self.box.budget = self._budget = budget
        if isinstance(self._strategy, Feasible):
            self._strategy = replace(self._strategy, effort="spend")

    def begin(self, names: Sequence[str] = (), labels: Sequence[Label] = ()) -> None:
        """Record the explanation, the names of its row and known labels in its ledger, before anything is sent."""
        self._names, self._labels = tuple(names), list(labels)
        _ = self._past

    @cached_property
    def _past(self) -> _Past:
        """What the ledger knows of this explanation; it is begun there."""
        plan, ledger = self.plan, self.box.ledger
        self._deadline = math.inf if self._time_limit is None else time.monotonic() + self._time_limit
        if ledger.is_memory:
            return _Past(self.box, [])
        self.box.explanation = plan.identity
        # To send the rows again later as the model takes them, and to show the same remarks.
        form = {"form": plan.space.form(), "remarks": [remark.to_dict() for remark in plan.remarks]}
        asks = ledger.begin(
            plan.identity,
            plan.model_id,
            factual=plan.factual,
            settings={**plan.settings, **self._metadata, **form, "known_labels": self._labels},
            space=plan.described_space(),
            names=self._names,
        )
        return _Past(self.box, asks)

    @property
    def identity(self) -> str:
        """What tells this explanation from others, in this ledger or any."""
        return self.plan.identity

    # -- with the model at hand ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Step]:
        """Asks the model at hand, and gives a step for each answer; what earlier runs have paid for comes first."""
        while (steps := self.advance()) is not None:
            yield from steps

    def run(self, note: Callable[[Session], object] = lambda session: None) -> Explanation:
        """The explanation, after querying the model until the search ends; `note` is called each round.

        An error carries what was found before it, as `explanation`.
        """
        try:
            while self.advance() is not None:
                note(self)
        except BaseException as failure:  # also Ctrl-C, or a callback that raises: what was paid for travels with it
            failure.explanation = None  # type: ignore[attr-defined]
            if self._search is not None:  # before the first answer there is nothing to show
                with suppress(Exception):  # the first error matters more
                    failure.explanation = self.explanation()  # type: ignore[attr-defined]
            raise
        return self.explanation()

    def advance(self) -> list[Step] | None:
        """The steps of the next round; None when there is nothing more to ask."""
        round_ = self._current_round()
        if round_ is None:
            return None
        try:
            return self._accept(round_, self.box.ask(round_.rows, round_.questions))
        except OutOfStep as ahead:
            self._catch_up(ahead)
            return []

    # -- for code that asks the model itself ---------------------------------------------------------------------

    def ask(self) -> Rows | None:
        """The rows that need a label, in the form of the data; None when the explanation is complete.

        They stay the same until all of them have a label. Rows with a known answer are not asked.
        """
        # Ends: each turn but the last one adds rows to the history that have an answer, and none is asked twice.
        while (round_ := self._current_round()) is not None:
            new = round_.unanswered
            try:
                known = self.box.hand_out([round_.questions[i] for i in new])
            except OutOfStep as ahead:
                self._catch_up(ahead)
                continue
            self._accept(round_, [answer for answer in known if answer is not None])
            if self._round is not None:
                return rows_at(round_.rows, round_.unanswered)
        return None

    @property
    def waiting(self) -> list[str]:
        """The rows that need a label, as the ledger knows them."""
        return [] if self._round is None else [self._round.keys[i] for i in self._round.unanswered]

    def tell(self, rows: Rows, labels: Any) -> None:
        """The labels of rows that were asked: some of them or all, in any order, as the model gave them.

        A label may be passed again; a different one does not count but is recorded as a
        contradiction, unless the row was asked for once more: then it is a vote. With noise, a
        row may occur several times in one call: each label is a result of its own.

        Raises:
            ValueError: a row was not asked for, or there is not one label per row. Nothing was recorded.
        """
        complete = self.ask() is None
        rows = self.space.decode(self.space.encode(rows))
        before, asked = self._asked, [] if self._round is None else self._round.keys
        given, waiting, keys, latest = canonical(rows), self.waiting, list[str](), dict[str, str]()
        for row in given:
            again = next_result(latest[row]) if self.plan.noise is not None and row in latest else row
            keys.append(next((w for w in waiting if without_vote(w) == row), again))
            waiting, latest[row] = [w for w in waiting if w != keys[-1]], keys[-1]
        unknown = [row for row in given if row not in {*before, *map(without_vote, asked)}]
        if unknown and complete:
            raise ValueError("The explanation is complete: no more labels are needed.")
        if unknown:
            raise ValueError(f"{len(unknown)} of the rows were not asked for, such as {unknown[0]}; see ask().")
        read = self.box.read(without_class_names(labels, self.plan.labels_by_name), len(keys))
        if not self.steps and keys:  # the factual's label: an error about it comes before it is recorded
            self._learn(read[0])
        recorded = self.box.ledger.record(self.box.model_id, keys, read)
        answers = [answer for answer in recorded if answer.row not in before]
        if self._round is not None:
            self._accept(self._round, answers)

    # -- rounds --------------------------------------------------------------------------------------------------

    def _current_round(self) -> _Round | None:
        """The round that waits for answers, a new one if there is none; None when there are no more."""
        if self._round is None and self._end is None:
            with one_blas_thread():
                queries, keys = self._propose()
            self._round = self._prepared(queries, keys) if queries else None
        if self._round is None:
            self._finish()
        return self._round

    def _propose(self) -> tuple[list[Query], list[str]]:
        """What to ask next, with keys where these are given; empty, with how it ends, when there is nothing."""
        queries, keys = self._recorded_round()
        if not queries and self.steps and time.monotonic() > self._deadline:
            self._end = ("time_spent", "time")
            return [], []
        if not queries:
            queries, keys = self._further_results()
        queries = queries or self._new_round()
        if queries and len(queries) > (left := self.box.remaining):
            # Where the budget ended it once it stays ended, also if others have paid for the next row since.
            ended = left == 0 and self._past.ended_at(len(self.steps))
            keys = keys or self._keys(row_values(self.space.decode(_points(queries))))
            n = 0 if ended else self.box.affordable(keys)
            queries, keys = queries[:n], keys[:n]
            self._end = None if queries else ("budget_spent", "budget")
        return queries, keys

    def _keys(self, rows: Iterable[Iterable[Any]]) -> list[str]:
        """The keys of rows in the ledger, from their values: one that was asked before is a vote."""
        keys = [canonical_text(row) for row in rows]
        if self.plan.noise is None:
            return keys
        times = Counter(self._asked)
        for i, key in enumerate(keys):
            times[key] += 1
            keys[i] = as_vote(key, times[key])
        return keys

    def _further_results(self) -> tuple[list[Query], list[str]]:
        """Results that came back in addition to the first one of a question, with their keys; they cost nothing."""
        if not self._further:
            return [], []
        is_start = self.steps[-1].purpose == "factual"  # later results for the factual come too late
        known = self.box.ledger.known(self.box.model_id, list(self._further))
        keys = [key for key in known if is_start or self._further[key].purpose != "factual"]
        votes = [replace(self._further[key], round=self.steps[-1].note.round) for key in keys]
        return votes if is_start else [replace(query, purpose="vote") for query in votes], keys

    def _recorded_round(self) -> tuple[list[Query], list[str]]:
        """What was asked here before: read, not worked out again, so that another machine cannot see it differently.

        Empty where nothing was, or where the values are of kinds that the ledger does not give back.
        """
        asks = self._past.round_at(len(self.steps))
        points = [x for x in points_of(self.space, [without_vote(ask.row) for ask in asks]) if x is not None]
        if len(points) < len(asks):
            return [], []
        notes = [Note.from_dict(ask.note) for ask in asks]
        queries = [
            Query(x, ask.purpose, note.round, note.penalty, note.max_p_hit, note.p_hit)
            for x, ask, note in zip(points, asks, notes, strict=True)
        ]
        return queries, [] if self.plan.noise is None else [ask.row for ask in asks]

    def _new_round(self) -> list[Query]:
        if self._search is None:
            return [Query(self.problem.factual, "factual")]
        if (votes := self._factual_votes()) > 0:
            return [Query(self.problem.factual, "factual")] * min(votes, self.plan.settings["queries_per_round"])
        if self._pool_evidence is not None:
            seen = self._past.seen
            self._search = self._pool_evidence.added_to(
                self._search, seen(1), seen(len(self.steps)), self._is_hit, self._before
            )
        # What is left of the budget limits the round; one query more than that may still be answered by the ledger.
        n = min(self.plan.settings["queries_per_round"], max(self.box.remaining, 1))
        queries = self._search.propose(n)
        if not queries:
            self._end = ENDINGS.get(self._search.stop_reason or "", ("unlikely", "settled"))
        return queries

    def _prepared(self, queries: list[Query], keys: list[str]) -> _Round:
        """The round of these queries, with all that the ledger cannot work out by itself.

        Raises:
            ValueError: a row that an earlier run was about to ask is forbidden now.
        """
        problem, X = self.problem, _points(queries)
        rows, position = self.space.decode(X), len(self.steps)
        values = row_values(rows)
        keys, inside = keys or self._keys(values), problem.region.contains(X)
        if not inside.all() and queries[0].purpose != "factual":
            self._refuse_forbidden([key for key, ok in zip(keys, inside, strict=True) if not ok])
        first = self._past.asks[position].note["first"] if position in self._past.asks else position
        counts = problem.plausible(X) & inside
        affinity = np.ones(len(X)) if problem.density is None else problem.density.affinity(X)
        columns = (queries, problem.cost(X), counts, affinity, problem.in_reference(X))
        notes = [
            Note(first, float(cost), bool(ok), float(like), q.round, q.penalty, q.max_p_hit, bool(known), q.p_hit)
            for q, cost, ok, like, known in zip(*columns, strict=True)
        ]
        seen = self._past.seen(position)
        questions = [
            Question(key, query.purpose, position + i, seen, note.to_dict())
            for i, (key, query, note) in enumerate(zip(keys, queries, notes, strict=True))
        ]
        return _Round(queries, rows, values, questions, notes)

    def _refuse_forbidden(self, keys: list[str]) -> None:
        """Rows that an earlier run was about to ask may be forbidden by now: a rule is more than its code."""
        known = self.box.ledger.known(self.box.model_id, keys)
        unanswered = [key for key in keys if key not in known]
        if unanswered:
            raise ValueError(
                f"The row {unanswered[0]}, which an earlier run of this explanation had chosen, is forbidden by the "
                f"rules as they are now. Nothing was sent. Use another seed to start over; known answers are reused."
            )

    def _accept(self, round_: _Round, answers: Sequence[Answer]) -> list[Step]:
        """Answers to rows of the present round; when all are there, its steps, and the search goes on."""
        round_.answers.update({answer.row: answer for answer in answers})
        if round_.unanswered:
            return []
        before = len(self.steps)
        for i, row in enumerate(round_.values):
            self._add_step(round_, i, dict(zip(self.space.names, row, strict=True)))
        self._round = None
        return self.steps[before:]

    def _add_step(self, round_: _Round, i: int, row: dict[str, Any]) -> None:
        """One more step; the search learns from it."""
        query, question = round_.queries[i], round_.questions[i]
        answer = round_.answers[question.row]
        paid = int(question.row in self.box.sent and question.row not in round_.keys[:i])
        before = self._past.asks.get(len(self.steps))
        at = now_text() if before is None else before.answered_at
        step = Step(
            position=len(self.steps),
            row=row,
            purpose=query.purpose,
            label=value_of(answer, self.plan.target),
            hit=False,
            best=np.inf,
            paid=paid,
            at=at,
            seen=question.seen or 0,
            note=round_.notes[i],
            scores=answer.scores,
        )
        steps = [*self.steps, judged(step, self.steps, self.plan.target)]
        is_factual = query.purpose == "factual"
        # An error about the first label comes before anything depends on it.
        hint = self._learn(factual_label(steps, self.plan.target)) if is_factual else None
        self.steps = steps
        is_further = self._further.pop(answer.row, None) is not None
        if not is_further:
            self._asked.append(without_vote(answer.row))
        if self.plan.noise is not None:
            self._further[next_result(answer.row)] = query
        if self._pool_evidence is not None:
            self._pool_evidence.own.add(answer.sequence)
        if is_factual:
            self._begin(query, hint, answer)
        elif self._search is not None:
            search = self._search.tell(query, self.steps[-1].hit, self._odds(step.label, answer))
            self._search = replace(search, budget=search.budget + 1) if is_further else search

    def _begin(self, query: Query, hint: Hint | None, answer: Answer) -> None:
        """The search as it begins with the answers to the factual: one, or several votes."""
        plan, before = self.plan, self._before
        problem = replace(self._problem, hint=hint, width=plan.target.width(before))
        if plan.target.is_met(before) and self._factual_votes() <= 0:
            self._end = ("already_target", "settled")
        odds = self._odds(self.steps[-1].label, answer)
        search = Search.begin(
            problem,
            self._strategy,
            plan.settings["seed"],
            count=plan.count,
            budget=self._budget + len(self.steps) - len(self._asked),  # the budget counts questions, not results
            odds=odds,
            noise=plan.noise,
            offers_short=plan.settings.get("prefer") is not None,
        )
        for step in self.steps[1:]:
            search = search.tell(query, step.label != before)
        self._search = search

    def _factual_votes(self) -> int:
        """How many more votes the factual needs, at least."""
        noise, n = self.plan.noise, len(self.steps)
        if noise is None or self.steps[-1].purpose != "factual" or n >= MOST_FACTUAL * noise.confirm:
            return 0
        return noise.confirm - factual_lead(self.steps, self.plan.target)

    @property
    def _before(self) -> Label:
        return factual_label(self.steps, self.plan.target)

    def _odds(self, value: Label, answer: Answer) -> float | None:
        return self.plan.target.odds(value, answer.scores, self._before)

    def _is_hit(self, answer: Answer) -> tuple[bool, float | None] | None:
        """Of an answer from elsewhere: is it a hit, and how far off? None where it does not tell."""
        value = self.plan.target.value(answer.label, answer.scores)
        if value is None:
            return None
        return self.plan.target.is_hit(value, self._before), self._odds(value, answer)

    def _catch_up(self, ahead: OutOfStep) -> None:
        """Go on as the same explanation did elsewhere, which is ahead of this one."""
        if self.box.explanation is None or len(self.steps) in self._past.asks:
            raise ahead  # this one did know what was asked, and cannot follow
        self._past.asks = {ask.position: ask for ask in self.box.ledger.asks(self.box.explanation)}
        self._round = None

    def _finish(self) -> None:
        """Write down how it ended, once."""
        past, n = self._past, len(self.steps)
        has_more = past.end is None or n > past.n_asked
        if self.box.explanation is not None and has_more and self.steps:
            ending = self.ending()
            result = {"asked": n, **ending.to_dict(), "budget": self._budget}
            past.end, past.n_asked = past.seen(n), n  # not what others have answered since it was decided
            self.box.ledger.finish(self.box.explanation, ending.outcome, result, seen=past.end)

    # -- what came of it -----------------------------------------------------------------------------------------

    @property
    def best_cost(self) -> float | None:
        """The cost of the best counterfactual so far."""
        best = self.steps[-1].best if self.steps else np.inf
        return None if np.isinf(best) else best

    def ending(self) -> Ending:
        """How it ended, or stands now.

        Raises:
            ValueError: not even the factual's label is known.
        """
        search = self._search
        if search is None:
            raise ValueError("There is no answer yet, not even to the row itself.")
        searches = self._searches(search)
        found = [(each, i) for each in searches.values() for i in range(len(each.counterfactuals))]
        outcome, stopped_by = self._end or ("unfinished", "unfinished")
        has_robustness = self._strategy.margin is not None or (
            self._end is not None and not self.plan.settings["scores"]
        )
        odds = search.improvement_odds if self._end and found else ()
        return Ending(
            "found" if found else outcome,
            stopped_by,
            tuple(int(each.counterfactuals[i]) for each, i in found),
            tuple(float(each.robustness[i]) for each, i in found) if has_robustness else (),
            (*self._fewer(len(found)), *self._may_be_improved(search, odds, "short" in searches)),
            needed=tuple(self._needed(each, i) for each, i in found),
            votes=tuple(search.votes),
            improvement_odds=odds,
            kinds=tuple(searches) if len(searches) > 1 else (),
            excluded={} if found else self._excluded,
        )

    def _searches(self, search: Search) -> dict[str, Search]:
        """The searches whose counterfactuals are the answer, in the order in which they are shown."""
        searches = {"realistic": search}
        prefer = self.plan.settings.get("prefer")
        if prefer and search.is_long and len(search.short().counterfactuals):
            searches["short"] = search.short()
        return dict(sorted(searches.items(), key=lambda item: item[0] != prefer))

    @cached_property
    def _excluded(self) -> dict[str, int]:
        """What is in the way where the search has ended without a counterfactual; see `obstacles`."""
        if self._end is None or self._end[0] == "already_target":
            return {}
        return obstacles(self.problem, self._relaxed(), self.problem.hint)

    def _needed(self, search: Search, which: int) -> dict[str, str]:
        """The changes of a counterfactual, and whether they are needed."""
        reverts = search.reverts
        marks = zip(reverts.of, reverts.features, reverts.marks, strict=True)
        return {self.space.names[j]: mark for i, j, mark in marks if i == which}

    def _fewer(self, found: int) -> tuple[Remark, ...]:
        wanted = self.plan.count
        if self._end is None or found == 0 or found >= wanted:
            return ()
        text = f"{found} of {wanted} counterfactuals were found; within the budget no other has its own change."
        return (Remark("fewer_found", text),)

    def _may_be_improved(self, search: Search, odds: Sequence[float], has_short: bool) -> tuple[Remark, ...]:
        """A remark where the answer changes many features, or a much cheaper one is likely to exist."""
        is_long = search.is_long and not has_short
        if not odds or not (is_long or odds[-1] >= HIGH_ODDS):
            return ()
        further = 'effort="spend"' if self._end is not None and self._end[1] == "settled" else "a larger budget"
        helps = [*([] if self.plan.settings.get("outcomes") else ["known outcomes"]), further]
        many = ""
        if is_long:
            many = f"It changes {len(self._needed(search, 0))} of {len(self.space)} features"
            if any(step.purpose == "short" for step in self.steps):
                many += f"; none with at most {FEW_CHANGES} changes was found"
            else:
                helps.append("max_changes")
            many += ". "
        chance = f"The estimated chance that a counterfactual exists at half the cost is {odds[-1]:.0%}."
        return (Remark("may_be_improved", f"{many}{chance} What helps: {joined_words(helps, 'or')}."),)

    def explanation(self) -> Explanation:
        """The state so far.

        Raises:
            ValueError: not even the factual's label is known.
        """
        ending = self.ending()
        remarks: tuple[Remark, ...] = ()
        with suppress(LedgerFailed):  # if it cannot be read, that is reported elsewhere
            remarks = contradictions(self.box.ledger, self.box.model_id, self._asked)
        return Explanation.of(
            self.plan,
            self.steps,
            ending,
            unanswered=self.box.n_queries - sum(step.paid for step in self.steps),
            remarks=remarks,
            metadata=self._metadata,
        )


@dataclass
class _Round:
    """Rows that are sent together, and the answers so far."""

    queries: list[Query]
    rows: Rows  # as the model takes them
    values: list[tuple[Any, ...]]  # of each row
    questions: list[Question]
    notes: list[Note]
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The key of each row in the ledger."""
        return [question.row for question in self.questions]

    @property
    def unanswered(self) -> list[int]:
        """Positions without an answer, each row once."""
        first = {key: i for i, key in reversed(list(enumerate(self.keys))) if key not in self.answers}
        return sorted(first.values())


class _Past:
    """What the ledger knew of this explanation when it was begun, and what each of its questions may know."""

    def __init__(self, box: BlackBox, asks: Sequence[Ask]) -> None:
        self._box = box
        self.asks = {ask.position: ask for ask in asks}
        # What ended once stays ended, whatever others have asked since; a larger budget goes on from there.
        record = None if box.explanation is None else box.ledger.explanation(box.explanation)
        self.end = None if record is None else record.seen_at_end
        self.n_asked = (record.result or {}).get("asked", len(asks)) if record else 0  # when it ended
        self._now: tuple[int, int] = (-1, 0)  # a position, and what can be seen there

    def seen(self, position: int) -> int:
        """The newest answer that the question at this position may know of; the same when it is asked again."""
        if position in self.asks:
            return self.asks[position].seen
        if self._now[0] != position:
            newest = self.end if self.ended_at(position) else self._box.ledger.account(self._box.model_id).last_sequence
            self._now = position, newest or 0
        return self._now[1]

    def ended_at(self, position: int) -> bool:
        """Did it end there, before the question at this position?"""
        return self.end is not None and position == self.n_asked and position not in self.asks

    def round_at(self, position: int) -> list[Ask]:
        """The questions that were asked at once from this position on; none if nothing was."""
        asks: list[Ask] = []
        while (ask := self.asks.get(position + len(asks))) is not None:
            if asks and ask.note["first"] != asks[0].note["first"]:
                break
            asks.append(ask)
        return asks


def _points(queries: Sequence[Query]) -> FloatArray:
    return np.array([query.point for query in queries])


def contradictions(ledger: BaseLedger, model: str, asked: Sequence[str]) -> tuple[Remark, ...]:
    """A warning where a model gave rows another label later; `asked` are the canonical rows of one explanation."""
    rows = ledger.contradicted(model)
    if not rows:
        return ()
    text = (
        f"The model contradicts itself: it gave {counted(len(rows), 'row')} ({len(rows & set(asked))} asked here) "
        f"another label later. The first one is used."
    )
    return (Remark("contradiction", text, is_warning=True, advice="See Ledger.contradicted."),)


def value_of(answer: Answer, target: Target) -> Label:
    """The part of an answer that is judged: the label, the number, or the probability of a label.

    Raises:
        ValueError: the answer has no probabilities, and the target is about one.
    """
    value = target.value(answer.label, answer.scores)
    if value is None:
        raise ValueError(
            f"The row {answer.row} was answered {answer.label!r} before, without the probabilities that the target is "
            f"about. Give the model another name, so that it is asked for them: acex.Model(..., name=...), in the "
            f"shell --model-name."
        )
    return value


@contextmanager
def progress_bar(wanted: bool | None, title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A function that shows how many are done, and a text; it does nothing where no bar is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda done, text: None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(TextColumn(title), *columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, text: progress.update(task, completed=done, description=text)
