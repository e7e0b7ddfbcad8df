"""Columns that look unchangeable or sensitive by their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acex
from acex.engine.sensitive import WORDS, is_sensitive

NAMES = """
sex Gender AGE applicant_age ageAtEntry personAge age2 age.years Geschlecht Alter Âge età Sexe Género Sesso Geslacht
Nationalität nationalitaet Staatsangehörigkeit STAATSANGEHOERIGKEIT nacionalidad cittadinanza marital-status
MaritalStatus Familienstand estado_civil État_civil stato_civile native-country date_of_birth BirthDate dateOfBirth DOB
Geburtsdatum date_naissance fecha_nacimiento Raça race ethnicGroup is_female sex_male Pregnancies zwangerschap
religion Behinderung edad idade leeftijd skin_color blood_type
black White hispanic hispan nonwhite minority widow ForeignBorn native_born
"""
OTHERS = """
page usage average mileage image stage wage message language package voltage percentage storage coverage Essex sextant
trace embrace grace racetrack alternative altered genre eta beta theta zeta disabled birth_weight origin civil union
country black_level white_balance skin type manager agent agenda aged menace terrace tone income debt_ratio sequence
employment_years
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_common_names_in_several_languages_are_recognised(name: str) -> None:
    assert is_sensitive(name)


@pytest.mark.parametrize("name", OTHERS.split())
def test_other_names_are_not(name: str) -> None:
    assert not is_sensitive(name)


letters = st.text("abcdefghijklmnopqrstuvwxyz", max_size=6)


@given(letters, st.sampled_from(sorted(WORDS)), letters)
def test_a_word_within_another_word_is_not_recognised(before: str, word: str, after: str) -> None:
    whole = f"{before}{word}{after}"
    for name in (whole, whole.capitalize(), whole.upper(), f"n_{whole}", f"{whole}_2", f"max{whole.capitalize()}"):
        assert not is_sensitive(name) or whole in WORDS or is_sensitive_without_digraphs(whole)


def is_sensitive_without_digraphs(word: str) -> bool:
    return any(word.replace(pair, pair[0]) in WORDS for pair in ("ae", "oe", "ue"))


DECLARED = acex.Space((acex.Nominal("sex", ("f", "m")), acex.Integer("age", 18, 80), acex.Continuous("page", -9, 19)))


def people(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], n)
    return pd.DataFrame({"sex": sex, "age": rng.integers(18, 80, n), "page": rng.normal(5, 2, n).round(2)})


def codes(e: acex.Explanation) -> list[str]:
    return [remark.code for remark in e.remarks]


def explained(**options: Any) -> acex.Explanation:
    rows = people()
    return acex.explain(lambda rows: rows["page"] > 5, rows[rows["page"] < 5].iloc[0], rows, budget=4, **options)


def test_one_remark_names_the_columns_and_how_to_freeze_them() -> None:
    [remark] = [remark for remark in explained().remarks if remark.code == "sensitive"]
    assert remark.text.startswith("sex and age look")
    assert 'freeze=["sex", "age"]' in remark.advice and "--freeze sex --freeze age" in remark.advice
    assert not remark.is_warning


@pytest.mark.parametrize(
    "options",
    [
        {"freeze": ["sex", "age"]},
        {"freeze": ["sex"], "directions": {"age": "increase"}},
        {"freeze": ["sex"], "ranges": {"age": (18, 30)}},
        {"space": DECLARED},
    ],
)
def test_columns_that_were_considered_get_no_remark(options: dict[str, Any]) -> None:
    assert "sensitive" not in codes(explained(**options))


def test_few_rows_get_a_remark() -> None:
    rows = people()
    e = acex.explain(lambda rows: rows["page"] > 5, rows.iloc[0], rows.head(3), budget=4)
    assert "few_rows" in codes(e) and "3 rows" in str(e)
    assert "few_rows" not in codes(explained())


@pytest.mark.parametrize(("value", "n"), [(9_999_999, 2), (-9_999_999, 2), (-9_999_999, 80)])
def test_a_value_far_from_all_others_gets_a_warning(value: int, n: int) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"income": rng.lognormal(7, 1.5, 400).round(), "debt": rng.gamma(3, 900, 400).round()})
    rows["rare"] = (np.arange(400) % 150 == 0).astype(int)
    rows["always"] = 7
    rows["mostly 24"] = np.where(np.arange(400) % 5 == 0, 1, 24 + rows["rare"])
    model = lambda rows: rows["income"] - 1.5 * rows["debt"] > 0  # noqa: E731
    assert acex.explain(model, rows.iloc[0], rows, budget=4).warnings == ()
    rows.loc[10 : 10 + n - 1, "income"] = value
    [warning] = acex.explain(model, rows.iloc[0], rows, budget=4).warnings
    assert warning.code == "outliers" and str(value)[:4] in str(warning) and warning.columns == ("income",)
    frozen = acex.Space.infer(rows).adjust(freeze=["income"])
    assert acex.explain(model, rows.iloc[0], rows, space=frozen, budget=4).warnings == ()
