"""A ledger for one process: dicts, no files, no other modules.

Only threads of this process can claim a row, so there are no leases: a row is in flight while the thread that claimed
it lives and has not claimed again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from acex.errors import LedgerFailed
from acex.ledger.base import (
    Account,
    Answer,
    BaseLedger,
    Claim,
    Question,
    State,
    answer_seen,
    claim_states,
    refuse_new_labels,
)
from acex.ledger.row_keys import PlainLabel, Scores, plain_label


@dataclass
class _Row:
    """A row of a model: how often it was sent, who is sending it, and its answers."""

    attempts: int = 0
    claimed_by: int | str | None = None  # a thread, or the name of a holder
    reserved: Decimal = Decimal(0)
    answers: list[Answer] = field(default_factory=list)

    @property
    def is_in_flight(self) -> bool:
        """Is another thread, or a holder elsewhere, expected to answer it?"""
        if self.answers or self.claimed_by is None:
            return False
        if isinstance(self.claimed_by, str):
            return True
        others = (thread.ident for thread in threading.enumerate() if thread is not threading.current_thread())
        return self.claimed_by in others


@dataclass
class _Model:
    """`answers` is the truth; the answers of `rows` follow from it, so that an interrupt cannot separate the two."""

    account: Account
    answers: list[Answer] = field(default_factory=list)
    rows: dict[str, _Row] = field(default_factory=dict)
    n_indexed: int = 0
    contradicted: dict[str, PlainLabel] = field(default_factory=dict)

    def index(self) -> None:
        while self.n_indexed < len(self.answers):
            answer = self.answers[self.n_indexed]
            row = self.rows.setdefault(answer.row, _Row())
            if not row.answers or row.answers[-1] is not answer:
                row.answers.append(answer)
            self.n_indexed += 1

    def in_flight(self, rows: Sequence[str]) -> set[str]:
        return {row for row in rows if row in self.rows and self.rows[row].is_in_flight}

    def answered(self, rows: Sequence[str]) -> set[str]:
        return {row for row in rows if row in self.rows and self.rows[row].answers}


class MemoryLedger(BaseLedger):
    """Answers for the life of one process."""

    is_memory = True

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._turn = threading.RLock()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return "<acex ledger in memory>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "A ledger in memory cannot be sent to another process. Use a file, such as Ledger('answers.db')."
        )

    def close(self) -> None:
        """Nothing to close."""

    @contextmanager
    def _model(self, model: str) -> Iterator[_Model]:
        """The model, with no other thread changing it meanwhile."""
        if os.getpid() != self._pid:
            raise LedgerFailed(
                "A ledger in memory belongs to the process that made it: answers recorded here would be lost. "
                "Use a file, such as ledger='answers.db'."
            )
        with self._turn:
            found = self._models.get(model)
            if found is None:
                found = self._models[model] = _Model(Account(model, model))
            found.index()
            yield found

    # -- models and budgets --------------------------------------------------------------------------------------

    def account(self, model: str) -> Account:
        with self._model(model) as found:
            return replace(found.account, last_sequence=len(found.answers))

    def update(self, model: str, change: Callable[[Account], Account]) -> None:
        with self._model(model) as found:
            found.account = change(found.account)

    # -- claims --------------------------------------------------------------------------------------------------

    def claim(
        self,
        model: str,
        questions: Sequence[Question],
        *,
        explanation: str | None = None,
        most: int | None = None,
        price: Decimal | None = None,
        holder: str | None = None,
    ) -> list[Claim]:
        me = holder or threading.current_thread().ident
        rows = [question.row for question in questions]
        with self._model(model) as found:
            states = claim_states(rows, found.answered(rows), found.in_flight(rows), most)
            found.account = found.account.charged(states.count("mine"), price)
            for key, state in zip(rows, states, strict=True):
                if state == "mine":
                    row = found.rows.setdefault(key, _Row())
                    row.attempts, row.claimed_by, row.reserved = row.attempts + 1, me, price or Decimal(0)
            return [
                _claim(question, state, found.rows[question.row])
                for question, state in zip(questions, states, strict=True)
            ]

    @contextmanager
    def holding(self, model: str, rows: Sequence[str]) -> Iterator[None]:
        yield

    def record(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
        used: Decimal | None = None,
    ) -> list[Answer]:
        plain = [plain_label(label) for label in labels]
        with self._model(model) as found:
            self._append(found, rows, plain, scores)
            for row in rows:
                if used is not None:
                    found.account = found.account.with_money_freed(found.rows[row].reserved)
                found.rows[row].reserved = Decimal(0)
            found.account = found.account.with_money_freed(-(used or Decimal(0)))
            return [found.rows[row].answers[-1] for row in rows]

    def _append(
        self, model: _Model, rows: Sequence[str], labels: Sequence[PlainLabel], scores: Sequence[Scores | None] | None
    ) -> int:
        """How many of these answers were new; others are contradictions if they differ."""
        new: dict[str, Answer] = {}
        for row, label, given in zip(rows, labels, scores or [None] * len(rows), strict=True):
            known = model.rows[row].answers[-1:] if row in model.rows else []
            before = new.get(row) or next(iter(known), None)
            if before is None:
                new[row] = Answer(row, label, given, len(model.answers) + len(new) + 1)
            elif before.label != label:
                model.contradicted[row] = label
        model.answers.extend(new.values())  # in one step: an interrupt finds all of them or none
        model.index()
        return len(new)

    def release(self, model: str, rows: Sequence[str]) -> int:
        with self._model(model) as found:
            me = threading.current_thread().ident
            own = [row for key in rows if (row := found.rows.get(key)) and not row.answers and row.claimed_by == me]
            for row in own:
                found.account = found.account.charged(-1).with_money_freed(row.reserved)
                row.attempts, row.claimed_by, row.reserved = row.attempts - 1, None, Decimal(0)
            return len(own)

    def abandon(self, model: str, rows: Sequence[str] | None = None) -> int:
        with self._model(model) as found:
            wanted = found.rows.values() if rows is None else [found.rows[key] for key in rows if key in found.rows]
            claimed = [row for row in wanted if not row.answers and row.claimed_by is not None]
            for row in claimed:
                row.claimed_by = None
            return len(claimed)

    def in_flight(self, model: str, rows: Sequence[str]) -> dict[str, bool]:
        with self._model(model) as found:
            return {row: not isinstance(found.rows[row].claimed_by, str) for row in found.in_flight(rows)}

    # -- answers -------------------------------------------------------------------------------------------------

    def known(self, model: str, rows: Sequence[str]) -> dict[str, Answer]:
        with self._model(model) as found:
            return {row: found.rows[row].answers[-1] for row in found.answered(rows)}

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        with self._model(model) as found:
            wanted = found.answers[after:up_to]
            return wanted if newest is None else wanted[max(len(wanted) - newest, 0) :]

    def import_answers(
        self, model: str, rows: Sequence[str], labels: Sequence[Any], *, new_labels: bool = False
    ) -> int:
        plain = [plain_label(label) for label in labels]
        with self._model(model) as found:
            if not new_labels:
                refuse_new_labels(model, plain, [answer.label for answer in found.answers])
            return self._append(found, rows, plain, None)

    def correct(self, model: str, row: str, label: Any, *, scores: Scores | None = None) -> Answer:
        with self._model(model) as found:
            if not found.answered([row]):
                raise ValueError(f"Row {row} of model {model!r} has no answer to correct.")
            answer = Answer(row, plain_label(label), scores, len(found.answers) + 1)
            found.answers.append(answer)
            found.index()
            return answer

    def contradicted(self, model: str) -> set[str]:
        with self._model(model) as found:
            return set(found.contradicted)

    def copy_to(self, other: BaseLedger) -> None:
        """Copy models with budgets, charges and answers to a new ledger."""
        for key in self._models:
            with self._model(key) as model:
                account = model.account
                other.update(key, lambda _, account=account: account)  # type: ignore[misc]
                first = [answer for answer in model.answers if answer is model.rows[answer.row].answers[0]]
                rows, labels, scores, _ = zip(*first, strict=True) if first else ((), (), (), ())
                other.record(key, rows, labels, scores=scores)
                for answer in model.answers:
                    if answer is not model.rows[answer.row].answers[0]:
                        other.correct(key, answer.row, answer.label, scores=answer.scores)
                for row, label in model.contradicted.items():
                    other.record(key, [row], [label])


def _claim(question: Question, state: State, row: _Row) -> Claim:
    held_by = f"thread {row.claimed_by}" if isinstance(row.claimed_by, int) else row.claimed_by
    answer = answer_seen(row.answers, question.seen)
    return Claim(question.row, state, answer, row.attempts, None if state == "answered" else held_by)
