"""What a session asks at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from acex.arrays import Rows
from acex.ledger import Answer, Question
from acex.plan.step import Note
from acex.search.problem import Query


@dataclass
class Round:
    """Rows that are asked at once, in all their forms, and the answers there are."""

    queries: list[Query]
    rows: Rows  # as the model takes them
    forms: list[str]  # as the ledger knows them
    questions: list[Question]
    notes: list[Note]
    answers: dict[str, Answer] = field(default_factory=dict)

    @property
    def unanswered(self) -> list[int]:
        """Places that want an answer, each row once."""
        first = {form: i for i, form in reversed(list(enumerate(self.forms))) if form not in self.answers}
        return sorted(first.values())

    def part(self, places: list[int]) -> Rows:
        """The rows at these places."""
        return self.rows.iloc[places] if isinstance(self.rows, pd.DataFrame) else self.rows[places]
