"""Maintenance of a ledger: delete rows permanently, and check that the database is intact."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from acex.ledger.database import Database
from acex.ledger.journal import has_locked
from acex.ledger.row_keys import iso
from acex.ledger.schema import (
    answers,
    asks,
    contradictions,
    explanations,
    names,
    newest_version,
    queries,
    spaces,
    version_of,
)
from acex.ledger.sql import Ledger, in_chunks


class Purged(NamedTuple):
    """The numbers of what was deleted, or would be.

    `rows` are used by no remaining explanation; `shared` rows are kept because a remaining explanation uses them too;
    `in_use` explanations are kept because their row has other names too.
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
    """Delete explanations and the rows that only these have asked; budgets and charges are kept.

    The remaining answers keep their numbers. An SQLite file is rewritten, so that nothing is left in unused pages.

    Args:
        named: delete explanations of rows with one of these names. If a row has other names too, only the name is
            deleted.
        before: delete explanations that ended before this time, or began before it and have not ended; also rows
            answered before it that no explanation has asked.
        model: delete only from this model.
        dry_run: only count.

    Raises:
        ValueError: neither names nor a time were given, or rows to delete are in flight.
    """
    wanted = {str(name) for name in named}
    if not wanted and before is None:
        raise ValueError("purge: expected names of rows, or a time.")
    limit = "" if before is None else iso(before.astimezone(UTC))
    with ledger.database.write() as connection:
        has_name = explanations.c.id.in_(select(names.c.explanation_id).where(names.c.name.in_(wanted)))
        has_other = explanations.c.id.in_(select(names.c.explanation_id).where(names.c.name.not_in(wanted)))
        is_old = func.coalesce(explanations.c.finished_at, explanations.c.started_at) < limit
        chosen = select(explanations.c.id)
        chosen = chosen if model is None else chosen.where(explanations.c.model_id == model)
        gone = set(connection.scalars(chosen.where(is_old | (has_name & ~has_other))))
        in_use = set(connection.scalars(chosen.where(~is_old, has_name, has_other)))
        of_deleted: set[str] = set()
        of_remaining: set[str] = set()
        for explanation, query in connection.execute(select(asks.c.explanation_id, asks.c.query_id)):
            (of_deleted if explanation in gone else of_remaining).add(query)
        last = select(answers.c.query_id).group_by(answers.c.query_id).having(func.max(answers.c.recorded_at) < limit)
        old = set(connection.scalars(last if model is None else last.where(answers.c.model_id == model)))
        rows = (of_deleted | old) - of_remaining
        waiting = select(queries.c.id).where(queries.c.sequence.is_(None), queries.c.claimed_by.is_not(None))
        in_flight = rows & set(connection.scalars(waiting))
        if in_flight:  # recording their answers would restore them
            raise ValueError(
                f"purge: {len(in_flight)} of these rows wait for an answer. Wait for it, or end their claims with "
                f"Ledger.abandon (acex ledger abandon)."
            )
        if not dry_run:
            _delete(connection, gone, rows)
            for some in in_chunks(sorted(in_use)):
                of_some = names.c.explanation_id.in_(some)
                connection.execute(names.delete().where(of_some, names.c.name.in_(wanted)))
    if not dry_run:
        ledger.database.compact()
    return Purged(len(gone), len(rows), len(of_deleted & of_remaining), len(in_use))


def _delete(connection: Connection, gone: set[str], rows: set[str]) -> None:
    """Delete these explanations and rows, and everything that refers to them."""
    for some in in_chunks(sorted(gone)):
        connection.execute(asks.delete().where(asks.c.explanation_id.in_(some)))
        connection.execute(names.delete().where(names.c.explanation_id.in_(some)))
        connection.execute(queries.update().where(queries.c.explanation_id.in_(some)).values(explanation_id=None))
        connection.execute(explanations.delete().where(explanations.c.id.in_(some)))
    for some in in_chunks(sorted(rows)):
        connection.execute(contradictions.delete().where(contradictions.c.query_id.in_(some)))
        connection.execute(answers.delete().where(answers.c.query_id.in_(some)))
        connection.execute(queries.delete().where(queries.c.id.in_(some)))
    used = select(explanations.c.space_id).where(explanations.c.space_id.is_not(None))
    connection.execute(spaces.delete().where(spaces.c.id.not_in(used)))


def check(where: str | os.PathLike[str]) -> list[str]:
    """The problems of the ledger at this path or URL, a sentence each; empty if there are none.

    Checks the SQLite file, references between tables, and journals of dead processes. Changes nothing.
    """
    database = Database(where, checked=False)
    try:
        with database.read() as connection:
            findings = _sqlite_findings(connection) if database.is_sqlite else []
            if findings or version_of(connection) != newest_version():
                return findings
            same = (answers.c.query_id == queries.c.id) & (answers.c.sequence == queries.c.sequence)
            lost = select(queries.c.model_id, queries.c.row).outerjoin(answers, same)
            lost = lost.where(queries.c.sequence.is_not(None), answers.c.sequence.is_(None))
            findings = [f"model {model!r}: the answer to {row} is missing" for model, row in connection.execute(lost)]
        journal = database.journal()
        for path, entries in journal.others():
            if entries and not has_locked(path):
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


def parse_time(text: str) -> datetime:
    """The time that a text such as 2026-01-31 gives; UTC unless it has a time zone."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a day or time; expected one such as 2026-01-31.") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
