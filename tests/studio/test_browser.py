"""The studio in a real browser: what a person does there. Pictures stay in the folder of the test, to be looked at."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from browsers import (
    AXE,
    BROWSER,
    DRIVER,
    FAINT,
    NAMELESS,
    NO_AXE,
    Person,
    browsing,
    complaints,
    look,
    picture,
    until,
    violations,
)
from commands import set_up
from studios import CASE, FLATS, bill, flats, free_port, serving_studio

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None or DRIVER is None,
        reason="needs a browser and its driver (Debian: apt install chromium chromium-driver)",
    ),
]

SCORES = """
import numpy as np
class Scorer:
    classes_ = np.array(["bad", "good"])
    def predict_proba(self, rows):
        p = (rows["income"] / 5000).clip(0, 1).to_numpy(dtype=float)
        return np.stack([1 - p, p], axis=1)
    def predict(self, rows):
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]
scorer = Scorer()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    set_up(tmp_path)
    return tmp_path


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Any]:
    with browsing(tmp_path) as driver:
        yield driver
        assert complaints(driver) == []


@contextmanager
def opened(driver: Any, folder: Path, *words: Any, **variables: str) -> Iterator[tuple[Any, str]]:
    """`acex studio`, and its address; the pages are left before it is closed, so that they miss nothing."""
    with serving_studio(folder, *words, **variables) as (process, address):
        yield process, address
        for window in driver.window_handles:
            driver.switch_to.window(window)
            driver.get("about:blank")


@contextmanager
def explained(driver: Any, folder: Path, *words: Any) -> Iterator[Person]:
    """A person who looks at the explanation of the first row."""
    with opened(driver, folder, *CASE, "--port", "0", *words) as (_, address):
        person = Person(driver, address)
        person.go("row/0")
        person.search()
        assert person.sees("Done")
        yield person


def test_pick_a_row_say_what_may_change_and_watch_it_search(folder: Path, driver: Any) -> None:
    with opened(driver, folder, *CASE, "--port", "0", "--price-per-row", "0.5", BANK_SECONDS="0.2") as (_, address):
        person = Person(driver, address)
        assert person.sees("80 rows")
        person.type("input[type=search]", "id:100")
        assert person.sees("1 row matches")
        person.type("input[type=search]", "")
        person.press("bad", ".chip")
        assert person.sees("rows match")
        person.click("tbody th a")
        assert person.sees("on file as") and person.sees("At most 12 queries, for 6.00 at most")
        assert bill(folder) == []
        person.click("[aria-label='Lock age']")
        assert person.sees("Age stays")
        person.click("[aria-label='Adjust income']")
        person.type("[aria-label='Highest income, as a number']", "3000\t")
        assert person.sees("to 3000, nothing else.")
        person.press("only up", ".radios label")
        assert person.sees("Income may only rise.")
        person.press("More options", "summary")
        person.type("[name=max_changes]", "2\t")
        assert person.sees("Max changes: 2.")
        person.search()
        assert person.sees("Searching")
        person.press("Stop")
        assert person.sees("Stopped")
        paid = len(bill(folder))
        assert 0 < paid < 12
        person.press("Go on")
        assert person.sees("Done") and paid < len(bill(folder)) <= 12
        assert "Good if income were" in person.find("h1").text
        until(lambda: "Done. Good if" in driver.find_element("id", "live").get_attribute("textContent"))
        first, paid = person.identity, len(bill(folder))
        person.press("Ten more queries, 5.00 at most")
        assert person.sees(f"of {paid + 10}")
        until(lambda: person.find(".dot.ended"))
        assert person.identity == first and paid < len(bill(folder)) == len(set(bill(folder))) <= paid + 10
        assert person.sees(f"{len(bill(folder))} of {paid + 10}")
        assert len(driver.find_elements("css selector", ".chart circle, .chart .miss")) == len(bill(folder))


def test_compare_answers_bookmark_and_try_something_of_ones_own(folder: Path, driver: Any) -> None:
    with explained(driver, folder, "--price-per-row", "0.5") as person:
        first = person.identity
        person.click(".star")
        person.press("Not this feature")
        until(lambda: person.identity != first)
        assert person.sees("without")  # the page of the other search
        until(lambda: person.find(".dot.ended"))
        until(lambda: len(driver.find_elements("css selector", ".answer")) >= 1)
        person.go("saved")
        assert person.sees("Good if")
        person.press("Good if", "a")
        assert person.identity == first
        person.press("Try it a little differently")
        before = len(bill(folder))
        person.type(".fields .field:nth-child(2) input", "3987")
        assert person.sees("1 query, 0.50")
        assert len(bill(folder)) == before
        person.press("Ask the model")
        assert person.sees("income 3987") and len(bill(folder)) == before + 1
        assert person.sees("Known already, and free")


def test_take_it_along(folder: Path, driver: Any) -> None:
    with explained(driver, folder) as person:
        person.press("Code that gives the same result")
        assert person.sees("explainer.explain(") and "rows.iloc[0]" in person.text
        person.click("[aria-label='Copy the code']")
        assert person.find("[aria-label='Copy the code']", "Copied")
        badges = driver.find_elements("css selector", ".badge.d0, .badge.d1")
        assert len({badge.value_of_css_property("background-color") for badge in badges}) == 2  # decisions differ
        place = f"{person.address}api/searches/{person.identity}/exports"
        for what in ("report.html", "counterfactuals.csv", "queries.csv", "explanation.json"):
            status, name, text = driver.execute_async_script(
                "const done = arguments[1]; fetch(arguments[0]).then(r => r.text().then(t => done([r.status, "
                "r.headers.get('content-disposition'), t])))",
                f"{place}/{what}",
            )
            assert status == 200 and "income" in text.lower() and what.replace(".", "-row-0.") in name
        person.press("A letter to the person", "summary")
        for field in driver.find_elements("css selector", "form.panel input[required]"):
            if field.is_displayed() and not field.get_attribute("value"):
                field.send_keys("as we wrote")
        person.press("Write the letter")
        until(lambda: len(driver.window_handles) == 2)
        driver.switch_to.window(driver.window_handles[1])
        letter = until(lambda: driver.find_element("css selector", "main").text)
        assert "Reference: Row 0" in letter and "Dear Sir or Madam," in letter and "would have been good" in letter
        driver.get(f"{place}/report.html")
        assert "What would have to change" in driver.page_source


def test_a_printed_page_has_the_answer_and_no_controls(folder: Path, driver: Any) -> None:
    with explained(driver, folder, "--freeze", "age") as person:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert person.sees("Good if") and person.sees("Row 0")
        folded = driver.find_element("css selector", ".rules")
        assert driver.execute_script("return arguments[0].checkVisibility() && arguments[0].clientHeight > 0", folded)
        assert not any(e.is_displayed() for e in driver.find_elements("css selector", "button, input, select"))


def test_many_rows(folder: Path, driver: Any) -> None:
    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        person = Person(driver, address)
        person.go("many")
        person.press("Explain these rows")
        assert person.sees("10 of 10 rows")
        until(lambda: len(driver.find_elements("css selector", "table.many tbody tr")) == 10)
        person.press("Cost", ".sort")
        assert person.find("[aria-sort=ascending]")
        costs = [e.text.split() for e in driver.find_elements("css selector", "table.many td:nth-child(5)")]
        numbers = [float(number) for number, _ in costs]
        assert numbers == sorted(numbers) and {unit for _, unit in costs} == {"sd"}
        driver.find_elements("css selector", ".tools select")[1].send_keys("job")
        assert person.sees("With a change that works") and person.sees("Cost (median")
        person.click("table.many tbody th a")
        assert person.sees("Done")


def test_many_rows_count_rows_and_keep_what_a_person_chose(folder: Path, driver: Any) -> None:
    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        person = Person(driver, address)
        person.go("many")
        person.find(".starter select").send_keys("any")
        person.type(".starter .field:nth-child(2) input", "80")
        person.type(".starter .field:nth-child(3) input", "4")
        person.press("Explain these rows")
        assert person.sees("80 of 80 rows")
        person.go("row/0")
        person.click("[aria-label='Lock age']")
        person.search()
        assert person.sees("Done")
        person.go("many")
        assert person.sees("81 searches of 80 rows in all")
        figures = "return document.querySelector('.figures div').textContent"
        assert driver.execute_script(figures) == "Rows explained80"
        person.type(".tools input[type=search]", "age > 20")
        person.press("Cost", ".sort")
        person.press("Next")
        assert person.sees("Page 2 of") and "page=1" in driver.current_url
        driver.execute_script("scrollTo(0, 250)")
        until(lambda: driver.execute_script("return history.state?.scroll") == 250)
        place = driver.current_url
        # A click of the driver would scroll to the link first.
        driver.execute_script("arguments[0].click()", person.find("table.many tbody th a"))
        assert person.identity and person.sees("Changes that work")
        driver.back()
        assert person.sees("Page 2 of") and person.find("[aria-sort=ascending]").text.startswith("Cost")
        assert person.find(".tools input[type=search]").get_attribute("value") == "age > 20"
        until(lambda: driver.execute_script("return scrollY") == 250)
        driver.refresh()
        assert person.sees("Page 2 of") and driver.current_url == place
        person.go("")
        person.press("Many rows", "nav a")
        assert person.sees("Page 2 of")
    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        slow = {"offline": False, "latency": 1500, "downloadThroughput": -1, "uploadThroughput": -1}
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow)
        person = Person(driver, address)
        person.go("many")
        assert person.sees("so far; reading")  # while the studio reads its ledger
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", slow | {"latency": 0})
        until(lambda: driver.execute_script(figures) == "Rows explained80")


def test_a_studio_killed_in_mid_search_resumes_and_pays_nothing_twice(folder: Path, driver: Any) -> None:
    port = free_port()
    words = (*CASE, "--port", port)
    with opened(driver, folder, *words, BANK_SECONDS="0.3") as (process, address):
        person = Person(driver, address)
        person.go("row/0")
        person.search()
        until(lambda: len(bill(folder)) >= 4)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        until(lambda: person.find("#banner").text)
        driver.get_log("browser")  # what a browser says of a server that went away
        with opened(driver, folder, *words, BANK_SECONDS="0.3") as (_, _again):
            assert person.sees("Done")  # without a touch
            assert person.sees(f"{len(bill(folder))} of 12")
            assert len(bill(folder)) == len(set(bill(folder))) <= 12
            until(lambda: not driver.find_element("id", "banner").is_displayed())


def test_two_tabs_follow_the_same_search(folder: Path, driver: Any) -> None:
    with opened(driver, folder, *CASE, "--port", "0", BANK_SECONDS="0.3") as (_, address):
        person = Person(driver, address)
        person.go("row/0")
        person.search()
        place, first = f"search/{person.identity}", driver.current_window_handle
        driver.switch_to.new_window("tab")
        other = Person(driver, address)
        other.go(place)
        other.press("Stop")
        assert other.sees("Stopped")
        paid = len(bill(folder))
        driver.switch_to.window(first)
        assert person.sees("Stopped")
        person.press("Go on")
        driver.switch_to.window(driver.window_handles[1])
        driver.refresh()
        assert other.sees("Done") and paid < len(bill(folder)) <= 12


def test_the_keyboard_alone_does_everything(folder: Path, driver: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> None:
        ActionChains(driver).send_keys(*keys).perform()

    def reach(what: Callable[[Any], bool]) -> Any:
        """Tab until this has the focus, which can be seen."""
        for _ in range(120):
            now = driver.switch_to.active_element
            if what(now):
                style = "const s = getComputedStyle(arguments[0].closest('tr') || arguments[0]);"
                seen = "return s.outlineStyle != 'none' || !!arguments[0].closest('.track')"  # a thumb has its own ring
                assert driver.execute_script(style + seen, now)
                return now
            press(Keys.TAB)
        raise AssertionError("it cannot be reached")

    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        person = Person(driver, address)
        assert person.sees("80 rows")
        reach(lambda e: e.get_attribute("type") == "search")
        press("id:100")
        assert person.sees("1 row matches")
        reach(lambda e: "#/row/" in (e.get_attribute("href") or ""))
        press(Keys.ENTER)
        assert person.sees("What may change?")
        reach(lambda e: e.get_attribute("aria-label") == "Lock age")
        press(Keys.SPACE)
        assert person.sees("Age stays")
        press(Keys.ARROW_DOWN)  # Tab leaves the list of features: arrows lead from one to the next
        ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        assert driver.switch_to.active_element.get_attribute("aria-label") == "Adjust income"
        press(Keys.ENTER)
        slider = reach(lambda e: e.get_attribute("aria-label") == "Highest income")
        press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        assert slider.get_attribute("aria-valuetext").isdigit() and person.sees("Income may become")
        reach(lambda e: "Find the smallest" in e.text)
        press(Keys.ENTER)
        assert person.sees("Done")
        reach(lambda e: e.text.startswith("Ten more queries") or "Bookmark" in (e.get_attribute("aria-label") or ""))
        reach(lambda e: "Not " in (e.get_attribute("aria-label") or ""))
        first = person.identity
        press(Keys.ENTER)
        until(lambda: person.identity != first)


def every_page(driver: Any, person: Person) -> Iterator[str]:
    """Show each page with everything that can be unfolded, and its name."""
    search = f"search/{person.identity}"
    for name, place in (("rows", ""), ("row", "row/0"), ("own", "own"), ("search", search), ("many", "many?by=job"),
                        ("saved", "saved")):  # fmt: skip
        person.go(place)
        until(lambda: "One moment" not in person.text)
        time.sleep(0.5)
        if name == "row":
            person.click("[aria-label='Adjust income']")
            person.click("[aria-label='Adjust job']")
        for fold in driver.find_elements("css selector", "details"):
            driver.execute_script("arguments[0].open = true", fold)
        time.sleep(0.3)
        yield name


def test_every_page_can_be_read_and_fits(folder: Path, driver: Any) -> None:
    with explained(driver, folder, "--price-per-row", "0.5") as person:
        place = driver.current_url
        for width, dark in ((390, True), (390, False), (1280, True), (1440, False)):
            driver.get(place)
            look(driver, width=width, dark=dark)
            for name in every_page(driver, person):
                picture(driver, folder / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                assert driver.execute_script("return document.documentElement.scrollWidth") == width, name
                assert driver.execute_script(FAINT) == [], name
                assert driver.execute_script(NAMELESS) == [], name


@pytest.mark.skipif(AXE is None, reason=NO_AXE)
def test_axe_finds_nothing(folder: Path, driver: Any) -> None:
    with explained(driver, folder) as person:
        place = driver.current_url
        for width, dark in ((1280, False), (390, True)):
            driver.get(place)
            look(driver, width=width, dark=dark)
            assert {name: found for name in every_page(driver, person) if (found := violations(driver))} == {}


def test_long_lists_are_few_stops_of_the_tab_key(folder: Path, driver: Any) -> None:
    rows = pd.read_csv(folder / "loans.csv")
    rows = rows.assign(**{f"account_{j}": (rows["income"] * (j + 1)) % 977 for j in range(56)})
    rows.to_csv(folder / "loans.csv", index=False)
    stops = """return [...document.querySelectorAll("main a, main button, main input, main select, main summary, "
      + "main [tabindex]")].filter(e => e.checkVisibility() && !e.disabled && e.tabIndex >= 0).length"""
    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        person = Person(driver, address)
        person.go("row/0")
        assert person.sees("At most") and person.find("[aria-label='Lock account 55']")
        assert driver.execute_script(stops) < 20


def test_a_number_is_wanted_of_a_regressor_and_dates_are_limited(folder: Path, driver: Any) -> None:
    (folder / "acex_test_flats.py").write_text(FLATS, encoding="utf-8")
    flats().to_csv(folder / "flats.csv", index=False)
    words = ("flats.csv", "--model", "acex_test_flats:agent", "--model-name", "v1", "--ledger", "l.db", "--budget", 8)
    with opened(driver, folder, *words, "--port", "0") as (_, address):
        person = Person(driver, address)
        person.go("own")
        assert person.find("input[type=date]").get_attribute("value")
        person.press("Continue")
        assert person.sees("the answer is not known yet") and person.sees("Which number would you like to see?")
        assert not person.find("button.primary").is_enabled()
        person.type("[aria-label='The number']", "700")
        assert person.sees("At most 8 queries")
        person.click("[aria-label='Adjust built']")
        slider = person.find("[aria-label='Lowest built']")
        for _ in range(2):  # each key moves it
            before = slider.get_attribute("aria-valuetext")
            slider.send_keys("\ue014")
            assert slider.get_attribute("aria-valuetext") != before
        assert person.sees("Built may become")
        person.search()
        assert person.sees("Done") and person.sees("wanted: at least 700")
        picture(driver, folder / "numbers.png")
        assert driver.execute_script(FAINT) == [] and driver.execute_script(NAMELESS) == []
        person.press("Try it a little differently")
        person.type(".fields input[type=number]", "21")
        person.press("Ask the model")
        assert person.sees("with size 21")
        person.go("many")
        assert person.sees("With a change that works")


def test_numbers_that_arrive_move_nothing(folder: Path, driver: Any) -> None:
    watch = """
    window.shifts = 0;
    const add = list => { for (const e of list.getEntries()) if (!e.hadRecentInput) window.shifts += e.value; };
    new PerformanceObserver(add).observe({ type: "layout-shift", buffered: false });
    """
    with opened(driver, folder, *CASE, "--port", "0", BANK_SECONDS="0.2") as (_, address):
        person = Person(driver, address)
        person.go("row/0")
        person.search()
        assert person.sees("Searching")
        driver.execute_script(watch)  # from before the first answer
        assert person.sees("Done")
        assert driver.execute_script("return window.shifts") < 0.1  # what browsers call good


def test_where_nothing_is_found_the_page_says_why_and_offers_what_relaxes_it(folder: Path, driver: Any) -> None:
    with explained(driver, folder) as person:
        first, place = person.identity, driver.current_url
        person.press("Edit this search")
        person.press("Lock all")
        assert person.sees("Unlock at least one feature") and not person.find("button.primary").is_enabled()
        person.click("[aria-label='Locked: unlock age']")
        assert person.sees("Income stays")
        person.search()
        until(lambda: person.identity != first)
        assert person.sees("What was in the way") and person.sees("Does not count under these rules")
        assert "Python" not in person.find(".verdict").text
        assert all(e.is_enabled() for e in driver.find_elements("css selector", ".verdict .button") if e.is_displayed())
        picture(driver, folder / "nothing.png")
        person.press("Unlock income", "a")
        assert person.sees("May change") and "Income stays" not in person.find(".rules").text
        assert person.sees("Debt stays") and person.sees("At most")
        driver.get(place)
        assert person.sees("Done") and "Does not count" not in person.text


def test_back_reload_and_links_keep_what_a_person_chose(folder: Path, driver: Any) -> None:
    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        person = Person(driver, address)
        person.press("bad", ".chip")
        person.type("input[type=search]", "age > 30")
        until(lambda: "age" in driver.current_url and person.find("tbody tr"))
        matching = person.find("main > div > p").text
        driver.execute_script("scrollTo(0, 300)")
        until(lambda: driver.execute_script("return history.state?.scroll") == 300)
        # A click of the driver would scroll to the link first.
        driver.execute_script("arguments[0].click()", person.find("tbody tr:nth-child(2) th a"))
        person.click("[aria-label='Lock age']")
        person.press("anything but", ".chip")
        person.type("input[type=number]", "20")
        assert person.sees("At most 20 queries")
        person.search()
        assert person.sees("Done")
        person.press("Try it a little differently")
        person.type(".fields .field:nth-child(2) input", "3987")
        until(lambda: person.find("#whatif button.primary").is_enabled())
        person.press("Ask the model")
        assert person.sees("income 3987")
        paid = len(bill(folder))
        driver.refresh()
        assert person.sees("with") and person.sees("income 3987")  # what was paid for
        driver.back()
        until(lambda: "At most" in person.text or "Nothing to pay" in person.text)
        assert (
            person.find("[aria-label='Locked: unlock age']")
            and person.find("input[type=number]").get_attribute("value") == "20"
        )
        assert person.find(".chip[aria-pressed=true]").text.startswith("anything but")
        driver.refresh()
        assert person.find("[aria-label='Locked: unlock age']")
        link = driver.current_url
        driver.back()
        assert person.find("input[type=search]").get_attribute("value") == "age > 30"
        assert person.find("main > div > p").text == matching
        until(lambda: driver.execute_script("return scrollY") == 300)
        driver.get("about:blank")
        driver.get(link)
        assert person.find("[aria-label='Locked: unlock age']")
        person.press("Rows", ".breadcrumb a")
        assert person.find("input[type=search]").get_attribute("value") == "age > 30" and len(bill(folder)) == paid
        person.go("many?sort=cost&down=1&all=1")
        assert person.find("[aria-sort=descending]").text.startswith("Cost")


def test_what_is_known_is_offered_before_it_costs_anything(folder: Path, driver: Any) -> None:
    case = [word for word in CASE if word not in ("--drop", "id")] + ["--id-column", "id"]
    with opened(driver, folder, *case, "--port", "0") as (_, address):
        person = Person(driver, address)
        name = person.find("tbody th a").text
        person.go("row/0")
        assert person.sees(f"Row {name}")
        person.search()
        assert person.sees("Done")
        person.click(".star")
        person.go("")
        assert person.find("tbody tr", name).text and "found" in person.find("tbody tr", name).text
        person.go("saved")
        assert person.sees(f"{name}: ")
        person.go("row/0")
        assert person.sees("Known already, and free") and "Change" in person.find(".answer h3").text
        called = person.find(".answer h3").text
        person.press("Open its search")
        assert person.find(".answer h3").text == called and person.sees("sd")
        report = f"{person.address}api/searches/{person.identity}/exports/report.html"
        named = "const done = arguments[1]; fetch(arguments[0]).then(r => done(r.headers.get('content-disposition')))"
        assert f"report-row-{name}.html" in driver.execute_async_script(named, report)


def test_forms_refuse_what_cannot_be_and_show_no_stale_price(folder: Path, driver: Any) -> None:
    with opened(driver, folder, *CASE, "--port", "0", "--price-per-row", "0.5") as (_, address):
        person = Person(driver, address)
        person.go("row/0")
        assert person.sees("At most 12 queries")
        for wrong in ("0", "3.7", ""):
            person.type("input[type=number]", wrong)
            assert person.sees("Enter a whole number from 2 to 10,000.") and "At most" not in person.find(".cost").text
            assert not person.find("button.primary").is_enabled()
        person.type("input[type=number]", "4")
        assert person.sees("At most 4 queries, for 2.00 at most")
        person.search()
        assert person.sees("Done")
        person.type(".fields .field:nth-child(1) input", "999")
        assert person.sees("outside the known rows")
        person.go("many")
        person.press("Explain more rows", "summary")
        for wrong in ("-3", "0", "2.5"):
            person.type(".starter .field:nth-child(2) input", wrong)
            assert not person.find(".starter button.primary").is_enabled()
        person.type(".starter .field:nth-child(2) input", "2")
        assert person.sees("At most 24 queries, for 12.00")


def test_a_probability_is_a_number_from_0_to_1(folder: Path, driver: Any) -> None:
    (folder / "acex_test_scores.py").write_text(SCORES, encoding="utf-8")
    case = [word.replace("acex_test_bank:decide", "acex_test_scores:scorer") for word in CASE]
    with opened(driver, folder, *case, "--scores", "--port", "0") as (_, address):
        person = Person(driver, address)
        person.go("row/0")
        person.find("[aria-label='Probability']").send_keys("at least")
        for wrong in ("1.5", "-0.2"):
            person.type("[aria-label='The number']", wrong)
            assert person.sees("A probability is a number from 0 to 1.")
            assert not person.find("button.primary").is_enabled()
        person.type("[aria-label='The number']", "0.5")
        person.search()
        assert person.sees("Done") and person.sees("with a probability of at least 0.5")
        person.type(".fields .field:nth-child(2) input", "3000")
        person.press("Ask the model")
        assert person.sees("0.6")  # the number, where a number is wanted


def test_sixty_columns_with_long_names_fit(folder: Path, driver: Any) -> None:
    rows = pd.read_csv(folder / "loans.csv")
    for j in range(56):
        rows[f"average_monthly_balance_of_the_last_twelve_months_of_account_{j}"] = (rows["income"] * (j + 1)) % 977
    rows["branch"] = [f"Branch {i % 20} of the northern and the eastern region" for i in range(len(rows))]
    rows.to_csv(folder / "loans.csv", index=False)
    with opened(driver, folder, *CASE, "--port", "0") as (_, address):
        person = Person(driver, address)
        for width in (1280, 390):
            look(driver, width=width, height=800)
            person.go("row/0")
            assert person.sees("At most")
            assert driver.execute_script("return document.documentElement.scrollWidth") == width
            box = person.find("button.primary").rect
            height = driver.execute_script("return innerHeight")
            bottom = driver.execute_script(
                "return arguments[0].getBoundingClientRect().bottom", person.find("button.primary")
            )
            assert box["width"] > 100 and 0 < bottom <= height  # without scrolling
            numbers = (
                "[...document.querySelectorAll('.now')].filter(e => e.clientHeight > 40 && e.textContent.length < 9)"
            )
            assert driver.execute_script(f"return {numbers}.length") == 0  # a number is never broken into lines
        person.type("[aria-label='Find a feature']", "account 55")
        assert len([e for e in driver.find_elements("css selector", ".card") if e.is_displayed()]) == 1
        person.type("[aria-label='Find a feature']", "branch")
        person.click("[aria-label='Adjust branch']")
        person.click("[aria-label='None of branch']")
        assert person.sees("choose at least one value") and not person.find("button.primary").is_enabled()
        person.type("[aria-label='Find a value of branch']", "branch 7")
        person.press("Branch 7", ".choices label")
        assert person.sees("At most") and person.sees("Branch may become Branch 7")


def test_text_of_others_is_only_text(folder: Path, driver: Any) -> None:
    evil = "<img src=x onerror=alert(1)>"
    rows = pd.read_csv(folder / "loans.csv").rename(columns={"age": f"age{evil}"})
    rows["job"] = rows["job"].replace("cook", f"cook{evil}")
    rows.to_csv(folder / "loans.csv", index=False)
    with opened(driver, folder, *CASE, "--port", "0", "--freeze", "debt") as (_, address):
        person = Person(driver, address)
        assert person.sees(evil)
        person.go("row/0")
        assert person.sees(f"age{evil}")
        person.search()
        assert person.sees("Done")
        person.go("many")
        assert person.sees("found")
        assert driver.find_elements("css selector", "main img") == []


def test_the_ledger_has_what_the_page_showed(folder: Path, driver: Any) -> None:
    with explained(driver, folder) as person:
        shown = person.find("h1").text
        identity = person.identity
    with acex.Ledger(folder / "l.db") as ledger:
        assert acex.sentences.one_sentence(acex.load_explanation(ledger, identity)) == shown
