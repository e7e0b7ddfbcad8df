"""What is wanted: can the model give it, told before a query is spent; and how it is written down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from acex.engine.reference import Reference
from acex.plan.target import Measured, OneOf, Target
from acex.values import Label, as_json, is_missing


def refuse_foreign(
    target: Target, reference: Reference, *, known: Sequence[Label] | None, no_labels: str | None, scores: bool
) -> None:
    """Raise when the model can never give what is wanted, or known outcomes are in other words.

    Args:
        known: the labels that the model gives, where it says so.
        no_labels: why it gives numbers only, if it does.
        scores: is it asked for probabilities?
    """
    if not isinstance(target, Measured):
        if no_labels is not None:
            raise TypeError(no_labels)
    elif target.label is not None and not scores:
        raise ValueError(f"target: the probability of {target.label!r} is wanted: say scores=True (--scores).")
    elif target.label is None:
        if scores:
            raise ValueError(
                f"target: with scores=True the answers are probabilities of labels: say of which one, as in "
                f"acex.{type(target).__name__}(..., label='good'), or leave scores out for a model of numbers."
            )
        reference.refuse_outcomes_that_are_no_numbers()
    if known is not None:
        target.refuse_foreign(known)
    if isinstance(target, OneOf):
        reference.refuse_foreign_outcomes(target.labels, all_words=False)
    elif isinstance(target, Measured) and target.label is not None:
        reference.refuse_foreign_outcomes([target.label], all_words=False)


def told(values: Iterable[Any]) -> list[Any]:
    """What `ranges` wants of a feature, as JSON knows it: None for an end without a limit, and for a gap."""
    return [None if is_missing(v) or (isinstance(v, float) and math.isinf(v)) else as_json(v) for v in values]
