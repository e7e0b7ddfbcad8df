"""The cost of a counterfactual: J = d + beta * g, without the term that only a surrogate knows.

z   step from the factual in standard deviations, times the feature's weight, (n, d)
d   proximity, the l2 norm of z         g   sparsity, the l1 norm of z

Who wants few changes adds a charge for each, whatever its length: the same for all features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.space.scale import Scale


@dataclass(frozen=True, eq=False)
class Cost:
    """J around one factual; called with points, (n, d), it gives their cost, (n,)."""

    scale: Scale
    factual: FloatArray
    weights: FloatArray
    beta: float = 5.0
    charge: float = 0.0  # for every feature that changes, as many standard deviations of a number

    @classmethod
    def of(
        cls,
        scale: Scale,
        factual: FloatArray,
        weights: FloatArray,
        beta: float,
        category_cost: float | None,
        charge: float = 0.0,
    ) -> Cost:
        """J where a change of category, or from or to a gap, counts `category_cost` deviations; None: as in `scale`."""
        if category_cost is not None:
            weights = np.where(scale.is_nominal, category_cost * scale.deviations * weights, weights)
            scale = replace(scale, gap_step=category_cost) if len(scale.space.gapped) else scale
        return cls(scale, factual, weights, beta, charge)

    @cached_property
    def per_unit(self) -> FloatArray:
        """What a step of one costs in each feature, (d,)."""
        return self.scale.per_unit * self.weights

    def steps(self, X: FloatArray) -> FloatArray:
        """z of each point, (n, d)."""
        return self.scale.differences(X, self.factual) * self.weights

    def __call__(self, X: FloatArray) -> FloatArray:
        """J of each point, (n,)."""
        z = self.steps(X)
        J: FloatArray = np.sqrt((z**2).sum(axis=1)) + self.beta * np.abs(z).sum(axis=1)
        return J + (1 + self.beta) * self.charge * (z != 0).sum(axis=1) if self.charge else J


def n_changed(X: FloatArray, factual: FloatArray) -> IntArray:
    """How many features differ from the factual, (n,)."""
    n: IntArray = np.sum(factual != X, axis=1)
    return n
