"""Type aliases for arrays and rows; samples and distinct rows; results of functions of rows; single-threaded BLAS."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.intp]
Rows: TypeAlias = Any  # DataFrame, Series, mapping, list of mappings, 1-D or 2-D array

# Error messages of pandas and NumPy if a whole column is used as a single value.
COLUMN_FOR_A_VALUE = re.compile(
    r"truth value of an? \w+|cannot convert the series|only length-1 arrays|only 0-dimensional arrays|unhashable type: "
    r"'(Series|numpy\.ndarray)'|'(Series|numpy\.ndarray)' object has no attribute|, not 'Series'"
)


def row_wise_advice(came: Any) -> str:
    """Advice for a function of rows that seems to have been written for one row; otherwise "".

    Args:
        came: the result of calling it: the exception raised, or the answer, which should be a list.
    """
    if isinstance(came, BaseException):
        is_for_one = COLUMN_FOR_A_VALUE.search(str(came)) is not None
    else:
        is_for_one = isinstance(came, (str, int, float, np.generic)) or (
            isinstance(came, np.ndarray) and came.ndim == 0
        )
    if not is_for_one:
        return ""
    return (
        " It looks like a function of one row, and it is called with a table of rows: let it work on whole columns, or "
        "pass lambda rows: [f(row) for _, row in rows.iterrows()], for arrays lambda rows: [f(row) for row in rows]."
    )


def aligned_answer(function: Callable[[Rows], Any], rows: Rows) -> Any:
    """The answer of a function of rows; a pandas object with the index of the rows is put into their order.

    The function gets a copy, so that it may sort or empty its argument.
    """
    answer = function(rows.copy())
    index, wanted = getattr(answer, "index", None), getattr(rows, "index", None)
    if not (isinstance(index, pd.Index) and isinstance(wanted, pd.Index)) or index.equals(wanted):
        return answer
    is_permuted = len(index) == len(wanted) and index.is_unique and bool(index.isin(wanted).all())
    return answer.loc[wanted] if is_permuted else answer


def rows_at(rows: Rows, places: Any) -> Rows:
    """Some rows of a frame or an array, by position: a list of positions or a slice."""
    by_position: Any = getattr(rows, "iloc", rows)
    return by_position[places]


def sampled(rows: FloatArray, most: int, seed: int = 0) -> FloatArray:
    """The rows, (n, d), or a random sample of `most` of them in the same order; the same seed gives the same sample."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), most, replace=False))]


def unique_rows(X: FloatArray) -> FloatArray:
    """The distinct rows of X, (n, d), in ascending order.

    `np.unique(X, axis=0)` compares structured arrays, in which NumPy replaces a KeyboardInterrupt by a TypeError.
    """
    X = X[np.lexsort(X.T[::-1])]
    is_new = np.ones(len(X), dtype=bool)
    is_new[1:] = (X[1:] != X[:-1]).any(axis=1)
    return X[is_new]


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context manager that limits BLAS to one thread, which is faster for small matrices, most of all under load."""
    return _blas().limit(limits=1)
