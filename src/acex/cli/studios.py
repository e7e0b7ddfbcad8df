"""`acex studio`: a page where a person asks "what if"."""

from __future__ import annotations

import secrets
from dataclasses import MISSING, dataclass, fields
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.case import Batch, Prepared, grid_steps
from acex.cli.explaining import named
from acex.cli.models import Model
from acex.cli.program import finite, say
from acex.cli.show import console
from acex.cli.tables import read_table, separator

if TYPE_CHECKING:
    from acex.studio.workspace import Desk

TOKEN = "ACEX_STUDIO_TOKEN"  # the variable that holds it, for who wants the same after a restart
# What the page itself says, or the command to take along: not part of how to come to the same explainer.
SAID = {"data", "row", "where", "x", "target", "freeze", "increase", "decrease", "range", "weight", "budget", "count"}
SAID |= {"margin", "max_changes", "target_range", "effort"}
HERE = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Room(Batch):
    """What the options say about the data, and about what may change unless the page says otherwise."""

    data: Annotated[Path, typer.Argument(metavar="DATA", show_default=False, help="Known rows: .csv or .parquet.")] = (
        Path()
    )
    row: Annotated[int | None, typer.Option(hidden=True)] = None
    where: Annotated[str | None, typer.Option(hidden=True)] = None
    x: Annotated[Path | None, typer.Option(hidden=True)] = None
    budget: Annotated[int, typer.Option(min=2, help="Most rows to send for a search, unless the page says more.")] = 30


@dataclass(frozen=True)
class OwnModel(Model):
    """The same as for other commands, but the demonstration brings its own."""

    model: Annotated[
        str, typer.Option(show_default=False, help="A file, module:name for Python code, or http(s)://...")
    ] = ""


def studio(
    room: Room,
    black_box: OwnModel,
    demo: Annotated[bool, typer.Option("--demo", help="Bundled loans and a small forest; nothing to prepare.")] = False,
    scores: Annotated[bool, typer.Option("--scores", help="The model gives probabilities; use them.")] = False,
    host: Annotated[str, typer.Option(help="Where to listen; others than this machine need the token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8017,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name under which browsers may reach it.")
    ] = None,
    price_per_row: Annotated[
        float | None, typer.Option(min=0, callback=finite, help="What a row costs; by default as the ledger has it.")
    ] = None,
    budget_total: Annotated[
        int | None,
        typer.Option(min=0, help="Most rows the model may ever be sent, by anybody: a budget of the ledger."),
    ] = None,
) -> None:
    """Open a page where a person picks a row, says what may change, and asks "what if".

    Example: acex studio loans.csv --model loans.skops --labels decision --drop id
    --ledger loans.db

    Nothing is asked before the page says so, and it says what that costs. With
    --ledger, answers outlive the studio, and a search that was cut off goes on.
    """
    try:
        import uvicorn

        from acex.studio.app import studio_app
    except ImportError:
        raise acex.MissingExtra("acex studio", "studio") from None
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="acex-studio-") as folder:
        ledger = acex.Ledger(Path(folder) / "ledger.db" if room.ledger is None else room.ledger)
        if demo:
            from acex.studio.demo import demo_desk

            desk = demo_desk(ledger, price=price_per_row, is_kept=room.ledger is not None)
        else:
            desk = _desk(room, black_box, ledger, scores=scores, price=price_per_row)
        if budget_total is not None:
            ledger.budget(desk.explainer.model_id, rows=budget_total)
        sock = _listening(host, port)
        port = sock.getsockname()[1]
        token = None if host in HERE else environ.get(TOKEN) or secrets.token_urlsafe(24)
        is_any = host in ("0.0.0.0", "::")  # then no address of ours is known here
        app = studio_app(desk, port=port, hosts=[*(allow_host or ()), _spoken(host)], any_address=is_any, token=token)
        _say_where(host, port, token, is_kept=desk.is_kept)
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


def _desk(room: Room, black_box: OwnModel, ledger: acex.Ledger, *, scores: bool, price: float | None) -> Desk:
    """What the page is about, from files and options."""
    from acex.models.adapters import known_labels
    from acex.models.labels import unworded
    from acex.studio.workspace import Desk

    if room.data == Path() or not black_box.model:
        raise ValueError("expected DATA and --model, or --demo; see acex studio --help.")
    if room.row is not None or room.where is not None or room.x is not None:
        raise ValueError("--row, --where and --x choose a row for acex explain; here the page does.")
    model = black_box.open()
    known = known_labels(model)
    prepared = room.prepare(known)
    case = named(room, model)
    if case.model_id is None and room.ledger is None:
        case = _with_name(case)
    explainer = case.explainer(prepared, model, ledger, scores=scores, timeout=black_box.patience)
    table = read_table(room.data, room.decimal)
    outcomes = None if room.labels is None else table[room.labels].tolist()  # also where one is missing
    by_word: dict[Any, Any] = {word: label for label, word in explainer.class_names.items()}
    labels = known or unworded(dict.fromkeys(prepared.labels or ()), by_word)
    hidden = [] if room.labels is None else [room.labels]
    return Desk(
        explainer=explainer,
        table=table.drop(columns=hidden),
        rows=prepared.factual,  # all of them, as `acex explain --row` counts them
        recipe=_recipe(room, black_box, scores, prepared),
        outcomes=outcomes,
        labels=tuple(labels),
        scores=scores,
        wishes=case.search_options(prepared),
        price=price,
        is_kept=room.ledger is not None,
        title=room.data.name,
    )


def _with_name(case: Any) -> Any:
    from dataclasses import replace

    return replace(case, model_id="model")  # a ledger that ends with the studio needs no better one


def _recipe(room: Room, black_box: OwnModel, scores: bool, prepared: Prepared | None = None) -> Any:
    """How to come to the same explainer in a shell or in Python; passwords of addresses are left to the environment."""
    from acex.studio.workspace import Recipe

    words = [str(room.data), *_words(room, SAID | {"ledger"}), *_words(black_box, set())]
    is_address = room.ledger is not None and "://" in room.ledger
    ledger = None if room.ledger is None else 'os.environ["ACEX_LEDGER"]' if is_address else repr(room.ledger)
    shell = (*words, *(("--scores",) if scores else ()))
    if room.ledger is not None and not is_address:
        shell = (*shell, "--ledger", room.ledger)
    return Recipe(_python(room, black_box, scores, ledger, prepared), shell, environment=is_address)


def _words(options: Any, left_out: set[str]) -> list[str]:
    """Options as they would be typed, those aside that say nothing."""
    words: list[str] = []
    for one in fields(options):
        value = getattr(options, one.name)
        default = None if one.default is MISSING else one.default
        if one.name in left_out or value is None or value == default:
            continue
        name = f"--{one.name.replace('_', '-')}"
        if value is True:
            words.append(name)
        else:
            for each in value if isinstance(value, list) else [value]:
                words += [name, str(each)]
    return words


def _python(room: Room, black_box: OwnModel, scores: bool, ledger: str | None, prepared: Prepared | None) -> str:
    """The lines that define `explainer` and `rows`."""
    has_gaps = prepared is not None and len(prepared.rows) < len(prepared.factual)  # rows without an outcome
    path = str(room.data)
    read = "read_parquet" if room.data.suffix.lower() in (".parquet", ".pq") else "read_csv"
    hidden = [*(name.strip() for text in room.drop or () for name in text.split(",")), *filter(None, [room.labels])]
    lines = [*(["import os"] if ledger and ledger.startswith("os.") else []), "import acex", "import pandas as pd", ""]
    if read == "read_csv" and (room.decimal == "," or separator(room.data) != ","):
        lines[0:0] = ["from pathlib import Path", "from acex.cli.tables import read_table"]
        reads = f"read_table(Path({path!r}), decimal={room.decimal!r})"
    else:
        reads = f"pd.{read}({path!r})"
    lines += [_python_model(black_box), f"table = {reads}"]
    lines += [f"rows = table.drop(columns={hidden!r})" if hidden else "rows = table"]
    arguments = ["model", "rows[known]" if has_gaps else "rows"]
    if room.schema is not None or has_gaps:
        schema = "[]" if room.schema is None else f"read_schema(Path({str(room.schema)!r}))"
        lines[0:0] = ["from pathlib import Path", "from acex.space.schema import read_schema, with_schema"]
        keep = "" if room.missing == "drop" else f", {room.missing!r}"
        lines.append(f"rows, space = with_schema(rows, {schema}{keep})")
        arguments.append("space=space")
    if has_gaps:
        lines.append(f"known = table[{room.labels!r}].notna()")
    if room.labels is not None:
        arguments.append(f"labels=table{'[known]' if has_gaps else ''}[{room.labels!r}].tolist()")
    if prepared is not None and room.grid:
        arguments.append(f"grid={grid_steps(room.grid, prepared.space)!r}")
    if prepared is not None and prepared.class_names:
        arguments.append(f"class_names={prepared.class_names!r}")
    arguments += [f"missing={room.missing!r}"] if room.missing != "drop" else []
    if room.plausibility is not None:
        kind = None if room.plausibility == "none" else f"acex.Plausibility(kind={room.plausibility!r})"
        arguments.append(f"plausibility={kind}")
    arguments += [f"ledger={ledger}"] if ledger else []
    arguments += [f"model_id={room.model_id!r}"] if room.model_id else []
    arguments += [f"seed={room.seed}"] if room.seed else []
    arguments += ["pool=False"] if room.no_pool else []
    arguments += ["scores=True"] if scores else []
    arguments += [f"timeout={black_box.patience!r}"] if black_box.patience else []
    return "\n".join([*lines, f"explainer = acex.Explainer({', '.join(arguments)})", ""])


def _python_model(black_box: OwnModel) -> str:
    if not black_box.model.startswith(("http://", "https://")):
        pickle = ", allow_pickle=True" if black_box.allow_pickle else ""
        return f"model = acex.load_model({black_box.model!r}{pickle})"
    headers = dict(text.partition("=")[::2] for text in black_box.header_from_env or ())
    told = [repr(black_box.model), f"protocol={str(black_box.protocol)!r}"]
    told += [f"headers_from_env={headers!r}"] if headers else []
    if black_box.model_config is not None:
        told.append(f'**__import__("tomllib").loads(open({str(black_box.model_config)!r}).read())')
    told += [f"timeout={black_box.timeout!r}"] if black_box.timeout is not None else []
    return f"model = acex.HttpModel({', '.join(told)})"


def _listening(host: str, port: int) -> Any:
    """A socket at this address; a port that is taken is said in one line."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(128)  # whoever opens the address at once waits a moment, and is not refused
    except (OSError, OverflowError) as error:
        sock.close()
        raise ValueError(f"cannot listen on {host}, port {port}: {error}. Choose another with --port.") from None
    return sock


def _spoken(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _say_where(host: str, port: int, token: str | None, *, is_kept: bool) -> None:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::") else _spoken(host)
    address = f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")
    console().print(f"The studio is open: {address}", soft_wrap=True)
    if not is_kept:
        say("answers are kept until the studio is closed; --ledger FILE keeps them.")
    if token is not None:
        say(f"whoever has this address can spend your queries. It is not shown again; {TOKEN} sets another one.")
