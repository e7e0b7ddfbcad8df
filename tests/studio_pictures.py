"""Draws the studio's pictures for the documentation: python tests/studio_pictures.py docs/pictures"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from browsers import Person, browsing, look, until
from studios import serving_studio


def draw(out: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        browsing(Path(folder)) as driver,
        serving_studio(Path(folder), "--demo", "--port", "0", "--price-per-row", "0.05") as (_, address),
    ):
        look(driver, width=1280, height=860)
        person = Person(driver, address)
        person.go("row/17")
        person.click("[aria-label='Adjust income']")
        assert person.sees("Education stays master.")
        driver.execute_script("scrollTo(0, 0)")
        time.sleep(0.5)
        driver.save_screenshot(str(out / "studio-row.png"))
        person.press("Find the smallest change")
        first = person.identity
        assert person.sees("Done")
        person.press("Not this feature")
        while person.identity == first:
            time.sleep(0.1)
        assert person.sees("Done")
        person.go(f"search/{first}")
        until(lambda: len(driver.find_elements("css selector", ".answer")) > 1)
        driver.execute_script("scrollTo(0, 0)")
        time.sleep(0.5)
        driver.save_screenshot(str(out / "studio.png"))


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
