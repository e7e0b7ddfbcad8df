"""Several counterfactuals side by side, as a table of what they change."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import FigureBase
from matplotlib.patches import Rectangle

from acex.engine.explanation import Explanation
from acex.errors import NoCounterfactual
from acex.show.plots.changes import SIGN
from acex.show.plots.style import DARK_GREY, LIGHT_BLUE, LIGHT_GREY, inches, plain, short, wrapped
from acex.space.feature import Way

MOST_FEATURES = 30  # rows that fit on a page
MOST_COLUMNS = 6  # counterfactuals that can be compared
NAMES = 1.6  # width of the column of names, in other columns
LETTER = 0.085  # inches that a letter in a cell takes, bold ones included


@dataclass(frozen=True)
class Cell:
    """What a feature becomes."""

    value: str
    direction: Way


@dataclass(frozen=True)
class Counterfactual:
    """One column: a cell for each feature shown, None where it stays as it is."""

    cells: tuple[Cell | None, ...]
    cost: float
    n_changes: int


@dataclass(frozen=True)
class Counterfactuals:
    """The best counterfactuals and the features that any of them changes: first those that most of them change."""

    features: tuple[str, ...]
    factual: tuple[str, ...]
    columns: tuple[Counterfactual, ...]
    n_more_features: int  # changed as well, but left out
    n_more_columns: int


def counterfactuals_record(
    explanation: Explanation, most_features: int = MOST_FEATURES, most: int = MOST_COLUMNS
) -> Counterfactuals:
    """The `most` best counterfactuals, and up to `most_features` of the features that they change.

    Raises:
        NoCounterfactual: there is none to show.
    """
    if explanation.counterfactuals.empty:
        raise NoCounterfactual(explanation.summary())
    n = min(most, len(explanation.counterfactuals))
    tables = [explanation.changes_of(i).set_index("feature") for i in range(n)]
    names = list(dict.fromkeys(name for table in tables for name in table.index))
    names.sort(key=lambda name: -sum(name in table.index for table in tables))  # stable: larger steps stay in front
    shown = names[:most_features]
    before = {name: value for table in tables for name, value in table["before"].items()}

    feature = explanation.plan.space.feature

    def cell(name: str, after: object, step: float) -> Cell:
        return Cell(feature(name).texts(before[name], after)[1], feature(name).way(step, before[name], after))

    return Counterfactuals(
        features=tuple(shown),
        factual=tuple(feature(name).text(before[name]) for name in shown),
        columns=tuple(
            Counterfactual(
                tuple(cell(n, table["after"][n], table["step"][n]) if n in table.index else None for n in shown),
                cost,
                n_changes=len(table),
            )
            for table, cost in zip(tables, explanation.costs[:n], strict=True)
        ),
        n_more_features=len(names) - len(shown),
        n_more_columns=len(explanation.counterfactuals) - n,
    )


def draw_counterfactuals(table: Counterfactuals, figure: FigureBase) -> None:
    """A row a feature, a column a counterfactual: bold with a sign where it differs from the factual, else a dot."""
    axes = figure.add_subplot()
    n, columns = len(table.features), len(table.columns) + 1
    axes.set_xlim(-NAMES, columns)
    axes.set_ylim(n + 2, -1)
    axes.set_axis_off()
    width = inches(figure) / (columns + NAMES)  # of a column, inches
    letters = max(int(width / LETTER), 6)
    numbers = [f" {i}" for i in range(1, columns)] if columns > 2 else [""]
    headings = ["factual", *(f"counterfactual{number}" for number in numbers)]
    for column, heading in enumerate(headings):
        axes.text(column + 0.5, -0.5, wrapped(heading, letters), ha="center", va="center", fontsize=9)
    for row, name in enumerate(table.features):
        axes.plot([-NAMES, columns], [row, row], color=LIGHT_GREY, linewidth=0.8)
        words = plain(wrapped(short(name, 44), max(int(1.5 * letters), 12)))
        axes.text(-NAMES, row + 0.5, words, ha="left", va="center", fontsize=8.5)
        axes.text(0.5, row + 0.5, plain(short(table.factual[row], letters)), ha="center", va="center", fontsize=9)
        for column, counterfactual in enumerate(table.columns, start=1):
            cell = counterfactual.cells[row]
            if cell is None:
                axes.text(column + 0.5, row + 0.5, "·", ha="center", va="center", fontsize=9, color=DARK_GREY)
                continue
            axes.add_patch(Rectangle((column + 0.03, row + 0.06), 0.94, 0.88, color=LIGHT_BLUE, linewidth=0))
            words = plain(f"{SIGN[cell.direction]} {short(cell.value, letters - 2)}")
            axes.text(column + 0.5, row + 0.5, words, ha="center", va="center", fontsize=9, weight="bold")
    axes.plot([-NAMES, columns], [n, n], color="black", linewidth=0.8)
    for row, title in ((n, "cost"), (n + 1, "features changed")):
        axes.text(-NAMES, row + 0.5, title, ha="left", va="center", fontsize=8.5, color=DARK_GREY)
        for column, c in enumerate(table.columns, start=1):
            words = f"{c.cost:.3g}" if row == n else str(c.n_changes)
            axes.text(column + 0.5, row + 0.5, words, ha="center", va="center", fontsize=9, color=DARK_GREY)
    notes = [f"{SIGN['up']} higher   {SIGN['down']} lower   {SIGN['other']} another category   · as in the factual"]
    if table.n_more_features:
        notes.append(f"{table.n_more_features} more features change")
    if table.n_more_columns:
        notes.append(f"{table.n_more_columns} more counterfactuals")
    axes.set_title(notes[0], fontsize=8, color=DARK_GREY)
    if notes[1:]:
        figure.supxlabel(f"not shown: {', '.join(notes[1:])}", fontsize=8, color=DARK_GREY)
