"""Baseline: the cheapest hit among random reference rows."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

N_ROWS = 60


@method("random", style={"color": "#0072B2", "linestyle": ":"})
def random(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The cheapest hit among random reference rows."""
    rows = np.unique(task.project(task.scenario.reference), axis=0)
    chosen = np.random.default_rng(seed).permutation(len(rows))[:N_ROWS]
    hits = rows[chosen][model.is_hit(rows[chosen])]
    return hits[np.argsort(task.cost(hits), kind="stable")][:1]
