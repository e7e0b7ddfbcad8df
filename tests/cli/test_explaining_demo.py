from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from acex.cli import app
from acex.cli.program import WAITING
from commands import run


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_shows_what_it_runs_and_what_to_try_next() -> None:
    result = run("demo")
    assert result.exit_code == 0, result.stderr
    assert "$ acex explain loans.csv" in result.stdout and "rejected -> approved" in result.stdout
    assert "Try next:" in result.stdout and "cd acex-demo" in result.stdout
    assert {path.name for path in Path("acex-demo").iterdir()} >= {"loans.csv", "bank.py", "why.json", "why.html"}


def test_a_model_that_was_edited_is_kept() -> None:
    Path("mine").mkdir()
    Path("mine/bank.py").write_text("def decide(rows): raise ValueError('mine')", encoding="utf-8")
    run("demo", "--out", "mine")
    assert "mine" in Path("mine/bank.py").read_text(encoding="utf-8")


def test_the_example_of_every_command_runs_in_the_folder_of_the_demo() -> None:
    assert run("demo").exit_code == 0
    os.chdir("acex-demo")
    commands: dict[str, Any] = dict(get_command(app).commands)  # type: ignore[attr-defined]
    ledger = commands.pop("ledger").commands
    order = ["explain", "schema", "ask", "tell", "batch", "subsets", "audit", "report", "verify"]
    assert {*order, "demo", "studio"} == {*commands}
    for command in (*(commands[name] for name in order), *ledger.values()):
        example = re.search(r"Example: acex (.*?)(\n\n|$)", command.help, re.DOTALL)
        assert example is not None, command.name
        result = run(*shlex.split(example[1]))
        assert result.exit_code == (WAITING if command.name == "ask" else 0), (example[1], result.stderr)
