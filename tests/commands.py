"""Shared by tests of the command line: a folder with data, and a model that logs each row it is sent."""

from __future__ import annotations

import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import acex
from acex.cli import app

BANK = """
import os, time

def decide(rows):
    with open("bill.txt", "a") as bill:  # what the model's seller would write down
        bill.writelines(f"{tuple(row)}\\n" for row in rows.itertuples(index=False))
    time.sleep(float(os.environ.get("BANK_SECONDS", "0")))
    return ["good" if income > 2000 and debt < 0.5 else "bad" for income, debt in zip(rows.income, rows.debt)]

def changed(rows):
    return ["good"] * len(rows)

def broken(rows):
    raise RuntimeError("out of order")

def quotes(rows):
    raise RuntimeError(f"cannot score {rows.to_dict('records')}")

number = 3
"""
MODEL = ("--model", "acex_test_bank:decide")


@dataclass(frozen=True)
class Result:
    exit_code: int
    stdout: str
    stderr: str


def run(*words: Any) -> Result:
    """Run a command in this process, without colours, and return its exit code and output."""
    colourless = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "TTY_INTERACTIVE": None}
    result = CliRunner().invoke(app, [str(word) for word in words], env=colourless)
    stdout, stderr = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in (result.stdout, result.stderr))
    return Result(result.exit_code, stdout, stderr)


def command(*words: Any) -> list[str]:
    """The arguments to run the same command in a new process."""
    return [sys.executable, "-m", "acex", *(str(word) for word in words)]


def can_be_interrupted() -> None:
    """Call in a new process to handle Ctrl-C even if the tests run in the background of a shell that ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def environment(**more: str) -> dict[str, str]:
    source = str(Path(acex.__file__).resolve().parents[1])  # in case it is not installed
    return os.environ | {"PYTHONPATH": source} | more


def loans_table() -> pd.DataFrame:
    """Loans with ids and outcomes. Row 0 is bad, its income too low."""
    rng = np.random.default_rng(0)
    loans = pd.DataFrame(
        {
            "id": range(100, 180),
            "age": rng.integers(18, 70, 80),
            "income": rng.integers(500, 4000, 80),
            "debt": rng.uniform(size=80).round(3),
            "job": rng.choice(["clerk", "cook", "nurse"], 80),
        }
    )
    loans.loc[0, ["income", "debt"]] = [1500, 0.3]
    return loans.assign(outcome=np.where((loans["income"] > 2200) & (loans["debt"] < 0.6), "good", "bad"))


def set_up(folder: Path) -> None:
    """A folder with loans.csv and acex_test_bank.py."""
    (folder / "acex_test_bank.py").write_text(BANK, encoding="utf-8")
    loans_table().to_csv(folder / "loans.csv", index=False)


def bill() -> list[str]:
    path = Path("bill.txt")
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
