from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import acex
from acex.cli.demos import QUESTIONS, Demo
from acex.engine.explanation import Explanation
from commands import command, environment, run

# What each demonstration must end in: the decision, and a feature that changes.
ANSWERS = {
    Demo.LOAN: ("rejected becomes approved", "debt_ratio"),
    Demo.MOONS: ("0 becomes 1", "x0"),
    Demo.BREAST_CANCER: ("malignant becomes benign", "worst "),
    Demo.TIC_TAC_TOE: ("positive becomes negative", "middle_middle"),
    Demo.DIGITS: ("8 becomes 9", "pixel_"),
}


@pytest.mark.parametrize("name", list(Demo))
def test_each_demo_ends_in_an_answer_and_a_picture(name: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Explanation] = []

    def explain(*args: Any, **options: Any) -> Explanation:
        found.append(real(*args, **options))
        return found[-1]

    real = acex.explain
    monkeypatch.setattr(acex, "explain", explain)
    result = run("demo", name)
    assert result.exit_code == 0, result.stderr
    [explanation] = found
    sentence, feature = ANSWERS[name]
    assert sentence in result.stdout
    assert feature in result.stdout
    assert f"asked {explanation.n_queries} times" in result.stdout
    assert f"Picture: acex-demo-{name}.png" in result.stdout
    assert Path(f"acex-demo-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == ""


def test_the_loan_is_the_default_and_advises_only_what_an_applicant_can_do() -> None:
    result = run("demo", "--budget", "40", "--seed", "3")
    answer = result.stdout[result.stdout.index("becomes") :]
    frozen = QUESTIONS[Demo.LOAN].options["freeze"]
    assert "credit_score" in frozen
    assert not [name for name in frozen if name in answer]
    assert 2 <= int(answer.split("asked ")[1].split(" times")[0]) <= 40


def test_the_board_of_tic_tac_toe_stays_one_that_can_come_up() -> None:
    data = acex.datasets.load("tic-tac-toe")
    may_be_asked = QUESTIONS[Demo.TIC_TAC_TOE].options["constraint"]
    assert may_be_asked(data.rows).all()
    assert not may_be_asked(data.rows.replace("x", "o")).any()


def test_the_picture_goes_where_out_says(tmp_path: Path) -> None:
    path = tmp_path / "moons.svg"
    result = run("demo", "moons", "--out", str(path))
    assert f"Picture: {path}" in result.stdout
    assert "<svg" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_when_nothing_is_found_the_summary_says_so_and_the_code_is_1(tmp_path: Path) -> None:
    result = run("demo", "tic-tac-toe", "--budget", "2")
    assert result.exit_code == 1
    assert "budget_spent: still positive (2 queries)" in result.stdout
    assert list(tmp_path.iterdir()) == []


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
        *((name,) for name in ("explain", "schema", "ask", "tell", "status", "audit", "demo", "ledger")),
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
