"""Errors of commands, their exit codes and their help."""

from __future__ import annotations

import re
import runpy
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import acex
from commands import MODEL, bill, command, environment, run

pytestmark = pytest.mark.usefixtures("loans_folder")

ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)

HELP = ("explain", "batch", "subsets", "schema", "ask", "tell", "audit", "report", "verify", "demo", "ledger")


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
    assert lines[0] == "acex: 2 columns cannot be used as they are:"
    assert [line.split(":")[0] for line in lines[1:]] == ["- 'who'", "- 'price'"]
    assert "--id-column 'who'" in lines[1]


def test_questions_end_with_a_question_mark_only() -> None:
    assert run("expalin").stderr.startswith("acex: No such command 'expalin'. Did you mean 'explain'? See ")


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


def test_a_summary_gives_no_standard_deviations_of_categories() -> None:
    rows = pd.DataFrame({"job": ["clerk", "cook"] * 20, "years": range(40)})
    explainer = acex.Explainer(lambda x: x["job"] == "cook", rows, plausibility=None)
    summary = explainer.explain_many(rows.iloc[:1], target=True, budget=6, n_jobs=1).summary()
    assert summary.changes.set_index("feature")["median_step"].isna()["job"]
    assert str(summary).startswith("1 row: 1 found.") and "NaN" not in str(summary)


def test_the_page_of_the_commands_is_up_to_date() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "commands.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(docs / "generate.py"))["commands"]() == page, "run python docs/generate.py"


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
    def fail() -> None:
        raise error

    monkeypatch.setattr(acex.datasets, "loan", fail)
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
                "audit",
                "batch",
                "subsets",
                "report",
                "verify",
                "demo",
                "ledger",
            )
        ),
        *(("ledger", name) for name in ("show", "export", "import", "abandon", "budget")),
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
