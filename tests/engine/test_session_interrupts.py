"""Ctrl-C and failures inside the library: no answer is paid for twice, nothing hangs, and the first error arrives."""

from __future__ import annotations

import errno
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble  # noqa: F401 (a signal during the first import would leave it half loaded)
from sqlalchemy.engine import RootTransaction

import acex
from acex.errors import LedgerFailed
from acex.ledger import BaseLedger, MemoryLedger, canonical, journal
from acex.ledger.base import Entry
from acex.ledger.database import Database
from acex.ledger.journal import Journal
from acex.ledger.sql import Ledger

DATA = np.random.default_rng(0).normal(size=(80, 3)).round(3)
LOW = DATA[DATA.sum(axis=1) < -1][0]


class Model:
    """Counts how often each row was sent."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()

    def __call__(self, rows: Any) -> Any:
        self.sent.update(canonical(rows))
        return np.where(rows.sum(axis=1) > 0, "high", "low")


def explain(model: Any, ledger: Any, budget: int = 6) -> acex.Explanation:
    return acex.Explainer(acex.Model(model, name="m"), DATA, ledger=ledger).explain(LOW, budget=budget, target="high")


def hangs(call: Callable[[], object], seconds: float = 30.0) -> bool:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    return thread.is_alive()


def raising_after(function: Any, error: BaseException, at: int) -> Any:
    """The function, which raises after it has returned for the n-th time."""
    calls = [0]

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        calls[0] += 1
        if calls[0] == at:
            raise error
        return result

    return wrapped


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupt_after_the_flush_does_not_pay_again(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, ledger = Model(), Ledger(tmp_path / "l.db")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_flush", raising_after(journal._flush, KeyboardInterrupt(), at))
        with pytest.raises(KeyboardInterrupt):
            explain(model, ledger)
    assert max(model.sent.values()) == 1
    explain(model, ledger)
    assert max(model.sent.values()) == 1  # also the row whose answer was being recorded


def test_an_interrupt_while_the_lease_thread_starts_ends_its_renewals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, ledger = Model(), Ledger(tmp_path / "l.db", lease=0.2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", raising_after(threading.Thread.start, KeyboardInterrupt(), 1))
        with pytest.raises(KeyboardInterrupt):
            explain(model, ledger)
    deadline = time.monotonic() + 30
    while any(thread.name == "acex-lease" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert not hangs(lambda: explain(model, ledger))
    assert max(model.sent.values()) == 1


def test_on_a_full_disk_a_process_does_not_wait_for_its_own_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, ledger = Model(), Ledger(tmp_path / "l.db")
    full = threading.Event()
    write = Database.write

    def failing(database: Database) -> Any:
        if full.is_set():
            raise LedgerFailed("the disk is full")
        return write(database)

    def broken(rows: Any) -> Any:
        full.set()  # from here on no claim can be ended
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Database, "write", failing)
    with pytest.raises((acex.ModelFailed, LedgerFailed)):
        explain(broken, ledger)
    with pytest.raises(LedgerFailed, match="disk is full"):
        explain(model, ledger)
    full.clear()
    monkeypatch.setattr(Ledger, "wait", lambda *_, **__: pytest.fail("it waits for its own claim"))
    assert explain(model, ledger).steps


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("unplugged")])
@pytest.mark.parametrize("kept", [True, False])
def test_an_error_before_the_first_answer_arrives_as_itself(
    error: BaseException, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acex.engine.session import Session

    def interrupted(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(Session, "_begin", interrupted)  # the first step is there, and the search is not
    with pytest.raises(type(error)) as caught:
        explain(Model(), tmp_path / "l.db" if kept else None)
    assert caught.value is error and caught.value.explanation is None  # type: ignore[attr-defined]


def test_the_explanation_so_far_travels_with_an_interrupt() -> None:
    def model(rows: Any, calls: list[int] = [0]) -> Any:  # noqa: B006 (shared by its calls)
        calls[0] += 1
        if calls[0] == 4:
            raise KeyboardInterrupt
        return np.where(rows.sum(axis=1) > 0, "high", "low")

    with pytest.raises(KeyboardInterrupt) as caught:
        explain(model, None)
    assert len(caught.value.explanation.steps) == 3  # type: ignore[attr-defined]


def test_an_interrupt_in_a_commit_is_not_hidden_by_an_assertion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, commit = Ledger(tmp_path / "l.db"), RootTransaction._do_commit
    explain(Model(), ledger)

    def interrupted(transaction: RootTransaction) -> None:
        monkeypatch.setattr(RootTransaction, "_do_commit", commit)
        raise KeyboardInterrupt

    monkeypatch.setattr(RootTransaction, "_do_commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.budget("m", rows=3)
    ledger.budget("m", rows=3)


@pytest.mark.parametrize("data", [DATA, pd.DataFrame(DATA, columns=["a", "b", "c"])], ids=["array", "frame"])
def test_no_interrupt_is_lost_inside_numpy(data: Any) -> None:
    """NumPy swallows or replaces a KeyboardInterrupt raised by the functions in Python that its C code calls."""

    def model(rows: Any) -> Any:  # frame["a"] would be such a place
        values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
        return np.where(values.sum(axis=1) > 0, "high", "low")

    explainer = acex.Explainer(model, data)
    seen: set[object] = set()
    fired: list[str] = []

    def interrupt(frame: FrameType, event: str, value: object) -> None:
        place = (frame.f_back.f_code, frame.f_back.f_lineno) if frame.f_back else None
        if frame.f_code.co_filename.endswith("_internal.py") and place not in seen:
            seen.add(place)
            fired.append(frame.f_code.co_name)
            sys.settrace(None)
            raise KeyboardInterrupt

    while True:
        fired.clear()
        try:
            sys.settrace(interrupt)
            explainer.explain(data[:1], budget=4, target="high" if DATA[0].sum() < 0 else "low")
        except KeyboardInterrupt:
            continue
        finally:
            sys.settrace(None)
        assert fired == []
        break


def send_signals(n: int, ledger: BaseLedger, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Interrupt at random moments, again and again: no recorded answer is paid for again, and no interrupt is lost."""
    recorded: set[str] = set()
    again: list[str] = []
    rng = random.Random(n)
    if isinstance(ledger, MemoryLedger):
        add = MemoryLedger._add

        def noted(self: Any, found: Any, entry: Entry, **more: Any) -> int:
            n = add(self, found, entry, **more)
            recorded.update(entry.rows)
            return n

        monkeypatch.setattr(MemoryLedger, "_add", noted)
    else:
        write = Journal.write

        def written(self: Journal, entry: Entry) -> None:
            write(self, entry)
            recorded.update(entry.rows)

        monkeypatch.setattr(Journal, "write", written)

    def model(rows: Any) -> Any:
        again.extend(key for key in canonical(rows) if key in recorded)
        return np.where(rows.sum(axis=1) > 0, "high", "low")

    explainer = acex.Explainer(acex.Model(model, name="m"), DATA, ledger=ledger)
    explainer.explain(DATA[0], budget=4)  # without signals: the rest is imported here
    # Python drops an interrupt that comes inside a finalizer, such as those of SQLAlchemy.
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    arrived = 0
    for i in range(n):
        start, before = time.monotonic(), len(dropped)
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0, seconds))
            while len(dropped) == before:  # until the signal comes
                explainer.explain(DATA[rng.randrange(len(DATA))], budget=4, seed=i)
                assert time.monotonic() - start < 300
        except KeyboardInterrupt:
            arrived += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    assert again == []
    assert arrived + len(dropped) == n and len(dropped) <= n // 5


@pytest.fixture
def interrupts() -> Any:
    """SIGALRM interrupts like Ctrl-C."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("n", [10, pytest.param(250, marks=pytest.mark.slow)])
def test_random_signals_pay_no_recorded_answer_twice(
    kind: str, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupts: None
) -> None:
    ledger = MemoryLedger() if kind == "memory" else Ledger(tmp_path / "l.db")
    send_signals(n, ledger, monkeypatch, seconds=0.2)
