"""Files of rows, and the columns and labels that a command names in words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from acex.values import listed


def read_table(path: Path) -> pd.DataFrame:
    """The table in a file.

    Raises:
        ValueError: there is no such file, or it is no table.
    """
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    try:
        table = pd.read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else pd.read_csv(path)
    except ImportError:
        raise ValueError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow.") from None
    except Exception as error:  # of whichever parser
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if table.empty:
        raise ValueError(f"{path}: expected a header and rows, got {len(table)} rows of {table.shape[1]} columns.")
    return table


def column_names(given: Iterable[str] | None, known: Iterable[Any], option: str, *, whole: bool = False) -> list[str]:
    """The columns that an option names: separated by commas (unless `whole`), the option given once or more."""
    columns = [str(name) for name in known]
    names: list[str] = []
    for text in given or ():
        names += [text] if whole or text in columns else [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise ValueError(f"{option}: {listed(unknown)} is not a column; there are {listed(columns)}.")
    return names


def as_label(text: str, known: Iterable[Any] = ()) -> Any:
    """The label that a text stands for: one that is known by this text, or a number, true or false, or the text."""
    for label in known:
        if str(label) == text:
            return label
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        return text
    if isinstance(value, float) and value.is_integer():
        return int(value)  # a spreadsheet writes 1.0 where some labels are still blank
    return value if isinstance(value, (str, bool, int, float)) else text


def matching(table: pd.DataFrame, where: str) -> list[int]:
    """The positions of the rows for which a query holds."""
    try:
        return table.reset_index(drop=True).query(where).index.tolist()
    except Exception as error:  # pandas raises a dozen kinds
        raise ValueError(f"--where {where!r}: {error}. Columns are {listed(table.columns)}.") from error


def read_row(path: Path) -> pd.DataFrame:
    """The one row in a file."""
    if path.suffix.lower() != ".json":
        table = read_table(path)
    elif not path.is_file():
        raise ValueError(f"--x {path}: there is no such file.")
    else:
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"--x {path}: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f'--x {path}: expected one row, {{"column": value, ...}}, got {type(row).__name__}.')
        table = pd.DataFrame([row])
    if len(table) != 1:
        raise ValueError(f"--x {path}: expected one row, got {len(table)}.")
    return table
