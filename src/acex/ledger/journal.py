"""Answers that have arrived and are not settled yet: on the disk before anything else is done with them.

A ledger that a kill, a full disk or a server's restart keeps from settling an answer finds it here when it is next
opened, or when somebody wants to ask the same row again. Each open ledger has a journal of its own, a small file beside
the SQLite file, or in the user's state folder for a server. An entry is a line: a CRC-32, then JSON. Lines are written
one after the other, and from the start again once all are settled; a number that only rises tells old ones from new.
A ledger in memory is on no disk, so that its journal keeps every answer until the process ends: one that stays is
of a process that was killed, or in which a model failed (`stay`).

Its room is taken before a row is sent, so that a disk that is full by then can still keep the answer.
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
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from acex.errors import LedgerFailed
from acex.ledger.forms import PlainLabel, Scores
from acex.values import as_json

try:
    import fcntl
except ImportError:  # Windows, where a file in use cannot be removed anyhow
    fcntl = None  # type: ignore[assignment]

ROOM = 2**16  # bytes that a journal takes at least: some hundred rows
_flush = getattr(os, "fdatasync", os.fsync)


class Entry(NamedTuple):
    """Answers of a model that arrived together."""

    model: str
    rows: Sequence[str]
    labels: Sequence[PlainLabel]
    scores: Sequence[Scores | None] | None
    told_by: str


class Journal:
    """The journal of one open ledger, and those that others have left beside it.

    Args:
        prefix: what the paths of all journals of the ledger begin with; None keeps entries in memory only.
        ledger: what tells the ledger from others.
        makes_folder: make the folder where it is missing. Not beside a ledger, which may have been removed with it.
        of_memory: the ledger ends with the process, and so does the journal, unless it is told to stay.
    """

    def __init__(
        self, prefix: Path | None, ledger: str, *, makes_folder: bool = False, of_memory: bool = False
    ) -> None:
        self._prefix, self._ledger, self._makes_folder, self._of_memory = prefix, ledger, makes_folder, of_memory
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.RLock()
        self._file: FileIO | None = None
        self._end = self._number = 0  # where the next entry goes, and its number
        self._open: list[Entry] = []  # written, and not settled
        self.stuck: list[Entry] = []  # those of them that the ledger did not take; they are to be settled first

    @property
    def is_on_disk(self) -> bool:
        """Does it outlast the process?"""
        return self._prefix is not None

    def reserve(self, size: int) -> None:
        """Make room for as many bytes of answers.

        Raises:
            LedgerFailed: there is none, or the folder cannot be written.
        """
        if self._prefix is None:
            return
        try:
            with self._turn:
                self._notice_fork()
                file = self._file or self._create(self._prefix)
                missing = self._end + size - os.fstat(file.fileno()).st_size
                if missing > 0:
                    file.seek(0, os.SEEK_END)
                    _write(file, bytes(missing))
        except OSError as error:
            raise LedgerFailed(
                f"no room to keep answers until they are settled, so nothing was asked ({error}). Make room, or the "
                f"folder writable; for a ledger on a server the environment variable ACEX_STATE names another folder."
            ) from error

    def write(self, entry: Entry) -> None:
        """Keep an entry; it is on the disk when this returns, unless the disk does not take it."""
        with self._turn:
            self._notice_fork()
            self._open.append(entry)
            if self._prefix is None:
                return
            self._number += 1
            line = _line({"number": self._number, "ledger": self._ledger, **entry._asdict()})
            with suppress(OSError):  # then it is the ledger's turn, and this process still knows it
                file = self._file or self._create(self._prefix)
                file.seek(self._end)
                _write(file, line)
                _flush(file.fileno())
                self._end += len(line)

    def keep(self, entry: Entry) -> None:
        """Remember that the ledger did not take an entry."""
        with self._turn:
            self.stuck.append(entry)

    def settled(self, entry: Entry) -> None:
        """Forget an entry that the ledger has."""
        with self._turn:
            self._open = [kept for kept in self._open if kept is not entry]
            self.stuck = [kept for kept in self.stuck if kept is not entry]
            if self._file is not None and not self._open and self._end and not self._of_memory:
                self._file.seek(0)
                _write(self._file, b"\0")  # need not reach the disk: an answer that is told twice does no harm
                self._end = 0
                if os.fstat(self._file.fileno()).st_size > ROOM:
                    self._file.truncate(ROOM)

    def left(self) -> Iterator[tuple[Path, list[Entry]]]:
        """What the journals of others hold, who may be gone, or about to settle it themselves (not in memory)."""
        if self._prefix is None:
            return
        own = None if self._file is None else Path(str(self._file.name))
        for path in self._prefix.parent.glob(f"{glob.escape(self._prefix.name)}*"):
            if path != own and not (self._of_memory and _in_use(path)):
                yield path, _entries(path, self._ledger)

    def remove(self, path: Path) -> None:
        """Remove a journal that somebody else has left, if all of it is of this ledger and its owner is gone."""
        with suppress(OSError), path.open("r+b", buffering=0) as file:
            if _lock(file) and len(_entries(path, self._ledger)) == len(_entries(path, None)):
                path.unlink()

    def stay(self) -> None:
        """Leave what is written to the next process, also where the ledger ends with this one."""
        with self._turn:
            if self._file is not None and self._of_memory and self._pid == os.getpid():
                self._removing.detach()
                weakref.finalize(self, self._file.close)

    def close(self) -> None:
        """Give up the file; it stays where it is if there is an answer in it that is not settled."""
        with self._turn:
            if self._file is not None and self._pid == os.getpid():
                self._removing()
            self._begin()

    def _create(self, prefix: Path) -> FileIO:
        if self._makes_folder:
            prefix.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            path = Path(f"{prefix}{uuid.uuid4().hex[:12]}")
            file = FileIO(path, "x+", opener=lambda name, flags: os.open(name, flags, 0o600))
            if _lock(file) and path.exists():  # nobody took it for one that was left behind
                break
            file.close()
        # What was never written has no place on the disk yet: then each entry would have to change the folder as well.
        _write(file, bytes(ROOM))
        os.fsync(file.fileno())
        with suppress(OSError):  # not everywhere can a folder be opened
            folder = os.open(prefix.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self._file, self._end = file, 0
        self._removing = weakref.finalize(self, _close, file, path, os.getpid(), self._of_memory)
        return file

    def _notice_fork(self) -> None:
        if os.getpid() != self._pid:  # the entries are the parent's, and its lock is on this file too
            self._begin()


def state_folder() -> Path:
    """Where this user's programs keep what should outlive them: `ACEX_STATE`, or as XDG has it.

    Raises:
        LedgerFailed: the user has no home.
    """
    chosen = os.environ.get("ACEX_STATE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return Path(base or Path.home() / ".local" / "state") / "acex"
    except RuntimeError as error:
        raise LedgerFailed(f"{error} Name a folder for what is to be kept in ACEX_STATE.") from None


def _line(entry: dict[str, Any]) -> bytes:
    body = json.dumps(entry, default=as_json).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _entries(path: Path, ledger: str | None) -> list[Entry]:
    """The entries of a journal that are whole, of this ledger or of any."""
    found: list[Entry] = []
    number = 0
    try:
        written = path.read_bytes()
    except OSError:
        return []
    for line in written.split(b"\n"):
        told, _, body = line.partition(b" ")
        if told != b"%08x" % zlib.crc32(body):
            break  # cut off, or what was here before
        entry = json.loads(body)
        if entry["number"] <= number:
            break
        number = entry["number"]
        if ledger in (None, entry["ledger"]):
            scores = entry["scores"]
            if scores is not None:
                scores = [None if given is None else [(label, p) for label, p in given] for given in scores]
            found.append(Entry(entry["model"], entry["rows"], entry["labels"], scores, entry["told_by"]))
    return found


def _write(file: FileIO, data: bytes) -> None:
    if file.write(data) != len(data):
        raise OSError("the disk is full")


def _lock(file: Any) -> bool:
    """Is this file mine from now on, until it is closed or this process ends?"""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _in_use(path: Path) -> bool:
    """Is this the journal of a process that runs?"""
    try:
        with path.open("r+b", buffering=0) as file:
            return not _lock(file)
    except OSError:
        return True


def _close(file: FileIO, path: Path, pid: int, of_memory: bool) -> None:
    if os.getpid() == pid:
        with suppress(OSError):
            file.seek(0)
            if of_memory or file.read(1) == b"\0":
                path.unlink()
    file.close()
