"""Points and evidence as a belief sees them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from acex.search.belief_inputs import search_inputs
from acex.search.evidence import Points, SearchContext, in_common, joined
from problems import MIXED, evidence, hinted, problem


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_what_changes_have_in_common_is_the_sum_of_the_smaller_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, T = np.maximum(rng.normal(size=(4, 5)), 0), np.maximum(rng.normal(size=(3, 5)), 0)
    expected = [[sum(min(a, b) for a, b in zip(s, t, strict=True)) for t in T] for s in S]
    assert_allclose(in_common(S, T), expected, atol=1e-12)


def test_directions_add_up_to_the_length_of_all_steps() -> None:
    p = problem(MIXED)
    points = Points(p.cached(SearchContext), p.projected[:30])
    assert_allclose(points.S.sum(axis=1), np.abs(p.cost.steps(points.X)).sum(axis=1))
    assert (points.S >= 0).all() and (points.R >= 0).all()


def test_net_changes_have_as_much_in_common_as_those_by_direction() -> None:
    p = problem(MIXED)
    points = Points(p.cached(SearchContext), p.projected[:30])
    for by_direction, net in ((points.S, points.net_S), (points.R, points.net_R)):
        assert net.shape[1] == by_direction.shape[1] - len(p.scale.numeric)
        assert_allclose(in_common(net, net), in_common(by_direction, by_direction), atol=1e-12)


def test_points_keep_what_is_known_of_them_when_chosen_or_joined() -> None:
    p = problem(MIXED)
    points = Points(p.cached(SearchContext), p.projected[:20])
    assert_allclose(points.Z, p.quantiles.coordinates(points.X))
    assert_allclose(points[np.arange(5)].Z, p.quantiles.coordinates(points.X[:5]))
    assert_allclose(joined(points[:5], points[5:]).costs, p.cost(points.X))


def test_known_outcomes_are_as_good_as_they_foretold_the_answers() -> None:
    p = hinted(problem())
    e = evidence(p, 12)
    own, says = e.hits[1:], p.hint(e.points.X[1:])  # type: ignore[misc]
    rate = sum(own) / len(own)
    assert 0.1 < rate < 0.9
    gained = [np.log(s / rate) if hit else np.log((1 - s) / (1 - rate)) for s, hit in zip(says, own, strict=True)]
    assert sum(gained) / np.sqrt(13) < 4  # where it is cut off
    assert search_inputs(e)["hint_success"] == pytest.approx(sum(gained) / np.sqrt(13))


def test_where_answers_are_not_wrong_the_evidence_is_what_was_answered() -> None:
    e = evidence(problem(), 12)
    assert e.labels.tolist() == e.hits.astype(float).tolist()
