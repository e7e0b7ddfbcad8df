"""A figure of an explanation: its summary, a picture, and what it cost."""

from __future__ import annotations

from typing import TypeAlias

from matplotlib.figure import Figure

from acex.explanation import Explanation
from acex.plots.changes import Changes, changes_record, draw_changes
from acex.plots.images import Board, Images, draw_board, draw_images
from acex.plots.plane import Plane, draw_plane
from acex.plots.style import NotebookFigure, plain, wrapped
from acex.plots.trace import draw_trace, trace_record

Picture: TypeAlias = Changes | Plane | Images | Board


def draw_explanation(explanation: Explanation, picture: Picture | None = None) -> Figure:
    """The summary, with a picture on the left and the cost against queries on the right.

    Args:
        picture: a record from this module; by default the changes, and no picture if nothing was found.
    """
    if picture is None and explanation.outcome == "found":
        picture = changes_record(explanation)
    n_rows = len(picture.shown) if isinstance(picture, Changes) else 0
    width, height = 7.0 if picture is None else 12.0, max(4.5, 1.6 + 0.36 * n_rows)
    figure = NotebookFigure(figsize=(width, height), dpi=120, layout="constrained")
    figure.suptitle(plain(wrapped(explanation.summary(), int(9 * width))), fontsize=12)
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
