"""`acex menu`: what can be done with one feature alone, or with two."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.case import Case
from acex.cli.explaining import named
from acex.cli.models import Model
from acex.cli.program import NOTHING_FOUND, STOPPED, AsJson, kept, say
from acex.cli.show import console, echo, table
from acex.cli.tables import apart, writable


def menu(
    case: Case,
    black_box: Model,
    scores: Annotated[bool, typer.Option("--scores", help="The model gives probabilities; use them.")] = False,
    most: Annotated[int, typer.Option(min=1, max=3, help="How many features may change together.")] = 2,
    each: Annotated[int, typer.Option(min=2, help="Most rows to send for one set of features.")] = 6,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, callback=writable, help="Write the menu here: .html or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say for each feature, and each pair, whether it can change the decision alone.

    Example: acex menu loans.csv --model loans.skops --row 17 --target good
    --budget 80 --freeze age --ledger loans.db

    --budget is for all sets together. "Asked and not found" is no proof;
    "not asked" means that the budget went elsewhere. With --ledger, the same
    command goes on where it was stopped. Exit code 1: no set was found to do.
    """
    from acex.audit.feature_subsets import WORDS
    from acex.models.adapters import known_labels

    apart(out, case.data, case.x, case.schema, case.ledger, black_box.model, black_box.model_config)
    model = black_box.open()
    prepared = case.prepare(known_labels(model))
    case = named(case, model)
    ledger = None if case.ledger is None else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, model, ledger, scores=scores, timeout=black_box.patience)
    try:
        found = explainer.menu(prepared.factual, most=most, each=each, **case.search_options(prepared))
    except KeyboardInterrupt:
        say(f"stopped. {kept(explainer.ledger)}")
        raise typer.Exit(STOPPED) from None
    if as_json:
        echo(found.to_json())
    else:
        console().print(found.summary, style="bold")
        lines = [
            (" and ".join(e.features), WORDS[e.state], e.change, "" if e.cost is None else f"{e.cost:.3g}", e.asked)
            for e in found
        ]
        console().print(table(("features", "alone?", "change", "cost", "asked"), lines))
    if out is not None:
        (found.to_json if out.suffix.lower() == ".json" else found.to_html)(out)
    if len(found) and not any(e.state == "found" for e in found):
        raise typer.Exit(NOTHING_FOUND)
