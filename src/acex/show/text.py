"""Values and changes as people write them, in a terminal."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd

WIDTH = 80  # columns of a terminal


def readable(value: Any, digits: int = 4) -> str:
    """A value as people write it: four significant digits behind a point, none where it is whole."""
    if isinstance(value, (float, np.floating)):
        value = float(value)
        return f"{value:.0f}" if abs(value) >= 10**digits or value.is_integer() else f"{value:.{digits}g}"
    return str(value)


def readable_pair(before: Any, after: Any) -> tuple[str, str]:
    """Both values as people write them, with as many digits as it takes to tell them apart."""
    for digits in range(4, 18):  # 17 tell any two floats apart
        pair = readable(before, digits), readable(after, digits)
        if pair[0] != pair[1]:
            break
    return pair


def drawn_changes(changes: pd.DataFrame) -> str:
    """Changes (see `Explanation.changes`) as a table that fits a terminal: long texts are folded, none is cut short."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="none")
    for name in ("feature", "before", "after", "step"):
        table.add_column(name, overflow="fold", justify="left" if name == "feature" else "right")
    for feature, before, after, step in changes[["feature", "before", "after", "step"]].itertuples(index=False):
        table.add_row(*map(Text, (feature, *readable_pair(before, after), f"{step:+.2f} sd")))
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
