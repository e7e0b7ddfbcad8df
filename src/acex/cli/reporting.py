"""`acex report`: explanations as HTML pages, from a ledger or a file alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.auditing import MALFORMED, PAGES, explanations_in, read_document, unreadable
from acex.cli.ledgers import ModelName, chosen, opened, price_of
from acex.cli.program import AsJson, say
from acex.cli.show import console, counted, print_json
from acex.cli.tables import Seal, refuse_overwriting
from acex.values import listed

LENGTH = 24  # of a file name, without its suffix


def report(
    seal: Seal,
    source: Annotated[str, typer.Argument(help="A ledger, or a .json file that --out of acex explain or batch wrote.")],
    explanation: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this explanation; the beginning of its id is enough.")
    ] = None,
    row_id: Annotated[
        list[str] | None, typer.Option("--id", metavar="NAME", help="Only the row of this name. Can be repeated.")
    ] = None,
    model_name: ModelName = None,
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
    as_json: AsJson = False,
) -> None:
    """Write explanations as HTML pages: what to change, what was queried, how sure it is.

    Example: acex report loans.db --out reports

    Neither model nor data are needed, and nothing is sent. Each page is one
    file that needs no network. Several explanations get a page each and an index.
    """
    from acex.show.pages import page, without
    from acex.show.report import index_page

    refuse_overwriting(out, source)
    prices: dict[str, float | None] = {}
    if source.endswith(".json"):
        if explanation is not None or model_name is not None:
            raise ValueError("--explanation and --model-name choose from a ledger, not from a .json file.")
        explanations = _from_file(Path(source))
    else:
        explanations, prices = _from_ledger(source, explanation, model_name)
    if row_id:
        explanations = {
            name: e for name, e in explanations.items() if set(row_id) & set(str(e.settings.get("id")).split(", "))
        }
        if not explanations:
            raise ValueError(f"{source}: no explanation of a row called {listed(row_id)}.")
    explanations = {name: without(e, seal.columns) for name, e in explanations.items()}  # also for the index
    pages = [
        page(e, profile, sign=seal.sign, price_per_row=prices.get(name), fields=fields, template=template)
        for name, e in explanations.items()
    ]
    start, *paths = _paths(explanations, out, "report" if "://" in source else Path(source).stem)
    paths = paths or [start]
    for path, text in zip(paths, pages, strict=True):
        path.write_text(text, encoding="utf-8")
    if len(paths) > 1:
        entries = [(path.name, e) for path, e in zip(paths, explanations.values(), strict=True)]
        start.write_text(index_page(entries), encoding="utf-8")
    if as_json:
        named = zip(explanations.items(), paths, strict=True)
        lines = [{"explanation": name or None, "outcome": e.outcome, "file": str(path)} for (name, e), path in named]
        print_json({"reports": lines, "open": str(start)})
    else:
        console().print(f"{counted(len(paths), 'report')}: open {start}", soft_wrap=True)


def _from_file(path: Path) -> dict[str, acex.Explanation]:
    """The explanations in a file: one without a name, or those of a batch by the names of their rows."""
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


def _from_ledger(
    where: str, identity: str | None, model_name: str | None
) -> tuple[dict[str, acex.Explanation], dict[str, float | None]]:
    """Explanations of a ledger, and the prices of a row, by identity."""
    with opened(where) as book:
        lines = book.tables.explanations(None if model_name is None else chosen(book, model_name))
        known = dict(zip(lines["id"].tolist(), lines["model_id"].tolist(), strict=True))
        found = [i for i in known if identity is None or i.startswith(identity)]
        if not found or (identity is not None and len(found) > 1):
            wanted = "an explanation" if identity is None else f"exactly one explanation that begins with {identity!r}"
            raise ValueError(f"{where}: expected {wanted}; there are {listed(known) or 'none'}.")
        explanations = {}
        for i in found:
            try:
                explanations[i] = acex.load_explanation(book, i)
            except ValueError as error:
                if len(found) == 1:
                    raise
                say(f"left out: {error}")
        if not explanations:
            raise ValueError(f"{where}: none of its {len(found)} explanations has an answer yet.")
        return explanations, {i: price_of(book, known[i]) for i in explanations}


def _paths(explanations: dict[str, acex.Explanation], out: Path | None, stem: str) -> list[Path]:
    """The file of a single explanation, or for several the index and one file each."""
    # An identity is a hash of all columns, also of redacted ones.
    names = [
        str(e.settings.get("id", f"explanation-{i}" if "redacted" in e.settings else name or stem))
        for i, (name, e) in enumerate(explanations.items())
    ]
    if len(names) == 1:
        path = Path(f"{stem}.html") if out is None else out
        return _inside(path, names) if path.is_dir() else [path]
    folder = Path(f"{stem}-report") if out is None else out
    if folder.is_file() or (not folder.exists() and folder.suffix.lower() in PAGES):
        raise ValueError(f"--out {folder}: expected a folder for {len(names)} reports; --explanation chooses one.")
    folder.mkdir(exist_ok=True)
    return _inside(folder, ["index", *names])


def _inside(folder: Path, names: list[str]) -> list[Path]:
    """A page for each name, all different and all in the folder.

    Names come from other people's files: only letters, digits, _ and - become part of a path.

    Raises:
        ValueError: a page would be written elsewhere, through a link in the folder.
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
