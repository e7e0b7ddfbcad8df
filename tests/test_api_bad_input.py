"""Wrong arguments of `acex.explain`: the type of the error, and the name in its message; and unusual ones that work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

import acex
from acex import ModelFailed, NoCounterfactual, Penalty, Plausibility
from acex.engine.explanation import asked_rows, changes_as_text

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


class Model:
    """The rule, and how many rows it was sent."""

    def __init__(self) -> None:
        self.n_rows = 0

    def __call__(self, rows: pd.DataFrame) -> Any:
        self.n_rows += len(rows)
        return rule(rows)


DATA = people()
BAD = DATA[rule(DATA) == "bad"].iloc[0]


def explain(model: Any = rule, x: Any = BAD, **options: Any) -> acex.Explanation:
    return acex.explain(model, x, **{"data": DATA, "budget": 12, "strategy": QUICK, **options})


def refused(match: str, error: type[Exception] = ValueError, **options: Any) -> None:
    """The error has this type and this in its message; no row was sent."""
    model = Model()
    with pytest.raises(error, match=match):
        explain(**{"model": model, **options})
    assert model.n_rows == 0


def with_value(column: str, value: Any) -> pd.DataFrame:
    """The data with one strange value in row 3."""
    data = DATA.astype({column: object})
    data.loc[3, column] = value
    return data.infer_objects()


def test_without_a_mistake_a_counterfactual_is_found() -> None:
    e = explain()
    assert e.outcome == "found"
    assert rule(e.counterfactuals).tolist() == ["good"]


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    refused(f"seed: .* got {seed!r}", seed=seed)


# -- data ----------------------------------------------------------------------------------------------


def test_gaps_in_all_of_data_name_the_columns() -> None:
    refused("data.*income 40", data=DATA.assign(income=np.nan))


def test_infinity_in_data_is_named() -> None:
    refused("'income'.*inf", data=with_value("income", np.inf))


def test_a_number_in_a_column_of_dates_is_named() -> None:
    dates = pd.Series(pd.date_range("2020-01-01", periods=len(DATA)))
    refused("'age'.*date", data=DATA.assign(age=dates))


def test_columns_of_mixed_types_are_named() -> None:
    refused(r"'job'.*7 \(int\)", data=with_value("job", 7))


def test_data_without_rows_are_refused() -> None:
    refused("data is empty", data=DATA.iloc[:0])


def test_a_single_row_of_data_is_too_few_for_plausibility() -> None:
    refused("got 1; plausibility=None", data=DATA.iloc[:1], x=DATA.iloc[0])
    refused("No feature can change", data=DATA.iloc[:1], x=DATA.iloc[0], plausibility=None)


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


def test_data_that_are_not_a_table_are_refused() -> None:
    refused("data.*DataFrame.*got list", data=DATA.to_dict("records"))
    refused("data.*DataFrame.*got Series", data=DATA["age"])


def test_columns_of_one_name_are_refused() -> None:
    data = DATA.set_axis(["age", "age", "job"], axis=1)
    refused("names.*'age', 'age', 'job'", data=data)


def test_numbers_too_large_for_exact_arithmetic_are_refused() -> None:
    refused(r"'age'.*2\*\*53", data=DATA.assign(age=2**53 + DATA["age"]))


def test_a_space_that_lacks_a_column_is_refused() -> None:
    space = acex.Space((acex.Integer("age", 18, 80), acex.Continuous("income", 0, 200)))
    refused("data: .*'job'", space=space)


def test_a_space_that_lacks_a_category_is_refused() -> None:
    numbers = (acex.Integer("age", 18, 80), acex.Continuous("income", 0, 200))
    space = acex.Space((*numbers, acex.Nominal("job", ("clerk", "cook"))))
    refused("'job': 'nurse'.*'clerk', 'cook'", space=space)


def test_a_continuous_feature_in_a_column_of_integers_is_refused() -> None:
    features = (acex.Continuous("age", 18, 80), *acex.Space.infer(DATA).features[1:])
    refused("'age'.*Continuous.*int64", space=acex.Space(features))


# -- the row -------------------------------------------------------------------------------------------


def test_a_missing_value_in_x_is_named() -> None:
    refused("'income'.*missing", x={**BAD, "income": np.nan})
    refused("'job'.*missing", x={**BAD, "job": None})


def test_infinity_in_x_is_named() -> None:
    refused("'income': -inf", x={**BAD, "income": -np.inf})


def test_a_missing_column_is_named() -> None:
    refused("row: missing 'job'", x=BAD.drop("job"))


def test_an_extra_column_is_named() -> None:
    refused("row: .*'zip'", x={**BAD, "zip": 3000})


def test_an_unknown_category_is_named() -> None:
    refused("'job': 'pilot'.*'clerk', 'cook'", x={**BAD, "job": "pilot"})


def test_a_row_beyond_the_data_is_a_real_row_and_widens_the_range() -> None:
    e = explain(x={**BAD, "age": 95})
    assert e.factual["age"] == 95 and e.outcome == "found"
    assert [(r.code, r.columns) for r in e.remarks] == [("out_of_range", ("age",))]
    assert e.plan.space.feature("age") == acex.Integer("age", 18, 95)
    assert explain(x={**BAD, "age": 95}, ranges={"age": (18, 95)}).warnings == ()


def test_a_value_that_the_column_cannot_hold_is_refused() -> None:
    narrow = DATA.astype({"age": "int8"})
    refused("'age': 300.*18 to 127", x={**BAD, "age": 300}, data=narrow)
    refused("'age'.*1e.150", x={**BAD, "age": 1e200})


def test_a_fraction_of_a_whole_number_is_named() -> None:
    refused("'age': 30.5", x={**BAD, "age": 30.5})


def test_a_text_is_not_a_number() -> None:
    refused("'age'.*number.*'30'", x={**BAD, "age": "30"})


def test_a_row_without_names_is_refused() -> None:
    refused("row: missing 'age', 'income', 'job'.* got 0, 1, 2", x=pd.Series(BAD.tolist()))
    refused("row: missing 'age', 'income', 'job'.* got 0, 1, 2", x=BAD.tolist())


def test_a_row_with_a_name_twice_is_refused() -> None:
    refused("row: .*names", x=pd.concat([BAD, BAD[["age"]]]))


def test_two_rows_are_not_one() -> None:
    refused("x .*got 2", x=DATA.iloc[:2])
    refused("x .*got 0", x=DATA.iloc[:0])


def test_nothing_is_not_a_row() -> None:
    refused("got NoneType", x=None)


# -- the model -----------------------------------------------------------------------------------------


def test_a_regressor_is_refused_with_advice() -> None:
    refused("LinearRegression is a regressor", TypeError, model=LinearRegression())


def test_a_class_is_not_an_instance() -> None:
    refused("class LogisticRegression", TypeError, model=LogisticRegression)


def test_something_that_cannot_predict_is_refused() -> None:
    refused("predict.*got str", TypeError, model="model.pkl")


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


def test_a_callback_that_cannot_be_called_is_refused_before_any_query() -> None:
    refused("callback: .* got 3", TypeError, callback=3)


def test_outcomes_that_are_not_labels_of_the_model_are_refused() -> None:
    refused(r"outcomes.*\['good'\].*\[0, 1\]", outcomes=np.arange(len(DATA)) % 2, target="good")
    refused("outcomes.*40.*1", outcomes=["good"])
    unknown = np.where(np.arange(len(DATA)) == 3, None, "good")  # type: ignore[call-overload]
    refused("outcomes.*row 3", outcomes=unknown)


def test_settings_of_the_wrong_type_are_refused() -> None:
    refused(r"plausibility.*acex\.Plausibility.*-1\.5", TypeError, plausibility=-1.5)
    refused(r"space.*acex\.Space.*dict", TypeError, space={"a": 1})
    refused(r"cost.*acex\.Cost.*beta", TypeError, cost={"beta": 1})


def test_an_unknown_target_is_refused_where_the_model_tells_its_labels() -> None:
    numbers = DATA[["age", "income"]]
    model = LogisticRegression().fit(numbers, rule(DATA))
    with pytest.raises(ValueError, match=r"target 'great'.*\['bad', 'good'\]"):
        explain(model, numbers.iloc[0], data=numbers, target="great")


def test_one_answer_for_everything_ends_without_a_counterfactual() -> None:
    e = explain(lambda rows: ["no"] * len(rows))
    assert e.outcome in ("budget_spent", "unlikely", "exhausted")
    assert e.n_queries <= 12
    with pytest.raises(NoCounterfactual, match=r"(budget|Unfreeze).*\['no'\]"):
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


@pytest.mark.parametrize("budget", [0, 1, -3, True, 2.5, "10", None])
def test_a_budget_is_a_whole_number_of_two_or_more(budget: Any) -> None:
    refused(f"budget: .* got {budget!r}", budget=budget)


def test_a_budget_of_two_is_spent_and_no_more() -> None:
    model = Model()
    assert explain(model, budget=2).n_queries == model.n_rows == 2


@pytest.mark.parametrize("beta", [-1, np.nan, np.inf, "5", None])
def test_beta_is_zero_or_positive(beta: Any) -> None:
    with pytest.raises(ValueError, match=f"beta .* got {beta!r}"):
        acex.Cost(beta=beta)


def test_freezing_everything_leaves_nothing() -> None:
    refused("No feature can change", freeze=["age", "income", "job"])


def test_freeze_takes_a_list() -> None:
    refused(r"freeze: .*\['age'\]", freeze="age")
    refused("freeze: .* got 5", freeze=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"freeze": ["agee"]}, "'agee'.* Did you mean 'age'"),
        ({"ranges": {"Income": (0, 1)}}, "'Income'.* Did you mean 'income'"),
        ({"directions": {"incom": "increase"}}, "'incom'.* Did you mean 'income'"),
        ({"values": {"jobs": ["cook"]}}, "'jobs'.* Did you mean 'job'"),
        ({"cost": acex.Cost(weights={"jobs": 2})}, "'jobs'.* Did you mean 'job'"),
        ({"freeze": ["zip"]}, r"'zip'.*'age', 'income', 'job'\.$"),
        ({"freeze": [7]}, "7 .*feature"),
    ],
)
def test_unknown_names_get_a_hint(options: dict[str, Any], message: str) -> None:
    refused(message, **options)


@pytest.mark.parametrize("name", ["ranges", "values", "directions"])
def test_settings_by_feature_are_mappings(name: str) -> None:
    refused(rf"{name}: .* got \['age'\]", ValueError, **{name: ["age"]})


def test_a_direction_is_increase_or_decrease() -> None:
    refused("'age'.*'up'.*'increase'", directions={"age": "up"})
    refused("'job'.*nominal", directions={"job": "increase"})


@pytest.mark.parametrize("weight", [0, -1, np.inf, np.nan, "high"])
def test_a_weight_is_a_positive_number(weight: Any) -> None:
    with pytest.raises(ValueError, match=rf"weights\['age'\] .* got {weight!r}"):
        acex.Cost(weights={"age": weight})


def test_weights_are_a_mapping() -> None:
    with pytest.raises(ValueError, match=r"weights .* got \['age'\]"):
        acex.Cost(weights=["age"])  # type: ignore[arg-type]


def test_limits_that_exclude_a_value_that_cannot_change_are_refused() -> None:
    high = (BAD["age"] + 1, 99)
    refused("'age'.*stays as it is", freeze=["age"], ranges={"age": high})
    others = sorted({"clerk", "cook", "nurse"} - {BAD["job"]})
    refused("'job'.*stays as it is", freeze=["job"], values={"job": others})
    refused("'age'.*may only decrease", directions={"age": "decrease"}, ranges={"age": high})


def test_values_without_the_one_of_the_row_make_the_feature_change() -> None:
    others = sorted({"clerk", "cook", "nurse"} - {BAD["job"]})
    e = explain(values={"job": others})
    assert e.outcome == "found"
    assert asked_rows(e)["job"].iloc[1:].isin(others).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"ranges": {"age": 30}}, r"ranges\['age'\]: .* got 30"),
        ({"ranges": {"age": (40, 30)}}, r"ranges\['age'\]: .* got 40 and 30"),
        ({"ranges": {"job": ["cook", "clerk"]}}, r"ranges\['job'\]: .*values="),
        ({"values": {"job": "cook"}}, r"values\['job'\]: .* got 'cook'"),
        ({"values": {"job": []}}, r"values\['job'\]"),
        ({"values": {"job": ["pilot"]}}, r"values\['job'\]: 'pilot'.*'clerk'"),
        ({"values": {"age": ["old"]}}, r"values\['age'\]: .*'old'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any], match: str) -> None:
    refused(match, **options)


@pytest.mark.parametrize("answer", [True, [True] * 1000, np.ones(1), ["yes"]])
def test_a_rule_function_returns_one_boolean_per_row(answer: Any) -> None:
    refused("rules: .*boolean", rules=lambda rows: answer)


@pytest.mark.parametrize("rules", [5, [None], "", ["age <"]])
def test_a_rule_is_a_text_or_a_function(rules: Any) -> None:
    refused("rule", rules=rules)


def test_a_rule_function_that_raises_does_so_before_a_row_is_sent() -> None:
    model = Model()
    with pytest.raises(KeyError, match="wage"):
        explain(model, rules=[lambda rows: rows["wage"] > 0])
    assert model.n_rows == 0


def test_a_rule_that_forbids_everything_ends_after_the_factual() -> None:
    e = explain(rules=[lambda rows: np.zeros(len(rows), dtype=bool)])
    assert (e.outcome, e.n_queries) == ("exhausted", 1)


@pytest.mark.parametrize("strategy", ["genetic", Penalty, None])
def test_an_unknown_strategy_is_refused(strategy: Any) -> None:
    refused("strategy: .*'feasible', 'penalty'", strategy=strategy)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 1.5}, "threshold .* got 1.5"),
        ({"threshold": np.nan}, "threshold .* got nan"),
        ({"neighbours": 0}, "neighbours .* got 0"),
        ({"neighbours": 1.5}, "neighbours .* got 1.5"),
    ],
)
def test_plausibility_out_of_range_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Plausibility(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n0": 0}, "n0: .* got 0"),
        ({"sobol": 0}, "sobol: .* got 0"),
        ({"lambda_0": 1.0}, "lambda_0 .* got 1.0 and"),
        ({"lambda_0": 1e16}, "lambda_0 .* got 1e.16 and"),
        ({"lambda_max": np.inf}, "lambda_max: "),
        ({"growth": 1.0}, "growth: .* got 1.0"),
        ({"growth": np.nan}, "growth: .* got nan"),
        ({"epsilon": -1e-3}, "epsilon: .* got -0.001"),
        ({"kernel": "rbf"}, "kernel: .*'matern52'.* got 'rbf'"),
        ({"initial": "uniform"}, "initial: .*'reference'.* got 'uniform'"),
    ],
)
def test_penalty_out_of_range_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Penalty(**settings)


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
