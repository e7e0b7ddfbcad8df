from __future__ import annotations

import io
from collections.abc import Callable
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase

import acex
from acex.arrays import FloatArray
from acex.engine.explanation import Explanation
from acex.show import plots
from acex.show.plots import _ticks
from acex.space.kinds import Continuous, Nominal, Ordinal
from acex.space.space import Space
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


# -- trace ---


@pytest.mark.parametrize(("bend", "most"), [(7.8, 70.0), (0.5, 2.1), (3e-4, 9e5), (4.0, 1000.0)])
def test_ticks_are_few_round_and_within_the_axis(bend: float, most: float) -> None:
    ticks = _ticks(bend, most)
    assert ticks == sorted(set(ticks)) and ticks[0] == 0
    assert 3 <= len(ticks) <= 12
    assert 0.3 * bend <= ticks[1] <= ticks[-1] <= 1.1 * most


# -- batch -----------------------------------------------------------------------------------------------


def test_a_batch_counts_changes_by_direction_outcomes_and_queries() -> None:
    lower = explained(PERSON, BEFORE, (1.5, 1500, "high", "own", 40.0), deviations=DEVIATIONS, costs=(0.0, 3.0, 2.0),
                      hits=(False, True, True))  # fmt: skip
    figure = plots.draw_explanations(e for e in (person(), nothing_found(), lower))
    assert figure.get_suptitle() == "2 of 3 rows have a counterfactual"
    changed, outcomes, costs, queries = figure.axes
    assert labels_at_the_side(changed) == ["housing", "income", "debt", "school"]  # most often first
    ways = [(bar.get_y() + 0.35, bar.get_x(), bar.get_width()) for bar in rectangles(changed)]
    assert ways == [(1, 0, 1), (3, 0, 1), (1, 1, 1), (2, 0, 1), (0, 0, 2)]  # higher, lower, another category
    assert labels_at_the_side(outcomes) == ["found", "not found: budget spent"]
    assert [bar.get_width() for bar in rectangles(outcomes)] == [2, 1]
    assert costs.get_title() == "median 3.5 (dashed)"
    assert [bar.get_height() for bar in rectangles(queries)] == [5, 3, 5]  # the last found nothing


def rectangles(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def labels_at_the_side(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="explanations is empty"):
        plots.draw_explanations([])


# -- drawings --------------------------------------------------------------------------------------------


def several() -> Explanation:
    return explained(PERSON, BEFORE, AFTER, (1.5, 1500, "primary", "own", 40.0), deviations=DEVIATIONS)


def one_change() -> Explanation:
    return explained(PERSON, BEFORE, (*BEFORE[:3], "own", *BEFORE[4:]), deviations=DEVIATIONS)


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


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "changes": lambda: person().plot(),
    "nothing found": lambda: nothing_found().plot(),
    "already there": lambda: explained(PERSON, BEFORE, None, costs=(0.0,), hits=(False,)).plot(),
    "a real search": lambda: searched().plot(),
    "changes alone": lambda: person().plot("changes"),
    "several answers": lambda: several().plot(),
    "one change": lambda: one_change().plot(),
    "one change alone": lambda: one_change().plot("changes"),
    "dark": lambda: several().plot(dark=True),
    "trace alone": lambda: person(n_reused=2).plot("trace"),
    "batch": lambda: plots.draw_explanations([person(), nothing_found(), several()]),
    "batch of nothing found": lambda: plots.draw_explanations([nothing_found()] * 80),
}


@pytest.mark.parametrize("name", list(DRAWINGS))
def test_every_drawing_shows_something_and_no_text_covers_another(name: str) -> None:
    figure = DRAWINGS[name]()
    texts = texts_drawn(figure)
    assert len(texts) >= 5
    assert overlapping(texts, figure.bbox) == []
    image = pixels(figure)
    assert image.shape[0] > 300 and image.shape[1] > 600
    assert image[..., :3].min() < 0.1 < 0.9 < image[..., :3].max()


def test_all_answers_are_drawn_with_what_each_changes() -> None:
    e = several()
    texts = [text for text, _ in texts_drawn(e.plot("changes"))]
    n_changes = [len(e.changes_of(i)) for i in range(2)]
    assert [text for text in texts if text.startswith("answer")] == ["answer 1, cost 5", "answer 2, cost 6"]
    assert len([text for text in texts if "→" in text]) == sum(n_changes)


def test_a_changed_category_is_named_at_both_ends_of_an_arrow() -> None:
    figure = one_change().plot("changes")
    texts = [text for text, _ in texts_drawn(figure)]
    assert "rent" in texts and "own" in texts
    assert ">" in [line.get_marker() for line in figure.axes[0].lines]


def test_few_changes_fill_their_space() -> None:
    few, many = (e.plot("changes") for e in (one_change(), person()))
    assert few.get_figheight() < many.get_figheight()
    (low, high), [place] = few.axes[0].get_ylim(), few.axes[0].get_yticks()
    assert (low, high, place) == (0.5, -0.5, 0)  # the only row takes the whole height


@pytest.mark.parametrize("kind", [None, "changes", "trace"])
def test_a_picture_for_a_dark_page_is_light_on_dark(kind: Any) -> None:
    light, dark = (np.median(pixels(person().plot(kind, dark=dark))[..., :3]) for dark in (False, True))
    assert light > 0.9 and dark < 0.15
    colours = [np.mean(to_rgb(text.get_color())) for text in person().plot(kind, dark=True).findobj(Text)]
    assert min(colours) > 0.5


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
    "changes": lambda: crowded().plot("changes"),
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
    with pytest.raises(acex.NoCounterfactual, match="Raise budget"):
        nothing_found().plot("changes")


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
