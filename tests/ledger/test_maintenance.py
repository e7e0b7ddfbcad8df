"""Rows taken out of a ledger: gone from the file, the others whole, what was paid still counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select

import acex
from acex.engine.recorded import load_explanation
from acex.ledger import Question
from acex.ledger.maintenance import check, parse_time, purge
from acex.ledger.schema import metadata
from acex.ledger.sql import Ledger

RNG = np.random.default_rng(0)
DATA = pd.DataFrame({"a": RNG.normal(size=60).round(9), "b": RNG.normal(size=60).round(9)})


def model(rows: pd.DataFrame) -> Any:
    return np.where(rows["a"] > 0.9, "high", "low")


def filled(path: Path | str, names: tuple[str, ...] = ("ann", "bob", "cyd")) -> pd.DataFrame:
    rows = DATA[DATA["a"] < 0].sort_values("b", key=abs).head(len(names))
    explainer = acex.Explainer(acex.Model(model, name="m"), DATA, ledger=path)
    explainer.explain_many(rows.set_axis(names), target="high", budget=7, n_jobs=1).frame()
    explainer.ledger.close()
    return rows


def files(path: Path) -> bytes:
    return b"".join(p.read_bytes() for p in path.parent.glob(f"{path.name}*"))


def test_a_row_that_was_taken_out_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    rows = filled(path)
    before = Ledger(path).tables.models().to_dict("records")[0]
    mine = f"[{rows.iloc[0]['a']}, {rows.iloc[0]['b']}]".encode()
    assert mine in files(path)
    with Ledger(path) as ledger:
        deleted = purge(ledger, named=["ann"])
        assert deleted.explanations == 1 and deleted.rows > 0
        [line] = ledger.tables.models().to_dict("records")
        assert (line["charged"], line["answered"]) == (before["charged"], before["answered"] - deleted.rows)
        assert check(ledger.database.address) == []
        assert sorted(ledger.tables.explanations("m")["names"]) == ["bob", "cyd"]
        assert len(ledger.answers("m")) == line["answered"] < ledger.account("m").last_sequence
        for name in ledger.tables.explanations("m")["id"]:
            assert load_explanation(ledger, name).outcome == "found"
    with Ledger(path):
        pass
    assert mine not in files(path)


def everything(address: str) -> str:
    """All that the tables of a ledger hold, as text."""
    with Ledger(address) as ledger, ledger.database.read() as connection:
        return "\n".join(str(list(connection.execute(select(table)))) for table in metadata.sorted_tables)


def test_a_row_that_was_taken_out_is_in_no_table_and_the_others_are_whole(address: str) -> None:
    rows = filled(address)
    mine, other = (f"[{rows.iloc[i]['a']}, {rows.iloc[i]['b']}]" for i in (0, 1))
    with Ledger(address) as ledger:
        charged = ledger.tables.models()["charged"].tolist()
        kept = {name: load_explanation(ledger, name).to_dict() for name in ledger.tables.explanations("m")["id"]}
    assert mine in everything(address) and "ann" in everything(address)
    with Ledger(address) as ledger:
        assert purge(ledger, named=["ann"], dry_run=True) == purge(ledger, named=["ann"])
        assert ledger.tables.models()["charged"].tolist() == charged and check(ledger.database.address) == []
        left = ledger.tables.explanations("m")["id"].tolist()
        assert len(left) == 2
        # Free of what others have asked meanwhile: each is as it was before.
        assert [load_explanation(ledger, name).to_dict() for name in left] == [kept[name] for name in left]
    assert mine not in everything(address) and "ann" not in everything(address) and other in everything(address)
    with Ledger(address) as ledger:
        assert purge(ledger, before=parse_time("2999-01-01")).explanations == 2
    assert other not in everything(address)


def test_what_stays_goes_on_and_costs_nothing_again(address: str) -> None:
    path = address
    rows = filled(path)
    with Ledger(path) as ledger:
        purge(ledger, named=["ann"])
    explainer = acex.Explainer(acex.Model(model, name="m"), DATA, ledger=path)
    again = explainer.explain_many(rows.iloc[1:].set_axis(["bob", "cyd"]), target="high", budget=7, n_jobs=1)
    assert sum(e.n_queries for e in again) == 0
    fresh = explainer.explain_many(rows.iloc[:1].set_axis(["ann"]), target="high", budget=7, n_jobs=1)
    assert fresh[0].outcome == "found" and fresh[0].n_queries > 0


def test_a_purge_of_one_model_leaves_the_names_of_another(address: str) -> None:
    rows = filled(address).set_axis(["ann", "bob", "cyd"])
    explainer = acex.Explainer(acex.Model(model, name="other"), DATA, ledger=address)
    explainer.explain_many(rows, target="high", budget=4, n_jobs=1).frame()
    assert isinstance(explainer.ledger, acex.Ledger)
    assert purge(explainer.ledger, named=["ann"], model="m").explanations == 1
    assert sorted(explainer.ledger.tables.explanations("m")["names"]) == ["bob", "cyd"]
    assert sorted(explainer.ledger.tables.explanations("other")["names"]) == ["ann", "bob", "cyd"]
    explainer.ledger.close()


def test_a_row_that_is_also_another_person_s_only_loses_the_name(address: str) -> None:
    path = address
    row = DATA[DATA["a"] < 0].iloc[[0, 0]]
    explainer = acex.Explainer(acex.Model(model, name="m"), DATA, ledger=path)
    explainer.explain_many(row.set_axis(["ann", "bob"]), target="high", budget=5, n_jobs=1).frame()
    assert isinstance(explainer.ledger, acex.Ledger)
    deleted = purge(explainer.ledger, named=["ann"])
    assert (deleted.explanations, deleted.rows, deleted.in_use) == (0, 0, 1)
    assert explainer.ledger.tables.explanations("m")["names"].tolist() == ["bob"]
    assert purge(explainer.ledger, named=["bob"]).explanations == 1
    explainer.ledger.close()


def test_what_is_old_enough_goes_with_rows_without_an_explanation(address: str) -> None:
    path = address
    filled(path)
    with Ledger(path) as ledger:
        ledger.import_answers("m", ["[0.5, 0.5]"], ["low"])
        n = ledger.tables.models()["answered"].sum()
        assert purge(ledger, before=datetime.now(UTC) - timedelta(days=1)).rows == 0
        deleted = purge(ledger, before=datetime.now(UTC) + timedelta(seconds=5), dry_run=True)
        assert (deleted.explanations, deleted.rows) == (3, n)
        assert ledger.tables.models()["answered"].sum() == n
        purge(ledger, before=datetime.now(UTC) + timedelta(seconds=5))
        assert (ledger.tables.models()["answered"].sum(), len(ledger.tables.explanations())) == (0, 0)
        assert ledger.tables.models()["charged"].sum() > 0 and check(ledger.database.address) == []


def test_rows_in_flight_are_not_taken_out(address: str) -> None:
    with Ledger(address) as ledger:
        ledger.begin("e", "m", factual={}, settings={}, names=["ann"])
        ledger.claim("m", [Question("[1]", position=0)], explanation="e")
        with pytest.raises(ValueError, match="1 of these rows wait for an answer"):
            purge(ledger, named=["ann"])
        ledger.record("m", ["[1]"], ["low"])
        assert purge(ledger, named=["ann"]).rows == 1
        with pytest.raises(ValueError, match="expected names of rows, or a time"):
            purge(ledger)


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse_time("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    with pytest.raises(ValueError, match="yesterday"):
        parse_time("yesterday")
