"""The page of an explanation: one file, safe whatever the data hold, the same every time, and readable."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acex
from acex.engine.explanation import Explanation
from acex.show.html import TEMPLATES, index_page, printed
from acex.show.records import Change
from acex.show.report import certificate_in, explanation_page, page_of
from acex.show.sentences import one_sentence
from acex.values import Remark
from explanations import ended, written
from html_pages import Page
from reported import found, outcomes, renamed

CSS = (files("acex.show") / "templates" / "style.css").read_text(encoding="utf-8")
SECTIONS = [
    "What was asked, and its price",
    "What was held fixed",
    "How reliable it is",
    "How it was made",
    "How to check it",
]


# -- one file, closed in itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["found", "already_target", "budget_spent", "unlikely", "exhausted", "unfinished"])
def test_every_outcome_opens_with_a_sentence_and_has_its_sections(outcome: str) -> None:
    e = outcomes()[outcome]
    page = Page(e.to_html())
    assert page.texts["h1"] == page.texts["title"] == [one_sentence(e)]
    changes = ["What would have to change", "Other ways"] if outcome == "found" else []
    assert page.texts["h2"] == changes + SECTIONS
    assert "not what would happen in the world" in " ".join(page.texts["dd"])


def test_a_page_needs_nothing_else() -> None:
    for e in outcomes().values():
        page = Page(e.to_html())
        assert not {"script", "link", "img"} & set(page.tags) and page.tags.count("style") == 1
        keys = {key for _, key, _ in page.attributes}
        assert not keys & {"src", "href", "xlink:href", "style", "id"} and not [k for k in keys if k.startswith("on")]
    assert not re.search(r"url\(|@import|@font-face|://", CSS)


def test_browsers_load_and_run_nothing() -> None:
    [policy] = [value for _, _, value in Page(found().to_html()).attributes if "default-src" in value]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline';")


def test_the_same_explanation_gives_the_same_bytes_also_from_its_json(tmp_path: Path) -> None:
    e = found()
    text = e.to_html(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_bytes() == text.encode("utf-8") == e.to_html().encode("utf-8")
    assert Explanation.from_json(e.to_json()).to_html() == text


# -- whatever the data hold ---------------------------------------------------------------------------------

HOSTILE = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "</style><b>",
        "\" onmouseover='x",
        "&lt;",
        "-->",
        "]]>",
        "x" * 300,
        "\u202eevil",
        "長い",
    ]
)
texts = st.one_of(HOSTILE, st.text(min_size=1, max_size=20))
PLAIN = renamed(["a", "b"], ["c", "d"], ("no", "yes"), "m")


@given(
    st.lists(texts, min_size=2, max_size=2, unique=True),
    st.lists(texts, min_size=2, max_size=2, unique=True),
    st.lists(texts, min_size=2, max_size=2, unique=True),
    texts,
)
@settings(max_examples=25, deadline=None)
def test_no_text_from_outside_changes_the_page(
    names: list[str], categories: list[str], labels: list[str], model_id: str
) -> None:
    e = renamed(names, categories, (labels[0], labels[1]), model_id)
    for make in (explanation_page, lambda e: index_page([("a.html", e)]), lambda e: e._repr_html_()):
        page, plain = Page(make(e)), Page(make(PLAIN))
        assert page.tags == plain.tags
        assert [(a[0], a[1]) for a in page.attributes] == [(a[0], a[1]) for a in plain.attributes]
    make_page = Page(explanation_page(e))
    assert {clean(name) for name in names} <= {clean(text) for text in make_page.texts["th"]}
    assert clean(categories[1]) in {clean(text) for text in make_page.texts["td"]}
    explanation_page(e).encode("utf-8")


def clean(text: str) -> str:
    """The text as a page holds it."""
    return str(printed(text))


def test_a_file_with_any_kind_of_line_end_in_its_values_is_the_page_of_its_certificate(tmp_path: Path) -> None:
    e = renamed(["a\rb", "c\r\nd"], ["e\r", "\nf"], ("no\r", "yes\r\n"), "m")
    e.to_html(tmp_path / "why.html")
    text = (tmp_path / "why.html").read_text(encoding="utf-8")  # as `acex verify` reads it
    assert page_of(certificate_in(text)) == text


# -- what it says ------------------------------------------------------------------------------------------


def test_the_changes_are_in_the_table_with_their_range() -> None:
    e = found()
    page = Page(e.to_html())
    for feature, before, after, *_ in e.changes.itertuples(index=False):
        assert feature in page.texts["th"]
        assert any(str(after) in bold for bold in page.texts["b"]), after
        assert any(str(before) in cell for cell in page.texts["td"]), before
    labels = [value for element, key, value in page.attributes if (element, key) == ("svg", "aria-label")]
    assert labels[-1].startswith(f"Cost of each of {len(e.steps)} queries")
    assert all(labels)


def test_units_stand_beside_names() -> None:
    e = replace(PLAIN, plan=replace(PLAIN.plan, space=PLAIN.plan.space.adjust(units={"a": "<months>"})))
    assert "a in <months>" in Page(e.to_html()).texts["th"]


def reliability(e: Explanation) -> dict[str, str]:
    """What the page says about how reliable the explanation is, by question."""
    page = Page(e.to_html())
    return dict(zip(page.texts["dt"], page.texts["dd"], strict=True))


def test_frozen_and_limited_features_are_listed() -> None:
    page = Page(found().to_html())
    items = " ".join(page.texts["li"])
    assert "Frozen: school." in items
    assert "Could only increase: age." in items
    assert "Limited by the caller: income and job." in items
    assert "Weighted: job (× 2)." in items
    assert "Functions of the caller" in items
    for text in ("18 to 79; only more than 30", "limited to 0 to 90", "limited to cook or nurse", "frozen"):
        assert text in page.texts["td"]


def test_price_budget_and_options_are_listed() -> None:
    e = replace(found(), n_queries=20, n_reused=1)
    page = Page(explanation_page(e, price_per_row=0.25))
    text = " ".join(page.texts["p"])
    assert "20 of at most 25 rows were sent to the model, at 0.25 each: 5 in total. 1 more answer was" in text
    listed = dict(zip(page.texts["dt"], page.texts["dd"], strict=True))
    assert (listed["seed"], listed["budget"], listed["acex"]) == ("0", "25", acex.__version__)
    assert f"numpy {np.__version__}" in listed["with"]


def test_warnings_come_before_notes() -> None:
    remarks = (Remark("one", "columns were inferred"), Remark("two", "the model contradicts itself", is_warning=True))
    page = Page(replace(found(), remarks=remarks).to_html())
    header = page.texts["header"][0]
    assert header.split("paid")[1].split("\n")[-3:-1] == [
        "Warning: the model contradicts itself",
        "Note: columns were inferred",
    ]
    assert [v for _, key, v in page.attributes if key == "class" and v in ("warning", "note")][:2] == [
        "warning",
        "note",
    ]


@pytest.mark.parametrize(
    ("best", "found_by", "is_improving"),
    [([np.inf, 9.0, *[8.0] * 9], 3, False), ([np.inf, 9.0, 8.0, 7.0], 4, True), ([*[np.inf] * 9, 7.0], 10, True)],
)
def test_progress_is_described(best: list[float], found_by: int, is_improving: bool) -> None:
    e = replace(found(), steps=tuple(replace(found().steps[0], best=cost) for cost in best))
    answer = reliability(ended(e, counterfactuals=(len(best) - 1,)))["Is there less to change?"]
    assert f"Query {found_by} of {len(best)} found the best" in answer
    assert ("still improving" in answer) == is_improving
    settled = reliability(ended(e, counterfactuals=(len(best) - 1,), stopped_by="settled"))
    assert "still improving" not in settled["Is there less to change?"]


@pytest.mark.parametrize("reason", ["budget", "time", "settled", "exhausted"])
def test_every_reason_to_stop_has_its_sentence(reason: Any) -> None:
    answer = reliability(ended(found(), stopped_by=reason, improvement_odds=(0.5, 0.2, 0.1)))[
        "Is there less to change?"
    ]
    assert "10% cheaper is 50%; 25% cheaper 20%; 50% cheaper 10%" in answer


def test_reliability_follows_margin_and_plausibility() -> None:
    answers = reliability(found())
    assert "No margin was requested" in answers["Is it robust?"]
    assert f"affinity {found().affinities[0]:.2f}" in answers["Is it realistic?"]
    settings = {**found().plan.settings, "strategy": {"margin": 0.7}, "plausibility": None}
    robust = replace(ended(found(), robustness=(0.83, 0.7)), plan=replace(found().plan, settings=settings))
    answers = reliability(robust)
    assert (
        "about 83 would be decided the same" in answers["Is it robust?"]
        and "margin was 0.7" in answers["Is it robust?"]
    )
    assert "turned off" in answers["Is it realistic?"]
    known = tuple(replace(step, note=replace(step.note, reference=True)) for step in found().steps)
    assert "known rows, unchanged" in reliability(replace(found(), steps=known))["Is it realistic?"]
    unknown = tuple(replace(step, note=replace(step.note, affinity=None)) for step in found().steps)
    assert "not recorded" in reliability(replace(found(), steps=unknown))["Is it realistic?"]


def test_long_tables_are_folded_and_complete() -> None:
    names = [f"feature number {j} with a long long name" for j in range(40)]
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(50, 40)), columns=pd.Index(names))
    first, last = ({name: float(X[name].iloc[i]) for name in names} for i in (0, 1))
    labels, costs = [0] * 199 + [1], [0.0] * 199 + [30.0]
    e = written(acex.Space.infer(X), [*[first] * 199, last], labels=labels, costs=costs, chosen=[199], target=1)
    page = Page(e.to_html())
    assert page.texts["summary"] == [
        f"{len(e.changes) - 12} smaller changes",
        "Every row that was asked (200)",
        "The whole row (40 features)",
        "The certificate",
    ]
    assert sum(text in map(str, range(1, 201)) for text in page.texts["th"]) == 200
    assert set(e.changes["feature"]) <= set(page.texts["th"])
    assert [cell for cell in page.texts["td"] if cell.endswith(", and 28 more")]


# -- pictures ----------------------------------------------------------------------------------------------


def test_the_picture_of_the_costs_keeps_to_its_box_and_shows_each_query() -> None:
    costs, hits = (0.0, 300.0, 80.0, 7.0, 9.0), (False, True, True, True, False)
    space = acex.Space((acex.Integer("a", 0, 9),))
    labels = ["yes" if hit else "no" for hit in hits]
    e = written(space, [{"a": a} for a in range(5)], labels=labels, costs=costs, chosen=[3], target="yes")
    drawn = e.to_html().split("<figure>")[1].split("</figure>")[0]
    page = Page(drawn)
    assert (page.tags.count("circle"), page.tags.count("path"), page.tags.count("polyline")) == (3, 2, 1)
    heights = [float(value) for element, key, value in page.attributes if (element, key) == ("circle", "cy")]
    assert heights == sorted(heights) and min(heights) >= 0 and max(heights) <= 230
    assert "the best cost fell from 300 to 7" in str(page.attributes)
    assert "0" in page.texts["text"] and "5" in page.texts["text"]


@pytest.mark.parametrize(("start", "end"), [(0.0, 1.0), (0.5, 0.5), (-1.0, 3.0)])
def test_a_range_keeps_to_its_box(start: float, end: float) -> None:
    range_bar: Any = TEMPLATES.get_template("parts.html").module.range_bar  # type: ignore[attr-defined]
    drawn = range_bar(Change("f", "1", "2", "+1.00 sd", start, end, "0", "9"))
    places = [float(v) for _, key, v in Page(drawn).attributes if key in ("x1", "x2", "cx")]
    assert min(places) >= 0 and max(places) <= 120
    assert "from 1 to 2, within 0 to 9" in drawn


# -- colours -----------------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_and_signs_stand_out_from_the_paper() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#ffffff", "#767676") == pytest.approx(4.54, abs=0.01)  # the well-known lightest grey of WCAG AA
    named = re.findall(r"--(\w+): (#[0-9a-f]{6});", CSS)
    assert re.findall(r"#[0-9a-f]{3,8}\b", CSS) == [colour for _, colour in named]  # every colour has a name
    light, dark = dict(named[: len(named) // 2]), dict(named[len(named) // 2 :])
    assert light.keys() == dark.keys() and light["paper"] != dark["paper"]
    for colours in (light, dark):
        for ground in ("paper", "tint"):
            for text in ("ink", "soft", "accent"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["track"], colours["paper"]) >= 3
    inks = re.findall(r"(?:[^-]color|text \{ fill): var\(--(\w+)\)", CSS)
    assert set(inks) == {"ink", "soft", "accent"}
