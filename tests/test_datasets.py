from __future__ import annotations

import pytest
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from acex import datasets
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal


def test_rows_labels_and_space_fit_together() -> None:
    data = datasets.loan()
    assert list(data.rows.columns) == data.space.names
    assert len(data.rows) == len(data.outcomes)
    assert data.codes.shape == data.rows.shape
    assert_frame_equal(data.space.decode(data.codes[:50]), data.rows[:50])
    assert data.target in set(data.outcomes)


def test_loan_has_features_of_every_kind_and_keeps_the_age() -> None:
    space = datasets.loan().space
    assert {type(feature) for feature in space.features} == {Continuous, Integer, Ordinal, Nominal}
    assert [feature.name for feature in space.features if feature.frozen] == ["age"]


def test_loan_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    once, again, other = datasets.loan(seed=3), datasets.loan(seed=3), datasets.loan(seed=4)
    assert_frame_equal(once.rows, again.rows)
    assert_series_equal(once.outcomes, again.outcomes)
    assert not once.rows.equals(other.rows)


@pytest.mark.parametrize("seed", range(5))
def test_loan_rejects_between_30_and_45_percent(seed: int) -> None:
    assert 0.30 < (datasets.loan(seed=seed).outcomes == "rejected").mean() < 0.45


def test_loan_features_are_correlated() -> None:
    rows = datasets.loan().rows
    assert rows["income"].corr(rows["employment_years"]) > 0.2
    assert rows["loan_amount"].corr(rows["duration_months"]) > 0.5
    assert (rows["employment_years"] <= rows["age"] - 18).all()


def test_a_random_forest_learns_the_loan_decision() -> None:
    data = datasets.loan()
    forest = RandomForestClassifier(50, random_state=0)
    accuracy = cross_val_score(forest, data.codes, data.outcomes, cv=3).mean()
    assert accuracy > (data.outcomes == "approved").mean() + 0.15
