"""`acex verify` and `acex audit`: check explanations, and whether the model still gives the same answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.ledgers import Where, chosen, gives_numbers, opened
from acex.cli.models import ModelFlags, OptionalModelFlags
from acex.cli.program import NOTHING_FOUND, AsJson, say
from acex.cli.show import console, counted, print_json, table
from acex.values import listed

if TYPE_CHECKING:
    from acex.audit.verify import Verified

PAGES = (".html", ".htm")


# What reading a document with wrong types, wrong nesting or no JSON can raise.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def verify(
    file: Annotated[Path, typer.Argument(help="A .json file of acex explain or batch, or a page of acex report.")],
    black_box: OptionalModelFlags,
    row: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this row of a batch. Can be repeated.")
    ] = None,
    key: Annotated[Path | None, typer.Option(dir_okay=False, help="The signer's public key (PEM).")] = None,
    left_out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="The file that --left-out wrote, to compare it with the hashes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the checksum, the signature and every promise of an explanation.

    Example: acex verify why.json --model loans.skops

    Without --model nothing is sent. With it two rows are sent and paid for, of a
    batch two for each row: the row itself and its counterfactual. The checksum
    detects accidents; only a signature, checked with --key, protects against
    forgery. Exit code 1: something does not hold; 2: the file cannot be read.
    """
    from acex.audit.verify import n_queries
    from acex.audit.verify import verify as checked
    from acex.engine.certificate import faults, parsed

    text, document = read_document(file)
    is_batch, documents = "rows" in document, explanations_in(document)
    if unknown := [name for name in row or () if name not in documents]:
        raise ValueError(f"{file}: --row {listed(unknown)} has no explanation here; there are {listed(documents)}.")
    documents = {name: one for name, one in documents.items() if not row or name in row}
    model = acex.Model(black_box.open()) if black_box.model else None
    try:
        private = None if left_out is None else parsed(left_out.read_text(encoding="utf-8"))
        if model is not None:
            say(f"{counted(sum(n_queries(one) for one in documents.values()), 'row')} will be sent, and paid for.")
        wrong = faults(document, key) if is_batch else []
        results = []
        for name, one in documents.items():
            mine = private.get(name, {}) if is_batch and private is not None else private
            results.append(checked(one, model=model, key=key, left_out=mine))
        wrong += _page_faults(file, text)
    except MALFORMED as error:
        raise unreadable(file, error) from None
    holds = not wrong and all(result.holds for result in results)
    if as_json:
        rows = [{"row": r.row, "holds": r.holds, "checks": [c._asdict() for c in r.checks]} for r in results]
        print_json({"holds": holds, "file": wrong, "explanations": rows})
    else:
        _print(results, wrong, holds)
    if not holds:
        raise typer.Exit(NOTHING_FOUND)


def read_document(file: Path) -> tuple[str, dict[str, Any]]:
    """The document in a file of `acex explain` or `batch`, or in a page, as text and as `parsed` reads it.

    Raises:
        ValueError: it cannot be read.
    """
    from acex.engine.certificate import parsed, sum_of
    from acex.show.report import certificate_in

    if not file.is_file():
        raise ValueError(f"{file}: {'a folder; name one of its pages' if file.is_dir() else 'no such file'}.")
    try:
        text = file.read_text(encoding="utf-8")
        text = certificate_in(text) if file.suffix.lower() in PAGES else text
        document = parsed(text)
        explanations_in(document)
        sum_of(document)  # fails if it is nested too deeply
    except MALFORMED as error:
        raise unreadable(file, error) from None
    return text, document


def unreadable(file: Path, error: Exception) -> ValueError:
    """The error about a file that is not a document of acex."""
    why = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return ValueError(f"{file} cannot be read as a document of acex explain, batch or report: {why}")


def explanations_in(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The documents of a batch by the names of their rows, or a single one without a name."""
    if not isinstance(document, dict):
        raise ValueError("expected an object")
    if "rows" not in document:
        return {"": document}
    return {str(line["row"]): line["explanation"] for line in document["rows"] if line["explanation"] is not None}


def _page_faults(file: Path, certificate: str) -> list[str]:
    """What is wrong with a page apart from its certificate: it must be the one that the certificate makes."""
    if file.suffix.lower() not in PAGES:
        return []
    from acex.show.report import page_of

    if page_of(certificate) == file.read_text(encoding="utf-8"):
        return []
    by = json.loads(certificate)["settings"].get("acex")
    other = "" if by == acex.__version__ else f", or acex {by} writes pages in another way than {acex.__version__}"
    return [f"the page differs from its certificate: it was changed{other}."]


def _print(results: list[Verified], wrong: list[str], holds: bool) -> None:
    out = console()
    words = {True: "holds", False: "FAILS", None: "not checked"}
    for result in results:
        if len(results) > 1 and result.holds:
            continue
        if result.row is not None:
            out.print(str(result.row), style="bold")
        out.print(table(("promise", "", ""), [(c.promise, words[c.holds], c.words) for c in result.checks]))
    for fault in wrong:
        out.print(f"The file: {fault}", soft_wrap=True)
    if len(results) > 1:
        out.print(f"{sum(result.holds for result in results)} of {len(results)} explanations hold.")
    else:
        out.print("It holds." if holds else "It does not hold.")


def audit(
    where: Where,
    black_box: ModelFlags,
    model_name: Annotated[str | None, typer.Option(help="The model's name in the ledger.")] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many rows to send again, chosen at random.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Use another seed for other rows.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Send rows of the ledger again, and report labels that changed.

    Example: acex audit loans.db --model loans.skops --n 20

    Each row is paid for. Labels that changed are recorded as contradictions; the
    first ones stay valid. Exit code 1: some changed.
    """
    import numpy as np

    from acex.engine.blackbox import BlackBox
    from acex.ledger import canonical, is_vote
    from acex.space.columns import rows_in_form

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
            raise ValueError(f"The rows of {name!r} are not all of one form and cannot be sent again.")
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
            out.print("The model was replaced or is not deterministic. A new model needs a new --model-version.")
    if changed:
        raise typer.Exit(NOTHING_FOUND)


def _form(book: acex.Ledger, model: str) -> dict[str, Any]:
    """The form in which the model's rows were sent; only their columns if all were imported."""
    settings = [json.loads(text) for text in book.tables.explanations(model)["settings"]]
    forms = [s["form"] for s in settings if "form" in s]
    if forms:
        return dict(forms[-1])
    return {"columns": list(book.account(model).features or ()) or None, "dtypes": None, "array_dtype": None}
