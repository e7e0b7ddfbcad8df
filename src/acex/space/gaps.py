"""Rows with missing values, and everything that is wrong with a table at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from acex.arrays import BoolArray, Rows
from acex.values import listed

T = TypeVar("T")
Missing: TypeAlias = Literal["drop", "keep"]


def is_complete(data: Rows) -> BoolArray:
    """Which rows of a frame or an array have no gap, (n,)."""
    gaps = data.isna().to_numpy() if isinstance(data, pd.DataFrame) else pd.isna(np.asarray(data))
    return np.asarray(~gaps.any(axis=1), dtype=bool)


def complete_rows(data: pd.DataFrame) -> pd.DataFrame:
    """The rows without a gap.

    Raises:
        ValueError: there are none.
    """
    whole = is_complete(data)
    if whole.all() or len(data) == 0:
        return data
    if not whole.any():
        what = f"every row of data has a gap: {_counted(data)}"
        raise ValueError(
            f"{what}. Leave out the columns that have most of them (in the shell --drop), or fill them in."
        )
    return data[whole]


def known_values(data: pd.DataFrame, missing: Missing) -> Iterator[tuple[Hashable, pd.Series[Any]]]:
    """The label of each column, and the values that say what it holds.

    Raises:
        ValueError: there are none.
    """
    rows = complete_rows(data) if checked(missing) == "drop" else data
    empty = [label for label, column in rows.items() if len(rows) and column.isna().all()]
    if empty:
        raise ValueError(f"{listed(empty)}: every value is missing. Leave out the column (in the shell --drop).")
    for label, column in rows.items():
        yield label, column.dropna().infer_objects()


def checked(missing: Missing) -> Missing:
    """What to do about gaps, which is one of two words."""
    if missing not in ("drop", "keep"):
        raise ValueError(f"missing must be 'drop' or 'keep', got {missing!r}.")
    return missing


def without_gaps(data: Rows, labels: Any, missing: Missing = "drop") -> tuple[Rows, Any, str]:
    """The rows without a gap with their labels, and what was left out in words; all rows and "" if nothing was."""
    if checked(missing) == "keep":
        return data, labels, ""
    if not isinstance(data, pd.DataFrame) and np.ndim(data) != 2:
        return data, labels, ""
    whole = is_complete(data)
    if whole.all() or not whole.any():  # what is wrong with no rows at all is said elsewhere
        return data, labels, ""
    table = data if isinstance(data, pd.DataFrame) else pd.DataFrame(data)
    n = int((~whole).sum())
    said = f"{n} of {len(whole)} rows of data {'has a gap and was' if n == 1 else 'have gaps and were'} left out"
    if labels is not None and len(labels) == len(whole):
        labels = [label for label, keeps in zip(labels, whole, strict=True) if keeps]
    return data[whole], labels, f"{said} ({_counted(table)})."


def _counted(table: pd.DataFrame, most: int = 5) -> str:
    """In which columns values are missing, and how many."""
    counts = table.isna().sum()
    worst = counts[counts > 0].sort_values(ascending=False, kind="stable")
    named = ", ".join(f"{name} {n}" for name, n in worst.iloc[:most].items())
    return named if len(worst) <= most else f"{named} and {len(worst) - most} more columns"


def all_at_once(work: Iterable[Callable[[], T]]) -> list[T]:
    """What each piece of work gives; all that is wrong is told together.

    Raises:
        ValueError: with the message of each piece that failed.
    """
    done: list[T] = []
    problems: list[str] = []
    for piece in work:
        try:
            done.append(piece())
        except ValueError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        raise ValueError("\n- ".join([f"{len(problems)} columns cannot be taken as they are:", *problems]))
    return done
