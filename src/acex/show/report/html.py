"""HTML from function calls: whatever is not `Markup` is text, and escaped."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TypeAlias

NOT_IN_HTML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # not even escaped
EMPTY = ("meta", "circle", "line", "path", "polyline")  # elements without content
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"  # no script, no request


class Markup(str):
    """Finished HTML: `tag` does not escape it."""


Child: TypeAlias = "str | int | Iterable[Child] | None"


def document(title: str, *body: Child, language: str = "en", script: str = "") -> str:
    """A whole page, as text.

    Args:
        script: the page's own script: browsers run this one, identified by its hash, and no other.
    """
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"{POLICY}; script-src 'sha256-{digest}'" if script else POLICY
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", packaged("style.css")),
    )
    last = tag("script", Markup(script)) if script else None
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', tag('main', *body), last), lang=language)}\n"


@cache
def packaged(name: str) -> Markup:
    """The content of a file of this folder."""
    return Markup((files("acex.show.report") / name).read_text(encoding="utf-8"))


def escaped(text: str) -> Markup:
    """The text as HTML, for an element or an attribute."""
    return Markup(html.escape(NOT_IN_HTML.sub("\N{REPLACEMENT CHARACTER}", text), quote=True))


def joined(*children: Child) -> Markup:
    """The children one after the other, without those that are None."""
    return Markup("".join(_written(child) for child in children))


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


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """An element.

    Args:
        attributes: by name, with `_` for `-` and a trailing `_` for Python's keywords (`class_`); None is left out,
            and an empty text gives the name alone.

    Example:
        >>> tag("td", "a < b", class_="name")
        '<td class="name">a &lt; b</td>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    written = "".join(f' {key}="{escaped(str(value))}"' if value != "" else f" {key}" for key, value in given.items())
    return Markup(f"<{name}{written}/>" if name in EMPTY else f"<{name}{written}>{joined(*children)}</{name}>")


def section(title: str, *children: Child) -> Markup:
    """A part of a page with its heading."""
    return tag("section", tag("h2", title), *children)


def bullets(items: Iterable[Child], **attributes: str) -> Markup:
    """A list without numbers."""
    return tag("ul", *(tag("li", item) for item in items), **attributes)


def table(header: Iterable[Child], rows: Iterable[Iterable[Child]], **attributes: str | None) -> Markup:
    """A table whose first column names the rows. Each cell carries its column's name, for narrow screens."""
    columns = list(header)
    head = tag("tr", *(tag("th", column, scope="col") for column in columns))
    body = []
    for first, *others in rows:
        cells = [tag("td", cell, data_name=str(c)) for c, cell in zip(columns[1:], others, strict=True)]
        body.append(tag("tr", tag("th", first, scope="row"), *cells))
    return tag("table", tag("thead", head), tag("tbody", *body), **attributes)


def scrolling(content: Child, title: str) -> Markup:
    """A wide table that scrolls by itself, so that the page does not; it can be reached with the keyboard."""
    return tag("div", content, class_="wide", tabindex="0", role="region", aria_label=title)
