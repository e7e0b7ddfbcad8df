"""Explanations of many rows, of which few are in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from acex.engine.explanation import Explanation
from acex.engine.recorded import recorded
from acex.ledger import BaseLedger

MOST_KEPT = 256  # explanations that are kept in memory where a ledger on disk has them too


class Shelf:
    """Explanations by position: the latest in memory, the others read back from a ledger on disk.

    Each says what its row is called, as the id in its settings.
    """

    def __init__(self, ledger: BaseLedger, ids: Sequence[Any]) -> None:
        self._ledger, self._ids = ledger, ids
        self._kept: OrderedDict[int, Explanation] = OrderedDict()
        self._put_away: dict[int, tuple[str, int, int]] = {}  # what they are called there, and what this run paid

    def put(self, position: int, explanation: Explanation) -> None:
        self._kept[position] = self.named(position, explanation)
        self._kept.move_to_end(position)
        while len(self._kept) > MOST_KEPT and not self._ledger.is_memory:
            i, e = self._kept.popitem(last=False)
            if e.outcome != "failed":
                self._put_away[i] = (e.plan.identity, e.n_queries, e.n_reused)
                continue
            self._kept[i] = e  # no ledger has it, and it holds next to nothing
            if all(other.outcome == "failed" for other in self._kept.values()):
                break

    def get(self, position: int) -> Explanation:
        if position in self._kept:
            return self._kept[position]
        name, n_queries, n_reused = self._put_away[position]
        e = recorded(self._ledger, name)
        return self.named(position, replace(e, n_queries=n_queries, n_reused=n_reused))

    def named(self, position: int, explanation: Explanation) -> Explanation:
        """The explanation with the id of this row."""
        name = self._ids[position]
        is_named = explanation.about.get("id", explanation) == name
        return explanation if is_named else replace(explanation, about={**explanation.about, "id": name})
