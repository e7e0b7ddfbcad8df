"""Many explanations at a glance: what has to change, how they ended, what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.engine.explanation import Explanation
from acex.plan.step import Outcome
from acex.show.plots.changes import SIGN
from acex.show.plots.style import BLUE, DARK_GREY, LIGHT_GREY, VERMILLION, Style, plain, short, wrapped
from acex.space.feature import Way

MOST_FEATURES = 15  # bars
ROUND = (1, 2, 5, 10)  # steps between ticks
MOST_ROWS = 60  # of which each has a bar of its own; more become a line
WAYS: dict[Way, tuple[str, Style]] = {
    "up": ("higher", {"facecolor": BLUE, "edgecolor": "white"}),
    "down": ("lower", {"facecolor": "#F0B98D", "edgecolor": "black", "hatch": "///"}),
    "other": ("another category", {"facecolor": LIGHT_GREY, "edgecolor": "black", "hatch": "..."}),
}

NOT_FOUND: Style = {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "xxx"}


@dataclass(frozen=True)
class Changed:
    """How many of the best counterfactuals change a feature, and which way."""

    feature: str
    up: int
    down: int
    other: int

    @property
    def n(self) -> int:
        return self.up + self.down + self.other


@dataclass(frozen=True, eq=False)
class Batch:
    """Many explanations, in order."""

    changed: tuple[Changed, ...]  # most often first
    n_more: int  # features that change less often, left out
    outcomes: tuple[tuple[Outcome, int], ...]  # those that occurred, and how often
    costs: FloatArray  # of the best counterfactuals, (number found,)
    n_queries: IntArray  # paid for, a row each, (n,)
    is_found: BoolArray  # (n,)


def batch_record(explanations: Iterable[Explanation], most: int = MOST_FEATURES) -> Batch:
    """What the explanations have in common; `most` is how many features are shown.

    Raises:
        ValueError: there is no explanation.
    """
    every = list(explanations)
    if not every:
        raise ValueError("explanations is empty: expected at least one.")
    ways: dict[str, Counter[Way]] = {}
    for e in every:
        for name, before, after, step, _ in e.changes.itertuples(index=False, name=None):
            ways.setdefault(name, Counter())[e.plan.space.feature(name).way(step, before, after)] += 1
    changed = [Changed(name, way["up"], way["down"], way["other"]) for name, way in ways.items()]
    changed.sort(key=lambda c: -c.n)
    ended = Counter(e.outcome for e in every)
    return Batch(
        changed=tuple(changed[:most]),
        n_more=max(len(changed) - most, 0),
        outcomes=tuple((outcome, ended[outcome]) for outcome in get_args(Outcome) if ended[outcome]),
        costs=np.array([e.costs[0] for e in every if e.costs]),
        n_queries=np.array([e.n_queries for e in every]),
        is_found=np.array([e.outcome == "found" for e in every]),
    )


def draw_batch(batch: Batch, figure: FigureBase) -> None:
    """What has to change on the left; outcomes, costs and queries on the right."""
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(6, 5))[0]
    _draw_changed(batch, left.add_subplot())
    outcomes, costs, queries = right.subplots(3, 1, height_ratios=(0.6 + 0.35 * len(batch.outcomes), 2, 2))
    _draw_outcomes(batch, outcomes)
    _draw_costs(batch, costs)
    _draw_queries(batch, queries)


def _draw_changed(batch: Batch, axes: Axes) -> None:
    rows = np.arange(len(batch.changed))
    done = np.zeros(len(batch.changed))
    for way, (_, style) in WAYS.items():
        counts = np.array([getattr(c, way) for c in batch.changed], dtype=float)
        some = counts > 0  # none would still have an edge
        axes.barh(rows[some], counts[some], left=done[some], height=0.7, linewidth=0.8, **style)
        done += counts
    for row, c in enumerate(batch.changed):
        axes.text(c.n, row, f" {c.n}", va="center", ha="left", fontsize=8)
    axes.set_yticks(rows, [plain(wrapped(short(c.feature, 44), 24)) for c in batch.changed], fontsize=9)
    axes.set_ylim(max(len(batch.changed), 4) - 0.5, -0.5)
    axes.set_xlim(0, 1.1 * max([c.n for c in batch.changed], default=1))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=ROUND))
    more = f" ({batch.n_more} more features not shown)" if batch.n_more else ""
    axes.set_xlabel(f"counterfactuals that change it, of {batch.is_found.sum()}{more}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    keys = [Patch(**style, label=f"{SIGN[way]} {word}") for way, (word, style) in WAYS.items()]
    axes.legend(handles=keys, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, frameon=False, fontsize=9)


def _draw_outcomes(batch: Batch, axes: Axes) -> None:
    rows = range(len(batch.outcomes))
    counts = [count for _, count in batch.outcomes]
    axes.barh(rows, counts, height=0.6, color=DARK_GREY)
    for row, count in enumerate(counts):
        axes.text(count, row, f" {count}", va="center", ha="left", fontsize=8)
    axes.set_yticks(rows, [outcome.replace("_", " ") for outcome, _ in batch.outcomes], fontsize=9)
    axes.set_ylim(len(counts) - 0.4, -0.6)
    axes.set_xlim(0, 1.15 * max(counts))
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _draw_costs(batch: Batch, axes: Axes) -> None:
    if len(batch.costs):
        axes.hist(batch.costs, bins=min(12, max(4, len(batch.costs) // 2)), color=BLUE, edgecolor="white")
        axes.axvline(float(np.median(batch.costs)), color="black", linewidth=1.5, linestyle="--")
        axes.set_title(f"median {np.median(batch.costs):.3g} (dashed)", fontsize=8, color=DARK_GREY)
    axes.set_xlabel("cost of the best counterfactual", fontsize=9)
    axes.set_ylabel("rows", fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=ROUND))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=ROUND))
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_queries(batch: Batch, axes: Axes) -> None:
    rows = np.arange(1, len(batch.n_queries) + 1)
    if len(rows) <= MOST_ROWS:
        found, missed = batch.is_found, ~batch.is_found
        axes.bar(rows[found], batch.n_queries[found], color=BLUE)
        axes.bar(rows[missed], batch.n_queries[missed], **NOT_FOUND)
    else:
        axes.step(rows, batch.n_queries, where="mid", color=BLUE, linewidth=1)
    hatched = "" if batch.is_found.all() or len(rows) > MOST_ROWS else "; hatched: nothing found"
    axes.set_title(f"{batch.n_queries.sum()} queries in all{hatched}", fontsize=8, color=DARK_GREY)
    axes.set_xlabel("row", fontsize=9)
    axes.set_ylabel("queries paid", fontsize=9)
    axes.set_ylim(0, 1.1 * max(int(batch.n_queries.max()), 1))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=ROUND))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=ROUND))
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
