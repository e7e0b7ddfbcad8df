"""Answers of models: labels, numbers and probabilities, checked and turned into plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


def as_labels(answer: Any, n: int) -> list[Label]:
    """One plain label for each of n rows.

    Raises:
        ValueError: the answer has another length or shape, or contains scores, missing values or overlong texts.
    """
    is_list = _is_list(answer)
    if not (is_list or hasattr(answer, "__array__")):
        raise ValueError(f"expected {n} labels, got {_quoted(answer)}")
    # numpy would turn a NaN or a number among texts into text.
    has_text = is_list and any(isinstance(label, str) for label in answer)
    array = np.asarray(answer, dtype=object if has_text else None)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        what = "probabilities" if array.dtype.kind == "f" else "several labels per row"
        raise ValueError(f"expected {n} labels, got an array of shape {array.shape}: these look like {what}")
    if len(array) != n:
        raise ValueError(f"expected {n} labels, got {len(array)}")
    labels = [plain(label) for label in array.tolist()]
    for label in labels:
        _refuse_no_label(label)
    return labels


def _refuse_no_label(label: Any) -> None:
    if is_missing(label) or not isinstance(label, (str, bool, int, float)):
        raise ValueError(f"got {_quoted(label)}, which is not a label: text, a whole number or a Boolean")
    if isinstance(label, str) and len(label) > LONGEST_LABEL:
        raise ValueError(f"got a label of {len(label):,} characters; at most {LONGEST_LABEL:,} are allowed")
    if isinstance(label, str) and not is_unicode(label):
        raise ValueError(f"got {label!r}, which is not a label: it contains an unpaired surrogate")
    if is_fraction(label):
        raise ValueError(
            f"got {label!r}, which is a score, not a label; use a target such as target=acex.AtLeast(0.5), or turn "
            f"scores into labels first: lambda rows: score(rows) > 0.5"
        )


def as_numbers(answer: Any, n: int) -> list[Label]:
    """One finite float for each of n rows.

    Raises:
        ValueError: the answer has another length or shape, or contains something else.
    """
    if not (_is_list(answer) or hasattr(answer, "__array__")):
        raise ValueError(f"expected {n} numbers, got {_quoted(answer)}")
    array = np.asarray(answer, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(f"expected {n} numbers, got an array of shape {array.shape}")
    numbers = [plain(number) for number in array.tolist()]
    for number in numbers:
        if isinstance(number, bool) or not is_finite(number):
            raise ValueError(f"got {_quoted(number)}, which is not a finite number, and the target is a range")
    return [float(number) for number in numbers]


def has_fractions(answers: Any) -> bool:
    """Is one of these answers a number that is not whole, and therefore not a label?"""
    return np.ndim(answers) == 1 and any(is_fraction(plain(answer)) for answer in answers)


def _is_list(answer: Any) -> bool:
    return isinstance(answer, Sequence) and not isinstance(answer, (str, bytes))


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


def likeliest(classes: Sequence[Label], probabilities: Any) -> Scored:
    """The likeliest label of each row (the first of equals), with the probabilities, (n, classes)."""
    table = np.asarray(probabilities)
    if table.ndim != 2 or table.shape[1] != len(classes):
        raise ModelFailed(
            f"The model returned probabilities of shape {table.shape}: expected one row per row of data and one column "
            f"for each of the {len(classes)} labels."
        )
    return Scored([classes[i] for i in table.argmax(axis=1)], classes, table)


def as_scores(scored: Scored, n: int) -> list[list[tuple[Label, float]]]:
    """Pairs of label and probability for each of n rows.

    Raises:
        ValueError: the probabilities have another shape or are not from 0 to 1, or a class is not a label.
    """
    classes = as_labels(list(scored.classes), len(scored.classes))
    table = np.asarray(scored.probabilities, dtype=float)
    if table.shape != (n, len(classes)):
        raise ValueError(f"expected probabilities of shape {(n, len(classes))}, got {table.shape}")
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError(f"expected probabilities from 0 to 1, got {table[~((table >= 0) & (table <= 1))][0]}")
    return [list(zip(classes, row, strict=True)) for row in table.tolist()]


# -- labels of another type, and class names -------------------------------------------------------------


def refuse_other_kind(labels: Sequence[Label], label: Label) -> None:
    """Raise when these are texts and the model returns numbers, or the reverse: each would be a hit."""
    if labels and not any(isinstance(other, str) == isinstance(label, str) for other in labels):
        raise ValueError(f"imported labels such as {labels[0]!r} are of another kind than the model's {label!r}.")


def refuse_lookalike(label: Label, wanted: Iterable[Label]) -> None:
    """Raise when the wanted labels look like the model's but have another type: "1" is not 1.

    One answer is enough to know the type: a model that answers False never answers "True".

    Raises:
        ValueError: the message names the label to write instead.
    """
    for target in wanted:
        if isinstance(target, str) == isinstance(label, str):
            continue
        text, other = (target, label) if isinstance(target, str) else (label, target)
        look = _look(str(text))
        if look is not None and look is _look(str(plain(other))):
            kind = {str: "text", bool: "Booleans"}.get(type(plain(label)), "numbers")
            raise ValueError(
                f"target {target!r} never occurs: the model answers with {kind} such as {label!r}. Write "
                f"{_as_type_of(label, target)!r} instead."
            )


def _look(text: str) -> type | None:
    """The type that a text could be mistaken for: bool, float, or None."""
    if text.strip().casefold() in ("true", "false"):
        return bool
    try:
        return float if np.isfinite(float(text)) else None
    except ValueError:
        return None


def _as_type_of(label: Label, target: Label) -> Label:
    """The wanted label converted to the type of the label."""
    if isinstance(label, str):
        return str(plain(target))
    if isinstance(plain(label), bool):
        return str(target).strip().casefold() == "true"
    number = float(str(target))
    return int(number) if number.is_integer() else number


def class_words(class_names: Any, classes: Sequence[Label] | None) -> dict[Label, str]:
    """The name of each label, from a mapping of labels to names or a list in the order of the model's `classes`.

    Raises:
        ValueError: a name is missing, repeated or not text, or a label is not one of the model's.
    """
    if isinstance(class_names, Mapping):
        names = {plain(label): plain(name) for label, name in class_names.items()}
    elif classes is None:
        raise ValueError(
            "class_names: the labels of this model are not known (it has no classes_), so a list has no order. Pass a "
            "mapping, such as {0: 'rejected', 1: 'approved'}."
        )
    elif isinstance(class_names, (str, bytes)) or np.ndim(class_names) != 1 or len(class_names) != len(classes):
        raise ValueError(f"class_names must have a name for each of the labels {listed(classes)}, got {class_names!r}.")
    else:
        names = dict(zip(classes, map(plain, class_names), strict=True))
    if invalid := [name for name in names.values() if not isinstance(name, str) or not name.strip()]:
        raise ValueError(f"class_names: names must be text, got {invalid[0]!r}.")
    if len(set(names.values())) < len(names):
        raise ValueError(f"class_names: two labels have the same name: {listed(names.values())}.")
    if classes is not None and (missing := [label for label in classes if label not in names]):
        raise ValueError(f"class_names has no name for {listed(missing)}; the labels are {listed(classes)}.")
    if classes is not None and (extra := [label for label in names if label not in classes]):
        raise ValueError(f"class_names: {extra[0]!r} is not a label of the model; its labels are {listed(classes)}.")
    return names


def unworded(labels: Any, by_word: Mapping[Label, Label]) -> Any:
    """The labels with class names replaced by the labels that they stand for."""
    if labels is None or not by_word:
        return labels
    return [by_word.get(label, label) if isinstance(label, str) else label for label in labels]
