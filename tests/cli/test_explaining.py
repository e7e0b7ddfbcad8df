from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from commands import MODEL, bill, can_be_interrupted, command, environment, run
from servers import drip_body, says, serving
from servers import labels as right_labels

pytestmark = pytest.mark.usefixtures("loans_folder")

ROW = ("loans.csv", "--drop", "id", "--outcomes", "outcome", "--row", "0")
KEPT = ("--ledger", "l.db", "--model-name", "bank-1")


def explain(*words: Any) -> Any:
    """The answer as a script gets it."""
    result = run("explain", *ROW, *MODEL, "--json", *words)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_answer_is_a_table_and_a_file_that_reads_back() -> None:
    result = run("explain", *ROW, *MODEL, "--target", "good", "--budget", "15", "--out", "why.json")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"bad -> good by changing \d of 4 features", result.stdout)
    assert "income" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    explanation = acex.Explanation.from_json(Path("why.json"))
    assert explanation.label_after == "good"
    assert len(bill()) == explanation.n_queries <= 15
    assert f"{explanation.n_queries} queries" in result.stdout


def test_json_has_the_attributes_of_the_explanation_and_is_what_out_writes() -> None:
    answer = explain("--budget", "12", "--out", "why.json")
    assert json.loads(Path("why.json").read_text(encoding="utf-8")) == answer
    keys = {"outcome", "n_queries", "n_reused", "counterfactuals", "changes", "factual", "label_before", "label_after"}
    assert keys <= set(answer)
    assert all(hasattr(acex.Explanation.from_json("why.json"), key) for key in keys)


def test_constraints_hold() -> None:
    limits = ("--freeze", "age,job", "--decrease", "debt", "--range", "income=0:9000", "--increase", "income")
    answer = explain(*limits, "--budget", "25", "--count", "2", "--values", "job=clerk|cook|nurse")
    factual = answer["factual"]
    for asked in answer["asked"][1:]:
        age, income, debt, job = asked
        assert (age, job) == (factual["age"], factual["job"])
        assert debt <= factual["debt"] and factual["income"] <= income <= 9000
    job = explain("--values", f"job={factual['job']}|cook", "--budget", "12")
    assert {asked[3] for asked in job["asked"]} <= {factual["job"], "cook"}


def test_a_row_can_be_named_by_position_by_query_or_by_a_file() -> None:
    by_position = explain("--budget", "2", "--dry-run")["factual"]
    rest = ("loans.csv", "--drop", "id,outcome", *MODEL, "--dry-run", "--json")
    by_query = json.loads(run("explain", *rest, "--where", "id == 100").stdout)["factual"]
    Path("x.json").write_text(json.dumps(by_position), encoding="utf-8")
    pd.read_csv("loans.csv").iloc[:1].to_csv("x.csv", index=False)  # the dropped columns are no harm
    by_file = [json.loads(run("explain", *rest, "--x", x).stdout)["factual"] for x in ("x.json", "x.csv")]
    assert [by_position] * 3 == [by_query, *by_file]


def test_a_schema_gives_an_order_and_freezes() -> None:
    run("schema", "loans.csv", "--drop", "id,outcome", "--out", "s.toml")
    text = Path("s.toml").read_text(encoding="utf-8")
    text = text.replace('{ name = "job", kind = "nominal"', '{ name = "job", frozen = true, kind = "ordinal"')
    Path("s.toml").write_text(text, encoding="utf-8")
    answer = explain("--schema", "s.toml", "--increase", "job", "--budget", "10")
    assert {asked[3] for asked in answer["asked"]} == {answer["factual"]["job"]}
    assert answer["space"]["features"][3]["kind"] == "ordinal"


@pytest.mark.parametrize("missing", ["keep", "drop"])
def test_a_schema_fits_all_rows_of_its_table_also_those_with_gaps(missing: str) -> None:
    table = pd.read_csv("loans.csv").astype({"age": float})
    table.loc[1, ["age", "income", "job"]] = [None, 99_000, "pilot"]
    table.to_csv("loans.csv", index=False)
    assert run("schema", "loans.csv", "--drop", "id,outcome", "--out", "s.toml").exit_code == 0
    text = Path("s.toml").read_text(encoding="utf-8")
    assert "99000" in text and "pilot" in text and "gaps = true" not in text
    words = ("--schema", "s.toml", "--missing", missing, "--target", "good", "--budget", "8")
    assert explain(*words)["outcome"] == "found"
    Path("s.toml").write_text(text.replace("pilot", "judge").replace("99000", "98000"), encoding="utf-8")
    result = run("explain", *ROW, *MODEL, "--schema", "s.toml", "--missing", "keep")
    assert result.exit_code == 2 and "data: 2 columns" in result.stderr, result.stderr
    assert "99000 is outside" in result.stderr and "--schema" in result.stderr and "--other" in result.stderr


def test_a_schema_that_was_edited_is_not_overwritten() -> None:
    assert run("schema", "loans.csv", "--out", "s.toml").exit_code == 0
    result = run("schema", "loans.csv", "--out", "s.toml")
    assert result.exit_code == 2 and "s.toml exists" in result.stderr
    assert run("schema", "loans.csv").stdout == Path("s.toml").read_text(encoding="utf-8")


def test_a_dry_run_says_what_may_change_and_the_most_it_can_cost_and_asks_nothing() -> None:
    words = (*ROW, *MODEL, *KEPT, "--freeze", "age", "--target", "good", "--budget", "10", "--price-per-row", "0.02")
    result = run("explain", *words, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"age +\d+ +frozen", result.stdout)
    assert "Wanted: good. Model: bank-1. Strategy: feasible." in result.stdout
    assert "At most 10 rows would be sent, for 0.20 at most (budget 10, 0 paid before)." in result.stdout
    assert bill() == [] and not Path("l.db").exists()

    run("explain", *words)
    plan = json.loads(run("explain", *words, "--dry-run", "--json", "--budget", "15").stdout)
    assert plan["paid_before"] == len(bill())
    assert plan["most_queries"] == 15 - len(bill())
    assert plan["most_cost"] == pytest.approx(0.02 * plan["most_queries"])
    assert plan["allowed"]["age"] is None
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--rows", len(bill()) + 1, "--price-per-row", "0.5")
    plan = json.loads(run("explain", *words[:-2], "--dry-run", "--json", "--budget", "15").stdout)
    assert (plan["most_queries"], plan["most_cost"]) == (1, 0.5)
    assert "allows no more" in run("explain", *words[:-2], "--dry-run", "--budget", "15").stdout


def test_a_dry_run_knows_that_the_search_has_settled() -> None:
    words = (*ROW, *MODEL, *KEPT, "--target", "good")
    answer = json.loads(run("explain", *words, "--budget", "60", "--json").stdout)
    assert answer["stopped_by"] == "settled"
    result = run("explain", *words, "--budget", "80", "--dry-run")
    assert "At most 0 rows" in result.stdout and "explained before" in result.stdout


def test_with_a_ledger_the_same_command_pays_nothing_again() -> None:
    first = explain(*KEPT, "--budget", "12")
    sent = len(bill())
    again = explain(*KEPT, "--budget", "12")
    assert (again["n_queries"], again["n_reused"]) == (0, sent)
    assert again["counterfactuals"] == first["counterfactuals"]
    assert len(bill()) == sent == first["n_queries"]


def test_nothing_found_is_exit_code_1() -> None:
    result = run("explain", *ROW, *MODEL, "--range", "income=0:1600", "--budget", "4")
    assert result.exit_code == 1
    assert "No counterfactual: still bad (4 queries)" in result.stdout


def test_a_row_that_has_the_target_already_is_an_answer() -> None:
    result = run("explain", *ROW, *MODEL, "--target", "bad")
    assert result.exit_code == 0 and "already" in result.stdout
    assert len(bill()) == 1


def test_subsets_of_features_that_are_enough() -> None:
    words = ("subsets", *ROW, *MODEL, "--target", "good", "--budget", "20", "--max-features", "1")
    result = run(*words, "--out", "subsets.html")
    assert result.exit_code == 0, result.stderr
    assert "income: yes" in result.stdout and "age: " in result.stdout
    assert Path("subsets.html").read_text(encoding="utf-8").startswith("<!")
    assert len(bill()) <= 20
    assert run(*words, "--freeze", "income").exit_code == 1


def test_labels_that_are_numbers_can_be_wanted(tmp_path: Path) -> None:
    (tmp_path / "acex_test_numbers.py").write_text(
        "def decide(rows):\n    return (rows.income > 2000).astype(int)\n", encoding="utf-8"
    )
    words = ("loans.csv", "--drop", "id,outcome", "--row", 0, "--model", "acex_test_numbers:decide", "--json")
    answer = json.loads(run("explain", *words, "--target", "1", "--budget", "20").stdout)
    assert (answer["label_before"], answer["label_after"]) == (0, 1)


def test_a_model_file_has_its_own_name_and_knows_its_labels() -> None:
    import skops.io
    from sklearn.tree import DecisionTreeClassifier

    loans = pd.read_csv("loans.csv")
    tree = DecisionTreeClassifier(random_state=0).fit(loans[["age", "income", "debt"]], loans["outcome"] == "good")
    skops.io.dump(tree, "tree.skops")
    words = ("loans.csv", "--drop", "id,outcome,job", "--row", "0", "--model", "tree.skops", "--ledger", "l.db")
    answer = json.loads(run("explain", *words, "--target", "True", "--scores", "--json").stdout)
    assert answer["label_after"] is True
    assert answer["settings"]["model_id"].startswith("sha256:")
    wrong = run("explain", *words, "--target", "splendid")
    assert wrong.exit_code == 2 and "'splendid' is not a label of the model, which gives [False, True]" in wrong.stderr
    audited = run("audit", "l.db", "--model", "tree.skops", "--n", "3")
    assert audited.exit_code == 0 and "0 of 3 labels changed" in audited.stdout


def test_a_pickle_is_loaded_when_allowed_with_one_line_of_warning() -> None:
    import joblib
    from sklearn.tree import DecisionTreeClassifier

    loans = pd.read_csv("loans.csv")
    joblib.dump(DecisionTreeClassifier(random_state=0).fit(loans[["age", "income"]], loans["outcome"]), "tree.joblib")
    words = ("loans.csv", "--drop", "id,outcome,job,debt", "--row", "0", "--model", "tree.joblib", "--budget", "5")
    assert "--allow-pickle" in run("explain", *words).stderr
    allowed = run("explain", *words, "--allow-pickle")
    assert allowed.exit_code in (0, 1)
    assert allowed.stderr.startswith("acex: warning: tree.joblib: loading") and allowed.stderr.count("\n") == 1


def test_an_endpoint_is_asked_with_headers_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("remote.toml").write_text('request = { rows = "$rows" }\nlabels = "labels"\n', encoding="utf-8")
    Path("points.csv").write_text("a,b\n" + "".join(f"{i / 10},{i % 3}\n" for i in range(-9, 10)), encoding="utf-8")
    monkeypatch.setenv("BANK_TOKEN", "sesame-sesame")
    with serving(right_labels) as server:
        words = ("points.csv", "--row", "0", "--model", server.url, "--protocol", "json")
        config = ("--model-config", "remote.toml", "--header-from-env", "Authorization=BANK_TOKEN")
        result = run("explain", *words, *config, "--ledger", "l.db", "--budget", "12")
        assert result.exit_code == 0, result.stderr
        assert {h["Authorization"] for h in server.headers} == {"sesame-sesame"}
    assert b"sesame" not in Path("l.db").read_bytes()
    with serving(says(500, "out of order")) as server:
        result = run("explain", *words[:-3], server.url, "--protocol", "json", *config)
    assert result.exit_code == 3
    assert "answered 500: 'out of order'" in result.stderr
    with serving(drip_body) as server:
        result = run("explain", *words[:-3], server.url, "--protocol", "json", *config, "--timeout", "0.3")
    assert result.exit_code == 3
    assert "out of time" in result.stderr and "may have been charged" in result.stderr


def test_a_model_that_takes_too_long_is_exit_code_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_SECONDS", "5")
    result = run("explain", *ROW, *MODEL, "--timeout", "0.1")
    assert result.exit_code == 3
    assert "no answer within 0.1 s" in result.stderr


def test_an_answer_that_cannot_be_written_is_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: acex.Explanation, path: Path | None = None, **_: Any) -> str:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(acex.Explanation, "to_json", full)
    result = run("explain", *ROW, *MODEL, "--budget", "12", "--out", "why.json")
    assert result.exit_code == 2
    assert "bad -> good" in result.stdout
    assert "No space left on device: 'why.json'" in result.stderr


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "skops.io", None)
    Path("m.skops").touch()
    result = run("explain", *ROW, "--model", "m.skops")
    assert result.exit_code == 2 and "pip install 'acex[files]'" in result.stderr


def test_a_model_that_fails_is_exit_code_3() -> None:
    result = run("explain", *ROW, "--model", "acex_test_bank:broken")
    assert result.exit_code == 3
    assert result.stderr == "acex: The model raised RuntimeError: out of order\n"


def test_a_ledger_of_another_kind_is_exit_code_3_and_left_alone() -> None:
    content = Path("loans.csv").read_bytes()
    result = run("explain", *ROW, *MODEL, "--ledger", "loans.csv", "--model-name", "bank-1")
    assert result.exit_code == 3
    assert "not an SQLite file" in result.stderr and result.stderr.count("\n") == 1
    assert Path("loans.csv").read_bytes() == content


def test_a_lifetime_budget_that_is_spent_is_exit_code_3() -> None:
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--rows", 3, "--new")
    result = run("explain", *ROW, *MODEL, *KEPT)
    assert result.exit_code == 3
    assert "has 0 left of the 3 rows" in result.stderr
    assert len(bill()) == 3


# -- the real command, in a process of its own ---------------------------------------------------------

SLOW = {"BANK_SECONDS": "0.2"}
WHOLE = ("explain", *ROW, *MODEL, *KEPT, "--budget", "14", "--json")


def start(*words: Any, **options: Any) -> subprocess.Popen[str]:
    heeds = can_be_interrupted
    return subprocess.Popen(command(*words), env=environment(**SLOW), text=True, preexec_fn=heeds, **options)


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(3000):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen within a minute")


def test_after_kill_9_the_same_command_goes_on_and_pays_at_most_the_row_in_flight_again(tmp_path: Path) -> None:
    process = start(*WHOLE, stdout=subprocess.PIPE)
    wait_until(lambda: len(bill()) >= 5)
    process.kill()
    process.communicate()
    done = subprocess.run(command(*WHOLE), env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = bill()
    assert len(rows) <= 14
    assert len(rows) - len(set(rows)) <= 1
    resumed = json.loads(done.stdout)
    alone = explain("--budget", "14", "--model-name", "bank-1")
    assert resumed["asked"] == alone["asked"][: len(resumed["asked"])]
    assert len(resumed["asked"]) >= len(alone["asked"]) - 1  # the row in flight was paid for twice


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on() -> None:
    process = start(*WHOLE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(bill()) >= 4)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert process.returncode == 130
    assert "The same command continues" in stderr
    assert "Traceback" not in stderr
    assert stdout == ""
    again = explain(*KEPT, "--budget", "14")
    assert again["n_reused"] >= 3
    assert len(bill()) - len(set(bill())) <= 1


def test_in_a_terminal_there_is_a_progress_bar_on_stderr_and_the_table_on_stdout() -> None:
    mine, theirs = pty.openpty()
    words = ("explain", *ROW, *MODEL, "--budget", "6")
    process = start(*words, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    stdout, _ = process.communicate()
    os.close(mine)
    assert process.returncode in (0, 1)
    assert b"asking" in shown and b"/6" in shown
    assert "asking" not in stdout and "queries" in stdout


WRITING = {
    "explain": ("explain", "--row", 0, "--out", "e.json"),
    "batch": ("batch", "--where", "index < 2", "--out", "e.csv"),
    "left out": ("explain", "--row", 0, "--redact", "age", "--out", "e.json", "--left-out", "l.json"),
    "ask": ("ask", "--row", 0, "--out", "ask.csv", "--ledger", "l.db", "--model-name", "m"),
}


@pytest.mark.parametrize("name", WRITING)
def test_a_folder_that_is_not_writable_is_reported_before_anything_is_sent(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    command, *words = WRITING[name]
    model = () if command == "ask" else MODEL
    result = run(command, "loans.csv", *words, *model, "--target", "good", "--drop", "id,outcome")
    assert result.exit_code == 2 and "not writable" in result.stderr, result.stderr
    assert not Path("bill.txt").exists() and not Path("l.db").exists()
