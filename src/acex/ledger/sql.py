"""The ledger in an SQLite file or a PostgreSQL database; `base` describes the contract.

Claims and answers of one model are written one transaction at a time: each first locks the model's row, which holds the
counters. So budgets are exact for any number of processes, and answer n is visible only when 1 to n - 1 are. (A serial
column of PostgreSQL does not promise that: the transaction that drew n may commit before the one that drew n - 1.)
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, bindparam, func, select

from acex.errors import LedgerFailed, OutOfStep
from acex.ledger.base import (
    Account,
    Answer,
    Ask,
    Asked,
    BaseLedger,
    Claim,
    Question,
    Record,
    State,
    answer_seen,
    claim_states,
    refuse_new_labels,
)
from acex.ledger.database import Database
from acex.ledger.journal import Entry
from acex.ledger.owner import AdvisoryLock
from acex.ledger.row_keys import Scores, iso, plain_label, query_id
from acex.ledger.schema import answers, asks, contradictions, explanations, models, names, queries, spaces
from acex.ledger.views import Tables
from acex.values import as_json, fingerprint

LEASE_SECONDS = 120.0  # longer than most endpoints take to answer or to fail
AT_ONCE = 500  # values in one statement; databases have a limit
ANSWER_BYTES = 512  # of an answer in the journal, without its row

# Statements of every question: building one takes longer than running it.
_ACCOUNT = select(models).where(models.c.id == bindparam("model"))
_LOCKED_ACCOUNT = _ACCOUNT.with_for_update()
_QUERIES = (
    select(queries, answers.c.sequence.label("number"), answers.c.label, answers.c.scores, answers.c.recorded_at)
    .select_from(queries.outerjoin(answers, answers.c.query_id == queries.c.id))
    .where(queries.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(answers.c.sequence)
)
_ANSWERS = (
    select(queries.c.row, answers.c.label, answers.c.scores, answers.c.sequence)
    .join(queries, queries.c.id == answers.c.query_id)
    .order_by(answers.c.sequence.desc())
)
_UPDATE_QUERY = queries.update().where(queries.c.id == bindparam("_id"))
_UPDATE_MODEL = models.update().where(models.c.id == bindparam("_id"))
_EXPLANATION = select(explanations).where(explanations.c.id == bindparam("explanation"))
_ASKS = select(asks).where(asks.c.explanation_id == bindparam("explanation")).order_by(asks.c.position)
_PAID = select(func.coalesce(func.sum(asks.c.paid), 0)).where(asks.c.explanation_id == bindparam("explanation"))


class _Query(NamedTuple):
    """A row of the table `queries` with its answers in order."""

    line: Row[Any]
    answers: list[Answer]
    moments: dict[int, str]  # when each of them was recorded, by number

    @property
    def is_claimed(self) -> bool:
        return not self.answers and self.line.claimed_by is not None


class Ledger(BaseLedger):
    """Every answer of every model in a file or on a server, with claims, budgets and explanations.

    Args:
        where: a path (an SQLite file), or a URL (`postgresql://user@host/database`).
        lease: for how many seconds a claim lasts that is not renewed.

    Example:
        >>> import acex, tempfile
        >>> from acex.ledger import Question
        >>> ledger = acex.Ledger(tempfile.mkdtemp() + "/answers.db")
        >>> [claim.state for claim in ledger.claim("loans-v1", [Question('[37, "clerk"]')])]
        ['mine']
        >>> ledger.record("loans-v1", ['[37, "clerk"]'], ["good"])[0].label
        'good'
    """

    is_memory = False

    def __init__(self, where: str | os.PathLike[str], *, lease: float = LEASE_SECONDS) -> None:
        if not lease > 0:
            raise ValueError(f"lease must be a positive number of seconds, got {lease!r}.")
        self.lease = lease
        self.database = Database(where)
        self.path = self.database.path
        self.tables = Tables(self.database)
        self._journal = self.database.journal()
        with suppress(LedgerFailed):  # it may be read-only; a claim of such a row tries again
            for path, entries in self._journal.others():
                if entries:
                    with self.database.write() as connection:
                        self._write_all(connection, entries)
                self._journal.remove(path)

    def __repr__(self) -> str:
        return f"<acex.Ledger {self.database.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), lease=self.lease), (self.database.address,)

    def close(self) -> None:
        """Close files and connections. What could not be recorded is tried once more, or stays in the journal."""
        with suppress(LedgerFailed):
            self._record_pending()
        self._journal.close()
        self.database.close()

    # -- models and budgets --------------------------------------------------------------------------------------

    def account(self, model: str) -> Account:
        with self.database.read() as connection:
            found = connection.execute(_ACCOUNT, {"model": model}).first()
        return Account(model, model) if found is None else _account_of(found)

    def update(self, model: str, change: Callable[[Account], Account]) -> None:
        with self.database.write() as connection:
            _save(connection, change(self._account(connection, model)))

    def _account(self, connection: Connection, model: str) -> Account:
        """The model's account, locked until the transaction ends; created if it is new."""
        found = connection.execute(_LOCKED_ACCOUNT, {"model": model}).first()
        if found is None:
            new = {"id": model, "name": model, "description": "", "n_charged": 0, "last_sequence": 0}
            self.database.upsert(connection, models, [{**new, "created_at": _now()}])
            found = connection.execute(_LOCKED_ACCOUNT, {"model": model}).one()
        return _account_of(found)

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
        self._record_pending()  # no row is asked again whose answer this process knows
        ids = [query_id(model, question.row) for question in questions]
        with self.database.write() as connection:
            account = self._account(connection, model)
            now = self.database.now(connection)
            if explanation is not None:
                _check_asks(connection, explanation, model, questions, ids)
            known = _queries(connection, ids)
            in_flight = self._in_flight(connection, known.values(), now)
            if any(not q.answers and q.line.attempts and key not in in_flight for key, q in known.items()):
                # Sent without an answer: the process that sent it may have left the answer in its journal.
                left = [entry for _, entries in self._journal.others() for entry in entries if entry.model == model]
                self._write_all(connection, left)
                account, known = self._account(connection, model), _queries(connection, ids)
            states = claim_states(ids, {key for key, query in known.items() if query.answers}, in_flight, most)
            mine = {key: q for key, q, state in zip(ids, questions, states, strict=True) if state == "mine"}
            if mine:
                _save(connection, account.charged(len(mine), price))
                # Space for their answers, or they are not asked.
                self._journal.reserve(sum(2 * len(question.row) + ANSWER_BYTES for question in mine.values()))
                if holder is None:
                    self.database.hold(str(self._journal.owner))
            claimed: dict[str, Any] = {
                "claimed_by": holder or self._me(),
                "claimed_at": _now(),
                "lease_ends": None if holder is not None else now + self.lease,
                "explanation_id": explanation,
                "reserved": None if price is None else str(price),
            }
            lines = [
                {"id": key, "model_id": model, "row": q.row, "purpose": q.purpose, "attempts": 1, **claimed}
                for key, q in mine.items()
            ]
            self.database.upsert(connection, queries, lines, replaced=("purpose", *claimed), added=("attempts",))
            if explanation is not None:
                # A question that is asked again after a crash keeps its place and counts its payments.
                asked = _ask_lines(explanation, questions, ids, set(mine))
                self.database.upsert(connection, asks, asked, added=("paid",))
        return [
            _claim(question, state, known.get(key), key in mine, claimed["claimed_by"])
            for key, question, state in zip(ids, questions, states, strict=True)
        ]

    @contextmanager
    def holding(self, model: str, rows: Sequence[str]) -> Iterator[None]:
        done, me = threading.Event(), self._me()
        ids = [query_id(model, row) for row in rows]

        def renew() -> None:
            while not done.wait(min(self.lease / 4, threading.TIMEOUT_MAX)):
                with suppress(LedgerFailed):  # the next time, perhaps
                    self._renew(ids, me)

        thread = threading.Thread(target=renew, name="acex-lease", daemon=True)
        try:
            thread.start()  # inside: an interrupt while it starts must stop it, too
            yield
        finally:
            done.set()
            if thread.is_alive():
                thread.join()

    def _renew(self, ids: Sequence[str], owner: str) -> None:
        with self.database.write() as connection:
            own = (queries.c.claimed_by == owner, queries.c.sequence.is_(None))
            for chunk in in_chunks(ids):
                update = queries.update().where(queries.c.id.in_(chunk), *own)
                connection.execute(update.values(lease_ends=self.database.now(connection) + self.lease))
            self.database.hold(str(self._journal.owner))

    def release(self, model: str, rows: Sequence[str]) -> int:
        with self.database.write() as connection:
            account, me = self._account(connection, model), self._me()
            known = _queries(connection, [query_id(model, row) for row in rows])
            own = [query.line for query in known.values() if query.is_claimed and query.line.claimed_by == me]
            for line in own:
                freed = {"claimed_by": None, "lease_ends": None, "reserved": None, "attempts": line.attempts - 1}
                connection.execute(_UPDATE_QUERY, {"_id": line.id, **freed})
                ask = (asks.c.explanation_id == line.explanation_id, asks.c.query_id == line.id, asks.c.paid > 0)
                connection.execute(asks.update().where(*ask).values(paid=asks.c.paid - 1))
                account = account.charged(-1).with_money_freed(Decimal(line.reserved or 0))
            _save(connection, account)
        return len(own)

    def abandon(self, model: str, rows: Sequence[str] | None = None) -> int:
        claimed = (queries.c.model_id == model, queries.c.sequence.is_(None), queries.c.claimed_by.is_not(None))
        update = queries.update().where(*claimed).values(claimed_by=None, lease_ends=None)
        with self.database.write() as connection:
            self._account(connection, model)
            if rows is None:
                return connection.execute(update).rowcount
            ids = [query_id(model, row) for row in rows]
            return sum(connection.execute(update.where(queries.c.id.in_(chunk))).rowcount for chunk in in_chunks(ids))

    def in_flight(self, model: str, rows: Sequence[str]) -> dict[str, bool]:
        with self.database.read() as connection:
            known = _queries(connection, [query_id(model, row) for row in rows])
            waiting = self._in_flight(connection, known.values(), self.database.now(connection))
        return {known[key].line.row: known[key].line.lease_ends is not None for key in waiting}

    def _me(self) -> str:
        """Who claims here: host, process, id of the owner, thread."""
        owner = self._journal.owner or "-"
        return f"{socket.gethostname()} pid {os.getpid()} {owner} thread {threading.current_thread().ident}"

    def _in_flight(self, connection: Connection, found: Iterable[_Query], now: float) -> set[str]:
        """The keys of rows whose answer is still to be expected from the one who claimed them."""
        is_alive: dict[str, bool] = {}
        out = set()
        for query in found:
            if not query.is_claimed:
                continue
            ends, claimed_by = query.line.lease_ends, query.line.claimed_by
            if ends is not None and claimed_by not in is_alive:
                is_alive[claimed_by] = self._is_alive(connection, claimed_by)
            if ends is None or (ends > now and is_alive[claimed_by]):
                out.add(query.line.id)
        return out

    def _is_alive(self, connection: Connection, claimed_by: str) -> bool:
        words = claimed_by.split()
        owner, thread = (words[3], words[5]) if len(words) == 6 else ("", "")
        if owner and owner == self._journal.owner:
            # A thread that claims is not waiting for an answer of its own.
            others = {str(t.ident) for t in threading.enumerate() if t is not threading.current_thread()}
            return thread in others
        if self.database.is_sqlite:
            return bool(owner) and self._journal.is_alive(owner)
        return AdvisoryLock.is_alive(connection, owner) if owner else False

    # -- answers -------------------------------------------------------------------------------------------------

    def record(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
        used: Decimal | None = None,
    ) -> list[Answer]:
        entry = self._entry(model, rows, labels, scores, used)
        self._journal.write(entry)
        try:
            with self.database.write() as connection:
                recorded, _ = self._write_answers(connection, entry)
        except LedgerFailed as failure:
            failure.answers = dict(zip(rows, labels, strict=True))
            raise
        self._journal.done(entry)
        return recorded

    def import_answers(
        self, model: str, rows: Sequence[str], labels: Sequence[Any], *, new_labels: bool = False
    ) -> int:
        entry = self._entry(model, rows, labels, None)
        with self.database.write() as connection:
            if not new_labels:
                given = select(answers.c.label).distinct().where(answers.c.model_id == model)
                refuse_new_labels(model, entry.labels, [json.loads(label) for label in connection.scalars(given)])
            _, n_new = self._write_answers(connection, entry, purpose="imported")
        return n_new

    def correct(self, model: str, row: str, label: Any, *, scores: Scores | None = None) -> Answer:
        key = query_id(model, row)
        [value] = self._entry(model, [row], [label], [scores]).labels
        with self.database.write() as connection:
            number = self._account(connection, model).last_sequence + 1
            query = _queries(connection, [key]).get(key)
            if query is None or not query.answers:
                raise ValueError(f"Row {row} of model {model!r} has no answer to correct.")
            answer = Answer(row, value, scores, number)
            connection.execute(answers.insert(), self._answer_line(model, key, answer))
            connection.execute(_UPDATE_QUERY, {"_id": key, "sequence": number})
            connection.execute(_UPDATE_MODEL, {"_id": model, "last_sequence": number})
        return answer

    def known(self, model: str, rows: Sequence[str]) -> dict[str, Answer]:
        with self.database.read() as connection:
            found = _queries(connection, [query_id(model, row) for row in rows]).values()
        return {query.line.row: query.answers[-1] for query in found if query.answers}

    def find(self, keys: Sequence[str]) -> dict[str, Asked]:
        """The rows with these keys (`query_id`), of any model; unknown keys are left out."""
        with self.database.read() as connection:
            found = _queries(connection, keys)
        return {
            key: Asked(query.line.model_id, query.line.row, answer_seen(query.answers, None))
            for key, query in found.items()
        }

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        wanted = _ANSWERS.where(answers.c.model_id == model, answers.c.sequence > after)
        if up_to is not None:
            wanted = wanted.where(answers.c.sequence <= up_to)
        with self.database.read() as connection:
            found = connection.execute(wanted.limit(newest)).all()
        return [_answer(*line) for line in reversed(found)]

    def contradicted(self, model: str) -> set[str]:
        newest = (answers.c.query_id == queries.c.id) & (answers.c.sequence == queries.c.sequence)
        of_model = select(queries.c.row).join(contradictions).join(answers, newest).where(queries.c.model_id == model)
        of_model = of_model.where(answers.c.label != contradictions.c.label)  # a correction may have accepted it
        with self.database.read() as connection:
            return set(connection.scalars(of_model))

    def _entry(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        scores: Sequence[Scores | None] | None,
        used: Decimal | None = None,
    ) -> Entry:
        if not len(rows) == len(labels) == len(rows if scores is None else scores):
            raise ValueError(f"expected a label for each of {len(rows)} rows, got {len(labels)}.")
        plain = [plain_label(label) for label in labels]
        return Entry(model, rows, plain, scores, self._me(), None if used is None else str(used))

    def _record_pending(self) -> None:
        """Store answers of this process that the database did not take before."""
        for entry in list(self._journal.pending):
            with self.database.write() as connection:
                self._write_answers(connection, entry)
            self._journal.done(entry)

    def _write_all(self, connection: Connection, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._write_answers(connection, entry)

    def _write_answers(
        self, connection: Connection, entry: Entry, *, purpose: str = "asked"
    ) -> tuple[list[Answer], int]:
        """The valid answers, and how many of them are new; writing the same entry again changes nothing."""
        model = entry.model
        account = self._account(connection, model)
        ids = [query_id(model, row) for row in entry.rows]
        known = _queries(connection, ids)
        valid = {key: query.answers[-1] for key, query in known.items() if query.answers}
        number, reserved = account.last_sequence, Decimal(0)
        lines: list[dict[str, Any]] = []
        asked: list[dict[str, Any]] = []
        different: list[tuple[str, str]] = []
        for i, (key, row, label) in enumerate(zip(ids, entry.rows, entry.labels, strict=True)):
            if key in valid:
                if valid[key].label != label:  # 1 and 1.0 are equal
                    different.append((key, json.dumps(label)))
                continue
            number += 1
            valid[key] = Answer(row, label, None if entry.scores is None else entry.scores[i], number)
            lines.append(self._answer_line(model, key, valid[key], entry.told_by))
            new = {"id": key, "model_id": model, "row": row, "purpose": purpose, "attempts": 0, "sequence": number}
            asked.append({**new, "reserved": None})
            reserved += Decimal((known[key].line.reserved if key in known else None) or 0)
        self.database.upsert(connection, queries, asked, replaced=("sequence", "reserved"))
        if lines:
            connection.execute(answers.insert(), lines)
            freed = Decimal(0) if entry.used is None else reserved - Decimal(entry.used)
            _save(connection, replace(account.with_money_freed(freed), last_sequence=number))
        for key, text in different:
            same = (contradictions.c.query_id == key, contradictions.c.label == text)
            if connection.execute(select(contradictions.c.id).where(*same)).first() is None:
                other = {"query_id": key, "label": text, "told_by": entry.told_by, "told_at": _now()}
                connection.execute(contradictions.insert(), other)
        return [valid[key] for key in ids], len(lines)

    def _answer_line(self, model: str, key: str, answer: Answer, told_by: str | None = None) -> dict[str, Any]:
        return {
            "model_id": model,
            "sequence": answer.sequence,
            "query_id": key,
            "label": json.dumps(answer.label),
            "scores": None if answer.scores is None else json.dumps(answer.scores, default=as_json),
            "recorded_by": told_by or self._me(),
            "recorded_at": _now(),
        }

    # -- explanations --------------------------------------------------------------------------------------------

    def begin(
        self,
        explanation: str,
        model: str,
        *,
        factual: Mapping[str, Any],
        settings: Mapping[str, Any],
        space: Mapping[str, Any] | None = None,
    ) -> list[Ask]:
        with self.database.write() as connection:
            self._account(connection, model)
            line = {
                "id": explanation,
                "model_id": model,
                "factual": json.dumps(factual, default=as_json),
                "settings": json.dumps(settings, default=as_json),
                "started_at": _now(),
            }
            if space is not None:
                description = json.dumps(space, default=as_json)
                line["space_id"] = fingerprint(description)
                known = {"id": line["space_id"], "description": description}
                self.database.upsert(connection, spaces, [known])
            # An explanation that acex 0.1 began has no space yet.
            self.database.upsert(connection, explanations, [line], replaced=line.keys() & {"space_id"})
        return self.asks(explanation)

    def explanation(self, explanation: str) -> Record:
        with self.database.read() as connection:
            line = connection.execute(_EXPLANATION, {"explanation": explanation}).first()
            if line is None:
                raise ValueError(f"{explanation!r} is not an explanation of this ledger.")
            space = connection.scalar(select(spaces.c.description).where(spaces.c.id == line.space_id))
            called = select(names.c.name).where(names.c.explanation_id == explanation).order_by(names.c.name)
            row_names = tuple(connection.scalars(called))
        return Record(
            line.model_id,
            json.loads(line.settings),
            None if space is None else json.loads(space),
            line.started_at,
            line.finished_at,
            line.outcome,
            None if line.result is None else json.loads(line.result),
            line.seen_at_end,
            row_names,
        )

    def asks(self, explanation: str) -> list[Ask]:
        with self.database.read() as connection:
            asked = connection.execute(_ASKS, {"explanation": explanation}).all()
            found = _queries(connection, [ask.query_id for ask in asked])
            if not found.keys() >= {ask.query_id for ask in asked}:
                raise LedgerFailed(f"rows of explanation {explanation} are missing. See acex ledger check.")
        out = []
        for ask in asked:
            query = found[ask.query_id]
            answer = answer_seen(query.answers, ask.seen)
            moment = None if answer is None else query.moments[answer.sequence]
            note = json.loads(ask.note)
            out.append(Ask(ask.position, query.line.row, ask.purpose, ask.seen, note, ask.paid, answer, moment))
        return out

    def paid(self, explanation: str) -> int:
        with self.database.read() as connection:
            return int(connection.scalar(_PAID, {"explanation": explanation}) or 0)

    def finish(
        self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None, *, seen: int | None = None
    ) -> None:
        with self.database.write() as connection:
            line = connection.execute(_EXPLANATION, {"explanation": explanation}).first()
            if line is None:
                raise ValueError(f"{explanation!r} is not an explanation of this ledger: it was not begun.")
            account = self._account(connection, line.model_id)
            values = {
                "outcome": outcome,
                "finished_at": _now(),
                "result": None if result is None else json.dumps(result, default=as_json),
                "seen_at_end": account.last_sequence if seen is None else seen,
            }
            connection.execute(explanations.update().where(explanations.c.id == explanation).values(**values))

    def name(self, explanation: str, row_names: Iterable[str]) -> None:
        lines = [{"explanation_id": explanation, "name": name} for name in row_names]
        with self.database.write() as connection:
            self.database.upsert(connection, names, lines)


def _now() -> str:
    return iso(datetime.now(UTC))


def _account_of(line: Row[Any]) -> Account:
    values = {name: value for name, value in line._mapping.items() if name != "created_at"}
    features = None if line.features is None else tuple(map(str, json.loads(line.features)))
    cap = None if line.money_budget is None else Decimal(line.money_budget)
    return Account(**{**values, "features": features, "money_budget": cap, "money_used": Decimal(line.money_used)})


def _save(connection: Connection, account: Account) -> None:
    values = {name: value for name, value in vars(account).items() if name != "id"}
    for name in ("money_budget", "money_used"):
        values[name] = None if values[name] is None else str(values[name])
    values["features"] = None if account.features is None else json.dumps(account.features)
    connection.execute(_UPDATE_MODEL, {"_id": account.id, **values})


def _claim(question: Question, state: State, query: _Query | None, is_mine: bool, me: str) -> Claim:
    """`query` is what was known before."""
    attempts = (0 if query is None else query.line.attempts) + is_mine
    held_by = me if is_mine or query is None else query.line.claimed_by
    answer = None if query is None else answer_seen(query.answers, question.seen)
    return Claim(question.row, state, answer, attempts, None if state == "answered" else held_by)


def _answer(row: str, label: str, scores: str | None, sequence: int) -> Answer:
    given = None if scores is None else [(name, p) for name, p in json.loads(scores)]
    return Answer(row, json.loads(label), given, sequence)


def _queries(connection: Connection, ids: Sequence[str]) -> dict[str, _Query]:
    """The queries with these keys, by key."""
    found: dict[str, _Query] = {}
    for chunk in in_chunks(ids):
        for line in connection.execute(_QUERIES, {"ids": list(chunk)}):
            query = found.setdefault(line.id, _Query(line, [], {}))
            if line.number is not None:
                query.answers.append(_answer(line.row, line.label, line.scores, line.number))
                query.moments[line.number] = line.recorded_at
    return found


def in_chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """The items, as many at once as a statement may hold."""
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]


def _check_asks(
    connection: Connection, explanation: str, model: str, questions: Sequence[Question], ids: Sequence[str]
) -> None:
    """Raise unless each question is new to the explanation, or was the same row before."""
    of_model = connection.scalar(select(explanations.c.model_id).where(explanations.c.id == explanation))
    if of_model != model:
        raise ValueError(f"Explanation {explanation!r} of model {model!r} was not begun: call ledger.begin first.")
    wanted = {question.position: key for question, key in zip(questions, ids, strict=True)}
    if None in wanted:
        raise ValueError("A question of an explanation needs its position.")
    here = (asks.c.explanation_id == explanation, asks.c.position.in_(wanted))
    for position, key in connection.execute(select(asks.c.position, asks.c.query_id).where(*here)):
        if wanted[position] != key:
            raise OutOfStep(
                f"question {position} of explanation {explanation} was another row before. Is the same explanation "
                f"running elsewhere? Nothing was claimed."
            )


def _ask_lines(
    explanation: str, questions: Sequence[Question], ids: Sequence[str], unpaid: set[str]
) -> list[dict[str, Any]]:
    """What the table `asks` stores; the first question for an unpaid row pays."""
    lines = []
    for key, question in zip(ids, questions, strict=True):
        line = {"explanation_id": explanation, "position": question.position, "query_id": key}
        more = {"purpose": question.purpose, "seen": question.seen or 0, "paid": int(key in unpaid)}
        lines.append({**line, **more, "note": json.dumps(question.note, default=as_json)})
        unpaid.discard(key)
    return lines
