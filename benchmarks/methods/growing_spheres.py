"""Growing Spheres (Laugel et al. 2018, "Comparison-based inverse classification for interpretability in machine
learning"), with the layers of CARLA (Pawelczyk et al. 2021), which ACE was compared with.

CARLA draws 1000 points in a spherical layer of width 0.2 around the row (binary features by a fair coin) and continues
with the next layer until there is a hit; the nearest hit is its answer. Its first layer is not shrunk. The radius is
uniform within a layer, so the inner part is denser than with a uniform volume. Whole numbers, including the codes of
categories, are rounded.

growing-spheres       features scaled to [0, 1], as CARLA's own data sets are, followed by Laugel's projection: the
                      changes of the nearest hit are reverted one by one, smallest first, as long as it stays a hit
growing-spheres-raw   layers of 0.2 in the units of the table and no projection. This is how ACE's paper seems to have
                      run it: its queries are 1000 d2 / 0.2, and its g1 / d2 is that of a random direction,
                      sqrt(2 d / pi), which a projection would reduce
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acex.arrays import FloatArray
from benchmarks.methods.gower import widths
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

LAYER = 1000  # points in a layer
STEP = 0.2  # width of a layer


@method("growing-spheres", given="ranges", style={"color": "#D55E00"})
def growing_spheres(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The nearest hit in units of the ranges, projected, (1, d)."""
    return projected(task, model, nearest_hit(task, model, seed, widths(task)))[None]


@method("growing-spheres-raw", given="two-valued features", style={"color": "#D55E00", "linestyle": ":"})
def growing_spheres_raw(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The nearest hit in the units of the table, (1, d)."""
    return nearest_hit(task, model, seed, np.ones(len(task.x)))[None]


def nearest_hit(task: Task, model: CountedModel, seed: int, unit: FloatArray) -> FloatArray:
    """The nearest hit of the first layer that has one, (d,).

    If there is no counterfactual, the spheres grow until the query cap is reached.
    """
    for X in layers(task, seed, unit):
        hits = X[model.is_hit(X)]
        if len(hits):
            nearest: FloatArray = hits[np.argmin(np.linalg.norm((hits - task.x) / unit, axis=1))]
            return nearest
    raise AssertionError("there is always another layer")


def layers(task: Task, seed: int, unit: FloatArray) -> Iterator[FloatArray]:
    """One layer after the other, as allowed points, each (LAYER, d); `unit` is the unit of length, (d,)."""
    rng = np.random.default_rng(seed)
    reference = task.scenario.reference
    is_coin = task.movable & np.array([len(np.unique(column)) == 2 for column in reference.T])
    is_free = task.movable & ~is_coin
    lower, upper = reference.min(axis=0)[is_coin], reference.max(axis=0)[is_coin]
    low = 0.0
    while True:
        X = np.tile(task.x, (LAYER, 1))
        X[:, is_free] += shell(rng, int(is_free.sum()), low) * unit[is_free]
        X[:, is_coin] = np.where(rng.random((LAYER, len(lower))) < 0.5, lower, upper)
        yield task.project(X)
        low += STEP


def shell(rng: np.random.Generator, d: int, low: float) -> FloatArray:
    """Steps of length `low` to `low + STEP` in random directions, (LAYER, d)."""
    direction = rng.standard_normal((LAYER, d))
    radius = low + STEP * rng.random((LAYER, 1))
    steps: FloatArray = direction * radius / np.linalg.norm(direction, axis=1, keepdims=True)
    return steps


def projected(task: Task, model: CountedModel, hit: FloatArray) -> FloatArray:
    """The hit with as many features as possible reset to the factual's values, (d,)."""
    for j in np.argsort(np.abs(hit - task.x) / widths(task), kind="stable"):
        undone = hit.copy()
        undone[j] = task.x[j]
        if (undone != hit).any() and (undone != task.x).any() and model.is_hit(undone[None])[0]:
            hit = undone
    return hit
