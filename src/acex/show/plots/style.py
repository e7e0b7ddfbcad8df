"""What all pictures share: colours, markers, legends, and words that fit. Colours are Okabe and Ito's."""

from __future__ import annotations

import io
import textwrap
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.lines import Line2D

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


class NotebookFigure(Figure):
    """A figure that shows itself in a notebook, also when pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def legend(axes: Axes, styles: dict[str, Style]) -> None:
    """A legend above the axes, where it covers nothing."""
    axes.legend(
        handles=[Line2D([], [], **style, label=name) for name, style in styles.items()],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=len(styles),
        frameon=False,
        fontsize=9,
    )


def inches(figure: FigureBase) -> float:
    """Width of a figure, or of a part of one."""
    if not isinstance(figure, (Figure, SubFigure)):
        raise TypeError(f"expected a figure, got {type(figure).__name__}.")
    return float(figure.bbox.width / figure.dpi)


def plain(text: str) -> str:
    """The text as it stands: two dollar signs would begin and end a formula."""
    return text.replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width))


def short(text: str, most: int = 18) -> str:
    """The text on one line, its end replaced by dots where it is longer than `most`."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
