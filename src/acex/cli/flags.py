"""The flags of the options that `acex.options` declares, and from their texts to values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acex.cli.tables import as_label, column_names
from acex.options import DECLARED, Declaration

if TYPE_CHECKING:
    import acex

EXAMPLES = '"100..120", "0.8..", "..120", "+10%" or "-10%"'
NUMBER = r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
TYPES: dict[str, Any] = {"number": float | None, "count": int | None, "text": str | None, "switch": bool}


class Given(dict[str, Any]):
    """What was given on the command line, by the name of the option; a field of this type stands for all flags."""

    def of(self, owner: str) -> dict[str, Any]:
        """The options of one owner, as given."""
        return {d.name: self[d.name] for d in DECLARED if d.owner == owner and d.name in self}

    @classmethod
    def from_flags(cls, values: Mapping[str, Any]) -> Given:
        """What is left of the values of all flags where those that were not given are dropped."""
        return cls({name: value for name, value in values.items() if value not in (None, False)})


def flag_parameters() -> list[inspect.Parameter]:
    """A parameter of a command for each declared flag, in named panels."""
    return [_parameter(declaration) for declaration in DECLARED if declaration.flag]


def _parameter(declared: Declaration) -> inspect.Parameter:
    flag, _, metavar = declared.flag.partition(" ")
    default = declared.default
    usual = f" (default {default})" if default not in (None, (), False, True) else ""
    option = typer.Option(
        flag, metavar=metavar or None, help=f"{declared.help.rstrip('.')}{usual}.", rich_help_panel=declared.group
    )
    return inspect.Parameter(
        declared.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if declared.kind == "switch" else None,
        annotation=Annotated[TYPES.get(declared.kind, list[str] | None), option],
    )


# -- from texts to values ----------------------------------------------------------------------------------------


def target(labels: Sequence[str] | None, numbers: str | None, known: Sequence[Any]) -> Any:
    """What --target and --target-range ask for, as `acex.explain` takes it; None for any other label.

    With both, the probability of the label is to be in the range.

    Raises:
        ValueError: a text is not a label or not a range, or there are several labels for one range.
    """
    meant = [_label(text, known) for text in labels or ()]
    if numbers is None:
        return meant or None
    if len(meant) > 1:
        raise ValueError(f"--target-range needs one --target, whose probability it limits; got {len(meant)}.")
    return as_range(numbers) | ({"label": meant[0]} if meant else {})


def as_range(text: str) -> dict[str, Any]:
    """The range of numbers that a text stands for, as `Target.of` takes it."""
    if found := re.fullmatch(rf"{NUMBER}%\s*", text):
        return {"relative": float(found[1]) / 100}
    low, dots, high = text.partition("..")
    ends = [re.fullmatch(NUMBER, end) for end in (low, high)]
    strange = [side for side in (low, high) if side.strip() and not re.fullmatch(NUMBER, side)]
    if not dots or not any(ends) or strange:
        raise ValueError(f"--target-range {text!r}: expected a range of numbers, such as {EXAMPLES}.")
    least, most = (None if end is None else float(end[1]) for end in ends)
    if least is not None and most is not None:
        return {"between": [least, most]}
    return {"at_most": most} if least is None else {"at_least": least}


def _label(text: str, known: Sequence[Any]) -> Any:
    try:
        return as_label(text, known)
    except ValueError as error:
        raise ValueError(f"--target: {error}") from None


def class_names(texts: Iterable[str], known: Sequence[Any]) -> dict[Any, str]:
    """What labels are called; `known` are those that the model gives, where it says so."""
    names = {}
    for text in texts:
        label, equals, name = text.partition("=")
        if not (label and equals and name):
            raise ValueError(f"--class-name {text!r}: expected LABEL=NAME, such as 1=approved.")
        names[as_label(label, known)] = name
    return names


def noise(text: str) -> Any:
    """A share of answers, or "auto"."""
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ValueError(f"--noise {text!r}: expected a share of answers, such as 0.05, or auto.") from None


def by_column(
    texts: Iterable[str], space: acex.Space, flag: str, example: str, read: Callable[[str, str], Any]
) -> dict[str, Any]:
    """Values by column from texts such as COLUMN=VALUE; `read` takes the column's name and the text of its value."""
    out = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{flag} {text!r}: expected {flag} {example}.")
        [name] = column_names([name], space.names, flag, whole=True)
        try:
            out[name] = read(name, value)
        except ValueError as error:
            raise ValueError(f"{flag} {text!r}: {error}") from None
    return out


def grid(texts: Iterable[str], names: Sequence[str]) -> Any:
    """The steps of numbers, as `Space.infer` takes them."""
    if "off" in (texts := list(texts)):
        return False
    steps: dict[str | int, float | None] = {}
    for text in texts:
        name, _, step = text.rpartition("=")
        try:
            number = None if step == "off" else float(step)
        except ValueError:
            raise ValueError(f'--grid {text!r}: expected COLUMN=STEP, such as "loan=50", COLUMN=off or off.') from None
        [name] = column_names([name], names, "--grid", whole=True)
        steps[name] = int(number) if number is not None and number.is_integer() else number
    return steps
