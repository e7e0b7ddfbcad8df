"""Rows taken out of a ledger for good: those of somebody who wants to be forgotten, or those kept long enough."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam

from acex.ledger.book import Book, chunks
from acex.ledger.forms import iso
from acex.ledger.seal import changed, pages
from acex.ledger.tables import asks, contradictions, explanations, models, names, queries, spaces


class Purged(NamedTuple):
    """What was taken out, or would be.

    `rows` are those asked for no explanation that stays; `shared` are rows that one that stays has asked too, and
    `in_use` explanations that stay since their row is also that of somebody else.
    """

    explanations: int
    rows: int
    shared: int
    in_use: int


class Purges(Book):
    """What was asked and answered, taken out. What was paid stays counted."""

    def purge(
        self,
        *,
        named: Iterable[str] = (),
        before: datetime | None = None,
        model: str | None = None,
        really: bool = True,
    ) -> Purged:
        """Take out explanations with the rows asked for them; budgets and what was charged stay as they are.

        Answers that stay are numbered anew. A file is written anew, so that nothing is left between its lines. Nobody
        else should have the ledger open meanwhile.

        Args:
            named: of rows with one of these names. An explanation whose row has other names too only loses the name.
            before: that ended, or began and did not end, before this time; and rows answered before it that no
                explanation has asked.
            model: of this model only.
            really: False only counts.

        Raises:
            ValueError: neither names nor a time were given, or rows to take out wait for an answer.
        """
        wanted = {str(name) for name in named}
        if not wanted and before is None:
            raise ValueError("purge: expected names of rows, or a time before which they are taken out.")
        limit = None if before is None else iso(before.astimezone(UTC))
        with self._store.write() as connection:
            plan = _Plan(connection, wanted, limit, model)
            plan.refuse_in_flight()
            if really:
                plan.carry_out()
        if really:
            self._store.rewrite()
        return plan.counts


class _Plan:
    """Which lines go, and which of those that stay are changed."""

    def __init__(self, connection: Connection, wanted: set[str], limit: str | None, model: str | None) -> None:
        self._connection = connection
        self._wanted = wanted
        called: dict[str, set[str]] = {}
        for line in self._every(names):
            called.setdefault(line.explanation_id, set()).add(line.name)
        self._gone: set[str] = set()
        self._named: set[str] = set()  # explanations that stay, under other names
        for line in self._every(explanations):
            if model is not None and line.model_id != model:
                continue
            mine = called.get(line.id, set())
            if limit is not None and (line.finished_at or line.started_at) < limit:
                self._gone.add(line.id)
            elif mine & wanted:
                (self._gone if mine <= wanted else self._named).add(line.id)
        of_gone: set[str] = set()
        of_kept: set[str] = set()
        for ask in self._every(asks):
            (of_gone if ask.explanation_id in self._gone else of_kept).add(ask.query_id)
        old: set[str] = set()
        if limit is not None:
            asked = (q for q in self._every(queries) if model is None or q.model_id == model)
            old = {q.id for q in asked if q.settled_at is not None and q.settled_at < limit}
        self._rows = (of_gone | old) - of_kept
        self.counts = Purged(len(self._gone), len(self._rows), len(of_gone & of_kept), len(self._named))

    def refuse_in_flight(self) -> None:
        """Raise when a row to take out may still be answered: the answer would bring it back."""
        waits = [
            q for q in self._every(queries) if q.id in self._rows and q.sequence is None and q.claimed_by is not None
        ]
        if waits:
            raise ValueError(
                f"purge: {len(waits)} of these rows wait for an answer of {waits[0].model_id!r}. Wait for it, or give "
                f"them up with Ledger.abandon (acex ledger abandon)."
            )

    def carry_out(self) -> None:
        """Take the lines out, and number the answers that stay."""
        self._delete(contradictions, contradictions.c.query_id, self._rows)
        self._delete(asks, asks.c.explanation_id, self._gone)
        self._delete(names, names.c.explanation_id, self._gone)
        self._connection.execute(names.delete().where(names.c.name.in_(sorted(self._wanted))))
        for query in list(self._every(queries)):
            if query.explanation_id in self._gone and query.id not in self._rows:
                self._change(queries, query, explanation_id=None)
        self._delete(queries, queries.c.id, self._rows)
        self._delete(explanations, explanations.c.id, self._gone)
        used = {line.space_id for line in self._every(explanations)}
        self._delete(spaces, spaces.c.id, {line.id for line in self._every(spaces)} - used)
        self._number()

    def _number(self) -> None:
        numbers: dict[str, list[int]] = {}
        for query in self._every(queries):
            if query.sequence is not None:
                numbers.setdefault(query.model_id, []).append(query.sequence)
        for mine in numbers.values():
            mine.sort()

        def new(model: str, old: int | None) -> int | None:
            return None if old is None else bisect_right(numbers.get(model, []), old)

        settled = sorted((q for q in self._every(queries) if q.sequence is not None), key=lambda q: q.sequence)
        for query in settled:  # from the lowest on: no two have the same number on the way
            self._change(queries, query, sequence=new(query.model_id, query.sequence))
        model_of = {}
        for line in list(self._every(explanations)):
            model_of[line.id] = line.model_id
            self._change(explanations, line, seen_at_end=new(line.model_id, line.seen_at_end))
        for ask in list(self._every(asks)):
            self._change(asks, ask, seen=new(model_of[ask.explanation_id], ask.seen))
        for line in list(self._every(models)):
            self._change(models, line, last_sequence=len(numbers.get(line.id, [])))

    def _every(self, table: Any) -> Any:
        return (line for page in pages(self._connection, table) for line in page)

    def _delete(self, table: Any, column: Any, keys: set[str]) -> None:
        for some in chunks(sorted(keys)):
            self._connection.execute(table.delete().where(column.in_(some)))

    def _change(self, table: Any, line: Any, **values: Any) -> None:
        if all(line._mapping[name] == value for name, value in values.items()):
            return
        keys = list(table.primary_key)
        update = table.update().where(*(key == bindparam(f"_{key.name}") for key in keys))
        which = {f"_{key.name}": line._mapping[key.name] for key in keys}
        self._connection.execute(update, which | changed(table, line, values))


def moment(text: str) -> datetime:
    """A day or a time as people write it, such as 2026-01-31; without a zone it is UTC.

    Raises:
        ValueError: it is none.
    """
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day or time; expected one such as 2026-01-31.") from None
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)
