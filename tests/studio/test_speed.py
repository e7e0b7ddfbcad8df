"""How long pages take with a large table and many explanations, as a multiple of the demonstration, in CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import acex
from acex.studio.demo import demo_workspace
from acex.studio.workspace import Workspace
from studios import visiting

pytestmark = pytest.mark.slow

N_ROWS, N_COLUMNS, N_EXPLAINED = 5000, 60, 1000
FEW = 10  # explanations of the demonstration
LIMIT = 3.0  # times the demonstration
REPEATS = 5


def large_workspace(folder: Path) -> Workspace:
    """A table of 60 columns, a third of them categories, and a model that is a sum of ten numbers."""
    rng = np.random.default_rng(0)
    numbers = {f"number_{j}": rng.normal(size=N_ROWS).round(3) for j in range(40)}
    words = {f"word_{j}": rng.choice(["red", "green", "blue", "white"], N_ROWS) for j in range(N_COLUMNS - 40)}
    rows = pd.DataFrame(numbers | words)

    def decide(rows: pd.DataFrame) -> list[str]:
        return np.where(rows.iloc[:, :10].sum(axis=1) > 0, "approved", "rejected").tolist()

    model, outcomes = acex.Model(decide, name="sum"), decide(rows)
    explainer = acex.Explainer(model, rows, outcomes=outcomes, ledger=folder / "large.db")
    return Workspace(explainer, model, rows, rows, "# setup\n", outcomes, options={"target": ["approved"], "budget": 4})


def explain(workspace: Workspace, n: int) -> None:
    """Explain the first rejected rows. Few queries and few known rows make it quick; what pages read is as large."""
    known, outcomes = workspace.rows.head(100), (workspace.outcomes or ())[:100]
    explainer = acex.Explainer(
        workspace.model, known, outcomes=list(outcomes), space=workspace.space, ledger=workspace.ledger
    )
    rejected = [i for i, label in enumerate(workspace.outcomes or ()) if label == "rejected"][:n]
    rows = workspace.rows.iloc[rejected]
    list(explainer.explain_many(rows, target="approved", budget=3, n_jobs=1, progress=False).as_finished())


def requests(client: TestClient) -> dict[str, Callable[[], Any]]:
    """The requests of each page, once everything is read that a studio reads once."""
    table: dict[str, Any] = client.get("/api/many").json()
    while table["pending"]:
        table = client.get("/api/many").json()
    line = table["lines"][0]
    row, first = {"row": {"position": line["position"]}}, client.get("/api/workspace").json()["features"][0]["name"]
    search, values = f"/api/searches/{line['id']}", client.get(f"/api/rows/{line['position']}").json()["values"]
    pages: dict[str, list[tuple[Any, ...]]] = {
        "start": [("/api/workspace",), ("/api/rows",)],
        "rows": [("/api/rows",)],
        "rows, filtered": [(f"/api/rows?q={first} > 0",)],
        "row": [(f"/api/rows/{line['position']}",), ("/api/answers", row), ("/api/plan", row)],
        "search": [(search,), ("/api/answers", row)],
        "what if": [("/api/ask", {"row": {"values": values}})],
        "many": [("/api/many",)],
        "many, filtered and sorted": [(f"/api/many?q={first} > 0&sort=cost&by={first}",)],
        "report": [(f"{search}/exports/report.html",)],
        "code": [(f"{search}/exports/code",)],
    }

    def send(path: str, body: Any = None) -> None:
        response = client.get(path) if body is None else client.post(path, json=body)
        assert response.status_code == 200, response.text

    return {name: lambda all_=all_: [send(*one) for one in all_] for name, all_ in pages.items()}  # type: ignore[misc]


def seconds(page: Callable[[], Any]) -> float:
    """The least CPU time of several calls, after a first one."""
    page()
    out = []
    for _ in range(REPEATS):
        start = time.process_time()
        page()
        out.append(time.process_time() - start)
    return min(out)


def test_large_tables_take_at_most_three_times_as_long_as_the_demonstration(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    large, demo = large_workspace(tmp_path), demo_workspace(acex.Ledger(tmp_path / "demo.db"))
    explain(large, N_EXPLAINED)
    explain(demo, FEW)
    with visiting(large) as client, visiting(demo) as other:
        first, second = requests(client), requests(other)
        measured = {name: (seconds(first[name]), seconds(second[name])) for name in first}
    for name, (slow, fast) in measured.items():
        print(f"{name:28} {1000 * slow:8.1f} ms {1000 * fast:8.1f} ms {slow / fast:6.2f}")
        record_property(name, slow / fast)
    assert {name: a / b for name, (a, b) in measured.items() if a > LIMIT * b} == {}
