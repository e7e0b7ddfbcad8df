"""A page as a whole: its head, its style, and what browsers may do with it."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from acex.show.report.markup import Child, Markup, tag

# Browsers then run no script and load nothing, whatever a text from outside might be.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def document(title: str, *body: Child, language: str = "en", script: str = "") -> str:
    """The page, as text.

    Args:
        script: a program that belongs to the page: browsers run this one, known by its hash, and no other.
    """
    mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"{POLICY}; script-src 'sha256-{mark}'" if script else POLICY
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
    """A file of this folder."""
    return Markup((files("acex.show.report") / name).read_text(encoding="utf-8"))
