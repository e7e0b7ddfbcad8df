"""How the documentation site is built: `make docs`. Nothing in it is loaded from elsewhere: it can be read offline."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import acex

project = "acex"
release = acex.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"acex {release}"
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_math_renderer = "mathml"
highlight_language = "none"  # a block that names no language is a command line or its output
default_role = "code"  # docstrings write `names` as Markdown does

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100


def as_mathml(self: Any, node: nodes.math | nodes.math_block) -> None:
    """Writes an equation as MathML, which browsers draw by themselves: no script, no font, no network."""
    self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Registers what this file adds to Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(as_mathml, None), block_renderers=(as_mathml, None))
