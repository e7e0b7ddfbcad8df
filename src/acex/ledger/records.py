"""What each explanation asked, in order, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, func, select

from acex.ledger.book import Book, answer_of
from acex.ledger.entries import Ask, Record
from acex.ledger.forms import iso
from acex.ledger.tables import asks, explanations, queries, spaces
from acex.values import as_json, fingerprint

_PAID = select(func.coalesce(func.sum(asks.c.paid), 0)).where(asks.c.explanation_id == bindparam("explanation"))


class Records(Book):
    """The explanations of a ledger: enough to go on with each, or to show it."""

    def begin(
        self,
        explanation: str,
        model: str,
        *,
        factual: Mapping[str, Any],
        settings: Mapping[str, Any],
        space: Mapping[str, Any] | None = None,
    ) -> list[Ask]:
        """What this explanation has asked so far: nothing if it is new, else enough to go on where it stopped.

        Args:
            space: what the rows hold, in plain values; kept once for all explanations that share it.
        """
        with self._store.write() as connection:
            self._account(connection, model)
            line = {
                "id": explanation,
                "model_id": model,
                "factual": json.dumps(factual, default=as_json),
                "settings": json.dumps(settings, default=as_json),
                "started_at": iso(self._store.now(connection)),
            }
            connection.execute(self._store.insert(explanations, line))
            if space is not None:
                described = json.dumps(space, default=as_json)
                key = fingerprint(described)
                connection.execute(self._store.insert(spaces, {"id": key, "description": described}))
                # Also one that an older acex began, which did not keep it.
                lacking = (explanations.c.id == explanation, explanations.c.space_id.is_(None))
                connection.execute(explanations.update().where(*lacking).values(space_id=key))
        return self.asks(explanation)

    def record(self, explanation: str) -> Record:
        """What is known of an explanation beside its questions.

        Raises:
            ValueError: there is none of this name.
        """
        wanted = select(explanations, spaces.c.description).outerjoin(spaces).where(explanations.c.id == explanation)
        with self._store.read() as connection:
            line = connection.execute(wanted).one_or_none()
        if line is None:
            raise ValueError(f"{explanation!r} is not an explanation of this ledger; see Ledger.explanations.")
        space, result = (None if text is None else json.loads(text) for text in (line.description, line.result))
        return Record(
            line.model_id,
            json.loads(line.settings),
            space,
            line.started_at,
            line.finished_at,
            line.outcome,
            result,
        )

    def asks(self, explanation: str) -> list[Ask]:
        """The questions of an explanation in order, with the answers there are."""
        answer_columns = (queries.c.row, queries.c.label, queries.c.scores, queries.c.sequence, queries.c.settled_at)
        wanted = (
            select(asks, *answer_columns)
            .join(queries, asks.c.query_id == queries.c.id)
            .where(asks.c.explanation_id == explanation)
            .order_by(asks.c.position)
        )
        with self._store.read() as connection:
            return [
                Ask(
                    a.position,
                    a.row,
                    a.purpose,
                    a.seen,
                    json.loads(a.note),
                    a.paid,
                    None if a.label is None else answer_of(a),
                    a.settled_at,
                )
                for a in connection.execute(wanted)
            ]

    def paid(self, explanation: str) -> int:
        """How many rows an explanation has paid for, whoever ran it."""
        with self._store.read() as connection:
            return int(connection.scalar(_PAID, {"explanation": explanation}) or 0)

    def seen_at_end(self, explanation: str) -> int | None:
        """The number of the newest answer there was when an explanation ended; None if it has not."""
        with self._store.read() as connection:
            line = connection.execute(select(explanations).where(explanations.c.id == explanation)).one_or_none()
            if line is None or line.finished_at is None:
                return None
            then = (queries.c.model_id == line.model_id, queries.c.settled_at <= line.finished_at)
            return connection.scalar(select(func.max(queries.c.sequence)).where(*then)) or 0

    def finish(self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None) -> None:
        """Write down how an explanation ended, and what was found, in plain values."""
        with self._store.write() as connection:
            ended = {
                "outcome": outcome,
                "finished_at": iso(self._store.now(connection)),
                "result": None if result is None else json.dumps(result, default=as_json),
            }
            connection.execute(explanations.update().where(explanations.c.id == explanation).values(**ended))
