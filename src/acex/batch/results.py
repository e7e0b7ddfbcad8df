"""The results of many rows as tables, and the files that other programs open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from acex.engine.row_result import RowResult
from acex.errors import optional
from acex.space.kinds import Date
from acex.space.space import Space
from acex.spreadsheets import write_csv, write_xlsx
from acex.values import is_missing, json_value

COLUMNS = ("outcome", "label_before", "label_after", "cost", "n_changes", "queries", "reused", "error")


def results_table(
    results: Sequence[RowResult], rows: pd.DataFrame, ids: Sequence[Any], space: Space, redact: Collection[str]
) -> pd.DataFrame:
    """A row for each factual, of plain columns; see `Explanations.table`."""
    table = {"id": pd.Series(ids, dtype=object).infer_objects()}
    table |= {name: _column([getattr(result, name) for result in results]) for name in COLUMNS}
    signed = [{f: -size if way == "down" else size for f, way, size in result.ways} for result in results]
    found = [result.outcome == "found" for result in results]
    for name, feature, column in zip(space.names, space.features, space.columns_of(rows), strict=True):
        if name in redact:
            continue
        before = column.tolist()
        after = [result.changes.get(name, (None, v))[1] for result, v in zip(results, before, strict=True)]
        if isinstance(feature, Date) and feature.step == "D" and not feature.form:  # days of pandas, without 00:00:00
            before, after = ([v if is_missing(v) else feature.written(v) for v in some] for some in (before, after))
        table[f"{name} before"] = _column(before)
        table[f"{name} after"] = _column([v if ok else None for v, ok in zip(after, found, strict=True)])
        steps = [steps.get(name, 0.0) if ok else None for steps, ok in zip(signed, found, strict=True)]
        table[f"{name} step"] = pd.Series(steps, dtype=float)
    return pd.DataFrame(table)


def write_parquet(table: pd.DataFrame, path: Path) -> None:
    """Write a table to a Parquet file, whose columns have one type each.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    optional("pyarrow", "A Parquet file", "parquet")
    mixed = [name for name in table.columns if types.infer_dtype(table[name], skipna=True).startswith("mixed")]
    table = table.assign(**{name: table[name].map(str, na_action="ignore") for name in mixed})
    table.to_parquet(path, engine="pyarrow", index=False)


WRITERS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    ".csv": write_csv,
    ".xlsx": write_xlsx,
    ".parquet": write_parquet,
}


def _column(values: Sequence[Any]) -> pd.Series[Any]:
    """Values as files hold them; whole numbers stay whole where some are missing, so that 1500 is not 1500.0."""
    plain = pd.Series([json_value(value) for value in values], dtype=object)
    dtype: Any = plain.dropna().infer_objects().dtype
    nullable: Any = {"i": "Int64", "f": float}.get(dtype.kind, object)
    return plain.astype(nullable if plain.isna().any() else dtype)
