"""The studio as a process of its own, with every kind of model and ledger, killed, and used by several at once."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cloudpickle
import pytest
from starlette.testclient import TestClient

import acex
from acex.studio.app import studio_app
from browsers import until
from commands import set_up as set_up_bank
from documentation import decide, set_up_files
from ledgers import postgres
from servers import serving
from studios import CASE, HOME, PORT, Bank, begin, bill, ended, free_port, loans, serving_studio, visiting, workspace_in

LOANS = ("--outcomes", "decision", "--drop", "id", "--target", "approved", "--budget", "5", "--ledger", "l.db")


def asked(address: str, path: str, body: Any = None) -> Any:
    """What the studio answers, as a page would ask it."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    written = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, written, {"content-type": "application/json"})
    answer = connection.getresponse()
    result = json.loads(answer.read())
    assert answer.status == 200, result
    return result


def done(address: str, identity: str) -> Any:
    return until(lambda: (t := asked(address, f"/api/searches/{identity}"))["state"] in ("ended", "failed") and t)


def test_a_ledger_may_be_on_a_server(tmp_path: Path) -> None:
    bank = Bank()
    with postgres() as url:
        explainer = acex.Explainer(acex.Model(bank, name="bank"), loans(), ledger=url)
        with visiting(workspace_in(tmp_path, explainer=explainer)) as client:
            result = ended(client, begin(client, target=["good"])["id"])
            assert result["state"] == "ended" and result["paid"] == len(bank.asked)
            assert len(client.get("/api/many").json()["lines"]) == 1


def test_a_model_that_cannot_be_pickled_is_searched_in_threads(tmp_path: Path) -> None:
    bank = Bank()  # holds a lock
    with pytest.raises(TypeError):
        cloudpickle.dumps(bank)
    app = studio_app(workspace_in(tmp_path, bank), port=PORT)
    with TestClient(app, base_url=HOME, headers={"origin": HOME}) as client:
        result = ended(client, begin(client, target=["good"])["id"])
    assert result["state"] == "ended" and result["paid"] == len(bank.asked)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["skops", "onnx", "http", "module"])
def test_every_kind_of_model_can_be_asked(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOANS_TOKEN", "Bearer 0123456789")
    set_up_files(tmp_path)
    with serving(decide) as server:
        model: tuple[Any, ...] = ("loans.csv", "--model", "loans.skops", *LOANS)
        if kind == "http":
            config = 'request = { instances = "$records" }\nlabels = "predictions.label"\nversion = "7"\n'
            Path("m.toml").write_text(config, encoding="utf-8")
            how = ("--protocol", "json", "--model-config", "m.toml", "--header-from-env", "Authorization=LOANS_TOKEN")
            model = ("loans.csv", "--model", server.url, *how, *LOANS)
        elif kind == "module":
            Path("own_bank.py").write_text(
                "def decide(rows):\n    return ['approved' if s > 640 else 'rejected' for s in rows.credit_score]\n",
                encoding="utf-8",
            )
            model = ("loans.csv", "--model", "own_bank:decide", "--model-name", "v1", *LOANS)
        elif kind == "onnx":
            write_onnx()
            model = ("numbers.csv", "--model", "numbers.onnx", *LOANS[:4], "--budget", "5", "--ledger", "l.db")
        with serving_studio(tmp_path, *model, "--port", "0") as (_, address):
            identity = asked(address, "/api/searches", {"row": {"position": 1}, "options": {}})["id"]
            result = done(address, identity)
    assert result["state"] == "ended" and 1 <= result["paid"] <= 5, result["error"]


def write_onnx() -> None:
    import pandas as pd
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    table = pd.read_csv("loans.csv")[["id", "credit_score", "debt_ratio", "decision"]].astype({"credit_score": float})
    X = table[["credit_score", "debt_ratio"]].to_numpy("float32")
    model = LogisticRegression(max_iter=2000).fit(X, table["decision"])
    Path("numbers.onnx").write_bytes(to_onnx(model, X[:1]).SerializeToString())
    table.to_csv("numbers.csv", index=False)


@pytest.mark.slow
def test_killed_in_mid_search_and_restarted_it_pays_nothing_twice(tmp_path: Path) -> None:
    set_up_bank(tmp_path)
    words = (*CASE, "--port", free_port())
    with serving_studio(tmp_path, *words, BANK_SECONDS="0.2") as (process, address):
        identity = asked(address, "/api/searches", {"row": {"position": 0}, "options": {}})["id"]
        until(lambda: len(bill(tmp_path)) >= 3)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with serving_studio(tmp_path, *words) as (_, address):
        assert asked(address, f"/api/searches/{identity}")["state"] == "interrupted"
        asked(address, f"/api/searches/{identity}/resume", {"budget": 12})
        assert done(address, identity)["paid"] == len(bill(tmp_path)) == len(set(bill(tmp_path))) <= 12


@pytest.mark.slow
def test_four_searches_at_once_keep_the_budget_of_all(tmp_path: Path) -> None:
    set_up_bank(tmp_path)
    total = 25
    with serving_studio(tmp_path, *CASE, "--port", "0", "--budget-total", total, BANK_SECONDS="0.05") as (_, address):
        rows = [i for i, _ in zip(range(0, 80, 5), range(4), strict=False)]
        begun = [asked(address, "/api/searches", {"row": {"position": i}, "options": {}})["id"] for i in rows]
        result = [done(address, identity) for identity in begun]
        assert asked(address, "/api/workspace")["remaining"] == total - len(bill(tmp_path)) >= 0
    assert len(bill(tmp_path)) == len(set(bill(tmp_path))) <= total
    assert sum(t["paid"] for t in result) == len(bill(tmp_path))


@pytest.mark.slow
def test_a_process_that_dies_takes_its_search_with_it_and_no_more(tmp_path: Path) -> None:
    set_up_bank(tmp_path)
    with serving_studio(tmp_path, *CASE, "--port", "0", BANK_SECONDS="0.2") as (process, address):
        identity = asked(address, "/api/searches", {"row": {"position": 0}, "options": {}})["id"]
        until(lambda: len(bill(tmp_path)) >= 3)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = [int(p) for t in children.parents[1].iterdir() for p in (t / "children").read_text().split()]
        for pid in workers:
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
        result = done(address, identity)
        assert result["state"] == "failed" and "go on" in result["error"]
        time.sleep(0.2)
        asked(address, f"/api/searches/{identity}/resume", {"budget": 12})
        assert done(address, identity)["state"] == "ended"
        # The row in flight may have been charged without an answer; it is sent once more.
        assert len(bill(tmp_path)) - len(set(bill(tmp_path))) <= 1


@pytest.mark.slow
def test_ctrl_c_ends_it_without_a_word_of_python(tmp_path: Path) -> None:
    set_up_bank(tmp_path)
    with serving_studio(tmp_path, *CASE, "--port", "0", BANK_SECONDS="0.2") as (process, address):
        asked(address, "/api/searches", {"row": {"position": 0}, "options": {}})
        until(lambda: len(bill(tmp_path)) >= 2)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        body = process.stdout.read()
        assert process.wait(30) in (0, 130) and "Traceback" not in body
    assert len(bill(tmp_path)) < 12
