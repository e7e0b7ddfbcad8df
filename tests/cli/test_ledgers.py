from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from acex.ledger import Question
from commands import MODEL, bill, run

pytestmark = pytest.mark.usefixtures("loans_folder")

ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)
KEPT = ("--ledger", "l.db", "--model-name", "bank-1")
EXPLAIN = ("explain", "loans.csv", "--drop", "id,outcome", "--row", "0", *MODEL, *KEPT, "--budget", "8")


def answer(*words: Any) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_show_says_what_was_asked_and_spent() -> None:
    run(*EXPLAIN)
    found = answer("ledger", "show", "l.db", "--newest", 2)
    [line] = found["models"]
    assert (line["model"], line["charged"], line["answered"], line["row_budget"]) == ("bank-1", 8, 8, None)
    assert [line["paid"] for line in found["explanations"]] == [8]
    assert [line["sequence"] for line in found["queries"]] == [7, 8]
    shown = run("ledger", "show", "l.db", "--model-name", "bank-1").stdout
    assert "bank-1" in shown and "factual" in shown and "answered" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "money budget" not in shown  # there is none
    run(*EXPLAIN, "--seed", "1", "--budget", "3")
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--price-per-row", "0.5", "--money", "20")
    found = answer("ledger", "show", "l.db", "--newest", 1)
    assert len(found["explanations"]) == len(found["queries"]) == 1
    assert (found["models"][0]["money_budget"], found["models"][0]["spent"]) == (20, len(bill()) / 2)


def shown_by(*words: Any) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_what_is_exported_can_be_imported_and_is_not_asked_again() -> None:
    run(*EXPLAIN)
    run("ledger", "export", "l.db", "--out", "answers.csv")
    exported = pd.read_csv("answers.csv")
    assert list(exported.columns[:5]) == ["age", "income", "debt", "job", "sequence"]
    assert run("ledger", "export", "l.db").stdout == Path("answers.csv").read_text(encoding="utf-8")
    assert len(exported) == 8
    known = shown_by("ledger", "import", "l.db", "answers.csv", "--model-name", "bank-1")
    assert known == "0 of 8 answers were new to bank-1.\n"

    words = ("ledger", "import", "new.db", "answers.csv", "--model-name", "bank-1")
    assert shown_by(*words).startswith("8 of 8 answers")
    assert acex.Ledger("new.db").account("bank-1").features == ("age", "income", "debt", "job")
    elsewhere = [word if word != "l.db" else "new.db" for word in EXPLAIN]
    assert "0 of 8 labels changed" in run("audit", "new.db", *MODEL, "--model-name", "bank-1").stdout
    Path("bill.txt").unlink()
    run(*elsewhere, "--no-share-answers")
    assert not set(bill()) & {str(tuple(row)) for row in exported.iloc[:, :4].itertuples(index=False)}


def test_features_may_have_the_names_of_columns_that_export_adds() -> None:
    own = {"age": "sequence", "job": "label"}
    pd.read_csv("loans.csv").rename(columns=own).to_csv("own.csv", index=False)
    run(*["own.csv" if word == "loans.csv" else word for word in EXPLAIN])
    run("ledger", "export", "l.db", "--out", "answers.csv")
    words = ("ledger", "import", "new.db", "answers.csv", "--model-name", "bank-1")
    assert shown_by(*words).startswith("8 of 8 answers")
    with acex.Ledger("new.db") as new, acex.Ledger("l.db") as old:
        assert new.account("bank-1").features == ("sequence", "income", "debt", "label")
        assert {a.row: a.label for a in new.answers("bank-1")} == {a.row: a.label for a in old.answers("bank-1")}


def test_a_part_of_an_export_is_not_taken_for_features() -> None:
    run(*EXPLAIN)
    run("ledger", "export", "l.db", "--out", "answers.csv")
    pd.read_csv("answers.csv").drop(columns="scores").to_csv("part.csv", index=False)
    words = ("ledger", "import", "new.db", "part.csv", "--model-name", "bank-1")
    result = run(*words)
    assert result.exit_code == 2 and "some columns of acex ledger export" in result.stderr
    extra = "sequence,purpose,explanation_id,attempts,answered_at,acex_id"
    assert shown_by(*words, "--drop", extra).startswith("8 of 8 answers")


def test_a_budget_holds_in_rows_and_in_money() -> None:
    words = ("ledger", "budget", "l.db", "--model-name", "bank-1", "--price-per-row", "0.1")
    assert "5 more rows may be sent to bank-1" in shown_by(*words, "--money", "0.5", "--new")
    assert run(*EXPLAIN).exit_code == 3
    assert len(bill()) == 5
    assert "3 more rows may be sent to bank-1" in run(*words, "--rows", "8").stdout
    assert "3 more rows may be sent to bank-1" in shown_by("ledger", "budget", "l.db", "--model-name", "bank-1")
    (line,) = json.loads(shown_by("ledger", "show", "l.db", "--json"))["models"]
    assert (line["row_budget_left"], line["money_budget_left"]) == (3, 0.3)


def test_a_model_is_named_by_how_its_name_begins_and_a_new_one_only_on_purpose() -> None:
    with acex.Ledger("l.db") as ledger:
        for name in ("bank-1", "bank-10", "sha256:1234abcd"):
            ledger.register(name)
    words = ("ledger", "budget", "l.db", "--rows", "7", "--model-name")
    assert "7 more rows may be sent to sha256:1234abcd." in shown_by(*words, "sha256:12")
    assert "to bank-1." in shown_by(*words, "bank-1")
    for name, named in (("bank", "'bank' begins several names"), ("sha256:9", "'sha256:9' is not a model"), ("", "")):
        result = run(*words, name)
        assert result.exit_code == 2 and named in result.stderr and "--new" in result.stderr
    assert "to bank." in shown_by(*words, "bank", "--new")
    assert run("ledger", "budget", "none.db", "--rows", "7", "--model-name", "a").exit_code == 2
    assert not Path("none.db").exists()
    assert answer("ledger", "show", "l.db")["models"][0]["model"] == "bank"


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
    assert "--new-labels" in result.stderr
    assert len(acex.Ledger("l.db").answers("bank-1")) == 8
    assert run(*words, "--new-labels").exit_code == 0 and len(acex.Ledger("l.db").answers("bank-1")) > 8


def test_check_finds_references_and_answers_that_are_missing() -> None:
    run(*EXPLAIN)
    assert "No damage found" in shown_by("ledger", "check", "l.db")
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
    assert "Claims of 1 row of bank-1 ended" in shown_by("ledger", "abandon", "l.db")
    assert run(*EXPLAIN).exit_code in (0, 1)  # it does not wait for the laboratory


def test_an_audit_that_finds_the_same_labels_says_so_and_pays() -> None:
    run(*EXPLAIN)
    sent = len(bill())
    result = run("audit", "l.db", *MODEL, "--model-name", "bank-1", "--n", "5")
    assert result.exit_code == 0, result.stderr
    assert "0 of 5 labels changed" in result.stdout
    assert len(bill()) == sent + 5
    assert set(bill()[sent:]) <= set(bill()[:sent])  # rows as they were asked, dtypes included
    assert answer("ledger", "show", "l.db")["models"][0]["charged"] == sent + 5


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

    explanation = json.loads(run(*EXPLAIN, "--json").stdout)
    assert "contradiction" in {remark["code"] for remark in explanation["remarks"]}
    assert "Warning: The model contradicts itself" in " ".join(run(*EXPLAIN).stdout.split())


def test_an_audit_keeps_to_the_budget() -> None:
    run(*EXPLAIN)
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--rows", "10")
    result = run("audit", "l.db", *MODEL, "--model-name", "bank-1", "--n", "5")
    assert result.exit_code == 3
    assert "5 rows to ask, but model 'bank-1' has 2 left" in result.stderr


def test_purge_counts_before_it_deletes_anything(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with acex.Ledger(path) as ledger:
        ledger.begin("e", "m", factual={}, settings={}, names=["ann"])
        ledger.claim("m", [Question("[1]", position=0)], explanation="e")
        ledger.record("m", ["[1]"], ["low"])
    result = run("ledger", "purge", path, "--id", "ann")
    assert result.exit_code == 0 and "--yes" in result.stdout
    done = run("ledger", "purge", path, "--id", "ann", "--yes").stdout
    assert "1 explanation and 1 row were deleted." in done
    assert "yesterday" in run("ledger", "purge", path, "--before", "yesterday").stderr
    assert run("ledger", "purge", path).exit_code == 2


def test_a_budget_can_be_set_before_the_first_question() -> None:
    shown = run(*ROW, "--dry-run", "--ledger", "l.db", "--model-name", "bank").stdout
    assert "Model: bank." in shown
    budget = ("ledger", "budget", "l.db", "--model-name", "bank")
    assert "rows or money" in run(*budget, "--new").stderr
    assert "Use --new to create it" in run(*budget, "--rows", 3).stderr
    assert "--money needs --price-per-row" in run(*budget, "--money", 3, "--new").stderr
    assert run(*budget, "--rows", 1, "--new").exit_code == 0
    spent = run(*ROW, "--ledger", "l.db", "--model-name", "bank")
    assert spent.exit_code == 3 and "1 row to ask" in spent.stderr and "acex ledger budget" in spent.stderr
    assert "Expected --id or --before" in run("ledger", "purge", "l.db").stderr


def test_show_names_rows() -> None:
    named = ("--id-column", "id", "--budget", 6, "--ledger", "l.db", "--model-name", "bank")
    run("explain", "loans.csv", "--row", 0, "--drop", "outcome", *MODEL, *named)
    assert answer("ledger", "show", "l.db")["explanations"][0]["names"] == ["100"]
    assert "found" in next(line for line in run("ledger", "show", "l.db").stdout.splitlines() if " 100 " in line)


def test_answers_of_another_ledger_must_fit_the_model() -> None:
    run(*EXPLAIN)
    run("ledger", "export", "l.db", "--out", "answers.csv")
    before = run("ledger", "export", "l.db").stdout
    whole = pd.read_csv("answers.csv")
    words = ("ledger", "import", "l.db", "other.csv", "--model-name", "bank-1")
    for changed, named in (
        (whole.drop(columns="debt"), "debt"),
        (whole.rename(columns={"debt": "credit"}), "debt"),
        (whole.drop(columns="label"), "label"),
        (whole.assign(label="splendid", income=whole["income"] + 1), "splendid"),
        (whole.assign(label=float("nan")), "label"),
    ):
        changed.to_csv("other.csv", index=False)
        result = run(*words)
        assert result.exit_code == 2 and named in result.stderr, named
        assert run("ledger", "export", "l.db").stdout == before
    whole.assign(label="bad").to_csv("other.csv", index=False)  # another model: a contradiction, not an answer
    result = run(*words)
    assert result.exit_code == 0 and run("ledger", "export", "l.db").stdout == before
    assert f"{(whole['label'] != 'bad').sum()} rows had another label before" in result.stderr


def test_votes_are_exported_and_imported() -> None:
    rows = ['[1, "a"]', '[1, "a", {"vote": 2}]', '[1, "a", {"vote": 3}]', '[2, "b"]']
    with acex.Ledger("l.db") as book:
        book.register("m", features=["x", "job"])
        book.claim("m", [Question(row) for row in rows])
        book.record("m", rows, ["good", "bad", "good", "bad"])
    run("ledger", "export", "l.db", "--out", "answers.csv")
    words = ("import", "new.db", "answers.csv", "--model-name", "m")
    assert shown_by("ledger", *words) == "4 of 4 answers were new to m.\n"
    assert shown_by("ledger", *words) == "0 of 4 answers were new to m.\n"
    old, new = (acex.Ledger(name).answers("m") for name in ("l.db", "new.db"))
    assert [(a.row, a.label) for a in old] == [(a.row, a.label) for a in new]


def test_answers_are_imported_as_the_data_are_read() -> None:
    loans = pd.read_csv("loans.csv").drop(columns="id").rename(columns={"outcome": "label"})
    loans["job"] = [f"0{i}" for i in range(len(loans))]
    loans.to_csv("answers.csv", index=False, sep=";", decimal=",")
    words = ("ledger", "import", "new.db", "answers.csv", "--model-name", "bank-1")
    result = run(*words)
    assert result.exit_code == 2 and "--decimal" in result.stderr and not acex.Ledger("new.db").answers("bank-1")
    assert "--text job" in run(*words, "--decimal", ",").stderr
    assert run(*words[:2], "text.db", *words[3:], "--decimal", ",", "--text", "job").exit_code == 0
    row = json.loads(acex.Ledger("text.db").answers("bank-1")[1].row)
    assert row == loans.drop(columns="label").iloc[1].tolist()
