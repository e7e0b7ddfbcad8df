"""`acex ask`, `tell` and `status`: for labels that somebody else finds out. All state is in the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import Case
from acex.cli.ledgers import Where, chosen, gives_numbers, named_rows, opened
from acex.cli.program import NOTHING_FOUND, AsJson, say
from acex.cli.show import console, counted, echo, print_explanation, print_json, records, shortened, table
from acex.cli.tables import as_label, writable
from acex.values import listed

if TYPE_CHECKING:
    import pandas as pd

    from acex.ledger import Asked

KEY, LABEL, OWN_LABEL = "acex_id", "label", "acex_label"  # the last one where a feature is called "label"
ROUNDED = 1e-3  # relative: how far a spreadsheet may round a number


def ask(
    case: Case,
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=writable, help="The CSV to fill in; by default stdout."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write down the rows that want a label from a laboratory, a person, a job.

    Fill in the column label and give it back with acex tell, whole or in parts;
    then ask again with the same command. When the explanation is complete, ask
    shows it instead.

    Example: acex ask samples.csv --row 17 --ledger lab.db --model-name assay
    --queries-per-round 8 --out todo.csv
    """
    if case.ledger is None or "name" not in case.given:
        raise ValueError("acex ask needs --ledger and --model-name: its rows are recorded there under that name.")
    from acex.ledger import query_id
    from acex.spreadsheets import write_csv

    prepared = case.prepare(None)
    with acex.Ledger(case.ledger) as book:
        if out is not None:
            _refuse_untold(book, out)
        session = case.explainer(prepared, book).search(prepared.factual, **prepared.options)
        rows = session.ask()
    if rows is None:
        explanation = session.explanation()
        if as_json:
            echo(explanation.to_json())
        else:
            print_explanation(explanation)
        if explanation.outcome != "found":
            raise typer.Exit(NOTHING_FOUND)
        return
    keys = [query_id(session.plan.model_id, form) for form in session.waiting]
    todo: pd.DataFrame = rows.reset_index(drop=True)  # as DATA is
    todo.insert(0, KEY, keys)
    todo[OWN_LABEL if LABEL in rows.columns else LABEL] = ""
    if out is not None:
        write_csv(todo, out)
    if as_json:
        print_json({"explanation": session.identity, "waiting": len(todo), "rows": records(todo)})
    elif out is None:
        echo(write_csv(todo), nl=False)
    where = "URL" if "://" in case.ledger else case.ledger  # a URL may hold a password
    say(f"{counted(len(todo), 'row')} to label. Fill it in, then: acex tell {out or 'FILE'} --ledger {where}")


def tell(
    answers: Annotated[Path, typer.Argument(help="What acex ask wrote, with labels filled in.")],
    ledger: Annotated[str, typer.Option(metavar="FILE|URL", help="The ledger that acex ask was given.")],
    as_json: AsJson = False,
) -> None:
    """Take in labels: some or all, in any order. Blank ones are left for later.

    Example: acex tell todo.csv --ledger lab.db

    A label is a number, true, false, or else a text. Exit code 1: a row had
    another label before, which stands.
    """
    filled = _filled_in(_read_answers(answers))
    with opened(ledger) as book:
        asked = book.find(list(filled))
        try:
            labels = _told(book, filled, asked)
        except ValueError as error:
            raise ValueError(f"{answers}: {str(error).removesuffix('.')}. Nothing was recorded.") from None
        _refuse_foreign(book, answers, filled, asked)
        differ = 0
        for model in dict.fromkeys(a.model for a in asked.values()):
            keys = [key for key, a in asked.items() if a.model == model]
            stand = book.record(model, [asked[key].row for key in keys], [labels[key] for key in keys])
            differ += sum(answer.label != labels[key] for answer, key in zip(stand, keys, strict=True))
        waiting = sum(line["waiting"] for line in _lines(book))
    new = sum(a.answer is None for a in asked.values())
    if as_json:
        print_json({"recorded": len(filled), "new": new, "differ": differ, "waiting": waiting})
    else:
        console().print(
            f"Recorded: {counted(len(filled), 'label')}, {new} new. Still waiting: {counted(waiting, 'row')}."
        )
    if differ:
        say(f"{counted(differ, 'row')} had another label before. The first one stands; the other is kept beside it.")
        raise typer.Exit(NOTHING_FOUND)


def status(
    where: Where,
    model_id: Annotated[str | None, typer.Option(help="Only explanations of this model.")] = None,
    as_json: AsJson = False,
) -> None:
    """How far each explanation is: rows asked, answered, waiting, and the best so far.

    Example: acex status lab.db
    """
    with opened(where) as book:
        lines = _lines(book, None if model_id is None else chosen(book, model_id))
    if as_json:
        print_json(lines)
        return
    named, several = any(line["names"] for line in lines), len({line["model_id"] for line in lines}) > 1
    shown = [
        (
            line["explanation"][:8],
            *([", ".join(line["names"])] if named else []),
            *([shortened(line["model_id"], 12)] if several else []),
            line["outcome"] or ("waiting" if line["waiting"] else "begun"),
            line["asked"],
            line["answered"],
            line["waiting"],
            line["paid"],
            "" if line["best"] is None else f"{line['best']['cost']:.3g}",
        )
        for line in lines
    ]
    first = ("explanation", *(["row"] if named else []), *(["model"] if several else []))
    console().print(table((*first, "state", "asked", "answered", "waiting", "paid", "best cost"), shown))


def _read_answers(path: Path) -> pd.DataFrame:
    """The file as text, so that a label stays as it was typed."""
    from acex.spreadsheets import read_csv

    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    try:
        lines = read_csv(path, dtype=str, keep_default_na=False)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as CSV: {error}") from error
    label = OWN_LABEL if OWN_LABEL in lines.columns else LABEL
    if KEY not in lines.columns or label not in lines.columns:
        raise ValueError(f"{path}: expected the columns {KEY!r} and {LABEL!r}, as acex ask writes them.")
    return lines.drop(columns=[LABEL] if label == LABEL else []).assign(**{OWN_LABEL: lines[label].str.strip()})


def _filled_in(lines: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Label and values of the lines that have a label, by key."""
    filled = lines[lines[OWN_LABEL] != ""]
    twice = filled[KEY][filled[KEY].duplicated()]
    if len(twice):
        raise ValueError(f"{KEY} {twice.iloc[0]!r} has a label in two lines; keep one.")
    names = [name for name in filled.columns if name not in (KEY, OWN_LABEL)]
    return {
        line[KEY]: {"label": line[OWN_LABEL], "values": {name: line[name] for name in names}}
        for line in filled.to_dict("records")
    }


def _told(book: acex.Ledger, filled: dict[str, dict[str, Any]], asked: dict[str, Asked]) -> dict[str, Any]:
    """The labels by key; of a model that is asked for numbers, the numbers."""
    from acex.models.labels import as_labels, as_numbers

    measured = {model for model in {a.model for a in asked.values()} if gives_numbers(book, model)}
    labels: dict[str, Any] = {}
    for key, line in filled.items():
        read = as_numbers if key in asked and asked[key].model in measured else as_labels
        [labels[key]] = read([as_label(str(line["label"]))], 1)
    return labels


def _refuse_untold(book: acex.Ledger, path: Path) -> None:
    """A list that is partly filled in must not be overwritten by a new one."""
    if not path.exists():
        return
    try:
        filled = _filled_in(_read_answers(path))
    except ValueError:
        raise ValueError(f"{path} exists and is no list of acex ask; name another file for --out.") from None
    known = book.find(list(filled))
    untold = [key for key in filled if key not in known or known[key].answer is None]
    if untold:
        raise ValueError(f"{path} holds {counted(len(untold), 'label')} not recorded yet: acex tell {path} first.")


def _refuse_foreign(book: acex.Ledger, path: Path, filled: dict[str, dict[str, Any]], asked: dict[str, Asked]) -> None:
    """Labels of rows that were not asked for, or whose values were changed since, would stay wrong."""
    unknown = [key for key in filled if key not in asked]
    if unknown:
        raise ValueError(
            f"{path}: {listed(unknown, most=3)} in {KEY} was not asked by this ledger. Nothing was recorded."
        )
    for key, a in asked.items():
        row = named_rows(book, a.model, [a.row]).iloc[0]
        for name, text in filled[key]["values"].items():
            if name in row.index and not _alike(row[name], text):
                raise ValueError(
                    f"{path}: {KEY} {key} was asked with {name} = {row[name]!r}, and here it is {text!r}. "
                    f"Nothing was recorded."
                )


def _alike(value: Any, text: str) -> bool:
    import numpy as np

    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).strip().lower() == text.strip().lower()
    try:
        return bool(np.isclose(float(text), value, rtol=ROUNDED, atol=1e-9))
    except ValueError:
        return False


def _lines(book: acex.Ledger, model_id: str | None = None) -> list[dict[str, Any]]:
    """For each explanation of the ledger how far it is."""
    from acex.engine.recorded import recorded

    lines = []
    for line in records(book.tables.explanations(model_id)):
        asks = book.asks(line["id"])
        answered = [a for a in asks if a.answer is not None]
        found = recorded(book, line["id"]) if answered and answered[0].position == 0 else None
        best = None
        if found is not None and found.costs:
            best = {"cost": found.costs[0], "counterfactual": found.counterfactual.to_dict()}
        lines.append(
            {
                "explanation": line["id"],
                "names": list(book.explanation(line["id"]).names),
                "model_id": line["model_id"],
                "outcome": line["outcome"],
                "factual": json.loads(line["factual"]),
                "asked": len(asks),
                "answered": len(answered),
                "waiting": len(asks) - len(answered),
                "paid": line["paid"],
                "best": best,
                "started_at": line["started_at"],
                "finished_at": line["finished_at"],
            }
        )
    return lines
