"""P(hit) as strategy "feasible" believes it: learned on simulated searches.

A small network (`network`, trained by `python -m benchmarks train`) reads some fifty traits of a point given the
evidence, what Gaussian processes say of it among them, and gives its log odds of being a hit. Labels, scores, known
outcomes and answers from elsewhere all come in as traits: how far each is to be trusted was learned too.
"""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path

import numpy as np
from scipy.special import expit

from acex.arrays import BoolArray, FloatArray
from acex.search.belief_inputs import traits
from acex.search.evidence import Evidence, Points
from acex.search.network import Network
from acex.search.problem import History, Problem

WEIGHTS = Path(__file__).parent / "weights.npz"
NEARBY, NEIGHBOURS = 0.1, 16  # a neighbourhood: deviation in every number, in standard deviations, and how many points


@cache
def learned(name: str) -> Network | None:
    """The network of this name that comes with the package; None while there is none, and training begins."""
    return Network.load(WEIGHTS, name) if WEIGHTS.exists() else None


class Belief:
    """What the evidence says about points that were not asked.

    Args:
        success: which queries were hits as wanted, (n,); by default all hits.
    """

    def __init__(self, problem: Problem, history: History, success: BoolArray | None = None) -> None:
        self.problem = problem
        self.evidence = Evidence(problem, history, history.is_hit if success is None else success)

    def probability(self, points: Points) -> FloatArray:
        """P(hit) of points to ask, (n,)."""
        network = learned("hit_")
        # The network has learned from labels and probabilities; before the first hit a number tells more than these.
        only_numbers = self.problem.width is not None and self.evidence.best is None
        if network is None or only_numbers:
            return self.evidence.by_posterior(points)
        probability: FloatArray = expit(network.log_odds(traits(self.evidence, points))[:, 0])
        return probability

    def steadiness(self, X: FloatArray) -> FloatArray:
        """Mean P(hit) in a small neighbourhood of points, (n,), by the Gaussian process alone."""
        if len(X) == 0:  # a forest of known outcomes refuses to be asked about nothing
            return np.zeros(0)
        near = self.problem.region.space.snap((X[:, None] + self._cloud).reshape(-1, X.shape[1]))
        probability = self.evidence.by_posterior(Points(self.evidence.ground, near))
        return np.asarray(probability.reshape(len(X), -1).mean(axis=1))

    @cached_property
    def _cloud(self) -> FloatArray:
        """Steps to neighbours, (NEIGHBOURS, d); the same each time."""
        scale = self.problem.scale
        steps = np.random.default_rng(0).normal(size=(NEIGHBOURS, len(scale.deviations)))
        cloud: FloatArray = steps * NEARBY * np.where(scale.is_nominal, 0.0, scale.deviations)
        return cloud
