"""How the documentation site is built: `make docs`. Nothing in it is loaded from elsewhere: it can be read offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.ext.napoleon import GoogleDocstring

import acex

project = "acex"
release = acex.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"acex {release}"
html_static_path = ["_static"]
html_css_files = ["acex.css"]
html_search_scorer = str(Path(__file__).with_name("_static") / "scorer.js")
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_math_renderer = "mathml"
highlight_language = (
    "none"  # a block that names no language is a command line or its output
)
default_role = "code"  # docstrings write `names` as Markdown does
copybutton_selector = (
    "div:not(.highlight-text) > div.highlight > pre"  # output is not copied
)

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "all"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88


def as_mathml(self: Any, node: nodes.math | nodes.math_block) -> None:
    """Writes an equation as MathML, which browsers draw by themselves: no script, no font, no network."""
    self.body.append(
        tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block))
    )
    raise nodes.SkipNode


def read_properties_as_methods() -> None:
    """Keeps napoleon from reading the first line of a property as "type: description"."""
    parse = GoogleDocstring._parse

    def parse_as_method(self: GoogleDocstring) -> None:
        self._what = "method" if self._what == "property" else self._what
        parse(self)

    GoogleDocstring._parse = parse_as_method  # type: ignore[method-assign]


def setup(app: Sphinx) -> None:
    """Registers what this file adds to Sphinx."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(as_mathml, None), block_renderers=(as_mathml, None)
    )
    read_properties_as_methods()
    for field in PyObject.doc_field_types:
        if field.name == "returntype":
            field.label = "Returns"  # the first line of a docstring says what it is
