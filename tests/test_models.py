"""From whatever a user has to "rows in, labels out"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from acex.models.labels import as_labels, as_predict, known_labels

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


def test_anything_with_predict_will_do() -> None:
    assert as_predict(Remote())(X) == ["yes"] * 4
    assert as_predict(IsolationForest().fit(X))(X[:1]).shape == (1,)


@pytest.mark.parametrize("model", [LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())])
def test_a_regressor_is_refused_with_advice(model: Any) -> None:
    with pytest.raises(TypeError, match=r"is a regressor: .* not labels\. Say what counts as a decision"):
        as_predict(model)


def test_a_class_is_not_an_estimator() -> None:
    with pytest.raises(TypeError, match=r"model is the class LogisticRegression; pass a fitted"):
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


def test_several_outputs_at_once_have_no_labels() -> None:
    several = RandomForestClassifier(2).fit(X, [[0, 0], [1, 1], [0, 2], [1, 2]])
    assert known_labels(several) is None
    with pytest.raises(ValueError, match=r"expected 4 labels, got an array of shape \(4, 2\)"):
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
        ([[0.2, 0.8], [0.6, 0.4]], r"array of shape \(2, 2\): these look like probabilities"),
        ([0.2, 0.8], r"got 0.2, which is a score, not a label.*lambda rows: score\(rows\) > 0.5"),
        (pd.Series([0.2, 1.0], dtype=object), "got 0.2, which is a score"),
        ([[0.2], [0.8]], "got 0.2, which is a score"),
        ([1.0, np.inf], "got inf, which is a score"),
        ([1.0, np.nan], "got nan, which is not a label"),
        (["a", None], "got None, which is not a label"),
        (["a", np.nan], "got nan, which is not a label"),
        (pd.Series([True, None], dtype="boolean"), "got <NA>, which is not a label"),
        (pd.Series([{}, {}]), "got {}, which is not a label"),
        (["a", "\ud800"], r"got '\\ud800', which is not a label: half of a character"),
    ],
)
def test_what_is_not_one_label_a_row_is_refused(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_labels(answer, 2)
