"""The only place that queries the model: every row is counted, recorded, and sent only once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypeAlias

from acex.arrays import Rows, rows_at
from acex.errors import BudgetSpent, LedgerFailed, ModelFailed
from acex.ledger import Answer, BaseLedger, Claim, Question, canonical
from acex.models.labels import as_labels, as_numbers
from acex.models.model import Model, Scores
from acex.values import Label

Answered: TypeAlias = tuple[list[Any], list[Scores] | None, Decimal | None]  # labels, scores, price paid
HANDED_OUT = "handed out to be asked"  # the holder of claims that a person or another program will answer


class BlackBox:
    """A model with a budget.

    If the model has prices, a claim reserves the highest price of its rows, and the price actually paid is recorded
    with the answers, so that a budget in money holds for all processes together.

    Args:
        ledger: where answers are recorded; rows that it can answer are not sent.
        budget: how many rows may be sent; for an explanation, by all its runs together.
        model_id: the model's key in the ledger.
        numbers: whether the model returns numbers instead of labels.
    """

    def __init__(
        self, model: Model, ledger: BaseLedger, budget: int, *, model_id: str = "model", numbers: bool = False
    ) -> None:
        self.model, self.ledger, self.model_id, self._numbers = model, ledger, model_id, numbers
        self._prices = model.priced
        self.explanation: str | None = None  # the explanation that records these queries, if any
        self.budget = budget
        self.n_queries = 0  # rows sent
        self.sent: set[str] = set()  # their keys in the ledger

    @property
    def paid(self) -> int:
        """How many rows were sent; for an explanation, by all its runs together."""
        return self.n_queries if self.explanation is None else self.ledger.paid(self.explanation)

    @property
    def remaining(self) -> int:
        """How many rows may still be sent."""
        return max(self.budget - self.paid, 0)

    def affordable(self, keys: Sequence[str]) -> int:
        """How many of these rows, counted from the first, the budget allows; those already paid for cost nothing."""
        # In this order, a row that is answered between the two calls is in both rather than in neither.
        free = {*self.ledger.in_flight(self.model_id, keys), *self.ledger.known(self.model_id, keys)}
        left = self.remaining
        for i, key in enumerate(keys):
            if key in free:
                continue
            if left < 1:
                return i
            left -= 1
            free.add(key)
        return len(keys)

    def ask(self, rows: Rows, questions: Sequence[Question] | None = None) -> list[Answer]:
        """One answer per row; `questions` has the key of each row and what the ledger records about it.

        Raises:
            BudgetSpent: before anything is sent, if the new rows are more than a budget allows.
            ModelFailed: the model raised or returned no labels. Rows that may have been charged count as sent.
        """
        if questions is None:
            questions = [Question(key) for key in canonical(rows)]
        keys = [question.row for question in questions]
        first = {key: i for i, key in reversed(list(enumerate(keys)))}
        different = [questions[i] for i in sorted(first.values())]
        answers: dict[str, Answer] = {}
        price = self._price_per_row(rows)
        while True:
            claims = self.ledger.claim(
                self.model_id, different, explanation=self.explanation, most=self.remaining, price=price
            )
            answers.update({c.row: c.answer for c in claims if c.answer is not None})
            mine = [c.row for c in claims if c.state == "mine"]
            if mine:
                self.n_queries += len(mine)
                self.sent.update(mine)
                with self.ledger.holding(self.model_id, mine):
                    _, recorded = self._send(rows_at(rows, [first[key] for key in mine]), mine, self._release)
                answers.update({answer.row: answer for answer in recorded})
            waiting = [c for c in claims if c.state == "in_flight"]
            if not waiting:
                break
            self._wait(waiting)
        return [answers[key] for key in keys]

    def hand_out(self, questions: Sequence[Question]) -> list[Answer | None]:
        """Claim distinct rows that someone else will ask, and return their known answers; None if there is none yet.

        The rows count as sent from now on, and their claims have no lease. Rows that another process has sent are
        awaited, not handed out.
        """
        while True:
            claims = self.ledger.claim(
                self.model_id, questions, explanation=self.explanation, most=self.remaining, holder=HANDED_OUT
            )
            mine = [claim.row for claim in claims if claim.state == "mine"]
            self.n_queries += len(mine)
            self.sent.update(mine)
            waiting = [c for c in claims if c.state == "in_flight" and c.held_by != HANDED_OUT]
            if not waiting:
                break
            self._wait(waiting)
        return [claim.answer for claim in claims]

    def ask_again(self, rows: Rows) -> list[Any]:
        """Send rows that already have an answer, and return their new labels; a different one is a contradiction.

        Raises:
            BudgetSpent: before anything is sent.
        """
        n = len(rows)
        if n > self.remaining:
            raise BudgetSpent(f"{n} rows to ask, but only {self.remaining} more may be sent.")
        price = self._price_per_row(rows)
        self.ledger.charge(self.model_id, n, price)
        self.n_queries += n

        def refund(unsent: list[str]) -> None:
            self.ledger.charge(self.model_id, -len(unsent), price)
            self.n_queries -= len(unsent)

        return self._send(rows, canonical(rows), refund)[0]

    def _wait(self, claims: list[Claim]) -> None:
        """Wait until others have answered these rows or their claims have ended."""
        handed_out = [c for c in claims if c.held_by == HANDED_OUT]
        if handed_out:
            raise LedgerFailed(
                f"{len(handed_out)} rows were {HANDED_OUT}, such as {handed_out[0].row}, and have no label yet. Pass "
                f"the labels to tell(), or end the claims with Ledger.abandon."
            )
        if not self.ledger.wait(self.model_id, [c.row for c in claims]):
            raise LedgerFailed(
                f"{len(claims)} rows are claimed by {claims[0].held_by} and have no answer. Wait, or end the claims "
                f"with Ledger.abandon."
            )

    def read(self, labels: Any, n: int) -> list[Label]:
        """The labels (or numbers) of n rows that someone else has asked, validated."""
        return as_numbers(labels, n) if self._numbers else as_labels(labels, n, self.model.labels)

    def _send(self, rows: Rows, keys: list[str], refund: Callable[[list[str]], None]) -> tuple[list[Any], list[Answer]]:
        """The model's labels and the answers that are valid in the ledger; each request is recorded before the next.

        If a request fails or is interrupted, `refund` is called with the rows that certainly were not charged.
        """
        ledger, model, n = self.ledger, self.model_id, len(keys)
        size = self.model.rows_per_request or n
        labels: list[Any] = []
        answers: list[Answer] = []
        sent = 0  # how many rows may have been charged
        try:
            while sent < n:
                start, sent = sent, min(sent + size, n)
                try:
                    new, scores, used = self._answers(rows_at(rows, slice(start, sent)), keys[start:sent])
                except BaseException as failure:  # also Ctrl-C
                    if isinstance(failure, ModelFailed):
                        k = start + len(failure.answered)
                        if failure.answered:
                            ledger.record(model, keys[start:k], failure.answered)
                        if failure.in_doubt is not None:
                            sent = k + failure.in_doubt
                        failure.answered = labels + failure.answered
                    with suppress(LedgerFailed):
                        ledger.abandon(model, keys[start:sent], used=getattr(failure, "used", None))
                    raise
                answers += ledger.record(model, keys[start:sent], new, scores=scores, used=used)
                labels += new
        finally:
            if sent < n:
                with suppress(LedgerFailed):
                    refund(keys[sent:])
        return labels, answers

    def _release(self, keys: list[str]) -> None:
        self.n_queries -= self.ledger.release(self.model_id, keys)

    def _price_per_row(self, rows: Rows) -> Decimal | None:
        return None if self._prices is None else self._prices.price_per_row(rows)

    def _call(self, rows: Rows) -> Answered:
        """The labels and scores of rows, and the price paid if it is known."""
        before = None if self._prices is None else self._prices.spent_in_thread
        labels, scores = self.model.send(rows, numbers=self._numbers)
        used = None if self._prices is None or before is None else self._prices.spent_in_thread - before
        return labels, scores, used

    def _answers(self, rows: Rows, keys: list[str]) -> Answered:
        """As `_call`, within the model's time limit; a later answer is still recorded, since it is paid for too."""
        seconds = self.model.timeout
        if seconds is None:
            return self._call(rows)
        outcome: Future[Answered] = Future()

        def call() -> None:
            try:
                outcome.set_result(self._call(rows))
            except BaseException as error:
                outcome.set_exception(error)

        def record_late(late: Future[Answered]) -> None:
            with suppress(Exception):  # no caller is left to report it to
                failure = late.exception()
                if isinstance(failure, ModelFailed):
                    k = len(failure.answered)
                    self.ledger.record(self.model_id, keys[:k], failure.answered)
                elif failure is None:
                    labels, scores, used = late.result()
                    self.ledger.record(self.model_id, keys, labels, scores=scores, used=used)

        threading.Thread(target=call, name="acex-request", daemon=True).start()
        if wait([outcome], seconds).not_done:
            outcome.add_done_callback(record_late)
            raise ModelFailed(
                f"The model gave no answer within {seconds:g} s (timeout); the rows may have been charged."
            )
        return outcome.result()
