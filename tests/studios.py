"""What the tests of the studio share: a small desk with a model that counts, and the studio as a process of its own."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from starlette.testclient import TestClient

import acex
from acex.studio.app import studio_app
from acex.studio.workspace import Desk, Recipe
from commands import command, environment

PORT = 8017
HOME = f"http://127.0.0.1:{PORT}"


class Bank:
    """Good from an income of 2000 on and with less than half of it in debts; counts the rows it is asked."""

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


def desk_in(folder: Path, model: Any = None, rows: pd.DataFrame | None = None, **more: Any) -> Desk:
    """A desk with a ledger in the folder."""
    rows = loans() if rows is None else rows
    model = Bank() if model is None else model
    explainer = acex.Explainer(acex.Model(model, name="bank"), rows, ledger=folder / "ledger.db")
    outcomes = ["good" if income > 2200 else "bad" for income in rows.iloc[:, 1]]
    given: dict[str, Any] = {
        "explainer": explainer,
        "labels": ("bad", "good"),
        "wishes": {"budget": 8},
        "title": "loans",
    }
    table = rows.assign(id=[f"case-{i}" for i in range(len(rows))])
    recipe = Recipe("# how to come to explainer and rows\n", ("loans.csv", "--model", "bank.skops"))
    return Desk(table=table, rows=rows, recipe=recipe, outcomes=outcomes, **given | more)


@contextmanager
def visiting(desk: Desk, **more: Any) -> Iterator[TestClient]:
    """Whoever asks the studio of this desk, as a page of its own would."""
    app = studio_app(desk, port=PORT, here=True, **more)
    with TestClient(app, base_url=HOME, headers={"origin": HOME}) as client:
        yield client


def ended(client: TestClient, identity: str) -> dict[str, Any]:
    """A search, once nobody works on it any more."""
    for _ in range(600):
        told: dict[str, Any] = client.get(f"/api/searches/{identity}").json()
        if told["state"] not in ("waiting", "running", "stopping"):
            return told
        time.sleep(0.02)
    raise AssertionError(told)


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
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"The studio is open: (http://\S+)", line):
                break
        else:
            raise AssertionError(f"the studio ended: {said}")
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
