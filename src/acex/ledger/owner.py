"""Who holds a claim, whether that process still lives, and by which clock its lease runs."""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Moment(NamedTuple):
    """A time for people, and the same moment on a clock that nobody sets, where there is one for all users."""

    at: datetime
    clock: str | None = None  # whose ticks these are
    ticks: float = 0.0  # in seconds


def now_here() -> Moment:
    """This moment on this machine."""
    return Moment(datetime.now(UTC), _clock(), time.monotonic())


def owner(token: str) -> str:
    """This process in words: host, number, machine, a mark of its own, and when it was started."""
    pid = os.getpid()
    return f"{socket.gethostname()} pid {pid} {_machine()} {token}{_started(pid)}"


def certainly_dead(owner: str) -> bool:
    """Was this a process of this machine that no longer lives? Whenever in doubt, no: then the lease decides."""
    words = owner.split()
    if not _machine() or len(words) not in (5, 7) or words[1] != "pid" or words[3] != _machine():
        return False
    try:
        pid = int(words[2])
        os.kill(pid, 0)  # signal 0 only asks; `_machine` has made sure that this is Linux
    except ProcessLookupError:
        return True
    except (ValueError, OSError):
        return False
    found = _stat(pid)
    if found is None:
        return False
    # One that is dead but not yet buried, or another one with its number. A process whose first thread has ended
    # looks like a zombie too, but has more of them.
    is_zombie = found[0] in "ZX" and int(found[17]) <= 1
    return is_zombie or (len(words) == 7 and words[6] != found[19])


def _stat(pid: int) -> list[str] | None:
    """What Linux tells of a process from its state on: that is 0, the number of threads 17, the start 19."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


@cache
def _started(pid: int) -> str:
    found = _stat(pid)
    return "" if found is None else f" started {found[19]}"


@cache
def _boot() -> str:
    """This machine since it was started; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@cache
def _machine() -> str:
    """This machine since it was started, and this container on it: where a process number has one meaning.

    Empty where the system does not tell.
    """
    try:
        return f"{_boot()[:8]}.{os.stat('/proc/self/ns/pid').st_ino}" if _boot() else ""
    except OSError:
        return ""


@cache
def _clock() -> str | None:
    """The monotonic clock of this machine since it was started, which all its processes share."""
    try:
        space = f".{os.stat('/proc/self/ns/time').st_ino}"  # containers may shift it
    except OSError:
        space = ""
    return f"{_boot()}{space}" if _boot() else None
