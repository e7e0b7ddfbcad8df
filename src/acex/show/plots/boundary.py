"""Where the surrogate sees the decision change: a slice along two features, through factual and counterfactual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import FigureBase
from matplotlib.ticker import MaxNLocator

from acex.arrays import BoolArray, FloatArray
from acex.engine.explanation import Explanation, asked_rows
from acex.show.plots.axis import Axis
from acex.show.plots.slices import Slice, Surrogate
from acex.show.plots.style import (
    AFTER,
    BEFORE,
    DARK_GREY,
    HIT,
    LIGHT_GREY,
    MISS,
    Style,
    inches,
    legend,
    plain,
    short,
    wrapped,
)

FAINT = 0.3
GOLDEN = 0.618034  # its multiples fill an interval evenly
PROBES = 9  # values of a feature at which its relevance is looked at
SHADES = LinearSegmentedColormap.from_list("hit", ["#FFFFFF", "#8FBBD9"])  # dark enough to tell, light enough for marks


@dataclass(frozen=True, eq=False)
class Boundary:
    """P(hit) on a slice along two features, as the surrogate sees it."""

    axes: tuple[Axis, Axis]
    probability: FloatArray  # (l, k), rows by the second feature
    factual: FloatArray  # (2,)
    counterfactual: FloatArray | None  # (2,)
    asked: FloatArray  # the other queries, (n, 2)
    is_hit: BoolArray  # (n,)
    on_slice: BoolArray  # (n,), the others are seen from above
    n_others: int  # features that are not on an axis
    n_along: int  # of these, how many go along from factual to counterfactual


def boundary_record(explanation: Explanation, features: Sequence[str | int] | None = None) -> Boundary:
    """P(hit) on the slice along two features, by a surrogate that is fitted to the explanation's queries.

    It measures in standard deviations, since an explanation holds no reference whose quantiles the search measured
    in: it resembles the search's own surrogate and is not the same. Factual and counterfactual both lie on the slice.
    Where other features change too, they go along from the one to the other; all else is as in the factual.

    Args:
        features: two of them; by default those with the largest changes, and where there are fewer than two
            changes those on which the surrogate depends most.
    """
    space, scale = explanation.plan.space, explanation.plan.scale
    X = scale.filled(space.encode(asked_rows(explanation)))  # a gap has no place of its own
    factual, is_hit = X[0], np.array([step.hit for step in explanation.steps], dtype=bool)
    found = scale.filled(space.encode(explanation.counterfactuals))
    end = found[0] if len(found) else factual
    surrogate = Surrogate(scale, X, is_hit)
    pair = _chosen(explanation, features, surrogate, end, X)
    plane = Slice(scale, factual, end, pair)
    first, second = (
        Axis.of(space.features[j], np.append(X[:, j], end[j]), space.low[j], space.high[j], whole=len(space) == 2)
        for j in pair
    )
    grid = np.stack(np.meshgrid(first.values, second.values), axis=-1).reshape(-1, 2)
    probability = surrogate.probability(plane.points(grid)).reshape(len(second.values), len(first.values))
    rest = (factual != X).any(axis=1) & (end != X).any(axis=1)
    rest &= first.shows(X[:, pair[0]]) & second.shows(X[:, pair[1]])
    return Boundary(
        axes=(first, second),
        probability=probability,
        factual=factual[pair],
        counterfactual=end[pair] if len(found) else None,
        asked=X[rest][:, pair],
        is_hit=is_hit[rest],
        on_slice=plane.holds(X[rest]),
        n_others=len(space) - 2,
        n_along=int(plane.along.sum()),
    )


def _chosen(
    explanation: Explanation, features: Sequence[str | int] | None, surrogate: Surrogate, end: FloatArray, X: FloatArray
) -> list[int]:
    """Positions of the two features of the slice."""
    space = explanation.plan.space
    if features is not None:
        pair = [space.index(name) for name in features]
        if len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"features: expected two different ones, got {list(features)}.")
        return pair
    if len(space) < 2:
        raise ValueError(f"A slice needs two features; this explanation has {space.names}.")
    if len(space) == 2:
        return [0, 1]
    changed = [space.index(name) for name in explanation.changes["feature"]]
    ranked = sorted(range(len(space)), key=lambda j: (space.features[j].frozen, -_relevance(surrogate, end, X, j)))
    pair = list(dict.fromkeys([*changed[:2], *ranked]))[:2]
    return sorted(pair, key=lambda j: not space.features[j].is_number)  # words have more room at the side


def _relevance(surrogate: Surrogate, x: FloatArray, X: FloatArray, j: int) -> float:
    """How far P(hit) at x, (d,), goes up and down while feature j takes the values that were asked."""
    values = np.unique(X[:, j])
    values = values[np.linspace(0, len(values) - 1, min(len(values), PROBES)).astype(int)]
    probes = np.tile(x, (len(values), 1))
    probes[:, j] = values
    return float(np.ptp(surrogate.probability(probes)))


def draw_boundary(boundary: Boundary, figure: FigureBase) -> None:
    """P(hit) as a shade with the line of one half, the queries over it: faint where they lie off the slice."""
    axes = figure.add_subplot()
    _shade(boundary, axes, figure)
    first, second = boundary.axes
    # Queries of one category would hide each other.
    spread = 0.6 * (np.outer(np.arange(len(boundary.asked)), [GOLDEN, GOLDEN**2]) % 1 - 0.5)
    spread *= [bool(first.words), bool(second.words)]
    places = np.column_stack([first.places(boundary.asked[:, 0]), second.places(boundary.asked[:, 1])]) + spread
    for is_hit, style in ((False, MISS), (True, HIT)):
        for on_slice, strength in ((False, FAINT), (True, 1.0)):
            chosen = (boundary.is_hit == is_hit) & (boundary.on_slice == on_slice)
            axes.plot(*places[chosen].T, **style, alpha=strength)
    start = [float(axis.places(value)) for axis, value in zip(boundary.axes, boundary.factual, strict=True)]
    marks = {"factual": BEFORE, "hit": HIT, "miss": MISS}
    if boundary.counterfactual is not None:
        end = [float(axis.places(value)) for axis, value in zip(boundary.axes, boundary.counterfactual, strict=True)]
        axes.plot(*zip(start, end, strict=True), color="black", linewidth=1.5)
        axes.plot(*end, **AFTER)
        marks = {"factual": BEFORE, "counterfactual": AFTER, "hit": HIT, "miss": MISS}
    axes.plot(*start, **BEFORE)
    _label(axes, first, second, letters=int(6 * inches(figure)))
    legend(axes, marks)
    figure.supxlabel(wrapped(_words(boundary), int(11 * inches(figure))), fontsize=8, color=DARK_GREY)


def _shade(boundary: Boundary, axes: Axes, figure: FigureBase) -> None:
    """P(hit) as a shade, and where it is one half: a line, or in each stripe of a category a stroke."""
    first, second = boundary.axes
    half = [0.0 if axis.words else (axis.values[1] - axis.values[0]) / 2 for axis in boundary.axes]
    (left, right), (bottom, top) = first.edges, second.edges
    extent = (left - half[0], right + half[0], bottom - half[1], top + half[1])
    blur = "nearest" if first.words or second.words else "bilinear"
    form: Style = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": blur}
    shade = axes.imshow(boundary.probability, cmap=SHADES, vmin=0, vmax=1, **form)
    bar = figure.colorbar(shade, ax=axes, ticks=[0, 0.5, 1], shrink=0.6, pad=0.02)
    bar.set_label("P(hit) by the surrogate (line: 0.5)", fontsize=8)
    bar.ax.tick_params(labelsize=8)
    if first.words or second.words:
        for one, line in ((first, axes.axvline), (second, axes.axhline)):
            for place in range(1, len(one.words)):
                line(place - 0.5, color=LIGHT_GREY, linewidth=1)
        if not first.words:
            for row, stripe in enumerate(boundary.probability):
                axes.vlines(_crossings(first.values, stripe), row - 0.5, row + 0.5, color=DARK_GREY, linewidth=1.2)
        if not second.words:
            for column, stripe in enumerate(boundary.probability.T):
                at = _crossings(second.values, stripe)
                axes.hlines(at, column - 0.5, column + 0.5, color=DARK_GREY, linewidth=1.2)
    elif boundary.probability.min() < 0.5 < boundary.probability.max():
        axes.contour(first.values, second.values, boundary.probability, levels=[0.5], colors=DARK_GREY, linewidths=1.2)
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)


def _crossings(values: FloatArray, probability: FloatArray) -> FloatArray:
    """Where P crosses one half between neighbouring values."""
    at = np.flatnonzero(np.diff(probability > 0.5))
    return np.asarray((values[at] + values[at + 1]) / 2)


def _label(axes: Axes, first: Axis, second: Axis, letters: int) -> None:
    """Names and categories beside the axes; below there is room for so many letters."""
    axes.set_xlabel(plain(short(first.name, 44)), fontsize=9)
    axes.set_ylabel(plain(wrapped(short(second.name, 44), 30)), fontsize=9)
    axes.tick_params(labelsize=8)
    if first.words:
        is_wide = sum(len(short(word)) + 2 for word in first.words) > letters
        words = [plain(short(word)) for word in first.words]
        axes.set_xticks(range(len(words)), words, rotation=90 if is_wide else 0)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    if second.words:
        axes.set_yticks(range(len(second.words)), [plain(short(word)) for word in second.words])


def _words(boundary: Boundary) -> str:
    """What else there is to know about the slice."""
    words = []
    if boundary.n_along:
        rest = "" if boundary.n_along == boundary.n_others else "; the rest is as in the factual"
        go = "1 other feature goes" if boundary.n_along == 1 else f"{boundary.n_along} other features go"
        words.append(f"{go} along from factual to counterfactual{rest}")
    elif boundary.n_others:
        words.append("other features as in the factual")
    if not boundary.on_slice.all():
        words.append("faint queries differ from the slice in other features")
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in words)
