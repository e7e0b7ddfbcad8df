"""What the rows that were explained are called by those who wanted to know."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import bindparam, select

from acex.ledger.book import Book
from acex.ledger.seal import lines, sealed
from acex.ledger.tables import names

_OF = select(names).where(names.c.explanation_id == bindparam("explanation")).order_by(names.c.name)


class Names(Book):
    """Names of rows: the number of an applicant, say. Rows that are the same share an explanation."""

    def name(self, explanation: str, called: Iterable[str]) -> None:
        """Write down what the row of an explanation is called; names that are known stay."""
        with self._store.write() as connection:
            for name in called:
                line = sealed(names, {"explanation_id": explanation, "name": name})
                connection.execute(self._store.insert(names, line))

    def names(self, explanation: str) -> list[str]:
        """What the row of an explanation is called; empty where nobody has said so."""
        with self._store.read() as connection:
            return [line.name for line in lines(connection, names, _OF, {"explanation": explanation})]
