"""In which order many rows are best explained, so that each can learn from the answers to those before it."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.space.scale import EUCLIDEAN, Metric

MOST_LEADERS = 64  # rows that are explained first, one for each part of the domain
SAMPLE = 1000  # rows among which they are chosen


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
