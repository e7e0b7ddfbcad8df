"""Small problems for the tests of the search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search.candidates import from_reference
from acex.search.evidence import Evidence
from acex.search.feasible import Feasible
from acex.search.problem import History, Problem, Query, key
from acex.search.search import Search
from acex.space.cost import CostFunction
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.plausibility import Plausibility
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space

MIXED = Space(
    (
        Continuous("length", 0.0, 10.0),
        Integer("children", 0, 6),
        Ordinal("school", ("none", "primary", "high", "university")),
        Nominal("colour", ("red", "green", "blue")),
        Integer("income", 0, 5000),
        Continuous("age", 18.0, 90.0, frozen=True),
    )
)
DISCRETE = Space(
    (
        Integer("children", 0, 4),
        Ordinal("school", ("none", "primary", "high", "university")),
        Nominal("colour", ("red", "green", "blue")),
        Nominal("pet", ("cat", "dog")),
    )
)

PEOPLE = Space((Integer("age", 18, 99), Continuous("income", 0, 1e6), Nominal("job", ("cook", "clerk"))))


def reference_rows(space: Space, n: int = 200, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return space.snap(space.low + rng.random((n, len(space))) * (space.high - space.low))


def problem(space: Space = MIXED, *, seed: int = 0, beta: float = 5.0, plausible: bool = True) -> Problem:
    reference = reference_rows(space, seed=seed)
    scale = Scale.of(space, reference)
    x = reference[0]
    density = Plausibility().fit(reference, scale) if plausible else None
    cost, quantiles = CostFunction(scale, x, space.weights, beta), Quantiles.of(scale, reference)
    return Problem(Region.of(space, x), cost, scale, reference, density, quantiles)


def answered(p: Problem, n: int = 20, seed: int = 0) -> History:
    """A history of n reference rows; hits are those whose first two features are high."""
    rows = p.projected[np.random.default_rng(seed).permutation(len(p.projected))]
    rows = np.array([r for r in rows if key(r) != key(p.factual)])[: n - 1]
    points = np.vstack([p.factual, rows])
    queries = tuple(Query(x, "initial" if i else "factual") for i, x in enumerate(points))
    return History(queries, tuple(bool(h) for h in decide(p, points)))


def decide(p: Problem, X: FloatArray) -> BoolArray:
    """Hits: standardised first two features sum to more than the factual's, by one deviation."""
    z = (X[:, :2] - p.factual[:2]) * p.scale.per_unit[:2]
    return np.asarray(z.sum(axis=1) > 1.0)


def all_points(space: Space) -> FloatArray:
    """Every point of a discrete space, (n, d)."""
    axes = [np.arange(f.low, f.high + 1) for f in space.features]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(space))


def run(search: Search, n: int = 60, never: bool = False) -> Search:
    """The search after n queries, or when it has stopped."""
    while len(search.history.queries) < n:
        query = search.ask()
        if query is None:
            break
        hit = not never and bool(decide(search.problem, query.point[None])[0])
        search = search.tell(query, hit)
    return search


def asked(p: Problem, n: int = 12) -> History:
    """A history of random points with their answers."""
    history = Search.begin(p, Feasible()).history
    for x in from_reference(p, np.random.default_rng(1), n):
        history = history.with_answer(Query(x, "row"), bool(decide(p, x[None])[0]))
    return history


def evidence(p: Problem, n: int = 12) -> Evidence:
    history = asked(p, n)
    return Evidence(p, history, history.is_hit)


def hinted(p: Problem) -> Problem:
    return replace(p, hint=lambda X: np.where(decide(p, X), 0.8, 0.3))
