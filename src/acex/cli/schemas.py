"""`acex schema`: a description of a table, to be edited."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.program import AsJson, say
from acex.cli.show import echo, print_json
from acex.cli.tables import column_names, read_table, writable


def schema(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Known rows: a .csv or .parquet file.")],
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=writable(), help="The TOML file to write; by default stdout."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns that the model does not see.")
    ] = None,
    decimal: Annotated[str, typer.Option(metavar="MARK", help="Decimal mark of DATA: '.' or ','.")] = ".",
    as_json: AsJson = False,
) -> None:
    """Describe the columns of a file in TOML, to be edited and used with --schema.

    Example: acex schema loans.csv --drop decision --out loans.toml
    """
    from acex.space.schema import schema_text

    table = read_table(data, decimal)
    space = acex.Space.infer(table.drop(columns=column_names(drop, table.columns, "--drop")))
    if out is not None:
        if out.exists():
            raise ValueError(f"{out} exists and may have been edited; name another file for --out.")
        out.write_text(schema_text(space), encoding="utf-8")
        say(f"{len(space)} columns are described in {out}. Edit it, then: acex explain {data} --schema {out} ...")
    if as_json:
        print_json(space.to_dict()["features"])
    elif out is None:
        echo(schema_text(space), nl=False)
