"""`acex ledger`: what was asked and answered, and what may still be spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.program import NOTHING_FOUND, AsJson, say
from acex.cli.show import console, counted, echo, print_json, records, table
from acex.cli.tables import column_names, read_table, refuse_overwriting
from acex.values import listed

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 2**63 - 1  # the largest integer that a database stores
ledger = typer.Typer(help="What was asked and answered, and what may still be spent. Example: acex ledger show l.db")

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="An SQLite file, or the URL of a PostgreSQL server.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model-name", help="The model's name, or how it begins; needed if the ledger has several."),
]


def print_result(as_json: bool, values: dict[str, Any], text: str) -> None:
    """Print the values as JSON, or the text."""
    if as_json:
        print_json(values)
    else:
        console().print(text, soft_wrap=True)


def exists(where: str) -> bool:
    """Is there something at this path? Servers are not checked."""
    return "://" in where or Path(where).exists()


def opened(where: str, hint: str = "") -> acex.Ledger:
    """The ledger at this address; a misspelled path must not create a new one."""
    if not exists(where):
        raise ValueError(f"{where}: there is no such ledger.{hint}")
    return acex.Ledger(where)


def chosen(book: acex.Ledger, model_id: str | None, hint: str = "") -> str:
    """The name of a model: the one given, the only one that begins so, or the only one of the ledger."""
    known = [str(name) for name in book.tables.models()["model"]]
    begins = [name for name in known if model_id is None or (model_id and name.startswith(model_id))]
    if model_id in known or len(begins) == 1:
        return str(model_id if model_id in known else begins[0])
    what = f"{model_id!r} begins several names" if begins else f"{model_id!r} is not a model of this ledger"
    what = "--model-name is needed" if model_id is None else what
    raise ValueError(f"{what}; there are {listed(known) or 'none'}.{hint}")


def price_of(book: acex.Ledger | None, model_id: str) -> float | None:
    """The price of a row of the model, if the ledger has one."""
    return None if book is None else book.account(model_id).price_per_row


def named_rows(book: acex.Ledger, model: str, rows: list[str]) -> pd.DataFrame:
    """Canonical rows of a model as a frame with the names of its features."""
    import pandas as pd

    from acex.ledger import without_vote

    values = [json.loads(without_vote(row)) for row in rows]
    names = book.account(model).features or [f"x{j}" for j in range(len(values[0]) if values else 0)]
    return pd.DataFrame(values, columns=names, dtype=object)


@ledger.command()
def show(
    where: Where,
    model_id: ModelName = None,
    newest: Annotated[int, typer.Option(min=1, max=LARGEST, help="How many questions, from the latest.")] = 20,
    as_json: AsJson = False,
) -> None:
    """What each model was asked and what it cost, and the newest questions.

    Example: acex ledger show loans.db --newest 5
    """
    with opened(where) as book:
        model = None if model_id is None else chosen(book, model_id)
        models = [line for line in records(book.tables.models()) if model in (None, line["model"])]
        queries = records(book.tables.queries(model, newest=newest))
    if as_json:
        print_json({"models": models, "queries": queries})
        return
    out = console()
    for line in models:
        out.print(line.pop("model"), style="bold")
        out.print(table(("", ""), [(name.replace("_", " "), value) for name, value in line.items() if value != ""]))
    state = {True: "waiting", False: "answered"}
    shown = [(q["row"], q["label"], state[q["answered_at"] is None], q["purpose"], q["attempts"]) for q in queries]
    out.print(table(("row", "label", "state", "purpose", "sent"), shown))


@ledger.command()
def export(
    where: Where,
    model_id: ModelName = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every answer of a model as CSV, a column for each feature.

    A text that a spreadsheet would run as a formula has an apostrophe in front;
    acex ledger import takes it away again.

    Example: acex ledger export loans.db --model-name loans-v1 --out answers.csv
    """
    import pandas as pd

    from acex.spreadsheets import write_csv

    refuse_overwriting(out, where)
    with opened(where) as book:
        model = chosen(book, model_id)
        lines = book.tables.answers(model)
        rows = named_rows(book, model, lines["row"].tolist())
    taken = {c: f"acex_{c}" for c in lines.columns if c in rows.columns}
    answers = pd.concat([rows, lines.drop(columns="row").rename(columns=taken)], axis=1)
    if as_json:
        print_json(records(answers))
    elif out is None:
        echo(write_csv(answers), nl=False)
    else:
        write_csv(answers, out)
        say(f"{len(answers)} answers of {model} are in {out}.")


@ledger.command("import")
def import_(
    where: Where,
    answers: Annotated[Path, typer.Argument(help="A .csv or .parquet file of rows with the model's labels.")],
    model_id: Annotated[str, typer.Option("--model-name", help="The model that gave them.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="The column with its labels.")] = "label",
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns it did not see.")] = None,
    new_labels: Annotated[
        bool, typer.Option("--new-labels", help="Take labels that the model has not given before.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take in answers that the model gave elsewhere: they cost nothing.

    The columns must be those of the model's rows; where the ledger knows them,
    other columns are left out. So must be its labels, or --new-labels is needed.

    Example: acex ledger import loans.db answers.csv --model-name loans-v1
    """
    from acex.ledger import canonical
    from acex.models.labels import as_labels, as_numbers

    lines = read_table(answers, guarded=True)
    [label] = column_names([label], lines.columns, "--label", whole=True)
    blank = lines[label].isna()
    if blank.any():
        raise ValueError(f"{answers}: {int(blank.sum())} of {len(lines)} labels in {label!r} are missing.")
    with acex.Ledger(where) as book:
        try:
            read = as_numbers if gives_numbers(book, model_id) else as_labels
            labels = read(lines[label].tolist(), len(lines))
        except ValueError as error:
            raise ValueError(f"{answers}: {label!r}: {error}.") from None
        rows = lines.drop(columns=[label, *column_names(drop, lines.columns, "--drop")])
        known = book.account(model_id).features
        if known is not None:
            column_names(known, rows.columns, f"{answers}", whole=True)
            rows = rows[list(known)]
        labels = _as_given(labels, book, model_id)
        book.register(model_id, features=[str(name) for name in rows.columns])
        new = book.import_answers(model_id, canonical(rows), labels, new_labels=new_labels)
    values = {"model_id": model_id, "rows": len(rows), "new": new}
    print_result(as_json, values, f"{new} of {len(rows)} answers were new to {model_id}.")


def gives_numbers(book: acex.Ledger, model_id: str) -> bool:
    """Was this model asked for numbers, and not for labels?"""
    targets = [json.loads(text).get("target") for text in book.tables.explanations(model_id)["settings"]]
    return any(isinstance(target, dict) and "label" not in target for target in targets)


def _as_given(labels: list[Any], book: acex.Ledger, model_id: str) -> list[Any]:
    """The labels as the model gives them: CSV does not tell the text "1" from the number."""
    by_text = {str(answer.label): answer.label for answer in book.answers(model_id)}
    return [by_text.get(str(label), label) for label in labels]


@ledger.command()
def abandon(where: Where, model_id: ModelName = None, as_json: AsJson = False) -> None:
    """Give up waiting for answers, such as those to rows of acex ask.

    Example: acex ledger abandon loans.db --model-name loans-v1
    """
    with opened(where) as book:
        model = chosen(book, model_id)
        n = book.abandon(model)
    text = f"Claims of {counted(n, 'row')} of {model} ended; the rows may be asked again."
    print_result(as_json, {"model_id": model, "abandoned": n}, text)


@ledger.command()
def budget(
    where: Where,
    model_id: Annotated[str, typer.Option("--model-name", help="The model, or how its name begins.")],
    rows: Annotated[int | None, typer.Option(help="Most rows it may ever be sent.")] = None,
    money: Annotated[float | None, typer.Option(help="The same in money, with a price.")] = None,
    price_per_row: Annotated[float | None, typer.Option(help="What a row costs.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Create the entry; --model-name must be the full name.")] = False,
    as_json: AsJson = False,
) -> None:
    """Limit what may be sent to a model over its lifetime, by everyone together.

    What was sent before counts.

    Example: acex ledger budget loans.db --model-name loans-v1 --rows 1000
    """
    hint = " Use --new to create it, with the full name, which acex explain --dry-run prints."
    with acex.Ledger(where) if new else opened(where, hint) as book:
        model = model_id if new else chosen(book, model_id, hint)
        if money is not None and price_per_row is None and price_of(book, model) is None:
            raise ValueError("--money needs --price-per-row: the ledger has no price of this model.")
        book.budget(model, rows=rows, money=money, price_per_row=price_per_row)
        left = int(book.account(model).remaining)
    print_result(as_json, {"model_id": model, "remaining": left}, f"{left} more rows may be sent to {model}.")


@ledger.command()
def purge(
    where: Where,
    row_id: Annotated[
        list[str] | None, typer.Option("--id", metavar="NAME", help="The name of a row. Repeat it.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="DAY", help="What ended before this day (UTC), such as 2026-01-31.")
    ] = None,
    model_id: ModelName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only count.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete explanations and the rows asked for them; what was paid stays counted.

    Rows that other explanations asked too stay. Backups, reports and
    files of --out are not changed.

    Example: acex ledger purge loans.db --id A-1017 --yes
    """
    from acex.ledger.maintenance import parse_time
    from acex.ledger.maintenance import purge as purge_rows

    if not row_id and before is None:
        raise ValueError("Expected --id or --before, or both.")
    with opened(where) as book:
        model = None if model_id is None else chosen(book, model_id)
        limit = None if before is None else parse_time(before)
        gone = purge_rows(book, named=row_id or (), before=limit, model=model, dry_run=not yes)
    what = f"{counted(gone.explanations, 'explanation')} and {counted(gone.rows, 'row')}"
    text = f"{what} {'were deleted' if yes else 'would be deleted; use --yes to do it'}."
    if gone.shared or gone.in_use:
        kept = f"{counted(gone.shared, 'row')} and {counted(gone.in_use, 'explanation')}"
        text += f" Others use {kept}: these stay, without the name."
    print_result(as_json, {"done": yes, **gone._asdict()}, text)


@ledger.command()
def check(where: Where, as_json: AsJson = False) -> None:
    """Check the file, the references between tables and the journals.

    Example: acex ledger check loans.db
    """
    from acex.ledger.maintenance import check as check_ledger

    if not exists(where):
        raise ValueError(f"{where}: there is no such ledger.")
    findings = check_ledger(where)
    values = {"sound": not findings, "findings": findings}
    print_result(as_json, values, "\n".join(findings) or "No damage found.")
    if findings:
        say("the ledger is damaged. Restore it from a backup.")
        raise typer.Exit(NOTHING_FOUND)
