"""From an estimator or a callable to "rows in, labels out", with scores where they are wanted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.errors import ModelFailed
from acex.values import Label, is_missing, is_unicode, plain

Predict: TypeAlias = Callable[[Rows], Any]


@dataclass(frozen=True, eq=False)
class Scored:
    """An answer with the probability of each label: labels of n rows, and probabilities, (n, classes)."""

    labels: Any
    classes: Sequence[Label]
    probabilities: Any


def as_predict(model: Any, scores: bool = False) -> Predict:
    """What turns rows into labels: the model's `predict`, or the model itself if it is a function.

    With scores the answer is `Scored`: the labels of `predict` with `predict_proba`, or the likeliest labels of a
    function that gives a frame of probabilities.
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

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
    return lambda rows: Scored(model.predict(rows), classes, model.predict_proba(rows))


def _function_scores(function: Predict) -> Predict:
    def scored(rows: Rows) -> Scored:
        answer = function(rows)
        if not isinstance(answer, pd.DataFrame) or answer.shape[1] < 2:
            raise ModelFailed(
                f"scores=True needs a DataFrame of probabilities with a column for each label, and the model gave "
                f"{type(answer).__name__}."
            )
        return Scored(answer.columns[answer.to_numpy().argmax(axis=1)], answer.columns.tolist(), answer.to_numpy())

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
        if isinstance(label, str) and not is_unicode(label):
            raise ValueError(f"got {label!r}, which is not a label: half of a character cannot be written down")
        if isinstance(label, float) and not label.is_integer():
            raise ValueError(
                f"got {label!r}, which is a score, not a label; turn scores into labels first, such as "
                f"lambda rows: score(rows) > 0.5"
            )
    return labels


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except Exception:  # not an estimator of scikit-learn's kind
        return False
