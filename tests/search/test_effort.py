"""How much of the budget is used, and what is said when known hits cannot be taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex

RNG = np.random.default_rng(3)
ROWS = pd.DataFrame({"a": RNG.normal(size=80), "b": RNG.normal(size=80), "c": RNG.integers(0, 9, size=80)})


def model(rows: pd.DataFrame) -> Any:
    return np.where(rows["a"] + 0.3 * rows["c"] > 2.2, "yes", "no").tolist()


X = ROWS[[label == "no" for label in model(ROWS)]].iloc[0]


def asked(e: acex.Explanation) -> list[Any]:
    return [step.row for step in e.steps]


def test_spend_uses_the_whole_budget_and_begins_as_settle_does() -> None:
    settled = acex.explain(model, X, data=ROWS, budget=50)
    spent = acex.explain(model, X, data=ROWS, budget=50, strategy=acex.Feasible(effort="spend"))
    assert settled.n_queries < 50 == spent.n_queries
    assert asked(spent)[: settled.n_queries - 4] == asked(settled)[: settled.n_queries - 4]
    assert spent.steps[-1].best <= settled.steps[-1].best


def test_a_larger_budget_begins_with_the_questions_of_a_smaller_one_and_is_never_worse() -> None:
    small, large = (
        acex.explain(model, X, data=ROWS, budget=b, strategy=acex.Feasible(effort="spend")) for b in (20, 45)
    )
    reserved = 6
    assert asked(large)[: 20 - reserved] == asked(small)[: 20 - reserved]
    assert large.steps[-1].best <= small.steps[-1].best


def test_an_unknown_effort_is_refused() -> None:
    with pytest.raises(ValueError, match=r"effort.*'all'"):
        acex.Feasible(effort="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", ["feasible", acex.Penalty(n0=4, sobol=64)])
def test_more_queries_per_round_than_the_budget_are_not_computed(strategy: Any) -> None:
    e = acex.explain(model, X, data=ROWS, budget=6, queries_per_round=10**30, strategy=strategy)
    assert 1 < e.n_queries <= 6


def test_a_history_without_a_single_success_is_a_history() -> None:
    failures = ROWS[[label == "no" for label in model(ROWS)]]
    e = acex.explain(model, X, data=failures, outcomes=["no"] * len(failures), target="yes", budget=40)
    assert e.label_after == "yes"


def test_outcomes_that_are_neither_the_target_nor_the_rows_own_label_are_refused_after_one_query() -> None:
    with pytest.raises(ValueError, match="'yes'"):
        acex.explain(model, X, data=ROWS, outcomes=["ja"] * len(ROWS), target="yes", budget=40)


def rare(rows: pd.DataFrame) -> Any:
    return np.where((rows["a"] > 50) & (rows["b"] > 50), "yes", "no").tolist()


def test_known_hits_that_are_unusual_are_tried_first_and_named_in_the_end() -> None:
    odd = pd.DataFrame({"a": [90.0, 99.0, 80.0], "b": [80.0, 99.0, 95.0], "c": [1, 2, 3]})
    data = pd.concat([ROWS, odd], ignore_index=True)
    lof = acex.Plausibility(neighbours=10)
    e = acex.explain(rare, X, data=data, outcomes=rare(data), target="yes", budget=30, plausibility=lof)
    assert e.outcome != "found"
    assert rare(pd.DataFrame([e.steps[1].row])) == ["yes"]  # asked although it cannot count
    assert "plausibility" in e.advice
    assert e.ending.excluded["plausibility"] == 3
    assert "give known outcomes" not in str(e)
    found = acex.explain(rare, X, data=data, outcomes=rare(data), target="yes", budget=30, plausibility=None)
    assert found.label_after == "yes"


def test_the_report_says_how_likely_something_cheaper_is_and_what_to_do_where_nothing_was_found() -> None:
    e = acex.explain(model, X, data=ROWS, budget=12)
    tenth, quarter, half = e.improvement_odds
    assert 1 >= tenth >= quarter >= half >= 0
    assert f"{tenth:.0%}" in e.to_html()
    assert acex.Explanation.from_json(e.to_json()).improvement_odds == e.improvement_odds
    none = acex.explain(lambda rows: ["no"] * len(rows), X, data=ROWS, budget=5)
    assert none.advice and none.advice in none.to_html() + str(none)
