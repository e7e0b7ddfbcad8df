"""The page about a menu: each small set of features, and whether changing these alone can do."""

from __future__ import annotations

from acex.audit.feature_subsets import WORDS, Menu
from acex.show.report.document import document
from acex.show.report.markup import table, tag
from acex.show.report.page import scrolling

NOTE = (
    'Each line lets some features change and holds all others as they are. "Yes" was labelled by the model itself. '
    '"Asked and not found" is no proof that there is nothing; "not asked" means that the budget went elsewhere.'
)


def menu_page(menu: Menu) -> str:
    """The whole page, as text."""
    lines = [
        (
            " and ".join(entry.features),
            WORDS[entry.state],
            entry.change,
            "" if entry.cost is None else f"{entry.cost:.3g}",
            entry.asked,
        )
        for entry in menu
    ]
    title = "What can be done with few features"
    head = tag("header", tag("p", "Menu", class_="kind"), tag("h1", title), tag("p", menu.summary))
    drawn = table(("features", "alone?", "change", "cost", "rows asked"), lines, class_="lines")
    return document(title, head, tag("section", scrolling(drawn, title), tag("p", NOTE, class_="note")))
