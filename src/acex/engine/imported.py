"""Answers that the model gave elsewhere: evidence, free of charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acex.ledger import BaseLedger, canonical
from acex.models.labels import as_labels, as_numbers, has_fractions, unworded
from acex.space.space import Space
from acex.values import Label


def import_answers(
    answers: Any,
    ledger: BaseLedger,
    model_id: str,
    space: Space,
    *,
    known: Sequence[Label] | None,
    by_word: Mapping[Label, Label],
    numbers: bool,
) -> list[Label]:
    """The labels of answers, a pair of rows and labels; they are in the ledger now.

    Args:
        known: the labels that the model gives, where it says so. by_word: what class names stand for.
        numbers: does the model give numbers only?

    Raises:
        ValueError: rows or labels are none of the model's.
    """
    if not (isinstance(answers, (tuple, list)) and len(answers) == 2):
        raise TypeError(f"answers must be a pair, (rows, labels), got {type(answers).__name__}.")
    try:
        reaching = space.reaching(answers[0])
        rows = reaching.decode(reaching.encode(answers[0]))
        read = as_numbers if numbers or has_fractions(answers[1]) else as_labels
        labels = read(unworded(answers[1], by_word), len(rows))
    except ValueError as error:
        raise ValueError(f"answers: {error}") from None
    foreign = [label for label in labels if known is not None and label not in known]
    if foreign:
        raise ValueError(f"answers: {foreign[0]!r} is not a label of the model, which gives {known}.")
    for answer in ledger.answers(model_id, newest=1):
        refuse_other_kind(labels, answer.label)
    ledger.import_answers(model_id, canonical(rows), labels, new_labels=True)
    return labels


def refuse_other_kind(labels: Sequence[Label], label: Label) -> None:
    """Raise when these are texts and the model gives numbers, or the other way round: each would be a hit."""
    if labels and not any(isinstance(other, str) == isinstance(label, str) for other in labels):
        raise ValueError(f"answers: labels such as {labels[0]!r}, but the model gives labels such as {label!r}.")
