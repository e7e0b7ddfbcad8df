"""Who owns a claim, and whether that process lives."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from acex.ledger.journal import create_locked, has_locked
from acex.ledger.sql import Ledger
from ledgers import MODEL, processes, questions, rows


def claim_and_sleep(address: str, claimed: object) -> None:
    ledger = Ledger(address)
    ledger.claim(MODEL, questions(1))
    claimed.set()  # type: ignore[attr-defined]
    time.sleep(60)
    ledger.close()


def test_the_claims_of_a_killed_process_are_free_at_once(address: str) -> None:
    claimed = processes.Event()
    child = processes.Process(target=claim_and_sleep, args=(address, claimed), daemon=True)
    child.start()
    assert claimed.wait(60) and child.pid is not None
    with Ledger(address, lease=1e6) as ledger:
        assert ledger.claim(MODEL, questions(1))[0].state == "in_flight"
        os.kill(child.pid, signal.SIGKILL)  # a zombie until `join`
        assert ledger.wait(MODEL, rows(1))
        assert ledger.claim(MODEL, questions(1))[0].state == "mine"
    child.join()


def test_a_forked_child_that_outlives_its_parent_does_not_hold_its_claims(address: str) -> None:
    claimed = processes.Event()
    child = processes.Process(target=claim_fork_and_die, args=(address, claimed))
    child.start()
    child.join(60)
    assert claimed.is_set() and child.exitcode == -signal.SIGKILL
    with Ledger(address, lease=1e6) as ledger:
        assert ledger.wait(MODEL, rows(1))
        assert ledger.claim(MODEL, questions(1))[0].state == "mine"


def claim_fork_and_die(address: str, claimed: object) -> None:
    ledger = Ledger(address, lease=1e6)
    ledger.claim(MODEL, questions(1))
    claimed.set()  # type: ignore[attr-defined]
    if os.fork() == 0:
        time.sleep(90)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def test_several_ledgers_of_one_process_are_different_owners(address: str) -> None:
    with Ledger(address) as one, Ledger(address) as two:
        one.claim(MODEL, questions(1))
        assert two.claim(MODEL, questions(1))[0].state == "in_flight"
        two.claim(MODEL, questions(2))
        two.close()  # which releases no lock but its own
        with Ledger(address) as three:
            assert [c.state for c in three.claim(MODEL, questions(1, 2))] == ["in_flight", "mine"]


def test_an_owner_without_a_file_is_dead(tmp_path: Path) -> None:
    owner, file = create_locked(tmp_path / "o-")
    assert has_locked(tmp_path / f"o-{owner}")
    assert not has_locked(tmp_path / "o-0123456789abcdef")
    file.close()
    assert not has_locked(tmp_path / f"o-{owner}")


def test_owners_that_an_older_acex_wrote_are_dead(address: str) -> None:
    with Ledger(address) as ledger:
        ledger.claim(MODEL, questions(1))
        for older in ("host pid 1 0a1b2c3d.4026531836 token started 77", "host pid 1 machine token"):
            with ledger.database.write() as connection:
                connection.exec_driver_sql(f"UPDATE queries SET claimed_by = '{older}', lease_ends = 1e12")
            assert ledger.in_flight(MODEL, rows(1)) == {}


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_a_lease_is_a_positive_number(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lease"):
        Ledger(tmp_path / "l.db", lease=seconds)
