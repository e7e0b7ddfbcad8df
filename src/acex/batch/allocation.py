"""Who gets how many queries of a budget for all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from acex.engine.explanation import Explanation

SHARE = 5  # queries of a budget for all rows that a row gets at a time
ROUND = 4  # one in so many of the rows that could use more gets more in a round
LEAST_ROUND = 8  # rows, so that several workers have something to do


class Standing(NamedTuple):
    """How far a row has got with its share of a budget for all."""

    paid: int
    worth: float = np.inf  # what one more query is expected to save
    is_begun: bool = False
    is_over: bool = False  # it will never get more

    @classmethod
    def of(cls, e: Explanation, paid: int, budget: int) -> Standing:
        over = e.outcome == "failed" or e.stopped_by != "budget" or paid >= budget
        return cls(paid, e.ending.worth, is_begun=True, is_over=over)


def next_grants(state: Mapping[int, Standing], budget: int) -> dict[int, int]:
    """How many more queries rows get in the next round: a share for those where one more is worth most."""
    ranked = sorted(state, key=lambda i: (-state[i].worth, state[i].paid))
    return {i: min(SHARE, budget - state[i].paid) for i in ranked[: max(len(ranked) // ROUND, LEAST_ROUND)]}


def allowances(grants: Mapping[int, int], state: Mapping[int, Standing], left: int) -> dict[int, int | None]:
    """What each row may send, by all runs together; grants are cut where the money ends. Who was begun comes back also
    with nothing: all that was asked may have been known."""
    allowed: dict[int, int | None] = {}
    for i, grant in grants.items():
        given = min(grant, left)
        left -= given
        if given > 0 or state[i].is_begun:
            allowed[i] = given + state[i].paid
    return allowed
