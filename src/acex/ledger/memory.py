"""A ledger for one process: dicts, no files, no other modules.

Only threads of this process can claim a row, so there are no leases: a row is in flight while the thread that claimed
it lives and has not claimed again.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from acex.errors import BudgetSpent, LedgerFailed
from acex.ledger.base import Account, Answer, BaseLedger, Claim, Question, answer_seen, model_key, refuse_new_labels
from acex.ledger.row_keys import PlainLabel, Scores, label_text

LONGEST_PAUSE = 0.25  # seconds between two looks at whether a thread still lives


@dataclass
class _Row:
    """A row of a model: how often it was sent, who is sending it, and its answers."""

    attempts: int = 0
    claimed_by: int | str | None = None  # a thread, or the name of a holder
    reserved: Decimal = Decimal(0)
    answers: list[Answer] = field(default_factory=list)

    def answer(self, seen: int | None) -> Answer | None:
        return answer_seen(self.answers, seen)


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

    def row(self, key: str) -> _Row:
        return self.rows.setdefault(key, _Row())


class MemoryLedger(BaseLedger):
    """Answers for the life of one process."""

    is_memory = True

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._changed = threading.Condition(threading.RLock())
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
        with self._changed:
            found = self._models.get(model)
            if found is None:
                found = self._models[model] = _Model(Account(model, model))
            found.index()
            yield found

    # -- models and budgets --------------------------------------------------------------------------------------

    def register(
        self, name: str, *, version: str | None = None, description: str = "", features: Sequence[str] | None = None
    ) -> str:
        key = model_key(name, version)
        with self._model(key) as model:
            model.account = replace(model.account.with_features(features, description), name=name, version=version)
        return key

    def account(self, model: str) -> Account:
        with self._model(model) as found:
            return replace(found.account, last_sequence=len(found.answers))

    def budget(
        self,
        model: str,
        *,
        rows: int | None = None,
        money: float | None = None,
        price_per_row: float | None = None,
    ) -> None:
        with self._model(model) as found:
            found.account = found.account.with_budget(rows, money, price_per_row)

    def charge(self, model: str, rows: int, price: Decimal | None = None) -> None:
        with self._model(model) as found:
            found.account = found.account.charged(rows, price)

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
        me = holder or _this_thread()
        claims: list[Claim] = []
        mine: set[str] = set()
        with self._model(model) as found:
            for question in questions:
                row = found.rows.get(question.row) or _Row()
                if row.answers:
                    claims.append(Claim(question.row, "answered", row.answer(question.seen), row.attempts, None))
                elif question.row in mine or _in_flight(row):
                    attempts, held_by = (
                        (row.attempts + 1, me) if question.row in mine else (row.attempts, row.claimed_by)
                    )
                    claims.append(Claim(question.row, "in_flight", None, attempts, _name(held_by)))
                else:
                    mine.add(question.row)
                    claims.append(Claim(question.row, "mine", None, row.attempts + 1, _name(me)))
            if most is not None and len(mine) > most:
                raise BudgetSpent(f"{len(mine)} rows to ask, but only {most} more may be sent.")
            found.account = found.account.charged(len(mine), price)
            for key in mine:
                row = found.row(key)
                row.attempts, row.claimed_by, row.reserved = row.attempts + 1, me, price or Decimal(0)
        return claims

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
        plain = [_plain(label) for label in labels]
        with self._model(model) as found:
            self._append(found, rows, plain, scores)
            reserved = sum((found.rows[row].reserved for row in rows), Decimal(0))
            if used is not None:
                found.account = replace(found.account, money_used=found.account.money_used - reserved + used)
            for row in rows:
                found.rows[row].reserved = Decimal(0)
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
        self._changed.notify_all()
        return len(new)

    def release(self, model: str, rows: Sequence[str]) -> int:
        me, n = _this_thread(), 0
        with self._model(model) as found:
            for key in rows:
                row = found.rows.get(key)
                if row is not None and not row.answers and row.claimed_by == me:
                    account = found.account.charged(-1)
                    found.account = replace(account, money_used=account.money_used - row.reserved)
                    row.attempts, row.claimed_by, row.reserved = row.attempts - 1, None, Decimal(0)
                    n += 1
            self._changed.notify_all()
        return n

    def abandon(self, model: str, rows: Sequence[str] | None = None) -> int:
        n = 0
        with self._model(model) as found:
            for key in list(found.rows) if rows is None else rows:
                row = found.rows.get(key)
                if row is not None and not row.answers and row.claimed_by is not None:
                    row.claimed_by = None
                    n += 1
            self._changed.notify_all()
        return n

    def wait(self, model: str, rows: Sequence[str], *, timeout: float | None = None) -> bool:
        ends = None if timeout is None else time.monotonic() + timeout
        with self._model(model) as found:
            while any(_in_flight(found.row(row)) for row in rows):
                left = LONGEST_PAUSE if ends is None else min(LONGEST_PAUSE, ends - time.monotonic())
                only_holders = all(isinstance(found.row(r).claimed_by, str) for r in rows if _in_flight(found.row(r)))
                if left <= 0 or (ends is None and only_holders):
                    return False
                self._changed.wait(left)
        return True

    def free(self, model: str, rows: Sequence[str]) -> set[str]:
        with self._model(model) as found:
            return {
                key for key in rows if (row := found.rows.get(key)) is not None and (row.answers or _in_flight(row))
            }

    # -- answers -------------------------------------------------------------------------------------------------

    def known(self, model: str, rows: Sequence[str]) -> dict[str, Answer]:
        with self._model(model) as found:
            return {key: found.rows[key].answers[-1] for key in rows if key in found.rows and found.rows[key].answers}

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        with self._model(model) as found:
            last = len(found.answers) if up_to is None else min(up_to, len(found.answers))
            return found.answers[min(after if newest is None else max(after, last - newest), last) : last]

    def import_answers(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
        new_labels: bool = False,
    ) -> int:
        plain = [_plain(label) for label in labels]
        with self._model(model) as found:
            if not new_labels:
                refuse_new_labels(model, plain, list({label_text(a.label): a.label for a in found.answers}.values()))
            return self._append(found, rows, plain, scores)

    def correct(self, model: str, row: str, label: Any, *, scores: Scores | None = None) -> Answer:
        with self._model(model) as found:
            if row not in found.rows or not found.rows[row].answers:
                raise ValueError(f"Row {row} of model {model!r} has no answer to correct.")
            answer = Answer(row, _plain(label), scores, len(found.answers) + 1)
            found.answers.append(answer)
            found.index()
            return answer

    def contradicted(self, model: str) -> set[str]:
        with self._model(model) as found:
            return set(found.contradicted)

    def copy_to(self, other: BaseLedger) -> None:
        """Copy models with budgets, charges and answers to a new ledger."""
        for key, model in self._models.items():
            model.index()
            account = model.account
            other.register(
                account.name, version=account.version, description=account.description, features=account.features
            )
            first = [answers[0] for row in model.rows.values() if (answers := row.answers)]
            first.sort(key=lambda answer: answer.sequence)
            given = [[getattr(answer, name) for answer in first] for name in ("row", "label", "scores")]
            other.import_answers(key, given[0], given[1], scores=given[2], new_labels=True)
            for answer in model.answers:
                if answer is not model.rows[answer.row].answers[0]:
                    other.correct(key, answer.row, answer.label, scores=answer.scores)
            for row, label in model.contradicted.items():
                other.record(key, [row], [label])
            if account.n_charged:
                other.charge(key, 1, account.money_used)
                other.charge(key, account.n_charged - 1)
            if account.money_budget is not None:
                other.budget(key, money=float(account.money_budget))
            if account.row_budget is not None:
                other.budget(key, rows=account.row_budget, price_per_row=account.price_per_row)


def _in_flight(row: _Row) -> bool:
    if row.answers or row.claimed_by is None:
        return False
    if isinstance(row.claimed_by, str):
        return True
    return row.claimed_by != _this_thread() and any(t.ident == row.claimed_by for t in threading.enumerate())


def _this_thread() -> int:
    return threading.current_thread().ident or 0  # unlike get_ident, this makes `enumerate` know foreign threads


def _is_free(row: _Row) -> bool:
    return bool(row.answers) or _in_flight(row)


def _name(holder: int | str | None) -> str | None:
    return f"thread {holder}" if isinstance(holder, int) else holder


def _plain(label: Any) -> PlainLabel:
    label = json.loads(label_text(label))
    assert isinstance(label, (str, int, float, bool))
    return label
