"""ACE as published, without repairs: `benchmarks.published_ace`."""

from __future__ import annotations

from typing import Any

import numpy as np

from acex.api import Explainer
from acex.arrays import FloatArray
from acex.space.cost import Cost
from acex.space.plausibility import Plausibility
from benchmarks.methods.method import method
from benchmarks.methods.penalty import BUDGET, FIRST_POINTS
from benchmarks.published_ace import PublishedAce, answer
from benchmarks.task import CountedModel, Task


@method("ace-published", revision=PublishedAce.revision, style={"color": "#CC79A7", "linestyle": "--"})
def ace_published(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The algorithm exactly as published, called through the public interface; limited by the budget of `penalty`."""
    return explained(task, model, seed)


def explained(
    task: Task, model: CountedModel, seed: int, *repairs: str, beta: float = 5.0, **settings: Any
) -> FloatArray:
    """The answer of ACE with these repairs and settings, (1, d) or none."""
    s = task.scenario
    categorical = tuple(str(name) for name, is_one in zip(s.space.names, s.is_category, strict=True) if is_one)
    # The first points of a history are its rows, which are free.
    first = (
        {"n0": 1 + len(s.reference), "initial": "reference"} if s.is_history else {"n0": FIRST_POINTS.get(s.name, 30)}
    )
    strategy = PublishedAce.with_repairs(*repairs, **{**first, "categorical": categorical, **settings})
    # Without this repair, the strategy has its own filter, which is fitted on the points queried.
    filtered = strategy.reference_lof and not s.is_history
    plausibility = Plausibility(kind="lof", scale=False) if filtered else None
    explainer = Explainer(model.predict, s.reference, space=s.space, plausibility=plausibility)
    cost = Cost(per_category=None, beta=beta)
    e = explainer.explain(task.x, seed=seed, cost=cost, progress=False, strategy=strategy, budget=BUDGET)
    X = np.array([list(step.row.values()) for step in e.steps], dtype=float)
    found = answer(strategy, e.steps, X)
    return np.empty((0, len(task.x))) if found is None else found[None]
