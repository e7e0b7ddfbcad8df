"""Two honest baselines: the nearest row with the other label, trimmed; and the best of some random rows."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from acex.bench.task import Door, Task

RANDOM_ROWS = 60
BISECTIONS = 8, 5  # before and after changes are undone


def nearest(task: Task, door: Door, seed: int) -> FloatArray:
    """Ask reference rows by increasing cost until one is a hit, bisect the way back, undo changes, bisect again."""
    rows = np.unique(task.project(task.ground.reference), axis=0)
    rows = rows[(rows != task.x).any(axis=1)]
    best = next((row for row in rows[np.argsort(task.cost(rows), kind="stable")] if door.is_hit(row[None])[0]), None)
    if best is None:
        return np.empty((0, len(task.x)))
    first, second = BISECTIONS
    best = _nearer(task, door, best, first)
    for j in np.argsort(-np.abs(best - task.x) / task.ground.deviations, kind="stable"):  # dearest change first
        undone = best.copy()
        undone[j] = task.x[j]
        if (undone != best).any() and (undone != task.x).any() and door.is_hit(undone[None])[0]:
            best = undone
    return _nearer(task, door, best, second)[None]


def _nearer(task: Task, door: Door, hit: FloatArray, steps: int) -> FloatArray:
    """The hit nearest to the factual that so many halvings of the way find, (d,)."""
    best, low, high = hit, 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        point = task.project((task.x + middle * (hit - task.x))[None])[0]
        if (point == best).all() or (point == task.x).all():  # known without asking
            is_hit = bool((point == best).all())
        else:
            is_hit = bool(door.is_hit(point[None])[0])
        if is_hit:
            high, best = middle, point
        else:
            low = middle
    return best


def random(task: Task, door: Door, seed: int) -> FloatArray:
    """The cheapest hit among random reference rows."""
    rows = np.unique(task.project(task.ground.reference), axis=0)
    chosen = np.random.default_rng(seed).permutation(len(rows))[:RANDOM_ROWS]
    hits = rows[chosen][door.is_hit(rows[chosen])]
    return hits[np.argsort(task.cost(hits), kind="stable")][:1]
