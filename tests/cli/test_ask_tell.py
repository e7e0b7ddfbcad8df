from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from commands import MODEL, command, environment, run

pytestmark = pytest.mark.usefixtures("loans_folder")

CASE = ("loans.csv", "--drop", "id", "--outcomes", "outcome", "--row", "0", "--budget", "9", "--target", "good")
ASK = ("ask", *CASE, "--ledger", "lab.db", "--model-name", "assay", "--queries-per-round", "3")


def read(path: str = "todo.csv") -> pd.DataFrame:
    return pd.read_csv(path, dtype={"label": "str"}, keep_default_na=False)


def fill_in(path: str = "todo.csv") -> pd.DataFrame:
    """What the laboratory sends back."""
    todo = read(path)
    good = (todo["income"] > 2000) & (todo["debt"] < 0.5)
    todo["label"] = good.map({True: "good", False: "bad"})
    return todo


def tell(todo: pd.DataFrame) -> str:
    todo.to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db")
    assert result.exit_code == 0, result.stderr
    return result.stdout


def in_ledger() -> Any:
    return json.loads(run("ledger", "show", "lab.db", "--json").stdout)


def test_ask_and_tell_come_to_the_same_end_as_explain() -> None:
    rounds = 0
    while not (result := run(*ASK, "--json", "--out", "todo.csv")).stdout.startswith('{\n "format"'):
        assert result.exit_code == 0, result.stderr
        rounds += 1
        assert "Still waiting: 0 rows." in tell(fill_in())
        Path("todo.csv").unlink()
    answer = json.loads(result.stdout)
    words = ("explain", *CASE, *MODEL, "--model-name", "assay", "--queries-per-round", "3", "--json")
    alone = json.loads(run(*words).stdout)
    assert answer["asked"] == alone["asked"]
    assert answer["counterfactuals"] == alone["counterfactuals"]
    assert rounds == 4  # the factual, then three at a time
    [line] = in_ledger()["explanations"]
    assert (line["outcome"], line["paid"]) == ("found", 9)
    shown = run(*ASK)
    assert "bad -> good" in shown.stdout


def test_labels_come_back_in_parts_and_in_any_order() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    run(*ASK, "--out", "todo.csv")
    whole = fill_in()
    part = whole.iloc[::-1].copy()
    part["label"] = [" ", *part["label"].iloc[1:]]  # the first one not yet
    assert tell(part) == "Recorded: 2 labels, 2 new. Still waiting: 1 row.\n"
    assert "waiting" in run("ledger", "show", "lab.db").stdout
    run(*ASK, "--out", "todo.csv")
    assert read()["acex_id"].tolist() == [whole["acex_id"].iloc[-1]]
    assert tell(whole) == "Recorded: 3 labels, 1 new. Still waiting: 0 rows.\n"


def test_without_out_the_list_goes_to_stdout_and_the_words_to_stderr() -> None:
    result = run(*ASK)
    assert result.stdout.startswith("acex_id,age,income,debt,job,label\n")
    assert "1 row to label" in result.stderr


def test_a_list_that_was_filled_in_is_not_overwritten() -> None:
    run(*ASK, "--out", "todo.csv")
    fill_in().to_csv("todo.csv", index=False)
    result = run(*ASK, "--out", "todo.csv")
    assert result.exit_code == 2
    assert "todo.csv has 1 label not recorded yet" in result.stderr
    assert read()["label"].tolist() == ["bad"]
    assert "was not written by acex ask" in run(*ASK, "--out", "loans.csv").stderr


def test_a_label_that_differs_is_told_and_the_first_stands() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    fill_in().assign(label="good").to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db")
    assert result.exit_code == 1
    assert "1 row had another label before" in result.stderr
    assert len(acex.Ledger("lab.db").contradicted("assay")) == 1


def test_numbers_rounded_by_a_spreadsheet_are_taken_and_mixed_up_lines_are_not() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in().assign(debt=lambda rows: (rows["debt"] + 1e-5).round(4)))
    run(*ASK, "--out", "todo.csv")
    mixed = fill_in()
    mixed["acex_id"] = mixed["acex_id"].tolist()[::-1]
    mixed.to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db")
    assert result.exit_code == 2
    assert "was asked with" in result.stderr and "Nothing was recorded" in result.stderr
    assert in_ledger()["models"][0]["unanswered"] == 3


def test_labels_keep_their_kind() -> None:
    for label, kept in (("1.0", 1), ("1", 1), ("true", True), ("maybe", "maybe"), ('"1"', "1")):
        Path("lab.db").unlink(missing_ok=True)
        words = [word for word in ASK if word not in ("--target", "good", "--outcomes", "outcome")]
        assert run(*words, "--drop", "outcome", "--out", "todo.csv").exit_code == 0
        tell(read().assign(label=label))
        [stored] = acex.Ledger("lab.db").answers("assay")
        assert (stored.label, type(stored.label)) == (kept, type(kept))
        Path("todo.csv").unlink()


def test_a_feature_called_label_is_no_harm() -> None:
    loans = pd.read_csv("loans.csv").drop(columns="id").rename(columns={"job": "label"})
    loans.to_csv("odd.csv", index=False)
    words = ("ask", "odd.csv", "--outcomes", "outcome", "--row", 0, "--ledger", "lab.db", "--model-name", "assay")
    run(*words, "--out", "todo.csv")
    todo = read().assign(acex_label="bad")
    assert "1 new" in tell(todo)


def test_each_step_may_be_a_process_of_its_own() -> None:
    def shell(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*words), env=environment(), capture_output=True, text=True)

    assert shell(*ASK, "--out", "todo.csv").returncode == 0
    fill_in().to_csv("todo.csv", index=False)
    assert "Recorded: 1 label, 1 new" in shell("tell", "todo.csv", "--ledger", "lab.db").stdout
    assert shell(*ASK, "--out", "todo.csv").returncode == 0
    assert len(read()) == 3
