"""`acex studio`: web pages for exploring "what if" questions."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, replace
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli import flags
from acex.cli.case import BatchCase, ModelFlags, Prepared
from acex.cli.flags import Given
from acex.cli.program import Price, say
from acex.cli.show import console
from acex.cli.tables import TableFlags, column_names

if TYPE_CHECKING:
    from acex.studio.workspace import Workspace

TOKEN = "ACEX_STUDIO_TOKEN"  # environment variable that sets the token, so that it survives restarts
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class StudioCase(BatchCase):
    """The flags about the data, and the initial options of the page."""

    data: Annotated[
        Path, typer.Argument(metavar="DATA", show_default=False, help="Known rows: .csv, .parquet, .json.")
    ] = Path()
    row: Annotated[list[int] | None, typer.Option(hidden=True)] = None
    where: Annotated[str | None, typer.Option(hidden=True)] = None
    x: Annotated[Path | None, typer.Option(hidden=True)] = None


def studio(
    case: StudioCase,
    black_box: ModelFlags,
    demo: Annotated[bool, typer.Option("--demo", help="Bundled loans and a small forest; needs no files.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; other machines need the token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8017,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Host name under which browsers may open it.")
    ] = None,
    price_per_row: Price = None,
    budget_total: Annotated[
        int | None,
        typer.Option(min=0, help="Maximum number of rows that all users of the ledger together may send."),
    ] = None,
) -> None:
    """Open a page where a person picks a row, chooses what may change, and asks "what if".

    Example: acex studio loans.csv --model bank:decide --outcomes decision --drop id
    --ledger loans.db --model-name bank-1

    Nothing is sent before it is confirmed on the page, which shows the price first.
    With --ledger, answers outlive the studio, and an interrupted search continues.
    """
    try:
        from acex.studio.app import studio_app
        from acex.studio.server import serve
    except ImportError:
        raise acex.MissingExtra("acex studio", "studio") from None
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="acex-studio-") as folder:
        ledger = acex.Ledger(Path(folder) / "ledger.db" if case.ledger is None else case.ledger)
        if demo:
            from acex.studio.demo import demo_workspace

            workspace = demo_workspace(ledger, price=price_per_row)
        else:
            workspace = make_workspace(case, black_box, ledger, price=price_per_row)
        if budget_total is not None:
            ledger.budget(workspace.explainer.model_id, rows=budget_total)
        sock = _listening(host, port)
        port = sock.getsockname()[1]
        token = None if host in LOCAL else environ.get(TOKEN) or secrets.token_urlsafe(24)
        is_any = host in ("0.0.0.0", "::")  # the machine's addresses are then unknown
        hosts = [*(allow_host or ()), _in_url(host)]
        app = studio_app(workspace, port=port, hosts=hosts, any_address=is_any, token=token)
        _print_address(host, port, token, is_kept=case.ledger is not None)
        serve(app, sock)


def make_workspace(
    case: StudioCase, black_box: ModelFlags, ledger: acex.Ledger, *, price: float | None = None
) -> Workspace:
    """The workspace described by files and flags."""
    from acex.studio.request_parsing import options_by_name
    from acex.studio.workspace import Workspace

    if case.data == Path() or not black_box.model:
        raise ValueError("expected DATA and --model, or --demo; see acex studio --help.")
    if case.row is not None or case.where is not None or case.x is not None:
        raise ValueError("--row, --where and --x are for acex explain; in the studio, choose the row on the page.")
    model = black_box.open(case.given.get("timeout"))
    if case.ledger is None and "name" not in case.given and getattr(model, "model_id", None) is None:
        case = replace(case, given=Given(case.given | {"name": "model"}))  # good enough for a temporary ledger
    prepared = case.prepare(model)
    column = case.given.get("outcomes")
    return Workspace(
        explainer=case.explainer(prepared, ledger),
        model=prepared.model,
        table=prepared.table.drop(columns=[name for name in (column, case.id_column) if name is not None]),
        rows=prepared.factual,  # all rows, numbered like `acex explain --row`
        setup=_python(case, black_box, prepared),
        outcomes=None if column is None else prepared.table[column].tolist(),  # including missing ones
        names=None if prepared.ids is None else [str(name) for name in prepared.ids],
        options=options_by_name(prepared.options),
        price=price,
        title=case.data.name,
    )


# -- code that leads to the same explainer -----------------------------------------------------------------------


def _python(case: StudioCase, black_box: ModelFlags, prepared: Prepared) -> str:
    """Code that defines `explainer` and `rows`; a ledger's URL, which may contain a password, is left out."""
    from acex.studio.exports import literal

    given, table = case.given, prepared.table
    is_url = case.ledger is not None and "://" in case.ledger
    imports = ["import os"] if is_url else []
    imports += ["from pathlib import Path", "import acex", "from acex.cli.tables import read_table"]
    usual = TableFlags().arguments
    changed = {name: value for name, value in case.reading.arguments.items() if value != usual[name]}
    read = f"read_table({', '.join([f'Path({str(case.data)!r})', *_keywords(changed)])})"
    hidden = column_names(case.drop, table.columns, "--drop")
    hidden += [name for name in (given.get("outcomes"), case.id_column) if name is not None]
    lines = [*_python_model(case, black_box, prepared), f"table = {read}"]
    lines += [f"rows = table.drop(columns={hidden!r})" if hidden else "rows = table"]
    has_gaps = len(prepared.rows) < len(prepared.factual)  # rows without an outcome
    arguments = ["model", "rows[known]" if has_gaps else "rows"]
    own = {name: given[name] for name in ("missing", "grid", "other") if name in given}
    kinds = {name: value for name, value in case.reading.kinds(table, hidden).items() if value}
    own |= {"relations": False} if given.get("relations") else {}
    if "grid" in own:
        own["grid"] = flags.grid(given["grid"], prepared.space)
    if "other" in own:
        others = ((f.name, getattr(f, "other", None)) for f in prepared.space.features)
        own["other"] = {name: category for name, category in others if category is not None}
    if case.schema is not None:
        imports.append("from acex.space.schema import read_schema, with_schema")
        kinds |= {"relations": False} if "relations" in own else {}
        described = ["rows", f"read_schema(Path({str(case.schema)!r}))", repr(own.get("missing", "drop"))]
        lines.append(f"rows, space = with_schema({', '.join([*described, *_keywords(kinds)])})")
        lines.append(f"space = space.with_grid({literal(own.get('grid'))}).adjust(other={literal(own.get('other'))})")
    elif own or kinds or has_gaps:
        lines.append(f"space = acex.Space.infer({', '.join(['rows', *_keywords(own | kinds)])})")
    arguments += ["space=space"] if case.schema is not None or own or kinds or has_gaps else []
    if has_gaps:
        lines.append(f"known = table[{given['outcomes']!r}].notna()")
    if "outcomes" in given:
        arguments.append(f"outcomes=table[{given['outcomes']!r}]{'[known]' if has_gaps else ''}.tolist()")
    if (kind := given.get("plausibility")) is not None:
        arguments.append(f"plausibility={None if kind == 'none' else f'acex.Plausibility(kind={kind!r})'}")
    if case.ledger is not None:
        arguments.append('ledger=os.environ["ACEX_LEDGER"]' if is_url else f"ledger={case.ledger!r}")
    arguments += ["share_answers=False"] if given.get("share_answers") else []
    arguments += [f"seed={given['seed']}"] if "seed" in given else []
    return "\n".join([*imports, "", *lines, f"explainer = acex.Explainer({', '.join(arguments)})", ""])


def _python_model(case: StudioCase, black_box: ModelFlags, prepared: Prepared) -> list[str]:
    """Code that defines `model`."""
    own = {name: getattr(prepared.model, name) for name in case.given.of("model")}
    if not black_box.model.startswith(("http://", "https://")):
        pickle = ", allow_pickle=True" if black_box.allow_pickle else ""
        loaded = f"acex.load_model({black_box.model!r}{pickle})"
    else:
        headers = dict(text.partition("=")[::2] for text in black_box.header_from_env or ())
        arguments = [repr(black_box.model), f"protocol={str(black_box.protocol)!r}"]
        arguments += [f"headers_from_env={headers!r}"] if headers else []
        if black_box.model_config is not None:
            arguments.append(f'**__import__("tomllib").loads(open({str(black_box.model_config)!r}).read())')
        own.pop("timeout", None)
        arguments += _keywords({name: case.given[name] for name in ("timeout",) if name in case.given})
        loaded = f"acex.HttpModel({', '.join(arguments)})"
    return [f"model = {loaded}", *([f"model = acex.Model({', '.join(['model', *_keywords(own)])})"] if own else [])]


def _keywords(arguments: dict[str, Any]) -> list[str]:
    from acex.studio.exports import literal

    return [f"{name}={literal(value)}" for name, value in arguments.items()]


# -- where it listens --------------------------------------------------------------------------------------------


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens on this address, so that a browser that connects before the server runs waits."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")
    except (OSError, OverflowError) as error:
        raise ValueError(f"cannot listen on {host}, port {port}: {error}. Choose another with --port.") from None


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _print_address(host: str, port: int, token: str | None, *, is_kept: bool) -> None:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else _in_url(host)
    address = f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")
    console().print(f"The studio is open: {address}", soft_wrap=True)
    if not is_kept:
        say("answers are kept until the studio is closed; --ledger FILE keeps them.")
    if token is not None:
        say(f"anyone with this address can spend your queries. It is not shown again; {TOKEN} sets another one.")
