"""The page that lists a batch: names, pages of lines, nothing that the data could run."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acex.engine.explanation import Explanation
from acex.show.report import index_page
from explanations import nothing_found, person

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def named(e: Explanation, **about: Any) -> Explanation:
    return replace(e, metadata={**e.metadata, **about})


def entries(n: int) -> list[tuple[str, Explanation]]:
    some = (person(), nothing_found())
    return [(f"row-{i}.html", named(some[i % 2], id=f"A-{i}")) for i in range(n)]


def lines(page: str) -> list[list[str]]:
    """The cells of the table's lines, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, flags=re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in rows]
    return [[html.unescape(re.sub(r"<[^>]*>", "", cell)) for cell in row] for row in cells]


def test_lines_have_names_and_a_sentence() -> None:
    page = index_page(entries(3))
    header, first, second, third = lines(page)
    assert header == ["id", "explanation", "model", "outcome", "changes", "cost", "queries"]
    assert [first[0], second[0], third[0]] == ["A-0", "A-1", "A-2"]
    assert first[1].startswith("The decision becomes yes if ") and first[3:] == ["found", "4", "5", "5"]
    assert second[1].startswith("The decision is no as before") and second[3:] == ["budget spent", "", "", "5"]
    assert 'href="row-2.html"' in page


def test_nothing_in_the_data_is_run() -> None:
    evil = "</script><script>alert(1)</script><!--"
    e = named(person(), id=evil)
    page = index_page([("a.html", replace(e, plan=replace(e.plan, settings={**e.plan.settings, "model_id": evil})))])
    assert lines(page)[1][0] == lines(page)[1][2] == evil
    assert page.count("<script") == 1
    assert re.search(r"script-src &#x27;sha256-[A-Za-z0-9+/=]{44}&#x27;", page)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs a browser: install Chromium (Debian: apt install chromium)")
def test_ten_thousand_rows_are_shown_a_hundred_at_a_time(tmp_path: Path) -> None:
    assert BROWSER is not None
    path = tmp_path / "index.html"
    path.write_text(index_page(entries(10_000)), encoding="utf-8")
    words = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    done = subprocess.run(
        [*words, "--virtual-time-budget=9000", f"--user-data-dir={tmp_path / 'p'}", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    drawn = done.stdout.split('class="wide"')[1].split("</table>")[0]
    assert drawn.count("<tr>") == 101
    assert "1 to 100 of 10000" in done.stdout
