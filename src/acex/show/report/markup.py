"""HTML from calls: what is no `Markup` is text, and escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

NOT_IN_HTML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # not even escaped
EMPTY = ("meta", "circle", "line", "path", "polyline")  # elements that hold nothing


class Markup(str):
    """HTML that is finished: `tag` takes it as it is."""


Child: TypeAlias = "str | int | Iterable[Child] | None"


def escaped(text: str) -> Markup:
    """The text as HTML shows it, within an element or an attribute."""
    return Markup(html.escape(NOT_IN_HTML.sub("\N{REPLACEMENT CHARACTER}", text), quote=True))


def joined(*children: Child) -> Markup:
    """The children one after the other; None is nothing."""
    return Markup("".join(_written(child) for child in children))


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """An element.

    Args:
        attributes: by name, with `_` for `-`, and `_` behind Python's own words (`class_`); None leaves one out, an
            empty text gives the name alone.

    Example:
        >>> tag("td", "a < b", class_="name")
        '<td class="name">a &lt; b</td>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key}="{escaped(str(value))}"' if value != "" else f" {key}" for key, value in given.items())
    return Markup(f"<{name}{written}/>" if name in EMPTY else f"<{name}{written}>{joined(*children)}</{name}>")


def table(header: Iterable[Child], rows: Iterable[Iterable[Child]], **attributes: str | None) -> Markup:
    """A table whose first column names the rows. Each cell carries its column's name, for narrow screens."""
    columns = list(header)
    head = tag("tr", *(tag("th", column, scope="col") for column in columns))
    return tag("table", tag("thead", head), tag("tbody", *(_row(columns, row) for row in rows)), **attributes)


def _row(columns: list[Child], cells: Iterable[Child]) -> Markup:
    first, *others = cells
    named = zip(columns[1:], others, strict=True)
    return tag("tr", tag("th", first, scope="row"), *(tag("td", cell, data_name=str(c)) for c, cell in named))


def _written(child: Child) -> str:
    match child:
        case None:
            return ""
        case Markup():
            return child
        case str():
            return escaped(child)
        case int():
            return str(child)
    return joined(*child)
