"""What the best counterfactual changes, within the range of each feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import FigureBase

from acex.engine.explanation import Explanation
from acex.show.plots.style import AFTER, BEFORE, BLUE, DARK_GREY, LIGHT_GREY, legend, plain, short, wrapped
from acex.space.feature import Way
from acex.values import is_missing

MOST_CHANGES = 20  # of the changes are shown; more would not be readable
LEAST_ROWS = 4  # with fewer changes than these, rows come no further apart

SIGN: dict[Way, str] = {"up": "▲", "down": "▼", "other": "●"}


@dataclass(frozen=True)
class Change:
    """One changed feature, in words and as places within its range (0: lowest, 1: highest)."""

    feature: str
    before: str
    after: str
    step: float  # in standard deviations
    start: float
    end: float
    low: str  # the ends of the range; empty for nominal features, whose order means nothing
    high: str
    needed: str = "not checked"  # or who says that it is needed

    @property
    def far(self) -> str:
        """The step in words; a category has no standard deviations."""
        return f"{self.step:+.2f} sd" if self.low or self.high else "change"


@dataclass(frozen=True)
class Changes:
    """What the best counterfactual changes, largest step first."""

    shown: tuple[Change, ...]
    n_more: int  # changes with smaller steps, left out


def changes_record(explanation: Explanation, most: int = MOST_CHANGES) -> Changes:
    """The changes of the best counterfactual, the `most` largest of them; none when nothing was found."""
    changes = explanation.changes
    shown = []
    for name, before, after, step, needed in changes.head(most).itertuples(index=False):
        feature = explanation.plan.space.feature(name)
        width, leaps = feature.high - feature.low or np.inf, feature.way(step, before, after) == "other"
        known = feature.encode(pd.Series([v for v in (before, after) if not is_missing(v)], dtype=object))
        start, *_, end = ((known[[0, -1]] - feature.low) / width).tolist()  # a gap has no place of its own
        low, high = ("" if leaps else feature.text(feature.value(c)) for c in (feature.low, feature.high))
        shown.append(Change(name, *feature.texts(before, after), float(step), start, end, low, high, needed))
    return Changes(tuple(shown), n_more=len(changes) - len(shown))


def draw_changes(changes: Changes, figure: FigureBase) -> None:
    """A line a feature: where it was and where it goes, within the feature's range."""
    axes = figure.add_subplot()
    n = len(changes.shown)
    for row, change in enumerate(changes.shown):
        axes.plot([0, 1], [row, row], color=LIGHT_GREY, linewidth=3, solid_capstyle="round", zorder=1)
        axes.plot([change.start, change.end], [row, row], color=BLUE, linewidth=2, zorder=2)
        axes.plot(change.start, row, **BEFORE, zorder=3)
        axes.plot(change.end, row, **AFTER, zorder=4)
        for place, text, side in ((-0.04, change.low, "right"), (1.04, change.high, "left")):
            axes.text(place, row, plain(short(text, 9)), ha=side, va="center", fontsize=7, color=DARK_GREY)
    names = [plain(wrapped(short(c.feature, 44), 24)) for c in changes.shown]
    words = [plain(f"{short(c.before)} → {short(c.after)}\n{c.far}") for c in changes.shown]
    axes.set_yticks(range(n), names, fontsize=9)
    beside = axes.twinx()  # its labels on the right, for which the layout then makes room
    beside.set_yticks(range(n), words, fontsize=8)
    middle, half = (n - 1) / 2, max(n, LEAST_ROWS) / 2
    for one in (axes, beside):
        one.set_ylim(middle + half, middle - half)
        one.tick_params(length=0)
        one.spines[:].set_visible(False)
    axes.set_xlim(-0.32, 1.32)
    axes.set_xticks([])
    more = f" (and {changes.n_more} smaller changes)" if changes.n_more else ""
    axes.set_xlabel(f"within the feature's range{more}", fontsize=9)
    legend(axes, {"before": BEFORE, "after": AFTER})
