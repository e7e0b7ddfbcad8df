"""The cost of a counterfactual: J = d + beta * g, the paper's J without the term that needs a surrogate.

    z   step from the factual in standard deviations, times the feature's weight, (n, d)
    d   proximity, the l2 norm of z
    g   sparsity, the l1 norm of z

With a fixed cost per change, every changed feature adds `(1 + beta) * per_change`, whatever the length of its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.space.scale import Scale
from acex.space.space import Space
from acex.values import check_positive


@dataclass(frozen=True)
class Cost:
    """Settings of the cost: how much each change counts.

    Args:
        beta: weight of the l1 norm, which favours few changes, relative to the l2 norm.
        weights: relative cost of changing a feature, by name; overrides the weights of the space.
        per_category: cost of changing a category, or between a value and a missing one, in standard deviations.
            None: 1 over the deviation of the one-hot code, as in the paper.
        per_change: fixed cost per changed feature, in standard deviations.

    Example:
        >>> import acex
        >>> acex.Cost(weights={"income": 2.0}, per_change=1.0).beta
        5.0
    """

    beta: float = 5.0
    weights: Mapping[str | int, float] | None = None
    per_category: float | None = 1.0
    per_change: float = 0.0

    def __post_init__(self) -> None:
        check_positive("beta", self.beta, zero=True)
        check_positive("per_category", self.per_category, optional=True)
        check_positive("per_change", self.per_change, zero=True)
        if not (self.weights is None or isinstance(self.weights, Mapping)):
            raise ValueError(f"weights must map feature names to positive numbers, got {self.weights!r}.")
        for name, weight in (self.weights or {}).items():
            check_positive(f"weights[{name!r}]", weight)

    @property
    def described(self) -> dict[str, Any]:
        """The settings as plain values; weights are recorded with the features."""
        return {"beta": self.beta, "per_category": self.per_category, "per_change": self.per_change}

    def function(self, space: Space, scale: Scale, factual: FloatArray) -> CostFunction:
        """J around a factual, (d,).

        Raises:
            ValueError: `weights` names a feature that the space does not have.
        """
        weights = space.adjust(weights=self.weights).weights
        if self.per_category is not None:
            weights = np.where(scale.is_nominal, self.per_category * scale.deviations * weights, weights)
            scale = replace(scale, gap_step=self.per_category) if len(scale.space.gapped) else scale
        return CostFunction(scale, factual, weights, self.beta, self.per_change)


@dataclass(frozen=True, eq=False)
class CostFunction:
    """J around one factual; called with points, (n, d), it returns their costs, (n,)."""

    scale: Scale
    factual: FloatArray
    weights: FloatArray
    beta: float = 5.0
    per_change: float = 0.0

    @cached_property
    def per_unit(self) -> FloatArray:
        """Cost of a step of 1 in each feature, (d,)."""
        return self.scale.per_unit * self.weights

    def steps(self, X: FloatArray) -> FloatArray:
        """z of each point, (n, d)."""
        return self.scale.differences(X, self.factual) * self.weights

    def __call__(self, X: FloatArray) -> FloatArray:
        """J of each point, (n,)."""
        z = self.steps(X)
        J: FloatArray = np.sqrt((z**2).sum(axis=1)) + self.beta * np.abs(z).sum(axis=1)
        return J + (1 + self.beta) * self.per_change * (z != 0).sum(axis=1) if self.per_change else J


def n_changed(X: FloatArray, factual: FloatArray) -> IntArray:
    """How many features differ from the factual, (n,)."""
    n: IntArray = np.sum(factual != X, axis=1)
    return n
