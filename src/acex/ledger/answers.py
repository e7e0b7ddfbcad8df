"""Answers of models: how they are written down, and what is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from acex.errors import LedgerFailed
from acex.ledger.book import Book, answer_of, by_id
from acex.ledger.entries import Answer, Asked
from acex.ledger.forms import Scores, iso, label_text, query_id
from acex.ledger.tables import contradictions, models, queries
from acex.values import as_json

_LAST = select(models.c.last_sequence).where(models.c.id == bindparam("model"))
_NUMBERED = models.update().where(models.c.id == bindparam("model")).values(last_sequence=bindparam("n"))
_NEW, _AWAITED = queries.insert(), queries.update().where(queries.c.id == bindparam("_id"))


class Answers(Book):
    """Every answer of every model, numbered in the order of settling."""

    def settle(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
    ) -> list[Answer]:
        """The answers that stand, one a row; on the disk before this returns.

        The first answer to a row stands, whoever gives it. One that differs from it is kept as a contradiction.

        Raises:
            LedgerFailed: they could not be written; the error's `answers` holds them.
            TypeError: a label is not text, a number or a truth value.
        """
        try:
            with self._store.write() as connection:
                return self._write_answers(connection, model, rows, labels, scores, "asked")[0]
        except LedgerFailed as failure:
            failure.answers = dict(zip(rows, labels, strict=True))
            raise

    def import_answers(
        self, model: str, rows: Sequence[str], labels: Sequence[Any], *, scores: Sequence[Scores | None] | None = None
    ) -> int:
        """How many rows were new, of answers that the model gave elsewhere. They cost nothing."""
        with self._store.write() as connection:
            return self._write_answers(connection, model, rows, labels, scores, "imported")[1]

    def known(self, model: str, rows: Sequence[str]) -> dict[str, Answer]:
        """The answers there are to these rows, by row."""
        with self._store.read() as connection:
            found = by_id(connection, [query_id(model, row) for row in rows]).values()
        return {query.row: answer_of(query) for query in found if query.sequence is not None}

    def by_key(self, keys: Sequence[str]) -> dict[str, Asked]:
        """What these keys (see `query_id`) stand for, of whatever model; unknown ones are left out."""
        with self._store.read() as connection:
            found = by_id(connection, keys).values()
        return {q.id: Asked(q.model_id, q.row, None if q.sequence is None else answer_of(q)) for q in found}

    def last_sequence(self, model: str) -> int:
        """The number of the newest answer: all up to it can be seen now and ever after. 0 when there is none."""
        with self._store.read() as connection:
            return connection.scalar(_LAST, {"model": model}) or 0

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        """Answers in the order in which they were settled.

        Args:
            after: only those numbered higher.
            up_to: only those numbered so or lower: what an earlier question could see.
            newest: at most so many, the latest of them; the time this takes does not grow with the ledger.
        """
        wanted = select(queries).where(queries.c.model_id == model, queries.c.sequence > after)
        if up_to is not None:
            wanted = wanted.where(queries.c.sequence <= up_to)
        wanted = wanted.order_by(queries.c.sequence.desc()).limit(newest)
        with self._store.read() as connection:
            return [answer_of(query) for query in connection.execute(wanted)][::-1]

    def _write_answers(
        self,
        connection: Connection,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        scores: Sequence[Scores | None] | None,
        purpose: str,
    ) -> tuple[list[Answer], int]:
        """The answers that stand, and how many of them are new."""
        account = self._account(connection, model)
        now = iso(self._store.now(connection))
        ids = [query_id(model, row) for row in rows]
        known = by_id(connection, ids)
        standing = {key: answer_of(query) for key, query in known.items() if query.sequence is not None}
        sequence = account.last_sequence
        new: list[dict[str, Any]] = []
        awaited: list[dict[str, Any]] = []
        other: list[dict[str, Any]] = []
        for key, row, label, given in zip(ids, rows, labels, scores or [None] * len(rows), strict=True):
            written = label_text(label)
            if key in standing:
                if standing[key].label != json.loads(written):  # 1 and 1.0 are no contradiction
                    other.append({"query_id": key, "label": written, "told_by": self.owner, "told_at": now})
                continue
            sequence += 1
            standing[key] = Answer(row, json.loads(written), given, sequence)
            in_json = None if given is None else json.dumps(given, default=as_json)
            answer = {"label": written, "scores": in_json, "settled_at": now, "sequence": sequence}
            if key in known:
                awaited.append({"_id": key, **answer})
            else:
                new.append({"id": key, "model_id": model, "row": row, "purpose": purpose, "attempts": 0, **answer})
        if awaited:
            connection.execute(_AWAITED, awaited)
        if new:
            connection.execute(_NEW, new)
        if other:
            connection.execute(contradictions.insert(), other)
        connection.execute(_NUMBERED, {"model": model, "n": sequence})
        return [standing[key] for key in ids], len(awaited) + len(new)
