"""Figures in README and docs, each computed from a committed file: `python benchmarks/pages.py` writes them anew.

In a page a figure stands between two comments that nobody sees, the first of which says how it is computed:

    needs <!--= ratio("queries", "feasible", "penalty") :.2f -->0.64<!--/--> of the queries
    <!--= grid("score", rows=20) -->
    ...a whole table...
    <!--/-->

The expression calls a function of words.py or measured.py; after a colon comes how Python formats a number.
`tests/test_figures.py` computes every one again and compares. benchmarks/results/README.md has the command that makes
each file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import measured
import words

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CHANGELOG.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
FIGURE = re.compile(r"<!--= (?P<how>.*?) -->(?P<text>.*?)<!--/-->", flags=re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A figure in a page."""

    page: str
    how: str
    text: str

    @property
    def computed(self) -> str:
        """What should stand there."""
        expression, _, form = self.how.partition(" :")
        value = eval(expression, {**vars(words), **vars(measured), "__builtins__": {}})
        if isinstance(value, str):
            return f"\n{value}\n" if "\n" in value else value
        return format(value, form.strip())


def figures(page: str) -> Iterator[Figure]:
    """All figures of a page."""
    for match in FIGURE.finditer((ROOT / page).read_text(encoding="utf-8")):
        yield Figure(page, match["how"], match["text"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    for page in PAGES:
        path = ROOT / page
        before = path.read_text(encoding="utf-8")
        after = FIGURE.sub(lambda m: f"<!--= {m['how']} -->{Figure('', m['how'], '').computed}<!--/-->", before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{page}: written anew")


if __name__ == "__main__":
    main()
