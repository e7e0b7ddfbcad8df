from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acex.spreadsheets import read_csv, write_csv
from acex.values import UNPRINTABLE, printable

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "=cmd|' /C calc'!A0"]
SIGNS = "'=+-@\t\r\n\\\"u01b[ab\x1b\x9b\u202e"
texts = st.one_of(st.text(max_size=8), st.text(SIGNS, max_size=6), st.sampled_from(FORMULAS))


def back(frame: pd.DataFrame) -> pd.DataFrame:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        write_csv(frame, path)
        return read_csv(path, dtype=str, keep_default_na=False)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), texts.filter(bool))
def test_any_text_comes_back_as_it_was(values: list[str], name: str) -> None:
    read = back(pd.DataFrame({name: pd.Series(values, dtype=object), "n": range(len(values))}))
    assert list(read.columns) == [name, "n"]
    assert read[name].tolist() == values


@given(st.lists(texts | st.just("\ud800"), min_size=1, max_size=4))
def test_no_cell_is_a_formula_and_none_moves_a_terminal(values: list[str]) -> None:
    text = write_csv(pd.DataFrame({"x": pd.Series(values, dtype=object)}))
    assert not UNPRINTABLE.search(text)
    for [cell] in list(csv.reader(io.StringIO(text)))[1:]:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("text", ["'tis", "it's", "C:\\users", '"quoted"', "plain", "5", "a=b"])
def test_ordinary_texts_are_written_and_read_as_they_are(text: str, tmp_path: Path) -> None:
    written = write_csv(pd.DataFrame({"x": [text]}))
    assert list(csv.reader(io.StringIO(written))) == [["x"], [text]]
    (tmp_path / "foreign.csv").write_text(written, encoding="utf-8")
    assert read_csv(tmp_path / "foreign.csv", dtype=str)["x"].tolist() == [text]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    mixed = pd.Series([-3, "-3"], dtype=object)
    frame = pd.DataFrame({"a": [-1, 2], "b": [-0.5, 1e-9], "c": [True, False], "d": mixed})
    text = write_csv(frame, tmp_path / "t.csv")
    assert text == "a,b,c,d\n-1,-0.5,True,-3\n2,1e-09,False,'-3\n"
    read = read_csv(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read[["a", "b", "c"]], frame[["a", "b", "c"]])


def test_categories_are_escaped_too() -> None:
    assert write_csv(pd.DataFrame({"c": pd.Categorical(["=a", "b"])})) == "c\n'=a\nb\n"


@given(st.text())
def test_what_is_printable_stays_as_it_is_and_the_rest_is_told_apart(text: str) -> None:
    shown = printable(text)
    assert not UNPRINTABLE.search(shown)
    assert (shown == text) == (UNPRINTABLE.search(text) is None)


def test_ordinary_signs_of_all_languages_are_printable() -> None:
    text = "naïve 日本語 العربية हिन्दी 👩‍🔬 \t and a new line\n"
    assert printable(text) == text
    assert printable("\x1b]0;title\x07\x9b2J\r\u202e") == "\\u001b]0;title\\u0007\\u009b2J\\u000d\\u202e"


def test_whole_numbers_beside_a_gap_stay_whole() -> None:
    frame = pd.DataFrame({"year": pd.Series([2008, None, 2007], dtype=object), "=a": ["x", None, "=1"]})
    assert write_csv(frame).splitlines()[1:] == ["2008,x", ",", "2007,'=1"]
