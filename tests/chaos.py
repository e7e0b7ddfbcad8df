"""A batch on a Dask cluster whose parts die all the time: workers, scheduler, database, endpoint.

All of them are processes on this machine, started again whenever they end. One log, which lines are only added to, says
in which order rows were sent, charged and answered:

    sent MODEL ROW       a worker is about to send the row
    charged MODEL ROW    the endpoint has received it
    answered MODEL ROW   its answer is in a worker's journal, on the disk
"""

from __future__ import annotations

import faulthandler
import glob
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acex
from acex.arrays import FloatArray
from acex.ledger import canonical
from acex.ledger.base import Entry
from acex.ledger.journal import Journal
from acex.ledger.sql import Ledger
from ledgers import Bill
from servers import Handler, Server

ROWS, BUDGET = 10, 6  # of a batch
LEASE = 10.0  # seconds: how long a claim waits whose owner lives and knows nothing of it
SECONDS_A_ROW = 0.1  # that the endpoint takes, so that kills find requests on their way
HANGS = 240  # seconds after which a batch that has not ended is stuck; undisturbed it takes a few
BETWEEN_KILLS = 4.0  # seconds on average
VICTIMS = {"worker": 3, "answered": 2, "endpoint": 2, "scheduler": 2, "database": 2}  # how often each dies


# -- the model, on both ends of the wire ------------------------------------------------------------------------


class Noted:
    """An HTTP model that logs what is sent, and what its process has brought to the disk."""

    def __init__(self, url: str, name: str, log: Path) -> None:
        request = {"name": name, "rows": "$rows"}
        self.http = acex.HttpModel(url, protocol="json", request=request, labels="labels", timeout=10.0)
        self.name, self.log = name, log

    def predict(self, rows: FloatArray) -> Any:
        _note_answers(Bill(self.log))
        Bill(self.log).add([f"sent {self.name} {row}" for row in canonical(rows)])
        return self.http.predict(rows)


def _note_answers(log: Bill) -> None:
    """From now on this process logs what its journals hold, and dies at that moment where a trap is set."""
    write = Journal.write
    if getattr(write, "is_noted", False):
        return

    def noted(self: Journal, entry: Entry) -> None:
        write(self, entry)
        log.add([f"answered {entry.model} {row}" for row in entry.rows])
        with suppress(FileNotFoundError):
            trap(log.path).unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    noted.is_noted = True  # type: ignore[attr-defined]
    Journal.write = noted  # type: ignore[method-assign]


def trap(log: Path) -> Path:
    """A file that kills the next worker which has brought an answer to the disk, before its ledger has it."""
    return log.with_suffix(".trap")


def serve(port: int, log: Path) -> None:
    """The endpoint, until it is killed."""

    def answer(handler: Handler) -> None:
        rows = np.array(handler.body["rows"], dtype=float)
        Bill(log).add([f"charged {handler.body['name']} {row}" for row in canonical(rows)])
        time.sleep(SECONDS_A_ROW * len(rows))
        handler.reply(200, json.dumps({"labels": np.where(rows[:, 0] + rows[:, 1] > 0.7, "high", "low").tolist()}))

    Server((answer,), port=port).serve_forever()


@dataclass(frozen=True)
class Batch:
    """Rows to explain by a model of its own, so that each batch has all to ask."""

    number: int
    rows: int = ROWS

    @property
    def model(self) -> str:
        return f"sums-{self.number}"

    def explain(self, ledger: Ledger, url: str, scheduler: str, log: Path) -> acex.Explanations:
        """The explanations, which begin when they are looked at."""
        X = np.random.default_rng(self.number).normal(size=(150, 3)).round(6)
        low = X[X[:, 0] + X[:, 1] < 0][: self.rows]
        explainer = acex.Explainer(acex.Model(Noted(url, self.model, log), name=self.model), X, ledger=ledger)
        return explainer.explain_many(low, budget=BUDGET, executor=acex.DaskExecutor(scheduler, timeout=20.0))


def drive(batches: Sequence[Batch], address: str, url: str, scheduler: str, log: Path, results: Path) -> None:
    """Run batches, and write what came of each row as soon as it is known, then "complete"."""
    with Ledger(address, lease=LEASE) as ledger:
        for batch in batches:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            many = batch.explain(ledger, url, scheduler, log)
            for position, e in many.as_finished():
                line = {"model": batch.model, "position": position, "error": many.errors.get(position), **outline(e)}
                Bill(results).add([json.dumps(line)])
    Bill(results).add([json.dumps("complete")])


def outline(e: acex.Explanation) -> dict[str, Any]:
    """What must not change any more once it was seen."""
    return {
        "identity": e.plan.identity,
        "outcome": e.outcome,
        "rows": [list(step.row.values()) for step in e.steps],
        "costs": list(e.costs),
    }


# -- databases ----------------------------------------------------------------------------------------------------


class SqliteFile:
    """A ledger in a file. What dies is a program that is in the middle of writing to it."""

    def __init__(self, folder: Path) -> None:
        self.address = str(folder / "ledger.db")

    def die(self, rng: random.Random) -> None:
        seconds = rng.uniform(0.0, 0.5)
        child = subprocess.Popen([sys.executable, __file__, "scribble", self.address])
        time.sleep(1.0 + seconds)
        child.kill()
        child.wait()

    def stop(self) -> None:
        """There is no server."""


def scribble(address: str) -> None:
    """Begin to spoil every answer, on the disk too, and never say that it is meant."""
    connection = sqlite3.connect(address, timeout=30.0, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # what does not fit is written before its time
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE queries SET label = '\"wrong\"', sequence = NULL")
    connection.execute("UPDATE models SET n_charged = 0, row_budget = NULL")
    time.sleep(0.5)  # others wait meanwhile
    connection.execute("ROLLBACK")


class PostgresServer:
    """A server of its own, which may be restarted: as users on a good day do, or with the plug pulled."""

    def __init__(self, _: Path) -> None:
        self._bin = _server_programs()
        # Not in the tests' folder, which the server's user may not enter.
        self._data, self._port = Path(tempfile.mkdtemp(prefix="acex-chaos-")), free_port()
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            self._as_user = ["runuser", "-u", "nobody", "--"]
            shutil.chown(self._data, "nobody")
        self._run("initdb", "-U", "acex", "-A", "trust", "-E", "UTF8", "--locale=C")
        self._start()
        self.address = f"postgresql://acex@127.0.0.1:{self._port}/postgres"

    def _start(self) -> None:
        settings = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self._run("pg_ctl", "-l", str(self._data / "log"), "-w", "-o", settings, "start")

    def _run(self, program: str, *words: str) -> None:
        # Not with a pipe, which the server would keep open.
        line = [*self._as_user, str(self._bin / program), "-D", str(self._data), *words]
        subprocess.run(line, cwd="/", check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def die(self, rng: random.Random) -> None:
        self._run("pg_ctl", "-m", rng.choice(["immediate", "immediate", "fast"]), "-w", "stop")
        time.sleep(rng.uniform(0.0, 2.0))
        self._start()

    def stop(self) -> None:
        self._run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(self._data)


def _server_programs() -> Path:
    """The folder of PostgreSQL's programs."""
    named = os.environ.get("ACEX_TEST_POSTGRES_BIN")
    found = shutil.which("pg_ctl") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))[::-1]), None)
    if named is None and found is None:
        pytest.skip("needs a PostgreSQL of its own to restart: run under .ci/postgres, or install the server")
    return Path(named) if named is not None else Path(found or "").resolve().parent


# -- a place where things die -----------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@dataclass
class Place:
    """An endpoint, a scheduler and two workers, as processes that are started again whenever they end."""

    folder: Path
    database: SqliteFile | PostgresServer
    log: Path
    killed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        door, desk = free_port(), free_port()
        self.url, self.scheduler = f"http://127.0.0.1:{door}/score", f"tcp://127.0.0.1:{desk}"
        dask, plain = ["-m", "distributed.cli.dask_scheduler"], ["--no-dashboard"]
        work = ["-m", "distributed.cli.dask_worker", self.scheduler, "--no-nanny", "--nthreads", "1", *plain]
        work += ["--local-directory", str(self.folder), "--death-timeout", "20"]
        here = str(Path(__file__).parent)  # where workers find the model's class
        self._environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
        self._words = {
            "endpoint": [__file__, "serve", str(door), str(self.log)],
            "scheduler": [*dask, "--host", "127.0.0.1", "--port", str(desk), *plain],
            "worker 1": work,
            "worker 2": work,
        }

    def keep_alive(self) -> None:
        """Start what is not running, again and again."""
        while not self._over.wait(0.1):
            for name, words in self._words.items():
                running = self._running.get(name)
                if running is None or running.poll() is not None:
                    with (self.folder / f"{name}.log").open("ab") as out:
                        line = [sys.executable, *words]
                        self._running[name] = subprocess.Popen(line, stdout=out, stderr=out, env=self._environment)

    def kill_one(self, rng: random.Random) -> None:
        victim = rng.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        self.killed[victim] += 1
        if victim == "database":
            self.database.die(rng)
        elif victim == "answered":
            trap(self.log).touch()
        else:
            self._running[rng.choice([name for name in self._words if name.startswith(victim)])].kill()

    def kill_at_random(self, rng: random.Random, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self._over.wait(rng.expovariate(1 / BETWEEN_KILLS)) and time.monotonic() < ends:
            self.kill_one(rng)

    def leave(self) -> None:
        self._over.set()
        for process in self._running.values():
            process.kill()
            process.wait()


@contextmanager
def place(folder: Path, database: SqliteFile | PostgresServer) -> Iterator[Place]:
    """A place that is kept alive as long as the block runs."""
    found = Place(folder, database, folder / "log")
    keeper = threading.Thread(target=found.keep_alive, daemon=True)
    keeper.start()
    try:
        yield found
    finally:
        found._over.set()
        keeper.join()
        found.leave()
        database.stop()


@contextmanager
def in_the_background(deed: Callable[..., None], *arguments: Any) -> Iterator[threading.Thread]:
    """A thread that does this; what goes wrong there is raised here."""
    wrong: list[BaseException] = []

    def run() -> None:
        try:
            deed(*arguments)
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield thread
    thread.join()
    if wrong:
        raise wrong[0]


def main(words: Sequence[str]) -> None:
    if words[0] == "serve":
        serve(int(words[1]), Path(words[2]))
    else:
        scribble(words[1])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(sys.argv[1:])
