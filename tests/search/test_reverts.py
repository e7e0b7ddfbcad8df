"""No change that is not needed: undoing, marks, what is kept of the budget for it, and steps that nobody would see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import acex
from acex.arrays import BoolArray, FloatArray
from acex.search.belief import Belief
from acex.search.evidence import Points, SearchContext
from acex.search.feasible import Feasible
from acex.search.problem import History, Known, Problem, Query, key
from acex.search.reverts import RESERVED, Reverts
from acex.search.search import Search
from acex.space.kinds import Continuous
from acex.space.region import Region
from acex.space.space import Space
from problems import problem

CUBE = Space(tuple(Continuous(f"f{j}", -3, 3) for j in range(5)))


def first_two(p: Problem, X: FloatArray) -> BoolArray:
    """A hit needs half a deviation in both of the first two features; the others do not matter."""
    return np.asarray((np.abs(X - p.factual)[:, :2] * p.scale.per_unit[:2] > 0.5).all(axis=1))


def run(search: Search, n: int, is_hit: object = first_two) -> Search:
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        search = search.tell(query, bool(is_hit(search.problem, query.point[None])[0]))  # type: ignore[operator]
    return search


def asked(p: Problem, *points: FloatArray, hits: tuple[bool, ...], known: Known | None = None) -> History:
    history = History((), (), known=known).with_answer(Query(p.factual, "factual"), False)
    for x, hit in zip(points, hits, strict=True):
        history = history.with_answer(Query(x, "test"), hit)
    return history


def moved(p: Problem, *features: int) -> FloatArray:
    """The factual with a step of one deviation towards the middle in these features."""
    x = p.factual.copy()
    for j in features:
        x[j] -= np.sign(x[j]) * p.scale.deviations[j]
    return x


def marks(p: Problem, history: History, at: int = 1, steady: float | None = None) -> list[str]:
    return list(Reverts(p, history, np.array([at]), steady).marks)


# -- marks -----------------------------------------------------------------------------------------------


def test_a_change_is_needed_when_the_row_without_it_was_asked_and_missed() -> None:
    p = problem(CUBE, plausible=False)
    hit, miss = moved(p, 0, 1, 2), moved(p, 0, 2)
    assert marks(p, asked(p, hit, miss, hits=(True, False))) == ["not checked", "needed (asked)", "not checked"]


def test_the_only_change_is_needed_since_the_row_itself_was_asked() -> None:
    p = problem(CUBE, plausible=False)
    assert marks(p, asked(p, moved(p, 3), hits=(True,))) == ["needed (asked)"]


def test_a_total_moves_along_when_one_of_its_parts_is_reverted() -> None:
    """ "needed (rules)" would be wrong: the row with the part reverted and the total adjusted is allowed."""
    rng = np.random.default_rng(0)
    parts = rng.integers(10, 90, size=(300, 2))
    data = pd.DataFrame(
        {"a": parts[:, 0], "b": parts[:, 1], "total": parts.sum(axis=1), "c": rng.integers(9, size=300)}
    )

    def model(rows: pd.DataFrame) -> list[str]:
        return ["yes" if a >= 60 else "no" for a in rows["a"]]

    explainer = acex.Explainer(model, data, share_answers=False)
    rows = data[data["a"] < 40].head(8)
    for _, row in rows.iterrows():
        e = explainer.explain(row, budget=25)
        assert list(e.changes["feature"]) == ["a", "total"]
        assert e.counterfactual["total"] == e.counterfactual["a"] + e.counterfactual["b"]


def test_a_change_that_a_rule_forbids_to_revert_alone_is_not_marked_as_asked() -> None:
    """The model ignores the total: without its change, which a rule forbids, the answer would be the same."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"price": rng.integers(5, 50, 400), "n": rng.integers(1, 20, 400)})
    data["total"] = data["price"] * data["n"]

    def model(rows: pd.DataFrame) -> Any:
        return np.where(rows["price"] > 30, "yes", "no")

    explainer = acex.Explainer(model, data, share_answers=False)
    for _, row in data[model(data) == "no"].head(8).iterrows():
        changes = explainer.explain(row, budget=30).changes.set_index("feature")
        assert dict(changes["needed"]) == {"price": "needed (asked)", "total": "needed (rules)"}


def test_in_linked_relations_a_mark_is_true_of_the_row_without_the_change() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"price": rng.integers(1, 50, 300) * 0.5, "n": rng.integers(1, 12, 300)})
    data["discount"] = np.where(rng.random(300) < 0.85, 0, rng.integers(1, 20, 300) * 1.0)
    data["total"] = data["price"] * data["n"]
    data["net"] = data["total"] - data["discount"]

    def model(rows: pd.DataFrame) -> Any:
        return np.where(rows["net"] > 100, "yes", "no")

    for i in (1, 3, 7):
        e = acex.explain(model, data.iloc[i], data, budget=20)
        adjusted = {"price", "total", "net"}.intersection(e.changes["feature"])
        for feature in e.changes.query("needed == 'needed (asked)'")["feature"]:
            sent = e.trace[e.trace[feature] == data.iloc[i][feature]]
            free = [str(name) for name in data.columns.difference([feature, *adjusted])]
            same = (sent[free] == e.counterfactual[free]).all(axis=1)
            assert (sent[same]["label"] == "no").any()


def test_a_rounded_ratio_moves_along_when_a_number_that_it_follows_from_is_reverted() -> None:
    rng = np.random.default_rng(0)
    income = (np.exp(rng.normal(7.9, 0.5, 600)) / 10).round() * 10
    debt = (income * rng.beta(2, 6, 600) * 3 / 10).round() * 10
    data = pd.DataFrame({"income": income, "debt": debt, "ratio": (debt / income).round(3)})
    data = data.assign(age=rng.integers(18, 80, 600), tickets=rng.poisson(1.2, 600))

    def model(rows: pd.DataFrame) -> Any:
        return np.where(2 * rows["ratio"] + 0.2 * rows["tickets"] - 0.0001 * rows["income"] < 0.8, "yes", "no")

    for i, other in ((9, "income"), (19, "debt")):  # a small change of the other number is not needed
        e = acex.explain(model, data.iloc[i], data, target="yes", budget=15, freeze=["age"])
        assert set(e.changes["feature"]) == {"ratio", other}


def test_what_equalities_tie_together_is_reverted_together() -> None:
    """Neither age nor months can be reverted alone, and the model needs neither of them."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame(rng.normal(size=(300, 3)).round(2), columns=[*"xyz"]).assign(age=rng.integers(18, 80, 300))
    data["months"] = 12 * data["age"]

    def model(rows: pd.DataFrame) -> Any:
        return np.where(rows[[*"xyz"]].sum(axis=1) < -1.5, "yes", "no")

    explainer = acex.Explainer(model, data, plausibility=None, share_answers=False)
    for _, row in data[model(data) == "no"].head(12).iterrows():
        e = explainer.explain(row, budget=18)
        assert e.outcome == "found" and not {"age", "months"} & set(e.changes["feature"])
        assert "needed (rules)" not in set(e.changes["needed"])


def test_a_miss_that_somebody_else_has_asked_counts() -> None:
    p = problem(CUBE, plausible=False)
    known = Known(moved(p, 0)[None], np.array([False]))
    assert marks(p, asked(p, moved(p, 0, 1), hits=(True,), known=known)) == ["not checked", "needed (asked)"]


def test_what_may_not_be_undone_or_would_not_look_real_need_not_be_asked() -> None:
    p = problem(CUBE, plausible=False)

    class OnlyTogether:
        """Rows that change the first two features together, or neither."""

        def plausible(self, X: FloatArray, least: float) -> BoolArray:
            moves = p.factual != X
            return np.asarray(moves[:, 0] == moves[:, 1])

        def least(self, x: FloatArray) -> float:
            return 0.0

    third = replace(p.region, functions=(lambda rows: np.asarray(rows)[:, 2] != p.factual[2],))
    limited = replace(p, region=third, density=OnlyTogether())  # type: ignore[arg-type]
    told = marks(limited, asked(limited, moved(p, 0, 1, 2, 3), hits=(True,)))
    assert told == ["needed (plausibility)", "needed (plausibility)", "needed (rules)", "not checked"]


def test_a_change_without_which_a_way_would_be_part_of_a_cheaper_one_is_needed() -> None:
    p = problem(CUBE, plausible=False)
    history = asked(p, moved(p, 0, 1), moved(p, 1, 2), hits=(True, True))
    undone = Reverts(p, history, np.array([1, 2]))
    assert_array_equal(undone.of, [0, 0, 1, 1])
    assert_array_equal(undone.features, [0, 1, 1, 2])
    # Without its last feature the second way is part of the first. The first may become simpler: the second ends then.
    assert undone.marks == ["not checked", "not checked", "not checked", "needed (alternatives)"]


def test_with_a_margin_a_change_that_keeps_it_is_needed() -> None:
    p = problem(CUBE, plausible=False)
    hit, undone = moved(p, 0, 1), moved(p, 1)
    history = asked(p, hit, *(hit + d for d in (0.1, -0.1)), undone - 0.05, hits=(True, True, True, False))
    assert marks(p, history, steady=0.9)[0] == "needed (margin)"
    assert marks(p, history)[0] == "not checked"


# -- the search ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_when_a_search_ends_by_itself_every_change_is_needed(seed: int, count: int) -> None:
    p = problem(CUBE, seed=seed)

    def first_two_or_third(p: Problem, X: FloatArray) -> BoolArray:
        third = np.abs(X - p.factual)[:, 2] * p.scale.per_unit[2] > 1.5
        return np.asarray(first_two(p, X) | third)

    search = run(Search.begin(p, Feasible(), seed, count=count, budget=100), 100, first_two_or_third)
    assert search.stop_reason == "settled" and len(search.counterfactuals) == count
    undone = search.reverts
    assert "not checked" not in undone.marks
    still = first_two_or_third(p, undone.X) & p.plausible(undone.X)
    assert all(mark == "needed (alternatives)" for mark, hit in zip(undone.marks, still, strict=True) if hit)


@given(st.integers(0, 50), st.integers(8, 24))
@settings(max_examples=8, deadline=None)
def test_the_questions_of_a_larger_budget_begin_with_those_of_a_smaller_one(seed: int, budget: int) -> None:
    p = problem(CUBE, plausible=False)
    small, large = (run(Search.begin(p, Feasible(), seed, budget=b), budget).history.X for b in (budget, 60))
    kept = int(RESERVED * budget)
    same = min(len(small), len(large), budget - kept)
    assert_array_equal(small[:same], large[:same])


def test_the_end_of_the_budget_is_kept_for_undoing() -> None:
    p = problem(CUBE, plausible=False)
    searches = [run(Search.begin(p, Feasible(effort="spend"), seed, budget=10), 10) for seed in range(6)]
    purposes = [[q.purpose for q in search.history.queries] for search in searches]
    assert any("undo" in told[-2:] for told in purposes)
    assert all("undo" not in told[: 10 - int(RESERVED * 10)] for told in purposes)


def test_beyond_the_budget_undoing_goes_on_as_rounds_of_several_queries_want_it() -> None:
    p = problem(CUBE, plausible=False)
    undone = Reverts(p, asked(p, moved(p, 0, 1, 2), hits=(True,)), np.array([1]))
    assert [getattr(undone.next(budget), "purpose", None) for budget in (1, 2, 60)] == ["undo"] * 3


def test_pruning_goes_on_from_the_history_alone() -> None:
    p = problem(CUBE, plausible=False)
    whole = run(Search.begin(p, Feasible(), 1, budget=14), 14)
    begun = run(Search.begin(p, Feasible(), 1, budget=14), 11).history
    again = Search(p, Feasible(), 1, begun, budget=14)
    assert_array_equal(run(again, 14).history.X, whole.history.X)


def test_an_undoing_has_the_chance_that_the_answers_give_it() -> None:
    p = problem(CUBE, plausible=False)
    history = asked(p, moved(p, 0, 1, 2), moved(p, 3), hits=(True, False))
    query = Reverts(p, history, np.array([1])).next()
    assert query is not None
    believed = Belief(p, history).probability(Points(p.cached(SearchContext), query.point[None]))
    assert query.p_hit == pytest.approx(believed[0])


def test_of_rows_that_cost_the_same_the_one_with_fewer_changes_is_the_answer() -> None:
    p = problem(CUBE, plausible=False)
    p = replace(p, cost=replace(p.cost, weights=np.array([1, 1, 1, 1, 1e-300])))  # the last one changes for nothing
    history = asked(p, moved(p, 0, 1, 4), moved(p, 0, 1), hits=(True, True))
    assert_array_equal(Search(p, Feasible(), 0, history).counterfactuals, [2])
    assert marks(p, history, at=2) == ["not checked", "not checked"]


def test_nothing_cheaper_is_looked_for_that_could_not_be_checked_any_more() -> None:
    p = problem(CUBE, plausible=False)
    for seed in range(4):
        search = Search.begin(p, Feasible(), seed, budget=16)
        while len(search.history.queries) < 16 and (query := search.ask()) is not None:
            left = 16 - len(search.history.queries) - 1
            after = search.tell(query, True)
            if query.purpose == "refine":
                new = Reverts(p, after.history, np.array([len(after.history.queries) - 1]))
                assert left >= min(new.open.sum(), RESERVED * 16)
            search = search.tell(query, bool(first_two(p, query.point[None])[0]))
        assert len(search.history.queries) == 16 or "not checked" not in search.reverts.marks


# -- steps that nobody would see -------------------------------------------------------------------------


def test_a_step_that_nobody_would_see_is_none() -> None:
    x, min_step = np.array([1.0, 1.0, 1.0, 1.0, 1.0]), np.full(5, 0.1)
    region = Region.of(CUBE, x, min_step=min_step)
    assert_array_equal(region.snap(np.array([[1.05, 0.95, 1.2, 0.85, 1.0]])), [[1.0, 1.0, 1.2, 0.85, 1.0]])
    assert region.contains(np.array([[1.05, 1, 1, 1, 1], [1.2, 1, 1, 1, 1]])).tolist() == [False, True]
    # Where the factual's own value is not allowed, there is no way back to it.
    region = Region.of(CUBE, x, ranges={"f0": (1.05, 2.0)}, min_step=min_step)
    assert_array_equal(region.snap(x[None]), [[1.05, 1.0, 1.0, 1.0, 1.0]])


# -- for people ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    job = rng.choice(["cook", "nurse", "clerk"], 120)
    return pd.DataFrame({"income": rng.normal(3000, 800, 120), "debt": rng.normal(1, 0.4, 120), "job": job})


def approves(rows: pd.DataFrame) -> list[str]:
    good = (rows["income"] > 3300) & (rows["debt"] < 1.1)
    return ["yes" if g else "no" for g in good]


def test_no_row_that_is_asked_has_a_step_that_nobody_would_see(rows: pd.DataFrame) -> None:
    e = acex.explain(approves, {"income": 2500.0, "debt": 1.3, "job": "cook"}, data=rows, budget=25)
    space = e.plan.space
    X = space.encode(e.trace[space.names])
    steps = np.abs(e.plan.scale.differences(X, space.encode(e.factual)[0]))
    assert (steps[steps > 0] >= 0.01).all()


def test_every_change_is_marked_in_the_result_its_json_its_report_and_its_text(rows: pd.DataFrame) -> None:
    e = acex.explain(approves, {"income": 2500.0, "debt": 1.3, "job": "cook"}, data=rows, budget=40)
    assert e.changes["needed"].tolist() == ["needed (asked)"] * 2
    back = acex.Explanation.from_json(e.to_json())
    assert back.changes["needed"].tolist() == e.changes["needed"].tolist()
    assert e.to_html().count(">needed (asked)<") == 2 and str(e).count("needed (asked)") == 2
    assert "not checked" not in " ".join(e.sentences())


def test_a_change_that_was_not_checked_is_told_so(rows: pd.DataFrame) -> None:
    e = acex.explain(
        approves, {"income": 2500.0, "debt": 1.3, "job": "cook"}, data=rows, budget=2, outcomes=approves(rows)
    )
    assert e.outcome == "found"
    assert e.changes["needed"].eq("not checked").any()
    assert any(sentence.endswith("Whether this is needed was not checked.") for sentence in e.sentences())


def test_the_steps_of_categories_are_changes(rows: pd.DataFrame) -> None:
    def cooks(rows: pd.DataFrame) -> list[str]:
        return ["yes" if job == "cook" else "no" for job in rows["job"]]

    e = acex.explain(cooks, {"income": 2500.0, "debt": 1.3, "job": "nurse"}, data=rows, budget=30)
    changes = e.changes[["feature", "before", "after", "needed"]]
    assert changes.to_numpy().tolist() == [["job", "nurse", "cook", "needed (asked)"]]


def test_asked_rows_have_keys_of_their_own() -> None:
    p = problem(CUBE, plausible=False)
    history = run(Search.begin(p, Feasible(), 2, budget=30), 30).history
    assert len({key(x) for x in history.X}) == len(history.X)
