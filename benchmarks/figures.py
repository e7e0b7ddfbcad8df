"""The pictures of the paper's suites: `*_record` computes the numbers, `draw_*` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from acex.arrays import BoolArray, FloatArray
from acex.search.surrogate import fit
from acex.show.plots import AFTER, BEFORE, HIT, MISS
from acex.space.scale import Scale
from benchmarks.methods import METHODS
from benchmarks.scenario import Scenario
from benchmarks.score import best_known, ratios

BANDED = ("feasible",)  # methods drawn with a band; the others have whiskers, because twelve bands would overlap
WORST = 12.0  # upper end of the axis, as a multiple of the best known
COLUMNS = 4
IN_THE_PLANE = {  # methods drawn on moons, with the numbers in the paper's figure
    "ace-published": "paper: 14 evaluations, distance 0.68",
    "penalty": "",
    "feasible": "",
    "growing-spheres": "paper: 501 evaluations, distance 0.59",
}
WITH_SURROGATE = ("ace-published", "penalty", "feasible")
AS_IMAGES = ("feasible", "penalty", "gradient")
SIDE = 200  # grid points per side for drawing boundaries


@dataclass(frozen=True, eq=False)
class Curve:
    """Median and quartiles over rows of J over the best known, by number of queries."""

    queries: FloatArray  # (q,)
    low: FloatArray  # (q,), infinite if less than a quarter of the rows have a hit; the others likewise
    middle: FloatArray
    high: FloatArray


def curves_record(results: pd.DataFrame) -> dict[str, dict[str, Curve]]:
    """The curves by data set and method, without rows for which no method found anything."""
    known = best_known(results)
    possible = results[[np.isfinite(known[k]) for k in zip(results["data"], results["row"], strict=True)]]
    out: dict[str, dict[str, Curve]] = {}
    for (data, method), runs in possible.groupby(["data", "method"], sort=False):
        most = runs["queries"].max()
        queries = np.unique(np.geomspace(2, max(most, 3), 120).astype(int)).astype(float)
        # "lower" takes one of the values: infinity cannot be interpolated.
        low, middle, high = np.quantile(ratios(runs, known, queries), [0.25, 0.5, 0.75], axis=0, method="lower")
        out.setdefault(str(data), {})[str(method)] = Curve(queries, low, middle, high)
    return out


def draw_curves(curves: dict[str, dict[str, Curve]]) -> Figure:
    """One panel per data set: cost over the best known against queries, both logarithmic."""
    n = len(curves)
    columns = min(n, COLUMNS)
    rows = -(-n // columns)
    figure = Figure(figsize=(3.6 * columns, 3.0 * rows + 0.9), dpi=120, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, (data, methods) in zip(panels.flat, curves.items(), strict=False):
        for method in sorted(methods, key=list(METHODS).index, reverse=True):
            _draw_curve(axes, methods[method], METHODS[method].style, banded=method in BANDED)
        axes.set(xscale="log", yscale="log", ylim=(0.97, WORST), title=data.replace("_", " "))
        axes.set_yticks([1, 1.5, 2, 3, 5, 10], ["1", "1.5", "2", "3", "5", "10"])
        axes.minorticks_off()
        axes.grid(color="#E4E4E4", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels.flat[n:]:
        axes.set_visible(False)
    shown = [m for m in METHODS if any(m in methods for methods in curves.values())]
    handles = [panels.flat[0].plot([], [], label=m, **METHODS[m].style)[0] for m in shown]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(shown), 6), frameon=False)
    for axes in panels[-1]:
        axes.set_xlabel("queries")
    for axes in panels[:, 0]:
        axes.set_ylabel("cost J over the best known")
    return figure


def _draw_curve(axes: Axes, curve: Curve, style: dict[str, Any], banded: bool) -> None:
    shown = np.isfinite(curve.middle)
    if banded:
        top = np.where(np.isfinite(curve.high), curve.high, 10 * WORST)
        axes.fill_between(curve.queries, curve.low, top, where=shown, color=style["color"], alpha=0.12, linewidth=0)
    axes.plot(curve.queries[shown], curve.middle[shown], **style)
    if shown.any():  # the end of the curve, with quartiles
        end, middle = curve.queries[-1], curve.middle[-1]
        axes.plot(
            [end, end], [curve.low[-1], min(curve.high[-1], 10 * WORST)], color=style["color"], linewidth=1, alpha=0.7
        )
        axes.plot(end, middle, color=style["color"], marker="o", markersize=4)


@dataclass(frozen=True, eq=False)
class Boundary:
    """The queries and the result of one method in the plane."""

    method: str
    factual: FloatArray  # (2,)
    counterfactual: FloatArray | None
    asked: FloatArray  # (n, 2)
    is_hit: BoolArray  # (n,)
    axes: tuple[FloatArray, FloatArray]
    truth: BoolArray  # where the black box says 1, (k, k)
    believed: FloatArray | None  # the surrogate's probability of 1, (k, k); None for methods without one
    queries: int


def boundary_record(g: Scenario, result: Mapping[Any, Any]) -> Boundary:
    """The decision boundaries of the black box and of the surrogate after the method's queries."""
    first, second = (np.linspace(low, high, SIDE) for low, high in zip(g.space.low, g.space.high, strict=True))
    points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    asked = np.array([row for row, _ in result["asked"]])
    labels = np.array([label for _, label in result["asked"]])
    believed = None
    if result["method"] in WITH_SURROGATE:
        scale = Scale.of(g.space, g.reference)
        posterior = fit(scale.coordinates(asked), (labels == 1).astype(float), metric=scale.metric)
        believed = posterior.probability(scale.coordinates(points)).reshape(SIDE, SIDE)
    found = result.get("counterfactual")
    return Boundary(
        method=result["method"],
        factual=np.array(result["factual"]),
        counterfactual=None if found is None else np.array(found),
        asked=asked,
        is_hit=labels != labels[0],
        axes=(first, second),
        truth=(g.predict(points) == 1).reshape(SIDE, SIDE),
        believed=believed,
        queries=result["queries"],
    )


def draw_boundaries(records: list[Boundary]) -> Figure:
    """One panel per method: both boundaries, the queries, factual and counterfactual."""
    figure = Figure(figsize=(4.6 * len(records), 4.6), dpi=120, layout="constrained")
    panels = figure.subplots(1, len(records), squeeze=False, sharey=True)
    for axes, record in zip(panels.flat, records, strict=True):
        axes.contour(*record.axes, record.truth, levels=[0.5], colors="#D55E00", linestyles=":", linewidths=2)
        if record.believed is not None:
            axes.contour(*record.axes, record.believed, levels=[0.5], colors="black", linestyles="--")
        faint = {"alpha": 0.25 if len(record.asked) > 200 else 0.9}
        axes.plot(*record.asked[record.is_hit].T, **HIT | faint | {"markersize": 3.5})
        axes.plot(*record.asked[~record.is_hit].T, **MISS | faint | {"markersize": 4})
        words = f"{record.method}: {record.queries} queries"
        if record.counterfactual is not None:
            axes.plot(*record.counterfactual, **AFTER | {"markersize": 9})
            words += f", distance {np.linalg.norm(record.counterfactual - record.factual):.2f}"
        axes.plot(*record.factual, **BEFORE)
        axes.set_title("\n".join(filter(None, (words, IN_THE_PLANE.get(record.method)))), fontsize=11)
    ends: dict[str, dict[str, Any]] = {
        "black box": {"color": "#D55E00", "linestyle": ":", "linewidth": 2},
        "surrogate": {"color": "black", "linestyle": "--"},
        "factual": BEFORE,
        "counterfactual": AFTER,
        "hit": HIT,
        "miss": MISS,
    }
    handles = [panels.flat[0].plot([], [], label=name, **style)[0] for name, style in ends.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


@dataclass(frozen=True, eq=False)
class Digits:
    """An image and the counterfactuals that methods found for it, (side, side) each."""

    before: FloatArray
    after: dict[str, tuple[FloatArray, int, float]]  # by title: the image, queries, l2 distance with pixels of 0 to 1


def digits_record(results: pd.DataFrame) -> Digits:
    """The counterfactuals of one row, given by its results.

    If a method's answer is an image of the reference, its title says so, and the method's own best image is added.
    """
    runs = results[results["method"].isin(AS_IMAGES) & results["valid"]]
    before = np.array(runs["factual"].iloc[0])
    side = round(len(before) ** 0.5)
    after = {}
    for run in runs.to_dict("records"):
        shown = {str(run["method"]): run["counterfactual"]}
        if run["is_reference_row"]:
            shown = {f"{run['method']}:\na training image": run["counterfactual"]}
            if run["made"]["valid"]:
                shown[f"{run['method']}:\nmade by the search"] = run["made"]["counterfactual"]
        for title, image in shown.items():
            distance = float(np.linalg.norm(np.array(image) - before) / 255)
            after[title] = (np.array(image).reshape(side, side), int(run["queries"]), distance)
    return Digits(before.reshape(side, side), after)


def draw_digits(digits: Digits) -> Figure:
    """The original, then each counterfactual."""
    panels = {"original": (digits.before, "")}
    for title, (image, queries, distance) in digits.after.items():
        panels[title] = (image, f"{queries} queries, distance {distance:.2f}")
    figure = Figure(figsize=(2.6 * len(panels), 3.6), dpi=120, layout="constrained")
    for axes, (name, (image, words)) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        axes.imshow(image, cmap="gray_r", vmin=0, vmax=255)
        axes.set(xticks=[], yticks=[], title=name, xlabel=words)
    return figure
