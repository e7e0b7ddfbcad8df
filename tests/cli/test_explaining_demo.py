from __future__ import annotations

from pathlib import Path

import pytest

from acex.cli.explaining import MAY_CHANGE
from commands import run

pytestmark = pytest.mark.usefixtures("loans_folder")


def test_it_ends_in_an_answer_and_a_picture() -> None:
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    assert "rejected -> approved" in result.stdout and "debt_ratio" in result.stdout
    assert "Picture: acex-demo.png" in result.stdout and result.stderr == ""
    assert Path("acex-demo.png").read_bytes().startswith(b"\x89PNG")


def test_it_advises_only_what_an_applicant_can_do() -> None:
    result = run("demo", "--out", "loan.svg")
    answer = result.stdout[result.stdout.index("->") :]
    assert Path("loan.svg").exists() and "credit_score" not in answer and "age" not in answer.split()
    assert any(name in answer for name in MAY_CHANGE)
    assert 2 <= int(answer.split(" queries")[0].split()[-1]) <= 60
