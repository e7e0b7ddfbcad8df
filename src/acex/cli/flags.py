"""Flags for the options that `acex.options` declares, and parsers for their values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acex.cli.tables import as_label
from acex.options import BY_NAME, DECLARED, Declaration

if TYPE_CHECKING:
    from acex.space.feature import Feature
    from acex.space.space import Space

EXAMPLES = '"100..120", "0.8..", "..120", "+10%" or "-10%"'
NUMBER = r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*"
TYPES: dict[str, Any] = {"number": float | None, "count": int | None, "text": str | None, "switch": bool}


class Given(dict[str, Any]):
    """The options given on the command line, by name, before their texts are parsed."""

    def of(self, *owners: str) -> dict[str, Any]:
        """The options that belong to these owners; see `acex.options`."""
        return {name: value for name, value in self.items() if BY_NAME[name].owner in owners}


def flag_parameters() -> list[inspect.Parameter]:
    """One command parameter per declared flag, in the help panels of `acex.options`."""
    return [_parameter(declaration) for declaration in DECLARED if declaration.flag]


def _parameter(declared: Declaration) -> inspect.Parameter:
    flag, _, metavar = declared.flag.partition(" ")
    text = declared.help.rstrip(".")
    if flag.startswith("--no-"):
        text = f"Do not {text[0].lower()}{text[1:]}"
    elif declared.default not in (None, (), False):
        text += f" (default {declared.default})"
    option = typer.Option(flag, metavar=metavar or None, help=f"{text}.", rich_help_panel=declared.group)
    return inspect.Parameter(
        declared.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if declared.kind == "switch" else None,
        annotation=Annotated[TYPES.get(declared.kind, list[str] | None), option],
    )


# -- texts as values ---------------------------------------------------------------------------------------------


def target(labels: Sequence[str] | None, numbers: str | None, known: Sequence[Any]) -> Any:
    """The target that --target and --target-range describe, as `acex.explain` takes it; None for any other label.

    If both are given, the range limits the probability of the label.

    Raises:
        ValueError: a text is not a label or not a range, or there are several labels for one range.
    """
    wanted = [_label("--target", text, text, known) for text in labels or ()]
    if numbers is None:
        return wanted or None
    if len(wanted) > 1:
        raise ValueError(f"--target-range needs one --target, whose probability it limits; got {len(wanted)}.")
    return as_range(numbers) | ({"label": wanted[0]} if wanted else {})


def as_range(text: str) -> dict[str, Any]:
    """The range of numbers in a text, as `Target.of` takes it."""
    if found := re.fullmatch(rf"{NUMBER}%\s*", text):
        return {"relative": float(found[1]) / 100}
    ends = re.fullmatch(rf"(?:{NUMBER})?\s*\.\.\s*(?:{NUMBER})?", text)
    if ends is None or not any(ends.groups()):
        raise ValueError(f"--target-range {text!r}: expected a range of numbers, such as {EXAMPLES}.")
    low, high = (None if end is None else float(end) for end in ends.groups())
    if low is not None and high is not None:
        return {"between": [low, high]}
    return {"at_most": high} if low is None else {"at_least": low}


def class_names(texts: Iterable[str], known: Sequence[Any]) -> dict[Any, str]:
    """The class names by label; `known` are the labels of the model, as far as it lists them."""
    names = {}
    for text in texts:
        label, _, name = text.partition("=")
        if not (label and name):
            raise ValueError(f"--class-name {text!r}: expected LABEL=NAME, such as 1=approved.")
        names[_label("--class-name", text, label, known)] = name
    return names


def noise(text: str) -> Any:
    """The share of wrong answers in a text, or "auto"."""
    if text == "auto":
        return text
    try:
        return number(text)
    except ValueError:
        raise ValueError(f"--noise {text!r}: expected a share of answers, such as 0.05, or auto") from None


def number(text: str) -> float | int:
    """The number in a text."""
    try:
        value = float(text)
    except ValueError:
        hint = " Repeat the option for another column." if "=" in text else ""
        raise ValueError(f"expected a number, got {text!r}.{hint}") from None
    return int(value) if value.is_integer() else value


def by_column(
    texts: Iterable[str], space: Space, option: str, read: Callable[[Feature, str], Any]
) -> dict[str | int, Any]:
    """The values of an option by column, from texts such as COLUMN=VALUE."""
    flag, _, form = BY_NAME[option].flag.partition(" ")
    out: dict[str | int, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        with _naming(flag, text):
            if not (name and value):
                raise ValueError(f"expected {form}.")
            out[name] = read(space.feature(name), value)
    return out


def grid(texts: Iterable[str], space: Space) -> Any:
    """The grids of numeric features, as `Space.infer` takes them."""
    if "off" in (texts := list(texts)):
        return False
    return by_column(texts, space, "grid", lambda _, text: None if text == "off" else number(text))


def limits(feature: Feature, text: str) -> tuple[Any, Any]:
    """The pair (low, high) in a text such as "5:10" or, for dates, "2026-01-01..2026-12-31"."""
    first, found, last = text.partition(".." if ".." in text else ":")
    if not found:
        raise ValueError("expected LOW:HIGH or LOW..HIGH, either of which may be left out.")
    return feature.value_in(first) if first else None, feature.value_in(last) if last else None


def allowed_values(feature: Feature, text: str) -> list[Any]:
    """The values in a text such as "25|33|50"; None for a missing value."""
    from acex.space.feature import MISSING

    words = text.split("|")
    if MISSING in words and not feature.gaps and MISSING not in getattr(feature, "categories", ()):
        raise ValueError("no value may be missing here; for a model that accepts missing values, use --missing keep.")
    try:
        return [None if word == MISSING and feature.gaps else feature.value_in(word) for word in words]
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip('.')}. Values are separated by |, as in 25|33|50.") from None


def _label(flag: str, text: str, label: str, known: Sequence[Any]) -> Any:
    with _naming(flag, text):
        return as_label(label, known)


@contextmanager
def _naming(flag: str, text: str) -> Iterator[None]:
    """Prefix errors raised inside with the flag and its text."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{flag} {text!r}: {error}") from None
