"""Write the table of options in settings.md from the declarations in `acex.options`: python docs/make_settings.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acex
from acex.options import DECLARED, GROUPS, Declaration

PAGE = Path(__file__).with_name("settings.md")
BEGIN, END = "<!-- options: written by make_settings.py -->", "<!-- end of options -->"
PIPE = r"\|"  # within a cell
HOMES: dict[str, Callable[..., Any]] = {
    "explain": acex.explain,
    "Explainer": acex.Explainer,
    "Cost": acex.Cost,
    "Feasible": acex.Feasible,
    "Model": acex.Model,
    "Space.infer": acex.Space.infer,
}


def with_table(page: str) -> str:
    """The text of the page with the present table between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def table() -> str:
    """A table of the options of each group."""
    return "\n\n".join(_group(group) for group in GROUPS)


def _group(group: str) -> str:
    lines = [_line(declared) for declared in DECLARED if declared.group == group]
    head = ["| argument | of | default | in a shell | |", "|---|---|---|---|---|"]
    return "\n".join([f"**{group}**", "", *head, *lines])


def _line(declared: Declaration) -> str:
    home = next(name for name, function in HOMES.items() if declared.name in inspect.signature(function).parameters)
    default = "" if declared.default in (None, ()) else f"`{declared.default!r}`".replace("'", '"')
    flag = f"`{declared.flag}`" if declared.flag else ""
    cells = (f"`{declared.name}`", f"`{home}`", default, flag, declared.help)
    return f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
