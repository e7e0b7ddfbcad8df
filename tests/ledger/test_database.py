"""Real faults: what happens to a ledger when the machine, the disk or another program does not play along."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Transaction, create_engine, inspect

from acex.errors import LedgerFailed
from acex.ledger.database import state_folder
from acex.ledger.schema import models
from acex.ledger.sql import Ledger
from ledgers import MODEL, Bill, ask, postgres, processes, questions, rows, true_label


def healthy(path: Path) -> bool:
    connection = sqlite3.connect(path)
    (found,) = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return bool(found == "ok")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def filled(path: Path, n: int = 300) -> None:
    with Ledger(path) as ledger:
        ledger.import_answers(MODEL, rows(*range(n)), ["good"] * n)


# -- kill -9 -----------------------------------------------------------------------------------------------


def ask_until_killed(path: Path, seed: int, numbers: list[int], bill: Bill, seen: Bill, begun: Any) -> None:
    rng = random.Random(seed)
    begun.set()
    ledger = Ledger(path)
    while True:
        wanted = rows(*rng.sample(numbers, rng.randint(1, 4)))
        ask(ledger, wanted, bill, seconds=rng.choice([0.0, 0.002]))
        seen.add(wanted)  # from here on the answers were in a user's hands


def kill_again_and_again(folder: Path, times: int) -> None:
    path, bill, seen = folder / "ledger.db", Bill(folder / "bill"), Bill(folder / "seen")
    rng = random.Random(times)
    numbers = list(range(20 * times))
    for seed in range(times):
        begun = processes.Event()
        child = processes.Process(target=ask_until_killed, args=(path, seed, numbers, bill, seen, begun))
        child.start()
        begun.wait(60)
        while seed == 0 and child.is_alive() and not seen.lines():  # one at least gets so far
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.2))
        assert child.pid is not None and child.is_alive()
        os.kill(child.pid, signal.SIGKILL)
        child.join()
    with Ledger(path) as ledger:
        for row in seen.lines():  # no label lost
            assert ledger.known(MODEL, [row])[row].label == true_label(row)
        assert seen.lines()
        everything = rows(*numbers)
        assert ask(ledger, everything, bill) == {row: true_label(row) for row in everything}
        paid_twice = len(bill.lines()) - len(numbers)
        assert set(bill.lines()) == set(everything)
        assert 0 <= paid_twice <= 4 * times  # at most what was in flight, four rows at a time
        shown = ledger.tables.queries(MODEL).set_index("row")["attempts"]
        for row in everything:  # nothing was sent that is not written down
            assert bill.lines().count(row) <= shown[row]
        assert ledger.tables.models().loc[0, "charged"] == shown.sum()
        assert [a.sequence for a in ledger.answers(MODEL)] == list(range(1, len(numbers) + 1))
    assert healthy(path)


def test_a_ledger_survives_kill_9(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, times=6)


@pytest.mark.slow
def test_a_ledger_survives_kill_9_a_hundred_times(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, times=100)


def ask_forever(path: Path, bill: Bill, sent: Any) -> None:
    ledger = Ledger(path)
    ledger.record(MODEL, rows(1), ["good"])
    ledger.claim(MODEL, questions(1, 2, 3))
    bill.add(rows(2, 3))
    sent.set()
    time.sleep(600)


def test_killed_between_sending_and_recording_only_what_was_in_flight_is_asked_again(tmp_path: Path) -> None:
    path, bill, sent = tmp_path / "ledger.db", Bill(tmp_path / "bill"), processes.Event()
    child = processes.Process(target=ask_forever, args=(path, bill, sent))
    child.start()
    assert sent.wait(60)
    ledger = Ledger(path)
    assert [c.state for c in ledger.claim(MODEL, questions(1, 2, 3))] == ["answered", "in_flight", "in_flight"]
    child.kill()
    child.join()
    # Its owner has died: the rows are free at once, and each counts as sent again.
    claims = ledger.claim(MODEL, questions(1, 2, 3))
    assert [(c.state, c.attempts) for c in claims] == [("answered", 0), ("mine", 2), ("mine", 2)]
    assert ledger.tables.models()[["charged", "asked_again"]].values.tolist() == [[4, 2]]


# -- disk full ---------------------------------------------------------------------------------------------


def long_row(number: int) -> str:
    return f'["{number}{"x" * 2000}"]'


def fill_up(path: Path, limit: int | None, outcome: Any) -> None:
    """Ask until the disk takes no more; tell how that showed, and which answers were safe before."""
    ledger = Ledger(path)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    safe: list[str] = []
    for number in range(100_000):
        row = long_row(number)
        try:
            ledger.record(MODEL, [row], ["good"])
        except LedgerFailed as failure:
            outcome.put((str(failure), failure.answers == {row: "good"}, safe))
            return
        safe.append(row)


@contextmanager
def small_disk() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    mounted = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mounted, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("needs the right to mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def nothing_is_lost_when_full(path: Path, limit: int | None, words: str) -> None:
    outcome = processes.Queue()
    child = processes.Process(target=fill_up, args=(path, limit, outcome))
    child.start()
    message, kept, safe = outcome.get(timeout=120)
    child.join()
    assert words in message and str(path) in message and "Recorded answers are safe" in message
    assert kept  # what was paid for and could not be written travels with the error
    assert len(safe) > 10
    if limit is None:  # make room
        (path.parent / "ballast").unlink()
    with Ledger(path) as ledger:
        answered = [*safe, long_row(len(safe))]  # the last one was in the journal
        assert set(ledger.known(MODEL, answered)) == set(answered)
        assert len(ledger.answers(MODEL)) == len(answered)
        ledger.record(MODEL, rows(1), ["good"])  # and it goes on
    assert healthy(path)


def test_a_disk_that_is_full_loses_nothing() -> None:
    with small_disk() as folder:
        (folder / "ballast").write_bytes(b"x" * 300_000)
        nothing_is_lost_when_full(folder / "ledger.db", None, "disk is full")


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    nothing_is_lost_when_full(tmp_path / "ledger.db", 1_000_000, "I/O error")


def test_when_a_claim_cannot_be_written_there_is_nothing_to_pay(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        states = [c.state for c in ledger.claim(MODEL, questions(1))]
        with ledger.database.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LedgerFailed, match="disk is full"):
            ledger.claim(MODEL, questions(*range(5000)))
        assert states == ["mine"]
        assert ledger.tables.models().loc[0, "charged"] == 1


# -- files that are not what they should be ----------------------------------------------------------------------


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)  # or only root could remove what is in it
    shutil.rmtree(folder)


def test_a_read_only_file_can_be_read_but_not_written(open_folder: Path) -> None:
    path = open_folder / "ledger.db"
    filled(path)
    path.chmod(0o444)
    before = path.read_bytes()
    with as_nobody(), Ledger(path) as ledger:
        assert ledger.known(MODEL, rows(1))["[1]"].label == "good"
        with pytest.raises(LedgerFailed, match="ledger"):
            ledger.claim(MODEL, questions(1000))
    assert path.read_bytes() == before


def test_a_folder_that_may_not_be_written_is_a_clear_error(open_folder: Path) -> None:
    filled(open_folder / "ledger.db")
    open_folder.chmod(0o555)
    before = contents(open_folder)
    with as_nobody():
        for name in ("ledger.db", "new.db"):
            with pytest.raises(LedgerFailed, match=rf"{name}: (unable to open|attempt to write).*writable"):
                Ledger(open_folder / name).claim(MODEL, questions(1000))
    assert contents(open_folder) == before


def test_a_folder_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(LedgerFailed, match="The folder must exist"):
        Ledger(tmp_path / "nowhere" / "ledger.db")
    with pytest.raises(LedgerFailed, match="unable to open"):
        Ledger(tmp_path)


def test_a_newer_ledger_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO ledger_versions VALUES (99, '9.0', '2040-01-01')")
    connection.commit()
    connection.close()
    before = contents(tmp_path)
    with pytest.raises(LedgerFailed, match="version 99"):
        Ledger(path)
    assert contents(tmp_path) == before


def test_a_newer_ledger_on_postgres_is_left_as_it_is() -> None:
    with postgres() as address:
        with Ledger(address) as ledger, ledger.database.write() as connection:
            connection.exec_driver_sql("INSERT INTO ledger_versions VALUES (99, '9.0', '2040-01-01')")
        with pytest.raises(LedgerFailed, match="it is a ledger of version 99"):
            Ledger(address)


def test_a_postgres_database_of_something_else_is_left_as_it_is() -> None:
    with postgres() as address:
        engine = create_engine(address)
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE models (a INTEGER)")
        with pytest.raises(LedgerFailed, match="models"):
            Ledger(address)
        with engine.begin() as connection:
            assert inspect(connection).get_table_names() == ["models"]
        engine.dispose()


def test_a_connection_that_postgres_closed_is_opened_again() -> None:
    with postgres() as address, Ledger(address) as ledger:
        ledger.claim(MODEL, questions(1))
        with ledger.database.read() as connection:
            process = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        engine = create_engine(address)
        with engine.connect() as connection:
            assert connection.exec_driver_sql(f"SELECT pg_terminate_backend({process}, 10000)").scalar()
        engine.dispose()
        assert [c.state for c in ledger.claim(MODEL, questions(2))] == ["mine"]


def test_a_file_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("This is not a database. " * 100, encoding="utf-8")
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE queries (a)")
    connection.close()
    third = tmp_path / "third.db"
    connection = sqlite3.connect(third)
    connection.execute("CREATE TABLE anything (a)")
    connection.close()
    before = contents(tmp_path)
    with pytest.raises(LedgerFailed, match=r"notes\.txt: file is not a database"):
        Ledger(text)
    with pytest.raises(LedgerFailed, match=r"other\.db: .*of another program"):
        Ledger(other)
    with pytest.raises(LedgerFailed, match=r"third\.db: .*of another program"):
        Ledger(third)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("damage", ["header", "a page", "every page", "half is missing", "the end is missing"])
def test_a_damaged_file_is_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    whole = path.read_bytes()
    garbage = random.Random(0).randbytes(len(whole))
    spoilt = {
        "header": garbage[:100] + whole[100:],
        "a page": whole[:8192] + garbage[8192:12288] + whole[12288:],
        "every page": whole[:100] + garbage[100:],
        "half is missing": whole[: len(whole) // 2],
        "the end is missing": whole[:-4096],
    }
    path.write_bytes(spoilt[damage])
    before = contents(tmp_path)
    with pytest.raises(LedgerFailed, match=r"damaged|not a database"):
        Ledger(path)
    assert contents(tmp_path) == before


def test_an_empty_file_becomes_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").touch()
    filled(tmp_path / "ledger.db")
    assert healthy(tmp_path / "ledger.db")


def test_a_server_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(LedgerFailed, match="postgresql"):
        Ledger("postgresql://me:secret@127.0.0.1:9/none")


# -- interrupts --------------------------------------------------------------------------------------------


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_an_interrupt_inside_sqlalchemy_leaves_no_transaction_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        with monkeypatch.context() as patch:
            for name in ("commit", "rollback", "close"):
                patch.setattr(Transaction, name, interrupted)
            patch.setattr(Connection, "close", interrupted)
            with pytest.raises(KeyboardInterrupt) as caught:
                ledger.claim(MODEL, questions(1))
        other = sqlite3.connect(tmp_path / "ledger.db", timeout=0)  # while the traceback lives
        other.execute("BEGIN IMMEDIATE")
        other.close()
        assert caught.value is not None and ledger.claim(MODEL, questions(1))[0].state == "mine"


def test_a_thread_ends_a_transaction_that_it_could_not_end_before(address: str) -> None:
    with Ledger(address) as ledger:
        left = ledger.database.write()
        left.__enter__().execute(
            models.update().values(description="x")
        )  # an interrupt came before the block of `with` began
        assert ledger.claim(MODEL, questions(1))[0].state == "mine"
        del left
        assert ledger.claim(MODEL, questions(2))[0].state == "mine"


def test_the_state_folder_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACEX_STATE", "/a")
    monkeypatch.setenv("XDG_STATE_HOME", "/b")
    monkeypatch.setenv("HOME", "/c")
    assert state_folder() == Path("/a")
    monkeypatch.delenv("ACEX_STATE")
    assert state_folder() == Path("/b/acex")
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_folder() == Path("/c/.local/state/acex")


def test_a_clock_that_is_set_back_ends_no_lease_and_reorders_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = (f"20{year:02d}-01-01T00:00:00.000000+00:00" for year in range(90, 0, -1))
    wall = iter(range(10**9, 0, -(10**6)))
    monkeypatch.setattr("time.time", lambda: next(wall))
    for module in ("base", "sql"):
        monkeypatch.setattr(f"acex.ledger.{module}.now_text", lambda: next(moments))
    path = tmp_path / "l.db"
    with Ledger(path, lease=60) as ledger, Ledger(path, lease=60) as other, ThreadPoolExecutor(1) as elsewhere:
        assert [claim.state for claim in ledger.claim(MODEL, questions(1, 2))] == ["mine", "mine"]
        with ledger.holding(MODEL, rows(1, 2)):
            claims = elsewhere.submit(other.claim, MODEL, questions(1, 2)).result(60)
        assert [claim.state for claim in claims] == ["in_flight", "in_flight"]
        for number in (1, 2):
            ledger.record(MODEL, rows(number), ["good"])
        ledger.correct(MODEL, "[1]", "bad")
        assert [answer.row for answer in other.answers(MODEL)] == ["[1]", "[2]", "[1]"]
        assert other.known(MODEL, rows(1))["[1]"].label == "bad" and other.account(MODEL).n_charged == 2
