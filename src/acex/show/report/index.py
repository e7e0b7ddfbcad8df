"""The page that lists explanations: sorted and filtered in the browser, a hundred lines at a time.

All lines are in the page twice: as data for its script, and as a plain table for browsers that run none, which others
do not even build. Data are JSON with every `<` escaped, and the script writes them as text, never as HTML.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from acex.engine.explanation import Explanation
from acex.show.report.document import document, packaged
from acex.show.report.markup import Child, Markup, table, tag
from acex.show.sentences import one_sentence
from acex.values import as_json

HEADER = ("id", "explanation", "model", "outcome", "changes", "cost", "queries")
LONGEST = 18  # characters of a model's name; the hash of a file has 71


def index_page(entries: Sequence[tuple[str, Explanation]]) -> str:
    """A page that lists explanations, each with the address of its own page, relative to this one."""
    n = len(entries)
    title = f"{n} explanations"
    lines = [_line(address, e) for address, e in entries]
    found = sum(e.outcome == "found" for _, e in entries)
    paid = sum(e.n_queries for _, e in entries)
    head = tag(
        "header",
        tag("p", "Counterfactual explanations", class_="kind"),
        tag("h1", title),
        tag("p", f"For {found} of {n} rows a change was found that alters the decision; {paid} rows were paid for."),
    )
    outcomes = sorted({e.outcome.replace("_", " ") for _, e in entries})
    data = Markup(json.dumps(lines, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c"))
    return document(
        title,
        head,
        tag("section", _tools(outcomes), tag("div", class_="wide", tabindex="0", role="region", aria_label=title)),
        tag("script", data, type="application/json"),
        tag("noscript", _plain(lines)),
        script=packaged("index.js"),
    )


def _line(address: str, e: Explanation) -> dict[str, Any]:
    model = str(e.settings.get("model_id", ""))
    is_found = e.outcome == "found"
    return {
        "address": address,
        "id": as_json(e.settings.get("id")),
        "explanation": one_sentence(e),
        "model": model,
        "outcome": e.outcome.replace("_", " "),
        "changes": len(e.changes) if is_found else None,
        "cost": float(f"{e.costs[0]:.3g}") if is_found and e.costs else None,
        "queries": e.n_queries,
    }


def _tools(outcomes: list[str]) -> Markup:
    choices = [tag("option", "every outcome", value=" "), *(tag("option", name, value=name) for name in outcomes)]
    return tag(
        "p",
        tag("label", "Find ", tag("input", type="search")),
        tag("label", " Outcome ", tag("select", *choices)),
        tag("button", "Earlier", type="button"),
        tag("span", class_="note", role="status"),
        tag("button", "Later", type="button"),
        class_="tools",
        hidden="",
    )


def _plain(lines: list[dict[str, Any]]) -> Markup:
    cells: list[tuple[Child, ...]] = []
    for line in lines:
        texts = [_text(line[name]) for name in HEADER]
        model = tag("span", shortened(line["model"]), title=line["model"])
        cells.append((texts[0], tag("a", texts[1], href=line["address"]), model, *texts[3:]))
    return table(HEADER, cells, class_="lines")


def shortened(name: str) -> str:
    """A model's name, its end left out where it is long."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
