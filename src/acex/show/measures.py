"""Measures of a counterfactual, named as in section 4.2 of the paper.

d2 and g1 are the l2 and l1 distance in codes, d2n and g1n the same in standard deviations of the reference; the cost is
J = d2n + beta g1n with the weights of the features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from acex.engine.explanation import Explanation


def measures(explanation: Explanation) -> dict[str, float]:
    """The measures of the best counterfactual; NaN without a counterfactual, or if not recorded."""
    values = {"queries": float(explanation.n_queries), "validity": float(explanation.outcome == "found")}
    if explanation.outcome != "found":
        return values | dict.fromkeys(("cost", "d2", "g1", "d2n", "g1n", "n_changed", "affinity"), float("nan"))
    space, scale = explanation.plan.space, explanation.plan.scale
    x, best = space.encode(explanation.factual)[0], space.encode(explanation.counterfactual)
    z, step = scale.differences(best, x)[0], scale.steps(best, x)[0]
    return values | {
        "cost": explanation.costs[0],
        "d2": float(np.linalg.norm(step)),
        "g1": float(np.abs(step).sum()),
        "d2n": float(np.linalg.norm(z)),
        "g1n": float(np.abs(z).sum()),
        "n_changed": float((best[0] != x).sum()),
        "affinity": next(iter(explanation.affinities), float("nan")),
    }
