"""Several counterfactuals, different from each other; counterfactuals with a margin; scores."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import acex
from acex.arrays import FloatArray
from acex.search.belief import Belief
from acex.search.evidence import Points, SearchContext
from acex.search.feasible import Feasible
from acex.search.problem import History, Known, Problem, Query
from acex.search.search import Search
from acex.search.strategy import ranked_counterfactuals
from acex.space.kinds import Continuous
from acex.space.space import Space
from problems import MIXED, decide, problem

CUBE = Space(tuple(Continuous(f"f{j}", -3, 3) for j in range(5)))


def either_of_two(p: Problem, X: FloatArray) -> FloatArray:
    """How far beyond the threshold: one deviation away in the first feature, or one and a half in the second.

    Away means up or down: a factual has room for that on one side at least.
    """
    z = np.abs(X - p.factual) * p.scale.per_unit
    return np.asarray(np.maximum(z[:, 0] - 1.0, z[:, 1] - 1.5))


def run(search: Search, n: int, scored: bool = False) -> Search:
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        height = float(either_of_two(search.problem, query.point[None])[0])
        search = search.tell(query, height > 0, 3 * height if scored else None)
    return search


def numeric(seed: int = 0) -> Problem:
    """A problem with five numbers and no plausibility."""
    return problem(CUBE, seed=seed, plausible=False)


# -- what is different ---------------------------------------------------------------------------------


def test_different_means_that_each_rests_on_a_feature_the_other_does_not() -> None:
    p = numeric()
    x = p.factual
    sigma = p.scale.deviations

    def moved(*steps: tuple[int, float]) -> FloatArray:
        y = x.copy()
        for j, step in steps:
            y[j] += step * sigma[j]
        return y

    a, b = moved((0, 1.0)), moved((1, 1.0))
    both, crumb = moved((0, 1.0), (1, 1.0)), moved((0, 1.0), (1, 0.01))
    assert p.alternatives(np.array([a, b]), 2) == [0, 1]
    assert p.alternatives(np.array([a, both]), 2) == [0]  # all of the first, and more
    assert p.alternatives(np.array([both, a]), 2) == [0]
    assert p.alternatives(np.array([a, crumb]), 2) == [0]
    assert p.alternatives(np.array([crumb, b, moved((2, 1.0))]), 2) == [0, 1]
    assert p.alternatives(np.array([moved((0, 1.0), (1, 1.0)), moved((1, 1.0), (2, 1.0))]), 5) == [0, 1]


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_released_points_leave_something_of_each_set_alone_and_stay_in_the_region(seed: int) -> None:
    p = problem(MIXED)
    rng = np.random.default_rng(seed)
    movable = np.flatnonzero(p.region.movable)
    sets = tuple(frozenset(rng.choice(movable, rng.integers(1, 4), replace=False).tolist()) for _ in range(2))
    apart = p.excluding(sets)
    X = apart.made_different(p.region.snap(p.reference))
    assert p.region.contains(X).all()
    for taken in sets:
        assert (X[:, sorted(taken)] == p.home[sorted(taken)]).any(axis=1).all()
    assert p.excluding(sets) is apart  # worked out once


@pytest.mark.parametrize("seed", range(3))
def test_two_ways_are_found_where_there_are_two(seed: int) -> None:
    search = run(Search.begin(numeric(seed), Feasible(), seed, count=2, budget=60), 60)
    p, found = search.problem, search.history.X[search.counterfactuals]
    features = [p.main_features(x) for x in found]
    assert len(found) == 2
    assert (either_of_two(p, found) > 0).all()
    assert 0 in features[0] | features[1] and 1 in features[0] | features[1]
    assert all(not (a <= b or b <= a) for a, b in combinations(features, 2))


def test_rounds_divide_the_budget_and_the_first_gets_most() -> None:
    search = run(Search.begin(numeric(), Feasible(effort="spend"), count=3, budget=40), 40)
    rounds = [q.round for q in search.history.queries]
    assert rounds == sorted(rounds) and set(rounds) <= {0, 1, 2}
    assert rounds.count(0) == 20  # two of four shares
    one = run(Search.begin(numeric(), Feasible(effort="spend")), 20)
    assert np.array_equal(one.history.X, search.history.X[:20])


def test_when_no_different_counterfactual_exists_the_search_ends() -> None:
    line = Space((Continuous("a", -3, 3),))
    p = problem(line, plausible=False)
    search = Search.begin(p, Feasible(), count=3, budget=100)
    while len(search.history.queries) < 100 and (query := search.ask()) is not None:
        search = search.tell(query, bool(abs(query.point[0] - p.factual[0]) > 1))
    assert search.stop_reason == "settled" and len(search.counterfactuals) == 1


# -- margin --------------------------------------------------------------------------------------------


def survives(p: Problem, x: FloatArray) -> float:
    """The share of neighbours, a tenth of a deviation away in every feature, that are hits."""
    noise = np.random.default_rng(1).normal(size=(200, len(x))) * 0.1 * p.scale.deviations
    return float((either_of_two(p, x + noise) > 0).mean())


def test_with_a_margin_counterfactuals_survive_small_perturbations_more_often() -> None:
    plain: list[float] = []
    steady: list[float] = []
    for seed in range(5):
        for margin, out in ((None, plain), (0.7, steady)):
            search = run(Search.begin(numeric(seed), Feasible(effort="spend", margin=margin), seed), 40)
            if search.best is not None:
                out.append(survives(search.problem, search.best))
    assert np.mean(plain) + 0.1 < np.mean(steady)


def test_those_that_keep_the_margin_come_first_and_then_the_steadiest() -> None:
    search = run(Search.begin(numeric(), Feasible(effort="spend", margin=0.7)), 40)
    best = search.history.X[ranked_counterfactuals(search.problem, search.history, 0.7)]
    steadiness, cost = Belief(search.problem, search.history).robustness(best), search.problem.cost(best)
    keeps = steadiness >= 0.7
    assert keeps.any() and not keeps.all()
    assert (np.diff(keeps.astype(int)) <= 0).all()
    assert (np.diff(cost[keeps]) >= 0).all() and (np.diff(steadiness[~keeps]) <= 0).all()


@pytest.mark.parametrize("wrong", [0.0, 1.0, -1, "high", np.nan])
def test_a_margin_that_is_no_probability_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"margin: .*got "):
        Feasible(margin=wrong)  # type: ignore[arg-type]


# -- scores --------------------------------------------------------------------------------------------


def test_scores_find_as_cheap_a_hit_with_fewer_queries() -> None:
    costs: dict[bool, list[float]] = {False: [], True: []}
    for scored in (False, True):
        for seed in range(6):
            p = numeric(seed)
            odds = 3 * float(either_of_two(p, p.factual[None])[0]) if scored else None
            search = run(Search.begin(p, Feasible(effort="spend"), seed, odds=odds), 20, scored)
            costs[scored].append(np.inf if search.best is None else float(p.cost(search.best[None])[0]))
    assert np.median(costs[True]) < np.median(costs[False])


def test_a_score_says_more_than_its_label() -> None:
    p = numeric()
    x = p.projected[p.cost(p.projected) > 0][0]
    queries = (Query(p.factual, "factual"), Query(x, "first"))
    near = Points(p.cached(SearchContext), x[None] + 0.3)
    likely, unlikely = (
        Belief(p, History(queries, (False, False), (-2.0, odds))).probability(near)[0] for odds in (-0.1, -3.0)
    )
    assert likely > unlikely


# -- what is known from elsewhere ------------------------------------------------------------------------


def test_a_hit_that_is_known_is_asked_first_and_misses_never() -> None:
    p = problem(MIXED)
    rows = p.projected[p.plausible(p.projected) & (p.cost(p.projected) > 0)]
    hits = decide(p, rows)
    known = Known(rows, hits)
    search = Search.begin(p, Feasible()).with_known(known)
    query = search.ask()
    assert query is not None and query.purpose == "known"
    assert p.cost(query.point[None])[0] == p.cost(rows[hits]).min()
    misses = {x.tobytes() for x in rows[~hits]}
    for _ in range(15):
        if query is None:
            break
        assert (query.point + 0.0).tobytes() not in misses
        search = search.tell(query, bool(decide(p, query.point[None])[0]))
        query = search.ask()


def test_a_round_of_proposals_has_no_point_twice_and_begins_with_the_next_question() -> None:
    search = run(Search.begin(numeric(), Feasible(effort="spend")), 12)
    proposed = search.propose(6)
    first = search.ask()
    assert first is not None and np.array_equal(proposed[0].point, first.point)
    assert len({q.point.tobytes() for q in proposed}) == 6
    assert not {q.point.tobytes() for q in proposed} & {x.tobytes() for x in search.history.X}


@pytest.mark.parametrize("row", [1, 3, 4])
def test_a_search_in_rounds_leaves_budget_to_check_its_changes(row: int) -> None:
    loans = acex.datasets.loan()
    forest = RandomForestClassifier(50, random_state=0).fit(loans.codes, loans.outcomes)
    rejected = loans.rows[forest.predict(loans.codes) == "rejected"]
    explainer = acex.Explainer(lambda rows: forest.predict(loans.space.encode(rows)), loans.rows)
    e = explainer.explain(rejected.iloc[row], target="approved", budget=16, queries_per_round=8)
    assert e.outcome == "found" and e.n_queries <= 16
    assert "not checked" not in {mark for marks in e.ending.needed for mark in marks.values()}
    for first in {step.note.first for step in e.steps}:
        assert len({step.purpose == "undo" for step in e.steps if step.note.first == first}) == 1
