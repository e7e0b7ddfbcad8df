"""Changes as people write them, in a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acex.run.explanation import Explanation

WIDTH = 80  # columns of a terminal


def changes_in_words(explanation: Explanation, i: int = 0) -> list[tuple[str, str, str, str]]:
    """For each change of counterfactual number i: feature, before, after and step, as people write them."""
    feature, changes = explanation.space.feature, explanation.changes_of(i).itertuples(index=False)
    return [(name, *feature(name).texts(before, after), f"{step:+.2f} sd") for name, before, after, step in changes]


def drawn_changes(explanation: Explanation, i: int = 0) -> str:
    """The same as a table that fits a terminal: long texts are folded, none is cut short."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="none")
    for name in ("feature", "before", "after", "step"):
        table.add_column(name, overflow="fold", justify="left" if name == "feature" else "right")
    for change in changes_in_words(explanation, i):
        table.add_row(*map(Text, change))
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
