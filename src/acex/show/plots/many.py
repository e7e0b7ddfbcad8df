"""Pictures of many explanations: what changes, how they ended, what they cost; and groups of rows compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.audit.groups import Groups
from acex.engine.explanation import Explanation
from acex.plan.step import Outcome
from acex.show.plots import style
from acex.show.plots.style import Picture, Style, drawn, legend, named, open_frame, plain, short
from acex.space.feature import Way

MOST_FEATURES = 15  # bars
MOST_ROWS = 60  # of which each has a bar of its own; more become a line
WAYS: dict[Way, tuple[str, Style]] = {
    "up": ("higher", {"facecolor": style.BLUE, "edgecolor": "white"}),
    "down": ("lower", {"facecolor": "#F0B98D", "edgecolor": "black", "hatch": "///"}),
    "other": ("another category", {"facecolor": style.LIGHT_GREY, "edgecolor": "black", "hatch": "..."}),
}
NOT_FOUND: Style = {"facecolor": "white", "edgecolor": style.VERMILLION, "hatch": "xxx"}
# Groups by marker and colour; with more groups than these they repeat.
MARKERS: tuple[Style, ...] = tuple(
    {"marker": marker, "color": colour, "linestyle": "none", "markersize": 6}
    for marker, colour in (
        ("o", style.BLUE),
        ("s", style.VERMILLION),
        ("^", "black"),
        ("D", style.DARK_GREY),
        ("v", "#009E73"),
    )
)


@dataclass(frozen=True, eq=False)
class BatchRecord(Picture):
    """Many explanations, in order."""

    changed: dict[str, Counter[Way]]  # by feature, how many counterfactuals change it and which way; most often first
    n_more: int  # features that change less often, left out
    outcomes: tuple[tuple[Outcome, int], ...]  # those that occurred, and how often
    costs: FloatArray  # of the best counterfactuals, (number found,)
    n_queries: IntArray  # paid for, by row, (n,)
    is_found: BoolArray  # (n,)

    @property
    def size(self) -> tuple[float, float]:
        return 12.0, max(6.5, 1.8 + 0.36 * len(self.changed))

    def draw(self, figure: FigureBase) -> None:
        """What has to change on the left; outcomes, costs and queries on the right."""
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(6, 5))[0]
        self._draw_changed(left.add_subplot())
        outcomes, costs, queries = right.subplots(3, 1, height_ratios=(0.6 + 0.35 * len(self.outcomes), 2, 2))
        self._draw_outcomes(outcomes)
        self._draw_costs(costs)
        self._draw_queries(queries)

    def _draw_changed(self, axes: Axes) -> None:
        rows = np.arange(len(self.changed))
        done = np.zeros(len(self.changed))
        for way, (_, look) in WAYS.items():
            counts = np.array([ways[way] for ways in self.changed.values()], dtype=float)
            some = counts > 0  # a bar of length 0 would still have an edge
            axes.barh(rows[some], counts[some], left=done[some], height=0.7, linewidth=0.8, **look)
            done += counts
        for row, n in enumerate(done.astype(int)):
            axes.text(n, row, f" {n}", va="center", ha="left", fontsize=8)
        open_frame(axes)
        axes.set_yticks(rows, [named(feature) for feature in self.changed], fontsize=9)
        axes.set_ylim(max(len(self.changed), 4) - 0.5, -0.5)
        axes.set_xlim(0, 1.1 * max(done, default=1))
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=style.ROUND))
        more = f" ({self.n_more} more features not shown)" if self.n_more else ""
        axes.set_xlabel(f"counterfactuals that change it, of {self.is_found.sum()}{more}", fontsize=9)
        keys = [Patch(**look, label=f"{style.SIGN[way]} {word}") for way, (word, look) in WAYS.items()]
        axes.legend(handles=keys, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, frameon=False, fontsize=9)

    def _draw_outcomes(self, axes: Axes) -> None:
        counts = [count for _, count in self.outcomes]
        bars = axes.barh(range(len(counts)), counts, height=0.6, color=style.DARK_GREY)
        axes.bar_label(bars, padding=3, fontsize=8)
        axes.set_yticks(range(len(counts)), [outcome.replace("_", " ") for outcome, _ in self.outcomes], fontsize=9)
        axes.set_ylim(len(counts) - 0.4, -0.6)
        axes.set_xlim(0, 1.15 * max(counts))
        axes.set_xticks([])
        axes.spines[["top", "right", "bottom"]].set_visible(False)

    def _draw_costs(self, axes: Axes) -> None:
        if len(self.costs):
            axes.hist(self.costs, bins=min(12, max(4, len(self.costs) // 2)), color=style.BLUE, edgecolor="white")
            axes.axvline(float(np.median(self.costs)), color="black", linewidth=1.5, linestyle="--")
            axes.set_title(f"median {np.median(self.costs):.3g} (dashed)", fontsize=8, color=style.DARK_GREY)
        axes.set_xlabel("cost of the best counterfactual", fontsize=9)
        axes.set_ylabel("rows", fontsize=9)
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=style.ROUND))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=style.ROUND))
        open_frame(axes)

    def _draw_queries(self, axes: Axes) -> None:
        rows = np.arange(1, len(self.n_queries) + 1)
        hatched = ""
        if len(rows) > MOST_ROWS:
            axes.step(rows, self.n_queries, where="mid", color=style.BLUE, linewidth=1)
        else:
            axes.bar(rows[self.is_found], self.n_queries[self.is_found], color=style.BLUE)
            axes.bar(rows[~self.is_found], self.n_queries[~self.is_found], **NOT_FOUND)
            hatched = "" if self.is_found.all() else "; hatched: nothing found"
        axes.set_title(f"{self.n_queries.sum()} queries in total{hatched}", fontsize=8, color=style.DARK_GREY)
        axes.set_xlabel("row", fontsize=9)
        axes.set_ylabel("queries paid", fontsize=9)
        axes.set_ylim(0, 1.1 * max(int(self.n_queries.max()), 1))
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=style.ROUND))
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=style.ROUND))
        open_frame(axes)


def batch_record(explanations: Iterable[Explanation], most: int = MOST_FEATURES) -> BatchRecord:
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
    often = sorted(ways, key=lambda name: -ways[name].total())[:most]
    ended = Counter(e.outcome for e in every)
    return BatchRecord(
        changed={name: ways[name] for name in often},
        n_more=len(ways) - len(often),
        outcomes=tuple((outcome, ended[outcome]) for outcome in get_args(Outcome) if ended[outcome]),
        costs=np.array([e.costs[0] for e in every if e.costs]),
        n_queries=np.array([e.n_queries for e in every]),
        is_found=np.array([e.outcome == "found" for e in every]),
    )


def draw_explanations(explanations: Iterable[Explanation]) -> Figure:
    """Many explanations in one figure."""
    batch = batch_record(explanations)
    title = f"{batch.is_found.sum()} of {len(batch.is_found)} rows have a counterfactual"
    return drawn(batch, title)


# -- groups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupsRecord(Picture):
    """Groups in the order of their names, and features in the order of how often they change."""

    by: str
    groups: tuple[str, ...]
    rows: tuple[int, ...]  # that have a counterfactual
    quartiles: FloatArray  # of the cost: first, median, third, (groups, 3)
    interval: FloatArray  # of the median, (groups, 2)
    features: tuple[str, ...]
    shares: FloatArray  # of the group's counterfactuals that change the feature, (features, groups)

    @property
    def size(self) -> tuple[float, float]:
        return 10.5, 1.8 + 0.34 * max(len(self.groups), len(self.features), 3)

    def draw(self, figure: FigureBase) -> None:
        """Costs by group on the left, features by group on the right."""
        left, right = figure.subplots(1, 2)
        self._draw_costs(left)
        self._draw_features(right)

    def _draw_costs(self, axes: Axes) -> None:
        for row, ((q1, median, q3), (low, high)) in enumerate(zip(self.quartiles, self.interval, strict=True)):
            if np.isnan(median):
                continue
            axes.barh(row, q3 - q1, left=q1, height=0.55, color=style.LIGHT_BLUE, edgecolor=style.BLUE)
            axes.plot([median, median], [row - 0.275, row + 0.275], color="black", linewidth=2)
            if not np.isnan(low):
                axes.plot([low, high], [row, row], color="black", linewidth=1.2, marker="|", markersize=7)
        open_frame(axes)
        names = [plain(f"{short(g, 28)} ({n})") for g, n in zip(self.groups, self.rows, strict=True)]
        axes.set_yticks(range(len(names)), names, fontsize=9)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel("cost: middle half of the rows, median, and its 95% interval", fontsize=9)

    def _draw_features(self, axes: Axes) -> None:
        styles = {plain(short(g, 20)): MARKERS[i % len(MARKERS)] for i, g in enumerate(self.groups)}
        rows = np.arange(len(self.features))
        for shares, look in zip(self.shares.T, styles.values(), strict=False):
            axes.plot(100 * shares, rows, **look)
        open_frame(axes)
        axes.set_yticks(rows, [plain(short(name, 28)) for name in self.features], fontsize=9)
        axes.set_ylim(max(len(rows), 3) - 0.5, -0.5)
        axes.set_xlim(-3, 103)
        axes.grid(axis="y", color="#E8E8E8", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_xlabel("counterfactuals that change it, in %", fontsize=9)
        if len(styles) <= len(MARKERS):
            legend(axes, styles)


def groups_record(groups: Groups, most: int = 12) -> GroupsRecord:
    """The numbers of the picture; `most` is how many features are shown."""
    table = groups.table
    shares = groups.features.pivot(index="feature", columns="group", values="share").reindex(columns=table.index)
    often = shares.fillna(0.0).mean(axis=1).sort_values(ascending=False, kind="stable").index[:most]
    return GroupsRecord(
        by=groups.by,
        groups=tuple(str(name) for name in table.index),
        rows=tuple(int(n) for n in table["found"]),
        quartiles=table[["cost_q1", "cost", "cost_q3"]].to_numpy(dtype=float),
        interval=table[["cost_low", "cost_high"]].to_numpy(dtype=float),
        features=tuple(str(name) for name in often),
        shares=shares.loc[often].to_numpy(dtype=float),
    )


def draw_groups(groups: Groups) -> Figure:
    """Groups of rows side by side: costs, and which features change."""
    record = groups_record(groups)
    return drawn(record, f"Counterfactuals by {short(record.by, 60)}")
