"""Search problems on the paper's data sets, and the least cost found by a search with a huge budget."""

from __future__ import annotations

from collections.abc import Callable
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

from acex.arrays import BoolArray, FloatArray
from acex.search.candidates import enumerate_region, from_hits, from_reference
from acex.search.problem import Problem
from acex.space.cost import CostFunction
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from benchmarks.scenario import Scenario, published

IsHit = Callable[[FloatArray], BoolArray]
MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: None,  # the model of the scenario
    "apart": lambda: None,  # the same, not trained on the reference
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "extra-trees": lambda: ExtraTreesClassifier(100, random_state=0),
    "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
    "svc": lambda: make_pipeline(StandardScaler(), SVC()),
    "mlp": lambda: make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=500, random_state=0)),
}


class Problems:
    """The search problems of one scenario; shared parts are computed once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.scale = Scale.of(scenario.space, scenario.reference)
        self.quantiles = Quantiles.of(self.scale, scenario.reference)

    def of(self, row: int) -> Problem:
        """The problem of a withheld row."""
        s = self.scenario
        x = s.rows[row]
        region = Region.of(s.space, x, constant=self.scale.deviations == 0)
        cost = CostFunction(self.scale, x, s.space.weights)
        return Problem(region, cost, self.scale, s.reference, s.density, self.quantiles)

    def is_hit(self, row: int) -> IsHit:
        """Which points have a label other than that of this row."""
        before = self.scenario.predict(self.scenario.rows[row : row + 1])[0]
        return lambda X: np.asarray(self.scenario.predict(X) != before)


@cache
def problems(data: str, model: str = "forest", seed: int = 0) -> Problems:
    """The problems of one of the paper's data sets with one of the models."""
    return Problems(published(data, seed, MODELS[model](), apart=model == "apart"))


def least_cost(problem: Problem, is_hit: IsHit, rounds: int = 25, n: int = 4000, best_of: int = 300) -> float:
    """The least cost of a plausible hit found by a search with about `rounds` times `n` queries; infinite if none."""
    return cost_and_changes(problem, cheapest_hit(problem, is_hit, rounds, n, best_of))[0]


def cost_and_changes(problem: Problem, hit: FloatArray) -> tuple[float, float]:
    """The cost of a hit, (1, d), and how many columns it changes; both infinite for none, (0, d)."""
    if len(hit) == 0:
        return np.inf, np.inf
    return float(problem.cost(hit)[0]), float((hit[0] != problem.factual).sum())


def cheapest_hit(problem: Problem, is_hit: IsHit, rounds: int = 25, n: int = 4000, best_of: int = 300) -> FloatArray:
    """The cheapest plausible hit found by a search with about `rounds` times `n` queries, (1, d), or none, (0, d).

    Candidates are generated as in strategy "feasible"; the cheapest hits of each round are the parents of the next.
    """
    rng = np.random.default_rng(0)
    hits = np.empty((0, len(problem.factual)))
    X = enumerate_region(problem)
    exhaustive = X is not None
    if X is None:
        X = np.vstack([problem.projected, from_reference(problem, rng, n)])
    for _ in range(1 if exhaustive else rounds):
        cost = problem.cost(X)
        best = problem.cost(hits[:1])[0] if len(hits) else np.inf
        X = X[(cost > 0) & (cost < best)]
        X = X[problem.region.contains(X)] if len(X) else X
        X = X[is_hit(X)] if len(X) else X
        X = X[np.argsort(problem.cost(X), kind="stable")]
        X = X if exhaustive else X[:best_of]
        hits = np.vstack([hits, X[problem.plausible(X)]])
        hits = hits[np.argsort(problem.cost(hits), kind="stable")][:10]
        X = from_reference(problem, rng, n // 2)
        if len(hits):
            X = np.vstack([X, from_hits(problem, rng, hits, n)])
    return hits[:1]
