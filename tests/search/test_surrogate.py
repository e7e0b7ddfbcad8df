"""The surrogate against scikit-learn, finite differences and brute-force integration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from acex.arrays import FloatArray
from acex.search import surrogate
from acex.search.kernel import KernelName, Matern
from acex.search.surrogate import fit, regress


def labelled(n: int, d: int, seed: int) -> tuple[FloatArray, FloatArray]:
    Z = np.random.default_rng(seed).normal(size=(n, d))
    return Z, (Z[:, 0] + 0.5 * np.sin(3 * Z[:, -1]) > 0.2).astype(float)


@pytest.mark.parametrize(("name", "nu"), [("matern52", 2.5), ("matern32", 1.5)])
@pytest.mark.parametrize("seed", range(3))
def test_mode_and_marginal_likelihood_are_those_of_scikit_learn(name: KernelName, nu: float, seed: int) -> None:
    Z, t = labelled(40, 3, seed)
    ours = fit(Z, t, kernel=Matern(3.0, 1.7, name))
    theirs = GaussianProcessClassifier(ConstantKernel(3.0) * SklearnMatern(1.7, nu=nu), optimizer=None).fit(Z, t)
    assert_allclose(ours.log_marginal_likelihood, theirs.log_marginal_likelihood_value_, atol=1e-5)
    A = np.random.default_rng(seed + 100).normal(size=(20, 3))
    # The sign of the latent mean is the mode's word; scikit-learn moderates it with another approximation.
    assert_allclose(ours.probability(A), theirs.predict_proba(A)[:, 1], atol=0.02)
    at_evidence = expit(ours.latent(Z)[0])
    assert_allclose(at_evidence, theirs.base_estimator_.pi_, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_regression_is_that_of_scikit_learn(seed: int) -> None:
    Z, _ = labelled(40, 3, seed)
    y = np.sin(Z[:, 0]) + Z[:, 1]
    ours = regress(Z, y, noise=0.3, prior_mean=0.5, typical=np.sqrt(3))
    theirs = GaussianProcessRegressor(
        ConstantKernel(ours.kernel.variance) * SklearnMatern(ours.kernel.ell, nu=2.5), alpha=0.09, optimizer=None
    ).fit(Z, y - 0.5)
    assert_allclose(ours.log_marginal_likelihood, theirs.log_marginal_likelihood_value_, rtol=1e-8)
    A = np.random.default_rng(seed + 100).normal(size=(20, 3))
    mean, deviation = theirs.predict(A, return_std=True)
    assert_allclose(ours.latent(A, 0.5)[0], mean + 0.5, atol=1e-8)
    assert_allclose(np.sqrt(ours.latent(A)[1]), deviation, atol=1e-7)


def test_gradient_of_the_regressions_marginal_likelihood_is_exact() -> None:
    Z, _ = labelled(25, 2, 0)
    squared, y = ((Z[:, None] - Z) ** 2).sum(axis=2), Z[:, 0] ** 2

    def observed(u: FloatArray) -> surrogate._Observed:
        return surrogate._Observed(Matern(float(np.exp(u[0])), float(np.exp(u[1]))), squared, y, 0.2)

    u = np.log([2.0, 1.1])

    def value(v: FloatArray) -> float:
        return observed(v).log_marginal_likelihood

    numeric = approx_fprime(u, value, 1e-6)
    assert_allclose(observed(u).gradient, numeric, rtol=1e-4)


@pytest.mark.parametrize("name", ["matern52", "matern32"])
@pytest.mark.parametrize(("variance", "ell"), [(3.0, 1.5), (0.2, 0.3), (60.0, 5.0)])
def test_gradient_of_the_marginal_likelihood_is_exact(name: KernelName, variance: float, ell: float) -> None:
    Z, t = labelled(25, 2, 0)
    squared = ((Z[:, None] - Z) ** 2).sum(axis=2)

    def mode(u: FloatArray) -> surrogate._Mode:
        kernel = Matern(float(np.exp(u[0])), float(np.exp(u[1])), name)
        return surrogate._Mode(kernel, squared, t, np.zeros(25), np.zeros(25))

    u = np.log([variance, ell])
    by_difference = [
        (mode(u + e).log_marginal_likelihood - mode(u - e).log_marginal_likelihood) / 2e-4 for e in 1e-4 * np.eye(2)
    ]
    assert_allclose(mode(u).gradient, by_difference, rtol=1e-3, atol=1e-4)


@given(n=st.integers(1, 12), seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_gradients_by_the_query_point_are_exact(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z, t = rng.normal(size=(n, 3)), (rng.random(n) < 0.5).astype(float)
    beside = fit(Z, t, kernel=Matern(2.0, 1.1)).joint(rng.normal(size=3))
    x = rng.normal(size=3)
    moments, gradients = beside.with_gradients(x[None])
    assert_allclose(moments, beside.moments(x[None]), rtol=1e-10)
    for k, exact in enumerate(gradients):

        def moment(y: FloatArray, k: int = k) -> float:
            return float(beside.moments(y[None])[k][0])

        numeric = approx_fprime(x, moment, 1e-6)
        assert_allclose(exact[0], numeric, atol=2e-5)


def test_covariance_with_itself_is_the_variance() -> None:
    Z, t = labelled(20, 2, 1)
    posterior = fit(Z, t)
    b = np.array([0.3, -0.2])
    mean, variance, covariance = posterior.joint(b).moments(b[None])
    assert_allclose(covariance, variance, rtol=1e-8)
    assert_allclose((mean, variance), posterior.latent(b[None]))


def test_latent_posterior_of_one_label_agrees_with_integration() -> None:
    """With one label the exact posterior mean of f is a one-dimensional integral; Laplace is close to it."""
    kernel = Matern(1.0, 1.0)
    posterior = fit(np.zeros((1, 1)), np.ones(1), kernel=kernel)

    def weight(f: float) -> float:
        return float(norm.pdf(f) * expit(f))

    total = quad(weight, -10, 10)[0]
    mean = quad(lambda f: f * weight(f), -10, 10)[0] / total
    probability = quad(lambda f: expit(f) * weight(f), -10, 10)[0] / total
    assert_allclose(posterior.latent(np.zeros((1, 1)))[0], mean, atol=0.05)
    assert_allclose(posterior.probability(np.zeros((1, 1))), probability, atol=0.03)


def test_probability_with_three_labels_agrees_with_brute_force_integration() -> None:
    Z = np.array([[0.0], [0.7], [1.5]])
    t = np.array([0.0, 1.0, 1.0])
    kernel = Matern(2.0, 1.0)
    a = np.array([[1.1]])
    grid = np.linspace(-6, 6, 61)
    F = np.array(list(itertools.product(grid, repeat=3)))
    K = kernel(Z, Z)
    prior = np.exp(-0.5 * (F * np.linalg.solve(K, F.T).T).sum(axis=1))
    weight = prior * expit((2 * t - 1) * F).prod(axis=1)
    k = kernel(Z, a)[:, 0]
    conditional = F @ np.linalg.solve(K, k)
    spread = kernel.variance - k @ np.linalg.solve(K, k)
    nodes, w = np.polynomial.hermite_e.hermegauss(20)
    averaged = (expit(conditional[:, None] + np.sqrt(spread) * nodes) * w).sum(axis=1) / w.sum()
    exact = (averaged * weight).sum() / weight.sum()
    assert_allclose(fit(Z, t, kernel=kernel).probability(a), exact, atol=0.03)


def test_moderated_probability_is_close_to_the_integral() -> None:
    for mean, variance in itertools.product((-3.0, -0.5, 0.0, 2.0), (0.01, 1.0, 9.0)):
        exact = quad(lambda f, m=mean, v=variance: expit(f) * norm.pdf(f, m, np.sqrt(v)), -25, 25)[0]
        assert_allclose(surrogate.moderated(np.array([mean]), np.array([variance]))[0], exact, atol=0.02)


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_one_class_alone_still_gives_an_answer(label: float) -> None:
    Z = np.random.default_rng(0).normal(size=(15, 4))
    probability = fit(Z, np.full(15, label)).probability(np.vstack([Z, Z + 50]))
    assert np.isfinite(probability).all()
    assert (np.abs(probability[:15] - label) < 0.5).all()
    assert_allclose(probability[15:], 0.5, atol=1e-6)  # far away the prior speaks


def test_prior_mean_speaks_where_there_is_no_evidence() -> None:
    Z, t = labelled(10, 2, 3)
    posterior = fit(Z, t, kernel=Matern(1.0, 1.0), prior_mean=-2.0)
    mean, variance = posterior.latent(np.array([[80.0, 80.0]]), prior_mean=-2.0)
    assert_allclose((mean[0], variance[0]), (-2.0, 1.0), atol=1e-6)


def test_a_prior_mean_is_a_shift_of_the_latent_function() -> None:
    """What the labels add to the prior mean solves K^-1 (f - m) = t - sigma(f)."""
    Z, t = labelled(12, 2, 4)
    m = np.linspace(-2, 1, 12)
    kernel = Matern(3.0, 1.5)
    f = fit(Z, t, kernel=kernel, prior_mean=m).latent(Z, prior_mean=m)[0]
    assert_allclose(np.linalg.solve(kernel(Z, Z), f - m), t - expit(f), atol=1e-4)


def test_many_points_are_judged_as_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surrogate, "AT_ONCE", 50)  # four points at a time
    Z, t = labelled(12, 2, 4)
    A = np.random.default_rng(1).normal(size=(30, 2))
    posterior = fit(Z, t, prior_mean=-1.0)
    each = np.array([posterior.latent(a[None], -1.0) for a in A])[:, :, 0].T
    assert_allclose(posterior.latent(A, -1.0), each, atol=1e-9)
    assert_allclose(posterior.latent(A, -1.0, posterior.kernel.metric.squared(A, Z)), each, atol=1e-9)


def test_tuning_to_all_points_or_to_some_leads_to_the_same_mode() -> None:
    """Newton's method begins where tuning ended, which has no say in where it ends."""
    Z, t = labelled(40, 3, 5)
    for n_tuning in (10, 40):
        tuned = fit(Z, t, n_tuning=n_tuning)
        assert_allclose(tuned.a, fit(Z, t, kernel=tuned.kernel).a, atol=1e-6)


def test_points_that_almost_coincide_with_contrary_labels_are_survived() -> None:
    Z = np.repeat(np.random.default_rng(0).normal(size=(10, 3)), 3, axis=0)
    Z[1::3] += 1e-12
    t = np.tile([0.0, 1.0, 1.0], 10)
    for kernel in (Matern(100.0, 30.0), Matern(1e4, 0.01)):
        mean, variance = fit(Z, t, kernel=kernel).latent(Z)
        assert np.isfinite(mean).all()
        assert (variance >= 0).all()


def test_fitted_hyperparameters_beat_their_neighbours() -> None:
    Z, t = labelled(60, 3, 5)
    best = fit(Z, t)

    def density(variance: float, ell: float) -> float:
        typical = np.sqrt(2 * max(float(Z.var(axis=0).sum()), 1.0))
        weak = surrogate.Hyperprior()
        u = np.log(variance / weak.variance[0]) / weak.variance[1]
        v = np.log(ell / typical / weak.ell[0]) / weak.ell[1]
        return fit(Z, t, kernel=Matern(variance, ell)).log_marginal_likelihood - 0.5 * float(u**2 + v**2)

    top = density(best.kernel.variance, best.kernel.ell)
    for times in (0.5, 2.0):
        assert density(best.kernel.variance * times, best.kernel.ell) < top + 1e-3
        assert density(best.kernel.variance, best.kernel.ell * times) < top + 1e-3
