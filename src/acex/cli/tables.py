"""Files that commands read and write, and the columns and labels that flags name."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import acex
from acex.values import did_you_mean, is_unicode, listed

if TYPE_CHECKING:
    import pandas as pd

NEEDS = {".parquet": "pyarrow", ".xlsx": "openpyxl"}  # optional packages, by the suffix of a file
PICTURES = (".png", ".pdf", ".svg")


def read_table(path: Path, decimal: str = ".", *, guarded: bool = False, **options: Any) -> pd.DataFrame:
    """The table in a file: .parquet, .json (a row or a list of rows), or CSV.

    CSV has commas between columns, or semicolons or tabs if the header has only these.

    Args:
        decimal: the decimal mark of CSV: "." or ",".
        guarded: `acex.spreadsheets.write_csv` may have written it.
        options: of pandas, for CSV.

    Raises:
        ValueError: there is no such file, or it does not contain a table.
    """
    import pandas as pd

    from acex import spreadsheets

    if decimal not in (".", ","):
        raise ValueError(f"--decimal {decimal!r}: expected '.' or ','.")
    if not path.is_file():
        raise ValueError(f"{path}: no such file.")
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            table = pd.read_parquet(path)
        elif path.suffix.lower() == ".json":
            rows = json.loads(path.read_text(encoding="utf-8"))
            table = pd.DataFrame.from_records(rows if isinstance(rows, list) else [rows])
        else:
            read_csv = spreadsheets.read_csv if guarded else pd.read_csv
            table = read_csv(path, sep=_separator(path), decimal=decimal, **options)
    except Exception as error:  # each parser has its own
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if table.empty:
        raise ValueError(f"{path}: expected a header and rows, got {len(table)} rows of {table.shape[1]} columns.")
    return table


def _separator(path: Path) -> str:
    """The separator of a CSV file, by its first line."""
    with path.open(encoding="utf-8", errors="replace") as file:
        header = file.readline()
    return max(",;\t", key=lambda mark: (header.count(mark), mark == ","))


def file_to_write(help_text: str, *suffixes: str) -> Any:
    """An option for a path, checked before the work is done: its folder exists, and it ends in one of the suffixes."""

    def check(path: Path | None) -> Path | None:
        if path is None:
            return None
        suffix = path.suffix.lower()
        if suffixes and suffix not in suffixes:
            raise typer.BadParameter(f"{path.name!r} must end in {' or '.join(suffixes)}.")
        if suffix in NEEDS and suffix in suffixes and find_spec(NEEDS[suffix]) is None:
            raise typer.BadParameter(str(acex.MissingExtra(f"A {suffix} file", suffix[1:])))
        if not os.access(path.parent, os.W_OK):
            raise typer.BadParameter(f"the folder {path.parent} does not exist or is not writable.")
        return path

    return typer.Option(dir_okay=False, callback=check, help=help_text)


def refuse_overwriting(out: Path | None, *read: str | Path | None) -> None:
    """Refuse to write to a file that the same command reads, such as the ledger."""
    for path in read:
        if out is not None and path is not None and out.exists() and Path(path).exists() and out.samefile(path):
            raise ValueError(f"{out} is an input of this command and would be overwritten; choose another file.")


@dataclass(frozen=True)
class Seal:
    """The flags about signatures and redaction."""

    panel: ClassVar[str] = "What is written"
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY.PEM", dir_okay=False, help="Sign what is written with an Ed25519 key.")
    ] = None
    redact: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out of what is written: age,sex.")
    ] = None

    @property
    def columns(self) -> list[str]:
        """The columns to leave out."""
        return [name.strip() for text in self.redact or () for name in text.split(",")]

    def check(self, features: Sequence[str]) -> None:
        """Check columns and key before anything is sent.

        Raises:
            ValueError: a column is not a feature, or the file does not contain a key.
        """
        from acex.engine.certificate import private_key
        from acex.engine.redaction import left_out

        left_out(self.columns, features)
        if self.sign is not None:
            private_key(self.sign)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `to_json` and `to_html`."""
        return {"sign": self.sign, "redact": self.columns}


LeftOut = Annotated[Path | None, file_to_write("Write what --redact leaves out here, to keep it apart.")]


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
    """The label in a text: the known label that is written so, or else a number, true, false, or the text itself.

    Raises:
        ValueError: it is empty, not a finite number, or contains an unpaired surrogate.
    """
    for label in known:
        if str(label) == text:
            return label
    if not text or not _is_finite_or_text(text):
        raise ValueError(f"{text!r} is not a label; write '\"{text}\"' if it is one of the model's.")
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, float) and value.is_integer():
        return int(value)  # spreadsheets write 1.0 if some labels are still blank
    if not isinstance(value, (str, bool, int, float)):
        value = text
    if isinstance(value, str) and not is_unicode(value):
        raise ValueError(f"{value!r} is not a label: it contains an unpaired surrogate.")
    return value


def _is_finite_or_text(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except (ValueError, OverflowError):
        return True


def matching(table: pd.DataFrame, where: str) -> list[int]:
    """The positions of the rows for which a query holds."""
    import pandas as pd
    from pandas.api import types

    try:
        holds: Any = table.reset_index(drop=True).eval(where)
    except Exception as error:  # pandas raises many types
        odd = [name for name in map(str, table.columns) if not name.isidentifier()]
        quoted = f" Put names such as {odd[0]} in backticks: `{odd[0]}`." if odd else ""
        raise ValueError(f"--where {where!r}: {error}. Columns are {listed(table.columns)}.{quoted}") from error
    if not (isinstance(holds, pd.Series) and types.is_bool_dtype(holds.dtype)):
        raise ValueError(f'--where {where!r}: expected a condition, such as "age > 30".')
    return holds.index[holds.fillna(False).astype(bool)].tolist()
