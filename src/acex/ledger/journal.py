"""Answers that have arrived and are not in the database yet: on the disk before anything else happens with them.

An answer that a kill, a full disk or a server restart keeps out of the database is found here when the ledger is next
opened, or when the same row is claimed again. Each open ledger that claims rows has a journal: a file beside the SQLite
file, or in the user's state folder for a server.

An entry is a line: CRC-32, space, JSON. Lines are written one after the other, and from the start again once all are in
the database; a number that only rises tells old lines from new. Space is allocated before a row is sent, so that a disk
that is full by then can still take the answer.
"""

from __future__ import annotations

import glob
import json
import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from acex.errors import LedgerFailed
from acex.ledger.owner import OwnerFile, lock
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
    """The journal of one open ledger, in the file of its owner. `ledger` is the id of the ledger."""

    def __init__(self, owner: OwnerFile, ledger: str) -> None:
        self.owner, self._ledger = owner, ledger
        self._begin()

    def _begin(self) -> None:
        self._pid, self._turn = os.getpid(), threading.RLock()
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
        self._notice_fork()
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
        prefix = self.owner.prefix
        for path in prefix.parent.glob(f"{glob.escape(prefix.name)}*"):
            if path.name != f"{prefix.name}{self.owner.id}":
                yield path, [entry for ledger, entry in _entries(path) if ledger == self._ledger]

    def remove(self, path: Path) -> None:
        """Remove the journal of a dead owner, unless it has entries of another ledger."""
        with suppress(OSError), path.open("r+b", buffering=0) as file:
            if lock(file) and all(ledger == self._ledger for ledger, _ in _entries(path)):
                path.unlink()

    @contextmanager
    def _file(self) -> Iterator[FileIO]:
        """The file, with no other thread writing to it meanwhile."""
        self._notice_fork()
        with self._turn:
            yield self.owner.open(ALLOCATED)

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():  # the entries are the parent's
            self._begin()


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
