"""Lines that a disk or another program has changed: they are noticed when they are read, found and mended."""

from __future__ import annotations

import math
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

import acex
from acex.errors import LedgerFailed
from acex.ledger import Ledger, Question
from ledgers import MODEL, postgres, questions, rows

EVERYTHING = rows(*range(40))


def fill(ledger: Ledger) -> None:
    """Two explanations, forty answers with scores, a budget, a contradiction and a row in flight."""
    ledger.budget(MODEL, rows=1000, price_per_row=0.25)
    ledger.register(MODEL, features=["age"])
    for name, first in (("e1", 0), ("e2", 20)):
        ledger.begin(name, MODEL, factual={"age": 1}, settings={"seed": 0}, space={"features": [name]})
        asked = [Question(f"[{first + i}]", "explore", i, first, {"cost": i / 8}) for i in range(20)]
        ledger.claim(MODEL, asked, explanation=name)
        ledger.settle(MODEL, [q.row for q in asked], ["good"] * 20, scores=[[("good", 0.75)]] * 20)
        ledger.finish(name, "found", {"asked": 20})
    ledger.settle(MODEL, rows(3), ["bad"])
    ledger.claim(MODEL, questions(99), lease=math.inf)


def read_all(ledger: Ledger) -> list[Any]:
    """All that can be read of it, but for counts, which are the database's own."""
    frames = (ledger.show(MODEL), ledger.export(MODEL), ledger.contradictions(MODEL), ledger.explanations(MODEL))
    accounts = ledger.stats()[["model", "row_budget", "price_per_row", "charged"]]
    return [
        *(frame.astype(object).where(frame.notna(), None).values.tolist() for frame in (*frames, accounts)),
        ledger.known(MODEL, [*EVERYTHING, "[99]"]),
        [claim.state for claim in ledger.claim(MODEL, questions(*range(40), 99))],
        ledger.answers(MODEL),
        ledger.features(MODEL),
        ledger.remaining(MODEL),
        ledger.last_sequence(MODEL),
        *([ledger.record(e), ledger.asks(e), ledger.paid(e), ledger.seen_at_end(e)] for e in ("e1", "e2")),
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "ledger.db") as ledger:
        fill(ledger)
    return tmp_path / "ledger.db"


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute(statement).rowcount == 1
    connection.commit()
    connection.close()


# -- what is read --------------------------------------------------------------------------------------------

SEVENTH = "WHERE row = '[7]'"
ASKED = "WHERE position = 3 AND explanation_id = 'e1'"
DAMAGE: list[tuple[str, str, Callable[[Ledger], object]]] = [
    (f"UPDATE queries SET label = '1' {SEVENTH}", "sequence 8 of table queries", lambda b: b.answers(MODEL)),
    (f"UPDATE queries SET row = '[70]' {SEVENTH}", "sequence 8 of table queries", lambda b: b.known(MODEL, rows(7))),
    (f"UPDATE queries SET sequence = NULL {SEVENTH}", "of table queries", lambda b: b.claim(MODEL, questions(7))),
    (f"UPDATE queries SET attempts = 0 {SEVENTH}", "of table queries", lambda b: b.settle(MODEL, rows(7), ["good"])),
    (f"UPDATE queries SET label = 'x' {SEVENTH}", "of table queries", lambda b: b.show()),
    (f"UPDATE queries SET checksum = NULL {SEVENTH}", "of table queries", lambda b: b.export(MODEL)),
    ("UPDATE queries SET leased_until = '9' WHERE row = '[99]'", "of table queries", lambda b: b.free(MODEL, rows(99))),
    ("UPDATE queries SET purpose = '' WHERE row = '[99]'", "of table queries", lambda b: b.abandon(MODEL)),
    ("UPDATE models SET n_charged = 0", f"id '{MODEL}' of table models", lambda b: b.claim(MODEL, questions(50))),
    ("UPDATE models SET row_budget = 10000", "of table models", lambda b: b.remaining(MODEL)),
    ("UPDATE models SET last_sequence = 3", "of table models", lambda b: b.last_sequence(MODEL)),
    ("UPDATE models SET features = '[]'", "of table models", lambda b: b.features(MODEL)),
    ("UPDATE models SET price_per_row = 2", "of table models", lambda b: b.stats()),
    (f"UPDATE asks SET paid = 0 {ASKED}", "explanation_id 'e1', position 3 of table asks", lambda b: b.paid("e1")),
    (f"UPDATE asks SET note = '{{}}' {ASKED}", "position 3 of table asks", lambda b: b.asks("e1")),
    ("UPDATE explanations SET settings = '{}' WHERE id = 'e1'", "id 'e1' of table expl", lambda b: b.record("e1")),
    ("UPDATE explanations SET seen_at_end = 1 WHERE id = 'e1'", "of table expl", lambda b: b.seen_at_end("e1")),
    ("UPDATE explanations SET outcome = 'x' WHERE id = 'e1'", "of table expl", lambda b: b.explanations()),
    ("UPDATE spaces SET description = '{}' WHERE description LIKE '%e1%'", "of table spaces", lambda b: b.record("e1")),
    ("UPDATE contradictions SET label = '1'", "of table contradictions", lambda b: b.contradictions(MODEL)),
    ("DELETE FROM queries WHERE sequence = 8", "answer 8 of model 'loans-v1' is missing", lambda b: b.answers(MODEL)),
    ("DELETE FROM queries WHERE sequence = 40", "answer 40 of model", lambda b: b.answers(MODEL, newest=3)),
    ("DELETE FROM queries WHERE sequence = 8", "question 7 of explanation e1, .* is missing", lambda b: b.asks("e1")),
    ("DELETE FROM models", "the line of model 'loans-v1' is missing", lambda b: b.claim(MODEL, questions(50))),
]


@pytest.mark.parametrize(("statement", "named", "read"), DAMAGE, ids=range(len(DAMAGE)))
def test_a_line_that_was_changed_or_lost_is_named_when_it_is_read(
    path: Path, statement: str, named: str, read: Callable[[Ledger], object]
) -> None:
    with Ledger(path) as ledger:
        read(ledger)
    change(path, statement)
    with Ledger(path) as ledger, pytest.raises(LedgerFailed, match=named):
        read(ledger)


def test_a_line_that_was_changed_on_postgres_is_named_when_it_is_read() -> None:
    with postgres() as address, Ledger(address) as ledger:
        fill(ledger)
        whole = read_all(ledger)
        assert ledger.check() == []
        with ledger._store.write() as connection:
            connection.execute(text("UPDATE queries SET label = '\"bad\"' WHERE row = '[7]'"))
        with pytest.raises(LedgerFailed, match="sequence 8 of table queries is damaged"):
            ledger.answers(MODEL)
        [finding] = [words for words in ledger.check() if "damaged" in words]
        assert "sequence 8 of table queries" in finding
        assert len(whole[5]) == 40


X = np.random.default_rng(0).normal(size=(60, 3))


def model(points: Any) -> Any:
    return np.where(np.asarray(points)[:, 0] > 0.5, "high", "low")


@pytest.mark.parametrize(
    "statement", ["DELETE FROM queries WHERE sequence = 3", "UPDATE queries SET label = '\"x' WHERE sequence = 3"]
)
def test_an_explanation_over_a_damaged_ledger_ends_with_a_clear_error(tmp_path: Path, statement: str) -> None:
    path, low = tmp_path / "ledger.db", X[X[:, 0] < 0][0]
    acex.explain(model, low, data=X, ledger=path, model_id="m", budget=5)
    change(path, statement)
    with pytest.raises(LedgerFailed, match="acex ledger check"):
        acex.explain(model, low, data=X, ledger=path, model_id="m", budget=8)


def test_flipped_bits_do_not_go_unnoticed(path: Path, tmp_path: Path) -> None:
    with Ledger(path) as ledger:
        before = read_all(ledger)
    whole = path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte]
    rng = random.Random(0)
    noticed = 0
    for i in range(60):
        spoilt = bytearray(whole)
        spoilt[rng.choice(used)] ^= 1 << rng.randrange(8)
        copy = tmp_path / f"{i}.db"
        copy.write_bytes(spoilt)
        try:
            with Ledger(copy) as ledger:
                assert read_all(ledger) == before
        except LedgerFailed:
            noticed += 1
    assert noticed > 30  # the others are in what SQLite has left behind


def test_a_file_that_holds_only_a_view_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "view.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE VIEW anything AS SELECT 1")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LedgerFailed, match="an SQLite file of something else"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_view_with_the_name_of_a_table_is_left_as_it_is_on_postgres() -> None:
    with postgres() as address:
        with Ledger(address) as ledger, ledger._store.write() as connection:
            connection.exec_driver_sql("DROP TABLE asks, contradictions, ledger_versions")
            connection.exec_driver_sql("CREATE VIEW asks AS SELECT 1")
        with pytest.raises(LedgerFailed, match="a database of something else, with asks, "):
            Ledger(address)


# -- check and repair ------------------------------------------------------------------------------------------


def test_a_sound_ledger_has_no_findings_and_its_copy_says_the_same(path: Path, tmp_path: Path) -> None:
    with Ledger(path) as ledger, Ledger(tmp_path / "copy.db") as copy:
        assert ledger.check() == []
        ledger.copy_to(copy)
        assert read_all(copy) == read_all(ledger)
        assert copy.check() == []
        assert ledger.repair(tmp_path / "mended.db") == []
        with Ledger(tmp_path / "mended.db") as mended:
            assert read_all(mended) == read_all(ledger)
        with pytest.raises(ValueError, match=r"copy\.db: it is not new"):
            ledger.copy_to(copy)
        with pytest.raises(ValueError, match=r"copy\.db: it is not new"):
            ledger.repair(tmp_path / "copy.db")


def test_a_ledger_in_memory_is_copied_with_its_budget(tmp_path: Path) -> None:
    memory = Ledger()
    fill(memory)
    with Ledger(tmp_path / "copy.db") as copy:
        memory.copy_to(copy)
        assert read_all(copy) == read_all(memory)
        assert copy.remaining(MODEL) == 1000 - 41


def test_what_is_sound_is_saved_and_numbered_anew(path: Path, tmp_path: Path) -> None:
    change(path, "UPDATE queries SET label = '\"bad\"' WHERE sequence = 8")
    change(path, "DELETE FROM queries WHERE sequence = 11")
    with Ledger(path) as ledger:
        found = ledger.check()
        assert len(found) == 5 and ledger.repair(tmp_path / "mended.db") == found
    assert "sequence 8 of table queries is damaged" in found[0]
    assert set(found[1:]) == {
        "answer 8 of model 'loans-v1' is missing",
        "answer 11 of model 'loans-v1' is missing",
        "the row of question 7 of explanation e1 is missing",
        "the row of question 10 of explanation e1 is missing",
    }
    with Ledger(tmp_path / "mended.db") as mended:
        assert mended.check() == []
        assert [answer.sequence for answer in mended.answers(MODEL)] == list(range(1, 39))
        assert mended.remaining(MODEL) == 1000 - 41  # what was charged was charged
        assert mended.explanations()["id"].tolist() == ["e2"]
        assert mended.asks("e2")[0].seen == 18 and mended.seen_at_end("e2") == 38
        states = [claim.state for claim in mended.claim(MODEL, questions(6, 7, 8))]
        assert states == ["settled", "mine", "settled"]


def test_a_model_whose_line_is_lost_is_sent_nothing_before_it_has_a_budget(path: Path, tmp_path: Path) -> None:
    change(path, "UPDATE models SET row_budget = 5000")
    with Ledger(path) as ledger:
        ledger.repair(tmp_path / "mended.db")
    with Ledger(tmp_path / "mended.db") as mended:
        assert mended.remaining(MODEL) == 0 and len(mended.answers(MODEL)) == 40
        mended.budget(MODEL, rows=100)
        assert mended.remaining(MODEL) == 100 - 41


def with_a_page_of_garbage(folder: Path) -> Path:
    """A ledger of 500 answers, one page of which cannot be read."""
    path = folder / "ledger.db"
    with Ledger(path) as ledger:
        ledger.import_answers(MODEL, rows(*range(500)), ["good"] * 500)
    whole, size = path.read_bytes(), 4096
    # A leaf of the table: pages of that kind begin with 13.
    leaf = next(at for at in range(len(whole) // 2 // size * size, len(whole), size) if whole[at] == 13)
    path.write_bytes(whole[:leaf] + random.Random(0).randbytes(size) + whole[leaf + size :])
    return path


def test_a_page_of_garbage_costs_what_was_on_it(tmp_path: Path) -> None:
    path = with_a_page_of_garbage(tmp_path)
    spoilt = path.read_bytes()
    with pytest.raises(LedgerFailed, match=r"the file is damaged.*acex ledger repair"):
        Ledger(path)
    with Ledger(path, checked=False) as ledger:
        assert any(words.startswith("SQLite: ") for words in ledger.check())
        assert ledger.repair(tmp_path / "mended.db")
    assert path.read_bytes() == spoilt
    with Ledger(tmp_path / "mended.db") as mended:
        left = {answer.row for answer in mended.answers(MODEL)}
        assert 450 < len(left) < 500
        assert mended.check() == []
        states = [claim.state for claim in mended.claim(MODEL, questions(*range(500)))]
        assert states.count("settled") == len(left)


def test_an_older_ledger_that_is_damaged_can_be_repaired_too(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(Path(__file__).with_name("ledger-version-2.sql").read_text(encoding="utf-8"))
    connection.execute("DELETE FROM queries WHERE sequence = 2")
    connection.commit()
    connection.close()
    with Ledger(path, checked=False) as ledger:
        assert "answer 2 of model 'loans-v1' is missing" in ledger.check()
        ledger.repair(tmp_path / "mended.db")
    with Ledger(tmp_path / "mended.db") as mended:
        assert len(mended.answers("loans-v1")) == 10 and mended.check() == []


@pytest.mark.parametrize("version", ["new", "old"])
def test_a_row_that_is_not_the_one_of_its_key_is_found(path: Path, tmp_path: Path, version: str) -> None:
    if version == "old":  # without checksums: the key alone tells
        path = tmp_path / "old.db"
        connection = sqlite3.connect(path)
        connection.executescript(Path(__file__).with_name("ledger-version-2.sql").read_text(encoding="utf-8"))
        connection.close()
    change(path, "UPDATE queries SET row = '[12345]' WHERE sequence = 8")
    with Ledger(path, checked=False) as ledger:
        assert [words for words in ledger.check() if "damaged" in words] != []


def test_each_line_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    path = with_a_page_of_garbage(tmp_path)
    with Ledger(path, checked=False) as ledger:
        found = ledger.check()
        ledger.repair(tmp_path / "mended.db")
    with Ledger(tmp_path / "mended.db") as mended:
        n_lost = 500 - len(mended.answers(MODEL))
    unread = [words for words in found if "cannot be read" in words]
    assert len(unread) == len(set(unread)) == n_lost > 0
