"""Generated tables in docs/: `python -m benchmarks pages` writes them from the committed results.

A table is placed between two HTML comments, the first of which names its suite and table:

    <!--= mixed:score -->
    ...
    <!--/-->

A test computes each table again and compares it. Numbers in sentences are plain Markdown;
`tests/benchmarks/test_quoted_numbers.py` compares them with their files.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from benchmarks.suite import ROOT
from benchmarks.suites import SUITES
from benchmarks.table import Table

TABLE = re.compile(r"<!--= (?P<name>\S+) -->\n(?P<text>.*?)\n?<!--/-->", flags=re.DOTALL)  # may be empty


@cache
def tables(suite: str) -> dict[str, Table]:
    """All tables of a suite from the committed results."""
    return SUITES[suite].tables(SUITES[suite].read())


def computed(name: str) -> str:
    """The table that "SUITE:TABLE" names, as Markdown."""
    suite, _, table = name.partition(":")
    return tables(suite)[table].markdown()


def pages() -> list[Path]:
    """The pages that may contain generated tables."""
    return sorted((ROOT / "docs").glob("*.md"))


def write_pages() -> list[str]:
    """Write every generated table, and return the pages that changed."""
    changed = []
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = TABLE.sub(lambda found: f"<!--= {found['name']} -->\n{computed(found['name'])}\n<!--/-->", before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path.name)
    return changed
