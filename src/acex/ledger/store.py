"""Where a ledger lives: memory, an SQLite file or a PostgreSQL server; transactions on it, and its faults in words."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Insert,
    NullPool,
    StaticPool,
    Table,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from acex.errors import LedgerFailed
from acex.ledger.journal import Journal, state_folder
from acex.ledger.migrations import migrate, newest_version, version_of
from acex.ledger.owner import Moment, now_here
from acex.ledger.seal import ADVICE as DAMAGED
from acex.ledger.seal import lines
from acex.ledger.tables import identity

BUSY_SECONDS = 60.0  # how long to queue for SQLite's one writer; transactions here take milliseconds
CHECKED_BYTES = 64 * 2**20  # files up to this size are checked whole when opened, in well under a second
SECRETS = ("password", "sslpassword")  # what the query of a URL may hold that nobody shall read
MIGRATION_LOCK = 0x61636578  # "acex"

ADVICE = {
    "SQLITE_FULL": "the disk is full. What was settled before is safe; make room and go on",
    "SQLITE_IOERR": "the disk does not take or give the data. What was settled before is safe; look for its "
    "room, limits and health, and go on",
    "SQLITE_READONLY": "it is read-only; nothing was asked or changed. Make the file and its folder writable",
    "SQLITE_CANTOPEN": "it cannot be opened. The folder must exist and be writable, for SQLite keeps files beside it",
    "SQLITE_NOTADB": "it is not an SQLite file; it was left as it is. Name another file for the ledger",
    "SQLITE_CORRUPT": "the file is damaged; it was left as it is. Take it from a backup, or save what is sound with: "
    "acex ledger repair",
    "SQLITE_BUSY": f"another program has kept it locked for more than {BUSY_SECONDS:.0f} seconds",
}


class Store:
    """One database with the tables of a ledger.

    Args:
        where: None or ":memory:" for memory, a path for an SQLite file, a URL for PostgreSQL.
        checked: refuse a file that is damaged, and take an older ledger to the newest version.
    """

    def __init__(self, where: str | os.PathLike[str] | None, *, checked: bool = True) -> None:
        self.url = _as_url(where)
        self._inherited: list[Engine] = []
        if self.path is not None:
            with self._faults():
                _refuse_what_is_no_ledger(self.path, checked)
        self._connect()
        try:
            if checked:
                self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def is_memory(self) -> bool:
        """Does this ledger end with the process?"""
        return self.url.drivername == "sqlite" and self.path is None

    @property
    def path(self) -> Path | None:
        """The SQLite file."""
        return Path(self.url.database) if self.url.drivername == "sqlite" and self.url.database else None

    @property
    def address(self) -> str:
        """What opens this store again, the password included."""
        return str(self.path or self.url.render_as_string(hide_password=False))

    @property
    def name(self) -> str:
        """The address as it may be shown."""
        return "in memory" if self.is_memory else str(self.path or _without_secrets(self.url))

    def journal(self, name: str | None = None) -> Journal:
        """Where answers are kept until this store has them; in memory, which has no name of its own, under this one."""
        if self.is_memory:
            return Journal(None, "") if name is None else _of_memory(name)
        with self.read() as connection:
            found = [line.id for line in lines(connection, identity, select(identity))]
            if len(found) != 1:
                raise LedgerFailed(f"it has {len(found)} lines in table {identity.name} where one should be. {DAMAGED}")
            [name] = found
            if self.path is not None:
                return Journal(Path(f"{self.path}-answers-"), name)
            return Journal(state_folder() / f"{name}-", name, makes_folder=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that changes nothing."""
        with self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is written to the disk as a whole when it ends, or not at all."""
        with self._transaction(writes=True) as connection:
            yield connection

    def now(self, connection: Connection) -> Moment:
        """The time by the one clock that every user of this store goes by."""
        if connection.dialect.name == "postgresql":
            told: datetime = connection.scalars(select(func.clock_timestamp())).one()
            return Moment(told.astimezone(UTC))
        return now_here()

    def insert(self, table: Table, values: dict[str, Any]) -> Insert:
        """A statement that adds a line unless there is one with its key."""
        make = postgresql.insert if self.url.drivername.startswith("postgresql") else sqlite.insert
        return make(table).values(**values).on_conflict_do_nothing()

    def rewrite(self) -> None:
        """Write a file anew, so that nothing is left in it of lines that were taken out."""
        if self.path is None:
            return
        with self._faults():
            raw = self._engine.raw_connection()
            try:
                for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                    raw.cursor().execute(statement)
            finally:
                raw.close()

    def close(self) -> None:
        """Close every connection; the next use opens new ones."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, writes: bool) -> Iterator[Connection]:
        self._notice_fork()
        # Memory has one connection for all threads, which take turns; elsewhere the database arranges that.
        turn = self._turn if self.is_memory else nullcontext()
        with turn, self._faults(), self._engine.connect() as plain:
            connection = plain.execution_options(acex_writes=writes)
            with connection.begin() as transaction:
                yield connection
                if not writes:
                    transaction.rollback()  # there is nothing to commit, which a damaged file may refuse

    def _connect(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.RLock()
        if self.url.drivername != "sqlite":
            self._engine = _postgres_engine(self.url)
            return
        # A thread that queues for the writer's turn holds a connection: there may be as many as there are threads.
        pool: dict[str, Any] = {"poolclass": StaticPool} if self.is_memory else {"max_overflow": -1}
        self._engine = create_engine(
            self.url, connect_args={"check_same_thread": False, "timeout": BUSY_SECONDS}, **pool
        )
        event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_sqlite)

    def _notice_fork(self) -> None:
        """In a forked process, use connections of its own: those of the parent must not even be closed here."""
        if os.getpid() == self._pid:
            return
        if self.is_memory:
            raise LedgerFailed(
                "A ledger in memory belongs to the process that made it: answers written here would be lost. "
                "Give the ledger a file, such as ledger='answers.db'."
            )
        self._inherited.append(self._engine)  # kept, since forgetting it would close its connections
        self._connect()

    def _prepare(self) -> None:
        with self._transaction(writes=False) as connection:
            if version_of(connection) == newest_version():
                return  # without a write, for the file may be read-only
        if self.path is not None:
            with self._faults():
                _write_ahead(self._engine)
        with self._transaction(writes=True) as connection:
            if connection.dialect.name == "postgresql":
                # Two processes that both find no tables would both create them.
                connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            migrate(connection)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, SQLAlchemyError, UnicodeDecodeError) as error:  # the last of a driver's own words
            cause = error.orig if isinstance(error, DBAPIError) else error
            code = "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2])
            words = _scrubbed(str(cause).strip(), self.url)
            said = f"{ADVICE[code]} ({words})" if code in ADVICE else words
            raise LedgerFailed(f"Ledger {self.name}: {said}.") from error
        except LedgerFailed as error:
            raise type(error)(f"Ledger {self.name}: {error}") from None


def _of_memory(name: str) -> Journal:
    """The journal of a ledger in memory, which asks nothing of the disk: where there is no room it goes without."""
    mark = hashlib.sha256(name.encode()).hexdigest()[:16]
    try:
        journal = Journal(state_folder() / f"memory-{mark}-", name, makes_folder=True, of_memory=True)
        journal.reserve(1)
    except LedgerFailed as error:
        warnings.warn(f"If this process is killed, what it paid for is lost: {error}", stacklevel=2)
        return Journal(None, "")
    return journal


def _as_url(where: str | os.PathLike[str] | None) -> URL:
    if where is None or where == ":memory:":
        return URL.create("sqlite")
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(f"ledger must be a path, a URL or None, got {type(where).__name__}.")
    if "://" not in os.fspath(where):
        # Absolute, so that a worker in another folder finds the same file.
        return URL.create("sqlite", database=str(Path(where).expanduser().resolve()))
    try:
        url = make_url(os.fspath(where))
    except (ArgumentError, ValueError):  # what came is not shown, for there may be a password in it
        raise ValueError("ledger: this is not a URL; expected one like postgresql://user@host:5432/database.") from None
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite":
        return _as_url(url.database)
    raise ValueError(f"ledger: expected a path or a URL of sqlite or postgresql, got {_without_secrets(url)!r}.")


def shown(where: str | os.PathLike[str]) -> str:
    """A path or URL of a ledger as it may be shown, without passwords."""
    return _without_secrets(_as_url(where)) if "://" in os.fspath(where) else os.fspath(where)


def _without_secrets(url: URL) -> str:
    hidden = {name: "***" for name in url.query if name.lower() in SECRETS}
    return url.update_query_dict(hidden).render_as_string().replace(quote("***"), "***")


def _scrubbed(words: str, url: URL) -> str:
    """Words of a driver without the passwords of the URL, should it repeat them."""
    for secret in (url.password, *(url.query.get(name) for name in SECRETS)):
        if isinstance(secret, str) and secret:
            words = words.replace(secret, "***").replace(quote(secret, safe=""), "***")
    return words


def _postgres_engine(url: URL) -> Engine:
    try:
        # The connection is tried first, since a server may have restarted between two questions. Each statement must
        # see what was committed while it waited for a lock, whatever the server's own default.
        return create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"A ledger on PostgreSQL needs {error.name}: install it with pip install 'acex[postgres]'."
        ) from error


def _prepare_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, not where Python guesses
    connection.execute("PRAGMA synchronous = FULL")  # a label that was paid for survives a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then wants to write is refused as "locked" when another wrote in between;
    # one that queues for writing from the start never is.
    writes = connection.get_execution_options().get("acex_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _write_ahead(engine: Engine) -> None:
    """Turn on the write-ahead log: readers and the writer do not wait for each other. The file remembers it."""
    patience = time.monotonic() + BUSY_SECONDS
    while True:
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # SQLite does not queue for this one change; several processes may be making the file at once.
            if "locked" not in str(error) or time.monotonic() > patience:
                raise
            time.sleep(0.02)
        finally:
            raw.close()


def _refuse_what_is_no_ledger(path: Path, checked: bool) -> None:
    """Raise, and leave the folder as it is, when the file is damaged, newer than this acex, or somebody else's."""
    if not path.exists() or path.stat().st_size == 0:
        return
    log = Path(f"{path}-wal")
    # SQLite would bring the answers of a log that a crash left behind into the file when it is closed: not into a file
    # that may be damaged. Without a log it is the other way round: only who may write tidies up what SQLite made.
    mode = "ro" if log.exists() and log.stat().st_size > 0 else "rw"
    address = f"file:{quote(str(path))}?mode={mode}"
    engine = create_engine(
        "sqlite://", poolclass=NullPool, creator=lambda: sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS)
    )
    with engine.connect() as connection:
        holds = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()  # views and others too
        if holds and version_of(connection) == 0:
            raise LedgerFailed("it is an SQLite file of something else; it was left as it is. Name another file.")
        if checked and path.stat().st_size <= CHECKED_BYTES:
            # Also whether the indexes agree with the tables: a row that is not found would be paid for again.
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
            if found != "ok":
                raise LedgerFailed(f"{ADVICE['SQLITE_CORRUPT']} ({found}).")
