"""The page that lists a batch, and what notebooks display: nothing that the data could run."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jinja2 import UndefinedError

from acex.engine.explanation import Explanation
from acex.show.html import explanations_html, index_page, render
from acex.show.sentences import one_sentence
from explanations import nothing_found, person
from html_pages import Page
from reported import found, outcomes

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
    assert header == ["row", "what would have to change", "model", "outcome", "changes", "cost (sd)", "queries"]
    assert [first[0], second[0], third[0]] == ["A-0", "A-1", "A-2"]
    assert first[1].startswith("The decision becomes yes if ") and first[3:] == ["found", "4", "5", "5"]
    assert second[1].startswith("The decision is no as before") and second[3:] == [
        "not found: budget spent",
        "",
        "",
        "5",
    ]
    assert 'href="row-2.html"' in page


def test_nothing_in_the_data_is_run() -> None:
    evil = "</script><script>alert(1)</script><!--"
    e = named(person(), id=evil)
    page = index_page([("a.html", replace(e, plan=replace(e.plan, settings={**e.plan.settings, "model_id": evil})))])
    assert lines(page)[1][0] == lines(page)[1][2] == evil
    assert page.count("<script") == 1
    script = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    assert f"script-src 'sha256-{digest}'" in page  # browsers run this one and no other


def test_values_are_escaped_and_characters_that_html_cannot_hold_are_replaced() -> None:
    values = {"title": "<b>&", "header": ['"'], "tables": [("", [(3, None, "a\x00b\ud800c")])], "summary": ""}
    shown = render("notebook.html", **values)
    assert "<strong>&lt;b&gt;&amp;</strong>" in shown and "&#34;</th>" in shown
    assert re.findall(r"<td [^>]*>(.*?)</td>", shown) == ["3", "", "a\ufffdb\ufffdc"]
    with pytest.raises(UndefinedError, match="header"):
        render("notebook.html", title="", tables=[("", [])], summary="")


def test_the_index_leads_to_every_page() -> None:
    pages = [(f"{i}.html", e) for i, e in enumerate(outcomes().values())]
    page = Page(index_page(pages))
    assert [value for _, key, value in page.attributes if key == "href"] == [address for address, _ in pages]
    assert page.texts["a"] == [one_sentence(e) for _, e in pages]
    assert page.tags.count("script") == page.tags.count("style") == 1 and not {"link", "img"} & set(page.tags)


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


# -- notebooks ---------------------------------------------------------------------------------------------


def test_a_notebook_shows_sentence_and_changes() -> None:
    page = Page(found()._repr_html_())
    assert one_sentence(found()) in page.texts["strong"]
    assert set(found().changes["feature"]) <= set(page.texts["td"])
    assert page.tags.count("table") == len(found().costs)


def test_a_notebook_shows_a_space() -> None:
    page = Page(found().plan.space._repr_html_())
    assert page.texts["td"][:4] == ["age", "integer", "18 to 79", "only upwards"]
    assert page.texts["td"][4:8] == ["income", "continuous", "0 to 90", "yes"]
    assert page.texts["td"][8:12] == ["job", "nominal", "clerk, cook or nurse", "yes, weight 2"]
    assert page.texts["td"][-1] == "no: frozen"


def test_a_notebook_shows_many_explanations_in_a_line_each() -> None:
    several = list(outcomes().values()) * 13
    page = Page(explanations_html([(f"row {i}", e) for i, e in enumerate(several)], n_rows=78))
    assert "78 rows: 13 found" in page.texts["strong"][0]
    assert page.tags.count("tr") == 61 and "and 18 more" in page.texts["p"]
    assert "bad → good" in page.texts["td"]


def test_displays_take_the_notebooks_own_colours() -> None:
    for shown in (found()._repr_html_(), found().plan.space._repr_html_(), explanations_html([(0, found())], n_rows=1)):
        page = Page(shown)
        assert "style" not in page.tags and "class" not in {key for _, key, _ in page.attributes}
        styles = ";".join(value for _, key, value in page.attributes if key == "style")
        assert set(re.findall(r"(?:^|;)(?:background|color):([^;]+)", styles)) == {"inherit", "transparent"}
