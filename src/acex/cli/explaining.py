"""`acex explain`, `subsets` and `schema`: one row, and a description of its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.case import Case, Prepared
from acex.cli.ledgers import exists, price_of
from acex.cli.models import ModelFlags
from acex.cli.program import NOTHING_FOUND, AsJson, Price, how_to_continue, say, stopped
from acex.cli.show import as_money, console, echo, print_explanation, print_json, table
from acex.cli.tables import PICTURES, LeftOut, Seal, column_names, read_table, writable
from acex.values import plain


def explain(
    case: Case,
    black_box: ModelFlags,
    seal: Seal,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            callback=writable(".json"),
            help="Write the explanation here; acex report makes a page of it.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(dir_okay=False, callback=writable(*PICTURES), help="Draw the explanation here.")
    ] = None,
    left_out: LeftOut = None,
    price_per_row: Price = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent and the most it can cost; send nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no table.")] = False,
) -> None:
    """Find the smallest realistic change to a row that changes the decision.

    Example: acex explain loans.csv --model loans.skops --row 17 --target good
    --freeze age,sex --range "income=0:90000" --budget 40 --ledger loans.db

    With --ledger, an interrupted command continues when it is repeated with the
    same DATA, and no answer is paid for twice. Exit code 1: no counterfactual
    was found.
    """
    from acex.engine.redaction import redacted_error
    from acex.show.pages import without

    prepared = case.open(black_box, out, plot)
    seal.check(prepared.space.names)
    if dry_run:
        _print_plan(case, prepared, price_per_row, as_json)
        return
    ledger = None if case.ledger is None else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, ledger)
    name = None if prepared.ids is None else plain(prepared.ids[0])
    if name is not None and ledger is not None:  # record the name before anything is sent
        explainer.search(prepared.factual, **prepared.options).begin([str(name)])
    try:
        explanation = explainer.explain(prepared.factual, **prepared.options, progress=False if quiet else None)
    except (KeyboardInterrupt, acex.AcexError) as error:
        so_far: acex.Explanation | None = getattr(error, "explanation", None)
        if so_far is not None and so_far.outcome == "found":
            say(f"before that: {so_far.summary()}")
        if isinstance(error, KeyboardInterrupt):
            raise stopped(explainer.ledger) from None
        if so_far is not None and isinstance(error, acex.ModelFailed):
            error.add_note(how_to_continue(explainer.ledger))
        if so_far is not None and out is not None:
            so_far.to_json(out, left_out=left_out, **seal.options)  # it was paid for
        if seal.columns and isinstance(error, acex.ModelFailed):
            error.args = (f"the model failed: {redacted_error(str(error), seal.columns)}",)
        raise
    if name is not None:
        explanation = replace(explanation, metadata={**explanation.metadata, "id": name})
    # Stdout first: a full disk must not lose what was paid for.
    if as_json:
        echo(explanation.to_json(**seal.options))
    elif not quiet:
        price = price_of(ledger, explainer.model_id) if price_per_row is None else price_per_row
        print_explanation(without(explanation, seal.columns), price)
        for remark in prepared.remarks:
            say(remark)
    if out is not None:
        explanation.to_json(out, left_out=left_out, **seal.options)
    if plot is not None:
        without(explanation, seal.columns).plot().savefig(plot)
    if explanation.outcome not in ("found", "already_target"):
        raise typer.Exit(NOTHING_FOUND)


def _print_plan(case: Case, prepared: Prepared, price: float | None, as_json: bool) -> None:
    """Print what would be sent, and the most it can cost. The ledger is only read."""
    plan = case.explainer(prepared, None).search(prepared.factual, **prepared.options).plan
    paid, left, model_id = 0, float("inf"), prepared.model.identity(is_shared=case.ledger is not None)
    if case.ledger is not None and exists(case.ledger):
        with acex.Ledger(case.ledger) as ledger:
            paid = sum(ask.paid for ask in ledger.asks(plan.identity))
            left = ledger.account(model_id).remaining
            price = price_of(ledger, model_id) if price is None else price
    most = int(min(max(plan.budget - paid, 0), left))
    cost = None if price is None else most * price
    strategy, allowed = plan.settings["strategy"]["name"], plan.may_become
    if as_json:
        print_json(
            {
                "dry_run": True,
                "explanation": plan.identity,
                "model_id": model_id,
                "factual": {name: plain(value) for name, value in plan.factual.items()},
                "allowed": allowed,
                "target": plan.target.described,
                "strategy": strategy,
                "budget": plan.budget,
                "paid_before": paid,
                "most_queries": most,
                "most_cost": cost,
            }
        )
        return
    out = console()
    out.print("Nothing was sent. This row would be explained:", style="bold")
    row = zip(plan.space.features, plan.factual.values(), allowed.values(), strict=True)
    shown = [(f.name, f.text(now), "frozen" if limits is None else f.span(limits)) for f, now, limits in row]
    out.print(table(("column", "now", "may become"), shown))
    wanted = " or ".join(plan.target.named(plan.class_names).words)
    out.print(f"Wanted: {wanted}. Strategy {strategy}, seed {plan.settings['seed']}, counterfactuals {plan.count}.")
    if case.ledger is not None:
        out.print(f"The model's name in the ledger is {model_id}.", soft_wrap=True)
    money = "" if cost is None else f", for {as_money(cost)} at most"
    out.print(f"At most {most} rows would be sent{money} (budget {plan.budget}, {paid} paid before).")


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
    if found.entries and not any(s.state == "found" for s in found.entries):
        raise typer.Exit(NOTHING_FOUND)


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

    rows = read_table(data, decimal)
    space = acex.Space.infer(rows.drop(columns=column_names(drop, rows.columns, "--drop")))
    if out is not None:
        if out.exists():
            raise ValueError(f"{out} exists and may have been edited; name another file for --out.")
        out.write_text(schema_text(space), encoding="utf-8")
        say(f"{len(space)} columns are described in {out}. Edit it, then: acex explain {data} --schema {out} ...")
    if as_json:
        print_json(space.to_dict()["features"])
    elif out is None:
        echo(schema_text(space), nl=False)
