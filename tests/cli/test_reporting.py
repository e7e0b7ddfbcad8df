from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import acex
from commands import MODEL, bill, run
from html_pages import FIELDS

pytestmark = pytest.mark.usefixtures("loans_folder")

EXPLAIN = ("explain", "loans.csv", "--drop", "id,outcome", *MODEL, "--budget", "8", "--target", "good")
ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)
KEPT = ("--ledger", "l.db", "--model-name", "bank-1")


def texts(page: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page, re.DOTALL)


def test_one_explanation_of_a_ledger_is_one_file_and_nothing_is_asked() -> None:
    run(*EXPLAIN, "--row", 0, *KEPT, "--out", "why.json")
    run("ledger", "budget", "l.db", "--model-name", "bank-1", "--money", "50", "--price-per-row", "0.02")
    Path("acex_test_bank.py").unlink()  # neither the model
    Path("loans.csv").unlink()  # nor the data
    sent = len(bill())
    result = run("report", "l.db")
    assert (result.exit_code, result.stdout) == (0, "1 report: open l.html\n"), result.stderr
    assert len(bill()) == sent
    page = Path("l.html").read_text(encoding="utf-8")
    e = acex.Explanation.from_json(Path("why.json"))
    assert texts(page, "h1") == texts(e.to_html(), "h1")
    sent_rows = f"{e.n_queries} of at most 8 rows were sent to the model, at 0.02 each: {e.n_queries * 0.02:g} in total"
    assert sent_rows in " ".join(texts(page, "p"))


def test_a_file_of_an_explanation_is_reported_as_the_explanation_itself() -> None:
    run(*EXPLAIN, "--row", 0, "--out", "why.json")
    assert run("report", "why.json", "--out", "other.html").exit_code == 0
    expected = acex.Explanation.from_json(Path("why.json")).to_html()
    assert Path("other.html").read_text(encoding="utf-8") == expected


def test_several_explanations_get_a_page_each_and_an_index() -> None:
    for row in (0, 3, 5):
        run(*EXPLAIN, "--row", row, *KEPT)
    assert run("report", "l.db", "--out", "reports").stdout == "3 reports: open reports/index.html\n"
    links = re.findall(r'href="([^"]+)"', Path("reports/index.html").read_text(encoding="utf-8"))
    assert {*links, "index.html"} == {path.name for path in Path("reports").iterdir()}
    chosen = links[1].removesuffix(".html")
    assert run("report", "l.db", "--id", chosen[:10]).stdout == "1 report: open l.html\n"
    assert chosen[:10] in Path("l.html").read_text(encoding="utf-8")
    assert "'nobody'" in run("report", "l.db", "--id", "nobody").stderr
    assert "'None'" in run("report", "l.db", "--id", "None").stderr


def test_what_has_no_answer_yet_is_left_out_and_named() -> None:
    run(*EXPLAIN, "--row", 0, *KEPT)
    run("ask", "loans.csv", "--drop", "id,outcome", "--row", 1, "--ledger", "l.db", "--model-name", "bank-2")
    result = run("report", "l.db")
    assert result.exit_code == 0 and "left out: explanation" in result.stderr
    assert Path("l.html").exists()


def test_a_page_of_a_file_that_was_changed_says_so() -> None:
    run(*ROW, "--out", "why.json")
    assert run("report", "why.json").stderr == ""
    answer = json.loads(Path("why.json").read_text(encoding="utf-8"))
    Path("why.json").write_text(json.dumps(answer | {"outcome": "exhausted"}), encoding="utf-8")
    assert "warning: why.json: checksum mismatch" in run("report", "why.json").stderr


def test_a_notice_is_for_one_person() -> None:
    for row in (0, 3):
        run(*EXPLAIN, "--row", row, "--id-column", "id", *KEPT)
    Path("fields.toml").write_text(
        "".join(f"{name} = {json.dumps(value)}\n" for name, value in FIELDS.items()), encoding="utf-8"
    )
    notice = ("report", "l.db", "--profile", "notice", "--fields", "fields.toml", "--out", "letters.html")
    refused = run(*notice)
    assert refused.exit_code == 2 and "--id" in refused.stderr and not Path("letters.html").exists()
    name = Path("loans.csv").read_text(encoding="utf-8").splitlines()[1].split(",")[0]
    assert run(*notice, "--id", name).exit_code == 0


def test_a_report_does_not_overwrite_a_table() -> None:
    run(*EXPLAIN, "--row", 0, *KEPT)
    before = Path("loans.csv").read_bytes()
    refused = run("report", "l.db", "--out", "loans.csv")
    assert refused.exit_code == 2 and ".html" in refused.stderr
    assert Path("loans.csv").read_bytes() == before
