"""`acex ask` and `tell`: for labels that a laboratory or a person determines. All state is in the ledger."""

from __future__ import annotations

import json
import re
from collections import Counter
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import Case, Prepared
from acex.cli.ledgers import KEY, gives_numbers, named_rows, opened
from acex.cli.program import NOTHING_FOUND, WAITING, AsJson, say
from acex.cli.show import console, counted, echo, print_json, records
from acex.cli.tables import Encoding, as_label, file_to_write, read_table
from acex.values import did_you_mean, listed, plain

if TYPE_CHECKING:
    import pandas as pd

    from acex.engine.session import Session
    from acex.ledger import Asked

REPEAT, LABEL, OWN_LABEL = "repeat_of", "label", "acex_label"  # the last one if a feature is called "label"
ROUNDED = 1e-3  # relative: how far a spreadsheet may round a number
TRUTH = {"wahr": "true", "falsch": "false", "vrai": "true", "faux": "false"}  # as spreadsheets write it
DATE = re.compile(r"\d{4}-\d\d-\d\d")
MOST_STATES = 5  # searches that `tell` reports on
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")  # 1,250: perhaps with a decimal comma


def ask(
    case: Case,
    out: Annotated[Path | None, file_to_write("The CSV file to fill in; by default stdout.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows that need a label from a laboratory, a person or a job.

    Example: acex ask loans.csv --drop id,decision --row 17 --target approved
    --ledger lab.db --model-name assay --queries-per-round 8 --out todo.csv

    Fill in the column label and pass the file to acex tell, complete or in parts;
    then repeat the same command. When the search is complete, it prints the
    explanation and leaves --out untouched. With --noise, rows may be asked again:
    repeat_of has the acex_id of the first time. Exit code 4: rows wait for
    labels; 0: complete; 1: complete, without a counterfactual.
    """
    from acex.engine.recorded import load_explanation
    from acex.ledger import is_vote, query_id, without_vote
    from acex.spreadsheets import write_csv

    if case.ledger is None or "name" not in case.given:
        raise ValueError("acex ask needs --ledger and --model-name: its rows are recorded there under that name.")
    prepared = case.prepare(None)
    name = None if prepared.ids is None else str(plain(prepared.ids[0]))
    with acex.Ledger(case.ledger) as book:
        if out is not None:
            _refuse_to_lose_labels(book, out)
        session = _session(case.explainer(prepared, book), prepared, book)
        session.begin([] if name is None else [name])
        rows = session.ask()
        state = _state(book, session.identity)
        explanation = None if rows is not None else load_explanation(book, session.identity)  # with what all runs paid
    if explanation is not None:
        if as_json:
            echo(explanation.to_json())
        else:
            console().print(str(explanation))
        if explanation.outcome not in ("found", "already_target"):
            raise typer.Exit(NOTHING_FOUND)
        return
    assert rows is not None
    todo: pd.DataFrame = rows.reset_index(drop=True)
    model, keys = session.plan.model_id, session.waiting
    todo.insert(0, KEY, [query_id(model, key) for key in keys])
    if session.plan.noise is not None:
        first = [query_id(model, without_vote(key)) if is_vote(key) else "" for key in keys]
        todo.insert(1, f"acex_{REPEAT}" if REPEAT in rows.columns else REPEAT, first)
    todo[OWN_LABEL if LABEL in rows.columns else LABEL] = ""
    # As the spreadsheet that wrote DATA: with a byte order mark, those that write decimal commas read UTF-8.
    is_german = case.reading.decimal == ","
    text = write_csv(todo, sep=";" if is_german else ",", decimal=case.reading.decimal)
    if out is not None:
        out.write_bytes(text.encode(case.reading.encoding or ("utf-8-sig" if is_german else "utf-8")))
    if as_json:
        print_json({"explanation": session.identity, "waiting": len(todo), "rows": records(todo)})
    elif out is None:
        echo(text, nl=False)
    for remark in () if session.steps else (*prepared.remarks, *map(str, session.plan.remarks)):
        say(remark)  # before anything is measured
    say(state)
    n_again = sum(map(is_vote, keys))
    again = f", {n_again} of them again (see {REPEAT})" if n_again else ""
    say(f"{counted(len(todo), 'row')} to label{again}. Fill in, then: acex tell {out or 'FILE'} --ledger {case.ledger}")
    raise typer.Exit(WAITING)


def _session(explainer: acex.Explainer, prepared: Prepared, book: acex.Ledger) -> Session:
    """The search to continue.

    After a label that it used was corrected, that is a copy of it with the next seed: the copy sees the corrected
    labels, and the search itself stays on record as it was.
    """
    from acex.engine.blackbox import HANDED_OUT
    from acex.engine.recorded import n_corrected
    from acex.ledger import Ask, Question

    options, before, paid = dict(prepared.options), list[Ask](), 0
    while True:
        session = explainer.search(prepared.factual, **options)
        if before and not book.asks(session.identity):
            session.begin()
            seen = book.account(session.plan.model_id).last_sequence
            copied = [Question(ask.row, ask.purpose, ask.position, seen, ask.note) for ask in before]
            book.claim(session.plan.model_id, copied, explanation=session.identity, holder=HANDED_OUT)
            session = explainer.search(prepared.factual, **options)
        asks = book.asks(session.identity)
        if not n_corrected(book, session.plan.model_id, asks):
            session.box.budget = max(session.plan.budget - paid, 0)
            if before:
                say(f"labels were corrected; the search continues with the new ones (seed {options['seed']}).")
            return session
        before, paid = asks, paid + sum(ask.paid for ask in asks)
        options["seed"] = session.plan.settings["seed"] + 1


def _state(book: acex.Ledger, explanation: str) -> str:
    """What an explanation has come to, in one sentence."""
    from acex.engine.recorded import load_explanation

    asks, names = book.asks(explanation), ", ".join(book.explanation(explanation).names)
    n_answered = sum(ask.answer is not None for ask in asks)
    best = load_explanation(book, explanation).cost if asks and asks[0].answer is not None else None
    found = "no counterfactual yet" if best is None else f"best cost so far {best:.3g}"
    waiting = f", {len(asks) - n_answered} waiting" if len(asks) > n_answered else ""
    return f"{names or explanation[:8]}: {counted(n_answered, 'label')} recorded{waiting}, {found}."


def tell(
    answers: Annotated[Path, typer.Argument(help="The file of acex ask, with labels filled in.")],
    ledger: Annotated[str, typer.Option(metavar="FILE|URL", help="The ledger of acex ask.")],
    correct: Annotated[
        bool, typer.Option("--correct", help="Replace labels that were wrong; the old ones stay on record.")
    ] = False,
    new_labels: Annotated[
        bool, typer.Option("--new-labels", help="Accept labels that the model has not given before.")
    ] = False,
    encoding: Encoding = None,
) -> None:
    """Record labels: some or all, in any order. Blank ones are left for later.

    Example: acex tell todo.csv --ledger lab.db

    A label is a number, true, false, or else a text. Labels that the model has
    given before, the target and class names are known; others need --new-labels,
    so that a misspelled label is not recorded. If any label is refused, nothing is
    recorded. Replicates: with acex ask --noise, several lines may have the same
    acex_id, and each is a result of its own. Exit code 1: a row had another label
    before, which stays valid without --correct.
    """
    from acex.engine.recorded import n_corrected

    filled = _read_labels(answers, encoding)
    with opened(ledger) as book:
        try:
            asked = _asked(book, filled)
            labels = _labels(book, filled, asked, new_labels=new_labels, correct=correct)
            _refuse_changed_rows(book, filled, asked)
        except ValueError as error:
            advice = " Nothing was recorded." if str(error)[-1] in ".?" else ". Nothing was recorded."
            raise ValueError(f"{answers}: {error}{advice}") from None
        other = {key for key, a in asked.items() if a.answer is not None and a.answer.label != labels[key]}
        for key in other if correct else ():
            book.correct(asked[key].model, asked[key].row, labels[key])
        models = dict.fromkeys(a.model for a in asked.values())
        for model in models:
            keys = [key for key, a in asked.items() if a.model == model]
            book.record(model, [asked[key].row for key in keys], [labels[key] for key in keys])
        waiting = int(book.tables.models()["unanswered"].sum())
        searches = [e for model in models for e in records(book.tables.explanations(model)) if not e["outcome"]]
        current = [e["id"] for e in searches if not n_corrected(book, e["model_id"], book.asks(e["id"]))]
        states = [_state(book, explanation) for explanation in current[-MOST_STATES:]]
    new = sum(a.answer is None for a in asked.values())
    corrected = f", {len(other)} corrected" if correct else ""
    recorded = f"Recorded: {counted(len(filled), 'label')}, {new} new{corrected}."
    console().print("\n".join([f"{recorded} Still waiting: {counted(waiting, 'row')}.", *states]), soft_wrap=True)
    if other and not correct:
        say(f"{counted(len(other), 'row')} had another label before, which stays valid. To replace it, use --correct.")
        raise typer.Exit(NOTHING_FOUND)


def _read_labels(path: Path, encoding: str | None = None) -> dict[str, dict[str, str]]:
    """The lines of a file of `acex ask` that have a label, as typed, the label as OWN_LABEL.

    By acex_id; further lines with the same acex_id by the id and a number: "c5f52db5 (2)".
    """
    try:
        lines = read_table(path, encoding=encoding, guarded=True, dtype=str, keep_default_na=False)
    except ValueError as error:
        if encoding is not None or not isinstance(error.__cause__, UnicodeError):
            raise
        # Spreadsheets on Windows. The rows are compared with those that were asked, so another encoding is noticed.
        lines = read_table(path, encoding="cp1252", guarded=True, dtype=str, keep_default_na=False)
    label = OWN_LABEL if OWN_LABEL in lines.columns else LABEL
    if KEY not in lines.columns or label not in lines.columns:
        raise ValueError(f"{path}: expected the columns {KEY!r} and {LABEL!r} of acex ask.")
    lines = lines.rename(columns={label: OWN_LABEL})
    lines[OWN_LABEL] = lines[OWN_LABEL].str.strip()
    filled = lines[lines[OWN_LABEL] != ""]
    numbers = filled.groupby(KEY).cumcount() + 1
    names = [key if n == 1 else f"{key} ({n})" for key, n in zip(filled[KEY], numbers, strict=True)]
    lines_read = [{str(name): text for name, text in line.items()} for line in filled.to_dict("records")]
    return dict(zip(names, lines_read, strict=True))


def _asked(book: acex.Ledger, filled: dict[str, dict[str, str]]) -> dict[str, Asked]:
    """What the ledger knows of each line, by the names of `_read_labels`; further results have rows of their own.

    Raises:
        ValueError: there are further results of a model that was not declared as noisy.
    """
    from acex.ledger import Asked
    from acex.ledger.row_keys import next_result

    found = book.find([line[KEY] for line in filled.values()])
    asked: dict[str, Asked] = {}
    for name, line in filled.items():
        if (last := found.get(line[KEY])) is None:
            continue
        if name != line[KEY]:
            model, row = last.model, next_result(last.row)
            if not any(json.loads(text).get("noise") for text in book.tables.explanations(model)["settings"]):
                advice = "Keep one, or use acex ask with --noise: then each line is a result of its own."
                raise ValueError(f"{KEY} {line[KEY]} has a label in two lines. {advice}")
            last = Asked(model, row, book.known(model, [row]).get(row))
        asked[name] = found[line[KEY]] = last
    return asked


def _labels(
    book: acex.Ledger, filled: dict[str, dict[str, str]], asked: dict[str, Asked], *, new_labels: bool, correct: bool
) -> dict[str, Any]:
    """The labels by key; numbers for a model that is queried for numbers."""
    from acex.models.labels import as_labels, as_numbers

    if unknown := [key for key in filled if key not in asked]:
        raise ValueError(f"{listed(unknown, most=3)} in {KEY} was not asked by this ledger")
    labels: dict[str, Any] = {}
    for model in dict.fromkeys(a.model for a in asked.values()):
        texts = {key: line[OWN_LABEL] for key, line in filled.items() if asked[key].model == model}
        if gives_numbers(book, model):
            for key, text in texts.items():
                [labels[key]] = as_numbers([as_label(_with_point(text))], 1)
            continue
        replaced = {a.row for key, a in asked.items() if a.answer and str(a.answer.label) != filled[key][OWN_LABEL]}
        known, names = _known_labels(book, model, replaced if correct else set())
        for key, text in texts.items():
            [labels[key]] = as_labels([names.get(text, as_label(text, known))], 1)
        _refuse_misspelled([labels[key] for key in texts], known, accepts_new=new_labels)
    return labels


def _known_labels(book: acex.Ledger, model: str, without: set[str]) -> tuple[list[Any], dict[str, Any]]:
    """The labels that a model gave to rows other than `without`, or that were wanted of it; labels by class names."""
    settings = [json.loads(text) for text in book.tables.explanations(model)["settings"]]
    targets = [s["target"] if isinstance(s.get("target"), list) else [s.get("target")] for s in settings]
    named = {name: label for s in settings for label, name in s.get("class_names") or ()}
    newest = {answer.row: answer.label for answer in book.answers(model) if answer.row not in without}
    wanted = [label for labels in targets for label in labels if not isinstance(label, dict | None)]
    return list(dict.fromkeys([*newest.values(), *wanted, *named.values()])), named


def _refuse_misspelled(labels: list[Any], known: list[Any], *, accepts_new: bool) -> None:
    """Raise for other spellings of a label, and for new labels unless they are accepted."""
    new = Counter(label for label in labels if label not in known)
    by_spelling = {_spelling(label): label for label in known}
    for label, _ in new.most_common():
        other = by_spelling.setdefault(_spelling(label), label)
        if other is not label:
            replace = f" If {other!r} is wrong, fill in all its rows again and pass --correct."
            raise ValueError(
                f"{label!r} differs from the label {other!r} only in capitals or spaces. Did you mean {other!r}?"
                f"{replace if other in known else ''}"
            )
    if new and not accepts_new:
        seen = ", ".join(f"{label!r} ({counted(n, 'row')})" for label, n in new.most_common())
        texts = list(map(str, by_spelling.values()))  # a misspelled label is rarer than the one that was meant
        meant = "".join(did_you_mean(text, _similar(text, texts[: texts.index(text)])) for text in map(str, new))
        given = f"known labels are {listed(known)}" if known else "no labels are known"
        raise ValueError(f"new labels: {seen}; {given}.{meant} Pass --new-labels to accept all new labels.")


def _similar(label: str, others: list[str]) -> list[str]:
    """The others that may have been meant; "unstable" is not a misspelled "stable"."""
    return [other for other in others if not (label.endswith(other) or other.endswith(label))]


def _spelling(label: Any) -> str:
    """What labels have in common that differ only in case and spaces."""
    return " ".join(str(label).casefold().split())


def _with_point(text: str) -> str:
    """A number with a decimal comma as one with a point."""
    if THOUSANDS.fullmatch(text):
        raise ValueError(f"{text!r} may be a fraction or thousands; write it with a decimal point")
    return text.replace(".", "").replace(",", ".") if "," in text else text


def _refuse_to_lose_labels(book: acex.Ledger, path: Path) -> None:
    """Refuse to overwrite labels that are not recorded yet."""
    if not path.exists():
        return
    try:
        filled = _read_labels(path)
    except ValueError:
        raise ValueError(f"{path} exists and was not written by acex ask; choose another file for --out.") from None
    known = _asked(book, filled)
    if n_new := sum(key not in known or known[key].answer is None for key in filled):
        tell = f"acex tell {path} --ledger {book.path or 'URL'}"
        raise ValueError(f"{path} has {counted(n_new, 'label')} not recorded yet: {tell} first.")


def _refuse_changed_rows(book: acex.Ledger, filled: dict[str, dict[str, str]], asked: dict[str, Asked]) -> None:
    """Refuse labels of rows whose values differ from those that were asked, as after sorting one column only."""
    for key, a in asked.items():
        for name, value in named_rows(book, a.model, [a.row]).iloc[0].items():
            if name in filled[key] and not _alike(value, filled[key][str(name)]):
                raise ValueError(f"{KEY} {key} was asked with {name} = {value!r}, got {filled[key][str(name)]!r}")


def _alike(value: Any, text: str) -> bool:
    """Is this the value as a spreadsheet may have written it: rounded, with a decimal comma, or a date day-first?"""
    import pandas as pd

    text = text.strip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        if str(value).strip().lower() == TRUTH.get(text.lower(), text.lower()):
            return True
        day = pd.to_datetime(text, dayfirst=True, errors="coerce") if DATE.match(str(value)) else None
        return day is not None and day == pd.to_datetime(str(value), errors="coerce")
    digits = re.sub(r"[\s'’]", "", text)
    for written in (digits, digits.replace(".", "").replace(",", "."), digits.replace(",", "")):
        try:
            if isclose(float(written), value, rel_tol=ROUNDED, abs_tol=1e-9):
                return True
        except ValueError:
            pass
    return False
