"""Checks and formatting of single values.

numpy and pandas are imported inside functions: the command line uses this module before it needs either.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import isinf
from pathlib import Path
from typing import Any, TypeAlias

Label: TypeAlias = Hashable  # a model's answer for a row: text, a whole number or a truth value


@dataclass(frozen=True)
class Remark:
    """Something a reader should know.

    Attributes:
        code: an identifier of the kind of remark, for programs.
        text: one sentence for people.
        columns: the columns whose values the text may mention; if one of them is redacted, so is the text.
        is_warning: whether it makes the result doubtful.
        advice: what to write in Python or in the shell; pages and reports omit it.
    """

    code: str
    text: str
    columns: tuple[str, ...] = ()
    is_warning: bool = False
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.advice}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """The remark as JSON-compatible values."""
        written = {"code": self.code, "text": self.text, "columns": list(self.columns), "is_warning": self.is_warning}
        return written | ({"advice": self.advice} if self.advice else {})

    @classmethod
    def of(cls, written: Any) -> Remark:
        """The remark that `to_dict` wrote; versions 0.1 and 0.2 wrote only a text."""
        if isinstance(written, str):
            return cls("unspecified", written, is_warning=True)
        advice = written.get("advice", "")
        return cls(written["code"], written["text"], tuple(written["columns"]), written["is_warning"], advice)


THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")  # such as 1,250, in which the comma may also be a decimal comma
# Characters that a terminal interprets instead of displaying them: control characters except tab and newline, changes
# of the writing direction, other line separators, and unpaired surrogates.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def is_finite(value: Any) -> bool:
    """Whether the value is a number, and finite as a float."""
    import numpy as np

    if isinstance(value, int):
        return abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.number)) and bool(np.abs(value) < np.inf)


def is_fraction(value: Any) -> bool:
    """Whether the value is a float with a fractional part, which is not a label."""
    return isinstance(value, float) and not value.is_integer()


def is_count(value: Any, least: int = 1) -> bool:
    """Whether the value is an integer of at least `least`."""
    import numpy as np

    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def check_count(name: str, value: Any, least: int = 1, *, optional: bool = False) -> None:
    """Raise ValueError unless the value is an integer of at least `least`, or None if it is optional."""
    if not (is_count(value, least) or (optional and value is None)):
        none = "None or " if optional else ""
        raise ValueError(f"{name}: expected {none}a whole number of at least {least}, got {value!r}.")


def check_positive(name: str, value: Any, what: str = "number", *, zero: bool = False, optional: bool = False) -> None:
    """Raise ValueError unless the value is a positive number, or zero or None if these are allowed."""
    is_valid = is_finite(value) and not isinstance(value, bool) and (value > 0 or (zero and value == 0))
    if not (is_valid or (optional and value is None)):
        allowed = [*(["None"] if optional else []), *(["zero"] if zero else []), f"a positive {what}"]
        raise ValueError(f"{name}: expected {joined_words(allowed, 'or')}, got {value!r}.")


def is_missing(value: Any) -> bool:
    """Whether the value is None, NaN, NaT or pandas' NA."""
    if value is None or isinstance(value, (str, int)):  # most values are; pandas is slow
        return value is None
    import pandas as pd

    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def is_hashable(value: Any) -> bool:
    """Whether the value, with everything it contains, can be a dictionary key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded as UTF-8; one with an unpaired surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python scalar; any other value unchanged."""
    import numpy as np

    return value.item() if isinstance(value, np.generic) else value


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of a JSON object as a dict, for `object_pairs_hook`; ValueError if a name occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key: an object has two values of one name")
    return found


def as_json(value: Any) -> Any:
    """A scalar that JSON can represent, or the text of the value."""
    value = plain(value)
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def json_value(value: Any) -> Any:
    """The same as `as_json`, but None for a missing value."""
    return None if is_missing(value) else as_json(value)


def records(frame: Any) -> list[dict[str, Any]]:
    """The rows of a DataFrame as JSON objects: None for missing values and infinity; dicts are kept."""

    def cell(value: Any) -> Any:
        value = value if isinstance(value, dict) else json_value(value)
        return None if isinstance(value, float) and isinf(value) else value

    columns = {str(name): [cell(value) for value in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def fingerprint(value: Any) -> str:
    """A short hash of a JSON-compatible value, equal for equal values on every machine."""
    written = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=as_json)
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]


def refuse_overwriting(written: Iterable[str | Path | None], read: Iterable[str | Path | None]) -> None:
    """Raise if an output file is also an input, such as the ledger, or is given twice."""
    others = [path for path in read if path]
    for path in (path for path in written if path):
        for other in others:
            are_there = os.path.exists(path) and os.path.exists(other)
            if os.path.realpath(path) == os.path.realpath(other) or (are_there and os.path.samefile(path, other)):
                raise ValueError(f"{path} has another use here and would be overwritten; choose another file.")
        others.append(path)


def listed(items: Iterable[Any], most: int = 12) -> str:
    """The items as text, separated by commas; if there are more than `most`, the first ones and the count."""
    items = list(items)
    shown = ", ".join(repr(plain(item)) for item in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """A suggestion of the closest known name, to append to an error message; empty if none is similar."""
    by_lower = {str(word).lower(): word for word in known}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1)
    return f" Did you mean {plain(by_lower[close[0]])!r}?" if close else ""


def spelling(label: Any) -> str:
    """A normalized form that is equal for labels that differ only in case and whitespace."""
    return " ".join(str(label).casefold().split())


def joined_words(parts: Sequence[str], last: str = "and", most: int = 8) -> str:
    """The parts joined within a sentence, such as "a, b and c"; if there are more than `most`, the rest is counted."""
    shown = list(parts) if len(parts) <= most else [*parts[: most - 1], f"{len(parts) - most + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {last} {shown[-1]}"


def counted(n: int, thing: str, plural: str = "") -> str:
    """A number and a noun: "1 row", "2 rows"."""
    return f"1 {thing}" if n == 1 else f"{n} {plural or f'{thing}s'}"


def readable(value: Any, digits: int = 4) -> str:
    """A value as readable text: a float with `digits` significant digits, or as an integer if it is whole or large."""
    import numpy as np

    if isinstance(value, (float, np.floating)):
        value = float(value)
        is_whole = (abs(value) >= 10**digits or value.is_integer()) and abs(value) < 1e16
        return f"{value:.0f}" if is_whole else f"{value:.{digits}g}"
    return str(value)


def as_money(amount: float) -> str:
    """An amount without rounding errors."""
    return f"{round(amount, 6):.2f}" if round(amount, 6) == round(amount, 2) else f"{amount:.6g}"


def answer_text(label: Any) -> str:
    """A model's answer as readable text: a fraction is rounded, labels are unchanged."""
    return readable(label) if is_fraction(label) else str(label)


def readable_pair(before: Any, after: Any, text: Callable[[Any, int], str] = readable) -> tuple[str, str]:
    """Both values as readable text, with enough digits to differ."""
    for digits in range(4, 18):  # 17 digits distinguish any two floats
        pair = text(before, digits), text(after, digits)
        if pair[0] != pair[1]:
            break
    return pair


def answer_texts(before: Any, after: Any) -> tuple[str, str]:
    """Two answers of a model as readable text, with enough digits to differ."""
    return readable_pair(before, after) if is_fraction(before) or is_fraction(after) else (str(before), str(after))


def printable(text: str) -> str:
    """The text made safe for a terminal: unprintable characters are escaped as in JSON, such as \\u001b.

    A JSON document keeps its value, because it has such characters only inside strings.
    """
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
