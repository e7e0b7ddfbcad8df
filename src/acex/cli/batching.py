"""`acex batch`: the answers for many rows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import BatchCase
from acex.cli.ledgers import exists, price_of
from acex.cli.models import ModelFlags
from acex.cli.program import FAILED, NOTHING_FOUND, AsJson, Price, say, stopped
from acex.cli.show import as_money, console, print_json, records
from acex.cli.tables import PICTURES, LeftOut, Seal, column_names, writable
from acex.values import listed

if TYPE_CHECKING:
    from acex.batch.summary import Summary

TABLES = (".csv", ".json", ".parquet", ".xlsx")


def _scheduler(address: str | None) -> str | None:
    if address is not None and not address.startswith(("dask://", "tcp://", "tls://")):
        raise typer.BadParameter(f"expected dask://host:8786, got {address!r}.")
    return address


def batch(
    case: BatchCase,
    black_box: ModelFlags,
    seal: Seal,
    budget_total: Annotated[
        int | None, typer.Option(min=1, help="Most rows to send for all of them together, in all runs.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes on this machine; -1: one per core.")] = -1,
    executor: Annotated[
        str | None,
        typer.Option(metavar="dask://HOST:PORT", callback=_scheduler, help="A Dask cluster that does the work."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, callback=writable(*TABLES), help="Write the results here: .csv, .json, .parquet, .xlsx."
        ),
    ] = None,
    left_out: LeftOut = None,
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Compare groups: sex, or crossed: sex,age_band. Any columns of the file."),
    ] = None,
    common_changes: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Look for changes that turn many rows, with N more queries.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=writable(*PICTURES), help="Draw the batch here; with --by, its groups."),
    ] = None,
    price_per_row: Price = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the price from what the ledger contains; send nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
) -> None:
    """Explain many rows, which learn from each other.

    Example: acex batch loans.csv --model loans.skops --where "decision == 'reject'"
    --target good --budget 15 --ledger loans.db --out why.parquet

    With --ledger, an interrupted command continues when it is repeated, and no
    answer is paid for twice. Exit code 1: no row has a counterfactual; 3: some
    rows failed.
    """
    prepared = case.open(black_box, out, plot)
    seal.check(prepared.space.names)
    whole = prepared.whole
    groupings = [column_names([names], whole.columns, "--by") for names in by or []]
    if redacted := [name for names in groupings for name in names if name in seal.columns]:
        raise ValueError(f"--by: {listed(redacted)} is in --redact, and its groups would show its values.")
    ledger = None if case.ledger is None or (dry_run and not exists(case.ledger)) else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, None if dry_run else ledger)
    many = explainer.explain_many(
        prepared.factual if prepared.ids is None else prepared.factual.set_axis(list(prepared.ids), axis=0),
        budget_total=budget_total,
        n_jobs=1 if dry_run else jobs,
        executor=None if executor is None else acex.DaskExecutor(executor),
        progress=False if quiet else None,
        **prepared.options,
    )
    if dry_run:
        quote = many.quote(price_per_row, ledger)
        if as_json:
            queries = {"expected_money": quote.expected_queries, "most_money": quote.most_queries}
            money = {name: quote.money(n) for name, n in queries.items()}
            print_json({"dry_run": True, "model_id": explainer.model_id, **asdict(quote), **money})
        else:
            console().print(f"Nothing was sent. {quote}", soft_wrap=True)
        return
    try:
        frame = many.frame(redact=seal.columns)
    except KeyboardInterrupt:
        done = int((many.frame()["outcome"] != "unfinished").sum())
        raise stopped(explainer.ledger, f" after {done} of {len(many)} rows") from None
    # Stdout first: a full disk must not lose what was paid for.
    summaries = [many.summary(by=whole[names], redact=seal.columns) for names in groupings]
    summaries = summaries or [many.summary(redact=seal.columns)]
    common = None
    if common_changes is not None:
        common = many.common_changes(budget=common_changes).without(seal.columns)
    n_queries = int(frame["queries"].sum())
    if as_json:
        document: dict[str, Any] = {"queries": n_queries, "rows": records(frame.reset_index(names="row"))}
        if common is not None:
            document |= {"common_changes": records(common.frame()), "queries_common_changes": common.queries}
        print_json(document | ({"groups": [_groups(summary) for summary in summaries]} if groupings else {}))
    elif not quiet:
        price = price_of(ledger, explainer.model_id) if price_per_row is None else price_per_row
        parts = [str(summaries[0]), *(str(summary.groups) for summary in summaries[1:])]
        parts += [] if common is None else [str(common)]
        console().print("\n\n".join(parts), soft_wrap=True)
        if price is not None:
            console().print(f"At {as_money(price)} a row that is {as_money(price * n_queries)}.")
        for remark in (*prepared.remarks, *map(str, explainer.remarks)):
            say(remark)
    if out is not None and out.suffix.lower() == ".json":
        many.to_json(out, left_out=left_out, **seal.options)
    elif out is not None:
        many.save(out, redact=seal.columns)
    if plot is not None:
        groups = summaries[0].groups
        figure = many.plot(redact=seal.columns) if groups is None else groups.plot()
        figure.savefig(plot)
    if many.errors:
        position, why = next(iter(many.errors.items()))
        is_recorded = ledger is not None and why.startswith("ModelFailed")
        again = " The same command tries such rows again." if is_recorded else ""
        shown = f"row {frame.index[position]}: {frame['error'].iloc[position]}"
        say(f"{len(many.errors)} of {len(many)} rows failed, such as {shown}{again}")
        raise typer.Exit(FAILED)
    if not frame["outcome"].isin(["found", "already_target"]).any():
        raise typer.Exit(NOTHING_FOUND)


def _groups(summary: Summary) -> dict[str, Any]:
    """The groups of a summary in plain values."""
    groups = summary.groups
    assert groups is not None
    return {
        "by": groups.by,
        "table": records(groups.table.reset_index()),
        "features": records(groups.features),
        "differences": records(groups.differences),
        "warnings": list(groups.warnings),
    }
