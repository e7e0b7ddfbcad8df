"""The results of many rows as tables, and the files that other programs open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from acex.arrays import Rows
from acex.engine.row_result import RowResult
from acex.errors import MissingExtra
from acex.space.space import Space
from acex.values import as_json, is_missing, listed

COLUMNS = ("outcome", "label_before", "label_after", "cost", "n_changes", "queries", "reused", "error")


def row_names(X: Rows, n: int, ids: Sequence[Any] | None) -> pd.Index[Any]:
    """The name of each of n rows: the ids, else the index of the frame, else its position.

    Raises:
        ValueError: the ids are not as many as the rows, one is missing, or two are the same.
    """
    if ids is None:
        return X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(n)
    names: pd.Index[Any] = pd.Index(ids, dtype=object)
    if len(names) != n:
        raise ValueError(f"ids: expected one for each of {n} rows, got {len(names)}.")
    if any(is_missing(name) for name in names):
        raise ValueError(f"ids: the id of row {[is_missing(name) for name in names].index(True)} is missing.")
    twice = names.map(str).duplicated()
    if twice.any():
        raise ValueError(f"ids: expected a different id for each row; {listed(names[twice].unique())} is repeated.")
    return names


def results_table(
    results: Sequence[RowResult], rows: pd.DataFrame, ids: Sequence[Any], space: Space, redact: Collection[str]
) -> pd.DataFrame:
    """A row for each factual, of plain columns; see `Explanations.table`."""
    table = {"id": pd.Series(ids, dtype=object).infer_objects()}
    table |= {name: _column([getattr(result, name) for result in results]) for name in COLUMNS}
    for name, before in _features(rows, space).items():
        if name in redact:
            continue
        signed = [{f: -size if way == "down" else size for f, way, size in result.ways} for result in results]
        after = [
            _after(r, name, value) if r.outcome == "found" else None for r, value in zip(results, before, strict=True)
        ]
        steps = [s.get(name, 0.0) if r.outcome == "found" else None for r, s in zip(results, signed, strict=True)]
        table |= {f"{name} before": _column(before), f"{name} after": _column(after)}
        table[f"{name} step"] = pd.Series(steps, dtype=float)
    return pd.DataFrame(table)


def found_rows(results: Sequence[RowResult], rows: pd.DataFrame, index: pd.Index[Any], space: Space) -> pd.DataFrame:
    """The best counterfactual of each row that has one; see `Explanations.counterfactuals`."""
    found = [i for i, result in enumerate(results) if result.outcome == "found"]
    after = pd.DataFrame(
        {
            j: pd.Series([_after(results[i], name, values[i]) for i in found], dtype=object)
            for j, (name, values) in enumerate(_features(rows, space).items())
        }
    )
    after.columns = pd.Index(space.columns or space.names)
    space, points = space.reaching(after)
    return space.frame(points).set_axis(index[found], axis=0)


def write_parquet(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table to a Parquet file, whose columns have one type each.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("to_parquet", "parquet") from None
    for name in table.columns:
        types = {type(value) for value in table[name] if value is not None} if table[name].dtype.kind == "O" else ()
        if len(types) > 1:
            table[name] = [None if value is None else str(value) for value in table[name]]
    table.to_parquet(path, engine="pyarrow", index=False)


def _features(rows: pd.DataFrame, space: Space) -> dict[str, list[Any]]:
    """The values of each feature, one for each row."""
    by_name = {str(label): rows[label].tolist() for label in rows.columns}
    if space.columns is None and set(by_name) != set(space.names):  # an array, whose columns have no names
        return dict(zip(space.names, by_name.values(), strict=True))
    return {name: by_name[name] for name in space.names}


def _after(result: RowResult, name: str, before: Any) -> Any:
    """The value of a feature in the counterfactual of a row."""
    return result.changes[name][1] if name in result.changes else before


def _column(values: Sequence[Any]) -> pd.Series[Any]:
    """Values as files hold them; where some are missing the others stay as they are, so that 1500 is not 1500.0."""
    plain = [None if is_missing(value) else as_json(value) for value in values]
    return pd.Series(plain, dtype=object) if None in plain else pd.Series(plain, dtype=object).infer_objects()
