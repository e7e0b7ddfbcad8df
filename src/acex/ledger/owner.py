"""Whether the process that claimed a row still lives: locks that the operating system or the server releases.

An owner is an open ledger that claims rows. It holds a lock on the file of its journal; for PostgreSQL it holds an
advisory lock as well, which other machines can see.
"""

from __future__ import annotations

import os
import stat
import sys
import uuid
import weakref
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError


class AdvisoryLock:
    """A connection to PostgreSQL that holds the lock of an owner; the server releases it when the process ends."""

    def __init__(self, engine: Engine, owner: str) -> None:
        self.owner = owner
        self._connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._connection.execute(select(func.pg_advisory_lock(_key(owner))))

    @staticmethod
    def is_alive(connection: Connection, owner: str) -> bool:
        """Does the owner with this id live?"""
        try:
            return not connection.scalar(select(func.pg_try_advisory_xact_lock_shared(_key(owner))))
        except ValueError:  # the id of an owner in acex 0.2
            return False

    def is_held(self) -> bool:
        """Has the connection survived?"""
        with suppress(SQLAlchemyError):
            return self._connection.scalar(select(1)) == 1
        return False

    def close(self) -> None:
        """Release the lock."""
        with suppress(SQLAlchemyError):
            self._connection.invalidate()
            self._connection.close()

    def leave_to_parent(self) -> None:
        """In a forked process: let go of the socket, without the message that would end the parent's session."""
        with suppress(Exception), open(os.devnull, "rb+") as null:
            connection: Any = self._connection.connection.driver_connection
            os.dup2(null.fileno(), connection.fileno())


def lock(file: FileIO) -> bool:
    """Lock the file until it is closed or the process ends; False if another holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**30)  # beyond the content, which others read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def create_locked(prefix: Path) -> tuple[str, FileIO]:
    """A new owner: its id, and the file `prefix` + id, which is locked for as long as it is open."""
    while True:
        owner = uuid.uuid4().hex[:16]
        path = Path(f"{prefix}{owner}")
        file = FileIO(path, "x+", opener=lambda name, flags: os.open(name, flags, 0o600))
        if lock(file) and path.exists():  # no one else took it for one left behind
            return owner, file
        file.close()


def open_regular(path: Path, mode: str) -> FileIO:
    """A file; OSError if it is not a regular one. Opening a FIFO must not wait for a writer."""
    file = FileIO(path, mode, opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0)))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is not a regular file")
    return file


def has_locked(path: Path) -> bool:
    """Does the owner of this file live?"""
    try:
        with open_regular(path, "r+") as file:
            return not lock(file)
    except PermissionError:  # another user's: the lease decides
        return True
    except OSError:
        return False


def _key(owner: str) -> int:
    return int.from_bytes(bytes.fromhex(owner), signed=True)


# What has files or connections that a forked process must leave to its parent: objects with `leave_to_parent`.
forkable: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(forkable):
        each.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
