"""A total budget is shared equally."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acex.batch.scheduling import allowances


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(0, 60))
def test_shares_are_equal_and_together_no_more_than_is_left(paid: list[int], left: int) -> None:
    before = dict(enumerate(paid))
    allowed = allowances(before, 12, left)
    more = {i: allowed[i] - n for i, n in before.items()}
    assert list(allowed) == list(before) and min(more.values()) >= 0 and max(allowed.values()) <= 12
    assert sum(more.values()) == min(left, sum(12 - n for n in paid))
    given = [allowed[i] for i, n in more.items() if n]
    assert max(given, default=0) <= min(allowed.values()) + 1  # who got more is nowhere ahead of the others


def test_what_rows_leave_is_shared_among_those_that_need_more() -> None:
    assert allowances({7: 0, 3: 0, 5: 0}, 10, 8) == {7: 2, 3: 3, 5: 3}
    assert allowances({3: 3, 5: 2}, 10, 4) == {3: 5, 5: 4}
    assert allowances({3: 9, 5: 2}, 10, 100) == {3: 10, 5: 10}
    assert allowances({}, 10, 5) == {}
