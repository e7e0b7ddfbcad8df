"""Standard deviations of mixed features, and coordinates in which distance is Euclidean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from acex.arrays import FloatArray
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.scale import Scale
from acex.space.space import Space
from strategies import modest, spaces_with_points

MIXED = Space(
    (
        Continuous("size", -10, 10),
        Nominal("colour", ("red", "green", "blue", "grey")),
        Integer("rooms", 0, 9),
        Ordinal("school", ("primary", "high", "university")),
        Nominal("pet", (False, True)),
    )
)


def reference(n: int = 200, seed: int = 0) -> FloatArray:
    shares = np.random.default_rng(seed).random((n, len(MIXED)))
    return MIXED.snap(MIXED.low + shares**2 * (MIXED.high - MIXED.low))


def test_numeric_features_have_the_usual_deviation() -> None:
    R = reference()
    assert_allclose(Scale.of(MIXED, R).deviations[[0, 2, 3]], R[:, [0, 2, 3]].std(axis=0))


def test_two_categories_have_the_usual_deviation() -> None:
    R = reference()
    assert_allclose(Scale.of(MIXED, R).deviations[4], R[:, 4].std())


def test_a_nominal_feature_has_the_deviation_of_its_one_hot_code() -> None:
    R = reference()
    one_hot = np.eye(4)[R[:, 1].astype(int)]
    # Two categories differ in two of the columns, hence the half.
    assert_allclose(Scale.of(MIXED, R).deviations[1], np.sqrt(one_hot.var(axis=0).sum() / 2))


def test_a_change_of_category_counts_one_deviation_whatever_the_codes() -> None:
    scale = Scale.of(MIXED, reference())
    x = MIXED.encode({"size": 1.0, "colour": "red", "rooms": 2, "school": "high", "pet": False})
    for colour in ("green", "grey"):
        y = MIXED.encode({"size": -1.0, "colour": colour, "rooms": 5, "school": "high", "pet": False})
        s = scale.deviations
        assert_allclose(scale.differences(y, x[0])[0], [-2 / s[0], 1 / s[1], 3 / s[2], 0, 0])


@modest
@given(spaces_with_points())
def test_distance_in_coordinates_is_the_length_of_the_differences(
    space_and_points: tuple[Space, FloatArray],
) -> None:
    space, X = space_and_points
    X = space.snap(X)
    scale = Scale.of(space, X)
    Z = scale.coordinates(X)
    expected = np.linalg.norm(scale.differences(X, X[0]), axis=1)
    assert_allclose(np.linalg.norm(Z - Z[0], axis=1), expected, rtol=1e-6, atol=1e-6)


@modest
@given(spaces_with_points())
def test_reference_rows_lie_one_deviation_from_each_other_in_each_feature(
    space_and_points: tuple[Space, FloatArray],
) -> None:
    space, X = space_and_points
    X = space.snap(X)
    scale = Scale.of(space, X)
    squares = np.mean([scale.differences(X, x) ** 2 for x in X], axis=(0, 1))
    # For every kind of feature the mean squared difference of two rows is twice the variance.
    assert_allclose(squares, np.where(scale.deviations > 0, 2.0, 0.0), rtol=1e-6)


def test_pulled_back_gradients_are_those_of_finite_differences() -> None:
    R = reference()
    scale = Scale.of(MIXED, R)
    x, centre = R[3], scale.coordinates(R[7:8])[0]

    def value(point: FloatArray) -> float:
        return float(np.cos(scale.coordinates(point[None])[0] - centre).sum())

    gradient = scale.pull_back(-np.sin(scale.coordinates(x[None]) - centre))[0]
    for j in (0, 2, 3):
        h = 1e-6 * np.eye(len(x))[j]
        assert_allclose(gradient[j], (value(x + h) - value(x - h)) / 2e-6, rtol=1e-6, atol=1e-9)
    assert_array_equal(gradient[[1, 4]], 0.0)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_gradients_are_pulled_back_whatever_their_leading_shape(shape: tuple[int, ...]) -> None:
    scale = Scale.of(MIXED, reference())
    n_coordinates = scale.coordinates(reference(2)).shape[1]
    assert scale.pull_back(np.ones((*shape, n_coordinates))).shape == (*shape, len(MIXED))


def test_features_that_never_vary_count_nothing() -> None:
    R = reference()
    R[:, [0, 1]] = R[0, [0, 1]]
    scale = Scale.of(MIXED, R)
    assert_array_equal(scale.deviations[[0, 1]], 0.0)
    other = R[:1] + np.array([5.0, 1.0, 0.0, 0.0, 0.0])
    assert_array_equal(scale.differences(other, R[0]), 0.0)
    assert_array_equal(scale.coordinates(other), scale.coordinates(R[:1]))


def test_rounding_is_not_variation_and_small_numbers_are_not_rounding() -> None:
    space = Space((Continuous("rounding", 0, 1), Continuous("farad", 0, 1), Continuous("seconds", 0, 2e9)))
    R = np.array([[0.1 + 0.2, 1e-12, 1.7e9], [0.3, 3e-12, 1.7e9 + 3], [0.3, 2e-12, 1.7e9 + 9]])
    assert (Scale.of(space, R).deviations > 0).tolist() == [False, True, True]


def test_large_numbers_have_a_finite_deviation() -> None:
    space = Space((Continuous("a", -1e150, 1e150),))
    scale = Scale.of(space, np.array([[-1e150], [1e150]]))
    assert_allclose(scale.deviations, 1e150)
    assert_allclose(scale.coordinates(np.array([[5e149]])), 0.5)
