"""Expected improvement against Monte Carlo, numerical integration and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from acex.arrays import FloatArray
from acex.search.acquisition import _upper_orthant, expected_improvement, improvement_bound

Case = tuple[float, float, float, float, float, float]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """alpha, mean, variance, covariance, incumbent's mean and variance, in probabilities."""
    number = st.floats(0, 1, allow_nan=False)
    alpha = draw(st.floats(-0.6, 0.6))
    deviation, star = (0.005 + 0.5 * draw(number) for _ in range(2))
    correlation = draw(st.floats(-0.999, 0.999))
    return alpha, draw(number), deviation**2, correlation * deviation * star, draw(number), star**2


def evaluate(case: Case) -> FloatArray:
    alpha, mean, variance, covariance = (np.array([v]) for v in case[:4])
    return np.array(expected_improvement(alpha, mean, variance, covariance, *case[4:]))[:, 0]


def draws(case: Case, n: int, seed: int) -> FloatArray:
    alpha, mean, variance, covariance, mean_star, variance_star = case
    Z = np.random.default_rng(seed).normal(size=(2, n))
    star = mean_star + np.sqrt(variance_star) * Z[0]
    b = covariance / np.sqrt(variance_star)
    f = mean + b * Z[0] + np.sqrt(max(variance - b**2, 0)) * Z[1]
    gains: FloatArray = np.maximum(alpha + np.abs(star - 0.5) - np.abs(f - 0.5), 0)
    return gains


@given(cases())
@settings(max_examples=25, deadline=None)
def test_expected_improvement_is_what_a_million_draws_average_to(case: Case) -> None:
    sample = draws(case, 1_000_000, 0)
    error = sample.std() / np.sqrt(len(sample))
    rare = 1e-6  # what a million draws can miss altogether
    assert abs(evaluate(case)[0] - sample.mean()) < 5 * error + rare


@pytest.mark.parametrize("alpha", [-0.3, 0.0, 0.2])
def test_expected_improvement_is_the_integral(alpha: float) -> None:
    mean, variance, covariance, mean_star, variance_star = 0.35, 0.04, -0.012, 0.6, 0.02
    b = covariance / np.sqrt(variance_star)
    z = np.linspace(-8, 8, 3001)
    weight = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    U = mean_star - 0.5 + np.sqrt(variance_star) * z[:, None]
    V = mean - 0.5 + b * z[:, None] + np.sqrt(variance - b**2) * z
    exact = weight @ np.maximum(alpha + np.abs(U) - np.abs(V), 0) @ weight
    ours = evaluate((alpha, mean, variance, covariance, mean_star, variance_star))[0]
    assert_allclose(ours, exact, rtol=1e-4)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_derivatives_are_exact(case: Case) -> None:
    _, by_alpha, by_mean, by_variance, by_covariance = evaluate(case)
    step = 1e-7
    for i, exact in enumerate((by_alpha, by_mean, by_variance, by_covariance)):
        h = step if i < 2 else step * case[2]
        up, down = list(case), list(case)
        up[i] += h
        down[i] -= h
        numeric = (evaluate(tuple(up))[0] - evaluate(tuple(down))[0]) / (2 * h)  # type: ignore[arg-type]
        assert_allclose(exact, numeric, rtol=1e-3, atol=1e-5 / np.sqrt(case[2]))


def test_at_the_incumbent_itself_the_improvement_is_the_saved_cost() -> None:
    """There f(x) = f(x*): what is gained is alpha, whatever f turns out to be."""
    for alpha in (0.2, 0.0, -0.1):
        value = evaluate((alpha, 0.4, 0.03, 0.03, 0.4, 0.03))[0]
        assert_allclose(value, max(alpha, 0.0), atol=1e-8)


def test_a_certain_point_on_the_boundary_gains_the_whole_penalty_of_the_incumbent() -> None:
    assert_allclose(evaluate((0.0, 0.5, 1e-18, 0.0, 0.1, 1e-18))[0], 0.4, atol=1e-8)


def test_an_enormous_penalty_does_not_break_it() -> None:
    values = [evaluate((cost / 1e15, 0.4, 0.05, 0.01, 0.7, 0.05))[0] for cost in (30.0, 0.0, -30.0)]
    assert_allclose(values, values[1], rtol=1e-10)
    assert values[1] > 0.01


@given(cases())
@settings(max_examples=200, deadline=None)
def test_the_bound_is_never_below_the_improvement(case: Case) -> None:
    alpha, mean, variance, _, mean_star, variance_star = case
    bound = improvement_bound(
        np.array([alpha]),
        mean_star,
        variance_star,
        np.array([abs(mean - 0.5)]),
        np.array([np.sqrt(variance)]),
    )
    assert evaluate(case)[0] <= bound[0] + 1e-12


def test_the_bound_is_tightened_by_the_distance_to_one_half() -> None:
    wide, near = np.array([0.45]), np.array([0.01])
    far = improvement_bound(np.zeros(1), 0.6, 0.001, wide, near)
    plain = improvement_bound(np.zeros(1), 0.6, 0.001, np.zeros(1), near)
    assert far[0] < 0.2 * plain[0]


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-0.9999, 0.9999))
@settings(max_examples=200, deadline=None)
def test_orthant_probability_is_scipys(h: float, k: float, r: float) -> None:
    ours = _upper_orthant(np.array([h]), np.array([k]), np.array([r]), np.sqrt(1 - np.array([r]) ** 2))
    theirs = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([-h, -k])
    assert_allclose(ours[0], theirs, atol=1e-7)
