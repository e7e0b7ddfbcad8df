"""An explanation over its ledger: ask and tell, stopped and resumed, several at once, and what others have asked."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.arrays import FloatArray
from acex.engine.blackbox import HANDED_OUT
from acex.engine.explanation import asked_rows
from acex.engine.pool import MOST_KNOWN
from acex.errors import BudgetSpent, LedgerFailed, ModelFailed
from acex.ledger import MemoryLedger, Question, canonical
from acex.ledger.sql import Ledger
from acex.search.problem import Known
from acex.search.search import Search
from ledgers import Bill, processes, run
from toys import POINTS as X
from toys import high as model
from toys import not_asked

LOW = [x for x in X if x[0] + x[1] < 0]  # rows to explain
NAME = "sums-v1"


class Watched:
    """The model, which remembers what it was sent and does something else at one of the calls."""

    def __init__(self, at: int | None = None, do: Callable[[], object] = lambda: None) -> None:
        self.at, self.do = at, do
        self.rows: list[str] = []
        self.calls = 0

    def __call__(self, rows: FloatArray) -> Any:
        self.calls += 1
        self.rows += canonical(rows)
        if self.calls == self.at:
            self.do()
        return model(rows)


def explainer(
    ledger: Any = None, asked: Any = model, *, answers: Any = None, timeout: float | None = None, **settings: Any
) -> acex.Explainer:
    made = acex.Explainer(acex.Model(asked, name=NAME, timeout=timeout), X, ledger=ledger, **settings)
    if answers is not None:
        made.import_answers(*answers)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def no_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a budget is kept for undoing changes, so that a larger one asks the same and more."""
    monkeypatch.setattr("acex.search.reverts.RESERVED", 0.0)


def same(a: acex.Explanation, b: acex.Explanation) -> None:
    pd.testing.assert_frame_equal(a.trace, b.trace)
    pd.testing.assert_frame_equal(a.counterfactuals, b.counterfactuals)
    assert (a.outcome, a.stopped_by, a.costs) == (b.outcome, b.stopped_by, b.costs)


# -- ask and tell ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"queries_per_round": 3}, {"count": 2}, {"strategy": acex.Penalty(n0=6)}])
@pytest.mark.parametrize("on_disk", [True, False])
def test_ask_and_tell_ask_what_explain_asks(settings: dict[str, Any], on_disk: bool, path: Path) -> None:
    expected = explainer().explain(LOW[0], budget=15, **settings)
    session = explainer(path if on_disk else None, asked=not_asked).search(LOW[0], budget=15, **settings)
    with pytest.raises(ValueError, match="no answer yet"):
        session.explanation()
    while (rows := session.ask()) is not None:
        assert 1 <= len(rows) <= settings.get("queries_per_round", 1)
        session.tell(rows, model(rows))
    same(session.explanation(), expected)
    assert session.explanation().n_queries == expected.n_queries <= 15
    assert session.ask() is None


def test_rows_are_told_in_parts_and_in_any_order() -> None:
    session = explainer(asked=not_asked).search(LOW[0], budget=13, queries_per_round=4)
    while (rows := session.ask()) is not None:
        for i in reversed(range(len(rows))):
            again = session.ask()
            assert again is not None
            assert canonical(again) == canonical(rows[: i + 1])  # the same rows until all are told
            session.tell(rows[[i, i]], model(rows[[i, i]]))
    same(session.explanation(), explainer().explain(LOW[0], budget=13, queries_per_round=4))
    assert session.explanation().warnings == ()


def test_what_was_not_asked_is_refused_and_nothing_is_taken() -> None:
    session = explainer().search(LOW[0], budget=5, queries_per_round=2)
    with pytest.raises(ValueError, match=r"1 of the rows were not asked for, such as \[.*\]; see ask"):
        session.tell(LOW[1], ["low"])
    session.tell(LOW[0], ["low"])
    rows = session.ask()
    assert rows is not None
    for wrong in (["low"], ["low"] * 3, [0.5, 0.1], [None, "low"]):
        with pytest.raises(ValueError, match=r"expected 2 labels|a score, not a label|not a label: "):
            session.tell(rows, wrong)
    assert canonical(session.ask()) == canonical(rows)
    while (rows := session.ask()) is not None:
        session.tell(rows, model(rows))
    with pytest.raises(ValueError, match="The explanation is complete"):
        session.tell(LOW[1], ["low"])


def test_a_file_that_is_told_twice_is_told_once_but_another_label_is_noticed() -> None:
    session = explainer().search(LOW[0], budget=5)
    session.tell(LOW[0], ["low"])
    rows = session.ask()
    session.tell(LOW[0], ["low"])
    assert session.explanation().n_queries == 2
    assert session.explanation().warnings == ()
    session.tell(LOW[0], ["high"])
    (warning,) = session.explanation().warnings
    assert warning.code == "contradiction" and "1 row (1 asked here)" in warning.text
    assert [step.label for step in session.steps] == ["low"]
    assert canonical(session.ask()) == canonical(rows)


def test_a_row_that_has_the_target_already_completes_the_session() -> None:
    session = explainer().search(LOW[0], target="low")
    session.tell(session.ask(), ["low"])
    assert session.ask() is None
    assert session.explanation().outcome == "already_target"


def test_what_is_handed_out_is_handed_out_again_by_a_new_explainer_and_counted_once(address: str) -> None:
    """State is only in the ledger: a new explainer before each step."""
    expected = explainer().explain(LOW[0], budget=8, queries_per_round=3)
    seen: list[str] = []
    while True:
        with Ledger(address) as ledger:
            rows = explainer(ledger).search(LOW[0], budget=8, queries_per_round=3).ask()
        if rows is None:
            break
        with Ledger(address) as ledger:
            again = explainer(ledger).search(LOW[0], budget=8, queries_per_round=3)
            assert canonical(again.ask()) == canonical(rows)
            again.tell(rows[-1:], model(rows[-1:]))
        seen += canonical(rows[-1:])
    assert Counter(seen) == Counter(canonical(asked_rows(expected).to_numpy()))
    with Ledger(address) as ledger:
        assert ledger.tables.models()["charged"].tolist() == [8]
        assert ledger.tables.explanations()[["outcome", "paid"]].values.tolist() == [["found", 8]]
        e = explainer(ledger).explain(LOW[0], budget=8, queries_per_round=3)
        same(e, expected)
        assert (e.n_queries, e.n_reused) == (0, 8)


def test_a_row_that_was_handed_out_is_not_asked_by_explain_and_it_says_why(path: Path) -> None:
    first = explainer(path).search(LOW[0], budget=5)
    asked = Watched()
    first.ask()
    with pytest.raises(LedgerFailed, match=r"\[0\.12573, -0\.132105, 0\.640423\].*Ledger\.abandon"):
        explainer(path, asked).explain(LOW[0], budget=5)
    assert asked.rows == []


def test_a_row_that_another_process_asks_is_awaited_and_not_handed_out(path: Path) -> None:
    session = explainer(path).search(LOW[0], budget=5)
    (row,) = canonical(LOW[0][None])
    other = Ledger(path)
    other.claim(NAME, [Question(row)])
    timer = threading.Timer(0.1, lambda: other.record(NAME, [row], ["low"]))
    timer.start()
    rows = session.ask()
    assert rows is not None and row not in canonical(rows)
    assert [step.label for step in session.steps] == ["low"]
    assert ledger_of(path).tables.queries(NAME)["claimed_by"].tolist()[-1] == HANDED_OUT


def ledger_of(path: Path) -> Ledger:
    return Ledger(path)


# -- stopped and resumed -----------------------------------------------------------------------------------


class Stopped(Exception):
    pass


@pytest.mark.parametrize("settings", [{}, {"queries_per_round": 3}, {"strategy": acex.Penalty(n0=6)}])
def test_stopped_between_any_two_queries_it_ends_as_if_it_had_not_been(settings: dict[str, Any], path: Path) -> None:
    expected = explainer(path.with_name("other.db")).explain(LOW[0], budget=12, **settings)
    asked = Watched()

    def stop_here(e: acex.Explanation) -> None:
        if e.n_queries:  # something new was paid for
            raise Stopped

    times = 0
    while True:
        try:
            e = explainer(path, asked).explain(LOW[0], budget=12, callback=stop_here, **settings)
        except Stopped:
            times += 1
        else:
            break
    assert times == len({step.note.first for step in expected.steps})  # rounds
    same(e, expected)
    assert len(asked.rows) == len(set(asked.rows)) == expected.n_queries
    assert (e.n_queries, e.n_reused) == (0, expected.n_queries)


@pytest.mark.parametrize("what", [RuntimeError, KeyboardInterrupt])
def test_a_model_that_fails_at_any_query_costs_at_most_that_query_again(
    path: Path, what: Any, no_reserve: None
) -> None:
    def fail() -> None:
        raise what

    expected = explainer().explain(LOW[0], budget=7).trace[:6]  # the one that failed counts as well
    for k in range(1, 7):
        file = path.with_name(f"{k}.db")
        failing = Watched(k, fail)
        with pytest.raises((ModelFailed, KeyboardInterrupt)) as caught:
            explainer(file, failing).explain(LOW[0], budget=6)
        before = caught.value.explanation  # type: ignore[attr-defined]
        assert (before is None) == (k == 1)
        assert before is None or before.n_queries == k
        # The row in flight may have been charged: it counts, and a hard cap stays one.
        asked = Watched()
        with Ledger(file, lease=1e6) as ledger:  # nobody waits for what was given up
            e = explainer(ledger, asked).explain(LOW[0], budget=6)
        assert len(asked.rows) == e.n_queries == 6 - k
        pd.testing.assert_frame_equal(e.trace, expected[:5])
        e = explainer(file, asked).explain(LOW[0], budget=7)
        pd.testing.assert_frame_equal(e.trace, expected)
        assert Counter(failing.rows + asked.rows) == Counter(canonical(asked_rows(e).to_numpy()) + failing.rows[-1:])


def explain_and_die(file: str, bill: Bill, k: int) -> None:
    def dies(rows: FloatArray) -> Any:
        bill.add(canonical(rows))
        if len(bill.lines()) == k:
            os._exit(9)
        return model(rows)

    explainer(file, dies).explain(LOW[0], budget=12)


def test_a_process_that_dies_at_any_query_costs_at_most_that_query_again(address: str, tmp_path: Path) -> None:
    expected = explainer().explain(LOW[0], budget=12)
    bill = Bill(tmp_path / "bill")
    for k in (1, 3, 5, 8):  # one after the other, of one explanation; in flight when it died: rows 1, 2, 3 and 5
        assert run(explain_and_die, [(address, bill, k)]) == [9]
    assert len(bill.lines()) == 8
    with Ledger(address) as ledger:
        asked = Watched()
        assert explainer(ledger, asked).explain(LOW[0], budget=8).n_queries == 0  # all are paid for
        e = explainer(ledger, asked).explain(LOW[0], budget=8 + 4)
        pd.testing.assert_frame_equal(e.trace, expected.trace[:8])  # what was in flight counts as well
        rows = canonical(asked_rows(e).to_numpy())
        assert Counter(bill.lines() + asked.rows) == Counter(rows) + Counter(rows[:3] + rows[4:5])
        assert ledger.tables.models()["charged"].tolist() == [12]
        assert ledger.tables.explanations()["paid"].tolist() == [12]


def test_a_larger_budget_goes_on_and_a_smaller_one_changes_nothing(path: Path, no_reserve: None) -> None:
    several: tuple[dict[str, Any], ...] = (
        {"strategy": acex.Feasible(effort="spend")},
        {"strategy": acex.Feasible(effort="spend"), "queries_per_round": 4},
    )
    for settings in several:
        expected = explainer().explain(LOW[1], budget=16, **settings)
        asked = Watched()
        for budget, new in ((6, 6), (6, 0), (16, 10), (3, 0), (16, 0)):
            e = explainer(path, asked).explain(LOW[1], budget=budget, **settings)
            assert e.n_queries == new
        if len(settings) == 1:  # a round that the smaller budget cut short stays short
            same(e, expected)
        assert len(asked.rows) == len(set(asked.rows)) == len(e.trace) == 16
        path = path.with_name("second.db")


def test_an_explanation_that_settled_costs_nothing_again_whatever_others_have_asked(path: Path) -> None:
    first = explainer(path).explain(LOW[0], budget=80)
    assert first.stopped_by == "settled" and first.n_queries < 80
    for x in LOW[1:4]:
        explainer(path).explain(x, budget=8)
    for _ in range(2):
        again = explainer(path, not_asked).explain(LOW[0], budget=80)
        same(again, first)
        assert (again.n_queries, again.n_reused) == (0, first.n_queries)


def test_what_others_answer_while_an_explanation_ends_is_not_what_it_knew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Ledger.finish

    def after_others(ledger: Ledger, explanation: str, *args: Any, **settings: Any) -> None:
        monkeypatch.setattr(Ledger, "finish", finish)
        for x in LOW[1:4]:
            explainer(path).explain(x, budget=8)
        finish(ledger, explanation, *args, **settings)

    monkeypatch.setattr(Ledger, "finish", after_others)
    first = explainer(path).explain(LOW[0], budget=80)
    with Ledger(path) as ledger:
        assert ledger.explanation(explainer(path).search(LOW[0], budget=80).identity).seen_at_end == len(first.steps)
    same(explainer(path, not_asked).explain(LOW[0], budget=80), first)


def test_an_explanation_whose_budget_ended_it_ends_the_same_again_also_where_the_next_row_is_free_by_now(
    path: Path, no_reserve: None
) -> None:
    whole = explainer(share_answers=False).explain(LOW[1], budget=6, strategy=acex.Feasible(effort="spend"))
    first = explainer(path, share_answers=False).explain(LOW[1], budget=5, strategy=acex.Feasible(effort="spend"))
    with Ledger(path) as ledger:  # as if somebody else had wanted it
        ledger.import_answers(NAME, canonical(asked_rows(whole).iloc[5:]), model(asked_rows(whole).iloc[5:].to_numpy()))
    again = explainer(path, not_asked, share_answers=False).explain(
        LOW[1], budget=5, strategy=acex.Feasible(effort="spend")
    )
    same(again, first)
    more = explainer(path, share_answers=False).explain(LOW[1], budget=6, strategy=acex.Feasible(effort="spend"))
    assert (len(more.steps), more.n_queries) == (7, 1)  # the one that is free, and one more


def test_explanations_that_differ_in_anything_do_not_collide(path: Path) -> None:
    limits = [0.5, 1.5]
    different: list[dict[str, Any]] = [
        {},
        {"seed": 1},
        {"target": "high"},
        {"target": ["high", "huge"]},
        {"freeze": ["x0"]},
        {"ranges": {"x0": (-1, 3)}},
        {"ranges": {"x0": (-1, 2)}},
        {"directions": {"x0": "increase"}},
        {"cost": acex.Cost(weights={"x0": 2.0})},
        {"cost": acex.Cost(beta=1.0)},
        {"cost": acex.Cost(per_change=1.0)},
        {"count": 2},
        {"count": 2, "budget": 2},
        {"strategy": acex.Feasible(margin=0.7)},
        {"strategy": acex.Penalty(n0=4)},
        {"queries_per_round": 2},
        *({"rules": [lambda rows, limit=limit: rows[:, 2] < limit]} for limit in limits),
        *({"rules": [below(limit)]} for limit in limits),
        {"rules": [lambda rows: (rows[:, 2] < 1) | np.array([v > 5 for v in rows[:, 1]])]},
    ]
    one = explainer(path, share_answers=False)
    for _ in range(2):  # each is found again
        for settings in different:
            one.search(LOW[0], **settings).begin()
        assert len(ledger_of(path).tables.explanations()) == len(different)
    several = [one.explain(LOW[0], **{"budget": 10, **different[i]}) for i in (0, 6, 4, -3)]
    assert len({tuple(canonical(asked_rows(e).to_numpy())) for e in several}) == len(several)


def below(limit: float) -> Any:
    return lambda rows: rows[:, 2] < limit


def identify(file: str, names: Any) -> None:
    constraint = lambda rows: np.array([any(v > 0 for v in row) for row in rows])  # noqa: E731
    explainer(file).explain(LOW[0], budget=3, rules=[constraint])
    names.put(ledger_of(Path(file)).tables.explanations()["id"].tolist())


def test_an_explanation_has_the_same_name_in_every_process(path: Path) -> None:
    names = processes.Queue()
    assert run(identify, [(str(path), names)]) == [0]
    assert run(identify, [(str(path), names)]) == [0]
    first, second = names.get(), names.get()
    assert first == second and len(first) == 1


def test_a_budget_over_the_models_lifetime_ends_an_explanation_with_what_was_found(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.budget(NAME, rows=9)
        with pytest.raises(BudgetSpent, match="'sums-v1' has 0 left of the 9 rows") as caught:
            explainer(ledger).explain(LOW[0], budget=30)
        before = caught.value.explanation  # type: ignore[attr-defined]
        assert (before.outcome, before.n_queries) == ("found", 9)
        ledger.budget(NAME, rows=1000)
        e = explainer(ledger).explain(LOW[0], budget=30)
        same(e, explainer().explain(LOW[0], budget=30))
        assert e.n_reused == 9


# -- a model that hangs ------------------------------------------------------------------------------------


def test_a_model_that_hangs_counts_as_failed_and_what_was_paid_is_kept(path: Path) -> None:
    never = threading.Event()
    hanging = Watched(4, never.wait)
    with pytest.raises(ModelFailed, match=r"no answer within 0.2 s \(timeout\)") as caught:
        explainer(path, hanging, timeout=0.2).explain(LOW[0], budget=9)
    assert caught.value.explanation is not None and len(caught.value.explanation.trace) == 3
    asked = Watched()
    e = explainer(path, asked, timeout=60).explain(LOW[0], budget=9)
    assert len(asked.rows) == e.n_queries == 5
    pd.testing.assert_frame_equal(e.trace, explainer().explain(LOW[0], budget=9).trace[:8])
    never.set()


def test_who_waits_for_a_slow_model_waits_as_long_as_its_claim_holds(path: Path) -> None:
    with Ledger(path) as quick:
        (row,) = canonical(LOW[0][None])
        quick.claim(NAME, [Question(row)])
        timer = threading.Timer(0.4, lambda: quick.record(NAME, [row], ["low"]))
        timer.start()
        asked = Watched()
        e = explainer(Ledger(path, lease=0.05), asked).explain(LOW[0], budget=3)
        assert e.n_reused == 1 and row not in asked.rows


# -- several processes -------------------------------------------------------------------------------------


def explain_rows(address: str, places: list[int], bill: Bill, ready: Any, budget: int) -> None:
    def billed(rows: FloatArray) -> Any:
        bill.add(canonical(rows))
        return model(rows)

    ready.wait()
    one = explainer(address, billed)
    for place in places:
        assert one.explain(LOW[place], budget=budget).outcome == "found"


def test_two_processes_that_explain_different_rows_send_no_row_twice(address: str, tmp_path: Path) -> None:
    bill, ready = Bill(tmp_path / "bill"), processes.Barrier(2, timeout=60)
    assert run(explain_rows, [(address, [0, 1, 2], bill, ready, 10), (address, [3, 1, 4], bill, ready, 10)]) == [0, 0]
    assert set(Counter(bill.lines()).values()) == {1}
    with Ledger(address) as ledger:
        assert ledger.tables.models()[["charged", "asked_again"]].values.tolist() == [[len(bill.lines()), 0]]
        assert (ledger.tables.explanations()["paid"] <= 10).all() and len(ledger.tables.explanations()) == 5


def test_the_same_explanation_run_twice_at_once_is_paid_once_and_both_end(address: str, tmp_path: Path) -> None:
    bill, ready = Bill(tmp_path / "bill"), processes.Barrier(3, timeout=60)
    assert run(explain_rows, [(address, [0], bill, ready, 12)] * 3) == [0] * 3
    expected = explainer().explain(LOW[0], budget=12)
    n = len(bill.lines())
    assert n == len(set(bill.lines())) == expected.n_queries <= 12
    with Ledger(address) as ledger:
        e = explainer(ledger, not_asked).explain(LOW[0], budget=12)
        assert e.n_queries == 0 and len(e.trace) == n
        assert e.costs[0] <= expected.trace["best"].iloc[-1] * 3  # it may have seen its own answers from elsewhere


# -- what others have asked --------------------------------------------------------------------------------


def test_what_was_asked_for_other_rows_is_used_and_a_known_hit_is_free() -> None:
    one = explainer()
    first = one.explain(LOW[0], budget=25)
    near = LOW[0] + [0.03, 0.0, 0.0]
    e = one.explain(near, budget=2)
    assert e.outcome == "found" and e.n_queries == 2 and e.n_reused >= 1
    assert "known" in set(e.trace["purpose"])
    assert e.costs[0] <= 1.2 * first.costs[0]
    off = explainer(share_answers=False)
    off.explain(LOW[0], budget=25)
    assert "known" not in set(off.explain(near, budget=10).trace["purpose"])


def test_a_known_hit_that_breaks_a_constraint_is_not_used() -> None:
    one = explainer()
    first = one.explain(LOW[0], budget=25)
    moved = str(first.changes["feature"].iloc[0])  # a known hit rests on it
    e = one.explain(LOW[0], budget=10, freeze=[moved])
    assert (asked_rows(e)[moved] == LOW[0][int(moved[1:])]).all()


def known_at_each_ask(monkeypatch: pytest.MonkeyPatch) -> list[Known | None]:
    seen: list[Known | None] = []
    with_known = Search.with_known

    def watched(search: Search, known: Known | None) -> Search:
        seen.append(known)
        return with_known(search, known)

    monkeypatch.setattr(Search, "with_known", watched)
    return seen


def test_only_the_nearest_are_taken_and_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(1).uniform(X.min(axis=0), X.max(axis=0), size=(400, 3))
    seen = known_at_each_ask(monkeypatch)
    one = explainer(answers=(rows, model(rows)))
    e = one.explain(LOW[0], budget=3)
    known = seen[0]
    assert known is not None and len(known.X) == MOST_KNOWN and e.n_queries == 3
    coordinates = one._planner.reference.quantiles.coordinates
    distance = np.linalg.norm(coordinates(rows) - coordinates(LOW[0][None]), axis=1)
    np.testing.assert_array_equal(known.X, rows[np.argsort(distance)[:MOST_KNOWN]])
    np.testing.assert_array_equal(known.is_hit, model(known.X) == "high")


def test_many_answers_are_a_hint_and_the_same_one_after_a_stop(path: Path) -> None:
    rows = np.random.default_rng(1).uniform(X.min(axis=0), X.max(axis=0), size=(400, 3))
    told, spend = (rows, model(rows)), acex.Feasible(effort="spend")
    few = explainer(path, answers=told).explain(LOW[0], budget=8, strategy=spend)
    assert few.settings["outcomes"] is False  # no outcomes were given
    assert few.costs[0] < explainer().explain(LOW[0], budget=8, strategy=spend).costs[0]
    explainer(path).explain(LOW[1], budget=8)  # others go on meanwhile
    session = explainer(path, not_asked).search(LOW[0], budget=9, strategy=spend)
    assert session.ask() is not None and session.problem.hint_from_model
    expected = explainer(answers=told).explain(LOW[0], budget=9, strategy=spend)
    assert canonical(session.ask()) == canonical(asked_rows(expected).to_numpy()[-1:])
    assert (
        not explainer(answers=told, share_answers=False)
        .search(LOW[0], budget=9, strategy=spend)
        .problem.hint_from_model
    )


def test_a_question_sees_again_what_it_saw_whatever_was_written_since(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer(path).explain(LOW[1], budget=10)
    seen = known_at_each_ask(monkeypatch)
    first = explainer(path).explain(LOW[0], budget=10)
    then = list(seen)
    for x in LOW[2:5]:
        explainer(path).explain(x, budget=10)
    seen.clear()
    # Worked out again from the first question on, not read from the record.
    monkeypatch.setattr("acex.engine.session.Session._recorded_round", lambda session: ([], []))
    again = explainer(path, not_asked).explain(LOW[0], budget=10)
    same(again, first)
    for a, b in zip(seen, then, strict=True):
        assert a is not None and b is not None
        np.testing.assert_array_equal(a.X, b.X)


def test_rows_in_the_ledger_that_do_not_fit_are_skipped(path: Path) -> None:
    with Ledger(path) as ledger:
        forms = ["[1, 2]", '["a", 0, 0]', "[1e9, 0, 0]", "{}", "[0, 0, null]", *canonical(X[10:30])]
        ledger.import_answers(NAME, forms, ["high"] * 5 + model(X[10:30]).tolist())
        e = explainer(ledger).explain(LOW[0], budget=6)
        assert e.outcome == "found"


# -- answers from elsewhere --------------------------------------------------------------------------------


def test_answers_from_elsewhere_are_free_evidence() -> None:
    asked = Watched()
    e = explainer(asked=asked, answers=(X[:60], model(X[:60]))).explain(LOW[0], budget=2)
    assert e.outcome == "found" and e.n_queries == len(asked.rows) <= 2
    assert not set(asked.rows) & set(canonical(X[:60]))


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        ((X[:2], ["low"]), ValueError, "got 1"),
        ((X[:2], "ab"), ValueError, "got 'ab'"),
        ((X[:2], ["low", None]), ValueError, "None"),
        ((X[:2, :2], ["low", "low"]), ValueError, "3 values"),
        (([[np.nan, 0, 0]], ["low"]), ValueError, "'x0'"),
    ],
)
def test_answers_that_are_none_are_refused(answers: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        explainer(answers=answers)


def test_answers_that_are_scores_are_no_labels() -> None:
    with pytest.raises(ValueError, match=r"0\.2"):
        explainer(answers=(X[:2], [0.2, 0.8])).explain(LOW[0], budget=5)


class Estimator:
    classes_ = np.array(["high", "low"])

    def predict(self, rows: FloatArray) -> Any:
        return model(rows)


def test_answers_in_other_words_than_the_models_are_refused() -> None:
    """Each of them would be a hit, and a counterfactual that the model never labelled."""
    with pytest.raises(ValueError, match="1 is not a label"):
        explainer(asked=Estimator(), answers=(X[:2], [1, 0]))
    ledger = MemoryLedger()
    explainer(ledger).explain(LOW[0], budget=2)
    with pytest.raises(ValueError, match="label 1"):
        explainer(ledger, answers=(X[:2], [1, 0]))
    with pytest.raises(ValueError, match="label 1"):
        explainer(answers=(X[-2:], [1, 0])).explain(LOW[0], budget=9)


# -- a model that contradicts itself -----------------------------------------------------------------------


def test_an_explanation_says_that_the_model_contradicts_itself(path: Path) -> None:
    first = explainer(path).explain(LOW[0], budget=6)
    assert first.warnings == () and "Warning" not in str(first)
    asked = asked_rows(first).to_numpy()
    other = np.where(np.array(first.trace["label"]) == "low", "high", "low")
    e = explainer(path, answers=(asked[:2], other[:2])).explain(LOW[0], budget=6)
    (warning,) = e.warnings
    assert warning.code == "contradiction" and "2 rows (2 asked here)" in warning.text
    assert e.summary().endswith(f"Warning: {warning}") and warning.text in str(e)
    assert acex.Explanation.from_json(e.to_json()).warnings == e.warnings
    same(e, first)  # the first answer stands
    assert "2 rows (" in explainer(path).explain(LOW[3], budget=3).warnings[0].text


@pytest.mark.parametrize("labels", [[1, 0], [1.0, 0.0], [True, False], np.array([1, 0], dtype=np.int8)])
def test_equal_labels_of_another_type_are_no_contradiction(labels: Any) -> None:
    ledger = MemoryLedger()
    ledger.import_answers(NAME, canonical(X[:2]), [1, 0])
    ledger.import_answers(NAME, canonical(X[:2]), list(labels))
    assert ledger.contradicted(NAME) == set()


# -- the model's name --------------------------------------------------------------------------------------


def test_a_ledger_that_is_shared_needs_a_name_for_the_model(path: Path) -> None:
    for ledger in (path, str(path), Ledger(path), MemoryLedger()):
        with pytest.raises(ValueError, match="name for this function"):
            acex.explain(model, LOW[0], data=X, ledger=ledger)
    with pytest.raises(TypeError, match="name must be text"):
        acex.explain(acex.Model(model, name=7), LOW[0], data=X, ledger=path)  # type: ignore[arg-type]

    class Named(Estimator):
        model_id = "sha256:1234"

    e = acex.explain(Named(), LOW[0], data=X, ledger=path, budget=2)
    assert e.settings["model_id"] == "sha256:1234"
    acex.explain(acex.Model(Named(), name="mine"), LOW[0], data=X, ledger=path, budget=2)
    assert ledger_of(path).tables.models()["model"].tolist() == ["mine", "sha256:1234"]


def test_two_models_of_one_ledger_know_nothing_of_each_other(path: Path) -> None:
    acex.explain(acex.Model(model, name="a"), LOW[0], data=X, ledger=path, budget=12)
    e = acex.explain(acex.Model(lambda rows: rows[:, 0] > 5, name="b"), LOW[0], data=X, ledger=path, budget=4)
    assert (e.label_before, e.n_reused) == (False, 0)
    with pytest.raises(ValueError, match="has the features"):
        acex.explain(acex.Model(model, name="a"), LOW[0][:2], data=X[:, :2], ledger=path)


def test_a_correction_changes_no_explanation_that_saw_the_old_answer(path: Path) -> None:
    first = explainer(path).explain(LOW[0], budget=8)
    with Ledger(path) as ledger:
        known = ledger.answers(NAME)[2]
        ledger.correct(NAME, known.row, "low" if known.label == "high" else "high")
    again = explainer(path).explain(LOW[0], budget=8)
    same(first, again)
    assert again.n_queries == 0


def test_without_a_ledger_sqlalchemy_is_not_imported_and_no_file_is_written(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, acex\n"
        "X = np.random.default_rng(0).normal(size=(60, 3)).round(2)\n"
        "acex.explain(lambda rows: rows.sum(axis=1) > 0, X[X.sum(axis=1) < 0][0], data=X, budget=6)\n"
        "assert not [m for m in sys.modules if m.startswith('sqlalchemy')]\n"
    )
    state = {"HOME": str(tmp_path), "ACEX_STATE": str(tmp_path / "state"), "TMPDIR": str(tmp_path)}
    environment = {**os.environ, **state, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_keeps_queries_back_for_checks_was_stopped_by_its_budget() -> None:
    loans = acex.datasets.loan().rows
    approved = (loans["credit_score"] > 640) & (loans["debt_ratio"] < 0.4) & (loans["income"] > 2500)
    e = acex.explain(
        lambda rows: (rows["credit_score"] > 640) & (rows["debt_ratio"] < 0.4) & (rows["income"] > 2500),
        loans[~approved].iloc[6],
        loans,
        budget=10,
    )
    assert e.n_queries < 10 and (e.outcome, e.stopped_by) == ("found", "budget")
