"""The numbers that plots and reports show: changes within their range, the axis of costs."""

from __future__ import annotations

from acex.show.records import Change, bend, changes_record
from explanations import nothing_found, person

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


# -- costs -----------------------------------------------------------------------------------------------


def test_the_axis_of_costs_is_logarithmic_only_far_above_the_best() -> None:
    steps = person().steps  # the best costs 5, the farthest query 30
    assert bend(steps) == 5
    assert bend(steps[1:]) == 5 and bend(steps[2:]) is None  # without the query that costs 30
    assert bend(steps[:2]) is None and bend(nothing_found().steps) is None
