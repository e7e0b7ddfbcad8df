"""What the commands print: tables and sentences within 80 columns, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pandas as pd
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acex.run.explanation import Explanation
from acex.show.text import readable, readable_pair
from acex.values import as_json, is_missing

WIDTH = 80
MOST_CHANGES = 12  # of the changes are listed


def console() -> Console:
    """Stdout, for text as it is."""
    out = Console(highlight=False, markup=False)
    out.width = min(out.width, WIDTH)
    return out


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table of values as people write them; with empty names it has no header."""
    columns = list(columns)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text("" if is_missing(value) else readable(value)) for value in row))
    return drawn


def changes_table(changes: pd.DataFrame, most: int = MOST_CHANGES) -> Table:
    """What to change, from what to what, the largest step first; `changes` is that of an explanation."""
    rows = [
        (feature, *readable_pair(before, after), f"{step:+.2f} sd")
        for feature, before, after, step in changes.head(most).itertuples(index=False)
    ]
    if len(changes) > most:
        rows.append((f"... and {len(changes) - most} smaller changes", "", "", ""))
    return table(("change", "from", "to", "step"), rows)


def print_explanation(explanation: Explanation, price: float | None = None) -> None:
    """The answer for people."""
    out = console()
    if explanation.outcome != "found":
        out.print(explanation.summary())
    for i, cost in enumerate(explanation.costs):
        changes = explanation.changes_of(i)
        before, after = explanation.label_before, explanation.label_after
        # Of several, only the first has its label written down; any of the wanted ones may be another's.
        becomes = f"{before} becomes {after}" if i == 0 else "or"
        n, of = len(changes), len(explanation.space)
        out.print(f"{becomes} with {n} of {of} features changed (cost {cost:.3g}):", style="bold")
        out.print(changes_table(changes))
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
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, default=as_json))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of a frame in plain values, None where there is none."""
    columns = {str(c): [None if is_missing(v) else as_json(v) for v in frame[c].tolist()] for c in frame.columns}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
