"""Plots of explanations with matplotlib. Nothing is queried.

Figures are made without pyplot, so that no display is needed and the caller's figures are not affected. The colours
(Okabe and Ito) are safe for colour-blind readers, and whatever differs in colour also differs in shape.
"""

from __future__ import annotations

import io
import textwrap
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.audit.groups import Groups
from acex.engine.explanation import Explanation
from acex.errors import NoCounterfactual
from acex.plan.step import Outcome
from acex.plan.target import Measured
from acex.show.records import Change, bend, changes_record
from acex.show.sentences import OUTCOMES
from acex.space.feature import Way
from acex.values import listed

Kind: TypeAlias = Literal["changes", "trace", "numbers"]
Style: TypeAlias = dict[str, Any]

BLUE, VERMILLION = "#0072B2", "#D55E00"
LIGHT_BLUE = "#D6EAF6"
LIGHT_GREY, DARK_GREY = "#D0D0D0", "#606060"
HIT: Style = {"marker": "o", "color": BLUE, "linestyle": "none", "markersize": 5}
MISS: Style = {"marker": "x", "color": VERMILLION, "linestyle": "none", "markersize": 5}
BEST: Style = {"color": "black", "linewidth": 1.5}
BEFORE: Style = {"marker": "o", "color": "black", "markerfacecolor": "white", "linestyle": "none", "markersize": 8}
AFTER: Style = {"marker": "D", "color": "black", "markerfacecolor": BLUE, "linestyle": "none", "markersize": 6}
HEAD: Style = {"marker": ">", "color": BLUE, "linestyle": "none", "markersize": 9}  # head of an arrow
WAYS: dict[Way, tuple[str, Style]] = {
    "up": ("▲ higher", {"facecolor": BLUE, "edgecolor": "white"}),
    "down": ("▼ lower", {"facecolor": "#F0B98D", "edgecolor": "black", "hatch": "///"}),
    "other": ("● another category", {"facecolor": LIGHT_GREY, "edgecolor": "black", "hatch": "..."}),
}
NOT_FOUND: Style = {"facecolor": "white", "edgecolor": VERMILLION, "hatch": "xxx"}
# Marker and colour of each group; they repeat if there are more groups.
GROUPS = (("o", BLUE), ("s", VERMILLION), ("^", "black"), ("D", DARK_GREY), ("v", "#009E73"))
ROUND = (1, 2, 5, 10)  # steps between ticks

MOST_CHANGES = 20  # maximum number of changes shown, to stay readable
FEW_ROWS, LARGER = 3, 1.4  # up to 3 rows are drawn 1.4 times as large, to fill their space
HEADING = 0.8  # height of the heading of each of several answers, in rows
# Replacement of each colour on a dark page.
DARK = {
    "#ffffff": "#14171a",
    "#000000": "#e8eaed",
    DARK_GREY.lower(): "#b4bcc4",
    LIGHT_GREY.lower(): "#3c444c",
    "#e8e8e8": "#30363d",
    BLUE.lower(): "#56b4e9",
    LIGHT_BLUE.lower(): "#1b3a50",
    VERMILLION.lower(): "#ff8c42",
    "#f0b98d": "#a5683a",
}
MOST_FEATURES = 15  # maximum number of features shown for a batch or groups
MOST_ROWS = 60  # up to this many rows are drawn as bars; more are drawn as a line


class NotebookFigure(Figure):
    """A figure that notebooks display even if pyplot was never imported."""

    def __init__(self, width: float, height: float, title: str) -> None:
        super().__init__(figsize=(width, height), dpi=120, layout="constrained")
        self.suptitle(_plain("\n".join(textwrap.wrap(title, int(9 * width)))), fontsize=12)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


# -- one explanation -------------------------------------------------------------------------------------------------


def draw_explanation(explanation: Explanation, kind: Kind | None = None, *, dark: bool = False) -> Figure:
    """A plot of an explanation, with its summary as the title.

    Args:
        kind: by default the changes, if there are any, and beside them the cost against queries.
        dark: use colours for a dark page.

    Raises:
        NoCounterfactual: there are no changes to draw, or the row failed before the first query.
    """
    if kind is not None and kind not in get_args(Kind):
        raise ValueError(f"kind: {kind!r} is not one of {listed(get_args(Kind))}.")
    is_found = not explanation.counterfactuals.empty
    if not explanation.steps or (kind == "changes" and not is_found):
        raise NoCounterfactual(explanation.summary())
    answers = range(len(explanation.counterfactuals))
    n_rows = sum(min(len(explanation.changes_of(i)), MOST_CHANGES) + HEADING * (len(answers) > 1) for i in answers)
    height = 1.8 + 0.6 * min(n_rows, FEW_ROWS) + 0.36 * max(n_rows - FEW_ROWS, 0)
    if kind is None and is_found:
        figure = NotebookFigure(12.0, max(height, 3.2), explanation.summary())
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(7, 5))[0]
        _draw_changes(left.add_subplot(), explanation)
        _draw_trace(right.add_subplot(), explanation)
    else:
        figure = NotebookFigure(7.0, max(height, 2.8) if kind == "changes" else 4.5, explanation.summary())
        draw = {"changes": _draw_changes, "numbers": _draw_numbers}.get(kind or "trace", _draw_trace)
        draw(figure.add_subplot(), explanation)
    if dark:
        _darken(figure)
    return figure


def _draw_changes(axes: Axes, explanation: Explanation) -> None:
    """One arrow per changed feature of each answer, from its value before to its value after, within its range."""
    n_answers, n_more, y = len(explanation.counterfactuals), 0, 0.0
    rows: list[tuple[float, Change]] = []
    headings: list[tuple[float, str]] = []
    for i in range(n_answers):
        changes = changes_record(explanation, i)
        if n_answers > 1:
            headings.append((y, f"answer {i + 1}, cost {explanation.costs[i]:.3g}"))
            y += HEADING
        rows += [(y + k, change) for k, change in enumerate(changes[:MOST_CHANGES])]
        y, n_more = y + len(changes[:MOST_CHANGES]), n_more + len(changes[MOST_CHANGES:])
    larger = LARGER if y <= FEW_ROWS else 1.0
    for at, change in rows:
        _draw_change(axes, at, change, larger)
    for at, heading in headings:
        axes.text(0.5, at, heading, ha="center", va="center", fontsize=9, fontweight="bold")
    places = [at for at, _ in rows]
    axes.set_yticks(places, [_short(change.feature, 44, 24) for _, change in rows], fontsize=9 * larger)
    beside = axes.twinx()  # for labels on the right that the layout makes room for
    words = [f"{_short(c.before)} → {_short(c.after)}\n{c.step}" for _, c in rows]
    beside.set_yticks(places, words, fontsize=8 * larger)
    for one in (axes, beside):
        one.set_ylim(y - 0.5, -0.5)
        one.tick_params(length=0)
        one.spines[:].set_visible(False)
    axes.set_xlim(-0.6, 1.6)
    axes.set_xticks([])
    more = f" (and {n_more} smaller changes)" if n_more else ""
    axes.set_xlabel(f"within the feature's range, or from one category to another{more}", fontsize=9)
    _legend(axes, {"before": BEFORE, "after": HEAD})


def _draw_change(axes: Axes, y: float, change: Change, larger: float) -> None:
    """Draw one arrow; a change of category has no position within a range and goes from one end to the other."""
    has_range = bool(change.low or change.high)
    start, end = (change.start, change.end) if has_range else (0.0, 1.0)
    low, high = (change.low, change.high) if has_range else (change.before, change.after)
    axes.plot([0, 1], [y, y], color=LIGHT_GREY, linewidth=3 * larger, solid_capstyle="round", zorder=1)
    axes.plot([start, end], [y, y], color=BLUE, linewidth=2 * larger, zorder=2)
    axes.plot(start, y, **{**BEFORE, "markersize": 8 * larger}, zorder=3)
    axes.plot(end, y, **{**HEAD, "marker": ">" if end >= start else "<", "markersize": 9 * larger}, zorder=4)
    for place, text, side in ((-0.05, low, "right"), (1.05, high, "left")):
        axes.text(place, y, _short(text, 9), ha=side, va="center", fontsize=7 * larger, color=DARK_GREY)


def _draw_trace(axes: Axes, explanation: Explanation) -> None:
    """Draw the cost of each hit and miss, and the best cost so far, against queries."""
    steps, turn = explanation.steps, bend(explanation.steps)
    cost, best, is_hit = (np.array([getattr(step, name) for step in steps]) for name in ("cost", "best", "hit"))
    query, known, most = np.arange(1, len(steps) + 1), np.isfinite(best), float(cost.max())
    _mark(axes, query, cost, is_hit)
    axes.step(query[known], best[known], where="post", **BEST)
    axes.set_ylabel("cost")
    if turn is not None:  # symlog, since the factual's cost is 0
        axes.set_yscale("symlog", linthresh=turn)
        axes.set_yticks(_ticks(turn, most))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("cost (logarithmic above the best)")
    axes.set_ylim(0, 1.1 * most or 1.0)
    known_before = f" ({explanation.n_reused} of them known before)" if explanation.n_reused else ""
    axes.set_xlabel(f"queries{known_before}")
    _legend(axes, {"hit": HIT, "miss": MISS, "best so far": BEST})


def _ticks(threshold: float, most: float) -> list[float]:
    """Zero and round numbers from about a third of the threshold up to `most`, one or three per decade."""
    decades = np.arange(np.floor(np.log10(threshold)) - 1, np.ceil(np.log10(most)) + 1)
    steps = (1, 2, 5) if most < 200 * threshold else (1,)
    round_numbers = [float(f"{step}e{int(decade)}") for decade in decades for step in steps]
    return [0.0, *(number for number in round_numbers if 0.3 * threshold <= number <= 1.1 * most)]


def _draw_numbers(axes: Axes, explanation: Explanation) -> None:
    """Draw the model's numbers against queries, with the target range shaded.

    Raises:
        ValueError: the target is a label.
    """
    target = explanation.plan.target
    if not isinstance(target, Measured):
        raise ValueError("kind 'numbers' is for explanations whose target is a range of numbers; this one has labels.")
    numbers = np.array([step.label for step in explanation.steps], dtype=float)
    low, high = target.limits(float(numbers[0]))  # infinite if there is no limit
    shown = np.array([*numbers, *(end for end in (low, high) if np.isfinite(end))])
    room = 0.05 * (float(np.ptp(shown)) or 1.0)
    bottom, top = float(shown.min()) - room, float(shown.max()) + room
    axes.axhspan(max(low, bottom), min(high, top), color=LIGHT_BLUE, zorder=0)
    query = np.arange(1, len(numbers) + 1)
    _mark(axes, query, numbers, np.array([step.hit for step in explanation.steps], dtype=bool))
    axes.plot(query[0], numbers[0], **BEFORE)
    keys = {"factual": BEFORE, "hit": HIT, "miss": MISS}
    for best in explanation.ending.counterfactuals[:1]:
        axes.plot(query[best], numbers[best], **AFTER)
        keys["counterfactual"] = AFTER
    axes.set_ylim(bottom, top)
    axes.set_xlabel("queries (shaded: the range wanted)")
    name = "the model's answer" if target.label is None else f"probability of {target.label}"
    axes.set_ylabel(_plain(name))
    _legend(axes, keys)


# -- many explanations -----------------------------------------------------------------------------------------------


def draw_explanations(explanations: Iterable[Explanation]) -> Figure:
    """The most frequently changed features on the left; outcomes, costs and queries on the right.

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
    often = sorted(ways, key=lambda name: -ways[name].total())[:MOST_FEATURES]
    ended = Counter(e.outcome for e in every)
    title = f"{ended['found']} of {len(every)} rows have a counterfactual"
    figure = NotebookFigure(12.0, max(6.5, 1.8 + 0.36 * len(often)), title)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(6, 5))[0]
    axes = left.add_subplot()
    _draw_changed(axes, {name: ways[name] for name in often})
    more = f" ({len(ways) - len(often)} more features not shown)" if len(ways) > len(often) else ""
    axes.set_xlabel(f"counterfactuals that change it, of {ended['found']}{more}", fontsize=9)
    outcomes, costs, queries = right.subplots(3, 1, height_ratios=(0.6 + 0.35 * len(ended), 2, 2))
    _draw_outcomes(outcomes, {outcome: ended[outcome] for outcome in get_args(Outcome) if ended[outcome]})
    _draw_costs(costs, np.array([e.costs[0] for e in every if e.costs]))
    _draw_queries(queries, np.array([e.n_queries for e in every]), np.array([e.outcome == "found" for e in every]))
    return figure


def _draw_changed(axes: Axes, changed: dict[str, Counter[Way]]) -> None:
    """Draw one bar per feature: how many counterfactuals change it, and in which direction."""
    rows, done = np.arange(len(changed)), np.zeros(len(changed))
    for way, (_, look) in WAYS.items():
        counts = np.array([ways[way] for ways in changed.values()], dtype=float)
        some = counts > 0  # a bar of length 0 would still have an edge
        axes.barh(rows[some], counts[some], left=done[some], height=0.7, linewidth=0.8, **look)
        done += counts
    for row, n in enumerate(done.astype(int)):
        axes.text(n, row, f" {n}", va="center", ha="left", fontsize=8)
    _open_frame(axes)
    axes.set_yticks(rows, [_short(feature, 44, 24) for feature in changed], fontsize=9)
    axes.set_ylim(max(len(changed), 4) - 0.5, -0.5)
    axes.set_xlim(0, 1.1 * max(done, default=1))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=ROUND))
    keys = [Patch(**look, label=label) for label, look in WAYS.values()]
    axes.legend(handles=keys, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3, frameon=False, fontsize=9)


def _draw_outcomes(axes: Axes, outcomes: dict[Outcome, int]) -> None:
    bars = axes.barh(range(len(outcomes)), list(outcomes.values()), height=0.6, color=DARK_GREY)
    axes.bar_label(bars, padding=3, fontsize=8)
    axes.set_yticks(range(len(outcomes)), [OUTCOMES[outcome] for outcome in outcomes], fontsize=9)
    axes.set_ylim(len(outcomes) - 0.4, -0.6)
    axes.set_xlim(0, 1.15 * max(outcomes.values()))
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _draw_costs(axes: Axes, costs: FloatArray) -> None:
    if len(costs):
        axes.hist(costs, bins=min(12, max(4, len(costs) // 2)), color=BLUE, edgecolor="white")
        axes.axvline(float(np.median(costs)), color="black", linewidth=1.5, linestyle="--")
        axes.set_title(f"median {np.median(costs):.3g} (dashed)", fontsize=8, color=DARK_GREY)
    axes.set_xlabel("cost of the best counterfactual", fontsize=9)
    axes.set_ylabel("rows", fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=ROUND))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=ROUND))
    _open_frame(axes)


def _draw_queries(axes: Axes, n_queries: IntArray, is_found: BoolArray) -> None:
    rows = np.arange(1, len(n_queries) + 1)
    hatched = ""
    if len(rows) > MOST_ROWS:
        axes.step(rows, n_queries, where="mid", color=BLUE, linewidth=1)
    else:
        axes.bar(rows[is_found], n_queries[is_found], color=BLUE)
        axes.bar(rows[~is_found], n_queries[~is_found], **NOT_FOUND)
        hatched = "" if is_found.all() else "; hatched: nothing found"
    axes.set_title(f"{n_queries.sum()} queries in total{hatched}", fontsize=8, color=DARK_GREY)
    axes.set_xlabel("row", fontsize=9)
    axes.set_ylabel("queries paid", fontsize=9)
    axes.set_ylim(0, 1.1 * max(int(n_queries.max()), 1))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=ROUND))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=ROUND))
    _open_frame(axes)


# -- groups ----------------------------------------------------------------------------------------------------------


def draw_groups(groups: Groups) -> Figure:
    """Groups of rows, in the order of their names: costs on the left, changed features on the right."""
    table = groups.table
    shares = groups.features.pivot(index="feature", columns="group", values="share").reindex(columns=table.index)
    often = shares.fillna(0.0).mean(axis=1).sort_values(ascending=False, kind="stable").index[:MOST_FEATURES]
    height = 1.8 + 0.34 * max(len(table), len(often), 3)
    figure = NotebookFigure(10.5, height, f"Counterfactuals by {_short(groups.by, 60)}")
    left, right = figure.subplots(1, 2)

    columns = ["found", "cost_q1", "cost", "cost_q3", "cost_low", "cost_high"]
    names = []
    for row, (group, found, q1, median, q3, low, high) in enumerate(table[columns].itertuples(name=None)):
        names.append(f"{_short(str(group), 28)} ({found})")
        if np.isnan(median):
            continue
        left.barh(row, q3 - q1, left=q1, height=0.55, color=LIGHT_BLUE, edgecolor=BLUE)
        left.plot([median, median], [row - 0.275, row + 0.275], color="black", linewidth=2)
        if not np.isnan(low):
            left.plot([low, high], [row, row], color="black", linewidth=1.2, marker="|", markersize=7)
    left.set_yticks(range(len(names)), names, fontsize=9)
    left.set_ylim(len(names) - 0.4, -0.6)
    left.set_xlabel("cost: middle half of the rows, median, and its 95% interval", fontsize=9)
    _open_frame(left)

    styles: dict[str, Style] = {}
    for i, group in enumerate(table.index):
        marker, colour = GROUPS[i % len(GROUPS)]
        look: Style = {"marker": marker, "color": colour, "linestyle": "none", "markersize": 6}
        styles[_short(str(group), 20)] = look
        right.plot(100 * shares.loc[often, group], np.arange(len(often)), **look)
    right.set_yticks(range(len(often)), [_short(str(name), 28) for name in often], fontsize=9)
    right.set_ylim(max(len(often), 3) - 0.5, -0.5)
    right.set_xlim(-3, 103)
    right.grid(axis="y", color="#E8E8E8", linewidth=0.8)
    right.set_axisbelow(True)
    right.set_xlabel("counterfactuals that change it, in %", fontsize=9)
    _open_frame(right)
    if len(styles) <= len(GROUPS):
        _legend(right, styles)
    return figure


# -- axes and texts --------------------------------------------------------------------------------------------------


def _darken(figure: Figure) -> None:
    """Replace all colours of a figure by those for a dark page."""
    figure.set_facecolor("white")
    for axes in figure.axes:
        axes.tick_params(colors="black")
    for artist in figure.findobj():
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            read, write = getattr(artist, f"get_{name}", None), getattr(artist, f"set_{name}", None)
            if read is None or write is None:
                continue
            with suppress(ValueError):  # several colours, or none
                colour = read()
                if to_rgba(colour)[3] > 0 and (dark := DARK.get(to_hex(colour))):
                    write(dark)
    for axes in figure.axes:
        axes.tick_params(colors=DARK["#000000"])


def _legend(axes: Axes, styles: dict[str, Style]) -> None:
    """Draw a legend above the axes, where it covers no data."""
    handles = [Line2D([], [], **style, label=name) for name, style in styles.items()]
    place: Style = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axes.legend(handles=handles, **place, ncols=len(styles), frameon=False, fontsize=9)


def _mark(axes: Axes, query: IntArray, y: FloatArray, is_hit: BoolArray) -> None:
    """Draw queries along the x axis, with a dot for each hit and a cross for each miss."""
    for chosen, style in ((is_hit, HIT), (~is_hit, MISS)):
        axes.plot(query[chosen], y[chosen], **style, alpha=0.8, clip_on=False)
    axes.set_xlim(0, len(query) + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=ROUND))
    _open_frame(axes, labels=10)


def _open_frame(axes: Axes, labels: int = 8) -> None:
    """Keep only the left and the lower side of the frame, and set the size of tick labels."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=labels)


def _plain(text: str) -> str:
    """The text with escaped dollar signs, since matplotlib renders text between two of them as a formula."""
    return text.replace("$", r"\$")


def _short(text: str, most: int = 18, width: int = 100) -> str:
    """The text shortened to `most` characters and wrapped at `width`."""
    text = " ".join(text.split())
    text = text if len(text) <= most else text[: most - 1] + "…"
    return _plain("\n".join(textwrap.wrap(text, width)))
