"""Journals: answers that are not in the database yet, written to disk before anything else uses them.

If a kill, a full disk or a server restart keeps an answer out of the database, it is read from here when the ledger is
next opened or the same row is claimed again. Each open ledger that claims rows has a journal: a file beside the SQLite
file or, for a server, in the user's state folder. The open ledger is the *owner* of its claims, and holds a lock on the
file. The operating system releases the lock when the process ends, which shows others that the owner is dead.

An entry is a line of JSON. Once all entries are in the database, they are overwritten with NUL bytes: a line that has a
NUL byte or no newline is not an entry. Some space is allocated from the start, so that an answer fits on a full disk.
"""

from __future__ import annotations

import glob
import json
import os
import sys
import threading
import uuid
import warnings
import weakref
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from io import FileIO
from pathlib import Path
from typing import Any

from acex.ledger.base import Entry
from acex.ledger.row_keys import plain_label
from acex.values import as_json

ALLOCATED = 2**16  # size of an empty journal in bytes: enough for some hundred rows
_flush = getattr(os, "fdatasync", os.fsync)
# Objects whose files or connections a forked process must leave to its parent (by calling `leave_to_parent`).
forkable: weakref.WeakSet[Any] = weakref.WeakSet()


class Journal:
    """The journal of one open ledger: a file named `prefix` + id of its owner, beside those of other owners."""

    def __init__(self, prefix: Path, ledger: str) -> None:
        self.prefix, self._ledger = prefix, ledger
        self._begin()
        forkable.add(self)

    def _begin(self) -> None:
        self.owner: str | None = None  # None until the file exists
        self._file: FileIO | None = None
        self._lock = threading.RLock()
        self._end = 0  # where the next entry goes
        self.pending: list[Entry] = []  # not in the database yet

    def open(self) -> FileIO:
        """The file, created and locked on first use; OSError if the disk is full or not writable."""
        with self._lock:
            if self._file is None:
                owner, file = create_locked(self.prefix)
                self._closing = weakref.finalize(self, _close, file, Path(f"{self.prefix}{owner}"))
                _write(file, bytes(ALLOCATED))
                os.fsync(file.fileno())
                self.owner, self._file = owner, file
            return self._file

    def write(self, entry: Entry) -> None:
        """Store an entry until `done`; it is on disk when this returns, unless the disk fails."""
        self.pending.append(entry)  # first, so that this process knows the answer whatever interrupts the rest
        line = json.dumps({"ledger": self._ledger, **entry._asdict()}, default=as_json).encode() + b"\n"
        with suppress(OSError), self._lock:  # if this fails, the answer may still reach the database
            file = self.open()
            file.seek(self._end)
            _write(file, line)
            _flush(file.fileno())
            self._end += len(line)

    def done(self, entry: Entry) -> None:
        """Remove an entry that is now in the database."""
        with self._lock:
            self.pending = [kept for kept in self.pending if kept is not entry]
            if self._file is not None and not self.pending:
                self._file.seek(0)
                self._file.write(bytes(self._end))  # not flushed: recording an answer twice does no harm
                self._end = 0

    def others(self) -> Iterator[tuple[Path, list[Entry]]]:
        """The journals of other owners, dead or alive, each with its entries for this ledger."""
        for path in self.prefix.parent.glob(f"{glob.escape(self.prefix.name)}*"):
            if path.is_file() and path.name != f"{self.prefix.name}{self.owner}":  # opening a FIFO would block
                yield path, [entry for ledger, entry in _entries(path) if entry and ledger == self._ledger]

    def remove(self, path: Path) -> None:
        """Remove the journal of a dead owner, unless it holds anything but entries of this ledger."""
        with suppress(OSError), FileIO(path, "r+") as file:
            if lock(file) and all(ledger == self._ledger for ledger, _ in _entries(path)):
                path.unlink()

    def close(self) -> None:
        """Close the file, and delete it unless it has entries."""
        if self._file is not None:
            self._closing()
        self.owner = self._file = None

    def leave_to_parent(self) -> None:
        """In a forked process, forget entries and lock: they are the parent's, and the lock must not outlive it."""
        if self._file is not None:
            self._closing.detach()
            self._file.close()
        self._begin()


def _close(file: FileIO, path: Path) -> None:
    with suppress(OSError):
        file.seek(0)
        if file.read(1) == b"\0":
            path.unlink()
    file.close()


def _entries(path: Path) -> Iterator[tuple[str, Entry | None]]:
    """The entries of a journal, each with the id of its ledger; None for a line that cannot be parsed."""
    with suppress(OSError), FileIO(path, "r") as file:
        for line in file.readall().split(b"\n")[:-1]:
            if b"\0" not in line:
                yield _parse(line, path)


def _parse(line: bytes, path: Path) -> tuple[str, Entry | None]:
    try:
        fields = json.loads(line)
        ledger, entry = fields.pop("ledger"), Entry(**fields)
        "".join([ledger, entry.model, entry.recorded_by, *entry.rows]).encode()
        labels = [plain_label(label) for label in entry.labels]
        scores = entry.scores and [s and [(plain_label(name), float(p)) for name, p in s] for s in entry.scores]
        if not (len(entry.rows) == len(labels) == len(scores or labels) and Decimal(entry.used or 0).is_finite()):
            raise ValueError(line)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        warnings.warn(f"{path}: a line that is not an entry was ignored; the file stays as it is.", stacklevel=2)
        return "", None
    return ledger, entry._replace(labels=labels, scores=scores)


def _write(file: FileIO, data: bytes) -> None:
    if file.write(data) != len(data):
        raise OSError("the disk is full")


# -- locks on files, and forks -----------------------------------------------------------------------------------------


def lock(file: FileIO) -> bool:
    """Lock the file until it is closed or the process ends; False if another process or ledger holds the lock."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(2**30)  # a byte beyond the content, which stays readable for others
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def create_locked(prefix: Path) -> tuple[str, FileIO]:
    """The id of a new owner, and the file `prefix` + id, which is locked until it is closed."""
    while True:
        owner = uuid.uuid4().hex[:16]
        path = Path(f"{prefix}{owner}")
        file = FileIO(path, "x+", opener=lambda name, flags: os.open(name, flags, 0o600))
        if lock(file) and path.exists():  # no one has mistaken it for an abandoned one and removed it
            return owner, file
        file.close()


def has_locked(path: Path) -> bool:
    """Whether the owner of this file is alive."""
    try:
        with FileIO(path, "r+") as file:
            return not lock(file)
    except PermissionError:  # another user's: only the lease decides
        return True
    except OSError:
        return False


def _after_fork() -> None:
    for each in list(forkable):
        each.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
