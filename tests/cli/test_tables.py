"""Files that commands read, and columns and labels that flags name."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest

from acex.cli import tables
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


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "latin-1"])
def test_a_file_in_another_encoding_is_read_with_its_name(encoding: str) -> None:
    Path("orte.csv").write_text("ort;zahl\nKöln;1\nMünchen;2\n", encoding=encoding)
    assert read_table(Path("orte.csv"), encoding=encoding)["ort"].tolist() == ["Köln", "München"]
    if encoding != "utf-16":  # its byte order mark shows it
        with pytest.raises(ValueError, match=r"orte.csv cannot be read as utf-8.*--encoding cp1252"):
            read_table(Path("orte.csv"))
    assert read_table(Path("loans.csv"), encoding="UTF8").shape == read_table(Path("loans.csv")).shape


def test_byte_order_marks_and_line_ends_of_spreadsheets_are_no_part_of_the_table() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        Path("orte.csv").write_bytes("ort;zahl\r\nKöln;1\r\n".encode(encoding))
        assert read_table(Path("orte.csv")).to_dict("records") == [{"ort": "Köln", "zahl": 1}]


def test_an_unknown_encoding_is_named() -> None:
    with pytest.raises(ValueError, match=r"read as klingon.*--encoding"):
        read_table(Path("loans.csv"), encoding="klingon")


@pytest.mark.parametrize("name", ["loans.csv.gz", "loans.csv.bz2", "loans.csv.xz", "loans.csv.zip", "loans.json.gz"])
def test_compressed_files_are_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loans = pd.read_csv("loans.csv")
    if ".json" in name:
        loans.to_json(name, orient="records")
    else:
        loans.to_csv(name, index=False)
    pd.testing.assert_frame_equal(read_table(Path(name)), loans)
    monkeypatch.setattr(tables, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="when decompressed"):
        read_table(Path(name))


def test_an_archive_holds_one_table() -> None:
    with ZipFile("two.zip", "w") as archive:
        archive.write("loans.csv", "a.csv")
        archive.write("loans.csv", "b.csv")
    with pytest.raises(ValueError, match=r"'a.csv', 'b.csv'"):
        read_table(Path("two.zip"))
    Path("bad.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match=r"bad.csv.gz"):
        read_table(Path("bad.csv.gz"))


def test_columns_are_read_as_text_and_as_dates() -> None:
    rows = [f"{1067 + i % 3:05d},{i % 9 + 1}/{i % 12 + 1}/2026,{i}" for i in range(40)]
    Path("orders.csv").write_text("\n".join(["zip,day,n", *rows]), encoding="utf-8")
    flags = ("--text", "zip", "--date", "day=%d/%m/%Y")
    shown = run("schema", "orders.csv", *flags).stdout
    assert 'name = "zip", kind = "nominal", categories = ["01067", "01068", "01069"]' in shown
    assert 'name = "day", kind = "date"' in shown
    refused = run("schema", "orders.csv", "--date", "day")
    assert refused.exit_code == 2 and '--date "day=%d/%m/%Y"' in refused.stderr
    assert "--text: 'zpi' is not a column" in run("schema", "orders.csv", "--text", "zpi").stderr
    model = "def decide(rows):\n    assert rows['zip'].str.len().eq(5).all()\n    return ['no'] * len(rows)\n"
    Path("acex_test_zip.py").write_text(model, encoding="utf-8")
    words = ("explain", "orders.csv", *flags, "--model", "acex_test_zip:decide", "--row", 0, "--budget", 3)
    assert run(*words, "--target", "yes").exit_code == 1  # the model saw texts


def test_a_trailing_separator_moves_no_value() -> None:
    Path("t.csv").write_text("a,b\n1,2,\n3,4,\n", encoding="utf-8")
    assert read_table(Path("t.csv")).to_dict("records") == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    for row in ("1,2,3", "1," * 100_000 + "2"):
        Path("t.csv").write_text(f"a,b\n{row}\n", encoding="utf-8")
        with pytest.raises(ValueError, match=r"t.csv: rows have more cells"):
            read_table(Path("t.csv"))


def test_a_parquet_file_of_too_many_equal_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": ["x" * 100] * 10_000, "b": 1.5}).to_parquet("t.parquet")
    assert len(read_table(Path("t.parquet"))) == 10_000
    monkeypatch.setattr(tables, "MOST_BYTES", 100_000)
    assert Path("t.parquet").stat().st_size < tables.MOST_BYTES
    with pytest.raises(ValueError, match="10000 rows of 2 columns"):
        read_table(Path("t.parquet"))


HOSTILE = {
    "line.csv": "a" * 1_000_000,
    "quote.csv": 'age,income\n1,"' + "x" * 1_000_000,
    "nul.csv": "age,income\n\0\0,\0\n",
    "digits.csv": "age,income,debt,job\n" + f"{'9' * 400},1,2,a\n" * 9,
    "columns.csv": ",".join(f"c{i}" for i in range(3000)) + "\n" + ",".join("1" * 3000),
    "deep.json": "[" * 100_000 + "]" * 100_000,
    "digits.json": f'[{{"age": {"9" * 5000}}}]',
    "mixed.json": '[{"age": {"a": [1]}, "income": 5}, 7, null]',
    "bytes.parquet": "PAR1" + "\0" * 50 + "PAR1",
    "sheet.xlsx": "PK",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_table_is_refused_before_anything_is_sent(name: str) -> None:
    Path(name).write_text(HOSTILE[name], encoding="utf-8")
    for words in (("explain", name, *MODEL, "--row", 0), ("explain", "loans.csv", "--x", name, *MODEL)):
        result = run(*words, "--target", "good")
        assert result.exit_code == 2 and result.stderr.strip() and "Traceback" not in result.stderr
        assert not Path("bill.txt").exists()


ROWS = {
    "deep": f'"age": {"[" * 300}{"]" * 300}',
    "digits": f'"age": {"9" * 400}',
    "infinite": '"age": 1e999',
    "not a number": '"age": NaN',
    "a table": '"age": {"a": 1}',
}


@pytest.mark.parametrize("name", ROWS)
def test_a_hostile_row_is_refused_before_anything_is_sent(name: str) -> None:
    Path("x.json").write_text(f'{{{ROWS[name]}, "income": 1, "debt": 0.1, "job": "clerk"}}', encoding="utf-8")
    result = run("explain", "loans.csv", "--drop", "id,outcome", "--x", "x.json", *MODEL, "--target", "good")
    name_shown = "age" if pd.__version__ >= "3" or name != "digits" else "x.json"  # pandas 2 cannot read the file
    assert result.exit_code == 2 and name_shown in result.stderr and not Path("bill.txt").exists()


def test_leading_zeros_that_are_lost_get_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    Path("orte.csv").write_text("plz;n;k\n01067;1;007\n;2;\n80331;0;\n", encoding="utf-8")
    read_table(Path("orte.csv"), text=["k"])
    warned = capsys.readouterr().err
    assert "01067 was read as 1067" in warned and "--text plz" in warned and warned.count("warning") == 1
    assert read_table(Path("orte.csv"), text=["plz", "k"])["plz"].tolist()[0] == "01067"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("wages", "is_doubtful"),
    [
        (["950", "1.250", "12.500"], True),
        (["950", "1.250", "12.5"], False),  # another number of digits
        (["0.950", "1.250", "3"], False),
        (["1.250", "2.375"], False),  # three decimals in every row
        (["950", "1250"], False),
    ],
)
def test_dots_that_may_separate_thousands_get_a_warning(
    wages: list[str], is_doubtful: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wages.csv").write_text("\n".join(["wage;n", *(f"{w};{i}" for i, w in enumerate([*wages, ""]))]), "utf-8")
    assert read_table(Path("wages.csv"))["wage"].tolist()[:-1] == [float(w) for w in wages]
    warned = capsys.readouterr().err
    assert ("wage: 1.250 was read as 1.25; if the dots separate thousands, use --decimal ,." in warned) == is_doubtful


def test_dots_between_thousands_are_read_with_a_decimal_comma(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wages.csv").write_text("wage;version\n950;1.2\n1.250;1.30\n-12.500;2.0\n", "utf-8")
    table = read_table(Path("wages.csv"), ",")
    assert table["wage"].tolist() == [950, 1250, -12500] and table["version"].tolist() == ["1.2", "1.30", "2.0"]
    assert capsys.readouterr().err == ""
