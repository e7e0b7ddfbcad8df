"""`acex verify`, and what --sign, --redact and --left-out write."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import acex
from commands import MODEL, bill, run

pytestmark = pytest.mark.usefixtures("loans_folder")

EXPLAIN = ("explain", "loans.csv", "--drop", "id,outcome", *MODEL, "--budget", "8", "--target", "good")
BATCH = ("batch", "loans.csv", *MODEL, "--drop", "outcome", "--id-column", "id", "--target", "good", "--jobs", "1")
ROW = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 6)
SOME = ("--where", "outcome == 'bad' and id < 106", "--budget", "4")


def write_keys() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    pem, pkcs8, no = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    Path("key.pem").write_bytes(key.private_bytes(pem, pkcs8, no))
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    Path("key.pub").write_bytes(public)


def test_an_explanation_is_verified_without_queries_or_with_two() -> None:
    run(*EXPLAIN, "--row", 0, "--out", "why.json")
    sent = len(bill())
    result = run("verify", "why.json")
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "It holds." in result.stdout and "not signed" in result.stdout and len(bill()) == sent
    result = run("verify", "why.json", *MODEL, "--json")
    assert "2 rows will be sent and paid for" in result.stderr and len(bill()) == sent + 2
    assert json.loads(result.stdout)["holds"]
    result = run("verify", "why.json", "--model", "acex_test_bank:changed")
    assert result.exit_code == 1 and "'good' for the row; it was 'bad'" in " ".join(result.stdout.split())


def test_only_a_signed_file_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    write_keys()
    words = ("explain", "loans.csv", "--row", 0, "--drop", "id,outcome", *MODEL, "--budget", 3)
    run(*words, "--out", "plain.json")
    run(*words, "--sign", "key.pem", "--out", "signed.json")
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    assert run("verify", "plain.json").exit_code == 0
    result = run("verify", "signed.json")
    assert result.exit_code == 2 and "acex[sign]" in result.stderr


def test_a_change_is_found_in_a_file_and_in_a_page() -> None:
    run(*EXPLAIN, "--row", 0, "--out", "why.json")
    run("report", "why.json", "--out", "why.html")
    assert run("verify", "why.html").exit_code == 0
    text = Path("why.json").read_text()
    Path("why.json").write_text(text.replace('"good"', '"fine"', 1))
    result = run("verify", "why.json")
    assert result.exit_code == 1 and "checksum mismatch" in " ".join(result.stdout.split())
    page = Path("why.html").read_text()
    Path("why.html").write_text(page.replace("<h1>", "<h1>Surely ", 1))
    result = run("verify", "why.html")
    assert result.exit_code == 1 and "the page differs from its certificate" in " ".join(result.stdout.split())


@pytest.mark.parametrize(("old", "new"), [("price_per_row", "price"), ('price_per_row":null', 'price_per_row":"x"')])
def test_a_page_with_a_malformed_certificate_fails_without_a_traceback(old: str, new: str) -> None:
    run(*EXPLAIN, "--row", 0, "--out", "why.json")
    run("report", "why.json", "--out", "why.html")
    page = Path("why.html").read_text(encoding="utf-8")
    before, after = (text.replace('"', "&#34;") for text in (old, new))
    Path("why.html").write_text(page.replace(before, after), encoding="utf-8")
    result = run("verify", "why.html")
    assert result.exit_code == 2 and "why.html cannot be read" in result.stderr


def test_a_batch_is_verified_row_by_row_and_signed() -> None:
    write_keys()
    run(*BATCH, *SOME, "--out", "why.json", "--sign", "key.pem", "--by", "job")
    shown = run("verify", "why.json", "--key", "key.pub").stdout
    assert "signed with the key in key.pub" in shown and "groups is stated" in shown and shown.endswith("It holds.\n")
    answer = json.loads(run("verify", "why.json", "--key", "key.pub", "--json").stdout)
    assert answer["holds"] and answer["file"] == [] and len(answer["explanations"]) >= 2
    name = answer["explanations"][0]["row"]
    one = json.loads(run("verify", "why.json", "--row", name, "--json").stdout)
    assert [line["row"] for line in one["explanations"]] == [name]
    assert "--row 'x' has no explanation here" in run("verify", "why.json", "--row", "x").stderr
    document = json.loads(Path("why.json").read_text())
    document["rows"][0]["paid"] += 1
    Path("why.json").write_text(json.dumps(document))
    result = run("verify", "why.json")
    assert result.exit_code == 1 and "checksum mismatch" in result.stdout
    assert result.stdout.endswith("It does not hold.\n")


def test_a_wrong_key_is_not_blamed_on_the_file() -> None:
    write_keys()
    run(*EXPLAIN, "--row", 0, "--out", "why.json", "--sign", "key.pem")
    Path("no.pub").write_text("no key")
    for name in ("key.pem", "no.pub"):
        result = run("verify", "why.json", "--key", name)
        assert result.exit_code == 2 and name in result.stderr and "why.json" not in result.stderr
    result = run("verify", "why.json", "--left-out", "no.pub")
    assert result.exit_code == 2 and "--left-out no.pub" in result.stderr and "why.json" not in result.stderr
    write_keys()  # another pair
    result = run("verify", "why.json", "--key", "key.pub")
    assert result.exit_code == 1 and "the signature is valid, but made with the key" in " ".join(result.stdout.split())


OVERWRITING = {
    "the ledger": ("--ledger", "l.db", "--model-name", "m", "--left-out", "l.db"),
    "a new ledger": ("--ledger", "new.json", "--model-name", "m", "--out", "new.json"),
    "the key": ("--sign", "key.pem", "--left-out", "key.pem"),
    "the key by a link": ("--sign", "key.pem", "--left-out", "link.pem"),
    "the row": ("--x", "row.json", "--left-out", "row.json"),
    "the model": ("--left-out", "acex_test_bank.py"),
    "out": ("--out", "why.json", "--left-out", "./why.json"),
}


@pytest.mark.parametrize("name", OVERWRITING)
@pytest.mark.parametrize("command", ["explain", "batch"])
def test_a_command_does_not_write_over_its_own_files(command: str, name: str) -> None:
    write_keys()
    acex.Ledger("l.db").close()
    Path("link.pem").hardlink_to("key.pem")
    Path("row.json").write_text('{"age": 30, "income": 1500, "debt": 0.6, "job": "cook"}', encoding="utf-8")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    row = () if name == "the row" else ("--row", 0)
    words = ("loans.csv", *row, "--drop", "id,outcome", *MODEL, "--budget", 3, "--redact", "age")
    result = run(command, *words, "--out", "o.json", *OVERWRITING[name])
    assert result.exit_code == 2 and f"{Path(OVERWRITING[name][-1])} has another use" in result.stderr, result.stderr
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


@pytest.mark.parametrize("out", [(), ("--out", "why.csv"), ("--out", "why.xlsx")])
@pytest.mark.parametrize("words", [("--sign", "key.pem"), ("--redact", "age", "--left-out", "kept.json")])
def test_what_only_a_json_file_can_hold_is_refused_for_tables(words: tuple[str, ...], out: tuple[str, ...]) -> None:
    write_keys()
    result = run(*BATCH, *SOME, *words, *out)
    assert result.exit_code == 2 and "need --out with a .json file" in result.stderr, result.stderr
    assert bill() == [] and not list(Path().glob("why.*"))


def test_a_report_does_not_replace_the_key() -> None:
    write_keys()
    run(*EXPLAIN, "--row", 0, "--out", "why.json")
    key = Path("key.pem").rename("key.html").read_bytes()
    result = run("report", "why.json", "--sign", "key.html", "--out", "key.html")
    assert result.exit_code == 2 and "key.html has another use" in result.stderr
    assert Path("key.html").read_bytes() == key


def test_columns_are_left_out_of_every_file() -> None:
    run(*EXPLAIN, "--row", 0, "--out", "why.json", "--redact", "age,job", "--left-out", "kept.json")
    assert run("verify", "why.json", "--left-out", "kept.json").exit_code == 0
    assert json.loads(Path("kept.json").read_text()).keys() == {"age", "job"}
    assert "nurse" not in Path("why.json").read_text()
    run(*BATCH, *SOME, "--out", "why.csv", "--redact", "age", "--redact", "job")
    header = Path("why.csv").read_text().splitlines()[0]
    assert "income before" in header and "age" not in header
    run(*EXPLAIN, "--row", 0, "--out", "whole.json")
    run("report", "whole.json", "--out", "p.html", "--redact", "job")
    assert "nurse" not in Path("p.html").read_text() and run("verify", "p.html").exit_code == 0
    assert "'wage' is not a feature" in run("report", "whole.json", "--redact", "wage").stderr


def test_a_failing_model_that_quotes_the_row_does_not_show_redacted_columns() -> None:
    job = pd.read_csv("loans.csv")["job"][0]
    quotes = ("loans.csv", "--drop", "id,outcome", "--model", "acex_test_bank:quotes", "--target", "good", "--row", 0)
    whole = run("explain", *quotes)
    assert whole.exit_code == 3 and job in whole.stderr
    for words in (("explain", *quotes), ("batch", *quotes, "--jobs", "1"), ("batch", *quotes, "--jobs", "1", "--json")):
        result = run(*words, "--redact", "job")
        assert result.exit_code == 3 and "the message is redacted" in result.stderr, words
        assert job not in result.stdout + result.stderr


def test_groups_by_a_redacted_column_are_refused_before_anything_is_sent() -> None:
    for by in ("job", "age,job"):
        result = run(*BATCH, *SOME, "--by", by, "--redact", "job")
        assert result.exit_code == 2 and "by: 'job' is redacted" in result.stderr and bill() == []


def test_what_a_batch_prints_has_no_redacted_column() -> None:
    words = (*BATCH, *SOME[:2], "--budget", "8", "--common-changes", "8", "--redact", "income")
    for more in ((), ("--by", "job"), ("--json",), ("--json", "--by", "job")):
        result = run(*words, *more)
        assert result.exit_code == 0, result.stderr
        assert "income" not in result.stdout and "debt" in result.stdout


def test_the_row_of_an_explanation_keeps_its_name_in_file_page_ledger_and_file_name() -> None:
    answer = ("--id-column", "id", "--drop", "outcome", "--budget", "8", "--target", "good")
    one = ("explain", "loans.csv", *MODEL, *answer, "--where", "id == 100", "--ledger", "l.db", "--model-name", "m")
    assert run(*one, "--out", "why.json").exit_code == 0
    assert json.loads(Path("why.json").read_text())["settings"]["id"] == 100
    assert "100" not in bill()[0]  # the model does not see it
    told_row = json.loads(run("verify", "why.json", "--json").stdout)["explanations"][0]["row"]
    assert told_row == 100
    Path("pages").mkdir()
    assert run("report", "l.db", "--id", "100", "--out", "pages").exit_code == 0
    assert [path.name for path in Path("pages").iterdir()] == ["100.html"]
    page = Path("pages/100.html").read_text()
    assert "Counterfactual explanation for row 100 of a decision by m" in page and "<dt>row</dt><dd>100</dd>" in page
    assert "1 explanation" in run("ledger", "purge", "l.db", "--id", "100").stdout
    Path("x.json").write_text('{"id": "A-7", "age": 30, "income": 1500, "debt": 0.3, "job": "cook"}')
    own = ("explain", "loans.csv", *MODEL, *answer, "--x", "x.json", "--out", "x7.json")
    assert run(*own).exit_code in (0, 1) and json.loads(Path("x7.json").read_text())["settings"]["id"] == "A-7"
    result = run("explain", "loans.csv", *MODEL, "--id-column", "name", "--row", "0")
    assert result.exit_code == 2 and "'name'" in result.stderr


def test_what_cannot_be_verified_says_why() -> None:
    run(*ROW, "--ledger", "l.db", "--model-name", "bank")
    run(*ROW[:3], 1, *ROW[4:], "--ledger", "l.db", "--model-name", "bank")
    run("report", "l.db", "--out", "pages")
    assert "pages: a folder" in run("verify", "pages").stderr
    assert "no certificate found" in run("verify", "pages/index.html").stderr


DEEP = {f"{n} levels": "[" * n + "]" * n for n in (400, 900, 100_000)}
UNREADABLE: dict[str, str | bytes] = {
    "empty": "",
    "text": "age,income\n30,1500\n",
    "binary": b"\xff\xfe\x00\x01" * 50,
    "a number": "5",
    "a list": "[]",
    "two values of one name": '{"format": 1, "format": 2}',
    "rows are a number": '{"format": 1, "rows": 5}',
    "a row is a number": '{"format": 1, "rows": [5]}',
    **{f"{name} of lists": text for name, text in DEEP.items()},
    **{f"{name} inside": f'{{"format": 1, "asked": {text}}}' for name, text in DEEP.items()},
}


@pytest.mark.parametrize("suffix", [".json", ".html"])
@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_cannot_be_read_is_exit_code_2(content: str | bytes, suffix: str) -> None:
    path = Path(f"why{suffix}")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for command in ("verify", "report"):
        if (command, suffix) != ("report", ".html"):
            result = run(command, path)
            assert (result.exit_code, result.stdout) == (2, ""), result.stderr
            assert str(path) in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("value", [None, 5, "x", [], {}, [5], {"a": 5}])
@pytest.mark.parametrize("name", ["format", "settings", "space", "asked", "positions", "certificate", "queries"])
def test_a_part_of_the_wrong_type_is_no_traceback(name: str, value: Any, why: str) -> None:
    Path("odd.json").write_text(json.dumps(json.loads(why) | {name: value}), encoding="utf-8")
    result = run("verify", "odd.json")
    is_readable = name == "certificate" or (name == "positions" and value in ([], {}))  # and does not hold
    assert result.exit_code == (1 if is_readable else 2) and result.stdout + result.stderr


@pytest.fixture(scope="module")
def why() -> str:
    """What acex explain writes."""
    rows = pd.DataFrame({"income": range(100, 140)})
    return acex.explain(lambda x: x["income"] > 120, rows.iloc[3], rows, budget=5).to_json()
