"""`acex batch`: the answers for many rows."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import Batch
from acex.cli.explaining import named, writable
from acex.cli.ledgers import price_of
from acex.cli.models import Model
from acex.cli.program import FAILED, NOTHING_FOUND, STOPPED, AsJson, say
from acex.cli.show import as_money, console, print_json
from acex.cli.tables import apart
from acex.values import is_missing, plain

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".json", ".parquet")


def table_path(path: Path | None) -> Path | None:
    """The path, when what came of the rows can be written there: asked before the work is done, not after."""
    if path is not None and path.suffix.lower() not in TABLES:
        raise typer.BadParameter(f"{path.name!r} must end in one of {', '.join(TABLES)}.")
    if path is not None and path.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        raise typer.BadParameter(str(acex.MissingExtra("Parquet", "parquet")))
    return writable(path)


def cluster(address: str | None) -> str | None:
    """The address, when it is one of a Dask scheduler."""
    if address is not None and not address.startswith(("dask://", "tcp://", "tls://")):
        raise typer.BadParameter(f"expected dask://host:8786, got {address!r}.")
    return address


def batch(
    case: Batch,
    black_box: Model,
    scores: Annotated[bool, typer.Option("--scores", help="The model gives probabilities; use them.")] = False,
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
        typer.Option(dir_okay=False, callback=table_path, help="Write what came of each row here: .json, .parquet."),
    ] = None,
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
    from acex.models.labels import known_labels

    apart(out, case.data, case.x, case.schema, case.ledger, black_box.model, black_box.model_config)
    model = black_box.open()
    prepared = case.prepare(known_labels(model))
    case = named(case, model)
    ledger = None if case.ledger is None else acex.Ledger(case.ledger)
    explainer = case.explainer(prepared, model, ledger, scores=scores, timeout=black_box.patience)
    many = explainer.explain_many(
        prepared.factual,
        budget_total=budget_total,
        n_jobs=jobs,
        executor=None if executor is None else acex.DaskExecutor(executor),
        progress=False if quiet else None,
        **case.search_options(prepared),
    )
    try:
        frame = many.frame()
    except KeyboardInterrupt:
        done = int((many.frame()["outcome"] != "unfinished").sum())
        kept = (
            "Nothing is lost: the same command goes on from here and pays only for rows in flight again."
            if ledger is not None
            else "The answers are lost; with --ledger FILE they are kept, and the same command goes on."
        )
        say(f"stopped after {done} of {len(many)} rows. {kept}")
        raise typer.Exit(STOPPED) from None
    # Stdout first: a disk that is full must not swallow what was paid for.
    if as_json:
        print_json({"queries": int(frame["queries"].sum()), "rows": _records(frame)})
    elif not quiet:
        price = price_of(ledger, explainer.model_id)
        console().print(str(many.summary()), soft_wrap=True)
        if price is not None:
            console().print(f"At {as_money(price)} a row that is {as_money(price * int(frame['queries'].sum()))}.")
    if out is not None:
        (many.to_parquet if out.suffix.lower() == ".parquet" else many.to_json)(out)
    if many.errors:
        position, why = next(iter(many.errors.items()))
        say(f"{len(many.errors)} of {len(many)} rows failed, such as row {frame.index[position]}: {why}")
        raise typer.Exit(FAILED)
    if not frame["outcome"].isin(["found", "already_target"]).any():
        raise typer.Exit(NOTHING_FOUND)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of the frame in plain values, None where there is none."""
    lines = zip(frame.index, frame.to_dict(orient="records"), strict=True)
    return [
        {"row": plain(name)} | {str(key): None if is_missing(value) else value for key, value in line.items()}
        for name, line in lines
    ]
