"""Who holds a claim, and whether that process still lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def owner(token: str) -> str:
    """This process in words: host, number, machine, and a mark of its own."""
    return f"{socket.gethostname()} pid {os.getpid()} {_machine()} {token}"


def certainly_dead(owner: str) -> bool:
    """Was this a process of this machine that no longer lives? Whenever in doubt, no: then the lease decides."""
    words = owner.split()
    if not _machine() or len(words) != 5 or words[1] != "pid" or words[3] != _machine():
        return False
    try:
        os.kill(int(words[2]), 0)  # signal 0 only asks; `_machine` has made sure that this is Linux
    except ProcessLookupError:
        return True
    except (ValueError, OSError):
        return False
    return False


@cache
def _machine() -> str:
    """This machine since it was started, and this container on it: where a process number has one meaning.

    Empty where the system does not tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot[:8]}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""
