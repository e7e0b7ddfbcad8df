"""Strategy "feasible" of acex, called through the public interface."""

from __future__ import annotations

from typing import Any

import numpy as np

from acex.api import Explainer
from acex.arrays import FloatArray, IntArray
from acex.search.feasible import Feasible
from acex.space.cost import Cost
from acex.space.plausibility import Plausibility
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

MARGIN = 0.7  # share of close rows that must be hits according to the surrogate
OUTCOMES = "rows, their true outcomes"
DOTTED = (0, (1, 1))


@method("feasible", revision=Feasible.revision, style={"color": "black", "linewidth": 2.6})
def feasible(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The default strategy with the default budget; it stops by itself."""
    return explained(task, model, seed, strategy="feasible")


@method(
    "feasible-labels",
    revision=Feasible.revision,
    given=OUTCOMES,
    style={"color": "black", "linestyle": DOTTED, "linewidth": 2.0},
)
def feasible_labels(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The same with the true outcomes of the reference, which DiCE and NICE get as well."""
    return explained(task, model, seed, outcomes=task.scenario.labels, strategy="feasible")


@method("feasible-150", revision=Feasible.revision)
def feasible_150(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """150 queries, all of which are spent."""
    return explained(task, model, seed, strategy=Feasible(effort="spend"), budget=150)


@method("feasible-margin", revision=Feasible.revision, given=OUTCOMES)
def feasible_margin(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """With outcomes, and an answer around which most rows are hits as well."""
    return explained(task, model, seed, outcomes=task.scenario.labels, strategy=Feasible(margin=MARGIN))


def explained(
    task: Task, model: CountedModel, seed: int, outcomes: IntArray | None = None, **options: Any
) -> FloatArray:
    """The counterfactuals of an `Explainer` with these options, (k, d)."""
    s = task.scenario
    # Plausible as in the paper: the same filter that affinity is measured with. Every controller is possible.
    no_filter = s.is_history or task.panel == "none"
    plausibility = None if no_filter else Plausibility(kind="lof", scale=False)
    if outcomes is not None and len(np.unique(outcomes)) < 2:
        outcomes = None  # a single class carries no information
    explainer = Explainer(model.labels, s.reference, outcomes=outcomes, space=s.space, plausibility=plausibility)
    cost = Cost(per_category=None)  # J as in the paper
    found = explainer.explain(task.x, seed=seed, cost=cost, progress=False, **options)
    candidates: FloatArray = found.counterfactuals.to_numpy(dtype=float)
    return candidates
