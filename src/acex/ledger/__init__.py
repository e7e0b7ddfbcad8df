"""Where every answer is recorded, so that it is paid for once.

`Ledger` (a file or a server) is in `acex.ledger.sql`, which imports SQLAlchemy; nothing here does.
"""

from __future__ import annotations

import os

from acex.ledger.base import Account, Answer, Ask, Asked, BaseLedger, Claim, Question, Record, model_key
from acex.ledger.memory import MemoryLedger
from acex.ledger.row_keys import (
    Scores,
    as_vote,
    canonical,
    canonical_text,
    is_vote,
    label_text,
    query_id,
    row_values,
    without_vote,
)

__all__ = [
    "Account",
    "Answer",
    "Ask",
    "Asked",
    "BaseLedger",
    "Claim",
    "MemoryLedger",
    "Question",
    "Record",
    "Scores",
    "as_vote",
    "canonical",
    "canonical_text",
    "is_vote",
    "label_text",
    "model_key",
    "open_ledger",
    "query_id",
    "row_values",
    "without_vote",
]


def open_ledger(where: BaseLedger | str | os.PathLike[str] | None) -> BaseLedger:
    """The ledger itself, the one at a path or URL, or a new one in memory for None."""
    if isinstance(where, BaseLedger):
        return where
    if where is None:
        return MemoryLedger()
    from acex.ledger.sql import Ledger

    return Ledger(where)
