"""The interface of a ledger: what every implementation guarantees, and the values that go in and come out.

A ledger records every answer of every model, so that no row is paid for twice. A row passes through three states:

*claimed*   `claim` decides which of all threads and processes sends the row. It checks every budget in the same
            transaction, which is committed before anything is sent.
*in flight* The row is claimed and has no answer yet. Others that need it wait for the answer.
*answered*  `record` has stored the answer, durably before anything else uses it.

    claims = ledger.claim(model, questions)
    mine = [claim.row for claim in claims if claim.state == "mine"]
    with ledger.holding(model, mine):             # renews the lease while the model works
        ledger.record(model, mine, send(mine))    # before waiting for others, which may be waiting for this process
    ledger.wait(model, rows)                      # then claim again: each row is answered, or may be claimed

If sending fails, `release` the rows that certainly cost nothing and `abandon` the others, so that no one waits.

A claim ends without an answer in three ways. Its owner has died: an operating-system lock shows this, and the row can
be claimed at once. Its lease has expired: the owner is alive but has not renewed the claim. Or the thread that claimed
the row claims again: then it is not sending, so a thread never waits for itself. A row that is claimed again counts as
sent again, since the model may have charged for it; `attempts` counts this.

The answers of a model are numbered 1, 2, 3, ... in the order of recording; a purge leaves gaps. They are append-only:
`correct` adds another answer to a row and keeps the old one. Answer n becomes visible only after all earlier ones. Each
question of an explanation stores the number of the newest answer it could see (`seen`), so a replay from the ledger
uses the same answers.

The key of a model is its name, or name@version (`model_key`). The key of a row is its canonical text (`row_keys`).

`MemoryLedger` is a dict for one process and keeps no explanations. `Ledger` is an SQLite file or a PostgreSQL database.
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
SHORTEST_PAUSE, LONGEST_PAUSE = 0.002, 0.25  # seconds between two checks for another's answer
CHUNK = 10_000  # number of rows imported in one transaction
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
        purpose: why it is asked, in a word.
        position: its position among the questions of its explanation, from 0; required with an explanation.
        seen: the number of the newest answer that could influence this question. If the row was corrected later, the
            claim returns the answer that was visible then. None: the newest answer.
        note: what else to store, such as the cost of the row; any JSON-compatible value.
        paid: how often an explanation that this one continues has already paid for it.
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
    used: str | None = None  # price paid, a decimal; None: all that was reserved


class Claim(NamedTuple):
    """The result of `claim` for one row: "mine" must be sent by the caller, "in_flight" is sent by someone else."""

    row: str
    state: State
    answer: Answer | None
    attempts: int  # how often the row was sent, or may have been, including this claim
    held_by: str | None


class Ask(NamedTuple):
    """A recorded question of an explanation; `answer` is None until there is one."""

    position: int
    row: str
    purpose: str
    seen: int
    note: Any
    paid: int  # how often this explanation paid for it; 0 if the answer was known
    answer: Answer | None
    answered_at: str | None  # ISO 8601 in UTC


class Record(NamedTuple):
    """What a ledger stores about an explanation, without its questions; times are ISO 8601 in UTC."""

    model: str
    settings: dict[str, Any]
    space: dict[str, Any] | None  # None if acex 0.1 recorded the explanation
    started_at: str
    finished_at: str | None
    outcome: str | None  # None until it has ended
    result: dict[str, Any] | None
    seen_at_end: int | None  # the number of the newest answer when it ended
    names: tuple[str, ...]  # names of the explained row, such as an applicant number


class Asked(NamedTuple):
    """A row found by its key; `answer` is None until there is one."""

    model: str
    row: str
    answer: Answer | None


@dataclass(frozen=True)
class Account:
    """A model in a ledger: its name, budgets and what was charged.

    `row_budget` and `money_budget` apply to the lifetime of the model; None means no limit. `n_charged` is the number
    of rows that were sent, or may have been. `money_used` is what was spent plus what is reserved for rows in flight.
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
        """How many rows the budgets still allow at this price; without a price, the money budget is ignored."""
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
    """A row of a model in a ledger: its answers and its claim."""

    answers: list[Answer] = field(default_factory=list)  # in order
    attempts: int = 0  # how often it was sent, or may have been; 0: imported or released
    claimed_by: str | None = None
    claimed_at: str | None = None
    lease_ends: float | None = None  # seconds on the ledger's clock; None: no lease
    reserved: Decimal = Decimal(0)  # money, until the answer is recorded
    explanation_id: str | None = None  # the explanation that last claimed it
    purpose: str = "asked"


class OpenModel(ABC):
    """A model in a transaction: its account and rows. Changes are stored when the transaction ends."""

    account: Account
    rows: dict[str, RowState]  # by canonical text; at least those passed to `_open` that the ledger has

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

    # In memory the next two do nothing: explanations are not stored.

    def store_questions(self, questions: Sequence[Question], explanation: str, mine: set[str]) -> None:  # noqa: B027
        """Store the questions of an explanation, which pays once for each row in `mine`."""

    def unpay(self, row: str) -> None:  # noqa: B027
        """Undo one payment of the explanation that claimed this row."""


def model_key(name: str, version: str | None = None) -> str:
    """The key of a model in every ledger."""
    return name if version is None else f"{name}@{version}"


def rows_for(money: float, price: float) -> int:
    """How many rows an amount of money pays for."""
    # Decimal: 0.3 pays for three rows at 0.1, but 0.3 / 0.1 < 3 in floating point.
    return int(Decimal(str(money)) / Decimal(str(price)))


def answer_seen(answers: Sequence[Answer], seen: int | None) -> Answer | None:
    """The answer to a row that a question saw: the newest with number `seen` or lower, or else the first of all."""
    if not answers:
        return None
    before = answers if seen is None else [answer for answer in answers if answer.sequence <= seen]
    return before[-1] if before else answers[0]


def is_other_thread(claimed_by: str) -> bool:
    """Whether the thread of a claim (its last word) is alive and not the current one, which is not sending."""
    others = (thread.ident for thread in threading.enumerate() if thread is not threading.current_thread())
    return claimed_by.split()[-1] in map(str, others)


class BaseLedger(ABC):
    """Every answer of every model, with claims and budgets. The module docstring defines the terms."""

    is_memory: bool  # whether the ledger lives in this process only and keeps no explanations
    path: Path | None = None  # the SQLite file, if it is one
    lease: float = 0.0  # seconds until a claim that is not renewed expires

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close files and connections. Nothing is lost without it: every other call has stored its result."""

    # -- storage -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _open(
        self, model: str, rows: Sequence[str] | None = (), *, writes: bool = True
    ) -> AbstractContextManager[OpenModel]:
        """A transaction on a model, with the state of these rows loaded; None loads all claimed rows."""

    @abstractmethod
    def _me(self) -> str:
        """An identifier of this thread of this process, the owner of its claims."""

    @abstractmethod
    def _is_alive(self, claimed_by: str) -> bool:
        """Whether the owner of a claim is alive and is not this thread."""

    # -- models and budgets --------------------------------------------------------------------------------------

    def account(self, model: str) -> Account:
        """The account of a model; an empty one if the model is unknown."""
        with self._open(model, writes=False) as found:
            return found.account

    def register(
        self, name: str, *, version: str | None = None, description: str = "", features: Sequence[str] | None = None
    ) -> str:
        """Store a model with the features of its rows, and return its key (`model_key`).

        Raises:
            ValueError: the model is known with other features.
        """
        key = model_key(name, version)
        wanted = None if features is None else tuple(map(str, features))
        with self._open(key) as found:
            known = found.account
            if None not in (known.features, wanted) and known.features != wanted:  # equal rows would differ in meaning
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
        """Limit what all users together may send to a model over its lifetime, in rows or in money.

        Rows already sent count. A later limit in the same unit replaces an earlier one. With a price per row, money is
        converted to rows; without one, claims must pass the highest price of a row.
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
        """Charge rows that are about to be sent again, as an audit does; a negative number refunds them.

        `price` is the highest price of one row.

        Raises:
            BudgetSpent: a budget does not allow it; nothing was charged.
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
        """Decide, for all questions in one transaction, which rows the caller must send ("mine" in `Claim.state`).

        Args:
            explanation: the explanation that asks; its questions are recorded in the same transaction.
            most: how many rows may become mine.
            price: the highest price of one row; it is reserved until `record` gets the price paid.
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
            states: list[State] = []  # if a row occurs twice, only the first is mine
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
        """Retry storing answers of this process that could not be stored before."""

    def _check_questions(  # noqa: B027
        self, found: OpenModel, questions: Sequence[Question], explanation: str | None
    ) -> None:
        """Raise if questions do not fit their explanation, and add answers left in journals of other processes."""

    def _claimant(self) -> str:
        """The owner of new claims, as `_me`; from now on other processes can see that it is alive."""
        return self._me()

    def _in_flight(self, found: OpenModel, rows: Mapping[str, RowState]) -> set[str]:
        """The rows without an answer whose claim is still valid."""
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
        """A context that renews this thread's claims of these rows until it exits."""

    def record(
        self,
        model: str,
        rows: Sequence[str],
        labels: Sequence[Any],
        *,
        scores: Sequence[Scores | None] | None = None,
        used: Decimal | None = None,
    ) -> list[Answer]:
        """Store labels, and return the valid answer to each row.

        The first answer to a row is valid, no matter who records it. A different one is kept as a contradiction.

        Args:
            used: the price paid for all these rows together; None: all that was reserved for them.

        Raises:
            LedgerFailed: the labels could not be stored; the error's `answers` holds them. This process retries before
                it claims anything else; otherwise they are stored when the ledger is next opened.
            TypeError: a label is not text, a finite number or a truth value.
        """
        if not len(rows) == len(labels) == len(rows if scores is None else scores):
            raise ValueError(f"expected a label for each of {len(rows)} rows, got {len(labels)}.")
        plain = [plain_label(label) for label in labels]
        return self._store(Entry(model, rows, plain, scores, self._me(), None if used is None else str(used)))

    def _store(self, entry: Entry) -> list[Answer]:
        """Store the answers of an entry, and return the valid answer to each of its rows."""
        with self._open(entry.model, entry.rows) as found:
            self._add(found, entry)
            return [found.rows[row].answers[-1] for row in entry.rows]

    def _add(self, found: OpenModel, entry: Entry, purpose: str = "asked") -> int:
        """Add the answers of an entry, and return how many were new; adding them twice changes nothing."""
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
        """Undo this thread's claims for requests that certainly cost nothing, refund them, and return their number."""
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
        """End claims without an answer, by default all of the model, and return their number.

        For requests that failed but may have been charged: the charge stays, a late answer is still recorded, and the
        next to need such a row sends it again. `used` is the price paid for all rows; None: all that was reserved.
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
        """The rows in flight elsewhere, each with whether its claim has a lease."""
        with self._open(model, rows, writes=False) as found:
            waiting = self._in_flight(found, {row: found.rows[row] for row in rows if row in found.rows})
            return {row: found.rows[row].lease_ends is not None for row in waiting}

    def wait(self, model: str, rows: Sequence[str]) -> bool:
        """Wait until none of the rows is in flight: each is answered, or may be claimed. Then return True.

        Waits for as long as claims are renewed. If a claim has no lease, returns False after the time of one lease.
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
            after: only answers with a higher number.
            up_to: only answers with this number or a lower one, which are those that an earlier question could see.
            newest: only the latest, at most this many; the time does not grow with the ledger.
        """

    def import_answers(
        self, model: str, rows: Sequence[str], labels: Sequence[Any], *, new_labels: bool = False
    ) -> int:
        """Store answers that the model gave elsewhere, at no cost, and return how many rows were new.

        Args:
            new_labels: accept other spellings of known labels, and unknown labels after the model has given two.

        Raises:
            ValueError: there are such labels and `new_labels` is False. Nothing was imported.
        """
        plain = [plain_label(label) for label in labels]
        if not new_labels:
            known = self._labels(model)
            measures = any(isinstance(label, float) and label % 1 for label in known)  # then any number is plausible
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
        """The distinct labels that the model has given."""

    def correct(self, model: str, row: str, label: Any, *, scores: Scores | None = None) -> Answer:
        """Add a new answer to a row that has one. Replayed questions that saw the old answer still see it.

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

    # -- explanations (a ledger in memory has none) --------------------------------------------------------------

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
        """Record an explanation if it is new, and return what it has asked so far, as `asks` does.

        Args:
            space: a description of the features, in plain values; stored once for all explanations that share it.
            names: names of the explained row, such as an applicant number; they are added to known ones.
        """
        raise NotImplementedError

    def explanation(self, explanation: str) -> Record:
        """What is stored about an explanation, without its questions.

        Raises:
            ValueError: there is none with this id.
        """
        raise NotImplementedError

    def asks(self, explanation: str) -> list[Ask]:
        """The questions of an explanation in order, with their answers if there are any."""
        raise NotImplementedError

    def paid(self, explanation: str) -> int:
        """How many rows all runs of an explanation have sent."""
        raise NotImplementedError

    def finish(
        self, explanation: str, outcome: str, result: Mapping[str, Any] | None = None, *, seen: int | None = None
    ) -> None:
        """Store how an explanation ended and what it found, in plain values.

        Args:
            seen: the number of the newest answer it knew when it decided to end; by default the newest of all.
        """
        raise NotImplementedError
