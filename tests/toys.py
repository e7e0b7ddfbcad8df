"""Toy tables and models shared by tests. Add new ones here rather than in a test file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

POINTS = np.random.default_rng(0).normal(size=(150, 3)).round(6)  # three numbers, as an array


def sums(rows: Any) -> Any:
    """1 if the sum of a row is above 0.5, otherwise 0: a model for `POINTS`, or any table of numbers."""
    return (np.asarray(rows, dtype=float).sum(axis=1) > 0.5).astype(int)


def high(rows: Any) -> Any:
    """ "high" if the first two numbers of a row add up to more than 0.7, otherwise "low"."""
    first = rows.iloc[:, :2] if isinstance(rows, pd.DataFrame) else rows[:, :2]
    return np.where(first.sum(axis=1) > 0.7, "high", "low")


def not_asked(rows: Any) -> Any:
    """A model that must not be queried."""
    raise AssertionError("the model was asked")


def people(n: int = 80, seed: int = 0) -> pd.DataFrame:
    """Income, debt, children and job of n people: numbers of two kinds and a category."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.normal(3000, 800, n).round(),
            "debt": rng.uniform(0, 2, n).round(2),
            "children": rng.integers(0, 5, n),
            "job": rng.choice(["clerk", "cook", "judge"], n),
        }
    )


def score(rows: pd.DataFrame) -> Any:
    """The score of each person, above 0 for those that `bank` calls good."""
    judge = 500 * (rows["job"] == "judge")
    return (rows["income"] - 400 * rows["children"] - 300 * rows["debt"] + judge - 2800).to_numpy(dtype=float)


def bank(rows: pd.DataFrame) -> Any:
    """ "good" or "bad" for each person."""
    return np.where(score(rows) > 0, "good", "bad")


def bank_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """The probability of "bad" and "good" for each person."""
    p = 1 / (1 + np.exp(-score(rows) / 500))
    return pd.DataFrame({"bad": 1 - p, "good": p})


def rejected(rows: pd.DataFrame, i: int = 0) -> pd.Series[Any]:
    """Person number i among those that `bank` calls bad."""
    row: pd.Series[Any] = rows[bank(rows) == "bad"].iloc[i]
    return row


class Counted:
    """A model that records the rows it was sent; its length is their number."""

    def __init__(self, model: Callable[[Any], Any] = bank) -> None:
        self.model, self.sent = model, list[Any]()

    def __call__(self, rows: Any) -> Any:
        self.sent += rows.to_dict("records") if isinstance(rows, pd.DataFrame) else np.asarray(rows).tolist()
        return self.model(rows)

    def __len__(self) -> int:
        return len(self.sent)
