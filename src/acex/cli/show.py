"""Output of the commands: tables and sentences within 80 columns, and JSON.

All text is printed through `echo` or `console`, because names, labels and messages come from files and models of
others and may contain control characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from acex.values import as_json, is_missing, printable, readable

WIDTH = 80


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print text to stdout or stderr, with control characters escaped."""
    typer.echo(printable(text), nl=nl, err=err)


class Terminal(Console):
    """A console that escapes control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def console() -> Terminal:
    """Stdout, at most 80 columns wide."""
    out = Terminal(highlight=False, markup=False, emoji=False)
    out.width = min(out.width, WIDTH)
    return out


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """A table of values in readable form; without a header if all column names are empty."""
    columns = list(columns)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(columns))
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*("" if is_missing(value) else readable(value) for value in row))
    return drawn


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    echo(json.dumps(value, indent=1, ensure_ascii=False, default=as_json))
