"""The results as tables in Markdown, LaTeX or HTML, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from acex.bench.control import HISTORY, PASSED
from acex.bench.methods import METHODS
from acex.bench.score import RATIOS, means, needed, paper

MEASURES = {"queries": 0, "d2": 2, "g1": 2, "affinity": 2, "validity": 2, "score": 2}  # with digits
GRIDS = {
    "score": ("CFE score S", 3),
    "queries": ("mean queries", 0),
    "amortised": ("mean queries, labels of the reference asked once for all rows", 0),
    "J": ("mean cost J", 2),
    "reference_rows": ("share of answers that are rows of the reference", 2),
}
HIGHER_IS_BETTER = ("affinity", "validity")
NAMES = {"score": "S"}
NOTHING = "–"


@dataclass(frozen=True)
class Cell:
    """A text, and whether it is the best of its column."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and rows of cells."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def tables(results: pd.DataFrame) -> list[Table]:
    """For each data set (and label, in the fixed test) the means beside the paper's, then methods by data sets."""
    is_control = results["suite"] == "control"
    out = [_trials(results[is_control])] if is_control.any() else []
    return out + _compared(results[~is_control]) if not is_control.all() else out


def _compared(results: pd.DataFrame) -> list[Table]:
    found, published = means(results), paper()
    out = []
    for suite, part in found.groupby("suite", sort=False):
        keys = ["data", "label"] if suite == "fixed" else ["data"]
        for where, block in part.groupby(keys, sort=False):
            data = str(where[0])
            theirs = published[(published["suite"] == suite) & (published["data"] == data)]
            title = f"{suite}: {data}"
            if suite == "fixed":
                theirs = theirs[theirs["label"] == where[1]]
                title += f", label {where[1]}"
            out.append(_beside(title, block, theirs.set_index("method")))
    for suite, part in found[found["suite"] != "fixed"].groupby("suite", sort=False):
        out += [_grid(f"{suite}: {words}", part, name, digits) for name, (words, digits) in GRIDS.items()]
    for suite, part in needed(results).groupby("suite", sort=False):
        for ratio in RATIOS:
            title = f"{suite}: queries until half of the rows are within {ratio:g} of the best known cost"
            out.append(_grid(title, part, f"{ratio:g}x", 0))
    return out


def _trials(results: pd.DataFrame) -> Table:
    """Tuning a controller: how many trials it takes until one passes, how near it is, how often it passes."""
    header = ("history", "method", "n", "passed", "trials until the first", "trials in all", "J", "passes under noise")
    rows = []
    by_passed = results.sort_values("data", key=lambda names: -names.map(PASSED), kind="stable")
    for (name, method), runs in by_passed.groupby(["data", "method"], sort=False):
        # The start itself is the first query of every method, and no trial.
        first = [curve[0][0] - 1 for curve in runs["curve"] if curve]
        values = (np.mean(first) if first else np.nan, (runs["queries"] - 1).mean(), runs["J"].mean())
        cells = [f"{PASSED[str(name)]} of {HISTORY} pass", str(method), str(len(runs)), f"{runs['valid'].mean():.0%}"]
        cells += [_number(value, digits) for value, digits in zip(values, (1, 1, 2), strict=True)]
        rows.append(tuple(Cell(text) for text in (*cells, _number(runs["steady"].astype(float).mean(), 2))))
    return Table("control: trials until a controller passes", header, tuple(rows))


def _beside(title: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Table:
    header = ["method", "told", "n"]
    best: dict[str, float] = {}
    for name in MEASURES:
        header += [NAMES.get(name, name), "paper"]
        values = ours.loc[ours["validity"] > 0, name]
        best[name] = values.max() if name in HIGHER_IS_BETTER else values.min()
    rows = []
    for line in ours.sort_values("score").to_dict("records"):
        cells = [Cell(str(line["method"])), Cell(METHODS[line["method"]].told), Cell(str(line["n"]))]
        for name, digits in MEASURES.items():
            text = _number(line[name], digits)
            if f"{name}_std" in line and text != NOTHING:
                text += f" ({_number(line[f'{name}_std'], digits)})"
            cells.append(Cell(text, best=bool(np.isclose(line[name], best[name]))))
            known = theirs[name].get(line["method"]) if len(theirs) else None
            cells.append(Cell("" if known is None else _number(known, digits)))
        cells.append(Cell(_number(line["reference_rows"], 2)))
        rows.append(tuple(cells))
    return Table(title, (*header, "reference rows"), tuple(rows))


def _grid(title: str, lines: pd.DataFrame, measure: str, digits: int) -> Table:
    """One measure, less of which is better, methods by data sets."""
    grid = lines.pivot_table(index="method", columns="data", values=measure, sort=False, dropna=False)
    least = grid.min().to_numpy()
    rows = [
        (Cell(str(method)), *(Cell(_number(v, digits), best=v == best) for v, best in zip(line, least, strict=True)))
        for method, line in zip(grid.index, grid.to_numpy(), strict=True)
    ]
    return Table(title, ("method", *map(str, grid.columns)), tuple(rows))


def _number(value: Any, digits: int) -> str:
    return NOTHING if value is None or not np.isfinite(value) else f"{value:,.{digits}f}".replace(",", " ")


def markdown(table: Table) -> str:
    """The table for a Markdown page."""
    lines = [table.header, tuple("---" for _ in table.header)]
    lines += [tuple(f"**{c.text}**" if c.best else c.text for c in row) for row in table.rows]
    return "\n".join([f"### {table.title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""])


def latex(table: Table) -> str:
    """The table for a paper, with booktabs."""

    def plain(text: str) -> str:
        return text.replace("_", r"\_").replace("%", r"\%").replace(NOTHING, "--")

    lines = [
        " & ".join(rf"\textbf{{{plain(c.text)}}}" if c.best else plain(c.text) for c in row) + r" \\"
        for row in table.rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{plain(table.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            r"\toprule",
            " & ".join(map(plain, table.header)) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def html(table: Table) -> str:
    """The table for a page of one's own."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    body = [
        "".join(f"<td><b>{escape(c.text)}</b></td>" if c.best else f"<td>{escape(c.text)}</td>" for c in row)
        for row in table.rows
    ]
    lines = "\n".join(f"<tr>{line}</tr>" for line in body)
    return f"<table>\n<caption>{escape(table.title)}</caption>\n<tr>{head}</tr>\n{lines}\n</table>\n"


FORMATS: dict[str, Callable[[Table], str]] = {"markdown": markdown, "latex": latex, "html": html}
