"""Claims, answers, budgets and questions, on every kind of ledger."""

from __future__ import annotations

import json
import math
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import event

from acex.errors import BudgetSpent, LedgerFailed, MissingExtra
from acex.ledger import BaseLedger, MemoryLedger, Question, query_id, schema
from acex.ledger.base import model_key
from acex.ledger.database import Database
from acex.ledger.sql import Ledger
from acex.values import fingerprint
from ledgers import MODEL, Clock, postgres, questions, rows


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseLedger]:
    match request.param:
        case "memory":
            yield MemoryLedger()
        case "sqlite":
            with Ledger(tmp_path / "ledger.db") as found:
                yield found
        case "postgres":
            with postgres() as address, Ledger(address) as found:
                yield found


@pytest.fixture
def kept(address: str) -> Iterator[Ledger]:
    """A ledger that outlives the process, and so keeps explanations, leases and tables."""
    with Ledger(address) as found:
        yield found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(Database, "now", lambda database, connection: clock(database, connection))
    return clock


class Elsewhere:
    """The same ledger used by another thread, which lives as long as this object; a file is opened again."""

    def __init__(self, ledger: BaseLedger) -> None:
        self._ledger = Ledger(ledger.database.address, lease=ledger.lease) if isinstance(ledger, Ledger) else ledger
        self._thread = ThreadPoolExecutor(1)

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self._thread.submit(getattr(self._ledger, name), *args, **kwargs).result(60)


def states(ledger: Any, *numbers: int) -> list[str]:
    return [claim.state for claim in ledger.claim(MODEL, questions(*numbers))]


def paid(ledger: BaseLedger, explanation: str) -> int:
    n = ledger.paid(explanation)
    assert n == sum(ask.paid for ask in ledger.asks(explanation))
    return n


def charged(ledger: BaseLedger) -> int:
    return ledger.account(MODEL).n_charged


# -- claim and record --------------------------------------------------------------------------------------


def test_a_row_is_claimed_once_then_awaited_then_known(ledger: BaseLedger) -> None:
    other = Elsewhere(ledger)
    assert states(ledger, 1, 2) == ["mine", "mine"]
    assert states(other, 2, 3) == ["in_flight", "mine"]
    ledger.record(MODEL, rows(1, 2), ["good", "bad"], scores=[[("good", 0.75), ("bad", 0.25)], None])
    claims = ledger.claim(MODEL, questions(2, 1, 3))
    assert [claim.state for claim in claims] == ["answered", "answered", "in_flight"]
    assert [claim.answer.label for claim in claims if claim.answer] == ["bad", "good"]
    assert ledger.known(MODEL, rows(1, 2, 3, 4)) == {
        "[1]": ("[1]", "good", [("good", 0.75), ("bad", 0.25)], 1),
        "[2]": ("[2]", "bad", None, 2),
    }


def test_a_row_wanted_twice_at_once_is_mine_once(ledger: BaseLedger) -> None:
    assert states(ledger, 1, 1) == ["mine", "in_flight"]
    assert charged(ledger) == 1


def test_the_same_row_of_another_model_is_another_row(ledger: BaseLedger) -> None:
    ledger.import_answers(MODEL, rows(1), ["good"])
    assert [claim.state for claim in ledger.claim("loans-v2", questions(1))] == ["mine"]


def test_a_row_may_have_a_thousand_values(ledger: BaseLedger) -> None:
    row = json.dumps(np.random.default_rng(0).random(1000).tolist())
    ledger.claim(MODEL, [Question(row)])
    ledger.record(MODEL, [row], [7])
    assert ledger.known(MODEL, [row])[row].label == 7


def test_the_first_answer_stands_and_a_different_one_is_kept_beside_it(ledger: BaseLedger) -> None:
    ledger.claim(MODEL, questions(1, 2))
    ledger.record(MODEL, rows(1, 2), ["good", "bad"])
    given = Elsewhere(ledger).record(MODEL, rows(1, 2), ["bad", "bad"])
    assert [answer.label for answer in given] == ["good", "bad"]
    assert ledger.contradicted(MODEL) == {"[1]"}
    assert ledger.account(MODEL).last_sequence == 2
    ledger.correct(MODEL, "[1]", "bad")
    assert ledger.contradicted(MODEL) == set()


def test_an_answer_without_a_claim_is_recorded(ledger: BaseLedger) -> None:
    ledger.record(MODEL, rows(1), ["good"])
    assert states(ledger, 1) == ["answered"]


@pytest.mark.parametrize("label", ["1", 1, 1.0, True, False, 0, 0.0, "", "é\x00\n", 0.1, 10**30, -1e308, "null"])
def test_a_label_comes_back_as_it_was(ledger: BaseLedger, label: Any) -> None:
    ledger.record(MODEL, rows(1), [label])
    found = ledger.known(MODEL, rows(1))["[1]"].label
    assert (found, type(found)) == (label, type(label))
    if isinstance(ledger, Ledger):
        assert ledger.tables.answers(MODEL)["label"].tolist() == [label]


@pytest.mark.parametrize("label", [None, math.nan, math.inf, ("a",), [1], {"a": 1}, b"a"])
def test_what_is_no_label_is_refused_and_nothing_is_written(label: Any) -> None:
    ledger = MemoryLedger()
    ledger.claim(MODEL, questions(1, 2))
    with pytest.raises(TypeError, match=r"finite number.*got "):
        ledger.record(MODEL, rows(1, 2), ["good", label])
    assert ledger.answers(MODEL) == []


# -- leases --------------------------------------------------------------------------------------------------


def test_a_claim_is_taken_over_when_its_lease_has_run_out_and_counts_again(kept: Ledger, clock: Clock) -> None:
    states(kept, 1)
    other = Elsewhere(kept)
    clock.forward(kept.lease - 1)
    assert states(other, 1) == ["in_flight"]
    clock.forward(1)
    (claim,) = other.claim(MODEL, questions(1))
    assert (claim.state, claim.attempts) == ("mine", 2)
    assert charged(kept) == 2
    assert kept.tables.models().loc[0, "asked_again"] == 1
    # The first owner was only late: its answer is as good as any.
    kept.record(MODEL, rows(1), ["good"])
    assert states(other, 1) == ["answered"]


def test_a_time_of_day_that_is_set_changes_no_lease_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    states(ledger, 1)
    other = Elsewhere(ledger)
    for seconds in (-1e6, 1e6):
        monkeypatch.setattr(time, "time", lambda seconds=seconds: 1.8e9 + seconds)
        assert states(other, 1) == ["in_flight"]


def test_a_claim_that_is_renewed_is_waited_for(kept: Ledger) -> None:
    kept.lease = 0.3
    other = Elsewhere(kept)
    states(kept, 1)
    with kept.holding(MODEL, rows(1)):
        answering = threading.Timer(1.0, kept.record, (MODEL, rows(1), ["good"]))
        answering.start()
        assert other.wait(MODEL, rows(1))
        assert kept.known(MODEL, rows(1))["[1]"].label == "good"
        answering.join()


def test_what_others_have_taken_over_is_not_renewed(kept: Ledger, clock: Clock) -> None:
    states(kept, 1)
    me = kept._me()
    clock.forward(kept.lease)
    other = Elsewhere(kept)
    assert states(other, 1) == ["mine"]
    clock.forward(kept.lease - 1)
    kept._renew([query_id(MODEL, "[1]")], me)
    assert kept.in_flight(MODEL, rows(1)) == {"[1]": True}
    clock.forward(2)
    assert kept.in_flight(MODEL, rows(1)) == {}


def test_a_thread_does_not_wait_for_its_own_claim(ledger: BaseLedger) -> None:
    states(ledger, 1)
    assert ledger.wait(MODEL, rows(1))
    (claim,) = ledger.claim(MODEL, questions(1))
    assert (claim.state, claim.attempts) == ("mine", 2)


def test_a_claim_of_a_thread_that_has_ended_is_free(ledger: BaseLedger) -> None:
    thread = threading.Thread(target=lambda: states(ledger, 1))
    thread.start()
    thread.join()
    assert states(ledger, 1) == ["mine"]


def test_a_claim_of_a_ledger_that_was_closed_is_free(kept: Ledger) -> None:
    with Ledger(kept.database.address) as other:
        states(other, 1)
        assert states(kept, 1) == ["in_flight"]
    assert states(kept, 1) == ["mine"]


def test_a_claim_for_someone_else_has_no_lease_and_is_held_until_it_is_abandoned(
    ledger: BaseLedger, clock: Clock
) -> None:
    ledger.claim(MODEL, questions(1, 2), holder="laboratory")
    clock.forward(1e9)
    (claim,) = ledger.claim(MODEL, questions(1))
    assert (claim.state, claim.held_by) == ("in_flight", "laboratory")
    assert ledger.abandon(MODEL, rows(1)) == 1
    assert states(ledger, 1, 2) == ["mine", "in_flight"]
    assert ledger.abandon(MODEL) == 2
    assert states(ledger, 1, 2) == ["mine", "mine"]
    assert charged(ledger) == 5


def test_waiting_ends_when_the_answer_comes(ledger: BaseLedger) -> None:
    other = Elsewhere(ledger)
    states(other, 1)
    answering = threading.Timer(0.02, other.record, (MODEL, rows(1), ["good"]))
    answering.start()
    assert ledger.wait(MODEL, rows(1, 2))
    assert ledger.known(MODEL, rows(1))["[1]"].label == "good"
    answering.join()


def test_waiting_ends_when_the_lease_does(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db", lease=0.05)
    other = Elsewhere(ledger)
    states(other, 1)
    assert ledger.wait(MODEL, rows(1))
    assert states(ledger, 1) == ["mine"]


def test_a_released_claim_cost_nothing(kept: Ledger) -> None:
    kept.begin("e", MODEL, factual={}, settings={})
    kept.claim(MODEL, [Question("[1]", position=0), Question("[2]", position=1)], explanation="e")
    assert Elsewhere(kept).release(MODEL, rows(1)) == 0  # not theirs
    assert kept.release(MODEL, rows(1)) == 1
    assert kept.release(MODEL, rows(1)) == 0
    assert charged(kept) == 1
    assert [(ask.row, ask.paid) for ask in kept.asks("e")] == [("[1]", 0), ("[2]", 1)]
    (claim,) = Elsewhere(kept).claim(MODEL, questions(1))
    assert (claim.state, claim.attempts) == ("mine", 1)


def test_an_answered_row_is_not_released(ledger: BaseLedger) -> None:
    states(ledger, 1)
    ledger.record(MODEL, rows(1), ["good"])
    assert (ledger.release(MODEL, rows(1)), ledger.abandon(MODEL)) == (0, 0)
    assert charged(ledger) == 1


# -- budgets ---------------------------------------------------------------------------------------------------


def test_a_budget_holds_over_the_lifetime_of_a_model(ledger: BaseLedger) -> None:
    ledger.budget(MODEL, rows=3)
    states(ledger, 1, 2)
    ledger.record(MODEL, rows(1), ["good"])
    other = Elsewhere(ledger)
    with pytest.raises(BudgetSpent, match="'loans-v1'"):
        states(other, 3, 4)
    assert states(other, 1, 2) == ["answered", "in_flight"]
    assert states(ledger, 3) == ["mine"]  # nothing had been claimed
    assert ledger.account(MODEL).remaining == 0
    with pytest.raises(BudgetSpent):
        ledger.charge(MODEL, 1)
    ledger.import_answers(MODEL, rows(5), ["bad"])  # free
    ledger.release(MODEL, rows(3))
    ledger.charge(MODEL, 1)
    assert (charged(ledger), ledger.account(MODEL).remaining) == (3, 0)
    ledger.budget(MODEL, rows=5)
    assert ledger.account(MODEL).remaining == 2


def test_asking_again_after_a_crash_counts_again(ledger: BaseLedger) -> None:
    ledger.budget(MODEL, rows=1)
    states(ledger, 1)
    with pytest.raises(BudgetSpent):
        states(ledger, 1)


def test_a_budget_in_money_buys_as_many_rows_as_people_think(ledger: BaseLedger) -> None:
    ledger.budget(MODEL, money=0.3, price_per_row=0.1)
    assert ledger.account(MODEL).remaining == 3
    ledger.budget(MODEL, money=50, price_per_row=0.02)
    assert ledger.account(MODEL).remaining == 2500
    ledger.budget(MODEL, money=1)  # the price is known
    assert ledger.account(MODEL).remaining == 50
    states(ledger, 1, 2)
    assert charged(ledger) == 2
    with pytest.raises(BudgetSpent, match=r"money=\.\.\."):
        states(ledger, *range(3, 54))
    if isinstance(ledger, Ledger):
        assert ledger.tables.models().loc[0, "spent"] == pytest.approx(0.04)
    assert ledger.account("another").remaining == math.inf


@pytest.mark.parametrize(
    "limits",
    [{}, {"rows": 1, "money": 1}, {"money": -1}, {"rows": -1}, {"rows": 1.5}, {"rows": True}, {"money": math.nan}]
    + [{"rows": 10**30}, {"money": 1e300, "price_per_row": 1e-300}, {"money": 10**30, "price_per_row": 0.01}]
    + [{"money": 1, "price_per_row": price} for price in (0, -1, math.inf)],
)
def test_a_budget_that_says_nothing_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"budget|rows|money|price_per_row"):
        MemoryLedger().budget(MODEL, **limits)


def test_numbers_beyond_all_counting_do_no_harm(ledger: BaseLedger) -> None:
    ledger.budget(MODEL, rows=2**63 - 1)
    assert ledger.account(MODEL).remaining == 2**63 - 1
    ledger.budget(MODEL, rows=np.int64(7), price_per_row=1)  # type: ignore[arg-type]
    assert ledger.account(MODEL).remaining == 7 and ledger.account(MODEL).price_per_row == 1.0
    ledger.record(MODEL, rows(1), ["good"])
    huge = 2**63 - 1
    assert len(ledger.answers(MODEL, newest=huge)) == len(ledger.answers(MODEL, up_to=huge)) == 1
    assert ledger.answers(MODEL, after=huge) == []


def test_a_call_may_have_a_limit_of_its_own(ledger: BaseLedger) -> None:
    with pytest.raises(BudgetSpent, match="2 rows to ask, but only 1 more may be sent"):
        ledger.claim(MODEL, questions(1, 2), most=1)
    ledger.import_answers(MODEL, rows(1), ["good"])
    assert [claim.state for claim in ledger.claim(MODEL, questions(1, 2), most=1)] == ["answered", "mine"]


# -- evidence ----------------------------------------------------------------------------------------------------


def test_answers_are_numbered_in_the_order_of_recording(ledger: BaseLedger) -> None:
    states(ledger, 1, 2, 3)
    ledger.record(MODEL, rows(3), ["c"])
    seen = ledger.account(MODEL).last_sequence
    ledger.record(MODEL, rows(1, 2), ["a", "b"])
    assert [(a.row, a.label, a.sequence) for a in ledger.answers(MODEL)] == [
        ("[3]", "c", 1),
        ("[1]", "a", 2),
        ("[2]", "b", 3),
    ]
    assert [a.row for a in ledger.answers(MODEL, up_to=seen)] == ["[3]"]
    assert [a.row for a in ledger.answers(MODEL, newest=2)] == ["[1]", "[2]"]
    assert [a.row for a in ledger.answers(MODEL, up_to=2, newest=1)] == ["[1]"]
    assert (ledger.answers("another"), ledger.account("another").last_sequence) == ([], 0)


def test_finding_the_newest_answers_reads_no_others(tmp_path: Path) -> None:
    import sqlite3

    Ledger(tmp_path / "l.db").close()
    plan = sqlite3.connect(tmp_path / "l.db").execute(
        "EXPLAIN QUERY PLAN SELECT queries.row FROM answers JOIN queries ON queries.id = answers.query_id"
        " WHERE answers.model_id = 'm' AND answers.sequence > 4 ORDER BY answers.sequence DESC LIMIT 5"
    )
    steps = " ".join(step[-1] for step in plan)
    assert "SEARCH answers USING INDEX" in steps and "SCAN" not in steps
    assert "TEMP B-TREE" not in steps


def test_imported_answers_are_evidence_for_free(ledger: BaseLedger) -> None:
    many = range(1200)  # more than fit in one statement
    assert ledger.import_answers(MODEL, rows(*many), [n % 2 for n in many]) == 1200
    assert ledger.import_answers(MODEL, rows(*many), [n % 2 for n in many]) == 0
    assert len(ledger.known(MODEL, rows(*many))) == 1200
    assert charged(ledger) == 0 and ledger.contradicted(MODEL) == set()
    if isinstance(ledger, Ledger):
        line = ledger.tables.models().iloc[0]
        assert (line["charged"], line["answered"], line["imported"], line["contradictions"]) == (0, 1200, 1200, 0)
    assert ledger.import_answers(MODEL, rows(0, 5000, 5000), [1, 0, 1]) == 1
    assert ledger.contradicted(MODEL) == {"[0]", "[5000]"}


def test_an_import_runs_statements_for_many_rows_at_a_time(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        statements: list[str] = []
        event.listen(ledger.database._engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
        ledger.import_answers(MODEL, rows(*range(20_500)), ["good"] * 20_500)
        assert len(statements) < 100 and statements.count("BEGIN IMMEDIATE") == 3
        assert ledger.account(MODEL).last_sequence == 20_500


def test_a_correction_is_another_answer_and_who_saw_the_old_one_sees_it_again(ledger: BaseLedger) -> None:
    with pytest.raises(ValueError, match="no answer to correct"):
        ledger.correct(MODEL, "[1]", "bad")
    ledger.import_answers(MODEL, rows(1, 2), ["good", "good"])
    assert ledger.correct(MODEL, "[1]", "bad") == ("[1]", "bad", None, 3)
    assert ledger.known(MODEL, rows(1))["[1]"].label == "bad"
    assert [(a.row, a.label) for a in ledger.answers(MODEL)] == [("[1]", "good"), ("[2]", "good"), ("[1]", "bad")]
    assert ledger.account(MODEL).last_sequence == 3 and charged(ledger) == 0
    seen = {seen: ledger.claim(MODEL, [Question("[1]", seen=seen)])[0].answer for seen in (None, 0, 2, 3)}
    assert {number: answer.label for number, answer in seen.items() if answer} == {
        None: "bad",
        0: "good",
        2: "good",
        3: "bad",
    }


def test_an_explanation_replays_the_answers_it_saw(kept: Ledger) -> None:
    kept.begin("e", MODEL, factual={}, settings={})
    kept.claim(MODEL, [Question("[1]", position=0, seen=0)], explanation="e")
    kept.record(MODEL, rows(1), ["good"])
    kept.correct(MODEL, "[1]", "bad")
    assert [ask.answer.label for ask in kept.asks("e") if ask.answer] == ["good"]
    kept.begin("f", MODEL, factual={}, settings={})
    kept.claim(MODEL, [Question("[1]", position=0, seen=2)], explanation="f")
    assert [ask.answer.label for ask in kept.asks("f") if ask.answer] == ["bad"]


@pytest.mark.parametrize(
    ("known", "fits", "strange"),
    [
        (["yes", "no"], ["no"], [0.018, "No", 1, True]),
        ([0, 1], [1, 1.0, True], [0.5, 2, "1"]),
        ([True, False], [True, 1], [2, "True"]),
        ([0.25, 3.5], [7, 1.5], ["7"]),  # of a model that measures something
    ],
)
def test_labels_that_a_model_never_gave_are_not_imported_unasked(
    ledger: BaseLedger, known: list[Any], fits: list[Any], strange: list[Any]
) -> None:
    ledger.import_answers(MODEL, rows(*range(len(known))), known[:1] * len(known))
    ledger.record(MODEL, rows(*range(100, 100 + len(known))), known)
    for label in strange:
        with pytest.raises(ValueError, match="'loans-v1'"):
            ledger.import_answers(MODEL, rows(50, 51), [known[0], label])
    assert ledger.known(MODEL, rows(50, 51)) == {}
    assert ledger.import_answers(MODEL, rows(*range(60, 60 + len(fits))), fits) == len(fits)
    assert ledger.import_answers(MODEL, rows(50), strange[:1], new_labels=True) == 1


@pytest.mark.parametrize(("known", "labels"), [([], ["Good", "bad", "good "]), (["good"], ["Good"])])
def test_two_spellings_of_a_label_are_not_imported_unasked(
    ledger: BaseLedger, known: list[Any], labels: list[Any]
) -> None:
    ledger.import_answers(MODEL, rows(*range(len(known))), known)
    imported = rows(*range(50, 50 + len(labels)))
    with pytest.raises(ValueError, match=r"'Good' is not a label.* Did you mean 'good"):
        ledger.import_answers(MODEL, imported, labels)
    assert ledger.known(MODEL, imported) == {}
    assert ledger.import_answers(MODEL, imported, labels, new_labels=True) == len(labels)


def test_an_import_answers_those_who_wait(ledger: BaseLedger) -> None:
    states(ledger, 1)
    ledger.import_answers(MODEL, rows(1), ["good"])
    assert states(ledger, 1) == ["answered"]


# -- explanations ------------------------------------------------------------------------------------------------


def test_an_explanation_can_be_replayed(kept: Ledger) -> None:
    kept.import_answers(MODEL, rows(2), ["bad"])
    assert kept.begin("e", MODEL, factual={"age": 37}, settings={"seed": 0}) == []
    kept.claim(MODEL, [Question("[1]", "factual", position=0, seen=1)], explanation="e")
    kept.record(MODEL, rows(1), [True], scores=[[(True, 0.5)]])
    asked = [Question("[2]", "explore", 1, 2, {"hope": 0.25}), Question("[3]", "explore", 2, 2)]
    kept.claim(MODEL, asked, explanation="e")
    first, second, third = kept.begin("e", MODEL, factual={"age": 37}, settings={"seed": 0})
    assert first[:7] == (0, "[1]", "factual", 1, None, 1, ("[1]", True, [(True, 0.5)], 2))
    assert second[:7] == (1, "[2]", "explore", 2, {"hope": 0.25}, 0, ("[2]", "bad", None, 1))
    assert third == (2, "[3]", "explore", 2, None, 1, None, None)
    assert first.answered_at is not None and second.answered_at is not None
    assert second.answered_at <= first.answered_at  # the second was known before the first was asked
    kept.finish("e", "found")
    (line,) = kept.tables.explanations(MODEL).to_dict("records")
    assert (line["outcome"], line["asked"], line["paid"], line["factual"]) == ("found", 3, 2, '{"age": 37}')
    assert line["finished_at"] >= line["started_at"]


def test_numpy_values_are_written_as_plain_ones(kept: Ledger) -> None:
    kept.begin("e", MODEL, factual={"age": np.int8(37)}, settings={"beta": np.float32(5)})
    kept.claim(MODEL, [Question("[1]", position=0, note={"hope": np.float64(0.1)})], explanation="e")
    assert kept.asks("e")[0].note == {"hope": 0.1}
    assert kept.tables.explanations()[["factual", "settings"]].values.tolist() == [['{"age": 37}', '{"beta": 5.0}']]
    assert fingerprint({"age": np.int8(37)}) == fingerprint({"age": 37})


def test_a_question_asked_again_keeps_its_place_and_what_it_could_see(kept: Ledger, clock: Clock) -> None:
    kept.begin("e", MODEL, factual={}, settings={})
    kept.claim(MODEL, [Question("[1]", position=0, seen=0)], explanation="e")
    clock.forward(kept.lease)
    kept.import_answers(MODEL, rows(9), ["bad"])
    kept.claim(MODEL, [Question("[1]", position=0, seen=1)], explanation="e")
    (ask,) = kept.asks("e")
    assert (ask.seen, ask.paid) == (0, 2)


def test_a_question_of_an_explanation_that_changes_its_mind_is_refused(kept: Ledger) -> None:
    kept.begin("e", MODEL, factual={}, settings={})
    kept.claim(MODEL, [Question("[1]", position=0)], explanation="e")
    with pytest.raises(LedgerFailed, match="question 0 of explanation e "):
        kept.claim(MODEL, [Question("[2]", position=0)], explanation="e")
    assert charged(kept) == 1
    with pytest.raises(LedgerFailed, match="position"):
        kept.claim(MODEL, questions(2), explanation="e")
    with pytest.raises(LedgerFailed, match=r"(?i)foreign key"):
        kept.claim(MODEL, [Question("[2]", position=0)], explanation="unknown")
    assert states(kept, 2) == ["mine"]  # none of the three left a claim


def test_rows_in_flight_are_those_that_others_are_asking(kept: Ledger, clock: Clock) -> None:
    kept.import_answers(MODEL, rows(1), ["good"])
    other = Elsewhere(kept)
    other.claim(MODEL, questions(2), holder="laboratory")
    other.claim(MODEL, questions(3))
    assert kept.in_flight(MODEL, rows(1, 2, 3, 4)) == {"[2]": False, "[3]": True}
    clock.forward(kept.lease)
    assert kept.in_flight(MODEL, rows(1, 2, 3, 4)) == {"[2]": False}


def test_what_an_explanation_paid_and_could_see_at_its_end_is_remembered(kept: Ledger, clock: Clock) -> None:
    kept.begin("e", MODEL, factual={}, settings={})
    assert (paid(kept, "e"), kept.explanation("e").seen_at_end) == (0, None)
    kept.claim(MODEL, [Question("[1]", position=0), Question("[2]", position=1)], explanation="e")
    kept.record(MODEL, rows(1), ["good"])
    clock.forward(200)
    kept.claim(MODEL, [Question("[2]", position=1)], explanation="e")  # again: its lease has run out
    kept.record(MODEL, rows(2), ["good"])
    assert paid(kept, "e") == 3
    kept.finish("e", "found")
    clock.forward(1)
    kept.record(MODEL, rows(7), ["bad"])
    assert (kept.explanation("e").seen_at_end, kept.account(MODEL).last_sequence) == (2, 3)
    assert [answer.sequence for answer in kept.answers(MODEL, after=1, up_to=2)] == [2]


def test_an_explanation_may_ask_a_row_twice_and_pays_once(kept: Ledger) -> None:
    kept.begin("e", MODEL, factual={}, settings={})
    kept.claim(MODEL, [Question("[1]", position=0), Question("[1]", position=1)], explanation="e")
    assert [ask.paid for ask in kept.asks("e")] == [1, 0]


# -- models ------------------------------------------------------------------------------------------------------


def test_a_model_keeps_its_features(ledger: BaseLedger) -> None:
    ledger.register(MODEL, description="loans of 2030", features=["age", "job"])
    ledger.register(MODEL)
    ledger.register(MODEL, features=["age", "job"])
    with pytest.raises(ValueError, match=r"'loans-v1' .*\['age', 'job'\]"):
        ledger.register(MODEL, features=["job", "age"])
    assert ledger.account(MODEL).description == "loans of 2030"


def test_a_version_is_part_of_the_key_and_none_is_the_name_alone(ledger: BaseLedger) -> None:
    assert ledger.register("loans") == model_key("loans") == "loans"
    key = ledger.register("loans", version="2")
    assert key == "loans@2"
    assert (ledger.account(key).name, ledger.account(key).version) == ("loans", "2")
    ledger.record("loans", rows(1), ["good"])
    assert ledger.known(key, rows(1)) == {}


# -- to be shown -------------------------------------------------------------------------------------------------


# -- where it lives ------------------------------------------------------------------------------------------------


def test_a_ledger_opens_again_with_all_it_knew(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.record(MODEL, rows(1), ["good"])
    for where in (str(tmp_path / "l.db"), f"sqlite:///{tmp_path / 'l.db'}"):
        with Ledger(where) as again:
            assert states(again, 1) == ["answered"]


def test_a_ledger_travels_as_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("l.db", lease=7)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    there = pickle.loads(pickle.dumps(ledger))
    there.record(MODEL, rows(1), ["good"])
    assert there.lease == 7
    assert states(ledger, 1) == ["answered"]


def test_a_postgres_ledger_travels_but_does_not_show_its_password() -> None:
    with postgres() as address, Ledger(address) as ledger:
        states(ledger, 1)
        with pickle.loads(pickle.dumps(ledger)) as there:
            assert states(there, 1) == ["in_flight"]
        assert "***" in repr(ledger)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cr%40t@127.0.0.1:9/none",
        "postgresql://me@127.0.0.1:9/none?password=s3cr%40t&sslpassword=s3cr%40t",
    ],
)
def test_a_password_is_shown_nowhere(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LedgerFailed, match=r"127\.0\.0\.1:9/none") as caught:
        Ledger(address)
    assert "s3cr" not in str(caught.value)
    with pytest.raises(ValueError, match="expected a path or a URL") as refused:
        Ledger(address.replace("postgresql", "mysql"))
    assert "s3cr" not in str(refused.value)
    monkeypatch.setattr(Database, "_prepare", lambda database: None)
    database = Database(address)
    assert "s3cr" not in database.name and "127.0.0.1" in database.name


@pytest.mark.parametrize("where", ["mysql://host/db", "postgresql://host:port/db"])
def test_a_url_of_something_else_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match=r"^ledger: "):
        Ledger(where)
    with pytest.raises(TypeError, match=r"ledger .*got int"):
        Ledger(7)  # type: ignore[arg-type]


def test_without_psycopg_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"psycopg.*acex\[postgres\]"):
        Ledger("postgresql://127.0.0.1/nothing")


def test_threads_share_a_ledger(ledger: BaseLedger) -> None:
    mine: list[str] = []
    done = threading.Barrier(4)  # a claim ends with its thread

    def work() -> None:
        for number in range(30):  # in the same order, so that they meet
            mine.extend(c.row for c in ledger.claim(MODEL, questions(number)) if c.state == "mine")
        done.wait(60)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(mine) == sorted(rows(*range(30)))


def test_an_older_ledger_is_taken_to_the_newest_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.record(MODEL, rows(1), ["good"])

    def add_a_column(connection: Any) -> None:
        connection.exec_driver_sql("ALTER TABLE models ADD COLUMN colour TEXT")

    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, add_a_column])
    for _ in range(2):  # once only
        with Ledger(tmp_path / "l.db") as ledger:
            assert states(ledger, 1) == ["answered"]
            with ledger.database.read() as connection:
                steps = connection.exec_driver_sql("SELECT version FROM ledger_versions ORDER BY version").all()
                colours = connection.exec_driver_sql("SELECT colour FROM models").all()
    assert [tuple(step) for step in steps] == [(5,), (6,)]
    assert len(colours) == 1


# -- any order of events, against a plain dict -----------------------------------------------------------------------

some_rows = st.lists(st.sampled_from(rows(1, 2, 3, 4)), min_size=1, max_size=3, unique=True)
hands = st.sampled_from([0, 1])


class AnyOrder(RuleBasedStateMachine):
    """Two owners of one ledger; `claims` and `labels` are a plain model of what should hold."""

    def ledger(self) -> BaseLedger:
        return MemoryLedger()

    @initialize(budget=st.integers(3, 12))
    def begin(self, budget: int) -> None:
        self.owners: list[Any] = [self.ledger()]
        self.owners.append(Elsewhere(self.owners[0]))
        self.owners[0].budget(MODEL, rows=budget)
        self.budget = budget
        self.charged = 0
        self.claims: dict[str, int] = {}  # who claimed the row
        self.attempts: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.order: list[tuple[str, str]] = []

    @rule(who=hands, wanted=some_rows)
    def claim(self, who: int, wanted: list[str]) -> None:
        free = [row for row in wanted if row not in self.labels and self.claims.get(row, who) == who]
        asked = [Question(row) for row in wanted]
        if len(free) > self.budget - self.charged:
            with pytest.raises(BudgetSpent):
                self.owners[who].claim(MODEL, asked)
            return
        for row, claim in zip(wanted, self.owners[who].claim(MODEL, asked), strict=True):
            expected = "answered" if row in self.labels else "mine" if row in free else "in_flight"
            assert claim.state == expected
            assert (claim.answer.label if claim.answer else None) == self.labels.get(row)
            if row in free:
                self.attempts[row] = self.attempts.get(row, 0) + 1
                assert claim.attempts == self.attempts[row]
                self.claims[row] = who
        self.charged += len(free)

    @rule(who=hands, answered=some_rows, label=st.sampled_from(["good", "bad"]), free=st.booleans())
    def record_or_import(self, who: int, answered: list[str], label: str, free: bool) -> None:
        new = [row for row in answered if row not in self.labels]
        self.labels.update(dict.fromkeys(new, label))
        self.order += [(row, label) for row in new]
        if free:
            assert self.owners[who].import_answers(MODEL, answered, [label] * len(answered)) == len(new)
        else:
            answers = self.owners[who].record(MODEL, answered, [label] * len(answered))
            assert [a.label for a in answers] == [self.labels[row] for row in answered]
        for row in new:
            self.claims.pop(row, None)

    @rule(who=hands, row=st.sampled_from(rows(1, 2, 3, 4)), label=st.sampled_from(["good", "bad"]))
    def correct(self, who: int, row: str, label: str) -> None:
        if row in self.labels:
            self.owners[who].correct(MODEL, row, label)
            self.labels[row] = label
            self.order.append((row, label))

    @rule(who=hands, given=some_rows)
    def release(self, who: int, given: list[str]) -> None:
        own = [row for row in given if self.claims.get(row) == who]
        assert self.owners[who].release(MODEL, given) == len(own)
        for row in own:
            del self.claims[row]
            self.attempts[row] -= 1
        self.charged -= len(own)

    @rule(who=hands, given=some_rows)
    def abandon(self, who: int, given: list[str]) -> None:
        ended = [row for row in given if row in self.claims]
        assert self.owners[who].abandon(MODEL, given) == len(ended)
        for row in ended:
            del self.claims[row]

    @invariant()
    def the_ledger_agrees(self) -> None:
        ledger = self.owners[0]
        assert [(a.row, a.label, a.sequence) for a in ledger.answers(MODEL)] == [
            (row, label, i + 1) for i, (row, label) in enumerate(self.order)
        ]
        assert ledger.account(MODEL).remaining == self.budget - self.charged >= 0


class AnyOrderInAFile(AnyOrder):
    def ledger(self) -> BaseLedger:
        self.folder = TemporaryDirectory()
        return Ledger(Path(self.folder.name) / "ledger.db")

    def teardown(self) -> None:
        for owner in self.owners if hasattr(self, "owners") else []:
            owner.close()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestAnyOrderInAFile = AnyOrderInAFile.TestCase
TestAnyOrderInAFile.settings = settings(max_examples=10, stateful_step_count=25, deadline=None)
