"""What a belief reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from acex.arrays import FloatArray
from acex.search.belief_inputs import ADDITIVE_NOISE, ADDITIVE_VARIANCE, NAMES, belief_inputs, search_inputs
from acex.search.evidence import Evidence, Points, SearchContext
from acex.search.hints import outcome_model
from acex.search.problem import History, Problem, Query
from acex.space.cost import CostFunction
from acex.space.kinds import Continuous
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space
from problems import MIXED, decide, evidence, hinted, problem


@pytest.mark.parametrize("n", [0, 1, 12])
@pytest.mark.parametrize("hinted", [False, True])
def test_inputs_are_finite_throughout_a_search(n: int, hinted: bool) -> None:
    p = problem(MIXED)
    if hinted:
        p = replace(p, hint=outcome_model(p.region.space, p.reference, decide(p, p.reference)))
    seen = belief_inputs(evidence(p, n), Points(p.cached(SearchContext), np.vstack([p.projected[:40], p.factual])))
    assert seen.shape == (41, len(NAMES))
    assert np.isfinite(seen).all()


def scaled_problem(unit: FloatArray) -> Problem:
    rng = np.random.default_rng(4)
    reference = rng.normal(size=(80, 3)) * unit
    space = Space(tuple(Continuous(f"f{j}", -9 * u, 9 * u) for j, u in enumerate(unit)))
    scale = Scale.of(space, reference)
    x = reference[0]
    region = Region.of(space, x)
    quantiles = Quantiles.of(scale, reference)
    return Problem(region, CostFunction(scale, x, space.weights), scale, reference[1:], None, quantiles)


def test_how_long_ago_the_last_hit_was_is_counted_in_queries() -> None:
    e = evidence(problem(), 12)
    own = e.hits[1:]
    misses = next((i for i, hit in enumerate(own[::-1]) if hit), len(own))  # from the end, the first row left out
    assert own.any()
    assert search_inputs(e)["since_hit"] == pytest.approx(np.log1p(misses))


def test_inputs_do_not_depend_on_the_units_of_features() -> None:
    seen = []
    for unit in (np.ones(3), np.array([1000.0, 1.0, 0.01])):
        p = scaled_problem(unit)
        history = History((), ()).with_answer(Query(p.factual, "factual"), False)
        for i in range(6):
            history = history.with_answer(Query(p.reference[i], "row"), i % 2 == 0)
        seen.append(
            belief_inputs(Evidence(p, history, history.is_hit), Points(p.cached(SearchContext), p.reference[10:30]))
        )
    assert_allclose(seen[0], seen[1], atol=1e-4)


def test_far_from_all_evidence_a_point_is_as_likely_as_known_outcomes_say() -> None:
    p = hinted(problem())
    e = Evidence(p, History((), ()).with_answer(Query(p.factual, "factual"), False), np.zeros(1, dtype=bool))
    x = Points(e.context, p.projected)
    farthest = x[np.argsort(e.context.distance(x.Z))[-3:]]
    mean, variance = e.latent(farthest, hinted=True)
    assert e.by_hint is not None and e.by_hint.kernel(farthest.Z, e.points.Z).max() < 0.1 * variance.min()
    expected = np.where(decide(p, farthest.X), np.log(0.8 / 0.2), np.log(0.3 / 0.7))
    assert_allclose(mean, expected, atol=0.3)


def test_ten_hits_in_one_do_not_make_a_point_surer_than_four() -> None:
    d = 10
    space = Space(tuple(Continuous(f"f{j}", 0, 1) for j in range(d)))
    p = problem(space, plausible=False)
    history = History((), ()).with_answer(Query(p.factual, "factual"), False)
    for j in range(d):  # each feature alone makes a hit
        history = history.with_answer(Query(np.where(np.arange(d) == j, 1.0, p.factual), "row"), True)
    e = Evidence(p, history, history.is_hit)
    x = Points(e.context, np.vstack([np.ones(d), *e.points.X[1:3]]))
    unit = ADDITIVE_VARIANCE / e.context.typical_change
    smaller = [np.minimum(a[:, None], e.points.R).sum(axis=2) * unit for a in (e.points.R, x.R)]
    weights = np.linalg.solve(smaller[0] + ADDITIVE_NOISE * np.eye(d + 1), e.hits.astype(float))
    expected = 2 * smaller[1] @ weights - 1
    assert expected[0] > 5 > 4 > expected[1] > 0
    seen = belief_inputs(e, x)[:, NAMES.index("additive_mean")]
    assert_allclose(seen, [4.0, *expected[1:]], rtol=1e-6)
