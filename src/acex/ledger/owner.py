"""Who owns a claim, and whether that process still lives: a lock that the operating system or the server releases.

An owner is an open ledger that claims rows. For SQLite it holds a lock on a file beside the ledger, in which it also
keeps its journal; for PostgreSQL an advisory lock as well, which other machines can see.
"""

from __future__ import annotations

import os
import sys
import uuid
import weakref
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError


class OwnerFile:
    """A file that this process has locked.

    Args:
        prefix: what the paths of all such files of a ledger begin with; the id of the owner follows.
        makes_folder: create the folder if it is missing. Not beside an SQLite file, which may have been deleted.
    """

    def __init__(self, prefix: Path, *, makes_folder: bool = False) -> None:
        self.prefix, self._makes_folder = prefix, makes_folder
        self.id: str | None = None  # once the file exists
        self._file: FileIO | None = None
        _inherited.add(self)

    def open(self, size: int) -> FileIO:
        """The file, of this size at least if it is new."""
        if self._file is not None:
            return self._file
        if self._makes_folder:
            self.prefix.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            owner = uuid.uuid4().hex[:16]
            path = Path(f"{self.prefix}{owner}")
            file = FileIO(path, "x+", opener=lambda name, flags: os.open(name, flags, 0o600))
            if lock(file) and path.exists():  # no one else took it for one left behind
                break
            file.close()
        self._closing = weakref.finalize(self, _close, file, path)
        file.write(bytes(size))
        os.fsync(file.fileno())
        with suppress(OSError):  # a folder cannot be opened everywhere
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self._file, self.id = file, owner
        return file

    def is_alive(self, owner: str) -> bool:
        """Does the owner with this id live?"""
        try:
            with Path(f"{self.prefix}{owner}").open("r+b", buffering=0) as file:
                return not lock(file)
        except PermissionError:  # another user's: the lease decides
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; it stays if its first byte is not zero."""
        if self._file is not None:
            self._closing()
        self._file = self.id = None

    def leave_to_parent(self) -> None:
        """In a forked process: the lock is the parent's, and must not outlive it here."""
        if self._file is not None:
            self._closing.detach()
            self._file.close()
        self._file = self.id = None


class AdvisoryLock:
    """A connection to PostgreSQL that holds the lock of an owner; the server releases it when the process ends."""

    def __init__(self, engine: Engine, owner: str) -> None:
        self.owner = owner
        self._connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._connection.execute(select(func.pg_advisory_lock(_key(owner))))
        _inherited.add(self)

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
        """In a forked process: the socket is the parent's, and closing it as usual would end the parent's session."""
        with suppress(Exception), open(os.devnull, "rb+") as null:
            connection: Any = self._connection.connection.driver_connection
            os.dup2(null.fileno(), connection.fileno())


def lock(file: Any) -> bool:
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


def _key(owner: str) -> int:
    return int.from_bytes(bytes.fromhex(owner), signed=True)


def _close(file: FileIO, path: Path) -> None:
    with suppress(OSError):
        file.seek(0)
        if file.read(1) == b"\0":
            path.unlink()
    file.close()


_inherited: weakref.WeakSet[OwnerFile | AdvisoryLock] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [lock.leave_to_parent() for lock in list(_inherited)])
