"""What notebooks display: small tables in the font and colours of the notebook, for dark themes too."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from acex.engine.explanation import Explanation, changes_as_text, labels_as_text
from acex.show.report.html import Child, Markup, joined, tag
from acex.show.sentences import one_sentence
from acex.space.feature import Feature
from acex.space.space import Space
from acex.values import joined_words, readable

MOST_LINES = 60  # of a table
PLAIN = "color:inherit;background:transparent"
CELL = f"{PLAIN};text-align:left;vertical-align:top;white-space:normal;padding:3px 14px 3px 0;border:0"
LINE = f"{PLAIN};border:0;border-bottom:1px solid rgba(128,128,128,.35)"
QUIET = "opacity:.75"


def space_html(space: Space) -> str:
    """The features of a space: kind, values, and how far they may be changed."""
    rows = [(f.name, f.kind, f.span(), _freedom(f)) for f in space.features]
    return _block(_table(("feature", "kind", "values", "may change"), rows))


def explanation_html(explanation: Explanation) -> str:
    """One sentence, and a table of changes for each counterfactual."""
    parts: list[Child] = [tag("p", tag("strong", one_sentence(explanation)))]
    for i in range(len(explanation.costs)):
        if i > 0:
            parts.append(tag("p", f"or, at a cost of {explanation.costs[i]:.3g}:"))
        parts.append(_table(("feature", "before", "after", "step", "needed"), changes_as_text(explanation, i)))
    return _block(*parts, tag("p", explanation.summary(), style=QUIET))


def explanations_html(explanations: Sequence[tuple[Hashable, Explanation]], n_rows: int) -> str:
    """A line for each explanation, given with the name of its row; `n_rows` are to be explained in total."""
    rows = [
        (
            str(name),
            e.outcome.replace("_", " "),
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
    return _block(tag("p", tag("strong", title)), _table(header, rows))


def _freedom(feature: Feature) -> str:
    if feature.frozen:
        return "no: frozen"
    way = {"increase": "only upwards", "decrease": "only downwards"}.get(feature.direction or "", "yes")
    return way if feature.weight == 1 else f"{way}, weight {readable(float(feature.weight))}"


def _block(*children: Child) -> str:
    return str(tag("div", *children, style=f"{PLAIN};max-width:60em;overflow-wrap:anywhere"))


def _table(header: Sequence[str], rows: Sequence[tuple[Child, ...]]) -> Markup:
    head = tag("tr", *(tag("th", name, style=f"{CELL};font-weight:normal;{QUIET}") for name in header), style=LINE)
    lines = [tag("tr", *(tag("td", cell, style=CELL) for cell in row), style=LINE) for row in rows[:MOST_LINES]]
    more = tag("p", f"and {len(rows) - MOST_LINES} more", style=QUIET) if len(rows) > MOST_LINES else None
    return joined(tag("table", tag("thead", head), tag("tbody", *lines), style="border-collapse:collapse"), more)
