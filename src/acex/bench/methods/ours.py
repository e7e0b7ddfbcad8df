"""The strategies of acex, as a user calls them."""

from __future__ import annotations

import numpy as np

from acex.api import Explainer
from acex.arrays import FloatArray, IntArray
from acex.bench.task import Door, Task
from acex.search.penalty import Penalty
from acex.space.plausibility import Plausibility

MARGIN = 0.7  # share of the surroundings, by the surrogate
FIRST_POINTS = {"moons": 4, "blood": 15, "mnist": 50}  # of the published algorithm, 30 elsewhere (docs/readings.md)


def feasible(task: Task, door: Door, seed: int) -> FloatArray:
    """The default strategy with the default budget, stopping by itself."""
    return _explained(task, door, seed, strategy="feasible")


def feasible_with_labels(task: Task, door: Door, seed: int) -> FloatArray:
    """The same, told the true outcomes of the reference, as DiCE and NICE are."""
    return _explained(task, door, seed, labels=task.ground.labels, strategy="feasible")


def feasible_with_margin(task: Task, door: Door, seed: int) -> FloatArray:
    """With outcomes too, and wanting an answer whose surroundings are hits as well."""
    return _explained(task, door, seed, labels=task.ground.labels, strategy="feasible", margin=MARGIN)


def penalty(task: Task, door: Door, seed: int) -> FloatArray:
    """ACE, with the repairs of docs/readings.md; the budget is there to end what does not end by itself."""
    g = task.ground
    # A history is what it begins with, and costs nothing.
    n0 = 1 + len(g.reference) if g.is_history else FIRST_POINTS.get(g.name, 30)
    strategy = Penalty(n0=n0)
    return _explained(task, door, seed, strategy=strategy, budget=120)


def _explained(task: Task, door: Door, seed: int, labels: IntArray | None = None, **settings: object) -> FloatArray:
    g = task.ground
    # Plausible as in the paper: the same filter that affinity is measured with. Designs are all possible.
    plausibility = None if g.is_history else Plausibility(kind="lof", scale=False)
    if labels is not None and len(np.unique(labels)) < 2:
        labels = None  # they would say nothing
    explainer = Explainer(door.predict, g.reference, labels=labels, space=g.space, plausibility=plausibility)
    settings = {"category_cost": None, **settings}  # J as in the paper
    found = explainer.explain(task.x, seed=seed, progress=False, **settings)  # type: ignore[arg-type]
    candidates: FloatArray = found.counterfactuals.to_numpy(dtype=float)
    return candidates
