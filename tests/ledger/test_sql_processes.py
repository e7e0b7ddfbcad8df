"""Several processes on one ledger: each row is sent once, and budgets hold."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from joblib import Parallel, delayed

from acex.errors import BudgetSpent
from acex.ledger import Question
from acex.ledger.sql import Ledger
from ledgers import MODEL, Bill, ask, ask_all, in_a_fork, postgres, processes, questions, rows, run, true_label

EIGHT = 8


def test_eight_processes_send_each_of_a_thousand_rows_once(address: str, tmp_path: Path) -> None:
    bill, ready = Bill(tmp_path / "bill"), processes.Barrier(EIGHT, timeout=60)
    # They also make the ledger together: none of them finds one.
    codes = run(ask_all, [(address, seed, range(1000), bill, ready) for seed in range(EIGHT)])
    assert codes == [0] * EIGHT
    assert Counter(bill.lines()) == Counter(rows(*range(1000)))
    with Ledger(address) as ledger:
        answers = ledger.answers(MODEL)
        assert [a.sequence for a in answers] == list(range(1, 1001))
        assert {a.row: a.label for a in answers} == {row: true_label(row) for row in rows(*range(1000))}
        assert ledger.tables.models()[["charged", "asked_again", "unanswered"]].values.tolist() == [[1000, 0, 0]]


def open_all(addresses: list[str], ready: Any) -> None:
    for address in addresses:
        ready.wait()
        with Ledger(address) as ledger:
            assert ledger.answers(MODEL) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_new_ledger_may_be_opened_by_all_at_the_same_moment(kind: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        if kind == "sqlite":
            addresses = [str(tmp_path / f"{k}.db") for k in range(15)]
        else:
            addresses = [stack.enter_context(postgres()) for _ in range(5)]
        ready = processes.Barrier(EIGHT, timeout=60)
        assert run(open_all, [(addresses, ready)] * EIGHT) == [0] * EIGHT


def spend(ledger: Ledger, first: int, bill: Bill, ready: Any) -> None:
    ready.wait()
    for number in range(first, first + 100):
        try:
            ask(ledger, rows(number), bill)
        except BudgetSpent:
            return
    raise AssertionError("The budget was never spent.")


def test_eight_processes_keep_one_budget(address: str, tmp_path: Path) -> None:
    bill, ready = Bill(tmp_path / "bill"), processes.Barrier(EIGHT, timeout=60)
    with Ledger(address) as ledger:
        ledger.budget(MODEL, rows=100)
        codes = run(spend, [(ledger, 1000 * k, bill, ready) for k in range(EIGHT)])
        assert codes == [0] * EIGHT
        assert len(bill.lines()) == 100
        assert ledger.account(MODEL).remaining == 0


def watch(address: str, ready: Any, done: Any) -> None:
    """Whatever number is the newest, all answers up to it are there, and stay the same."""
    ready.wait()
    ledger = Ledger(address)
    while not done.is_set():
        seen = ledger.account(MODEL).last_sequence
        before = ledger.answers(MODEL, up_to=seen)
        assert [a.sequence for a in before] == list(range(1, seen + 1))
        assert ledger.answers(MODEL, up_to=seen) == before


def test_no_answer_becomes_visible_after_a_later_one(address: str, tmp_path: Path) -> None:
    bill, ready, done = Bill(tmp_path / "bill"), processes.Barrier(4, timeout=60), processes.Event()
    watcher = processes.Process(target=watch, args=(address, ready, done))
    watcher.start()
    codes = run(ask_all, [(address, seed, range(200), bill, ready, 3) for seed in range(3)])
    done.set()
    watcher.join()
    assert [*codes, watcher.exitcode] == [0, 0, 0, 0]


def claim_one(ledger: Ledger, number: int) -> str:
    (claim,) = ledger.claim(MODEL, [Question(f"[{number}]")], holder="a worker")
    return claim.state


def test_a_ledger_goes_to_joblib_workers(address: str) -> None:
    with Ledger(address) as ledger:
        found = Parallel(n_jobs=2)(delayed(claim_one)(ledger, number) for number in [1, 2, 3, 1, 2, 3])
        assert Counter(found) == {"mine": 3, "in_flight": 3}


def test_a_fork_has_connections_of_its_own(address: str) -> None:
    with Ledger(address) as ledger:
        ledger.claim(MODEL, questions(1))  # there is an open connection now
        owner = ledger._journal.owner

        def child() -> None:
            ledger.record(MODEL, rows(1), ["good"])
            assert ledger._journal.owner != owner

        assert in_a_fork(child) == 0
        assert ledger.known(MODEL, rows(1))["[1]"].label == "good"
        ledger.record(MODEL, rows(2), ["bad"])  # the parent's connection still works
        assert ledger.account(MODEL).last_sequence == 2
