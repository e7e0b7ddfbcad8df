"""`acex ledger purge`."""

from __future__ import annotations

import json
from pathlib import Path

import acex
from acex.ledger import Question
from commands import run


def test_purge_counts_before_it_deletes_anything(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with acex.Ledger(path) as ledger:
        ledger.begin("e", "m", factual={}, settings={}, names=["ann"])
        ledger.claim("m", [Question("[1]", position=0)], explanation="e")
        ledger.record("m", ["[1]"], ["low"])
    result = run("ledger", "purge", path, "--id", "ann")
    assert result.exit_code == 0 and "--yes" in result.stdout
    done = json.loads(run("ledger", "purge", path, "--id", "ann", "--yes", "--json").stdout)
    assert (done["done"], done["explanations"], done["rows"]) == (True, 1, 1)
    assert "yesterday" in run("ledger", "purge", path, "--before", "yesterday").stderr
    assert run("ledger", "purge", path).exit_code == 2
