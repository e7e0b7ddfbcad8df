"""Every row is counted, and asked once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acex
from acex import BudgetSpent, LedgerFailed, ModelFailed
from acex.engine.blackbox import BlackBox
from acex.ledger import Answer, BaseLedger, MemoryLedger, Question, canonical
from acex.ledger.sql import Ledger
from acex.space.space import Space
from strategies import frames, modest


def box_of(predict: Any, ledger: BaseLedger, budget: int, *, timeout: float | None = None, **more: Any) -> BlackBox:
    return BlackBox(acex.Model(predict, timeout=timeout), ledger, budget, **more)


class Sign:
    """Says whether the first column is positive, and remembers what it was sent."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __call__(self, rows: Any) -> Any:
        self.calls.append(rows)
        first = rows.iloc[:, 0] if isinstance(rows, pd.DataFrame) else rows[:, 0]
        return np.asarray(first) > 0

    @property
    def n_rows(self) -> int:
        return sum(len(rows) for rows in self.calls)


def frame(*values: float) -> pd.DataFrame:
    return pd.DataFrame({"a": list(values), "b": "x"})


def knows(box: BlackBox, rows: pd.DataFrame) -> bool:
    keys = canonical(rows)
    return box.ledger.known(box.model_id, keys).keys() == set(keys)


def labels(answers: list[Answer]) -> list[object]:
    return [answer.label for answer in answers]


def test_rows_are_counted_one_by_one() -> None:
    model = Sign()
    box = box_of(model, MemoryLedger(), budget=10)
    assert labels(box.ask(frame(1.0, -1.0, 2.0))) == [True, False, True]
    assert (box.n_queries, box.remaining, model.n_rows) == (3, 7, 3)


def test_a_known_row_is_not_sent_again() -> None:
    model = Sign()
    box = box_of(model, MemoryLedger(), budget=10)
    box.ask(frame(1.0, -1.0))
    assert labels(box.ask(frame(-1.0, 2.0, 1.0))) == [False, True, True]
    assert (box.n_queries, len(box.sent), model.n_rows) == (3, 3, 3)
    assert labels(box.ask(frame(2.0))) == [True]
    assert len(model.calls) == 2  # nothing new, nothing sent


def test_a_row_that_comes_twice_at_once_is_sent_once() -> None:
    model = Sign()
    box = box_of(model, MemoryLedger(), budget=2)
    assert labels(box.ask(np.array([[1.0], [1.0], [-1.0], [1.0]]))) == [True, True, False, True]
    assert (box.n_queries, len(box.sent), model.n_rows) == (2, 2, 2)


def test_what_one_box_was_told_another_knows() -> None:
    ledger, model = MemoryLedger(), Sign()
    box_of(model, ledger, budget=5).ask(frame(1.0, 2.0))
    second = box_of(model, ledger, budget=0)
    assert labels(second.ask(frame(1.0))) == [True]
    assert (second.n_queries, second.sent) == (0, set())


def test_the_budget_is_a_hard_cap_and_nothing_is_sent_beyond_it() -> None:
    model = Sign()
    box = box_of(model, MemoryLedger(), budget=3)
    box.ask(frame(1.0, 2.0))
    with pytest.raises(BudgetSpent, match="2 rows to ask, but only 1 more may be sent"):
        box.ask(frame(3.0, 4.0))
    assert (box.n_queries, model.n_rows) == (2, 2)
    box.ask(frame(3.0))
    box.ask(frame(1.0, 2.0, 3.0))  # known rows are free
    with pytest.raises(BudgetSpent):
        box.ask(frame(4.0))
    assert model.n_rows == 3


@modest
@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=4), max_size=8), st.integers(0, 6))
def test_the_model_never_gets_a_row_twice_nor_more_than_the_budget(batches: list[list[int]], budget: int) -> None:
    model = Sign()
    box = box_of(model, MemoryLedger(), budget)
    for batch in batches:
        try:
            assert labels(box.ask(np.array(batch, dtype=float)[:, None])) == [v > 0 for v in batch]
        except BudgetSpent:
            continue
    sent = [row for rows in model.calls for row in rows[:, 0].tolist()]
    assert len(sent) == len(set(sent)) == box.n_queries <= budget


def test_the_model_receives_rows_as_they_are() -> None:
    model = Sign()
    rows = pd.DataFrame(
        {
            "a": np.array([1, 2], dtype=np.int8),
            "b": pd.Categorical(["x", "y"]),
            "c": pd.array([1.5, 2.5], dtype="Float32"),
        }
    )
    box = box_of(model, MemoryLedger(), budget=5)
    box.ask(rows.iloc[:1])
    box.ask(rows)
    assert [list(sent.index) for sent in model.calls] == [[0], [1]]
    for sent in model.calls:
        assert sent.dtypes.tolist() == rows.dtypes.tolist()
    array = np.array([[1, 2], [3, 4]], dtype=np.uint8)
    box.ask(array)
    assert model.calls[-1].dtype == np.uint8


def test_a_model_that_writes_into_its_rows_spoils_nothing() -> None:
    def careless(rows: Any) -> Any:
        rows["a"] = 0.0
        return ["yes"] * len(rows)

    rows = frame(1.0, 2.0)
    box = box_of(careless, MemoryLedger(), budget=5)
    box.ask(rows)
    assert rows["a"].tolist() == [1.0, 2.0]
    assert knows(box, frame(1.0, 2.0))


# -- models that fail ----------------------------------------------------------------------------------


def test_what_the_model_raised_is_told_and_the_rows_count_as_sent() -> None:
    def broken(rows: Any) -> Any:
        raise RuntimeError("no connection")

    box = box_of(broken, MemoryLedger(), budget=3)
    with pytest.raises(ModelFailed, match="RuntimeError") as caught:
        box.ask(frame(1.0, 2.0))
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.explanation is None
    assert (box.n_queries, box.remaining) == (2, 1)
    assert not knows(box, frame(1.0))


def test_labels_that_came_before_a_failure_are_kept() -> None:
    def half(rows: Any) -> Any:
        raise ModelFailed("cut off", answered=[True], in_doubt=1)

    box = box_of(half, MemoryLedger(), budget=3)
    with pytest.raises(ModelFailed, match=r"^cut off$") as caught:
        box.ask(frame(1.0, 2.0, 3.0))
    assert caught.value.charged
    assert labels(box.ask(frame(1.0))) == [True]
    assert not knows(box, frame(2.0))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (["a"], "expected 2 labels, got 1"),
        ([[0.2, 0.8], [0.6, 0.4]], r"an array of shape \(2, 2\), such as probabilities"),
        ([0.2, 0.8], "got 0.2, which is a score"),
        ([1.0, float("nan")], "got nan, which is not a label"),
        (pd.Series([True, None], dtype="boolean"), "got <NA>, which is not a label"),
        ([[1], [1, 2]], r"\[1\], which is not a label"),
        (None, "expected 2 labels, got None"),
    ],
)
def test_an_answer_that_is_not_one_label_a_row_is_a_failure(answer: Any, message: str) -> None:
    box = box_of(lambda rows: answer, MemoryLedger(), budget=3)
    with pytest.raises(ModelFailed, match=message):
        box.ask(frame(1.0, 2.0))
    assert not knows(box, frame(1.0))


# -- answers that take long ------------------------------------------------------------------------------


def test_a_request_that_outlives_its_lease_is_not_sent_by_others(tmp_path: Path) -> None:
    sent: list[int] = []

    def slow(rows: Any) -> Any:
        sent.append(len(rows))
        time.sleep(3.0)
        return ["yes"] * len(rows)

    # A lease is renewed four times in its length: long enough that a busy machine does not miss all of them.
    with Ledger(tmp_path / "ledger.db", lease=2.0) as one, Ledger(tmp_path / "ledger.db", lease=2.0) as two:
        first = threading.Thread(target=box_of(slow, one, budget=5).ask, args=(frame(1.0),))
        first.start()
        while not sent:
            time.sleep(0.01)
        other = box_of(slow, two, budget=5)
        assert labels(other.ask(frame(1.0))) == ["yes"]  # it waits longer than a lease
        first.join()
        assert (sent, other.n_queries) == ([1], 0)
        assert two.tables.models()[["charged", "asked_again"]].values.tolist() == [[1, 0]]


def test_a_claim_without_a_lease_is_waited_for_as_long_as_a_lease(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db", lease=0.05)
    ledger.claim("model", [Question(canonical(frame(1.0))[0])], holder="laboratory")
    with pytest.raises(LedgerFailed, match="claimed by laboratory"):
        box_of(Sign(), ledger, budget=5).ask(frame(1.0))


@pytest.mark.parametrize("fails", [False, True])
def test_an_answer_that_comes_after_the_timeout_is_kept(fails: bool) -> None:
    may_answer, ledger = threading.Event(), MemoryLedger()

    def late(rows: Any) -> Any:
        may_answer.wait()
        if fails:
            raise ModelFailed("cut off", answered=[True], in_doubt=1)
        return [True, True]

    box = box_of(late, ledger, budget=5, timeout=0.01)
    with pytest.raises(ModelFailed, match="no answer within"):
        box.ask(frame(1.0, 2.0))
    assert not knows(box, frame(1.0))
    may_answer.set()
    for thread in threading.enumerate():
        if thread.name == "acex-request":
            thread.join()
    assert labels(box.ask(frame(1.0))) == [True]
    assert knows(box, frame(2.0)) is not fails
    assert (box.n_queries, ledger.account("model").n_charged) == (2, 2)


def test_a_late_answer_that_is_none_is_forgotten() -> None:
    may_answer = threading.Event()
    box = box_of(lambda rows: may_answer.wait() and None, MemoryLedger(), budget=5, timeout=0.01)
    with pytest.raises(ModelFailed, match="no answer within"):
        box.ask(frame(1.0))
    may_answer.set()
    for thread in threading.enumerate():
        if thread.name == "acex-request":
            thread.join()
    assert not knows(box, frame(1.0))


def test_an_answer_that_could_not_be_written_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise LedgerFailed("the disk is full")

    model = Sign()
    with Ledger(tmp_path / "ledger.db") as ledger:
        box = box_of(model, ledger, budget=5)
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "_add", full)
            with pytest.raises(LedgerFailed, match="the disk is full"):
                box.ask(frame(1.0))
        assert labels(box.ask(frame(1.0))) == [True]
        assert (model.n_rows, box.n_queries) == (1, 1)


# -- the canonical form ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"a": [1.0], "b": ["x"]}),
        pd.DataFrame({"a": [1], "b": ["x"]}),
        pd.DataFrame({"a": np.array([1], dtype=np.int8), "b": pd.Series(["x"], dtype=object)}),
        pd.DataFrame({"a": np.array([1], dtype=np.float32), "b": pd.Categorical(["x"])}),
        pd.DataFrame({"a": pd.array([1], dtype="Int64"), "b": pd.array(["x"], dtype="string")}),
        pd.DataFrame({"a": [np.float64(1)], "b": [np.str_("x")]}, index=[7]),
        np.array([[1, "x"]], dtype=object),
        np.array([[np.int64(1), np.str_("x")]], dtype=object),
    ],
)
def test_the_same_values_have_the_same_form(rows: Any) -> None:
    assert canonical(rows) == ['[1, "x"]']


def test_forms_are_written_down_here_so_that_they_never_change() -> None:
    rows = pd.DataFrame(
        {
            "a": [-0.0, 0.1, 1e22, 2.0**-1074],
            "b": [True, False, True, False],
            "c": ["é", '"', "\n", "1"],
        }
    )
    assert canonical(rows) == [
        '[0, true, "\\u00e9"]',
        '[0.1, false, "\\""]',
        '[10000000000000000000000, true, "\\n"]',
        '[5e-324, false, "1"]',
    ]


def test_values_that_differ_have_forms_that_differ() -> None:
    values: list[Any] = [0, 1, "1", "true", True, 0.1, np.nextafter(0.1, 1), np.float32(0.1), "", "0.1"]
    rows = np.empty((len(values), 1), dtype=object)
    rows[:, 0] = values
    assert len(set(canonical(rows))) == len(values)


@modest
@given(frames())
def test_forms_survive_json_and_a_new_frame(rows: pd.DataFrame) -> None:
    space = Space.infer(rows)
    forms = canonical(rows)
    assert canonical(space.decode(space.encode(rows))) == forms
    assert [json.dumps(json.loads(form)) for form in forms] == forms
    # Two rows have one form when they are one point, and only then.
    assert len(set(forms)) == len(np.unique(space.encode(rows), axis=0))
