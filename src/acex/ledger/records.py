"""What each explanation asked, in order, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from acex.errors import LedgerFailed
from acex.ledger.book import Book, answer_of, by_id
from acex.ledger.entries import Ask, Record
from acex.ledger.forms import iso
from acex.ledger.seal import ADVICE, changed, lines, sealed
from acex.ledger.tables import asks, explanations, spaces
from acex.values import as_json, fingerprint

_EXPLANATION = select(explanations).where(explanations.c.id == bindparam("explanation"))
_MODEL_OF = select(explanations.c.model_id).where(explanations.c.id == bindparam("explanation"))
_ASKS = select(asks).where(asks.c.explanation_id == bindparam("explanation")).order_by(asks.c.position)
_SPACE = select(spaces.c.description).where(spaces.c.id == bindparam("space"))


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
                "started_at": iso(self._store.now(connection).at),
            }
            connection.execute(self._store.insert(explanations, sealed(explanations, line)))
            if space is not None:
                described = json.dumps(space, default=as_json)
                key = fingerprint(described)
                connection.execute(self._store.insert(spaces, {"id": key, "description": described}))
                [begun] = lines(connection, explanations, _EXPLANATION, {"explanation": explanation})
                if begun.space_id is None:  # new, or begun by an older acex, which did not keep it
                    _change(connection, begun, space_id=key)
        return self.asks(explanation)

    def record(self, explanation: str) -> Record:
        """What is known of an explanation beside its questions.

        Raises:
            ValueError: there is none of this name.
        """
        with self._store.read() as connection:
            found = lines(connection, explanations, _EXPLANATION, {"explanation": explanation})
            if not found:
                raise ValueError(f"{explanation!r} is not an explanation of this ledger; see Ledger.explanations.")
            [line] = found
            described = connection.scalar(_SPACE, {"space": line.space_id})
            if line.space_id is not None and fingerprint(described) != line.space_id:
                raise LedgerFailed(f"line id {line.space_id!r} of table spaces is damaged or missing. {ADVICE}")
        space, result = (None if text is None else json.loads(text) for text in (described, line.result))
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
        with self._store.read() as connection:
            asked = lines(connection, asks, _ASKS, {"explanation": explanation})
            found = by_id(connection, [ask.query_id for ask in asked])
            for ask in asked:
                if ask.query_id not in found:
                    raise LedgerFailed(
                        f"the row of question {ask.position} of explanation {explanation}, line id {ask.query_id!r} of "
                        f"table queries, is missing. {ADVICE}"
                    )
        return [
            Ask(
                ask.position,
                query.row,
                ask.purpose,
                ask.seen,
                json.loads(ask.note),
                ask.paid,
                None if query.sequence is None else answer_of(query),
                query.settled_at,
            )
            for ask, query in ((ask, found[ask.query_id]) for ask in asked)
        ]

    def paid(self, explanation: str) -> int:
        """How many rows an explanation has paid for, whoever ran it."""
        with self._store.read() as connection:
            return sum(ask.paid for ask in lines(connection, asks, _ASKS, {"explanation": explanation}))

    def seen_at_end(self, explanation: str) -> int | None:
        """The number of the newest answer there was when an explanation ended; None if it has not."""
        with self._store.read() as connection:
            found = lines(connection, explanations, _EXPLANATION, {"explanation": explanation})
        return found[0].seen_at_end if found else None

    def finish(
        self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None, *, seen: int | None = None
    ) -> None:
        """Write down how an explanation ended, and what was found, in plain values.

        Args:
            seen: the newest answer that it knew of when it decided to end; None for the newest there is.
        """
        with self._store.write() as connection:
            model = connection.scalar(_MODEL_OF, {"explanation": explanation})
            if model is None:
                raise ValueError(f"{explanation!r} is not an explanation of this ledger: it was not begun.")
            account = self._account(connection, model)  # whose lock is that of its explanations too
            [line] = lines(connection, explanations, _EXPLANATION, {"explanation": explanation})
            _change(
                connection,
                line,
                outcome=outcome,
                finished_at=iso(self._store.now(connection).at),
                result=None if result is None else json.dumps(result, default=as_json),
                seen_at_end=account.last_sequence if seen is None else seen,
            )


def _change(connection: Connection, line: Row[Any], **values: Any) -> None:
    new = changed(explanations, line, values)
    connection.execute(explanations.update().where(explanations.c.id == line.id).values(**new))
