"""An explanation as one HTML file that needs nothing else, and as a notebook shows it. Nothing is asked.

Every text from outside goes through `markup.tag`, which escapes it. There is no script, no web font and no link to
anywhere; the same explanation gives the same bytes.
"""

from acex.show.report.menu import menu_page
from acex.show.report.notebook import explanation_html, explanations_html, space_html
from acex.show.report.page import explanation_page, index_page

__all__ = ["explanation_html", "explanation_page", "explanations_html", "index_page", "menu_page", "space_html"]
