"""The notice: plain words, every sentence replaceable, nothing missing, nothing run."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acex
from acex.engine.explanation import without
from acex.show.notice import Fields, notice_page, read_template
from acex.space.kinds import Continuous, Integer, Nominal
from acex.space.space import Space
from explanations import ended, explained, nothing_found, written
from html_pages import FIELDS, Page

LOAN = Space(
    (
        Integer("duration", 6, 84, unit="months"),
        Continuous("income", 0, 1e6, unit="EUR"),
        Nominal("guarantor", (False, True)),
        Integer("age", 18, 99, frozen=True),
    )
)
BEFORE, AFTER = (36, 1200.0, False, 40), (18, 6200.0, True, 40)


def loan(*others: tuple[Any, ...]) -> acex.Explanation:
    return explained(LOAN, BEFORE, AFTER, *others, deviations=np.array([6.0, 2000.0, 1.0, 10.0]))


def prose(page: str) -> str:
    """All that a reader reads, a sentence for each heading and item."""
    body = page.split("<main>")[1].split("<table")[0] + page.split("</table>")[1].split("<footer>")[0]
    parts = re.findall(r"<(?:p|li|h1|h2)[^>]*>(.*?)</(?:p|li|h1|h2)>", body, flags=re.DOTALL)
    return " ".join(part if part[-1] in ".:?!" else f"{part}." for part in parts)


def syllables(word: str) -> int:
    """About as many as an English word has."""
    word = re.sub(r"[^a-z]", "", word.lower())
    word = re.sub(r"(?<=[^aeiouyl])e$|(?<=[^aeiouytd])ed$|(?<=[aeiouy][^aeiouys])es$", "", word)
    return max(len(re.findall(r"[aeiouy]+", word)), 1)


def reading_ease(text: str) -> float:
    """Flesch's measure of English: above 60 is plain."""
    sentences = [s for s in re.split(r"[.:?!]+(?:\s|$)", text) if re.search(r"[a-z]", s)]
    words = re.findall(r"[A-Za-z']+", text)
    n = sum(syllables(word) for word in words)
    return 206.835 - 1.015 * len(words) / len(sentences) - 84.6 * n / len(words)


def test_flesch_s_measure_is_as_published() -> None:
    assert [syllables(w) for w in ("cat", "table", "decision", "name", "looked", "wanted", "idea")] == [
        1,
        2,
        3,
        1,
        1,
        2,
        2,
    ]
    assert reading_ease("The cat sat on the mat.") == pytest.approx(116.145, abs=0.01)  # 6 words of one syllable


@pytest.mark.parametrize("outcome", ["found", "nothing", "already"])
def test_a_notice_is_in_plain_english(outcome: str) -> None:
    e = {"found": loan(), "nothing": nothing_found(), "already": ended(nothing_found(), outcome="already_target")}[
        outcome
    ]
    page = notice_page(e, FIELDS)
    assert reading_ease(prose(page)) > 60


def test_a_notice_says_all_that_it_has_to() -> None:
    text = " ".join(" ".join(part) for part in Page(notice_page(loan(), FIELDS)).texts.values())
    for needed in (
        "Bank of Example decided on 3 March 2026 about your request for a loan. The result is: no.",
        "The result would have been yes if all of this had been so:",
        "Duration: 18 months in place of 36 months",
        "Income: 6,200 EUR in place of 1,200 EUR",
        "Guarantor: yes in place of no",
        "A clerk reads the score and decides.",
        "the credit office",
        "Please write to us.",
        "let a person look at it",
        "until 31 March 2029",
        "A-1017",
    ):
        assert needed in text, needed
    assert "SHA-256" not in text  # a notice has no record of its own to compare a checksum with
    fixed = notice_page(loan(), FIELDS).split("What we held fixed")[1].split("<h2>")[0]
    assert "<li>age</li>" in fixed and "income" not in fixed


@pytest.mark.parametrize("template", ["english", "german"])
def test_a_redacted_notice_says_that_parts_are_left_out(template: str) -> None:
    parts = tomllib.loads((files("acex.show") / "notices" / f"{template}.toml").read_text(encoding="utf-8"))
    page = notice_page(without(loan(), ["age"]), FIELDS, template)  # the only frozen column
    assert parts["fixed"]["left_out"] in page and parts["data"]["left_out"] in page
    assert parts["fixed"]["none"] not in page
    whole = notice_page(loan(), FIELDS, template)
    assert parts["fixed"]["left_out"] not in whole and parts["data"]["left_out"] not in whole


@pytest.mark.parametrize("template", ["english", "german"])
def test_rules_are_listed_as_conditions_of_the_decider(template: str) -> None:
    parts = tomllib.loads((files("acex.show") / "notices" / f"{template}.toml").read_text(encoding="utf-8"))
    e = loan()
    assert parts["fixed"]["rules"] not in notice_page(e, FIELDS, template)
    rules = ["income >= 1000", "duration <= 84"]
    e = replace(e, metadata={**e.metadata, "rules": rules})
    page = notice_page(e, {**FIELDS, "words": {"duration <= 84": "at most 84 months"}}, template)
    conditions = page.split(parts["fixed"]["rules"])[1].split("</ul>")[0]
    assert "income &gt;= 1000" in conditions and "at most 84 months" in conditions
    assert parts["fixed"]["left_out"] in notice_page(without(e, ["age"]), FIELDS, template)


def test_a_notice_cannot_be_signed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="notice has no certificate"):
        loan().to_html(profile="notice", fields=FIELDS, sign=tmp_path / "key.pem")


def test_reasons_stand_apart_from_changes_and_are_the_decider_s_own() -> None:
    assert "main reasons" not in notice_page(loan(), FIELDS)
    page = notice_page(loan(), {**FIELDS, "reasons": ["Your income is too low."]})
    headings = Page(page).texts["h2"]
    assert headings.index("The main reasons") < headings.index("What would have changed the result")
    assert "too low" not in page.split("What would have changed")[1]


def test_other_ways_are_listed() -> None:
    page = notice_page(loan((36, 9000.0, False, 40)), FIELDS)
    assert "in a different way" in page and "9,000 EUR" in page


@pytest.mark.parametrize("missing", list(FIELDS))
def test_a_missing_field_is_an_error_that_names_it(missing: str) -> None:
    given = {name: value for name, value in FIELDS.items() if name != missing}
    with pytest.raises(ValueError, match=f"needs '{missing}'"):
        notice_page(loan(), given)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"organization": "x"}, "'organization'.*'organisation'"),
        ({"human": ""}, "'human': expected a text, got ''"),
        ({"sources": "the web"}, "'sources': expected a list of texts"),
        ({"sources": []}, "'sources': expected a list of texts"),
        ({"words": {"age": 3}}, "'words': expected a table of texts"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fields.of({**FIELDS, **change})


def test_the_german_template_replaces_every_sentence() -> None:
    texts = {
        name: (files("acex.show") / "notices" / f"{name}.toml").read_text(encoding="utf-8")
        for name in ("english", "german")
    }
    english, german = (tomllib.loads(text) for text in texts.values())
    assert {k: list(v) if isinstance(v, dict) else 0 for k, v in english.items()} == {
        k: list(v) if isinstance(v, dict) else 0 for k, v in german.items()
    }
    same = {"role.text", "correct.text", "human.text", "sentences.label"}  # which hold fields only
    for section, parts in english.items():
        for name, text in parts.items() if isinstance(parts, dict) else [(None, parts)]:
            other = german[section] if name is None else german[section][name]
            where = section if name is None else f"{section}.{name}"
            assert (other == text) == (where in same or (where == "sentences.unchecked" and text == "")), where
    words = {"duration": "Laufzeit", "months": "Monate", "no": "abgelehnt", "yes": "bewilligt"}
    page = notice_page(loan(), {**FIELDS, "words": words}, "german")
    assert 'lang="de"' in page and "Laufzeit: 18 Monate statt 36 Monate" in page
    assert "6.200 EUR statt 1.200 EUR" in page and "Das Ergebnis lautet: abgelehnt." in page
    assert "The " not in page.split("<main>")[1]


ENGLISH_WORDS = (
    r"\b(?:the|of|and|is|are|was|were|would|have|had|you|your|we|our|this|that|these|with|from|what|how|if|not|until|"
    r"in place|held|fixed|decision|result|yes|no)\b"
)


@pytest.mark.parametrize("outcome", ["found", "two ways", "nothing", "already"])
def test_no_word_of_a_german_notice_is_english(outcome: str) -> None:
    e = {
        "found": loan(),
        "two ways": loan((36, 9000.0, False, 40)),
        "nothing": nothing_found(),
        "already": ended(nothing_found(), outcome="already_target"),
    }[outcome]
    german: dict[str, Any] = dict.fromkeys(FIELDS, "Angabe") | {"sources": ["Antrag"], "reasons": ["Einkommen"]}
    names = {f.name: "Merkmal" for f in e.plan.space.features} | {
        "no": "abgelehnt",
        "yes": "bewilligt",
        "months": "Monate",
    }
    names |= {
        word: "Wort" for f in e.plan.space.features for word in getattr(f, "categories", ()) if isinstance(word, str)
    }
    page = notice_page(e, {**german, "words": names}, "german")
    assert "ergebnis" in read(page) and re.findall(ENGLISH_WORDS, read(page)) == []
    assert len(re.findall(ENGLISH_WORDS, read(notice_page(e, FIELDS)))) > 20  # the words are those of an English one


def read(page: str) -> str:
    """What a reader sees, without what a program needs, in small letters as in the midst of a sentence."""
    text = re.sub(r"<[^>]+>", " ", page.split("<main>")[1])
    return re.sub(r"\bWas\b", "", text).lower()  # a German word too, at the head of a sentence


def test_numbers_and_truth_values_are_written_as_the_language_does() -> None:
    rows = [{"rent": 1234.5, "flat": False}, {"rent": 900.25, "flat": True}]
    space = Space((Continuous("rent", 0, 5000), Nominal("flat", (False, True))))
    options: Any = {"labels": [1500.25, 80.5], "costs": [0.0, 1.0], "chosen": [1], "target": {"at_most": 100}}
    e = written(space, rows, **options)
    german, english = (read(notice_page(e, FIELDS, language)) for language in ("german", "english"))
    assert "das ergebnis lautet: 1.500." in german and "hätte 80,5 gelautet" in german
    assert "flat: ja statt nein" in german and "rent: 900,2 statt 1.234 " in german
    assert "the result is: 1,500." in english and "flat: yes in place of no" in english


def test_a_template_of_one_s_own_is_checked(tmp_path: Path) -> None:
    english = (files("acex.show") / "notices" / "english.toml").read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(english.replace("The decision", "What was decided"), encoding="utf-8")
    assert "What was decided" in notice_page(loan(), FIELDS, own)
    for old, new, message in (
        ('none = "', 'nothing = "', r"\[fixed\]: 'none'"),
        ("{keep_until}", "{retention}", "'retention'"),
        ("{keep_until}", "{keep_until", "expected '}'"),
        ("[foot]\n", '[foot]\nmore = "x"\n', "'more'"),
    ):
        own.write_text(english.replace(old, new), encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            read_template(own)
    with pytest.raises(ValueError, match="'english'"):
        read_template("klingon")


def test_nothing_in_a_notice_is_run() -> None:
    evil = "</p><script>alert(1)</script>"
    page = notice_page(loan(), {**FIELDS, "organisation": evil, "sources": [evil], "words": {"income": evil}})
    assert "<script" not in page and Page(page).texts["li"]
    assert "default-src 'none'" in page.replace("&#x27;", "'")
