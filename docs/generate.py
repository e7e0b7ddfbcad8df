"""Write the generated parts of the documentation: python docs/generate.py [PAGE ...]

1. The tables of options in settings.md, from the declarations in `acex.options`.
2. commands.md, from the command line itself.
3. What code in the pages prints, or in the pages named only: a block ```text directly after a block of Python or of
   commands is its output. It may contain "..." for what differs from run to run; it is then kept if it still matches.
   Pictures that README.md and index.md save are written to pictures/.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

import acex
from acex.cli import app
from acex.options import DECLARED, GROUPS, Declaration

HERE = Path(__file__).parent
BEGIN, END = "<!-- options: written by generate.py -->", "<!-- end of options -->"
PIPE = r"\|"  # within a cell
HOMES: dict[str, Callable[..., Any]] = {
    "explain": acex.explain,
    "Explainer": acex.Explainer,
    "Cost": acex.Cost,
    "Feasible": acex.Feasible,
    "Model": acex.Model,
    "Space.infer": acex.Space.infer,
}


def with_options(page: str) -> str:
    """The text of settings.md with the present tables between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n\n".join(_options(group) for group in GROUPS)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _options(group: str) -> str:
    rows = [_option(declared) for declared in DECLARED if declared.group == group]
    head = ["| argument | of | default | in a shell | |", "|---|---|---|---|---|"]
    return "\n".join([f"**{group}**", "", *head, *rows])


def _option(declared: Declaration) -> str:
    home = next(
        name
        for name, function in HOMES.items()
        if declared.name in inspect.signature(function).parameters
    )
    default = (
        ""
        if declared.default in (None, ())
        else f"`{declared.default!r}`".replace("'", '"')
    )
    flag = f"`{declared.flag}`" if declared.flag else ""
    return _row(f"`{declared.name}`", f"`{home}`", default, flag, declared.help)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |"


def commands() -> str:
    """The text of commands.md."""
    head = (
        "# Commands\n\nEvery command with its arguments and options, generated from `acex --help`. "
        "[Use the command line](cli.md) shows them at work and lists the exit codes.\n"
    )
    return "\n".join([head, *_commands(get_command(app), "acex")])


def _commands(command: Any, name: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for part, child in command.commands.items():
            yield from _commands(child, f"{name} {part}")
        return
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [
        p
        for p in command.params
        if p.param_type_name == "option" and not p.hidden and p.name != "help"
    ]
    yield f"## {name}\n\n{inspect.cleandoc(command.help or '')}\n"
    usage = " ".join(
        [name, *(_name(p) for p in arguments), "[OPTIONS]" if options else ""]
    )
    yield f"```\n{usage.strip()}\n```\n"
    panels: dict[str, list[str]] = {}
    for p in (*arguments, *options):
        panels.setdefault(p.rich_help_panel or "", []).append(
            _row(_flag(p), _words(p), _default(p))
        )
    for panel, rows in panels.items():
        title = [f"**{panel}**", ""] if panel else []
        yield "\n".join([*title, "| | | default |", "|---|---|---|", *rows]) + "\n"


def _name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _flag(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_name(parameter)}`"
    return f"`{parameter.opts[0]}{'' if parameter.is_flag else f' {_name(parameter)}'}`"


def _words(parameter: Any) -> str:
    return " ".join((getattr(parameter, "help", None) or "").split())


def _default(option: Any) -> str:
    shown = (
        option.default is not None
        and not getattr(option, "is_flag", False)
        and not callable(option.default)
    )
    return f"`{option.default}`" if shown and option.default not in ((), [], "") else ""


def write_outputs(pages: list[str]) -> None:
    """Run the code of each page, and write what it prints below it."""
    sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent)]
    from documentation import written_outputs

    for page in pages:
        written_outputs(page)
        print(page)


if __name__ == "__main__":
    settings = HERE / "settings.md"
    settings.write_text(
        with_options(settings.read_text(encoding="utf-8")), encoding="utf-8"
    )
    (HERE / "commands.md").write_text(commands(), encoding="utf-8")
    named = [
        str(Path(page).resolve().relative_to(HERE.parent.resolve()))
        for page in sys.argv[1:]
    ]
    write_outputs(
        named
        or ["README.md", *sorted(f"docs/{page.name}" for page in HERE.glob("*.md"))]
    )
