"""The rules of the published algorithm, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from acex.search import penalty
from acex.search.climb import Proposal, best_acceptable
from acex.search.penalty import Penalty
from acex.search.problem import Problem
from acex.search.search import Search
from acex.space.kinds import Continuous
from acex.space.space import Space
from problems import problem
from test_search import run

PLANE = Space((Continuous("a", 0, 10), Continuous("b", 0, 10)))
QUICK = Penalty(n0=6, sobol=256, epsilon=0.1)


def within_a_round(p: Problem, settings: Penalty = QUICK) -> Search:
    """A search whose last answer belongs to an acquisition, with more to come in its round."""
    search = run(Search.begin(p, settings), settings.n0 + 2)
    assert [q.purpose for q in search.history.queries[-2:]] == ["acquire", "acquire"]
    return search


# -- a round converges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "purpose"), [(0.09, "boundary"), (0.11, "acquire")])
def test_a_round_ends_when_the_best_point_is_within_epsilon_of_the_last(
    monkeypatch: pytest.MonkeyPatch, step: float, purpose: str
) -> None:
    search = within_a_round(problem(PLANE, plausible=False))
    last = search.history.queries[-1]
    near = last.point + np.array([step, 0.0]) * search.problem.scale.deviations
    far = PLANE.high - last.point

    def maximise(*args: Any) -> Proposal | None:
        """The nearer point if it may be proposed."""
        candidates = np.stack([near, far])
        found = best_acceptable(candidates, np.array([2.0, 1.0]), args[-1])
        return None if found is None else Proposal(*found, exhaustive=False)

    monkeypatch.setattr(penalty, "maximise", maximise)
    query = search.ask()
    assert query is not None and query.purpose == purpose and query.round == last.round
    if purpose == "acquire":
        assert_array_equal(query.point, near)


def test_what_is_within_epsilon_of_an_earlier_point_is_not_proposed() -> None:
    p = problem(PLANE, plausible=False)
    history = run(Search.begin(p, QUICK), 40).history
    Z = p.scale.coordinates(history.X)
    for i, query in enumerate(history.queries):
        if query.purpose == "acquire":
            assert np.linalg.norm(Z[:i] - Z[i], axis=1).min() > QUICK.epsilon
