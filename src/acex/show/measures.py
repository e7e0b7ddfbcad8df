"""What a counterfactual is worth: plain numbers of an explanation, nothing asked.

The names are the paper's (section 4.2): d2 and g1 are l2 and l1 distance in raw codes, d2n and g1n the same
in standard deviations of the reference, J = d2n + beta g1n with the features' weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from acex.space.cost import n_changed

if TYPE_CHECKING:
    from acex.engine.explanation import Explanation


def measures(explanation: Explanation) -> dict[str, float]:
    """The measures of the best counterfactual; distances are NaN when there is none."""
    out = {"queries": float(explanation.n_queries), "validity": float(explanation.outcome == "found")}
    names = ("cost", "d2", "g1", "d2n", "g1n", "n_changed", "affinity")
    if explanation.outcome != "found":
        return out | dict.fromkeys(names, float("nan"))
    space, scale = explanation.plan.space, explanation.plan.scale
    x = space.encode(explanation.factual)[0]
    best = space.encode(explanation.counterfactual)
    z, step = scale.differences(best, x)[0], scale.steps(best, x)[0]
    values = (
        float(explanation.costs[0]),
        float(np.linalg.norm(step)),
        float(np.abs(step).sum()),
        float(np.linalg.norm(z)),
        float(np.abs(z).sum()),
        float(n_changed(best, x)[0]),
        explanation.affinities[0] if explanation.affinities else float("nan"),  # an older ledger does not know it
    )
    return out | dict(zip(names, values, strict=True))
