"""The cost of a counterfactual, against a plain loop."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from acex.arrays import FloatArray
from acex.space.cost import Cost, CostFunction, n_changed
from acex.space.kinds import Nominal
from acex.space.scale import Scale
from acex.space.space import Space
from strategies import modest, spaces_with_points


def cost_of(space: Space, X: FloatArray, beta: float = 5.0) -> CostFunction:
    return CostFunction(Scale.of(space, X), X[0], space.weights, beta)


@modest
@given(spaces_with_points(), st.sampled_from([0.0, 1.0, 5.0]))
def test_the_cost_is_what_a_loop_over_features_adds_up(space_and_points: tuple[Space, FloatArray], beta: float) -> None:
    space, X = space_and_points
    X = space.snap(X)
    cost = cost_of(space, X, beta)
    expected = []
    for y in X:
        square = absolute = 0.0
        for j, feature in enumerate(space.features):
            s = cost.scale.deviations[j]
            if s == 0:
                continue
            step = float(y[j] != X[0, j]) if isinstance(feature, Nominal) else y[j] - X[0, j]
            z = feature.weight * step / s
            square += z**2
            absolute += abs(z)
        expected.append(math.sqrt(square) + beta * absolute)
    assert_allclose(cost(X), expected, rtol=1e-9)


@modest
@given(spaces_with_points())
def test_the_factual_costs_nothing_and_nothing_costs_less(
    space_and_points: tuple[Space, FloatArray],
) -> None:
    space, X = space_and_points
    X = space.snap(X)
    J = cost_of(space, X)(X)
    assert J[0] == 0
    assert (J >= 0).all()


def test_a_dearer_feature_costs_its_weight() -> None:
    space = Space((Nominal("a", ("x", "y")), Nominal("b", ("x", "y"), weight=3.0)))
    R = np.array([[0.0, 0.0], [1.0, 1.0]])
    cost = cost_of(space, R, beta=2.0)
    assert_allclose(cost(np.array([[1.0, 0.0], [0.0, 1.0]])), [2 * (1 + 2), 2 * 3 * (1 + 2)])
    assert_array_equal(cost.per_unit, [2.0, 6.0])


def test_what_changed_is_counted_not_measured() -> None:
    X = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.1], [0.0, 0.0, 0.0], [-0.0, 2.0, 3.0]])
    assert_array_equal(n_changed(X, np.array([1.0, 2.0, 3.0])), [0, 1, 3, 1])
    assert_array_equal(n_changed(X[3:], np.array([0.0, 2.0, 3.0])), [0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"beta": -1},
        {"beta": "5"},
        {"beta": True},
        {"per_category": 0},
        {"per_change": -0.1},
        {"weights": {"a": 0}},
        {"weights": [1]},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Cost(**wrong)


def test_weights_of_the_cost_override_those_of_the_space() -> None:
    space = Space((Nominal("a", ("x", "y"), weight=3.0), Nominal("b", ("x", "y"), weight=3.0)))
    R = np.array([[0.0, 0.0], [1.0, 1.0]])
    settings = Cost(2.0, weights={"b": 1.0}, per_category=None)
    scale = Scale.of(space, R)
    J = settings.function(space, scale, R[0])(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert_allclose(J, [2 * 3 * (1 + 2), 2 * (1 + 2)])
    assert_allclose(Cost(2.0, per_category=1.5).function(space, scale, R[0])(R[1:]), 1.5 * 3 * (2**0.5 + 4))
    with pytest.raises(ValueError, match="'shoe' is not a feature"):
        Cost(weights={"shoe": 2.0}).function(space, scale, R[0])
