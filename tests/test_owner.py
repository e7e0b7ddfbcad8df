"""Who holds a claim, and whether that process still lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acex.ledger import Ledger
from acex.ledger.owner import certainly_dead, now_here, owner
from ledgers import MODEL, questions

if not Path("/proc/self/stat").exists():
    pytest.skip("this system does not tell when a process was started", allow_module_level=True)


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process.pid
    process.kill()
    process.wait()


def named(pid: int) -> str:
    """How that process would call itself."""
    mine = owner("token").split()
    return " ".join([*mine[:2], str(pid), *mine[3:6], stat(pid)[19]])


def stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def test_a_process_that_lives_is_not_dead(child: int) -> None:
    assert not certainly_dead(owner("token"))
    assert not certainly_dead(named(child))


def test_a_zombie_is_dead(child: int) -> None:
    who = named(child)
    os.kill(child, signal.SIGKILL)  # nobody waits for it, so its number stays taken
    while stat(child)[0] != "Z":
        time.sleep(0.01)
    os.kill(child, 0)
    assert certainly_dead(who)


def test_another_process_with_the_same_number_does_not_count(child: int) -> None:
    *words, started = named(child).split()
    assert certainly_dead(" ".join([*words, str(int(started) - 1)]))


def test_an_owner_that_an_older_acex_wrote_down_is_judged_by_its_number_alone(child: int) -> None:
    older = " ".join(named(child).split()[:5])
    assert not certainly_dead(older)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert certainly_dead(older)


@pytest.mark.parametrize("who", ["laboratory", "host pid x y z", "host pid 1 elsewhere token started 1"])
def test_whoever_cannot_be_judged_is_not_dead(who: str) -> None:
    assert not certainly_dead(who)


def test_the_clock_of_leases_is_one_that_nobody_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    before = now_here()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    after = now_here()
    assert before.clock == after.clock is not None and after.ticks >= before.ticks


def test_who_claims_says_so_in_words_that_can_be_judged() -> None:
    ledger = Ledger()
    ledger.claim(MODEL, questions(1))
    [who] = ledger.show(MODEL)["claimed_by"]
    assert who == ledger.owner and len(who.split()) == 7
