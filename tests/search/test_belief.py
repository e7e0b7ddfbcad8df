"""The learned belief: what it reads, its weights, and the stopping."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from acex.arrays import FloatArray
from acex.search import stopping
from acex.search.belief import WEIGHTS, Belief, BeliefNetwork, load_network
from acex.search.belief_inputs import ADDITIVE_NOISE, ADDITIVE_VARIANCE, NAMES, REVISION, belief_inputs, search_inputs
from acex.search.candidates import from_reference
from acex.search.evidence import Evidence, Points, SearchContext, in_common, joined
from acex.search.feasible import Feasible
from acex.search.hints import outcome_model
from acex.search.problem import History, Problem, Query
from acex.search.search import Search
from acex.space.cost import CostFunction
from acex.space.kinds import Continuous
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space
from problems import MIXED, decide, problem


def asked(p: Problem, n: int = 12) -> History:
    """A history of random points with their answers."""
    history = Search.begin(p, Feasible()).history
    for x in from_reference(p, np.random.default_rng(1), n):
        history = history.with_answer(Query(x, "row"), bool(decide(p, x[None])[0]))
    return history


def evidence(p: Problem, n: int = 12) -> Evidence:
    history = asked(p, n)
    return Evidence(p, history, history.is_hit)


# -- weights ---------------------------------------------------------------------------------------------


def test_the_weights_were_trained_on_the_current_inputs() -> None:
    """To change the meaning of an input, increase the revision and train: python -m benchmarks train."""
    hit, ahead = load_network("hit_"), load_network("outlook_")
    assert hit is not None and ahead is not None
    assert (hit.revision, hit.names) == (REVISION, NAMES)
    assert (ahead.revision, ahead.names) == (REVISION, stopping.NAMES)


def test_the_weights_are_those_of_the_record_and_small() -> None:
    record = json.loads(WEIGHTS.with_suffix(".json").read_text())
    assert record["sha256 of weights.npz"] == hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
    assert record["revision of traits"] == REVISION
    assert WEIGHTS.stat().st_size <= 200_000


def test_a_network_gives_what_its_formula_says() -> None:
    rng = np.random.default_rng(0)
    W, b, V, c = (rng.normal(size=shape) for shape in ((3, 4), (4,), (4, 2), (2,)))
    network = BeliefNetwork(np.ones(3), np.full(3, 2.0), ((W, b), (V, c)), ("x", "y", "z"), 1)
    x = rng.normal(size=(5, 3))
    z = ((x - 1) / 2) @ W + b
    assert_allclose(network.log_odds(x), (z / (1 + np.exp(-z))) @ V + c, rtol=1e-5)


def test_a_network_is_read_as_it_was_written(tmp_path) -> None:  # type: ignore[no-untyped-def]
    network = load_network("hit_")
    assert network is not None
    np.savez(tmp_path / "w.npz", **network.arrays("other_"))  # type: ignore[arg-type]
    again = BeliefNetwork.load(tmp_path / "w.npz", "other_")
    x = np.random.default_rng(0).normal(size=(4, len(NAMES)))
    assert_allclose(again.log_odds(x), network.log_odds(x))
    assert again.names == network.names


# -- belief_inputs ----------------------------------------------------------------------------------------------


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


def hinted(p: Problem) -> Problem:
    return replace(p, hint=lambda X: np.where(decide(p, X), 0.8, 0.3))


def test_known_outcomes_are_as_good_as_they_foretold_the_answers() -> None:
    p = hinted(problem())
    e = evidence(p, 12)
    own, says = e.hits[1:], p.hint(e.points.X[1:])  # type: ignore[misc]
    rate = sum(own) / len(own)
    assert 0.1 < rate < 0.9
    gained = [np.log(s / rate) if hit else np.log((1 - s) / (1 - rate)) for s, hit in zip(says, own, strict=True)]
    assert sum(gained) / np.sqrt(13) < 4  # where it is cut off
    assert search_inputs(e)["hint_success"] == pytest.approx(sum(gained) / np.sqrt(13))


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


def test_where_answers_are_not_wrong_the_evidence_is_what_was_answered() -> None:
    e = evidence(problem(), 12)
    assert e.labels.tolist() == e.hits.astype(float).tolist()


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


def test_a_point_within_a_miss_is_less_likely_than_one_that_holds_a_hit() -> None:
    p = problem(MIXED, plausible=False)
    history = asked(p, 20)
    assert history.is_hit.any()
    belief = Belief(p, history)
    hit, miss = history.X[history.is_hit][0], history.X[1:][~history.is_hit[1:]][0]
    numeric = ~p.scale.is_nominal
    near_hit = p.region.snap(np.where(numeric, p.factual + 0.98 * (hit - p.factual), hit)[None])
    in_miss = p.region.snap(np.where(numeric, p.factual + 0.9 * (miss - p.factual), miss)[None])
    likely, unlikely = belief.probability(Points(p.cached(SearchContext), np.vstack([near_hit, in_miss])))
    assert likely > unlikely


# -- outlook ---------------------------------------------------------------------------------------------


def test_an_outlook_gives_chances_and_what_is_much_cheaper_is_less_likely() -> None:
    p = problem(MIXED)
    strategy = Feasible()
    search = Search.begin(p, strategy)
    while search.best is None and (query := search.ask()) is not None:
        search = search.tell(query, bool(decide(p, query.point[None])[0]))
    tenth, quarter, half = strategy.improvement_odds(p, search.history)
    assert 1 >= tenth >= quarter >= half >= 0


def test_an_outlook_reads_the_likeliest_and_the_tenth_likeliest_of_what_saves_enough() -> None:
    e = evidence(problem(), 3)
    for n in (9, 10, 12):
        probability, saving = np.linspace(0.1, 0.9, n), np.full(n, 0.3)  # enough for all but the half
        seen = dict(zip(stopping.NAMES, stopping.stopping_inputs(e, probability, saving), strict=True))
        tenth = sorted(probability)[-10] if n >= 10 else 0.0
        for least in (0.05, 0.1, 0.25):
            assert (seen[f"greatest_{least}"], seen[f"tenth_{least}"]) == (0.9, tenth)
        assert (seen["greatest_0.5"], seen["tenth_0.5"]) == (0.0, 0.0)
        assert seen["expected"] == pytest.approx(0.27)


def test_without_weights_anything_may_be_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acex.search.belief.load_network", lambda prefix: None)
    ahead = stopping.Forecast.of(evidence(problem(), 3), np.ones(1), np.ones(1))
    assert (ahead.saves_soon, ahead.improvement_odds) == (1.0, (1.0, 1.0, 1.0))


def test_before_the_first_counterfactual_there_is_no_outlook() -> None:
    p = problem(MIXED)
    assert Feasible().improvement_odds(p, Search.begin(p, Feasible()).history) == ()
