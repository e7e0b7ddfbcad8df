"""Maximise a score over a region: L-BFGS-B over what can be relaxed, branch and bound over the rest.

Continuous features, and integers of more than 20 values, are *relaxed*: optimised as real numbers and
snapped afterwards. The other features that can move are *discrete*: `branch` fixes them one by one.
"""

from __future__ import annotations

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search.branch import branch_and_bound
from acex.search.climb import Accept, Proposal, Score, along_climbs, best_acceptable
from acex.space.cost import CostFunction
from acex.space.region import Region

MOST_VALUES = 20  # an integer feature with more values than this is relaxed and snapped
MOST_BRANCHING = 64  # with more features than this, as in an image, every ordered one is relaxed
MOST_CLIMBS = 3  # starts, the best first, from which L-BFGS-B climbs


def relaxed_features(region: Region) -> BoolArray:
    """Which features are optimised as real numbers, (d,)."""
    out = np.zeros(len(region.space), dtype=bool)
    few = 1 if region.movable.sum() > MOST_BRANCHING else MOST_VALUES
    for j in np.flatnonzero(region.movable):
        values = region.values(int(j))
        out[j] = values is None or (len(values) > few and not region.space.is_nominal[j])
    return out


def maximise(score: Score, cost: CostFunction, region: Region, starts: FloatArray, accept: Accept) -> Proposal | None:
    """The best acceptable point reached from the starts, (s, d); None when nothing acceptable scores."""
    relaxed = relaxed_features(region)
    starts = region.snap(starts)
    scores = score(starts)
    best = np.argsort(-scores, kind="stable")[:MOST_CLIMBS]
    if (region.movable & ~relaxed).any():
        known = best_acceptable(starts, scores, accept)
        return branch_and_bound(score, cost, region, relaxed, starts, best, known, accept)
    ends = along_climbs(score, cost, region, starts[best], relaxed)
    candidates, scores = np.vstack([starts, ends]), np.concatenate([scores, score(ends)])
    found = best_acceptable(candidates, scores, accept)
    return None if found is None else Proposal(*found, exhaustive=False)
