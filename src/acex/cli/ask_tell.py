"""`acex ask` and `tell`: for labels that a laboratory or a person determines. All state is in the ledger."""

from __future__ import annotations

from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import Case
from acex.cli.ledgers import gives_numbers, named_rows, opened
from acex.cli.program import NOTHING_FOUND, AsJson, say
from acex.cli.show import console, counted, echo, print_json, records
from acex.cli.tables import as_label, file_to_write, read_table
from acex.values import listed

if TYPE_CHECKING:
    import pandas as pd

    from acex.ledger import Asked

KEY, LABEL, OWN_LABEL = "acex_id", "label", "acex_label"  # the last one if a feature is called "label"
ROUNDED = 1e-3  # relative: how far a spreadsheet may round a number


def ask(
    case: Case,
    out: Annotated[Path | None, file_to_write("The CSV file to fill in; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows that need a label from a laboratory, a person or a job.

    Fill in the column label and pass the file to acex tell, complete or in parts;
    then repeat the same command. When the search is complete, it prints the
    explanation and leaves --out untouched.

    Example: acex ask samples.csv --row 17 --ledger lab.db --model-name assay
    --queries-per-round 8 --out todo.csv
    """
    from acex.ledger import query_id
    from acex.spreadsheets import write_csv

    if case.ledger is None or "name" not in case.given:
        raise ValueError("acex ask needs --ledger and --model-name: its rows are recorded there under that name.")
    prepared = case.prepare(None)
    with acex.Ledger(case.ledger) as book:
        if out is not None:
            _refuse_to_lose_labels(book, out)
        session = case.explainer(prepared, book).search(prepared.factual, **prepared.options)
        rows = session.ask()
    if rows is None:
        explanation = session.explanation()
        if as_json:
            echo(explanation.to_json())
        else:
            console().print(str(explanation))
        if explanation.outcome not in ("found", "already_target"):
            raise typer.Exit(NOTHING_FOUND)
        return
    todo: pd.DataFrame = rows.reset_index(drop=True)
    todo.insert(0, KEY, [query_id(session.plan.model_id, form) for form in session.waiting])
    todo[OWN_LABEL if LABEL in rows.columns else LABEL] = ""
    if out is not None:
        write_csv(todo, out)
    if as_json:
        print_json({"explanation": session.identity, "waiting": len(todo), "rows": records(todo)})
    elif out is None:
        echo(write_csv(todo), nl=False)
    say(f"{counted(len(todo), 'row')} to label. Fill them in, then: acex tell {out or 'FILE'} --ledger {case.ledger}")


def tell(
    answers: Annotated[Path, typer.Argument(help="The file of acex ask, with labels filled in.")],
    ledger: Annotated[str, typer.Option(metavar="FILE|URL", help="The ledger of acex ask.")],
) -> None:
    """Record labels: some or all, in any order. Blank ones are left for later.

    Example: acex tell todo.csv --ledger lab.db

    A label is a number, true, false, or else a text. If any label is invalid, the
    whole file is rejected. Exit code 1: a row had another label before, which
    stays valid.
    """
    filled = _read_labels(answers)
    with opened(ledger) as book:
        asked = book.find(list(filled))
        try:
            labels = _labels(book, filled, asked)
            _refuse_changed_rows(book, filled, asked)
        except ValueError as error:
            raise ValueError(f"{answers}: {str(error).removesuffix('.')}. Nothing was recorded.") from None
        differ = 0
        for model in dict.fromkeys(a.model for a in asked.values()):
            keys = [key for key, a in asked.items() if a.model == model]
            recorded = book.record(model, [asked[key].row for key in keys], [labels[key] for key in keys])
            differ += sum(answer.label != labels[key] for answer, key in zip(recorded, keys, strict=True))
        waiting = int(book.tables.models()["unanswered"].sum())
    new = sum(a.answer is None for a in asked.values())
    console().print(f"Recorded: {counted(len(filled), 'label')}, {new} new. Still waiting: {counted(waiting, 'row')}.")
    if differ:
        say(f"{counted(differ, 'row')} had another label before. The first one stays valid; both are recorded.")
        raise typer.Exit(NOTHING_FOUND)


def _read_labels(path: Path) -> dict[str, dict[str, str]]:
    """The lines of a file of `acex ask` that have a label, by key; texts as they were typed, the label as OWN_LABEL."""
    lines = read_table(path, guarded=True, dtype=str, keep_default_na=False)
    label = OWN_LABEL if OWN_LABEL in lines.columns else LABEL
    if KEY not in lines.columns or label not in lines.columns:
        raise ValueError(f"{path}: expected the columns {KEY!r} and {LABEL!r} of acex ask.")
    lines = lines.rename(columns={label: OWN_LABEL})
    lines[OWN_LABEL] = lines[OWN_LABEL].str.strip()
    filled = lines[lines[OWN_LABEL] != ""]
    twice = filled[KEY][filled[KEY].duplicated()]
    if len(twice):
        raise ValueError(f"{path}: {KEY} {twice.iloc[0]!r} has a label in two lines; keep one.")
    return {str(line[KEY]): {str(name): text for name, text in line.items()} for line in filled.to_dict("records")}


def _labels(book: acex.Ledger, filled: dict[str, dict[str, str]], asked: dict[str, Asked]) -> dict[str, Any]:
    """The labels by key; numbers for a model that is queried for numbers."""
    from acex.models.labels import as_labels, as_numbers

    if unknown := [key for key in filled if key not in asked]:
        raise ValueError(f"{listed(unknown, most=3)} in {KEY} was not asked by this ledger")
    numeric = {model: gives_numbers(book, model) for model in {a.model for a in asked.values()}}
    labels: dict[str, Any] = {}
    for key, line in filled.items():
        read = as_numbers if numeric[asked[key].model] else as_labels
        [labels[key]] = read([as_label(line[OWN_LABEL])], 1)
    return labels


def _refuse_to_lose_labels(book: acex.Ledger, path: Path) -> None:
    """Refuse to overwrite labels that are not recorded yet."""
    if not path.exists():
        return
    try:
        filled = _read_labels(path)
    except ValueError:
        raise ValueError(f"{path} exists and was not written by acex ask; choose another file for --out.") from None
    known = book.find(list(filled))
    if n_new := sum(key not in known or known[key].answer is None for key in filled):
        raise ValueError(f"{path} has {counted(n_new, 'label')} not recorded yet: acex tell {path} first.")


def _refuse_changed_rows(book: acex.Ledger, filled: dict[str, dict[str, str]], asked: dict[str, Asked]) -> None:
    """Refuse labels of rows whose values differ from those that were asked, as after sorting one column only."""
    for key, a in asked.items():
        for name, value in named_rows(book, a.model, [a.row]).iloc[0].items():
            if name in filled[key] and not _alike(value, filled[key][str(name)]):
                raise ValueError(f"{KEY} {key} was asked with {name} = {value!r}, got {filled[key][str(name)]!r}")


def _alike(value: Any, text: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).strip().lower() == text.strip().lower()
    try:
        return isclose(float(text), value, rel_tol=ROUNDED, abs_tol=1e-9)
    except ValueError:
        return False
