"""What all pictures share: colours (Okabe and Ito), markers, legends, and texts that fit."""

from __future__ import annotations

import io
import textwrap
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.lines import Line2D

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.feature import Way

Style: TypeAlias = dict[str, Any]
BLUE, VERMILLION = "#0072B2", "#D55E00"
LIGHT_BLUE = "#D6EAF6"
LIGHT_GREY, DARK_GREY = "#D0D0D0", "#606060"
HIT: Style = {"marker": "o", "color": BLUE, "linestyle": "none", "markersize": 5}
MISS: Style = {"marker": "x", "color": VERMILLION, "linestyle": "none", "markersize": 5}
BEST: Style = {"color": "black", "linewidth": 1.5}
BEFORE: Style = {"marker": "o", "color": "black", "markerfacecolor": "white", "linestyle": "none", "markersize": 8}
AFTER: Style = {"marker": "D", "color": "black", "markerfacecolor": BLUE, "linestyle": "none", "markersize": 6}
SIGN: dict[Way, str] = {"up": "▲", "down": "▼", "other": "●"}
ROUND = (1, 2, 5, 10)  # steps between ticks


class Picture:
    """The numbers of a picture, which can be drawn."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that the picture needs, in inches."""
        return 7.0, 4.5

    def draw(self, figure: FigureBase) -> None:
        """Draw it onto a figure or a part of one."""
        raise NotImplementedError


class NotebookFigure(Figure):
    """A figure that notebooks display, also when pyplot was never imported."""

    def __init__(self, size: tuple[float, float], title: str) -> None:
        super().__init__(figsize=size, dpi=120, layout="constrained")
        self.suptitle(plain(wrapped(title, int(9 * size[0]))), fontsize=12)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def drawn(picture: Picture, title: str) -> Figure:
    """A figure with one picture."""
    figure = NotebookFigure(picture.size, title)
    picture.draw(figure)
    return figure


def legend(axes: Axes, styles: dict[str, Style]) -> None:
    """A legend above the axes, where it covers nothing."""
    handles = [Line2D([], [], **style, label=name) for name, style in styles.items()]
    place: Style = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axes.legend(handles=handles, **place, ncols=len(styles), frameon=False, fontsize=9)


def mark(axes: Axes, x: FloatArray | IntArray, y: FloatArray, is_hit: BoolArray, **style: Any) -> None:
    """A dot for each hit and a cross for each miss."""
    axes.plot(x[is_hit], y[is_hit], **HIT, **style)
    axes.plot(x[~is_hit], y[~is_hit], **MISS, **style)


def open_frame(axes: Axes, labels: int = 8) -> None:
    """Only the left and the lower side of the frame, and tick labels of this size."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=labels)


def inches(figure: FigureBase) -> float:
    """Width of a figure, or of a part of one."""
    assert isinstance(figure, (Figure, SubFigure))
    return float(figure.bbox.width / figure.dpi)


def plain(text: str) -> str:
    """The text with escaped dollar signs: matplotlib reads what is between two of them as a formula."""
    return text.replace("$", r"\$")


def wrapped(text: str, width: int) -> str:
    """The text in lines of at most `width` characters."""
    return "\n".join(textwrap.wrap(text, width))


def short(text: str, most: int = 18) -> str:
    """The text on one line, shortened to `most` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def named(feature: str) -> str:
    """The name of a feature, beside an axis."""
    return plain(wrapped(short(feature, 44), 24))
