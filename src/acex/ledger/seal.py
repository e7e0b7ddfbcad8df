"""A checksum for each line of a ledger: what a disk or a program has changed since is noticed when the line is read.

It is the CRC-32 of the values of the line as a JSON list, in the order of the columns, without the checksum itself and
without a number that the database gives. That finds every flipped bit; it is no signature.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Executable, Float, Integer, Row, Table, select, tuple_

from acex.errors import LedgerFailed

ADVICE = "See what is left with: acex ledger check; save it with: acex ledger repair."
AT_ONCE = 2000  # lines of a page
_encode = json.JSONEncoder(separators=(",", ":")).encode


def checksum(values: Sequence[Any]) -> int:
    """The checksum of the values of a line."""
    return zlib.crc32(_encode(values).encode("ascii"))


def sealed(table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """A whole line with its checksum; columns that are not named are null."""
    line = {name: _cast(kind, values.get(name)) for name, kind in _columns(table)}
    return line | {"checksum": checksum([*line.values()])}


def changed(table: Table, line: Row[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What changes of a line, with the checksum of what it becomes."""
    whole = sealed(table, {**line._mapping, **values})
    return {name: whole[name] for name in (*values, "checksum")}


def lines(connection: Connection, table: Table, wanted: Executable, given: Any = None) -> list[Row[Any]]:
    """The lines that a statement finds, which selects all columns of the table in order.

    Raises:
        LedgerFailed: one of them is not as it was written.
    """
    found = list(connection.execute(wanted, given))
    for line in found:
        if not is_sound(table, line):
            raise LedgerFailed(f"{described(table, line)} is damaged: its checksum does not fit. {ADVICE}")
    return found


def pages(connection: Connection, table: Table) -> Iterator[list[Row[Any]]]:
    """All lines of a table as they are, some at a time, so that a large one need not fit into memory."""
    keys = list(table.primary_key)
    wanted = select(table).order_by(*keys).limit(AT_ONCE)
    page = list(connection.execute(wanted))
    while page:
        yield page
        last = [page[-1]._mapping[key.name] for key in keys]
        page = list(connection.execute(wanted.where(tuple_(*keys) > tuple_(*last))))


def is_sound(table: Table, line: Iterable[Any]) -> bool:
    """Is this line, all its columns in order, as it was written?"""
    values = tuple(line)
    try:
        return bool(values[-1] == checksum(values[len(table.c) - len(_columns(table)) - 1 : -1]))
    except TypeError:  # bytes, where text or a number was
        return False


def described(table: Table, line: Row[Any]) -> str:
    """Which line of which table this is, in words."""
    names = [column.name for column in table.primary_key] + (["sequence"] if "sequence" in table.c else [])
    return f"line {', '.join(f'{name} {line._mapping[name]!r}' for name in names)} of table {table.name}"


@cache
def _columns(table: Table) -> list[tuple[str, type | None]]:
    """Names of the columns that are sealed, and the type of those that hold numbers."""
    own = [c for c in table.c if c.name != "checksum" and not (c.primary_key and c.autoincrement is True)]
    return [(c.name, float if isinstance(c.type, Float) else int if isinstance(c.type, Integer) else None) for c in own]


def _cast(kind: type | None, value: Any) -> Any:
    # As the database will give it back: 1 in a column of fractions is 1.0, and numpy's numbers are plain.
    return value if kind is None or value is None else kind(value)
