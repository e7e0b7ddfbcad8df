"""The numbers that plots and reports show: changes within their range, costs of queries."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from acex.show.records import Change, changes_record, trace_record
from explanations import nothing_found, person
from reported import found

# -- changes ---------------------------------------------------------------------------------------------


def test_changes_give_words_steps_and_places_largest_step_first() -> None:
    assert changes_record(person()) == [
        Change("debt", "1.5", "0.5", "-4.00 sd", start=0.75, end=0.25, low="0", high="2"),
        Change("housing", "rent", "own", "change", start=1.0, end=0.0, low="", high=""),
        Change("school", "high", "university", "+1.00 sd", start=0.5, end=1.0, low="primary", high="university"),
        Change("income", "2000", "3000", "+0.50 sd", start=0.25, end=0.5, low="1000", high="5000"),
    ]


def test_without_a_counterfactual_there_are_no_changes() -> None:
    assert changes_record(nothing_found()) == []


# -- trace -----------------------------------------------------------------------------------------------


def test_the_trace_holds_cost_hit_and_best_of_each_query() -> None:
    trace = trace_record(person())
    assert_allclose(trace.cost, [0, 30, 7, 2, 5])
    assert_array_equal(trace.is_hit, [False, True, True, False, True])
    assert_allclose(trace.best, [np.inf, 30, 7, 7, 5])


def test_the_trace_is_that_of_a_real_search() -> None:
    e = found()
    trace = trace_record(e)
    assert len(trace.cost) == e.n_queries
    assert trace.best[-1] == e.costs[0] == trace.cost[trace.is_hit].min()
    assert (np.diff(trace.best[np.isfinite(trace.best)]) <= 0).all()
