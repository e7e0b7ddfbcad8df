"""A hit is made cheaper by rule, with as few questions as the rule says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from acex.arrays import FloatArray
from acex.search.polish import next_step, without_smallest
from acex.search.problem import Problem, key
from acex.space.kinds import Continuous, Integer, Nominal
from acex.space.space import Space
from problems import problem

NUMBERS = Space(tuple(Continuous(f"x{j}", 0.0, 10.0) for j in range(5)))
MIXED = Space((Continuous("a", 0, 10), Integer("b", 0, 10), Nominal("c", ("x", "y", "z")), Continuous("d", 0, 10)))


def polished(
    p: Problem, hit: FloatArray, is_hit: Callable[[FloatArray], bool], misses: FloatArray | None = None
) -> tuple[FloatArray, int]:
    """The cheapest hit once the rule has been followed to its end, and how many questions that took."""
    answers = {key(p.factual): False, key(hit): True}
    best, n = hit, 0
    none = np.empty((0, len(hit))) if misses is None else misses
    while (point := next_step(p, hit, answers, none)) is not None:
        assert p.admissible(point[None], answers)[0]
        answers[key(point)] = is_hit(point)
        n += 1
        if answers[key(point)] and p.cost(point[None])[0] < p.cost(best[None])[0]:
            best = point
    return best, n


def far_from(p: Problem) -> FloatArray:
    """A point that differs from the factual in everything."""
    low, high = p.region.low, p.region.high
    return np.where(p.factual > (low + high) / 2, low, high)


@pytest.mark.parametrize("needed", range(5))
def test_a_change_that_nobody_needs_is_undone(needed: int) -> None:
    p = problem(NUMBERS, plausible=False)
    hit = far_from(p)
    best, n = polished(p, hit, lambda x: bool(x[needed] == hit[needed] or abs(x - p.factual)[needed] > 1.0))
    changed = np.flatnonzero(best != p.factual)
    assert changed.tolist() == [needed]
    # Halving features costs two questions a level, bisection seven.
    assert n <= 2 * np.ceil(np.log2(5)) + 7 + 2


def test_bisection_ends_close_to_where_the_decision_changes() -> None:
    p = problem(Space((Continuous("x", 0.0, 10.0), Continuous("y", 0.0, 10.0, frozen=True))), plausible=False)
    hit = far_from(p)
    hit[1] = p.factual[1]
    whole = abs(hit - p.factual)[0]
    best, n = polished(p, hit, lambda x: bool(abs(x - p.factual)[0] >= 0.3 * whole))
    assert 0.3 * whole <= abs(best - p.factual)[0] <= (0.3 + 2**-5) * whole
    assert n <= 8


def test_categories_are_kept_or_undone_never_invented() -> None:
    p = problem(MIXED, plausible=False)
    hit = far_from(p)
    seen: list[float] = []

    def is_hit(x: FloatArray) -> bool:
        seen.append(x[2])
        return bool(x[2] == hit[2])

    best, _ = polished(p, hit, is_hit)
    assert set(seen) <= {p.factual[2], hit[2]}
    assert np.flatnonzero(best != p.factual).tolist() == [2]


def test_what_is_part_of_a_known_miss_is_not_asked() -> None:
    p = problem(NUMBERS, plausible=False)
    hit = far_from(p)
    almost = p.factual + 0.9 * (hit - p.factual)  # everything nearly as far, and still a miss
    always = lambda x: False  # noqa: E731
    assert polished(p, hit, always, misses=almost[None])[1] < polished(p, hit, always)[1]


def test_the_rule_goes_on_where_answers_end_in_whatever_order_they_came() -> None:
    p = problem(NUMBERS, plausible=False)
    hit, none = far_from(p), np.empty((0, 5))
    first = next_step(p, hit, {key(hit): True}, none)
    assert first is not None
    second = next_step(p, hit, {key(hit): True, key(first): False}, none)
    assert second is not None and not np.array_equal(second, first)
    np.testing.assert_array_equal(next_step(p, hit, {key(hit): True}, none), first)


def test_the_smallest_change_is_tried_without() -> None:
    p = problem(NUMBERS, plausible=False)
    hit = p.factual.copy()
    hit[[1, 3]] = p.factual[[1, 3]] + np.array([0.2, 2.0]) * np.where(p.factual[[1, 3]] > 5, -1, 1)
    point = without_smallest(p, hit, {})
    assert point is not None
    assert np.flatnonzero(point != p.factual).tolist() == [3]
    assert without_smallest(p, hit, {key(point): False}) is None  # it was asked
    assert without_smallest(p, point, {}) is None  # nothing would be left
