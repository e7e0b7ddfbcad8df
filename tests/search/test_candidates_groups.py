"""Groups of changes reverted together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from acex.arrays import BoolArray, FloatArray
from acex.search import candidates
from acex.search.candidates import CHANCE, EXPECTED, MIN_CHANGES, p_needed, reverted_groups
from acex.search.feasible import Feasible
from acex.search.problem import History, Problem, Query, Stop
from acex.space.kinds import Continuous
from acex.space.space import Space
from problems import DISCRETE, problem


def wide(d: int) -> Problem:
    return problem(Space(tuple(Continuous(f"f{j}", 0.0, 10.0) for j in range(d))), plausible=False)


def without(p: Problem, hit: FloatArray, reverted: BoolArray) -> FloatArray:
    return np.where(reverted, p.factual, hit)


def history_of(p: Problem, *answers: tuple[FloatArray, bool]) -> History:
    history = History((), ()).with_answer(Query(p.factual, "factual"), False)
    for point, hit in answers:
        history = history.with_answer(Query(point, "refine"), hit)
    return history


@given(st.lists(st.booleans(), min_size=8, max_size=8).filter(any).filter(lambda u: not all(u)))
@settings(max_examples=30, deadline=None)
def test_after_one_miss_probabilities_are_those_of_bayes(reverted: list[bool]) -> None:
    p, U = wide(8), np.array(reverted)
    hit = p.factual + 1.0
    q = p_needed(p, history_of(p, (hit, True), (without(p, hit, U), False)), hit, np.arange(8))
    # All sets of needed changes, weighted: a miss if one of them was reverted, otherwise only by noise.
    prior = min(0.5, EXPECTED / 8)
    needed = np.array(list(product([False, True], repeat=8)))
    weight = np.where(needed, prior, 1 - prior).prod(axis=1) * np.where((needed & U).any(axis=1), 1.0, CHANCE)
    assert_allclose(q, weight @ needed / weight.sum(), rtol=1e-9)


def test_changes_whose_group_was_reverted_with_a_hit_are_hardly_needed() -> None:
    p = wide(8)
    hit, U = p.factual + 1.0, np.arange(8) < 4
    q = p_needed(p, history_of(p, (without(p, hit, U), True), (without(p, hit, ~U), False)), hit, np.arange(8))
    assert q[:4].max() < 0.1 < 0.4 < q[4:].min()  # 0.375 before


def test_a_point_between_says_nothing_about_groups() -> None:
    p = wide(8)
    hit = p.factual + 1.0
    q = p_needed(p, history_of(p, (p.factual + 0.5, False)), hit, np.arange(8))
    assert_allclose(q, min(0.5, EXPECTED / 8))


@given(st.integers(MIN_CHANGES, 30), st.integers(0, 20))
@settings(max_examples=20, deadline=None)
def test_points_have_some_changes_of_the_hit_and_the_product_as_probability(d: int, seed: int) -> None:
    p, rng = wide(d), np.random.default_rng(seed)
    hit = np.clip(p.factual + rng.uniform(0.5, 2.0, d), 0.0, 10.0)
    hit[p.factual == hit] -= 1.0
    history = history_of(p, (hit, True), (without(p, hit, rng.random(d) < 0.5), False))
    X, probability = reverted_groups(p, history, hit, rng)
    q = p_needed(p, history, hit, np.arange(d))
    reverted = p.factual == X
    assert ((hit == X) | reverted).all() and reverted.any(axis=1).all() and not reverted.all(axis=1).any()
    assert_allclose(probability, np.where(reverted, 1 - q, 1.0).prod(axis=1).clip(1e-6), rtol=1e-9)


def test_hits_with_few_changes_and_small_regions_have_no_groups() -> None:
    p = wide(MIN_CHANGES + 1)
    hit = p.factual.copy()
    hit[: MIN_CHANGES - 1] += 1.0
    assert len(reverted_groups(p, history_of(p), hit, np.random.default_rng(0))[0]) == 0
    small = problem(DISCRETE, plausible=False)
    assert len(reverted_groups(small, history_of(small), small.projected[1], np.random.default_rng(0))[0]) == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_decisive_columns_among_many_are_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p, decisive = wide(120), [5, 12, 19]

    def n_changes() -> int:
        """Of the best hit after 30 queries."""
        history, hits = history_of(p), []
        while len(history.queries) < 30:
            query = Feasible(effort="spend").next_query(p, history, seed=seed)
            assert not isinstance(query, Stop)
            hit = bool((abs(query.point - p.factual)[decisive] > 2.0).all())
            history = history.with_answer(query, hit)
            hits += [query.point] if hit else []
        return int((min(hits, key=lambda x: float(p.cost(x[None])[0])) != p.factual).sum())

    found = n_changes()
    monkeypatch.setattr(candidates, "MIN_CHANGES", 1000)
    assert found <= 10 < n_changes()
