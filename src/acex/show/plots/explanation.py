"""Pictures of one explanation: changes, counterfactuals side by side, cost and numbers against queries, images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.engine.explanation import Explanation, changes_as_text
from acex.errors import NoCounterfactual
from acex.plan.target import Measured
from acex.show.plots import style
from acex.show.plots.style import SIGN, NotebookFigure, Picture, drawn, legend, mark, named, plain, short, wrapped
from acex.values import is_missing, listed

Kind: TypeAlias = Literal["changes", "counterfactuals", "trace", "numbers"]

MOST_CHANGES = 20  # that are shown; more would not be readable
LEAST_ROWS = 4  # with fewer changes than these, rows come no further apart
MOST_FEATURES, MOST_COLUMNS = 30, 6  # of counterfactuals side by side, which fit on a page
NAMES = 1.6  # width of the column of names, in other columns
LETTER = 0.085  # inches that a letter in a cell takes, bold ones included
WIDE = 5  # times the best cost: from here on the axis of the costs is logarithmic
MOST_SIGNED = 16  # pixels a side, up to which an image has room for signs


def draw_explanation(explanation: Explanation, picture: Picture | None = None) -> Figure:
    """The summary, with a picture on the left and the cost against queries on the right.

    Args:
        picture: a record; by default the changes, and no picture if nothing was found.

    Raises:
        NoCounterfactual: the row failed before anything was asked.
    """
    if not explanation.steps:
        raise NoCounterfactual(explanation.summary())
    trace = trace_record(explanation)
    if picture is None and explanation.outcome == "found":
        picture = changes_record(explanation)
    if picture is None:
        return drawn(trace, explanation.summary())
    width, height = picture.size
    figure = NotebookFigure((5.0 + width, height), explanation.summary())
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(width, 5.0))[0]
    picture.draw(left)
    trace.draw(right)
    return figure


def draw_kind(explanation: Explanation, kind: Kind) -> Figure:
    """The summary with one picture.

    Raises:
        NoCounterfactual: the picture needs a counterfactual, and nothing was found.
    """
    kinds: dict[Kind, Callable[[Explanation], Picture]] = {
        "changes": changes_record,
        "counterfactuals": counterfactuals_record,
        "trace": trace_record,
        "numbers": numbers_record,
    }
    if kind not in kinds:
        raise ValueError(f"kind: {kind!r} is not one of {listed(kinds)}.")
    if kind in ("changes", "counterfactuals") and explanation.counterfactuals.empty:
        raise NoCounterfactual(explanation.summary())
    return drawn(kinds[kind](explanation), explanation.summary())


# -- what the best counterfactual changes, within the range of each feature ------------------------------------------


@dataclass(frozen=True)
class Change:
    """One changed feature: its values and step as text, and their places within its range (0: lowest, 1: highest)."""

    feature: str
    before: str
    after: str
    step: str  # in standard deviations, or "change"
    start: float
    end: float
    low: str  # the ends of the range; empty for nominal features, whose order means nothing
    high: str
    needed: str = "not checked"  # or how it was checked


@dataclass(frozen=True)
class Changes(Picture):
    """What the best counterfactual changes, largest step first."""

    shown: tuple[Change, ...]
    n_more: int  # changes with smaller steps, left out

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, max(4.5, 1.6 + 0.36 * len(self.shown))

    def draw(self, figure: FigureBase) -> None:
        """One line per feature: its value before and after, within the feature's range."""
        axes = figure.add_subplot()
        n = len(self.shown)
        for row, change in enumerate(self.shown):
            axes.plot([0, 1], [row, row], color=style.LIGHT_GREY, linewidth=3, solid_capstyle="round", zorder=1)
            axes.plot([change.start, change.end], [row, row], color=style.BLUE, linewidth=2, zorder=2)
            axes.plot(change.start, row, **style.BEFORE, zorder=3)
            axes.plot(change.end, row, **style.AFTER, zorder=4)
            for place, text, side in ((-0.04, change.low, "right"), (1.04, change.high, "left")):
                axes.text(place, row, plain(short(text, 9)), ha=side, va="center", fontsize=7, color=style.DARK_GREY)
        words = [plain(f"{short(c.before)} → {short(c.after)}\n{c.step}") for c in self.shown]
        axes.set_yticks(range(n), [named(c.feature) for c in self.shown], fontsize=9)
        beside = axes.twinx()  # its labels on the right, for which the layout then makes room
        beside.set_yticks(range(n), words, fontsize=8)
        middle, half = (n - 1) / 2, max(n, LEAST_ROWS) / 2
        for one in (axes, beside):
            one.set_ylim(middle + half, middle - half)
            one.tick_params(length=0)
            one.spines[:].set_visible(False)
        axes.set_xlim(-0.32, 1.32)
        axes.set_xticks([])
        more = f" (and {self.n_more} smaller changes)" if self.n_more else ""
        axes.set_xlabel(f"within the feature's range{more}", fontsize=9)
        legend(axes, {"before": style.BEFORE, "after": style.AFTER})


def changes_record(explanation: Explanation, most: int = MOST_CHANGES, i: int = 0) -> Changes:
    """The changes of counterfactual number i, the `most` largest of them; none when nothing was found."""
    if explanation.counterfactuals.empty:
        return Changes((), 0)
    shown = []
    values = explanation.changes_of(i)[["before", "after"]].itertuples(index=False, name=None)
    texts = changes_as_text(explanation, i)
    for (before, after), (name, was, becomes, step, needed) in zip(values, texts[:most], strict=False):
        feature = explanation.plan.space.feature(name)
        width, has_place = feature.high - feature.low or np.inf, feature.way(1.0, before, after) != "other"
        known = feature.encode(pd.Series([v for v in (before, after) if not is_missing(v)], dtype=object))
        start, *_, end = ((known[[0, -1]] - feature.low) / width).tolist()  # a missing value has no place
        low, high = (feature.text(feature.value(c)) if has_place else "" for c in (feature.low, feature.high))
        shown.append(Change(name, was, becomes, step, start, end, low, high, needed))
    return Changes(tuple(shown), n_more=len(texts) - len(shown))


# -- several counterfactuals side by side ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Counterfactual:
    """One column: for each feature shown a sign and the new value, None where it is unchanged."""

    cells: tuple[str | None, ...]
    cost: float
    n_changes: int


@dataclass(frozen=True)
class Counterfactuals(Picture):
    """The best counterfactuals and the features that any of them changes: first those that most of them change."""

    features: tuple[str, ...]
    factual: tuple[str, ...]
    columns: tuple[Counterfactual, ...]
    n_more_features: int  # changed as well, but left out
    n_more_columns: int

    @property
    def size(self) -> tuple[float, float]:
        return 4.5 + 1.4 * len(self.columns), max(2.5, 1.9 + 0.36 * len(self.features))

    def draw(self, figure: FigureBase) -> None:
        """A table with a row per feature and a column per counterfactual: bold with a sign where it changes."""
        axes = figure.add_subplot()
        n, columns = len(self.features), len(self.columns) + 1
        axes.set_xlim(-NAMES, columns)
        axes.set_ylim(n + 2, -1)
        axes.set_axis_off()
        letters = max(int(style.inches(figure) / (columns + NAMES) / LETTER), 6)  # that fit into a column

        def write(column: float, row: float, text: str, colour: str = "black", weight: str = "normal") -> None:
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=9, color=colour, weight=weight)

        numbers = [f" {i}" for i in range(1, columns)] if columns > 2 else [""]
        for column, heading in enumerate(["factual", *(f"counterfactual{number}" for number in numbers)]):
            write(column, -1, wrapped(heading, letters))
        names = [plain(wrapped(short(name, 44), max(int(1.5 * letters), 12))) for name in self.features]
        for row, name in enumerate([*names, "cost", "features changed"]):
            axes.text(-NAMES, row + 0.5, name, ha="left", va="center", fontsize=8.5)
        for row, value in enumerate(self.factual):
            axes.plot([-NAMES, columns], [row, row], color=style.LIGHT_GREY, linewidth=0.8)
            write(0, row, plain(short(value, letters)))
        axes.plot([-NAMES, columns], [n, n], color="black", linewidth=0.8)
        for column, counterfactual in enumerate(self.columns, start=1):
            for row, cell in enumerate(counterfactual.cells):
                if cell is None:
                    write(column, row, "·", style.DARK_GREY)
                    continue
                axes.add_patch(Rectangle((column + 0.03, row + 0.06), 0.94, 0.88, color=style.LIGHT_BLUE, linewidth=0))
                write(column, row, plain(short(cell, letters)), weight="bold")
            write(column, n, f"{counterfactual.cost:.3g}", style.DARK_GREY)
            write(column, n + 1, str(counterfactual.n_changes), style.DARK_GREY)
        key = f"{SIGN['up']} higher   {SIGN['down']} lower   {SIGN['other']} another category   · as in the factual"
        axes.set_title(key, fontsize=8, color=style.DARK_GREY)
        more = [(self.n_more_features, "more features change"), (self.n_more_columns, "more counterfactuals")]
        if notes := [f"{count} {what}" for count, what in more if count]:
            figure.supxlabel(f"not shown: {', '.join(notes)}", fontsize=8, color=style.DARK_GREY)


def counterfactuals_record(
    explanation: Explanation, most_features: int = MOST_FEATURES, most: int = MOST_COLUMNS
) -> Counterfactuals:
    """The `most` best counterfactuals, and up to `most_features` of the features that they change."""
    n = min(most, len(explanation.counterfactuals))
    tables = [explanation.changes_of(i).set_index("feature") for i in range(n)]
    names = list(dict.fromkeys(name for table in tables for name in table.index))
    names.sort(key=lambda name: -sum(name in table.index for table in tables))  # stable: larger steps stay in front
    shown = names[:most_features]
    feature = explanation.plan.space.feature

    def cell(name: str, table: pd.DataFrame) -> str | None:
        if name not in table.index:
            return None
        before, after, step = (table[column][name] for column in ("before", "after", "step"))
        return f"{SIGN[feature(name).way(step, before, after)]} {feature(name).texts(before, after)[1]}"

    return Counterfactuals(
        features=tuple(shown),
        factual=tuple(feature(name).text(explanation.factual[name]) for name in shown),
        columns=tuple(
            Counterfactual(tuple(cell(name, table) for name in shown), cost, n_changes=len(table))
            for table, cost in zip(tables, explanation.costs[:n], strict=True)
        ),
        n_more_features=len(names) - len(shown),
        n_more_columns=len(explanation.counterfactuals) - n,
    )


# -- cost and answer of every query ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trace(Picture):
    """Cost and answer of every query."""

    query: IntArray  # 1, 2, ...; the first is the factual, (n,)
    cost: FloatArray  # (n,)
    is_hit: BoolArray  # (n,)
    best: FloatArray  # cost of the best counterfactual so far, infinite before the first, (n,)
    n_reused: int  # of the queries were known before, and free

    @property
    def threshold(self) -> float | None:
        """The best cost, where costs above it are so high that their axis is logarithmic; None where it is linear."""
        best, most = float(self.best.min()), float(self.cost.max())
        return best if 0 < WIDE * best < most else None

    def draw(self, figure: FigureBase) -> None:
        """Hits and misses by their cost, and the cost of the best so far, against queries."""
        axes = figure.add_subplot()
        mark(axes, self.query, self.cost, self.is_hit, alpha=0.8, clip_on=False)
        known = np.isfinite(self.best)
        axes.step(self.query[known], self.best[known], where="post", **style.BEST)
        axes.set_ylabel("cost")
        most = float(self.cost.max())
        if self.threshold is not None:  # not log: the factual's cost is 0
            axes.set_yscale("symlog", linthresh=self.threshold)
            axes.set_yticks(_ticks(self.threshold, most))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_ylabel("cost (logarithmic above the best)")
        axes.set_ylim(0, 1.1 * most or 1.0)
        axes.set_xlim(0, len(self.query) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=style.ROUND))
        axes.set_xlabel("queries" + (f" ({self.n_reused} of them known before)" if self.n_reused else ""))
        style.open_frame(axes, labels=10)
        legend(axes, {"hit": style.HIT, "miss": style.MISS, "best so far": style.BEST})


def trace_record(explanation: Explanation) -> Trace:
    """Cost and answer of each query, and the cost of the best so far."""
    steps = explanation.steps
    return Trace(
        query=np.arange(1, len(steps) + 1),
        cost=np.array([step.cost for step in steps], dtype=float),
        is_hit=np.array([step.hit for step in steps], dtype=bool),
        best=np.array([step.best for step in steps], dtype=float),
        n_reused=explanation.n_reused,
    )


def _ticks(threshold: float, most: float) -> list[float]:
    """Round numbers up to `most`: none or two below the threshold, then one or three a decade."""
    decades = np.arange(np.floor(np.log10(threshold)) - 1, np.ceil(np.log10(most)) + 1)
    steps = (1, 2, 5) if most < 200 * threshold else (1,)
    round_numbers = [float(f"{step}e{int(decade)}") for decade in decades for step in steps]
    return [0.0, *(number for number in round_numbers if 0.3 * threshold <= number <= 1.1 * most)]


# -- the number that each query got, and the range that is wanted ----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Numbers(Picture):
    """The model's numbers in the order of the queries."""

    values: FloatArray  # the first is the factual's, (n,)
    is_hit: BoolArray  # (n,)
    low: float  # of the range wanted; infinite where there is no limit
    high: float
    best: int | None  # which query is the counterfactual
    name: str  # what the numbers are

    def draw(self, figure: FigureBase) -> None:
        """Numbers against queries, over the range that is wanted."""
        axes = figure.add_subplot()
        query = np.arange(1, len(self.values) + 1)
        ends = [end for end in (self.low, self.high) if np.isfinite(end)]
        shown = np.array([*self.values, *ends])
        room = 0.05 * (float(np.ptp(shown)) or 1.0)
        bottom, top = float(shown.min()) - room, float(shown.max()) + room
        axes.axhspan(max(self.low, bottom), min(self.high, top), color=style.LIGHT_BLUE, zorder=0)
        mark(axes, query, self.values, self.is_hit, alpha=0.8, clip_on=False)
        axes.plot(query[0], self.values[0], **style.BEFORE)
        if self.best is not None:
            axes.plot(query[self.best], self.values[self.best], **style.AFTER)
        axes.set_ylim(bottom, top)
        axes.set_xlim(0, len(query) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=style.ROUND))
        axes.set_xlabel("queries (shaded: the range wanted)")
        axes.set_ylabel(plain(self.name))
        style.open_frame(axes, labels=10)
        found = {} if self.best is None else {"counterfactual": style.AFTER}
        legend(axes, {"factual": style.BEFORE, **found, "hit": style.HIT, "miss": style.MISS})


def numbers_record(explanation: Explanation) -> Numbers:
    """The numbers of an explanation whose target is a range of numbers.

    Raises:
        ValueError: its target is a label.
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


# -- features as the pixels of an image ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Images(Picture):
    """Factual and counterfactual as images, (height, width)."""

    before: FloatArray
    after: FloatArray
    low: float  # least and greatest value of a pixel
    high: float

    def draw(self, figure: FigureBase) -> None:
        """Factual, counterfactual and their difference side by side."""
        difference = self.after - self.before
        most = float(np.abs(difference).max()) or 1.0
        panels = (
            ("factual", self.before, "gray_r", self.low, self.high),
            ("counterfactual", self.after, "gray_r", self.low, self.high),
            ("difference", difference, "PuOr", -most, most),
        )
        for axes, (title, pixels, colours, low, high) in zip(figure.subplots(1, 3), panels, strict=True):
            axes.imshow(pixels, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
            axes.set_title(title, fontsize=10)
            axes.set_xticks([])
            axes.set_yticks([])
        if max(difference.shape) <= MOST_SIGNED:
            for row, column in np.argwhere(np.abs(difference) >= most / 4):
                step = difference[row, column]
                ink = "white" if abs(step) > 0.6 * most else "black"
                axes.text(column, row, "+" if step > 0 else "−", ha="center", va="center", color=ink)


def images_record(explanation: Explanation, shape: tuple[int, int]) -> Images:
    """Factual and counterfactual as images of this shape, whose pixels are the features row by row.

    Raises:
        NoCounterfactual: there is no counterfactual to show.
    """
    space = explanation.plan.space
    before, after = (space.encode(row)[0].reshape(shape) for row in (explanation.factual, explanation.counterfactual))
    return Images(before, after, low=float(space.low.min()), high=float(space.high.max()))
