"""`acex explain`: the answer for one row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

import acex
from acex.cli.case import Case, Prepared
from acex.cli.ledgers import exists, price_of
from acex.cli.models import Model
from acex.cli.program import NOTHING_FOUND, STOPPED, AsJson, finite, kept, say
from acex.cli.sealing import LeftOut, Seal
from acex.cli.show import as_money, console, echo, print_explanation, print_json, table
from acex.cli.tables import apart, column_names, read_row, read_table, writable
from acex.values import as_json, is_missing, plain

if TYPE_CHECKING:
    import pandas as pd

C = TypeVar("C", bound=Case)
PICTURES = (".png", ".pdf", ".svg")


def picture_path(path: Path | None) -> Path | None:
    """The path, when a picture can be written there: asked before the work is done, not after."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise typer.BadParameter(f"{path.name!r} must end in one of {', '.join(PICTURES)}.")
    return writable(path)


def json_path(path: Path | None) -> Path | None:
    """The path, when it does not promise a page."""
    if path is not None and path.suffix.lower() in (".html", ".htm"):
        page = path.with_suffix(".json").name
        raise typer.BadParameter(f"it is JSON. Say --out {page}, and for a page then: acex report {page}.")
    return writable(path)


def explain(
    case: Case,
    black_box: Model,
    seal: Seal,
    scores: Annotated[bool, typer.Option("--scores", help="The model gives probabilities; use them.")] = False,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, callback=json_path, help="Write the explanation here, as JSON.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(dir_okay=False, callback=picture_path, help="Draw the explanation here.")
    ] = None,
    left_out: LeftOut = None,
    id_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="What rows are called; the model does not see it.")
    ] = None,
    price_per_row: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="What a row costs; by default as the ledger has it.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked and the most it can cost; ask nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no table.")] = False,
) -> None:
    """Find the smallest realistic change to a row that changes the decision.

    Example: acex explain loans.csv --model loans.skops --row 17 --target good
    --freeze age,sex --range "income=0:90000" --budget 40 --ledger loans.db

    With --ledger, a command that was interrupted goes on when it is given again
    with the same DATA, and pays for nothing twice. Exit code 1: there is no
    counterfactual.
    """
    from acex.models.adapters import known_labels
    from acex.show.pages import without

    for written in (out, plot):
        apart(written, case.data, case.x, case.schema, case.ledger, black_box.model, black_box.model_config)
    model = black_box.open()
    if id_column is not None:
        whole = read_table(case.data, case.decimal)
        column_names([id_column], whole.columns, "--id-column", whole=True)
        case = replace(case, drop=[*(case.drop or []), id_column])
    prepared = case.prepare(known_labels(model))
    seal.check(prepared.space.names)
    name = None if id_column is None else _row_name(case, whole, prepared, id_column)
    case = named(case, model)
    if dry_run:
        _print_plan(case, prepared, model, scores, price_per_row, as_json)
        return
    ledger = None if case.ledger is None else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, model, ledger, scores=scores, timeout=black_box.patience)
    progress, options = False if quiet else None, case.search_options(prepared)
    if name is not None and ledger is not None:  # before anything is asked on its behalf
        ledger.name(explainer.search(prepared.factual, **options).identity, [str(name)])
    try:
        explanation = explainer.explain(prepared.factual, **options, progress=progress)
    except KeyboardInterrupt as stop:
        _tell_so_far(stop)
        say(f"stopped. {kept(explainer.ledger)}")
        raise typer.Exit(STOPPED) from None
    except acex.AcexError as error:
        _tell_so_far(error)
        so_far: acex.Explanation | None = getattr(error, "explanation", None)
        if so_far is not None and isinstance(error, acex.ModelFailed):
            error.add_note(kept(explainer.ledger))
        if out is not None and so_far is not None:
            so_far.to_json(out, left_out=left_out, **seal.options)  # it was paid for
        raise
    if name is not None:
        explanation = replace(explanation, about={**explanation.about, "id": name})
    # Stdout first: a disk that is full must not swallow what was paid for.
    if as_json:
        echo(explanation.to_json(**seal.options))
    elif not quiet:
        price = price_per_row if price_per_row is not None else price_of(ledger, explainer.model_id)
        print_explanation(explanation, price)
        for remark in prepared.remarks:
            say(remark)
    if out is not None:
        explanation.to_json(out, left_out=left_out, **seal.options)
    if plot is not None:
        without(explanation, seal.columns).plot().savefig(plot)
    if explanation.outcome != "found":
        raise typer.Exit(NOTHING_FOUND)


def named(case: C, model: Any) -> C:
    """The case with the model's own name, where none was given."""
    return replace(case, model_id=case.model_id or getattr(model, "model_id", None))


def _row_name(case: Case, whole: pd.DataFrame, prepared: Prepared, column: str) -> Any:
    """What the row is called, by a column of the file that it is from; `whole` is the one in DATA."""
    whole = whole if case.x is None else read_row(case.x, case.decimal)
    if column not in whole.columns:
        raise ValueError(f"--id-column {column}: {case.x} does not say what the row is called. Say --drop {column}.")
    name = whole[column].loc[prepared.factual.index[0]]
    if is_missing(name):
        raise ValueError(f"--id-column {column}: the row has no name there.")
    return as_json(name)


def _tell_so_far(error: BaseException) -> None:
    so_far: acex.Explanation | None = getattr(error, "explanation", None)
    if so_far is not None and so_far.outcome == "found":
        say(f"before that: {so_far.summary()}")


# -- --dry-run ----------------------------------------------------------------------------------------


def _print_plan(case: Case, prepared: Prepared, model: Any, scores: bool, price: float | None, as_json: bool) -> None:
    """What would be asked, and the most it can cost. The ledger is only read."""
    if case.ledger is not None and case.model_id is None:
        raise ValueError("--ledger needs --model-id for a model that has no name of its own.")
    plan = case.explainer(prepared, model, None, scores=scores).plan(prepared.factual, **case.search_options(prepared))
    paid, left = 0, float("inf")
    if case.ledger is not None and exists(case.ledger):
        with acex.Ledger(case.ledger) as ledger:
            paid = sum(ask.paid for ask in ledger.asks(plan.identity))
            left = ledger.account(case.model_id or "").remaining
            price = price_of(ledger, case.model_id or "") if price is None else price
    most = int(min(max(case.budget - paid, 0), left))
    cost = None if price is None else most * price
    allowed = plan.may_become
    if as_json:
        print_json(
            {
                "dry_run": True,
                "explanation": plan.identity,
                "model_id": case.model_id,
                "factual": {name: plain(value) for name, value in plan.factual.items()},
                "allowed": allowed,
                "target": prepared.target,
                "strategy": case.strategy,
                "budget": case.budget,
                "paid_before": paid,
                "most_queries": most,
                "most_cost": cost,
            }
        )
        return
    out = console()
    out.print("Nothing was asked. This row would be explained:", style="bold")
    row = zip(plan.space.features, plan.factual.values(), allowed.values(), strict=True)
    shown = [(f.name, f.text(now), "stays" if limits is None else f.span(limits)) for f, now, limits in row]
    out.print(table(("column", "now", "may become"), shown))
    wanted = " or ".join(plan.target.named(plan.class_names).words)
    out.print(f"Wanted: {wanted}. Strategy {case.strategy}, seed {case.seed}, counterfactuals {case.count}.")
    money = "" if cost is None else f", for {as_money(cost)} at most"
    if case.model_id is not None:
        out.print(f"In a ledger the model is called {case.model_id}.", soft_wrap=True)
    out.print(f"At most {most} rows would be sent{money} (budget {case.budget}, {paid} paid before).")
