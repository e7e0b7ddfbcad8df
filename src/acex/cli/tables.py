"""Files of rows, and the columns and labels that a command names in words."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from acex.values import did_you_mean, is_unicode, listed

if TYPE_CHECKING:
    import pandas as pd

GROUPED = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?")  # a number with points between thousands


def read_table(path: Path, decimal: str = ".") -> pd.DataFrame:
    """The table in a file; CSV with commas, or semicolons or tabs where the header has only these.

    Args:
        decimal: how CSV writes 0.5: "." or ","; the other one may stand between thousands.

    Raises:
        ValueError: there is no such file, or it is no table.
    """
    import pandas as pd

    if decimal not in (".", ","):
        raise ValueError(f"--decimal {decimal!r}: expected '.' or ','.")

    def read_csv(path: Path) -> pd.DataFrame:
        table: pd.DataFrame = pd.read_csv(path, sep=separator(path), decimal=decimal)
        return table if decimal == "." else table.apply(_ungrouped)

    return _read(path, read_csv)


def _ungrouped(column: pd.Series[Any]) -> pd.Series[Any]:
    """The column as numbers where its texts are such as 1.250,75: pandas' `thousands` would take 30.11.2026 for one."""
    import pandas as pd

    texts = column.dropna().tolist()
    if not texts or not all(isinstance(text, str) and GROUPED.fullmatch(text.strip()) for text in texts):
        return column
    points = column.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    numbers: pd.Series[Any] = pd.to_numeric(points)
    return numbers


def separator(path: Path) -> str:
    """What stands between the columns of a CSV file, by its first line."""
    with path.open(encoding="utf-8", errors="replace") as file:
        header = file.readline()
    return max(",;\t", key=lambda mark: (header.count(mark), mark == ","))


def read_answers(path: Path) -> pd.DataFrame:
    """The same of a file that acex may have written: texts in CSV are as they were before that."""
    from acex.spreadsheets import read_csv

    return _read(path, read_csv)


def _read(path: Path, read_csv: Callable[[Path], pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    try:
        table = pd.read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else read_csv(path)
    except ImportError:
        raise ValueError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow.") from None
    except Exception as error:  # of whichever parser
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if table.empty:
        raise ValueError(f"{path}: expected a header and rows, got {len(table)} rows of {table.shape[1]} columns.")
    return table


def writable(path: Path | None) -> Path | None:
    """The path, when its folder is there and takes files."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"the folder {path.parent} does not exist.")
    if path is not None and not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"no file can be written in the folder {path.parent}.")
    return path


def apart(out: Path | None, *read: str | Path | None) -> None:
    """Refuse to write over a file that the same command reads, such as the ledger."""
    for path in read:
        if out is not None and path is not None and out.exists() and Path(path).exists() and out.samefile(path):
            raise ValueError(f"{out} is read by this command and would be lost; name another file to write.")


def column_names(given: Iterable[str] | None, known: Iterable[Any], option: str, *, whole: bool = False) -> list[str]:
    """The columns that an option names: separated by commas (unless `whole`), the option given once or more."""
    columns = [str(name) for name in known]
    names: list[str] = []
    for text in given or ():
        names += [text] if whole or text in columns else [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in columns]
    if unknown:
        hint = did_you_mean(unknown[0], columns)
        raise ValueError(f"{option}: {listed(unknown)} is not a column; there are {listed(columns)}.{hint}")
    return names


def as_label(text: str, known: Iterable[Any] = ()) -> Any:
    """The label that a text stands for: one that is known by this text, or a number, true or false, or the text.

    Raises:
        ValueError: it is nothing, no number, an infinite one, or a text that no file can hold.
    """
    for label in known:
        if str(label) == text:
            return label
    if not text or _is_no_number(text):
        raise ValueError(f"{text!r} is not a label; write '\"{text}\"' if the model does say so.")
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, float) and value.is_integer():
        return int(value)  # a spreadsheet writes 1.0 where some labels are still blank
    if not isinstance(value, (str, bool, int, float)):
        value = text
    if isinstance(value, str) and not is_unicode(value):
        raise ValueError(f"{value!r} is not a label: half of a character cannot be written down.")
    return value


def _is_no_number(text: str) -> bool:
    """Is this how programs write a number that is missing or beyond all limits?"""
    try:
        return not math.isfinite(float(text))
    except (ValueError, OverflowError):
        return False


def matching(table: pd.DataFrame, where: str) -> list[int]:
    """The positions of the rows for which a query holds."""
    import pandas as pd
    from pandas.api import types

    try:
        holds: Any = table.reset_index(drop=True).eval(where)
    except Exception as error:  # pandas raises a dozen kinds
        odd = [name for name in map(str, table.columns) if not name.isidentifier()]
        quoted = f" Names such as {odd[0]} stand in backticks: `{odd[0]}`." if odd else ""
        raise ValueError(f"--where {where!r}: {error}. Columns are {listed(table.columns)}.{quoted}") from error
    if not (isinstance(holds, pd.Series) and types.is_bool_dtype(holds.dtype)):
        raise ValueError(f'--where {where!r}: expected what is true or false of a row, such as "age > 30".')
    return holds.index[holds.fillna(False).astype(bool)].tolist()


def read_row(path: Path, decimal: str = ".") -> pd.DataFrame:
    """The one row in a file."""
    import pandas as pd

    if path.suffix.lower() != ".json":
        table = read_table(path, decimal)
    elif not path.is_file():
        raise ValueError(f"--x {path}: there is no such file.")
    else:
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"--x {path}: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f'--x {path}: expected one row, {{"column": value, ...}}, got {type(row).__name__}.')
        table = pd.DataFrame([row])
    if len(table) != 1:
        raise ValueError(f"--x {path}: expected one row, got {len(table)}.")
    return table
