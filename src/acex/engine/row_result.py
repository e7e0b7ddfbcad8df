"""The result of one row that a batch keeps for its tables."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from acex.engine.explanation import Explanation
from acex.engine.redaction import redacted_error


class RowResult(NamedTuple):
    """The result of one row that a batch keeps for its tables."""

    outcome: str
    label_before: Any
    label_after: Any
    cost: float
    n_changes: int
    n_not_checked: int  # changes that may not be needed
    changes: dict[str, tuple[Any, Any]]  # values before and after, by feature
    queries: int
    reused: int
    error: str | None
    ways: tuple[tuple[str, str, float], ...] = ()  # per change: feature; up, down or other; size
    new: int = 0  # number of queries of this run

    @classmethod
    def of(cls, e: Explanation, paid: int) -> RowResult:
        """The result of an explanation for which all its runs together have sent `paid` rows."""
        changes = list(e.changes[["feature", "before", "after", "step"]].itertuples(index=False, name=None))
        ways = ((f, e.plan.space.feature(f).way(s, b, a), abs(s)) for f, b, a, s in changes)
        return cls(
            e.outcome,
            e.label_before,
            e.label_after,
            e.costs[0] if e.costs else math.nan,
            len(changes),
            int((e.changes["needed"] == "not checked").sum()),
            {f: (b, a) for f, b, a, _ in changes},
            paid,
            e.n_reused,
            e.error,
            tuple(ways),
            e.n_queries,
        )

    def without(self, columns: Collection[str]) -> RowResult:
        """The result without these features; the error is redacted as well, since it may quote the row."""
        if not columns:
            return self
        return self._replace(
            changes={name: change for name, change in self.changes.items() if name not in columns},
            ways=tuple(way for way in self.ways if way[0] not in columns),
            error=redacted_error(self.error, columns),
        )


NOT_DONE = RowResult("unfinished", None, None, math.nan, 0, 0, {}, 0, 0, None)
