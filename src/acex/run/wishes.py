"""Can the model give what is wanted? Told before a query is spent."""

from __future__ import annotations

from collections.abc import Sequence

from acex.plan.target import Measured, OneOf, Target
from acex.run.reference import Reference
from acex.values import Label


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
