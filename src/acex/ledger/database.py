"""The database of a ledger, an SQLite file or a PostgreSQL server: transactions, error messages, clock of leases."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, Table, create_engine, event, func, make_url, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from acex.errors import LedgerFailed, optional
from acex.ledger.journal import Journal, forkable
from acex.ledger.schema import identity, migrate, newest_version, version_of

BUSY_SECONDS = 60.0  # longest wait for SQLite's single writer; transactions here take milliseconds
CHECKED_BYTES = 64 * 2**20  # files up to this size are checked when opened, in well under a second
MIGRATION_LOCK = 0x61636578  # "acex"

ADVICE = {  # what to do about errors of SQLite, by the first two words of their names
    "SQLITE_FULL": "Recorded answers are safe; free some space and run the same call again",
    "SQLITE_IOERR": "Recorded answers are safe; check free space, quota and disk health, and run the same call again",
    "SQLITE_READONLY": "Nothing was asked or changed; make the file and its folder writable",
    "SQLITE_CANTOPEN": "The folder must exist and be writable, since SQLite keeps files beside the ledger",
    "SQLITE_NOTADB": "It is not an SQLite file and was not changed; use another file for the ledger",
    "SQLITE_CORRUPT": "The file is damaged and was not changed; restore it from a backup",
    "SQLITE_BUSY": f"Another program has locked it for more than {BUSY_SECONDS:.0f} seconds",
}


class Database:
    """One database with the tables of a ledger.

    Args:
        where: a path of an SQLite file, or a URL of PostgreSQL.
        checked: whether to refuse a damaged file and migrate an older ledger. `acex ledger check` does neither.
    """

    def __init__(self, where: str | os.PathLike[str], *, checked: bool = True) -> None:
        self.url = as_url(where)
        self._engine = _sqlite_engine(self.url) if self.is_sqlite else _postgres_engine(self.url)
        # Connections by thread id: none is shared, so that a thread can close its own after an interrupt.
        self._idle: dict[int, Connection] = {}
        self._in_use: dict[int, Any] = {}
        self._inherited: list[object] = []
        forkable.add(self)
        try:
            if checked:
                self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def is_sqlite(self) -> bool:
        return self.url.drivername == "sqlite"

    @property
    def path(self) -> Path | None:
        """The SQLite file."""
        return Path(self.url.database) if self.is_sqlite and self.url.database else None

    @property
    def address(self) -> str:
        """The path or URL that opens this database again, including the password."""
        return str(self.path or self.url.render_as_string(hide_password=False))

    @property
    def name(self) -> str:
        """The address without passwords, which the parameters of a URL may contain as well."""
        return str(self.path or self.url.set(query={}).render_as_string())

    def journal(self) -> Journal:
        """A journal for answers that are not in this database yet: beside the file, or in the state folder."""
        with self.read() as connection:
            ledger = connection.scalars(select(identity.c.id)).one()
        if self.path is not None:
            return Journal(Path(f"{self.path}-answers-"), ledger)
        folder = state_folder()
        with suppress(OSError):  # the first claim reports it
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Journal(folder / f"{ledger}-", ledger)

    # -- transactions --------------------------------------------------------------------------------------------

    def read(self) -> AbstractContextManager[Connection]:
        """A transaction for reading, which is always rolled back."""
        return self._transaction(writes=False)

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction that is committed durably when the block ends, or rolled back if the block raises."""
        return self._transaction(writes=True)

    def upsert(
        self,
        connection: Connection,
        table: Table,
        lines: Sequence[dict[str, Any]],
        *,
        replaced: Iterable[str] = (),
        added: Iterable[str] = (),
    ) -> None:
        """Insert lines; if a key exists, replace its values in columns `replaced` and add to those in `added`."""
        if not lines:
            return
        insert = (sqlite.insert if self.is_sqlite else postgresql.insert)(table)
        changes: dict[str, Any] = {name: insert.excluded[name] for name in replaced}
        changes |= {name: table.c[name] + insert.excluded[name] for name in added}
        if changes:
            insert = insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=changes)
        else:
            insert = insert.on_conflict_do_nothing()
        connection.execute(insert, lines)

    def compact(self) -> None:
        """Rewrite an SQLite file, so that it contains no remains of deleted rows."""
        if self.path is None:
            return
        with self._readable_errors():
            self._run_alone("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close every connection; the next use opens new ones."""
        while self._idle:
            self._idle.popitem()[1].close()

    # -- clock ---------------------------------------------------------------------------------------------------

    def now(self, connection: Connection) -> float:
        """Seconds on the clock of leases, which all processes that use this database share.

        SQLite is used on one machine, whose monotonic clock cannot be set. It starts again after a reboot, but then no
        owner of a claim is alive, so its lease does not matter. A PostgreSQL server has only its time of day.
        """
        if self.is_sqlite:
            return time.monotonic()
        return float(connection.scalar(select(func.extract("epoch", func.clock_timestamp()))) or 0)

    # -- connections ---------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, writes: bool) -> Iterator[Connection]:
        me = threading.get_ident()
        with self._readable_errors():
            connection = self._connection(me).execution_options(acex_writes=writes)
            raw = self._in_use[me]
            try:
                with connection.begin() as transaction:
                    yield connection
                    if not writes:
                        transaction.rollback()
                self._idle[me] = connection
            finally:
                # An interrupt may hit SQLAlchemy at any point. A transaction left open would block other writers.
                if self._idle.get(me) is not connection:
                    self._end(raw)
                if self._in_use.get(me) is raw:
                    del self._in_use[me]

    def _connection(self, me: int) -> Connection:
        """The connection of this thread, marked as in use."""
        left = self._in_use.pop(me, None)
        connection = self._idle.pop(me, None)
        if left is not None:  # an interrupt hit before the block of `with` began
            left.rollback()
            connection = None
        if connection is not None and not self.is_sqlite and not self._is_connected(connection):
            connection = None
        if connection is None:
            connection = self._engine.connect()
            connection.detach()
        self._in_use[me] = connection.connection.dbapi_connection
        return connection

    def _end(self, raw: Any) -> None:
        """Roll back a transaction, and close its connection."""
        with suppress(self._engine.dialect.loaded_dbapi.Error):
            raw.rollback()  # while a cursor is alive, closing alone would not end a transaction of SQLite
            raw.close()

    def _is_connected(self, connection: Connection) -> bool:
        """Whether the connection still works: the server may have restarted since the last transaction."""
        with suppress(SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error):
            raw: Any = connection.connection.dbapi_connection
            return self._engine.dialect.do_ping(raw)
        return False

    def leave_to_parent(self) -> None:
        """In a forked process, open new connections. Those of the parent must not even be closed here."""
        # Kept alive, since garbage collection would close them.
        self._inherited += [self._idle, self._in_use]
        self._idle, self._in_use = {}, {}

    def _prepare(self) -> None:
        with self.read() as connection:  # before any write: the file may be read-only, or belong to another program
            version = version_of(connection)
            if self.path is not None and self.path.stat().st_size <= CHECKED_BYTES:
                # Includes the indexes: a row that they miss would be paid for again.
                found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
                if found != "ok":
                    raise LedgerFailed(f"{found}. {ADVICE['SQLITE_CORRUPT']}.")
        if self.path is not None:
            # Write-ahead log: readers and the writer do not block each other. The file stores the mode; if several
            # processes create the file at once, one of them sets it.
            with suppress(sqlite3.OperationalError):
                self._run_alone("PRAGMA journal_mode = WAL")
        if version == newest_version():
            return
        with self.write() as connection:
            if not self.is_sqlite:
                # Otherwise two processes that both find no tables would both create them.
                connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            migrate(connection)

    def _run_alone(self, *statements: str) -> None:
        """Run statements that SQLite does not allow in a transaction."""
        raw = self._engine.raw_connection()
        try:
            for statement in statements:
                raw.cursor().execute(statement)
        finally:
            raw.close()

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, SQLAlchemyError, UnicodeDecodeError) as error:  # the last: from a driver's message
            cause = error.orig if isinstance(error, DBAPIError) else error
            code = "_".join(getattr(cause, "sqlite_errorname", "").split("_")[:2])
            advice = f". {ADVICE[code]}" if code in ADVICE else ""
            raise LedgerFailed(f"Ledger {self.name}: {str(cause).strip()}{advice}.") from error
        except LedgerFailed as error:
            raise type(error)(f"Ledger {self.name}: {error}") from None
        except AssertionError as error:  # SQLAlchemy asserts in `finally`, which hides an interrupt
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise


def as_url(where: str | os.PathLike[str]) -> URL:
    """The address of a ledger; a path becomes absolute."""
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(f"ledger must be a path or a URL, got {type(where).__name__}.")
    if "://" not in os.fspath(where):
        # Absolute, so that a worker in another folder finds the same file.
        return URL.create("sqlite", database=str(Path(where).expanduser().resolve()))
    try:
        url = make_url(os.fspath(where))
    except (ArgumentError, ValueError):  # the value is not shown, since it may contain a password
        raise ValueError("ledger: this is not a URL; expected one like postgresql://user@host:5432/database.") from None
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database:
        return as_url(url.database)
    raise ValueError(f"ledger: expected a path or a URL of sqlite or postgresql, got {url.drivername}.")


def state_folder() -> Path:
    """The folder of journals of servers: `ACEX_STATE`, or else by the XDG base directory specification."""
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(os.environ.get("ACEX_STATE") or Path(base) / "acex")
    except RuntimeError as error:
        raise LedgerFailed(f"{error} Set ACEX_STATE to a folder for the journal.") from None


def _sqlite_engine(url: URL) -> Engine:
    arguments = {"check_same_thread": False, "timeout": BUSY_SECONDS}
    engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgres_engine(url: URL) -> Engine:
    optional("psycopg", "A ledger on PostgreSQL (psycopg)", "postgres")
    # Each statement must see what was committed while it waited for a lock; the server's default may differ.
    return create_engine(url, poolclass=NullPool, isolation_level="READ COMMITTED")


def _configure_sqlite(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin in `_begin_sqlite`
    connection.execute("PRAGMA synchronous = FULL")  # a committed answer survives a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later fails as "locked" if another one wrote in between. One that takes
    # the write lock from the start waits for its turn instead.
    writes = connection.get_execution_options().get("acex_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
