"""From an estimator or a callable to "rows in, labels out", with scores where they are wanted; or to numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.errors import ModelFailed
from acex.models.adapters import Probable, adapted
from acex.models.scores import Scored, likeliest
from acex.values import Label, is_finite, is_fraction, is_missing, is_unicode, listed, plain

Predict: TypeAlias = Callable[[Rows], Any]


def as_predict(model: Any, scores: bool = False) -> Predict:
    """What turns rows into labels: the model's `predict`, or the model itself if it is a function.

    With scores the answer is `Scored`, from one call a row: `predict_proba` with its likeliest labels, or a function
    that gives a frame of probabilities.
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    if inspect.isclass(model):
        raise TypeError(f"model is the class {model.__name__}; pass a fitted {model.__name__}() instead.")
    model = adapted(model)
    predict = getattr(model, "predict", None)
    if callable(predict):
        if (why := no_labels(model)) is not None:
            raise TypeError(why)
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)  # before a query is spent on finding out
        return _estimator_scores(model) if scores else cast("Predict", predict)
    if callable(model):
        return _function_scores(model) if scores else cast("Predict", model)
    raise TypeError(f"model must have a predict method or be callable, got {type(model).__name__}.")


def no_labels(model: Any) -> str | None:
    """Why the model gives numbers and no labels; None where it gives labels, for all that is known."""
    model = adapted(model)
    why: str | None = getattr(model, "no_labels", None)
    if why is None and _is_regressor(model):
        why = (
            f"{type(model).__name__} is a regressor: its answers are numbers, not labels. Say what is wanted of them, "
            f"such as target=acex.AtLeast(0.5)."
        )
    return why


def as_numeric(model: Any) -> Predict:
    """What turns rows into numbers: a regressor's `predict`, or the model itself if it is a function.

    Raises:
        TypeError: the model decides between labels.
    """
    if no_labels(model) is None:
        as_predict(model)  # what is no model, or not fitted, is told there
    model = adapted(model)
    if isinstance(model, Probable):
        raise TypeError(
            f"the model gives the probabilities of {listed(model.classes_)}: say of which label one is wanted, such as "
            f"acex.AtLeast(0.8, label={model.classes_[-1]!r}), with scores=True."
        )
    predict = getattr(model, "predict_numbers", None) or getattr(model, "predict", model)
    return cast("Predict", predict)


def as_numbers(answer: Any, n: int) -> list[Label]:
    """One finite number, a float, for each of n rows.

    Raises:
        ValueError: the answer has another length or shape, or holds something else.
    """
    is_list = isinstance(answer, Sequence) and not isinstance(answer, (str, bytes))
    if not (is_list or hasattr(answer, "__array__")):
        raise ValueError(f"expected {n} numbers, got {answer!r}")
    array = np.asarray(answer, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(f"expected {n} numbers, got an array of shape {array.shape}")
    numbers = [plain(number) for number in array.tolist()]
    for number in numbers:
        if isinstance(number, bool) or not is_finite(number):
            raise ValueError(f"got {number!r}, which is not a finite number, and the target is about a number")
    return [float(number) for number in numbers]


def has_fractions(answers: Any) -> bool:
    """Is one of these, answers of whatever kind, a number that is no label?"""
    return np.ndim(answers) == 1 and any(is_fraction(plain(answer)) for answer in answers)


def _estimator_scores(model: Any) -> Predict:
    if callable(together := getattr(model, "predict_scored", None)):
        return cast("Predict", together)
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
        if OWN_RULES & {kind.__name__ for kind in type(model).__mro__} or _has_moved_threshold(model):
            return model
        model = _inside(model)
    return None


def _has_moved_threshold(model: Any) -> bool:
    """Of CatBoost's classifiers: does it decide elsewhere than in the middle?"""
    threshold = getattr(model, "get_probability_threshold", None)
    return callable(threshold) and len(model.classes_) == 2 and threshold() != 0.5


def _inside(model: Any) -> Any:
    """The model that this one hands its rows on to, be it after changing them; None if it decides by itself."""
    owner = getattr(model.predict, "__self__", model)
    if owner is not model:  # a model from a file
        return owner
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if "Pipeline" in kinds:
        return model.steps[-1][1]
    if "FrozenEstimator" in kinds:
        return model.estimator
    return getattr(model, "best_estimator_", None)  # of a search over parameters


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
    classes = getattr(adapted(model), "classes_", None)
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
        what = "probabilities" if array.dtype.kind == "f" else "several labels a row"
        raise ValueError(f"expected {n} labels, got an array of shape {array.shape}: these look like {what}")
    if len(array) != n:
        raise ValueError(f"expected {n} labels, got {len(array)}")
    labels = [plain(label) for label in array.tolist()]
    for label in labels:
        if is_missing(label) or not isinstance(label, (str, bool, int, float)):
            raise ValueError(f"got {label!r}, which is not a label: text, a whole number or a truth value")
        if isinstance(label, str) and not is_unicode(label):
            raise ValueError(f"got {label!r}, which is not a label: half of a character cannot be written down")
        if is_fraction(label):
            raise ValueError(
                f"got {label!r}, which is a score, not a label; say what is wanted of it, such as "
                f"target=acex.AtLeast(0.5), or turn scores into labels first: lambda rows: score(rows) > 0.5"
            )
    return labels


# -- labels and words ------------------------------------------------------------------------------------


def refuse_lookalike(label: Label, wanted: Iterable[Label]) -> None:
    """Raise when the model's labels are of another type than those wanted, and only look like them: "1" is not 1.

    One label is enough to tell: a model that says False never says "True".

    Raises:
        ValueError: with what to write instead.
    """
    for word in wanted:
        if isinstance(word, str) == isinstance(label, str):
            continue
        text, other = (word, label) if isinstance(word, str) else (label, word)
        look = _look(str(text))
        if look is not None and look is _look(str(plain(other))):
            kind = {str: "texts", bool: "truth values"}.get(type(plain(label)), "numbers")
            raise ValueError(
                f"target {word!r} is never met: the model gives {kind} such as {label!r}, which only look the same. "
                f"Write {_as_type_of(label, word)!r} instead."
            )


def _look(text: str) -> type | None:
    """What a text could be taken for: a truth value, a number, or nothing but a text."""
    if text.strip().casefold() in ("true", "false"):
        return bool
    try:
        return float if np.isfinite(float(text)) else None
    except ValueError:
        return None


def _as_type_of(label: Label, word: Label) -> Label:
    """The word as a label of the same type as this one."""
    if isinstance(label, str):
        return str(plain(word))
    if isinstance(plain(label), bool):
        return str(word).strip().casefold() == "true"
    number = float(str(word))
    return int(number) if number.is_integer() else number


def class_words(class_names: Any, classes: Sequence[Label] | None) -> dict[Label, str]:
    """What each label is called: from a mapping of labels to words, or a list in the order of the model's `classes`.

    Raises:
        ValueError: a label or a word is missing or there twice, or the labels are not the model's.
    """
    if isinstance(class_names, Mapping):
        words = dict(class_names)
    elif classes is None:
        raise ValueError(
            "class_names: this model does not say which labels it gives (classes_), so that a list has no order: write "
            "a mapping, such as {0: 'rejected', 1: 'approved'}."
        )
    elif isinstance(class_names, (str, bytes)) or len(class_names) != len(classes):
        raise ValueError(f"class_names must have a word for each of the labels {listed(classes)}, got {class_names!r}.")
    else:
        words = dict(zip(classes, class_names, strict=True))
    if foreign := [word for word in words.values() if not isinstance(word, str) or not word.strip()]:
        raise ValueError(f"class_names: words must be texts, got {foreign[0]!r}.")
    if len(set(words.values())) < len(words):
        raise ValueError(f"class_names: each label needs a word of its own, got {listed(words.values())}.")
    if classes is not None and (missing := [label for label in classes if label not in words]):
        raise ValueError(f"class_names has no word for {listed(missing)}; the labels are {listed(classes)}.")
    if classes is not None and (extra := [label for label in words if label not in classes]):
        raise ValueError(f"class_names: {extra[0]!r} is not a label of the model, which gives {listed(classes)}.")
    return words


def unworded(labels: Any, by_word: Mapping[Label, Label]) -> Any:
    """Labels in the model's own form, where some are said by their class names."""
    if labels is None or not by_word:
        return labels
    return [by_word.get(label, label) if isinstance(label, str) else label for label in labels]


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except Exception:  # not an estimator of scikit-learn's kind
        return False
