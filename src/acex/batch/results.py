"""What came of many rows as tables: to look at, to reckon with, and as files that others open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from acex.arrays import Rows
from acex.audit.groups import By, Groups, grouping
from acex.batch.summary import Summary
from acex.engine.redaction import message
from acex.engine.row_result import RowResult, frame_of
from acex.errors import MissingExtra
from acex.space.columns import index_of
from acex.space.space import Space
from acex.spreadsheets import write_csv, write_xlsx
from acex.values import as_json, is_missing, listed

COLUMNS = ("outcome", "label_before", "label_after", "cost", "n_changes", "queries", "reused", "error")


def names_of(X: Rows, n: int, ids: Sequence[Any] | None) -> pd.Index[Any]:
    """What each of n rows is called: the ids, else the index of the frame, else its position.

    Raises:
        ValueError: the ids are not as many as the rows, one is missing, or two are the same.
    """
    if ids is None:
        return X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(n)
    names: pd.Index[Any] = pd.Index(ids, dtype=object)
    if len(names) != n:
        raise ValueError(f"ids: expected one for each of {n} rows, got {len(names)}.")
    if any(is_missing(name) for name in names):
        raise ValueError(f"ids: the one of row {[is_missing(name) for name in names].index(True)} is missing.")
    twice = names.map(str).duplicated()
    if twice.any():
        raise ValueError(f"ids: each row needs one of its own; {listed(names[twice].unique())} comes more than once.")
    return names


class Results(ABC):
    """The rows of a batch, a line for each, and the tables that these make."""

    _rows: pd.DataFrame
    _index: pd.Index[Any]
    _finished: list[int]
    _groups: pd.Series[Any] | None
    _seed: int

    @abstractmethod
    def _all_results(self) -> list[RowResult]:
        """What came of each row, when all are done."""

    @abstractmethod
    def _asked_space(self) -> Space:
        """What each feature could hold."""

    @abstractmethod
    def _remarks(self) -> list[str]:
        """What to know before groups are compared."""

    def frame(self) -> pd.DataFrame:
        """A row for each factual, by its name in the data.

        Columns: outcome ("failed" where there is an error), label_before, label_after, cost, n_changes, changes (a
        mapping from feature to before and after), queries (rows paid for, by all runs), reused (known before), error.
        """
        return frame_of(self._all_results(), self._index)

    def summary(self, by: By | None = None) -> Summary:
        """What has to change most often, for whom nothing was found, and what it cost as the work went on.

        Args:
            by: compare groups of rows, by a column of theirs, by several crossed, or by values given one a row; by
                default those given to `explain_many`.
        """
        groups = self._groups if by is None else grouping(by, self._rows)
        lines = self._all_results()
        compared = None if groups is None else Groups.of(lines, groups, seed=self._seed, warnings=self._remarks())
        return Summary.of(lines, self._index, self._finished, compared)

    def table(self, redact: Iterable[str] = ()) -> pd.DataFrame:
        """A row for each factual, of plain columns: as `to_csv` and the like write it, but for features left out.

        Columns: id, outcome, label_before, label_after, cost, n_changes, queries, reused, error; then for each feature
        NAME what it is ("NAME before"), what it would have to be ("NAME after") and how far that is in standard
        deviations ("NAME step"). The last two are missing where there is no counterfactual.
        """
        lines, space = self._all_results(), self._asked_space()
        table = {"id": pd.Series([as_json(name) for name in self._index], dtype=object).infer_objects()}
        table |= {name: _column([getattr(line, name) for line in lines]) for name in COLUMNS}
        gone = [space.names[space.index(name)] for name in redact]
        table["error"] = _column([message(line.error, gone) for line in lines])
        for name, column in zip(space.names, self._features(space), strict=True):
            if name in gone:
                continue
            steps = [{f: -size if way == "down" else size for f, way, size in line.ways} for line in lines]
            rows = list(zip(lines, column, steps, strict=True))
            after = [_after(line, name, before) if line.outcome == "found" else None for line, before, _ in rows]
            step = [of.get(name, 0.0) if line.outcome == "found" else None for line, _, of in rows]
            table |= {f"{name} before": _column(column), f"{name} after": _column(after)}
            table[f"{name} step"] = pd.Series(step, dtype=float)
        return pd.DataFrame(table)

    def counterfactuals(self) -> pd.DataFrame:
        """The best counterfactual of each row that has one, by the row's name, with the data's columns and dtypes."""
        lines, space = self._all_results(), self._asked_space()
        found = [i for i, line in enumerate(lines) if line.outcome == "found"]
        columns = [
            pd.Series([_after(lines[i], name, column[i]) for i in found], dtype=object)
            for name, column in zip(space.names, self._features(space), strict=True)
        ]
        rows = pd.DataFrame(dict(enumerate(columns)))
        rows.columns = index_of(space.columns or space.names, nested=space.nested)
        space = space.reaching(rows)
        return space.frame(space.encode(rows)).set_axis(self._index[found], axis=0)

    def _features(self, space: Space) -> list[list[Any]]:
        """The values of each feature, a list of as many as there are rows."""
        by_name = {str(label): self._rows[label].tolist() for label in self._rows.columns}
        is_array = space.columns is None and set(by_name) != set(space.names)  # whose columns have no names
        return list(by_name.values()) if is_array else [by_name[name] for name in space.names]

    def to_csv(self, path: str | Path | None = None, *, redact: Iterable[str] = ()) -> str:
        """`table()` as CSV, also written to `path` if given; no text in it is run as a formula."""
        return write_csv(self.table(redact), None if path is None else Path(path))

    def to_xlsx(self, path: str | Path, *, redact: Iterable[str] = ()) -> None:
        """Write `table()` to a workbook; no text in it is run as a formula.

        Raises:
            MissingExtra: openpyxl is not installed.
        """
        write_xlsx(self.table(redact), Path(path))

    def to_parquet(self, path: str | Path, *, redact: Iterable[str] = ()) -> None:
        """Write `table()` to a Parquet file.

        Raises:
            MissingExtra: pyarrow is not installed.
        """
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtra("to_parquet", "parquet") from None
        table = self.table(redact)
        for name in table.columns:
            kinds = {type(value) for value in table[name] if value is not None} if table[name].dtype.kind == "O" else ()
            if len(kinds) > 1:  # a column of Parquet is of one
                table[name] = [None if value is None else str(value) for value in table[name]]
        table.to_parquet(path, engine="pyarrow", index=False)


def _after(line: RowResult, name: str, before: Any) -> Any:
    """What a feature is in the counterfactual of a row."""
    return line.changes[name][1] if name in line.changes else before


def _column(values: Sequence[Any]) -> pd.Series[Any]:
    """Values as files hold them; where some are missing the others stay as they are, so that 1500 is not 1500.0."""
    plain = [None if is_missing(value) else as_json(value) for value in values]
    return pd.Series(plain, dtype=object) if None in plain else pd.Series(plain, dtype=object).infer_objects()
