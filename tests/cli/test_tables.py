"""Files that commands read, and columns and labels that flags name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from acex.cli.tables import read_table
from commands import MODEL, run

pytestmark = pytest.mark.usefixtures("loans_folder")


def test_decimal_commas_leave_dates_versions_and_texts_alone() -> None:
    lines = [f"{i + 1:02d}.11.2026;{i},25;2.{i % 3}.1;v{i % 2}" for i in range(28)]
    Path("werte.csv").write_text("\n".join(["tag;zins;fassung;art", *lines]), encoding="utf-8")
    table = read_table(Path("werte.csv"), ",")
    assert table.iloc[3].tolist() == ["04.11.2026", 3.25, "2.0.1", "v1"]
    shown = run("schema", "werte.csv", "--decimal", ",", "--drop", "fassung").stdout
    assert 'name = "tag", kind = "date"' in shown and "2026-11-28" in shown


def test_columns_with_odd_names_are_quoted_in_conditions() -> None:
    pd.read_csv("loans.csv").rename(columns={"id": "loan-no"}).to_csv("odd.csv", index=False)
    words = ("explain", "odd.csv", "--drop", "loan-no,outcome", *MODEL, "--budget", 6)
    assert "in backticks: `loan-no`." in run(*words, "--where", "loan-no == 100").stderr
    assert run(*words, "--where", "`loan-no` == 100").exit_code == 0
