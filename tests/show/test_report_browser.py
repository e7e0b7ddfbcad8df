"""The page in a real browser. Screenshots stay in the folder of the test, to be looked at."""

from __future__ import annotations

import html
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import acex
from acex.show.html import index_page
from acex.show.notice import notice_page
from browsers import AXE, BROWSER, DRIVER, FAINT, NAMELESS, NO_AXE, browsing, look, picture, violations
from html_pages import FIELDS
from reported import found, outcomes, renamed

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="needs a browser: install Chromium (Debian: apt install chromium)"),
]
LONG = "AverageMonthlyBalanceOverTheLastTwelveMonthsInThousands" * 3  # one word
# A window of Chromium is never narrower than 500 pixels; a frame in it is, and media queries go by the frame.
FRAME = """<!DOCTYPE html><meta charset="utf-8"><title>waiting</title><body style="margin:0">
<iframe width="{width}" height="{height}" style="border:0" srcdoc="{page}"></iframe>
<script>
onload = () => {{
  const inside = document.querySelector("iframe").contentDocument;
  for (const fold of inside.querySelectorAll("details")) fold.open = true;
  const root = inside.documentElement;
  document.title = [inside.defaultView.innerWidth, root.scrollWidth].join(" ");
}};
</script>
"""

# Tables that scroll sideways.
SIDEWAYS = """return [...document.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth)
  .map(e => e.getAttribute("aria-label"))"""


def pages() -> dict[str, str]:
    hostile = renamed([LONG, "<script>alert(1)</script>"], [LONG, "'\"<b>"], (LONG, "</style>"), LONG)
    return {
        **{name: e.to_html() for name, e in outcomes().items()},
        "hostile": hostile.to_html(),
        "index": index_page([(f"{name}.html", e) for name, e in (outcomes() | {"hostile": hostile}).items()]),
        "notice": notice_page(found(), FIELDS),
    }


def browse(folder: Path, address: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    always = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr")
    profile = f"--user-data-dir={folder / 'profile'}"
    words = [BROWSER, *always, profile, *options, address.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    return done


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["found", "budget_spent", "already_target", "hostile", "notice"])
def test_a_page_fits_its_width_and_complains_of_nothing(name: str, width: int, tmp_path: Path) -> None:
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(page=html.escape(pages()[name]), width=width, height=2400), encoding="utf-8")
    window = f"--window-size={max(width, 500)},2400"
    measured = re.search(r"<title>(\d+) (\d+)</title>", browse(tmp_path, frame, window, "--dump-dom").stdout)
    assert measured is not None
    assert measured.groups() == (str(width), str(width))
    picture = tmp_path / f"{name}-{width}.png"
    browse(tmp_path, frame, window, f"--screenshot={picture}")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (max(width, 500), 2400)


@pytest.mark.skipif(DRIVER is None, reason="needs a driver for the browser (Debian: apt install chromium-driver)")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_can_be_read_on_a_telephone_and_in_the_dark(dark: bool, tmp_path: Path) -> None:
    with browsing(tmp_path, width=390, dark=dark) as driver:
        for name, text in pages().items():
            path = tmp_path / f"{name}.html"
            path.write_text(text, encoding="utf-8")
            for width in (390, 1280):
                look(driver, width=width, dark=dark)
                driver.get(path.as_uri())
                driver.execute_script("for (const fold of document.querySelectorAll('details')) fold.open = true")
                picture(driver, tmp_path / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                assert width > 390 or driver.execute_script(SIDEWAYS) == [], name
                assert driver.execute_script("return document.documentElement.scrollWidth") == width, name
                assert driver.execute_script(FAINT) == [], name
                assert driver.execute_script(NAMELESS) == [], name
            background = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (background == "rgb(255, 255, 255)") != dark


@pytest.mark.skipif(AXE is None, reason=NO_AXE)
def test_axe_finds_nothing(tmp_path: Path) -> None:
    token = Path(acex.__file__).parent / "studio" / "static" / "token.html"
    with browsing(tmp_path) as driver:
        for name, text in (pages() | {"token": token.read_text(encoding="utf-8")}).items():
            path = tmp_path / f"{name}.html"
            path.write_text(text, encoding="utf-8")
            driver.get(path.as_uri())
            assert violations(driver) == [], name


def test_a_script_in_the_page_would_not_run(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    text = found().to_html().replace("</main>", "<script>document.title = 'ran'</script></main>")
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [str(BROWSER), "--headless", "--no-sandbox", f"--user-data-dir={tmp_path / 'p'}", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "<title>ran" not in done.stdout and "<title>" in done.stdout


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext (Debian: apt install poppler-utils)")
def test_what_is_folded_is_printed_in_full(tmp_path: Path) -> None:
    path, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    path.write_text(found().to_html(), encoding="utf-8")
    browse(tmp_path, path, "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    words = ["pdftotext", "-layout", str(printed), "-"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    purposes = "|".join(found().trace["purpose"].unique())
    numbers = [int(n) for n in re.findall(rf"^\s*(\d+)\s+(?:{purposes})\b", text, flags=re.MULTILINE)]
    assert numbers == list(range(1, len(found().steps) + 1))
