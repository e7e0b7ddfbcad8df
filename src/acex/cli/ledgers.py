"""`acex ledger` and `acex audit`: show and edit recorded answers, set budgets, and check whether labels changed."""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import ModelFlags
from acex.cli.program import NOTHING_FOUND, AsJson, flattened, say
from acex.cli.show import console, echo, print_json, table
from acex.cli.tables import TableFlags, column_names, file_to_write, read_table
from acex.values import counted, listed, records, refuse_overwriting

if TYPE_CHECKING:
    import pandas as pd

KEY = "acex_id"  # column in files that identifies a row of the ledger
# Columns that `acex ledger export` adds to the features; with the prefix acex_ if a feature has the same name.
EXPORTED = ("sequence", "label", "scores", "purpose", "explanation_id", "attempts", "answered_at", KEY)
LARGEST = 2**63 - 1  # the largest integer that a database stores
ledger = typer.Typer(help="Show what was sent, answered and paid; set limits.\n\nExample: acex ledger show loans.db")

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="An SQLite file, or the URL of a PostgreSQL server.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model-name", help="The model's name or a prefix of it; needed if the ledger has several."),
]


def exists(where: str) -> bool:
    """Whether the file exists; servers are not checked."""
    return "://" in where or Path(where).exists()


def opened(where: str, hint: str = "") -> acex.Ledger:
    """The ledger at this address; a misspelled path must not create a new one."""
    if not exists(where):
        raise ValueError(f"{where}: there is no such ledger.{hint}")
    return acex.Ledger(where)


def chosen(book: acex.Ledger, model_id: str | None, hint: str = "") -> str:
    """The full name of a model: the one given, the only one with this prefix, or the only one in the ledger."""
    known = [str(name) for name in book.tables.models()["model"]]
    begins = [name for name in known if model_id is None or (model_id and name.startswith(model_id))]
    if model_id in known or len(begins) == 1:
        return str(model_id if model_id in known else begins[0])
    what = f"{model_id!r} begins several names" if begins else f"{model_id!r} is not a model of this ledger"
    what = "--model-name is needed" if model_id is None else what
    raise ValueError(f"{what}; there are {listed(known) or 'none'}.{hint}")


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
    newest: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="Show this many of the latest explanations and queries.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """What each model was asked and what it cost, and the newest explanations and questions.

    Example: acex ledger show loans.db --newest 5
    """
    with opened(where) as book:
        model = None if model_id is None else chosen(book, model_id)
        models = [line for line in records(book.tables.models()) if model in (None, line["model"])]
        explanations = records(book.tables.explanations(model).tail(newest))
        for line in explanations:
            line["names"] = list(book.explanation(line["id"]).names)
        queries = records(book.tables.queries(model, newest=newest))
    for line, (limit, used) in product(models, (("row_budget", "charged"), ("money_budget", "spent"))):
        if line[limit] is not None:
            line[f"{limit}_left"] = round(max(line[limit] - line[used], 0), 6)
    if as_json:
        print_json({"models": models, "explanations": explanations, "queries": queries})
        return
    out = console()
    for line in models:
        out.print(line.pop("model"), style="bold")
        values = [(name.replace("_", " "), value) for name, value in line.items() if value not in (None, "")]
        out.print(table(("", ""), values))
    words = [(e["outcome"] or "unfinished").replace("_", " ") for e in explanations]
    ended = [(e["id"][:8], ", ".join(e["names"]), word, e["paid"]) for e, word in zip(explanations, words, strict=True)]
    out.print(table(("explanation", "row", "outcome", "paid"), ended))
    asked = [(q["row"], q["label"], q["answered_at"] or "waiting", q["purpose"], q["attempts"]) for q in queries]
    out.print(table(("row", "label", "answered", "purpose", "sent"), asked))


@ledger.command()
def export(
    where: Where,
    model_id: ModelName = None,
    out: Annotated[Path | None, file_to_write("A CSV file; by default stdout.")] = None,
) -> None:
    """Every valid answer of a model as CSV, a column for each feature.

    Labels that acex tell --correct replaced are left out. The column acex_id is
    that of acex ask, so acex tell --correct reads the file.
    A text that a spreadsheet would run as a formula has an apostrophe in front;
    acex ledger import takes it away again.

    Example: acex ledger export loans.db --out answers.csv
    """
    import pandas as pd

    from acex.ledger import query_id
    from acex.ledger.row_keys import first_result
    from acex.spreadsheets import write_csv

    refuse_overwriting([out], [where])
    with opened(where) as book:
        model = chosen(book, model_id)
        every = book.tables.answers(model)
        lines = every[~every.pop("superseded")].reset_index(drop=True)
        rows = named_rows(book, model, lines["row"].tolist())
    taken = {c: f"acex_{c}" for c in lines.columns if c in rows.columns}
    answers = pd.concat([rows, lines.drop(columns="row").rename(columns=taken)], axis=1)
    answers[KEY] = [query_id(model, first_result(row)) for row in lines["row"]]
    if out is None:
        echo(write_csv(answers), nl=False)
    else:
        write_csv(answers, out)
        replaced = f"; {n} replaced by a correction left out" if (n := len(every) - len(lines)) else ""
        say(f"{len(answers)} answers of {model} are in {out}{replaced}.")


@ledger.command("import")
@flattened
def import_(
    where: Where,
    answers: Annotated[Path, typer.Argument(help="A .csv or .parquet file of rows with the model's labels.")],
    model_id: Annotated[str, typer.Option("--model-name", help="Name of the model that gave the labels.")],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Labels; by default acex_label or label.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMNS", help="Columns hidden from the model.")] = None,
    new_labels: Annotated[
        bool, typer.Option("--new-labels", help="Accept labels that the model has not given before.")
    ] = False,
    *,
    reading: TableFlags,
) -> None:
    """Take in answers that the model gave elsewhere: they cost nothing.

    The columns must be those of the model's rows; where the ledger knows them,
    other columns are left out. So must be its labels, or --new-labels is needed.
    Pass the --decimal, --text and --date that acex explain or ask reads DATA with.
    Columns that acex ledger export added, such as sequence and acex_id, are left
    out. Where a feature has such a name, export calls its own acex_sequence.

    Example: acex ledger import loans.db answers.csv --model-name bank-1
    """
    from acex.ledger import canonical, query_id
    from acex.ledger.row_keys import as_vote
    from acex.models.labels import as_labels, as_numbers
    from acex.space.kinds import refuse_commas

    lines = read_table(answers, escaped=True, **reading.arguments)
    for name in lines.columns.difference(reading.arguments["text"]):
        refuse_commas(name, lines[name].dropna().tolist())
    added = {f"acex_{name}" if f"acex_{name}" in lines.columns else name for name in EXPORTED}
    label = label or ("acex_label" if "acex_label" in added else "label")
    [label] = column_names([label], lines.columns, "--label", whole=True)
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
        elif added <= set(lines.columns):
            rows = rows.drop(columns=[*added], errors="ignore")
        elif KEY in rows.columns:
            raise ValueError(f"{answers} has only some columns of acex ledger export; --drop the non-features.")
        given = {str(answer.label): answer.label for answer in book.answers(model_id)}  # in CSV, "1" may be a text
        labels = [given.get(str(label), label) for label in labels]
        book.register(model_id, features=[str(name) for name in rows.columns])
        keys = canonical(rows)
        if KEY in lines.columns:  # it tells repeated queries of a row apart
            most = range(1, max(Counter(keys).values()) + 1)
            votes = {query_id(model_id, vote): vote for key in keys for vote in (as_vote(key, n) for n in most)}
            keys = [votes.get(identity, key) for identity, key in zip(lines[KEY], keys, strict=True)]
        new = book.import_answers(model_id, keys, labels, new_labels=new_labels)
        differ = book.contradicted(model_id).intersection(keys)
    console().print(f"{new} of {len(keys)} answers were new to {model_id}.", soft_wrap=True)
    if differ:
        say(f"{counted(len(differ), 'row')} had another label before, which stays valid.")


def settings_of(book: acex.Ledger, model_id: str) -> list[dict[str, Any]]:
    """The settings of all explanations of a model."""
    return [json.loads(text) for text in book.tables.explanations(model_id)["settings"]]


def gives_numbers(book: acex.Ledger, model_id: str) -> bool:
    """Whether the targets for this model were numbers instead of labels."""
    targets = [settings.get("target") for settings in settings_of(book, model_id)]
    return any(isinstance(target, dict) and "label" not in target for target in targets)


@ledger.command()
def abandon(where: Where, model_id: ModelName = None) -> None:
    """Give up waiting for answers, such as those to rows of acex ask.

    Example: acex ledger abandon loans.db
    """
    with opened(where) as book:
        model = chosen(book, model_id)
        n = book.abandon(model)
    console().print(f"Claims of {counted(n, 'row')} of {model} ended; the rows may be asked again.", soft_wrap=True)


@ledger.command()
def budget(
    where: Where,
    model_id: Annotated[str, typer.Option("--model-name", help="The model's name or a prefix of it.")],
    rows: Annotated[int | None, typer.Option(help="Maximum number of rows it may ever be sent.")] = None,
    money: Annotated[float | None, typer.Option(help="The same in money, with a price.")] = None,
    price_per_row: Annotated[float | None, typer.Option(help="Price per row.")] = None,
    new: Annotated[bool, typer.Option("--new", help="Create the entry; --model-name must be the full name.")] = False,
) -> None:
    """Limit what may be sent to a model over its lifetime, by everyone together.

    What was sent before counts. Without an amount, what is left is shown.

    Example: acex ledger budget loans.db --model-name bank-1 --rows 1000
    """
    hint = " Use --new to create it, with the full name, which acex explain --dry-run prints."
    with acex.Ledger(where) if new else opened(where, hint) as book:
        model = model_id if new else chosen(book, model_id, hint)
        if money is not None and price_per_row is None and book.account(model).price_per_row is None:
            raise ValueError("--money needs --price-per-row: the ledger has no price of this model.")
        if new or (rows, money, price_per_row) != (None, None, None):
            book.budget(model, rows=rows, money=money, price_per_row=price_per_row)
        left = book.account(model).remaining
    words = f"{model} has no budget in rows." if isinf(left) else f"{left} more rows may be sent to {model}."
    console().print(words, soft_wrap=True)


@ledger.command()
def purge(
    where: Where,
    row_id: Annotated[
        list[str] | None, typer.Option("--id", metavar="NAME", help="The name of a row. Can be repeated.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="Explanations that ended before this day (UTC), such as 2026-01-31."),
    ] = None,
    model_id: ModelName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only count.")] = False,
) -> None:
    """Delete explanations and the rows asked for them; what was paid stays counted.

    Rows that other explanations asked too stay. Backups, reports and
    files of --out are not changed.

    Example: acex ledger purge loans.db --id A-1017
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
        text += f" {kept} are also used by others and stay, without the name."
    console().print(text, soft_wrap=True)


@ledger.command()
def check(where: Where) -> None:
    """Check the file, the references between tables and the journals.

    Example: acex ledger check loans.db
    """
    from acex.ledger.maintenance import check as check_ledger

    if not exists(where):
        raise ValueError(f"{where}: there is no such ledger.")
    findings = check_ledger(where)
    console().print("\n".join(findings) or "No damage found.", soft_wrap=True)
    if findings:
        say("the ledger is damaged. Restore it from a backup.")
        raise typer.Exit(NOTHING_FOUND)


def audit(
    where: Where,
    black_box: ModelFlags,
    model_name: Annotated[str | None, typer.Option(help="The model's name in the ledger.")] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Number of rows to send again, chosen at random.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Use another seed for other rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Send rows of the ledger again, and report labels that changed.

    Example: acex audit loans.db --model bank:decide --model-name bank-1 --n 5

    Each row is paid for. Labels that changed are recorded as contradictions; the
    first ones stay valid. Exit code 1: some changed.
    """
    import numpy as np

    from acex.engine.blackbox import BlackBox
    from acex.ledger import canonical, is_vote
    from acex.space.space import rows_in_form

    model = acex.Model(black_box.open())
    with opened(where) as book:
        name = chosen(book, model_name or model.name)
        answers = [answer for answer in book.answers(name) if not is_vote(answer.row)]
        if not answers:
            raise ValueError(f"{name!r} has no answers yet.")
        picked = np.random.default_rng(seed).choice(len(answers), size=min(n, len(answers)), replace=False)
        again = [answers[i] for i in sorted(picked)]
        rows = rows_in_form([json.loads(answer.row) for answer in again], _form(book, name))
        if canonical(rows) != [answer.row for answer in again]:
            raise ValueError(f"The rows of {name!r} do not all have the same columns and cannot be sent again.")
        box = BlackBox(model, book, len(again), model_id=name, numbers=gives_numbers(book, name))
        labels = box.ask_again(rows)
    changed = [
        {"row": json.loads(answer.row), "before": answer.label, "now": label}
        for answer, label in zip(again, labels, strict=True)
        if label != answer.label
    ]
    if as_json:
        print_json({"model_id": name, "asked": len(again), "n_changed": len(changed), "changed": changed})
    else:
        out = console()
        out.print(f"{len(changed)} of {len(again)} labels changed.", style="bold")
        if changed:
            lines = [(json.dumps(line["row"], ensure_ascii=False), line["before"], line["now"]) for line in changed]
            out.print(table(("row", "before", "now"), lines))
            out.print("The model was replaced or is not deterministic. A new version has its own name, NAME@VERSION.")
    if changed:
        raise typer.Exit(NOTHING_FOUND)


def _form(book: acex.Ledger, model: str) -> dict[str, Any]:
    """The format in which the model's rows were sent; only the column names if all rows were imported."""
    forms = [settings["form"] for settings in settings_of(book, model) if "form" in settings]
    if forms:
        return dict(forms[-1])
    return {"columns": list(book.account(model).features or ()) or None, "dtypes": None, "array_dtype": None}
