"""`acex ask` and `acex tell`, for labels determined by a laboratory or a person. All state is in the ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import Case, Prepared
from acex.cli.ledgers import KEY, gives_numbers, named_rows, opened, settings_of
from acex.cli.program import NOTHING_FOUND, WAITING, AsJson, say
from acex.cli.show import console, echo, print_json
from acex.cli.tables import Encoding, as_label, file_to_write, read_table
from acex.values import THOUSANDS, counted, did_you_mean, listed, plain, records, refuse_overwriting, spelling

if TYPE_CHECKING:
    import pandas as pd

    from acex.engine.session import Session
    from acex.ledger import Answer, Asked

REPEAT, LABEL, OWN_LABEL = "repeat_of", "label", "acex_label"  # OWN_LABEL is used if a feature is called "label"
ROUNDED = 1e-3  # relative tolerance for numbers rounded by a spreadsheet
BOOLEANS = {"wahr": "true", "falsch": "false", "vrai": "true", "faux": "false"}  # German and French spreadsheets
DATE = re.compile(r"\d{4}-\d\d-\d\d")
MOST_STATES = 5  # maximum number of searches whose state `tell` prints


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
    refuse_overwriting([out], [case.data, case.x, case.schema, case.ledger])
    prepared = case.prepare(None)
    name = None if prepared.ids is None else str(plain(prepared.ids[0]))
    with acex.Ledger(case.ledger) as book:
        if out is not None:
            _refuse_to_lose_labels(book, out)
        session = _session(case.explainer(prepared, book), prepared, book)
        outcomes = [] if prepared.outcomes is None else [plain(outcome) for outcome in prepared.outcomes.unique()]
        session.begin([] if name is None else [name], prepared.model.to_labels(outcomes))
        _mention_earlier_search(book, session)
        if (asked := session.box.paid) > session.plan.budget:
            say(f"--budget {session.plan.budget}: {asked} rows were sent out before; no more will be.")
        rows = session.ask()
        state = _state(book, session.identity)
        if rows is None:
            explanation = load_explanation(book, session.identity)  # includes what all runs paid
            if as_json:
                echo(explanation.to_json())
            else:
                console().print(str(explanation))
            if explanation.outcome not in ("found", "already_target"):
                raise typer.Exit(NOTHING_FOUND)
            return
    todo: pd.DataFrame = rows.reset_index(drop=True)
    model, keys = session.plan.model_id, session.waiting
    todo.insert(0, KEY, [query_id(model, key) for key in keys])
    if session.plan.noise is not None:
        first = [query_id(model, without_vote(key)) if is_vote(key) else "" for key in keys]
        todo.insert(1, f"acex_{REPEAT}" if REPEAT in rows.columns else REPEAT, first)
    todo[OWN_LABEL if LABEL in rows.columns else LABEL] = ""
    # Use the CSV dialect of DATA. Spreadsheets that write decimal commas need a byte order mark to read UTF-8.
    is_german = case.reading.decimal == ","
    text = write_csv(todo, sep=";" if is_german else ",", decimal=case.reading.decimal)
    if out is not None:
        out.write_bytes(text.encode(case.reading.encoding or ("utf-8-sig" if is_german else "utf-8")))
    if as_json:
        print_json({"explanation": session.identity, "waiting": len(todo), "rows": records(todo)})
    elif out is None:
        echo(text, nl=False)
    for remark in () if session.steps else (*prepared.remarks, *map(str, session.plan.remarks)):
        say(remark)  # only before the first label
    say(state)
    n_again = sum(map(is_vote, keys))
    again = f", {n_again} of them again (see {REPEAT})" if n_again else ""
    say(f"{counted(len(todo), 'row')} to label{again}. Fill in, then: acex tell {out or 'FILE'} --ledger {case.ledger}")
    raise typer.Exit(WAITING)


def _session(explainer: acex.Explainer, prepared: Prepared, book: acex.Ledger) -> Session:
    """The search to continue.

    If a label that it used was corrected, a copy with the next seed is returned: the copy sees the corrected labels,
    and the original search stays on record unchanged.
    """
    from acex.engine.blackbox import HANDED_OUT
    from acex.engine.recorded import n_corrected
    from acex.ledger import Ask, Question

    options, before = dict(prepared.options), list[Ask]()
    while True:
        session = explainer.search(prepared.factual, **options)
        asks = book.asks(session.identity)
        if before and not asks:
            session.begin()
            seen = book.account(session.plan.model_id).last_sequence
            copied = [Question(ask.row, ask.purpose, ask.position, seen, ask.note, ask.paid) for ask in before]
            book.claim(session.plan.model_id, copied, explanation=session.identity, holder=HANDED_OUT)
            continue
        if not n_corrected(book, session.plan.model_id, asks):
            if before:
                say(f"labels were corrected; the search continues with the new ones (seed {options['seed']}).")
            return session
        before = asks
        options["seed"] = session.plan.settings["seed"] + 1


def _mention_earlier_search(book: acex.Ledger, session: Session) -> None:
    """Warn if this search is new although the row already has one: data or options may differ by mistake."""
    lines = book.tables.explanations(session.plan.model_id).set_index("id")
    same = lines.index[lines["factual"] == lines["factual"][session.identity]].drop(session.identity)
    if len(same) and not book.asks(session.identity):
        say(f"warning: DATA or an option differs: a new search with its own budget. Before: {_state(book, same[-1])}")


def _state(book: acex.Ledger, explanation: str) -> str:
    """The progress of an explanation, in one sentence."""
    from acex.engine.recorded import load_explanation

    asks, record = book.asks(explanation), book.explanation(explanation)
    recorded = {ask.row for ask in asks if ask.answer is not None}
    n_waiting = sum(ask.answer is None for ask in asks)
    if record.settings.get("noise"):
        recorded |= set(_results(book, record.model, recorded))  # including replicates, which the next `ask` will use
    best = load_explanation(book, explanation).cost if asks and asks[0].answer is not None else None
    found = "no counterfactual yet" if best is None else f"best cost so far {best:.3g}"
    waiting = f", {n_waiting} waiting" if n_waiting else ""
    name, asked = ", ".join(record.names) or explanation[:8], sum(ask.paid for ask in asks)
    budget = f"budget {asked} of {record.settings.get('budget', asked)}"
    return f"{name}: {counted(len(recorded), 'label')} recorded{waiting}; {budget}; {found}."


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
    given before, the target, outcomes and class names are known; others need
    --new-labels, so that a misspelled label is not recorded. If any label is
    refused, nothing is recorded. Replicates: with acex ask --noise, several lines
    may have the same acex_id, and each is a result of its own. Exit code 1: a row
    had another label before, which stays valid without --correct.
    """
    from acex.engine.recorded import n_corrected

    filled = _read_labels(answers, encoding)
    with opened(ledger) as book:
        try:
            labels, asked = _matched(book, filled, corrects=correct)
            if unknown := [line[KEY] for number, line in filled.items() if number not in asked]:
                raise ValueError(f"{listed(unknown, most=3)} in {KEY} is not a row of this ledger")
            before = {n: a.answer.label for n, a in asked.items() if a.answer is not None}
            other = [n for n, label in before.items() if label != labels[n]]
            models = dict.fromkeys(a.model for a in asked.values())
            for model in models:
                given = [labels[n] for n, a in asked.items() if a.model == model]
                known, _ = _known_labels(book, model, {asked[n].row for n in other} if correct else set())
                if not gives_numbers(book, model):
                    _refuse_misspelled(given, known, accepts_new=new_labels)
            _refuse_changed_rows(book, filled, asked)
        except ValueError as error:
            advice = " Nothing was recorded." if str(error)[-1] in ".?" else ". Nothing was recorded."
            raise ValueError(f"{answers}: {error}{advice}") from None
        for n in other if correct else ():
            book.correct(asked[n].model, asked[n].row, labels[n])
        for model in models:
            numbers = [n for n, a in asked.items() if a.model == model]
            book.record(model, [asked[n].row for n in numbers], [labels[n] for n in numbers])
        waiting = int(book.tables.models()["unanswered"].sum())
        searches = [e for model in models for e in records(book.tables.explanations(model)) if not e["outcome"]]
        current = [e["id"] for e in searches if not n_corrected(book, e["model_id"], book.asks(e["id"]))]
        states = [_state(book, explanation) for explanation in current[-MOST_STATES:]]
        is_noisy = any(settings.get("noise") for model in models for settings in settings_of(book, model))
    new = len(asked) - len(before)
    corrected, known_before = len(other) if correct else 0, len(before) - len(other)
    counts = {"Recorded": new, "Corrected": corrected, "Recorded before": known_before}
    shown = [f"{word}: {counted(n, 'label')}." for word, n in counts.items() if n or word == "Recorded"]
    console().print(" ".join([*shown, f"Still waiting: {counted(waiting, 'row')}."]), *states, sep="\n", soft_wrap=True)
    if corrected:
        say("searches that used these labels continue with the new ones when acex ask is repeated.")
    if is_noisy and known_before == len(filled):
        say("for one more result of a row, keep the lines that are recorded and add one.")
    if other and not correct:
        for n in other:
            say(f"line {n}, {KEY} {filled[n][KEY]}: {before[n]!r} was recorded before, now {labels[n]!r}.")
        say(f"{counted(len(other), 'row')} had another label before, which stays valid. To replace it, use --correct.")
        raise typer.Exit(NOTHING_FOUND)


def _read_labels(path: Path, encoding: str | None = None) -> dict[int, dict[str, str]]:
    """The lines of a file of `acex ask` that have a label, by line number; the label, as typed, is in OWN_LABEL."""
    try:
        lines = read_table(path, encoding=encoding, escaped=True, dtype=str, keep_default_na=False)
    except ValueError as error:
        if encoding is not None or not isinstance(error.__cause__, UnicodeError):
            raise
        # Spreadsheets on Windows. The rows are compared with those sent, so a wrong encoding is noticed.
        lines = read_table(path, encoding="cp1252", escaped=True, dtype=str, keep_default_na=False)
    label = OWN_LABEL if OWN_LABEL in lines.columns else LABEL
    if KEY not in lines.columns or label not in lines.columns:
        raise ValueError(f"{path}: expected the columns {KEY!r} and {LABEL!r} of acex ask.")
    lines = lines.rename(columns={label: OWN_LABEL})
    lines[OWN_LABEL] = lines[OWN_LABEL].str.strip()
    numbered = enumerate(lines.to_dict("records"), start=2)  # line 1 is the header
    return {n: {str(name): text for name, text in line.items()} for n, line in numbered if line[OWN_LABEL]}


def _matched(
    book: acex.Ledger, filled: dict[int, dict[str, str]], *, corrects: bool = False
) -> tuple[dict[int, Any], dict[int, Asked]]:
    """The label of each line, and the entry of the ledger that it belongs to; lines with an unknown id are left out.

    The lines of one acex_id are its results, in any order. A line with the label of a recorded result is that result.
    The other lines are first matched with the remaining recorded results, which they contradict; the rest are new.

    Raises:
        ValueError: a label is invalid, or there are too many or too few lines.
    """
    from acex.ledger import Asked
    from acex.ledger.row_keys import first_result, next_result
    from acex.models.labels import as_labels, as_numbers

    found = book.find([line[KEY] for line in filled.values()])
    questions: dict[str, dict[str, list[int]]] = {}  # numbers of lines, by model and row
    for number, line in filled.items():
        if (a := found.get(line[KEY])) is not None:
            questions.setdefault(a.model, {}).setdefault(first_result(a.row), []).append(number)
    labels: dict[int, Any] = {}
    asked: dict[int, Asked] = {}
    for model, lines in questions.items():
        results, is_number = _results(book, model, lines), gives_numbers(book, model)
        known, labels_by_name = _known_labels(book, model, set())
        is_noisy = any(settings.get("noise") for settings in settings_of(book, model))
        for key, numbers in lines.items():
            name = f"{KEY} {filled[numbers[0]][KEY]}"
            if len(numbers) > 1 and not is_noisy:
                raise ValueError(f"{name} has a label in two lines. Keep one, or use acex ask with --noise.")
            for number in numbers:
                text = filled[number][OWN_LABEL]
                label = as_label(_with_point(text)) if is_number else labels_by_name.get(text, as_label(text, known))
                [labels[number]] = (as_numbers if is_number else as_labels)([label], 1)
            recorded = []
            while key in results:
                recorded.append(results[key])
                key = next_result(key)
            if corrects and len(numbers) < len(recorded):
                shown = ", ".join(repr(answer.label) for answer in recorded)
                raise ValueError(f"{name} has {len(recorded)} results: {shown}. --correct needs a line for each")
            different = []
            for number in numbers:
                if (same := next((a for a in recorded if a.label == labels[number]), None)) is None:
                    different.append(number)
                else:
                    recorded.remove(same)
                    asked[number] = Asked(model, same.row, same)
            for number in different:
                answer = recorded.pop(0) if recorded else None
                asked[number] = Asked(model, key if answer is None else answer.row, answer)
                key = next_result(key) if answer is None else key
    return labels, asked


def _results(book: acex.Ledger, model: str, rows: Iterable[str]) -> dict[str, Answer]:
    """The answers to these rows and all their replicates, by key."""
    from acex.ledger.row_keys import next_result

    results = latest = book.known(model, list(rows))
    while latest:
        latest = book.known(model, [next_result(row) for row in latest])
        results |= latest
    return results


def _known_labels(book: acex.Ledger, model: str, without: set[str]) -> tuple[list[Any], dict[str, Any]]:
    """Known labels (answers to rows other than `without`, targets, class names, outcomes), and labels by class name."""
    settings = settings_of(book, model)
    targets = [s["target"] if isinstance(s.get("target"), list) else [s.get("target")] for s in settings]
    named = {name: label for s in settings for label, name in s.get("class_names") or ()}
    newest = {answer.row: answer.label for answer in book.answers(model) if answer.row not in without}
    wanted = [label for labels in targets for label in labels if not isinstance(label, dict | None)]
    outcomes = [label for s in settings for label in s.get("known_labels") or ()]
    return list(dict.fromkeys([*newest.values(), *wanted, *named.values(), *outcomes])), named


def _refuse_misspelled(labels: list[Any], known: list[Any], *, accepts_new: bool) -> None:
    """Raise for labels that differ only in spelling, and for new labels unless they are accepted."""
    new = Counter(label for label in labels if label not in known)
    by_spelling = {spelling(label): label for label in known}
    for label, _ in new.most_common():
        other = by_spelling.setdefault(spelling(label), label)
        if other is not label:
            replace = f" If {other!r} is wrong, fill in all its rows again and pass --correct."
            raise ValueError(
                f"{label!r} differs from the label {other!r} only in capitals or spaces. Did you mean {other!r}?"
                f"{replace if other in known else ''}"
            )
    if new and not accepts_new:
        seen = ", ".join(f"{label!r} ({counted(n, 'row')})" for label, n in new.most_common())
        texts = list(map(str, by_spelling.values()))  # a misspelled label is rarer than the intended one
        meant = ""
        for text in map(str, new):
            others = texts[: texts.index(text)]  # "unstable" is not a misspelled "stable"
            meant += did_you_mean(text, [t for t in others if not (t.endswith(text) or text.endswith(t))])
        given = f"known labels are {listed(known)}" if known else "no labels are known"
        raise ValueError(f"new labels: {seen}; {given}.{meant} Pass --new-labels to accept all new labels.")


def _with_point(text: str) -> str:
    """The text of a number, with a decimal comma replaced by a point."""
    if THOUSANDS.fullmatch(text):
        raise ValueError(f"{text!r} may be a fraction or thousands; write it with a decimal point")
    return text.replace(".", "").replace(",", ".") if "," in text else text


def _refuse_to_lose_labels(book: acex.Ledger, path: Path) -> None:
    """Raise if the file has labels that are not recorded yet and would be overwritten."""
    if not path.exists():
        return
    try:
        filled = _read_labels(path)
    except ValueError:
        raise ValueError(f"{path} exists and was not written by acex ask; choose another file for --out.") from None
    _, known = _matched(book, filled)
    if n_new := sum(number not in known or known[number].answer is None for number in filled):
        tell = f"acex tell {path} --ledger {book.path or 'URL'}"
        raise ValueError(f"{path} has {counted(n_new, 'label')} not recorded yet: {tell} first.")


def _refuse_changed_rows(book: acex.Ledger, filled: dict[int, dict[str, str]], asked: dict[int, Asked]) -> None:
    """Raise if the values of a row differ from those that were sent, as after sorting only one column."""
    for number, a in asked.items():
        line = filled[number]
        for name, value in named_rows(book, a.model, [a.row]).iloc[0].items():
            if name in line and not _alike(value, line[str(name)]):
                raise ValueError(f"{KEY} {line[KEY]} was asked with {name} = {value!r}, got {line[str(name)]!r}")


def _alike(value: Any, text: str) -> bool:
    """Whether a spreadsheet may have written the value so: rounded, without leading zeros, or a date day-first."""
    import pandas as pd

    text = text.strip()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        pair = (str(value).strip().lower(), BOOLEANS.get(text.lower(), text.lower()))
        first, second = (re.sub(r"^0+(?=.)", "", each) for each in pair)
        if first == second:
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
