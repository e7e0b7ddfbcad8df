"""The proved optimum is the optimum: compared with every point of a small space."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from acex.arrays import FloatArray, IntArray
from acex.space.kinds import Continuous, Integer
from acex.space.space import Space
from benchmarks.scenario import Scenario
from benchmarks.suites import optimum
from benchmarks.task import Task

WHOLE = Space((Integer("a", 0, 7), Integer("b", 0, 7), Integer("c", 0, 7), Integer("stays", 0, 7, frozen=True)))
REAL = Space((Continuous("a", 0, 7), Continuous("b", 0, 7), Integer("c", 0, 7)))
FOREST = RandomForestClassifier(12, random_state=0)
BOOSTING = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=5, random_state=0)
needs_solvers = pytest.mark.skipif(
    not (find_spec("ortools") and find_spec("treecf")), reason="needs pip install 'acex[optimum]'"
)


def task(space: Space, model: Any, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    X = space.snap(space.low + rng.random((150, len(space))) * (space.high - space.low))
    y: IntArray = (X[:, 0] + X[:, 1] - X[:, 2] + rng.normal(0, 1, 150) > 5).astype(np.intp)
    model.fit(X, y)
    g = Scenario("small", space, model, X[:3], X, y, X.std(axis=0), np.zeros(len(space), dtype=bool))
    return Task(g, X[seed % 3])


def scores(ensemble: Any, X: FloatArray) -> FloatArray:
    """The ensemble's score of points, by walking down each tree."""
    total = np.full(len(X), ensemble.base)
    for tree in ensemble.trees:
        for i, x in enumerate(X):
            node = 0
            while tree.feature[node] >= 0:
                goes_left = np.float32(x[tree.feature[node]]) <= tree.threshold[node]
                node = int((tree.left if goes_left else tree.right)[node])
            total[i] += tree.value[node]
    return total


@pytest.mark.parametrize("space", [WHOLE, REAL])
@pytest.mark.parametrize("model", [FOREST, BOOSTING], ids=["forest", "boosting"])
def test_an_ensemble_decides_as_its_model(space: Space, model: Any) -> None:
    t = task(space, model)
    X = space.snap(space.low + np.random.default_rng(1).random((300, len(space))) * (space.high - space.low))
    found = scores(optimum.Ensemble.of(t.scenario), X)
    clear = np.abs(found) > 1e-9
    assert clear.mean() > 0.9
    assert ((found > 0)[clear] == (t.scenario.predict(X) == 1)[clear]).all()


def test_just_beyond_a_cut_is_beyond_it_in_single_precision() -> None:
    for cut in (0.1, 107.0, 1e-7, 3.3333333333, 2.0**24 + 0.5):
        assert np.float32(optimum.above(cut)) > cut >= np.float32(optimum.below(cut))
        assert optimum.above(cut) - optimum.below(cut) <= 2 * np.spacing(np.float32(cut))


def test_an_axis_prices_each_cut_by_the_nearest_value_beyond_it() -> None:
    t = task(WHOLE, FOREST)
    axis = optimum.Axis.of(t, optimum.Ensemble.of(t.scenario), 0, most=np.inf)
    x, unit = t.x[0], t.scenario.deviations[0]
    for cut, is_up, price in zip(axis.cuts, axis.is_up, axis.prices, strict=True):
        values = np.arange(8.0)
        beyond = values[values > cut] if is_up else values[values <= cut]
        assert price == int(np.floor(np.abs(beyond - x).min() / unit * optimum.UNIT))
    near = optimum.Axis.of(t, optimum.Ensemble.of(t.scenario), 0, most=6 * 1.0)
    assert len(near.cuts) < len(axis.cuts) and near.prices.max(initial=0) <= optimum.UNIT


@needs_solvers
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", [FOREST, BOOSTING], ids=["forest", "boosting"])
def test_the_least_cost_is_that_of_the_cheapest_of_all_points(model: Any, seed: int) -> None:
    t = task(WHOLE, model, seed)
    axes = [np.arange(8.0)] * 3 + [t.x[3:]]
    everything = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    hits = everything[t.scenario.predict(everything) != t.scenario.predict(t.x[None])[0]]
    least = t.cost(hits).min()
    found = optimum.bounds(t, optimum.Ensemble.of(t.scenario), seconds=20.0)
    assert found.is_proved and found.upper == pytest.approx(least) and found.lower <= least + 1e-9
    assert found.lower == pytest.approx(least, abs=1e-3)


@needs_solvers
def test_with_real_numbers_no_point_of_a_fine_grid_is_cheaper() -> None:
    t = task(REAL, FOREST)
    fine = np.linspace(0, 7, 141)
    everything = np.stack(np.meshgrid(fine, fine, np.arange(8.0), indexing="ij"), axis=-1).reshape(-1, 3)
    hits = everything[t.scenario.predict(everything) != t.scenario.predict(t.x[None])[0]]
    found = optimum.bounds(t, optimum.Ensemble.of(t.scenario), seconds=20.0)
    assert found.is_proved and found.upper <= t.cost(hits).min() + 1e-9


@needs_solvers
def test_where_no_hit_exists_that_is_proved() -> None:
    frozen = Space((Integer("a", 0, 7, frozen=True), Integer("b", 0, 7)))
    X = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    y: IntArray = (X[:, 0] > 3).astype(np.intp)  # of what is frozen alone
    forest = RandomForestClassifier(5, max_features=None, random_state=0).fit(X, y)
    g = Scenario("small", frozen, forest, X[:1], X, y, X.std(axis=0), np.zeros(2, dtype=bool))
    found = optimum.bounds(Task(g, X[0]), optimum.Ensemble.of(g), seconds=20.0)
    assert found.lower == np.inf and found.is_proved
