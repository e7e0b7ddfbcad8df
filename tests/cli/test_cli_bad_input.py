"""Wrong command lines: each ends in one line that names the mistake and in its code; nothing is sent or written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import acex
from acex.cli import app
from acex.ledger import Question, query_id
from commands import MODEL, set_up

DATA = ("loans.csv", "--drop", "id,outcome")
ROW = (*DATA, "--row", "0", *MODEL)
HUGE = "9" * 30
LONG = "x" * 300
REMOTE = ("explain", *DATA, "--row", "0", "--model", "http://127.0.0.1:9/x")
LEDGER = ("ledger", "budget", "l.db", "--model-name", "a")

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
    "classes 5": ("classes = 5", "classes: expected"),
    "classes text": ("classes = 'ab'", "classes: expected"),
    "labels 5": ("labels = 5", "labels: expected"),
    "version 5": ("version = 5", "version: expected"),
    "headers 5": ("headers_from_env = 5", "headers_from_env: expected"),
    "header 5": ("headers_from_env = {a = 5}", "headers_from_env['a'] must be the name of an environment variable"),
    "timeout nan": ("timeout = nan", "timeout must be a positive number"),
    "retries": ("retries = 1.5", "retries must be 0 or more"),
    "url": ("url = 'x'", "'url'"),
    "deep": (f"a = {'[' * 3000}{']' * 3000}", "recursion"),
    "no toml": ("this is no toml", "Expected '='"),
}
REPORTS = {
    "number": ("5", "expected an object"),
    "list": ("[]", "expected an object"),
    "nothing": ("{}", "got None"),
    "hollow": ('{"format": 1}', "was not written by acex explain"),
    "rows 5": ('{"format": 1, "rows": 5}', "was not written by acex explain"),
    "row 5": ('{"format": 1, "rows": [5]}', "was not written by acex explain"),
    "no rows": ('{"format": 1, "rows": []}', "none of its 0 rows has an explanation"),
    "space 5": ('{"format": 1, "space": 5}', "was not written by acex explain"),
    "newer": ('{"format": 99}', "got 99"),
    "deep": ("[" * 100_000, "was not written by acex explain"),
    "no json": ("no json", "Expecting value"),
}
ROWS = {
    "number": ("5", "cannot be read as a table"),
    "list": ("[1, 2]", "cannot be read as a table"),
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
    '"\\ud800"': "unpaired surrogate",
}

LINES: list[tuple[tuple[str, ...], int, str]] = [
    *((("explain", *ROW, "--schema", f"schema {name}.toml"), 2, named) for name, (_, named) in SCHEMAS.items()),
    *(
        ((*REMOTE, "--protocol", "json", "--model-config", f"config {name}.toml"), 2, named)
        for name, (_, named) in CONFIGS.items()
    ),
    *((("report", f"report {name}.json"), 2, named) for name, (_, named) in REPORTS.items()),
    *((("explain", *DATA, *MODEL, "--x", f"row {name}.json"), 2, named) for name, (_, named) in ROWS.items()),
    *((("tell", f"labels {i}.csv", "--ledger", "l.db"), 2, named) for i, named in enumerate(LABELS.values())),
    *((("explain", *ROW, "--target", label), 2, "not a label") for label in ("", "NaN", "inf", '"\\ud800"', "\udcff")),
    # the row
    (("explain", "none.csv", "--row", "0", *MODEL), 2, "none.csv"),
    (("explain", "empty.csv", "--row", "0", *MODEL), 2, "empty.csv"),
    (("explain", "binary.csv", "--row", "0", *MODEL), 2, "binary.csv"),
    (("explain", "folder.csv", "--row", "0", *MODEL), 2, "folder.csv"),
    (("explain", LONG, "--row", "0", *MODEL), 2, "File name too long"),
    (("explain", *DATA, *MODEL), 2, "--row, --where and --x"),
    (("batch", *ROW, "--where", "id == 100"), 2, "--row and --where"),
    (("explain", *DATA, *MODEL, "--row", "80"), 2, "--row 80"),
    (("explain", *DATA, *MODEL, "--row", "-1"), 2, "--row -1"),
    (("explain", *DATA, *MODEL, "--row", HUGE), 2, "0 to 79"),
    (("explain", *DATA, *MODEL, "--row", "0", "--row", "3"), 2, "exactly one row, got 2"),
    (("explain", *DATA, *MODEL, "--where", "id > 100"), 2, "exactly one row, got 79"),
    (("explain", *DATA, *MODEL, "--where", "idd == 100"), 2, "idd"),
    (("explain", *DATA, *MODEL, "--where", ""), 2, "--where ''"),
    (("explain", *DATA, *MODEL, "--where", "id"), 2, "--where 'id'"),
    (("explain", *DATA, *MODEL, "--where", "__import__('os')"), 2, "not a supported function"),
    (("batch", *DATA, *MODEL, "--where", "1"), 2, "--where '1'"),
    (("batch", *DATA, *MODEL, "--where", "outcome == 'odd'"), 2, "no row of loans.csv"),
    (("explain", *DATA, *MODEL, "--x", "none.json"), 2, "none.json"),
    (("explain", *ROW, "--id-column", "ids"), 2, "--id-column: 'ids'"),
    (("batch", "loans.csv", "--drop", "outcome", *MODEL, "--id-column", "job", "--where", "id < 110"), 2, "ids"),
    # what may change
    (("explain", *ROW, "--freeze", "agee"), 2, "--freeze: 'agee'"),
    (("explain", *ROW, "--freeze", "incme"), 2, "Did you mean 'income'?"),
    (("explain", *ROW, "--freeze", ","), 2, "--freeze"),
    (("explain", *ROW, "--freeze", "age,income,debt,job"), 2, "No feature can change"),
    (("explain", *ROW, "--drop", "ids"), 2, "--drop: 'ids'"),
    (("explain", *ROW, "--outcomes", "truth"), 2, "--outcomes: 'truth'"),
    (("explain", *ROW, "--increase", "job"), 2, "'job'"),
    (("explain", *ROW, "--increase", "age", "--decrease", "age"), 2, "'age' can be in --increase or in --decrease"),
    (("explain", *ROW, "--range", "income"), 2, "expected COLUMN=LOW:HIGH"),
    (("explain", *ROW, "--range", "income=5"), 2, "expected LOW:HIGH"),
    (("explain", *ROW, "--range", "income=inf:inf"), 2, "income"),
    (("explain", *ROW, "--range", "income=nan:5"), 2, "income"),
    (("explain", *ROW, "--range", "income=5:1"), 2, "ranges['income']"),
    (("explain", *ROW, "--range", "income=1:2:3"), 2, "income=1:2:3"),
    (("explain", *ROW, "--range", "="), 2, "--range '='"),
    (("explain", *ROW, "--range", "age=18.2:18.7"), 2, "ranges['age']"),
    (("explain", *ROW, "--values", "job=king"), 2, "king"),
    (("explain", *ROW, "--values", "job="), 2, "--values 'job='"),
    (("explain", *ROW, "--weight", "income"), 2, "--weight 'income'"),
    (("explain", *ROW, "--weight", "income=high"), 2, "--weight 'income=high'"),
    (("explain", *ROW, "--other", "job"), 2, "--other 'job'"),
    (("explain", *ROW, "--grid", "income=fine"), 2, "--grid 'income=fine'"),
    # options
    (("explain", *ROW, "--outcomes", "outcome", "--target", "splendid"), 2, "splendid"),
    (("explain", *ROW, "--target-range", "high"), 2, "--target-range 'high'"),
    (("explain", *ROW, "--budget", "1"), 2, "budget"),
    (("explain", *ROW, "--budget", "-5"), 2, "budget"),
    (("explain", *ROW, "--count", "0"), 2, "count"),
    (("explain", *ROW, "--seed", "-1"), 2, "seed"),
    (("explain", *ROW, "--seed", "1.5"), 2, "--seed"),
    (("explain", *ROW, "--time-limit", "0"), 2, "time_limit"),
    (("explain", *ROW, "--strategy", "luck"), 2, "luck"),
    (("explain", *ROW, "--strategy", "penalty", "--effort", "spend"), 2, "--effort"),
    (("explain", *ROW, "--plausibility", "looks"), 2, "looks"),
    (("explain", *ROW, "--missing", "guess"), 2, "--missing"),
    (("explain", *ROW, "--noise", "some"), 2, "--noise"),
    (("explain", *ROW, "--class-name", "good"), 2, "--class-name"),
    (("explain", *ROW, "--timeout", "inf"), 2, "timeout"),
    (("explain", *ROW, "--timeout", "nan"), 2, "timeout"),
    (("explain", *ROW, "--decimal", ";"), 2, "--decimal"),
    (("explain", *ROW, "--schema", "none.toml"), 2, "none.toml"),
    (("explain", *ROW, "--price-per-row", "nan", "--dry-run"), 2, "--price-per-row"),
    (("explain", *ROW, "--price-per-row", "inf", "--dry-run"), 2, "--price-per-row"),
    (("explain", *ROW, "--redact", "agee"), 2, "'agee'"),
    (("explain", *ROW, "--redact", "age,income,debt,job"), 2, "redact"),
    (("explain", *ROW, "--sign", "none.pem"), 2, "none.pem"),
    (("explain", *ROW, "--sign", "loans.csv"), 2, "loans.csv: expected an Ed25519 private key"),
    (("batch", *ROW, "--redact", "agee"), 2, "'agee'"),
    (("batch", *ROW, "--sign", "none.pem"), 2, "none.pem"),
    (("batch", *ROW, "--jobs", "0"), 2, "n_jobs"),
    (("batch", *ROW, "--by", "age_band"), 2, "--by: 'age_band'"),
    (("batch", *ROW, "--executor", "cluster:8786"), 2, "--executor"),
    # the model
    (("explain", *DATA, "--row", "0"), 2, "--model"),
    (("explain", *ROW, "--protocol", "v2"), 2, "--protocol"),
    (("explain", *DATA, "--row", "0", "--model", "none.skops"), 2, "none.skops"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_bank:missing"), 2, "'missing'"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_bank:number"), 2, "predict"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_broken:decide"), 2, "ZeroDivisionError"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_bank:broken"), 3, "out of order"),
    (("explain", *DATA, "--row", "0", "--model", "loans.csv"), 2, "loans.csv"),
    (("explain", *DATA, "--row", "0", "--model", ""), 2, "''"),
    (("explain", *DATA, "--row", "0", "--model", ":b"), 2, "odule"),
    (("explain", *DATA, "--row", "0", "--model", LONG), 2, "not a model"),
    (("explain", *DATA, "--row", "0", "--model", "http://", "--protocol", "json"), 2, "http://"),
    (("explain", *DATA, "--row", "0", "--model", "http://host/score"), 2, "--protocol"),
    ((*REMOTE, "--protocol", "json"), 2, "request"),
    ((*REMOTE, "--protocol", "mlflow", "--header-from-env", "A"), 2, "HEADER=VARIABLE"),
    ((*REMOTE, "--protocol", "mlflow", "--model-config", "none.toml"), 2, "none.toml"),
    # ledgers
    (("explain", *ROW, "--ledger", "new.db"), 2, "name"),
    (("explain", *ROW, "--ledger", LONG, "--model-name", "a"), 3, "unable to open"),
    (("explain", *ROW, "--ledger", ".", "--model-name", "a"), 3, "unable to open"),
    (("explain", *ROW, "--ledger", "", "--model-name", "a"), 3, "unable to open"),
    (("explain", *ROW, "--ledger", "mysql://h/d", "--model-name", "a"), 2, "sqlite"),
    (("explain", *ROW, "--ledger", "://", "--model-name", "a"), 2, "URL"),
    (("explain", *ROW, "--ledger", "loans.csv", "--model-name", "a"), 3, "SQLite"),
    (("ledger",), 2, "Missing command"),
    (("ledger", "stats", "none.db"), 2, "none.db"),
    (("ledger", "stats", "loans.csv"), 3, "SQLite"),
    (("ledger", "show", "two.db", "--model-name", "c"), 2, "'c' is not a model"),
    (("ledger", "show", "l.db", "--newest", HUGE), 2, "--newest"),
    (("ledger", "export", "two.db"), 2, "--model-name"),
    (("ledger", "abandon", "none.db"), 2, "none.db"),
    (("ledger", "import", "two.db", "loans.csv", "--model-name", "a"), 2, "--label: 'label'"),
    (("ledger", "import", "two.db", "loans.csv", "--model-name", "a", "--label", "outcome"), 2, "'wage'"),
    (("ledger", "import", "two.db", "none.csv", "--model-name", "a"), 2, "none.csv"),
    (("ledger", "purge", "l.db"), 2, "--id or --before"),
    (LEDGER, 2, "--rows or --money"),
    ((*LEDGER, "--money", "3"), 2, "--price-per-row"),
    ((*LEDGER, "--rows", HUGE), 2, "--rows"),
    ((*LEDGER, "--rows", "-1"), 2, "--rows"),
    ((*LEDGER, "--rows", "1.5"), 2, "--rows"),
    ((*LEDGER, "--rows", "1", "--money", "2"), 2, "--rows or --money"),
    ((*LEDGER, "--money", "1e300", "--price-per-row", "1e-300"), 2, "--money"),
    ((*LEDGER, "--money", "inf", "--price-per-row", "1"), 2, "--money"),
    ((*LEDGER, "--money", "nan", "--price-per-row", "1"), 2, "money"),
    ((*LEDGER, "--money", "5", "--price-per-row", "nan"), 2, "price_per_row"),
    ((*LEDGER, "--rows", "5", "--price-per-row", "1e999"), 2, "price_per_row"),
    (("audit", "none.db", *MODEL), 2, "none.db"),
    (("audit", "two.db", *MODEL), 2, "--model-name"),
    (("audit", "two.db", *MODEL, "--model-name", "a"), 2, "'a' has no answers yet"),
    (("audit", "l.db", *MODEL, "--seed", "-1"), 2, "--seed"),
    (("status", "none.db"), 2, "none.db"),
    (("status", "l.db", "--model-name", ""), 2, "''"),
    # ask and tell
    (("ask", *DATA, "--row", "0"), 2, "--ledger and --model-name"),
    (("ask", *DATA, "--row", "0", "--ledger", "l.db", "--model-name", "a", "--out", "loans.csv"), 2, "loans.csv"),
    (("tell", "none.csv", "--ledger", "l.db"), 2, "none.csv"),
    (("tell", "loans.csv", "--ledger", "l.db"), 2, "'acex_id'"),
    (("tell", "strange.csv", "--ledger", "l.db"), 2, "'abc'"),
    (("tell", "twice.csv", "--ledger", "l.db"), 2, "'abc'"),
    (("tell", "strange.csv", "--ledger", "none.db"), 2, "none.db"),
    (("tell", "strange.csv"), 2, "--ledger"),
    (("tell", "binary.csv", "--ledger", "l.db"), 2, "binary.csv"),
    # reports and certificates
    (("report", "none.db"), 2, "none.db"),
    (("report", "none.json"), 2, "none.json"),
    (("report", "loans.csv"), 3, "SQLite"),
    (("report", "two.db"), 2, "there are none"),
    (("report", "two.db", "--model-name", "c"), 2, "'c' is not a model"),
    (("report", "l.db", "--explanation", "zz"), 2, "'zz'"),
    (("report", "report list.json", "--model-name", "a"), 2, "--model-name"),
    (("verify", "none.json"), 2, "none.json"),
    (("verify", "folder.csv"), 2, "folder"),
    (("verify", "report list.json"), 2, "expected an object"),
    (("verify", "page.html"), 2, "no certificate"),
    (("verify", "loans.csv"), 2, "loans.csv"),
    # files to write
    (("explain", *ROW, "--out", "nowhere/why.json"), 2, "nowhere"),
    (("explain", *ROW, "--out", "why.html"), 2, ".json"),
    (("explain", *ROW, "--out", "."), 2, "--out"),
    (("explain", *ROW, "--plot", "why.doc"), 2, "why.doc"),
    (("batch", *ROW, "--out", "why.doc"), 2, ".parquet"),
    (("demo", "--out", "nowhere/loan.png"), 2, "nowhere"),
    (("demo", "--out", "loan.doc"), 2, "loan.doc"),
    (("explain", *ROW, "--schema", "schema.json", "--out", "schema.json"), 2, "schema.json is an input"),
    (("explain", *ROW, "--schema", "schema.json", "--out", "./schema.json"), 2, "schema.json is an input"),
    (("batch", *ROW, "--out", "loans.csv"), 2, "loans.csv is an input"),
    (("report", "l.db", "--out", "l.db"), 2, "l.db is an input"),
    (("report", "report newer.json", "--out", "report newer.json"), 2, "is an input"),
    (("ledger", "export", "l.db", "--out", "l.db"), 2, "l.db is an input"),
    # flags and commands
    (("explain", *ROW, "--labels", "outcome"), 2, "No such option: --labels"),
    (("explain", *ROW, "--model-id", "a"), 2, "--model-name"),
    (("explain", *ROW, "--category-cost", "1"), 2, "--category-cost"),
    (("batch", *ROW, "--levers", "5"), 2, "--levers"),
    (("expalin",), 2, "Did you mean 'explain'? See "),
    (("menu", *ROW), 2, "No such command 'menu'"),
    (("demo", "nonsense"), 2, "nonsense"),
    (("demo", "--budget", "1"), 2, "--budget"),
    (("--nonsense",), 2, "--nonsense"),
    (("--version=3",), 2, "--version"),
    (("",), 2, "No such command ''"),
    (("-",), 2, "No such command '-'"),
    (("--",), 2, "Missing command"),
    (("explain", "--", "--row"), 2, "--model"),
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
    (folder / "empty.csv").touch()
    (folder / "page.html").write_text("<p>", encoding="utf-8")
    (folder / "schema.json").write_text("", encoding="utf-8")
    (folder / "acex_test_broken.py").write_text("1 / 0", encoding="utf-8")
    (folder / "strange.csv").write_text("acex_id,label\nabc,good\n", encoding="utf-8")
    (folder / "twice.csv").write_text("acex_id,label\nabc,good\nabc,bad\n", encoding="utf-8")
    with acex.Ledger(folder / "two.db") as ledger:
        ledger.register("a", features=["wage"])
        ledger.register("b")
    with acex.Ledger(folder / "l.db") as ledger:
        ledger.register("a", features=["age", "income", "debt", "job"])
        row = '[30, 1500, 0.2, "cook"]'
        ledger.claim("a", [Question(row)])
        key = query_id("a", row)
    for i, label in enumerate(LABELS):
        quoted = label.replace('"', '""')
        (folder / f"labels {i}.csv").write_text(f'acex_id,label\n{key},"{quoted}"\n', encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, Any]:
    """What the folder holds: files by their bytes, the ledger by its answers."""
    kept = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file() and ".db" not in p.name}
    with acex.Ledger(folder / "l.db") as ledger:
        return kept | {"answers": ledger.answers("a"), "models": json.loads(ledger.tables.models().to_json())}


@pytest.fixture(scope="module")
def before(folder: Path) -> dict[str, Any]:
    return content(folder)


@pytest.mark.parametrize(("words", "code", "named"), LINES, ids=[" ".join(words)[-60:] for words, _, _ in LINES])
def test_a_mistake_is_one_line_and_nothing_is_sent(
    words: tuple[str, ...],
    code: int,
    named: str,
    folder: Path,
    before: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, list(words), env={"FORCE_COLOR": None, "NO_COLOR": "1"})
    assert isinstance(result.exception, SystemExit), result.exception  # no traceback
    assert (result.exit_code, result.stdout) == (code, ""), result.stderr
    assert result.stderr.startswith("acex: ") and result.stderr.count("\n") == 1, result.stderr
    assert named in result.stderr
    assert content(folder) == before
