"""An explanation in progress: sends the rows that the search proposes, and turns the answers into steps.

`for step in session` queries the model and yields a step for each answer. If a laboratory, a person or a nightly job
provides the labels instead, `ask` returns the rows that need a label and `tell` takes the labels.
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

MOST_FACTUAL = 3  # largest number of votes on the factual, as a multiple of `confirm`
ENDINGS: dict[str, tuple[Outcome, StoppedBy]] = {  # by the stop reason of the search; others: "unlikely", "settled"
    "exhausted": ("exhausted", "exhausted"),
    "budget": ("budget_spent", "budget"),
}
HIGH_ODDS = 0.2  # smallest estimated chance of a counterfactual at half the cost that adds a remark


class Session:
    """The questions and answers of one explanation. Made by `Explainer.search`.

    Args:
        plan: what to explain, and how.
        problem: the plan as the search sees it.
        box: the model with its budget and its ledger.
        learn: checks the factual's label, and returns the hint that known outcomes give, if any.
        relaxed: returns the problem without each option that excludes candidates, by the name of the option.
        pool_evidence: answers from other explanations of the same model, if they may be used.
        time_limit: seconds after the first query; then no more rows are sent.
        metadata: what else to record with the explanation, such as versions.

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
        self._problem = problem  # before the search begins; see `problem`
        self._strategy, self._learn, self._relaxed = strategy, learn, relaxed
        self._pool_evidence, self._metadata = pool_evidence, metadata or {}
        self._time_limit, self._deadline = time_limit, math.inf
        self._budget = plan.budget
        self._search: Search | None = None  # None until the factual's label is known
        self._round: _Round | None = None  # the round with unanswered rows, if any
        self._end: tuple[Outcome, StoppedBy] | None = None  # None while the search continues
        self._asked: list[str] = []  # the canonical row of each question asked
        self._further: dict[str, Query] = {}  # with noise: each question by the key of its next result
        self._names: tuple[str, ...] = ()  # names of the factual, such as an applicant number
        self._labels: list[Label] = []  # labels that the model is known to return

    @property
    def problem(self) -> Problem:
        """The problem as the search currently sees it."""
        return self._problem if self._search is None else self._search.problem

    @property
    def space(self) -> Space:
        """The features and the values they can hold."""
        return self.plan.space

    def extend(self, budget: int) -> None:
        """Continue until all runs together have sent this many rows, even if settled; call before the first step.

        The explanation keeps its identity, and its plan keeps the original budget.
        """
        self.box.budget = self._budget = budget
        if isinstance(self._strategy, Feasible):
            self._strategy = replace(self._strategy, effort="spend")

    def begin(self, names: Sequence[str] = (), labels: Sequence[Label] = ()) -> None:
        """Record the explanation in the ledger, with names of its row and known labels, before anything is sent."""
        self._names, self._labels = tuple(names), list(labels)
        _ = self._earlier

    @cached_property
    def _earlier(self) -> _EarlierRuns:
        """The queries of earlier runs of this explanation; records its start in the ledger."""
        plan, ledger = self.plan, self.box.ledger
        self._deadline = math.inf if self._time_limit is None else time.monotonic() + self._time_limit
        if ledger.is_memory:
            return _EarlierRuns(self.box, [])
        self.box.explanation = plan.identity
        # Needed to send the rows again in the model's format, and to show the same remarks.
        form = {"form": plan.space.form(), "remarks": [remark.to_dict() for remark in plan.remarks]}
        asks = ledger.begin(
            plan.identity,
            plan.model_id,
            factual=plan.factual,
            settings={**plan.settings, **self._metadata, **form, "known_labels": self._labels},
            space=plan.described_space(),
            names=self._names,
        )
        return _EarlierRuns(self.box, asks)

    @property
    def identity(self) -> str:
        """The fingerprint that identifies this explanation in every ledger."""
        return self.plan.identity

    # -- the session queries the model ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Step]:
        """Query the model and yield a step for each answer; the steps of earlier runs come first."""
        while (steps := self.advance()) is not None:
            yield from steps

    def run(self, note: Callable[[Session], object] = lambda session: None) -> Explanation:
        """Query the model until the search ends, and return the explanation; `note` is called after each round.

        If this raises, the error's `explanation` holds what was found before.
        """
        try:
            while self.advance() is not None:
                note(self)
        except BaseException as failure:  # also Ctrl-C, or a callback that raises: attach what was found so far
            failure.explanation = None  # type: ignore[attr-defined]
            if self._search is not None:  # before the first answer there is nothing to show
                with suppress(Exception):  # do not hide the original error
                    failure.explanation = self.explanation()  # type: ignore[attr-defined]
            raise
        return self.explanation()

    def advance(self) -> list[Step] | None:
        """Send the next round and return its steps; None when the search is complete."""
        round_ = self._current_round()
        if round_ is None:
            return None
        try:
            return self._accept(round_, self.box.ask(round_.rows, round_.questions))
        except OutOfStep as ahead:
            self._catch_up(ahead)
            return []

    # -- the caller provides the labels --------------------------------------------------------------------------

    def ask(self) -> Rows | None:
        """The rows that need a label, in the format of the data; None when the explanation is complete.

        No further rows are chosen until all of these have a label. Rows with a known answer are skipped.
        """
        # Terminates: each pass but the last adds answered rows to the history, and no row is asked twice.
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
        """The ledger keys of the rows that need a label."""
        return [] if self._round is None else [self._round.keys[i] for i in self._round.unanswered]

    def tell(self, rows: Rows, labels: Any) -> None:
        """Record the model's labels of rows that `ask` returned: some or all of them, in any order.

        A label may be passed again; a different one is not used but recorded as a contradiction,
        unless the row was asked for once more: then it is a vote. With noise, a row may occur
        several times in one call: each label is a separate result.

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
        if not self.steps and keys:  # check the factual's label before it is recorded
            self._learn(read[0])
        recorded = self.box.ledger.record(self.box.model_id, keys, read)
        answers = [answer for answer in recorded if answer.row not in before]
        if self._round is not None:
            self._accept(self._round, answers)

    # -- rounds --------------------------------------------------------------------------------------------------

    def _current_round(self) -> _Round | None:
        """The round waiting for answers, or a new one; None when the search is complete."""
        if self._round is None and self._end is None:
            with one_blas_thread():
                queries, keys = self._propose()
            self._round = self._prepared(queries, keys) if queries else None
        if self._round is None:
            self._finish()
        return self._round

    def _propose(self) -> tuple[list[Query], list[str]]:
        """The next queries, with their keys if already known; if there are none, sets how the search ends."""
        queries, keys = self._recorded_round()
        if not queries and self.steps and time.monotonic() > self._deadline:
            self._end = ("time_spent", "time")
            return [], []
        if not queries:
            queries, keys = self._further_results()
        queries = queries or self._new_round()
        if queries and len(queries) > (left := self.box.remaining):
            # A search that the budget ended stays ended, even if another one has since paid for its next row.
            ended = left == 0 and self._earlier.ended_at(len(self.steps))
            keys = keys or self._keys(row_values(self.space.decode(_points(queries))))
            n = 0 if ended else self.box.affordable(keys)
            queries, keys = queries[:n], keys[:n]
            self._end = None if queries else ("budget_spent", "budget")
        return queries, keys

    def _keys(self, rows: Iterable[Iterable[Any]]) -> list[str]:
        """The ledger keys of rows, from their values; with noise, a row that was asked before is a vote."""
        keys = [canonical_text(row) for row in rows]
        if self.plan.noise is None:
            return keys
        times = Counter(self._asked)
        for i, key in enumerate(keys):
            times[key] += 1
            keys[i] = as_vote(key, times[key])
        return keys

    def _further_results(self) -> tuple[list[Query], list[str]]:
        """Further results of questions that already have one, with their keys; they cost nothing."""
        if not self._further:
            return [], []
        is_start = self.steps[-1].purpose == "factual"  # once the search has started, those of the factual are too late
        known = self.box.ledger.known(self.box.model_id, list(self._further))
        keys = [key for key in known if is_start or self._further[key].purpose != "factual"]
        votes = [replace(self._further[key], round=self.steps[-1].note.round) for key in keys]
        return votes if is_start else [replace(query, purpose="vote") for query in votes], keys

    def _recorded_round(self) -> tuple[list[Query], list[str]]:
        """The round that an earlier run asked at this position; empty if there is none or a row does not fit.

        It is read from the ledger, since another machine might compute slightly different points.
        """
        asks = self._earlier.round_at(len(self.steps))
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
            seen = self._earlier.seen
            self._search = self._pool_evidence.added_to(
                self._search, seen(1), seen(len(self.steps)), self._is_hit, self._before
            )
        # The remaining budget limits the round. Even without any, the ledger may answer one more query.
        n = min(self.plan.settings["queries_per_round"], max(self.box.remaining, 1))
        queries = self._search.propose(n)
        if not queries:
            self._end = ENDINGS.get(self._search.stop_reason or "", ("unlikely", "settled"))
        return queries

    def _prepared(self, queries: list[Query], keys: list[str]) -> _Round:
        """The round of these queries, with the notes that the ledger stores about them.

        Raises:
            ValueError: a row that an earlier run chose has no answer, and the rules now forbid it.
        """
        problem, X = self.problem, _points(queries)
        rows, position = self.space.decode(X), len(self.steps)
        values = row_values(rows)
        keys, inside = keys or self._keys(values), problem.region.contains(X)
        if not inside.all() and queries[0].purpose != "factual":
            self._refuse_forbidden([key for key, ok in zip(keys, inside, strict=True) if not ok])
        first = self._earlier.asks[position].note["first"] if position in self._earlier.asks else position
        counts = problem.plausible(X) & inside
        affinity = np.ones(len(X)) if problem.density is None else problem.density.affinity(X)
        columns = (queries, problem.cost(X), counts, affinity, problem.in_reference(X))
        notes = [
            Note(first, float(cost), bool(ok), float(like), q.round, q.penalty, q.max_p_hit, bool(known), q.p_hit)
            for q, cost, ok, like, known in zip(*columns, strict=True)
        ]
        seen = self._earlier.seen(position)
        questions = [
            Question(key, query.purpose, position + i, seen, note.to_dict())
            for i, (key, query, note) in enumerate(zip(keys, queries, notes, strict=True))
        ]
        return _Round(queries, rows, values, questions, notes)

    def _refuse_forbidden(self, keys: list[str]) -> None:
        """Raise if any of these rows, which the rules now forbid, has no answer: a rule is more than its code."""
        known = self.box.ledger.known(self.box.model_id, keys)
        unanswered = [key for key in keys if key not in known]
        if unanswered:
            raise ValueError(
                f"The row {unanswered[0]}, which an earlier run of this explanation had chosen, is forbidden by the "
                f"rules as they are now. Nothing was sent. Use another seed to start over; known answers are reused."
            )

    def _accept(self, round_: _Round, answers: Sequence[Answer]) -> list[Step]:
        """Add answers to the round; once it is complete, tell them to the search and return the new steps."""
        round_.answers.update({answer.row: answer for answer in answers})
        if round_.unanswered:
            return []
        before = len(self.steps)
        for i, row in enumerate(round_.values):
            self._add_step(round_, i, dict(zip(self.space.names, row, strict=True)))
        self._round = None
        return self.steps[before:]

    def _add_step(self, round_: _Round, i: int, row: dict[str, Any]) -> None:
        """Append the step of row number i of the round, and tell its answer to the search."""
        query, question = round_.queries[i], round_.questions[i]
        answer = round_.answers[question.row]
        paid = int(question.row in self.box.sent and question.row not in round_.keys[:i])
        before = self._earlier.asks.get(len(self.steps))
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
        # Check the first label before anything depends on it.
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
        """Begin the search with the answers to the factual: one, or several votes."""
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
        """How many more votes the factual needs, at least; not positive if it needs none."""
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
        """Whether an answer from elsewhere is a hit, and its odds; None if it lacks the probability to judge."""
        value = self.plan.target.value(answer.label, answer.scores)
        if value is None:
            return None
        return self.plan.target.is_hit(value, self._before), self._odds(value, answer)

    def _catch_up(self, ahead: OutOfStep) -> None:
        """Read the queries of another run of this explanation, which is ahead, to continue from them."""
        if self.box.explanation is None or len(self.steps) in self._earlier.asks:
            raise ahead  # the recorded query was known, and this run chose another one
        self._earlier.asks = {ask.position: ask for ask in self.box.ledger.asks(self.box.explanation)}
        self._round = None

    def _finish(self) -> None:
        """Record how the search ended, unless this end is already recorded."""
        past, n = self._earlier, len(self.steps)
        has_more = past.end is None or n > past.n_asked
        if self.box.explanation is not None and has_more and self.steps:
            ending = self.ending()
            result = {"asked": n, **ending.to_dict(), "budget": self._budget}
            past.end, past.n_asked = past.seen(n), n  # without answers recorded after the decision
            self.box.ledger.finish(self.box.explanation, ending.outcome, result, seen=past.end)

    # -- results -------------------------------------------------------------------------------------------------

    @property
    def best_cost(self) -> float | None:
        """The cost of the best counterfactual so far."""
        best = self.steps[-1].best if self.steps else np.inf
        return None if np.isinf(best) else best

    def ending(self) -> Ending:
        """How the search ended, or its state so far.

        Raises:
            ValueError: the factual's label is not known yet.
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
        """The searches whose counterfactuals are the answer, by kind, in the order of display."""
        searches = {"realistic": search}
        prefer = self.plan.settings.get("prefer")
        if prefer and search.is_long and len(search.short().counterfactuals):
            searches["short"] = search.short()
        return dict(sorted(searches.items(), key=lambda item: item[0] != prefer))

    @cached_property
    def _excluded(self) -> dict[str, int]:
        """Which options exclude candidates, if the search ended without a counterfactual; see `obstacles`."""
        if self._end is None or self._end[0] == "already_target":
            return {}
        return obstacles(self.problem, self._relaxed(), self.problem.hint)

    def _needed(self, search: Search, which: int) -> dict[str, str]:
        """Whether each change of a counterfactual is needed, by the name of the feature."""
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
        """A remark if the answer changes many features, or a much cheaper one is likely to exist."""
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
        """The explanation in its current state.

        Raises:
            ValueError: the factual's label is not known yet.
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
    rows: Rows  # in the model's format
    values: list[tuple[Any, ...]]  # of each row
    questions: list[Question]
    notes: list[Note]
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The ledger key of each row."""
        return [question.row for question in self.questions]

    @property
    def unanswered(self) -> list[int]:
        """Positions of rows without an answer, each distinct row once."""
        first = {key: i for i, key in reversed(list(enumerate(self.keys))) if key not in self.answers}
        return sorted(first.values())


class _EarlierRuns:
    """The recorded queries and end of this explanation, and the newest answer that each of its queries may use."""

    def __init__(self, box: BlackBox, asks: Sequence[Ask]) -> None:
        self._box = box
        self.asks = {ask.position: ask for ask in asks}
        # A search that ended stays ended, whatever others have asked since; a larger budget continues from there.
        record = None if box.explanation is None else box.ledger.explanation(box.explanation)
        self.end = None if record is None else record.seen_at_end
        self.n_asked = (record.result or {}).get("asked", len(asks)) if record else 0  # at the end
        self._now: tuple[int, int] = (-1, 0)  # a position, and the newest answer that it may use

    def seen(self, position: int) -> int:
        """The number of the newest answer that the query at this position may use; every run gets the same."""
        if position in self.asks:
            return self.asks[position].seen
        if self._now[0] != position:
            newest = self.end if self.ended_at(position) else self._box.ledger.account(self._box.model_id).last_sequence
            self._now = position, newest or 0
        return self._now[1]

    def ended_at(self, position: int) -> bool:
        """Whether the search ended before a query at this position."""
        return self.end is not None and position == self.n_asked and position not in self.asks

    def round_at(self, position: int) -> list[Ask]:
        """The recorded queries from this position to the end of its round; empty if there are none."""
        asks: list[Ask] = []
        while (ask := self.asks.get(position + len(asks))) is not None:
            if asks and ask.note["first"] != asks[0].note["first"]:
                break
            asks.append(ask)
        return asks


def _points(queries: Sequence[Query]) -> FloatArray:
    return np.array([query.point for query in queries])


def contradictions(ledger: BaseLedger, model: str, asked: Sequence[str]) -> tuple[Remark, ...]:
    """A warning if the model later gave rows another label; `asked` are the canonical rows of one explanation."""
    rows = ledger.contradicted(model)
    if not rows:
        return ()
    text = (
        f"The model contradicts itself: it gave {counted(len(rows), 'row')} ({len(rows & set(asked))} asked here) "
        f"another label later. The first one is used, unless it was corrected."
    )
    return (Remark("contradiction", text, is_warning=True, advice="See Ledger.contradicted."),)


def value_of(answer: Answer, target: Target) -> Label:
    """The part of an answer that the target is about: the label, the number, or the probability of a label.

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
    """A function that shows a count and a text in a progress bar; it does nothing if no bar is wanted."""
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
