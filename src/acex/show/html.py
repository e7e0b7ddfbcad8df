"""Render HTML from the templates beside this file: pages, the index of explanations, and tables for notebooks.

Jinja2 escapes every value. Pages have no web fonts, no links to other sites, and no scripts, except that of the index,
which its content security policy allows by hash. The same values give the same bytes. Nothing is queried.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Hashable, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from acex.engine.explanation import Explanation, changes_as_text, headings, labels_as_text, n_redacted_changes
from acex.show.sentences import OUTCOMES, one_sentence
from acex.space.feature import Feature
from acex.space.space import Space
from acex.values import joined_words, readable

NOT_IN_HTML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # even if escaped


def printed(value: Any) -> Any:
    """A value of a template, in the form in which it is printed.

    None becomes an empty text, every line ending becomes "\\n" (as in browsers and `Path.read_text`), and characters
    not allowed in HTML become replacement characters.
    """
    if value is None:
        return ""
    if not isinstance(value, str) or hasattr(value, "__html__"):  # a macro's result is HTML already
        return value
    return NOT_IN_HTML.sub("\N{REPLACEMENT CHARACTER}", re.sub("\r\n?", "\n", value))


TEMPLATES = Environment(
    loader=PackageLoader("acex.show"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=printed,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, **values: Any) -> str:
    """Render a template with these values."""
    return TEMPLATES.get_template(template).render({"language": "en", **values})


# -- lists -----------------------------------------------------------------------------------------------------------


def index_page(entries: Sequence[tuple[str, Explanation]]) -> str:
    """A page that lists explanations, each given with the address of its own page, relative to this one.

    The page's script shows a hundred lines at a time; if scripts are disabled, all lines are shown.
    """
    current = [not any(remark.code == "corrected" for remark in e.remarks) for _, e in entries]
    lines = [
        {
            "address": address,
            "e": e,
            "sentence": one_sentence(e),
            "outcome": OUTCOMES[e.outcome] if is_current else "outdated: labels were corrected",
            "changes": len(e.changes) + n_redacted_changes(e) if e.outcome == "found" else None,
        }
        for (address, e), is_current in zip(entries, current, strict=True)
    ]
    script = TEMPLATES.get_template("index.js").render()
    return render(
        "index.html",
        title=f"{len(entries)} explanations",
        lines=lines,
        n_found=sum(line["outcome"] == OUTCOMES["found"] for line in lines),
        n_rows=sum(current),
        n_queries=sum(e.n_queries for (_, e), is_current in zip(entries, current, strict=True) if is_current),
        outcomes=sorted({line["outcome"] for line in lines}),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
    )


# -- notebooks -------------------------------------------------------------------------------------------------------


def space_html(space: Space) -> str:
    """A table of the features of a space: kind, values, and whether they may change."""
    rows = [(f.name, f.kind, f.span(), _freedom(f)) for f in space.features]
    header = ("feature", "kind", "values", "may change")
    return render("notebook.html", title="", header=header, tables=[("", rows)], summary="")


def _freedom(feature: Feature) -> str:
    if feature.frozen:
        return "no: frozen"
    way = {"increase": "only upwards", "decrease": "only downwards"}.get(feature.direction or "", "yes")
    return way if feature.weight == 1 else f"{way}, weight {readable(float(feature.weight))}"


def explanation_html(explanation: Explanation) -> str:
    """One sentence, and a table of changes for each counterfactual."""
    tables = [(heading, changes_as_text(explanation, i)) for i, heading in enumerate(headings(explanation))]
    header = ("feature", "before", "after", "step", "needed")
    title, summary = one_sentence(explanation), explanation.summary()
    return render("notebook.html", title=title, header=header, tables=tables, summary=summary)


def explanations_html(explanations: Sequence[tuple[Hashable, Explanation]], n_rows: int) -> str:
    """A table with one line per explanation, given with the name of its row, out of `n_rows` rows to explain."""
    rows = [
        (
            name,
            OUTCOMES[e.outcome],
            " → ".join(labels_as_text(e)) if e.outcome == "found" else labels_as_text(e)[0],
            joined_words(e.changes["feature"].tolist()) if e.outcome == "found" else "",
            f"{e.costs[0]:.3g}" if e.costs else "",
            e.n_queries,
        )
        for name, e in explanations
    ]
    found = sum(e.outcome == "found" for _, e in explanations)
    done = f"{n_rows} rows" if len(rows) == n_rows else f"{len(rows)} of {n_rows} rows explained"
    title = f"{done}: {found} found, {sum(e.n_queries for _, e in explanations)} queries paid"
    header = ("row", "outcome", "label", "what has to change", "cost", "queries")
    return render("notebook.html", title=title, header=header, tables=[("", rows)], summary="")
