"""Which of the points asked are the answer: counterfactuals, cheapest first, each different from those before."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.search.belief import Belief
from acex.search.problem import History, Problem
from acex.space.cost import n_changed


def ranked(problem: Problem, history: History, steady: float | None = None) -> IntArray:
    """Positions of all counterfactuals in the history, cheapest first; of those that cost the same the one of fewest
    changes, as where a step is too short to count.

    Args:
        steady: with a margin, how steady they should be: those that are lead.
    """
    X = history.X
    good = np.flatnonzero(history.is_hit)
    good = good[problem.plausible(X[good]) & problem.region.contains(X[good])]
    order = [n_changed(X[good], problem.factual), problem.cost(X[good])]
    if steady is not None and len(good):
        order.append(-np.minimum(steadiness(problem, history, X[good]), steady))
    return good[np.lexsort(order)]


def chosen(problem: Problem, history: History, count: int, steady: float | None = None) -> IntArray:
    """Positions of up to `count` counterfactuals, best first, each different from those before."""
    best = ranked(problem, history, steady)
    return best[problem.alternatives(history.X[best], count)]


def steadiness(problem: Problem, history: History, X: FloatArray) -> FloatArray:
    """The surrogate's P(hit) in a small neighbourhood of points, (n,)."""
    return Belief(problem, history).steadiness(X)
