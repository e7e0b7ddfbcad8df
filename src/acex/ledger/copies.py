"""A ledger checked line by line, and copied: as it is, or what is sound of it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, inspect, literal_column, null, select
from sqlalchemy.exc import DBAPIError

from acex.errors import LedgerFailed
from acex.ledger.book import Book
from acex.ledger.forms import iso, query_id
from acex.ledger.seal import ADVICE, AT_ONCE, described, is_sound, pages, sealed
from acex.ledger.tables import asks, contradictions, explanations, models, names, queries, spaces
from acex.values import fingerprint

IN_ORDER = (models, spaces, explanations, names, queries, asks, contradictions)  # each names lines of those before it
SMALLEST_LINE = 32  # bytes


class Copies(Book):
    """A ledger as a whole."""

    def copy_to(self, other: Book) -> None:
        """Copy all there is to a new ledger: models with budgets and what was charged, answers and explanations.

        Raises:
            ValueError: the other ledger is not new.
        """
        with self._store.read() as here, other._store.write() as there:
            _refuse_what_is_not_new(other, there)
            for table in IN_ORDER:
                for page in pages(here, table):
                    for line in page:
                        if not _is_whole(table, line):
                            raise LedgerFailed(f"{described(table, line)} is damaged. {ADVICE}")
                    _insert(there, table, [dict(line._mapping) for line in page])

    def check(self) -> list[str]:
        """What is wrong with this ledger, a sentence each; empty when all is well. Every line is read."""
        with self._store.read() as connection:
            return _Survey(connection).findings

    def repair(self, to: str | os.PathLike[str]) -> list[str]:
        """Copy what is sound to a new ledger: what was wrong, a sentence each. This one is left as it is.

        Answers are numbered anew where some are lost. An explanation is left out when part of its record is lost:
        explaining the row again pays only for answers that are. A model whose own line is lost may be sent no more rows
        until it is given a budget.

        Raises:
            ValueError: there is a ledger at `to` already.
        """
        with type(self)(to) as other, self._store.read() as here, other._store.write() as there:
            _refuse_what_is_not_new(other, there)
            survey = _Survey(here)
            for table in IN_ORDER:
                page: list[dict[str, Any]] = []
                for line in survey.kept(table, iso(other._store.now(there).at)):
                    page.append(line if table is spaces else sealed(table, line))
                    if len(page) == AT_ONCE:
                        _insert(there, table, page)
                        page = []
                _insert(there, table, page)
        return survey.findings


class _Survey:
    """Which lines of a ledger are sound and fit together, and what is wrong with the others, a sentence each."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self.findings = connection, _sqlite_findings(connection)
        self._models = {line.id: line for line in self._sound(models)}
        self._spaces = {line.id for line in self._sound(spaces)}
        self._explanations = {line.id: line.model_id for line in self._sound(explanations)}
        self._torn: set[str] = set()  # explanations that have lost a question
        self._queries: set[str] = set()
        self._numbers: dict[str, list[int]] = defaultdict(list)  # model -> numbers of the answers that are left
        self._sent = dict.fromkeys(self._explanations.values(), 0)  # model -> rows
        for query in self._sound(queries):
            self._queries.add(query.id)
            self._sent[query.model_id] = self._sent.get(query.model_id, 0) + query.attempts
            if query.sequence is not None:
                self._numbers[query.model_id].append(query.sequence)
        for numbers in self._numbers.values():
            numbers.sort()
        self._compare()

    def _compare(self) -> None:
        """Find lines that are sound and yet do not fit the others."""
        for name, line in self._models.items():
            missing = sorted(set(range(1, line.last_sequence + 1)) - set(self._numbers[name]))
            self.findings += [f"answer {number} of model {name!r} is missing" for number in missing]
        self.findings += [f"the line of model {name!r} is missing" for name in self._sent.keys() - self._models.keys()]
        for line in self._sound(explanations, again=True):
            if line.space_id is not None and line.space_id not in self._spaces:
                self.findings.append(f"what the rows of explanation {line.id} hold is missing")
        for ask in self._sound(asks):
            if ask.query_id not in self._queries:
                self.findings.append(
                    f"the row of question {ask.position} of explanation {ask.explanation_id} is missing"
                )
                self._torn.add(ask.explanation_id)
            elif ask.explanation_id not in self._explanations:
                self.findings.append(f"explanation {ask.explanation_id}, of a question {ask.position}, is missing")
        for name in self._sound(names):
            if name.explanation_id not in self._explanations:
                self.findings.append(f"explanation {name.explanation_id}, of a row called {name.name!r}, is missing")
        for told in self._sound(contradictions):
            if told.query_id not in self._queries:
                self.findings.append(f"the row {told.query_id} of a contradiction is missing")

    def kept(self, table: Table, now: str) -> Iterator[dict[str, Any]]:
        """The lines of a table that a repaired ledger has, without their checksums."""
        whole = self._explanations.keys() - self._torn
        for line in self._sound(table, again=True):
            values = dict(line._mapping)
            if table is models:
                values["last_sequence"] = len(self._numbers[line.id])
            elif table is explanations:
                if line.id not in whole:
                    continue
                values["seen_at_end"] = self._numbered(line.model_id, line.seen_at_end)
                values["space_id"] = line.space_id if line.space_id in self._spaces else None
            elif table is queries:
                values["sequence"] = self._numbered(line.model_id, line.sequence)
                values["explanation_id"] = line.explanation_id if line.explanation_id in whole else None
            elif table is asks:
                if line.explanation_id not in whole:
                    continue
                values["seen"] = self._numbered(self._explanations[line.explanation_id], line.seen)
            elif (table is names and line.explanation_id not in whole) or (
                table is contradictions and line.query_id not in self._queries
            ):
                continue
            yield values
        if table is models:
            for name in self._sent.keys() - self._models.keys():
                n, last = self._sent[name], len(self._numbers[name])
                unknown = {"description": "", "row_budget": n, "n_charged": n}  # so that nothing more is sent unasked
                yield {"id": name, "last_sequence": last, "created_at": now, **unknown}

    def _numbered(self, model: str, old: int | None) -> int | None:
        """A number of an answer, counted among those that are left."""
        return None if old is None else bisect_right(self._numbers[model], old)

    def _sound(self, table: Table, again: bool = False) -> Iterator[Row[Any]]:
        """The lines of a table that are as they were written; the others are findings, the first time."""
        there = inspect(self._connection)
        if not there.has_table(table.name):  # of an older version
            return
        names = {column["name"] for column in there.get_columns(table.name)}
        for line in self._readable(table, names, again):
            if _is_whole(table, line, has_checksum="checksum" in names):
                yield line
            elif not again:
                self.findings.append(f"{described(table, line)} is damaged")
                if table is asks:
                    self._torn.add(line.explanation_id)

    def _readable(self, table: Table, names: set[str], again: bool) -> Iterator[Row[Any]]:
        """Every line that can be read, also where pages of the file are damaged."""
        if self._connection.dialect.name != "sqlite":
            for page in pages(self._connection, table):
                yield from page
            return
        place: ColumnElement[int] = literal_column(f"{table.name}.rowid")
        columns = [column if column.name in names else null().label(column.name) for column in table.c]
        wanted = select(*columns).select_from(table).order_by(place)
        ranges = [(0, self._last_place(table))]  # from after the first number to the second
        while ranges:
            low, high = ranges.pop()
            if high - low > AT_ONCE:
                ranges.append((low + AT_ONCE, high))
                high = low + AT_ONCE
            try:
                yield from list(self._connection.execute(wanted.where(place > low, place <= high)))
            except DBAPIError as error:
                if high - low > 1:
                    middle = (low + high) // 2
                    ranges += [(middle, high), (low, middle)]
                elif not again:
                    self.findings.append(f"line {high} of table {table.name} cannot be read: {error.orig}")

    def _last_place(self, table: Table) -> int:
        try:
            last = self._connection.scalar(select(literal_column(f"max({table.name}.rowid)")).select_from(table))
        except DBAPIError:  # then as many as the file could hold
            size = self._connection.exec_driver_sql(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            )
            last = size.scalar_one() // SMALLEST_LINE
        return int(last or 0)


def _sqlite_findings(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    try:
        told = [str(line[0]) for line in connection.exec_driver_sql("PRAGMA integrity_check(20)")]
    except DBAPIError as error:
        told = [str(error.orig)]
    return [f"SQLite: {' '.join(words.split())}" for words in told if words != "ok"]


def _is_whole(table: Table, line: Row[Any], has_checksum: bool = True) -> bool:
    """Is the line as it was written? One of an older version has no checksum, but a key may tell."""
    if table is spaces:
        return bool(line.id == fingerprint(line.description))
    if table is queries and line.id != query_id(line.model_id, line.row):
        return False
    return is_sound(table, line) or not has_checksum


def _refuse_what_is_not_new(ledger: Book, connection: Connection) -> None:
    if connection.scalar(select(models.c.id).limit(1)) is not None:
        raise ValueError(f"Ledger {ledger._store.name}: it is not new, for it has models already. Name another place.")


def _insert(connection: Connection, table: Table, page: list[dict[str, Any]]) -> None:
    if table is contradictions:  # the database numbers them
        page = [{name: value for name, value in line.items() if name != "id"} for line in page]
    if page:
        connection.execute(table.insert(), page)
