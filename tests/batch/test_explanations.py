"""Many rows: the same answers as one by one, shared answers, a total budget, failed rows, resumed work."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed

import acex
from acex.arrays import FloatArray
from acex.batch.executors import InProcess, Lost
from acex.batch.scheduling import Done
from acex.ledger import canonical
from ledgers import Bill
from toys import POINTS as X
from toys import high as model
from toys import people

LOW = X[X[:, 0] + X[:, 1] < 0][:12]  # rows to explain
NAME = "sums-v1"


class Billed:
    """The model, whose seller writes down each row; it may fail, or kill its process, at one of them."""

    def __init__(self, bill: Bill, at: FloatArray | None = None, what: str = "raise", once: Path | None = None) -> None:
        self.bill, self.at, self.what, self.once = bill, at, what, once

    def __call__(self, rows: FloatArray) -> Any:
        if self.at is not None and any(np.array_equal(row, self.at) for row in rows):
            if self.what == "raise":
                raise RuntimeError("out of order")
            if self.once is None or not self.once.exists():
                if self.once is not None:
                    self.once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        self.bill.add(canonical(rows))
        return model(rows)


def explainer(ledger: Any = None, asked: Any = model, **settings: Any) -> acex.Explainer:
    return acex.Explainer(acex.Model(asked, name=NAME), X, ledger=ledger, **settings)


@pytest.fixture
def bill(tmp_path: Path) -> Bill:
    return Bill(tmp_path / "bill")


# -- in this process ---------------------------------------------------------------------------------------


def test_without_a_pool_they_are_the_explanations_of_each_row() -> None:
    many = explainer(share_answers=False).explain_many(LOW[:2], budget=8, n_jobs=1)
    assert len(many) == 2
    for e, x in zip(many, LOW, strict=False):
        alone = explainer(share_answers=False).explain(x, budget=8)
        # A row that the other one has asked too is free, and leaves a query for one more.
        pd.testing.assert_frame_equal(e.trace[: len(alone.trace)], alone.trace)
    assert many.errors == {}


def test_the_same_seed_gives_the_same_frame() -> None:
    first, second = (explainer().explain_many(LOW[:3], budget=6, n_jobs=1, seed=3).frame() for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


def test_rows_are_explained_when_they_are_read(bill: Bill) -> None:
    many = explainer(asked=Billed(bill)).explain_many(LOW, budget=2, n_jobs=1)
    assert bill.lines() == []
    position, e = next(many.as_finished())
    assert e.factual.tolist() == LOW[position].tolist()
    assert len(bill.lines()) == e.n_queries
    assert many[position] is e
    assert len(list(many)) == len(LOW)
    assert sorted(i for i, _ in many.as_finished()) == list(range(len(LOW)))
    with pytest.raises(IndexError, match="there are 12 rows"):
        many[12]
    assert [e.factual.tolist() for e in many[1:3]] == LOW[1:3].tolist()
    assert many[-1] is many[11]


def test_a_notebook_shows_what_is_done_and_sends_nothing(bill: Bill) -> None:
    rows = pd.DataFrame(LOW[:3], columns=list("abc"), index=["ann", "bob", "bob"])
    names = pd.DataFrame(X, columns=list("abc"))
    many = acex.Explainer(lambda r: Billed(bill)(r.to_numpy()), names).explain_many(rows, n_jobs=1, budget=8)
    assert "0 of 3 rows explained" in many._repr_html_() and bill.lines() == []
    list(many)
    shown = many._repr_html_()
    assert "3 rows: " in shown and shown.count("bob") == 2


def test_a_batch_can_be_looked_at() -> None:
    figure = explainer().explain_many(LOW[:4], n_jobs=1, budget=12).plot()
    assert "of 4 rows have a counterfactual" in figure.get_suptitle()


def test_later_rows_learn_from_earlier_ones() -> None:
    rows = np.random.default_rng(1).permutation(X[X[:, 0] + X[:, 1] < 0])[:12]
    frames = [explainer(share_answers=pool).explain_many(rows, budget=6, n_jobs=1).frame() for pool in (True, False)]
    assert frames[0]["cost"].iloc[4:].mean() < frames[1]["cost"].iloc[4:].mean()
    assert (frames[0]["reused"] > 0).any()


def test_explanations_are_read_back_from_a_ledger(tmp_path: Path, bill: Bill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acex.batch.explanations.MOST_KEPT", 1)
    many = explainer(tmp_path / "l.db", Billed(bill, LOW[1])).explain_many(LOW[:4], budget=4, n_jobs=1)
    finished = dict(many.as_finished())
    for i, e in enumerate(many):
        assert e.factual.tolist() == LOW[i].tolist() == finished[i].factual.tolist()
        assert (e.outcome, e.costs, e.n_queries, e.settings["id"]) == (
            finished[i].outcome,
            finished[i].costs,
            finished[i].n_queries,
            i,
        )
    assert [e.outcome for e in many].count("failed") == 1


def test_an_error_is_that_row_s_own(bill: Bill) -> None:
    rows = pd.DataFrame(LOW[:4].copy(), columns=["a", "b", "c"], index=["ann", "bob", "cyd", "dee"])
    rows.loc["cyd", "b"] = np.inf
    data = pd.DataFrame(X, columns=["a", "b", "c"])
    many = acex.Explainer(Framed(Billed(bill, LOW[1])), data).explain_many(rows, budget=5, n_jobs=1)
    frame = many.frame()
    assert frame.index.tolist() == ["ann", "bob", "cyd", "dee"]
    assert (frame["outcome"] == "failed").tolist() == [False, True, True, False]
    assert many.errors.keys() == {1, 2}
    assert "ModelFailed: The model raised RuntimeError: out of order" in many.errors[1]
    assert "inf" in many.errors[2] and "'b'" in many.errors[2]
    assert [e.factual.tolist() for e in many] == rows.to_numpy().tolist()  # one for each row, whatever happened
    assert [e.outcome for e in many] == frame["outcome"].tolist()
    with pytest.raises(acex.NoCounterfactual, match="RuntimeError"):
        _ = many[1].counterfactual
    assert "ModelFailed" in str(many[1]) and "failed" in many[2].to_html()


def test_a_target_of_another_type_costs_one_query_for_all_rows(bill: Bill) -> None:
    many = explainer(asked=Billed(bill)).explain_many(LOW, target=1, n_jobs=1)
    assert all("of another type" in str(e.error) for e in many)
    assert len(bill.lines()) == many.frame()["queries"].sum() == 1


class Framed:
    def __init__(self, billed: Billed) -> None:
        self.billed = billed

    def predict(self, rows: pd.DataFrame) -> Any:
        return self.billed(rows.to_numpy())


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"budgget": 3}, "budgget"),
        ({"budget": 1}, "budget"),
        ({"rules": [True]}, "rules"),
        ({"freeze": ["x9"]}, "x9"),
        ({"budget_total": 0}, "budget_total"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"executor": "dask"}, "executor"),
    ],
)
def test_an_option_that_is_wrong_for_every_row_raises_at_once(options: dict[str, Any], name: str, bill: Bill) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        explainer(asked=Billed(bill)).explain_many(LOW, **options)
    with pytest.raises(ValueError, match="3 values"):
        explainer(asked=Billed(bill)).explain_many(LOW[:, :2])
    assert bill.lines() == []


def test_unknown_categories_raise_at_once(bill: Bill) -> None:
    for wrong in (5, ["king"]):
        with pytest.raises(ValueError, match=r"values\['job'\]"):
            acex.Explainer(Billed(bill), people()).explain_many(people(), values={"job": wrong}, n_jobs=1)
    assert bill.lines() == []


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    rows = pd.DataFrame(LOW[:3], index=["a", "b", "c"])
    many = explainer().explain_many(rows, budget=8, n_jobs=1)
    written = json.loads(many.to_json(tmp_path / "many.json"))
    assert written == json.loads((tmp_path / "many.json").read_text())
    assert [row["row"] for row in written["rows"]] == ["a", "b", "c"]
    back = acex.Explanation.from_json(json.dumps(written["rows"][1]["explanation"]))
    pd.testing.assert_frame_equal(back.trace, many[1].trace, check_dtype=False)
    many.save(tmp_path / "many.parquet")
    table, frame = pd.read_parquet(tmp_path / "many.parquet"), many.frame()
    assert table["id"].tolist() == ["a", "b", "c"]
    assert table["cost"].tolist() == frame["cost"].tolist()


def test_what_is_left_out_needs_a_file_of_its_own_before_anything_is_asked(bill: Bill, tmp_path: Path) -> None:
    many = explainer(asked=Billed(bill)).explain_many(LOW[:2], budget=3, n_jobs=1)
    with pytest.raises(ValueError, match=r"many\.json has another use"):
        many.to_json(tmp_path / "many.json", left_out=tmp_path / "many.json")
    assert bill.lines() == [] and not (tmp_path / "many.json").exists()


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    many = explainer().explain_many(LOW[:1], budget=3, n_jobs=1)
    many.frame()  # scikit-learn would notice that pyarrow is gone
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(acex.MissingExtra, match=r"acex\[parquet\]"):
        many.save(tmp_path / "many.parquet")


def test_no_rows_are_no_error() -> None:
    many = explainer().explain_many(LOW[:0], n_jobs=1)
    assert (len(many), list(many), len(many.frame()), many.summary().queries) == (0, [], 0, 0)


# -- a budget for all --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("total", "n_jobs"), [(5, 1), (30, 2), (60, 1)])
def test_no_more_than_the_total_is_ever_sent(total: int, n_jobs: int, bill: Bill) -> None:
    many = explainer(asked=Billed(bill)).explain_many(LOW, budget=15, budget_total=total, n_jobs=n_jobs)
    frame = many.frame()
    sent = Counter(bill.lines())
    assert sent.total() == frame["queries"].sum() <= total
    assert sent.total() > 0.8 * total or (frame["queries"] == 15).all()
    assert set(sent.values()) == {1}
    assert frame["queries"].max() <= 15
    if total < len(LOW):  # not even the rows themselves
        assert any("budget_total=5 was spent before" in error for error in many.errors.values())
    assert sum(e.n_queries for e in many) == sent.total()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_are_the_same_are_sent_and_counted_once(n_jobs: int, tmp_path: Path, bill: Bill) -> None:
    path, rows = tmp_path / "ledger.db", np.tile(LOW[:4], (5, 1))
    for again in range(2):
        many = explainer(path, Billed(bill)).explain_many(rows, budget=6, n_jobs=n_jobs)
        frame = many.frame()
        assert len(bill.lines()) == frame["queries"].sum() == many.summary().queries
        assert sum(e.n_queries for e in many) == (0 if again else len(bill.lines()))
        assert [e.factual.tolist() for e in many] == rows.tolist()
        assert len({e.costs for e in many}) <= 4
    assert set(Counter(bill.lines()).values()) == {1}


def test_a_total_is_not_used_up_by_rows_that_are_the_same(tmp_path: Path, bill: Bill) -> None:
    rows = np.tile(LOW[:8], (5, 1))
    for total in (30, 30, 40):
        many = explainer(tmp_path / "ledger.db", Billed(bill)).explain_many(rows, budget_total=total, n_jobs=1)
        assert many.frame()["queries"].sum() == total == len(bill.lines())
        assert many.errors == {}


def test_the_total_counts_what_earlier_runs_have_paid(tmp_path: Path, bill: Bill) -> None:
    path = tmp_path / "ledger.db"
    for total, expected in ((30, 30), (30, 30), (50, 50)):
        frame = explainer(path, Billed(bill)).explain_many(LOW, budget_total=total, n_jobs=1).frame()
        assert len(bill.lines()) == frame["queries"].sum() == expected


def test_a_row_that_cost_nothing_is_there_again_when_the_total_is_spent(tmp_path: Path, bill: Bill) -> None:
    path, high = tmp_path / "ledger.db", X[model(X) == "high"][:1]
    rows = np.concatenate([high, LOW[:2]])
    for _ in range(2):
        asked = explainer(path, Billed(bill))
        asked.import_answers(high, ["high"])
        many = asked.explain_many(rows, target="high", budget_total=3, n_jobs=1)
        assert many.frame()["outcome"][0] == "already_target" and many.errors == {}
        assert len(bill.lines()) == 3


# -- processes ---------------------------------------------------------------------------------------------


def test_processes_share_what_they_learn(bill: Bill) -> None:
    shared = explainer(asked=Billed(bill))
    many = shared.explain_many(LOW, budget=8, n_jobs=2)
    frame = many.frame()
    assert many.errors == {}
    assert Counter(bill.lines()).total() == frame["queries"].sum()
    assert max(Counter(bill.lines()).values()) == 1  # a row that one has asked is not asked by the other
    assert (frame["reused"] > 0).sum() >= 3
    # The explainer keeps them: the next one of the same row pays nothing.
    again = shared.explain_many(LOW[:2], budget=8, n_jobs=1)
    assert [e.n_queries for e in again] == [0, 0]
    assert again.frame()["queries"].tolist() == frame["queries"].tolist()[:2]


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"n_jobs": 1, "budget_total": 100}])
def test_a_lifetime_budget_set_in_memory_holds_in_the_file_too(bill: Bill, options: dict[str, Any]) -> None:
    one = explainer(asked=Billed(bill))
    one.explain(LOW[0], budget=2)
    one.ledger.budget(NAME, rows=12, price_per_row=0.5)
    list(one.explain_many(LOW[1:5], budget=10, **options))
    assert len(bill.lines()) == 12
    assert (one.ledger.account(NAME).n_charged, one.ledger.account(NAME).remaining) == (12, 0)


def test_what_was_known_in_memory_is_known_to_the_processes(bill: Bill) -> None:
    own = explainer(asked=Billed(bill))
    own.explain(LOW[0], budget=8)
    n = len(bill.lines())
    many = own.explain_many(LOW[:2], budget=8, n_jobs=2)
    assert list(many)[0].n_reused >= 1  # noqa: RUF015 (all of them; the factual itself was known)
    assert max(Counter(bill.lines()).values()) == 1 and len(bill.lines()) > n


def test_joblib_of_the_caller_works_before_while_and_after_a_batch_in_processes() -> None:
    calls = [delayed(abs)(-1), delayed(abs)(-2)]
    assert Parallel(n_jobs=2)(calls) == [1, 2]
    many = iter(explainer().explain_many(LOW[:3], budget=2, n_jobs=2))
    next(many)
    assert Parallel(n_jobs=2)(calls) == [1, 2]
    assert len(list(many)) == 2
    assert Parallel(n_jobs=2)(calls) == [1, 2]


def test_a_model_that_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()
    many = explainer(asked=lambda rows: model(rows) if lock else None).explain_many(LOW, n_jobs=2)
    with pytest.raises(TypeError, match="n_jobs"):
        many.frame()


def test_a_worker_that_dies_loses_nothing_and_pays_nothing_twice(tmp_path: Path, bill: Bill) -> None:
    dies_once = Billed(bill, LOW[3], "kill", tmp_path / "died")
    many = explainer(asked=dies_once).explain_many(LOW[:6], budget=4, n_jobs=2)
    with pytest.warns(UserWarning, match="A worker process died"):
        frame = many.frame()
    assert many.errors == {} and max(Counter(bill.lines()).values()) == 1
    in_doubt = int(frame["queries"].sum()) - len(bill.lines())  # claimed by a worker that died: may have been charged
    assert 0 <= in_doubt <= 2


@pytest.mark.slow
def test_a_row_that_kills_every_worker_fails(bill: Bill) -> None:
    many = explainer(asked=Billed(bill, LOW[3], "kill")).explain_many(LOW[2:5], budget=3, n_jobs=2)
    with pytest.warns(UserWarning, match="A worker process died"):
        frame = many.frame()
    assert many.errors.keys() == {1} and "died 3 times at this row" in many.errors[1]
    assert (frame["outcome"] == "failed").sum() == 1


def test_what_was_stopped_goes_on_from_the_ledger(tmp_path: Path, bill: Bill) -> None:
    path = tmp_path / "ledger.db"
    many = explainer(path, Billed(bill)).explain_many(LOW, budget=6, n_jobs=1)
    finished = many.as_finished()
    for _ in range(4):
        next(finished)
    paid = bill.lines()
    frame = explainer(path, Billed(bill)).explain_many(LOW, budget=6, n_jobs=1).frame()
    assert max(Counter(bill.lines()).values()) == 1
    assert bill.lines()[: len(paid)] == paid
    undisturbed = explainer(tmp_path / "other.db").explain_many(LOW, budget=6, n_jobs=1).frame()
    pd.testing.assert_frame_equal(frame.drop(columns="reused"), undisturbed.drop(columns="reused"))


def test_an_interrupt_leaves_what_is_finished(bill: Bill) -> None:
    class Interrupts(InProcess):
        def run(self, *work: Any) -> Any:
            for n, result in enumerate(super().run(*work)):
                if n == 3:
                    raise KeyboardInterrupt
                yield result

    own = explainer(asked=Billed(bill))
    many = own.explain_many(LOW, budget=4, executor=Interrupts())
    with pytest.raises(KeyboardInterrupt):
        many.frame()
    frame = many.frame()
    assert (frame["outcome"] == "unfinished").sum() == len(LOW) - 3
    assert len(many[:]) == len(LOW)
    stopped = [e for e in many if e.outcome == "failed"]
    assert len(stopped) == len(LOW) - 3
    with pytest.raises(acex.NoCounterfactual, match="stopped before"):
        _ = stopped[0].counterfactual


def test_a_lost_row_counts_as_paid() -> None:
    class Loses(InProcess):
        def run(self, job: Any, task: Any, items: Any) -> Any:
            for item in items:
                lost = item.allowance and item.position == 1
                yield item, Lost("gone") if lost else task(job, item)

    many = explainer().explain_many(LOW[:3], budget=6, budget_total=12, executor=Loses())
    frame = many.frame()
    assert many.errors == {1: "gone"}
    assert frame["queries"].sum() <= 12 and frame["queries"].iloc[1] > 0


def test_a_row_whose_first_query_fails_counts_it(bill: Bill) -> None:
    many = explainer(asked=Billed(bill, LOW[1])).explain_many(LOW[:3], budget=4, n_jobs=1)
    assert [e.n_queries > 0 for e in many] == [True, True, True]  # it may have been charged
    assert sum(e.n_queries for e in many) == many.frame()["queries"].sum() == len(bill.lines()) + 1


def test_a_total_budget_stops_when_the_ledger_cannot_be_read(
    tmp_path: Path, bill: Bill, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    explainer(path, Billed(bill)).explain_many(LOW[:4], budget=6, budget_total=20, n_jobs=1).frame()
    paid = bill.lines()

    def unreadable(self: acex.Ledger, explanation: str) -> tuple[Any, ...]:
        raise acex.LedgerFailed("Ledger: the server is gone.")

    with monkeypatch.context() as patch:
        patch.setattr(acex.Ledger, "asks", unreadable)
        with pytest.raises(acex.LedgerFailed, match="the server is gone"):
            explainer(path, Billed(bill)).explain_many(LOW[:4], budget=9, budget_total=20, n_jobs=1).frame()
    assert bill.lines() == paid


def test_a_row_that_fails_in_a_later_round_gives_no_money_back(bill: Bill) -> None:
    own, begun = explainer(asked=Billed(bill)), Counter[int]()

    class FailsLater(InProcess):
        def run(self, job: Any, task: Any, items: Any) -> Any:
            for item in items:
                begun[item.position] += 1
                # Row 0 fails at once, so that there is another round, in which row 1 fails.
                if (item.position == 0 and begun[0] == 1) or (item.position == 1 and begun[1] == 2):
                    yield item, Done(own._planner.failed(item.row, job.options, "LedgerFailed: the server is gone"), 0)
                else:
                    yield item, task(job, item)

    frame = own.explain_many(LOW[:3], budget=12, budget_total=24, executor=FailsLater()).frame()
    assert begun[1] == 2
    assert len(bill.lines()) == frame["queries"].sum() <= 24


def test_progress_is_shown_on_stderr(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    explainer().explain_many(LOW[:2], budget=3, n_jobs=1, progress=True).frame()
    out, err = capfd.readouterr()
    assert out == "" and "explaining" in err and "queries a row" in err
