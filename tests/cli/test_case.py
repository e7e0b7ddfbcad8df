"""The row and the model that flags name."""

from __future__ import annotations

from pathlib import Path

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


def test_a_wrong_model_config_names_the_argument() -> None:
    Path("remote.toml").write_text('reqest = {a = "$rows"}', encoding="utf-8")
    words = (*ROW[:5], "outcome", "--model", "http://127.0.0.1:9/", "--protocol", "json")
    answer = run(*words, "--model-config", "remote.toml").stderr
    assert "unknown argument 'reqest'" in answer and "Did you mean 'request'?" in answer
    assert "none.toml: no such file." in run(*words, "--model-config", "none.toml").stderr
    assert "--model-config" in run(*words).stderr
