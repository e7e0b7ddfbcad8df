"""What is wanted of the model, as a command says it: labels, or a range of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from acex.cli.tables import as_label

EXAMPLES = '"100..120", "0.8..", "..120", "+10%" or "-10%"'
NUMBER = r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"


def wanted(labels: Sequence[str] | None, numbers: str | None, known: Sequence[Any]) -> Any:
    """What --target and --target-range ask for, as `acex.explain` takes it; None for any other label.

    With both, the probability of the label is to be in the range.

    Raises:
        ValueError: a text is no label or no range, or there are several labels for one range.
    """
    meant = [_label(text, known) for text in labels or ()]
    if numbers is None:
        return meant or None
    if len(meant) > 1:
        raise ValueError(f"--target-range is about the probability of one label, got {len(meant)} times --target.")
    return as_range(numbers) | ({"label": meant[0]} if meant else {})


def as_range(text: str) -> dict[str, Any]:
    """The range of numbers that a text stands for, as `Target.of` takes it."""
    if found := re.fullmatch(rf"{NUMBER}%\s*", text):
        return {"relative": float(found[1]) / 100}
    low, dots, high = text.partition("..")
    ends = [re.fullmatch(NUMBER, end) for end in (low, high)]
    strange = [side for side in (low, high) if side.strip() and not re.fullmatch(NUMBER, side)]
    if not dots or not any(ends) or strange:
        raise ValueError(f"--target-range {text!r}: expected a range of numbers, such as {EXAMPLES}.")
    least, most = (None if end is None else float(end[1]) for end in ends)
    if least is not None and most is not None:
        return {"between": [least, most]}
    return {"at_most": most} if least is None else {"at_least": least}


def _label(text: str, known: Sequence[Any]) -> Any:
    try:
        return as_label(text, known)
    except ValueError as error:
        raise ValueError(f"--target: {error}") from None
