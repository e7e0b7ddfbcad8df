"""Changes as sentences, in English and in another language."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acex
from acex.engine.explanation import Explanation
from acex.show.sentences import MOST_IN_ONE, Templates, one_sentence
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.space import Space
from explanations import ended, explained, nothing_found, person

LOAN = Space(
    (
        Integer("duration", 6, 84, unit="months"),
        Continuous("income", 0, 1e6, unit="EUR"),
        Continuous("pH", 0, 14),
        Ordinal("school", ("primary", "high")),
        Nominal("guarantor", (False, True)),
    )
)
DEVIATIONS = np.array([6.0, 2000.0, 1.0, 1.0, 1.0])  # steps of -3, 2.5, 0.5, 1 and 1
GERMAN = Templates(
    increase="{feature} müsste von {before} auf {after}{unit} steigen.",
    decrease="{feature} müsste von {before} auf {after}{unit} sinken.",
    switch="{feature} müsste {after} statt {before} sein.",
    condition="{feature} {after} statt {before}{unit} wäre",
    opening="{label}, wenn {conditions}.",
    last=" und ",
    nothing="{label}: keine Änderung wurde gefunden.",
    decimal=",",
    thousands=".",
    words={
        "duration": "die Laufzeit",
        "months": "Monate",
        "income": "das Einkommen",
        "school": "die Schule",
        "guarantor": "ein Bürge",
        "primary": "Grundschule",
        "high": "Gymnasium",
        "True": "vorhanden",
        "False": "nicht vorhanden",
        "yes": "bewilligt",
        "no": "abgelehnt",
    },
)


def loan(after: tuple[Any, ...] = (18, 6234.5, 7.5, "high", True)) -> Explanation:
    return explained(LOAN, (36, 1234.5, 7.0, "primary", False), after, deviations=DEVIATIONS)


def test_each_change_is_a_sentence_with_its_unit_largest_step_first() -> None:
    assert loan().sentences() == [
        "Duration would have to fall from 36 to 18 months.",
        "Income would have to rise from 1234 to 6234 EUR.",
        "School would have to change from primary to high.",
        "Guarantor would have to change from no to yes.",
        "pH would have to rise from 7 to 7.5.",
    ]


def test_one_sentence_says_what_it_takes() -> None:
    assert (
        one_sentence(loan((18, 1234.5, 7.0, "primary", False)))
        == "The decision becomes yes if duration were 18 instead of 36 months."
    )
    assert one_sentence(loan((18, 1234.5, 7.5, "high", False))) == (
        "The decision becomes yes if duration were 18 instead of 36 months, school were high instead of primary "
        "and pH were 7.5 instead of 7."
    )


def test_another_language_has_its_own_words_and_numbers() -> None:
    e = loan((18, 6234.5, 7.25, "primary", True))
    assert e.sentences(GERMAN) == [
        "Die Laufzeit müsste von 36 auf 18 Monate sinken.",
        "Das Einkommen müsste von 1.234 auf 6.234 EUR steigen.",
        "Ein Bürge müsste vorhanden statt nicht vorhanden sein.",
        "pH müsste von 7 auf 7,25 steigen.",
    ]
    assert one_sentence(loan((18, 1234.5, 7.0, "high", False)), GERMAN) == (
        "Bewilligt, wenn die Laufzeit 18 statt 36 Monate wäre und die Schule Gymnasium statt Grundschule wäre."
    )
    assert one_sentence(nothing_found(), GERMAN) == "Abgelehnt: keine Änderung wurde gefunden."


def test_when_nothing_was_found_or_has_to_change_the_sentence_says_so() -> None:
    assert nothing_found().sentences() == []
    assert (
        one_sentence(nothing_found()) == "The decision is no as before: no change was found that alters the decision."
    )
    already = ended(nothing_found(), outcome="already_target")
    assert one_sentence(already) == "The decision is no as it is: nothing has to change."


def test_a_label_that_is_no_text_is_called_one() -> None:
    e = person()
    e = replace(e, steps=tuple(replace(step, label=1) if step.hit else step for step in e.steps))
    assert one_sentence(e).startswith("Label 1 if debt were 0.5 instead of 1.5, ")
    assert one_sentence(e, Templates(words={"1": "granted"})).startswith("Granted if debt were ")


@pytest.mark.parametrize(("n", "shown"), [(MOST_IN_ONE + 1, MOST_IN_ONE + 1), (MOST_IN_ONE + 2, MOST_IN_ONE), (64, 6)])
def test_one_sentence_of_many_changes_counts_the_rest(n: int, shown: int) -> None:
    space = Space(tuple(Integer(f"pixel{j}", 0, 16) for j in range(n)))
    sentence = one_sentence(explained(space, (0,) * n, (1,) * n))
    assert sentence.count(" instead of ") == shown
    assert (f" and {n - shown} more features changed." in sentence) == (n > shown)


def number_of(text: str) -> float:
    return float(text.replace("'", "").replace(",", "."))


@given(st.floats(-1e12, 1e12).map(lambda x: float(f"{x:.6g}")))
def test_a_number_in_another_form_is_still_that_number(x: float) -> None:
    text = repr(x)
    assert number_of(Templates(decimal=",", thousands="'").number(text)) == x
    assert Templates().number(text) == text


@given(st.text(), st.text())
@settings(max_examples=30)
def test_names_are_never_read_as_templates(name: str, category: str) -> None:
    space = Space((Nominal(name, (category, category + "!")),))
    (sentence,) = explained(space, (category,), (category + "!",)).sentences(Templates(words={}))
    assert sentence.casefold() == f"{name} would have to change from {category} to {category}!.".casefold()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("increase", "{feature} up by {step}", "increase: .*'step'"),
        ("opening", "{} if {conditions}", "opening: .*''"),
        ("nothing", "{label", "nothing: .*expected '}'"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(name: str, text: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Templates(**{name: text})


def test_a_unit_is_kept_but_is_nothing_that_tells_explanations_apart() -> None:
    data = pd.DataFrame({"duration": [6, 12, 48, 60], "job": ["cook", "clerk", "cook", "clerk"]})
    plain = Space.infer(data)
    named = plain.adjust(units={"duration": "months"})
    assert named.features[0] == Integer("duration", 6, 60, unit="months")
    assert Space.from_dict(named.to_dict()) == named != plain
    assert plain.to_dict()["features"][1].keys() == named.to_dict()["features"][1].keys()  # categories have none

    def search(space: Space) -> acex.Session:
        return acex.Explainer(lambda rows: np.where(rows["duration"] > 30, "no", "yes"), data, space=space).search(
            data.iloc[2], budget=8
        )

    assert search(named).identity == search(plain).identity
    assert search(named).identity != search(plain.adjust(freeze=["job"])).identity


def test_a_unit_travels_with_an_explanation_through_json() -> None:
    assert Explanation.from_json(loan().to_json()).sentences() == loan().sentences()


def test_a_category_has_no_unit() -> None:
    with pytest.raises(ValueError, match="'school'"):
        LOAN.adjust(units={"school": "years"})
