"""Ledgers record every answer, so that it is paid for only once.

`Ledger` (a file or a server) is in `acex.ledger.sql`, which imports SQLAlchemy; nothing imported here does.
"""

from __future__ import annotations

import os

from acex.ledger.base import Answer as Answer
from acex.ledger.base import Ask as Ask
from acex.ledger.base import Asked as Asked
from acex.ledger.base import BaseLedger as BaseLedger
from acex.ledger.base import Claim as Claim
from acex.ledger.base import Question as Question
from acex.ledger.memory import MemoryLedger as MemoryLedger
from acex.ledger.row_keys import canonical as canonical
from acex.ledger.row_keys import is_vote as is_vote
from acex.ledger.row_keys import query_id as query_id
from acex.ledger.row_keys import without_vote as without_vote


def open_ledger(where: BaseLedger | str | os.PathLike[str]) -> BaseLedger:
    """The ledger itself, or the one at a path or URL."""
    if isinstance(where, BaseLedger):
        return where
    from acex.ledger.sql import Ledger

    return Ledger(where)
