"""Pictures of an explanation: `*_record` works out the numbers, `draw_*` draws them. Nothing is asked.

A drawing goes onto a Figure, or onto a part of one, without pyplot: it works without a screen, and leaves
the figures of others alone. Colours are Okabe and Ito's, which the colour-blind tell apart, and whatever
differs in colour differs in shape too.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from acex.arrays import BoolArray, FloatArray, IntArray, Rows
from acex.explanation import Explanation, readable, readable_pair
from acex.features import Categorical, Feature, Nominal
from acex.target import Target

Style: TypeAlias = dict[str, Any]
BLUE, VERMILLION = "#0072B2", "#D55E00"
LIGHT_BLUE, LIGHT_VERMILLION = "#D6EAF6", "#FBE6D6"
LIGHT_GREY, DARK_GREY = "#D0D0D0", "#606060"
HIT: Style = {"marker": "o", "color": BLUE, "linestyle": "none", "markersize": 5}
MISS: Style = {"marker": "x", "color": VERMILLION, "linestyle": "none", "markersize": 5}
BEST: Style = {"color": "black", "linewidth": 1.5}
BEFORE: Style = {
    "marker": "o",
    "color": "black",
    "markerfacecolor": "white",
    "linestyle": "none",
    "markersize": 8,
}
AFTER: Style = {
    "marker": "D",
    "color": "black",
    "markerfacecolor": BLUE,
    "linestyle": "none",
    "markersize": 6,
}

MOST_CHANGES = 20  # of the changes are shown; more rows than this nobody reads
LEAST_ROWS = 4  # with fewer changes than these, rows come no further apart
WIDE = 5  # times the best cost: from here on the axis of the costs is logarithmic
GRID = 300  # points a side, at which the regions of a model in the plane are looked at
MOST_SIGNED = 16  # pixels a side, up to which an image has room for signs


# -- the numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One changed feature, in words and as places within its range (0: lowest, 1: highest)."""

    feature: str
    before: str
    after: str
    step: float  # in standard deviations
    start: float
    end: float
    low: str  # the ends of the range; empty for nominal features, whose order means nothing
    high: str


@dataclass(frozen=True)
class Changes:
    """What the best counterfactual changes, largest step first."""

    shown: tuple[Change, ...]
    n_more: int  # changes with smaller steps, left out


@dataclass(frozen=True, eq=False)
class Trace:
    """Every query and what it brought."""

    query: IntArray  # 1, 2, ...; the first is the factual, (n,)
    cost: FloatArray  # (n,)
    is_hit: BoolArray  # (n,)
    best: FloatArray  # cost of the best counterfactual so far, infinite before the first, (n,)
    n_reused: int  # of the queries were known before, and free


@dataclass(frozen=True, eq=False)
class Plane:
    """An explanation of two numeric features, as a map."""

    names: tuple[str, str]
    factual: FloatArray  # (2,)
    counterfactual: FloatArray | None  # (2,)
    asked: FloatArray  # the queries after the factual, (n, 2)
    is_hit: BoolArray  # (n,)
    axes: tuple[FloatArray, FloatArray]  # values of either feature that span the map, (k,) each
    region: BoolArray | None  # where the model's label would be a hit, (k, k), rows by the second feature


@dataclass(frozen=True, eq=False)
class Images:
    """Factual and counterfactual as images, (height, width)."""

    before: FloatArray
    after: FloatArray
    low: float  # darkest and brightest value a pixel can have
    high: float

    @property
    def difference(self) -> FloatArray:
        """What was added to each pixel, (height, width)."""
        return self.after - self.before


@dataclass(frozen=True, eq=False)
class Board:
    """Factual and counterfactual as a board with a word on each square, (height, width)."""

    before: npt.NDArray[np.str_]
    after: npt.NDArray[np.str_]


Picture: TypeAlias = Changes | Plane | Images | Board


def changes_record(explanation: Explanation, most: int = MOST_CHANGES) -> Changes:
    """The changes of the best counterfactual, the `most` largest of them; none when nothing was found."""
    space = explanation.space
    changes = explanation.changes
    shown = []
    for name, before, after, step in changes.head(most).itertuples(index=False):
        feature = space.features[space.index(name)]
        words = readable_pair(before, after)
        start, end = (_place(feature, value) for value in (before, after))
        low, high = _range(feature)
        shown.append(Change(name, *words, float(step), start, end, low, high))
    return Changes(tuple(shown), n_more=len(changes) - len(shown))


def _place(feature: Feature, value: Any) -> float:
    """Where a value lies within the feature's range, 0 to 1."""
    code = feature.categories.index(value) if isinstance(feature, Categorical) else float(value)
    width = feature.high - feature.low
    return (code - feature.low) / width if width > 0 else 0.5


def _range(feature: Feature) -> tuple[str, str]:
    if isinstance(feature, Nominal):
        return "", ""
    if isinstance(feature, Categorical):
        return str(feature.categories[0]), str(feature.categories[-1])
    return readable(float(feature.low)), readable(float(feature.high))


def trace_record(explanation: Explanation) -> Trace:
    """Cost and answer of each query, and the cost of the best so far."""
    queries = explanation.queries
    return Trace(
        query=np.arange(1, len(queries) + 1),
        cost=queries["cost"].to_numpy(dtype=float),
        is_hit=queries["hit"].to_numpy(dtype=bool),
        best=queries["best"].to_numpy(dtype=float),
        n_reused=explanation.n_reused,
    )


def plane_record(explanation: Explanation, predict: Callable[[Rows], Any] | None = None) -> Plane:
    """The map of an explanation of two numeric features.

    Args:
        predict: from rows to labels, to colour the regions of the model with. It is called for some 90000
            rows that count as no query: only for a model that is yours and free. None for no regions.
    """
    space = explanation.space
    if len(space) != 2 or space.is_nominal.any():
        raise ValueError(f"A plane needs two features with an order; this explanation has {space.names}.")
    first, second = (np.linspace(low, high, GRID) for low, high in zip(space.low, space.high, strict=True))
    region = None
    if predict is not None:
        points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
        target = Target.of(explanation.target)
        hits = [target.is_hit(label, explanation.label_before) for label in predict(space.decode(points))]
        region = np.array(hits).reshape(GRID, GRID)
    best = space.encode(explanation.counterfactuals)
    return Plane(
        names=(space.names[0], space.names[1]),
        factual=space.encode(explanation.factual)[0],
        counterfactual=best[0] if len(best) else None,
        asked=space.encode(explanation.asked)[1:],
        is_hit=explanation.queries["hit"].to_numpy(dtype=bool)[1:],
        axes=(first, second),
        region=region,
    )


def images_record(explanation: Explanation, shape: tuple[int, int]) -> Images:
    """Factual and counterfactual as images of this shape, whose pixels are the features row by row.

    Raises:
        NoCounterfactual: there is no counterfactual to show.
    """
    space = explanation.space
    before, after = (
        space.encode(row)[0].reshape(_checked(shape, len(space)))
        for row in (explanation.factual, explanation.counterfactual)
    )
    return Images(before, after, low=float(space.low.min()), high=float(space.high.max()))


def board_record(explanation: Explanation, shape: tuple[int, int], blank: str = "") -> Board:
    """Factual and counterfactual as boards of this shape, whose squares are the features row by row.

    Args:
        blank: the value that stands for an empty square.

    Raises:
        NoCounterfactual: there is no counterfactual to show.
    """
    before, after = (
        np.array(["" if v == blank else readable(v) for v in row.tolist()]).reshape(_checked(shape, len(row)))
        for row in (explanation.factual, explanation.counterfactual)
    )
    return Board(before, after)


def _checked(shape: tuple[int, int], n: int) -> tuple[int, int]:
    if shape[0] * shape[1] != n:
        raise ValueError(f"shape {shape} holds {shape[0] * shape[1]} values, but there are {n} features.")
    return shape


# -- the drawings ----------------------------------------------------------------------------------------


class _Shown(Figure):
    """A figure that shows itself in a notebook, also when pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def draw_explanation(explanation: Explanation, picture: Picture | None = None) -> Figure:
    """The summary, with a picture on the left and the cost against queries on the right.

    Args:
        picture: a record from this module; by default the changes, and no picture if nothing was found.
    """
    if picture is None and explanation.outcome == "found":
        picture = changes_record(explanation)
    n_rows = len(picture.shown) if isinstance(picture, Changes) else 0
    width, height = 7.0 if picture is None else 12.0, max(4.5, 1.6 + 0.36 * n_rows)
    figure = _Shown(figsize=(width, height), dpi=120, layout="constrained")
    figure.suptitle(_plain(_wrapped(explanation.summary(), int(9 * width))), fontsize=12)
    if picture is None:
        draw_trace(trace_record(explanation), figure)
        return figure
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(7, 5))[0]
    match picture:
        case Changes():
            draw_changes(picture, left)
        case Plane():
            draw_plane(picture, left)
        case Images():
            draw_images(picture, left)
        case Board():
            draw_board(picture, left)
    draw_trace(trace_record(explanation), right)
    return figure


def draw_changes(changes: Changes, figure: FigureBase) -> None:
    """A line a feature: where it was and where it goes, within the feature's range."""
    axes = figure.add_subplot()
    n = len(changes.shown)
    for row, change in enumerate(changes.shown):
        axes.plot([0, 1], [row, row], color=LIGHT_GREY, linewidth=3, solid_capstyle="round", zorder=1)
        axes.plot([change.start, change.end], [row, row], color=BLUE, linewidth=2, zorder=2)
        axes.plot(change.start, row, **BEFORE, zorder=3)
        axes.plot(change.end, row, **AFTER, zorder=4)
        for place, text, side in ((-0.04, change.low, "right"), (1.04, change.high, "left")):
            axes.text(place, row, _plain(_short(text, 9)), ha=side, va="center", fontsize=7, color=DARK_GREY)
    names = [_plain(_wrapped(_short(c.feature, 44), 24)) for c in changes.shown]
    words = [_plain(f"{_short(c.before)} → {_short(c.after)}\n{c.step:+.2f} sd") for c in changes.shown]
    axes.set_yticks(range(n), names, fontsize=9)
    beside = axes.twinx()  # its labels on the right, for which the layout then makes room
    beside.set_yticks(range(n), words, fontsize=8)
    middle, half = (n - 1) / 2, max(n, LEAST_ROWS) / 2
    for one in (axes, beside):
        one.set_ylim(middle + half, middle - half)
        one.tick_params(length=0)
        one.spines[:].set_visible(False)
    axes.set_xlim(-0.32, 1.32)
    axes.set_xticks([])
    more = f" (and {changes.n_more} smaller changes)" if changes.n_more else ""
    axes.set_xlabel(f"within the feature's range{more}", fontsize=9)
    _legend(axes, {"before": BEFORE, "after": AFTER})


def draw_trace(trace: Trace, figure: FigureBase) -> None:
    """Hits and misses by their cost, and the cost of the best so far, against queries."""
    axes = figure.add_subplot()
    for is_hit, style in ((True, HIT), (False, MISS)):
        chosen = trace.is_hit == is_hit
        axes.plot(trace.query[chosen], trace.cost[chosen], **style, alpha=0.8, clip_on=False)
    known = np.isfinite(trace.best)
    axes.step(trace.query[known], trace.best[known], where="post", **BEST)
    axes.set_ylabel("cost")
    # The factual costs nothing, but the first queries may cost a hundred times the best.
    most = float(trace.cost.max())
    bend = float(trace.best[known].min()) if known.any() else most
    if 0 < WIDE * bend < most:
        axes.set_yscale("symlog", linthresh=bend)
        axes.set_yticks(_ticks(bend, most))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("cost (logarithmic above the best)")
    axes.set_ylim(0, 1.1 * most or 1.0)
    axes.set_xlim(0, len(trace.query) + 1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("queries" + (f" ({trace.n_reused} of them known before)" if trace.n_reused else ""))
    axes.spines[["top", "right"]].set_visible(False)
    _legend(axes, {"hit": HIT, "miss": MISS, "best so far": BEST})


def _ticks(bend: float, most: float) -> list[float]:
    """Round numbers up to `most`: none or two below the bend, then one or three a decade."""
    decades = np.arange(np.floor(np.log10(bend)) - 1, np.ceil(np.log10(most)) + 1)
    steps = (1, 2, 5) if most < 200 * bend else (1,)
    round_numbers = [float(f"{step}e{int(decade)}") for decade in decades for step in steps]
    return [0.0, *(number for number in round_numbers if 0.3 * bend <= number <= 1.1 * most)]


def draw_plane(plane: Plane, figure: FigureBase) -> None:
    """The queries on the map, over the regions of the model where they are known."""
    axes = figure.add_subplot()
    if plane.region is not None:
        first, second = plane.axes
        colours = ListedColormap([LIGHT_VERMILLION, LIGHT_BLUE])
        edges = (first[0], first[-1], second[0], second[-1])
        axes.imshow(plane.region, cmap=colours, vmin=0, vmax=1, origin="lower", extent=edges, aspect="auto")
        if plane.region.any() and not plane.region.all():
            axes.contour(first, second, plane.region, levels=[0.5], colors=DARK_GREY, linewidths=1)
    for is_hit, style in ((True, HIT), (False, MISS)):
        axes.plot(*plane.asked[plane.is_hit == is_hit].T, **style)
    if plane.counterfactual is not None:
        axes.plot(*zip(plane.factual, plane.counterfactual, strict=True), color="black", linewidth=1.5)
        axes.plot(*plane.counterfactual, **AFTER)
    axes.plot(*plane.factual, **BEFORE)
    axes.set_xlabel(_plain(plane.names[0]))
    axes.set_ylabel(_plain(plane.names[1]))
    _legend(axes, {"factual": BEFORE, "counterfactual": AFTER, "hit": HIT, "miss": MISS})


def draw_images(images: Images, figure: FigureBase) -> None:
    """Factual, counterfactual and their difference side by side."""
    before, after, between = figure.subplots(1, 3)
    _image(before, images.before, "factual", "gray_r", images.low, images.high)
    _image(after, images.after, "counterfactual", "gray_r", images.low, images.high)
    most = float(np.abs(images.difference).max()) or 1.0
    _image(between, images.difference, "difference", "PuOr", -most, most)
    if max(images.difference.shape) <= MOST_SIGNED:
        for row, column in np.argwhere(np.abs(images.difference) >= most / 4):
            step = images.difference[row, column]
            ink = "white" if abs(step) > 0.6 * most else "black"
            between.text(column, row, "+" if step > 0 else "−", ha="center", va="center", color=ink)


def _image(axes: Axes, pixels: npt.NDArray[Any], title: str, colours: str, low: float, high: float) -> None:
    axes.imshow(pixels, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_board(board: Board, figure: FigureBase) -> None:
    """Factual and counterfactual side by side, changed squares shaded."""
    changed = board.after != board.before
    height, width = changed.shape
    before, after = figure.subplots(1, 2)
    for axes, title, words in ((before, "factual", board.before), (after, "counterfactual", board.after)):
        _image(axes, changed, title, "Blues", 0, 3)
        axes.set_xticks(np.arange(width + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(height + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="black", linewidth=1)
        axes.tick_params(which="both", length=0)
        for (row, column), word in np.ndenumerate(words):
            axes.text(column, row, _plain(_short(word, 6)), ha="center", va="center", fontsize=20)


# -- words -----------------------------------------------------------------------------------------------


def _legend(axes: Axes, styles: dict[str, Style]) -> None:
    """A legend above the axes, where it covers nothing."""
    axes.legend(
        handles=[Line2D([], [], **style, label=name) for name, style in styles.items()],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(styles),
        frameon=False,
        fontsize=9,
    )


def _plain(text: str) -> str:
    """The text as it stands: two dollar signs would begin and end a formula."""
    return text.replace("$", r"\$")


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width))


def _short(text: str, most: int = 18) -> str:
    """The text on one line, its end replaced by dots where it is longer than `most`."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
