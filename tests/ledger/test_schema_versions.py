"""Ledgers that an older acex wrote are taken to the newest version, with all they hold."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect
from sqlalchemy.exc import OperationalError

from acex.engine.recorded import load_explanation
from acex.errors import LedgerFailed
from acex.ledger import Question, query_id, schema
from acex.ledger.maintenance import check, purge
from acex.ledger.sql import Ledger
from ledgers import postgres, run

OLD = {  # 1 and 2 are of acex before 0.2.0, and 4 is what 0.2.0 wrote
    1: Path(__file__).with_name("ledger-version-1.sql"),
    2: Path(__file__).with_name("ledger-version-2.sql"),  # two explanations, one of them stopped on the way
    4: Path(__file__).with_name("ledger-version-4.sql"),  # likewise
}
MODEL = "loans-v1"


def written(path: Path, version: int) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(OLD[version].read_text(encoding="utf-8"))
    connection.close()
    return path


def columns(ledger: Ledger) -> dict[str, set[str]]:
    with ledger.database.read() as connection:
        there = inspect(connection)
        return {name: {column["name"] for column in there.get_columns(name)} for name in there.get_table_names()}


@pytest.mark.parametrize("version", OLD)
def test_an_older_ledger_becomes_what_a_new_one_is(version: int, tmp_path: Path) -> None:
    path = written(tmp_path / "old.db", version)
    for _ in range(2):  # the second time there is nothing to do
        with Ledger(path) as ledger, Ledger(tmp_path / "new.db") as new:
            assert columns(ledger) == columns(new)
            assert check(ledger.database.address) == []


def test_version_2_keeps_budgets_charges_and_contradictions(tmp_path: Path) -> None:
    with Ledger(written(tmp_path / "old.db", 2)) as ledger:
        [line] = ledger.tables.models().to_dict("records")
        assert (line["row_budget"], line["price_per_row"], line["charged"], line["answered"]) == (50, 0.1, 12, 11)
        assert (line["unanswered"], line["contradictions"]) == (1, 1)
        assert ledger.account(MODEL).remaining == 38


def test_what_was_paid_under_version_2_costs_nothing(tmp_path: Path) -> None:
    with Ledger(written(tmp_path / "old.db", 2)) as ledger:
        known = [answer.row for answer in ledger.answers(MODEL)]
        assert len(known) == 11
        claims = ledger.claim(MODEL, [Question(row) for row in known])
        assert {claim.state for claim in claims} == {"answered"}
        assert ledger.tables.models().loc[0, "charged"] == 12


def test_a_ledger_of_0_2_0_shows_its_explanations_and_its_answers_cost_nothing(tmp_path: Path) -> None:
    with Ledger(written(tmp_path / "old.db", 4)) as ledger:
        known = [answer.row for answer in ledger.answers(MODEL)]
        assert len(known) == ledger.tables.models().loc[0, "charged"] == 13
        ended, stopped = (load_explanation(ledger, line) for line in ledger.tables.explanations(MODEL)["id"])
        assert (ended.outcome, ended.n_queries, len(ended.trace)) == ("found", 10, 10)
        assert len(stopped.trace) == 4 and "has not ended" in stopped.remarks[0].text
        claims = ledger.claim(MODEL, [Question(row) for row in known])
        assert {claim.state for claim in claims} == {"answered"}
        assert ledger.tables.models().loc[0, "charged"] == 13


def test_explanations_of_version_2_can_be_shown_and_gone_on_with(tmp_path: Path) -> None:
    with Ledger(written(tmp_path / "old.db", 2)) as ledger:
        ended, stopped = ledger.tables.explanations(MODEL).to_dict("records")
        e = load_explanation(ledger, ended["id"])
        assert (e.outcome, e.n_queries, e.label_after) == ("found", 7, "approved")
        assert e.costs == (46.90030542946969,) and e.counterfactual["income"] == 3180
        assert not [remark for remark in e.remarks if "older" in remark.text]
        assert "approved" in e.to_html()
        so_far = load_explanation(ledger, stopped["id"])
        assert (so_far.outcome, so_far.n_queries, len(so_far.trace)) == ("unfinished", 5, 5)
        assert "has not ended, and 1 of its rows wait for a label" in so_far.remarks[0].text
        assert (ledger.explanation(ended["id"]).seen_at_end, ledger.explanation(stopped["id"]).seen_at_end) == (7, None)
        # A row that its owner left behind may be claimed.
        [last] = [ask for ask in ledger.asks(stopped["id"]) if ask.answer is None]
        question = Question(last.row, last.purpose, last.position, last.seen, last.note)
        [claim] = ledger.claim(MODEL, [question], explanation=stopped["id"])
        assert (claim.state, claim.attempts) == ("mine", 2)


def many(path: Path, n: int) -> None:
    """A ledger of version 2 with so many answers, a hundred for each explanation."""
    connection = sqlite3.connect(written(path, 2))
    note, moment = json.dumps({"cost": 7.68, "counts": True}), "2026-11-15T22:58:{:02d}.{:06d}+00:00"
    for i in range(n // 100):
        connection.execute(
            "INSERT INTO explanations VALUES (?, 'many', '{}', '{}', '', ?, 'found', NULL, NULL)",
            (f"e{i}", moment.format(i % 60, 0)),
        )
    rows = [json.dumps([i, "secondary", 0.25, False]) for i in range(n)]
    keys = [query_id("many", row) for row in rows]
    queries: list[Any] = [(keys[i], rows[i], f"e{i // 100}", moment.format(0, i), i + 1) for i in range(n)]
    connection.execute(f"INSERT INTO models VALUES ('many', '', NULL, NULL, NULL, {n}, {n}, '')")
    connection.executemany(
        "INSERT INTO queries VALUES (?, 'many', ?, '\"good\"', NULL, 'x', ?, 1, 'me', '', '', ?, ?)", queries
    )
    asked = ((f"e{i // 100}", i % 100, keys[i], note) for i in range(n))
    connection.executemany("INSERT INTO asks VALUES (?, ?, ?, 'x', 0, ?, 1)", asked)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("n", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_ledger_of_many_answers_is_migrated_whole(n: int, tmp_path: Path) -> None:
    many(tmp_path / "old.db", n)
    with Ledger(tmp_path / "old.db") as ledger:
        assert ledger.account("many").last_sequence == n
        assert [answer.sequence for answer in ledger.answers("many", newest=50)] == list(range(n - 49, n + 1))
        assert check(ledger.database.address) == []
        assert ledger.explanation("e1").seen_at_end == n  # it ended at second 1, when all were there


SEALED = ("models", "explanations", "queries", "asks", "contradictions")  # had checksums in versions 3 and 4
BACK_TO_4 = [  # what takes a ledger of version 5 back to version 4, on any database
    "ALTER TABLE queries ADD COLUMN label TEXT",
    "ALTER TABLE queries ADD COLUMN scores TEXT",
    "ALTER TABLE queries ADD COLUMN settled_at TEXT",
    "ALTER TABLE queries ADD COLUMN leased_until TEXT",
    "ALTER TABLE queries ADD COLUMN lease_clock TEXT",
    "ALTER TABLE queries DROP COLUMN reserved",
    "UPDATE queries SET label = (SELECT label FROM answers WHERE query_id = queries.id), "
    "settled_at = (SELECT recorded_at FROM answers WHERE query_id = queries.id)",
    "DROP TABLE answers",
    "DROP INDEX queries_of_model",
    "CREATE UNIQUE INDEX queries_by_sequence ON queries (model_id, sequence)",
    *(f"ALTER TABLE models DROP COLUMN {name}" for name in ("name", "version", "money_budget", "money_used")),
]
BACK = {
    4: [*BACK_TO_4, *(f"ALTER TABLE {table} ADD COLUMN checksum BIGINT" for table in (*SEALED, "names"))],
    3: [*BACK_TO_4, *(f"ALTER TABLE {table} ADD COLUMN checksum BIGINT" for table in SEALED), "DROP TABLE names"],
    2: [
        *BACK_TO_4,
        "DROP TABLE names",
        "DROP TABLE ledger_identity",
        "ALTER TABLE explanations DROP COLUMN seen_at_end",
        "ALTER TABLE queries DROP COLUMN lease_clock",
        "ALTER TABLE queries DROP COLUMN lease_ends",
    ],
}


@pytest.mark.parametrize("version", BACK)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_older_ledger_on_any_database_becomes_one_with_names(version: int, kind: str, tmp_path: Path) -> None:
    with ExitStack() as open_until_the_end:
        address = open_until_the_end.enter_context(postgres()) if kind == "postgres" else str(tmp_path / "l.db")
        with Ledger(address) as ledger:
            ledger.begin("e", MODEL, factual={}, settings={})
            ledger.claim(MODEL, [Question("[1]", position=0), Question("[2]", position=1)], explanation="e")
            ledger.record(MODEL, ["[1]", "[2]"], ["low", "high"])
            ledger.finish("e", "found")
            new, answers = columns(ledger), ledger.answers(MODEL)
            with ledger.database.write() as connection:
                for statement in (*BACK[version], f"UPDATE ledger_versions SET version = {version}"):
                    connection.exec_driver_sql(statement)
        with Ledger(address) as ledger:
            assert columns(ledger) == new and check(ledger.database.address) == []
            assert ledger.answers(MODEL) == answers and ledger.explanation("e").seen_at_end == 2
            assert ledger.explanation("e").names == ()
            ledger.begin("e", MODEL, factual={}, settings={}, names=["ann"])
            assert ledger.explanation("e").names == ("ann",)
            assert purge(ledger, named=["ann"]).rows == 2 and ledger.answers(MODEL) == []


def contents(path: Path) -> list[str]:
    """All that a database holds, as the statements that would make it again."""
    connection = sqlite3.connect(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def migrate_and_die(path: Path) -> None:
    """Killed when everything is rewritten, before it counts."""
    schema._create_identity = lambda connection: os.kill(os.getpid(), signal.SIGKILL)
    Ledger(path)


def test_a_migration_that_is_killed_or_fails_has_changed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    many(path, 2_000)
    before = contents(path)
    assert run(migrate_and_die, [(path,)]) == [-signal.SIGKILL]
    assert contents(path) == before

    def full(*_: Any) -> None:
        raise OperationalError("UPDATE", {}, Exception("database or disk is full"))

    with monkeypatch.context() as patch:
        patch.setattr(schema, "_create_identity", full)
        with pytest.raises(LedgerFailed, match="disk is full"):
            Ledger(path)
    assert contents(path) == before
    with Ledger(path) as ledger:
        assert ledger.account("many").last_sequence == 2_000 and check(ledger.database.address) == []


def test_answers_that_came_after_an_end_are_not_what_it_had_seen(tmp_path: Path) -> None:
    many(tmp_path / "old.db", 200)
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.execute("UPDATE explanations SET finished_at = '2026-11-15T22:58:00.000049+00:00' WHERE id = 'e0'")
    connection.execute("UPDATE explanations SET finished_at = '2026-01-01' WHERE id = 'e1'")
    connection.commit()
    connection.close()
    with Ledger(tmp_path / "old.db") as ledger:
        assert (ledger.explanation("e0").seen_at_end, ledger.explanation("e1").seen_at_end) == (50, 0)
