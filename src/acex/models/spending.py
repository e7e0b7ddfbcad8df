"""Money spent on tokens: the most that a request can cost is reserved before it is sent, so that a cap holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from threading import Lock

from acex.values import is_finite


class Spending:
    """What was spent, with an optional cap.

    Args:
        prices: of a million tokens that are read, and of a million that are written.
        money: the most that may be spent; None for no limit.
        account: a file that stores the total, for several processes and runs together; None: in memory, for this
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
        """The price of so many tokens."""
        return self._prices[0] * read + self._prices[1] * written

    @property
    def spent(self) -> Decimal:
        """What was spent, and what is reserved for requests under way."""
        with self._sum() as total:
            return total[0]

    def reserve(self, amount: Decimal) -> None:
        """Reserve the most that a request can cost; `release` returns what it did not need.

        Raises:
            ValueError: the cap would be exceeded.
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

    def release(self, amount: Decimal) -> None:
        """Return an amount that was reserved and not needed."""
        with self._sum() as total:
            total[0] -= amount

    @contextmanager
    def _sum(self) -> Iterator[list[Decimal]]:
        """The total in a list; what it holds at the end of the block is stored. No one else can change it meanwhile."""
        if self._path is None:
            with self._lock:
                total = [self._kept]
                yield total
                self._kept = total[0]
            return
        try:
            with closing(sqlite3.connect(self._path, timeout=60.0, isolation_level=None)) as database:
                database.execute("PRAGMA synchronous=FULL")  # reserved amounts survive a power failure
                database.execute("CREATE TABLE IF NOT EXISTS purse (spent TEXT NOT NULL)")
                database.execute("BEGIN IMMEDIATE")
                line = database.execute("SELECT spent FROM purse").fetchone()
                total = [Decimal(0) if line is None else Decimal(line[0])]
                yield total
                database.execute("DELETE FROM purse")
                database.execute("INSERT INTO purse VALUES (?)", (str(total[0]),))
                database.execute("COMMIT")
        except (sqlite3.Error, ArithmeticError) as error:
            raise ValueError(f"account {self._path} cannot be kept: {error}") from error

    def __getstate__(self) -> dict[str, object]:
        state = dict(vars(self))
        del state["_lock"]
        return {**state, "_is_copy": self._path is None}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, _lock=Lock())
