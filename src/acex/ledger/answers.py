"""Answers of models: how they are written down, and what is known."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, bindparam, select

from acex.errors import LedgerFailed
from acex.ledger.book import LEASE_SECONDS, Book, account_of, answer_of, by_id
from acex.ledger.entries import Answer, Asked
from acex.ledger.forms import PlainLabel, Scores, iso, label_text, query_id
from acex.ledger.journal import Entry, Journal
from acex.ledger.seal import ADVICE, changed, lines, sealed
from acex.ledger.tables import contradictions, queries
from acex.values import as_json, listed

_NUMBERED = (
    select(queries)
    .where(queries.c.model_id == bindparam("model"), queries.c.sequence > bindparam("after"))
    .where(queries.c.sequence <= bindparam("up_to"))
    .order_by(queries.c.sequence)
)
_NEW, _AWAITED = queries.insert(), queries.update().where(queries.c.id == bindparam("_id"))


class Answers(Book):
    """Every answer of every model, numbered in the order of settling.

    Attributes:
        found: how many answers a process that did not come to its end had paid for; they are settled now.
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | None = None,
        *,
        lease: float = LEASE_SECONDS,
        checked: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(where, lease=lease, checked=checked)
        self._journal = self._store.journal(name) if checked else Journal(None, "")
        self.found = 0
        with suppress(LedgerFailed):  # it may be read-only; whoever asks such a row again looks once more
            for path, entries in self._journal.left():
                for entry in entries:
                    if self.is_memory:
                        self._journal.write(entry)  # until this process, too, has come to its end
                        self._journal.settled(entry)
                    with self._store.write() as connection:
                        self.found += self._write_answers(connection, entry, again=True)[1]
                self._journal.remove(path)

    @property
    def outlasts_failure(self) -> bool:
        """Is what an explanation has paid for there for the next process, if it does not come to its end?"""
        return not self.is_memory or self._journal.is_on_disk

    def leave_answers(self) -> None:
        """Leave all answers to the next process: an explanation did not come to its end in this one."""
        self._journal.stay()

    def close(self) -> None:
        """Close the connections. What could not be settled is tried once more, or waits on the disk."""
        with suppress(LedgerFailed):
            self._catch_up()
        if not self.is_memory:
            self._journal.close()
            for path, entries in self._journal.left():
                if not entries:
                    self._journal.remove(path)
        super().close()

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
            LedgerFailed: they could not be written now; the error's `answers` holds them. This process settles them
                before it claims anything else, or the ledger does when it is next opened.
            TypeError: a label is not text, a number or a truth value.
        """
        entry = _entry(model, rows, labels, scores, self.owner)
        self._journal.write(entry)
        try:
            with self._store.write() as connection:
                told = self._write_answers(connection, entry)[0]
        except BaseException as failure:
            self._journal.keep(entry)
            if isinstance(failure, LedgerFailed):
                failure.answers = dict(zip(rows, labels, strict=True))
            raise
        self._journal.settled(entry)
        return told

    def import_answers(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
        new_labels: bool = False,
    ) -> int:
        """How many rows were new, of answers that the model gave elsewhere. They cost nothing.

        Args:
            new_labels: take labels that the model has not given so far, too.

        Raises:
            ValueError: there are such labels. Nothing was taken in.
        """
        entry = _entry(model, rows, labels, scores, self.owner)
        with self._store.write() as connection:
            if not new_labels:
                self._refuse_new_labels(connection, entry)
            return self._write_answers(connection, entry, purpose="imported")[1]

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
        account = self._glance(model)
        return 0 if account is None else int(account.last_sequence)

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        """Answers in the order in which they were settled.

        Args:
            after: only those numbered higher.
            up_to: only those numbered so or lower: what an earlier question could see.
            newest: at most so many, the latest of them; the time this takes does not grow with the ledger.
        """
        with self._store.read() as connection:
            account = account_of(connection, model)
            last = 0 if account is None else account.last_sequence
            last = last if up_to is None else min(up_to, last)
            first = after if newest is None else max(after, last - newest)
            first = min(first, last)
            found = lines(connection, queries, _NUMBERED, {"model": model, "after": first, "up_to": last})
            for number, query in zip(range(first + 1, last + 1), [*found, None], strict=False):
                if query is None or query.sequence != number:
                    raise LedgerFailed(f"answer {number} of model {model!r} is missing. {ADVICE}")
        return [answer_of(query) for query in found]

    def _catch_up(self) -> None:
        """Settle what the ledger did not take before."""
        for entry in list(self._journal.stuck):
            with self._store.write() as connection:
                self._write_answers(connection, entry, again=True)
            self._journal.settled(entry)

    def _refuse_new_labels(self, connection: Connection, entry: Entry) -> None:
        given = (
            select(queries.c.label).distinct().where(queries.c.model_id == entry.model, queries.c.label.is_not(None))
        )
        known = [json.loads(text) for text in connection.scalars(given)]
        strange = [label for label in entry.labels if not _fits(label, known)]
        if strange:
            raise ValueError(
                f"{strange[0]!r} is not a label that model {entry.model!r} has given so far; these are "
                f"{listed(sorted(known, key=str))}. Nothing was taken in. If it is one all the same, say "
                f"new_labels=True (--new-labels)."
            )

    def _write_answers(
        self, connection: Connection, entry: Entry, *, purpose: str = "asked", again: bool = False
    ) -> tuple[list[Answer], int]:
        """The answers that stand, and how many of them are new; `again` where they may have been written before."""
        model = entry.model
        account = self._account(connection, model)
        now = iso(self._store.now(connection).at)
        ids = [query_id(model, row) for row in entry.rows]
        known = by_id(connection, ids)
        standing = {key: answer_of(query) for key, query in known.items() if query.sequence is not None}
        sequence = account.last_sequence
        new: list[dict[str, Any]] = []
        awaited: list[dict[str, Any]] = []
        other: list[dict[str, Any]] = []
        all_scores = entry.scores or [None] * len(ids)
        for key, row, label, scores in zip(ids, entry.rows, entry.labels, all_scores, strict=True):
            if key in standing:
                if standing[key].label != label:  # 1 and 1.0 are no contradiction
                    said = {"query_id": key, "label": json.dumps(label), "told_by": entry.told_by, "told_at": now}
                    other.append(sealed(contradictions, said))
                continue
            sequence += 1
            standing[key] = Answer(row, label, scores, sequence)
            in_json = None if scores is None else json.dumps(scores, default=as_json)
            answer = {"label": json.dumps(label), "scores": in_json, "settled_at": now, "sequence": sequence}
            if key in known:
                awaited.append({"_id": key, **changed(queries, known[key], answer)})
            else:
                line = {"id": key, "model_id": model, "row": row, "purpose": purpose, "attempts": 0, **answer}
                new.append(sealed(queries, line))
        if awaited:
            connection.execute(_AWAITED, awaited)
        if new:
            connection.execute(_NEW, new)
        if other and again:
            told = select(contradictions.c.query_id, contradictions.c.label).where(
                contradictions.c.query_id.in_([line["query_id"] for line in other])
            )
            before = {tuple(line) for line in connection.execute(told)}
            other = [line for line in other if (line["query_id"], line["label"]) not in before]
        if other:
            connection.execute(contradictions.insert(), other)
        if sequence > account.last_sequence:
            self._change(connection, account, last_sequence=sequence)
        return [standing[key] for key in ids], len(awaited) + len(new)


def _entry(
    model: str, rows: Sequence[str], labels: Sequence[Any], scores: Sequence[Scores | None] | None, told_by: str
) -> Entry:
    if not len(rows) == len(labels) == len(rows if scores is None else scores):
        raise ValueError(f"expected a label for each of {len(rows)} rows, got {len(labels)}.")
    return Entry(model, rows, [json.loads(label_text(label)) for label in labels], scores, told_by)


def _fits(label: PlainLabel, known: Sequence[PlainLabel]) -> bool:
    """Could a model that has given these labels give this one? After one of them another of its kind is no surprise,
    and where they are fractions any number will do."""
    alike = [other for other in known if _kind(other) is _kind(label)]
    is_measured = any(isinstance(other, float) and other % 1 for other in alike)
    return label in known or is_measured or (len(known) == len(alike) <= 1)


def _kind(label: PlainLabel) -> type:
    return float if isinstance(label, int) and not isinstance(label, bool) else type(label)
