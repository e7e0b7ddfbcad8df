"""`acex.Model`: what the engine needs to know about a model, checked where it enters."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import acex
from acex import HttpModel, Model, ModelFailed

X = np.array([[0.0], [1.0], [2.0], [3.0]])
CLASSIFIER = LogisticRegression().fit(X, [0, 0, 1, 1])
REGRESSOR = LinearRegression().fit(X, [0.0, 0.5, 1.0, 1.5])


def above(rows: Any) -> Any:
    return rows[:, 0] > 1


def http(**settings: Any) -> HttpModel:
    return HttpModel("http://host/score", protocol="json", request="$rows", labels="labels", **settings)


class NamedModel:
    def __init__(self, model_id: Any) -> None:
        self.model_id = model_id

    def predict(self, rows: Any) -> list[str]:
        return ["yes"] * len(rows)


def test_of_wraps_once() -> None:
    model = Model.of(above)
    assert isinstance(model, Model) and Model.of(model) is model
    assert acex.Model is Model
    with pytest.raises(TypeError, match=r"already an acex\.Model"):
        Model(model)


# -- identity ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predict", "settings", "key"),
    [
        (above, {"name": "loans"}, "loans"),
        (above, {"name": "loans", "version": "7"}, "loans@7"),
        (above, {"name": "loans@home"}, "loans@home"),
        (NamedModel("sha256:ab"), {}, "sha256:ab"),
        (NamedModel("sha256:ab"), {"version": "2"}, "sha256:ab@2"),
        (NamedModel("sha256:ab"), {"name": "loans"}, "loans"),
        (http(version="7"), {}, http(version="7").model_id),
        (http(version="7"), {"name": "loans"}, "loans@7"),
        (http(), {"version": "7"}, f"{http().model_id}@7"),
    ],
)
def test_the_ledger_key_is_the_name_or_name_and_version(predict: Any, settings: Any, key: str) -> None:
    assert Model(predict, **settings).identity(is_shared=True) == key


def test_only_a_shared_ledger_needs_a_name() -> None:
    assert Model(above).identity(is_shared=False) == "model"
    with pytest.raises(ValueError, match="needs a name for this function"):
        Model(above, version="7").identity(is_shared=True)


@pytest.mark.parametrize(
    ("predict", "settings", "error", "match"),
    [
        (above, {"name": "a@b", "version": "1"}, ValueError, "'@'"),
        (NamedModel("a@b"), {"version": "1"}, ValueError, "'@'"),
        (above, {"name": 3}, TypeError, "name must be text"),
        (above, {"name": "a", "version": 3}, TypeError, "version must be text"),
        (above, {"name": " "}, ValueError, "name must not be empty"),
        (NamedModel(7), {}, TypeError, "name must be text"),
        (above, {"timeout": 0}, ValueError, "timeout"),
        (above, {"timeout": float("inf")}, ValueError, "timeout"),
        (above, {"timeout": "10"}, ValueError, "timeout"),
        (above, {"noise": 0.5}, ValueError, "noise"),
        (above, {"noise": -0.1}, ValueError, "noise"),
        (above, {"noise": "some"}, ValueError, "noise"),
        (above, {"noise": 0.1, "confirm": 0}, ValueError, "confirm"),
        (CLASSIFIER, {"noise": 0.1, "scores": True}, ValueError, "noise .*scores"),
        (above, {"class_names": ["no", "yes"]}, ValueError, "class_names"),
        (CLASSIFIER, {"class_names": {0: "no"}}, ValueError, "class_names"),
        (REGRESSOR, {"scores": True}, TypeError, "scores"),
        (NamedModel("a"), {"scores": True}, TypeError, "scores"),
        (LogisticRegression, {}, TypeError, "LogisticRegression"),
        (3, {}, TypeError, "callable"),
        (http(version="7"), {"version": "7"}, ValueError, "version is set in Model .* and in HttpModel"),
        (http(timeout=5.0), {"timeout": 9.0}, ValueError, "timeout is set in Model .* and in HttpModel"),
    ],
)
def test_wrong_settings_are_refused(predict: Any, settings: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        Model(predict, **settings)


def test_a_field_may_be_set_in_either_place() -> None:
    assert Model(http(), timeout=9.0).timeout == 9.0
    assert Model(http(timeout=5.0)).timeout is None


# -- what is known about it ----------------------------------------------------------------------------------


def test_labels_and_class_names() -> None:
    model = Model(CLASSIFIER, class_names={0: "rejected", 1: "approved"})
    assert model.labels == [0, 1] and model.no_labels is None
    assert model.class_names == {0: "rejected", 1: "approved"}
    assert model.to_labels(["approved", 0]) == [1, 0] and model.to_labels(None) is None
    assert Model(above).labels is None and Model(above).class_names == {}


def test_class_names_from_numpy_become_plain() -> None:
    names = np.array(["malignant", "benign"])
    model = Model(CLASSIFIER, class_names={np.int64(0): names[0], np.int64(1): names[1]})
    assert repr(model.class_names) == "{0: 'malignant', 1: 'benign'}"
    assert repr(Model(http(classes=list(names))).labels) == "['malignant', 'benign']"


def test_noise_is_read_once() -> None:
    voting = Model(above, noise=0.1, confirm=2).voting
    assert voting is not None and (voting.share, voting.confirm) == (0.1, 2)
    assert Model(above).voting is None


def test_answers_given_elsewhere_are_read() -> None:
    model = Model(CLASSIFIER, class_names={0: "no", 1: "yes"})
    assert model.read(["yes", 0], 2) == [1, 0]
    assert Model(above).read([0.5, 1], 2) == [0.5, 1.0]
    assert Model(REGRESSOR).read([1, 2], 2) == [1.0, 2.0]
    with pytest.raises(ValueError, match="'maybe' is not a label"):
        model.read(["maybe"], 1)
    with pytest.raises(ValueError, match="expected 2 labels"):
        model.read(["yes"], 2)


# -- queries -------------------------------------------------------------------------------------------------


def test_send_returns_labels_numbers_or_scores() -> None:
    assert Model(above).send(X) == ([False, False, True, True], None)
    assert Model(CLASSIFIER).send(X[:1]) == ([0], None)
    assert Model(REGRESSOR).send(X[:2], numbers=True)[0] == pytest.approx([0.0, 0.5])
    labels, scores = Model(CLASSIFIER, scores=True).send(X[:1])
    assert labels == [0] and scores is not None
    assert [label for label, _ in scores[0]] == [0, 1] and sum(p for _, p in scores[0]) == pytest.approx(1)


def broken(rows: Any) -> Any:
    raise KeyError("income")


@pytest.mark.parametrize(
    ("predict", "match"),
    [
        (broken, "The model raised KeyError: 'income'"),
        (lambda rows: ["yes"], "one label per row: expected 4 labels, got 1"),
        (lambda rows: ["x" * 1_001] * 4, "1,001 characters"),
        (lambda rows: "yes", "function of one row"),
    ],
)
def test_a_failed_query_says_why(predict: Any, match: str) -> None:
    with pytest.raises(ModelFailed, match=match):
        Model(predict).send(X)


class Undecided(NamedModel):
    classes_ = ("yes", "no")

    def predict(self, rows: Any) -> list[str]:
        return ["maybe"] * len(rows)


def test_an_answer_that_is_not_a_label_of_the_model_is_a_failure() -> None:
    with pytest.raises(ModelFailed, match="'maybe' is not a label of the model; its labels are 'yes', 'no'") as caught:
        Model(Undecided("m")).send(X)
    assert caught.value.charged


def test_without_a_model_nothing_is_sent() -> None:
    model = Model(None, name="assay", class_names={0: "no", 1: "yes"})
    assert model.identity(is_shared=True) == "assay" and model.read(["yes"], 1) == [1]
    with pytest.raises(ModelFailed, match="no model") as caught:
        model.send(X)
    assert not caught.value.charged


@pytest.mark.parametrize("model", [Model(above, name="a"), Model(CLASSIFIER, scores=True), Model(http()), Model(None)])
def test_a_model_can_be_pickled(model: Model) -> None:
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.name, copy.labels, copy.kind) == (model.name, model.labels, model.kind)
    if model.scores or model.name == "a":
        assert copy.send(X[:1]) == model.send(X[:1])


def test_a_model_that_sorts_its_argument_in_place_does_not_change_which_row_an_answer_belongs_to() -> None:
    def predict(rows: pd.DataFrame) -> Any:
        in_order = rows.sort_values("a")
        rows.index = in_order.index
        rows["a"] = in_order["a"]
        return rows["a"] > 3

    rows = pd.DataFrame({"a": [5, 1, 4, 2]})
    assert Model(predict).send(rows)[0] == [True, False, True, False]
    assert rows["a"].tolist() == [5, 1, 4, 2]


def test_what_is_masked_in_an_answer_is_no_label() -> None:
    model = Model(lambda rows: np.ma.masked_array([1, 0], mask=[False, True]))
    with pytest.raises(ModelFailed, match="got None, which is not a label"):
        model.send(pd.DataFrame({"a": [1, 2]}))
