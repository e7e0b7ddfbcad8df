"""The one door through which the model is asked: every row is counted, written down, and asked once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.errors import BudgetSpent, ModelFailed
from acex.models import Label, Predict, as_labels
from acex.values import as_json


@dataclass
class Record:
    """Every answer of one model, by the canonical form of the row. Kept in memory."""

    answers: dict[str, Label] = field(default_factory=dict)


class BlackBox:
    """A model with a budget.

    Args:
        predict: from rows to labels.
        record: where answers are written; rows found there are not sent.
        budget: how many rows may be sent.
    """

    def __init__(self, predict: Predict, record: Record, budget: int) -> None:
        self._predict, self._record = predict, record
        self.budget = budget
        self.n_queries = 0  # rows sent
        self.n_reused = 0  # rows answered from the record

    @property
    def remaining(self) -> int:
        """How many rows may still be sent."""
        return self.budget - self.n_queries

    def knows(self, rows: Rows) -> bool:
        """Would asking for these rows be free?"""
        return all(form in self._record.answers for form in canonical(rows))

    def ask(self, rows: Rows) -> list[Label]:
        """One label a row.

        Raises:
            BudgetSpent: before anything is sent, when the new rows are more than the budget allows.
            ModelFailed: the model raised or gave no labels. The rows count as sent.
        """
        forms = canonical(rows)
        answers = self._record.answers
        new = [i for i, form in enumerate(forms) if form not in answers and form not in forms[:i]]
        if len(new) > self.remaining:
            raise BudgetSpent(f"{len(new)} rows to ask, but only {self.remaining} of {self.budget} are left.")
        if new:
            sent = rows.iloc[new] if isinstance(rows, pd.DataFrame) else rows[new]
            self.n_queries += len(new)
            try:
                labels = self._send(sent)
            except ModelFailed as error:  # what was answered before the failure is paid for
                answers.update(zip((forms[i] for i in new), error.answered, strict=False))
                raise
            answers.update(zip((forms[i] for i in new), labels, strict=True))
        self.n_reused += len(forms) - len(new)
        return [answers[form] for form in forms]

    def _send(self, rows: Rows) -> list[Label]:
        try:
            answer = self._predict(rows)
        except ModelFailed:  # it knows better what was charged
            raise
        except Exception as error:
            raise ModelFailed(f"The model raised {type(error).__name__}: {error}") from error
        try:
            return as_labels(answer, len(rows))
        except ValueError as error:
            raise ModelFailed(f"The model's answer is not one label a row: {error}.") from None


def canonical(rows: Rows) -> list[str]:
    """One text a row, the same for the same values on every machine and in every version."""
    if isinstance(rows, pd.DataFrame):
        columns = [rows[c].tolist() for c in rows.columns]
    else:
        columns = [column.tolist() for column in np.asarray(rows).T]
    return [json.dumps([_plain(v) for v in row], ensure_ascii=True) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """The value as JSON knows it; -0.0 is 0.0, and a whole float is written like an integer."""
    value = as_json(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
