from __future__ import annotations

import io
from collections.abc import Callable
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.testing import assert_allclose, assert_array_equal

import acex
from acex import plots
from acex.arrays import FloatArray
from acex.explanation import Explanation, readable_pair
from acex.features import Continuous, Integer, Nominal, Ordinal
from acex.plots.trace import _ticks
from acex.space import Space
from explanations import BEFORE, PERSON, explained, nothing_found, person


def pixels(figure: Figure) -> FloatArray:
    """What the figure looks like, saved as PNG and read back, (height, width, 4)."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    file.seek(0)
    return np.asarray(imread(file, format="png"), dtype=float)


def texts_drawn(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every text that reaches the page, and where."""
    shown = {}  # by text, since a figure is laid out in one pass and drawn in the next

    def draw(text: Text, renderer: Any) -> None:
        if text.get_visible() and text.get_text().strip():
            shown[text] = text.get_text(), text.get_window_extent(renderer)

    with patch.object(Text, "draw", draw):
        figure.savefig(io.BytesIO(), format="png", dpi="figure")
    return list(shown.values())


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Texts that are cut off at the edge, and pairs of texts of which one covers the other."""
    texts, page = texts_drawn(figure), figure.bbox
    cut = [(a, "edge") for a, box in texts if min(box.min) < 0 or box.x1 > page.x1 or box.y1 > page.y1]
    return cut + [(a, b) for (a, box), (b, other) in combinations(texts, 2) if box.overlaps(other)]


# -- changes ---------------------------------------------------------------------------------------------


def test_changes_give_words_steps_and_places_largest_step_first() -> None:
    changes = plots.changes_record(person())
    assert changes == plots.Changes(
        shown=(
            plots.Change("debt", "1.5", "0.5", -4.0, start=0.75, end=0.25, low="0", high="2"),
            plots.Change("housing", "rent", "own", 2.0, start=1.0, end=0.0, low="", high=""),
            plots.Change("school", "high", "university", 1.0, start=0.5, end=1.0, low="primary", high="university"),
            plots.Change("income", "2000", "3000", 0.5, start=0.25, end=0.5, low="1000", high="5000"),
        ),
        n_more=0,
    )


def test_changes_beyond_the_most_wanted_are_counted() -> None:
    changes = plots.changes_record(person(), most=1)
    assert [change.feature for change in changes.shown] == ["debt"]
    assert changes.n_more == 3


def test_without_a_counterfactual_there_are_no_changes() -> None:
    assert plots.changes_record(nothing_found()) == plots.Changes((), 0)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0.439, 0.31784, ("0.439", "0.3178")),
        (0.252, 0.25204, ("0.252", "0.25204")),
        (12345.0, 12345.2, ("12345", "12345.2")),
        (1.0, np.nextafter(1.0, 2.0), ("1", "1.0000000000000002")),
        ("rent", "own", ("rent", "own")),
        (3, 4, ("3", "4")),
    ],
)
def test_words_have_the_digits_it_takes_to_tell_them_apart(before: Any, after: Any, words: tuple[str, str]) -> None:
    assert readable_pair(before, after) == words


# -- trace -----------------------------------------------------------------------------------------------


def test_the_trace_holds_cost_hit_and_best_of_each_query() -> None:
    trace = plots.trace_record(person(n_reused=2))
    assert_array_equal(trace.query, [1, 2, 3, 4, 5])
    assert_allclose(trace.cost, [0, 30, 7, 2, 5])
    assert_array_equal(trace.is_hit, [False, True, True, False, True])
    assert_allclose(trace.best, [np.inf, 30, 7, 7, 5])
    assert trace.n_reused == 2


def test_the_trace_is_that_of_a_real_search() -> None:
    e = searched()
    trace = plots.trace_record(e)
    assert len(trace.query) == e.n_queries
    assert trace.best[-1] == e.costs[0] == trace.cost[trace.is_hit].min()
    assert (np.diff(trace.best[np.isfinite(trace.best)]) <= 0).all()


@pytest.mark.parametrize(("bend", "most"), [(7.8, 70.0), (0.5, 2.1), (3e-4, 9e5), (4.0, 1000.0)])
def test_ticks_are_few_round_and_within_the_axis(bend: float, most: float) -> None:
    ticks = _ticks(bend, most)
    assert ticks == sorted(set(ticks)) and ticks[0] == 0
    assert 3 <= len(ticks) <= 12
    assert 0.3 * bend <= ticks[1] <= ticks[-1] <= 1.1 * most


# -- plane -----------------------------------------------------------------------------------------------

SQUARE = Space((Continuous("left", -1.0, 1.0), Continuous("up", 0.0, 4.0))).like(
    pd.DataFrame({"left": [0.0], "up": [0.0]})
)


def on_the_square(after: tuple[float, float] | None = (0.5, 1.0)) -> Explanation:
    asked = np.array([[-0.5, 1.0], [1.0, 4.0], [0.75, 1.0], [-1.0, 0.0], [0.5, 1.0]])
    return explained(SQUARE, (-0.5, 1.0), after, asked=asked)


def is_right(rows: pd.DataFrame) -> Any:
    return np.where(rows["left"] > 0, "yes", "no")


def test_the_plane_holds_the_points_and_where_the_model_would_say_yes() -> None:
    plane = plots.plane_record(on_the_square(), is_right)
    assert plane.names == ("left", "up")
    assert_allclose(plane.factual, [-0.5, 1.0])
    assert plane.counterfactual is not None
    assert_allclose(plane.counterfactual, [0.5, 1.0])
    assert_allclose(plane.asked, [[1.0, 4.0], [0.75, 1.0], [-1.0, 0.0], [0.5, 1.0]])
    assert_array_equal(plane.is_hit, [True, True, False, True])
    left, up = plane.axes
    assert (left[0], left[-1], up[0], up[-1]) == (-1.0, 1.0, 0.0, 4.0)
    assert plane.region is not None
    assert_array_equal(plane.region, np.tile(left > 0, (len(up), 1)))


def test_without_a_target_every_other_label_than_the_factuals_is_a_hit() -> None:
    e = on_the_square()
    object.__setattr__(e, "target", None)
    region = plots.plane_record(e, lambda rows: np.where(rows["up"] > 2, "maybe", "no")).region
    assert region is not None
    assert region[-1].all() and not region[0].any()


def test_a_plane_needs_no_model_and_no_counterfactual() -> None:
    plane = plots.plane_record(on_the_square(after=None))
    assert plane.region is None and plane.counterfactual is None


def test_a_plane_of_five_features_is_refused_with_their_names() -> None:
    with pytest.raises(ValueError, match=r"two features with an order.*'debt'"):
        plots.plane_record(person())


# -- images and boards -----------------------------------------------------------------------------------


def test_images_are_the_pixels_row_by_row_and_their_difference() -> None:
    space = Space(tuple(Integer(f"p{j}", 0, 16) for j in range(6)))
    images = plots.images_record(explained(space, (0, 1, 2, 3, 4, 5), (0, 1, 12, 3, 0, 5)), (2, 3))
    assert_allclose(images.before, [[0, 1, 2], [3, 4, 5]])
    assert_allclose(images.after, [[0, 1, 12], [3, 0, 5]])
    assert_allclose(images.difference, [[0, 0, 10], [0, -4, 0]])
    assert (images.low, images.high) == (0, 16)


def test_a_board_leaves_blank_squares_empty() -> None:
    space = Space(tuple(Nominal(f"s{j}", ("b", "o", "x")) for j in range(4)))
    board = plots.board_record(explained(space, ("x", "b", "o", "x"), ("x", "b", "o", "b")), (2, 2), blank="b")
    assert board.before.tolist() == [["x", ""], ["o", "x"]]
    assert board.after.tolist() == [["x", ""], ["o", ""]]


def test_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\) holds 6 values, but there are 5 features"):
        plots.images_record(person(), (2, 3))
    with pytest.raises(ValueError, match="there are 5 features"):
        plots.board_record(person(), (2, 3))


def test_images_of_nothing_found_say_what_to_relax() -> None:
    with pytest.raises(acex.NoCounterfactual, match="Raise budget"):
        plots.images_record(nothing_found(), (1, 5))


# -- drawings --------------------------------------------------------------------------------------------


def searched() -> Explanation:
    """A search of a two-line black box."""
    data = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=pd.Index(["a", "b"]))
    return acex.explain(
        lambda rows: np.where(rows["a"] + rows["b"] > 0.5, "yes", "no"),
        {"a": -0.5, "b": 0.0},
        data=data,
        budget=15,
        strategy=acex.Penalty(n0=5),
    )


def plane(predict: Callable[[pd.DataFrame], Any] | None) -> Figure:
    e = on_the_square()
    return plots.draw_explanation(e, plots.plane_record(e, predict))


def images() -> Figure:
    space = Space(tuple(Integer(f"p{j}", 0, 16) for j in range(4)))
    e = explained(space, (0, 1, 2, 3), (16, 1, 2, 0))
    return plots.draw_explanation(e, plots.images_record(e, (2, 2)))


def board() -> Figure:
    space = Space(tuple(Nominal(f"s{j}", ("b", "o", "x")) for j in range(4)))
    e = explained(space, ("x", "b", "o", "x"), ("x", "b", "o", "b"))
    return plots.draw_explanation(e, plots.board_record(e, (2, 2), blank="b"))


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "changes": lambda: person().plot(),
    "nothing found": lambda: nothing_found().plot(),
    "already there": lambda: explained(PERSON, BEFORE, None, costs=(0.0,), hits=(False,)).plot(),
    "plane": lambda: plane(is_right),
    "plane without a model": lambda: plane(None),
    "images": images,
    "board": board,
    "a real search": lambda: searched().plot(),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_every_drawing_shows_something_and_no_text_covers_another(name: str) -> None:
    figure = DRAWINGS[name]()
    assert len(texts_drawn(figure)) > 5
    assert overlapping(figure) == []
    image = pixels(figure)
    assert image.shape[0] > 300 and image.shape[1] > 600
    assert image[..., :3].min() < 0.1 < 0.9 < image[..., :3].max()


def test_thirty_features_with_long_names_do_not_overlap_and_dollars_make_no_formula() -> None:
    names = [f"{j} average monthly balance in $ or $ {'x' * 40}"[:40] for j in range(30)]
    space = Space(tuple(Continuous(name, 0.0, 123456.789) for name in names))
    e = explained(space, (98765.4321,) * 30, tuple(np.linspace(1e-4, 9e4, 30)))
    assert overlapping(e.plot()) == []
    assert overlapping(plots.draw_explanation(e, plots.changes_record(e, most=30))) == []
    assert not [text for text, _ in texts_drawn(e.plot()) if is_math_text(text)]


def test_long_categories_do_not_overlap() -> None:
    words = tuple(f"{letter} category with far too many words in it" for letter in "abc")
    space = Space((Ordinal("first", words), Nominal("second", words)))
    assert overlapping(explained(space, (words[0],) * 2, (words[2],) * 2).plot()) == []


def test_the_title_is_the_summary_wrapped() -> None:
    for e in (person(), nothing_found()):
        words = [text.replace("\n", " ") for text, _ in texts_drawn(e.plot())]
        assert e.summary() in words


def test_a_picture_shows_itself_in_a_notebook_and_leaves_pyplot_alone() -> None:
    import matplotlib.pyplot as plt

    figure = person().plot()
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert plt.get_fignums() == []
