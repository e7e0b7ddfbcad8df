"""The contract of a ledger: what every implementation promises, and the values that go in and come out.

A ledger records every answer of every model, so that no row is paid for twice. A row goes through three states:

*claimed*   `claim` decides, for all who want the row, who sends it. It happens before anything is sent, together with
            the check of every budget, in one transaction.
*in flight* The row was claimed and has no answer yet. Others who want it wait for the answer.
*answered*  `record` has stored the answer. It is on the disk before anything else happens with it.

    claims = ledger.claim(model, questions)
    mine = [claim.row for claim in claims if claim.state == "mine"]
    with ledger.holding(model, mine):             # renews the lease while the model works
        ledger.record(model, mine, send(mine))    # before waiting for others, who may be waiting for this process
    ledger.wait(model, rows)                      # then claim again: each row is answered, or may be claimed

When sending fails, `release` the rows that certainly cost nothing and `abandon` the others, so that no one waits.

A claim ends without an answer in three ways. Its owner has died: an operating-system lock shows it, and the row is free
at once. Its lease has run out: the owner lives but has not renewed the claim. Or the thread that claimed the row claims
again: it is not sending, so it never waits for itself. A row that is claimed again counts as sent again, since the
model may have charged for it; `attempts` counts this.

Answers of a model are numbered 1, 2, 3, ... in the order of recording; a purge leaves gaps. They are append-only:
`correct` adds a new answer to a row and leaves the old one. Answer n is visible only when all earlier ones are. Each
question of an explanation stores the newest number it could see (`seen`), so replaying the ledger shows the same
answers again.

The key of a model is its name, or name@version (`model_key`). The key of a row is its canonical text (`row_keys`).

`MemoryLedger` is a dict for one process; it keeps no explanations. `Ledger` is an SQLite file or a PostgreSQL database.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from acex.errors import BudgetSpent
from acex.ledger.row_keys import PlainLabel, Scores, now_text, plain_label
from acex.values import check_count, check_positive, counted, did_you_mean, listed, spelling

State: TypeAlias = Literal["mine", "answered", "in_flight"]
SHORTEST_PAUSE, LONGEST_PAUSE = 0.002, 0.25  # seconds between two looks for an answer of someone else
CHUNK = 10_000  # rows that are imported in one transaction
LARGEST = 2**63 - 1  # the largest integer that a database stores


class Answer(NamedTuple):
    """A label of the model, and its number among all answers of this model."""

    row: str
    label: PlainLabel
    scores: Scores | None  # the probability of each label, if the model gave them
    sequence: int


@dataclass(frozen=True)
class Question:
    """A row to ask, and why.

    Args:
        row: its canonical text.
        purpose: a word for people.
        position: its place among the questions of an explanation, from 0; required with an explanation.
        seen: the number of the newest answer that could influence this question. If the row was corrected since, the
            claim returns the answer that was visible then. None: the newest answer.
        note: what else to store, such as the cost of the row; anything JSON can hold.
        paid: how often it was paid for before, by an explanation that this one continues.
    """

    row: str
    purpose: str = "asked"
    position: int | None = None
    seen: int | None = None
    note: Any = None
    paid: int = 0


class Entry(NamedTuple):
    """Answers of a model that arrived together."""

    model: str
    rows: Sequence[str]
    labels: Sequence[PlainLabel]
    scores: Sequence[Scores | None] | None
    recorded_by: str
    used: str | None = None  # money, a decimal; None: all that was reserved


class Claim(NamedTuple):
    """The result of `claim` for one row: "mine" must be sent now, "in_flight" is being asked by someone else."""

    row: str
    state: State
    answer: Answer | None
    attempts: int  # how often the row was sent, or may have been, this time included
    held_by: str | None


class Ask(NamedTuple):
    """A recorded question of an explanation; `answer` is None while there is none."""

    position: int
    row: str
    purpose: str
    seen: int
    note: Any
    paid: int  # how often this explanation paid for it; 0: the answer was known
    answer: Answer | None
    answered_at: str | None  # ISO 8601 in UTC


class Record(NamedTuple):
    """What a ledger stores about an explanation, without its questions; times are ISO 8601 in UTC."""

    model: str
    settings: dict[str, Any]
    space: dict[str, Any] | None  # None if acex 0.1 began the explanation
    started_at: str
    finished_at: str | None
    outcome: str | None  # None while it runs
    result: dict[str, Any] | None
    seen_at_end: int | None  # the newest answer when it ended
    names: tuple[str, ...]  # what the explained row is called, such as the number of an applicant


class Asked(NamedTuple):
    """A row that was found by its key; `answer` is None while there is none."""

    model: str
    row: str
    answer: Answer | None


@dataclass(frozen=True)
class Account:
    """What a ledger knows about a model: its rows, budgets and what was charged.

    `row_budget` and `money_budget` limit the lifetime of the model; None: no limit. `n_charged` counts rows that were
    sent, or may have been. `money_used` is what was spent plus what is reserved for rows in flight.
    """

    id: str
    name: str
    version: str | None = None
    description: str = ""
    features: tuple[str, ...] | None = None  # names of the values of a row, in order
    row_budget: int | None = None
    price_per_row: float | None = None
    n_charged: int = 0
    last_sequence: int = 0  # number of the newest answer
    money_budget: Decimal | None = None
    money_used: Decimal = Decimal(0)

    @property
    def remaining(self) -> float:
        """How many rows the budget still allows; infinity without one."""
        return math.inf if self.row_budget is None else max(self.row_budget - self.n_charged, 0)

    def affordable(self, price: float | None) -> float:
        """How many rows the budgets still allow at this price; money counts only where there is a price."""
        if self.money_budget is None or not price:
            return self.remaining
        return min(self.remaining, max(rows_for(float(self.money_budget - self.money_used), price), 0))

    def charged(self, rows: int, price: Decimal | None = None) -> Account:
        """The account after sending this many rows, each for at most `price`.

        Raises:
            BudgetSpent: a budget does not allow it.
        """
        if rows > self.remaining:
            per_row = self.price_per_row
            price_text, limit = ("", "rows") if per_row is None else (f", at {per_row:g} a row", "money")
            raise BudgetSpent(
                f"{counted(rows, 'row')} to ask, but model {self.id!r} has {self.remaining} left "
                f"of the {self.row_budget} rows it may be sent over its lifetime{price_text}. Raise it with "
                f"ledger.budget({self.id!r}, {limit}=...) (in the shell: acex ledger budget)."
            )
        used = self.money_used + rows * (price or 0)
        if rows > 0 and self.money_budget is not None and used > self.money_budget:
            raise BudgetSpent(
                f"Model {self.id!r} has spent {self.money_used:f} of its budget of {self.money_budget:f}, and the next "
                f"request may cost {used - self.money_used:f}. Raise it with ledger.budget({self.id!r}, money=...)."
            )
        return replace(self, n_charged=self.n_charged + rows, money_used=used)


@dataclass
class RowState:
    """What a ledger knows about a row of a model."""

    answers: list[Answer] = field(default_factory=list)  # in order
    attempts: int = 0  # how often it was sent, or may have been; 0: imported or released
    claimed_by: str | None = None
    claimed_at: str | None = None
    lease_ends: float | None = None  # on the ledger's clock; None: no lease
    reserved: Decimal = Decimal(0)  # money, until the answer is recorded
    explanation_id: str | None = None  # on whose behalf it was last claimed
    purpose: str = "asked"


class OpenModel(ABC):
    """A model in a transaction: its account and rows. Changes are stored when the transaction ends."""

    account: Account
    rows: dict[str, RowState]  # by canonical text: at least those that the transaction was opened for, if known

    @property
    @abstractmethod
    def now(self) -> float:
        """Seconds on the clock of leases."""

    @abstractmethod
    def append(self, answers: Sequence[Answer], recorded_by: str) -> None:
        """Add the next answers of the model."""

    @abstractmethod
    def contradict(self, row: str, label: PlainLabel, recorded_by: str) -> None:
        """Store a label that differs from the recorded one."""

    # Explanations are not stored in memory.

    def store_questions(self, questions: Sequence[Question], explanation: str, mine: set[str]) -> None:  # noqa: B027
        """Store the questions of an explanation; each row that is mine is paid for once."""

    def unpay(self, row: str) -> None:  # noqa: B027
        """Take back that an explanation has paid for this row."""


def model_key(name: str, version: str | None = None) -> str:
    """The key of a model in every ledger."""
    return name if version is None else f"{name}@{version}"


def rows_for(money: float, price: float) -> int:
    """How many rows an amount of money pays for."""
    # Decimals as people write them: 0.3 buys three rows at 0.1, which is false for binary fractions.
    return int(Decimal(str(money)) / Decimal(str(price)))


def answer_seen(answers: Sequence[Answer], seen: int | None) -> Answer | None:
    """The answer, of those to one row in order, that a question saw: the newest up to `seen`, or the first after it."""
    if not answers:
        return None
    before = answers if seen is None else [answer for answer in answers if answer.sequence <= seen]
    return before[-1] if before else answers[0]


def is_other_thread(claimed_by: str) -> bool:
    """Does another thread of this process, whose id is the last word, still live? One that claims is not asking."""
    others = (thread.ident for thread in threading.enumerate() if thread is not threading.current_thread())
    return claimed_by.split()[-1] in map(str, others)


class BaseLedger(ABC):
    """Every answer of every model, with claims and budgets. The module's docstring defines the terms."""

    is_memory: bool  # does this ledger end with the process? Then it keeps no explanations.
    path: Path | None = None  # the SQLite file, if it is one
    lease: float = 0.0  # for how many seconds a claim lasts that is not renewed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close files and connections. Every other call has stored its result when it returns."""

    # -- storage -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _open(
        self, model: str, rows: Sequence[str] | None = (), *, writes: bool = True
    ) -> AbstractContextManager[OpenModel]:
        """A transaction on a model with these rows; None: with all that are claimed."""

    @abstractmethod
    def _me(self) -> str:
        """Who claims here: this thread of this process."""

    @abstractmethod
    def _is_alive(self, claimed_by: str) -> bool:
        """Is the claimant alive, and another thread than this one?"""

    # -- models and budgets --------------------------------------------------------------------------------------

    def account(self, model: str) -> Account:
        """What is known about a model; an empty account for an unknown one."""
        with self._open(model, writes=False) as found:
            return found.account

    def register(
        self, name: str, *, version: str | None = None, description: str = "", features: Sequence[str] | None = None
    ) -> str:
        """The key of a model (`model_key`), with what its rows hold.

        Raises:
            ValueError: the model is known with other features.
        """
        key = model_key(name, version)
        wanted = None if features is None else tuple(map(str, features))
        with self._open(key) as found:
            known = found.account
            if None not in (known.features, wanted) and known.features != wanted:  # equal rows would not mean the same
                raise ValueError(
                    f"Model {key!r} has the features {list(known.features or ())}, not {list(wanted or ())}. Use the "
                    f"same columns in the same order, or another name or version of the model."
                )
            found.account = replace(
                known,
                name=name,
                version=version,
                features=wanted or known.features,
                description=description or known.description,
            )
        return key

    def budget(
        self, model: str, *, rows: int | None = None, money: float | None = None, price_per_row: float | None = None
    ) -> None:
        """Limit what may be sent to a model over its lifetime, by everyone together: in rows or in money.

        What was sent before counts. The last call applies. With a price per row, money is converted to rows. Without
        one, claims must name the most that a row may cost.
        """
        check_positive("price_per_row", price_per_row, optional=True)
        if (rows is None) == (money is None):
            raise ValueError(f"budget takes rows or money, one of them; got rows={rows!r}, money={money!r}.")
        check_count("rows", rows, least=0, optional=True)
        check_positive("money", money, zero=True, optional=True)
        with self._open(model) as found:
            if price_per_row is not None and found.account.money_used:
                raise ValueError(f"price_per_row: what model {model!r} has cost is counted by token_prices already.")
            price = found.account.price_per_row if price_per_row is None else float(price_per_row)
            if money is not None and price is None:
                found.account = replace(found.account, money_budget=Decimal(str(money)))
                return
            if money is not None and price is not None:
                rows = rows_for(money, price)
            limit = int(rows or 0)
            if limit > LARGEST:
                raise ValueError(f"the budget is more than {LARGEST:.1g} rows, which is too large.")
            found.account = replace(found.account, row_budget=limit, price_per_row=price)

    def charge(self, model: str, rows: int, price: Decimal | None = None) -> None:
        """Count rows that are about to be sent again, as an audit does; a negative number gives them back.

        `price` is the most that one row may cost.

        Raises:
            BudgetSpent: they are more than the budget allows; nothing was counted.
        """
        with self._open(model) as found:
            found.account = found.account.charged(rows, price)

    # -- claims --------------------------------------------------------------------------------------------------

    def claim(
        self,
        model: str,
        questions: Sequence[Question],
        *,
        explanation: str | None = None,
        most: int | None = None,
        price: Decimal | None = None,
        holder: str | None = None,
    ) -> list[Claim]:
        """Who has to ask each question, decided at once for all of them.

        Args:
            explanation: on whose behalf; its questions are recorded in the same transaction.
            most: how many rows may become mine, at most.
            price: the most that one row may cost; it is reserved until `record` says what was used.
            holder: who will answer if it is not this process, such as a laboratory. Such a claim has no lease: it
                lasts until it is answered or abandoned.

        Raises:
            BudgetSpent: more rows would have to be sent than `most` or a budget of the model allows.
            OutOfStep: the explanation has asked another row at one of these positions.
            In both cases nothing was claimed.
        """
        self._before_claim()
        rows = [question.row for question in questions]
        with self._open(model, rows) as found:
            self._check_questions(found, questions, explanation)
            known = {row: found.rows[row] for row in rows if row in found.rows}
            in_flight = self._in_flight(found, known)
            mine: dict[str, Question] = {}
            states: list[State] = []  # a row that occurs twice is mine once
            for question in questions:
                row, is_new = question.row, question.row not in mine and question.row not in in_flight
                is_answered = row in known and bool(known[row].answers)
                states.append("answered" if is_answered else "mine" if is_new else "in_flight")
                if states[-1] == "mine":
                    mine[row] = question
            if most is not None and len(mine) > most:
                raise BudgetSpent(f"{len(mine)} rows to ask, but only {most} more may be sent.")
            if mine:
                found.account = found.account.charged(len(mine), price)
                claimant, moment = holder or self._claimant(), now_text()
                ends = None if holder is not None else found.now + self.lease
            for row, question in mine.items():
                state = known[row] = found.rows.setdefault(row, RowState())
                state.attempts += 1
                state.claimed_by, state.claimed_at, state.lease_ends = claimant, moment, ends
                state.reserved, state.purpose, state.explanation_id = price or Decimal(0), question.purpose, explanation
            if explanation is not None:
                found.store_questions(questions, explanation, set(mine))
        claims = []
        for question, outcome in zip(questions, states, strict=True):
            state = known[question.row]
            held_by = None if outcome == "answered" else state.claimed_by
            answer = answer_seen(state.answers, question.seen)
            claims.append(Claim(question.row, outcome, answer, state.attempts, held_by))
        return claims

    def _before_claim(self) -> None:  # noqa: B027
        """Store answers of this process that could not be stored before."""

    def _check_questions(  # noqa: B027
        self, found: OpenModel, questions: Sequence[Question], explanation: str | None
    ) -> None:
        """Refuse questions that do not fit their explanation, and look for answers that were left elsewhere."""

    def _claimant(self) -> str:
        """Who claims here, from now on visible to others as alive."""
        return self._me()

    def _in_flight(self, found: OpenModel, rows: Mapping[str, RowState]) -> set[str]:
        """The rows whose answer is still to be expected from the one who claimed them."""
        is_alive: dict[str, bool] = {}
        out = set()
        for row, state in rows.items():
            if state.answers or state.claimed_by is None:
                continue
            ends, claimed_by = state.lease_ends, state.claimed_by
            if ends is not None and claimed_by not in is_alive:
                is_alive[claimed_by] = self._is_alive(claimed_by)
            if ends is None or (ends > found.now and is_alive[claimed_by]):
                out.add(row)
        return out

    @abstractmethod
    def holding(self, model: str, rows: Sequence[str]) -> AbstractContextManager[None]:
        """Renew my claims of these rows for as long as the block runs."""

    def record(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
        used: Decimal | None = None,
    ) -> list[Answer]:
        """The answers that are valid now, one per row.

        The first answer to a row is valid, no matter who records it. A different one is kept as a contradiction.

        Args:
            used: what these rows have cost together; None: all that was reserved for them.

        Raises:
            LedgerFailed: they could not be stored now; the error's `answers` holds them. This process stores them
                before it claims anything else, or the ledger does when it is next opened.
            TypeError: a label is not text, a finite number or a truth value.
        """
        if not len(rows) == len(labels) == len(rows if scores is None else scores):
            raise ValueError(f"expected a label for each of {len(rows)} rows, got {len(labels)}.")
        plain = [plain_label(label) for label in labels]
        return self._store(Entry(model, rows, plain, scores, self._me(), None if used is None else str(used)))

    def _store(self, entry: Entry) -> list[Answer]:
        """The answers that are valid now, one per row."""
        with self._open(entry.model, entry.rows) as found:
            self._add(found, entry)
            return [found.rows[row].answers[-1] for row in entry.rows]

    def _add(self, found: OpenModel, entry: Entry, purpose: str = "asked") -> int:
        """How many of these answers were new; adding the same ones again changes nothing."""
        new: dict[str, Answer] = {}
        reserved, last = Decimal(0), found.account.last_sequence
        for row, label, given in zip(entry.rows, entry.labels, entry.scores or [None] * len(entry.rows), strict=True):
            state = found.rows.setdefault(row, RowState(purpose=purpose))
            known = state.answers[-1] if state.answers else new.get(row)
            if known is None:
                new[row] = Answer(row, label, given, last + len(new) + 1)
                reserved += state.reserved
            elif known.label != label:  # 1 and 1.0 are equal
                found.contradict(row, label, entry.recorded_by)
        if new:
            found.append(list(new.values()), entry.recorded_by)
            for row in new:
                found.rows[row].reserved = Decimal(0)
            freed = Decimal(0) if entry.used is None else reserved - Decimal(entry.used)
            found.account = replace(found.account, money_used=found.account.money_used - freed)
        return len(new)

    def release(self, model: str, rows: Sequence[str]) -> int:
        """How many of my claims were given back, for requests that certainly cost nothing; budgets have them again."""
        with self._open(model, rows) as found:
            known = {row: found.rows[row] for row in rows if row in found.rows}
            own = {row: state for row, state in known.items() if not state.answers and state.claimed_by == self._me()}
            for row, state in own.items():
                found.account = found.account.charged(-1, state.reserved)
                found.unpay(row)
                state.attempts -= 1
                state.claimed_by, state.lease_ends, state.reserved = None, None, Decimal(0)
            return len(own)

    def abandon(self, model: str, rows: Sequence[str] | None = None, *, used: Decimal | None = None) -> int:
        """How many claims were ended without an answer: whoever needs such a row next sends it again.

        For requests that failed after they may have been charged. They stay counted, and a late answer is recorded.
        All claims of the model by default. `used` is what the rows have cost together; None: all that was reserved.
        """
        with self._open(model, rows) as found:
            known = [found.rows[row] for row in (found.rows if rows is None else rows) if row in found.rows]
            claimed = [state for state in known if not state.answers and state.claimed_by is not None]
            if claimed and used is not None:
                freed = sum(state.reserved for state in claimed) - used
                found.account = replace(found.account, money_used=found.account.money_used - freed)
            for state in claimed:
                state.claimed_by = state.lease_ends = None
                state.reserved = state.reserved if used is None else Decimal(0)
            return len(claimed)

    def in_flight(self, model: str, rows: Sequence[str]) -> dict[str, bool]:
        """The rows that someone else is asking, each with whether its claim has a lease."""
        with self._open(model, rows, writes=False) as found:
            waiting = self._in_flight(found, {row: found.rows[row] for row in rows if row in found.rows})
            return {row: found.rows[row].lease_ends is not None for row in waiting}

    def wait(self, model: str, rows: Sequence[str]) -> bool:
        """True as soon as none of the rows is in flight: each is answered, or may be claimed.

        Waits for as long as claims are renewed. False after one lease if a claim has no lease.
        """
        ends, pause = time.monotonic() + (0 if self.is_memory else self.lease), SHORTEST_PAUSE
        while waiting := self.in_flight(model, rows):
            if not all(waiting.values()) and time.monotonic() >= ends:
                return False
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    # -- answers -------------------------------------------------------------------------------------------------

    def known(self, model: str, rows: Sequence[str]) -> dict[str, Answer]:
        """The newest answers to these rows, by row."""
        with self._open(model, rows, writes=False) as found:
            return {row: s.answers[-1] for row in rows if (s := found.rows.get(row)) is not None and s.answers}

    @abstractmethod
    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        """Answers in the order of recording; a corrected row occurs more than once.

        Args:
            after: only those with a higher number.
            up_to: only those with this number or a lower one: what an earlier question could see.
            newest: at most this many, the latest; the time does not grow with the ledger.
        """

    def import_answers(
        self, model: str, rows: Sequence[str], labels: Sequence[Any], *, new_labels: bool = False
    ) -> int:
        """How many rows were new, of answers that the model gave elsewhere. They cost nothing.

        Args:
            new_labels: also accept other spellings, and labels not given so far, once the model has given two.

        Raises:
            ValueError: there are such labels. Nothing was imported.
        """
        plain = [plain_label(label) for label in labels]
        if not new_labels:
            known = self._labels(model)
            measures = any(isinstance(label, float) and label % 1 for label in known)  # then any number may come
            by_spelling = {(type(label), spelling(label)): label for label in (*plain, *known)}
            for label in dict.fromkeys(plain):
                other = by_spelling[type(label), spelling(label)]
                is_known = label in known or (measures and isinstance(label, int | float))
                if not is_known and (len(known) > 1 or other != label):
                    raise ValueError(
                        f"{label!r} is not a label that model {model!r} has given so far: [{listed(known)}]."
                        f"{did_you_mean(label, {other, *known} - {label})} Nothing was imported. To accept it, pass "
                        f"new_labels=True (--new-labels)."
                    )
        n_new = 0
        for start in range(0, len(rows), CHUNK):
            some = rows[start : start + CHUNK]
            with self._open(model, some) as found:
                entry = Entry(model, some, plain[start : start + CHUNK], None, self._me())
                n_new += self._add(found, entry, purpose="imported")
        return n_new

    @abstractmethod
    def _labels(self, model: str) -> Sequence[PlainLabel]:
        """The labels that the model has given, each once."""

    def correct(self, model: str, row: str, label: Any, *, scores: Scores | None = None) -> Answer:
        """A new answer to a row that has one. Questions that saw the old answer see it again when replayed.

        Raises:
            ValueError: the row has no answer.
        """
        value = plain_label(label)
        with self._open(model, [row]) as found:
            if row not in found.rows or not found.rows[row].answers:
                raise ValueError(f"Row {row} of model {model!r} has no answer to correct.")
            answer = Answer(row, value, scores, found.account.last_sequence + 1)
            found.append([answer], self._me())
            return answer

    @abstractmethod
    def contradicted(self, model: str) -> set[str]:
        """The rows to which the model later gave another label than the recorded one."""

    # -- explanations (not in memory) ----------------------------------------------------------------------------

    def begin(
        self,
        explanation: str,
        model: str,
        *,
        factual: Mapping[str, Any],
        settings: Mapping[str, Any],
        space: Mapping[str, Any] | None = None,
        names: Iterable[str] = (),
    ) -> list[Ask]:
        """What this explanation has asked so far; empty if it is new. See `asks`.

        Args:
            space: what the rows hold, in plain values; stored once for all explanations that share it.
            names: what the explained row is called, such as the number of an applicant; known names stay.
        """
        raise NotImplementedError

    def explanation(self, explanation: str) -> Record:
        """What is stored about an explanation, without its questions.

        Raises:
            ValueError: there is none with this id.
        """
        raise NotImplementedError

    def asks(self, explanation: str) -> list[Ask]:
        """The questions of an explanation in order, with the answers there are."""
        raise NotImplementedError

    def paid(self, explanation: str) -> int:
        """How many rows were sent for an explanation, by all runs of it."""
        raise NotImplementedError

    def finish(
        self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None, *, seen: int | None = None
    ) -> None:
        """Store how an explanation ended, and what was found, in plain values.

        Args:
            seen: the newest answer it knew when it decided to end; None for the newest there is.
        """
        raise NotImplementedError
