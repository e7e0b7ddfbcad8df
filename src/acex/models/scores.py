"""Answers with probabilities: the likeliest label, and what the ledger keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acex.errors import ModelFailed
from acex.values import Label


@dataclass(frozen=True, eq=False)
class Scored:
    """An answer with the probability of each label: labels of n rows, and probabilities, (n, classes)."""

    labels: Any
    classes: Sequence[Label]
    probabilities: Any


def likeliest(classes: Sequence[Label], probabilities: Any) -> Scored:
    """The likeliest labels (the first of equals), with the probabilities, (n, classes), that say so."""
    table = np.asarray(probabilities)
    if table.ndim != 2 or table.shape[1] != len(classes):
        raise ModelFailed(
            f"The model gave probabilities of shape {table.shape}: expected a row each, with one for each of the "
            f"{len(classes)} labels."
        )
    return Scored([classes[i] for i in table.argmax(axis=1)], classes, table)


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
