"""The cost of a counterfactual, against a plain loop."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from acex.arrays import FloatArray
from acex.space.cost import Cost, n_changed
from acex.space.kinds import Nominal
from acex.space.scale import Scale
from acex.space.space import Space
from strategies import modest, spaces_with_points


def cost_of(space: Space, X: FloatArray, beta: float = 5.0) -> Cost:
    return Cost(Scale.of(space, X), X[0], space.weights, beta)


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
