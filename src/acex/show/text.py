"""A table of changes for the terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable

from acex.values import printable

WIDTH = 80  # columns of a terminal


def drawn(changes: Iterable[tuple[str, ...]]) -> str:
    """Changes (see `changes_as_text`) as a table of 80 columns; long texts are folded, never cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="none")
    for name in ("feature", "before", "after", "step", "needed"):
        table.add_column(name, overflow="fold", justify="left" if name in ("feature", "needed") else "right")
    for line in changes:
        table.add_row(*(Text(printable(word)) for word in line))
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
