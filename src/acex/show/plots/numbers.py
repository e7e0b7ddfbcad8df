"""The number that each query got, and the range that was wanted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import FigureBase
from matplotlib.ticker import MaxNLocator

from acex.arrays import BoolArray, FloatArray
from acex.engine.explanation import Explanation
from acex.plan.target import Measured
from acex.show.plots.style import AFTER, BEFORE, HIT, LIGHT_BLUE, MISS, legend, plain


@dataclass(frozen=True, eq=False)
class Numbers:
    """The model's numbers in the order of the queries."""

    values: FloatArray  # the first is the factual's, (n,)
    is_hit: BoolArray  # (n,)
    low: float  # of the range wanted; infinite where there is no limit
    high: float
    best: int | None  # which query is the counterfactual
    name: str  # what is counted


def numbers_record(explanation: Explanation) -> Numbers:
    """The numbers of an explanation whose target is about one.

    Raises:
        ValueError: it is about labels.
    """
    target = explanation.plan.target
    if not isinstance(target, Measured):
        raise ValueError("kind 'numbers' is for explanations whose target is a range of numbers; this one has labels.")
    values = np.array([step.label for step in explanation.steps], dtype=float)
    low, high = target.limits(float(values[0]))
    return Numbers(
        values=values,
        is_hit=np.array([step.hit for step in explanation.steps], dtype=bool),
        low=low,
        high=high,
        best=next(iter(explanation.ending.counterfactuals), None),
        name="the model's answer" if target.label is None else f"probability of {target.label}",
    )


def draw_numbers(numbers: Numbers, figure: FigureBase) -> None:
    """Numbers against queries, over the range that was wanted."""
    axes = figure.add_subplot()
    query = np.arange(1, len(numbers.values) + 1)
    ends = [end for end in (numbers.low, numbers.high) if np.isfinite(end)]
    shown = np.array([*numbers.values, *ends])
    room = 0.05 * (float(np.ptp(shown)) or 1.0)
    bottom, top = float(shown.min()) - room, float(shown.max()) + room
    axes.axhspan(max(numbers.low, bottom), min(numbers.high, top), color=LIGHT_BLUE, zorder=0)
    for is_hit, style in ((True, HIT), (False, MISS)):
        chosen = numbers.is_hit == is_hit
        axes.plot(query[chosen], numbers.values[chosen], **style, alpha=0.8, clip_on=False)
    axes.plot(query[0], numbers.values[0], **BEFORE)
    marks = {"factual": BEFORE, "hit": HIT, "miss": MISS}
    if numbers.best is not None:
        axes.plot(query[numbers.best], numbers.values[numbers.best], **AFTER)
        marks = {"factual": BEFORE, "counterfactual": AFTER, "hit": HIT, "miss": MISS}
    axes.set_ylim(bottom, top)
    axes.set_xlim(0, len(query) + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("queries (shaded: what was wanted)")
    axes.set_ylabel(plain(numbers.name))
    axes.spines[["top", "right"]].set_visible(False)
    legend(axes, marks)
