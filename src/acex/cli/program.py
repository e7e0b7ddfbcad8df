"""The program `acex`: its exit codes, how errors are shown, and commands that share options.

A command's module imports at its top only what describes the command; what does the work is imported when it runs,
so that help comes at once.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
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

# 0 is an answer.
NOTHING_FOUND = 1  # or labels that changed
WRONG = 2  # something to fix in the command or its files
FAILED = 3  # the model, the ledger, the workers, or no budget left
STOPPED = 130  # by Ctrl-C, as shells count it

UsageError: Any = typer.BadParameter.__bases__[0]  # of click, or of typer's own copy of it
PASSWORD = re.compile(r"(:/{1,3}[^\s/:@]*):\S*@")  # in a URL, also one with a slash too few or an @ in the password
SECRET = re.compile(r"([?&;]\w*(?:pass|pwd|secret|token|key)\w*=)[^&;\s'\"]*", re.IGNORECASE)


class Commands(TyperGroup):
    """The commands, where an error that a user can fix is one line and no traceback."""

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
    except BrokenPipeError:  # the reader of the output has closed it
        raise
    except UsageError as error:
        if not error.format_message():  # it shows the help instead
            raise
        where = error.ctx.command_path if error.ctx else "acex"
        words = error.format_message().replace("Value error, ", "")  # a name that a validator gives it
        raise _end(f"{_ended(words)} See {where} --help.", WRONG) from error
    except (ModelFailed, LedgerFailed, ExecutorFailed, BudgetSpent) as error:
        raise _end(" ".join([str(error), *getattr(error, "__notes__", ())]), FAILED) from error
    except FileNotFoundError as error:
        raise _end(f"{error.filename}: there is no such file." if error.filename else str(error), WRONG) from error
    except (ValueError, OSError, AcexError) as error:
        raise _end(str(error), WRONG) from error
    except KeyboardInterrupt:
        raise _end("stopped.", STOPPED) from None


def _end(words: str, code: int) -> typer.Exit:
    say(words)
    return typer.Exit(code)


def _ended(words: str) -> str:
    """A sentence with its end: typer's own questions have one, and then a full stop."""
    words = words.rstrip(".")
    return words if words.endswith("?") else f"{words}."


def kept(ledger: BaseLedger, rows: str = "a row") -> str:
    """What becomes of the answers that were paid for, where a command ends before its work does."""
    if not ledger.is_memory:
        return f"Nothing is lost: the same command goes on from here and pays only for {rows} in flight again."
    return "The answers are lost; with --ledger FILE they are kept, and the same command goes on."


def say(words: str) -> None:
    """One line for people, on stderr, without passwords of addresses.

    Below it the place that it points at, or one line for each of several things that are wrong, if any.
    """
    words, *pointer = words.rsplit("\n", 2) if words.endswith("^") else (words,)
    words = "\n- ".join(" ".join(one.split()) for one in words.split("\n- "))
    words = SECRET.sub(r"\1***", PASSWORD.sub(r"\1:***@", words))
    echo("\n".join([f"acex: {words}", *pointer]), err=True)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"acex {acex.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """The smallest realistic change to a row that changes a decision.

    Example: acex demo loan

    Exit codes: 0 an answer; 1 nothing found, or labels changed; 2 wrong input;
    3 the model or the ledger failed; 130 stopped by Ctrl-C.
    """


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each argument that is a dataclass replaced by its fields: options that commands share.

    A field of type `Given` stands for the flags of all declared options.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _parameters(groups[name])
        else:
            parameters.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @wraps(command)
    def run(**values: Any) -> None:
        made = {name: kind(**_fields_of(kind, values)) for name, kind in groups.items()}
        command(**made, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    out: list[inspect.Parameter] = []
    for field in fields(group):
        if hints[field.name] is Given:
            out += flag_parameters()
            continue
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        kind = inspect.Parameter.KEYWORD_ONLY
        out.append(inspect.Parameter(field.name, kind, default=default, annotation=hints[field.name]))
    return out


def _fields_of(group: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's fields, taken out of all values."""
    out: dict[str, Any] = {}
    for field in fields(group):
        if field.name == "given":
            out["given"] = Given.from_flags({p.name: values.pop(p.name) for p in flag_parameters()})
        else:
            out[field.name] = values.pop(field.name)
    return out


def finite(number: float | None) -> float | None:
    """The number, when it is one that can be counted with."""
    if number is not None and not math.isfinite(number):
        raise typer.BadParameter(f"expected a finite number, got {number}.")
    return number


AsJson = Annotated[bool, typer.Option("--json", help="The answer as JSON, for machines.")]
