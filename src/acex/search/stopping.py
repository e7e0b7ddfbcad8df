"""When to stop: the probability that a cheaper counterfactual exists, and that a few more queries find one.

P(hit) of single points does not answer this, because they tend to be hits together or not at all. So a second small
network, trained on the same simulated searches, reads the state of a search and the largest P(hit) of the candidates at
several savings. In training, "exists" meant that a search with 40,000 queries found it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from acex.arrays import FloatArray
from acex.search import belief
from acex.search.belief_inputs import search_inputs
from acex.search.evidence import Evidence

SAVINGS = (0.05, 0.1, 0.25, 0.5)  # shares of the best cost
STATE = (
    *("best_rank", "hint_success", "has_hint", "is_learnt", "is_scored", "log_asked", "log_hits", "log_misses"),
    *("log_known", "since_hit", "log_features", "dependence", "log_rows", "share_nominal"),
)
NAMES = (*STATE, *(f"{what}_{saving}" for saving in SAVINGS for what in ("greatest", "tenth")), "expected")


@dataclass(frozen=True)
class Forecast:
    """Probabilities that a search improves."""

    saves_soon: float  # ten more queries save at least 5%
    improvement_odds: tuple[float, float, float]  # a counterfactual at least 10%, 25%, 50% cheaper exists

    @classmethod
    def of(cls, evidence: Evidence, probability: FloatArray, saving: FloatArray) -> Forecast:
        """The forecast from candidates with this P(hit) and saving, as a share of the best cost, (n,) each."""
        network = belief.load_network("outlook_")
        if network is None:
            return cls(1.0, (1.0, 1.0, 1.0))
        outputs = expit(network.log_odds(stopping_inputs(evidence, probability, saving)[None])[0])
        odds = np.minimum.accumulate(outputs[1:])  # a point that is 25% cheaper is also 10% cheaper
        return cls(float(outputs[0]), (float(odds[0]), float(odds[1]), float(odds[2])))


def stopping_inputs(evidence: Evidence, probability: FloatArray, saving: FloatArray) -> FloatArray:
    """Inputs of the network, (len(NAMES),)."""
    state = search_inputs(evidence)
    out = [state[name] for name in STATE]
    for threshold in SAVINGS:
        likely = np.sort(probability[saving >= threshold])[::-1]
        out += [float(likely[0]) if len(likely) else 0.0, float(likely[9]) if len(likely) > 9 else 0.0]
    return np.array([*out, float((probability * saving).max(initial=0.0))])
