"""Exceptions for events that a caller can plan for. Invalid values raise the built-in exceptions instead."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any


class AcexError(Exception):
    """Base class: `except acex.AcexError` catches every exception below."""


class BudgetSpent(AcexError):
    """One more row would have exceeded the budget; it was not sent."""


class LedgerFailed(AcexError):
    """The ledger cannot be opened, read or written; the message says why and what to do.

    `answers` holds, by row, the labels that were paid for and could not be stored.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.answers: dict[str, object] = {}


class OutOfStep(LedgerFailed):
    """The same explanation is also running elsewhere and is ahead: it asked another row at this position."""


class ModelFailed(AcexError):
    """The model raised, or its answer was not one label per row.

    `explanation` holds what was found before, and every answer paid for; None if the first query failed.
    `answered` holds the labels of the first rows, if a model that is queried in parts returned them: they
    are paid for. Of the rows after them, the next `in_doubt` may have been charged (None: any of them may),
    the others were not. `used` is what those in doubt have cost, where the model has `token_prices`.
    """

    explanation: Any = None  # an acex.Explanation, which this module cannot import
    used: Decimal | None = None

    def __init__(self, message: str = "", *, answered: Sequence[Hashable] = (), in_doubt: int | None = None) -> None:
        super().__init__(message)
        self.answered, self.in_doubt = list(answered), in_doubt

    @property
    def charged(self) -> bool:
        """Whether a row without a label may have been charged."""
        return self.in_doubt != 0


class NoCounterfactual(AcexError):
    """The search ended without a counterfactual; the message says what to relax."""


class ExecutorFailed(AcexError):
    """The workers are unusable: none responds, they have another version of acex, or their scheduler is gone."""


class MissingExtra(AcexError, ImportError):
    """An optional dependency is not installed; the message says how to install it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra [{extra}]: pip install 'acex[{extra}]'.")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return MissingExtra, (self.what, self.extra)


def optional(module: str, what: str, extra: str) -> Any:
    """Import a module of an optional package.

    Raises:
        MissingExtra: it is not installed, and `what` needs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(what, extra) from None
