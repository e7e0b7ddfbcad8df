"""Events a caller plans for. Wrong values raise the built-in exceptions instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acex.explanation import Explanation


class AcexError(Exception):
    """The family: `except acex.AcexError` catches every event below."""


class BudgetSpent(AcexError):
    """One more row would have gone beyond the budget; it was not sent."""


class LedgerFailed(AcexError):
    """The ledger cannot be opened, read or written; the message says why and what to do.

    `answers` holds, by row, the labels that were paid for and could not be written down.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.answers: dict[str, object] = {}


class ModelFailed(AcexError):
    """The model raised, or answered something that is not one label a row.

    `explanation` holds what was found before, and every answer paid for; None if the first query failed.
    """

    explanation: Explanation | None = None


class NoCounterfactual(AcexError):
    """The search ended without a counterfactual; the message says what to relax."""
