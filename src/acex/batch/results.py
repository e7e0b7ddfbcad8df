"""The results of many rows: tables, files for other programs, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from acex.audit.groups import Groups
from acex.engine.row_result import RowResult
from acex.errors import optional
from acex.space.kinds import Date
from acex.space.space import Space
from acex.spreadsheets import write_csv, write_xlsx
from acex.values import counted, is_missing, json_value, printable

COLUMNS = (
    *("outcome", "label_before", "label_after", "cost"),
    *("n_changes", "n_not_checked", "queries", "reused", "error"),
)
MOST_LINES = 12  # largest number of lines of a table that are printed


def frame_of(results: Sequence[RowResult], index: pd.Index[Any]) -> pd.DataFrame:
    """A line for each result, with this index."""
    return pd.DataFrame(list(results), index=index, columns=RowResult._fields).drop(columns=["ways", "new"])


def results_table(
    results: Sequence[RowResult], rows: pd.DataFrame, ids: Sequence[Any], space: Space, redact: Collection[str]
) -> pd.DataFrame:
    """A line for each factual, with plain columns; see `Explanations.table`."""
    table = {"id": pd.Series(ids, dtype=object).infer_objects()}
    table |= {name: _column([getattr(result, name) for result in results]) for name in COLUMNS}
    signed = [{f: -size if way == "down" else size for f, way, size in result.ways} for result in results]
    found = [result.outcome == "found" for result in results]
    for name, feature, column in zip(space.names, space.features, space.columns_of(rows), strict=True):
        if name in redact:
            continue
        before = column.tolist()
        after = [result.changes.get(name, (None, v))[1] for result, v in zip(results, before, strict=True)]
        if isinstance(feature, Date) and feature.step == "D" and not feature.form:  # timestamps, without 00:00:00
            before, after = ([v if is_missing(v) else feature.written(v) for v in some] for some in (before, after))
        table[f"{name} before"] = _column(before)
        table[f"{name} after"] = _column([v if ok else None for v, ok in zip(after, found, strict=True)])
        steps = [steps.get(name, 0.0) if ok else None for steps, ok in zip(signed, found, strict=True)]
        table[f"{name} step"] = pd.Series(steps, dtype=float)
    return pd.DataFrame(table)


def write_parquet(table: pd.DataFrame, path: Path) -> None:
    """Write a table to a Parquet file; columns of mixed types are written as text.

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
    """Values as files hold them; whole numbers stay integers even if some are missing (1500, not 1500.0)."""
    plain = pd.Series([json_value(value) for value in values], dtype=object)
    dtype: Any = plain.dropna().infer_objects().dtype
    nullable: Any = {"i": "Int64", "f": float}.get(dtype.kind, object)
    return plain.astype(nullable if plain.isna().any() else dtype)


# -- summary -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Summary:
    """What many explanations have in common.

    Attributes:
        outcomes: how many rows have each outcome.
        changes: a line for each feature that has to change, most frequent first: in how many rows, as a share of the
            rows found, how often up, down or to another category, and the median step in standard deviations.
        n_not_checked: how many changes were not checked, so that some may not be needed.
        not_found: the names of rows without a counterfactual, with the outcome or the error.
        queries: rows sent for all of them, or claimed by a run that was killed. earlier: those of earlier runs.
        groups: a comparison of groups of rows; None without `by`.
    """

    outcomes: pd.Series[int]
    changes: pd.DataFrame
    not_found: pd.Series[str]
    queries: int
    earlier: int = 0
    groups: Groups | None = None
    n_not_checked: int = 0

    @classmethod
    def of(cls, results: Sequence[RowResult], index: pd.Index[Any], groups: Groups | None = None) -> Summary:
        """The summary of these results; `index` has the names of their rows."""
        frame = frame_of(results, index)
        missed = frame[~frame["outcome"].isin(["found", "already_target"])]
        return cls(
            outcomes=frame["outcome"].value_counts(),
            changes=_changes([result for result in results if result.outcome == "found"]),
            not_found=missed["error"].fillna(missed["outcome"]),
            queries=int(frame["queries"].sum()),
            earlier=sum(max(result.queries - result.new, 0) for result in results),
            groups=groups,
            n_not_checked=int(frame["n_not_checked"].sum()),
        )

    def __str__(self) -> str:
        n = int(self.outcomes.sum())
        words = {outcome: outcome.replace("_", " ") for outcome in self.outcomes.index}
        ends = ", ".join(f"{count} {words[outcome]}" for outcome, count in self.outcomes.items()) or "none to explain"
        new = self.queries - self.earlier
        earlier = f" ({self.earlier} in earlier runs, {new} in this one)" if self.earlier else ""
        queries = f"{counted(self.queries, 'query', 'queries')}{earlier}, {self.queries / max(n, 1):.1f} a row"
        parts = [f"{counted(n, 'row')}: {ends}. {queries}."]
        if len(self.changes):
            parts += ["", "What has to change:", self.changes.head(MOST_LINES).to_string(index=False, na_rep="")]
        if self.n_not_checked:
            were = "was" if self.n_not_checked == 1 else "were"
            parts.append(f"{counted(self.n_not_checked, 'change')} {were} not checked and may not be needed.")
        if len(self.not_found):
            shown = [f"  {name}: {words.get(why, why)}" for name, why in self.not_found.head(MOST_LINES).items()]
            more = len(self.not_found) - len(shown)
            parts += ["", "Without a result:", *shown, *([f"  ... and {more} more"] if more else [])]
        if self.groups is not None:
            parts += ["", str(self.groups)]
        return printable("\n".join(parts))

    __repr__ = __str__


def _changes(found: Sequence[RowResult]) -> pd.DataFrame:
    """How often each feature has to change, in which direction, and by how much."""
    steps = pd.DataFrame([way for result in found for way in result.ways], columns=pd.Index(["feature", "way", "size"]))
    lines = []
    for name, group in steps.groupby("feature"):
        ways = Counter(group["way"])
        sizes = group["size"][group["way"] != "other"]  # a category has no standard deviations
        share, median = round(len(group) / len(found), 3), round(float(sizes.median()), 3)
        lines.append((name, len(group), share, ways["up"], ways["down"], ways["other"], median))
    columns = pd.Index(["feature", "rows", "share", "up", "down", "other", "median_step"])
    return pd.DataFrame(lines, columns=columns).sort_values("rows", ascending=False, kind="stable", ignore_index=True)
