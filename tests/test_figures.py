"""Every figure in README and docs that has a file behind it is what the file says, and every file has a command."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
RESULTS = ROOT / "benchmarks/results"
pages = pytest.importorskip("pages")

FIGURES = [figure for page in pages.PAGES for figure in pages.figures(page)]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.page}: {figure.how}")
def test_a_figure_is_what_its_file_says(figure: Any) -> None:
    assert figure.text == figure.computed, "python benchmarks/pages.py writes it anew; look at the words around it too"


def test_the_pages_have_figures_and_every_comment_that_begins_one_ends_it() -> None:
    assert len(FIGURES) > 10
    for page in pages.PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        assert text.count("<!--=") == text.count("<!--/-->") == len(list(pages.figures(page))), page


def test_no_figure_within_a_line_begins_it() -> None:
    # Markdown would take the whole line for HTML, and no word of it for its own.
    lines = [line for page in pages.PAGES for line in (ROOT / page).read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if re.match(r" *<!--= .*<!--/-->", line)] == []


def test_every_kept_file_has_the_command_that_makes_it() -> None:
    listed = (ROOT / "benchmarks/results/README.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `([^`]+)` \|", listed, flags=re.MULTILINE)
    kept = {str(p.relative_to(RESULTS)) for p in RESULTS.rglob("*") if p.is_file()} - {"README.md"}
    strange = [name for name in kept if not any(Path(name).match(pattern) for pattern in names)]
    assert strange == [], "a file that nobody can make again"
    assert all(any(Path(name).match(pattern) for name in kept) for pattern in names), "a command for no file"
