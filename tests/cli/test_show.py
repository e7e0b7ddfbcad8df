"""Names, labels and ids of others: what they may not do to a terminal, a spreadsheet, a folder or a secret."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sqlalchemy import and_, create_engine, select
from typer.testing import CliRunner

import acex
from acex.cli import app
from acex.ledger.schema import asks, explanations, queries
from acex.values import UNPRINTABLE
from commands import MODEL, Result, run

# Sets the title, clears the screen, writes to the clipboard, moves to the line's beginning, turns the writing around.
EVIL = "\x1b]0;owned\x07\x1b[2J\x1b]52;c;b3duZWQ=\x07\x9b31m\r\u202e"
BANK = """
def decide(rows):
    income, debt = rows.iloc[:, 1], rows.iloc[:, 2]
    return ["EVILgood" if i > 2000 and d < 0.5 else "EVILbad" for i, d in zip(income, debt)]

def changed(rows):
    return ["EVILgood"] * len(rows)

def broken(rows):
    raise RuntimeError("EVIL out of order")
"""
ROW = ("evil.parquet", "--drop", "id,outcome", "--row", "0")
KEPT = ("--ledger", "l.db", "--model-name", f"bank{EVIL}")
THEIRS = ("--model", "acex_test_evil:decide")


@pytest.fixture(autouse=True)
def _hostile_files(loans_folder: None) -> None:
    Path("acex_test_evil.py").write_text(BANK.replace("EVIL", EVIL.encode("unicode_escape").decode()), encoding="utf-8")
    loans = pd.read_csv("loans.csv")
    loans["job"] = loans["job"] + EVIL
    loans.rename(columns={"income": f"income{EVIL}", "age": f"={EVIL}age"}).to_parquet("evil.parquet")


def raw(*words: Any) -> Result:
    """What the command writes, nothing taken out."""
    colourless = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "TTY_INTERACTIVE": None, "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [str(word) for word in words], env=colourless)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


def test_no_command_lets_a_terminal_obey_what_others_wrote() -> None:
    results: dict[str, Result] = {}

    def each(*words: Any, code: int = 0) -> None:
        results[" ".join(map(str, words))] = result = raw(*words)
        assert result.exit_code == code, (words, result.stderr)

    for json_ in ((), ("--json",)):
        each("explain", *ROW, *THEIRS, *KEPT, "--budget", "8", *json_, "--out", "why.json")
        each("explain", *ROW, *THEIRS, *KEPT, "--dry-run", *json_)
        each("explain", *ROW, *THEIRS, "--budget", "3", "--target", f"{EVIL}nothing", *json_, code=1)
        each("explain", *ROW, "--model", "acex_test_evil:broken", *json_, code=3)
        each("batch", "evil.parquet", "--drop", "id,outcome", "--where", "id < 104", *THEIRS, "--jobs", "1", *json_)
        each("schema", "evil.parquet")
        each("ask", *ROW, "--ledger", "lab.db", "--model-name", f"lab{EVIL}", *json_, code=4)
        each("ledger", "show", "lab.db", *json_)
        each("audit", "l.db", "--model", "acex_test_evil:changed", "--model-name", KEPT[-1], *json_, code=1)
        each("ledger", "show", "l.db", *json_)
    each("report", "l.db")
    each("report", "why.json", "--out", "why.html")
    each("ledger", "export", "l.db")
    each("ledger", "export", "l.db", "--out", "answers.csv")
    each("ledger", "import", "copy.db", "answers.csv", "--model-name", f"x{EVIL}")
    each("ledger", "abandon", "lab.db")
    each("ledger", "check", "l.db")
    each("ledger", "budget", "l.db", "--model-name", KEPT[-1], "--rows", "99")
    with sqlite3.connect("l.db") as connection:
        connection.execute("UPDATE queries SET explanation_id = ?", (f"[{EVIL}",))
    each("ledger", "check", "l.db", code=1)
    each("ledger", "show", "lab.db", "--model-name", f"missing{EVIL}", code=2)
    each("explain", *ROW, *THEIRS, "--freeze", f"none{EVIL}", code=2)
    each(f"nonsense{EVIL}", code=2)
    each("explain", f"none{EVIL}.csv", *THEIRS, "--row", "0", code=2)
    for words, result in results.items():
        found = UNPRINTABLE.findall(result.stdout + result.stderr)
        assert not found, f"{words!r}: {found}"
    shown = " ".join(result.stdout for result in results.values())
    assert "\\u001b]0;owned" in shown  # written out, so that nothing is hidden
    answer = json.loads(results[" ".join(("ledger", "show", "l.db", "--json"))].stdout)
    assert answer["models"][0]["model"] == KEPT[-1]  # JSON holds the same value


def test_an_explanation_can_be_printed() -> None:
    rows = pd.read_parquet("evil.parquet").drop(columns=["id", "outcome"])
    model = acex.load_model("acex_test_evil:decide")
    found = acex.explain(model, rows.iloc[0], data=rows, budget=12)
    missed = acex.explain(model, rows.iloc[0], data=rows, budget=2)
    many = acex.Explainer(model, rows).explain_many(rows.iloc[:3], budget=5, n_jobs=1)
    assert found.outcome == "found" and missed.outcome != "found"
    for answer in (found, missed, many.summary()):
        assert not UNPRINTABLE.search(str(answer)) and not UNPRINTABLE.search(repr(answer))
    assert "owned" in str(found)


def test_all_text_is_printed_at_one_place() -> None:
    """A command that prints by itself would print what others wrote as it is."""
    for path in Path(acex.__file__).parent.joinpath("cli").glob("*.py"):
        if path.name != "show.py":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"typer\.(echo|secho)\(|(?<![\w.])print\(|sys\.std(out|err)|\bText\(", text), path.name


# -- spreadsheets ----------------------------------------------------------------------------------------

FORMULA = '=HYPERLINK("http://evil","click")'
LABELS = {"good": "=good", "bad": "-bad"}


@pytest.fixture
def _formulas() -> None:
    """Categories, a column and labels that a spreadsheet would run."""
    Path("acex_test_formulas.py").write_text(
        f"def decide(rows):\n    return [{LABELS}['good' if i > 2000 else 'bad'] for i in rows.iloc[:, 1]]\n",
        encoding="utf-8",
    )
    loans = pd.read_csv("loans.csv").drop(columns=["id", "outcome"])
    loans["job"] = loans["job"].map({"clerk": FORMULA, "cook": "@cook", "nurse": f"nurse{EVIL}"})
    loans.rename(columns={"age": "+age"}).to_parquet("formulas.parquet")


def cells(path: str) -> list[str]:
    with open(path, encoding="utf-8", newline="") as lines:
        return [cell for line in csv.reader(lines) for cell in line]


@pytest.mark.usefixtures("_formulas")
def test_a_list_of_ask_runs_no_formula_and_can_be_told() -> None:
    words = (
        "ask",
        "formulas.parquet",
        "--row",
        "0",
        "--ledger",
        "lab.db",
        "--model-name",
        "a",
        "--queries-per-round",
        "4",
    )
    n_new = 0
    for _ in range(3):
        assert run(*words, "--out", "todo.csv").exit_code == 4  # rows wait
        assert not [cell for cell in cells("todo.csv") if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
        todo = pd.read_csv("todo.csv", dtype=str, keep_default_na=False)
        # One as it is typed into a file, the other as a spreadsheet keeps it.
        todo["label"] = ["=good" if float(income) > 2000 else "'-bad" for income in todo["income"]]
        todo.to_csv("todo.csv", index=False)
        result = run("tell", "todo.csv", "--ledger", "lab.db", "--new-labels")
        assert result.exit_code == 0, result.stderr
        n_new += int(re.search(r"Recorded: (\d+)", result.stdout)[1])  # type: ignore[index]
        Path("todo.csv").unlink()
    with acex.Ledger("lab.db") as ledger:
        answers = ledger.answers("a")
        assert ledger.account("a").features == ("+age", "income", "debt", "job")
    assert len(answers) == n_new == 9
    assert {answer.label for answer in answers} <= {"=good", "-bad"}
    assert {json.loads(answer.row)[3] for answer in answers} <= {FORMULA, "@cook", f"nurse{EVIL}"}


@pytest.mark.usefixtures("_formulas")
def test_what_is_exported_runs_no_formula_and_imports_as_it_was() -> None:
    model = ("--model", "acex_test_formulas:decide", "--model-name", "a")
    run("explain", "formulas.parquet", "--row", "0", *model, "--ledger", "l.db", "--budget", "12")
    assert run("ledger", "export", "l.db", "--out", "answers.csv").exit_code == 0
    assert not [cell for cell in cells("answers.csv") if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert run("ledger", "export", "l.db").stdout == Path("answers.csv").read_text(encoding="utf-8")
    again = run("ledger", "import", "l.db", "answers.csv", "--model-name", "a")
    n = len(pd.read_csv("answers.csv"))
    assert n > 5 and again.stdout == f"0 of {n} answers were new to a.\n", again.stderr
    extra = "sequence,scores,purpose,explanation_id,attempts,answered_at,acex_id"
    run("ledger", "import", "copy.db", "answers.csv", "--model-name", "a", "--drop", extra)
    with acex.Ledger("l.db") as ledger, acex.Ledger("copy.db") as copy:
        assert not ledger.contradicted("a")
        assert {(a.row, a.label) for a in copy.answers("a")} == {(a.row, a.label) for a in ledger.answers("a")}


# -- labels of another kind -------------------------------------------------------------------------------


def test_labels_that_the_model_never_gave_need_a_word() -> None:
    kept = ("--ledger", "l.db", "--model-name", "bank-1")
    run("explain", "loans.csv", "--drop", "id,outcome", "--row", "0", *MODEL, *kept, "--budget", "8")
    elsewhere = pd.read_csv("loans.csv").drop(columns=["id", "outcome"]).iloc[-4:]
    elsewhere = elsewhere.assign(age=elsewhere["age"] + 1)  # the search may have asked a row of the table
    elsewhere.assign(label=["good", "Good", "bad", "maybe"]).to_csv("more.csv", index=False)
    words = ("ledger", "import", "l.db", "more.csv", "--model-name", "bank-1")
    result = run(*words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "'Good' is not a label that model 'bank-1' has given so far" in result.stderr
    assert "--new-labels" in result.stderr
    with acex.Ledger("l.db") as ledger:
        assert len(ledger.answers("bank-1")) == 8
    assert "4 of 4 answers were new" in run(*words, "--new-labels").stdout
    elsewhere.assign(label=[0.018, 0.5, 0.9, 1]).to_csv("scores.csv", index=False)
    for more in ((), ("--new-labels",)):
        result = run("ledger", "import", "l.db", "scores.csv", "--model-name", "bank-1", *more)
        assert result.exit_code == 2 and "0.018, which is a score, not a label" in result.stderr


def test_labels_that_are_numbers_as_texts_are_known_again() -> None:
    rows = pd.read_csv("loans.csv").drop(columns=["id", "outcome"]).iloc[:3]
    with acex.Ledger("l.db") as ledger:
        ledger.register("a", features=list(rows.columns))
        ledger.import_answers("a", ['[1, 2, 0.5, "cook"]', '[1, 3, 0.5, "cook"]'], ["0", "1"])
    rows.assign(label=[0, 1, 1]).to_csv("more.csv", index=False)
    assert run("ledger", "import", "l.db", "more.csv", "--model-name", "a").exit_code == 0
    with acex.Ledger("l.db") as ledger:
        assert [answer.label for answer in ledger.answers("a")] == ["0", "1", "0", "1", "1"]


# -- secrets -------------------------------------------------------------------------------------------------

PASSWORD = "s3same/open:@now"
URL = f"postgresql://anna:{PASSWORD}@127.0.0.1:1/books?password={PASSWORD}&sslpassword={PASSWORD}"


@pytest.mark.parametrize(
    "words",
    [
        ("report", URL),
        ("ledger", "show", URL),
        ("ledger", "show", URL.replace("://", ":/")),
        ("ledger", "import", URL, "loans.csv", "--model-name", "a", "--label", "outcome"),
        ("tell", "told.csv", "--ledger", URL),
        ("ask", "loans.csv", "--drop", "id,outcome", "--row", "0", "--model-name", "a", "--ledger", URL),
        ("explain", "loans.csv", "--drop", "id,outcome", "--row", "0", *MODEL, "--model-name", "a", "--ledger", URL),
        ("explain", "loans.csv", "--row", "0", "--model", f"https://anna:{PASSWORD}@host/score"),
        ("explain", "loans.csv", "--row", "0", "--model", f"https://anna:{PASSWORD}@host/score", "--protocol", "json"),
        ("explain", f"postgresql://anna:{PASSWORD}@host/x.csv", "--row", "0", *MODEL),
    ],
)
def test_no_password_is_printed(words: tuple[str, ...]) -> None:
    Path("told.csv").write_text("acex_id,label\nabc,good\n", encoding="utf-8")
    result = run(*words)
    assert result.exit_code in (2, 3)
    assert "s3same" not in result.stdout + result.stderr and "open:@now" not in result.stdout + result.stderr
    assert result.stderr.count("\n") == 1


def test_a_ledger_with_nothing_to_report_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    real = acex.Ledger
    monkeypatch.setattr(acex, "Ledger", lambda where, **options: real("empty.db", **options))
    result = run("report", URL)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there are none" in result.stderr
    assert "s3same" not in result.stderr


# -- folders -------------------------------------------------------------------------------------------------


def rename_explanations(path: str, *names: str) -> None:
    """Give the explanations of a ledger these ids, as somebody who made the file could."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        old = connection.scalars(select(explanations.c.id).order_by(explanations.c.started_at))
        new: dict[Any, str] = dict(zip(old, names, strict=True))
        for table, column in ((explanations, "id"), (asks, "explanation_id"), (queries, "explanation_id")):
            for line in connection.execute(select(table)).all():
                this = and_(*(key == line._mapping[key.name] for key in table.primary_key))
                connection.execute(table.update().where(this).values({column: new[line._mapping[column]]}))
    engine.dispose()


def explained(*rows: int) -> None:
    kept = ("--ledger", "l.db", "--model-name", "bank-1")
    for row in rows:
        run("explain", "loans.csv", "--drop", "id,outcome", "--row", row, *MODEL, *kept, "--budget", "3")


def test_reports_stay_in_their_folder_whatever_the_ids() -> None:
    explained(0, 3, 5, 7, 8)
    rename_explanations("l.db", "../../evil", "/abs/evil", "index", "INDEX", "a\x1b[2J\n<b>/..")
    before = set(Path().rglob("*"))
    result = run("report", "l.db", "--out", "out")
    assert result.exit_code == 0, result.stderr
    made = set(Path().rglob("*")) - before
    assert all(path.parts[0] == "out" for path in made)
    pages = [path.name for path in made if path.is_file()]
    assert len(pages) == 6 and all(re.fullmatch(r"[A-Za-z0-9_-]+\.html", name) for name in pages)
    assert len({name.lower() for name in pages}) == 6 and "index.html" in pages
    links = re.findall(r'href="([^"]+)"', Path("out/index.html").read_text(encoding="utf-8"))
    assert sorted([*links, "index.html"]) == sorted(pages)


def test_one_report_stays_in_its_folder_too() -> None:
    explained(0)
    rename_explanations("l.db", "../evil")
    Path("out").mkdir()
    assert run("report", "l.db", "--out", "out").exit_code == 0
    assert [path.name for path in Path("out").iterdir()] == ["___evil.html"]
    assert not Path("evil.html").exists()


def test_a_link_out_of_the_folder_is_not_followed() -> None:
    explained(0, 3)
    rename_explanations("l.db", "aaa", "bbb")
    Path("out").mkdir()
    Path("out/bbb.html").symlink_to(Path("loans.csv").resolve())
    content = Path("loans.csv").read_bytes()
    result = run("report", "l.db", "--out", "out")
    assert result.exit_code == 2 and "out/bbb.html is a link to a file outside of out" in result.stderr
    assert Path("loans.csv").read_bytes() == content and not Path("out/aaa.html").exists()


def test_what_a_batch_wrote_is_reported_row_by_row() -> None:
    batch = ("batch", "loans.csv", *MODEL, "--drop", "id,outcome", "--where", "id < 103", "--jobs", "1")
    assert run(*batch, "--budget", "6", "--target", "good", "--out", "why.json").exit_code == 0
    assert run("report", "why.json").stdout == "3 reports: open why-report/index.html\n"
    assert sorted(path.stem for path in Path("why-report").iterdir()) == ["0", "1", "2", "index"]
    data = json.loads(Path("why.json").read_text(encoding="utf-8"))
    data["rows"][1] = {"row": f"../{EVIL}", "paid": 0, "error": f"failed {EVIL}", "explanation": None}
    Path("some.json").write_text(json.dumps(data), encoding="utf-8")
    result = raw("report", "some.json", "--out", "some")
    assert result.exit_code == 0 and "left out: row ../" in result.stderr
    assert not UNPRINTABLE.search(result.stdout + result.stderr)
    assert sorted(path.name for path in Path("some").iterdir()) == ["0.html", "2.html", "index.html"]
    data["rows"] = data["rows"][1:2]
    Path("none.json").write_text(json.dumps(data), encoding="utf-8")
    assert "none of its 1 rows has an explanation" in run("report", "none.json").stderr
