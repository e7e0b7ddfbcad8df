"""The page about feature subsets: each small set of features, and whether changing these alone is enough."""

from __future__ import annotations

from acex.audit.feature_subsets import WORDS, FeatureSubsets
from acex.show.report.document import document
from acex.show.report.markup import table, tag
from acex.show.report.page import scrolling

NOTE = (
    'Each line lets some features change and holds all others as they are. "Yes" was labelled by the model itself. '
    '"Asked and not found" does not prove that there is nothing; "not asked" means that the budget was used for others.'
)


def feature_subsets_page(subsets: FeatureSubsets) -> str:
    """The whole page, as text."""
    lines = [
        (
            " and ".join(entry.features),
            WORDS[entry.state],
            entry.change,
            "" if entry.cost is None else f"{entry.cost:.3g}",
            entry.asked,
        )
        for entry in subsets
    ]
    title = "What can be done with few features"
    head = tag("header", tag("p", "Feature subsets", class_="kind"), tag("h1", title), tag("p", subsets.summary))
    drawn = table(("features", "alone?", "change", "cost", "rows asked"), lines, class_="lines")
    return document(title, head, tag("section", scrolling(drawn, title), tag("p", NOTE, class_="note")))
