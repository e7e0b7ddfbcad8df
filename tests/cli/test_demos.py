from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import acex
from acex.cli.demos import Demo, is_board, question
from acex.engine.explanation import Explanation
from commands import run

pytestmark = pytest.mark.usefixtures("loans_folder")

# What each demonstration must end in: the decision, and a feature that changes.
ANSWERS = {
    Demo.LOAN: ("rejected -> approved", "debt_ratio"),
    Demo.MOONS: ("0 -> 1", "x0"),
    Demo.BREAST_CANCER: ("malignant -> benign", "worst "),
    Demo.TIC_TAC_TOE: ("positive -> negative", "middle_middle"),
    Demo.DIGITS: ("8 -> 9", "pixel_"),
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
    assert f"{explanation.n_queries} queries" in result.stdout
    assert f"Picture: acex-demo-{name}.png" in result.stdout
    assert Path(f"acex-demo-{name}.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == ""


def test_the_loan_is_the_default_and_advises_only_what_an_applicant_can_do() -> None:
    result = run("demo", "--budget", "40", "--seed", "3")
    answer = result.stdout[result.stdout.index("->") :]
    frozen = question(Demo.LOAN, acex.datasets.load("loan")).options["freeze"]
    assert "credit_score" in frozen
    assert not [name for name in frozen if name in answer]
    assert 2 <= int(answer.split(" queries")[0].split()[-1]) <= 40


def test_the_board_of_tic_tac_toe_stays_one_that_can_come_up() -> None:
    data = acex.datasets.load("tic-tac-toe")
    assert is_board(data.rows).all()
    assert not is_board(data.rows.replace("x", "o")).any()


def test_the_picture_goes_where_out_says(tmp_path: Path) -> None:
    path = tmp_path / "moons.svg"
    result = run("demo", "moons", "--out", str(path))
    assert f"Picture: {path}" in result.stdout
    assert "<svg" in path.read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.png"))


def test_when_nothing_is_found_the_summary_says_so_and_the_code_is_1(tmp_path: Path) -> None:
    result = run("demo", "tic-tac-toe", "--budget", "2")
    assert result.exit_code == 1
    assert "budget_spent: still positive (2 queries)" in result.stdout
    assert not list(tmp_path.glob("*.png"))
