"""The least cost that a search with about 100,000 queries finds: what a few queries are measured against.

    python benchmarks/limit.py diabetes,kc2 --rows 20

The same candidate families as strategy "feasible", asked without restraint: the cheapest plausible hits of each
round are the parents of the next.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import acex
from acex.arrays import BoolArray, FloatArray
from acex.bench.ground import Ground, ground
from acex.search.candidates import enumerate_region, from_hits, from_reference
from acex.search.problem import Problem
from acex.space.cost import CostFunction
from acex.space.plausibility import Plausibility
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale

MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: None,  # the ground's own
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "extra-trees": lambda: ExtraTreesClassifier(100, random_state=0),
    "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
    "svc": lambda: make_pipeline(StandardScaler(), SVC()),
    "mlp": lambda: make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=500, random_state=0)),
}

ROUNDS, PER_ROUND, PARENTS = 25, 4000, 10


class Problems:
    """The problems of one ground, with what they share worked out once."""

    def __init__(self, g: Ground, scale: bool = False) -> None:
        self.g = g
        self.scale = Scale.of(g.space, g.reference)
        self.density = Plausibility(kind="lof", scale=scale).fit(g.reference, self.scale)
        self.quantiles = Quantiles.of(self.scale, g.reference)

    def of(self, row: int) -> Problem:
        x = self.g.rows[row]
        region = Region.of(self.g.space, x, constant=self.scale.deviations == 0)
        cost = CostFunction(self.scale, x, self.g.space.weights)
        return Problem(region, cost, self.scale, self.g.reference, self.density, self.quantiles)

    def is_hit(self, row: int) -> Callable[[FloatArray], BoolArray]:
        """What asks the model whether points have another label than this row."""
        before = self.g.predict(self.g.rows[row : row + 1])[0]
        return lambda X: np.asarray(self.g.predict(X) != before)


@cache
def grounds(name: str, model: str, nominal: bool, seed: int) -> tuple[Ground, Problems]:
    """One of the paper's data sets with one of the models; `nominal` takes categories as they are, without an order."""
    g = ground(name, seed, MODELS[model]())
    if nominal:
        g = replace(g, space=acex.datasets.paper(name).space)
    return g, Problems(g, scale=nominal)


def least_cost(problem: Problem, is_hit: Callable[[FloatArray], BoolArray], seed: int = 0) -> float:
    """The least J of a plausible hit that was found; infinite when none was."""
    rng = np.random.default_rng(seed)
    hits = np.empty((0, len(problem.factual)))
    X = enumerate_region(problem)
    exhaustive = X is not None
    if X is None:
        X = np.vstack([problem.projected, from_reference(problem, rng, PER_ROUND)])
    for _ in range(1 if exhaustive else ROUNDS):
        cost = problem.cost(X)
        best = problem.cost(hits[:1])[0] if len(hits) else np.inf
        X = X[(cost > 0) & (cost < best)]
        X = X[is_hit(X)] if len(X) else X
        X = X[np.argsort(problem.cost(X), kind="stable")]
        X = X[problem.plausible(X)] if exhaustive else X[:300][problem.plausible(X[:300])]
        hits = np.vstack([hits, X])
        hits = hits[np.argsort(problem.cost(hits), kind="stable")][:PARENTS]
        X = from_reference(problem, rng, PER_ROUND // 2)
        if len(hits):
            X = np.vstack([X, from_hits(problem, rng, hits, PER_ROUND)])
    return float(problem.cost(hits[:1])[0]) if len(hits) else np.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default=",".join(acex.datasets.PAPER))
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name in args.data.split(","):
        g = ground(name, args.seed)
        problems = Problems(g)
        costs = [least_cost(problems.of(row), problems.is_hit(row)) for row in range(args.rows)]
        found = [c for c in costs if np.isfinite(c)]
        summary = f"mean J {np.mean(found):.2f}  median {np.median(found):.2f}"
        print(f"{name:14s} found {len(found)}/{args.rows}  {summary}", flush=True)


if __name__ == "__main__":
    main()
