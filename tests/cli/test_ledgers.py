from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from commands import MODEL, bill, run

pytestmark = pytest.mark.usefixtures("loans_folder")

KEPT = ("--ledger", "l.db", "--model-name", "bank-1")
EXPLAIN = ("explain", "loans.csv", "--drop", "id,outcome", "--row", "0", *MODEL, *KEPT, "--budget", "8", "--quiet")


def answer(*words: Any) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_show_and_stats_say_what_was_asked_and_spent() -> None:
    run(*EXPLAIN)
    [line] = answer("ledger", "stats", "l.db")
    assert (line["model"], line["charged"], line["answered"], line["row_budget"]) == ("bank-1", 8, 8, None)
    assert "bank-1" in run("ledger", "stats", "l.db").stdout
    newest = answer("ledger", "show", "l.db", "--newest", 2)
    assert [line["sequence"] for line in newest] == [7, 8]
    shown = run("ledger", "show", "l.db", "--model-name", "bank-1").stdout
    assert "factual" in shown and "answered" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_what_is_exported_can_be_imported_and_is_not_asked_again() -> None:
    run(*EXPLAIN)
    run("ledger", "export", "l.db", "--out", "answers.csv")
    exported = pd.read_csv("answers.csv")
    assert list(exported.columns[:5]) == ["age", "income", "debt", "job", "sequence"]
    assert run("ledger", "export", "l.db").stdout == Path("answers.csv").read_text(encoding="utf-8")
    assert len(answer("ledger", "export", "l.db")) == 8
    known = answer("ledger", "import", "l.db", "answers.csv", "--model-name", "bank-1")
    assert known == {"model_id": "bank-1", "rows": 8, "new": 0}

    extra = [c for c in exported.columns[4:] if c != "label"]
    words = ("ledger", "import", "new.db", "answers.csv", "--model-name", "bank-1", "--drop", ",".join(extra))
    assert answer(*words)["new"] == 8
    elsewhere = [word if word != "l.db" else "new.db" for word in EXPLAIN]
    assert "0 of 8 labels changed" in run("audit", "new.db", *MODEL, "--model-name", "bank-1").stdout
    Path("bill.txt").unlink()
    run(*elsewhere, "--no-share-answers")
    assert not set(bill()) & {str(tuple(row)) for row in exported.iloc[:, :4].itertuples(index=False)}


def test_a_budget_holds_in_rows_and_in_money() -> None:
    words = ("ledger", "budget", "l.db", "--model-name", "bank-1", "--price-per-row", "0.1")
    assert answer(*words, "--money", "0.5", "--new") == {"model_id": "bank-1", "remaining": 5}
    assert run(*EXPLAIN).exit_code == 3
    assert len(bill()) == 5
    assert "3 more rows may be sent to bank-1" in run(*words, "--rows", "8").stdout


def test_a_model_is_named_by_how_its_name_begins_and_a_new_one_only_on_purpose() -> None:
    with acex.Ledger("l.db") as ledger:
        for name in ("bank-1", "bank-10", "sha256:1234abcd"):
            ledger.register(name)
    words = ("ledger", "budget", "l.db", "--rows", "7", "--model-name")
    assert answer(*words, "sha256:12") == {"model_id": "sha256:1234abcd", "remaining": 7}
    assert answer(*words, "bank-1")["model_id"] == "bank-1"
    for name, named in (("bank", "'bank' begins several names"), ("sha256:9", "'sha256:9' is not a model"), ("", "")):
        result = run(*words, name)
        assert result.exit_code == 2 and named in result.stderr and "--new" in result.stderr
    assert answer(*words, "bank", "--new")["model_id"] == "bank"
    assert run("ledger", "budget", "none.db", "--rows", "7", "--model-name", "a").exit_code == 2
    assert not Path("none.db").exists()
    assert answer("ledger", "stats", "l.db")[0]["model"] == "bank"


@pytest.mark.parametrize("words", [("--rows", 10**30), ("--money", "1e300", "--price-per-row", "1e-300")])
def test_a_budget_beyond_all_counting_is_one_line(words: tuple[Any, ...]) -> None:
    result = run("ledger", "budget", "l.db", "--model-name", "bank-1", "--new", *words)
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and "rows" in result.stderr


def test_labels_that_the_model_never_gave_need_a_word_of_their_own() -> None:
    run(*EXPLAIN)
    loans = pd.read_csv("loans.csv")
    loans.drop(columns=["id", "outcome"]).assign(label="perhaps").to_csv("odd.csv", index=False)
    words = ("ledger", "import", "l.db", "odd.csv", "--model-name", "bank-1")
    result = run(*words)
    assert result.exit_code == 2 and "'perhaps' is not a label that model 'bank-1' has given" in result.stderr
    assert "--new-labels" in result.stderr and len(answer("ledger", "export", "l.db")) == 8
    assert answer(*words, "--new-labels")["new"] > 0


def test_check_finds_references_and_answers_that_are_missing() -> None:
    run(*EXPLAIN)
    assert answer("ledger", "check", "l.db") == {"sound": True, "findings": []}
    assert "No damage found" in run("ledger", "check", "l.db").stdout
    connection = sqlite3.connect("l.db")
    connection.execute("DELETE FROM answers WHERE sequence = 3")
    connection.commit()
    result = run("ledger", "check", "l.db")
    assert result.exit_code == 1 and "bank-1" in result.stdout and "backup" in result.stderr
    connection.execute("DELETE FROM queries WHERE sequence = 3")
    connection.commit()
    connection.close()
    assert "table asks refers to a row of table queries" in run("ledger", "check", "l.db").stdout
    assert run(*EXPLAIN).exit_code == 3


def test_what_was_handed_out_can_be_given_up() -> None:
    run("ask", "loans.csv", "--drop", "id,outcome", "--row", 0, *KEPT)
    assert answer("ledger", "abandon", "l.db") == {"model_id": "bank-1", "abandoned": 1}
    assert run(*EXPLAIN).exit_code in (0, 1)  # it does not wait for the laboratory


def test_an_audit_that_finds_the_same_labels_says_so_and_pays() -> None:
    run(*EXPLAIN)
    sent = len(bill())
    result = run("audit", "l.db", *MODEL, "--model-name", "bank-1", "--n", "5")
    assert result.exit_code == 0, result.stderr
    assert "0 of 5 labels changed" in result.stdout
    assert len(bill()) == sent + 5
    assert set(bill()[sent:]) <= set(bill()[:sent])  # rows as they were asked, dtypes included
    assert answer("ledger", "stats", "l.db")[0]["charged"] == sent + 5


def test_an_audit_that_finds_drift_shows_it_and_ends_in_1() -> None:
    run(*EXPLAIN)
    words = ("audit", "l.db", "--model", "acex_test_bank:changed", "--model-name", "bank-1")
    result = run(*words)
    assert result.exit_code == 1
    changed = [a for a in acex.Ledger("l.db").answers("bank-1") if a.label == "bad"]
    assert f"{len(changed)} of 8 labels changed" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert len(acex.Ledger("l.db").contradicted("bank-1")) == len(changed)
    found = json.loads(run(*words, "--json").stdout)
    assert found["n_changed"] == len(changed)
    assert {(line["before"], line["now"]) for line in found["changed"]} == {("bad", "good")}

    explanation = json.loads(run(*EXPLAIN[:-1], "--json").stdout)
    assert "contradiction" in {remark["code"] for remark in explanation["remarks"]}
    assert "Warning: The model contradicts itself" in run(*EXPLAIN[:-1]).stdout


def test_an_audit_keeps_to_the_budget() -> None:
    run(*EXPLAIN)
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--rows", "10")
    result = run("audit", "l.db", *MODEL, "--model-name", "bank-1", "--n", "5")
    assert result.exit_code == 3
    assert "5 rows to ask, but model 'bank-1' has 2 left" in result.stderr
