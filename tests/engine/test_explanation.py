"""What was found, what it cost, and that it holds: for people and for machines."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal, assert_series_equal

import acex
from acex import Explanation, NoCounterfactual, Nominal, Penalty, Plausibility, Space
from acex.engine.explanation import asked_rows
from acex.ledger import canonical
from strategies import arrays, frames

QUICK = Penalty(n0=5, sobol=64)


class Model:
    """A rule on frames that remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: list[pd.DataFrame] = []

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.sent.append(rows)
        return np.where((rows["income"] > 50) & (rows["job"] == "nurse"), "good", "bad")

    @property
    def n_rows(self) -> int:
        return sum(len(rows) for rows in self.sent)


def people(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(np.int8),
            "income": rng.normal(50, 15, n).astype(np.float32),
            "job": pd.Categorical(rng.choice(["clerk", "cook", "nurse"], n)),
            "home": rng.random(n) > 0.5,
            "town": rng.choice(["Bern", "Rome"], n),
        }
    )


@cache
def found() -> tuple[Explanation, Model]:
    data, model = people(), Model()
    row = data[(data["income"] < 45) & (data["job"] == "cook")].iloc[0]
    e = acex.explain(model, row, data=data, target="good", budget=25, strategy=QUICK, freeze=["age"])
    return e, model


@cache
def in_vain() -> Explanation:
    data = people()
    return acex.explain(lambda rows: ["bad"] * len(rows), data.iloc[0], data=data, budget=6, strategy=QUICK)


# -- the promises, for any data and any model ------------------------------------------------------------


class Hashing:
    """Labels that follow no rule at all, but always the same; remembers the rows it was sent."""

    def __init__(self, n_labels: int, salt: int) -> None:
        self.n_labels, self.salt = n_labels, salt
        self.sent: list[str] = []
        self.dtypes: Any = None

    def label(self, form: str) -> str:
        return f"L{zlib.crc32(f'{self.salt}{form}'.encode()) % self.n_labels}"

    def __call__(self, rows: Any) -> list[str]:
        self.sent += canonical(rows)
        self.dtypes = rows.dtypes.tolist() if isinstance(rows, pd.DataFrame) else rows.dtype
        return [self.label(form) for form in canonical(rows)]


def every_other(rows: Any) -> Any:
    """A constraint that follows no rule either."""
    return np.array([zlib.crc32(form.encode()) % 2 == 0 for form in canonical(rows)])


@settings(max_examples=60, deadline=None)
@given(
    data=st.one_of(frames(max_rows=12, max_columns=5), arrays(max_rows=12, max_columns=5)),
    model=st.builds(Hashing, st.integers(1, 3), st.integers(0, 9)),
    target=st.sampled_from([None, "L0", "L1"]),
    budget=st.integers(2, 12),
    constraint=st.sampled_from([None, every_other]),
    plausibility=st.sampled_from([None, Plausibility()]),
    choices=st.data(),
)
def test_the_promises_hold_for_any_data_and_any_model(
    data: Any,
    model: Hashing,
    target: str | None,
    budget: int,
    constraint: Any,
    plausibility: Plausibility | None,
    choices: st.DataObject,
) -> None:
    space, untouched = Space.infer(data), data.copy()
    is_frame = isinstance(data, pd.DataFrame)
    x = data.iloc[0] if is_frame else data[0]
    freeze = [n for n in space.names if choices.draw(st.integers(0, 3)) == 0]
    ordered = [f.name for f in space.features if not isinstance(f, Nominal)]
    directions: dict[str | int, Any] = {
        name: choices.draw(st.sampled_from(["increase", "decrease"])) for name in ordered[:1]
    }
    try:
        e = acex.explain(
            model,
            x,
            data=data,
            target=target,
            budget=budget,
            freeze=freeze,
            directions=directions,
            plausibility=plausibility if len(data) > 1 else None,
            rules=[] if constraint is None else [constraint],
            strategy=Penalty(n0=4, sobol=32),
        )
    except ValueError as error:
        if "No feature can change" not in str(error) or model.sent:
            raise  # what no query could mend is said before the first
        return

    # The budget holds, every query is told, no row is paid for twice, and data stay as they were.
    assert e.n_queries == len(model.sent) == len(set(model.sent)) <= budget
    assert len(e.trace) == e.n_queries
    assert model.dtypes == (data.dtypes.tolist() if is_frame else data.dtype)
    assert data.equals(untouched) if is_frame else data.tolist() == untouched.tolist()
    assert_same(Explanation.from_json(e.to_json()), e)

    # Whatever was asked after the factual keeps to every constraint.
    asked = asked_rows(e).iloc[1:] if is_frame else asked_rows(e).iloc[1:].to_numpy(dtype=data.dtype)
    if len(asked):
        assert constraint is None or constraint(asked).all()
        steps = space.encode(asked) - space.encode(x)
        assert (steps[:, [space.index(name) for name in freeze]] == 0).all()
        for name, direction in directions.items():
            sign = 1 if direction == "increase" else -1
            assert (sign * steps[:, space.index(name)] >= 0).all()
    if e.outcome != "found":
        with pytest.raises(NoCounterfactual):
            _ = e.counterfactual
        return

    # What was found was labelled by the model itself, with the label wanted.
    rows = e.counterfactuals if is_frame else e.counterfactuals.to_numpy(dtype=data.dtype)
    [form] = canonical(rows)
    assert form in model.sent[1:]
    assert e.label_after == model.label(form) != e.label_before
    assert target in (None, e.label_after)
    changed = (space.encode(rows) != space.encode(x))[0]
    assert set(e.changes["feature"]) == {space.names[j] for j in np.flatnonzero(changed)}
    if is_frame:
        assert e.counterfactuals.dtypes.tolist() == data.dtypes.tolist()


def assert_same(a: Explanation, b: Explanation) -> None:
    """Two explanations say the same in every way."""
    assert a.to_json() == b.to_json()
    assert_frame_equal(a.counterfactuals, b.counterfactuals)
    assert_frame_equal(a.changes, b.changes)
    assert_frame_equal(a.trace, b.trace, check_column_type=False)
    assert_series_equal(a.factual, b.factual)
    assert (str(a), a._repr_html_()) == (str(b), b._repr_html_())
    assert a.plan.space == b.plan.space
    assert_allclose(list(a.measures().values()), list(b.measures().values()))


# -- one explanation ---------------------------------------------------------------------------------------


def test_what_was_found_is_a_row_like_those_of_the_data() -> None:
    e, model = found()
    assert e.outcome == "found"
    assert (e.label_before, e.label_after, e.target) == ("bad", "good", "good")
    assert e.counterfactuals.dtypes.tolist() == people().dtypes.tolist()
    assert list(e.counterfactual.index) == list(e.factual.index) == list(people().columns)
    assert Model()(e.counterfactuals).tolist() == ["good"]
    assert e.n_queries == model.n_rows <= 25


def test_changes_come_largest_first_with_values_as_their_columns_hold_them() -> None:
    e, _ = found()
    assert {"income", "job"} <= set(e.changes["feature"])
    assert e.changes["step"].abs().is_monotonic_decreasing
    for _, change in e.changes.iterrows():
        assert change["before"] == e.factual[change["feature"]]
        assert change["after"] == e.counterfactual[change["feature"]]
    s = dict(zip(e.plan.space.names, e.plan.scale.deviations, strict=True))
    numeric = e.changes[e.changes["feature"] == "income"]
    for _, change in numeric.iterrows():
        assert_allclose(change["step"], (change["after"] - change["before"]) / s["income"], rtol=1e-5)


def test_whole_numbers_stay_whole_among_fractions() -> None:
    data = pd.DataFrame({"n": np.arange(40), "a": np.linspace(0, 1, 40)})
    e = acex.explain(lambda r: r["n"] + r["a"] > 20, data.iloc[3], data=data, budget=10, strategy=QUICK)
    [change] = e.changes[e.changes["feature"] == "n"].to_dict("records")
    assert isinstance(change["before"], int) and isinstance(change["after"], int)


def test_the_trace_has_a_row_per_query_and_the_best_cost_only_falls() -> None:
    e, model = found()
    trace = e.trace
    assert len(trace) == e.n_queries == model.n_rows
    assert trace["purpose"].iloc[0] == "factual"
    assert trace["label"].tolist() == [label for rows in model.sent for label in Model()(rows)]
    assert_frame_equal(trace[list(people().columns)], pd.concat(model.sent, ignore_index=True))
    assert (trace["hit"] == (trace["label"] == "good")).all()
    assert trace["best"].is_monotonic_decreasing
    assert_allclose(trace["best"].iloc[-1], e.costs[0])
    assert trace["cost"].iloc[0] == 0


@pytest.mark.filterwarnings("error")
def test_features_called_like_the_columns_of_the_trace_do_no_harm() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.random((30, 3)), columns=["label", "cost", "hit"])
    e = acex.explain(lambda r: r["cost"] > 0.5, data.iloc[0], data=data, budget=8, strategy=QUICK)
    assert len(e.trace) == e.n_queries
    assert_frame_equal(e.trace[["label", "cost", "hit"]], asked_rows(e))
    assert e.trace["label of query"].tolist() == [step.label for step in e.steps]
    assert_same(Explanation.from_json(e.to_json()), e)


def test_the_summary_is_a_sentence() -> None:
    e, _ = found()
    n = len(e.changes)
    assert e.summary() == (f"bad -> good by changing {n} of 5 features (cost {e.costs[0]:.3g}, {e.n_queries} queries).")
    assert str(e).startswith(e.summary() + "\n")
    assert repr(e) == str(e)
    for feature in e.changes["feature"]:
        assert feature in str(e)


def test_what_ended_in_vain_says_so_and_what_to_relax() -> None:
    e = in_vain()
    assert e.outcome == "budget_spent"
    assert e.counterfactuals.empty
    assert e.counterfactuals.dtypes.tolist() == people().dtypes.tolist()
    assert e.changes.empty and list(e.changes.columns) == ["feature", "before", "after", "step", "needed"]
    assert (e.label_after, e.costs, e.affinities) == (None, (), ())
    with pytest.raises(NoCounterfactual, match="'bad'"):
        _ = e.counterfactual
    assert str(e) == e.summary()
    assert e.summary().startswith("No counterfactual: still bad (6 queries). The budget was spent")
    assert "still bad" in e._repr_html_()


def test_a_factual_that_has_the_target_already_costs_one_query() -> None:
    data, model = people(), Model()
    good = data[Model()(data) == "good"].iloc[0]
    e = acex.explain(model, good, data=data, target="good", strategy=QUICK)
    assert (e.outcome, e.stopped_by, e.n_queries, model.n_rows) == ("already_target", "settled", 1, 1)
    assert "1 query)" in e.summary() and "never" not in e.summary()
    with pytest.raises(NoCounterfactual, match="already good"):
        _ = e.counterfactual
    assert_same(Explanation.from_json(e.to_json()), e)


def test_rows_asked_before_are_free_the_next_time() -> None:
    data, model = people(), Model()
    row = data[Model()(data) == "bad"].iloc[0]
    explainer = acex.Explainer(model, data)
    first = explainer.explain(row, budget=8, strategy=QUICK)
    again = explainer.explain(row, budget=8, strategy=QUICK)
    assert (first.n_queries, first.n_reused) == (8, 0)
    assert again.n_reused >= 8
    assert model.n_rows == first.n_queries + again.n_queries
    assert len(again.trace) == again.n_queries + again.n_reused


def test_a_callback_sees_the_explanation_grow() -> None:
    seen: list[Explanation] = []
    data = people()
    row = data[Model()(data) == "bad"].iloc[0]
    e = acex.explain(Model(), row, data=data, budget=7, strategy=QUICK, callback=seen.append)
    assert [s.n_queries for s in seen] == [1, 2, 3, 4, 5, 6, 7]
    # What is worked out once, at the end, is all that the last one lacks.
    assert seen[-1].stopped_by == "unfinished" and e.stopped_by == "budget"
    ended = replace(e.ending, stopped_by="unfinished", robustness=(), improvement_odds=())
    assert_same(seen[-1], replace(e, ending=ended))


# -- for machines -----------------------------------------------------------------------------------------


def test_an_explanation_comes_back_from_text_and_from_a_file(tmp_path: Path) -> None:
    for e in (found()[0], in_vain()):
        path = tmp_path / "e.json"
        text = e.to_json(path)
        assert path.read_text(encoding="utf-8") == text
        json.loads(text, parse_constant=pytest.fail)  # neither NaN nor Infinity: any reader will do
        for source in (text, path, str(path)):
            assert_same(Explanation.from_json(source), e)


def test_numbers_of_numpy_in_target_and_seed_are_no_obstacle_to_json() -> None:
    data = pd.DataFrame({"a": np.linspace(0, 1, 30)})
    e = acex.explain(
        lambda r: (r["a"] > 0.5).astype(int),
        data.iloc[0],
        data=data,
        target=np.int64(1),
        budget=np.int64(6),  # type: ignore[arg-type]
        seed=np.int64(3),  # type: ignore[arg-type]
        strategy=QUICK,
    )
    back = Explanation.from_json(e.to_json())
    assert (back.outcome, back.label_after, back.target) == ("found", 1, 1)


def test_intervals_are_explained_and_read_back_as_text() -> None:
    data = pd.DataFrame({"age": pd.cut(np.arange(60), 6), "a": np.linspace(0, 1, 60)})
    old = data["age"].cat.categories[4]
    e = acex.explain(lambda r: r["age"] >= old, data.iloc[0], data=data, budget=10, strategy=QUICK)
    assert e.outcome == "found"
    back = Explanation.from_json(e.to_json())
    assert str(back) == str(e)
    assert back.counterfactual["age"] == str(e.counterfactual["age"])


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="got format 99"):
        Explanation.from_json('{"format": 99}')


def test_html_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    rng = np.random.default_rng(0)
    data = pd.DataFrame({evil: rng.choice([evil, "<b>"], 40), "a": rng.random(40)})
    x = data[data[evil] == "<b>"].iloc[0]
    e = acex.explain(lambda r: np.where(r[evil] == evil, evil, "<i>"), x, data=data, budget=12, strategy=QUICK)
    assert evil in e.changes["feature"].tolist() and e.label_after == evil
    assert "<script>" not in e._repr_html_()
    assert "<i>" not in e._repr_html_() and "<b>" not in e._repr_html_()
    assert "&lt;script&gt;" in e._repr_html_()


def test_advice_is_for_explanations_without_a_counterfactual() -> None:
    table = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0)[::-1] % 7})
    found = acex.explain(lambda rows: rows["a"] > 20, table.iloc[3], table, budget=12)
    assert found.outcome == "found" and found.advice == ""
    missed = acex.explain(lambda rows: rows["a"] / 3, table.iloc[3], table, target=acex.AtLeast(99), budget=6)
    assert missed.advice and re.search(r"The model answered 1 to [\d.]+, never at least 99\.", str(missed))
