"""CSV and XLSX files for spreadsheets, in which no text is run as a formula.

A text that looks like a formula gets a leading apostrophe, which marks text in spreadsheets; a text with control
characters is written as a JSON string. `read_csv` undoes both, so that it returns what `write_csv` was given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from acex.errors import optional
from acex.values import UNPRINTABLE, as_json, is_missing, is_unicode, printable

WIDEST = 10**15  # spreadsheets keep 15 significant digits
LONGEST = 32_767  # most characters in a cell
# The beginning of a formula, also in full-width characters; a text with an apostrophe already gets another one.
FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")


def write_csv(frame: pd.DataFrame, path: Path | None = None, **options: Any) -> str:
    """The frame as CSV without its index, also written to `path` if given; `options` are those of pandas."""
    text: str = _mapped(frame, _escaped).to_csv(index=False, lineterminator="\n", **options)
    if path is not None:
        path.write_text(text, encoding="utf-8", newline="")
    return text


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """The frame in a CSV file, with the escaping of `write_csv` undone; `options` are those of pandas."""
    return _mapped(pd.read_csv(path, **options), _unescaped)


def write_xlsx(frame: pd.DataFrame, path: Path) -> None:
    """Write the frame without its index to a workbook of one sheet.

    Raises:
        MissingExtra: openpyxl is not installed.
        ValueError: there are too many rows or columns for a sheet, or a text is too long for a cell.
    """
    cells = frame.astype(object).map(_cell).set_axis([_cell(str(name)) for name in frame.columns], axis=1)
    optional("openpyxl", "A workbook (.xlsx)", "xlsx")
    cells.to_excel(path, sheet_name="acex", index=False, engine="openpyxl")


def _cell(value: Any) -> Any:
    """A value as a cell of a workbook: a number, a Boolean, a text that is not a formula, or None."""
    if is_missing(value):
        return None
    value = as_json(value)
    is_wide = isinstance(value, int) and abs(value) > WIDEST
    if is_wide or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    value = _escaped(value)
    if isinstance(value, str) and len(value) > LONGEST:
        raise ValueError(f"a cell of a workbook holds {LONGEST} characters, got {len(value)}: {value[:40]!r}...")
    return value


def _mapped(frame: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """The frame with `change` applied to column names and values; numeric columns are kept."""
    columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
    changed = [c if types.is_numeric_dtype(c.dtype) else _changed(c, change) for c in columns]
    return pd.DataFrame(dict(enumerate(changed))).set_axis([change(name) for name in frame.columns], axis=1)


def _changed(column: pd.Series[Any], change: Callable[[Any], Any]) -> pd.Series[Any]:
    if column.dtype != object:
        return column.map(change)
    return pd.Series([change(v) for v in column], column.index, dtype=object)  # keeps integers beside missing values


def _escaped(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if UNPRINTABLE.search(value) or _json_string(value) is not None:
        return printable(json.dumps(value, ensure_ascii=False))
    return f"'{value}" if FORMULA.match(value) else value


def _unescaped(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    written = _json_string(value)
    if written is not None:
        return written
    return value[1:] if value.startswith("'") and FORMULA.match(value) else value


def _json_string(text: str) -> str | None:
    """The text inside a JSON string that was written because of control characters; None for any other text."""
    if not (text.startswith('"') and text.endswith('"') and "\\" in text):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) and is_unicode(value) else None
