"""A ledger in memory belongs to one process; what it shares with other ledgers is in test_base."""

from __future__ import annotations

import pickle

import pytest

from acex.errors import LedgerFailed
from acex.ledger import MemoryLedger
from ledgers import MODEL, in_a_fork, questions


def test_a_ledger_in_memory_does_not_travel() -> None:
    with pytest.raises(TypeError, match="in memory cannot be sent"):
        pickle.dumps(MemoryLedger())


def test_a_ledger_in_memory_says_that_a_fork_has_lost_it() -> None:
    ledger = MemoryLedger()

    def child() -> None:
        with pytest.raises(LedgerFailed, match="belongs"):
            ledger.claim(MODEL, questions(1))

    assert in_a_fork(child) == 0
    assert [c.state for c in ledger.claim(MODEL, questions(1))] == ["mine"]
