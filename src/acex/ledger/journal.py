"""Answers that have arrived and are not in the database yet: on the disk before anything else happens with them.

An answer that a kill, a full disk or a server restart keeps out of the database is found here when the ledger is next
opened, or when the same row is claimed again. Each open ledger that claims rows has a journal: a file beside the SQLite
file, or in the user's state folder for a server. It is locked, which shows that its owner lives.

An entry is a line: CRC-32, space, JSON. Lines are written one after the other, and from the start again once all are in
the database; a number that only rises tells old lines from new. Space is allocated before a row is sent, so that a disk
that is full by then can still take the answer.
"""

from __future__ import annotations

import glob
import json
import os
import threading
import uuid
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from acex.errors import LedgerFailed
from acex.ledger.owner import forkable, lock
from acex.ledger.row_keys import PlainLabel, Scores
from acex.values import as_json

ALLOCATED = 2**16  # bytes of an empty journal: enough for some hundred rows
_flush = getattr(os, "fdatasync", os.fsync)


class Entry(NamedTuple):
    """Answers of a model that arrived together."""

    model: str
    rows: Sequence[str]
    labels: Sequence[PlainLabel]
    scores: Sequence[Scores | None] | None
    told_by: str
    used: str | None = None  # money, a decimal; None: all that was reserved


class Journal:
    """The journal of one open ledger.

    Args:
        prefix: what the paths of all journals of a ledger begin with; the id of the owner follows.
        ledger: the id of the ledger.
        makes_folder: create the folder if it is missing. Not beside an SQLite file, which may have been deleted.
    """

    def __init__(self, prefix: Path, ledger: str, *, makes_folder: bool = False) -> None:
        self.prefix, self._ledger, self._makes_folder = prefix, ledger, makes_folder
        self._begin()
        forkable.add(self)

    def _begin(self) -> None:
        self.owner: str | None = None  # once the file exists
        self._opened: FileIO | None = None
        self._turn = threading.RLock()
        self._end = self._number = 0  # where the next entry goes, and its number
        self.pending: list[Entry] = []  # not in the database yet

    def reserve(self, size: int) -> None:
        """Allocate this many bytes for answers.

        Raises:
            LedgerFailed: the disk is full, or the folder cannot be written.
        """
        try:
            with self._file() as file:
                missing = self._end + size - os.fstat(file.fileno()).st_size
                if missing > 0:
                    file.seek(0, os.SEEK_END)
                    _write(file, bytes(missing))
        except OSError as error:
            raise LedgerFailed(
                f"no space for a journal of answers, so nothing was asked ({error}). Free some space, or make the "
                f"folder writable; for a ledger on a server ACEX_STATE can name another folder."
            ) from error

    def write(self, entry: Entry) -> None:
        """Keep an entry until `done`; on the disk when this returns, unless the disk fails."""
        self.pending.append(entry)  # before the disk: whatever interrupts the rest, this process knows the answer
        with suppress(OSError), self._file() as file:  # if the disk fails, the database must take it
            self._number += 1
            body = json.dumps({"number": self._number, "ledger": self._ledger, **entry._asdict()}, default=as_json)
            line = b"%08x %s\n" % (zlib.crc32(body.encode()), body.encode())
            file.seek(self._end)
            _write(file, line)
            _flush(file.fileno())
            self._end += len(line)

    def done(self, entry: Entry) -> None:
        """Forget an entry that is in the database."""
        with self._file() as file:
            self.pending = [kept for kept in self.pending if kept is not entry]
            if not self.pending and self._end:
                file.seek(0)
                _write(file, b"\0")  # need not reach the disk: recording an answer twice does no harm
                self._end = 0
                if os.fstat(file.fileno()).st_size > ALLOCATED:
                    file.truncate(ALLOCATED)

    def others(self) -> Iterator[tuple[Path, list[Entry]]]:
        """The journals of other owners, dead or alive, with their entries of this ledger."""
        prefix = self.prefix
        for path in prefix.parent.glob(f"{glob.escape(prefix.name)}*"):
            if path.name != f"{prefix.name}{self.owner}":
                yield path, [entry for ledger, entry in _entries(path) if ledger == self._ledger]

    def remove(self, path: Path) -> None:
        """Remove the journal of a dead owner, unless it has entries of another ledger."""
        with suppress(OSError), path.open("r+b", buffering=0) as file:
            if lock(file) and all(ledger == self._ledger for ledger, _ in _entries(path)):
                path.unlink()

    def is_alive(self, owner: str) -> bool:
        """Does the owner of this journal live?"""
        try:
            with Path(f"{self.prefix}{owner}").open("r+b", buffering=0) as file:
                return not lock(file)
        except PermissionError:  # another user's: the lease decides
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Close the file; it stays if it has entries."""
        if self._opened is not None:
            self._closing()
        self.owner = self._opened = None

    def leave_to_parent(self) -> None:
        """In a forked process: entries and lock are the parent's, and the lock must not outlive it here."""
        if self._opened is not None:
            self._closing.detach()
            self._opened.close()
        self._begin()

    @contextmanager
    def _file(self) -> Iterator[FileIO]:
        """The file, with no other thread writing to it meanwhile."""
        with self._turn:
            if self._opened is None:
                self._open()
            assert self._opened is not None
            yield self._opened

    def _open(self) -> None:
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
        _write(file, bytes(ALLOCATED))
        os.fsync(file.fileno())
        with suppress(OSError):  # a folder cannot be opened everywhere
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self._opened, self.owner = file, owner


def _close(file: FileIO, path: Path) -> None:
    with suppress(OSError):
        file.seek(0)
        if file.read(1) == b"\0":
            path.unlink()
    file.close()


def state_folder() -> Path:
    """Where journals of servers are kept: `ACEX_STATE`, or a folder by the XDG rules."""
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Path(os.environ.get("ACEX_STATE") or Path(base) / "acex")
    except RuntimeError as error:
        raise LedgerFailed(f"{error} Set ACEX_STATE to a folder for the journal.") from None


def _entries(path: Path) -> Iterator[tuple[str, Entry]]:
    """The complete entries of a journal, each with the id of its ledger."""
    number = 0
    with suppress(OSError):
        for line in path.read_bytes().split(b"\n"):
            checksum, _, body = line.partition(b" ")
            entry: Any = json.loads(body) if checksum == b"%08x" % zlib.crc32(body) else {"number": 0}
            if entry["number"] <= number:
                return  # cut off, or written before
            number = entry.pop("number")
            if entry["scores"] is not None:
                entry["scores"] = [s and [(label, p) for label, p in s] for s in entry["scores"]]
            yield entry.pop("ledger"), Entry(**entry)


def _write(file: FileIO, data: bytes) -> None:
    if file.write(data) != len(data):
        raise OSError("the disk is full")
