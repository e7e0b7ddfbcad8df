"""What the commands print: tables and sentences within 80 columns, and JSON.

All text goes to the terminal through `echo` or `console`: names, labels and messages come from files and models of
others, and a terminal obeys some characters instead of showing them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acex.engine.explanation import changes_as_text, labels_as_text
from acex.values import as_json, is_missing, printable, readable

if TYPE_CHECKING:
    import pandas as pd

    import acex

WIDTH = 80
MOST_CHANGES = 12  # of the changes are listed


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Text to stdout or stderr, without what a terminal would obey."""
    typer.echo(printable(text), nl=nl, err=err)


class Terminal(Console):
    """A console for texts as they are, without what a terminal would obey."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def console() -> Terminal:
    """Stdout, for text as it is."""
    out = Terminal(highlight=False, markup=False, emoji=False)
    out.width = min(out.width, WIDTH)
    return out


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table of values as people write them; with empty names it has no header."""
    columns = list(columns)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*("" if is_missing(value) else readable(value) for value in row))
    return drawn


def changes_table(explanation: acex.Explanation, i: int = 0, most: int = MOST_CHANGES) -> Table:
    """What counterfactual number i changes, from what to what, the largest step first."""
    changes = changes_as_text(explanation, i)
    more = [(f"... and {len(changes) - most} smaller changes", "", "", "", "")] if len(changes) > most else []
    return table(("change", "from", "to", "step", "needed"), [*changes[:most], *more])


def print_explanation(explanation: acex.Explanation, price: float | None = None) -> None:
    """The answer for people."""
    out = console()
    if explanation.outcome != "found":
        out.print(explanation.summary())
    for i, cost in enumerate(explanation.costs):
        before, after = labels_as_text(explanation)
        # Of several, only the first has its label written down; any of the wanted ones may be another's.
        becomes = f"{before} becomes {after}" if i == 0 else "or"
        n, of = len(explanation.changes_of(i)), len(explanation.plan.space)
        out.print(f"{becomes} with {n} of {of} features changed (cost {cost:.3g}):", style="bold")
        out.print(changes_table(explanation, i))
    if explanation.outcome == "found" and explanation.plan.space.steps_in_words:
        out.print(f"Numbers move in the steps of the data: {explanation.plan.space.steps_in_words}.")
    asked, known = explanation.n_queries, explanation.n_reused
    times = "once" if asked == 1 else f"{asked} times"
    money = "" if price is None else f" for {as_money(asked * price)}"
    out.print(f"The model was asked {times}{money}; {known} {'answer was' if known == 1 else 'answers were'} known.")
    if explanation.outcome == "found":  # else they are part of the summary
        for warning in explanation.warnings:
            out.print(f"Warning: {warning}")


def shortened(name: str, most: int = 18) -> str:
    """A name with its end left out where it is long, such as the hash of a file."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def counted(n: int, thing: str) -> str:
    """So many things, in words."""
    return f"1 {thing}" if n == 1 else f"{n} {thing}s"


def as_money(amount: float) -> str:
    """An amount without the noise of binary fractions."""
    return f"{round(amount, 6):.2f}" if round(amount, 6) == round(amount, 2) else f"{amount:.6g}"


def print_json(value: Any) -> None:
    """A value for machines, on stdout."""
    echo(json.dumps(value, indent=1, ensure_ascii=False, default=as_json))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of a frame in plain values, None where there is none."""
    columns = {str(c): [None if is_missing(v) else as_json(v) for v in frame[c].tolist()] for c in frame.columns}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
