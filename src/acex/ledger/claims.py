"""Claims: a row is paid for once, because whoever sends it has said so before.

A row is *claimed* before it is sent and *settled* with its label. In between it is *in flight*: whoever wants the same
row waits for the answer. A claim holds for its *lease*; when that has run out without an answer, or the process that
held it no longer lives, the next one to claim the row asks again, and `attempts` says so.

    claims = ledger.claim(model, questions)       # atomic, budget included
    mine = [c.row for c in claims if c.state == "mine"]
    ledger.settle(model, mine, send(mine))        # before waiting for others, who may be waiting for us
    ledger.wait(model, [c.row for c in claims])   # then claim again: each is settled, or may be taken over

When sending fails, `release` what certainly cost nothing and `abandon` the rest, so that nobody waits for it.

Rows are canonical texts (see `canonical`). Claims and answers of one model are written one transaction at a
time: each first locks the model's line, which holds the two counters. So budgets hold whatever the number of processes,
and an answer with number n is visible only when 1 to n - 1 are. (A serial column of PostgreSQL does not promise that:
the transaction that drew n may commit before the one that drew n - 1.)
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from acex.errors import BudgetSpent, LedgerFailed, OutOfStep
from acex.ledger.answers import Answers
from acex.ledger.book import answer_of, by_id
from acex.ledger.entries import Claim, Question
from acex.ledger.forms import iso, query_id
from acex.ledger.owner import Moment, certainly_dead
from acex.ledger.seal import changed, lines, sealed
from acex.ledger.tables import asks, explanations, queries
from acex.values import as_json

FOREVER = "9999-12-31T23:59:59.999999+00:00"
ANSWER_BYTES = 512  # of an answer in the journal, beside its row
LONGEST_BEAT = 3600.0  # seconds between two renewals of a claim, however long its lease
LONGEST_PAUSE = 0.25  # seconds between two looks for somebody else's answer

# Statements that every question needs: putting one together takes longer than running it.
_MODEL_OF = select(explanations.c.model_id).where(explanations.c.id == bindparam("explanation"))
_AT_PLACES = select(asks).where(
    asks.c.explanation_id == bindparam("explanation"), asks.c.position.in_(bindparam("places", expanding=True))
)
_CLAIM, _CLAIM_AGAIN = queries.insert(), queries.update().where(queries.c.id == bindparam("_id"))
_RECORD = asks.insert()


class Claims(Answers):
    """Who has to ask a row, decided for all who want it."""

    def claim(
        self,
        model: str,
        questions: Sequence[Question],
        *,
        explanation: str | None = None,
        most: int | None = None,
        lease: float | None = None,
        holder: str | None = None,
    ) -> list[Claim]:
        """For each question who has to ask it, decided at once for all; on the disk before this returns.

        Args:
            explanation: on whose behalf; its questions are recorded in the same transaction.
            most: how many rows may become mine, at most.
            lease: for how many seconds my claims hold, instead of the ledger's; `math.inf` until settled or abandoned.
            holder: who will answer when it is not this process, such as "laboratory".

        Raises:
            BudgetSpent: more rows would have to be sent than `most` or the model's budget allows; nothing was claimed.
            OutOfStep: the explanation has asked another row in one of these places; nothing was claimed.
        """
        self._catch_up()  # no row is asked again whose answer this process knows
        with self._store.write() as connection:
            account = self._account(connection, model)
            now = self._store.now(connection)
            ids = [query_id(model, question.row) for question in questions]
            if explanation is not None:
                _check_begun(connection, explanation, model)
                recorded = _checked_places(connection, explanation, questions, ids)
            known = by_id(connection, ids)
            if any(_is_given_up(query, now) for query in known.values()) and self._heard_of(connection, model):
                account, known = self._account(connection, model), by_id(connection, ids)
            claimed = {
                "claimed_by": holder or self.owner,
                "claimed_at": iso(now.at),
                "explanation_id": explanation,
                **_lease(now, self.lease if lease is None else lease),
            }
            claims: list[Claim] = []
            mine: dict[str, dict[str, Any]] = {}
            for key, question in zip(ids, questions, strict=True):
                query = known.get(key)
                if query is not None and query.sequence is not None:
                    claims.append(Claim(question.row, "settled", answer_of(query), query.attempts, None))
                elif key in mine:  # wanted twice at once
                    claims.append(Claim(question.row, "in_flight", None, mine[key]["attempts"], claimed["claimed_by"]))
                elif query is not None and _in_flight(query, now):
                    claims.append(Claim(question.row, "in_flight", None, query.attempts, query.claimed_by))
                else:
                    attempts = 1 if query is None else query.attempts + 1
                    mine[key] = {"row": question.row, "purpose": question.purpose, "attempts": attempts, **claimed}
                    claims.append(Claim(question.row, "mine", None, attempts, claimed["claimed_by"]))
            if most is not None and len(mine) > most:
                raise BudgetSpent(f"{len(mine)} rows to ask, but only {most} more may be sent.")
            self._charge(connection, account, len(mine))
            _write_claims(connection, model, mine, known)
            if explanation is not None:
                _record_asks(connection, explanation, questions, ids, set(mine), recorded)
            if mine:  # room for their answers, or they are not asked
                self._journal.reserve(sum(2 * len(line["row"]) + ANSWER_BYTES for line in mine.values()))
        return claims

    @contextmanager
    def holding(self, model: str, rows: Sequence[str]) -> Iterator[None]:
        """Renew my claims of these rows as long as the block runs, however long that is."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(min(self.lease / 4, LONGEST_BEAT)):
                with suppress(LedgerFailed):  # the next time, perhaps
                    self._renew(model, rows)

        thread = threading.Thread(target=renew, name="acex-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def release(self, model: str, rows: Sequence[str]) -> int:
        """How many of my claims were given back, for requests that certainly cost nothing, such as a refused
        connection. The budget has them again."""
        with self._store.write() as connection:
            account = self._account(connection, model)
            known = by_id(connection, [query_id(model, row) for row in rows])
            given = [q for q in known.values() if q.sequence is None and q.claimed_by == self.owner]
            for query in given:
                freed = dict.fromkeys(("claimed_by", "claimed_at", "leased_until", "lease_clock", "lease_ends"))
                new = changed(queries, query, {**freed, "attempts": query.attempts - 1})
                connection.execute(_CLAIM_AGAIN, {"_id": query.id, **new})
                paid = (asks.c.explanation_id == query.explanation_id, asks.c.query_id == query.id, asks.c.paid > 0)
                for ask in lines(connection, asks, select(asks).where(*paid)):
                    _pay(connection, ask, -1)
            self._charge(connection, account, -len(given))
        return len(given)

    def abandon(self, model: str, rows: Sequence[str] | None = None) -> int:
        """How many claims nobody awaits any longer: the next to want such a row asks again, without waiting.

        For a request that failed after it may have been charged, and for a person who knows that an owner is gone.
        What was claimed stays counted, and an answer that comes all the same is taken. All rows by default.
        """
        unsettled = select(queries).where(queries.c.model_id == model, queries.c.sequence.is_(None))
        with self._store.write() as connection:
            self._account(connection, model)
            now = self._store.now(connection)
            if rows is None:
                found = lines(connection, queries, unsettled.where(queries.c.claimed_by.is_not(None)))
            else:
                found = list(by_id(connection, [query_id(model, row) for row in rows]).values())
            held = [query for query in found if query.sequence is None and _is_leased(query, now)]
            self._lease_again(connection, held, _lease(now, 0.0))
        return len(held)

    def _renew(self, model: str, rows: Sequence[str]) -> None:
        with self._store.write() as connection:
            self._account(connection, model)
            known = by_id(connection, [query_id(model, row) for row in rows]).values()
            own = [query for query in known if query.sequence is None and query.claimed_by == self.owner]
            self._lease_again(connection, own, _lease(self._store.now(connection), self.lease))

    def _lease_again(self, connection: Connection, held: Sequence[Row[Any]], lease: Mapping[str, Any]) -> None:
        if held:
            connection.execute(_CLAIM_AGAIN, [{"_id": q.id, **changed(queries, q, lease)} for q in held])

    def _heard_of(self, connection: Connection, model: str) -> bool:
        """Were there answers of this model in the journals of others, who may be gone? They are settled now."""
        heard = [entry for _, entries in self._journal.left() for entry in entries if entry.model == model]
        for entry in heard:
            self._write_answers(connection, entry, again=True)
        return bool(heard)

    def wait(self, model: str, rows: Sequence[str], *, timeout: float | None = None) -> bool:
        """True as soon as none of the rows is in flight: each is settled, or may be claimed.

        False after `timeout` seconds; by default only when a claim that has no end is not answered within the lease.
        """
        ends = time.monotonic() + (self.lease if timeout is None else timeout)
        pause = 0.005
        ids = [query_id(model, row) for row in rows]
        while True:
            with self._store.read() as connection:
                now = self._store.now(connection)
                waiting = [query for query in by_id(connection, ids).values() if _in_flight(query, now)]
            may_end = timeout is not None or any(query.leased_until == FOREVER for query in waiting)
            if not waiting or (may_end and time.monotonic() >= ends):
                return not waiting
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def free(self, model: str, rows: Sequence[str]) -> set[str]:
        """Those of the rows that cost nothing to claim: answered, or awaited by whoever has paid for them."""
        with self._store.read() as connection:
            now = self._store.now(connection)
            found = by_id(connection, [query_id(model, row) for row in rows]).values()
        return {query.row for query in found if query.sequence is not None or _in_flight(query, now)}


def _write_claims(
    connection: Connection, model: str, mine: dict[str, dict[str, Any]], known: dict[str, Row[Any]]
) -> None:
    lines_of = {key: {"id": key, "model_id": model, **values} for key, values in mine.items()}
    new = [sealed(queries, line) for key, line in lines_of.items() if key not in known]
    again = [{"_id": key, **changed(queries, known[key], mine[key])} for key in mine if key in known]
    if new:
        connection.execute(_CLAIM, new)
    if again:
        connection.execute(_CLAIM_AGAIN, again)


def _check_begun(connection: Connection, explanation: str, model: str) -> None:
    if connection.scalar(_MODEL_OF, {"explanation": explanation}) != model:
        raise ValueError(f"Explanation {explanation!r} of model {model!r} was not begun: call ledger.begin first.")


def _checked_places(
    connection: Connection, explanation: str, questions: Sequence[Question], ids: Sequence[str]
) -> dict[int, Row[Any]]:
    """What was recorded at the places of these questions: each is new, or the same row as before."""
    places = [question.position for question in questions]
    if None in places:
        raise ValueError("A question of an explanation needs its position.")
    told = lines(connection, asks, _AT_PLACES, {"explanation": explanation, "places": places})
    recorded = {ask.position: ask for ask in told}
    for place, key in zip(places, ids, strict=True):
        if place in recorded and recorded[place].query_id != key:
            raise OutOfStep(
                f"question {place} of explanation {explanation} was another row before. Is the same explanation "
                f"running elsewhere? Nothing was claimed."
            )
    return recorded


def _record_asks(
    connection: Connection,
    explanation: str,
    questions: Sequence[Question],
    ids: Sequence[str],
    mine: set[str],
    recorded: Mapping[int, Row[Any]],
) -> None:
    """Write down what was asked; a question asked again after a crash keeps its place and counts its payments."""
    unpaid = set(mine)
    for key, question in zip(ids, questions, strict=True):
        paid = int(key in unpaid)
        unpaid.discard(key)
        asked = recorded.get(question.position or 0)
        if asked is None:
            line = {"explanation_id": explanation, "position": question.position, "query_id": key, "paid": paid}
            why = {
                "purpose": question.purpose,
                "seen": question.seen,
                "note": json.dumps(question.note, default=as_json),
            }
            connection.execute(_RECORD, sealed(asks, line | why))
        elif paid:
            _pay(connection, asked, 1)


def _pay(connection: Connection, ask: Row[Any], times: int) -> None:
    place = (asks.c.explanation_id == ask.explanation_id, asks.c.position == ask.position)
    connection.execute(asks.update().where(*place).values(**changed(asks, ask, {"paid": ask.paid + times})))


def _in_flight(query: Row[Any], now: Moment) -> bool:
    """Is an answer still to be expected from whoever claimed this?"""
    if query.sequence is not None or query.claimed_by is None:
        return False
    return _is_leased(query, now) and not certainly_dead(query.claimed_by)


def _is_given_up(query: Row[Any], now: Moment) -> bool:
    """Was this sent, or may have been, by somebody whose answer is no longer awaited?"""
    return query.sequence is None and query.attempts > 0 and not _in_flight(query, now)


def _is_leased(query: Row[Any], now: Moment) -> bool:
    if query.leased_until is None:
        return False
    if query.lease_clock is not None and query.lease_clock == now.clock:
        return bool(query.lease_ends > now.ticks)
    return bool(query.leased_until > iso(now.at))


def _lease(now: Moment, seconds: float) -> dict[str, Any]:
    """When a lease ends: for people, and on a clock that nobody sets where there is one."""
    if seconds > 1e9:
        return {"leased_until": FOREVER, "lease_clock": None, "lease_ends": None}
    until = iso(now.at + timedelta(seconds=seconds))
    return {
        "leased_until": until,
        "lease_clock": now.clock,
        "lease_ends": None if now.clock is None else now.ticks + seconds,
    }
