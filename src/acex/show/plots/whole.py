"""Figures of their own: an explanation with its summary, or many at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from matplotlib.figure import Figure, FigureBase

from acex.engine.explanation import Explanation
from acex.errors import NoCounterfactual
from acex.show.plots.batch import Batch, batch_record, draw_batch
from acex.show.plots.boundary import Boundary, boundary_record, draw_boundary
from acex.show.plots.changes import Changes, changes_record, draw_changes
from acex.show.plots.counterfactuals import Counterfactuals, counterfactuals_record, draw_counterfactuals
from acex.show.plots.images import Board, Images, draw_board, draw_images
from acex.show.plots.numbers import Numbers, draw_numbers, numbers_record
from acex.show.plots.plane import Plane, draw_plane
from acex.show.plots.style import NotebookFigure, plain, wrapped
from acex.show.plots.trace import Trace, draw_trace, trace_record
from acex.values import listed

Picture: TypeAlias = Changes | Counterfactuals | Boundary | Numbers | Plane | Images | Board
Kind: TypeAlias = Literal["changes", "counterfactuals", "trace", "boundary", "numbers"]


def draw_explanation(explanation: Explanation, picture: Picture | None = None) -> Figure:
    """The summary, with a picture on the left and the cost against queries on the right.

    Args:
        picture: a record from this module; by default the changes, and no picture if nothing was found.

    Raises:
        NoCounterfactual: the row failed before anything was asked.
    """
    if not explanation.steps:
        raise NoCounterfactual(explanation.summary())
    trace = trace_record(explanation)
    if picture is None and explanation.outcome == "found":
        picture = changes_record(explanation)
    if picture is None:
        return _titled(explanation, trace)
    width, height = _size(picture)
    figure = _page(explanation, 5.0 + width, height)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(width, 5.0))[0]
    _draw(picture, left)
    draw_trace(trace, right)
    return figure


def draw_kind(explanation: Explanation, kind: Kind) -> Figure:
    """The summary with one picture.

    Raises:
        NoCounterfactual: there is none to show, and the picture needs one.
    """
    match kind:
        case "changes":
            if explanation.counterfactuals.empty:
                raise NoCounterfactual(explanation.summary())
            return _titled(explanation, changes_record(explanation))
        case "counterfactuals":
            return _titled(explanation, counterfactuals_record(explanation))
        case "trace":
            return _titled(explanation, trace_record(explanation))
        case "boundary":
            return _titled(explanation, boundary_record(explanation))
        case "numbers":
            return _titled(explanation, numbers_record(explanation))
        case _:
            raise ValueError(f"kind: {kind!r} is not one of {listed(get_args(Kind))}.")


def draw_explanations(explanations: Iterable[Explanation]) -> Figure:
    """Many explanations at a glance."""
    batch = batch_record(explanations)
    figure = NotebookFigure(figsize=_size(batch), dpi=120, layout="constrained")
    found = int(batch.is_found.sum())
    figure.suptitle(f"{found} of {len(batch.is_found)} rows have a counterfactual", fontsize=12)
    _draw(batch, figure)
    return figure


def _titled(explanation: Explanation, picture: Picture | Trace) -> Figure:
    figure = _page(explanation, *_size(picture))
    _draw(picture, figure)
    return figure


def _page(explanation: Explanation, width: float, height: float) -> Figure:
    figure = NotebookFigure(figsize=(width, height), dpi=120, layout="constrained")
    figure.suptitle(plain(wrapped(explanation.summary(), int(9 * width))), fontsize=12)
    return figure


def _size(picture: Picture | Trace | Batch) -> tuple[float, float]:
    """Width and height that a picture needs, in inches."""
    match picture:
        case Changes(shown):
            return 7.0, max(4.5, 1.6 + 0.36 * len(shown))
        case Counterfactuals(features, _, columns):
            return 4.5 + 1.4 * len(columns), max(2.5, 1.9 + 0.36 * len(features))
        case Batch(changed):
            return 12.0, max(6.5, 1.8 + 0.36 * len(changed))
        case _:
            return 7.0, 4.5


def _draw(picture: Picture | Trace | Batch, figure: FigureBase) -> None:
    match picture:
        case Changes():
            draw_changes(picture, figure)
        case Counterfactuals():
            draw_counterfactuals(picture, figure)
        case Boundary():
            draw_boundary(picture, figure)
        case Numbers():
            draw_numbers(picture, figure)
        case Plane():
            draw_plane(picture, figure)
        case Images():
            draw_images(picture, figure)
        case Board():
            draw_board(picture, figure)
        case Trace():
            draw_trace(picture, figure)
        case Batch():
            draw_batch(picture, figure)
