from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import acex
from commands import MODEL, bill, run, set_up
from html_pages import Page

EXPLAIN = ("explain", "loans.csv", "--drop", "id,outcome", *MODEL, "--quiet", "--budget", "8", "--target", "good")
KEPT = ("--ledger", "l.db", "--model-id", "bank-1")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    set_up(tmp_path)


def read(path: str) -> Page:
    return Page(Path(path).read_text(encoding="utf-8"))


def answer(*words: Any) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_one_explanation_of_a_ledger_is_one_file_and_nothing_is_asked() -> None:
    run(*EXPLAIN, "--row", 0, *KEPT, "--out", "why.json")
    run("ledger", "budget", "l.db", "--model-id", "bank-1", "--money", "50", "--price-per-row", "0.02")
    Path("acex_test_bank.py").unlink()  # neither the model
    Path("loans.csv").unlink()  # nor the data
    sent = len(bill())
    result = run("report", "l.db")
    assert (result.exit_code, result.stdout) == (0, "1 report: open l.html\n"), result.stderr
    assert len(bill()) == sent
    page = read("l.html")
    e = acex.Explanation.from_json(Path("why.json"))
    assert page.texts["h1"] == Page(e.to_html()).texts["h1"]
    assert (
        f"{e.n_queries} of at most 8 rows were sent to the model, at 0.02 each: {e.n_queries * 0.02:g} in total"
        in " ".join(page.texts["p"])
    )


def test_a_file_of_an_explanation_is_reported_as_the_explanation_itself() -> None:
    run(*EXPLAIN, "--row", 0, "--out", "why.json")
    assert run("report", "why.json", "--out", "other.html").exit_code == 0
    expected = acex.Explanation.from_json(Path("why.json")).to_html()
    assert Path("other.html").read_text(encoding="utf-8") == expected


def test_several_explanations_get_a_page_each_and_an_index() -> None:
    for row in (0, 3, 5):
        run(*EXPLAIN, "--row", row, *KEPT)
    told = answer("report", "l.db", "--out", "reports")
    assert told["open"] == "reports/index.html"
    names = [line["explanation"] for line in told["reports"]]
    assert len(names) == 3 and all(Path(line["file"]).exists() for line in told["reports"])
    links = [value for _, key, value in read("reports/index.html").attributes if key == "href"]
    assert {str(Path("reports") / link) for link in links} == {line["file"] for line in told["reports"]}
    one = answer("report", "l.db", "--explanation", names[1][:10], "--out", "reports")
    assert one["reports"] == told["reports"][1:2]
    assert answer("report", "l.db", "--model-id", "bank-1")["open"] == "l-report/index.html"


def test_what_has_no_answer_yet_is_left_out_and_named() -> None:
    run(*EXPLAIN, "--row", 0, *KEPT)
    run("ask", "loans.csv", "--drop", "id,outcome", "--row", 1, "--ledger", "l.db", "--model-id", "bank-2")
    result = run("report", "l.db")
    assert result.exit_code == 0 and "left out: explanation" in result.stderr
    assert Path("l.html").exists()
    assert run("report", "l.db", "--model-id", "bank-2").exit_code == 2


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("report", "none.db"), 2, "none.db: there is no such ledger"),
        (("report", "none.json"), 2, "none.json: there is no such file"),
        (("report", "loans.csv"), 3, "not an SQLite file"),
        (("report", "two.db"), 2, "two.db: expected an explanation; there are none"),
        (("report", "two.db", "--model-id", "c"), 2, "'c' is not a model of this ledger"),
        (("report", "l.db", "--explanation", "zz"), 2, "exactly one explanation whose name begins with 'zz'"),
        (("report", "l.db", "--out", "l.html"), 2, "--out l.html: expected a folder for 2 reports"),
        (("report", "l.db", "--out", "no/such/folder"), 2, "no/such"),
        (("report", "x.json", "--model-id", "a"), 2, "choose from a ledger"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(words: tuple[str, ...], code: int, named: str) -> None:
    with acex.Ledger("two.db") as ledger:
        ledger.register("a")
    if "l.db" in words:
        for row in (0, 3):
            run(*EXPLAIN, "--row", row, *KEPT, "--budget", "2")
    result = run(*words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert named in result.stderr
    assert result.stderr.count("\n") == 1
