"""The ledger: where every answer of a model is written down, so that it is paid for once.

A row is *claimed* before it is sent and *settled* with its label. In between it is *in flight*: whoever wants the same
row waits for the answer. A claim holds for its *lease*; when that has run out without an answer, or the process that
held it no longer lives, the next one to claim the row asks again, and `attempts` says so.

    claims = ledger.claim(model, questions)       # atomic, budget included
    mine = [c.row for c in claims if c.state == "mine"]
    ledger.settle(model, mine, send(mine))        # before waiting for others, who may be waiting for us
    ledger.wait(model, [c.row for c in claims])   # then claim again: each is settled, or may be taken over

When sending fails, `release` what certainly cost nothing and `abandon` the rest, so that nobody waits for it.

Rows are canonical texts (see `canonical`). Claims and answers of one model are written one transaction at a
time: each first locks the model's line, which holds the two counters. So budgets hold whatever the number of processes,
and an answer with number n is visible only when 1 to n - 1 are. (A serial column of PostgreSQL does not promise that:
the transaction that drew n may commit before the one that drew n - 1.)
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import socket
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import pandas as pd
from sqlalchemy import Connection, Row, bindparam, func, select

from acex.errors import BudgetSpent, LedgerFailed, OutOfStep
from acex.ledger.store import Store
from acex.ledger.tables import asks, contradictions, explanations, models, queries, spaces
from acex.values import as_json, is_count, is_finite, plain

PlainLabel: TypeAlias = str | int | float | bool
Scores: TypeAlias = list[tuple[PlainLabel, float]]
LEASE_SECONDS = 120.0  # longer than most endpoints take to answer or to give up
AT_ONCE = 500  # values in one statement; databases have a limit
FOREVER = "9999-12-31T23:59:59.999999+00:00"
LONGEST_PAUSE = 0.25  # seconds between two looks for somebody else's answer

# Statements that every question needs: putting one together takes longer than running it.
_ACCOUNT = select(models).where(models.c.id == bindparam("model")).with_for_update()
_LAST = select(models.c.last_sequence).where(models.c.id == bindparam("model"))
_CHARGE = models.update().where(models.c.id == bindparam("model")).values(n_charged=models.c.n_charged + bindparam("n"))
_NUMBERED = models.update().where(models.c.id == bindparam("model")).values(last_sequence=bindparam("n"))
_BY_ID = select(queries).where(queries.c.id.in_(bindparam("ids", expanding=True)))
_MODEL_OF = select(explanations.c.model_id).where(explanations.c.id == bindparam("explanation"))
_AT_PLACES = select(asks).where(
    asks.c.explanation_id == bindparam("explanation"), asks.c.position.in_(bindparam("places", expanding=True))
)
_PAID = select(func.coalesce(func.sum(asks.c.paid), 0)).where(asks.c.explanation_id == bindparam("explanation"))
_CLAIM, _CLAIM_AGAIN = queries.insert(), queries.update().where(queries.c.id == bindparam("_id"))
_RECORD = asks.insert()


class Answer(NamedTuple):
    """A label of the model, and its place in the order of all answers of this model."""

    row: str
    label: PlainLabel
    scores: Scores | None  # the probability of each label, where the model gave them
    sequence: int


@dataclass(frozen=True)
class Question:
    """A row that is wanted, and why.

    Args:
        row: its canonical form.
        purpose: a word for people.
        position: its place among the questions of the explanation that asks, from 0; needed with an explanation only.
        seen: the sequence number of the newest answer that could influence this question.
        note: what else is worth keeping, such as the cost of the row; anything JSON can hold.
    """

    row: str
    purpose: str = "asked"
    position: int | None = None
    seen: int = 0
    note: Any = None


class Claim(NamedTuple):
    """What `claim` found: "mine" must be sent now, "settled" has an answer, "in_flight" is awaited by someone else."""

    row: str
    state: Literal["mine", "settled", "in_flight"]
    answer: Answer | None
    attempts: int  # how often the row was sent, or may have been, this time included
    held_by: str | None


class Ask(NamedTuple):
    """A question of an explanation as it was recorded; `answer` is None while it is not settled."""

    position: int
    row: str
    purpose: str
    seen: int
    note: Any
    paid: int
    answer: Answer | None


class Record(NamedTuple):
    """What a ledger knows of an explanation beside its questions; times are ISO 8601 in UTC."""

    model: str
    settings: dict[str, Any]
    space: dict[str, Any] | None  # as `begin` was told; None where an older acex began the explanation
    started_at: str
    finished_at: str | None
    outcome: str | None  # None while it has not ended
    result: dict[str, Any] | None  # as `finish` was told


class Asked(NamedTuple):
    """A row of a model as its key finds it; `answer` is None while it is not settled."""

    model: str
    row: str
    answer: Answer | None


class Ledger:
    """Every answer of every model, with claims, budgets and the questions of each explanation.

    Args:
        where: a path (an SQLite file), a URL (`postgresql://user@host/database`), or None: memory, for this process.
        lease: for how many seconds a claim holds. Longer than any request takes, or it will be paid for twice.

    Example:
        >>> ledger = Ledger()
        >>> [claim.state for claim in ledger.claim("loans-v1", [Question('[37, "clerk"]')])]
        ['mine']
        >>> ledger.settle("loans-v1", ['[37, "clerk"]'], ["good"])[0].label
        'good'
    """

    def __init__(self, where: str | os.PathLike[str] | None = None, *, lease: float = LEASE_SECONDS) -> None:
        if not lease > 0:
            raise ValueError(f"lease must be a positive number of seconds, got {lease!r}.")
        self.lease = lease
        self._store = Store(where)
        self._token = uuid.uuid4().hex[:8]

    def __repr__(self) -> str:
        return f"<acex.Ledger {self._store.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_memory:
            raise TypeError(
                "A ledger in memory cannot be sent to another process. Give it a file, such as Ledger('answers.db')."
            )
        return _open, (self._store.address, self.lease)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Nothing waits to be written: each call has done so when it returns."""
        if not self.is_memory:
            self._store.close()

    @property
    def is_memory(self) -> bool:
        """Does this ledger end with the process?"""
        return self._store.is_memory

    @property
    def path(self) -> Path | None:
        """The file of this ledger; None in memory and on a server."""
        return self._store.path

    @property
    def owner(self) -> str:
        """Who claims through this object, in words: host, process, and a mark of its own."""
        return f"{socket.gethostname()} pid {os.getpid()} {_machine()} {self._token}"

    # -- models and budgets ----------------------------------------------------------------------------

    def register(self, model: str, *, description: str = "", features: Sequence[str] | None = None) -> None:
        """Write down what a model is, and what the values of its rows are called.

        Raises:
            ValueError: the model is known with other features, so that equal rows would not mean the same.
        """
        with self._store.write() as connection:
            account = self._account(connection, model)
            wanted = None if features is None else json.dumps([str(feature) for feature in features])
            if wanted is not None and account.features not in (None, wanted):
                raise ValueError(
                    f"Model {model!r} is known with the features {account.features}, not {wanted}. "
                    f"Use the same columns in the same order, or another model_id."
                )
            values = {"description": description or account.description, "features": wanted or account.features}
            connection.execute(models.update().where(models.c.id == model).values(**values))

    def budget(
        self,
        model: str,
        *,
        rows: int | None = None,
        money: float | None = None,
        price_per_row: float | None = None,
    ) -> None:
        """Limit what may be sent to a model over its lifetime, by anybody: in rows, or in money with a price.

        What was sent before counts. The last call holds.
        """
        if price_per_row is not None and not (is_finite(price_per_row) and price_per_row > 0):
            raise ValueError(f"price_per_row must be a positive number, got {price_per_row!r}.")
        if (rows is None) == (money is None):
            raise ValueError(f"budget takes rows or money, one of them; got rows={rows!r}, money={money!r}.")
        if rows is not None and not is_count(rows, least=0):
            raise ValueError(f"rows must be a whole number, 0 or more, got {rows!r}.")
        if money is not None and not (is_finite(money) and money >= 0):
            raise ValueError(f"money must be a number, 0 or more, got {money!r}.")
        with self._store.write() as connection:
            account = self._account(connection, model)
            price = account.price_per_row if price_per_row is None else price_per_row
            if money is not None:
                if price is None:
                    raise ValueError("A budget in money needs price_per_row.")
                # As people write them: 0.3 buys three rows at 0.1, which binary fractions deny.
                rows = int(Decimal(str(money)) // Decimal(str(price)))
            limits = {"row_budget": rows, "price_per_row": price}
            connection.execute(models.update().where(models.c.id == model).values(**limits))

    def remaining(self, model: str) -> float:
        """How many rows the model's budget still allows; infinity without one."""
        with self._store.read() as connection:
            account = connection.execute(select(models).where(models.c.id == model)).one_or_none()
        return math.inf if account is None else _left(account)

    def charge(self, model: str, rows: int) -> None:
        """Count rows that are about to be sent once more, as an audit does, against the model's budget.

        Raises:
            BudgetSpent: they are more than it allows; nothing was counted.
        """
        with self._store.write() as connection:
            self._charge(connection, self._account(connection, model), rows)

    # -- claim, settle, wait ----------------------------------------------------------------------------

    def claim(
        self,
        model: str,
        questions: Sequence[Question],
        *,
        explanation: str | None = None,
        most: int | None = None,
        lease: float | None = None,
        holder: str | None = None,
    ) -> list[Claim]:
        """For each question who has to ask it, decided at once for all; on the disk before this returns.

        Args:
            explanation: on whose behalf; its questions are recorded in the same transaction.
            most: how many rows may become mine, at most.
            lease: for how many seconds my claims hold, instead of the ledger's; `math.inf` until settled or abandoned.
            holder: who will answer when it is not this process, such as "laboratory".

        Raises:
            BudgetSpent: more rows would have to be sent than `most` or the model's budget allows; nothing was claimed.
            OutOfStep: the explanation has asked another row in one of these places; nothing was claimed.
        """
        with self._store.write() as connection:
            account = self._account(connection, model)
            now = self._store.now(connection)
            ids = [query_id(model, question.row) for question in questions]
            if explanation is not None:
                _check_begun(connection, explanation, model)
                recorded = _checked_places(connection, explanation, questions, ids)
            known = _by_id(connection, ids)
            claimed = {
                "claimed_by": holder or self.owner,
                "claimed_at": _iso(now),
                "leased_until": _later(now, self.lease if lease is None else lease),
                "explanation_id": explanation,
            }
            claims: list[Claim] = []
            mine: dict[str, dict[str, Any]] = {}
            for key, question in zip(ids, questions, strict=True):
                query = known.get(key)
                if query is not None and query.sequence is not None:
                    claims.append(Claim(question.row, "settled", _answer(query), query.attempts, None))
                elif key in mine:  # wanted twice at once
                    claims.append(Claim(question.row, "in_flight", None, mine[key]["attempts"], claimed["claimed_by"]))
                elif query is not None and _in_flight(query, now):
                    claims.append(Claim(question.row, "in_flight", None, query.attempts, query.claimed_by))
                else:
                    attempts = 1 if query is None else query.attempts + 1
                    mine[key] = {"row": question.row, "purpose": question.purpose, "attempts": attempts, **claimed}
                    claims.append(Claim(question.row, "mine", None, attempts, claimed["claimed_by"]))
            if most is not None and len(mine) > most:
                raise BudgetSpent(f"{len(mine)} rows to ask, but only {most} more may be sent.")
            self._charge(connection, account, len(mine))
            _write_claims(connection, model, mine, known)
            if explanation is not None:
                _record_asks(connection, explanation, questions, ids, set(mine), recorded)
        return claims

    def settle(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
    ) -> list[Answer]:
        """The answers that stand, one a row; on the disk before this returns.

        The first answer to a row stands, whoever gives it. One that differs from it is kept as a contradiction.

        Raises:
            LedgerFailed: they could not be written; the error's `answers` holds them.
            TypeError: a label is not text, a number or a truth value.
        """
        try:
            with self._store.write() as connection:
                return self._write_answers(connection, model, rows, labels, scores, "asked")[0]
        except LedgerFailed as failure:
            failure.answers = dict(zip(rows, labels, strict=True))
            raise

    def import_answers(
        self, model: str, rows: Sequence[str], labels: Sequence[Any], *, scores: Sequence[Scores | None] | None = None
    ) -> int:
        """How many rows were new, of answers that the model gave elsewhere. They cost nothing."""
        with self._store.write() as connection:
            return self._write_answers(connection, model, rows, labels, scores, "imported")[1]

    def release(self, model: str, rows: Sequence[str]) -> int:
        """How many of my claims were given back, for requests that certainly cost nothing, such as a refused
        connection. The budget has them again."""
        with self._store.write() as connection:
            account = self._account(connection, model)
            known = _by_id(connection, [query_id(model, row) for row in rows])
            given = [q for q in known.values() if q.sequence is None and q.claimed_by == self.owner]
            for query in given:
                freed = {"attempts": query.attempts - 1, "claimed_by": None, "claimed_at": None, "leased_until": None}
                connection.execute(queries.update().where(queries.c.id == query.id).values(**freed))
                paid = (asks.c.explanation_id == query.explanation_id, asks.c.query_id == query.id, asks.c.paid > 0)
                connection.execute(asks.update().where(*paid).values(paid=asks.c.paid - 1))
            self._charge(connection, account, -len(given))
        return len(given)

    def abandon(self, model: str, rows: Sequence[str] | None = None) -> int:
        """How many claims nobody awaits any longer: the next to want such a row asks again, without waiting.

        For a request that failed after it may have been charged, and for a person who knows that an owner is gone.
        What was claimed stays counted, and an answer that comes all the same is taken. All rows by default.
        """
        with self._store.write() as connection:
            self._account(connection, model)
            now = _iso(self._store.now(connection))
            held = (queries.c.model_id == model, queries.c.sequence.is_(None), queries.c.leased_until > now)
            ended = 0
            for chosen in [()] if rows is None else _chunks([query_id(model, row) for row in rows]):
                which = (*held, queries.c.id.in_(chosen)) if chosen else held
                ended += connection.execute(queries.update().where(*which).values(leased_until=now)).rowcount
        return ended

    def wait(self, model: str, rows: Sequence[str], *, timeout: float | None = None) -> bool:
        """True as soon as none of the rows is in flight: each is settled, or may be claimed.

        False after `timeout` seconds, by default as many as the lease.
        """
        ends = time.monotonic() + (self.lease if timeout is None else timeout)
        pause = 0.005
        ids = [query_id(model, row) for row in rows]
        while True:
            with self._store.read() as connection:
                now = self._store.now(connection)
                waiting = any(_in_flight(query, now) for query in _by_id(connection, ids).values())
            if not waiting or time.monotonic() >= ends:
                return not waiting
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    # -- what is known ----------------------------------------------------------------------------------

    def known(self, model: str, rows: Sequence[str]) -> dict[str, Answer]:
        """The answers there are to these rows, by row."""
        with self._store.read() as connection:
            found = _by_id(connection, [query_id(model, row) for row in rows]).values()
        return {query.row: _answer(query) for query in found if query.sequence is not None}

    def by_key(self, keys: Sequence[str]) -> dict[str, Asked]:
        """What these keys (see `query_id`) stand for, of whatever model; unknown ones are left out."""
        with self._store.read() as connection:
            found = _by_id(connection, keys).values()
        return {q.id: Asked(q.model_id, q.row, None if q.sequence is None else _answer(q)) for q in found}

    def features(self, model: str) -> list[str] | None:
        """What the values of a model's rows are called; None where nobody has said so."""
        with self._store.read() as connection:
            written = connection.scalar(select(models.c.features).where(models.c.id == model))
        return None if written is None else [str(name) for name in json.loads(written)]

    def free(self, model: str, rows: Sequence[str]) -> set[str]:
        """Those of the rows that cost nothing to claim: answered, or awaited by whoever has paid for them."""
        with self._store.read() as connection:
            now = self._store.now(connection)
            found = _by_id(connection, [query_id(model, row) for row in rows]).values()
        return {query.row for query in found if query.sequence is not None or _in_flight(query, now)}

    def last_sequence(self, model: str) -> int:
        """The number of the newest answer: all up to it can be seen now and ever after. 0 when there is none."""
        with self._store.read() as connection:
            return connection.scalar(_LAST, {"model": model}) or 0

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        """Answers in the order in which they were settled.

        Args:
            after: only those numbered higher.
            up_to: only those numbered so or lower: what an earlier question could see.
            newest: at most so many, the latest of them; the time this takes does not grow with the ledger.
        """
        wanted = select(queries).where(queries.c.model_id == model, queries.c.sequence > after)
        if up_to is not None:
            wanted = wanted.where(queries.c.sequence <= up_to)
        wanted = wanted.order_by(queries.c.sequence.desc()).limit(newest)
        with self._store.read() as connection:
            return [_answer(query) for query in connection.execute(wanted)][::-1]

    # -- explanations -----------------------------------------------------------------------------------

    def begin(
        self,
        explanation: str,
        model: str,
        *,
        factual: Mapping[str, Any],
        settings: Mapping[str, Any],
        space: Mapping[str, Any] | None = None,
    ) -> list[Ask]:
        """What this explanation has asked so far: nothing if it is new, else enough to go on where it stopped.

        Args:
            space: what the rows hold, in plain values; kept once for all explanations that share it.
        """
        with self._store.write() as connection:
            self._account(connection, model)
            line = {
                "id": explanation,
                "model_id": model,
                "factual": json.dumps(factual, default=as_json),
                "settings": json.dumps(settings, default=as_json),
                "started_at": _iso(self._store.now(connection)),
            }
            connection.execute(self._store.insert(explanations, line))
            if space is not None:
                described = json.dumps(space, default=as_json)
                key = fingerprint(described)
                connection.execute(self._store.insert(spaces, {"id": key, "description": described}))
                # Also one that an older acex began, which did not keep it.
                lacking = (explanations.c.id == explanation, explanations.c.space_id.is_(None))
                connection.execute(explanations.update().where(*lacking).values(space_id=key))
        return self.asks(explanation)

    def record(self, explanation: str) -> Record:
        """What is known of an explanation beside its questions.

        Raises:
            ValueError: there is none of this name.
        """
        wanted = select(explanations, spaces.c.description).outerjoin(spaces).where(explanations.c.id == explanation)
        with self._store.read() as connection:
            line = connection.execute(wanted).one_or_none()
        if line is None:
            raise ValueError(f"{explanation!r} is not an explanation of this ledger; see Ledger.explanations.")
        space, result = (None if text is None else json.loads(text) for text in (line.description, line.result))
        return Record(
            line.model_id,
            json.loads(line.settings),
            space,
            line.started_at,
            line.finished_at,
            line.outcome,
            result,
        )

    def asks(self, explanation: str) -> list[Ask]:
        """The questions of an explanation in order, with the answers there are."""
        answer_columns = (queries.c.row, queries.c.label, queries.c.scores, queries.c.sequence)
        wanted = (
            select(asks, *answer_columns)
            .join(queries, asks.c.query_id == queries.c.id)
            .where(asks.c.explanation_id == explanation)
            .order_by(asks.c.position)
        )
        with self._store.read() as connection:
            return [
                Ask(a.position, a.row, a.purpose, a.seen, json.loads(a.note), a.paid, _answer(a) if a.label else None)
                for a in connection.execute(wanted)
            ]

    def paid(self, explanation: str) -> int:
        """How many rows an explanation has paid for, whoever ran it."""
        with self._store.read() as connection:
            return int(connection.scalar(_PAID, {"explanation": explanation}) or 0)

    def seen_at_end(self, explanation: str) -> int | None:
        """The number of the newest answer there was when an explanation ended; None if it has not."""
        with self._store.read() as connection:
            line = connection.execute(select(explanations).where(explanations.c.id == explanation)).one_or_none()
            if line is None or line.finished_at is None:
                return None
            then = (queries.c.model_id == line.model_id, queries.c.settled_at <= line.finished_at)
            return connection.scalar(select(func.max(queries.c.sequence)).where(*then)) or 0

    def finish(self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """Write down how an explanation ended, and what was found, in plain values."""
        with self._store.write() as connection:
            ended = {
                "outcome": outcome,
                "finished_at": _iso(self._store.now(connection)),
                "result": None if result is None else json.dumps(result, default=as_json),
            }
            connection.execute(explanations.update().where(explanations.c.id == explanation).values(**ended))

    # -- to be shown ------------------------------------------------------------------------------------

    def stats(self) -> pd.DataFrame:
        """A line for each model: budget, rows charged, and how many rows are settled, in flight, asked again."""
        unsettled = queries.c.sequence.is_(None) & (queries.c.attempts > 0)
        counts = (
            select(
                queries.c.model_id,
                func.count(queries.c.sequence).label("settled"),
                func.count().filter(unsettled).label("unsettled"),
                func.count().filter(queries.c.purpose == "imported").label("imported"),
                func.count().filter(queries.c.attempts > 1).label("asked_again"),
            )
            .group_by(queries.c.model_id)
            .subquery()
        )
        differing = (
            select(queries.c.model_id, func.count().label("contradictions"))
            .join(contradictions, contradictions.c.query_id == queries.c.id)
            .group_by(queries.c.model_id)
            .subquery()
        )
        numbers = ("settled", "unsettled", "imported", "asked_again")
        frame = self._frame(
            select(
                models.c.id.label("model"),
                models.c.description,
                models.c.row_budget,
                models.c.price_per_row,
                models.c.n_charged.label("charged"),
                (models.c.n_charged * models.c.price_per_row).label("spent"),
                *(func.coalesce(counts.c[name], 0).label(name) for name in numbers),
                func.coalesce(differing.c.contradictions, 0).label("contradictions"),
            )
            .outerjoin(counts, counts.c.model_id == models.c.id)
            .outerjoin(differing, differing.c.model_id == models.c.id)
            .order_by(models.c.id)
        )
        return frame.astype({"row_budget": "Int64", "price_per_row": "Float64", "spent": "Float64"})

    def show(self, model: str | None = None, *, newest: int | None = None) -> pd.DataFrame:
        """Queries as they stand in the ledger, the latest at the end; labels as the model gave them."""
        happened = func.coalesce(queries.c.settled_at, queries.c.claimed_at)
        wanted = select(queries).order_by(happened.desc(), queries.c.sequence.desc()).limit(newest)
        if model is not None:
            wanted = wanted.where(queries.c.model_id == model)
        return _with_labels(self._frame(wanted).iloc[::-1].reset_index(drop=True))

    def export(self, model: str) -> pd.DataFrame:
        """Every settled answer of a model in order: sequence, row, label, scores, and where it came from."""
        names = ("sequence", "row", "label", "scores", "purpose", "explanation_id", "attempts", "settled_at")
        settled = (queries.c.model_id == model, queries.c.sequence.is_not(None))
        wanted = select(*(queries.c[name] for name in names)).where(*settled).order_by(queries.c.sequence)
        return _with_labels(self._frame(wanted))

    def explanations(self, model: str | None = None) -> pd.DataFrame:
        """A line for each explanation: when it ran, how it ended, what it asked and paid."""
        wanted = (
            select(
                explanations,
                func.count(asks.c.position).label("asked"),
                func.coalesce(func.sum(asks.c.paid), 0).label("paid"),
            )
            .outerjoin(asks, asks.c.explanation_id == explanations.c.id)
            .group_by(explanations.c.id)
            .order_by(explanations.c.started_at, explanations.c.id)
        )
        if model is not None:
            wanted = wanted.where(explanations.c.model_id == model)
        return self._frame(wanted)

    def contradictions(self, model: str) -> pd.DataFrame:
        """Rows to which the model gave another answer later: the label that stands, and the other."""
        wanted = (
            select(
                queries.c.row,
                queries.c.label,
                queries.c.settled_at,
                contradictions.c.label.label("other_label"),
                contradictions.c.told_at,
                contradictions.c.told_by,
            )
            .join(contradictions, contradictions.c.query_id == queries.c.id)
            .where(queries.c.model_id == model)
            .order_by(contradictions.c.id)
        )
        return _with_labels(self._frame(wanted))

    # -- inside a transaction ---------------------------------------------------------------------------

    def _account(self, connection: Connection, model: str) -> Row[Any]:
        """The model's line, locked until the transaction ends; made if it is new."""
        account = connection.execute(_ACCOUNT, {"model": model}).one_or_none()
        if account is None:
            created = _iso(self._store.now(connection))
            new = {"id": model, "description": "", "n_charged": 0, "last_sequence": 0, "created_at": created}
            connection.execute(self._store.insert(models, new))
            account = connection.execute(_ACCOUNT, {"model": model}).one()
        return account

    def _charge(self, connection: Connection, account: Row[Any], rows: int) -> None:
        if rows > _left(account):
            price = "" if account.price_per_row is None else f", at {account.price_per_row:g} a row"
            raise BudgetSpent(
                f"{rows} rows to ask, but model {account.id!r} has {_left(account)} left of the {account.row_budget} "
                f"rows it may be sent over its lifetime{price}. Raise it with ledger.budget({account.id!r}, rows=...)."
            )
        if rows:
            connection.execute(_CHARGE, {"model": account.id, "n": rows})

    def _write_answers(
        self,
        connection: Connection,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        scores: Sequence[Scores | None] | None,
        purpose: str,
    ) -> tuple[list[Answer], int]:
        """The answers that stand, and how many of them are new."""
        account = self._account(connection, model)
        now = _iso(self._store.now(connection))
        ids = [query_id(model, row) for row in rows]
        known = _by_id(connection, ids)
        standing = {key: _answer(query) for key, query in known.items() if query.sequence is not None}
        sequence = account.last_sequence
        new: list[dict[str, Any]] = []
        awaited: list[dict[str, Any]] = []
        other: list[dict[str, Any]] = []
        for key, row, label, given in zip(ids, rows, labels, scores or [None] * len(rows), strict=True):
            written = label_text(label)
            if key in standing:
                if standing[key].label != json.loads(written):  # 1 and 1.0 are no contradiction
                    other.append({"query_id": key, "label": written, "told_by": self.owner, "told_at": now})
                continue
            sequence += 1
            standing[key] = Answer(row, json.loads(written), given, sequence)
            in_json = None if given is None else json.dumps(given, default=as_json)
            answer = {"label": written, "scores": in_json, "settled_at": now, "sequence": sequence}
            if key in known:
                awaited.append({"_id": key, **answer})
            else:
                new.append({"id": key, "model_id": model, "row": row, "purpose": purpose, "attempts": 0, **answer})
        if awaited:
            connection.execute(_CLAIM_AGAIN, awaited)
        if new:
            connection.execute(queries.insert(), new)
        if other:
            connection.execute(contradictions.insert(), other)
        connection.execute(_NUMBERED, {"model": model, "n": sequence})
        return [standing[key] for key in ids], len(awaited) + len(new)

    def _frame(self, wanted: Any) -> pd.DataFrame:
        with self._store.read() as connection:
            result = connection.execute(wanted)
            return pd.DataFrame(result.all(), columns=list(result.keys()))


def fingerprint(value: Any) -> str:
    """A short hash of anything JSON can hold: the same for equal values, on every machine."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=as_json)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]


def query_id(model: str, row: str) -> str:
    """The key of a row among all rows of all models."""
    return fingerprint([model, row])


def label_text(label: Any) -> str:
    """A label as JSON, which tells 1, 1.0, true and "1" apart."""
    label = plain(label)
    if not isinstance(label, (str, bool, int, float)) or (isinstance(label, float) and not math.isfinite(label)):
        raise TypeError(f"A label must be text, a finite number or a truth value, got {label!r}.")
    return json.dumps(label)


def _open(address: str, lease: float) -> Ledger:
    return Ledger(address, lease=lease)


def _write_claims(
    connection: Connection, model: str, mine: dict[str, dict[str, Any]], known: dict[str, Row[Any]]
) -> None:
    new = [{"id": key, "model_id": model, **values} for key, values in mine.items() if key not in known]
    again = [{"_id": key, **values} for key, values in mine.items() if key in known]
    if new:
        connection.execute(_CLAIM, new)
    if again:
        connection.execute(_CLAIM_AGAIN, again)


def _check_begun(connection: Connection, explanation: str, model: str) -> None:
    if connection.scalar(_MODEL_OF, {"explanation": explanation}) != model:
        raise ValueError(f"Explanation {explanation!r} of model {model!r} was not begun: call ledger.begin first.")


def _checked_places(
    connection: Connection, explanation: str, questions: Sequence[Question], ids: Sequence[str]
) -> dict[int, Row[Any]]:
    """What was recorded at the places of these questions: each is new, or the same row as before."""
    places = [question.position for question in questions]
    if None in places:
        raise ValueError("A question of an explanation needs its position.")
    told = connection.execute(_AT_PLACES, {"explanation": explanation, "places": places})
    recorded = {ask.position: ask for ask in told}
    for place, key in zip(places, ids, strict=True):
        if place in recorded and recorded[place].query_id != key:
            raise OutOfStep(
                f"question {place} of explanation {explanation} was another row before. Is the same explanation "
                f"running elsewhere? Nothing was claimed."
            )
    return recorded


def _record_asks(
    connection: Connection,
    explanation: str,
    questions: Sequence[Question],
    ids: Sequence[str],
    mine: set[str],
    recorded: Mapping[int, Row[Any]],
) -> None:
    """Write down what was asked; a question asked again after a crash keeps its place and counts its payments."""
    unpaid = set(mine)
    for key, question in zip(ids, questions, strict=True):
        paid = int(key in unpaid)
        unpaid.discard(key)
        if question.position not in recorded:
            line = {"explanation_id": explanation, "position": question.position, "query_id": key, "paid": paid}
            why = {
                "purpose": question.purpose,
                "seen": question.seen,
                "note": json.dumps(question.note, default=as_json),
            }
            connection.execute(_RECORD, line | why)
        elif paid:
            place = (asks.c.explanation_id == explanation, asks.c.position == question.position)
            connection.execute(asks.update().where(*place).values(paid=asks.c.paid + 1))


def _by_id(connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """The queries there are with these keys."""
    found: dict[str, Row[Any]] = {}
    for chunk in _chunks(ids):
        found.update((query.id, query) for query in connection.execute(_BY_ID, {"ids": list(chunk)}))
    return found


def _answer(query: Row[Any]) -> Answer:
    scores = None if query.scores is None else [(label, p) for label, p in json.loads(query.scores)]
    return Answer(query.row, json.loads(query.label), scores, query.sequence)


def _in_flight(query: Row[Any], now: datetime) -> bool:
    """Is an answer still to be expected from whoever claimed this?"""
    if query.sequence is not None or query.claimed_by is None:
        return False
    return bool(query.leased_until > _iso(now)) and not _certainly_dead(query.claimed_by)


def _certainly_dead(owner: str) -> bool:
    """Was this a process of this machine that no longer lives? Whenever in doubt, no: then the lease decides."""
    words = owner.split()
    if not _machine() or len(words) != 5 or words[1] != "pid" or words[3] != _machine():
        return False
    try:
        os.kill(int(words[2]), 0)  # signal 0 only asks; `_machine` has made sure that this is Linux
    except ProcessLookupError:
        return True
    except (ValueError, OSError):
        return False
    return False


@cache
def _machine() -> str:
    """This machine since it was started, and this container on it: where a process number has one meaning.

    Empty where the system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot[:8]}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _left(account: Row[Any]) -> float:
    return math.inf if account.row_budget is None else max(account.row_budget - account.n_charged, 0)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")


def _later(now: datetime, seconds: float) -> str:
    return FOREVER if seconds > 1e9 else _iso(now + timedelta(seconds=seconds))


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with labels as the model gave them; None where there is none."""
    for name in {"label", "other_label"} & set(frame.columns):
        labels = [json.loads(text) if isinstance(text, str) else None for text in frame[name]]
        frame[name] = pd.Series(labels, dtype=object, index=frame.index)
    return frame


def _chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]
