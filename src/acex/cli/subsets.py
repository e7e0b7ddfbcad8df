"""`acex subsets`: which small sets of features are enough to change a decision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.case import Case
from acex.cli.models import ModelFlags
from acex.cli.program import NOTHING_FOUND, AsJson, stopped
from acex.cli.show import console, echo
from acex.cli.tables import writable


def subsets(
    case: Case,
    black_box: ModelFlags,
    max_features: Annotated[int, typer.Option(min=1, max=3, help="How many features may change together.")] = 2,
    queries_each: Annotated[int, typer.Option(min=2, help="Most rows to send for one set of features.")] = 6,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, callback=writable(".html", ".json"), help="Write the result here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show for each feature, and each pair, whether changing it alone is enough.

    Example: acex subsets loans.csv --model loans.skops --row 17 --target good
    --budget 80 --freeze age --ledger loans.db

    --budget is for all sets together. "Asked and not found" proves nothing;
    "not asked" means that the budget was used for others. With --ledger, an
    interrupted command continues. Exit code 1: no set is enough.
    """
    prepared = case.open(black_box, out)
    explainer = case.explainer(prepared, None if case.ledger is None else acex.Ledger(case.ledger))
    options = {name: value for name, value in prepared.options.items() if name != "count"}
    try:
        found = explainer.feature_subsets(
            prepared.factual, max_features=max_features, queries_each=queries_each, **options
        )
    except KeyboardInterrupt:
        raise stopped(explainer.ledger) from None
    if as_json:
        echo(found.to_json())
    else:
        console().print(str(found))
    if out is not None:
        (found.to_html if out.suffix.lower() == ".html" else found.to_json)(out)
    if len(found) and not any(s.state == "found" for s in found):
        raise typer.Exit(NOTHING_FOUND)
