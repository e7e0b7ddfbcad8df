"""Values shared by the plots and the report: the changes of a counterfactual, and the scale of the cost axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from acex.engine.explanation import Explanation, changes_as_text
from acex.plan.step import Step
from acex.values import is_missing

WIDE = 5  # if the highest cost is more than 5 times the best, the cost axis is logarithmic


class Change(NamedTuple):
    """One changed feature: its values and step as text, and their positions in its range (0: lowest, 1: highest)."""

    feature: str
    before: str
    after: str
    step: str  # in standard deviations, or "change"
    start: float
    end: float
    low: str  # the ends of the range; empty for nominal features, which have no order
    high: str
    needed: str = "not checked"  # or the result of the check
    unit: str = ""


def changes_record(explanation: Explanation, i: int = 0) -> list[Change]:
    """The changes of counterfactual number i, largest step first; empty if none was found."""
    if explanation.counterfactuals.empty:
        return []
    record = []
    values = explanation.changes_of(i)[["before", "after"]].itertuples(index=False, name=None)
    for (before, after), texts in zip(values, changes_as_text(explanation, i), strict=True):
        name, was, becomes, step, needed = texts
        feature = explanation.plan.space.feature(name)
        width, has_place = feature.high - feature.low or np.inf, feature.way(1.0, before, after) != "other"
        known = feature.encode(pd.Series([v for v in (before, after) if not is_missing(v)], dtype=object))
        start, *_, end = ((known[[0, -1]] - feature.low) / width).tolist()  # a missing value has no position
        low, high = (feature.text(feature.value(c)) if has_place else "" for c in (feature.low, feature.high))
        record.append(Change(name, was, becomes, step, start, end, low, high, needed, feature.unit))
    return record


def bend(steps: Sequence[Step]) -> float | None:
    """The best cost, above which the cost axis is logarithmic; None if the axis is linear (see `WIDE`)."""
    best, most = min(step.best for step in steps), max(step.cost for step in steps)
    return best if 0 < WIDE * best < most else None
