"""Two numeric features as a map, over the regions of a model that may be asked freely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import FigureBase

from acex.arrays import BoolArray, FloatArray, Rows
from acex.engine.explanation import Explanation, asked_rows
from acex.show.plots.style import AFTER, BEFORE, DARK_GREY, HIT, LIGHT_BLUE, LIGHT_VERMILLION, MISS, legend, plain
from acex.values import plain as plain_label

GRID = 300  # points a side, at which the regions of a model in the plane are looked at


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


def plane_record(explanation: Explanation, predict: Callable[[Rows], Any] | None = None) -> Plane:
    """The map of an explanation of two numeric features.

    Args:
        predict: from rows to labels, to colour the regions of the model with. It is called for some 90000
            rows that count as no query: only for a model that is yours and free. None for no regions.
    """
    space = explanation.plan.space
    if len(space) != 2 or space.is_nominal.any():
        raise ValueError(f"A plane needs two features with an order; this explanation has {space.names}.")
    first, second = (np.linspace(low, high, GRID) for low, high in zip(space.low, space.high, strict=True))
    region = None
    if predict is not None:
        points = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
        target, before = explanation.plan.target, explanation.steps[0].label
        hits = [target.is_hit(plain_label(label), before) for label in predict(space.decode(points))]
        region = np.array(hits).reshape(GRID, GRID)
    best = space.encode(explanation.counterfactuals)
    return Plane(
        names=(space.names[0], space.names[1]),
        factual=space.encode(explanation.factual)[0],
        counterfactual=best[0] if len(best) else None,
        asked=space.encode(asked_rows(explanation))[1:],
        is_hit=np.array([step.hit for step in explanation.steps], dtype=bool)[1:],
        axes=(first, second),
        region=region,
    )


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
    axes.set_xlabel(plain(plane.names[0]))
    axes.set_ylabel(plain(plane.names[1]))
    legend(axes, {"factual": BEFORE, "counterfactual": AFTER, "hit": HIT, "miss": MISS})
