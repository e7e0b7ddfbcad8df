"""From an estimator or a callable to "rows in, labels out"."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from acex.arrays import Rows
from acex.values import is_missing, plain

Label: TypeAlias = Hashable
Predict: TypeAlias = Callable[[Rows], Any]


def as_predict(model: Any) -> Predict:
    """What turns rows into labels: the model's `predict`, or the model itself if it is a function."""
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
        return cast("Predict", predict)
    if callable(model):
        return cast("Predict", model)
    raise TypeError(f"model must have a predict method or be callable, got {type(model).__name__}.")


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
        if is_missing(label) or not isinstance(label, Hashable):
            raise ValueError(f"got {label!r}, which is not a label")
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
