"""A hundred odd command lines: each ends in one clear line and the documented code, asks nothing and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import acex
from acex.cli import app
from acex.ledger import Question, query_id
from commands import MODEL, bill, set_up

DATA = ("loans.csv", "--drop", "id,outcome")
ROW = (*DATA, "--row", "0", *MODEL)
HUGE = "9" * 30
LONG = "x" * 300
LEDGER = ("ledger", "budget", "l.db", "--model-id", "a")

SCHEMAS = {
    "no features": ("features = 5", "expected features = [...]"),
    "a number": ("features = [5]", "features: expected a table such as { name"),
    "nothing": ("features = [{}]", "name and kind are needed"),
    "kind 5": ("features = [{name = 'age', kind = 5}]", "'age': kind = 5 is of the wrong type"),
    "name 5": ("features = [{name = 5, kind = 'integer'}]", "name = 5 is of the wrong type"),
    "range 5": ("features = [{name = 'age', kind = 'integer', range = 5}]", "range = 5 is of the wrong type"),
    "range of texts": ("features = [{name = 'age', kind = 'integer', range = ['a', 'b']}]", "expected finite low"),
    "range nan": ("features = [{name = 'age', kind = 'integer', range = [nan, 5]}]", "expected finite low"),
    "range of dates": ("features = [{name = 'age', kind = 'integer', range = [1979-05-27, 5]}]", "expected finite low"),
    "weight text": ("features = [{name = 'age', kind = 'integer', weight = 'x'}]", "weight = 'x'"),
    "frozen text": ("features = [{name = 'age', kind = 'integer', frozen = 'no'}]", "frozen = 'no'"),
    "unit 5": ("features = [{name = 'age', kind = 'integer', unit = 5}]", "unit = 5"),
    "categories 5": ("features = [{name = 'job', kind = 'ordinal', categories = 5}]", "categories = 5"),
    "lists": ("features = [{name = 'job', kind = 'ordinal', categories = [[1]]}]", "[1] cannot be a category"),
    "texts": ("features = [{name = 'job', kind = 'integer'}]", "'job': kind 'integer' is for numbers"),
    "twice": ("features = [{name = 'age', kind = 'integer'}, {name = 'age', kind = 'integer'}]", "described twice"),
    "deep": (f"features = {'[' * 3000}{']' * 3000}", "recursion"),
    "no toml": ("this is no toml", "Expected '='"),
}
CONFIGS = {
    "classes 5": ("classes = 5", "expected a list for 'classes'"),
    "classes text": ("classes = 'ab'", "expected a list for 'classes'"),
    "labels 5": ("labels = 5", "expected a text for 'labels'"),
    "version 5": ("version = 5", "expected a text for 'version'"),
    "headers 5": ("headers_from_env = 5", "expected a table for 'headers_from_env'"),
    "header 5": ("headers_from_env = {a = 5}", "headers_from_env['a'] must be the name of an environment variable"),
    "timeout nan": ("timeout = nan", "timeout must be a positive number"),
    "retries": ("retries = 1.5", "retries must be 0 or more"),
    "url": ("url = 'x'", "'url'"),
    "deep": (f"a = {'[' * 3000}{']' * 3000}", "recursion"),
    "no toml": ("this is no toml", "Expected '='"),
}
REPORTS = {
    "number": ("5", "expected an object, got int"),
    "list": ("[]", "expected an object, got list"),
    "nothing": ("{}", "expected an explanation of format 1, got None"),
    "hollow": ('{"format": 1}', "is nothing that --out of acex explain or batch wrote."),
    "rows 5": ('{"format": 1, "rows": 5}', "is nothing that --out of acex explain or batch wrote."),
    "row 5": ('{"format": 1, "rows": [5]}', "is nothing that --out of acex explain or batch wrote."),
    "no rows": ('{"format": 1, "rows": []}', "none of its 0 rows has an explanation"),
    "space 5": ('{"format": 1, "space": 5}', "is nothing that --out of acex explain or batch wrote."),
    "newer": ('{"format": 99}', "expected an explanation of format 1, got 99"),
    "deep": ("[" * 100_000, "is nothing that --out of acex explain or batch wrote."),
    "no json": ("no json", "Expecting value"),
}
ROWS = {
    "number": ("5", "expected one row"),
    "list": ("[1, 2]", "expected one row"),
    "other columns": ('{"format": 1}', "missing 'age'"),
    "null": ('{"age": null, "income": 1500, "debt": 0.2, "job": "cook"}', "'age': the value is missing"),
    "infinite": ('{"age": 1e999, "income": 1500, "debt": 0.2, "job": "cook"}', "'age': inf is not finite"),
    "in a list": ('{"age": [1], "income": 1500, "debt": 0.2, "job": "cook"}', "'age': expected a number, got [1]"),
    "deep": ("[" * 100_000, "recursion"),
}
LABELS = {
    "NaN": "'NaN' is not a label",
    "nan": "'nan' is not a label",
    "-Infinity": "'-Infinity' is not a label",
    "1e999": "'1e999' is not a label",
    "0.018": "0.018, which is a score, not a label",
    '"\\ud800"': "half of a character",
}

LINES: list[tuple[tuple[str, ...], int, str]] = [
    *((("explain", *ROW, "--schema", f"schema {name}.toml"), 2, said) for name, (_, said) in SCHEMAS.items()),
    *(
        (("explain", *DATA, "--row", "0", "--model", "http://127.0.0.1:9/x", "--protocol", "json",
          "--model-config", f"config {name}.toml"), 2, said)
        for name, (_, said) in CONFIGS.items()
    ),
    *((("report", f"report {name}.json"), 2, said) for name, (_, said) in REPORTS.items()),
    *((("explain", *DATA, *MODEL, "--x", f"row {name}.json"), 2, said) for name, (_, said) in ROWS.items()),
    *((("tell", f"told {i}.csv", "--ledger", "l.db"), 2, said) for i, said in enumerate(LABELS.values())),
    *((("explain", *ROW, "--target", label), 2, "not a label") for label in ("", "NaN", "inf", '"\\ud800"', "\udcff")),
    # numbers
    ((*LEDGER, "--rows", HUGE), 2, "--rows"),
    ((*LEDGER, "--rows", "-1"), 2, "--rows"),
    ((*LEDGER, "--rows", "1.5"), 2, "--rows"),
    ((*LEDGER, "--rows", "1", "--money", "2"), 2, "Expected --rows or --money"),
    ((*LEDGER, "--money", "1e300", "--price-per-row", "1e-300"), 2, "--money 1e+300 buys more than"),
    ((*LEDGER, "--money", "inf", "--price-per-row", "1"), 2, "--money"),
    ((*LEDGER, "--money", "nan", "--price-per-row", "1"), 2, "money"),
    ((*LEDGER, "--money", "5", "--price-per-row", "nan"), 2, "price_per_row must be a positive number"),
    ((*LEDGER, "--rows", "5", "--price-per-row", "1e999"), 2, "price_per_row must be a positive number"),
    (("ledger", "show", "l.db", "--newest", HUGE), 2, "--newest"),
    (("explain", *ROW, "--budget", "-5"), 2, "--budget"),
    (("explain", *ROW, "--count", "0"), 2, "--count"),
    (("explain", *ROW, "--seed", "-1"), 2, "--seed"),
    (("explain", *ROW, "--seed", "1.5"), 2, "--seed"),
    (("explain", *DATA, *MODEL, "--row", HUGE), 2, "loans.csv has the rows 0 to 79"),
    (("explain", *ROW, "--price-per-row", "nan", "--dry-run"), 2, "--price-per-row"),
    (("explain", *ROW, "--price-per-row", "inf", "--dry-run"), 2, "--price-per-row"),
    (("explain", *ROW, "--timeout", "inf"), 2, "--timeout"),
    (("explain", *ROW, "--timeout", "nan"), 2, "--timeout"),
    (("audit", "l.db", *MODEL, "--seed", "-1"), 2, "--seed"),
    (("batch", *ROW, "--jobs", "0"), 2, "n_jobs must be -1"),
    # limits
    (("explain", *ROW, "--range", "income=inf:inf"), 2, "expected LOW:HIGH"),
    (("explain", *ROW, "--range", "income=nan:5"), 2, "expected LOW:HIGH"),
    (("explain", *ROW, "--range", "income=5:1"), 2, "expected low <= high"),
    (("explain", *ROW, "--range", "income=1:2:3"), 2, "expected LOW:HIGH"),
    (("explain", *ROW, "--range", "="), 2, "'' is not a column"),
    (("explain", *ROW, "--range", "job="), 2, "'' is not a known category"),
    (("explain", *ROW, "--range", "age=18.2:18.7"), 2, "no value of the feature"),
    (("explain", *ROW, "--freeze", ","), 2, "--freeze: '', '' is not a column"),
    (("explain", *ROW, "--freeze", "age,income,debt,job"), 2, "No feature can change"),
    (("explain", *DATA, *MODEL, "--where", ""), 2, "--where ''"),
    (("explain", *DATA, *MODEL, "--where", "id"), 2, "expected what is true or false of a row"),
    (("explain", *DATA, *MODEL, "--where", "__import__('os')"), 2, "not a supported function"),
    (("batch", *DATA, *MODEL, "--where", "1"), 2, "expected what is true or false of a row"),
    # files and addresses
    (("explain", "binary.csv", "--row", "0", *MODEL), 2, "binary.csv cannot be read as a table"),
    (("explain", "folder.csv", "--row", "0", *MODEL), 2, "folder.csv: there is no such file"),
    (("explain", LONG, "--row", "0", *MODEL), 2, "File name too long"),
    (("explain", *DATA, "--row", "0", "--model", ""), 2, "'' is not a model"),
    (("explain", *DATA, "--row", "0", "--model", ":b"), 2, "odule"),
    (("explain", *DATA, "--row", "0", "--model", LONG), 2, "is not a model"),
    (("explain", *DATA, "--row", "0", "--model", "http://", "--protocol", "json"), 2, "expected http://..."),
    (("explain", *ROW, "--ledger", LONG, "--model-id", "a"), 2, "File name too long"),
    (("explain", *ROW, "--ledger", ".", "--model-id", "a"), 3, "it cannot be opened"),
    (("explain", *ROW, "--ledger", "", "--model-id", "a"), 3, "it cannot be opened"),
    (("explain", *ROW, "--ledger", "mysql://h/d", "--model-id", "a"), 2, "expected a path or a URL of sqlite"),
    (("explain", *ROW, "--ledger", "://", "--model-id", "a"), 2, "this is not a URL"),
    (("status", "l.db", "--model-id", ""), 2, "'' is not a model of this ledger"),
    (("tell", "binary.csv", "--ledger", "l.db"), 2, "binary.csv cannot be read as CSV"),
    # what is read must not be written over
    (("explain", *ROW, "--out", "loans.csv"), 2, "loans.csv is read by this command"),
    (("explain", *ROW, "--out", "./loans.csv"), 2, "loans.csv is read by this command"),
    (("explain", *ROW, "--ledger", "l.db", "--model-id", "a", "--out", "l.db"), 2, "l.db is read by this command"),
    (("report", "l.db", "--out", "l.db"), 2, "l.db is read by this command"),
    (("report", "report newer.json", "--out", "report newer.json"), 2, "is read by this command"),
    (("ledger", "export", "l.db", "--out", "l.db"), 2, "l.db is read by this command"),
    (("explain", *ROW, "--out", "."), 2, "--out"),
    # words
    (("--nonsense",), 2, "--nonsense"),
    (("--version=3",), 2, "--version"),
    (("",), 2, "No such command ''"),
    (("-",), 2, "No such command '-'"),
    (("--",), 2, "Missing command"),
    (("explain", "--", "--row"), 2, "--model"),
    (("explain", "--nonsense"), 2, "--nonsense"),
    (("ledger", "stats", "l.db", "extra"), 2, "extra"),
    (("demo", "loan", "extra"), 2, "extra"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the lines speak of; as each of them is refused, they can share one folder."""
    folder = tmp_path_factory.mktemp("odd")
    set_up(folder)
    files = {"schema {}.toml": SCHEMAS, "config {}.toml": CONFIGS, "report {}.json": REPORTS, "row {}.json": ROWS}
    for form, texts in files.items():
        for name, (text, _) in texts.items():
            (folder / form.format(name)).write_text(text, encoding="utf-8")
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x01" * 50)
    (folder / "folder.csv").mkdir()
    with acex.Ledger(folder / "l.db") as ledger:
        ledger.register("a", features=["age", "income", "debt", "job"])
        row = '[30, 1500, 0.2, "cook"]'
        ledger.claim("a", [Question(row)])
        key = query_id("a", row)
    for i, label in enumerate(LABELS):
        quoted = label.replace('"', '""')
        (folder / f"told {i}.csv").write_text(f'acex_id,label\n{key},"{quoted}"\n', encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, Any]:
    """What the folder holds: files by their bytes, the ledger by its answers."""
    kept = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and not p.name.startswith("l.db")}
    with acex.Ledger(folder / "l.db") as ledger:
        return kept | {"answers": ledger.answers("a"), "models": json.loads(ledger.tables.models().to_json())}


@pytest.mark.parametrize(("words", "code", "said"), LINES, ids=[" ".join(words)[-60:] for words, _, _ in LINES])
def test_an_odd_line_ends_in_one_clear_line(
    words: tuple[str, ...], code: int, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = content(folder)
    result = CliRunner().invoke(app, list(words), env={"FORCE_COLOR": None, "NO_COLOR": "1"})
    assert isinstance(result.exception, SystemExit), result.exception  # no traceback
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert result.stderr.startswith("acex: ") and result.stderr.count("\n") == 1, result.stderr
    assert said in result.stderr
    assert bill() == [] and content(folder) == before


def test_there_are_a_hundred_of_them() -> None:
    assert len({words for words, _, _ in LINES}) == len(LINES) >= 100
