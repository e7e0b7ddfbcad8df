"""The search as a value, and the order of the published algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from acex.arrays import BoolArray, FloatArray
from acex.search.feasible import Feasible
from acex.search.penalty import Penalty
from acex.search.problem import Problem, Query, key
from acex.search.search import Search
from acex.space.kinds import Continuous, Integer
from acex.space.plausibility import Plausibility
from acex.space.region import Region
from acex.space.space import Space
from problems import DISCRETE, MIXED, problem, run

QUICK = Penalty(n0=8, sobol=256)


@pytest.mark.parametrize("space", [MIXED, DISCRETE])
def test_every_point_asked_is_in_the_region_plausible_and_asked_once(space: Space) -> None:
    p = problem(space)
    history = run(Search.begin(p, QUICK)).history
    assert p.region.contains(history.X[1:]).all()
    assert p.plausible(history.X[1:]).all()
    assert len({key(x) for x in history.X}) == len(history.X)


@pytest.mark.parametrize("strategy", [Feasible(), QUICK], ids=["feasible", "penalty"])
def test_every_point_asked_has_the_listed_values(strategy: Any) -> None:
    p = problem(plausible=False)
    lists: dict[str | int, Any] = {"length": [1.25, 5.0, 7.5], "children": [0, 2, 5], "income": [1000, 2500, 4999]}
    limited = replace(p, region=Region.of(p.region.space, p.factual, values=lists))
    points = run(Search.begin(limited, strategy), 25).history.X[1:]
    assert len(points) > 5
    for name, values in lists.items():
        assert set(points[:, p.region.space.index(name)]) <= set(values)


def test_the_same_answers_lead_to_the_same_questions() -> None:
    first = run(Search.begin(problem(), QUICK, seed=3), 25).history
    second = run(Search.begin(problem(), QUICK, seed=3), 25).history
    other = run(Search.begin(problem(), QUICK, seed=4), 25).history
    assert_array_equal(first.X, second.X)
    assert not np.array_equal(first.X[: len(other.X)], other.X[: len(first.X)])


def test_asking_twice_changes_nothing_and_telling_leaves_the_old_search_alone() -> None:
    search = run(Search.begin(problem(), QUICK), 12)
    query = search.ask()
    assert query is not None and search.ask() is query
    assert len(search.tell(query, True).history.queries) == 13
    assert len(search.history.queries) == 12


def test_a_search_is_rebuilt_from_what_it_was_told() -> None:
    search = run(Search.begin(problem(), QUICK), 20)
    rebuilt = Search.begin(search.problem, QUICK)
    for query, hit in list(zip(search.history.queries, search.history.hits, strict=True))[1:]:
        rebuilt = rebuilt.tell(query, hit)
    a, b = search.ask(), rebuilt.ask()
    assert a is not None and b is not None
    assert_array_equal(a.point, b.point)


def test_the_best_is_the_cheapest_plausible_hit() -> None:
    search = run(Search.begin(problem(), QUICK))
    p, history = search.problem, search.history
    good = history.is_hit & p.plausible(history.X)
    assert good.any() and search.best is not None
    assert_allclose(p.cost(search.best[None]), p.cost(history.X[good]).min())


def test_an_implausible_hit_is_evidence_but_never_the_best() -> None:
    space = Space((Continuous("a", 0, 10), Continuous("b", 0, 10)))
    p = problem(space)
    p = replace(p, density=Plausibility().fit(p.reference / 20, p.scale))  # the usual fills a corner only
    strange = np.array([9.0, 9.0])
    assert not p.plausible(strange[None])[0]
    search = Search.begin(p, QUICK).tell(Query(strange, "initial"), True)
    assert search.best is None
    assert search.history.is_hit.any()


def test_rounds_follow_the_paper() -> None:
    """n0 points, then lambda grows by the power 1.5 from 10 while below 1e15: seven acquisitions, one Sobol step."""
    history = run(Search.begin(problem(), QUICK), 40).history
    purposes = [q.purpose for q in history.queries]
    assert purposes[:8] == ["factual"] + ["initial"] * 7
    first_round = [q for q in history.queries if q.round == 1]
    assert [q.purpose for q in first_round] == ["acquire"] * (len(first_round) - 1) + ["boundary"]
    penalties = [q.penalty for q in first_round[:-1]]
    schedule = [10.0]
    while schedule[-1] ** 1.5 < 1e15:
        schedule.append(schedule[-1] ** 1.5)
    assert len(schedule) == 7
    assert set(penalties) <= set(schedule) and penalties == sorted(penalties)


def test_the_search_settles_after_two_rounds_without_a_closer_counterfactual() -> None:
    search = run(Search.begin(problem(), QUICK), 300)
    assert search.stop_reason == "settled"
    history, p = search.history, search.problem
    rounds = np.array([q.round for q in history.queries])
    cost = np.where(history.is_hit & p.plausible(history.X), p.cost(history.X), np.inf)
    assert rounds[cost.argmin()] <= rounds[-1] - 2


def test_where_nothing_is_a_hit_a_small_space_is_exhausted() -> None:
    space = Space((Integer("a", 0, 3), Integer("b", 0, 3)))
    search = run(Search.begin(problem(space, plausible=False), QUICK), 100, never=True)
    assert search.stop_reason in ("exhausted", "unlikely")
    assert len(search.history.queries) <= 16


def test_one_class_in_all_evidence_is_survived() -> None:
    search = run(Search.begin(problem(), QUICK), 30, never=True)
    assert len(search.history.queries) == 30 or search.stop_reason == "unlikely"
    assert search.best is None


@pytest.mark.parametrize("initial", ["reference", "normal"])
def test_initial_points_come_from_where_they_were_asked_from(initial: str) -> None:
    p = problem()
    settings = Penalty(n0=10, initial=initial, sobol=64)  # type: ignore[arg-type]
    points = run(Search.begin(p, settings), 10).history.X[1:]
    rows = {key(x) for x in p.projected}
    from_reference = [key(x) in rows for x in points]
    assert all(from_reference) if initial == "reference" else not any(from_reference)


def moons_like(X: FloatArray) -> BoolArray:
    return np.asarray(np.sin(3 * X[:, 0]) + X[:, 1] > 0.8)


def test_in_two_dimensions_it_comes_close_to_the_nearest_flip() -> None:
    space = Space((Continuous("a", -2, 2), Continuous("b", -2, 2)))
    p: Problem = problem(space, plausible=False)
    search = Search.begin(p, Penalty(n0=6))
    before = moons_like(p.factual[None])[0]
    while len(search.history.queries) < 40 and (query := search.ask()) is not None:
        search = search.tell(query, bool(moons_like(query.point[None])[0] != before))
    axis = np.linspace(-2, 2, 401)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    limit = p.cost(grid[moons_like(grid) != before]).min()
    assert search.best is not None
    assert p.cost(search.best[None])[0] < 1.3 * limit + 0.05


def test_settings_out_of_range_are_refused() -> None:
    for wrong in (
        {"n0": 0},
        {"lambda_0": 1.0},
        {"lambda_0": 10.0, "lambda_max": 5.0},
        {"growth": 1.0},
        {"epsilon": -1.0},
        {"sobol": 0},
        {"kernel": "rbf"},
        {"initial": "random"},
    ):
        with pytest.raises(ValueError, match=next(reversed(wrong))):
            Penalty(**wrong)


# -- a short counterfactual beside a long one --------------------------------------------------------------

SIX = Space(tuple(Continuous(f"f{j}", -10.0, 10.0) for j in range(6)))


@pytest.mark.parametrize(("is_needed", "purpose"), [(True, "short"), (False, "undo")])
def test_queries_are_reserved_for_a_short_one_only_if_many_changes_are_needed(is_needed: bool, purpose: str) -> None:
    p = problem(SIX, plausible=False)
    hit = p.region.snap((p.factual + 0.5 / p.scale.per_unit)[None])[0]
    search = Search.begin(p, Feasible(), budget=9, offers_short=True).tell(Query(hit, "first"), True)
    for j in range(6):  # each change reverted alone is a miss, or something else is
        miss = hit.copy() if is_needed else p.factual.copy()
        miss[j] = p.factual[j] if is_needed else hit[j]
        search = search.tell(Query(miss, "refine"), False)
    assert [query.purpose for query in search.propose(1)] == [purpose]
    assert [query.purpose for query in replace(search, offers_short=False).propose(1)] != ["short"]
