"""The book itself: a database that is opened and closed, and the account of each model in it."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Self

from sqlalchemy import Connection, Row, bindparam, select

from acex.errors import BudgetSpent, LedgerFailed
from acex.ledger.entries import Answer
from acex.ledger.forms import iso
from acex.ledger.owner import owner
from acex.ledger.seal import ADVICE, changed, lines, sealed
from acex.ledger.store import Store
from acex.ledger.tables import models, queries
from acex.values import is_count, is_finite

LEASE_SECONDS = 120.0  # longer than most endpoints take to answer or to give up
AT_ONCE = 500  # values in one statement; databases have a limit
MOST = 2**63 - 1  # the largest number that a database keeps

# Statements that every question needs: putting one together takes longer than running it.
_ACCOUNT = select(models).where(models.c.id == bindparam("model")).with_for_update()
_GLANCE = select(models).where(models.c.id == bindparam("model"))
_CHANGE = models.update().where(models.c.id == bindparam("_id"))
_ANY_QUERY = select(queries.c.id).where(queries.c.model_id == bindparam("model")).limit(1)
_BY_ID = select(queries).where(queries.c.id.in_(bindparam("ids", expanding=True)))


class Book:
    """A database of answers, with an account for each model: budget, price, what was charged."""

    def __init__(
        self, where: str | os.PathLike[str] | None = None, *, lease: float = LEASE_SECONDS, checked: bool = True
    ) -> None:
        if not lease > 0:
            raise ValueError(f"lease must be a positive number of seconds, got {lease!r}.")
        self.lease = lease
        self._store = Store(where, checked=checked)
        self._token = uuid.uuid4().hex[:8]

    def __repr__(self) -> str:
        return f"<acex.Ledger {self._store.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_memory:
            raise TypeError(
                "A ledger in memory cannot be sent to another process. Give it a file, such as Ledger('answers.db')."
            )
        return partial(type(self), lease=self.lease), (self._store.address,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Nothing waits to be written: each call has done so when it returns."""
        if not self.is_memory:
            self._store.close()

    @property
    def is_memory(self) -> bool:
        """Does this ledger end with the process?"""
        return self._store.is_memory

    @property
    def path(self) -> Path | None:
        """The file of this ledger; None in memory and on a server."""
        return self._store.path

    @property
    def owner(self) -> str:
        """Who claims through this object, in words: host, process, and a mark of its own."""
        return owner(self._token)

    def register(self, model: str, *, description: str = "", features: Sequence[str] | None = None) -> None:
        """Write down what a model is, and what the values of its rows are called.

        Raises:
            ValueError: the model is known with other features, so that equal rows would not mean the same.
        """
        with self._store.write() as connection:
            account = self._account(connection, model)
            wanted = None if features is None else json.dumps([str(feature) for feature in features])
            if wanted is not None and account.features not in (None, wanted):
                raise ValueError(
                    f"Model {model!r} is known with the features {account.features}, not {wanted}. "
                    f"Use the same columns in the same order, or another model_id."
                )
            self._change(
                connection,
                account,
                description=description or account.description,
                features=wanted or account.features,
            )

    def features(self, model: str) -> list[str] | None:
        """What the values of a model's rows are called; None where nobody has said so."""
        account = self._glance(model)
        return None if account is None or account.features is None else list(map(str, json.loads(account.features)))

    def budget(
        self,
        model: str,
        *,
        rows: int | None = None,
        money: float | None = None,
        price_per_row: float | None = None,
    ) -> None:
        """Limit what may be sent to a model over its lifetime, by anybody: in rows, or in money with a price.

        What was sent before counts. The last call holds.
        """
        if price_per_row is not None and not (is_finite(price_per_row) and price_per_row > 0):
            raise ValueError(f"price_per_row must be a positive number, got {price_per_row!r}.")
        if (rows is None) == (money is None):
            raise ValueError(f"budget takes rows or money, one of them; got rows={rows!r}, money={money!r}.")
        if rows is not None and not (is_count(rows, least=0) and rows <= MOST):
            raise ValueError(f"rows must be a whole number from 0 to {MOST:.1g}, got {rows!r}.")
        if money is not None and not (is_finite(money) and money >= 0):
            raise ValueError(f"money must be a number, 0 or more, got {money!r}.")
        with self._store.write() as connection:
            account = self._account(connection, model)
            price = account.price_per_row if price_per_row is None else price_per_row
            if money is not None:
                if price is None:
                    raise ValueError("A budget in money needs price_per_row.")
                # As people write them: 0.3 buys three rows at 0.1, which binary fractions deny.
                whole, each = Decimal(str(money)), Decimal(str(price))
                if whole > MOST * each:
                    raise ValueError(f"{money!r} at {price!r} a row buys more than {MOST:.1g} rows: that is no limit.")
                rows = int(whole // each)
            self._change(connection, account, row_budget=rows, price_per_row=price)

    def remaining(self, model: str) -> float:
        """How many rows the model's budget still allows; infinity without one."""
        account = self._glance(model)
        return math.inf if account is None else _left(account)

    def charge(self, model: str, rows: int) -> None:
        """Count rows that are about to be sent once more, as an audit does, against the model's budget.

        Raises:
            BudgetSpent: they are more than it allows; nothing was counted.
        """
        with self._store.write() as connection:
            self._charge(connection, self._account(connection, model), rows)

    def _account(self, connection: Connection, model: str) -> Row[Any]:
        """The model's line, locked until the transaction ends; made if it is new."""
        found = lines(connection, models, _ACCOUNT, {"model": model})
        if not found:
            created = iso(self._store.now(connection).at)
            new = {"id": model, "description": "", "n_charged": 0, "last_sequence": 0, "created_at": created}
            was_asked = connection.scalar(_ANY_QUERY, {"model": model}) is not None
            if was_asked and account_of(connection, model) is None:  # nor did anybody make it just now
                raise LedgerFailed(f"the line of model {model!r} is missing, though it was asked. {ADVICE}")
            connection.execute(self._store.insert(models, sealed(models, new)))
            found = lines(connection, models, _ACCOUNT, {"model": model})
        return found[0]

    def _glance(self, model: str) -> Row[Any] | None:
        """The model's line as it is now; None if there is none."""
        with self._store.read() as connection:
            return account_of(connection, model)

    def _change(self, connection: Connection, account: Row[Any], **values: Any) -> None:
        """Write to a model's line, as it was read in this transaction."""
        connection.execute(_CHANGE, {"_id": account.id, **changed(models, account, values)})

    def _charge(self, connection: Connection, account: Row[Any], rows: int) -> None:
        if rows > _left(account):
            price = "" if account.price_per_row is None else f", at {account.price_per_row:g} a row"
            wanted = "1 row" if rows == 1 else f"{rows} rows"
            raise BudgetSpent(
                f"{wanted} to ask, but model {account.id!r} has {_left(account)} left of the {account.row_budget} "
                f"rows it may be sent over its lifetime{price}. Raise it with ledger.budget({account.id!r}, rows=...) "
                f"(in the shell acex ledger budget)."
            )
        if rows:
            self._change(connection, account, n_charged=account.n_charged + rows)


def account_of(connection: Connection, model: str) -> Row[Any] | None:
    """The model's line as it is now; None if there is none."""
    return next(iter(lines(connection, models, _GLANCE, {"model": model})), None)


def by_id(connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """The queries there are with these keys."""
    found: dict[str, Row[Any]] = {}
    for chunk in chunks(ids):
        found.update((query.id, query) for query in lines(connection, queries, _BY_ID, {"ids": list(chunk)}))
    return found


def answer_of(query: Row[Any]) -> Answer:
    """The answer of a query that is settled."""
    scores = None if query.scores is None else [(label, p) for label, p in json.loads(query.scores)]
    return Answer(query.row, json.loads(query.label), scores, query.sequence)


def chunks(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """The items, as many at once as a statement may hold."""
    for start in range(0, len(items), AT_ONCE):
        yield items[start : start + AT_ONCE]


def _left(account: Row[Any]) -> float:
    return math.inf if account.row_budget is None else max(account.row_budget - account.n_charged, 0)
