"""Shared by the tests of the studio: a small workspace with a model that counts, and the studio as a process."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

import acex
from acex.cli.case import ModelFlags
from acex.cli.flags import Given
from acex.cli.studios import StudioCase, make_workspace
from acex.studio.app import studio_app
from acex.studio.workspace import Workspace
from commands import command, environment

PORT = 8017
HOME = f"http://127.0.0.1:{PORT}"
CASE = ["loans.csv", "--model", "acex_test_bank:decide", "--outcomes", "outcome", "--drop", "id", "--target", "good"]
CASE += ["--ledger", "l.db", "--model-name", "v1", "--budget", "12"]

FLATS = """
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
class Agent(RegressorMixin, BaseEstimator):
    def predict(self, rows):
        days = (pd.to_datetime(rows["built"]) - pd.Timestamp("1990-01-01")).dt.days
        return (10.0 * rows["size"] + days / 100).tolist()
agent = Agent()
def lends(rows):
    return [int(size > 60) for size in rows["size"]]
"""


class Bank:
    """Good above an income of 2000 and with less than half of it in debts; counts the rows it is sent."""

    def __init__(self, pause: float = 0.0) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.pause, self.go = pause, threading.Event()
        self.go.set()

    def predict(self, rows: pd.DataFrame) -> list[str]:
        self.go.wait(30)
        time.sleep(self.pause)
        self.asked += list(rows.itertuples(index=False, name=None))
        pairs = zip(rows.iloc[:, 1], rows.iloc[:, 2], strict=True)
        return ["good" if income > 2000 and debt < 0.5 else "bad" for income, debt in pairs]


def loans(n: int = 40) -> pd.DataFrame:
    """Known rows; the first one is bad, its income too low."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "monthly_income": rng.integers(500, 4000, n),
            "debt": rng.uniform(size=n).round(3),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
        }
    )
    rows.loc[0, ["monthly_income", "debt"]] = [1500, 0.3]
    return rows


def workspace_in(folder: Path, model: Any = None, rows: pd.DataFrame | None = None, **more: Any) -> Workspace:
    """A workspace with a ledger in the folder."""
    rows = loans() if rows is None else rows
    model = Bank() if model is None else model
    model = model if isinstance(model, acex.Model) else acex.Model(model, name="bank")
    outcomes = ["good" if income > 2200 else "bad" for income in rows.iloc[:, 1]]
    given: dict[str, Any] = {
        "explainer": acex.Explainer(model, rows, ledger=folder / "ledger.db"),
        "model": model,
        "options": {"budget": 8},
        "title": "loans",
    }
    table = rows.assign(id=[f"case-{i}" for i in range(len(rows))])
    setup = "# defines explainer and rows\n"
    return Workspace(table=table, rows=rows, setup=setup, outcomes=outcomes, **given | more)


def workspace_of(data: str, model: str, **given: Any) -> Workspace:
    """The workspace that `acex studio` makes of a file, Python code and these flags, with the ledger l.db."""
    own = {f.name: given.pop(f.name) for f in fields(StudioCase) if f.name in given}
    case = StudioCase(data=Path(data), given=Given({"ledger": "l.db", "name": "v1", **given}), **own)
    return make_workspace(case, ModelFlags(model=model), acex.Ledger("l.db"))


def same_elsewhere(client: TestClient, identity: str) -> None:
    """The exported script leads to the same explanation and pays nothing."""
    code = client.get(f"/api/searches/{identity}/exports/code").json()
    names: dict[str, Any] = {}
    exec(code["python"].replace("print(e)", ""), names)
    assert names["e"].plan.identity == identity and names["e"].n_queries == 0, code["python"]


def flats(n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    days = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")
    table = pd.DataFrame({"size": rng.integers(20, 120, n), "built": days.strftime("%Y-%m-%d")})
    table.loc[0, "size"] = 40
    return table


def in_threads() -> Any:
    """The studio takes the model for one that cannot be pickled, and so asks it in threads of this process."""
    return patch("acex.studio.worker_pool.cloudpickle.dumps", side_effect=TypeError)


@contextmanager
def visiting(workspace: Workspace, **more: Any) -> Iterator[TestClient]:
    """A client that sends requests as the studio's own page does."""
    with in_threads():
        app = studio_app(workspace, port=PORT, **more)
    with TestClient(app, base_url=HOME, headers={"origin": HOME}) as client:
        client.workspace = workspace  # type: ignore[attr-defined]
        yield client


def begin(client: TestClient, row: Any = None, **options: Any) -> dict[str, Any]:
    body = {"row": row or {"position": 0}, "options": options}
    response = client.post("/api/searches", json=body)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()
    return result


def ended(client: TestClient, identity: str) -> dict[str, Any]:
    """A search, once it is no longer running."""
    for _ in range(600):
        result: dict[str, Any] = client.get(f"/api/searches/{identity}").json()
        if result["state"] not in ("waiting", "running", "stopping"):
            return result
        time.sleep(0.02)
    raise AssertionError(result)


@contextmanager
def serving_studio(folder: Path, *words: Any, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`acex studio` as a process of its own in the folder, and its address."""
    process = subprocess.Popen(
        command("studio", *words),
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"The studio is open: (http://\S+)", line):
                break
        else:
            raise AssertionError(f"the studio ended: {lines}")
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def bill(folder: Path) -> list[str]:
    path = folder / "bill.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
