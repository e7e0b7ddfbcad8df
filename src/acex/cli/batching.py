"""`acex batch`: the answers for many rows."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import BatchCase
from acex.cli.explaining import picture_path
from acex.cli.ledgers import exists, price_of
from acex.cli.models import ModelFlags
from acex.cli.program import FAILED, NOTHING_FOUND, STOPPED, AsJson, finite, kept, say
from acex.cli.sealing import LeftOut, Seal
from acex.cli.show import as_money, console, print_json, records
from acex.cli.tables import apart, column_names, read_table, writable
from acex.values import is_missing, plain

if TYPE_CHECKING:
    import pandas as pd

    from acex.audit.quote import Quote
    from acex.batch.summary import Summary

TABLES = {".csv": None, ".json": None, ".parquet": ("pyarrow", "Parquet"), ".xlsx": ("openpyxl", "A workbook (.xlsx)")}


def table_path(path: Path | None) -> Path | None:
    """The path, when what came of the rows can be written there: asked before the work is done, not after."""
    if path is not None and path.suffix.lower() not in TABLES:
        raise typer.BadParameter(f"{path.name!r} must end in one of {', '.join(TABLES)}.")
    needs = None if path is None else TABLES[path.suffix.lower()]
    if path is not None and needs is not None and find_spec(needs[0]) is None:
        raise typer.BadParameter(str(acex.MissingExtra(needs[1], path.suffix[1:].lower())))
    return writable(path)


def cluster(address: str | None) -> str | None:
    """The address, when it is one of a Dask scheduler."""
    if address is not None and not address.startswith(("dask://", "tcp://", "tls://")):
        raise typer.BadParameter(f"expected dask://host:8786, got {address!r}.")
    return address


def batch(
    case: BatchCase,
    black_box: ModelFlags,
    seal: Seal,
    budget_total: Annotated[
        int | None, typer.Option(min=1, help="Most rows to send for all of them together, by all runs.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes on this machine; -1: one on each core.")] = -1,
    executor: Annotated[
        str | None,
        typer.Option(metavar="dask://HOST:PORT", callback=cluster, help="A Dask cluster that does the work instead."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, callback=table_path, help="Write what came of each row here: .csv, .json, .parquet, .xlsx."
        ),
    ] = None,
    left_out: LeftOut = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Compare groups: sex, or crossed: sex,age_band. The model need not see them.",
        ),
    ] = None,
    common_changes: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Look for changes that turn many rows, with N more queries.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=picture_path, help="Draw the batch here; with --by its groups."),
    ] = None,
    price_per_row: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="What a row costs; by default as the ledger has it.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, from what the ledger knows; ask nothing.")
    ] = False,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
) -> None:
    """Explain many rows, which learn from each other.

    Example: acex batch loans.csv --model loans.skops --where "decision == 'reject'"
    --target good --budget 15 --ledger loans.db --out why.parquet

    With --ledger, a command that was interrupted goes on when it is given again,
    and pays for nothing twice. Exit code 1: no row has a counterfactual; 3: some
    rows failed.
    """
    for written in (out, plot):
        apart(written, case.data, case.x, case.schema, case.ledger, black_box.model, black_box.model_config)
    prepared = case.prepare(black_box.open(case.given))
    seal.check(prepared.space.names)
    whole = prepared.table if case.x is None else read_table(case.x, case.decimal)
    whole = whole.loc[prepared.factual.index]  # with columns that the model does not see
    groupings = [column_names([names], whole.columns, "--by") for names in by or []]
    ledger = None if case.ledger is None or (dry_run and not exists(case.ledger)) else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, None if dry_run else ledger)
    many = explainer.explain_many(
        prepared.factual,
        by=None if not groupings else whole[[*dict.fromkeys(name for names in groupings for name in names)]],
        ids=prepared.ids,
        budget_total=budget_total,
        n_jobs=1 if dry_run else jobs,
        executor=None if executor is None else acex.DaskExecutor(executor),
        progress=False if quiet else None,
        **prepared.options,
    )
    if dry_run:
        _print_quote(many.quote(price_per_row, ledger), explainer.model_id, as_json)
        return
    try:
        frame = many.frame()
    except KeyboardInterrupt:
        done = int((many.frame()["outcome"] != "unfinished").sum())
        say(f"stopped after {done} of {len(many)} rows. {kept(explainer.ledger, 'rows')}")
        raise typer.Exit(STOPPED) from None
    # Stdout first: a disk that is full must not swallow what was paid for.
    summaries = [many.summary(by=whole[names]) for names in groupings] or [many.summary()]
    common = None if common_changes is None else many.common_changes(budget=common_changes)
    if as_json:
        document: dict[str, Any] = {"queries": int(frame["queries"].sum()), "rows": _records(frame, seal.columns)}
        if common is not None:
            shown = [not {move.feature for move in change.moves} & set(seal.columns) for change in common.changes]
            document |= {"common_changes": records(common.frame()[shown]), "queries_common_changes": common.queries}
        print_json(document | ({"groups": [_groups(summary) for summary in summaries]} if groupings else {}))
    elif not quiet:
        price = price_of(ledger, explainer.model_id) if price_per_row is None else price_per_row
        console().print(str(summaries[0]), soft_wrap=True)
        for summary in summaries[1:]:
            console().print(f"\n{summary.groups}", soft_wrap=True)
        if common is not None:
            console().print(f"\n{common}", soft_wrap=True)
        if price is not None:
            console().print(f"At {as_money(price)} a row that is {as_money(price * int(frame['queries'].sum()))}.")
        for remark in (*prepared.remarks, *map(str, explainer.remarks)):
            say(remark)
    if out is not None:
        if out.suffix.lower() == ".json":
            many.to_json(out, left_out=left_out, **seal.options)
        else:
            getattr(many, f"to_{out.suffix[1:].lower()}")(out, redact=seal.columns)
    if plot is not None:
        groups = summaries[0].groups
        (many if groups is None else groups).plot().savefig(plot)
    if many.errors:
        position, why = next(iter(many.errors.items()))
        again = (
            " The same command tries such rows again." if ledger is not None and why.startswith("ModelFailed") else ""
        )
        say(f"{len(many.errors)} of {len(many)} rows failed, such as row {frame.index[position]}: {why}{again}")
        raise typer.Exit(FAILED)
    if not frame["outcome"].isin(["found", "already_target"]).any():
        raise typer.Exit(NOTHING_FOUND)


def _print_quote(quote: Quote, model_id: str, as_json: bool) -> None:
    """What it would cost."""
    if as_json:
        money = {"expected_money": quote.expected_money, "most_money": quote.most_money}
        print_json({"dry_run": True, "model_id": model_id, **asdict(quote), **money})
    else:
        console().print(f"Nothing was sent. {quote}", soft_wrap=True)


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


def _records(frame: pd.DataFrame, gone: list[str]) -> list[dict[str, Any]]:
    """The lines of the frame in plain values, None where there is none, and some columns left out."""
    from acex.engine.redaction import redacted_error

    lines = zip(frame.index, frame.to_dict(orient="records"), strict=True)
    out = [
        {"row": plain(name)} | {str(key): None if is_missing(value) else value for key, value in line.items()}
        for name, line in lines
    ]
    for line in out:
        line["changes"] = {name: change for name, change in line["changes"].items() if name not in gone}
        line["error"] = redacted_error(line["error"], gone)
    return out
