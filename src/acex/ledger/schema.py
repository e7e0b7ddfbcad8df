"""The tables of a ledger, identical in SQLite and PostgreSQL, and the migrations of older ledgers.

All columns are text or numbers, so that `sqlite3` or `psql` are enough to read them: times are ISO 8601 in UTC, money
is a decimal, and rows, labels, settings and notes are JSON as text, which distinguishes 1, 1.0, true and "1".
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    select,
)

from acex._version import __version__
from acex.errors import LedgerFailed
from acex.ledger.row_keys import now_text
from acex.values import listed

metadata = MetaData()

versions = Table(
    "ledger_versions",  # one row for each migration of this ledger
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("acex", Text, nullable=False),  # the version of acex that migrated it
    Column("migrated_at", Text, nullable=False),
)

identity = Table(
    "ledger_identity",  # one row
    metadata,
    Column("id", Text, primary_key=True),  # random; identifies this ledger wherever it is moved
)

models = Table(
    "models",
    metadata,
    Column("id", Text, primary_key=True),  # name, or name@version
    Column("name", Text, nullable=False, server_default=""),
    Column("version", Text),
    Column("description", Text, nullable=False),
    Column("features", Text),  # JSON list: the names of a row's values, in order
    Column("row_budget", BigInteger),  # over the model's lifetime; null: no limit
    Column("price_per_row", Float),
    Column("n_charged", BigInteger, nullable=False),  # rows that were sent, or may have been
    Column("last_sequence", BigInteger, nullable=False),  # number of the newest answer
    Column("created_at", Text, nullable=False),
    Column("money_budget", Text),  # over the model's lifetime; null: no limit
    Column("money_used", Text, nullable=False, server_default="0"),  # spent, and reserved for rows in flight
)

spaces = Table(
    "spaces",  # descriptions of the features of rows; most explanations of a model share one
    metadata,
    Column("id", Text, primary_key=True),  # hash of the description
    Column("description", Text, nullable=False),  # JSON: features, format of rows, standard deviations
)

explanations = Table(
    "explanations",
    metadata,
    Column("id", Text, primary_key=True),  # hash of everything that decides which rows are asked
    Column("model_id", Text, ForeignKey("models.id"), nullable=False),
    Column("factual", Text, nullable=False),  # JSON
    Column("settings", Text, nullable=False),  # JSON
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
    Column("outcome", Text),
    Column("space_id", Text, ForeignKey("spaces.id")),  # null if acex 0.1 recorded it
    Column("result", Text),  # JSON: what was found; null until it has ended
    Column("seen_at_end", BigInteger),  # number of the newest answer when it ended
    Index("explanations_of_model", "model_id", "finished_at"),
)

names = Table(
    "names",  # names of the explained rows; identical rows share an explanation
    metadata,
    Column("explanation_id", Text, ForeignKey("explanations.id"), primary_key=True),
    Column("name", Text, primary_key=True),
)

queries = Table(
    "queries",  # rows that were sent, are to be sent, or have an imported answer
    metadata,
    # A hash of model and row, since PostgreSQL cannot index the text of a row of a thousand values.
    Column("id", Text, primary_key=True),
    Column("model_id", Text, ForeignKey("models.id"), nullable=False),
    Column("row", Text, nullable=False),  # its canonical text
    Column("purpose", Text, nullable=False),
    Column("explanation_id", Text, ForeignKey("explanations.id")),  # the explanation that last claimed it
    Column("attempts", Integer, nullable=False),  # how often it was sent, or may have been; 0: imported or released
    Column("claimed_by", Text),  # null: not claimed, released or abandoned
    Column("claimed_at", Text),
    Column("lease_ends", Float),  # seconds on the ledger's clock; null: no lease
    Column("reserved", Text),  # money reserved until the answer is recorded
    Column("sequence", BigInteger),  # number of its newest answer; null: no answer yet
    Index("queries_of_model", "model_id"),
)

answers = Table(
    "answers",  # append-only: a correction is another answer to the same row
    metadata,
    Column("model_id", Text, ForeignKey("models.id"), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),  # 1, 2, 3, ... in the order of recording
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("label", Text, nullable=False),  # JSON
    Column("scores", Text),  # JSON: pairs of label and probability, if the model gave them
    Column("recorded_by", Text),
    Column("recorded_at", Text, nullable=False),
    Index("answers_of_query", "query_id"),
)

asks = Table(
    "asks",  # the questions of an explanation, in order: enough to replay it
    metadata,
    Column("explanation_id", Text, ForeignKey("explanations.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("seen", BigInteger, nullable=False),  # number of the newest answer that could influence it
    Column("note", Text, nullable=False),  # JSON: further facts, such as the cost of the row
    Column("paid", Integer, nullable=False),  # how often this explanation paid for it; 0: the answer was known
)

contradictions = Table(
    "contradictions",  # answers of the model that differ from the recorded one
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("told_by", Text, nullable=False),
    Column("told_at", Text, nullable=False),
)


# -- migrations --------------------------------------------------------------------------------------------------


def _add_spaces_and_results(connection: Connection) -> None:
    """Version 2: what is needed to show an explanation without its model and data."""
    _run(
        connection,
        "CREATE TABLE spaces (id TEXT NOT NULL PRIMARY KEY, description TEXT NOT NULL)",
        "ALTER TABLE explanations ADD COLUMN space_id TEXT REFERENCES spaces (id)",
        "ALTER TABLE explanations ADD COLUMN result TEXT",
    )


def _add_identity(connection: Connection) -> None:
    """Version 3: an id of the ledger, leases on a clock, and the newest answer at the end of each explanation."""
    _run(
        connection,
        "CREATE TABLE ledger_identity (id TEXT NOT NULL PRIMARY KEY)",
        "ALTER TABLE explanations ADD COLUMN seen_at_end BIGINT",
        "ALTER TABLE queries ADD COLUMN lease_clock TEXT",
        "ALTER TABLE queries ADD COLUMN lease_ends FLOAT",
        "CREATE INDEX by_time ON queries (model_id, settled_at, sequence)",
        "UPDATE explanations SET seen_at_end = (SELECT COALESCE(MAX(sequence), 0) FROM queries "
        "WHERE model_id = explanations.model_id AND settled_at <= finished_at) WHERE finished_at IS NOT NULL",
        "DROP INDEX by_time",
    )
    _create_identity(connection)


def _add_names(connection: Connection) -> None:
    """Version 4: names of the explained rows."""
    _run(
        connection,
        "CREATE TABLE names (explanation_id TEXT NOT NULL REFERENCES explanations (id), name TEXT NOT NULL, "
        "PRIMARY KEY (explanation_id, name))",
    )


def _separate_answers(connection: Connection) -> None:
    """Version 5: append-only answers, names and versions of models, money; no checksums, one clock for leases."""
    answers.create(connection)
    dropped = [("queries", name) for name in ("label", "scores", "settled_at", "leased_until", "lease_clock")]
    there = inspect(connection)
    for table in there.get_table_names():
        dropped += [(table, "checksum") for column in there.get_columns(table) if column["name"] == "checksum"]
    _run(
        connection,
        "INSERT INTO answers (model_id, sequence, query_id, label, scores, recorded_by, recorded_at) "
        "SELECT model_id, sequence, id, label, scores, claimed_by, settled_at FROM queries WHERE sequence IS NOT NULL",
        # Owners of earlier versions hold no lock, so their leases have expired. Rows handed out to people have none.
        "UPDATE queries SET lease_ends = CASE WHEN leased_until >= '9999' THEN NULL ELSE 0 END",
        "DROP INDEX queries_by_sequence",
        *(f"ALTER TABLE {table} DROP COLUMN {column}" for table, column in dropped),
        "ALTER TABLE queries ADD COLUMN reserved TEXT",
        "CREATE INDEX queries_of_model ON queries (model_id)",
        "DROP INDEX explanations_of_model",
        "CREATE INDEX explanations_of_model ON explanations (model_id, finished_at)",
        "ALTER TABLE models ADD COLUMN name TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE models ADD COLUMN version TEXT",
        "ALTER TABLE models ADD COLUMN money_budget TEXT",
        "ALTER TABLE models ADD COLUMN money_used TEXT NOT NULL DEFAULT '0'",
        "UPDATE models SET name = id",
    )


def _run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)


# Migration i takes a ledger from version i + 1 to version i + 2. A new ledger starts with the tables above, so a change
# to them needs a migration that changes an old ledger in the same way.
MIGRATIONS: list[Callable[[Connection], None]] = [
    _add_spaces_and_results,
    _add_identity,
    _add_names,
    _separate_answers,
]


def newest_version() -> int:
    """The version of ledgers that this acex writes."""
    return 1 + len(MIGRATIONS)


def version_of(connection: Connection) -> int:
    """The version of the ledger in this database; 0 if the database has no ledger yet.

    Raises:
        LedgerFailed: the ledger is newer than this acex, or the database belongs to another program.
    """
    there = inspect(connection)
    tables = set(there.get_table_names())
    if versions.name not in tables:
        taken = tables | set(there.get_view_names())
        if connection.dialect.name == "postgresql":  # other programs may use the same database
            taken &= set(metadata.tables)
        if taken:
            raise LedgerFailed(
                f"it is a database of another program, with {listed(sorted(taken))} in it; it was not changed."
            )
        return 0
    version = max(connection.scalars(select(versions.c.version)), default=0)
    if version > newest_version():
        raise LedgerFailed(
            f"it is a ledger of version {version}, and acex {__version__} supports versions up to "
            f"{newest_version()}. Use a newer acex; nothing was changed."
        )
    return version


def migrate(connection: Connection) -> None:
    """Upgrade a ledger to the newest version, or create one in an empty database."""
    version = version_of(connection)
    if version == 0:
        metadata.create_all(connection)
        _create_identity(connection)
        _add_version(connection, newest_version())
        return
    for step in range(version, newest_version()):
        MIGRATIONS[step - 1](connection)
        _add_version(connection, step + 1)


def _add_version(connection: Connection, version: int) -> None:
    connection.execute(versions.insert().values(version=version, acex=__version__, migrated_at=now_text()))


def _create_identity(connection: Connection) -> None:
    connection.execute(identity.insert().values(id=uuid.uuid4().hex))
