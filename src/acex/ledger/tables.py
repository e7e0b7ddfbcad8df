"""The tables of a ledger, the same in SQLite and PostgreSQL, and how an older ledger becomes a newer one.

Everything is text or a number, so that `sqlite3` or `psql` and a reader's eyes are enough: times are ISO 8601 in UTC,
and rows, labels, settings and notes are JSON as text, which keeps 1, 1.0, true and "1" apart.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

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

metadata = MetaData()

versions = Table(
    "ledger_versions",  # a line for each step this ledger has gone through
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("acex", Text, nullable=False),  # the version of acex that took the step
    Column("migrated_at", Text, nullable=False),
)

models = Table(
    "models",
    metadata,
    Column("id", Text, primary_key=True),
    Column("description", Text, nullable=False),
    Column("features", Text),  # JSON list: what the values of a row are called, in order
    Column("row_budget", BigInteger),  # over the model's lifetime; null: no limit
    Column("price_per_row", Float),
    Column("n_charged", BigInteger, nullable=False),  # rows that were sent, or may have been
    Column("last_sequence", BigInteger, nullable=False),  # number of the newest answer
    Column("created_at", Text, nullable=False),
)

spaces = Table(
    "spaces",  # what the rows of explanations hold: mostly one for all of a model's
    metadata,
    Column("id", Text, primary_key=True),  # hash of the description
    Column("description", Text, nullable=False),  # JSON: features, how rows are written, standard deviations
)

explanations = Table(
    "explanations",
    metadata,
    Column("id", Text, primary_key=True),  # hash of all that decides what is asked
    Column("model_id", Text, ForeignKey("models.id"), nullable=False),
    Column("factual", Text, nullable=False),  # JSON
    Column("settings", Text, nullable=False),  # JSON
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
    Column("outcome", Text),
    Column("space_id", Text, ForeignKey("spaces.id")),  # null where an acex before version 2 began it
    Column("result", Text),  # JSON: what was found, and how sure it is; null until it ended
    Index("explanations_of_model", "model_id"),
)

queries = Table(
    "queries",
    metadata,
    # A hash of model and row: PostgreSQL cannot index a row of a thousand values itself.
    Column("id", Text, primary_key=True),
    Column("model_id", Text, ForeignKey("models.id"), nullable=False),
    Column("row", Text, nullable=False),  # its canonical form
    Column("label", Text),  # JSON; null until settled
    Column("scores", Text),  # JSON: pairs of label and probability, where the model gives them
    Column("purpose", Text, nullable=False),
    Column("explanation_id", Text, ForeignKey("explanations.id")),  # on whose behalf it was last claimed
    Column("attempts", Integer, nullable=False),  # how often it was sent, or may have been; 0: imported or released
    Column("claimed_by", Text),
    Column("claimed_at", Text),
    Column("leased_until", Text),
    Column("settled_at", Text),
    Column("sequence", BigInteger),  # 1, 2, 3, ... for each model, in the order of settling
    # Finds the newest answers of a model without reading the others.
    Index("queries_by_sequence", "model_id", "sequence", unique=True),
)

asks = Table(
    "asks",  # what an explanation asked, in order: enough to replay it
    metadata,
    Column("explanation_id", Text, ForeignKey("explanations.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("seen", BigInteger, nullable=False),  # the newest answer it could know of
    Column("note", Text, nullable=False),  # JSON: what else is worth keeping, such as the cost of the row
    Column("paid", Integer, nullable=False),  # how often this explanation paid for it; 0: it was known
)

contradictions = Table(
    "contradictions",  # answers that differ from the one settled first, which stands
    metadata,
    Column("id", Integer, primary_key=True),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("told_by", Text, nullable=False),
    Column("told_at", Text, nullable=False),
)

Migration = Callable[[Connection], None]


def _keep_spaces_and_results(connection: Connection) -> None:
    """Version 2: what it takes to show an explanation without its model and data."""
    for statement in (
        "CREATE TABLE spaces (id TEXT NOT NULL PRIMARY KEY, description TEXT NOT NULL)",
        "ALTER TABLE explanations ADD COLUMN space_id TEXT REFERENCES spaces (id)",
        "ALTER TABLE explanations ADD COLUMN result TEXT",
    ):
        connection.exec_driver_sql(statement)


# Step i takes a ledger from version i + 1 to version i + 2. A new ledger starts with the tables above, so whoever
# changes them adds the step that does the same to an old one.
MIGRATIONS: list[Migration] = [_keep_spaces_and_results]


def newest_version() -> int:
    """The version this acex writes."""
    return 1 + len(MIGRATIONS)


def version_of(connection: Connection) -> int:
    """The version of the ledger in this database; 0 when there is none yet.

    Raises:
        LedgerFailed: the ledger is newer than this acex, or the database belongs to something else.
    """
    names = set(inspect(connection).get_table_names())
    if versions.name not in names:
        taken = sorted(names & set(metadata.tables))
        if taken:
            raise LedgerFailed(
                f"it is a database of something else, with tables named {', '.join(taken)}; it was left as it is."
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
        _note(connection, newest_version())
        return
    for step in range(version, newest_version()):
        MIGRATIONS[step - 1](connection)
        _note(connection, step + 1)


def _note(connection: Connection, version: int) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    connection.execute(versions.insert().values(version=version, acex=__version__, migrated_at=now))
