"""A table of texts, written as Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and rows of texts; `**text**` is bold."""

    title: str
    header: list[str]
    rows: list[list[str]]

    @classmethod
    def of(cls, title: str, frame: pd.DataFrame) -> Table:
        """The table with the values of a frame as texts."""
        return cls(title, list(map(str, frame.columns)), [[str(cell) for cell in row] for row in frame.to_numpy()])

    def markdown(self) -> str:
        """The table without its title."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """The table in LaTeX with booktabs."""

        def plain(text: str) -> str:
            text = text.replace("_", r"\_").replace("%", r"\%").replace(NOTHING, "--")
            return re.sub(r"\*\*(.*?)\*\*", r"\\textbf{\1}", text)

        body = [" & ".join(map(plain, row)) + r" \\" for row in self.rows]
        columns = "l" + "r" * (len(self.header) - 1)
        return "\n".join(
            [
                rf"\begin{{table}}\caption{{{plain(self.title)}}}",
                rf"\begin{{tabular}}{{{columns}}}\toprule",
                " & ".join(map(plain, self.header)) + r" \\\midrule",
                *body,
                r"\bottomrule\end{tabular}\end{table}",
            ]
        )


FORMATS: dict[str, Callable[[Table], str]] = {
    "markdown": lambda table: f"### {table.title}\n\n{table.markdown()}\n",
    "latex": lambda table: table.latex() + "\n",
}


def number(value: Any, digits: int) -> str:
    """A number with spaces between thousands, or a dash."""
    return NOTHING if value is None or not np.isfinite(value) else f"{value:,.{digits}f}".replace(",", " ")


def bold(values: pd.DataFrame, is_best: pd.DataFrame, digits: int, title: str) -> Table:
    """Numbers, methods by data sets, with the best of each column in bold."""
    rows = []
    for method, numbers, best in zip(values.index, values.to_numpy(), is_best.to_numpy(), strict=True):
        texts = [number(value, digits) for value in numbers]
        rows.append([str(method), *(f"**{t}**" if b and t != NOTHING else t for t, b in zip(texts, best, strict=True))])
    return Table(title, ["method", *map(str, values.columns)], rows)


def listed(names: Iterable[str]) -> str:
    """Names with commas between them, without underscores; "none" for none."""
    return ", ".join(name.replace("_", " ") for name in names) or "none"
