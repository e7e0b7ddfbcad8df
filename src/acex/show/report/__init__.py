"""An explanation as one HTML file that needs nothing else, and as a notebook shows it. Nothing is asked.

Every text from outside goes through `markup.tag`, which escapes it. There is no web font, no link to anywhere, and no
script but that of the page that lists many, which browsers know by its hash; the same explanation gives the same bytes.
"""

from acex.show.report.feature_subsets import feature_subsets_page
from acex.show.report.index import index_page
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
