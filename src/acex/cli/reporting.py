"""`acex report`: explanations as HTML pages, from a ledger or a file alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.ledgers import ModelId, chosen, opened, price_of, spoken
from acex.cli.program import AsJson, say
from acex.cli.sealing import Seal
from acex.cli.show import console, counted, print_json
from acex.cli.tables import apart
from acex.values import listed

LENGTH = 24  # characters of a name that are part of a file's


def report(
    seal: Seal,
    source: Annotated[str, typer.Argument(help="A ledger, or a .json file that --out of acex explain or batch wrote.")],
    explanation: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this one; the beginning of its name is enough.")
    ] = None,
    row_id: Annotated[
        list[str] | None, typer.Option("--id", metavar="NAME", help="Only the row of this name. Repeat it for others.")
    ] = None,
    model_id: ModelId = None,
    out: Annotated[
        Path | None, typer.Option(help="A file for one explanation, a folder for several; by default named by SOURCE.")
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="NAME", help="report, or notice: a page in plain words for the person concerned.")
    ] = "report",
    fields: Annotated[
        Path | None, typer.Option(dir_okay=False, help="TOML file with what a notice has to say and acex cannot know.")
    ] = None,
    template: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="The sentences of a notice: english, german or a TOML file.")
    ] = "english",
    as_json: AsJson = False,
) -> None:
    """Write explanations as HTML pages: what to change, what was asked, how sure it is.

    Example: acex report loans.db --out reports

    Neither model nor data are needed, and nothing is asked. Each page is one
    file that needs no network. Several explanations get a page each and an index.
    """
    from acex.show.pages import page, without

    apart(out, source)
    if source.endswith(".json"):
        if explanation is not None or model_id is not None:
            raise ValueError("--explanation and --model-id choose from a ledger, not from a .json file.")
        explanations = _written(Path(source))
        prices: dict[str, float | None] = dict.fromkeys(explanations)
    else:
        explanations, prices = _recorded(source, explanation, model_id)
    if row_id:
        explanations = {
            name: e for name, e in explanations.items() if set(row_id) & set(str(e.settings.get("id")).split(", "))
        }
        if not explanations:
            raise ValueError(f"{spoken(source)}: no explanation is of a row called {listed(row_id)}.")
    explanations = {name: without(e, seal.columns) for name, e in explanations.items()}  # of the index page too
    pages = {
        name: page(e, profile, sign=seal.sign, price_per_row=prices[name], fields=fields, template=template)
        for name, e in explanations.items()
    }
    stem = "report" if "://" in source else Path(source).stem
    written = _one(pages, explanations, out, stem) if len(pages) == 1 else _several(pages, explanations, out, stem)
    if as_json:
        outcomes = {name: e.outcome for name, e in explanations.items()}
        lines = [{"explanation": n or None, "outcome": outcomes[n], "file": str(p)} for n, p in written.items()]
        print_json({"reports": lines, "open": str(_entrance(written))})
    else:
        console().print(f"{counted(len(written), 'report')}: open {_entrance(written)}", soft_wrap=True)


def _written(path: Path) -> dict[str, acex.Explanation]:
    """The explanations in a file: one without a name, or those of a batch by the names of their rows."""
    from acex.engine.certificate import parsed, sum_of

    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError(f"expected an object, got {type(data).__name__}")
        if isinstance(data.get("certificate"), dict) and data["certificate"].get("sha256") != sum_of(parsed(text)):
            say(f"warning: {path}: checksum mismatch: it was changed after it was written.")
        if "rows" not in data:
            return {"": acex.Explanation.from_json(path)}
        explanations = {}
        for i, line in enumerate(data["rows"]):
            if line["explanation"] is None:
                say(f"left out: row {line['row']}: {line['error'] or 'it was not asked'}")
            else:
                name = f"row-{line['row']}"
                whole = acex.Explanation.from_json(json.dumps(line["explanation"]))
                explanations[f"{name}-{i}" if name in explanations else name] = whole
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        why = f": {error}" if isinstance(error, ValueError) else "."
        raise ValueError(f"{path} is nothing that --out of acex explain or batch wrote{why}") from None
    if not explanations:
        raise ValueError(f"{path}: none of its {len(data['rows'])} rows has an explanation.")
    return explanations


def _recorded(
    where: str, name: str | None, model_id: str | None
) -> tuple[dict[str, acex.Explanation], dict[str, float | None]]:
    """The explanations that are wanted of a ledger, and the price of a row of each one's model, by name."""
    from acex.engine.recorded import recorded

    with opened(where) as book:
        lines = book.tables.explanations(None if model_id is None else chosen(book, model_id))
        known = dict(zip(lines["id"].tolist(), lines["model_id"].tolist(), strict=True))
        names = [i for i in known if name is None or i.startswith(name)]
        if not names or (name is not None and len(names) > 1):
            wanted = "an explanation" if name is None else f"exactly one explanation whose name begins with {name!r}"
            raise ValueError(f"{spoken(where)}: expected {wanted}; there are {listed(known) or 'none'}.")
        explanations = {}
        for i in names:
            try:
                explanations[i] = recorded(book, i)
            except ValueError as error:
                if len(names) == 1:
                    raise
                say(f"left out: {error}")
        if not explanations:
            raise ValueError(f"{spoken(where)}: none of its {len(names)} explanations has an answer yet.")
        return explanations, {i: price_of(book, known[i]) for i in explanations}


def _one(
    pages: dict[str, str], explanations: dict[str, acex.Explanation], out: Path | None, stem: str
) -> dict[str, Path]:
    [(name, page)] = pages.items()
    path = Path(f"{stem}.html") if out is None else out
    if path.is_dir():
        [path] = _inside(path, [_called(name or stem, explanations[name], 0)])
    path.write_text(page, encoding="utf-8")
    return {name: path}


def _several(
    pages: dict[str, str], explanations: dict[str, acex.Explanation], out: Path | None, stem: str
) -> dict[str, Path]:
    from acex.show.report import index_page

    folder = Path(f"{stem}-report") if out is None else out
    if folder.is_file() or (not folder.exists() and folder.suffix.lower() in (".html", ".htm")):
        raise ValueError(f"--out {folder}: expected a folder for {len(pages)} reports; --explanation chooses one.")
    folder.mkdir(exist_ok=True)
    # What the row is called, where a ledger knows it; a file of a batch has named its rows already.
    names = [name if name.startswith("row-") else _called(name, explanations[name], i) for i, name in enumerate(pages)]
    first, *others = _inside(folder, ["index", *names])
    written = dict(zip(pages, others, strict=True))
    for name, path in written.items():
        path.write_text(pages[name], encoding="utf-8")
    first.write_text(index_page([(written[name].name, e) for name, e in explanations.items()]), encoding="utf-8")
    return written


def _called(name: str, e: acex.Explanation, i: int) -> str:
    """What a page is called: as its row is; else as the explanation, which is a hash of the row, or by a number."""
    return str(e.settings.get("id", name if "redacted" not in e.settings else f"explanation-{i}"))


def _inside(folder: Path, names: list[str]) -> list[Path]:
    """A page for each name, all different and all in the folder.

    Names come from ledgers and files of others: of them only letters, digits, _ and - become part of a path.

    Raises:
        ValueError: a page would be written elsewhere, through a link that lies in the folder.
    """
    paths: list[Path] = []
    taken: set[str] = set()
    for name in names:
        stem = free = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:LENGTH]
        n = 1
        while free.lower() in taken:  # some file systems do not tell a from A
            n += 1
            free = f"{stem}-{n}"
        taken.add(free.lower())
        paths.append(folder / f"{free}.html")
        if not paths[-1].resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{paths[-1]} is a link to a place outside of {folder}; take it away first.")
    return paths


def _entrance(written: dict[str, Path]) -> Path:
    """The page to begin with."""
    paths = list(written.values())
    return paths[0] if len(paths) == 1 else paths[0].with_name("index.html")
