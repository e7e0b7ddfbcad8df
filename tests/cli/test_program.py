"""What people mistype or do in the wrong order: told before anything is paid for, with what to do next."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.main import get_command

import acex
from acex.cli import app
from acex.cli.tables import read_table
from commands import MODEL, bill, command, environment, run

pytestmark = pytest.mark.usefixtures("loans_folder")

ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)

HELP = ("explain", "batch", "subsets", "schema", "ask", "tell", "status", "audit", "report", "verify", "demo", "ledger")


def test_decimal_commas_leave_dates_versions_and_texts_alone() -> None:
    lines = [f"{i + 1:02d}.11.2026;1.{i:03d},5;1.{i:03d};{i},25;2.{i % 3}.1;v{i % 2}" for i in range(28)]
    Path("werte.csv").write_text("\n".join(["tag;preis;menge;zins;fassung;art", *lines]), encoding="utf-8")
    table = read_table(Path("werte.csv"), ",")
    assert table.iloc[3].tolist() == ["04.11.2026", 1003.5, 1003, 3.25, "2.0.1", "v1"]
    assert table["menge"].dtype == "int64"
    shown = run("schema", "werte.csv", "--decimal", ",", "--drop", "fassung").stdout
    assert 'name = "tag", kind = "date"' in shown and "2026-11-28" in shown


def test_a_gap_among_thousands_stays_one() -> None:
    Path("werte.csv").write_text("a;b\n1.250,5;x\n;x\n-2.000;x\n", encoding="utf-8")
    a = read_table(Path("werte.csv"), ",")["a"]
    assert a.isna().tolist() == [False, True, False] and a.dropna().tolist() == [1250.5, -2000]


@pytest.mark.parametrize("words", [("--redact", "agee"), ("--sign", "none.pem")])
def test_a_batch_that_could_not_be_written_is_not_begun(words: tuple[str, ...]) -> None:
    batch = ("batch", "loans.csv", "--where", "id < 103", "--drop", "id,outcome", *MODEL, "--jobs", 1)
    assert run(*batch, *words, "--out", "why.json").exit_code == 2 and bill() == []


def test_every_bad_column_has_a_line_of_its_own() -> None:
    table = pd.DataFrame(
        {"who": [f"n{i}" for i in range(200)], "price": [f"{i},5" for i in range(200)], "n": range(200)}
    )
    table.to_csv("bad.csv", index=False)
    lines = run("schema", "bad.csv").stderr.splitlines()
    assert lines[0] == "acex: 2 columns cannot be taken as they are:"
    assert [line.split(":")[0] for line in lines[1:]] == ["- 'who'", "- 'price'"]
    assert "--id-column who" in lines[1]


def test_a_row_of_its_own_without_the_name_says_how_to_go_without() -> None:
    Path("row.json").write_text('{"age": 30, "income": 1500, "debt": 0.3, "job": "cook"}', encoding="utf-8")
    words = ("explain", "loans.csv", "--x", "row.json", "--drop", "outcome", *MODEL, "--budget", 6)
    result = run(*words, "--id-column", "id")
    assert result.exit_code == 2 and "row.json has no 'id'. Use --drop id" in result.stderr
    assert run(*words, "--drop", "id").exit_code == 0


def test_columns_with_odd_names_are_quoted_in_conditions() -> None:
    pd.read_csv("loans.csv").rename(columns={"id": "loan-no"}).to_csv("odd.csv", index=False)
    words = ("explain", "odd.csv", "--drop", "loan-no,outcome", *MODEL, "--budget", 6)
    assert "in backticks: `loan-no`." in run(*words, "--where", "loan-no == 100").stderr
    assert run(*words, "--where", "`loan-no` == 100").exit_code == 0


def test_questions_end_with_a_question_mark_only() -> None:
    assert run("expalin").stderr.startswith("acex: No such command 'expalin'. Did you mean 'explain'? See ")


def test_a_wrong_model_config_names_the_argument() -> None:
    Path("remote.toml").write_text('reqest = {a = "$rows"}', encoding="utf-8")
    words = (*ROW[:5], "outcome", "--model", "http://127.0.0.1:9/", "--protocol", "json")
    told = run(*words, "--model-config", "remote.toml").stderr
    assert "unknown argument 'reqest'" in told and "Did you mean 'request'?" in told
    assert "none.toml: no such file." in run(*words, "--model-config", "none.toml").stderr
    assert "--model-config" in run(*words).stderr


def test_what_cannot_be_verified_says_why() -> None:
    run(*ROW, "--ledger", "l.db", "--model-name", "bank")
    run(*ROW[:3], 1, *ROW[4:], "--ledger", "l.db", "--model-name", "bank")
    run("report", "l.db", "--out", "pages")
    assert "pages: a folder" in run("verify", "pages").stderr
    assert "no certificate found" in run("verify", "pages/index.html").stderr
    assert "loans.csv was not written by acex" in run("verify", "loans.csv").stderr


def test_a_page_of_a_file_that_was_changed_says_so() -> None:
    run(*ROW, "--out", "why.json")
    assert run("report", "why.json").stderr == ""
    told = json.loads(Path("why.json").read_text(encoding="utf-8"))
    Path("why.json").write_text(json.dumps(told | {"outcome": "exhausted"}), encoding="utf-8")
    assert "warning: why.json: checksum mismatch" in run("report", "why.json").stderr


def test_a_budget_can_be_set_before_the_first_question() -> None:
    shown = run(*ROW, "--dry-run", "--ledger", "l.db", "--model-name", "bank").stdout
    assert "name in the ledger is bank." in shown
    budget = ("ledger", "budget", "l.db", "--model-name", "bank")
    assert "Expected --rows or --money" in run(*budget).stderr
    assert "Use --new to create it" in run(*budget, "--rows", 3).stderr
    assert "--money needs --price-per-row" in run(*budget, "--money", 3, "--new").stderr
    assert run(*budget, "--rows", 1, "--new").exit_code == 0
    spent = run(*ROW, "--ledger", "l.db", "--model-name", "bank")
    assert spent.exit_code == 3 and "1 row to ask" in spent.stderr and "acex ledger budget" in spent.stderr
    assert "Expected --id or --before" in run("ledger", "purge", "l.db").stderr


def test_status_names_rows() -> None:
    run("explain", "loans.csv", "--row", 0, "--drop", "outcome", "--id-column", "id", *MODEL, "--budget", 6,
        "--ledger", "l.db", "--model-name", "bank")  # fmt: skip
    assert json.loads(run("status", "l.db", "--json").stdout)[0]["names"] == ["100"]
    header, _, line = run("status", "l.db").stdout.splitlines()[1:4]
    assert header.split()[:3] == ["explanation", "row", "state"] and line.split()[1:3] == ["100", "found"]


SHAKY = """
import acex_test_bank, os

def decide(rows):
    if not os.path.exists("repaired") and os.path.exists("bill.txt") and len(open("bill.txt").readlines()) > 2:
        raise OSError("out of order")
    return acex_test_bank.decide(rows)
"""


def test_a_model_that_fails_halfway_leaves_a_word_on_how_to_go_on() -> None:
    Path("acex_shaky_bank.py").write_text(SHAKY, encoding="utf-8")
    words = (*ROW[:6], "--model", "acex_shaky_bank:decide", "--budget", 6)
    kept = (*words, "--ledger", "l.db", "--model-name", "shaky")
    failed = run(*kept)
    assert failed.exit_code == 3 and "The same command continues" in failed.stderr
    Path("repaired").touch()
    assert run(*kept).exit_code == 0
    assert len(bill()) == len(set(bill())) <= 6  # nothing was paid for twice
    Path("repaired").unlink()
    Path("bill.txt").unlink()
    assert "with --ledger FILE they are recorded" in run(*words).stderr
    batch = ("batch", "loans.csv", "--where", "id < 102", *kept[4:], "--jobs", 1)
    assert "The same command tries such rows again." in run(*batch).stderr
    Path("repaired").touch()
    assert run(*batch).exit_code == 0


def test_a_batch_says_which_rows_were_left_out() -> None:
    table = pd.read_csv("loans.csv")
    table.loc[5, "debt"] = None
    table.to_csv("gaps.csv", index=False)
    result = run("batch", "gaps.csv", "--where", "id < 102", *ROW[4:], "--jobs", 1)
    assert result.exit_code == 0 and "1 of 80 rows of data has a gap and was left out (debt 1)" in result.stderr


def test_a_summary_gives_no_standard_deviations_of_categories() -> None:
    rows = pd.DataFrame({"job": ["clerk", "cook"] * 20, "years": range(40)})
    explainer = acex.Explainer(lambda x: x["job"] == "cook", rows, plausibility=None)
    summary = explainer.explain_many(rows.iloc[:1], target=True, budget=6, n_jobs=1).summary()
    assert summary.changes.set_index("feature")["median_step"].isna()["job"]
    assert str(summary).startswith("1 row: 1 found.") and "NaN" not in str(summary)


def test_the_page_of_the_command_line_has_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs/cli.md").read_text(encoding="utf-8")
    commands: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]
    commands |= {f"ledger {name}": command for name, command in commands.pop("ledger").commands.items()}
    names = ["explain", "batch", "subsets", "verify", "schema", "ask", "tell", "status", "report"]
    for name in (*names, *(n for n in commands if " " in n)):
        options = {o for p in commands[name].params for o in p.opts if o.startswith("--") and o != "--help"}
        assert [o for o in options if not re.search(rf"{o}(?![\w-])", page)] == [], name


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("broken\n  in two"), 2),
        (OSError("broken in two"), 2),
        (acex.MissingExtra("broken in two", "files"), 2),
        (acex.ModelFailed("broken in two"), 3),
        (acex.LedgerFailed("broken in two"), 3),
        (acex.BudgetSpent("broken in two"), 3),
        (KeyboardInterrupt("broken in two"), 130),
    ],
)
def test_an_error_is_one_line_on_stderr_and_its_kind_is_the_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(acex.datasets, "load", fail)
    result = run("demo")
    assert result.exit_code == code
    assert result.stderr.startswith("acex: stopped." if code == 130 else "acex: broken in two")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        *(
            (name,)
            for name in (
                "explain",
                "schema",
                "ask",
                "tell",
                "status",
                "audit",
                "batch",
                "subsets",
                "report",
                "verify",
                "demo",
                "ledger",
            )
        ),
        *(("ledger", name) for name in ("show", "stats", "export", "import", "abandon", "budget")),
        (),
    ],
)
def test_every_help_has_an_example_and_fits_80_columns(words: tuple[str, ...]) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Example: acex {' '.join(words)}", " ".join(result.stdout.split()))
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_python_m_acex_is_the_same_command() -> None:
    done = subprocess.run(command("--version"), env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == f"acex {acex.__version__}\n"
