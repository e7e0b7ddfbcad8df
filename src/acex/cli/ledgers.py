"""`acex ledger`: what was asked and answered, and what may still be spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

import acex
from acex.cli.program import AsJson, say
from acex.cli.show import console, counted, print_json, records, table
from acex.cli.tables import column_names, read_table
from acex.ledger import canonical
from acex.values import is_missing, listed

ledger = typer.Typer(help="What was asked and answered, and what may still be spent. Example: acex ledger stats l.db")

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="An SQLite file, or the URL of a PostgreSQL server.")]
ModelId = Annotated[str | None, typer.Option(help="The model's name; needed where the ledger has several.")]


def exists(where: str) -> bool:
    """Is there something at this path? A server is taken at its word."""
    return "://" in where or Path(where).exists()


def opened(where: str) -> acex.Ledger:
    """The ledger that is there: a typing error must not make a new one."""
    if not exists(where):
        raise ValueError(f"{where}: there is no such ledger.")
    return acex.Ledger(where)


def chosen(book: acex.Ledger, model_id: str | None) -> str:
    """The model that is meant: the one named, or the only one there is."""
    known = book.stats()["model"].tolist()
    if model_id in known or (model_id is None and len(known) == 1):
        return model_id or str(known[0])
    what = "--model-id is needed" if model_id is None else f"{model_id!r} is not a model of this ledger"
    changed = (
        " (a file that was changed has another name: say --model-id)" if str(model_id).startswith("sha256:") else ""
    )
    raise ValueError(f"{what}; there are {listed(known) or 'none'}{changed}.")


def price_of(book: acex.Ledger | None, model_id: str) -> float | None:
    """What a row of the model costs, where the ledger knows it."""
    if book is None:
        return None
    prices = book.stats().set_index("model")["price_per_row"]
    return None if is_missing(prices.get(model_id)) else float(prices[model_id])


def named_rows(book: acex.Ledger, model: str, rows: list[str]) -> pd.DataFrame:
    """Canonical rows of a model as a frame with the names of its features."""
    values = [json.loads(row) for row in rows]
    names = book.features(model) or [f"x{j}" for j in range(len(values[0]) if values else 0)]
    return pd.DataFrame(values, columns=names, dtype=object)


@ledger.command()
def show(
    where: Where,
    model_id: ModelId = None,
    newest: Annotated[int, typer.Option(min=1, help="At most so many, the latest.")] = 20,
    as_json: AsJson = False,
) -> None:
    """The newest questions and their answers.

    Example: acex ledger show loans.db --newest 5
    """
    with opened(where) as book:
        lines = book.show(model_id and chosen(book, model_id), newest=newest)
    if as_json:
        print_json(records(lines))
        return
    state = ["settled" if s else "waiting" for s in lines["settled_at"].notna()]
    shown = zip(lines["row"], lines["label"], state, lines["purpose"], lines["attempts"], strict=True)
    console().print(table(("row", "label", "state", "purpose", "sent"), shown))


@ledger.command()
def stats(where: Where, as_json: AsJson = False) -> None:
    """What each model was asked and what it cost.

    Example: acex ledger stats loans.db
    """
    with opened(where) as book:
        lines = book.stats()
    if as_json:
        print_json(records(lines))
        return
    for line in records(lines):
        out = console()
        out.print(line.pop("model"), style="bold")
        out.print(table(("", ""), [(name.replace("_", " "), value) for name, value in line.items() if value != ""]))


@ledger.command()
def export(
    where: Where,
    model_id: ModelId = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every answer of a model as CSV, a column for each feature.

    Example: acex ledger export loans.db --model-id loans-v1 --out answers.csv
    """
    with opened(where) as book:
        model = chosen(book, model_id)
        lines = book.export(model)
        rows = named_rows(book, model, lines["row"].tolist())
    taken = {c: f"acex_{c}" for c in lines.columns if c in rows.columns}
    answers = pd.concat([rows, lines.drop(columns="row").rename(columns=taken)], axis=1)
    if as_json:
        print_json(records(answers))
    elif out is None:
        typer.echo(answers.to_csv(index=False), nl=False)
    else:
        answers.to_csv(out, index=False)
        say(f"{len(answers)} answers of {model} are in {out}.")


@ledger.command("import")
def import_(
    where: Where,
    answers: Annotated[Path, typer.Argument(help="A .csv or .parquet file of rows with the model's labels.")],
    model_id: Annotated[str, typer.Option(help="The model that gave them.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The column with its labels.")] = "label",
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns it did not see.")] = None,
    as_json: AsJson = False,
) -> None:
    """Take in answers that the model gave elsewhere: they cost nothing.

    The columns must be those of the model's rows; where the ledger knows them,
    other columns are left out.

    Example: acex ledger import loans.db answers.csv --model-id loans-v1
    """
    lines = read_table(answers)
    [label] = column_names([label], lines.columns, "--label", whole=True)
    blank = lines[label].isna()
    if blank.any():
        raise ValueError(f"{answers}: {int(blank.sum())} of {len(lines)} labels in {label!r} are missing.")
    with acex.Ledger(where) as book:
        rows = lines.drop(columns=[label, *column_names(drop, lines.columns, "--drop")])
        known = book.features(model_id)
        if known is not None:
            column_names(known, rows.columns, f"{answers}", whole=True)
            rows = rows[known]
        book.register(model_id, features=[str(name) for name in rows.columns])
        new = book.import_answers(model_id, canonical(rows), lines[label].tolist())
    if as_json:
        print_json({"model_id": model_id, "rows": len(rows), "new": new})
    else:
        console().print(f"{new} of {len(rows)} answers were new to {model_id}.")


@ledger.command()
def abandon(where: Where, model_id: ModelId = None, as_json: AsJson = False) -> None:
    """Give up waiting for answers, such as those to rows of acex ask.

    Example: acex ledger abandon loans.db --model-id loans-v1
    """
    with opened(where) as book:
        model = chosen(book, model_id)
        n = book.abandon(model)
    if as_json:
        print_json({"model_id": model, "abandoned": n})
    else:
        console().print(f"{counted(n, 'row')} of {model} given up; asked again when wanted.")


@ledger.command()
def budget(
    where: Where,
    model_id: Annotated[str, typer.Option(help="The model, also one that was never asked.")],
    rows: Annotated[int | None, typer.Option(min=0, help="Most rows it may ever be sent.")] = None,
    money: Annotated[float | None, typer.Option(min=0, help="The same in money, with a price.")] = None,
    price_per_row: Annotated[float | None, typer.Option(help="What a row costs.")] = None,
    as_json: AsJson = False,
) -> None:
    """Limit what may be sent to a model over its lifetime, by anybody.

    What was sent before counts.

    Example: acex ledger budget loans.db --model-id loans-v1 --rows 1000
    """
    with acex.Ledger(where) as book:
        book.budget(model_id, rows=rows, money=money, price_per_row=price_per_row)
        left: Any = int(book.remaining(model_id))
    if as_json:
        print_json({"model_id": model_id, "remaining": left})
    else:
        console().print(f"{left} more rows may be sent to {model_id}.")
