"""Generated tables are what their files say, and every command and result file that a page names exists."""

from __future__ import annotations

import re
import shlex

import pytest

from benchmarks import pages
from benchmarks.suite import RESULTS, ROOT
from benchmarks.suites import SUITES

TABLES = [(path.name, m["name"], m["text"]) for path in pages.pages() for m in pages.TABLE.finditer(path.read_text())]
PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", RESULTS / "README.md", *pages.pages()]
COMMANDS = ("run", "table", "plot", "pages", "train", "tune")


@pytest.mark.parametrize(("page", "name", "text"), TABLES, ids=lambda text: text if len(text) < 50 else "")
def test_a_generated_table_is_what_its_file_says(page: str, name: str, text: str) -> None:
    assert text == pages.computed(name), "python -m benchmarks pages writes it"


def test_every_comment_that_begins_a_table_ends_it_and_the_readme_has_none() -> None:
    assert len(TABLES) > 20
    assert "<!--=" not in (ROOT / "README.md").read_text()
    for path in pages.pages():
        text = path.read_text()
        assert text.count("<!--=") == text.count("<!--/-->") == len(pages.TABLE.findall(text)), path.name


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_commands_of_the_benchmark_exist(path: object) -> None:
    text = path.read_text().replace("$(BENCHMARKS)", "python -m benchmarks").replace("$(PAPER)", "mixed")  # type: ignore[attr-defined]
    for command in re.findall(r"python -m benchmarks ([^`#\n]+)", text):
        words = shlex.split(command)
        assert words[0] in COMMANDS, command
        if "--suite" in words:
            named = words[words.index("--suite") + 1].split(",")
            assert all(name in {*SUITES, "NAME"} for name in named), command


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name)
def test_files_of_the_benchmark_exist(path: object) -> None:
    for name in re.findall(r"`(benchmarks/[\w./-]+)`", path.read_text()):  # type: ignore[attr-defined]
        assert (ROOT / name).exists(), name


def test_every_result_file_belongs_to_a_suite_or_is_listed() -> None:
    readme = (RESULTS / "README.md").read_text()
    for path in RESULTS.glob("*.csv"):
        assert path.stem in SUITES or f"| `{path.name}` | no suite" in readme, path.name
    for path in RESULTS.glob("*/*.csv.gz"):
        assert SUITES[path.parent.name].packed and path.name.removesuffix(".csv.gz") in SUITES[path.parent.name].data
    assert all(len(suite.lines()) for suite in SUITES.values())
