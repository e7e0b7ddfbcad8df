"""A real Dask cluster of two worker processes and a real PostgreSQL: workers are killed, and versions differ."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acex
from acex.arrays import FloatArray
from acex.ledger import canonical
from ledgers import Bill, postgres

distributed = pytest.importorskip("distributed")
X = np.random.default_rng(0).normal(size=(150, 3)).round(6)
LOW = X[X[:, 0] + X[:, 1] < 0][:10]  # rows to explain


class Seller:
    """A model that writes down the rows it is sent and by whom, and takes a moment; it kills the first who asks `at`.

    It dies before it writes: that request never left.
    """

    def __init__(self, bill: Bill, at: FloatArray | None = None, seconds: float = 0.0) -> None:
        self.bill, self.at, self.seconds = bill, at, seconds

    def __call__(self, rows: FloatArray) -> Any:
        died = Path(f"{self.bill.path}.died")
        if self.at is not None and np.array_equal(rows[0], self.at) and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        self.bill.add(canonical(rows))
        Bill(Path(f"{self.bill.path}.pids")).add([str(os.getpid())])
        return np.where(rows[:, 0] + rows[:, 1] > 0.7, "high", "low")


@pytest.fixture
def bill(tmp_path: Path) -> Bill:
    return Bill(tmp_path / "bill")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    # The folders of tests, where workers find the model's class.
    folders = [str(folder) for folder in Path(__file__).parents[:2]]
    os.environ["PYTHONPATH"] = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # Not a client that serves all of this process: who names an address has none.
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def explainer(ledger: str, model: Any) -> acex.Explainer:
    return acex.Explainer(acex.Model(model, name="sums-v1"), X, ledger=acex.Ledger(ledger, lease=20.0))


def test_a_worker_killed_in_mid_run_loses_nothing_and_pays_nothing_twice(client: Any, bill: Bill) -> None:
    with postgres() as address:
        executor = acex.DaskExecutor(client)
        many = explainer(address, Seller(bill, LOW[2])).explain_many(LOW[:6], budget=3, executor=executor)
        frame = many.frame()
        assert many.errors == {}
        assert Path(f"{bill.path}.died").exists()
        assert max(Counter(bill.lines()).values()) == 1
        # What the dead worker had claimed counts, since it may have been charged.
        assert len(bill.lines()) <= frame["queries"].sum() <= len(bill.lines()) + 1
        assert len(set(Bill(Path(f"{bill.path}.pids")).lines())) >= 2  # both have worked
        again = explainer(address, Seller(bill)).explain_many(LOW[:6], budget=3, n_jobs=1)
        assert sum(e.n_queries for e in again) <= 1


@pytest.mark.slow
def test_a_worker_killed_from_outside_pays_at_most_the_row_in_flight_again(client: Any, bill: Bill) -> None:
    with postgres() as address:
        asked = explainer(address, Seller(bill, seconds=0.02))
        many = asked.explain_many(LOW[:6], budget=5, executor=acex.DaskExecutor(client))
        finished = many.as_finished()
        next(finished)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        assert len(list(finished)) == 5 and many.errors == {}
        assert sum(n - 1 for n in Counter(bill.lines()).values()) <= 1


def test_a_ledger_in_a_file_serves_a_cluster_on_this_machine(client: Any, bill: Bill, tmp_path: Path) -> None:
    address = client.scheduler.address.replace("tcp://", "dask://")
    many = explainer(str(tmp_path / "ledger.db"), Seller(bill)).explain_many(
        LOW[:3], budget=3, executor=acex.DaskExecutor(address)
    )
    assert (many.frame()["queries"] > 0).all() and many.errors == {}


def test_a_ledger_in_a_file_is_refused_where_workers_are_elsewhere(
    client: Any, bill: Bill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acex.batch.executors.socket.gethostname", lambda: "elsewhere")
    many = explainer(str(tmp_path / "ledger.db"), Seller(bill)).explain_many(LOW, executor=acex.DaskExecutor(client))
    with pytest.raises(ValueError, match="use PostgreSQL"):
        many.frame()
    assert bill.lines() == []


def test_a_scheduler_that_goes_away_is_reported_and_the_same_call_goes_on(
    client: Any, bill: Bill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = explainer(str(tmp_path / "ledger.db"), Seller(bill))

    def gone(*_: Any, **__: Any) -> Any:
        raise OSError("Timed out trying to connect")

    many = asked.explain_many(LOW[:8], budget=2, executor=acex.DaskExecutor(client))
    finished = many.as_finished()
    next(finished)
    with monkeypatch.context() as patch:
        patch.setattr(client, "nthreads", gone)
        with pytest.raises(acex.ExecutorFailed, match="OSError: Timed out"):
            list(finished)  # several rows may have been done at once
    again = asked.explain_many(LOW[:8], budget=2, executor=acex.DaskExecutor(client))
    assert len(again.frame()) == 8 and again.errors == {}
    assert max(Counter(bill.lines()).values()) == 1


def test_another_version_is_reported_at_once(
    client: Any, bill: Bill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acex.batch.executors.__version__", "9.9")
    many = explainer(str(tmp_path / "ledger.db"), Seller(bill)).explain_many(LOW, executor=acex.DaskExecutor(client))
    with pytest.raises(acex.ExecutorFailed, match=r"has acex 0\..*, and this is acex 9\.9"):
        many.frame()
    assert bill.lines() == []


@contextmanager
def scheduler(folder: Path, **environment: str) -> Iterator[str]:
    """The address of a scheduler in a process of its own."""
    found = folder / "scheduler.json"
    words = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    started = subprocess.Popen(
        [sys.executable, *words, "--scheduler-file", str(found)],
        env=os.environ | environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not found.exists() or not found.read_text().rstrip().endswith("}"):
            assert started.poll() is None, "the scheduler did not start"
            time.sleep(0.05)
        yield json.loads(found.read_text())["address"]
    finally:
        started.kill()
        started.wait()


def test_a_scheduler_without_acex_or_without_workers_is_reported(bill: Bill, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['acex'] = None\n")  # import acex fails there
    with scheduler(tmp_path, PYTHONPATH=str(tmp_path)) as address:
        asked = explainer(str(tmp_path / "ledger.db"), Seller(bill))
        unstaffed = asked.explain_many(LOW, executor=acex.DaskExecutor(address, timeout=1.0))
        with pytest.raises(acex.ExecutorFailed, match="workers"):
            unstaffed.frame()
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"],
            stderr=subprocess.DEVNULL,
        )
        try:
            many = asked.explain_many(LOW, executor=acex.DaskExecutor(address, timeout=30.0))
            with pytest.raises(acex.ExecutorFailed, match="scheduler"):
                many.frame()
        finally:
            worker.kill()
            worker.wait()
    assert bill.lines() == []


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bill: Bill) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    many = explainer(str(tmp_path / "l.db"), Seller(bill)).explain_many(LOW, executor=acex.DaskExecutor("tcp://x:1"))
    with pytest.raises(acex.MissingExtra, match=r"acex\[dask\]"):
        many.frame()
