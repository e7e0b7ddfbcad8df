"""Strategy "feasible": its coordinates, candidates and stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from acex.arrays import BoolArray
from acex.search import feasible
from acex.search.candidates import enumerate_region, from_hits, from_reference, random_points, simplified
from acex.search.feasible import Feasible, _implausible_hit, _Round
from acex.search.hints import as_outcomes, outcome_model
from acex.search.problem import Problem, Query, Stop, key
from acex.search.search import Search
from acex.space.kinds import Continuous, Integer, Nominal
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space
from problems import DISCRETE, MIXED, all_points, decide, problem, reference_rows


def run(search: Search, n: int = 60, never: bool = False) -> Search:
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        search = search.tell(query, not never and bool(decide(search.problem, query.point[None])[0]))
    return search


# -- quantile coordinates --------------------------------------------------------------------------------


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_ranks_are_scipys_mid_ranks_on_the_reference(seed: int) -> None:
    reference = reference_rows(MIXED, 50, seed)
    quantiles = Quantiles.of(Scale.of(MIXED, reference), reference)
    expected = (np.apply_along_axis(rankdata, 0, reference) - 0.5) / 50
    assert_allclose(quantiles.ranks(reference), expected, atol=1e-12)


def test_every_numeric_feature_has_unit_variance_in_quantile_coordinates() -> None:
    reference = reference_rows(MIXED, 300)
    reference[:, 4] = np.rint(np.exp(reference[:, 4] / 700))  # a heavy tail
    scale = Scale.of(MIXED, reference)
    Z = Quantiles.of(scale, reference).coordinates(reference)
    assert_allclose(Z[:, : len(scale.numeric)].std(axis=0), 1.0, atol=1e-9)
    assert_allclose(Z[:, len(scale.numeric) :], scale.coordinates(reference)[:, len(scale.numeric) :])


def test_a_share_of_the_way_begins_at_the_factual_and_ends_at_the_row() -> None:
    p = problem()
    rows = p.reference[1:20]
    for in_ranks in (np.zeros((19, 1), dtype=bool), np.ones((19, 1), dtype=bool)):
        zero = p.quantiles.between(p.factual, rows, np.zeros((19, 1)), in_ranks)
        one = p.quantiles.between(p.factual, rows, np.ones((19, 1)), in_ranks)
        half = p.quantiles.between(p.factual, rows, np.full((19, 1), 0.5), in_ranks)
        assert_array_equal(zero, np.repeat(p.factual[None], 19, axis=0))
        assert_array_equal(one, rows)
        low, high = np.minimum(p.factual, rows), np.maximum(p.factual, rows)
        numeric = ~p.scale.is_nominal
        assert ((half >= low - 1e-9) & (half <= high + 1e-9))[:, numeric].all()
        assert (half[:, ~numeric] == rows[:, ~numeric]).all()


def test_what_is_wanted_of_a_way_is_as_if_all_were_wanted() -> None:
    p, rng = problem(MIXED), np.random.default_rng(3)
    rows, share, in_ranks = p.reference[1:20], rng.random((19, 1)), rng.random((19, 1)) < 0.5
    wanted = rng.random(rows.shape) < 0.5
    whole = p.quantiles.between(p.factual, rows, share, in_ranks)
    part = p.quantiles.between(p.factual, rows, share, in_ranks, wanted)
    assert_array_equal(part[wanted], whole[wanted])
    ranks = p.quantiles.ranks(np.vstack([p.factual, rows]))
    along = ranks[0] + share * (ranks[1:] - ranks[0])
    curved = np.flatnonzero(in_ranks)
    numeric = [j for j in p.scale.numeric if p.scale.space.features[j].codes(p.region.allowed[j]) is None]
    assert numeric
    assert_allclose(p.quantiles.ranks(whole)[np.ix_(curved, numeric)], along[np.ix_(curved, numeric)], atol=1e-9)


# -- candidates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [MIXED, DISCRETE])
def test_candidates_keep_to_the_region(space: Space) -> None:
    p = problem(space)
    rng = np.random.default_rng(0)
    for X in (from_reference(p, rng, 500), from_hits(p, rng, p.projected[:5], 500)):
        assert p.region.contains(X).all()
        assert len(np.unique(X, axis=0)) > 20


def test_variations_of_a_hit_are_mostly_cheaper_than_it() -> None:
    p = problem()
    hits = p.projected[:3]
    X = from_hits(p, np.random.default_rng(0), hits, 900)
    assert (p.cost(X) < p.cost(hits).max()).mean() > 0.6


def test_of_the_variations_of_a_hit_every_third_undoes_changes_and_the_others_shrink_them_or_add_noise() -> None:
    wide = Space(tuple(Continuous(f"f{j}", -50, 50) for j in range(6)))
    p = problem(wide, plausible=False)
    hit = p.factual - np.sign(p.factual) * p.scale.deviations
    X = from_hits(p, np.random.default_rng(0), hit[None], 900)
    undone = (p.factual == X).mean(axis=1)
    assert undone[0::3].mean() > 0.3 and undone[1::3].max() == undone[2::3].max() == 0
    share = (X - p.factual) / (hit - p.factual)
    assert ((share[1::3] >= 0) & (share[1::3] <= 1 + 1e-9)).all()
    assert (X[2::3] == hit).mean() > 0.5


def test_a_small_region_is_listed_in_full() -> None:
    p = problem(DISCRETE)
    X = enumerate_region(p)
    assert X is not None
    assert {key(x) for x in X} == {key(x) for x in all_points(DISCRETE)}
    assert enumerate_region(problem(MIXED)) is None


def test_simpler_versions_of_a_hit_undo_each_change_and_cost_less() -> None:
    p = problem(plausible=False)
    hit = p.region.snap((p.factual + np.array([3.0, 2, 1, 0, 900, 0]))[None])[0]
    hit[3] = (p.factual[3] + 1) % 3
    X = simplified(p, hit)
    assert p.region.contains(X).all()
    assert (p.cost(X) <= p.cost(hit[None])[0]).all()
    changed = np.flatnonzero(hit != p.factual)
    for j in changed:
        undone = hit.copy()
        undone[j] = p.factual[j]
        assert (undone == X).all(axis=1).any()


def test_points_anywhere_reach_beyond_the_reference_and_keep_to_the_region() -> None:
    space = Space((Continuous("a", -10, 10), Continuous("b", -10, 10), Nominal("c", ("x", "y", "z"))))
    p = problem(space, plausible=False)
    reference = p.reference / np.array([4.0, 4.0, 1.0])
    p = replace(p, reference=reference, quantiles=Quantiles.of(p.scale, reference))
    X = random_points(p, np.random.default_rng(0), 400)
    assert p.region.contains(X).all()
    low, high = (end(np.vstack([p.reference, p.factual])[:, :2], axis=0) for end in (np.min, np.max))
    assert (X[:, :2].max(axis=0) > high).all()
    assert (X[:, :2] >= low - (high - low) / 4).all() and (X[:, :2] <= high + (high - low) / 4).all()
    assert set(X[:, 2]) == {0.0, 1.0, 2.0}


# -- the search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [MIXED, DISCRETE])
def test_every_point_asked_is_in_the_region_plausible_and_asked_once(space: Space) -> None:
    p = problem(space)
    history = run(Search.begin(p, Feasible())).history
    assert p.region.contains(history.X[1:]).all()
    assert p.plausible(history.X[1:]).all()
    assert len({key(x) for x in history.X}) == len(history.X)


def test_the_same_answers_lead_to_the_same_questions() -> None:
    first, second = (run(Search.begin(problem(), Feasible(), seed=3), 30).history for _ in range(2))
    assert_array_equal(first.X, second.X)


def test_a_search_is_rebuilt_from_what_it_was_told() -> None:
    search = run(Search.begin(problem(), Feasible(effort="spend")), 25)
    rebuilt = Search.begin(problem(), Feasible(effort="spend"))
    for query, hit in list(zip(search.history.queries, search.history.hits, strict=True))[1:]:
        rebuilt = rebuilt.tell(query, hit)
    a, b = search.ask(), rebuilt.ask()
    assert a is not None and b is not None
    assert_array_equal(a.point, b.point)


@pytest.mark.parametrize("seed", range(4))
def test_where_all_points_can_be_listed_the_cheapest_hit_is_found(seed: int) -> None:
    p = problem(DISCRETE, seed=seed)
    X = all_points(DISCRETE)
    good = decide(p, X) & p.plausible(X)
    if not good.any():
        pytest.skip("this factual has no counterfactual")
    search = run(Search.begin(p, Feasible(effort="spend")), 80)
    assert search.best is not None
    assert_allclose(p.cost(search.best[None])[0], p.cost(X[good]).min())


def test_it_comes_close_to_the_limit_within_forty_queries() -> None:
    space = Space((*(Continuous(f"f{j}", -2, 2) for j in range(4)), Nominal("g", ("a", "b", "c"))))
    ratios = []
    for seed in range(5):
        p = problem(space, seed=seed, plausible=False)
        search = run(Search.begin(p, Feasible(effort="spend"), seed), 40)
        # A hit is one deviation up in the first two together: cheapest along one of them alone.
        limit = (1 + p.cost.beta) * 1.0
        assert search.best is not None
        ratios.append(p.cost(search.best[None])[0] / limit)
    assert np.median(ratios) < 1.15


def test_the_search_settles_by_itself() -> None:
    search = run(Search.begin(problem(), Feasible()), 300)
    assert search.stop_reason == "settled"
    patient = run(Search.begin(problem(), Feasible(effort="spend")), len(search.history.queries) + 20)
    assert len(patient.history.queries) > len(search.history.queries)


def test_where_nothing_is_a_hit_it_gives_up() -> None:
    space = Space((Integer("a", 0, 3), Integer("b", 0, 3)))
    search = run(Search.begin(problem(space, plausible=False), Feasible()), 100, never=True)
    assert search.stop_reason in ("exhausted", "unlikely")
    assert len(search.history.queries) <= 16


@pytest.mark.parametrize(("budget", "earliest"), [(30, 15), (200, 40)])
def test_it_does_not_give_up_before_half_of_the_budget_or_40_queries(budget: int, earliest: int) -> None:
    p = problem()
    history = Search.begin(p, Feasible()).history
    for i in range(earliest - 1):
        assert isinstance(Feasible().next_query(p, history, seed=0, budget=budget), Query)
        x = p.factual.copy()
        x[0] += 1e-3 * (i + 1)
        history = history.with_answer(Query(x, "first", max_p_hit=0.0), False)
    assert Feasible().next_query(p, history, seed=0, budget=budget) == Stop("unlikely")


# -- known outcomes --------------------------------------------------------------------------------------


def with_hint(p: Problem, outcomes: BoolArray) -> Problem:
    return replace(p, hint=outcome_model(p.region.space, p.reference, outcomes))


def test_known_outcomes_lead_to_a_first_hit_sooner() -> None:
    plain: list[int] = []
    hinted: list[int] = []
    for seed in range(6):
        p = problem(seed=seed)
        told = with_hint(p, decide(p, p.reference))
        for q, out in ((p, plain), (told, hinted)):
            history = run(Search.begin(q, Feasible()), 30).history
            out.append(int(history.is_hit.argmax()) if history.is_hit.any() else 30)
    assert np.median(hinted) == 1  # the first query after the factual's own
    assert np.mean(hinted) < np.mean(plain)


def test_useless_outcomes_do_little_harm() -> None:
    plain: list[float] = []
    misled: list[float] = []
    for seed in range(6):
        p = problem(seed=seed)
        wrong = with_hint(p, np.random.default_rng(seed).permutation(decide(p, p.reference)))
        for q, out in ((p, plain), (wrong, misled)):
            best = run(Search.begin(q, Feasible(effort="spend")), 30).best
            out.append(np.inf if best is None else float(p.cost(best[None])[0]))
    assert np.median(misled) <= 1.3 * np.median(plain)


def test_with_outcomes_a_search_that_has_found_the_cheapest_point_ends() -> None:
    """Nothing is left that saves anything, also for the forest of the outcomes."""
    p = problem(DISCRETE, seed=1)
    told = with_hint(p, decide(p, p.reference))
    search = run(Search.begin(told, Feasible(effort="spend")), 130)
    assert search.stop_reason == "settled" and search.best is not None


def test_outcomes_of_one_side_only_are_no_hint() -> None:
    p = problem()
    assert outcome_model(p.region.space, p.reference, np.zeros(len(p.reference), dtype=bool)) is None


def test_outcomes_must_be_one_per_row() -> None:
    with pytest.raises(ValueError, match=r"outcomes: .*3 rows.*\(2,\)"):
        as_outcomes(["a", "b"], 3)


@pytest.mark.parametrize("wrong", [-0.1, 0.0, 1.0, np.nan, "a"])
def test_an_invalid_tolerance_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="tolerance"):
        Feasible(tolerance=wrong)


@pytest.mark.parametrize("wrong", ["all", "", None, 0.05])
def test_an_invalid_effort_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="effort"):
        Feasible(effort=wrong)


def test_a_larger_tolerance_stops_earlier() -> None:
    n_asked = [len(run(Search.begin(problem(), Feasible(tolerance=t)), 60).history.queries) for t in (0.01, 0.05, 0.9)]
    assert n_asked == sorted(n_asked, reverse=True) and n_asked[0] > n_asked[-1]


def test_with_a_margin_only_the_likeliest_points_have_a_p_success(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem()
    history = run(Search.begin(p, Feasible()), 12).history
    assert history.is_hit.any()
    round_ = _Round(p, Feasible(margin=0.6), history, 0, 0)
    points = round_.context.candidates[:40]
    monkeypatch.setattr(feasible, "MAX_ROBUSTNESS_CHECKS", 5)
    probability = round_.belief.probability(points)
    chance = round_._p_success(points)
    likeliest = probability >= sorted(probability)[-5]
    assert (chance[~likeliest] == 0).all() and (chance[likeliest] > 0).all()
    assert_allclose(chance[likeliest], (probability * round_.belief.robustness(points.X))[likeliest])


def test_a_round_goes_on_beyond_the_budget_where_several_are_asked_at_once() -> None:
    p = problem()
    search = run(Search.begin(p, Feasible()), 8)
    assert search.best is not None
    next_ = Feasible()._search_on(p, search.history, seed=0, count=1, budget=8)
    assert isinstance(next_, Query)
    assert_array_equal(next_.point, search.ask().point)  # type: ignore[union-attr]


def test_a_search_for_several_does_not_come_back_to_a_round_that_is_over() -> None:
    p = problem(plausible=False)
    search = run(Search.begin(p, Feasible(), count=3), 60)
    rounds = [q.round for q in search.history.queries if q.purpose != "undo"]
    assert rounds == sorted(rounds) and max(rounds) == 2


def test_the_cheapest_row_that_outcomes_call_a_hit_is_asked_where_all_of_them_are_unusual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    p = problem(plausible=False)
    limit = np.median(p.projected[:, 0])
    assert p.factual[0] > limit
    monkeypatch.setattr(Problem, "plausible", lambda self, X: X[:, 0] > limit)
    found = _implausible_hit(replace(p, hint=lambda X: np.where(X[:, 0] > limit, 0.1, 0.9)))
    unusual = p.projected[p.projected[:, 0] <= limit]
    assert found is not None
    assert_array_equal(found, unusual[p.cost(unusual).argmin()])
    assert _implausible_hit(replace(p, hint=lambda X: np.full(len(X), 0.9))) is None
