"""Strategy "feasible": its coordinates, the search and its stops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

import acex
from acex.arrays import BoolArray
from acex.search import feasible
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


def test_no_chance_is_stated_where_rules_leave_nothing_cheaper() -> None:
    days = pd.date_range("2020-01-01", periods=300)
    data = pd.DataFrame({"day": days, "other": np.arange(300) % 17})

    def model(rows: pd.DataFrame) -> list[str]:
        return ["yes" if day > pd.Timestamp("2020-06-01") else "no" for day in rows["day"]]

    e = acex.explain(model, data.iloc[5], data, rules=["day >= '2020-07-01'"], budget=10)
    assert e.counterfactual["day"] == pd.Timestamp("2020-07-01")
    assert e.improvement_odds == () and not any(remark.code == "may_be_improved" for remark in e.remarks)
