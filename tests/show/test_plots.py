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
from matplotlib.transforms import Bbox, BboxBase
from numpy.testing import assert_allclose, assert_array_equal

import acex
from acex.arrays import FloatArray
from acex.engine.explanation import Explanation
from acex.show import plots
from acex.show.plots.explanation import Change, Changes, Counterfactual, Counterfactuals, _ticks
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.space import Space
from acex.values import readable_pair
from explanations import AFTER, BEFORE, DEVIATIONS, PERSON, explained, nothing_found, person


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


def overlapping(texts: list[tuple[str, Bbox]], page: BboxBase) -> list[tuple[str, str]]:
    """Texts that are cut off at the edge, and pairs of texts of which one covers the other."""
    cut = [(a, "edge") for a, box in texts if min(box.min) < 0 or box.x1 > page.x1 or box.y1 > page.y1]
    return cut + [(a, b) for (a, box), (b, other) in combinations(texts, 2) if box.overlaps(other)]


# -- changes ---------------------------------------------------------------------------------------------


def test_changes_give_words_steps_and_places_largest_step_first() -> None:
    changes = plots.changes_record(person())
    assert changes == Changes(
        shown=(
            Change("debt", "1.5", "0.5", "-4.00 sd", start=0.75, end=0.25, low="0", high="2"),
            Change("housing", "rent", "own", "change", start=1.0, end=0.0, low="", high=""),
            Change("school", "high", "university", "+1.00 sd", start=0.5, end=1.0, low="primary", high="university"),
            Change("income", "2000", "3000", "+0.50 sd", start=0.25, end=0.5, low="1000", high="5000"),
        ),
        n_more=0,
    )


def test_changes_beyond_the_most_wanted_are_counted() -> None:
    changes = plots.changes_record(person(), most=1)
    assert [change.feature for change in changes.shown] == ["debt"]
    assert changes.n_more == 3


def test_without_a_counterfactual_there_are_no_changes() -> None:
    assert plots.changes_record(nothing_found()) == Changes((), 0)


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


# -- images -----------------------------------------------------------------------------------------


def test_images_are_the_pixels_row_by_row_and_their_difference() -> None:
    space = Space(tuple(Integer(f"p{j}", 0, 16) for j in range(6)))
    images = plots.images_record(explained(space, (0, 1, 2, 3, 4, 5), (0, 1, 12, 3, 0, 5)), (2, 3))
    assert_allclose(images.before, [[0, 1, 2], [3, 4, 5]])
    assert_allclose(images.after, [[0, 1, 12], [3, 0, 5]])
    assert (images.low, images.high) == (0, 16)


def test_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, ?3\)"):
        plots.images_record(person(), (2, 3))


def test_images_of_nothing_found_say_what_to_relax() -> None:
    with pytest.raises(acex.NoCounterfactual, match="Raise budget"):
        plots.images_record(nothing_found(), (1, 5))


# -- several counterfactuals -----------------------------------------------------------------------------


def several() -> Explanation:
    second, third = (1.5, 1500, "primary", "own", 40.0), (1.5, 2500, "high", "rent", 40.0)
    return explained(PERSON, BEFORE, AFTER, second, third, deviations=DEVIATIONS)


def test_counterfactuals_hold_what_any_of_them_changes_most_shared_first() -> None:
    assert plots.counterfactuals_record(several()) == Counterfactuals(
        features=("income", "housing", "school", "debt"),  # changed by 3, 2, 2 and 1
        factual=("2000", "rent", "high", "1.5"),
        columns=(
            Counterfactual(("▲ 3000", "● own", "▲ university", "▼ 0.5"), 5.0, 4),
            Counterfactual(("▼ 1500", "● own", "▼ primary", None), 6.0, 3),
            Counterfactual(("▲ 2500", None, None, None), 7.0, 1),
        ),
        n_more_features=0,
        n_more_columns=0,
    )


def test_counterfactuals_and_features_that_find_no_room_are_counted() -> None:
    table = plots.counterfactuals_record(several(), most_features=1, most=2)
    assert table.features == ("housing",) and table.n_more_features == 3
    assert [column.n_changes for column in table.columns] == [4, 3] and table.n_more_columns == 1


def test_a_difference_in_the_fifth_digit_is_seen_in_the_table() -> None:
    table = plots.counterfactuals_record(explained(PERSON, (0.252, *BEFORE[1:]), (0.25204, *BEFORE[1:])))
    assert table.factual == ("0.252",) and table.columns[0].cells == ("▲ 0.25204",)


# -- batch -----------------------------------------------------------------------------------------------


def test_a_batch_counts_changes_by_direction_outcomes_and_queries() -> None:
    lower = explained(PERSON, BEFORE, (1.5, 1500, "high", "own", 40.0), deviations=DEVIATIONS, costs=(0.0, 3.0, 2.0),
                      hits=(False, True, True))  # fmt: skip
    batch = plots.batch_record(e for e in (person(), nothing_found(), lower))
    ways = {"housing": {"other": 2}, "income": {"up": 1, "down": 1}, "debt": {"down": 1}, "school": {"up": 1}}
    assert batch.changed == ways and list(batch.changed) == list(ways)  # most often first
    assert batch.outcomes == (("found", 2), ("budget_spent", 1))
    assert_allclose(batch.costs, [5, 2])
    assert_array_equal(batch.n_queries, [5, 5, 3])
    assert_array_equal(batch.is_found, [True, False, True])
    assert plots.batch_record([person(), lower], most=1).n_more == 3


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="explanations is empty"):
        plots.batch_record([])


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


def images() -> Figure:
    space = Space(tuple(Integer(f"p{j}", 0, 16) for j in range(4)))
    e = explained(space, (0, 1, 2, 3), (16, 1, 2, 0))
    return plots.draw_explanation(e, plots.images_record(e, (2, 2)))


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "changes": lambda: person().plot(),
    "nothing found": lambda: nothing_found().plot(),
    "already there": lambda: explained(PERSON, BEFORE, None, costs=(0.0,), hits=(False,)).plot(),
    "images": images,
    "a real search": lambda: searched().plot(),
    "changes alone": lambda: person().plot("changes"),
    "one counterfactual": lambda: person().plot("counterfactuals"),
    "three counterfactuals": lambda: several().plot("counterfactuals"),
    "trace alone": lambda: person(n_reused=2).plot("trace"),
    "batch": lambda: plots.draw_explanations([person(), nothing_found(), several()]),
    "batch of nothing found": lambda: plots.draw_explanations([nothing_found()] * 80),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_every_drawing_shows_something_and_no_text_covers_another(name: str) -> None:
    figure = DRAWINGS[name]()
    texts = texts_drawn(figure)
    assert len(texts) > 5
    assert overlapping(texts, figure.bbox) == []
    image = pixels(figure)
    assert image.shape[0] > 300 and image.shape[1] > 600
    assert image[..., :3].min() < 0.1 < 0.9 < image[..., :3].max()


NAMES = [f"{j} average monthly balance in $ or $ {'x' * 40}"[:40] for j in range(30)]
WORDS = tuple(f"{letter} category with $ far $ too many words in it" for letter in "abcdefghijklmnop")


def crowded() -> Explanation:
    """Thirty features with names of forty characters, every second with sixteen long categories, all changed."""
    space = Space(tuple(Nominal(n, WORDS) if j % 2 else Continuous(n, 0.0, 123456.789) for j, n in enumerate(NAMES)))
    rng = np.random.default_rng(0)
    X = np.where(space.is_nominal, rng.integers(0, 16, (9, 30)), rng.uniform(1e-4, 123456, (9, 30)))
    rows = [tuple(row) for row in space.decode(X).itertuples(index=False)]
    return explained(space, *rows, asked=X[:5], deviations=np.where(space.is_nominal, 0.6, 30000.0))


def long_names() -> Explanation:
    space = Space(tuple(Continuous(name, 0.0, 123456.789) for name in NAMES))
    return explained(space, (98765.4321,) * 30, tuple(np.linspace(1e-4, 9e4, 30)))


CROWDED: dict[str, Callable[[], Figure]] = {
    "explanation": lambda: long_names().plot(),
    "thirty changes": lambda: plots.draw_explanation(long_names(), plots.changes_record(long_names(), most=30)),
    "changes": lambda: crowded().plot("changes"),
    "counterfactuals": lambda: crowded().plot("counterfactuals"),
    "counterfactuals and trace": lambda: plots.draw_explanation(crowded(), plots.counterfactuals_record(crowded())),
    "trace": lambda: crowded().plot("trace"),
    "batch": lambda: plots.draw_explanations([crowded(), long_names(), nothing_found()]),
}


@pytest.mark.parametrize("name", list(CROWDED))
def test_thirty_features_with_long_names_do_not_overlap_and_dollars_make_no_formula(name: str) -> None:
    figure = CROWDED[name]()
    texts = texts_drawn(figure)
    assert overlapping(texts, figure.bbox) == []
    assert not [text for text, _ in texts if is_math_text(text)]


def test_long_categories_do_not_overlap() -> None:
    words = tuple(f"{letter} category with far too many words in it" for letter in "abc")
    space = Space((Ordinal("first", words), Nominal("second", words)))
    figure = explained(space, (words[0],) * 2, (words[2],) * 2).plot()
    assert overlapping(texts_drawn(figure), figure.bbox) == []


def test_a_picture_that_needs_a_counterfactual_says_what_to_relax() -> None:
    for kind in ("changes", "counterfactuals"):
        with pytest.raises(acex.NoCounterfactual, match="Raise budget"):
            nothing_found().plot(kind)


def test_an_unknown_kind_of_picture_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="'pie'"):
        person().plot("pie")  # type: ignore[arg-type]


def test_the_title_is_the_summary_wrapped() -> None:
    for e in (person(), nothing_found()):
        words = [text.replace("\n", " ") for text, _ in texts_drawn(e.plot())]
        assert e.summary() in words


def test_a_picture_shows_itself_in_a_notebook_and_leaves_pyplot_alone() -> None:
    import matplotlib.pyplot as plt

    figure = person().plot()
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert plt.get_fignums() == []
