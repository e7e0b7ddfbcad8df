"""From an estimator or a callable to "rows in, labels out", with scores where they are wanted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from acex.arrays import Rows
from acex.errors import ModelFailed
from acex.values import Label, is_missing, plain

Predict: TypeAlias = Callable[[Rows], Any]


@dataclass(frozen=True, eq=False)
class Scored:
    """An answer with the probability of each label: labels of n rows, and probabilities, (n, classes)."""

    labels: Any
    classes: Sequence[Label]
    probabilities: Any


def as_predict(model: Any, scores: bool = False) -> Predict:
    """What turns rows into labels: the model's `predict`, or the model itself if it is a function.

    With scores the answer is `Scored`, from one call a row: `predict_proba` with its likeliest labels, or a function
    that gives a frame of probabilities.
    """
    if inspect.isclass(model):
        raise TypeError(f"model is the class {model.__name__}; pass a fitted {model.__name__}() instead.")
    predict = getattr(model, "predict", None)
    if callable(predict):
        if _is_regressor(model):
            raise TypeError(
                f"{type(model).__name__} is a regressor: its answers are numbers, not labels. Say what "
                f"counts as a decision, such as lambda rows: model.predict(rows) > 0.5."
            )
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)  # before a query is spent on finding out
        return _estimator_scores(model) if scores else cast("Predict", predict)
    if callable(model):
        return _function_scores(model) if scores else cast("Predict", model)
    raise TypeError(f"model must have a predict method or be callable, got {type(model).__name__}.")


def _estimator_scores(model: Any) -> Predict:
    classes = known_labels(model)
    if classes is None or not callable(getattr(model, "predict_proba", None)):
        raise TypeError(
            f"scores=True needs a model with predict_proba and classes_, or a function that gives a DataFrame of "
            f"probabilities with a column for each label; {type(model).__name__} is neither."
        )
    if (decider := _with_a_rule_of_its_own(model)) is not None:
        raise TypeError(
            f"{type(decider).__name__}.predict decides by a rule of its own, and with scores=True the decision is the "
            f"likeliest label of predict_proba: a counterfactual could be none for predict. Leave scores out, or pass "
            f"a function that gives a DataFrame of probabilities in which the likeliest label is the decision you mean."
        )
    return lambda rows: likeliest(classes, model.predict_proba(rows))


# A threshold other than the middle; margins, where probabilities were fitted to them afterwards.
OWN_RULES = {"FixedThresholdClassifier", "TunedThresholdClassifierCV", "SVC", "NuSVC"}


def _with_a_rule_of_its_own(model: Any) -> Any:
    """The estimator that decides, if its `predict` is not the likeliest label of its `predict_proba`; else None."""
    while model is not None:
        if OWN_RULES & {kind.__name__ for kind in type(model).__mro__}:
            return model
        model = _inside(model)
    return None


def _inside(model: Any) -> Any:
    """The model that this one hands its rows on to, be it after changing them; None if it decides by itself."""
    owner = getattr(model.predict, "__self__", model)
    if owner is not model:  # a model from a file
        return owner
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    return getattr(model, "best_estimator_", None)  # of a search over parameters


def likeliest(classes: Sequence[Label], probabilities: Any) -> Scored:
    """The likeliest labels (the first of equals), with the probabilities, (n, classes), that say so."""
    table = np.asarray(probabilities)
    if table.ndim != 2 or table.shape[1] != len(classes):
        raise ModelFailed(
            f"The model gave probabilities of shape {table.shape}: expected a row each, with one for each of the "
            f"{len(classes)} labels."
        )
    return Scored([classes[i] for i in table.argmax(axis=1)], classes, table)


def _function_scores(function: Predict) -> Predict:
    def scored(rows: Rows) -> Scored:
        answer = function(rows)
        if not isinstance(answer, pd.DataFrame) or answer.shape[1] < 2:
            raise ModelFailed(
                f"scores=True needs a DataFrame of probabilities with a column for each label, and the model gave "
                f"{type(answer).__name__}."
            )
        return likeliest(answer.columns.tolist(), answer)

    return scored


def known_labels(model: Any) -> list[Label] | None:
    """The labels the model can give, where it says so (`classes_`); else None."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    try:
        array = np.asarray(classes)
    except ValueError:  # a list for each of several outputs
        return None
    return array.tolist() if array.ndim == 1 else None


def as_scores(scored: Scored, n: int) -> list[list[tuple[Label, float]]]:
    """Pairs of label and probability for each of n rows.

    Raises:
        ValueError: they are not one probability for each row and label.
    """
    table = np.asarray(scored.probabilities, dtype=float)
    if table.shape != (n, len(scored.classes)):
        raise ValueError(f"expected probabilities of shape {(n, len(scored.classes))}, got {table.shape}")
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError(f"expected probabilities from 0 to 1, got {table[~((table >= 0) & (table <= 1))][0]}")
    return [list(zip(scored.classes, row, strict=True)) for row in table.tolist()]


def as_labels(answer: Any, n: int) -> list[Label]:
    """One plain label for each of n rows.

    Raises:
        ValueError: the answer has another length or shape, or holds scores or missing values.
    """
    is_list = isinstance(answer, Sequence) and not isinstance(answer, (str, bytes))
    if not (is_list or hasattr(answer, "__array__")):
        raise ValueError(f"expected {n} labels, got {answer!r}")
    # numpy would turn a NaN or a number among texts into text.
    has_text = is_list and any(isinstance(label, str) for label in answer)
    array = np.asarray(answer, dtype=object if has_text else None)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"expected {n} labels, got an array of shape {array.shape}: these look like probabilities")
    if len(array) != n:
        raise ValueError(f"expected {n} labels, got {len(array)}")
    labels = [plain(label) for label in array.tolist()]
    for label in labels:
        if is_missing(label) or not isinstance(label, (str, bool, int, float)):
            raise ValueError(f"got {label!r}, which is not a label: text, a whole number or a truth value")
        if isinstance(label, float) and not label.is_integer():
            raise ValueError(
                f"got {label!r}, which is a score, not a label; turn scores into labels first, such as "
                f"lambda rows: score(rows) > 0.5"
            )
    return labels


def _is_regressor(model: Any) -> bool:
    try:
        return bool(is_regressor(model))
    except Exception:  # not an estimator of scikit-learn's kind
        return False
