"""Care for a ledger: delete rows for good, and check that the database is intact."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, bindparam, func, select, tuple_
from sqlalchemy.exc import DBAPIError

from acex.ledger.database import Database
from acex.ledger.row_keys import iso
from acex.ledger.schema import (
    answers,
    asks,
    contradictions,
    explanations,
    models,
    names,
    newest_version,
    queries,
    spaces,
    version_of,
)
from acex.ledger.sql import Ledger

AT_ONCE = 2000  # lines that are read at once


class Purged(NamedTuple):
    """What was deleted, or would be.

    `rows` were asked for no explanation that stays; `shared` rows stay since one that stays has asked them too;
    `in_use` explanations stay since their row has other names too.
    """

    explanations: int
    rows: int
    shared: int
    in_use: int


def purge(
    ledger: Ledger,
    *,
    named: Iterable[str] = (),
    before: datetime | None = None,
    model: str | None = None,
    dry_run: bool = False,
) -> Purged:
    """Delete explanations with the rows asked for them; budgets and what was charged stay.

    The answers that stay are renumbered. A file is rewritten, so that nothing is left in unused pages. No one else
    should have the ledger open meanwhile.

    Args:
        named: of rows with one of these names. An explanation whose row has other names too only loses the name.
        before: that ended, or began and did not end, before this time; and rows answered before it that no
            explanation has asked.
        model: of this model only.
        dry_run: only count.

    Raises:
        ValueError: neither names nor a time were given, or rows to delete are in flight.
    """
    wanted = {str(name) for name in named}
    if not wanted and before is None:
        raise ValueError("purge: expected names of rows, or a time.")
    limit = None if before is None else iso(before.astimezone(UTC))
    with ledger.database.write() as connection:
        plan = _Plan(connection, wanted, limit, model)
        plan.refuse_in_flight()
        if not dry_run:
            plan.carry_out()
    if not dry_run:
        ledger.database.compact()
    return plan.counts


class _Plan:
    """Which lines are deleted, and which of those that stay change."""

    def __init__(self, connection: Connection, wanted: set[str], limit: str | None, model: str | None) -> None:
        self._connection = connection
        self._wanted = wanted
        row_names: dict[str, set[str]] = {}
        for line in _lines(connection, names):
            row_names.setdefault(line.explanation_id, set()).add(line.name)
        self._gone: set[str] = set()
        in_use: set[str] = set()
        for line in _lines(connection, explanations):
            if model is not None and line.model_id != model:
                continue
            own = row_names.get(line.id, set())
            if limit is not None and (line.finished_at or line.started_at) < limit:
                self._gone.add(line.id)
            elif own & wanted:
                (self._gone if own <= wanted else in_use).add(line.id)
        of_gone: set[str] = set()
        of_kept: set[str] = set()
        for ask in _lines(connection, asks):
            (of_gone if ask.explanation_id in self._gone else of_kept).add(ask.query_id)
        old: set[str] = set()
        if limit is not None:
            last = select(answers.c.query_id).group_by(answers.c.query_id)
            last = last.having(func.max(answers.c.recorded_at) < limit)
            old = set(connection.scalars(last if model is None else last.where(answers.c.model_id == model)))
        self._rows = (of_gone | old) - of_kept
        self.counts = Purged(len(self._gone), len(self._rows), len(of_gone & of_kept), len(in_use))

    def refuse_in_flight(self) -> None:
        """Raise if a row to delete may still be answered: the answer would bring it back."""
        waits = [
            q
            for q in _lines(self._connection, queries)
            if q.id in self._rows and q.sequence is None and q.claimed_by is not None
        ]
        if waits:
            raise ValueError(
                f"purge: {len(waits)} of these rows wait for an answer of {waits[0].model_id!r}. Wait for it, or end "
                f"their claims with Ledger.abandon (acex ledger abandon)."
            )

    def carry_out(self) -> None:
        """Delete the lines, and renumber the answers that stay."""
        self._delete(contradictions, contradictions.c.query_id, self._rows)
        self._delete(asks, asks.c.explanation_id, self._gone)
        self._delete(names, names.c.explanation_id, self._gone)
        self._connection.execute(names.delete().where(names.c.name.in_(sorted(self._wanted))))
        for some in _chunks(self._gone):
            of_gone = queries.c.explanation_id.in_(some)
            self._connection.execute(queries.update().where(of_gone).values(explanation_id=None))
        self._delete(answers, answers.c.query_id, self._rows)
        self._delete(queries, queries.c.id, self._rows)
        self._delete(explanations, explanations.c.id, self._gone)
        used = {line.space_id for line in _lines(self._connection, explanations)}
        self._delete(spaces, spaces.c.id, {line.id for line in _lines(self._connection, spaces)} - used)
        self._renumber()

    def _renumber(self) -> None:
        numbers: dict[str, list[int]] = {}
        for answer in _lines(self._connection, answers):  # by model and number
            numbers.setdefault(answer.model_id, []).append(answer.sequence)

        def new(model: str, old: int | None) -> int | None:
            return None if old is None else bisect_right(numbers.get(model, []), old)

        for model, old in numbers.items():  # from the lowest on, so that no two are equal on the way
            for place, number in enumerate(old, start=1):
                if place != number:
                    which = (answers.c.model_id == model, answers.c.sequence == number)
                    self._connection.execute(answers.update().where(*which).values(sequence=place))
        for query in list(_lines(self._connection, queries)):
            self._change(queries, query, sequence=new(query.model_id, query.sequence))
        model_of = {}
        for line in list(_lines(self._connection, explanations)):
            model_of[line.id] = line.model_id
            self._change(explanations, line, seen_at_end=new(line.model_id, line.seen_at_end))
        for ask in list(_lines(self._connection, asks)):
            self._change(asks, ask, seen=new(model_of[ask.explanation_id], ask.seen))
        for line in list(_lines(self._connection, models)):
            self._change(models, line, last_sequence=len(numbers.get(line.id, [])))

    def _delete(self, table: Table, column: Any, keys: set[str]) -> None:
        for some in _chunks(keys):
            self._connection.execute(table.delete().where(column.in_(some)))

    def _change(self, table: Table, line: Row[Any], **values: Any) -> None:
        if any(line._mapping[name] != value for name, value in values.items()):
            keys = list(table.primary_key)
            update = table.update().where(*(key == bindparam(f"_{key.name}") for key in keys))
            self._connection.execute(update, {f"_{key.name}": line._mapping[key.name] for key in keys} | values)


def check(where: str | os.PathLike[str]) -> list[str]:
    """What is wrong with the ledger at this path or URL, a sentence each; empty if nothing is.

    Checks the SQLite file, references between tables, the numbers of answers, and the journals of dead processes.
    Nothing is changed.
    """
    database = Database(where, checked=False)
    try:
        with database.read() as connection:
            findings = _sqlite_findings(connection) if database.is_sqlite else []
            if findings or version_of(connection) != newest_version():
                return findings
            findings = _number_findings(connection)
        journal = database.journal()
        for path, entries in journal.others():
            if entries and not journal.owner.is_alive(path.name.removeprefix(journal.owner.prefix.name)):
                findings.append(f"{path.name}: answers of a process that died wait to be recorded; open the ledger.")
        return findings
    finally:
        database.close()


def _sqlite_findings(connection: Connection) -> list[str]:
    try:
        lines = [str(line[0]) for line in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
        findings = [f"SQLite: {' '.join(line.split())}" for line in lines if line != "ok"]
        for table, row, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            findings.append(f"row {row} of table {table} refers to a row of table {parent} that is missing")
    except DBAPIError as error:
        findings = [f"SQLite: {error.orig}"]
    return findings


def _number_findings(connection: Connection) -> list[str]:
    """Models whose answers are not numbered 1, 2, 3, ..., and queries whose answer is missing."""
    last = func.coalesce(func.max(answers.c.sequence), 0)
    numbered = (
        select(models.c.id, models.c.last_sequence, func.count(answers.c.sequence), last)
        .outerjoin(answers, answers.c.model_id == models.c.id)
        .group_by(models.c.id, models.c.last_sequence)
    )
    findings = [
        f"model {model!r} should have {expected} answers, numbered from 1; it has {n}, up to number {highest}"
        for model, expected, n, highest in connection.execute(numbered)
        if not expected == n == highest
    ]
    same = (answers.c.query_id == queries.c.id) & (answers.c.sequence == queries.c.sequence)
    lost = select(queries.c.id).outerjoin(answers, same)
    lost = lost.where(queries.c.sequence.is_not(None), answers.c.sequence.is_(None))
    return findings + [f"the answer of query {key} is missing" for key in connection.scalars(lost)]


def parse_time(text: str) -> datetime:
    """A day or a time such as 2026-01-31; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a day or time; expected one such as 2026-01-31.") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _lines(connection: Connection, table: Table) -> Iterator[Row[Any]]:
    """All rows of a table by key, some at a time, so that a large table need not fit into memory."""
    keys = list(table.primary_key)
    wanted = select(table).order_by(*keys).limit(AT_ONCE)
    page = list(connection.execute(wanted))
    while page:
        yield from page
        last = [page[-1]._mapping[key.name] for key in keys]
        page = list(connection.execute(wanted.where(tuple_(*keys) > tuple_(*last))))


def _chunks(keys: set[str]) -> Iterator[list[str]]:
    """The keys, as many at once as a statement may hold."""
    ordered = sorted(keys)
    for start in range(0, len(ordered), 500):
        yield ordered[start : start + 500]
