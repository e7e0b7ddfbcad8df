"""`acex batch`: many rows in a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from acex.cli import case
from acex.cli.tables import read_table
from commands import MODEL, bill, can_be_interrupted, command, environment, run

pytestmark = pytest.mark.usefixtures("loans_folder")

BATCH = ("batch", "loans.csv", *MODEL, "--drop", "id", "--outcomes", "outcome", "--target", "good", "--jobs", "1")
SOME = ("--where", "outcome == 'bad' and id < 112")
ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)
KEPT = ("--ledger", "l.db", "--model-name", "bank-1")


def chosen() -> list[int]:
    loans = pd.read_csv("loans.csv")
    return loans.index[(loans["outcome"] == "bad") & (loans["id"] < 112)].tolist()


def test_rows_that_match_are_explained_and_written_down() -> None:
    result = run(*BATCH, *SOME, "--budget", "6", "--out", "why.parquet", *KEPT)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{len(chosen())} rows: ") and "What has to change:" in result.stdout
    table = pd.read_parquet("why.parquet")
    assert table["id"].tolist() == chosen()
    assert table["queries"].sum() == len(bill()) == len(set(bill()))
    assert table["queries"].max() <= 6


def test_json_has_a_line_for_each_row() -> None:
    result = run(*BATCH, "--row", "0", "--budget", "9", "--json", "--out", "why.json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert [row["row"] for row in answer["rows"]] == [0]
    assert answer["rows"][0]["outcome"] == "found" and answer["rows"][0]["changes"].keys() >= {"income"}
    assert answer["queries"] == len(bill()) <= 9
    assert json.loads(Path("why.json").read_text())["rows"][0]["explanation"]["outcome"] == "found"


def test_several_rows_by_position_and_a_table_that_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []

    def reading(path: Path, **options: Any) -> pd.DataFrame:
        read.append(path)
        return read_table(path, **options)

    monkeypatch.setattr(case, "read_table", reading)
    result = run(*BATCH, "--row", "3", "--row", "0", "--budget", "4", "--by", "job", "--json")
    assert [row["row"] for row in json.loads(result.stdout)["rows"]] == [3, 0], result.stderr
    assert read == [Path("loans.csv")]


def test_groups_that_cannot_be_compared_are_refused_before_anything_is_sent() -> None:
    words = (*BATCH, "--where", "age > 0", "--budget", "2")
    result = run(*words, "--by", "id")
    assert result.exit_code == 2 and "by: id has" in result.stderr and bill() == []


def test_rows_keep_their_names_in_tables_and_in_the_ledger() -> None:
    words = (*BATCH[:4], "--outcomes", "outcome", "--target", "good", "--jobs", "1", *SOME, "--budget", "4", *KEPT)
    result = run(*words, "--id-column", "id", "--out", "why.csv")
    assert result.exit_code == 0, result.stderr
    names = [100 + i for i in chosen()]
    table = pd.read_csv("why.csv")
    assert table["id"].tolist() == names and "income after" in table.columns and "id before" not in table.columns
    with acex.Ledger("l.db") as ledger:
        assert set(ledger.tables.explanations("bank-1")["names"]) == {str(name) for name in names}
    assert run(*words, "--id-column", "id", "--out", "why.xlsx").exit_code == 0
    assert pd.read_excel("why.xlsx")["id"].tolist() == names


def test_a_dry_run_says_the_price_and_asks_nothing() -> None:
    words = (*BATCH, *SOME, "--budget", "6", *KEPT)
    n = len(chosen())
    result = run(*words, "--dry-run", "--price-per-row", "0.5")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(
        f"Nothing was sent. {n} rows. Model: bank-1. At most {6 * n} queries for {3 * n}.00."
    )
    assert bill() == [] and not Path("l.db").exists()
    run(*words, "--where", "id == 100")
    sent = len(bill())
    answer = json.loads(run(*words, "--dry-run", "--json").stdout)
    assert (answer["rows"], answer["paid_before"], answer["price_per_row"]) == (n, sent, None)
    assert answer["most_queries"] <= 6 * n - sent and len(bill()) == sent
    answer = json.loads(run(*words, "--dry-run", "--json", "--budget-total", "9").stdout)
    assert answer["most_queries"] == 9 - sent


def test_money_limits_a_batch_through_the_price_of_a_row() -> None:
    words = (*BATCH, *SOME, "--budget", "6", *KEPT, "--money", "3.5")
    assert "--price-per-row" in run(*words).stderr and bill() == []
    assert "--budget-total" in run(*words, "--price-per-row", "0.5", "--budget-total", "9").stderr
    assert "does not pay for 1 row" in run(*words, "--price-per-row", "4").stderr
    quote = json.loads(run(*words, "--price-per-row", "0.5", "--dry-run", "--json").stdout)
    assert (quote["model_id"], quote["most_queries"], quote["most_money"]) == ("bank-1", 7, 3.5)
    result = run(*words, "--price-per-row", "0.5")
    assert len(bill()) <= 7 and f"Spent: {len(bill()) / 2:.2f} of at most 3.50" in result.stdout
    n = len(bill())
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--rows", 100, "--price-per-row", "0.5")
    assert f"Spent: {n / 2:.2f} of at most 3.50 ({n} queries), 0.00 in this run." in run(*words).stdout
    answer = json.loads(run(*words, "--json").stdout)  # the price of the ledger, and the money of both runs
    assert len(bill()) == n and answer["spent"] == n / 2


def test_money_pays_for_common_changes_too() -> None:
    words = (*BATCH, *SOME, "--budget", "6", *KEPT, "--price-per-row", "1", "--common-changes", "4")
    assert "does not pay for 5 rows" in run(*words, "--money", "4").stderr
    assert json.loads(run(*words, "--money", "20", "--dry-run", "--json").stdout)["most_queries"] == 20
    run(*words, "--money", "20")
    assert len(bill()) <= 20


def test_groups_are_compared_also_by_columns_that_the_model_does_not_see() -> None:
    loans = pd.read_csv("loans.csv")
    loans.assign(sex=["f", "m"] * 40).to_csv("loans.csv", index=False)
    words = (*BATCH, "--drop", "sex", "--where", "outcome == 'bad' and id < 124", "--budget", "4")
    result = run(*words, "--by", "sex,job")
    assert result.exit_code == 0, result.stderr
    assert "By sex and job:" in result.stdout and "fewer than 30" in result.stdout
    answer = json.loads(run(*words, "--by", "sex", "--json").stdout)
    assert [line["group"] for line in answer["groups"]["table"]] == ["f", "m"]
    assert {line["measure"] for line in answer["groups"]["differences"]} == {"found", "cost", "changes", "queries"}
    assert "--by: 'age_band' is not a column" in run(*words, "--by", "age_band").stderr
    assert run(*words, "--by", "sex", "--out", "why.json").exit_code == 0
    document = json.loads(Path("why.json").read_text(encoding="utf-8"))
    assert document["groups"] == answer["groups"] and run("verify", "why.json").exit_code == 0
    document["groups"]["table"][0]["found"] += 1  # the certificate covers it
    Path("why.json").write_text(json.dumps(document), encoding="utf-8")
    assert run("verify", "why.json").exit_code == 1


def test_a_total_is_a_cap() -> None:
    run(*BATCH, *SOME, "--budget-total", "17", *KEPT)
    assert 0 < len(bill()) <= 17


def test_a_row_that_fails_is_named() -> None:
    result = run(
        "batch", "loans.csv", "--model", "acex_test_bank:broken", "--drop", "id,outcome", "--row", "3", "--jobs", "1"
    )
    assert result.exit_code == 3
    assert "1 of 1 rows failed, such as row 3: ModelFailed" in result.stderr


def test_ctrl_c_loses_nothing(tmp_path: Path) -> None:
    words: tuple[Any, ...] = (*BATCH, *SOME, "--budget", "5", *KEPT)
    started = subprocess.Popen(
        command(*words),
        env=environment(BANK_SECONDS="0.05"),
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=can_be_interrupted,
    )
    while len(bill()) < 8:
        time.sleep(0.05)
        assert started.poll() is None
    os.kill(started.pid, signal.SIGINT)
    _, message = started.communicate(timeout=120)
    assert started.returncode == 130 and f"of {len(chosen())} rows. The same command continues" in message
    assert run(*words).exit_code == 0
    assert sum(n - 1 for n in Counter(bill()).values()) <= 1  # the row in flight


def test_a_batch_says_which_rows_were_left_out() -> None:
    table = pd.read_csv("loans.csv")
    table.loc[5, "debt"] = None
    table.to_csv("gaps.csv", index=False)
    result = run("batch", "gaps.csv", "--where", "id < 102", *ROW[4:], "--jobs", 1)
    assert result.exit_code == 0 and "1 of 80 rows of data has a gap and was left out (debt 1)" in result.stderr
