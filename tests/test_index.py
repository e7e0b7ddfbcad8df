"""The page that lists a batch: names, pages of lines, nothing that the data could run."""

from __future__ import annotations

import html
import json
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
    return replace(e, about={**e.about, **about})


def entries(n: int) -> list[tuple[str, Explanation]]:
    some = (person(), nothing_found())
    return [(f"row-{i}.html", named(some[i % 2], id=f"A-{i}")) for i in range(n)]


def data(page: str) -> Any:
    [text] = re.findall(r'<script type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(text)


def test_lines_have_names_and_read_well() -> None:
    page = index_page(entries(3))
    told = data(page)
    assert [line["id"] for line in told] == ["A-0", "A-1", "A-2"]
    assert told[0]["explanation"].startswith("The decision becomes yes if ")
    assert told[1]["explanation"].startswith("The decision is no as before")
    assert (told[0]["outcome"], told[1]["outcome"], told[1]["cost"]) == ("found", "budget spent", None)
    plain = page.split("<noscript>")[1]
    assert plain.count("<tr>") == 4 and 'href="row-2.html"' in plain


def test_long_names_of_models_are_shortened_and_told_in_full() -> None:
    e = person()
    long = replace(e, plan=replace(e.plan, model_id="sha256:" + "0123456789abcdef" * 4))
    plain = index_page([("a.html", long)]).split("<noscript>")[1]
    assert ">sha256:0123456789…<" in plain and f'title="{long.plan.model_id}"' in plain


def test_nothing_in_the_data_is_run() -> None:
    evil = "</script><script>alert(1)</script><!--"
    e = named(person(), id=evil)
    page = index_page([("a.html", replace(e, plan=replace(e.plan, model_id=evil)))])
    assert data(page)[0]["id"] == evil
    assert page.count("<script") == 2 and "alert(1)</script" not in page.replace(html.escape(evil), "")

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
