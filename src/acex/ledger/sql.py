"""The ledger in an SQLite file or a PostgreSQL database; `base` describes the interface.

Transactions that write to one model run one at a time: each first locks the model's line, which holds the counters. So
budgets are exact for any number of processes, and answer n is visible only when 1 to n - 1 are. (A serial column of
PostgreSQL does not guarantee this: the transaction that drew n may commit before the one that drew n - 1.)
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from functools import cache, cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select

from acex.errors import LedgerFailed, OutOfStep
from acex.ledger.base import (
    Account,
    Answer,
    Ask,
    Asked,
    BaseLedger,
    Entry,
    OpenModel,
    Question,
    Record,
    RowState,
    answer_seen,
    is_other_thread,
)
from acex.ledger.database import Database
from acex.ledger.journal import has_locked
from acex.ledger.row_keys import PlainLabel, now_text, query_id
from acex.ledger.schema import answers, asks, contradictions, explanations, models, queries, spaces
from acex.ledger.schema import names as row_names
from acex.ledger.views import Tables
from acex.values import as_json, fingerprint

LEASE_SECONDS = 120.0  # longer than most endpoints take to answer or to fail
AT_ONCE = 500  # number of values in one statement, which databases limit

# Statements of every query, built once: building one takes longer than executing it.
_ACCOUNT = select(models).where(models.c.id == bindparam("model"))
_LOCKED_ACCOUNT = _ACCOUNT.with_for_update()
_ROWS = (
    select(queries, answers.c.sequence.label("number"), answers.c.label, answers.c.scores)
    .select_from(queries.outerjoin(answers, answers.c.query_id == queries.c.id))
    .order_by(answers.c.sequence)
)
_ROWS_BY_ID = _ROWS.where(queries.c.id.in_(bindparam("ids", expanding=True)))
_CLAIMED_ROWS = _ROWS.where(queries.c.sequence.is_(None), queries.c.claimed_by.is_not(None))
_ANSWERS = (
    select(queries.c.row, answers.c.label, answers.c.scores, answers.c.sequence)
    .join(queries, queries.c.id == answers.c.query_id)
    .order_by(answers.c.sequence.desc())
)
_UPDATE_MODEL = models.update().where(models.c.id == bindparam("_id"))
_EXPLANATION = select(explanations).where(explanations.c.id == bindparam("explanation"))
_ASKS = (
    select(asks, queries.c.row, answers.c.sequence, answers.c.label, answers.c.scores, answers.c.recorded_at)
    .select_from(asks.outerjoin(queries, queries.c.id == asks.c.query_id))
    .outerjoin(answers, answers.c.query_id == asks.c.query_id)
    .where(asks.c.explanation_id == bindparam("explanation"))
    .order_by(asks.c.position, answers.c.sequence)
)
_PAID = select(func.coalesce(func.sum(asks.c.paid), 0)).where(asks.c.explanation_id == bindparam("explanation"))


class _SqlModel(OpenModel):
    """A model in a transaction of a database."""

    def __init__(self, database: Database, connection: Connection, account: Account) -> None:
        self.connection, self.account, self.rows = connection, account, {}
        self._database = database
        self._stored, self._stored_lines = account, dict[str, dict[str, Any]]()
        self.key = cache(partial(query_id, account.id))  # cached: takes a third of the time of an import
        self._answers: list[dict[str, Any]] = []
        self._contradictions: list[dict[str, Any]] = []

    @cached_property
    def now(self) -> float:
        return self._database.now(self.connection)

    def load(self, rows: Sequence[str] | None) -> None:
        """Read the state of these rows, or of all claimed rows."""
        if rows is None:
            self._add_lines(self.connection.execute(_CLAIMED_ROWS.where(queries.c.model_id == self.account.id)))
        for some in in_chunks([self.key(row) for row in rows or () if row not in self.rows]):
            self._add_lines(self.connection.execute(_ROWS_BY_ID, {"ids": list(some)}))

    def _add_lines(self, lines: Iterable[Row[Any]]) -> None:
        for line in lines:
            state = self.rows.get(line.row)
            if state is None:
                claim = (line.attempts, line.claimed_by, line.claimed_at, line.lease_ends)
                state = RowState([], *claim, Decimal(line.reserved or 0), line.explanation_id, line.purpose)
                self.rows[line.row] = state
            if line.number is not None:
                state.answers.append(_answer(line.row, line.label, line.scores, line.number))
            self._stored_lines[line.row] = self._line(line.row, state)

    def append(self, answers: Sequence[Answer], recorded_by: str) -> None:
        moment = now_text()
        for answer in answers:
            self.rows[answer.row].answers.append(answer)
            line = {
                "model_id": self.account.id,
                "sequence": answer.sequence,
                "query_id": self.key(answer.row),
                "label": json.dumps(answer.label),
                "scores": None if answer.scores is None else json.dumps(answer.scores, default=as_json),
                "recorded_by": recorded_by,
                "recorded_at": moment,
            }
            self._answers.append(line)
        self.account = replace(self.account, last_sequence=answers[-1].sequence)

    def contradict(self, row: str, label: PlainLabel, recorded_by: str) -> None:
        line = {"query_id": self.key(row), "label": json.dumps(label), "told_by": recorded_by, "told_at": now_text()}
        self._contradictions.append(line)

    def store_questions(self, questions: Sequence[Question], explanation: str, mine: set[str]) -> None:
        lines = []
        for question in questions:
            line = {"explanation_id": explanation, "position": question.position, "query_id": self.key(question.row)}
            paid = question.paid + (question.row in mine)
            more = {"purpose": question.purpose, "seen": question.seen or 0, "paid": paid}
            lines.append({**line, **more, "note": json.dumps(question.note, default=as_json)})
            mine.discard(question.row)
        self.store()
        # A question asked again after a crash keeps its position, and its payments are added up.
        self._database.upsert(self.connection, asks, lines, added=("paid",))

    def unpay(self, row: str) -> None:
        paid = (asks.c.explanation_id == self.rows[row].explanation_id, asks.c.query_id == self.key(row))
        self.connection.execute(asks.update().where(*paid, asks.c.paid > 0).values(paid=asks.c.paid - 1))

    def store(self) -> None:
        """Write all changes since the last call."""
        if self.account != self._stored:
            _save(self.connection, self.account)
        lines = {row: self._line(row, state) for row, state in self.rows.items()}
        changed = [line for row, line in lines.items() if line != self._stored_lines.get(row)]
        self._database.upsert(self.connection, queries, changed, replaced=changed[0].keys() - {"id"} if changed else ())
        if self._answers:
            self.connection.execute(answers.insert(), self._answers)
        for line in self._contradictions:
            same = (contradictions.c.query_id == line["query_id"], contradictions.c.label == line["label"])
            if self.connection.execute(select(contradictions.c.id).where(*same)).first() is None:
                self.connection.execute(contradictions.insert(), line)
        self._stored, self._stored_lines = self.account, lines
        self._answers, self._contradictions = [], []

    def _line(self, row: str, state: RowState) -> dict[str, Any]:
        """The state of a row as a line of the table `queries`."""
        return {
            "id": self.key(row),
            "model_id": self.account.id,
            "row": row,
            "purpose": state.purpose,
            "explanation_id": state.explanation_id,
            "attempts": state.attempts,
            "claimed_by": state.claimed_by,
            "claimed_at": state.claimed_at,
            "lease_ends": state.lease_ends,
            "reserved": str(state.reserved) if state.reserved else None,
            "sequence": state.answers[-1].sequence if state.answers else None,
        }


class Ledger(BaseLedger):
    """Every answer of every model, in a file or on a server, with claims, budgets and explanations.

    Args:
        where: a path (an SQLite file), or a URL (`postgresql://user@host/database`).
        lease: how many seconds a claim lasts if it is not renewed.

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
        with suppress(LedgerFailed):  # it may be read-only; a claim of such a row retries
            for path, entries in self._journal.others():
                for entry in entries:
                    super()._store(entry)
                if not has_locked(path):
                    self._end_claims(path.name.removeprefix(self._journal.prefix.name))
                self._journal.remove(path)

    def __repr__(self) -> str:
        return f"<acex.Ledger {self.database.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), lease=self.lease), (self.database.address,)

    def close(self) -> None:
        """Close files and connections. Retries storing pending answers; if that fails, they stay in the journal."""
        with suppress(LedgerFailed):
            self._before_claim()
            self._end_claims(self._journal.owner or "-")
        self._journal.close()
        self.database.close()

    # -- storage -------------------------------------------------------------------------------------------------

    @contextmanager
    def _open(self, model: str, rows: Sequence[str] | None = (), *, writes: bool = True) -> Iterator[_SqlModel]:
        with self.database.write() if writes else self.database.read() as connection:
            line = connection.execute(_LOCKED_ACCOUNT if writes else _ACCOUNT, {"model": model}).first()
            if line is None and writes:
                new = {"id": model, "name": model, "description": "", "n_charged": 0, "last_sequence": 0}
                self.database.upsert(connection, models, [{**new, "created_at": now_text()}])
                line = connection.execute(_LOCKED_ACCOUNT, {"model": model}).one()
            found = _SqlModel(self.database, connection, Account(model, model) if line is None else _account_of(line))
            found.load(rows)
            yield found
            if writes:
                found.store()

    # -- claims --------------------------------------------------------------------------------------------------

    def _before_claim(self) -> None:
        for entry in list(self._journal.pending):
            super()._store(entry)
            self._journal.done(entry)

    def _check_questions(self, found: OpenModel, questions: Sequence[Question], explanation: str | None) -> None:
        assert isinstance(found, _SqlModel)
        if explanation is not None:
            _check_asks(found, explanation, questions)
        sent = {row: state for row, state in found.rows.items() if state.attempts and not state.answers}
        if len(self._in_flight(found, sent)) < len(sent):
            # A row was sent and its claim ended without an answer: the sender may have left it in its journal.
            for _, entries in self._journal.others():
                for entry in entries:
                    if entry.model == found.account.id:
                        found.load(entry.rows)
                        self._add(found, entry)

    @contextmanager
    def holding(self, model: str, rows: Sequence[str]) -> Iterator[None]:
        done, me = threading.Event(), self._me()
        ids = [query_id(model, row) for row in rows]

        def renew() -> None:
            while not done.wait(min(self.lease / 4, threading.TIMEOUT_MAX)):
                with suppress(LedgerFailed):  # the next renewal may succeed
                    self._renew(ids, me)

        thread = threading.Thread(target=renew, name="acex-lease", daemon=True)
        try:
            thread.start()  # inside `try`: an interrupt while it starts must stop it, too
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

    def _me(self) -> str:
        owner = self._journal.owner or "-"
        return f"{socket.gethostname()} pid {os.getpid()} {owner} thread {threading.get_ident()}"

    def _claimant(self) -> str:
        try:
            self._journal.open()
        except OSError as error:
            raise LedgerFailed(
                f"no space for a journal of answers, so nothing was asked ({error}). Free some space, or make the "
                f"folder writable; for a ledger on a server ACEX_STATE can name another folder."
            ) from error
        return self._me()

    def _is_alive(self, claimed_by: str) -> bool:
        words = claimed_by.split()
        owner = words[3] if len(words) == 6 else ""
        if not owner or owner == self._journal.owner:
            return bool(owner) and is_other_thread(claimed_by)
        path = Path(f"{self._journal.prefix}{owner}")
        if not self.database.is_sqlite and not path.exists():
            return True  # on another machine or of another user: only the lease decides
        return has_locked(path)

    def _end_claims(self, owner: str) -> None:
        """End the claims of an owner before its journal is removed. With SQLite, its absence ends them."""
        if self.database.is_sqlite:
            return
        own = (queries.c.claimed_by.contains(f" {owner} "), queries.c.sequence.is_(None))
        with self.database.read() as connection:
            lines = connection.execute(select(queries.c.model_id, queries.c.row).where(*own)).all()
        for model, row in lines:
            with self._open(model, [row]) as found:
                state = found.rows[row]
                if owner in (state.claimed_by or "") and not state.answers:
                    state.claimed_by = state.lease_ends = None

    # -- answers -------------------------------------------------------------------------------------------------

    def _store(self, entry: Entry) -> list[Answer]:
        self._journal.write(entry)
        try:
            recorded = super()._store(entry)
        except LedgerFailed as failure:
            failure.answers = dict(zip(entry.rows, entry.labels, strict=True))
            raise
        self._journal.done(entry)
        return recorded

    def _labels(self, model: str) -> list[PlainLabel]:
        given = select(answers.c.label).distinct().where(answers.c.model_id == model)
        with self.database.read() as connection:
            return [json.loads(label) for label in connection.scalars(given)]

    def find(self, keys: Sequence[str]) -> dict[str, Asked]:
        """The rows with these keys (`query_id`), of any model; unknown keys are left out."""
        found = {}
        with self.database.read() as connection:
            for some in in_chunks(keys):
                for line in connection.execute(_ROWS_BY_ID, {"ids": list(some)}):  # the newest answer comes last
                    answer = None if line.number is None else _answer(line.row, line.label, line.scores, line.number)
                    found[line.id] = Asked(line.model_id, line.row, answer)
        return found

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

    # -- explanations --------------------------------------------------------------------------------------------

    def begin(
        self,
        explanation: str,
        model: str,
        *,
        factual: Mapping[str, Any],
        settings: Mapping[str, Any],
        space: Mapping[str, Any] | None = None,
        names: Iterable[str] = (),
    ) -> list[Ask]:
        with self._open(model) as found:
            connection = found.connection
            line = {
                "id": explanation,
                "model_id": model,
                "factual": json.dumps(factual, default=as_json),
                "settings": json.dumps(settings, default=as_json),
                "started_at": now_text(),
            }
            if space is not None:
                description = json.dumps(space, default=as_json)
                line["space_id"] = fingerprint(description)
                known = {"id": line["space_id"], "description": description}
                self.database.upsert(connection, spaces, [known])
            # Updated if it exists: one from acex 0.1 has no space yet, and the budget may have changed.
            self.database.upsert(connection, explanations, [line], replaced=line.keys() & {"space_id", "settings"})
            named = [{"explanation_id": explanation, "name": name} for name in names]
            self.database.upsert(connection, row_names, named)
        return self.asks(explanation)

    def explanation(self, explanation: str) -> Record:
        with self.database.read() as connection:
            line = connection.execute(_EXPLANATION, {"explanation": explanation}).first()
            if line is None:
                raise ValueError(f"{explanation!r} is not an explanation of this ledger.")
            space = connection.scalar(select(spaces.c.description).where(spaces.c.id == line.space_id))
            of_explanation = (
                select(row_names.c.name).where(row_names.c.explanation_id == explanation).order_by(row_names.c.name)
            )
            names = tuple(connection.scalars(of_explanation))
        return Record(
            line.model_id,
            json.loads(line.settings),
            None if space is None else json.loads(space),
            line.started_at,
            line.finished_at,
            line.outcome,
            None if line.result is None else json.loads(line.result),
            line.seen_at_end,
            names,
        )

    def asks(self, explanation: str) -> list[Ask]:
        with self.database.read() as connection:
            lines = connection.execute(_ASKS, {"explanation": explanation}).all()
        out = []
        for position, group in groupby(lines, lambda line: int(line.position)):
            same = list(group)
            ask = same[0]
            if ask.row is None:
                raise LedgerFailed(f"rows of explanation {explanation} are missing. See acex ledger check.")
            given = [_answer(ask.row, line.label, line.scores, line.sequence) for line in same if line.sequence]
            answer = answer_seen(given, ask.seen)
            moment = None if answer is None else same[given.index(answer)].recorded_at
            out.append(Ask(position, ask.row, ask.purpose, ask.seen, json.loads(ask.note), ask.paid, answer, moment))
        return out

    def paid(self, explanation: str) -> int:
        with self.database.read() as connection:
            return int(connection.execute(_PAID, {"explanation": explanation}).scalar_one())

    def finish(
        self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None, *, seen: int | None = None
    ) -> None:
        with self.database.write() as connection:
            line = connection.execute(_EXPLANATION, {"explanation": explanation}).first()
            if line is None:
                raise ValueError(f"{explanation!r} is not an explanation of this ledger: it was not begun.")
            account = connection.execute(_ACCOUNT, {"model": line.model_id}).one()
            values = {
                "outcome": outcome,
                "finished_at": now_text(),
                "result": None if result is None else json.dumps(result, default=as_json),
                "seen_at_end": account.last_sequence if seen is None else seen,
            }
            connection.execute(explanations.update().where(explanations.c.id == explanation).values(**values))


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


def _answer(row: str, label: str, scores: str | None, sequence: int) -> Answer:
    given = None if scores is None else [(name, p) for name, p in json.loads(scores)]
    return Answer(row, json.loads(label), given, sequence)


def in_chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """The items in chunks that fit into one statement."""
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]


def _check_asks(found: _SqlModel, explanation: str, questions: Sequence[Question]) -> None:
    """Raise if the explanation has recorded another row at the position of a question."""
    wanted = {question.position: found.key(question.row) for question in questions}
    here = (asks.c.explanation_id == explanation, asks.c.position.in_(wanted))
    for position, key in found.connection.execute(select(asks.c.position, asks.c.query_id).where(*here)):
        if wanted[position] != key:
            raise OutOfStep(
                f"question {position} of explanation {explanation} was another row before. Is the same explanation "
                f"running elsewhere? Nothing was claimed."
            )
