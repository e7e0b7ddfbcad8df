"""Unusual arguments of `acex.explain` that work, and models that fail. Mistakes are in `bad_inputs`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import acex
from acex import ModelFailed, NoCounterfactual, Penalty
from acex.engine.explanation import asked_rows, changes_as_text
from toys import Counted

QUICK = Penalty(n0=5, sobol=64)


def people(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(50, 15, n),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
        }
    )


def rule(rows: pd.DataFrame) -> Any:
    return np.where(rows["income"] > 50, "good", "bad")


DATA = people()
BAD = DATA[rule(DATA) == "bad"].iloc[0]


def explain(model: Any = rule, x: Any = BAD, **options: Any) -> acex.Explanation:
    return acex.explain(model, x, **{"data": DATA, "budget": 12, "strategy": QUICK, **options})


# -- data ----------------------------------------------------------------------------------------------


def test_two_rows_of_data_are_enough() -> None:
    two = pd.concat([DATA[rule(DATA) == "bad"].iloc[[0]], DATA[rule(DATA) == "good"].iloc[[0]]])
    e = explain(x=two.iloc[0], data=two, budget=20)
    assert e.outcome in ("found", "budget_spent", "exhausted", "unlikely")
    assert e.n_queries <= 20


def test_constant_columns_work_and_stay_as_they_are() -> None:
    data = DATA.assign(bank="ours", rate=0.5, branch=3)
    e = explain(x={**BAD, "bank": "ours", "rate": 0.5, "branch": 3}, data=data)
    assert e.outcome == "found"
    assert (asked_rows(e)[["bank", "rate", "branch"]].nunique() == 1).all()


# -- the row -------------------------------------------------------------------------------------------


def test_a_row_beyond_the_data_is_a_real_row_and_widens_the_range() -> None:
    e = explain(x={**BAD, "age": 95})
    assert e.factual["age"] == 95 and e.outcome == "found"
    assert ("out_of_range", ("age",)) in [(r.code, r.columns) for r in e.remarks]
    assert e.plan.space.feature("age") == acex.Integer("age", 18, 95)
    assert explain(x={**BAD, "age": 95}, ranges={"age": (18, 95)}).warnings == ()


# -- the model -----------------------------------------------------------------------------------------


def test_an_estimator_that_is_not_fitted_is_refused_before_any_query() -> None:
    numbers = DATA[["age", "income"]]
    with pytest.raises(NotFittedError, match="LogisticRegression"):
        explain(LogisticRegression(), numbers.iloc[0], data=numbers)


def test_what_was_paid_for_travels_with_any_error() -> None:
    def stop(state: acex.Explanation) -> None:
        if state.n_queries == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        explain(callback=stop)
    assert caught.value.explanation.n_queries == 4  # type: ignore[attr-defined]


def test_an_unknown_target_is_refused_where_the_model_tells_its_labels() -> None:
    numbers = DATA[["age", "income"]]
    model = LogisticRegression().fit(numbers, rule(DATA))
    with pytest.raises(ValueError, match=r"target 'great'.*\['bad', 'good'\]"):
        explain(model, numbers.iloc[0], data=numbers, target="great")


def test_one_answer_for_everything_ends_without_a_counterfactual() -> None:
    e = explain(lambda rows: ["no"] * len(rows))
    assert e.outcome in ("budget_spent", "unlikely", "exhausted")
    assert e.n_queries <= 12
    with pytest.raises(NoCounterfactual, match=r"(budget|Unfreeze).*'no'"):
        _ = e.counterfactual


def test_one_answer_for_everything_ends_by_itself_when_every_point_was_asked() -> None:
    data = pd.DataFrame({"a": ["x", "y"] * 20, "b": [True, False, False, True] * 10})
    e = explain(lambda rows: ["no"] * len(rows), data.iloc[0], data=data, budget=500)
    assert e.outcome in ("unlikely", "exhausted")
    assert e.n_queries <= 4


def test_a_model_that_fails_leaves_what_was_found_so_far() -> None:
    answers = 0

    def fragile(rows: pd.DataFrame) -> Any:
        nonlocal answers
        answers += 1
        if answers > 6:
            raise ConnectionError("the service is down")
        return rule(rows)

    with pytest.raises(ModelFailed, match="ConnectionError") as caught:
        explain(fragile)
    e = caught.value.explanation
    assert e is not None
    assert len(e.trace) == 6  # all answers
    assert e.n_queries == 7  # the row without an answer included
    assert e.outcome == "found"
    assert rule(e.counterfactuals).tolist() == ["good"]
    acex.Explanation.from_json(e.to_json())


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (lambda rows: [], "got 0"),
        (lambda rows: ["a"] * 3, "got 3"),
        (lambda rows: [[0.3, 0.7]] * len(rows), r"\(1, 2\).*probabilities"),
        (lambda rows: [0.3] * len(rows), "0.3.*score"),
        (lambda rows: [np.nan] * len(rows), "got nan"),
        (lambda rows: "good", "got 'good'"),
    ],
)
def test_an_answer_that_is_not_one_label_per_row_fails(answer: Any, match: str) -> None:
    with pytest.raises(ModelFailed, match=match):
        explain(answer)


def test_labels_never_seen_before_are_labels() -> None:
    e = explain(lambda rows: [f"about {income:.0f}" for income in rows["income"]])
    assert e.outcome == "found"
    assert e.label_after != e.label_before


# -- options --------------------------------------------------------------------------------------------


def test_a_budget_of_two_is_spent_and_no_more() -> None:
    model = Counted(rule)
    assert explain(model, budget=2).n_queries == len(model) == 2


def test_values_without_the_one_of_the_row_make_the_feature_change() -> None:
    others = sorted({"clerk", "cook", "nurse"} - {BAD["job"]})
    e = explain(values={"job": others})
    assert e.outcome == "found"
    assert asked_rows(e)["job"].iloc[1:].isin(others).all()


def test_a_rule_that_forbids_everything_ends_after_the_factual() -> None:
    e = explain(rules=[lambda rows: np.zeros(len(rows), dtype=bool)])
    assert (e.outcome, e.n_queries) == ("exhausted", 1)


# -- unusual, but correct -----------------------------------------------------------------------------


def test_columns_can_have_any_name() -> None:
    names = pd.Index([0, "", "größe 🙂"])
    data = DATA.set_axis(names, axis=1)
    e = explain(lambda rows: np.where(rows[""] > 50, "good", "bad"), BAD.set_axis(names), data=data, freeze=[0])
    assert e.outcome == "found"
    assert list(e.counterfactual.index) == list(names)
    assert e.counterfactual[0] == BAD["age"]


def test_any_index_works() -> None:
    expected = explain()
    for index in ([0] * len(DATA), [f"row {i}" for i in range(len(DATA))]):
        assert_frame_equal(explain(data=DATA.set_axis(index, axis=0)).trace, expected.trace)


def test_the_order_of_columns_in_x_does_not_matter() -> None:
    assert_frame_equal(explain(x=BAD[::-1]).trace, explain().trace)


@pytest.mark.parametrize("factor", [1e12, 1e-12, 1e120, 1e-120])
def test_units_do_not_matter(factor: float) -> None:
    def in_other_units(rows: pd.DataFrame) -> Any:
        return rule(rows.assign(income=rows["income"] / factor))

    e = explain(
        in_other_units,
        {**BAD, "income": BAD["income"] * factor},
        data=DATA.assign(income=DATA["income"] * factor),
    )
    assert e.outcome == "found"
    assert e.n_queries == 12


@pytest.mark.parametrize("factor", [1e38, 1e39, 1e140])
def test_huge_numbers_are_right_with_known_outcomes_and_in_text(factor: float) -> None:
    def huge_rule(rows: pd.DataFrame) -> Any:
        return rule(rows.assign(income=rows["income"] / factor))

    data = DATA.assign(income=DATA["income"] * factor)
    e = explain(huge_rule, data.loc[BAD.name], data=data, outcomes=huge_rule(data), strategy="feasible")
    assert e.outcome == "found"
    assert e.changes["feature"].tolist() == ["income"]
    assert all(len(word) < 12 for word in changes_as_text(e)[0][:4])
    back = acex.Explanation.from_json(e.to_json())
    assert_frame_equal(back.trace, e.trace)
    assert "e+" in e.sentences()[0]


def test_very_large_integers_are_not_listed_one_by_one() -> None:
    e = explain(x={**BAD, "age": int(BAD["age"]) * 10**12}, data=DATA.assign(age=DATA["age"] * 10**12))
    assert e.outcome == "found"
    assert e.counterfactuals["age"].dtype == np.int64


def test_very_many_categories_work() -> None:
    towns = pd.Categorical([f"town {i}" for i in range(len(DATA))], [f"town {i}" for i in range(400)])
    data = DATA.assign(job=towns)
    e = explain(x=data[rule(data) == "bad"].iloc[0], data=data, budget=8)
    assert e.n_queries <= 8
    assert asked_rows(e)["job"].dtype == data["job"].dtype


def test_categories_of_mixed_types_can_be_declared() -> None:
    data = DATA.assign(job=pd.Series([1, "cook", 2.5, (3, "b")] * 10, dtype=object))
    features = acex.Space.infer(DATA).features[:2]
    space = acex.Space((*features, acex.Nominal("job", (1, "cook", 2.5, (3, "b")))))
    e = explain(x=data[rule(data) == "bad"].iloc[0], data=data, space=space)
    assert e.outcome == "found"
    assert str(acex.Explanation.from_json(e.to_json())) == str(e)


@pytest.mark.parametrize("dtype", [float, np.float32, int, np.uint8, bool])
def test_read_only_arrays_of_any_dtype_work(dtype: Any) -> None:
    data = (np.random.default_rng(0).random((40, 3)) * 20).astype(int) % (2 if dtype is bool else 20)
    data = data.astype(dtype)
    data.setflags(write=False)

    def array_rule(rows: Any) -> Any:
        assert rows.dtype == dtype and rows.ndim == 2
        return rows[:, 0].astype(float) > data[:, 0].astype(float).mean()

    x = data[~array_rule(data)][0]
    before = data.copy()
    e = explain(array_rule, x, data=data)
    assert e.outcome == "found"
    assert data.tolist() == before.tolist()


def test_rows_and_data_are_left_as_they_were() -> None:
    data, x = DATA.copy(deep=True), BAD.copy(deep=True)

    def careless(rows: pd.DataFrame) -> Any:
        answer = rule(rows)
        rows["income"] = 0.0
        rows["new"] = 1
        return answer

    def careless_rule(rows: pd.DataFrame) -> Any:
        rows["age"] = 0
        return np.ones(len(rows), dtype=bool)

    e = explain(careless, x, data=data, rules=[careless_rule])
    assert_frame_equal(data, DATA)
    assert x.equals(BAD)
    assert rule(e.counterfactuals).tolist() == ["good"]


def test_a_target_that_only_looks_like_a_label_stops_at_the_first_answer() -> None:
    asked: list[int] = []

    def texts(rows: pd.DataFrame) -> list[str]:
        asked.append(len(rows))
        return [str(bool(ok)) for ok in rows["a"] > 20]

    data = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40) % 3})
    with pytest.raises(ValueError, match=r"target True.*'False'"):
        acex.explain(texts, data.iloc[0], data, target=True)
    assert asked == [1]


def as_labels(rows: Any) -> Any:
    return (rows["a"] + rows["b"] > 1).map({True: "yes", False: "no"})


def as_probabilities(rows: Any) -> Any:
    yes = (rows["a"] + rows["b"] > 1).astype(float)
    return pd.DataFrame({"yes": 0.8 * yes + 0.1, "no": 0.9 - 0.8 * yes})


@pytest.mark.parametrize(
    ("answer", "scores"),
    [(as_labels, False), (lambda rows: as_labels(rows).to_frame(), False), (as_probabilities, True)],
)
def test_an_answer_of_pandas_may_have_the_rows_in_another_order(answer: Any, scores: bool) -> None:
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)).round(2), columns=["a", "b"])

    def shuffled(rows: Any) -> Any:
        assert isinstance(rows, pd.DataFrame)
        return answer(rows).sample(frac=1, random_state=len(rows))

    e = acex.explain(
        acex.Model(shuffled, scores=scores), data[as_labels(data) == "no"].iloc[0], data, target="yes", budget=20,
        queries_per_round=8, rules=[lambda rows: (rows["a"] < 2).sample(frac=1, random_state=0)],
    )  # fmt: skip
    assert e.outcome == "found" and len(e.trace) > 8 and (e.trace["a"] < 2).all()
    assert e.trace["label"].tolist() == as_labels(e.trace).tolist()
