"""The one door through which the model is asked: every row is counted, written down, and asked once."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

import pandas as pd

from acex.arrays import Rows, row_wise_advice
from acex.errors import BudgetSpent, LedgerFailed, ModelFailed
from acex.ledger import Answer, Claim, Ledger, Question, Scores, canonical
from acex.models.labels import Predict, Scored, as_labels, as_scores
from acex.values import Label

HANDED_OUT = "handed out to be asked"  # who holds a claim that a person or another program will answer


class BlackBox:
    """A model with a budget.

    Args:
        predict: from rows to labels.
        ledger: where answers are written; rows found there are not sent.
        budget: how many rows may be sent; on behalf of an explanation, by all runs of it together.
        model_id: the model's name in the ledger.
        explanation: on whose behalf, where its questions are to be recorded.
        timeout: seconds after which a request counts as failed; None waits for ever.
        read: from an answer and a number of rows to as many labels, or numbers; ValueError where it is none.
    """

    def __init__(
        self,
        predict: Predict,
        ledger: Ledger,
        budget: int,
        *,
        model_id: str = "model",
        explanation: str | None = None,
        timeout: float | None = None,
        read: Callable[[Any, int], list[Label]] = as_labels,
    ) -> None:
        self._predict, self._read, self.ledger, self.model_id = predict, read, ledger, model_id
        self.explanation, self._timeout = explanation, timeout
        self.budget = budget
        self.n_queries = 0  # rows sent
        self.sent: set[str] = set()  # which rows these were, as the ledger knows them

    @property
    def paid(self) -> int:
        """How many rows were sent; on behalf of an explanation, by all runs of it together."""
        return self.n_queries if self.explanation is None else self.ledger.paid(self.explanation)

    @property
    def remaining(self) -> int:
        """How many rows may still be sent."""
        return max(self.budget - self.paid, 0)

    def knows(self, rows: Rows) -> bool:
        """Is there an answer to each of these rows?"""
        forms = canonical(rows)
        return self.ledger.known(self.model_id, forms).keys() >= set(forms)

    def affordable(self, forms: Sequence[str]) -> int:
        """How many of these canonical rows, from the first on, may be asked: those already paid for cost nothing."""
        free = self.ledger.free(self.model_id, forms)
        left = self.remaining
        for i, form in enumerate(forms):
            if form in free:
                continue
            if left < 1:
                return i
            left -= 1
            free.add(form)
        return len(forms)

    def ask(self, rows: Rows, why: Sequence[Question] | None = None) -> list[Answer]:
        """One answer a row; `why` says for each what the ledger is to record, and how it knows the row.

        Raises:
            BudgetSpent: before anything is sent, when the new rows are more than a budget allows.
            ModelFailed: the model raised or gave no labels. What may have been charged counts as sent.
        """
        told_why = [Question(form) for form in canonical(rows)] if why is None else why
        forms = [question.row for question in told_why]
        first = {form: i for i, form in reversed(list(enumerate(forms)))}
        questions = [told_why[i] for i in sorted(first.values())]
        answers: dict[str, Answer] = {}
        while True:
            claims = self.ledger.claim(self.model_id, questions, explanation=self.explanation, most=self.remaining)
            answers.update({c.row: c.answer for c in claims if c.answer is not None})
            mine = [c.row for c in claims if c.state == "mine"]
            if mine:
                new = [first[form] for form in mine]
                self.sent.update(mine)
                told = self._send(rows.iloc[new] if isinstance(rows, pd.DataFrame) else rows[new], mine)
                answers.update({answer.row: answer for answer in told})
            waiting = [c for c in claims if c.state == "in_flight"]
            if not waiting:
                break
            self._wait(waiting)
        return [answers[form] for form in forms]

    def hand_out(self, questions: Sequence[Question]) -> list[Answer | None]:
        """Claim different rows that somebody else will ask: the answers there are, None where there is none yet.

        They count as sent from now on, and wait for their answer without a limit of time. Rows that another process is
        asking the model are awaited, not handed out.
        """
        while True:
            claims = self.ledger.claim(
                self.model_id,
                questions,
                explanation=self.explanation,
                most=self.remaining,
                lease=math.inf,
                holder=HANDED_OUT,
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
        """The labels that the model gives now to rows which have an answer; one that differs is a contradiction.

        Raises:
            BudgetSpent: before anything is sent.
        """
        n = len(rows)
        if n > self.remaining:
            raise BudgetSpent(f"{n} rows to ask, but only {self.remaining} more may be sent.")
        self.ledger.charge(self.model_id, n)
        self.n_queries += n
        forms = canonical(rows)
        try:
            labels, _ = self._answers(rows, forms)
        except ModelFailed as failure:
            k = len(failure.answered)
            self.ledger.settle(self.model_id, forms[:k], failure.answered)
            if failure.in_doubt is not None:
                self.ledger.charge(self.model_id, -(n - k - failure.in_doubt))  # these were certainly not sent
            raise
        self.ledger.settle(self.model_id, forms, labels)
        return labels

    def _wait(self, claims: list[Claim]) -> None:
        """Wait until others have answered these rows, or have given up."""
        handed_out = [c for c in claims if c.held_by == HANDED_OUT]
        if handed_out:
            raise LedgerFailed(
                f"{len(handed_out)} rows were {HANDED_OUT}, such as {handed_out[0].row}, and their labels have not "
                f"been told. Tell them, or give them up with Ledger.abandon."
            )
        if not self.ledger.wait(self.model_id, [c.row for c in claims]):
            raise LedgerFailed(
                f"{len(claims)} rows were claimed by somebody else ({claims[0].held_by}) and are not answered. "
                f"Wait, or give them up with Ledger.abandon."
            )

    def take_in(self, forms: Sequence[str], labels: Any) -> list[Answer]:
        """Write down labels of canonical rows that were asked for elsewhere: the answers that stand."""
        return self.ledger.settle(self.model_id, forms, self._read(labels, len(forms)))

    def _send(self, rows: Rows, forms: list[str]) -> list[Answer]:
        """Answers of the model, written down; when it fails, what is not paid for is given back."""
        self.n_queries += len(forms)
        ledger, model = self.ledger, self.model_id
        with ledger.holding(model, forms):
            try:
                labels, scores = self._answers(rows, forms)
            except ModelFailed as failure:
                k = len(failure.answered)
                if k:
                    ledger.settle(model, forms[:k], failure.answered)
                end = len(forms) if failure.in_doubt is None else k + failure.in_doubt
                ledger.abandon(model, forms[k:end])
                self.n_queries -= ledger.release(model, forms[end:])
                raise
            except BaseException:  # Ctrl-C: it may have been charged, and nobody waits for it any more
                with suppress(LedgerFailed):
                    ledger.abandon(model, forms)
                raise
            return ledger.settle(model, forms, labels, scores=scores)

    def _answers(self, rows: Rows, forms: list[str]) -> tuple[list[Any], list[Scores] | None]:
        try:
            answer = self._predict(rows) if self._timeout is None else self._within(self._timeout, rows, forms)
        except ModelFailed:  # it knows better what was charged
            raise
        except Exception as error:
            raise ModelFailed(f"The model raised {type(error).__name__}: {error}{row_wise_advice(error)}") from error
        return self._checked(answer, len(rows))

    def _within(self, seconds: float, rows: Rows, forms: list[str]) -> Any:
        """The answer, if it comes in time. One that comes later is paid for as well: then it is written down."""
        outcome: Future[Any] = Future()

        def call() -> None:
            try:
                outcome.set_result(self._predict(rows))
            except BaseException as error:
                outcome.set_exception(error)

        def take(late: Future[Any]) -> None:
            with suppress(Exception):  # nobody is there to hear of it
                failure = late.exception()
                if isinstance(failure, ModelFailed):
                    self.ledger.settle(self.model_id, forms[: len(failure.answered)], failure.answered)
                elif failure is None:
                    labels, scores = self._checked(late.result(), len(forms))
                    self.ledger.settle(self.model_id, forms, labels, scores=scores)

        threading.Thread(target=call, name="acex-request", daemon=True).start()
        if wait([outcome], seconds).not_done:
            outcome.add_done_callback(take)
            raise ModelFailed(
                f"The model gave no answer within {seconds:g} s (timeout); the rows may have been charged."
            )
        return outcome.result()

    def _checked(self, answer: Any, n: int) -> tuple[list[Any], list[Scores] | None]:
        """Labels and scores of n rows as the model gave them."""
        try:
            if isinstance(answer, Scored):
                scores: Any = as_scores(answer, n)
                return self._read(answer.labels, n), scores
            return self._read(answer, n), None
        except ValueError as error:
            what = "label" if self._read is as_labels else "number"
            advice = row_wise_advice(answer)
            raise ModelFailed(f"The model's answer is not one {what} a row: {error}.{advice}") from None
