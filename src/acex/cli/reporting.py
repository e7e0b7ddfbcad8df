"""`acex report` and `acex verify`: write explanations of a ledger or a file as HTML pages, and verify them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import ModelFlags
from acex.cli.ledgers import opened
from acex.cli.program import NOTHING_FOUND, AsJson, say
from acex.cli.show import console, print_json, table
from acex.cli.tables import OutputFlags
from acex.values import counted, listed, records, refuse_overwriting

if TYPE_CHECKING:
    from acex.audit.verify import Check, Verified

LENGTH = 24  # maximum length of a file name, without its suffix
SHORTEST = 6  # shortest prefix of an explanation's id; a shorter text is only taken as the name of a row
PAGES = (".html", ".htm")
# Exceptions raised when reading a document with wrong types, wrong nesting or no JSON.
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


def verify(
    file: Annotated[Path, typer.Argument(help="A .json file of acex explain or batch, or a page of acex report.")],
    black_box: ModelFlags,
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

    Example: acex verify why.json --model bank:decide

    Without --model nothing is sent. With it two rows are sent and paid for, of a
    batch two for each row: the row itself and its counterfactual. The checksum
    detects accidents; only a signature, checked with --key, protects against
    forgery. A signed file needs the extra sign, any other nothing else to be
    installed. Exit code 1: something does not hold; 2: the file cannot be read.
    """
    from acex.audit.verify import Check, checksum, n_queries
    from acex.audit.verify import verify as checked
    from acex.engine.certificate import parsed, read_key, signer

    text, document = read_document(file)
    is_batch, documents = "rows" in document, explanations_in(document)
    if unknown := [name for name in row or () if name not in documents]:
        raise ValueError(f"{file}: --row {listed(unknown)} has no explanation here; there are {listed(documents)}.")
    documents = {name: one for name, one in documents.items() if not row or name in row}
    model = acex.Model(black_box.open()) if black_box.model else None
    if key is not None and signer(document) is not None:
        read_key(key, "public")  # outside try: an error about the key is not one about the file
    try:
        private = None if left_out is None else parsed(left_out.read_text(encoding="utf-8"))
    except MALFORMED as error:
        raise ValueError(f"--left-out {left_out}: {error}") from None
    try:
        if model is not None:
            n_rows = counted(sum(n_queries(one) for one in documents.values()), "row")
            say(f"{n_rows} will be sent and paid for; no ledger and no budget counts them.")
        of_file = [checksum(document, key)] if is_batch else []
        if "groups" in document:
            of_file.append(Check("groups", None, "the comparison of groups is stated, not computed again."))
        results = []
        for name, one in documents.items():
            mine = private.get(name, {}) if is_batch and private is not None else private
            results.append(checked(one, model=model, key=key, left_out=mine))
        of_file += [Check("page", False, fault) for fault in _page_faults(file, text)]
    except MALFORMED as error:
        raise unreadable(file, error) from None
    wrong = [check.words for check in of_file if check.holds is False]
    holds = not wrong and all(result.holds for result in results)
    if as_json:
        rows = [{"row": r.row, "holds": r.holds, "checks": [c._asdict() for c in r.checks]} for r in results]
        print_json({"holds": holds, "file": wrong, "explanations": rows})
    else:
        _print(results, of_file, holds)
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
        sum_of(document)  # raises if it is nested too deeply
    except MALFORMED as error:
        raise unreadable(file, error) from None
    return text, document


def unreadable(file: Path, error: Exception) -> ValueError:
    """The error for a file that is not a document of acex."""
    why = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return ValueError(f"{file} cannot be read as a document of acex explain, batch or report: {why}")


def explanations_in(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The documents of a batch by row name; a single document has the name ""."""
    if not isinstance(document, dict):
        raise ValueError("expected an object")
    if "rows" not in document:
        return {"": document}
    return {str(line["row"]): line["explanation"] for line in document["rows"] if line["explanation"] is not None}


def _page_faults(file: Path, certificate: str) -> list[str]:
    """A message if a page differs from the one rendered from its certificate, otherwise nothing."""
    if file.suffix.lower() not in PAGES:
        return []
    from acex.show.report import page_of

    is_same = page_of(certificate) == file.read_text(encoding="utf-8")
    return [] if is_same else ["the page differs from its certificate: changed, or of another version of acex."]


def _print(results: list[Verified], of_file: list[Check], holds: bool) -> None:
    out = console()
    words = {True: "holds", False: "FAILS", None: "not checked"}
    for result in results:
        if len(results) > 1 and result.holds:
            continue
        if result.row is not None:
            out.print(str(result.row), style="bold")
        out.print(table(("promise", "", ""), [(c.promise, words[c.holds], c.words) for c in result.checks]))
    if len(results) > 1:
        out.print(f"{sum(result.holds for result in results)} of {len(results)} explanations hold.")
    for check in of_file:
        out.print(f"The file: {check.words}", soft_wrap=True)
    out.print("It holds." if holds else "It does not hold.")


def report(
    output: OutputFlags,
    source: Annotated[str, typer.Argument(help="A ledger, or a .json file that --out of acex explain or batch wrote.")],
    row_id: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="NAME", help="The name of a row, or a prefix of an explanation's id. Can be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A file for one explanation, a folder for several; by default named by SOURCE.")
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="report, or notice: a page in plain words for the person concerned.")
    ] = "report",
    fields: Annotated[
        Path | None, typer.Option(dir_okay=False, help="TOML file with the parts of a notice that acex cannot know.")
    ] = None,
    template: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="The sentences of a notice: english, german or a TOML file.")
    ] = "english",
) -> None:
    """Write explanations as HTML pages: what to change, what was queried, how sure it is.

    Example: acex report loans.db --out reports

    Neither model nor data are needed, and nothing is sent. Each page is one
    file that needs no network. Several explanations get a page each and an index.
    """
    from acex.engine.explanation import without
    from acex.show.html import index_page
    from acex.show.report import page

    refuse_overwriting([out], [source, output.sign, fields, template])
    explanations, prices = (_from_file(Path(source)), {}) if source.endswith(".json") else _from_ledger(source)
    if row_id:
        explanations = {name: e for name, e in explanations.items() if _is_called(row_id, name, e)}
        if not explanations:
            raise ValueError(f"{source}: there is no explanation of {listed(row_id)}.")
        # After corrected labels, a search is continued by another one with the same name.
        current = {name: e for name, e in explanations.items() if not any(r.code == "corrected" for r in e.remarks)}
        explanations = current or explanations
    if profile == "notice" and len(explanations) > 1:
        raise ValueError(f"--profile notice is for one person, and {source} has {len(explanations)} rows; use --id.")
    explanations = {name: without(e, output.columns) for name, e in explanations.items()}  # before the index is written
    pages = [
        page(e, profile, sign=output.sign, price_per_row=prices.get(name), fields=fields, template=template)
        for name, e in explanations.items()
    ]
    start, *paths = _paths(explanations, out, "report" if "://" in source else Path(source).stem)
    paths = paths or [start]
    for path, text in zip(paths, pages, strict=True):
        path.write_text(text, encoding="utf-8")
    if len(paths) > 1:
        entries = [(path.name, e) for path, e in zip(paths, explanations.values(), strict=True)]
        start.write_text(index_page(entries), encoding="utf-8")
    console().print(f"{counted(len(paths), 'report')}: open {start}", soft_wrap=True)


def _from_file(path: Path) -> dict[str, acex.Explanation]:
    """The explanations in a file by row name; a single explanation has the name ""."""
    from acex.engine.certificate import sum_of

    text, document = read_document(path)
    certificate = document.get("certificate")
    if isinstance(certificate, dict) and certificate.get("sha256") != sum_of(document):
        say(f"warning: {path}: checksum mismatch; the file was changed after it was written.")
    for line in document.get("rows", ()):
        if line["explanation"] is None:
            say(f"left out: row {line['row']}: {line['error'] or 'not explained'}")
    try:
        documents = explanations_in(json.loads(text))
        explanations = {name: acex.Explanation.from_json(json.dumps(one)) for name, one in documents.items()}
    except MALFORMED as error:
        raise unreadable(path, error) from None
    if not explanations:
        raise ValueError(f"{path}: none of its {len(document['rows'])} rows has an explanation.")
    return explanations


def _from_ledger(where: str) -> tuple[dict[str, acex.Explanation], dict[str, float | None]]:
    """The explanations in a ledger, and the price per row of each one's model, by identity."""
    explanations, prices = {}, {}
    with opened(where) as book:
        for line in records(book.tables.explanations()):
            try:
                explanations[line["id"]] = acex.load_explanation(book, line["id"])
                prices[line["id"]] = book.account(line["model_id"]).price_per_row
            except ValueError as error:
                say(f"left out: {error}")
    if not explanations:
        raise ValueError(f"{where}: expected an explanation with an answer; there are none.")
    return explanations, prices


def _is_called(wanted: list[str], identity: str, e: acex.Explanation) -> bool:
    """Whether any of these is the name of the row or a prefix of the identity."""
    joined = str(e.settings.get("id", ""))  # one name, or all of them
    names = [joined, *joined.split(", ")]
    return any(text in names or (len(text) >= SHORTEST and identity.startswith(text)) for text in wanted)


def _paths(explanations: dict[str, acex.Explanation], out: Path | None, stem: str) -> list[Path]:
    """The file for a single explanation; for several, the index followed by one file each."""
    # An identity is a hash that includes redacted columns, so it must not be in a file name.
    names = [
        str(e.settings.get("id", f"explanation-{i}" if "redacted" in e.settings else name or stem))
        for i, (name, e) in enumerate(explanations.items())
    ]
    if len(names) == 1:
        path = Path(f"{stem}.html") if out is None else out
        if path.is_dir():
            return _inside(path, names)
        if path.suffix.lower() not in PAGES:
            raise ValueError(
                f"--out {path}: a report is an HTML page; name a file that ends in .html, or an existing folder."
            )
        return [path]
    folder = Path(f"{stem}-report") if out is None else out
    if folder.is_file() or (not folder.exists() and folder.suffix.lower() in PAGES):
        raise ValueError(f"--out {folder}: expected a folder for {len(names)} reports; choose one by its --id.")
    folder.mkdir(exist_ok=True)
    return _inside(folder, ["index", *names])


def _inside(folder: Path, names: list[str]) -> list[Path]:
    """A distinct path in the folder for each name.

    Names come from other people's files: only letters, digits, _ and - become part of a path.

    Raises:
        ValueError: a link in the folder would lead to a file outside of it.
    """
    paths: dict[str, Path] = {}
    for name in names:
        stem = free = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LENGTH]
        while free.lower() in paths:  # some file systems ignore case
            free = f"{stem}-{len(paths)}" if free == stem else f"{free}_"
        path = paths[free.lower()] = folder / f"{free}.html"
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path} is a link to a file outside of {folder}; remove it first.")
    return list(paths.values())
