"""`acex studio`: pages on which a person asks "what if"."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, fields, replace
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import acex
from acex.cli.case import BatchCase, ModelFlags
from acex.cli.flags import Given
from acex.cli.program import Price, say
from acex.cli.show import console
from acex.options import DECLARED

if TYPE_CHECKING:
    from acex.studio.workspace import SetupCode, Workspace

TOKEN = "ACEX_STUDIO_TOKEN"  # environment variable that sets the token, to keep it over restarts
LOCAL = ("127.0.0.1", "localhost", "::1")
ON_PAGE = ("data", "row", "where", "x", "target_range", "increase", "decrease", "given")  # not part of the set-up code


@dataclass(frozen=True)
class StudioCase(BatchCase):
    """What the flags say about the data, and the options that the page begins with."""

    data: Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help="Known rows: .csv or .parquet.")] = (
        Path()
    )
    row: Annotated[list[int] | None, typer.Option(hidden=True)] = None
    where: Annotated[str | None, typer.Option(hidden=True)] = None
    x: Annotated[Path | None, typer.Option(hidden=True)] = None


def studio(
    case: StudioCase,
    black_box: ModelFlags,
    demo: Annotated[bool, typer.Option("--demo", help="Bundled loans and a small forest; needs no files.")] = False,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines than this one need the token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8017,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Host name under which browsers may open it.")
    ] = None,
    price_per_row: Price = None,
    budget_total: Annotated[
        int | None,
        typer.Option(min=0, help="Most rows the model may ever be sent, by all users of the ledger."),
    ] = None,
) -> None:
    """Open a page where a person picks a row, chooses what may change, and asks "what if".

    Example: acex studio loans.csv --model loans.skops --outcomes decision --drop id
    --ledger loans.db

    Nothing is sent before it is confirmed on the page, which shows the price first.
    With --ledger, answers outlive the studio, and an interrupted search continues.
    """
    try:
        import uvicorn

        from acex.studio.app import studio_app
    except ImportError:
        raise acex.MissingExtra("acex studio", "studio") from None
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="acex-studio-") as folder:
        ledger = acex.Ledger(Path(folder) / "ledger.db" if case.ledger is None else case.ledger)
        if demo:
            from acex.studio.demo import demo_workspace

            workspace = demo_workspace(ledger, price=price_per_row, is_kept=case.ledger is not None)
        else:
            workspace = make_workspace(case, black_box, ledger, price=price_per_row)
        if budget_total is not None:
            ledger.budget(workspace.explainer.model_id, rows=budget_total)
        sock = _listening(host, port)
        port = sock.getsockname()[1]
        token = None if host in LOCAL else environ.get(TOKEN) or secrets.token_urlsafe(24)
        is_any = host in ("0.0.0.0", "::")  # then the addresses of this machine are not known here
        hosts = [*(allow_host or ()), _in_url(host)]
        app = studio_app(workspace, port=port, hosts=hosts, any_address=is_any, token=token)
        _print_address(host, port, token, is_kept=workspace.is_kept)
        settings = uvicorn.Config(
            app,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=2,
            limit_concurrency=256,
            h11_max_incomplete_event_size=64 * 1024,
            ws="none",
        )
        uvicorn.Server(settings).run(sockets=[sock])


def make_workspace(
    case: StudioCase, black_box: ModelFlags, ledger: acex.Ledger, *, price: float | None = None
) -> Workspace:
    """The workspace that files and flags describe."""
    from acex.studio.request_parsing import options_by_name
    from acex.studio.workspace import Workspace

    if case.data == Path() or not black_box.model:
        raise ValueError("expected DATA and --model, or --demo; see acex studio --help.")
    if case.row is not None or case.where is not None or case.x is not None:
        raise ValueError("--row, --where and --x choose a row for acex explain; here the page does.")
    model = black_box.open(case.given.get("timeout"))
    if case.ledger is None and "name" not in case.given and getattr(model, "model_id", None) is None:
        case = replace(case, given=Given(case.given | {"name": "model"}))  # a temporary ledger needs no better one
    prepared = case.prepare(model)
    column = case.given.get("outcomes")
    return Workspace(
        explainer=case.explainer(prepared, ledger),
        model=prepared.model,
        table=prepared.table.drop(columns=[] if column is None else [column]),
        rows=prepared.factual,  # all of them, in the order of `acex explain --row`
        setup=_setup_code(case, black_box),
        outcomes=None if column is None else prepared.table[column].tolist(),  # also where one is missing
        options=options_by_name(prepared.options),
        price=price,
        is_kept=case.ledger is not None,
        title=case.data.name,
    )


def _setup_code(case: StudioCase, black_box: ModelFlags) -> SetupCode:
    """The words of the same set-up in a shell; an address of a ledger, which may contain a password, is left out."""
    from acex.studio.request_parsing import PLAIN, READERS
    from acex.studio.workspace import SetupCode

    is_address = case.ledger is not None and "://" in case.ledger
    left_out = {*PLAIN, *READERS, *(["ledger"] if is_address else [])}
    given = {d.flag.partition(" ")[0]: case.given[d.name] for d in DECLARED if d.name in {*case.given} - left_out}
    fixed = {
        f"--{f.name.replace('_', '-')}": getattr(part, f.name)
        for part in (case, black_box)
        for f in fields(part)
        if f.name not in ON_PAGE and getattr(part, f.name) != f.default
    }
    words = [str(case.data)]
    for flag, value in (fixed | given).items():
        for each in value if isinstance(value, list) else [value]:
            words += [flag] if each is True else [flag, str(each)]
    python = f"import acex\n\n# rows: those of {case.data}; explainer = acex.Explainer(model, rows, ...)\n"
    return SetupCode(python, tuple(words), ledger_from_environment=is_address)


# -- where it listens --------------------------------------------------------------------------------------------


def _listening(host: str, port: int) -> socket.socket:
    """A socket at this address; a browser that connects before the server runs waits instead of being refused."""
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
