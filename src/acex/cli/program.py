"""The program `acex`: exit codes, error messages, and flags shared by commands.

The modules of commands import only what declares the flags at the top. Everything else is imported when a command
runs, so that `--help` is fast.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

import acex
from acex.cli.flags import Given, flag_parameters
from acex.cli.show import echo
from acex.errors import AcexError, BudgetSpent, ExecutorFailed, LedgerFailed, ModelFailed

if TYPE_CHECKING:
    from acex.ledger import BaseLedger

# 0: success, including "nothing to change".
NOTHING_FOUND = 1  # no counterfactual, changed labels, or a failed verification
WRONG = 2  # wrong flags or files
FAILED = 3  # the model, the ledger or the workers failed, or the budget is spent
WAITING = 4  # `acex ask` has written rows that need a label
STOPPED = 130  # by Ctrl-C, the usual code in shells

FAILURES = (ModelFailed, LedgerFailed, ExecutorFailed, BudgetSpent)
UsageError: Any = typer.BadParameter.__bases__[0]  # from click, or from typer's own copy of it
PASSWORD = re.compile(r"(:/{1,3}[^\s/:@]*):\S*@")  # in a URL, even if a slash is missing or the password contains an @
SECRET = re.compile(r"([?&;]\w*(?:pass|pwd|secret|token|key)\w*=)[^&;\s'\"]*", re.IGNORECASE)


class Commands(TyperGroup):
    """A group of commands that prints errors a user can fix as one line, without a traceback."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with _errors_shown():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _errors_shown():
            return super().invoke(ctx)


@contextmanager
def _errors_shown() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except UsageError as error:
        if not (text := error.format_message().rstrip(".")):  # the help is shown instead
            raise
        where = error.ctx.command_path if error.ctx else "acex"
        say(f"{text}{'' if text.endswith('?') else '.'} See {where} --help.")
        raise typer.Exit(WRONG) from error
    except (ValueError, OSError, AcexError) as error:
        missing = isinstance(error, FileNotFoundError) and error.filename
        say(" ".join([f"{missing}: no such file." if missing else str(error), *getattr(error, "__notes__", ())]))
        raise typer.Exit(FAILED if isinstance(error, FAILURES) else WRONG) from error
    except KeyboardInterrupt:
        say("stopped.")
        raise typer.Exit(STOPPED) from None


def stopped(ledger: BaseLedger, what: str = "") -> typer.Exit:
    """Print what happens to paid answers after Ctrl-C, and return the exception that ends the command."""
    say(f"stopped{what}. {how_to_continue(ledger)}")
    return typer.Exit(STOPPED)


def how_to_continue(ledger: BaseLedger) -> str:
    """A sentence on what happens to paid answers when a command ends early."""
    if ledger.is_memory:
        return "The answers are lost; with --ledger FILE they are recorded, and the same command continues."
    return "The same command continues from here; only rows in flight may be paid for again."


def say(message: str) -> None:
    """Print a message on one line of stderr, with passwords and keys in URLs masked.

    Line breaks before list items are kept, and so are the last two lines if a caret there points at a character.
    """
    message, *pointer = message.rsplit("\n", 2) if message.endswith("^") else (message,)
    message = "\n- ".join(" ".join(line.split()) for line in message.split("\n- "))
    message = PASSWORD.sub(r"\1:***@", SECRET.sub(r"\1***", message))
    echo("\n".join([f"acex: {message}", *pointer]), err=True)


app = typer.Typer(
    cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"acex {acex.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the smallest realistic change to a row that changes a model's decision.

    acex sends a few rows to the model, a Python function, a file or a web service,
    and reports only changes that the model itself has confirmed.

    Example: acex demo

    Then, in the folder acex-demo, the example of each command runs: see
    acex explain --help and acex batch --help. In a browser: acex studio --demo

    Exit codes: 0 an answer; 1 nothing found, labels changed, or it does not hold;
    2 wrong input or an unreadable file; 3 the model or the ledger failed; 4 rows
    wait for labels (acex ask); 130 stopped by Ctrl-C.
    """


def flattened(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each dataclass argument (a group of shared flags) replaced by its fields.

    An argument of type `Given` is replaced by the flags of all declared options.
    """

    @wraps(command)
    def run(**values: Any) -> None:
        _call(command, values)

    parameters = _parameters(command)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a command or of a dataclass of flags, each with its annotation."""
    hints, out = get_type_hints(function, include_extras=True), list[inspect.Parameter]()
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if hint is Given:
            out += flag_parameters()
        elif is_dataclass(hint):
            out += _parameters(hint)  # type: ignore[arg-type]
        else:
            option = hint.__metadata__[0]
            option.rich_help_panel = option.rich_help_panel or getattr(function, "panel", None)
            out.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint))
    return out


def _call(function: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """Call the function, building its dataclass arguments from the values of the flags that `_parameters` lists."""
    hints, arguments = get_type_hints(function), {}
    for name in inspect.signature(function).parameters:
        if hints[name] is Given:
            given = {p.name: values[p.name] for p in flag_parameters()}
            arguments[name] = Given({n: v for n, v in given.items() if v is not None and v is not False})
        else:
            arguments[name] = _call(hints[name], values) if is_dataclass(hints[name]) else values[name]
    return function(**arguments)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Price = Annotated[float | None, typer.Option(min=0, max=1e12, help="Price of a query; by default the ledger's.")]
