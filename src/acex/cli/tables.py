"""Read and write files of commands, and look up the columns and labels named by flags."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar
from zipfile import ZipFile

import typer

import acex
from acex.cli.show import echo
from acex.values import did_you_mean, is_unicode, listed, readable

if TYPE_CHECKING:
    import pandas as pd

NEEDS = {".parquet": "pyarrow", ".xlsx": "openpyxl"}  # optional packages, by the suffix of a file
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")
MOST_BYTES = 2 * 2**30  # largest size of a file after decompression, in case of a zip bomb
MOST_READ = 10_000  # rows that are read again as text to find misread numbers
DOTTED = r"[-+]?[1-9]\d{0,2}(\.\d{3})?|0"  # 950 and 1.250: the dot may separate thousands
START = 2**16  # bytes in which the header of a CSV file ends

Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Encoding of the file: cp1252, utf-16; by default utf-8.")
]


@dataclass(frozen=True)
class TableFlags:
    """The flags that control how tables are read."""

    panel: ClassVar[str] = "The data and the row"
    decimal: Annotated[str, typer.Option(metavar="MARK", help="Decimal mark: '.' or ','.")] = "."
    encoding: Encoding = None
    text: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Read as text: 01067 stays 01067. Can be repeated.")
    ] = None
    date: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN[=FORMAT]", help='Read as a date; format such as "%d/%m/%Y". Can be repeated.'),
    ] = None

    @property
    def dates(self) -> dict[str, str | None]:
        """The format of each date column; None if it is inferred from the values."""
        return {name: form or None for name, _, form in (text.partition("=") for text in self.date or ())}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `read_table`."""
        return {"decimal": self.decimal, "encoding": self.encoding, "text": [*(self.text or ()), *self.dates]}

    def kinds(self, table: pd.DataFrame, hidden: Sequence[str] = ()) -> dict[str, Any]:
        """The arguments `text` and `dates` of `Space.infer`, without hidden columns."""
        text = column_names(self.text, table.columns, "--text", whole=True)
        column_names(self.dates, table.columns, "--date", whole=True)
        return {
            "text": [name for name in text if name not in hidden],
            "dates": {name: form for name, form in self.dates.items() if name not in hidden},
        }


def read_table(
    path: Path,
    decimal: str = ".",
    *,
    encoding: str | None = None,
    text: Sequence[str] = (),
    escaped: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """The table in a file: .parquet, .json (a row or a list of rows), or CSV; may be compressed, such as .csv.gz.

    The separator of CSV is whichever of comma, semicolon and tab occurs most often in the header.

    Args:
        decimal: the decimal mark of CSV: "." or ",".
        encoding: of CSV and JSON; by default UTF-8, or UTF-16 if there is a byte order mark for it.
        text: columns of CSV that are read as text even if they look like numbers.
        escaped: whether formulas in CSV have an apostrophe in front, as `acex.spreadsheets.write_csv` writes them.
        options: passed to `pandas.read_csv`.

    Raises:
        ValueError: there is no such file, or it does not contain a table.
    """
    import pandas as pd

    from acex import spreadsheets
    from acex.space.kinds import has_decimal_commas

    if decimal not in (".", ","):
        raise ValueError(f"--decimal {decimal!r}: expected '.' or ','.")
    if not path.is_file():
        raise ValueError(f"{path}: no such file.")
    try:
        with _opened(path) as file:
            start = file.read(START)
            file.seek(0)
            has_utf16_mark = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            encoding = encoding or ("utf-16" if has_utf16_mark else "utf-8-sig")
            suffix = Path(path.stem if path.suffix.lower() in COMPRESSED else path).suffix.lower()
            if suffix in (".parquet", ".pq"):
                table = _read_parquet(file)
            elif suffix in (".xlsx", ".xls", ".ods"):
                raise ValueError("save the sheet as CSV.")
            elif suffix == ".json":
                rows = json.loads(file.read().decode(encoding))
                table = pd.DataFrame.from_records(rows if isinstance(rows, list) else [rows])
            else:
                read_csv: Any = spreadsheets.read_csv if escaped else pd.read_csv
                # Without index_col=False, pandas takes the first column as index if rows have an extra cell.
                options = {"dtype": dict.fromkeys(text, str), "index_col": False, **options}
                header = start.decode(encoding, "replace").lstrip("\r\n").partition("\n")[0]
                sep = max(",;\t", key=lambda mark: (header.count(mark), mark == ","))
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)
                    table = read_csv(file, sep=sep, decimal=decimal, encoding=encoding, **options)
                for name in [] if decimal == "." else table.columns.difference([*text]):  # 1.250,75 or 1.250
                    if has_decimal_commas(table[name].dropna().tolist(), marks=",."):
                        digits = table[name].str.replace(".", "").str.replace(",", ".")
                        table[name] = pd.to_numeric(digits)
                file.seek(0)
                texts = pd.read_csv(file, sep=sep, encoding=encoding, dtype=str, nrows=MOST_READ)
                _warn_of_misread_numbers(table, texts, decimal)
    except pd.errors.ParserWarning as error:
        raise ValueError(f"{path}: rows have more cells than the header.") from error
    except (UnicodeError, LookupError) as error:
        hint = "name its encoding, such as --encoding cp1252 (spreadsheets on Windows), latin-1 or utf-16."
        raise ValueError(f"{path} cannot be read as {str(encoding).removesuffix('-sig')}: {error}; {hint}") from error
    except Exception as error:  # each parser raises its own types
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if table.empty:
        raise ValueError(f"{path}: expected a header and rows, got {len(table)} rows of {table.shape[1]} columns.")
    return table


def _warn_of_misread_numbers(table: pd.DataFrame, texts: pd.DataFrame, decimal: str) -> None:
    """Warn about columns read as numbers whose text has leading zeros (postal codes) or ambiguous dots (1.250)."""
    for name in table.select_dtypes("number").columns.intersection(texts.columns):
        known = texts[name].dropna()
        odd, advice = known[known.str.fullmatch(r"0\d+")], f"to keep the zeros use --text {name}"
        if decimal == "." and known.str.fullmatch(DOTTED).all() and known.str.fullmatch(r"[-+]?\d+").any():
            odd, advice = known[known.str.contains(".", regex=False)], "if the dots separate thousands, use --decimal ,"
        if len(odd):
            what = f"{name}: {odd.iloc[0]} was read as {readable(float(odd.iloc[0]))}"
            echo(f"acex: warning: {what}; {advice}.", err=True)


def _read_parquet(file: BinaryIO) -> pd.DataFrame:
    import pandas as pd
    from pyarrow.parquet import read_metadata

    size = read_metadata(file)
    if size.num_rows * size.num_columns * 8 > MOST_BYTES:  # repeated values take almost no space in the file
        raise ValueError(f"{size.num_rows} rows of {size.num_columns} columns are more than fit into memory.")
    return pd.read_parquet(file)


def _opened(path: Path) -> BinaryIO:
    """The content of a file, decompressed if its suffix says so."""
    suffix = path.suffix.lower()
    if suffix not in COMPRESSED:
        return path.open("rb")
    if suffix == ".zip":
        archive = ZipFile(path)
        names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
        if len(names) != 1:
            raise ValueError(f"expected an archive of one file, got {listed(names)}")
        packed: Any = archive.open(names[0])
    else:
        opener: Any = {".gz": gzip.GzipFile, ".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}[suffix]
        packed = opener(path)
    with packed:
        content = packed.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES / 2**30:g} GiB when decompressed; decompress it first.")
    return BytesIO(content)


def file_to_write(help_text: str, *suffixes: str) -> Any:
    """An option for an output path, checked early: its folder must be writable, and its suffix one of `suffixes`."""

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


@dataclass(frozen=True)
class OutputFlags:
    """The flags for signing and redacting the output."""

    panel: ClassVar[str] = "What is written"
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY.PEM", dir_okay=False, help="Sign the output with an Ed25519 key.")
    ] = None
    redact: Annotated[
        list[str] | None, typer.Option(metavar="COLUMNS", help="Columns to leave out of the output: age,sex.")
    ] = None

    @property
    def columns(self) -> list[str]:
        """The columns to leave out."""
        return [name.strip() for text in self.redact or () for name in text.split(",")]

    def check(self, features: Sequence[str]) -> None:
        """Check the columns and the key before anything is sent.

        Raises:
            ValueError: a column is not a feature, or the file does not contain a key.
        """
        from acex.engine.certificate import read_key
        from acex.engine.redaction import left_out

        left_out(self.columns, features)
        if self.sign is not None:
            read_key(self.sign, "private")

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `to_json` and `to_html`."""
        return {"sign": self.sign, "redact": self.columns}


LeftOut = Annotated[Path | None, file_to_write("Write the values that --redact removes here, to keep them apart.")]


def column_names(given: Iterable[str] | None, known: Iterable[Any], option: str, *, whole: bool = False) -> list[str]:
    """The columns that an option names; each of its values may list several, separated by commas, unless `whole`."""
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
    """The label for a text: the known label with this text, else a number, true, false, or the text itself.

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
    """The positions of the rows that satisfy a condition, as in `DataFrame.eval`."""
    import pandas as pd
    from pandas.api import types

    try:
        holds: Any = table.reset_index(drop=True).eval(where)
    except Exception as error:  # pandas raises various types
        odd = [name for name in map(str, table.columns) if not name.isidentifier()]
        quoted = f" Put names such as {odd[0]} in backticks: `{odd[0]}`." if odd else ""
        raise ValueError(f"--where {where!r}: {error}. Columns are {listed(table.columns)}.{quoted}") from error
    if not (isinstance(holds, pd.Series) and types.is_bool_dtype(holds.dtype)):
        raise ValueError(f'--where {where!r}: expected a condition, such as "age > 30".')
    return holds.index[holds.fillna(False).astype(bool)].tolist()
