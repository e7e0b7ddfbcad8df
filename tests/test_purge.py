"""Rows taken out of a ledger: gone from the file, the others whole, what was paid still counted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.ledger import Ledger, Question
from acex.ledger.purge import moment
from acex.run.recorded import recorded
from commands import run

RNG = np.random.default_rng(0)
DATA = pd.DataFrame({"a": RNG.normal(size=60).round(9), "b": RNG.normal(size=60).round(9)})


def model(rows: pd.DataFrame) -> Any:
    return np.where(rows["a"] > 0.9, "high", "low")


def filled(path: Path, names: tuple[str, ...] = ("ann", "bob", "cyd")) -> pd.DataFrame:
    rows = DATA[DATA["a"] < 0].sort_values("b", key=abs).head(len(names))
    explainer = acex.Explainer(model, DATA, ledger=path, model_id="m")
    explainer.explain_many(rows, ids=names, target="high", budget=7, n_jobs=1).frame()
    explainer.ledger.close()
    return rows


def files(path: Path) -> bytes:
    return b"".join(p.read_bytes() for p in path.parent.glob(f"{path.name}*"))


def test_a_row_that_was_taken_out_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    rows = filled(path)
    before = Ledger(path).stats().to_dict("records")[0]
    mine = f"[{rows.iloc[0]['a']}, {rows.iloc[0]['b']}]".encode()
    assert mine in files(path)
    with Ledger(path) as ledger:
        told = ledger.purge(named=["ann"])
        assert told.explanations == 1 and told.rows > 0
        [line] = ledger.stats().to_dict("records")
        assert (line["charged"], line["settled"]) == (before["charged"], before["settled"] - told.rows)
        assert ledger.check() == []
        assert sorted(ledger.explanations("m")["names"]) == ["bob", "cyd"]
        assert [answer.sequence for answer in ledger.answers("m")] == list(range(1, line["settled"] + 1))
        for name in ledger.explanations("m")["id"]:
            assert recorded(ledger, name).outcome == "found"
    with Ledger(path):
        pass
    assert mine not in files(path)


def test_what_stays_goes_on_and_costs_nothing_again(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    rows = filled(path)
    with Ledger(path) as ledger:
        ledger.purge(named=["ann"])
    explainer = acex.Explainer(model, DATA, ledger=path, model_id="m")
    again = explainer.explain_many(rows.iloc[1:], ids=["bob", "cyd"], target="high", budget=7, n_jobs=1)
    assert sum(e.n_queries for e in again) == 0
    fresh = explainer.explain_many(rows.iloc[:1], ids=["ann"], target="high", budget=7, n_jobs=1)
    assert fresh[0].outcome == "found" and fresh[0].n_queries > 0


def test_a_row_that_is_also_somebody_else_s_only_loses_the_name(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    row = DATA[DATA["a"] < 0].iloc[[0, 0]]
    explainer = acex.Explainer(model, DATA, ledger=path, model_id="m")
    explainer.explain_many(row, ids=["ann", "bob"], target="high", budget=5, n_jobs=1).frame()
    told = explainer.ledger.purge(named=["ann"])
    assert (told.explanations, told.rows, told.in_use) == (0, 0, 1)
    assert explainer.ledger.explanations("m")["names"].tolist() == ["bob"]
    assert explainer.ledger.purge(named=["bob"]).explanations == 1


def test_what_is_old_enough_goes_with_rows_that_nobody_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    filled(path)
    with Ledger(path) as ledger:
        ledger.import_answers("m", ["[0.5, 0.5]"], ["low"])
        n = ledger.stats()["settled"].sum()
        assert ledger.purge(before=datetime.now(UTC) - timedelta(days=1)).rows == 0
        told = ledger.purge(before=datetime.now(UTC) + timedelta(seconds=5), really=False)
        assert (told.explanations, told.rows) == (3, n)
        assert ledger.stats()["settled"].sum() == n
        ledger.purge(before=datetime.now(UTC) + timedelta(seconds=5))
        assert (ledger.stats()["settled"].sum(), len(ledger.explanations())) == (0, 0)
        assert ledger.stats()["charged"].sum() > 0 and ledger.check() == []


def test_rows_in_flight_are_not_taken_out(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.begin("e", "m", factual={}, settings={})
        ledger.name("e", ["ann"])
        ledger.claim("m", [Question("[1]", position=0)], explanation="e")
        with pytest.raises(ValueError, match="1 of these rows wait for an answer of 'm'"):
            ledger.purge(named=["ann"])
        ledger.settle("m", ["[1]"], ["low"])
        assert ledger.purge(named=["ann"]).rows == 1
        with pytest.raises(ValueError, match="expected names of rows, or a time"):
            ledger.purge()


def test_the_command_counts_before_it_does_anything(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    filled(path)
    result = run("ledger", "purge", path, "--id", "ann")
    assert result.exit_code == 0 and "would be taken out; say --yes" in result.stdout
    told = json.loads(run("ledger", "purge", path, "--id", "ann", "--id", "bob", "--yes", "--json").stdout)
    assert told["done"] and told["explanations"] == 2
    assert "is no day or time" in run("ledger", "purge", path, "--before", "yesterday").stderr
    assert run("ledger", "purge", path).exit_code == 2
    assert moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
