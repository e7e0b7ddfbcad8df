"""Claims, answers, budgets and questions, on every kind of ledger."""

from __future__ import annotations

import json
import math
import pickle
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy.exc import DBAPIError

from acex.errors import BudgetSpent, LedgerFailed
from acex.ledger import Ledger, Question, label_text, migrations, query_id
from acex.ledger.claims import _is_given_up
from acex.ledger.forms import iso
from acex.ledger.journal import Journal
from acex.ledger.owner import Moment
from acex.ledger.store import Store, shown
from acex.values import fingerprint
from ledgers import MODEL, Clock, postgres, questions, rows
from strategies import modest


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    match request.param:
        case "memory":
            yield Ledger()
        case "sqlite":
            with Ledger(tmp_path / "ledger.db") as found:
                yield found
        case "postgres":
            with postgres() as address, Ledger(address) as found:
                yield found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(Store, "now", lambda store, connection: clock(store, connection))
    return clock


def someone_else(ledger: Ledger) -> Ledger:
    """The same ledger in other hands."""
    other = Ledger.__new__(Ledger)
    other.__dict__.update(ledger.__dict__, _token="else")
    return other


def states(ledger: Ledger, *numbers: int) -> list[str]:
    return [claim.state for claim in ledger.claim(MODEL, questions(*numbers))]


def charged(ledger: Ledger) -> int:
    (found,) = ledger.stats().query("model == @MODEL")["charged"].tolist()
    return int(found)


# -- claim and settle --------------------------------------------------------------------------------------


def test_a_row_is_claimed_once_then_awaited_then_known(ledger: Ledger) -> None:
    assert states(ledger, 1, 2) == ["mine", "mine"]
    assert states(someone_else(ledger), 2, 3) == ["in_flight", "mine"]
    ledger.settle(MODEL, rows(1, 2), ["good", "bad"], scores=[[("good", 0.75), ("bad", 0.25)], None])
    claims = someone_else(ledger).claim(MODEL, questions(2, 1, 3))
    assert [claim.state for claim in claims] == ["settled", "settled", "in_flight"]
    assert [claim.answer.label for claim in claims if claim.answer] == ["bad", "good"]
    assert ledger.known(MODEL, rows(1, 2, 3, 4)) == {
        "[1]": ("[1]", "good", [("good", 0.75), ("bad", 0.25)], 1),
        "[2]": ("[2]", "bad", None, 2),
    }


def test_a_row_wanted_twice_at_once_is_mine_once(ledger: Ledger) -> None:
    assert states(ledger, 1, 1) == ["mine", "in_flight"]
    assert charged(ledger) == 1


def test_the_same_row_of_another_model_is_another_row(ledger: Ledger) -> None:
    ledger.import_answers(MODEL, rows(1), ["good"])
    assert [claim.state for claim in ledger.claim("loans-v2", questions(1))] == ["mine"]


def test_a_row_may_have_a_thousand_values(ledger: Ledger) -> None:
    row = json.dumps(np.random.default_rng(0).random(1000).tolist())
    ledger.claim(MODEL, [Question(row)])
    ledger.settle(MODEL, [row], [7])
    assert ledger.known(MODEL, [row])[row].label == 7


def test_the_first_answer_stands_and_a_different_one_is_kept_beside_it(ledger: Ledger) -> None:
    ledger.claim(MODEL, questions(1, 2))
    ledger.settle(MODEL, rows(1, 2), ["good", "bad"])
    told = someone_else(ledger).settle(MODEL, rows(1, 2), ["bad", "bad"])
    assert [answer.label for answer in told] == ["good", "bad"]
    (line,) = ledger.contradictions(MODEL).to_dict("records")
    assert (line["row"], line["label"], line["other_label"]) == ("[1]", "good", "bad")
    assert ledger.last_sequence(MODEL) == 2


def test_an_answer_nobody_claimed_is_not_thrown_away(ledger: Ledger) -> None:
    ledger.settle(MODEL, rows(1), ["good"])
    assert states(ledger, 1) == ["settled"]


@pytest.mark.parametrize("label", ["1", 1, 1.0, True, False, 0, 0.0, "", "é\x00\n", 0.1, 10**30, -1e308, "null"])
def test_a_label_comes_back_as_it_was(ledger: Ledger, label: Any) -> None:
    ledger.settle(MODEL, rows(1), [label])
    found = ledger.known(MODEL, rows(1))["[1]"].label
    assert (found, type(found)) == (label, type(label))
    assert ledger.export(MODEL)["label"].tolist() == [label]


@modest
@given(st.one_of(st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_labels_survive_being_written(label: Any) -> None:
    assert repr(json.loads(label_text(label))) == repr(label)


@pytest.mark.parametrize("label", [None, math.nan, math.inf, ("a",), [1], {"a": 1}, b"a"])
def test_what_is_no_label_is_refused_and_nothing_is_written(label: Any) -> None:
    ledger = Ledger()
    ledger.claim(MODEL, questions(1, 2))
    with pytest.raises(TypeError, match="A label must be text, a finite number or a truth value"):
        ledger.settle(MODEL, rows(1, 2), ["good", label])
    assert ledger.answers(MODEL) == []


def test_numpy_labels_are_plain_ones() -> None:
    assert [label_text(v) for v in (np.int8(1), np.float32(1), np.bool_(True), np.str_("1"))] == [
        "1",
        "1.0",
        "true",
        '"1"',
    ]


def test_keys_are_written_down_here_so_that_they_never_change() -> None:
    assert query_id("loans-v1", "[1]") == "d77d450fab10c366f9f3b728b38d7727"
    assert fingerprint({"b": 1, "a": "é"}) == fingerprint({"a": "é", "b": 1})


# -- leases --------------------------------------------------------------------------------------------------


def test_a_claim_is_taken_over_when_its_lease_has_run_out_and_counts_again(ledger: Ledger, clock: Clock) -> None:
    states(ledger, 1)
    other = someone_else(ledger)
    clock.forward(ledger.lease - 1)
    assert states(other, 1) == ["in_flight"]
    clock.forward(1)
    (claim,) = other.claim(MODEL, questions(1))
    assert (claim.state, claim.attempts, claim.held_by) == ("mine", 2, other.owner)
    assert charged(ledger) == 2
    assert ledger.stats().loc[0, "asked_again"] == 1
    # The first owner was only late: its answer is as good as any.
    ledger.settle(MODEL, rows(1), ["good"])
    assert states(other, 1) == ["settled"]


def test_a_clock_that_is_set_forward_frees_no_claim_on_one_machine(tmp_path: Path, clock: Clock) -> None:
    for ledger in (Ledger(), Ledger(tmp_path / "ledger.db")):
        states(ledger, 1)
        clock.set(1e6)
        assert states(someone_else(ledger), 1) == ["in_flight"]
        assert ledger.free(MODEL, rows(1)) == {"[1]"}
        clock.set(-2e6)
        clock.forward(ledger.lease)
        assert states(someone_else(ledger), 1) == ["mine"]


def test_after_a_restart_of_the_machine_the_time_of_day_decides(tmp_path: Path, clock: Clock) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    states(ledger, 1)
    clock.machine, clock.ticks = "the same machine, started again", 0.0
    assert states(someone_else(ledger), 1) == ["in_flight"]
    clock.set(ledger.lease)
    assert states(someone_else(ledger), 1) == ["mine"]


def test_a_claim_that_is_renewed_is_waited_for(ledger: Ledger) -> None:
    ledger.lease = 0.3
    states(ledger, 1)
    with ledger.holding(MODEL, rows(1)):
        answering = threading.Timer(1.0, ledger.settle, (MODEL, rows(1), ["good"]))
        answering.start()
        assert someone_else(ledger).wait(MODEL, rows(1))
        assert ledger.known(MODEL, rows(1))["[1]"].label == "good"
        answering.join()


def test_what_others_have_taken_over_is_not_renewed(ledger: Ledger, clock: Clock) -> None:
    states(ledger, 1)
    clock.forward(ledger.lease)
    other = someone_else(ledger)
    assert states(other, 1) == ["mine"]
    clock.forward(ledger.lease - 1)
    ledger._renew(MODEL, rows(1))
    clock.forward(2)
    assert ledger.free(MODEL, rows(1)) == set()
    assert states(other, 1) == ["mine"]
    other._renew(MODEL, rows(1))
    assert ledger.free(MODEL, rows(1)) == {"[1]"}


def test_a_claim_without_end_is_held_until_it_is_abandoned(ledger: Ledger, clock: Clock) -> None:
    ledger.claim(MODEL, questions(1, 2), lease=math.inf, holder="laboratory")
    clock.forward(1e9)
    (claim,) = ledger.claim(MODEL, questions(1))
    assert (claim.state, claim.held_by) == ("in_flight", "laboratory")
    assert ledger.abandon(MODEL, rows(1)) == 1
    assert states(ledger, 1, 2) == ["mine", "in_flight"]
    assert ledger.abandon(MODEL) == 2
    assert states(ledger, 1, 2) == ["mine", "mine"]
    assert charged(ledger) == 5


def test_waiting_ends_when_the_answer_comes(ledger: Ledger) -> None:
    states(ledger, 1)
    assert not ledger.wait(MODEL, rows(1), timeout=0)
    answering = threading.Timer(0.02, ledger.settle, (MODEL, rows(1), ["good"]))
    answering.start()
    assert ledger.wait(MODEL, rows(1, 2))
    assert ledger.known(MODEL, rows(1))["[1]"].label == "good"
    answering.join()


def test_waiting_ends_when_the_lease_does() -> None:
    ledger = Ledger(lease=0.05)
    states(ledger, 1)
    assert ledger.wait(MODEL, rows(1), timeout=60)
    assert states(ledger, 1) == ["mine"]


def test_a_released_claim_cost_nothing(ledger: Ledger) -> None:
    ledger.begin("e", MODEL, factual={}, settings={})
    ledger.claim(MODEL, [Question("[1]", position=0), Question("[2]", position=1)], explanation="e")
    assert someone_else(ledger).release(MODEL, rows(1)) == 0  # not theirs
    assert ledger.release(MODEL, rows(1)) == 1
    assert ledger.release(MODEL, rows(1)) == 0
    assert charged(ledger) == 1
    assert [(ask.row, ask.paid) for ask in ledger.asks("e")] == [("[1]", 0), ("[2]", 1)]
    (claim,) = someone_else(ledger).claim(MODEL, questions(1))
    assert (claim.state, claim.attempts) == ("mine", 1)


def test_what_is_settled_is_not_released(ledger: Ledger) -> None:
    states(ledger, 1)
    ledger.settle(MODEL, rows(1), ["good"])
    assert (ledger.release(MODEL, rows(1)), ledger.abandon(MODEL)) == (0, 0)
    assert charged(ledger) == 1


# -- budgets ---------------------------------------------------------------------------------------------------


def test_a_budget_holds_over_the_lifetime_of_a_model(ledger: Ledger) -> None:
    ledger.budget(MODEL, rows=3)
    states(ledger, 1, 2)
    ledger.settle(MODEL, rows(1), ["good"])
    with pytest.raises(BudgetSpent, match="2 rows to ask, but model 'loans-v1' has 1 left of the 3 rows"):
        states(someone_else(ledger), 3, 4)
    assert states(ledger, 1, 2, 3) == ["settled", "in_flight", "mine"]  # nothing had been claimed
    assert ledger.remaining(MODEL) == 0
    with pytest.raises(BudgetSpent):
        ledger.charge(MODEL, 1)
    ledger.import_answers(MODEL, rows(5), ["bad"])  # free
    ledger.release(MODEL, rows(3))
    ledger.charge(MODEL, 1)
    assert (charged(ledger), ledger.remaining(MODEL)) == (3, 0)
    ledger.budget(MODEL, rows=5)
    assert ledger.remaining(MODEL) == 2


def test_asking_again_after_a_crash_counts_again(ledger: Ledger, clock: Clock) -> None:
    ledger.budget(MODEL, rows=1)
    states(ledger, 1)
    clock.forward(ledger.lease)
    with pytest.raises(BudgetSpent):
        states(ledger, 1)


def test_a_budget_in_money_buys_as_many_rows_as_people_think(ledger: Ledger) -> None:
    ledger.budget(MODEL, money=0.3, price_per_row=0.1)
    assert ledger.remaining(MODEL) == 3
    ledger.budget(MODEL, money=50, price_per_row=0.02)
    assert ledger.remaining(MODEL) == 2500
    ledger.budget(MODEL, money=1)  # the price is known
    assert ledger.remaining(MODEL) == 50
    states(ledger, 1, 2)
    assert ledger.stats().loc[0, "spent"] == pytest.approx(0.04)
    assert ledger.remaining("another") == math.inf


@pytest.mark.parametrize(
    "limits",
    [{}, {"rows": 1, "money": 1}, {"money": 1}, {"rows": -1}, {"rows": 1.5}, {"rows": True}, {"money": math.nan}]
    + [{"rows": 10**30}, {"money": 1e300, "price_per_row": 1e-300}, {"money": 10**30, "price_per_row": 0.01}]
    + [{"money": 1, "price_per_row": price} for price in (0, -1, math.inf)],
)
def test_a_budget_that_says_nothing_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"budget|rows|money|price_per_row"):
        Ledger().budget(MODEL, **limits)


def test_numbers_beyond_all_counting_do_no_harm(ledger: Ledger) -> None:
    ledger.budget(MODEL, rows=2**63 - 1)
    assert ledger.remaining(MODEL) == 2**63 - 1
    ledger.budget(MODEL, rows=np.int64(7), price_per_row=1)  # type: ignore[arg-type]
    assert ledger.remaining(MODEL) == 7 and ledger.stats().loc[0, "price_per_row"] == 1.0
    ledger.settle(MODEL, rows(1), ["good"])
    huge = 10**30
    assert len(ledger.answers(MODEL, newest=huge)) == len(ledger.answers(MODEL, up_to=huge)) == 1
    assert ledger.answers(MODEL, after=huge) == []
    assert len(ledger.show(newest=huge)) == 1


def test_a_call_may_have_a_limit_of_its_own(ledger: Ledger) -> None:
    with pytest.raises(BudgetSpent, match="2 rows to ask, but only 1 more may be sent"):
        ledger.claim(MODEL, questions(1, 2), most=1)
    ledger.import_answers(MODEL, rows(1), ["good"])
    assert [claim.state for claim in ledger.claim(MODEL, questions(1, 2), most=1)] == ["settled", "mine"]


# -- evidence ----------------------------------------------------------------------------------------------------


def test_answers_are_numbered_in_the_order_of_settling(ledger: Ledger) -> None:
    states(ledger, 1, 2, 3)
    ledger.settle(MODEL, rows(3), ["c"])
    seen = ledger.last_sequence(MODEL)
    ledger.settle(MODEL, rows(1, 2), ["a", "b"])
    assert [(a.row, a.label, a.sequence) for a in ledger.answers(MODEL)] == [
        ("[3]", "c", 1),
        ("[1]", "a", 2),
        ("[2]", "b", 3),
    ]
    assert [a.row for a in ledger.answers(MODEL, up_to=seen)] == ["[3]"]
    assert [a.row for a in ledger.answers(MODEL, newest=2)] == ["[1]", "[2]"]
    assert [a.row for a in ledger.answers(MODEL, up_to=2, newest=1)] == ["[1]"]
    assert (ledger.answers("another"), ledger.last_sequence("another")) == ([], 0)


def test_finding_the_newest_answers_reads_no_others(tmp_path: Path) -> None:
    import sqlite3

    Ledger(tmp_path / "l.db").close()
    plan = sqlite3.connect(tmp_path / "l.db").execute(
        "EXPLAIN QUERY PLAN SELECT * FROM queries WHERE model_id = 'm' AND sequence IS NOT NULL AND sequence <= 9"
        " ORDER BY sequence DESC LIMIT 5"
    )
    steps = " ".join(step[-1] for step in plan)
    assert "USING INDEX queries_by_sequence" in steps
    assert "TEMP B-TREE" not in steps


def test_imported_answers_are_evidence_for_free(ledger: Ledger) -> None:
    many = range(1200)  # more than fit in one statement
    assert ledger.import_answers(MODEL, rows(*many), [n % 2 for n in many]) == 1200
    assert ledger.import_answers(MODEL, rows(*many), [n % 2 for n in many]) == 0
    assert len(ledger.known(MODEL, rows(*many))) == 1200
    line = ledger.stats().iloc[0]
    assert (line["charged"], line["settled"], line["imported"], line["contradictions"]) == (0, 1200, 1200, 0)
    assert ledger.import_answers(MODEL, rows(0, 5000, 5000), [1, 0, 1]) == 1
    assert ledger.contradictions(MODEL)["row"].tolist() == ["[0]", "[5000]"]


@pytest.mark.parametrize(
    ("known", "fits", "strange"),
    [
        (["yes", "no"], ["no"], [0.018, "No", 1, True]),
        ([0, 1], [1, 1.0, True], [0.5, 2, "1"]),
        ([True, False], [True, 1], [2, "True"]),
        ([0.25, 3.5], [7, 1.5], ["7", True]),  # of a model that measures something
        (["yes"], ["no"], [1]),  # nobody asks a model that can say only one thing
    ],
)
def test_labels_that_a_model_never_gave_are_not_imported_unasked(
    ledger: Ledger, known: list[Any], fits: list[Any], strange: list[Any]
) -> None:
    ledger.import_answers(MODEL, rows(*range(len(known))), known[:1] * len(known))
    ledger.settle(MODEL, rows(*range(100, 100 + len(known))), known)
    for label in strange:
        with pytest.raises(ValueError, match=r"is not a label that model 'loans-v1' has given .*--new-labels"):
            ledger.import_answers(MODEL, rows(50, 51), [known[0], label])
    assert ledger.known(MODEL, rows(50, 51)) == {}
    assert ledger.import_answers(MODEL, rows(*range(60, 60 + len(fits))), fits) == len(fits)
    assert ledger.import_answers(MODEL, rows(50), strange[:1], new_labels=True) == 1


def test_an_import_answers_those_who_wait(ledger: Ledger) -> None:
    states(ledger, 1)
    ledger.import_answers(MODEL, rows(1), ["good"])
    assert states(ledger, 1) == ["settled"]


# -- explanations ------------------------------------------------------------------------------------------------


def test_an_explanation_can_be_replayed(ledger: Ledger) -> None:
    ledger.import_answers(MODEL, rows(2), ["bad"])
    assert ledger.begin("e", MODEL, factual={"age": 37}, settings={"seed": 0}) == []
    ledger.claim(MODEL, [Question("[1]", "factual", position=0, seen=1)], explanation="e")
    ledger.settle(MODEL, rows(1), [True], scores=[[(True, 0.5)]])
    asked = [Question("[2]", "explore", 1, 2, {"hope": 0.25}), Question("[3]", "explore", 2, 2)]
    ledger.claim(MODEL, asked, explanation="e")
    first, second, third = ledger.begin("e", MODEL, factual={"age": 37}, settings={"seed": 0})
    assert first[:7] == (0, "[1]", "factual", 1, None, 1, ("[1]", True, [(True, 0.5)], 2))
    assert second[:7] == (1, "[2]", "explore", 2, {"hope": 0.25}, 0, ("[2]", "bad", None, 1))
    assert third == (2, "[3]", "explore", 2, None, 1, None, None)
    assert first.answered_at is not None and second.answered_at is not None
    assert second.answered_at <= first.answered_at  # the second was known before the first was asked
    ledger.finish("e", "found")
    (line,) = ledger.explanations(MODEL).to_dict("records")
    assert (line["outcome"], line["asked"], line["paid"], line["factual"]) == ("found", 3, 2, '{"age": 37}')
    assert line["finished_at"] >= line["started_at"]


def test_numpy_values_are_written_as_plain_ones(ledger: Ledger) -> None:
    ledger.begin("e", MODEL, factual={"age": np.int8(37)}, settings={"beta": np.float32(5)})
    ledger.claim(MODEL, [Question("[1]", position=0, note={"hope": np.float64(0.1)})], explanation="e")
    assert ledger.asks("e")[0].note == {"hope": 0.1}
    assert ledger.explanations()[["factual", "settings"]].values.tolist() == [['{"age": 37}', '{"beta": 5.0}']]
    assert fingerprint({"age": np.int8(37)}) == fingerprint({"age": 37})


def test_a_question_asked_again_keeps_its_place_and_what_it_could_see(ledger: Ledger, clock: Clock) -> None:
    ledger.begin("e", MODEL, factual={}, settings={})
    ledger.claim(MODEL, [Question("[1]", position=0, seen=0)], explanation="e")
    clock.forward(ledger.lease)
    ledger.import_answers(MODEL, rows(9), ["bad"])
    ledger.claim(MODEL, [Question("[1]", position=0, seen=1)], explanation="e")
    (ask,) = ledger.asks("e")
    assert (ask.seen, ask.paid) == (0, 2)


def test_a_question_of_an_explanation_that_changes_its_mind_is_refused(ledger: Ledger) -> None:
    ledger.begin("e", MODEL, factual={}, settings={})
    ledger.claim(MODEL, [Question("[1]", position=0)], explanation="e")
    with pytest.raises(LedgerFailed, match="question 0 of explanation e was another row before"):
        ledger.claim(MODEL, [Question("[2]", position=0)], explanation="e")
    assert charged(ledger) == 1
    with pytest.raises(ValueError, match="needs its position"):
        ledger.claim(MODEL, questions(2), explanation="e")
    with pytest.raises(ValueError, match="was not begun"):
        ledger.claim(MODEL, [Question("[2]", position=0)], explanation="unknown")
    assert states(ledger, 2) == ["mine"]  # none of the three left a claim


def test_rows_that_are_answered_or_awaited_are_free(ledger: Ledger, clock: Clock) -> None:
    ledger.import_answers(MODEL, rows(1), ["good"])
    ledger.claim(MODEL, questions(2))
    ledger.claim(MODEL, questions(3), lease=10)
    assert ledger.free(MODEL, rows(1, 2, 3, 4)) == set(rows(1, 2, 3))
    clock.forward(20)
    assert ledger.free(MODEL, rows(1, 2, 3, 4)) == set(rows(1, 2))


def test_what_an_explanation_paid_and_could_see_at_its_end_is_remembered(ledger: Ledger, clock: Clock) -> None:
    ledger.begin("e", MODEL, factual={}, settings={})
    assert (ledger.paid("e"), ledger.seen_at_end("e")) == (0, None)
    ledger.claim(MODEL, [Question("[1]", position=0), Question("[2]", position=1)], explanation="e")
    ledger.settle(MODEL, rows(1), ["good"])
    clock.forward(200)
    ledger.claim(MODEL, [Question("[2]", position=1)], explanation="e")  # again: its lease has run out
    ledger.settle(MODEL, rows(2), ["good"])
    assert ledger.paid("e") == 3
    ledger.finish("e", "found")
    clock.forward(1)
    ledger.settle(MODEL, rows(7), ["bad"])
    assert (ledger.seen_at_end("e"), ledger.last_sequence(MODEL)) == (2, 3)
    assert [answer.sequence for answer in ledger.answers(MODEL, after=1, up_to=2)] == [2]


def test_an_explanation_may_ask_a_row_twice_and_pays_once(ledger: Ledger) -> None:
    ledger.begin("e", MODEL, factual={}, settings={})
    ledger.claim(MODEL, [Question("[1]", position=0), Question("[1]", position=1)], explanation="e")
    assert [ask.paid for ask in ledger.asks("e")] == [1, 0]


# -- models ------------------------------------------------------------------------------------------------------


def test_a_model_keeps_its_features(ledger: Ledger) -> None:
    ledger.register(MODEL, description="loans of 2030", features=["age", "job"])
    ledger.register(MODEL)
    ledger.register(MODEL, features=["age", "job"])
    with pytest.raises(ValueError, match=r"is known with the features .*age.*job.*, not .*job.*age"):
        ledger.register(MODEL, features=["job", "age"])
    assert ledger.stats().loc[0, "description"] == "loans of 2030"


# -- to be shown -------------------------------------------------------------------------------------------------


def test_queries_are_shown_as_they_stand(ledger: Ledger) -> None:
    states(ledger, 1, 2, 3)
    ledger.settle(MODEL, rows(2), [1])
    ledger.settle(MODEL, rows(1), ["1"])
    shown = ledger.show(MODEL).set_index("row")
    assert shown["label"].to_dict() == {"[3]": None, "[2]": 1, "[1]": "1"}
    assert shown.index.tolist() == ["[3]", "[2]", "[1]"]
    assert set(shown["claimed_by"]) == {ledger.owner}
    assert ledger.show(newest=1)["row"].tolist() == ["[1]"]
    exported = ledger.export(MODEL)
    assert exported[["sequence", "row", "label"]].values.tolist() == [[1, "[2]", 1], [2, "[1]", "1"]]
    line = ledger.stats().iloc[0]
    assert (line["charged"], line["settled"], line["unsettled"]) == (3, 2, 1)


def test_an_empty_ledger_can_be_shown(ledger: Ledger) -> None:
    for frame in (ledger.stats(), ledger.show(), ledger.export(MODEL), ledger.explanations()):
        assert len(frame) == 0 and len(frame.columns) > 5
    assert len(ledger.contradictions(MODEL)) == 0


# -- where it lives ------------------------------------------------------------------------------------------------


def test_a_ledger_opens_again_with_all_it_knew(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.settle(MODEL, rows(1), ["good"])
    for where in (str(tmp_path / "l.db"), f"sqlite:///{tmp_path / 'l.db'}"):
        with Ledger(where) as again:
            assert states(again, 1) == ["settled"]


def test_a_ledger_travels_as_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("l.db", lease=7)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    there = pickle.loads(pickle.dumps(ledger))
    there.settle(MODEL, rows(1), ["good"])
    assert there.lease == 7
    assert states(ledger, 1) == ["settled"]


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
    assert "s3cr" not in shown(address) and "***" in shown(address)
    with pytest.raises(LedgerFailed, match=r"127\.0\.0\.1:9/none") as caught:
        Ledger(address)
    assert "s3cr" not in str(caught.value)
    with pytest.raises(ValueError, match="expected a path or a URL") as refused:
        Ledger(address.replace("postgresql", "mysql"))
    assert "s3cr" not in str(refused.value)
    monkeypatch.setattr(Store, "_prepare", lambda store: None)
    monkeypatch.setattr(Store, "journal", lambda store, name: Journal(None, ""))
    ledger = Ledger(address)
    assert "s3cr" not in repr(ledger) and "***" in repr(ledger)
    with pytest.raises(LedgerFailed) as caught, ledger._store._faults():
        raise DBAPIError("", {}, Exception("bad password s3cr@t or s3cr%40t"))
    assert "s3cr" not in str(caught.value)


def test_a_ledger_in_memory_does_not_travel() -> None:
    with pytest.raises(TypeError, match=r"in memory cannot be sent .* Give it a file"):
        pickle.dumps(Ledger())


@pytest.mark.parametrize("where", ["mysql://host/db", "postgresql://host:port/db"])
def test_a_url_of_something_else_is_refused(where: str) -> None:
    with pytest.raises(ValueError, match="ledger"):
        Ledger(where)
    with pytest.raises(TypeError, match="ledger must be a path, a URL or None, got int"):
        Ledger(7)  # type: ignore[arg-type]


def test_without_psycopg_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"psycopg.*acex\[postgres\]"):
        Ledger("postgresql://127.0.0.1/nothing")


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    mine: list[str] = []

    def work() -> None:
        for number in range(30):  # in the same order, so that they meet
            mine.extend(c.row for c in ledger.claim(MODEL, questions(number)) if c.state == "mine")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(mine) == sorted(rows(*range(30)))


def test_an_older_ledger_is_taken_to_the_newest_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.settle(MODEL, rows(1), ["good"])

    def add_a_column(connection: Any) -> None:
        connection.exec_driver_sql("ALTER TABLE models ADD COLUMN colour TEXT")

    monkeypatch.setattr(migrations, "MIGRATIONS", [*migrations.MIGRATIONS, add_a_column])
    for _ in range(2):  # once only
        with Ledger(tmp_path / "l.db") as ledger:
            assert states(ledger, 1) == ["settled"]
            with ledger._store.read() as connection:
                steps = connection.exec_driver_sql("SELECT version FROM ledger_versions ORDER BY version").all()
                colours = connection.exec_driver_sql("SELECT colour FROM models").all()
    assert [tuple(step) for step in steps] == [(4,), (5,)]
    assert len(colours) == 1


# -- any order of events, against a plain dict -----------------------------------------------------------------------

some_rows = st.lists(st.sampled_from(rows(1, 2, 3, 4)), min_size=1, max_size=3, unique=True)
hands = st.sampled_from([0, 1])
LEASE = 10.0


class AnyOrder(RuleBasedStateMachine):
    """Two owners of one ledger; `claims` and `labels` say in plain words what should hold."""

    @initialize(budget=st.integers(3, 12))
    def begin(self, budget: int) -> None:
        self.clock = Clock()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(Store, "now", lambda store, connection: self.clock(store, connection))
        self.owners = [Ledger(lease=LEASE)]
        self.owners.append(someone_else(self.owners[0]))
        self.owners[0].budget(MODEL, rows=budget)
        self.budget = budget
        self.charged = 0
        self.claims: dict[str, tuple[int, Any]] = {}  # who holds the row, and until when
        self.attempts: dict[str, int] = {}
        self.labels: dict[str, str] = {}
        self.order: list[str] = []

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()

    def held(self, row: str) -> bool:
        return row in self.claims and self.claims[row][1] > self.clock.now

    @rule(who=hands, wanted=some_rows)
    def claim(self, who: int, wanted: list[str]) -> None:
        free = [row for row in wanted if row not in self.labels and not self.held(row)]
        asked = [Question(row) for row in wanted]
        if len(free) > self.budget - self.charged:
            with pytest.raises(BudgetSpent):
                self.owners[who].claim(MODEL, asked)
            return
        for row, claim in zip(wanted, self.owners[who].claim(MODEL, asked), strict=True):
            expected = "settled" if row in self.labels else "mine" if row in free else "in_flight"
            assert claim.state == expected
            assert (claim.answer.label if claim.answer else None) == self.labels.get(row)
            if row in free:
                self.attempts[row] = self.attempts.get(row, 0) + 1
                assert claim.attempts == self.attempts[row]
                ends = Clock(self.clock.now)
                ends.forward(LEASE)
                self.claims[row] = (who, ends.now)
        self.charged += len(free)

    @rule(who=hands, told=some_rows, label=st.sampled_from(["good", "bad"]), free=st.booleans())
    def settle_or_import(self, who: int, told: list[str], label: str, free: bool) -> None:
        new = [row for row in told if row not in self.labels]
        self.labels.update(dict.fromkeys(new, label))
        self.order += new
        if free:
            assert self.owners[who].import_answers(MODEL, told, [label] * len(told)) == len(new)
        else:
            answers = self.owners[who].settle(MODEL, told, [label] * len(told))
            assert [a.label for a in answers] == [self.labels[row] for row in told]
        for row in new:
            self.claims.pop(row, None)

    @rule(who=hands, given=some_rows)
    def release(self, who: int, given: list[str]) -> None:
        own = [row for row in given if row in self.claims and self.claims[row][0] == who]
        assert self.owners[who].release(MODEL, given) == len(own)
        for row in own:
            del self.claims[row]
            self.attempts[row] -= 1
        self.charged -= len(own)

    @rule(who=hands, given=some_rows)
    def abandon(self, who: int, given: list[str]) -> None:
        ended = [row for row in given if self.held(row)]
        assert self.owners[who].abandon(MODEL, given) == len(ended)
        for row in ended:
            self.claims[row] = (self.claims[row][0], self.clock.now)

    @rule(seconds=st.sampled_from([1.0, LEASE]))
    def time_goes_by(self, seconds: float) -> None:
        self.clock.forward(seconds)

    @invariant()
    def the_ledger_says_the_same(self) -> None:
        ledger = self.owners[0]
        assert [(a.row, a.label, a.sequence) for a in ledger.answers(MODEL)] == [
            (row, self.labels[row], i + 1) for i, row in enumerate(self.order)
        ]
        assert ledger.remaining(MODEL) == self.budget - self.charged >= 0


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("attempts", [0, 1])
@pytest.mark.parametrize("awaited", [False, True])
def test_only_what_was_sent_and_is_neither_answered_nor_awaited_is_given_up(
    settled: bool, attempts: int, awaited: bool
) -> None:
    now = Moment(datetime(2030, 1, 1, tzinfo=UTC))
    until = iso(now.at + timedelta(minutes=1 if awaited else -1))
    owner = "somebody" if attempts else None
    query: Any = SimpleNamespace(
        sequence=5 if settled else None, attempts=attempts, claimed_by=owner, leased_until=until, lease_clock=None
    )
    assert _is_given_up(query, now) == (attempts == 1 and not settled and not awaited)
