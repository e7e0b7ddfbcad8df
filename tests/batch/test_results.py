"""The tables of a batch: names of rows, plain columns, files that others open."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

import acex
from acex.batch.results import write_parquet
from acex.ledger.maintenance import check
from acex.spreadsheets import read_csv, write_xlsx

EVIL = "=HYPERLINK(1)"
DATA = pd.DataFrame(
    {
        "income": np.arange(40, dtype="int16") * 100,
        "job": pd.Categorical([EVIL, "cook", "@nurse", "clerk"] * 10),
        "owner": [True, False] * 20,
        "debt": np.linspace(0, 1, 40, dtype="float32"),
    }
)
IDS = ["A-1", "=2+3", "C\x1b3", "D-4"]
ROWS = DATA.iloc[[3, 7, 11, 39]].set_axis(IDS)


def model(rows: pd.DataFrame) -> list[str]:
    return ["yes" if income > 2000 else "no" for income in rows["income"]]


def explained(rows: pd.DataFrame = ROWS, **options: Any) -> acex.Explanations:
    explainer = acex.Explainer(acex.Model(model, name="m"), DATA, ledger=options.pop("ledger", None))
    options = {"target": "yes", "budget": 12, "n_jobs": 1, **options}
    return explainer.explain_many(rows, **options)


def test_the_table_has_for_every_feature_what_it_is_what_it_would_be_and_the_step() -> None:
    many, names = explained(), DATA.columns.map(str)
    table, frame = many.table(), many.frame()
    assert table["id"].tolist() == IDS == frame.index.tolist()
    assert table["outcome"].tolist() == ["found"] * 3 + ["already_target"]
    assert table["income before"].tolist() == [300, 700, 1100, 3900]
    for i, e in enumerate(many):
        for name in names:
            before, after, step = (table[f"{name} {what}"][i] for what in ("before", "after", "step"))
            assert before == e.factual[name]
            if e.outcome != "found":
                assert pd.isna(after) and np.isnan(step)
                continue
            assert after == e.counterfactual[name]
            steps = e.changes.set_index("feature")["step"]
            assert step == pytest.approx(steps.get(name, 0.0))


def test_numbers_stay_numbers_where_a_row_has_no_counterfactual() -> None:
    table = explained().table()
    assert table["cost"].dtype == float and table["debt after"].dtype == float
    assert table["income after"].dtype == "Int64" and table["income before"].dtype == "int64"
    assert table.nlargest(1, "cost")["outcome"].tolist() == ["found"]


def test_days_have_no_time_in_tables() -> None:
    data = pd.DataFrame({"day": pd.date_range("2026-01-05", periods=40), "x": np.arange(40.0)})
    data["at"], data["text"] = data["day"] + pd.to_timedelta(data["x"] % 2, "h"), data["day"].dt.strftime("%d.%m.%Y")
    data.loc[7, "day"] = None
    explainer = acex.Explainer(lambda rows: rows["x"] > 20, data, space=acex.Space.infer(data, missing="keep"))
    table = explainer.explain_many(data.iloc[[6, 7, 30]], target=True, budget=8, n_jobs=1).table()
    assert table["day before"].tolist()[::2] == ["2026-01-11", "2026-02-04"] and pd.isna(table["day before"][1])
    assert len(table["day after"][0]) == 10 and pd.isna(table["day after"][2])
    assert table["at before"].tolist() == ["2026-01-11 00:00:00", "2026-01-12 01:00:00", "2026-02-04 00:00:00"]
    assert table["text before"][0] == "11.01.2026"


def test_a_row_without_a_name_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match=r"name of 1 is missing \(first in row 2\)"):
        explained(ROWS.set_axis(["a", "b", None, "d"]))


def test_rows_of_an_array_have_tables_too() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    explainer = acex.Explainer(lambda rows: (rows[:, 0] > 1).astype(int), X)
    many = explainer.explain_many(X[X[:, 0] < 0][:3], budget=8, n_jobs=1)
    assert many.table()["x1 before"].tolist() == X[X[:, 0] < 0][:3, 1].tolist()


def test_every_file_holds_the_table_and_no_formula(tmp_path: Path) -> None:
    many = explained()
    table = many.table()
    many.save(tmp_path / "t.csv")
    many.save(tmp_path / "t.xlsx")
    many.save(tmp_path / "t.parquet")
    text = (tmp_path / "t.csv").read_text(encoding="utf-8")
    cells = [cell for line in text.splitlines() for cell in line.split(",")]
    assert not [cell for cell in cells if cell.lstrip('"').startswith(("=", "@", "\x1b"))]
    assert "\x1b" not in text
    back = read_csv(tmp_path / "t.csv")
    assert back["id"].tolist() == IDS and back["job before"].tolist() == table["job before"].tolist()
    assert ",1500.0," not in text  # whole numbers stay whole beside missing ones
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert [cell.value for cell in sheet[1]] == table.columns.tolist()
    values = [cell for line in sheet.iter_rows() for cell in line]
    assert not [cell for cell in values if cell.data_type == "f"]
    assert [cell.value for cell in sheet["A"][1:]] == ["A-1", "'=2+3", '"C\\u001b3"', "D-4"]
    assert [cell.value for cell in sheet[2]][:2] == ["A-1", "found"]
    assert pd.read_parquet(tmp_path / "t.parquet")["id"].tolist() == IDS


def test_a_workbook_holds_what_a_spreadsheet_would_change(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=a": [10**17, float("inf"), None, pd.Timestamp("2026-01-02"), "-1"]}, dtype=object)
    write_xlsx(frame, tmp_path / "t.xlsx")
    cells = [cell.value for cell in openpyxl.load_workbook(tmp_path / "t.xlsx").active["A"]]
    assert cells == ["'=a", "100000000000000000", "inf", None, "2026-01-02 00:00:00", "'-1"]
    with pytest.raises(ValueError, match="sheet"):
        write_xlsx(pd.DataFrame(np.zeros((1, 17000))), tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="characters"):
        write_xlsx(pd.DataFrame({"a": ["x" * 40_000]}), tmp_path / "t.xlsx")


def test_without_openpyxl_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("openpyxl", "openpyxl.workbook"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(acex.MissingExtra, match=r"acex\[xlsx\]"):
        explained(DATA.iloc[[39]]).save(tmp_path / "t.xlsx")


def test_a_file_of_another_kind_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    many = explained()
    with pytest.raises(ValueError, match=r"'t\.ods'"):
        many.save("t.ods")
    assert "0 done" in repr(many)


def test_values_of_several_types_are_texts_in_a_parquet_file(tmp_path: Path) -> None:
    table = pd.DataFrame({"mixed": [1, "a", None], "whole": [1, 2, None]}, dtype=object)
    write_parquet(table, tmp_path / "t.parquet")
    back = pd.read_parquet(tmp_path / "t.parquet")
    assert back["mixed"].tolist()[:2] == ["1", "a"] and back["mixed"].isna().tolist() == [False, False, True]
    assert back["whole"].tolist()[:2] == [1, 2]


def test_names_reach_the_ledger_also_those_of_rows_that_are_the_same(tmp_path: Path) -> None:
    rows = DATA.iloc[[3, 3, 7]].set_axis(["ann", "bob", 12])
    many = explained(rows, ledger=tmp_path / "l.db")
    assert [e.settings["id"] for e in many] == ["ann", "bob", 12]
    with acex.Ledger(tmp_path / "l.db") as ledger:
        recorded = ledger.tables.explanations("m")
        assert sorted(recorded["names"]) == ["12", "ann, bob"]
        assert check(ledger.database.address) == []


def test_rows_without_names_get_none_in_the_ledger(tmp_path: Path) -> None:
    list(explained(DATA.iloc[[3]].reset_index(drop=True), ledger=tmp_path / "l.db"))
    with acex.Ledger(tmp_path / "l.db") as ledger:
        assert ledger.tables.explanations("m")["names"].tolist() == [""]
