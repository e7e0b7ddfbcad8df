"""The ledger: where every answer of a model is written down, so that it is paid for once."""

from __future__ import annotations

from acex.ledger.claims import Claims
from acex.ledger.copies import Copies
from acex.ledger.names import Names
from acex.ledger.purge import Purges
from acex.ledger.records import Records
from acex.ledger.views import Views


class Ledger(Claims, Records, Names, Purges, Views, Copies):
    """Every answer of every model, with claims, budgets and the questions of each explanation.

    Args:
        where: a path (an SQLite file), a URL (`postgresql://user@host/database`), or None: memory, for this process.
        lease: for how many seconds a claim holds that nobody renews.
        checked: refuse a file that is damaged; False opens it all the same, to `check` or `repair` it.
        name: for a ledger in memory: what the next one of this name takes over if this process is killed. Without a
            name nothing of it outlives the process.

    Example:
        >>> from acex.ledger import Ledger, Question
        >>> ledger = Ledger()
        >>> [claim.state for claim in ledger.claim("loans-v1", [Question('[37, "clerk"]')])]
        ['mine']
        >>> ledger.settle("loans-v1", ['[37, "clerk"]'], ["good"])[0].label
        'good'
    """
