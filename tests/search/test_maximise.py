"""Climbing, branch and bound, and the proposals they make."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

from acex.arrays import BoolArray, FloatArray
from acex.search import maximise as maximise_module
from acex.search.maximise import (
    MAX_NODES,
    _added,
    _expand,
    _levels,
    _Node,
    along_climbs,
    climb,
    maximise,
    relaxed_features,
)
from acex.search.penalty import ImprovementScore, Penalty, _Surrogate, around_factual
from acex.search.problem import Problem
from acex.space.feature import MOST_ONE_HOT
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.space import Space
from problems import DISCRETE, MIXED, all_points, answered, problem


def score_of(p: Problem, penalty: float = 178.0, seed: int = 0) -> ImprovementScore:
    return _Surrogate(p, Penalty(), answered(p, seed=seed)).improvement(penalty)


def anything(X: FloatArray) -> BoolArray:
    return np.ones(len(X), dtype=bool)


def starts_of(p: Problem, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return around_factual(p, rng, 40, np.ones(40), rng.random(40))


@pytest.mark.parametrize("penalty", [10.0, 178.0, 1e8])
def test_gradient_of_the_score_is_exact_where_it_is_smooth(penalty: float) -> None:
    p = problem()
    score = score_of(p, penalty)
    x = p.factual + 0.3 * np.where(p.region.space.is_nominal, 0, p.scale.deviations)
    value, by_cost, gradient = score.with_gradient(x[None])
    assert_allclose(value, score(x[None]), rtol=1e-9)
    numeric_features = p.scale.numeric
    z = p.cost.steps(x[None])[0]
    by_features = by_cost[0] * (z / np.linalg.norm(z) + p.cost.beta * np.sign(z)) * p.cost.per_unit + gradient[0]
    unit = p.scale.deviations

    def along(u: FloatArray) -> float:
        y = x.copy()
        y[numeric_features] += u * unit[numeric_features]
        return float(score(y[None])[0])

    numeric = approx_fprime(np.zeros(len(numeric_features)), along, 1e-6)
    assert_allclose((by_features * unit)[numeric_features], numeric, atol=1e-4 * max(1e-2, np.abs(numeric).max()))


@pytest.mark.parametrize("penalty", [10.0, 178.0, 1e8])
def test_a_climb_never_ends_below_its_start(penalty: float) -> None:
    p = problem()
    score, relaxed = score_of(p, penalty), relaxed_features(p.region)
    starts = starts_of(p)[:5]
    ends = climb(score, p.cost, p.region, starts, relaxed)
    assert score(ends).sum() >= score(starts).sum() - 1e-12
    assert (ends[:, ~relaxed] == starts[:, ~relaxed]).all()
    assert ((ends >= p.region.low - 1e-9) & (ends <= p.region.high + 1e-9)).all()


def test_the_optimiser_starts_at_the_starts_with_the_exact_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem()
    score, relaxed, starts = score_of(p, 10.0), relaxed_features(p.region), starts_of(p)
    apart = np.abs(starts - p.factual)[:, relaxed] > 0.05 * p.scale.deviations[relaxed]
    starts = starts[apart.all(axis=1)][:3]  # the gradient has no kinks there
    assert (starts < p.factual)[:, relaxed].any() and (starts > p.factual)[:, relaxed].any()
    errors = []

    def not_moving(loss: Callable[[FloatArray], tuple[float, FloatArray]], pq: FloatArray, **_: Any) -> Any:
        def value(x: FloatArray) -> float:
            return loss(x)[0]

        used = pq > 0  # of p and q one is used
        numeric = approx_fprime(pq, value, 1e-4)
        errors.append(np.abs(loss(pq)[1] - numeric)[used].max() / np.abs(numeric).max())
        return SimpleNamespace(x=pq)

    monkeypatch.setattr(maximise_module, "minimize", not_moving)
    assert_allclose(climb(score, p.cost, p.region, starts, relaxed), starts, atol=1e-12)
    assert errors[0] < 1e-3


def test_only_continuous_features_and_long_ranges_are_relaxed() -> None:
    assert relaxed_features(problem().region).tolist() == [True, False, False, False, True, False]


@st.composite
def discrete_spaces(draw: st.DrawFn) -> Space:
    kinds = draw(st.lists(st.sampled_from(["integer", "ordinal", "nominal"]), min_size=2, max_size=4))
    features: list[Integer | Ordinal | Nominal] = []
    for j, kind in enumerate(kinds):
        k = draw(st.integers(2, 5))
        categories = tuple("abcdefg"[:k])
        match kind:
            case "integer":
                features.append(Integer(f"f{j}", 0, k - 1))
            case "ordinal":
                features.append(Ordinal(f"f{j}", categories))
            case _:
                features.append(Nominal(f"f{j}", categories))
    return Space(tuple(features))


@given(discrete_spaces(), st.sampled_from([10.0, 178.0, 1e5, 1e12]), st.integers(0, 50))
@settings(max_examples=40, deadline=None)
def test_in_a_discrete_space_the_proposal_is_the_best_of_all_points(space: Space, penalty: float, seed: int) -> None:
    p = problem(space, seed=seed, plausible=False)
    score = score_of(p, penalty, seed)
    everything = p.region.snap(all_points(space))
    asked = answered(p, seed=seed).asked
    allowed = p.admissible(everything, asked)
    found = maximise(score, p.cost, p.region, starts_of(p, seed), lambda X: p.admissible(X, asked))
    values = np.where(allowed, score(everything), 0.0)
    if found is None:
        assert values.max() <= 1e-12
        return
    assert_allclose(found[1], values.max(), rtol=1e-9, atol=1e-14)


@given(discrete_spaces(), st.sampled_from([10.0, 178.0, 1e5, 1e12]), st.integers(0, 50))
@settings(max_examples=40, deadline=None)
def test_no_point_of_a_node_beats_its_bound(space: Space, penalty: float, seed: int) -> None:
    p = problem(space, seed=seed, plausible=False)
    score = score_of(p, penalty, seed)
    levels = _levels(score, p.cost, p.region, relaxed_features(p.region), p.factual[None])
    root = _Node((), 0.0, 0.0, np.zeros(len(score.evidence)))
    children, bounds = _expand(score, p.cost, levels[0], [root])
    everything = all_points(space)
    values = score(everything)
    for child, bound in zip(children, bounds, strict=True):
        inside = everything[:, levels[0].feature] == child.values[0]
        assert values[inside].max() <= bound + 1e-12
    grandchildren, bounds = _expand(score, p.cost, levels[1], children)
    for child, bound in zip(grandchildren, bounds, strict=True):
        inside = (everything[:, [level.feature for level in levels[:2]]] == child.values).all(axis=1)
        assert values[inside].max() <= bound + 1e-12


def test_bounds_hold_with_relaxed_features_too() -> None:
    p = problem(plausible=False)
    score = score_of(p)
    levels = _levels(score, p.cost, p.region, relaxed_features(p.region), p.factual[None])
    children, bounds = _expand(score, p.cost, levels[0], [_Node((), 0.0, 0.0, np.zeros(len(score.evidence)))])
    X = p.region.snap(MIXED.low + np.random.default_rng(1).random((5000, 6)) * (MIXED.high - MIXED.low))
    near = around_factual(p, np.random.default_rng(2), 5000, np.full(5000, 0.5), np.full(5000, 0.5))
    X = np.vstack([X, near])
    values = score(X)
    for child, bound in zip(children, bounds, strict=True):
        assert values[X[:, levels[0].feature] == child.values[0]].max() <= bound + 1e-12


def test_the_cost_of_what_is_fixed_cuts_branches_off() -> None:
    """At a small penalty dear branches cannot pay: the tree is finished though it has far too many leaves."""
    space = Space(tuple(Nominal(f"f{j}", tuple("abcd")) for j in range(8)))
    p = problem(space, plausible=False)
    score = score_of(p, penalty=10.0)
    scored = []

    class Counted:
        evidence = score.evidence
        bound = staticmethod(score.bound)
        with_gradient = staticmethod(score.with_gradient)

        def __call__(self, X: FloatArray) -> FloatArray:
            scored.append(len(X))
            return score(X)

    found = maximise(Counted(), p.cost, p.region, starts_of(p), anything)
    assert found is not None
    assert p.region.size > 60_000 and sum(scored) < 2000


def test_of_too_large_a_tree_the_best_so_far_is_proposed() -> None:
    space = Space(tuple(Nominal(f"f{j}", tuple("abcd")) for j in range(9)))
    p = problem(space, plausible=False)
    assert p.region.size > MAX_NODES
    score = score_of(p, 1e12)
    found = maximise(score, p.cost, p.region, starts_of(p), anything)
    assert found is not None and found[1] >= score(p.region.snap(starts_of(p))).max()


@given(st.integers(0, 200), st.sampled_from([10.0, 2371.0, 1e11]))
@settings(max_examples=20, deadline=None)
def test_proposals_are_feasible_plausible_and_new(seed: int, penalty: float) -> None:
    p = problem(seed=seed % 5)
    asked = answered(p, seed=seed).asked
    found = maximise(score_of(p, penalty, seed), p.cost, p.region, starts_of(p, seed), lambda X: p.admissible(X, asked))
    if found is not None:
        point, _ = found
        assert p.region.contains(point[None]).all()
        assert p.plausible(point[None]).all()
        assert point.tobytes() not in asked
        assert point[5] == p.factual[5]


def test_nothing_acceptable_gives_no_proposal() -> None:
    p = problem()
    found = maximise(score_of(p), p.cost, p.region, starts_of(p), lambda X: np.zeros(len(X), dtype=bool))
    assert found is None


@pytest.mark.parametrize("space", [MIXED, DISCRETE])
def test_scores_of_the_size_of_rounding_errors_give_no_proposal(space: Space) -> None:
    """Which of them is greatest depends on the machine."""
    p = problem(space, plausible=False)
    score = score_of(p)

    class Tiny:
        evidence = score.evidence
        bound = staticmethod(score.bound)

        def __call__(self, X: FloatArray) -> FloatArray:
            return 1e-17 * score(X)

        def with_gradient(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            value, by_cost, gradient = score.with_gradient(X)
            return 1e-17 * value, 1e-17 * by_cost, 1e-17 * gradient

    assert maximise(score, p.cost, p.region, starts_of(p), anything) is not None
    assert maximise(Tiny(), p.cost, p.region, starts_of(p), anything) is None


def test_draws_around_the_factual_stay_in_the_region_and_move_something() -> None:
    p = problem()
    X = around_factual(p, np.random.default_rng(0), 500, np.full(500, 0.5), np.full(500, 0.3))
    assert p.region.contains(X).all()
    assert (p.factual != X).any(axis=1).mean() > 0.8
    everywhere = around_factual(p, np.random.default_rng(0), 500, np.full(500, 3.0), np.ones(500))
    assert (everywhere[:, 3:4] == np.arange(3)).any(axis=0).all()  # every category is drawn


def test_of_very_many_categories_the_tree_tries_those_that_it_has_met() -> None:
    towns = Nominal("town", tuple(range(4 * MOST_ONE_HOT)))
    p = problem(Space((towns, Integer("n", 0, 5), Nominal("pet", ("cat", "dog")))), plausible=False)
    starts = p.reference[:20]
    found = maximise(score_of(p), p.cost, p.region, starts, anything)
    assert found is not None
    assert found[0][0] in {*starts[:, 0], *answered(p).X[:, 0]}


def test_the_way_of_a_climb_lies_between_its_start_its_end_and_home() -> None:
    p = problem(Space((Continuous("a", 0, 10), Continuous("b", 0, 10))), plausible=False)
    score, relaxed, starts = score_of(p), relaxed_features(p.region), starts_of(p)[:4]
    ends = climb(score, p.cost, p.region, starts, relaxed)
    way = along_climbs(score, p.cost, p.region, starts, relaxed)
    both = [(end, other) for end, start in zip(ends, starts, strict=True) for other in (start, p.factual)]
    around = [
        np.linalg.norm(way - a, axis=1) + np.linalg.norm(way - b, axis=1) - np.linalg.norm(a - b) for a, b in both
    ]
    assert (np.min(around, axis=0) < 1e-6).all()
    assert all((np.abs(way - x).max(axis=1) < 1e-6).any() for x in ends)
    assert all((np.abs(way - (end + other) / 2).max(axis=1) < 1e-6).any() for end, other in both)


@pytest.mark.parametrize("space", [MIXED, DISCRETE])
def test_what_features_add_is_the_squared_distance_in_coordinates(space: Space) -> None:
    p = problem(space)
    E, X = p.reference[:30], p.reference[30:40]
    of_all = p.scale.metric.squared(p.scale.coordinates(X), p.scale.coordinates(E))
    added = [np.sum([_added(p.cost, j, x[j], E) for j in range(len(space))], axis=0) for x in X]
    assert_allclose(added, of_all, atol=1e-9)
