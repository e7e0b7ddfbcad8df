"""In which order many rows are explained, and how a total budget is allocated to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.engine.explanation import Explanation
from acex.space.scale import EUCLIDEAN, Metric

SHARE = 5  # queries of the total budget that a row gets at a time
ROUND = 4  # one in so many of the rows that could use more gets more in a round
LEAST_ROUND = 8  # rows, so that several workers have something to do
MOST_LEADERS = 64  # rows that are explained first, one for each part of the domain
SAMPLE = 1000  # rows among which they are chosen


class Standing(NamedTuple):
    """What a row has used of its share of the total budget."""

    paid: int
    expected_saving: float = np.inf  # of one more query
    is_begun: bool = False
    is_over: bool = False  # it will never get more

    @classmethod
    def of(cls, e: Explanation, paid: int, budget: int) -> Standing:
        over = e.outcome == "failed" or e.stopped_by != "budget" or paid >= budget
        return cls(paid, e.ending.expected_saving, is_begun=True, is_over=over)


def next_grants(state: Mapping[int, Standing], budget: int) -> dict[int, int]:
    """How many more queries rows get in the next round: a share for those where one more saves most."""
    ranked = sorted(state, key=lambda i: (-state[i].expected_saving, state[i].paid))
    return {i: min(SHARE, budget - state[i].paid) for i in ranked[: max(len(ranked) // ROUND, LEAST_ROUND)]}


def allowances(grants: Mapping[int, int], state: Mapping[int, Standing], left: int) -> dict[int, int | None]:
    """How many rows each row may send, in all runs together, within what is left of the total.

    A row that was begun runs again even without a new query: everything it asks may already be known.
    """
    allowed: dict[int, int | None] = {}
    for i, grant in grants.items():
        given = min(grant, left)
        left -= given
        if given > 0 or state[i].is_begun:
            allowed[i] = given + state[i].paid
    return allowed


def order_of_work(Z: FloatArray, metric: Metric = EUCLIDEAN) -> IntArray:
    """The order in which points with these coordinates, (n, D), are best explained, (n,).

    First the leaders: rows that together are near to all others, each chosen for what it adds. Then, leader by leader,
    the rows nearest to it, near ones first: each has a neighbour from which to learn, and the newest answers, which are
    the ones that are read, are from close by.
    """
    n = len(Z)
    sample = np.sort(np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False))
    apart = np.sqrt(metric.squared(Z[sample], Z[sample]))
    nearest = np.full(len(sample), apart.max(initial=0.0) + 1.0)  # distance to the nearest leader so far
    chosen: list[int] = []
    for _ in range(min(MOST_LEADERS, len(sample))):
        left_over = np.minimum(apart, nearest).sum(axis=1)
        left_over[chosen] = np.inf
        chosen.append(int(left_over.argmin()))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    leaders = sample[chosen]
    rest = np.setdiff1d(np.arange(n), leaders)
    blocks = (np.sqrt(metric.squared(Z[part], Z[leaders])) for part in np.array_split(rest, len(rest) // 10_000 + 1))
    nearest_leader = [(block.min(axis=1), block.argmin(axis=1)) for block in blocks]
    distances, leader = (np.concatenate(parts) for parts in zip(*nearest_leader, strict=True))
    return np.concatenate([leaders, rest[np.lexsort((distances, leader))]])
