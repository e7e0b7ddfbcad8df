"""How a database becomes a ledger, and an older ledger a newer one."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Connection, bindparam, inspect, select

from acex._version import __version__
from acex.errors import LedgerFailed
from acex.ledger.seal import pages, sealed
from acex.ledger.tables import asks, contradictions, explanations, identity, metadata, models, queries, versions

Migration = Callable[[Connection], None]
SEALED = (models, explanations, queries, asks, contradictions)


def _keep_spaces_and_results(connection: Connection) -> None:
    """Version 2: what it takes to show an explanation without its model and data."""
    for statement in (
        "CREATE TABLE spaces (id TEXT NOT NULL PRIMARY KEY, description TEXT NOT NULL)",
        "ALTER TABLE explanations ADD COLUMN space_id TEXT REFERENCES spaces (id)",
        "ALTER TABLE explanations ADD COLUMN result TEXT",
    ):
        connection.exec_driver_sql(statement)


def _seal(connection: Connection) -> None:
    """Version 3: a checksum for each line, leases by a clock that nobody sets, and a name for the ledger itself."""
    for statement in (
        "CREATE TABLE ledger_identity (id TEXT NOT NULL PRIMARY KEY, checksum BIGINT)",
        "ALTER TABLE explanations ADD COLUMN seen_at_end BIGINT",
        "ALTER TABLE queries ADD COLUMN lease_clock TEXT",
        "ALTER TABLE queries ADD COLUMN lease_ends FLOAT",
        *(f"ALTER TABLE {table.name} ADD COLUMN checksum BIGINT" for table in SEALED),
    ):
        connection.exec_driver_sql(statement)
    _remember_what_was_seen(connection)
    for table in SEALED:
        keys = list(table.primary_key)
        update = table.update().where(*(key == bindparam(f"_{key.name}") for key in keys))
        for page in pages(connection, table):
            sums = [
                {f"_{key.name}": line._mapping[key.name] for key in keys}
                | {"checksum": sealed(table, dict(line._mapping))["checksum"]}
                for line in page
            ]
            connection.execute(update, sums)
    _name(connection)


def _remember_what_was_seen(connection: Connection) -> None:
    """Write down for each explanation that has ended which answer was the newest then."""
    columns = (queries.c.model_id, queries.c.settled_at, queries.c.sequence)
    settled = select(*columns).where(queries.c.sequence.is_not(None)).order_by(queries.c.settled_at)
    times: dict[str, list[str]] = defaultdict(list)
    numbers: dict[str, list[int]] = defaultdict(list)
    for model, moment, number in connection.execute(settled):
        times[model].append(moment)
        numbers[model].append(max(number, numbers[model][-1]) if numbers[model] else number)
    ended = select(explanations.c.id, explanations.c.model_id, explanations.c.finished_at)
    seen = []
    for name, model, moment in connection.execute(ended.where(explanations.c.finished_at.is_not(None))):
        before = bisect_right(times[model], moment)
        seen.append({"_id": name, "seen_at_end": numbers[model][before - 1] if before else 0})
    if seen:
        connection.execute(explanations.update().where(explanations.c.id == bindparam("_id")), seen)


def _keep_names(connection: Connection) -> None:
    """Version 4: what the rows that were explained are called."""
    connection.exec_driver_sql(
        "CREATE TABLE names (explanation_id TEXT NOT NULL REFERENCES explanations (id), name TEXT NOT NULL, "
        "checksum BIGINT, PRIMARY KEY (explanation_id, name))"
    )


# Step i takes a ledger from version i + 1 to version i + 2. A new ledger starts with the tables above, so whoever
# changes them adds the step that does the same to an old one.
MIGRATIONS: list[Migration] = [_keep_spaces_and_results, _seal, _keep_names]


def newest_version() -> int:
    """The version this acex writes."""
    return 1 + len(MIGRATIONS)


def version_of(connection: Connection) -> int:
    """The version of the ledger in this database; 0 when there is none yet.

    Raises:
        LedgerFailed: the ledger is newer than this acex, or the database belongs to something else.
    """
    named = inspect(connection)
    tables = named.get_table_names()
    if versions.name not in tables:
        taken = sorted({*tables, *named.get_view_names()} & set(metadata.tables))
        if taken:
            raise LedgerFailed(
                f"it is a database of something else, with {', '.join(taken)} in it; it was left as it is."
            )
        return 0
    version = max(connection.scalars(select(versions.c.version)), default=0)
    if version > newest_version():
        raise LedgerFailed(
            f"it is a ledger of version {version}, and acex {__version__} knows versions up to "
            f"{newest_version()}. Use a newer acex; nothing was changed."
        )
    return version


def migrate(connection: Connection) -> None:
    """Take a ledger, or an empty database, to the newest version."""
    version = version_of(connection)
    if version == 0:
        metadata.create_all(connection)
        _name(connection)
        _note(connection, newest_version())
        return
    for step in range(version, newest_version()):
        MIGRATIONS[step - 1](connection)
        _note(connection, step + 1)


def _note(connection: Connection, version: int) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    connection.execute(versions.insert().values(version=version, acex=__version__, migrated_at=now))


def _name(connection: Connection) -> None:
    connection.execute(identity.insert().values(**sealed(identity, {"id": uuid.uuid4().hex})))
