"""The command line: `acex explain`, `batch`, `ask`, `tell`, `report`, `verify`, `ledger` and others."""

from __future__ import annotations

from acex.cli.ask_tell import ask, tell
from acex.cli.explaining import batch, demo, explain, schema, subsets
from acex.cli.ledgers import audit, ledger
from acex.cli.program import app, spread
from acex.cli.reporting import report, verify
from acex.cli.studios import studio

__all__ = ["app", "main"]

for command in (explain, batch, subsets, schema, ask, tell, audit, report, verify, demo, studio):
    app.command()(spread(command))
app.add_typer(ledger, name="ledger")


def main() -> None:
    """Run the command line."""
    app(prog_name="acex")
