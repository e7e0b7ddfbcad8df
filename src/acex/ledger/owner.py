"""Whether the process that claimed a row still lives: locks on files, which the operating system releases.

An owner is an open ledger that claims rows. It holds a lock on the file of its journal.
"""

from __future__ import annotations

import os
import stat
import sys
import uuid
import weakref
from io import FileIO
from pathlib import Path
from typing import Any


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


# What has files or connections that a forked process must leave to its parent: objects with `leave_to_parent`.
forkable: weakref.WeakSet[Any] = weakref.WeakSet()


def _after_fork() -> None:
    for each in list(forkable):
        each.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
