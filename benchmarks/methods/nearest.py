"""Baseline: the nearest reference row with another label, bisected and trimmed."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

BISECTIONS = 8, 5  # before and after changes are reverted


@method("nearest", style={"color": "#0072B2"})
def nearest(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """Query reference rows by increasing cost until one is a hit, then bisect, revert changes and bisect again."""
    rows = np.unique(task.project(task.scenario.reference), axis=0)
    rows = rows[(rows != task.x).any(axis=1)]
    best = next((row for row in rows[np.argsort(task.cost(rows), kind="stable")] if model.is_hit(row[None])[0]), None)
    if best is None:
        return np.empty((0, len(task.x)))
    first, second = BISECTIONS
    best = _nearer(task, model, best, first)
    for j in np.argsort(-np.abs(best - task.x) / task.scenario.deviations, kind="stable"):  # largest change first
        reverted = best.copy()
        reverted[j] = task.x[j]
        if (reverted != best).any() and (reverted != task.x).any() and model.is_hit(reverted[None])[0]:
            best = reverted
    return _nearer(task, model, best, second)[None]


def _nearer(task: Task, model: CountedModel, hit: FloatArray, steps: int) -> FloatArray:
    """The hit nearest to the factual found by bisecting the line to it `steps` times, (d,)."""
    best, low, high = hit, 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        point = task.project((task.x + middle * (hit - task.x))[None])[0]
        if (point == best).all() or (point == task.x).all():  # known without a query
            is_hit = bool((point == best).all())
        else:
            is_hit = bool(model.is_hit(point[None])[0])
        if is_hit:
            high, best = middle, point
        else:
            low = middle
    return best
