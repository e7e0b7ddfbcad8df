"""Pages that list things: explanations, sorted and filtered in the browser, and feature subsets."""

from __future__ import annotations

from collections.abc import Sequence

from acex.audit.feature_subsets import FeatureSubsets
from acex.engine.explanation import Explanation
from acex.show.report.html import Child, Markup, document, packaged, scrolling, table, tag
from acex.show.sentences import one_sentence

NOTE = (
    'In each line only the named features may change. "Yes" was labelled by the model itself. "Asked and not found" '
    'does not prove that there is nothing; "not asked" means that the budget was used for other sets of features.'
)


def index_page(entries: Sequence[tuple[str, Explanation]]) -> str:
    """A page that lists explanations, each with the address of its own page, relative to this one.

    The page's script shows a hundred lines at a time; without it all of them are shown.
    """
    n = len(entries)
    title = f"{n} explanations"
    found = sum(e.outcome == "found" for _, e in entries)
    summary = f"For {found} of {n} rows a change was found that alters the decision. "
    summary += f"{sum(e.n_queries for _, e in entries)} rows were sent to the model."
    header = ("id", "explanation", "model", "outcome", "changes", "cost", "queries")
    lines = table(header, (_line(address, e) for address, e in entries), class_="lines")
    outcomes = sorted({e.outcome.replace("_", " ") for _, e in entries})
    return document(
        title,
        _head("Counterfactual explanations", title, summary),
        tag("section", _tools(outcomes), scrolling(lines, title)),
        script=packaged("index.js"),
    )


def _head(kind: str, title: str, summary: str) -> Markup:
    return tag("header", tag("p", kind, class_="kind"), tag("h1", title), tag("p", summary))


def _line(address: str, e: Explanation) -> tuple[Child, ...]:
    model, name = (str(e.settings.get(what, "")) for what in ("model_id", "id"))
    return (
        name,
        tag("a", one_sentence(e), href=address),
        tag("span", model, class_="model", title=model),
        e.outcome.replace("_", " "),
        len(e.changes) if e.outcome == "found" else None,
        None if e.cost is None else f"{e.cost:.3g}",
        e.n_queries,
    )


def _tools(outcomes: list[str]) -> Markup:
    choices = [tag("option", "every outcome", value=" "), *(tag("option", name, value=name) for name in outcomes)]
    return tag(
        "p",
        tag("label", "Find ", tag("input", type="search")),
        tag("label", " Outcome ", tag("select", *choices)),
        tag("button", "Previous", type="button"),
        tag("span", class_="note", role="status"),
        tag("button", "Next", type="button"),
        class_="tools",
        hidden="",
    )


def feature_subsets_page(subsets: FeatureSubsets) -> str:
    """A page with small sets of features, and whether changing these alone is enough."""
    title = "What can be done with few features"
    lines = [
        (" and ".join(s.features), s.words, s.change, "" if s.cost is None else f"{s.cost:.3g}", s.asked)
        for s in subsets.entries
    ]
    drawn = table(("features", "alone?", "change", "cost", "rows asked"), lines, class_="lines")
    note = tag("p", NOTE, class_="note")
    return document(
        title, _head("Feature subsets", title, subsets.summary), tag("section", scrolling(drawn, title), note)
    )
