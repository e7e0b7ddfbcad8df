"""Where the decision changes, by a surrogate: a slice along two features, through factual and counterfactual.

The surrogate is fitted to the queries of the explanation alone. It has the kernel and the prior of strategy "feasible",
but measures in standard deviations, since an explanation does not hold the reference whose quantiles the search used.
So it is similar to the surrogate of the search, and its P(hit) is not an answer of the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import FigureBase
from matplotlib.ticker import MaxNLocator

from acex.arrays import BoolArray, FloatArray
from acex.engine.explanation import Explanation, asked_rows
from acex.search.evidence import HYPERPRIOR, PRIOR_DEPTH, PRIOR_FAR
from acex.search.surrogate import fit
from acex.show.plots import style
from acex.show.plots.style import Picture, Style, inches, legend, mark, plain, short, wrapped
from acex.space.feature import Feature
from acex.space.scale import Scale

STEPS = 101  # values of a number on an axis
MARGIN = 0.15  # around the points, as a share of the range they cover
MOST_WORDS = 12  # categories on an axis
NEAR = 0.1  # standard deviations that a point may lie off a slice in any feature and still count as on it
FAINT = 0.3
GOLDEN = 0.618034  # its multiples fill an interval evenly
SHADES = LinearSegmentedColormap.from_list("hit", ["#FFFFFF", "#8FBBD9"])  # light enough for marks


@dataclass(frozen=True, eq=False)
class Axis:
    """A feature and the values shown; for categories their codes and names."""

    name: str
    values: FloatArray  # ascending, (k,)
    words: tuple[str, ...] = ()  # one per value; empty for numbers

    @classmethod
    def of(cls, feature: Feature, x: FloatArray, *, whole: bool) -> Axis:
        """An axis for codes x, (n,), of a feature; the first and the last are always shown.

        Args:
            whole: show all numbers of the feature, not only those around x.
        """
        low, high = feature.low, feature.high
        if not feature.is_number:
            codes = feature.codes(feature.every(low, high))
            often = [code for code, _ in Counter([x[0], x[-1]] * len(x) + x.tolist()).most_common()]
            shown = sorted([*often, *np.setdiff1d(x if codes is None else codes, often)][:MOST_WORDS])
            return cls(feature.name, np.array(shown, dtype=float), tuple(feature.text(feature.value(c)) for c in shown))
        if not whole:
            room = MARGIN * float(np.ptp(x)) or MARGIN * (high - low)
            low, high = max(low, float(x.min()) - room), min(high, float(x.max()) + room)
        if low == high:
            low, high = low - 0.5, high + 0.5
        return cls(feature.name, np.linspace(low, high, STEPS))

    def places(self, values: FloatArray) -> FloatArray:
        """Where values lie on the axis: numbers as they are, categories by their position among those shown."""
        return np.searchsorted(self.values, values).astype(float) if self.words else values

    @property
    def edges(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        return (-0.5, len(self.values) - 0.5) if self.words else (float(self.values[0]), float(self.values[-1]))

    def shows(self, values: FloatArray) -> BoolArray:
        """Which values the axis shows, (n,)."""
        if self.words:
            return np.isin(values, self.values)
        return np.asarray((values >= self.values[0]) & (values <= self.values[-1]))


class Surrogate:
    """P(hit) by a Gaussian process on the features in standard deviations; close to the factual a miss is expected."""

    def __init__(self, scale: Scale, X: FloatArray, is_hit: BoolArray) -> None:
        self.scale = scale
        Z = scale.coordinates(X)
        self.home = Z[0]
        typical = np.sqrt(max(int((scale.deviations > 0).sum()), 1))
        self.far = np.sqrt(2) * typical  # distance of two unrelated points
        self.posterior = fit(
            Z, is_hit.astype(float), prior_mean=self._prior(Z), typical=typical, hyperprior=HYPERPRIOR,
            metric=scale.metric,
        )  # fmt: skip

    def _prior(self, Z: FloatArray) -> FloatArray:
        nearness = 1 - np.minimum(self.scale.metric.from_one(Z, self.home) / self.far, 1.0)
        return np.asarray(PRIOR_FAR - PRIOR_DEPTH * nearness)

    def probability(self, X: FloatArray) -> FloatArray:
        """P(hit) of points, (n,)."""
        Z = self.scale.coordinates(X)
        return self.posterior.probability(Z, self._prior(Z))


class Slice:
    """The points of a slice along a pair of features that contains two points, `start` and `end`.

    Other features in which these differ are interpolated: each point takes the values of its nearest place on the line
    between the two.
    """

    def __init__(self, scale: Scale, start: FloatArray, end: FloatArray, pair: list[int]) -> None:
        self.scale, self.start, self.end, self.pair = scale, start, end, pair
        self.way = scale.differences(end[None], start)[0, pair]
        self.interpolated = (start != end) & bool(self.way.any())  # (d,)
        self.interpolated[pair] = False

    def points(self, places: FloatArray) -> FloatArray:
        """The points at these values of the pair, (n, 2); (n, d)."""
        X = np.tile(self.start, (len(places), 1))
        X[:, self.pair] = places
        if self.interpolated.any():
            is_nominal = self.scale.is_nominal
            steps = self.scale.differences(X, self.start)[:, self.pair]
            # A category counts as a step towards the end only if it is the end's own.
            steps = np.where(is_nominal[self.pair] & (places != self.end[self.pair]), 0.0, steps)
            share = np.clip(steps @ self.way / (self.way @ self.way), 0.0, 1.0)[:, None]
            share = np.where(is_nominal, share >= 0.5, share)
            X = np.where(self.interpolated, self.start + share * (self.end - self.start), X)
        return X

    def holds(self, X: FloatArray) -> BoolArray:
        """Which points lie on the slice, (n,)."""
        own = self.points(X[:, self.pair])
        apart = np.where(self.scale.is_nominal, own != X, np.abs(X - own) * self.scale.per_unit)
        return np.asarray((apart <= NEAR).all(axis=1))


@dataclass(frozen=True, eq=False)
class Boundary(Picture):
    """P(hit) on a slice along two features, by the surrogate."""

    axes: tuple[Axis, Axis]
    probability: FloatArray  # (l, k), rows by the second feature
    factual: FloatArray  # (2,)
    counterfactual: FloatArray | None  # (2,)
    asked: FloatArray  # the other queries, (n, 2)
    is_hit: BoolArray  # (n,)
    on_slice: BoolArray  # (n,); the others are projected onto it
    n_others: int  # features that are not on an axis
    interpolates: bool  # do some of these change from factual to counterfactual?

    def draw(self, figure: FigureBase) -> None:
        """P(hit) as a shade with the line of one half, and the queries: faint where they lie off the slice."""
        axes = figure.add_subplot()
        self._shade(axes, figure)
        first, second = self.axes
        # Queries of one category would hide each other.
        spread = 0.6 * (np.outer(np.arange(len(self.asked)), [GOLDEN, GOLDEN**2]) % 1 - 0.5)
        x, y = (a.places(self.asked[:, j]) + bool(a.words) * spread[:, j] for j, a in enumerate(self.axes))
        for on_slice, strength in ((False, FAINT), (True, 1.0)):
            chosen = self.on_slice == on_slice
            mark(axes, x[chosen], y[chosen], self.is_hit[chosen], alpha=strength)
        start = [float(axis.places(value)) for axis, value in zip(self.axes, self.factual, strict=True)]
        found: dict[str, Style] = {}
        if self.counterfactual is not None:
            end = [float(axis.places(value)) for axis, value in zip(self.axes, self.counterfactual, strict=True)]
            axes.plot(*zip(start, end, strict=True), color="black", linewidth=1.5)
            axes.plot(*end, **style.AFTER)
            found = {"counterfactual": style.AFTER}
        axes.plot(*start, **style.BEFORE)
        _label(axes, first, second, letters=int(6 * inches(figure)))
        legend(axes, {"factual": style.BEFORE, **found, "hit": style.HIT, "miss": style.MISS})
        figure.supxlabel(wrapped(self._note(), int(11 * inches(figure))), fontsize=8, color=style.DARK_GREY)

    def _shade(self, axes: Axes, figure: FigureBase) -> None:
        """P(hit) as a shade, and where it is one half: a line, or a stroke in each stripe of a category."""
        first, second = self.axes
        half = [0.0 if axis.words else (axis.values[1] - axis.values[0]) / 2 for axis in self.axes]
        (left, right), (bottom, top) = first.edges, second.edges
        extent = (left - half[0], right + half[0], bottom - half[1], top + half[1])
        blur = "nearest" if first.words or second.words else "bilinear"
        form: Style = {"origin": "lower", "extent": extent, "aspect": "auto", "interpolation": blur}
        shade = axes.imshow(self.probability, cmap=SHADES, vmin=0, vmax=1, **form)
        bar = figure.colorbar(shade, ax=axes, ticks=[0, 0.5, 1], shrink=0.6, pad=0.02)
        bar.set_label("P(hit) by the surrogate (line: 0.5)", fontsize=8)
        bar.ax.tick_params(labelsize=8)
        line: Style = {"color": style.DARK_GREY, "linewidth": 1.2}
        for place in range(1, len(first.words)):
            axes.axvline(place - 0.5, color=style.LIGHT_GREY, linewidth=1)
        for place in range(1, len(second.words)):
            axes.axhline(place - 0.5, color=style.LIGHT_GREY, linewidth=1)
        if second.words and not first.words:
            for row, stripe in enumerate(self.probability):
                axes.vlines(_crossings(first.values, stripe), row - 0.5, row + 0.5, **line)
        elif first.words and not second.words:
            for column, stripe in enumerate(self.probability.T):
                axes.hlines(_crossings(second.values, stripe), column - 0.5, column + 0.5, **line)
        elif not first.words and self.probability.min() < 0.5 < self.probability.max():
            axes.contour(
                first.values, second.values, self.probability, levels=[0.5], colors=style.DARK_GREY, linewidths=1.2
            )
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)

    def _note(self) -> str:
        """How the slice treats the features that are not on an axis."""
        others = "change from factual to counterfactual" if self.interpolates else "are as in the factual"
        return f"Other features {others}; faint queries differ from the slice in these." if self.n_others else ""


def boundary_record(explanation: Explanation, features: Sequence[str | int] | None = None) -> Boundary:
    """P(hit) on the slice along two features that contains factual and counterfactual.

    Args:
        features: two of them; by default those with the largest changes, then those that differ most among queries.
    """
    space, scale = explanation.plan.space, explanation.plan.scale
    X = scale.filled(space.encode(asked_rows(explanation)))  # a missing value has no place of its own
    factual, is_hit = X[0], np.array([step.hit for step in explanation.steps], dtype=bool)
    found = scale.filled(space.encode(explanation.counterfactuals))
    end = found[0] if len(found) else factual
    pair = _pair(explanation, X) if features is None else [space.index(name) for name in features]
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"features: expected two different ones, got {list(features or space.names)}.")
    plane = Slice(scale, factual, end, pair)
    first, second = (Axis.of(space.features[j], np.append(X[:, j], end[j]), whole=len(space) == 2) for j in pair)
    grid = np.stack(np.meshgrid(first.values, second.values), axis=-1).reshape(-1, 2)
    probability = Surrogate(scale, X, is_hit).probability(plane.points(grid))
    rest = (factual != X).any(axis=1) & (end != X).any(axis=1)
    rest &= first.shows(X[:, pair[0]]) & second.shows(X[:, pair[1]])
    return Boundary(
        axes=(first, second),
        probability=probability.reshape(len(second.values), len(first.values)),
        factual=factual[pair],
        counterfactual=end[pair] if len(found) else None,
        asked=X[rest][:, pair],
        is_hit=is_hit[rest],
        on_slice=plane.holds(X[rest]),
        n_others=len(space) - 2,
        interpolates=bool(plane.interpolated.any()),
    )


def _pair(explanation: Explanation, X: FloatArray) -> list[int]:
    """Positions of the two features of the slice: the largest changes, then what differs most among the queries."""
    space = explanation.plan.space
    if len(space) == 2:
        return [0, 1]
    spread = explanation.plan.scale.differences(X, X[0]).std(axis=0)
    changed = [space.index(name) for name in explanation.changes["feature"]]
    ranked = sorted(range(len(space)), key=lambda j: (space.features[j].frozen, -spread[j]))
    pair = list(dict.fromkeys([*changed[:2], *ranked]))[:2]
    return sorted(pair, key=lambda j: not space.features[j].is_number)  # category names have more room at the side


def _crossings(values: FloatArray, probability: FloatArray) -> FloatArray:
    """Where P crosses one half between neighbouring values."""
    at = np.flatnonzero(np.diff(probability > 0.5))
    return np.asarray((values[at] + values[at + 1]) / 2)


def _label(axes: Axes, first: Axis, second: Axis, letters: int) -> None:
    """Names and categories beside the axes; there is room for so many letters below."""
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
