"""Answers that arrived and were not recorded: none is paid for twice, whatever stops the process or the ledger."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

import acex
from acex.errors import LedgerFailed
from acex.ledger.base import Entry
from acex.ledger.database import Database
from acex.ledger.journal import ALLOCATED, Journal
from acex.ledger.maintenance import check
from acex.ledger.sql import Ledger
from ledgers import MODEL, Bill, ask, postgres, processes, questions, rows, run, true_label


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    with Ledger(address) as found:
        yield found


def journal(prefix: Path, ledger: str = "l") -> Journal:
    return Journal(prefix, ledger)


def journals(ledger: Ledger) -> list[Path]:
    return [path for path, _ in ledger._journal.others()]


def failing(monkeypatch: pytest.MonkeyPatch, n: int = 1) -> None:
    """The next n transactions that write end like those of a server that restarts."""
    write, left = Database.write, [n]

    def failing_write(database: Database) -> Any:
        if left[0] > 0:
            left[0] -= 1
            with database._readable_errors():
                raise OperationalError("COMMIT", {}, Exception("the server closed the connection"))
        return write(database)

    monkeypatch.setattr(Database, "write", failing_write)


def states(ledger: Ledger, *numbers: int) -> list[str]:
    return [claim.state for claim in ledger.claim(MODEL, questions(*numbers))]


# -- what the process knows ------------------------------------------------------------------------------------


def test_what_could_not_be_settled_is_settled_before_anything_is_claimed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    states(ledger, 1, 2)
    failing(monkeypatch)
    with pytest.raises(LedgerFailed, match="the server closed the connection") as caught:
        ledger.record(MODEL, rows(1, 2), ["good", 7], scores=[[("good", 0.75)], None])
    assert caught.value.answers == {"[1]": "good", "[2]": 7}
    assert states(ledger, 2, 3) == ["answered", "mine"]
    assert ledger.known(MODEL, rows(1, 2)) == {"[1]": ("[1]", "good", [("good", 0.75)], 1), "[2]": ("[2]", 7, None, 2)}
    assert ledger.tables.models().loc[0, "charged"] == 3


def test_as_long_as_it_cannot_be_recorded_nothing_is_claimed(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    states(ledger, 1)
    failing(monkeypatch, n=3)
    with pytest.raises(LedgerFailed):
        ledger.record(MODEL, rows(1), ["good"])
    for number in (1, 5):
        with pytest.raises(LedgerFailed):
            states(ledger, number)
    assert states(ledger, 1, 5) == ["answered", "mine"]


def test_closing_records_what_could_not_be_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        states(ledger, 1)
        failing(monkeypatch)
        with pytest.raises(LedgerFailed):
            ledger.record(MODEL, rows(1), ["good"])
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]
    assert Ledger(tmp_path / "ledger.db").known(MODEL, rows(1))["[1]"].label == "good"


def test_an_interrupt_while_recording_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    ledger = Ledger(tmp_path / "ledger.db")
    states(ledger, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.record(MODEL, rows(1), ["good"])
    assert states(ledger, 1) == ["answered"]


def test_a_backend_of_postgres_that_ends_while_recording_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres() as address, Ledger(address) as ledger, Ledger(address) as other:
        states(ledger, 1)
        add = Ledger._add

        def ended(self: Ledger, found: Any, entry: Entry) -> int:
            process = found.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
            with other.database.read() as another:
                another.exec_driver_sql(f"SELECT pg_terminate_backend({process}, 10000)")
            return add(self, found, entry)

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "_add", ended)
            with pytest.raises(LedgerFailed):
                ledger.record(MODEL, rows(1), ["good"])
        assert states(ledger, 1) == ["answered"]


# -- what another process knew --------------------------------------------------------------------------------


def answer_and_die(address: str, number: int) -> None:
    """Killed when the answer is in the journal, before the ledger has it."""
    ledger = Ledger(address)
    ledger.claim(MODEL, questions(number))
    Ledger._add = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment, method-assign]
    ledger.record(MODEL, rows(number), ["good"])


def die_after_an_answer(address: str, number: int) -> None:
    child = processes.Process(target=answer_and_die, args=(address, number))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL


def test_the_answer_of_a_process_that_was_killed_is_there_when_the_ledger_is_next_opened(address: str) -> None:
    die_after_an_answer(address, 1)
    with Ledger(address) as ledger:
        assert journals(ledger) == []
        assert ledger.known(MODEL, rows(1))["[1]"].label == "good"
        assert states(ledger, 1) == ["answered"]
        assert ledger.tables.models()[["charged", "asked_again"]].values.tolist() == [[1, 0]]


def test_the_answer_of_a_process_that_was_killed_is_found_by_one_that_has_the_ledger_open(address: str) -> None:
    with Ledger(address) as ledger:
        die_after_an_answer(address, 1)
        assert ledger.known(MODEL, rows(1)) == {}
        assert ledger.wait(MODEL, rows(1))
        assert states(ledger, 1, 2) == ["answered", "mine"]


def test_an_answer_that_was_recorded_and_comes_again_changes_nothing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        states(ledger, 1, 2)
        ledger.record(MODEL, rows(1, 2), ["good", "good"])
        ledger.record(MODEL, rows(2), ["bad"])
        prefix, name = ledger._journal.prefix, ledger._journal._ledger
    left = journal(prefix, name)
    left.write(Entry(MODEL, rows(1, 2), ["good", "bad"], None, "another"))
    del left  # its answers stay, as after a kill between recording and forgetting
    for _ in range(2):
        with Ledger(tmp_path / "ledger.db") as ledger:
            assert len(ledger.answers(MODEL)) == 2
            assert ledger.contradicted(MODEL) == {"[2]"}
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_journal_of_another_ledger_is_left_alone(tmp_path: Path) -> None:
    address = str(tmp_path / "ledger.db")
    die_after_an_answer(address, 1)
    for path in tmp_path.glob("ledger.db*"):
        if "answers" not in path.name:
            path.unlink()
    with Ledger(address) as ledger:  # a new one of the same name
        assert ledger.known(MODEL, rows(1)) == {}
    assert len(list(tmp_path.glob("ledger.db-answers-*"))) == 1


def test_a_read_only_ledger_can_be_read_with_an_answer_waiting_beside_it(tmp_path: Path) -> None:
    address = str(tmp_path / "ledger.db")
    die_after_an_answer(address, 1)

    def read_only(database: Database) -> Any:
        raise LedgerFailed("it is read-only")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "write", read_only)
        with Ledger(address) as ledger:
            assert ledger.known(MODEL, rows(1)) == {}
    with Ledger(address) as ledger:
        assert states(ledger, 1) == ["answered"]


# -- the file --------------------------------------------------------------------------------------------------


def entry(*numbers: int) -> Entry:
    return Entry(MODEL, rows(*numbers), [true_label(row) for row in rows(*numbers)], None, "me")


def found(prefix: Path, ledger: str = "l") -> list[Entry]:
    return [entry for _, entries in journal(prefix, ledger).others() for entry in entries]


def test_entries_are_kept_until_they_are_recorded(tmp_path: Path) -> None:
    book, answered = journal(tmp_path / "j-"), [entry(1), entry(2, 3), entry(4)]
    for one in answered:
        book.write(one)
    assert found(tmp_path / "j-") == answered
    assert found(tmp_path / "j-", "another") == []
    book.done(answered[1])
    assert found(tmp_path / "j-") == answered  # recording one twice does no harm
    book.done(answered[0])
    book.done(answered[2])
    assert found(tmp_path / "j-") == []
    book.write(entry(5))  # over what was there; the old ones do not come back
    assert found(tmp_path / "j-") == [entry(5)]


def test_an_entry_that_was_cut_off_was_never_answered(tmp_path: Path) -> None:
    book = journal(tmp_path / "j-")
    book.write(entry(1))
    book.write(entry(2))
    [path] = tmp_path.iterdir()
    whole = path.read_bytes().rstrip(b"\0\n")
    for end in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:end])
        assert found(tmp_path / "j-") == [entry(1)]


def test_a_journal_stays_small_and_is_private(tmp_path: Path) -> None:
    book = journal(tmp_path / "j-")
    book.open()
    [path] = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for i in range(300):
        one = entry(*range(i, i + 20))
        book.write(one)
        book.done(one)
        assert path.stat().st_size == ALLOCATED
    book.close()
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_is_forgotten_is_removed_unless_it_holds_an_answer(tmp_path: Path) -> None:
    book = journal(tmp_path / "j-")
    book.open()
    del book
    assert list(tmp_path.iterdir()) == []
    book = journal(tmp_path / "j-")
    book.write(entry(1))
    del book
    assert found(tmp_path / "j-") == [entry(1)]


def test_a_journal_in_use_is_not_removed_by_others(tmp_path: Path) -> None:
    book, other = journal(tmp_path / "j-"), journal(tmp_path / "j-")
    book.write(entry(1))
    [path] = tmp_path.iterdir()
    other.remove(path)
    assert path.exists()
    del book
    other.remove(path)
    assert not path.exists()


def test_a_ledger_whose_folder_is_gone_does_not_make_it_again(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    ledger = Ledger(tmp_path / "folder" / "ledger.db")
    states(ledger, 1)
    ledger.close()
    shutil.rmtree(tmp_path / "folder")
    with pytest.raises(LedgerFailed):
        ledger.record(MODEL, rows(1), ["good"])
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_no_entry_does_not_stop_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        states(ledger, 1)

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("acex.ledger.journal._write", full)
        ledger.record(MODEL, rows(1), ["good"])
        assert states(ledger, 1) == ["answered"]


def test_without_room_for_answers_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ACEX_STATE", str(tmp_path / "file"))
    with postgres() as address, Ledger(address) as ledger:
        with pytest.raises(LedgerFailed, match="ACEX_STATE"):
            states(ledger, 1)
        assert ledger.account(MODEL).n_charged == 0
        monkeypatch.setenv("ACEX_STATE", str(tmp_path / "folder"))
        with Ledger(address) as again:
            assert states(again, 1) == ["mine"]
            assert len(list((tmp_path / "folder").iterdir())) == 1
        assert list((tmp_path / "folder").iterdir()) == []


def test_threads_that_record_at_once_each_find_their_answers(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        threads = [
            threading.Thread(target=lambda k=k: [ledger.record(MODEL, rows(10 * k + i), [k]) for i in range(10)])
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {answer.row: answer.label for answer in ledger.answers(MODEL)} == {f"[{n}]": n // 10 for n in range(40)}
        other = journal(ledger._journal.prefix, ledger._journal._ledger)
        assert [entries for _, entries in other.others()] == [[]]


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_only_has_the_name_of_a_journal_is_ignored(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db-answers-0123456789abcdef"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with Ledger(tmp_path / "ledger.db") as ledger:  # opening a FIFO would wait for a writer
        assert states(ledger, 1) == ["mine"]
        ledger.record(MODEL, rows(1), ["good"])
    assert check(tmp_path / "ledger.db") == []
    assert path.is_symlink() or path.exists()


GOOD = {"ledger": "l", "model": MODEL, "rows": ["[1]"], "labels": ["good"], "scores": None, "recorded_by": "me"}


CHANGES: list[dict[str, Any]] = [
    {"rows": 7},
    {"rows": [7]},
    {"rows": ["\ud800"]},
    {"labels": [None]},
    {"labels": [float("nan")]},
    {"labels": []},
    {"scores": [[1]]},
    {"used": "much"},
    {"used": "NaN"},
    {"model": None},
    {"ledger": ["l"]},
    {"more": 1},
]


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe\x80", b"[" * 5000, b"[]", b"7", *(json.dumps({**GOOD, **change}).encode() for change in CHANGES)],
)
def test_a_line_that_is_not_an_entry_is_reported_and_stays(line: bytes, tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        good = json.dumps({**GOOD, "ledger": ledger._journal._ledger}).encode()
        line = line.replace(b'"ledger": "l"', f'"ledger": "{ledger._journal._ledger}"'.encode())
    path = tmp_path / "ledger.db-answers-0123456789abcdef"
    path.write_bytes(line + b"\n" + good + b"\n")
    with pytest.warns(UserWarning, match=path.name), Ledger(tmp_path / "ledger.db") as ledger:
        assert states(ledger, 1, 2) == ["answered", "mine"]
    assert path.exists()


# -- kills -----------------------------------------------------------------------------------------------------


class Log(Bill):
    """A bill that also says, in order, which rows were answered: whose entry in the journal was on the disk."""

    def sent(self) -> Bill:
        return _Sent(self.path)

    def answered(self, rows: Sequence[str]) -> None:
        self.add([f"answered {row}" for row in rows])


class _Sent(Bill):
    def add(self, rows: Sequence[str]) -> None:
        super().add([f"sent {row}" for row in rows])


def ask_and_be_killed(address: str, seed: int, log: Log) -> None:
    """Ask one row after the other; end at some line of the ledger's code, or at some moment of time."""
    rng = random.Random(seed)
    write = Journal.write

    def noted(self: Journal, entry: Entry) -> None:
        write(self, entry)
        log.answered(entry.rows)

    Journal.write = noted  # type: ignore[method-assign]
    if seed % 3 == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process there and then, also inside of SQLite
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 0.3))
    else:
        left, folder = [rng.randint(1, 3000)], str(Path(acex.__file__).parent / "ledger")

        def step(frame: Any, event: str, _: Any) -> Any:
            if not frame.f_code.co_filename.startswith(folder):
                return None
            left[0] -= event == "line"
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return step

        sys.settrace(step)
    ledger = Ledger(address)
    for number in range(max(ledger.account(MODEL).last_sequence - 2, 0), 10**6):  # from the last that were answered on
        ask(ledger, rows(number), log.sent())


def kill_again_and_again(address: str, kills: int, log: Log) -> None:
    """Each of them a fork of this process, which has imported all it takes."""
    for seed in range(kills):
        child = os.fork()
        if child == 0:
            ask_and_be_killed(address, seed, log)
        how = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert how in (-signal.SIGKILL, -signal.SIGALRM)


def answered_rows_are_not_sent_again(address: str, log: Log, kills: int) -> None:
    assert run(kill_again_and_again, [(address, kills, log)], seconds=3600) == [0]
    answered: set[str] = set()
    again = []
    for line in log.lines():
        event, row = line.split(" ", 1)
        if event == "answered":
            answered.add(row)
        elif row in answered:
            again.append(row)
    assert again == []
    assert len(answered) > kills / 2  # they got somewhere
    with Ledger(address) as ledger:
        known = ledger.known(MODEL, sorted(answered))
        assert {row: answer.label for row, answer in known.items()} == {row: true_label(row) for row in answered}
        assert check(address) == []
        assert journals(ledger) == []


def test_a_dozen_kills_pay_no_answered_row_twice(address: str, tmp_path: Path) -> None:
    answered_rows_are_not_sent_again(address, Log(tmp_path / "log"), kills=12)


@pytest.mark.slow
def test_a_thousand_kills_pay_no_answered_row_twice(tmp_path: Path) -> None:
    answered_rows_are_not_sent_again(str(tmp_path / "ledger.db"), Log(tmp_path / "log"), kills=1000)


@pytest.mark.slow
def test_two_hundred_kills_on_postgres_pay_no_answered_row_twice(tmp_path: Path) -> None:
    with postgres() as address:
        answered_rows_are_not_sent_again(address, Log(tmp_path / "log"), kills=200)
