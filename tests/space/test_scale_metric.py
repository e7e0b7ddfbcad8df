"""Very many categories are counted, not laid out in columns, and nothing but time and memory is different."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.neighbors import LocalOutlierFactor

import acex
from acex.arrays import FloatArray
from acex.search.hints import outcome_model
from acex.search.surrogate import fit, regress
from acex.space.feature import MOST_ONE_HOT
from acex.space.kinds import Continuous, Nominal
from acex.space.plausibility import Plausibility
from acex.space.scale import EUCLIDEAN, Metric, Quantiles, Scale
from acex.space.space import Space

N_TOWNS = 4 * MOST_ONE_HOT
TOWNS = Space(
    (
        Nominal("town", tuple(range(N_TOWNS))),
        Continuous("size", -5.0, 5.0),
        Nominal("colour", ("red", "green", "blue")),
        Nominal("street", tuple(f"street {i}" for i in range(N_TOWNS // 2))),
    )
)


def towns(n: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, int(high) + 1, n) // rng.integers(1, 9, n) for high in TOWNS.high]
    return np.column_stack([codes[0], rng.normal(size=n), codes[2], codes[3]]).astype(float)


def laid_out(scale: Scale, Z: FloatArray) -> FloatArray:
    """The coordinates with each code in a column of its own, whatever that takes."""
    squares, w = scale.metric.squares, len(scale.metric.squares)
    blocks = [(Z[:, j, None] == np.arange(N_TOWNS)) * np.sqrt(s / 2) for j, s in enumerate(squares, start=-w)]
    return np.hstack([Z[:, :-w], *blocks])


REFERENCE = towns(400)
SCALE = Scale.of(TOWNS, REFERENCE)


def test_very_many_categories_take_one_coordinate() -> None:
    Z = SCALE.coordinates(REFERENCE)
    assert Z.shape == (400, 1 + 3 + 2)  # size, three colours, town and street
    assert Quantiles.of(SCALE, REFERENCE).coordinates(REFERENCE).shape == Z.shape
    assert_allclose(SCALE.metric.from_one(Z, Z[0]), np.linalg.norm(SCALE.differences(REFERENCE, REFERENCE[0]), axis=1))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 99))
def test_distances_are_those_of_one_hot_columns(a: int, b: int, seed: int) -> None:
    A, B = (SCALE.coordinates(towns(n, seed + n)) for n in (a, b))
    squared = cdist(laid_out(SCALE, A), laid_out(SCALE, B), "sqeuclidean")
    assert_allclose(SCALE.metric.squared(A, B), squared, atol=1e-9)
    assert_allclose(SCALE.metric.from_one(A, B[0]), np.sqrt(squared[:, 0]), atol=1e-7)
    assert_allclose(SCALE.metric.total_variance(A), laid_out(SCALE, A).var(axis=0).sum())


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_the_nearest_are_those_of_a_full_sort(a: int, b: int, k: int, seed: int) -> None:
    k = min(k, b)
    A, B = (SCALE.coordinates(towns(n, seed + n)) for n in (a, b))
    distances, which = SCALE.metric.nearest(A, B, k)
    every = np.sqrt(SCALE.metric.squared(A, B))
    assert_array_equal(distances, np.sort(every, axis=1)[:, :k])
    assert_array_equal(np.take_along_axis(every, which, axis=1), distances)


def test_nearest_are_found_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    Z = SCALE.coordinates(REFERENCE)
    at_once = SCALE.metric.nearest(Z, Z, 5)
    monkeypatch.setattr("acex.space.scale.AT_ONCE", 1000)
    for part, whole in zip(SCALE.metric.nearest(Z, Z, 5), at_once, strict=True):
        assert_array_equal(part, whole)


def test_without_codes_it_is_the_euclidean_distance() -> None:
    A, B = np.random.default_rng(0).normal(size=(2, 7, 3))
    assert_array_equal(EUCLIDEAN.squared(A, B), cdist(A, B, "sqeuclidean"))
    assert_array_equal(Metric(np.zeros(0)).from_one(A, B[0]), np.linalg.norm(A - B[0], axis=1))


def test_outlier_factors_are_scikit_learns_on_one_hot_columns() -> None:
    density = Plausibility(neighbours=15).fit(REFERENCE, SCALE)
    lof = LocalOutlierFactor(n_neighbors=15, novelty=True).fit(laid_out(SCALE, SCALE.coordinates(REFERENCE)))
    X = towns(60, seed=1)
    assert_allclose(density.score(X), lof.score_samples(laid_out(SCALE, SCALE.coordinates(X))), rtol=1e-6)


def test_the_surrogate_is_that_of_one_hot_columns() -> None:
    X, A = towns(40, seed=2), towns(25, seed=3)
    Z, B = SCALE.coordinates(X), SCALE.coordinates(A)
    hits = (X[:, 1] + (X[:, 0] > 9) > 0.5).astype(float)
    counted, columns = fit(Z, hits, metric=SCALE.metric), fit(laid_out(SCALE, Z), hits)
    assert_allclose(counted.kernel.ell, columns.kernel.ell, rtol=1e-6)
    assert_allclose(counted.probability(B), columns.probability(laid_out(SCALE, B)), rtol=1e-6)
    (moments, gradients), (same, others) = (
        f.joint(z[0]).with_gradients(b)
        for f, z, b in ((counted, Z, B), (columns, laid_out(SCALE, Z), laid_out(SCALE, B)))
    )
    assert_allclose(moments, same, rtol=1e-6, atol=1e-9)
    for mine, other in zip(gradients, others, strict=True):
        assert_allclose(SCALE.pull_back(mine), SCALE.pull_back(other), rtol=1e-6, atol=1e-9)
    options: Any = {"noise": 0.3, "typical": 2.0}
    seen = regress(Z, X[:, 1], metric=SCALE.metric, **options).latent(B)
    assert_allclose(seen, regress(laid_out(SCALE, Z), X[:, 1], **options).latent(laid_out(SCALE, B)), rtol=1e-6)


def test_a_hint_learns_from_categories_but_not_a_rows_own_outcome() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    space = Space((Nominal("town", tuple(range(n))), Continuous("noise", 0.0, 1.0)))
    often = np.column_stack([rng.integers(0, 100, n), rng.random(n)]).astype(float)
    hint = outcome_model(space, often, often[:, 0] < 50)
    assert hint is not None
    assert hint(often[often[:, 0] < 50]).mean() > 0.9 > 0.1 > hint(often[often[:, 0] >= 50]).mean()
    once = np.column_stack([np.arange(n), rng.random(n)])  # a town is met once, and outcomes are a coin's
    by_chance = rng.random(n) < 0.5
    hint = outcome_model(space, once, by_chance)
    assert hint is not None
    elsewhere = np.column_stack([once[:, 0], rng.random(n)])
    assert abs(hint(elsewhere[by_chance]).mean() - hint(elsewhere[~by_chance]).mean()) < 0.1


def explained(n_towns: int, strategy: Any) -> acex.Explanation:
    rng = np.random.default_rng(0)
    names = [f"town {i}" for i in range(n_towns)]
    data = pd.DataFrame({"town": pd.Categorical(rng.choice(names, 400), names), "income": rng.normal(size=400)})
    poor = data[data["income"] < 0].iloc[0]
    return acex.explain(lambda r: np.where(r["income"] > 1, "yes", "no"), poor, data=data, budget=20, strategy=strategy)


@pytest.mark.parametrize("strategy", [acex.Feasible(), acex.Penalty(n0=5, sobol=64)])
def test_no_table_has_a_column_for_each_category(strategy: Any) -> None:
    peaks = []
    for n_towns in (5, 5, 5000):  # the first time much is loaded
        tracemalloc.start()
        assert explained(n_towns, strategy).outcome == "found"
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    one_hot = 400 * 5000 * 8  # bytes that one-hot columns of the data alone would take
    assert peaks[2] < peaks[1] + one_hot / 2
