"""What stays the same while one factual is explained."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from acex.arrays import BoolArray, FloatArray
from acex.search.evidence import Evidence
from acex.search.problem import History, Known, Problem, Query, key
from acex.space.kinds import Continuous
from acex.space.space import Space
from problems import DISCRETE, MIXED, all_points, answered, problem


def test_what_was_asked_lies_outside_or_looks_unreal_may_not_be_asked() -> None:
    p = problem(MIXED)
    X = np.vstack([p.projected[:40], p.factual + 1e6])
    asked = {key(X[0]), key(X[1])}
    expected = [
        key(x) not in asked and bool(p.region.contains(x[None])[0]) and bool(p.plausible(x[None])[0]) for x in X
    ]
    assert p.admissible(X, asked).tolist() == expected
    assert 0 < sum(expected) < len(X)


def test_plausibility_of_a_point_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem(MIXED)
    assert p.density is not None
    judged: list[int] = []
    real = p.density.plausible

    def counted(density: object, X: FloatArray, least: float) -> BoolArray:
        judged.append(len(X))
        return real(X, least)

    monkeypatch.setattr(type(p.density), "plausible", counted)
    first, again = p.plausible(p.projected[:10]), p.plausible(p.projected[:12])
    assert judged == [10, 2]
    assert first.tolist() == again[:10].tolist()


def test_what_is_worked_out_once_lives_as_long_as_its_problem() -> None:
    made: list[FloatArray] = []

    def work(p: Problem) -> FloatArray:
        made.append(p.factual)
        return np.arange(3.0)

    p = problem(plausible=False)
    assert p.cached(work) is p.cached(work)
    assert len(made) == 1
    gone = weakref.ref(p)
    del p
    gc.collect()
    assert gone() is None


def test_principal_moves_are_those_of_scikit_learn() -> None:
    space = Space(tuple(Continuous(f"x{j}", -100, 100) for j in range(4)))
    p = problem(space, plausible=False)
    Z = p.reference * p.scale.per_unit
    pca = PCA().fit(Z)
    expected = pca.components_ * np.sqrt(pca.explained_variance_ * (len(Z) - 1) / len(Z))[:, None]
    moves = p.principal_moves * p.scale.per_unit
    assert_allclose(np.abs(moves), np.abs(expected), atol=1e-9)


def test_a_point_of_the_region_is_projected_to_itself_and_no_point_comes_twice() -> None:
    p = problem(DISCRETE, plausible=False)
    assert len(np.unique(p.projected, axis=0)) == len(p.projected)
    assert p.region.contains(p.projected).all()
    kept = {key(x) for x in p.projected}
    assert {key(x) for x in p.reference if p.region.contains(x[None])[0]} <= kept


def test_a_small_part_of_a_change_in_many_features_is_no_main_feature() -> None:
    """A twentieth of all steps together counts, not a twentieth of the largest."""
    space = Space(tuple(Continuous(f"x{j}", -100, 100) for j in range(5)))
    p = problem(space, plausible=False)
    steps = np.array([1.0, 1.0, 1.0, 1.0, 0.1])
    assert p.main_features(p.factual + steps / p.scale.per_unit) == {0, 1, 2, 3}
    alone = np.array([1.0, 0.0, 0.0, 0.0, 0.1])
    assert p.main_features(p.factual + alone / p.scale.per_unit) == {0, 4}


def test_alternatives_are_the_first_that_rest_on_something_of_their_own() -> None:
    p = problem(DISCRETE, plausible=False)
    X = all_points(DISCRETE)
    X = X[np.argsort(p.cost(X), kind="stable")][1:200]
    chosen: list[int] = []
    for i, x in enumerate(X):  # by the definition, one after the other
        mine = p.main_features(x)
        if all(mine - p.main_features(X[k]) and p.main_features(X[k]) - mine for k in chosen):
            chosen.append(i)
    assert p.alternatives(X, 3) == chosen[:3]
    apart = p.excluding((p.main_features(X[0]),))
    assert apart is p.excluding((p.main_features(X[0]),))
    assert not apart.is_different(X[:1])[0] and apart.is_different(X[chosen[1:2]])[0]


def test_released_points_leave_a_feature_of_every_set_alone() -> None:
    p = problem(MIXED, plausible=False)
    taken = (frozenset({0, 1}), frozenset({4}))
    apart = p.excluding(taken)
    for x in apart.made_different(p.projected[:50]):
        for features in taken:
            assert any(x[j] == p.home[j] for j in features)


def test_a_history_is_a_value() -> None:
    p = problem(plausible=False)
    history = answered(p, 5)
    more = history.with_answer(Query(p.projected[-1], "row"), True)
    assert (len(history.queries), len(more.queries)) == (5, 6)
    assert more.only(np.arange(5)).hits == history.hits
    assert more.is_hit[-1] and key(p.projected[-1]) in more.asked


def test_known_misses_are_useless_and_known_hits_are_not() -> None:
    p = problem(plausible=False)
    X = p.projected[:2]
    history = History((Query(p.factual, "factual"),), (False,), known=Known(X, np.array([True, False])))
    assert history.redundant == {key(p.factual), key(X[1])}


def test_minus_zero_and_zero_are_one_point() -> None:
    assert key(np.array([0.0, 1.0])) == key(np.array([-0.0, 1.0])) != key(np.array([0.0, 2.0]))


def test_candidates_of_a_large_reference_are_made_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem(MIXED)
    assert p.sample is p.reference  # a small table is used as it is
    monkeypatch.setattr("acex.search.problem.MAX_REFERENCE", 50)
    large = replace(p)
    assert len(large.sample) == 50
    assert len(large.projected) <= 50
    assert (large.sample == replace(p).sample).all()  # the same one each time
    assert large.in_reference(p.reference[:60]).all()  # statistics come from all rows
    assert not large.in_reference(p.reference[:1] + 0.123).any()
    assert_allclose(large.ends, (p.reference.min(axis=0), p.reference.max(axis=0)))


def test_a_long_search_learns_from_its_most_informative_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem(MIXED)
    history = answered(p, 40)
    everything = Evidence(p, history, history.is_hit)
    assert len(everything.points) == len(history.queries)  # a short one from all
    monkeypatch.setattr("acex.search.evidence.MAX_OWN", 16)
    fewer = Evidence(p, answered(p, 40), history.is_hit)
    assert len(fewer.points) == 16
    assert (fewer.points.X[0] == p.factual).all()
    assert (fewer.points.X[-8:] == history.X[-8:]).all()
    assert everything.best is not None and fewer.best is not None
    assert (fewer.points.X[fewer.best] == everything.points.X[everything.best]).all()
