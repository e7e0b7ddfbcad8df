"""`acex verify`: does an explanation hold what it promises?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acex.cli.flags import Given
from acex.cli.models import ModelFlags, Protocol, with_timeout
from acex.cli.program import NOTHING_FOUND, AsJson, finite, say
from acex.cli.show import console, counted, print_json, table
from acex.values import listed

if TYPE_CHECKING:
    from acex.audit.verify import Verified


def verify(
    file: Annotated[Path, typer.Argument(help="A .json file of acex explain or batch, or a page of acex report.")],
    model: Annotated[
        str | None, typer.Option(help="The model, to be asked again: a file, module:name or http(s)://...")
    ] = None,
    protocol: Annotated[Protocol | None, typer.Option(help="How an http address is asked.")] = None,
    model_config: Annotated[Path | None, typer.Option(help="TOML file for acex.HttpModel.")] = None,
    header_from_env: Annotated[
        list[str] | None, typer.Option(metavar="HEADER=VARIABLE", help="A header from an environment variable.")
    ] = None,
    allow_pickle: Annotated[bool, typer.Option("--allow-pickle", help="Load .joblib and .pkl.")] = False,
    timeout: Annotated[float | None, typer.Option(min=0.001, callback=finite, help="Seconds for a request.")] = None,
    row: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this row of a batch. Repeat it.")] = None,
    key: Annotated[
        Path | None, typer.Option(dir_okay=False, help="The public key (PEM) of the one who should have signed it.")
    ] = None,
    left_out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="What --redact left out: is it what was left out here?")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the sum, the signature and every promise of an explanation.

    Example: acex verify why.json --model loans.skops

    Without --model nothing is asked. With it two rows are asked and paid for,
    of a batch two for each row: the row itself and its counterfactual. The sum
    finds accidents; only a signature, checked with --key, protects against
    forgery. Exit code 1: something does not hold.
    """
    from acex.audit.verify import n_queries
    from acex.audit.verify import verify as checked
    from acex.engine.certificate import faults, parsed

    text = _certificate(file)
    try:
        document = parsed(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: it is no JSON of acex explain or batch, and no page ({error}).") from None
    if not isinstance(document, dict):
        raise ValueError(f"{file}: expected an object, got {type(document).__name__}.")
    documents, whole = _documents(document, row or [], file)
    private = None if left_out is None else parsed(left_out.read_text(encoding="utf-8"))
    box = None
    if model is not None:
        where = ModelFlags(model, protocol, model_config, header_from_env, allow_pickle)
        box = with_timeout(where.open(Given(timeout=timeout)), timeout)
        say(f"{counted(sum(n_queries(one) for one in documents.values()), 'row')} will be asked, and paid for.")
    wrong = faults(document, key) if whole else []
    results = []
    for name, one in documents.items():
        mine = private if not whole or private is None else private.get(name, {})
        results.append(checked(one, model=box, key=key, left_out=mine))
    differs = _page_fault(file, text)
    holds = not wrong and differs is None and all(result.holds for result in results)
    if as_json:
        rows = [{"row": r.row, "holds": r.holds, "checks": [c._asdict() for c in r.checks]} for r in results]
        print_json({"holds": holds, "file": [*wrong, *([differs] if differs else [])], "explanations": rows})
    else:
        _print(results, [*wrong, *([differs] if differs else [])], holds)
    if not holds:
        raise typer.Exit(NOTHING_FOUND)


def _certificate(file: Path) -> str:
    if file.is_dir():
        raise ValueError(f"{file} is a folder; name one of its pages, such as {file}/NAME.html.")
    if not file.is_file():
        raise ValueError(f"{file}: there is no such file.")
    text = file.read_text(encoding="utf-8")
    if file.suffix.lower() not in (".html", ".htm"):
        return text
    from acex.show.report import certificate_in

    try:
        return certificate_in(text)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _documents(document: dict[str, Any], rows: list[str], file: Path) -> tuple[dict[str, dict[str, Any]], bool]:
    """The explanations of a file by name, and whether it is one of a batch."""
    if "rows" not in document:
        if rows:
            raise ValueError(f"{file}: --row chooses from a batch, and this is one explanation.")
        return {"": document}, False
    every = {str(line["row"]): line["explanation"] for line in document["rows"] if line["explanation"] is not None}
    unknown = [name for name in rows if name not in every]
    if unknown:
        raise ValueError(f"{file}: --row {listed(unknown)} has no explanation here; there are {listed(every)}.")
    return {name: one for name, one in every.items() if not rows or name in rows}, True


def _page_fault(file: Path, text: str) -> str | None:
    """What is wrong with a page beside its certificate: it must be the one that the certificate makes."""
    if file.suffix.lower() not in (".html", ".htm"):
        return None
    import acex
    from acex.show.report import page_of

    if page_of(text) == file.read_text(encoding="utf-8"):
        return None
    by = json.loads(text)["settings"].get("acex")
    other = "" if by == acex.__version__ else f" (or acex {by} wrote it otherwise than {acex.__version__} does)"
    return f"the page does not say what its certificate says: it was changed{other}."


def _print(results: list[Verified], wrong: list[str], holds: bool) -> None:
    out = console()
    words = {True: "holds", False: "FAILS", None: "not checked"}
    for result in results:
        if len(results) > 1 and result.holds:
            continue
        if result.row is not None:
            out.print(str(result.row), style="bold")
        lines = [(check.promise, words[check.holds], check.words) for check in result.checks]
        out.print(table(("promise", "", ""), lines))
    for fault in wrong:
        out.print(f"The file: {fault}", soft_wrap=True)
    n = len(results)
    good = sum(result.holds for result in results)
    out.print(
        f"{good} of {counted(n, 'explanation')} hold." if n > 1 else "It holds." if holds else "It does not hold."
    )
