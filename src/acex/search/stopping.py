"""How much closer could it be? The chance that something cheaper exists, and that a few more queries find it.

P(hit) of single points does not say it: they are hits together or not at all. So a second small network, trained on the
same simulated searches, reads the state of a search and the greatest P(hit) in sight at several savings; what it was
told in training is the best that a search with 40,000 free queries found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from acex.arrays import FloatArray
from acex.search import belief
from acex.search.belief_inputs import of_search
from acex.search.evidence import Evidence

SAVINGS = (0.05, 0.1, 0.25, 0.5)  # shares of the best cost
STATE = (
    *("best_rank", "hint_success", "has_hint", "is_learnt", "is_scored", "log_asked", "log_hits", "log_misses"),
    *("log_known", "since_hit", "log_features", "dependence", "log_rows", "share_nominal"),
)
NAMES = (*STATE, *(f"{what}_{saving}" for saving in SAVINGS for what in ("greatest", "tenth")), "expected")


@dataclass(frozen=True)
class Outlook:
    """Chances, each from 0 to 1."""

    soon: float  # ten more queries save at least 5%
    closer: tuple[float, float, float]  # a counterfactual at least 10%, 25%, 50% cheaper exists

    @classmethod
    def of(cls, evidence: Evidence, probability: FloatArray, saving: FloatArray) -> Outlook:
        """The outlook of a search with candidates of this P(hit) and saving, as a share of the best cost, (n,) each."""
        network = belief.learned("outlook_")
        if network is None:
            return cls(1.0, (1.0, 1.0, 1.0))
        chances = expit(network.log_odds(described(evidence, probability, saving)[None])[0])
        closer = np.minimum.accumulate(chances[1:])  # what is 25% cheaper is 10% cheaper too
        return cls(float(chances[0]), (float(closer[0]), float(closer[1]), float(closer[2])))


def described(evidence: Evidence, probability: FloatArray, saving: FloatArray) -> FloatArray:
    """What the network reads, (len(NAMES),)."""
    state = of_search(evidence)
    out = [state[name] for name in STATE]
    for least in SAVINGS:
        likely = np.sort(probability[saving >= least])[::-1]
        out += [float(likely[0]) if len(likely) else 0.0, float(likely[9]) if len(likely) > 9 else 0.0]
    return np.array([*out, float((probability * saving).max(initial=0.0))])
