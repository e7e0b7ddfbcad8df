"""Money for tokens: what may be spent is set aside before a request, so that no request goes beyond the sum."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Lock

from acex.values import is_finite


class Purse:
    """A sum of money, and what was spent of it.

    Args:
        prices: of a million tokens that are read, and of a million that are written.
        money: the most that may be spent; None for as much as it takes.
        account: a file where the sum is kept, for several processes and runs together; None: in memory, for this
            process alone.
    """

    def __init__(self, prices: Sequence[float], money: float | None = None, account: str | Path | None = None) -> None:
        if not (len(prices) == 2 and all(is_finite(price) and price >= 0 for price in prices)):
            raise ValueError(
                f"token_prices must be two numbers, the price of a million tokens read and of a million written, "
                f"got {prices!r}."
            )
        if not (money is None or (is_finite(money) and money >= 0)):
            raise ValueError(f"money must be a number, 0 or more, or None, got {money!r}.")
        self._prices = [Decimal(str(price)) / 1_000_000 for price in prices]
        self._money = None if money is None else Decimal(str(money))
        self._path = None if account is None else str(account)
        self._kept, self._lock = Decimal(0), Lock()
        self._is_copy = False

    def price(self, read: int, written: int) -> Decimal:
        """Of so many tokens."""
        return self._prices[0] * read + self._prices[1] * written

    @property
    def spent(self) -> Decimal:
        """What was spent, and what is set aside for requests under way."""
        with self._sum() as total:
            return total[0]

    def set_aside(self, amount: Decimal) -> None:
        """Take this much for a request; what it did not need is put back by `put_back`.

        Raises:
            ValueError: there is not so much left.
        """
        if self._is_copy and self._money is not None:
            raise ValueError(
                "a cap in money that is kept in memory holds for one process only: name a file with account=, which "
                "several share"
            )
        with self._sum() as total:
            if self._money is not None and total[0] + amount > self._money:
                spent, money, more = (f"{sum_.normalize():f}" for sum_ in (total[0], self._money, amount))
                raise ValueError(f"{spent} of money={money} is spent, and the next request may cost {more}")
            total[0] += amount

    def put_back(self, amount: Decimal) -> None:
        """What was set aside and not needed."""
        with self._sum() as total:
            total[0] -= amount

    @contextmanager
    def _sum(self) -> Iterator[list[Decimal]]:
        """The sum spent, as the only one who may change it."""
        if self._path is None:
            with self._lock:
                total = [self._kept]
                yield total
                self._kept = total[0]
            return
        try:
            with closing(sqlite3.connect(self._path, timeout=60.0, isolation_level=None)) as book:
                book.execute("PRAGMA synchronous=FULL")  # what was set aside is not forgotten when the power fails
                book.execute("CREATE TABLE IF NOT EXISTS purse (spent TEXT NOT NULL)")
                book.execute("BEGIN IMMEDIATE")
                line = book.execute("SELECT spent FROM purse").fetchone()
                total = [Decimal(0) if line is None else Decimal(line[0])]
                yield total
                book.execute("DELETE FROM purse")
                book.execute("INSERT INTO purse VALUES (?)", (str(total[0]),))
                book.execute("COMMIT")
        except (sqlite3.Error, ArithmeticError) as error:
            raise ValueError(f"account {self._path} cannot be kept: {error}") from error

    def __getstate__(self) -> dict[str, object]:
        state = dict(vars(self))
        del state["_lock"]
        return {**state, "_is_copy": self._path is None}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _lock=Lock())
