"""The row and the model that flags name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from commands import MODEL, run

pytestmark = pytest.mark.usefixtures("loans_folder")

ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)


def test_a_row_of_its_own_without_the_name_says_how_to_go_without() -> None:
    Path("row.json").write_text('{"age": 30, "income": 1500, "debt": 0.3, "job": "cook"}', encoding="utf-8")
    words = ("explain", "loans.csv", "--x", "row.json", "--drop", "outcome", *MODEL, "--budget", 6)
    result = run(*words, "--id-column", "id")
    assert result.exit_code == 2 and "row.json has no 'id'. Use --drop id" in result.stderr
    assert run(*words, "--drop", "id").exit_code == 0


def test_a_file_of_rows_may_have_columns_that_the_data_lack() -> None:
    rows = pd.read_csv("loans.csv").drop(columns=["id", "outcome"]).head(2).assign(sex=["f", "m"])
    rows.to_csv("rows.csv", index=False)
    words = ("batch", "loans.csv", "--x", "rows.csv", *MODEL, "--budget", 4, "--jobs", 1, "--by", "sex")
    result = run(*words, "--drop", "id,outcome,sex")
    assert "By sex:" in result.stdout, result.stderr
    wrong = run(*words, "--drop", "id,outcome,sexx")
    assert wrong.exit_code == 2 and "'sexx' is not a column" in wrong.stderr and "Did you mean 'sex'?" in wrong.stderr


def test_a_name_that_is_repeated_is_shown_as_it_is_written() -> None:
    result = run("batch", "loans.csv", "--drop", "id,outcome", *MODEL, "--row", 1, "--row", 1, "--id-column", "age")
    age = pd.read_csv("loans.csv")["age"].iloc[1]
    assert result.exit_code == 2 and f"--id-column age: {age} is repeated." in result.stderr


def test_a_wrong_model_config_names_the_argument() -> None:
    Path("remote.toml").write_text('reqest = {a = "$rows"}', encoding="utf-8")
    words = (*ROW[:5], "outcome", "--model", "http://127.0.0.1:9/", "--protocol", "json")
    answer = run(*words, "--model-config", "remote.toml").stderr
    assert "unknown argument 'reqest'" in answer and "Did you mean 'request'?" in answer
    assert "none.toml: no such file." in run(*words, "--model-config", "none.toml").stderr
    assert "--model-config" in run(*words).stderr
