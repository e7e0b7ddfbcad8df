"""What goes into a ledger and comes out of it, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from acex.ledger.forms import PlainLabel, Scores


class Answer(NamedTuple):
    """A label of the model, and its place in the order of all answers of this model."""

    row: str
    label: PlainLabel
    scores: Scores | None  # the probability of each label, where the model gave them
    sequence: int


@dataclass(frozen=True)
class Question:
    """A row that is wanted, and why.

    Args:
        row: its canonical form.
        purpose: a word for people.
        position: its place among the questions of the explanation that asks, from 0; needed with an explanation only.
        seen: the sequence number of the newest answer that could influence this question.
        note: what else is worth keeping, such as the cost of the row; anything JSON can hold.
    """

    row: str
    purpose: str = "asked"
    position: int | None = None
    seen: int = 0
    note: Any = None


class Claim(NamedTuple):
    """What `claim` found: "mine" must be sent now, "settled" has an answer, "in_flight" is awaited by someone else."""

    row: str
    state: Literal["mine", "settled", "in_flight"]
    answer: Answer | None
    attempts: int  # how often the row was sent, or may have been, this time included
    held_by: str | None


class Ask(NamedTuple):
    """A question of an explanation as it was recorded; `answer` is None while it is not settled."""

    position: int
    row: str
    purpose: str
    seen: int
    note: Any
    paid: int
    answer: Answer | None
    answered_at: str | None  # when it was settled, ISO 8601 in UTC


class Record(NamedTuple):
    """What a ledger knows of an explanation beside its questions; times are ISO 8601 in UTC."""

    model: str
    settings: dict[str, Any]
    space: dict[str, Any] | None  # as `begin` was told; None where an older acex began the explanation
    started_at: str
    finished_at: str | None
    outcome: str | None  # None while it has not ended
    result: dict[str, Any] | None  # as `finish` was told


class Asked(NamedTuple):
    """A row of a model as its key finds it; `answer` is None while it is not settled."""

    model: str
    row: str
    answer: Answer | None
