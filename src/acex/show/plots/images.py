"""Features as the pixels of an image, or as the squares of a board."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from acex.arrays import FloatArray
from acex.engine.explanation import Explanation
from acex.show.plots.style import plain, short
from acex.values import readable

MOST_SIGNED = 16  # pixels a side, up to which an image has room for signs


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


def images_record(explanation: Explanation, shape: tuple[int, int]) -> Images:
    """Factual and counterfactual as images of this shape, whose pixels are the features row by row.

    Raises:
        NoCounterfactual: there is no counterfactual to show.
    """
    space = explanation.plan.space
    before, after = (
        space.encode(row)[0].reshape(_checked(shape, len(space)))
        for row in (explanation.factual, explanation.counterfactual)
    )
    return Images(before, after, low=float(space.low.min()), high=float(space.high.max()))


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


@dataclass(frozen=True, eq=False)
class Board:
    """Factual and counterfactual as a board with a word on each square, (height, width)."""

    before: npt.NDArray[np.str_]
    after: npt.NDArray[np.str_]


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
            axes.text(column, row, plain(short(word, 6)), ha="center", va="center", fontsize=20)


def _checked(shape: tuple[int, int], n: int) -> tuple[int, int]:
    if shape[0] * shape[1] != n:
        raise ValueError(f"shape {shape} holds {shape[0] * shape[1]} values, but there are {n} features.")
    return shape


def _image(axes: Axes, pixels: npt.NDArray[Any], title: str, colours: str, low: float, high: float) -> None:
    axes.imshow(pixels, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    axes.set_title(title, fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
