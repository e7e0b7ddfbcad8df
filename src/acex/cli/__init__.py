"""The command line: `acex explain`, `batch`, `ask`, `tell`, `report`, `verify`, `ledger` and others."""

from __future__ import annotations

from acex.cli.ask_tell import ask, tell
from acex.cli.explaining import batch, demo, explain, schema, subsets
from acex.cli.ledgers import audit, ledger
from acex.cli.program import app, flattened
from acex.cli.reporting import report, verify
from acex.cli.studios import studio

__all__ = ["app", "main"]

PANELS = {
    "Try it": (demo, studio),
    "Explain decisions of a model": (explain, batch, subsets, schema),
    "Labels from a laboratory or a person": (ask, tell),
    "Reports and checks": (report, verify, audit),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(flattened(command))
app.add_typer(ledger, name="ledger", rich_help_panel="Reports and checks")


def main() -> None:
    """Run the command line."""
    app(prog_name="acex")
