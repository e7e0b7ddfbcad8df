"""Check the answers of models (labels, numbers, probabilities) and convert them to plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from acex.arrays import Rows
from acex.errors import ModelFailed
from acex.values import Label, is_finite, is_fraction, is_missing, is_unicode, listed, plain

Predict: TypeAlias = Callable[[Rows], Any]
LONGEST_LABEL = 1_000  # characters
LONGEST_QUOTE = 200  # characters of an invalid answer that a message shows


# -- labels and numbers ----------------------------------------------------------------------------------


def as_labels(answer: Any, n: int, classes: Sequence[Label] | None = None) -> list[Label]:
    """One plain label for each of n rows.

    Args:
        classes: the labels that the model can return; None if unknown.

    Raises:
        ValueError: the answer has the wrong length or shape, or contains scores, missing values, empty or overlong
            texts, or labels other than the classes.
    """
    labels = _one_per_row(answer, n, "labels")
    for label in labels:
        if is_missing(label) or not isinstance(label, (str, bool, int, float)) or label == "":
            raise ValueError(f"got {_quoted(label)}, which is not a label: text, a whole number or a Boolean")
        if isinstance(label, str) and len(label) > LONGEST_LABEL:
            raise ValueError(f"got a label of {len(label):,} characters; at most {LONGEST_LABEL:,} are allowed")
        if isinstance(label, str) and not is_unicode(label):
            raise ValueError(f"got {label!r}, which is not a label: it contains an unpaired surrogate")
        if is_fraction(label):
            raise ValueError(
                f"got {label!r}, which is a score, not a label; use a target such as target=acex.AtLeast(0.5) (in the "
                f"shell --target-range 0.5..), or turn scores into labels first: lambda rows: score(rows) > 0.5"
            )
        if classes is not None and label not in classes:
            raise ValueError(f"{_quoted(label)} is not a label of the model; its labels are {listed(classes)}")
    return labels


def as_numbers(answer: Any, n: int) -> list[Label]:
    """One finite float for each of n rows.

    Raises:
        ValueError: the answer has the wrong length or shape, or contains anything but finite numbers.
    """
    numbers = _one_per_row(answer, n, "numbers")
    for number in numbers:
        if isinstance(number, bool) or not is_finite(number):
            raise ValueError(f"got {_quoted(number)}, which is not a finite number, and the target is a range")
    return [float(number) for number in numbers]


def has_fractions(answers: Any) -> bool:
    """Whether any of these answers is a number with a fraction, and therefore not a label."""
    return np.ndim(answers) == 1 and any(is_fraction(plain(answer)) and not is_missing(answer) for answer in answers)


def _one_per_row(answer: Any, n: int, what: str) -> list[Any]:
    is_list = isinstance(answer, Sequence) and not isinstance(answer, (str, bytes))
    if isinstance(answer, np.ma.MaskedArray):
        hidden, answer = np.ma.getmaskarray(answer), np.array(answer.data, dtype=object)
        answer[hidden] = None  # masked values count as missing
    if not (is_list or hasattr(answer, "__array__")):
        raise ValueError(f"expected {n} {what}, got {_quoted(answer)}")
    # Without dtype=object, numpy would convert the numbers and NaN in a mixed list to text.
    array = np.asarray(answer, dtype=object if is_list else None)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"expected {n} {what}, got an array of shape {array.shape}, such as probabilities")
    if len(array) != n:
        raise ValueError(f"expected {n} {what}, got {len(array)}")
    return [plain(value) for value in array.tolist()]


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."


# -- probabilities ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scored:
    """Labels of n rows with the probability of each class, (n, classes)."""

    labels: Any
    classes: Sequence[Label]
    probabilities: Any


def likeliest(classes: Sequence[Label] | None, probabilities: Any) -> Scored:
    """The likeliest label of each row (the first one on ties), with the probabilities, (n, classes).

    Without classes, the labels are 0, 1, ..., one per column.
    """
    table = np.asarray(probabilities)
    if classes is None and table.ndim == 2:
        classes = range(table.shape[1])
    if classes is None or table.ndim != 2 or table.shape[1] != len(classes):
        raise ModelFailed(
            f"The model returned probabilities of shape {table.shape}: expected one row per row of data and one column "
            f"for each of its labels."
        )
    return Scored([classes[i] for i in table.argmax(axis=1)], classes, table)


def as_scores(scored: Scored, n: int) -> list[list[tuple[Label, float]]]:
    """Pairs of label and probability for each of n rows.

    Raises:
        ValueError: the probabilities have the wrong shape or are not between 0 and 1, or a class is not a label.
    """
    classes = as_labels(list(scored.classes), len(scored.classes))
    table = np.asarray(scored.probabilities, dtype=float)
    if table.shape != (n, len(classes)):
        raise ValueError(f"expected probabilities of shape {(n, len(classes))}, got {table.shape}")
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError(f"expected probabilities from 0 to 1, got {table[~((table >= 0) & (table <= 1))][0]}")
    return [list(zip(classes, row, strict=True)) for row in table.tolist()]


# -- labels of another type, and class names -------------------------------------------------------------


def refuse_other_kind(what: str, labels: Sequence[Label], label: Label) -> None:
    """Raise if these labels are texts but the model returns numbers or Booleans, or vice versa: "1" is not 1.

    One answer of the model, `label`, is enough: a model that returns False never returns "True" or 7.
    """
    possible = (
        isinstance(other, str) == isinstance(label, str) and (not isinstance(label, bool) or other in (False, True))
        for other in labels
    )
    if labels and not any(possible):
        raise ValueError(f"{what} {labels[0]!r} is of another type than the model's labels, such as {label!r}.")


def checked_class_names(class_names: Any, classes: Sequence[Label] | None) -> dict[Label, str]:
    """The name of each label, checked against the model's labels if these are known.

    Raises:
        ValueError: a name is missing, repeated or not text, or a label is not one of the model's.
    """
    if not isinstance(class_names, Mapping):
        raise ValueError(f"class_names must be a mapping, such as {{0: 'no', 1: 'yes'}}, got {class_names!r}.")
    names = {plain(label): plain(name) for label, name in class_names.items()}
    if invalid := [name for name in names.values() if not isinstance(name, str) or not name.strip()]:
        raise ValueError(f"class_names: names must be text, got {invalid[0]!r}.")
    if len(set(names.values())) < len(names):
        raise ValueError(f"class_names: two labels have the same name: {listed(names.values())}.")
    if classes is not None and set(names) != set(classes):
        raise ValueError(f"class_names must name the labels {listed(classes)} of the model, got {listed(names)}.")
    return names


def without_class_names(labels: Any, labels_by_name: Mapping[Label, Label]) -> Any:
    """The labels, with class names replaced by the labels they belong to."""
    if labels is None or not labels_by_name:
        return labels
    return [labels_by_name.get(label, label) if isinstance(label, str) else label for label in labels]
