"""An explanation as a single HTML file, and as notebooks display it. Nothing is queried.

Every text goes through `html.tag`, which escapes it. A page has no web font, no link to other sites, and no script
except the one of the index, which browsers know by its hash. The same explanation gives the same bytes.
"""

from acex.show.report.lists import feature_subsets_page, index_page
from acex.show.report.notebook import explanation_html, explanations_html, space_html
from acex.show.report.page import certificate_in, explanation_page, page_of

__all__ = [
    "certificate_in",
    "explanation_html",
    "explanation_page",
    "explanations_html",
    "feature_subsets_page",
    "index_page",
    "page_of",
    "space_html",
]
