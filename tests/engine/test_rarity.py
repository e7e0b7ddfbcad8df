"""Which pair of values a report names, on tables where it is known which do not go together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex import Explanation, Plausibility
from acex.engine.explanation import is_reference_row, single
from acex.engine.rarity import rarest_values, unusual_row
from acex.engine.reference import Reference
from acex.search.problem import Problem
from acex.space.cost import Cost
from acex.space.space import Space


def people(n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 70, n)
    years = (rng.random(n) * (age - 17)).astype(int)
    job = np.where(age < 25, "student", rng.choice(["clerk", "cook"], n))
    school, tall = rng.choice(["low", "middle", "high"], n), rng.normal(170, 8, n).round()
    return pd.DataFrame({"age": age, "years": years, "job": job, "school": school, "tall": tall})


def problem(kind: Any = "joint", **odd: Any) -> Problem:
    """The problem of a usual person with some values replaced."""
    data = people()
    row = {"age": 40, "years": 10, "job": "cook", "school": "middle", "tall": 171.0} | odd
    reference = Reference.of(data, None, Space.infer(data), Plausibility(kind=kind), 0)
    x = reference.space.encode(row)[0]
    return reference.problem(reference.space, x, cost=Cost(per_category=None), kind="joint")


def test_a_usual_row_has_nothing_to_tell() -> None:
    p = problem()
    assert rarest_values(p, p.factual) is None
    assert unusual_row(p) == ()


def test_the_pair_that_does_not_go_together_is_named_with_what_is_known() -> None:
    p = problem(age=30, years=40)
    data = people()
    found = rarest_values(p, p.factual)
    reach = (data["years"] - 40).abs().sort_values().iloc[19]  # twenty rows are near, and those as near as the last
    near = data[(data["years"] - 40).abs() <= reach]
    where = f"years {near['years'].min()} to {near['years'].max()}"
    assert found is not None and set(found.columns) == {"age", "years"}
    assert found.text == (
        f"age 30 with years 40: of {len(near)} known rows with {where} none has age below {near['age'].min()}"
    )
    [remark] = unusual_row(p)
    assert remark.code == "unusual_row" and remark.columns == found.columns and found.text in remark.text


def test_a_category_that_does_not_go_with_a_number_is_named() -> None:
    p = problem(job="student", age=60)
    students = people().query("job == 'student'")
    told = f"age 60 with job student: of {len(students)} known rows with job student none has age above 24"
    assert str(rarest_values(p, p.factual)) == told


def test_a_value_that_is_rare_by_itself_is_named_alone() -> None:
    highest = people()["tall"].max()
    p = problem(tall=float(highest))
    assert str(rarest_values(p, p.factual)) == f"tall {highest:.0f}: of 600 known rows less than 1% are as high"


def test_the_local_outlier_factor_knows_no_columns() -> None:
    p = problem("lof", age=30, years=40)
    assert rarest_values(p, p.factual) is None and unusual_row(p) == ()
    assert rarest_values(replace(p, density=None), p.factual) is None


@pytest.fixture(scope="module")
def found() -> Explanation:
    row = {"age": 30, "years": 40, "job": "cook", "school": "middle", "tall": 171.0}
    return acex.explain(lambda rows: rows["school"] == "high", row, data=people(), freeze=["age", "years"], budget=12)


def test_an_explanation_tells_it_in_json_and_report(found: Explanation) -> None:
    assert found.outcome == "found"
    assert any(remark.code == "unusual_row" for remark in found.remarks)
    [rare] = found.ending.rarest_values
    assert rare is not None and {"age", "years"} & set(rare.columns)
    back = Explanation.from_json(found.to_json())
    assert back.ending.rarest_values == found.ending.rarest_values and back.outcome == found.outcome
    assert single(found, 0).ending.rarest_values == found.ending.rarest_values
    assert not is_reference_row(found)
    assert rare.text in found.to_html()
