"""From whatever a user has to "rows in, labels out"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import acex
from acex import ModelFailed
from acex.models.adapters import as_predict, known_labels
from acex.models.labels import as_labels, as_scores, checked_class_names, refuse_other_kind

X = np.array([[0.0], [1.0], [2.0], [3.0]])


class Remote:
    """Somebody else's model: no scikit-learn in sight."""

    def predict(self, rows: Any) -> list[str]:
        return ["yes"] * len(rows)


def test_an_estimator_is_asked_through_predict() -> None:
    model = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    assert as_predict(model)(X).tolist() == ["no", "no", "yes", "yes"]


def test_a_function_is_asked_itself() -> None:
    def model(rows: Any) -> Any:
        return rows[:, 0] > 1

    assert as_predict(model) is model


def test_anything_with_predict_is_a_model() -> None:
    assert as_predict(Remote())(X) == ["yes"] * 4
    assert as_predict(IsolationForest().fit(X))(X[:1]).shape == (1,)


@pytest.mark.parametrize("model", [LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())])
def test_a_regressor_is_refused_with_advice(model: Any) -> None:
    with pytest.raises(TypeError, match=r"(LinearRegression|Pipeline|Regressor\w*) .*not labels"):
        as_predict(model)


def test_a_class_is_not_an_estimator() -> None:
    with pytest.raises(TypeError, match="LogisticRegression"):
        as_predict(LogisticRegression)


@pytest.mark.parametrize("model", [None, 3, "model.pkl", np.zeros(3)])
def test_what_cannot_be_asked_is_no_model(model: Any) -> None:
    with pytest.raises(TypeError, match=f"must have a predict method or be callable, got {type(model).__name__}"):
        as_predict(model)


def test_labels_are_known_where_the_model_tells() -> None:
    model = DummyClassifier().fit(X, [1, 2, 2, 3])
    assert known_labels(model) == [1, 2, 3]
    assert known_labels(make_pipeline(StandardScaler(), model).fit(X, ["a", "b", "b", "b"])) == ["a", "b"]


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        GridSearchCV(LogisticRegression(), {"C": [1.0]}),
        make_pipeline(StandardScaler(), LogisticRegression()),
        Remote(),
        len,
    ],
)
def test_labels_are_unknown_before_the_fit_or_without_classes(model: Any) -> None:
    assert known_labels(model) is None


# -- scores ------------------------------------------------------------------------------------------------


class Billed:
    """A client of somebody's service: each row of each call is on the bill."""

    def __init__(self, price_list: LogisticRegression) -> None:
        self.inner, self.classes_, self.billed = price_list, price_list.classes_, 0

    def predict(self, rows: Any) -> Any:
        self.billed += len(rows)
        return self.inner.predict(rows)

    def predict_proba(self, rows: Any) -> Any:
        self.billed += len(rows)
        return self.inner.predict_proba(rows)


def test_with_scores_each_row_is_sent_once() -> None:
    client = Billed(LogisticRegression().fit(X, ["no", "no", "yes", "yes"]))
    e = acex.explain(acex.Model(client, scores=True), X[0], data=X, target="yes", budget=8)
    assert e.outcome == "found"
    assert client.billed == e.n_queries <= 8
    assert client.predict([e.counterfactual]).tolist() == ["yes"]


def test_with_scores_labels_are_the_likeliest_of_the_probabilities() -> None:
    model = LogisticRegression().fit(X, ["a", "b", "c", "c"])
    scored = as_predict(model, scores=True)(X)
    assert list(scored.labels) == model.predict(X).tolist()
    assert as_scores(scored, 4)[0] == list(zip("abc", model.predict_proba(X)[0].tolist(), strict=True))


@pytest.mark.parametrize(
    "model",
    [
        FixedThresholdClassifier(LogisticRegression(), threshold=0.9),
        TunedThresholdClassifierCV(LogisticRegression(), cv=2),
        make_pipeline(StandardScaler(), FixedThresholdClassifier(LogisticRegression(), threshold=0.9)),
        GridSearchCV(FixedThresholdClassifier(LogisticRegression()), {"threshold": [0.2, 0.9]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_decision_that_is_not_the_likeliest_label_is_not_passed_over(model: Any) -> None:
    rows, outcome = np.repeat(X, 5, axis=0), ["no", "no", "yes", "yes"] * 5
    model.fit(rows, np.repeat(outcome[:4], 5))
    for asked in (model, FrozenEstimator(model)):
        with pytest.raises(TypeError, match="ThresholdClassifier"):
            as_predict(asked, scores=True)
    assert as_predict(model)(X).tolist() == model.predict(X).tolist()  # without scores it is asked as it is


def test_probabilities_fitted_to_margins_do_not_decide_for_a_support_vector_machine() -> None:
    with pytest.raises(TypeError, match=r"WithProbabilities\.predict"):
        as_predict(WithProbabilities().fit(X, [0, 0, 1, 1]), scores=True)


class WithProbabilities(SVC):  # type: ignore[misc]
    """As `SVC(probability=True)`, which comes with warnings of its own."""

    def predict_proba(self, rows: Any) -> Any:
        return np.full((len(rows), 2), 0.5)


@pytest.mark.parametrize("answer", [[[0.2, 0.3, 0.5]], [0.5, 0.5], [[[0.5, 0.5]]]])
def test_probabilities_of_another_shape_are_none(answer: Any) -> None:
    client = Billed(LogisticRegression().fit(X, ["no", "no", "yes", "yes"]))
    client.predict_proba = lambda rows: np.array(answer)  # type: ignore[method-assign]
    with pytest.raises(ModelFailed, match=r"probabilities of shape \(.*labels"):
        as_predict(client, scores=True)(X[:1])


# -- labels ------------------------------------------------------------------------------------------------


def test_several_outputs_at_once_have_no_labels() -> None:
    several = RandomForestClassifier(2).fit(X, [[0, 0], [1, 1], [0, 2], [1, 2]])
    assert known_labels(several) is None
    with pytest.raises(ValueError, match=r"4 labels, got .*\(4, 2\)"):
        as_labels(several.predict(X), 4)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([0, 1], dtype=np.int8), [0, 1]),
        (np.array([0.0, 1.0], dtype=np.float32), [0.0, 1.0]),
        (np.array([[0], [1]]), [0, 1]),
        ([True, False], [True, False]),
        ([np.str_("a"), 1], ["a", 1]),
        (pd.Series(["a", "b"], index=[5, 7]), ["a", "b"]),
        (pd.Series(pd.Categorical(["a", "b"])), ["a", "b"]),
        (pd.Series([1, 2], dtype="Int64"), [1, 2]),
        (pd.DataFrame({"label": ["a", "b"]}), ["a", "b"]),
        (pd.Index(["a", "b"]), ["a", "b"]),
    ],
)
def test_labels_of_any_make_become_plain(answer: Any, expected: list[Any]) -> None:
    labels = as_labels(answer, 2)
    assert labels == expected
    assert not any(isinstance(label, np.generic) for label in labels)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (["a"], "expected 2 labels, got 1"),
        ("ab", "expected 2 labels, got 'ab'"),
        (1, "expected 2 labels, got 1"),
        (None, "expected 2 labels, got None"),
        ({"a", "b"}, "expected 2 labels, got {"),
        ((label for label in "ab"), "expected 2 labels, got <generator"),
        (np.array(1), r"expected 2 labels, got an array of shape \(\)"),
        ([[0.2, 0.8], [0.6, 0.4]], r"array of shape \(2, 2\), such as probabilities"),
        ([0.2, 0.8], r"got 0.2, which is a score, not a label.*lambda rows: score\(rows\) > 0.5"),
        (pd.Series([0.2, 1.0], dtype=object), "got 0.2, which is a score"),
        ([[0.2], [0.8]], "got 0.2, which is a score"),
        ([1.0, np.inf], "got inf, which is a score"),
        ([1.0, np.nan], "got nan, which is not a label"),
        (["a", None], "got None, which is not a label"),
        (["a", ""], "got '', which is not a label"),
        (["a", np.nan], "got nan, which is not a label"),
        (pd.Series([True, None], dtype="boolean"), "got <NA>, which is not a label"),
        (pd.Series([{}, {}]), "got {}, which is not a label"),
        (["a", "\ud800"], r"got '\\ud800', which is not a label: .*surrogate"),
    ],
)
def test_what_is_not_one_label_a_row_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_labels(answer, 2)


# -- a function of one row -----------------------------------------------------------------------------------

FRAME = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0], "job": ["a", "b", "a", "b"]})


def by_income(row: Any) -> str:
    return "yes" if row["income"] > 2 else "no"


def by_job(row: Any) -> str:
    return "yes" if row["job"].startswith("a") else "no"


def by_both(row: Any) -> bool:
    return bool(row["income"] > 2 and row["job"] == "a")


def always(row: Any) -> str:
    return "yes"


def by_number(row: Any) -> bool:
    return float(row["income"]) > 2


def as_key(row: Any) -> str:
    return {"a": "yes", "b": "no"}[row["job"]]


@pytest.mark.parametrize("function", [by_income, by_job, by_both, by_number, as_key, always])
def test_a_function_of_one_row_is_told_that_it_gets_a_table(function: Any) -> None:
    with pytest.raises(ModelFailed, match=r"a function of one row"):
        acex.explain(function, FRAME.iloc[0], data=FRAME)
    explained = acex.explain(lambda rows: [function(row) for _, row in rows.iterrows()], FRAME.iloc[0], data=FRAME)
    assert explained.n_queries  # the advice is good


def test_a_function_of_one_row_of_an_array_is_told_too() -> None:
    rows = FRAME[["income", "income"]].to_numpy()
    with pytest.raises(ModelFailed, match="arrays"):
        acex.explain(lambda row: "yes" if row[0] > 2 else "no", rows[0], data=rows)


@pytest.mark.parametrize(
    "constraint", [by_both, lambda row: row["income"] > 1 or row["job"] == "b", lambda row: row["income"].item() > -1]
)
def test_a_constraint_of_one_row_is_told_before_anything_is_asked(constraint: Any) -> None:
    asked: list[Any] = []
    with pytest.raises(ValueError, match=r"rules: .*function of one row"):
        acex.explain(asked.append, FRAME.iloc[0], data=FRAME, rules=[constraint])
    assert asked == []


def test_other_failures_get_no_such_advice() -> None:
    for function in (lambda rows: rows["incme"], lambda rows: None, lambda rows: ["yes"] * 99):
        with pytest.raises(ModelFailed) as caught:
            acex.explain(function, FRAME.iloc[0], data=FRAME)
        assert "one row" not in str(caught.value)


# -- labels of another type ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "others"),
    [
        (False, ["True"]),
        ("False", [True]),
        (0, ["1"]),
        ("0", [1, 2]),
        (np.bool_(False), ["TRUE"]),
        (0, ["yes"]),
        (False, [7]),
    ],
)
def test_labels_of_another_type_are_refused_at_the_first_answer(label: Any, others: list[Any]) -> None:
    with pytest.raises(ValueError, match="target"):
        refuse_other_kind("target", others, label)


@pytest.mark.parametrize(
    ("label", "others"),
    [(False, [True]), (0, [True]), (1, [0.0]), ("no", ["yes"]), ("no", ["yes", 1]), ("1", ["2"]), (2, ["a", 1])],
)
def test_labels_of_the_same_type_are_accepted(label: Any, others: list[Any]) -> None:
    refuse_other_kind("target", others, label)


# -- names of labels ------------------------------------------------------------------------------------------


def test_labels_have_names() -> None:
    assert checked_class_names({0: "no", 1: "yes"}, [0, 1]) == {0: "no", 1: "yes"}
    assert checked_class_names({0: "no"}, None) == {0: "no"}


@pytest.mark.parametrize(
    ("class_names", "classes", "message"),
    [
        (["no", "yes"], [0, 1], "mapping"),
        ("no", [0, 1], "mapping"),
        ({0: "no"}, [0, 1], "labels 0, 1"),
        ({0: "no", 1: "no"}, [0, 1], "the same name: 'no', 'no'"),
        ({0: "no", 1: "yes", 2: "?"}, [0, 1], "labels 0, 1"),
        ({0: "no", 1: 3}, [0, 1], "names must be text, got 3"),
        ({0: "no", 1: " "}, None, "names must be text, got ' '"),
    ],
)
def test_names_that_do_not_fit_the_labels_are_refused(class_names: Any, classes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_class_names(class_names, classes)


# -- bound methods -------------------------------------------------------------------------------------------


def test_the_method_of_an_estimator_stands_for_it() -> None:
    model = LogisticRegression().fit(X, ["no", "no", "yes", "yes"])
    best = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, ["no", "yes", "no", "yes"])
    for owner in (model, make_pipeline(StandardScaler(), model).fit(X, ["no", "no", "yes", "yes"]), best):
        for method in (owner.predict, owner.predict_proba):
            assert known_labels(method) == ["no", "yes"]
            assert as_labels(as_predict(method)(X), 4) == owner.predict(X).tolist()
            scored = as_predict(method, scores=True)(X)
            np.testing.assert_allclose(scored.probabilities, owner.predict_proba(X))
    e = acex.explain(model.predict_proba, X[0], data=X, target="yes", budget=8)
    assert e.label_after == "yes"


def test_the_method_of_a_regressor_or_of_nothing_fitted_is_refused_like_its_owner() -> None:
    with pytest.raises(TypeError, match="LinearRegression is a regressor"):
        as_predict(LinearRegression().predict)
    with pytest.raises(NotFittedError):
        as_predict(LogisticRegression().predict)
    with pytest.raises(TypeError, match="predict_proba"):
        as_predict(LogisticRegression().predict_proba)


def test_other_methods_are_functions() -> None:
    assert as_predict("x".join)(["a", "b"]) == "axb"
    assert known_labels("x".join) is None
