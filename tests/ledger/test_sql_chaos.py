"""Batches on Dask while workers, the scheduler, the database and the endpoint die at random: nothing is lost, no answer
is paid for twice, and no cap is passed.

    ACEX_CHAOS_SECONDS=60 .ci/postgres pytest -m slow tests/ledger/test_sql_chaos.py   # a minute of kills on each
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from acex.ledger.maintenance import check
from acex.ledger.sql import Ledger
from chaos import (
    BUDGET,
    HANGS,
    LEASE,
    ROWS,
    Batch,
    Place,
    PostgresServer,
    SqliteFile,
    drive,
    in_the_background,
    place,
    trap,
)
from ledgers import Bill, processes

pytest.importorskip("distributed")
SECONDS = float(os.environ.get("ACEX_CHAOS_SECONDS", "420"))  # of kills, on each database
SEED = int(os.environ.get("ACEX_CHAOS_SEED", "13"))
CAP = ROWS * BUDGET // 3  # rows that every other model may be sent over its lifetime: too few
MOST_BATCHES = 200


def run(here: Place, results: Path, *batches: Batch) -> dict[tuple[str, int], dict[str, Any]] | None:
    """What came of each row of these batches; None if what died stopped the work."""
    results.unlink(missing_ok=True)
    start = time.monotonic()
    arguments = (batches, here.database.address, here.url, here.scheduler, here.log, results)
    driver = processes.Process(target=drive, args=arguments)
    driver.start()
    driver.join()
    assert time.monotonic() - start < HANGS * max(len(batches), 1), "the work hung; its threads are in the output"
    lines = [json.loads(line) for line in Bill(results).lines()]
    with Bill(here.folder / "seen").path.open("a") as seen:
        seen.writelines(json.dumps(line) + "\n" for line in lines if line != "complete")
    if "complete" not in lines:
        return None
    return {(line["model"], line["position"]): line for line in lines if line != "complete"}


def errors(done: dict[Any, dict[str, Any]]) -> set[str]:
    """The kinds of errors that rows ended with."""
    return {line["error"].split(":")[0] for line in done.values() if line["error"] is not None}


def sent_again(log: list[str]) -> list[str]:
    """Rows that were sent although their answer was on the disk."""
    answered: set[str] = set()
    again = []
    for line in log:
        event, row = line.split(" ", 1)
        if event == "answered":
            answered.add(row)
        elif event == "sent" and row in answered:
            again.append(row)
    return again


def counts(log: list[str], event: str) -> dict[str, Counter[str]]:
    """How often this happened to each row of each model."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for line in log:
        what, model, row = line.split(" ", 2)
        if what == event:
            found[model][row] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("database", [SqliteFile, PostgresServer])
def test_whatever_dies_nothing_is_lost_or_paid_twice_and_caps_hold(database: Any, tmp_path: Path) -> None:
    with place(tmp_path, database(tmp_path)) as here:
        ledger = Ledger(here.database.address, lease=LEASE)
        for number in range(1, MOST_BATCHES, 2):
            ledger.budget(Batch(number).model, rows=CAP)
        batches: list[Batch] = []
        runs: Counter[str] = Counter()
        with in_the_background(here.kill_at_random, random.Random(SEED), SECONDS) as killing:
            while killing.is_alive():
                batches.append(Batch(len(batches)))
                while killing.is_alive():
                    done = run(here, tmp_path / "results", batches[-1])
                    runs["stopped" if done is None else "complete"] += 1
                    if done is not None and errors(done) <= {"BudgetSpent"}:
                        break
        n_kills = sum(here.killed.values())
        trap(here.log).unlink(missing_ok=True)
        print(f"{len(batches)} batches, {dict(runs)}, killed {here.killed}")

        # Caps are exact: all that they allow was charged, and not a row more.
        capped = [batch for batch in batches if batch.number % 2]
        done = run(here, tmp_path / "results", *capped)
        assert done is not None
        assert errors(done) <= {"BudgetSpent"}
        charged = ledger.tables.models().set_index("model")["charged"]
        assert {charged[batch.model] for batch in capped} <= {CAP}

        # Run again, with room in the caps, everything is there.
        for batch in capped:
            ledger.budget(batch.model, rows=ROWS * BUDGET)
        done = run(here, tmp_path / "results", *batches)
        assert done is not None and len(done) == ROWS * len(batches)
        assert errors(done) == set()
        for line in map(json.loads, Bill(tmp_path / "seen").lines()):
            if line["error"] is None:  # what was seen once has stayed as it was
                assert line == done[line["model"], line["position"]]

        # And nothing is sent any more.
        log = Bill(here.log).lines()
        assert run(here, tmp_path / "results", *batches) == done
        assert Bill(here.log).lines() == log

        # No row was sent whose answer was on the disk, nor charged more often than it was sent.
        assert sent_again(log) == []
        sent, billed, answered = (counts(log, event) for event in ("sent", "charged", "answered"))
        charged = ledger.tables.models().set_index("model")["charged"]
        for batch in batches:
            model = batch.model
            assert billed[model] <= sent[model]
            paid = ledger.tables.explanations(model)["paid"]
            assert billed[model].total() <= sent[model].total() <= charged[model] == paid.sum()
            assert paid.max() <= BUDGET
            known = ledger.known(model, list(answered[model]))
            assert {row: answer.label for row, answer in known.items()} == {
                row: "high" if sum(json.loads(row)[:2]) > 0.7 else "low" for row in answered[model]
            }
        # A kill takes at most what two workers had under way.
        lost = sum(charged[batch.model] - len(answered[batch.model]) for batch in batches)
        print(f"{sum(charged[b.model] for b in batches)} charged, {lost} of them without an answer")
        assert lost <= 2 * n_kills
        assert check(ledger.database.address) == []
        ledger.close()
        assert n_kills > SECONDS / 20 and len(batches) > 2  # they got somewhere, and it was not easy
