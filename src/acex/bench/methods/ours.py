"""The strategies of acex, as a user calls them."""

from __future__ import annotations

from acex.arrays import FloatArray, IntArray
from acex.bench.task import Door, Task
from acex.run.explainer import Explainer
from acex.search.penalty import Penalty
from acex.space.plausibility import Plausibility

FIRST_POINTS = {"moons": 4, "blood": 15, "mnist": 50}  # of the published algorithm, 30 elsewhere (docs/readings.md)


def feasible(task: Task, door: Door, seed: int) -> FloatArray:
    """The default strategy with the default budget, stopping by itself."""
    return _explained(task, door, seed, strategy="feasible")


def feasible_with_labels(task: Task, door: Door, seed: int) -> FloatArray:
    """The same, told the true outcomes of the reference, as DiCE and NICE are."""
    return _explained(task, door, seed, labels=task.ground.labels, strategy="feasible")


def penalty(task: Task, door: Door, seed: int) -> FloatArray:
    """ACE as published; the budget is there to end what does not end by itself."""
    strategy = Penalty(n0=FIRST_POINTS.get(task.ground.name, 30))
    return _explained(task, door, seed, strategy=strategy, budget=120)


def _explained(task: Task, door: Door, seed: int, labels: IntArray | None = None, **settings: object) -> FloatArray:
    g = task.ground
    # Plausible as in the paper: the same filter that affinity is measured with.
    plausibility = Plausibility(scale=False)
    explainer = Explainer(door.predict, g.reference, labels=labels, space=g.space, plausibility=plausibility)
    found = explainer.explain(task.x, seed=seed, progress=False, **settings)  # type: ignore[arg-type]
    candidates: FloatArray = found.counterfactuals.to_numpy(dtype=float)
    return candidates
