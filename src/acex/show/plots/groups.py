"""Groups of rows side by side: what they would have to pay, and what they would have to change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acex.arrays import FloatArray
from acex.audit.groups import Groups
from acex.show.plots.style import BLUE, DARK_GREY, LIGHT_BLUE, VERMILLION, NotebookFigure, Style, legend, plain, short

MOST_FEATURES = 12
# What differs in colour differs in shape too; after so many groups they begin again.
SIGNS: tuple[Style, ...] = tuple(
    {"marker": marker, "color": colour, "linestyle": "none", "markersize": 6}
    for marker, colour in (("o", BLUE), ("s", VERMILLION), ("^", "black"), ("D", DARK_GREY), ("v", "#009E73"))
)


@dataclass(frozen=True, eq=False)
class GroupsRecord:
    """Groups in the order of their names, and features in the order of how often they change."""

    by: str
    groups: tuple[str, ...]
    rows: tuple[int, ...]  # that have a counterfactual
    quartiles: FloatArray  # of the cost: first, median, third, (groups, 3)
    interval: FloatArray  # of the median, (groups, 2)
    features: tuple[str, ...]
    shares: FloatArray  # of the group's counterfactuals that change the feature, (features, groups)


def groups_record(groups: Groups, most: int = MOST_FEATURES) -> GroupsRecord:
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
    """Costs by group on the left, features by group on the right."""
    record = groups_record(groups)
    n = max(len(record.groups), len(record.features), 3)
    figure = NotebookFigure(figsize=(10.5, 1.8 + 0.34 * n), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_costs(record, left)
    _draw_features(record, right)
    figure.suptitle(plain(f"Counterfactuals by {short(record.by, 60)}"), fontsize=11)
    return figure


def _draw_costs(record: GroupsRecord, axes: Axes) -> None:
    for row, ((q1, median, q3), (low, high)) in enumerate(zip(record.quartiles, record.interval, strict=True)):
        if np.isnan(median):
            continue
        axes.barh(row, q3 - q1, left=q1, height=0.55, color=LIGHT_BLUE, edgecolor=BLUE)
        axes.plot([median, median], [row - 0.275, row + 0.275], color="black", linewidth=2)
        if not np.isnan(low):
            axes.plot([low, high], [row, row], color="black", linewidth=1.2, marker="|", markersize=7)
    names = [plain(f"{short(g, 28)} ({n})") for g, n in zip(record.groups, record.rows, strict=True)]
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("cost: middle half of the rows, median, and its 95% interval", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_features(record: GroupsRecord, axes: Axes) -> None:
    styles = {plain(short(g, 20)): SIGNS[i % len(SIGNS)] for i, g in enumerate(record.groups)}
    rows = np.arange(len(record.features))
    for shares, style in zip(record.shares.T, styles.values(), strict=False):
        axes.plot(100 * shares, rows, **style)
    axes.set_yticks(rows, [plain(short(name, 28)) for name in record.features], fontsize=9)
    axes.set_ylim(max(len(rows), 3) - 0.5, -0.5)
    axes.set_xlim(-3, 103)
    axes.grid(axis="y", color="#E8E8E8", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel("counterfactuals that change it, in %", fontsize=9)
    axes.tick_params(axis="x", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    if len(styles) <= len(SIGNS):
        legend(axes, styles)
