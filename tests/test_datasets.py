from __future__ import annotations

from collections.abc import Callable

import pytest
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from acex import datasets
from acex.datasets import Dataset
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal

BUNDLED: list[Callable[[], Dataset]] = [
    datasets.loan,
    datasets.breast_cancer,
    datasets.digits,
]


def check(data: Dataset) -> None:
    """Everything that holds for every data set."""
    assert list(data.rows.columns) == data.space.names
    assert len(data.rows) == len(data.outcomes)
    assert data.codes.shape == data.rows.shape
    assert_frame_equal(data.space.decode(data.codes[:50]), data.rows[:50])
    assert data.target in set(data.outcomes)


@pytest.mark.parametrize("make", BUNDLED)
def test_rows_labels_and_space_of_a_bundled_set_fit_together(make: Callable[[], Dataset]) -> None:
    check(make())


@pytest.mark.parametrize("name", ["loan", "breast-cancer", "breast_cancer", "digits"])
def test_load_takes_hyphens_and_underscores_alike(name: str) -> None:
    assert datasets.load(name).name == name.replace("-", "_")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="breast_cancer"):
        datasets.load("iris")


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


def test_breast_cancer_has_569_samples_of_30_measurements() -> None:
    data = datasets.breast_cancer()
    assert data.rows.shape == (569, 30)
    assert data.outcomes.value_counts().to_dict() == {"benign": 357, "malignant": 212}


def test_digits_have_pixels_from_0_to_16() -> None:
    data = datasets.digits()
    assert set(data.outcomes) == {"8", "9"} and data.target == "9"
    assert data.rows.shape[1] == 64
    assert (data.space.low == 0).all() and (data.space.high == 16).all()
