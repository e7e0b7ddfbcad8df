"""How long pages take with a large table and many explanations, as a multiple of the demonstration, in CPU time."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import acex
from acex.ledger import canonical
from acex.ledger.row_keys import query_id
from acex.studio.demo import demo_workspace
from acex.studio.workspace import Workspace
from studios import visiting

pytestmark = pytest.mark.slow

N_ROWS, N_COLUMNS, N_EXPLAINED = 5000, 60, 1000
FEW = 10  # explanations of the demonstration
LIMIT = 3.0  # times the demonstration
REPEATS = 20


def large_workspace(folder: Path) -> Workspace:
    """A table of 60 columns, a third of them categories, and a model that is a sum of ten numbers."""
    rng = np.random.default_rng(0)
    numbers = {f"number_{j}": rng.normal(size=N_ROWS).round(3) for j in range(40)}
    words = {f"word_{j}": rng.choice(["red", "green", "blue", "white"], N_ROWS) for j in range(N_COLUMNS - 40)}
    rows = pd.DataFrame(numbers | words)

    def decide(rows: pd.DataFrame) -> list[str]:
        return ["approved" if total > 0 else "rejected" for total in rows.iloc[:, :10].sum(axis=1)]

    model, outcomes = acex.Model(decide, name="sum"), decide(rows)
    explainer = acex.Explainer(model, rows, outcomes=outcomes, ledger=folder / "large.db")
    return Workspace(explainer, model, rows, rows, "# setup\n", outcomes, options={"target": ["approved"], "budget": 4})


def explain(workspace: Workspace, n: int) -> None:
    """Explain the first rejected rows: ten by a search, others as copies of these with the values of their row."""
    rejected = [i for i, label in enumerate(workspace.outcomes or ()) if label == "rejected"][:n]
    rows, first = workspace.rows.iloc[rejected], rejected[:FEW]
    results = workspace.explainer.explain_many(
        workspace.rows.iloc[first], target="approved", budget=4, n_jobs=1, progress=False
    )
    identities = [e.plan.identity for _, e in results.as_finished()]
    names, texts = list(rows.columns), canonical(rows)
    with closing(sqlite3.connect(str(workspace.ledger.path))) as db, db:
        db.row_factory = sqlite3.Row

        def insert(table: str, original: sqlite3.Row, **changed: Any) -> None:
            values = dict(original) | changed
            db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({','.join('?' * len(values))})", tuple(values.values()))

        [last] = db.execute("SELECT max(sequence) FROM answers").fetchone()
        for k, text in enumerate(texts[FEW:]):
            copied, new = identities[k % FEW], f"{k:064x}"
            explanation = db.execute("SELECT * FROM explanations WHERE id = ?", [copied]).fetchone()
            values = json.loads(text)
            insert("explanations", explanation, id=new, factual=json.dumps(dict(zip(names, values, strict=True))))
            asks = db.execute("SELECT * FROM asks WHERE explanation_id = ? ORDER BY position", [copied]).fetchall()
            for ask in asks:
                query = db.execute("SELECT * FROM queries WHERE id = ?", [ask["query_id"]]).fetchone()
                answer = db.execute("SELECT * FROM answers WHERE query_id = ?", [query["id"]]).fetchone()
                if ask["position"] == 0:
                    before = json.loads(query["row"])
                after = [v if a == b else b for v, a, b in zip(values, before, json.loads(query["row"]), strict=True)]
                row, last = json.dumps(after), last + 1
                name = query_id(workspace.explainer.model_id, row)
                insert("queries", query, id=name, row=row, explanation_id=new, sequence=last)
                insert("answers", answer, sequence=last, query_id=name)
                insert("asks", ask, explanation_id=new, query_id=name)
        db.execute("UPDATE models SET last_sequence = ?", [last])


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

    def send(requests: list[Any]) -> None:
        for path, *body in requests:
            response = client.post(path, json=body[0]) if body else client.get(path)
            assert response.status_code == 200, response.text

    return {name: partial(send, requests) for name, requests in pages.items()}


def seconds(*pages: Callable[[], Any]) -> list[float]:
    """The least CPU time of several calls of each page, in turn, so that other work slows all of them."""
    out: list[list[float]] = [[] for _ in pages]
    for _ in range(REPEATS):
        for page, times in zip(pages, out, strict=True):
            start = time.process_time()
            page()
            times.append(time.process_time() - start)
    return [min(times) for times in out]


def test_large_tables_take_at_most_three_times_as_long_as_the_demonstration(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    large, demo = large_workspace(tmp_path), demo_workspace(acex.Ledger(tmp_path / "demo.db"))
    explain(large, N_EXPLAINED)
    explain(demo, FEW)
    with visiting(large) as client, visiting(demo) as other:
        first, second = requests(client), requests(other)
        measured = {name: seconds(first[name], second[name]) for name in first}
    for name, (slow, fast) in measured.items():
        print(f"{name:28} {1000 * slow:8.1f} ms {1000 * fast:8.1f} ms {slow / fast:6.2f}")
        record_property(name, slow / fast)
    assert {name: a / b for name, (a, b) in measured.items() if a > LIMIT * b} == {}
