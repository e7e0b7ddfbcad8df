"""A real browser for tests: Debian's chromium, driven by Selenium. Nothing is downloaded."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip

# Text whose contrast with what lies behind it is too small for WCAG AA; what cannot be used need not be readable.
FAINT = """
const linear = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const light = c => { const [r, g, b] = c.map(linear);
  return .2126 * r + .7152 * g + .0722 * b; };
const parse = text => text.match(/[\\d.]+/g).map(Number);
const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > .9) return c.slice(0, 3); } return [255, 255, 255]; };
const out = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement, style = getComputedStyle(e);
  const isShown = e.checkVisibility() && !e.closest(":disabled, noscript, script, title");
  if (!walk.currentNode.data.trim() || !isShown) continue;
  const ink = e.closest("svg") ? style.fill : style.color;
  const [a, b] = [light(parse(ink).slice(0, 3)), light(behind(e))].sort((x, y) => y - x);
  const large = parseFloat(style.fontSize) >= 24;
  if ((a + .05) / (b + .05) < (large ? 3 : 4.5)) out.push(e.className + ": " + walk.currentNode.data);
}
return out;
"""
NAMELESS = """
const named = e => e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim();
return [...document.querySelectorAll("input, select, button, a, summary, [role=region]")]
  .filter(e => e.checkVisibility() && !named(e) && !e.labels?.length).map(e => e.outerHTML.slice(0, 120));
"""
# Where axe-core is, which checks pages for accessibility: the file axe.min.js of the npm package of this name.
AXE = os.environ.get("ACEX_AXE")
NO_AXE = "needs axe-core: `npm pack axe-core`, unpack it, and name its axe.min.js in the variable ACEX_AXE"


@contextmanager
def browsing(folder: Path, *, width: int = 1440, height: int = 900, dark: bool = False) -> Iterator[Any]:
    """A browser with an empty profile in the folder and a page of this width; it keeps its console messages."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for word in (*QUIET, f"--user-data-dir={folder / 'profile'}", f"--window-size={max(width, 500)},{height}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        look(driver, width=width, height=height, dark=dark)
        yield driver
    finally:
        driver.quit()


def look(driver: Any, *, width: int, height: int = 900, dark: bool = False) -> None:
    """Give the page another width, and another theme: windows of Chromium are never narrower than 500 pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    theme += [{"name": "prefers-reduced-motion", "value": "reduce"}]  # drawing takes time from searches
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": theme})


def complaints(driver: Any) -> list[str]:
    """Messages of the console since the last call, except those about a server that was not there or went away."""
    gone = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    messages = [line["message"] for line in driver.get_log("browser")]
    return [text for text in messages if not any(name in text for name in gone)]


def picture(driver: Any, path: Path) -> None:
    """The whole page, including what is below the window."""
    import base64

    whole = {"format": "png", "captureBeyondViewport": True}
    path.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", whole)["data"]))


def violations(driver: Any) -> list[str]:
    """What axe-core finds on the page; see `AXE`."""
    assert AXE is not None
    driver.execute_script(Path(AXE).read_text(encoding="utf-8"))
    names = "r => r.violations.map(v => `${v.id}: ${v.nodes.map(n => n.target.join(' ')).join(', ')}`)"
    found = driver.execute_async_script(
        f"const done = arguments[0]; axe.run().then({names}).then(done, error => done([String(error)]))"
    )
    return list(found)


def until(what: Callable[[], Any], seconds: float = 180) -> Any:
    """What comes of it, once something does."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := what():
                return found
        except Exception:  # it is not on the page yet, or no longer
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


class Person:
    """Reads and does what a person would, in words of the page."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address
        driver.get(address)

    def find(self, selector: str, text: str = "") -> Any:
        from selenium.webdriver.common.by import By

        return until(
            lambda: next(
                e for e in self.driver.find_elements(By.CSS_SELECTOR, selector) if text in e.text and e.is_displayed()
            ),
            20,
        )

    def press(self, text: str, selector: str = "button, a, summary") -> None:
        until(lambda: self._click(self.find(selector, text)))

    def _click(self, element: Any) -> bool:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        if element.is_enabled():
            element.click()
            return True
        return False

    def click(self, selector: str) -> None:
        self.press("", selector)

    def search(self) -> str:
        """Begin the search of the row that is shown, and the name of it."""
        self.press("Find the smallest change")
        return self.identity

    def type(self, selector: str, text: str) -> None:
        from selenium.webdriver.common.keys import Keys

        self.find(selector).send_keys(Keys.CONTROL, "a", Keys.NULL, text or Keys.BACKSPACE)

    @property
    def text(self) -> str:
        return str(self.find("main").text)

    def sees(self, text: str, seconds: float = 180) -> bool:
        return bool(until(lambda: text in self.text, seconds))

    def go(self, place: str) -> None:
        self.driver.get(f"{self.address}#/{place}")

    @property
    def identity(self) -> str:
        found = until(lambda: re.search(r"#/search/([0-9a-f]+)", self.driver.current_url))
        return str(found[1])
