"""What the tests of the ledger share: ledgers to test on, and processes that ask a model through one."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import make_url

from acex.ledger import Question, canonical
from acex.ledger.database import Database
from acex.ledger.sql import Ledger

MODEL = "loans-v1"

# Imports once, then starts each process from there.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["acex.ledger", "acex.api", "sklearn.ensemble", "pytest"])


@contextmanager
def postgres() -> Iterator[str]:
    """The address of an empty PostgreSQL ledger."""
    server = os.environ.get("ACEX_TEST_POSTGRES")
    if not server:
        pytest.skip("needs PostgreSQL: run .ci/postgres make test, or set ACEX_TEST_POSTGRES to a server's URL")
    url = make_url(server).set(drivername="postgresql+psycopg")
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
        own = url.update_query_dict({"options": f"-csearch_path={name}"})
        yield own.render_as_string(hide_password=False)
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@dataclass
class Clock:
    """The clock of every ledger's leases, to be moved by hand."""

    now: float = 1000.0

    def __call__(self, database: Database, connection: Connection) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


def questions(*numbers: int) -> list[Question]:
    return [Question(f"[{number}]") for number in numbers]


def rows(*numbers: int) -> list[str]:
    return [f"[{number}]" for number in numbers]


def true_label(row: str) -> str:
    return f"label of {row}"


@dataclass
class Bill:
    """What the model's seller wrote down: a line for each row it was sent. It survives the process that sent them."""

    path: Path

    def add(self, rows: Sequence[str]) -> None:
        lines = "".join(f"{row}\n" for row in rows).encode()
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(file, lines)  # one write, so that lines of several processes do not mix
        os.close(file)

    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []


class Seller:
    """A model that writes down what it is sent; its process may be killed at one of the calls, once that is written."""

    def __init__(self, answer: Callable[[Any], Any], bill: Bill, at: int = 0) -> None:
        self.answer, self.bill, self.at, self.calls = answer, bill, at, 0

    def __call__(self, rows: Any) -> Any:
        self.calls += 1
        self.bill.add(canonical(rows))
        if self.calls == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.answer(rows)


def killed(work: Callable[[], object]) -> None:
    """Do this in a process of its own, which has to be killed by it."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def ask(ledger: Ledger, wanted: Sequence[str], bill: Bill, seconds: float = 0.0) -> dict[str, Any]:
    """The labels of these rows, the way a black box gets them."""
    while True:
        claims = ledger.claim(MODEL, [Question(row) for row in wanted])
        mine = [claim.row for claim in claims if claim.state == "mine"]
        if mine:
            bill.add(mine)
            time.sleep(seconds)
            ledger.record(MODEL, mine, [true_label(row) for row in mine])
        if all(claim.state == "answered" for claim in claims):
            return {claim.row: claim.answer.label for claim in claims if claim.answer}
        assert ledger.wait(MODEL, wanted)


def ask_all(address: str, seed: int, numbers: Sequence[int], bill: Bill, ready: Any, at_once: int = 20) -> None:
    """What a process does that wants all the rows, in an order of its own."""
    ready.wait()
    ledger = Ledger(address)
    order = random.Random(seed).sample(list(numbers), len(numbers))
    for start in range(0, len(order), at_once):
        wanted = rows(*order[start : start + at_once])
        assert ask(ledger, wanted, bill) == {row: true_label(row) for row in wanted}


def run(target: Any, argument_lists: Sequence[tuple[Any, ...]], seconds: float = 300) -> list[int | None]:
    """The exit codes of processes that run side by side."""
    started = [processes.Process(target=target, args=arguments) for arguments in argument_lists]
    for process in started:
        process.start()
    for process in started:
        process.join(seconds)
        process.kill()  # one that hangs has no exit code of 0
        process.join()
    return [process.exitcode for process in started]


def in_a_fork(action: Any) -> int:
    """The exit code of a forked child that only does this."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
