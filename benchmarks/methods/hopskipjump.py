"""HopSkipJump of the adversarial robustness toolbox (`make peers`), on numbers only."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from benchmarks.methods.isolated import isolated
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

START_DRAWS = 100  # as in the package


@method(
    "hopskipjump",
    needs=("art", "make peers"),
    given="ranges",
    numbers_only=True,
    style={"color": "#D55E00", "linestyle": ":"},
)
def hopskipjump(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The result of HopSkipJump with its defaults, on standardised features around the row, (1, d) or none.

    It is made for continuous data; if features are codes, the boundary that it follows is a step function.
    """
    region, unit = task.region, task.scenario.deviations
    # The attack divides by the width of each feature, so frozen features need some width.
    low = np.where(task.movable, (region.low - task.x) / unit, -1.0).astype(np.float32)
    high = np.where(task.movable, (region.high - task.x) / unit, 1.0).astype(np.float32)
    mask = task.movable.astype(np.float32)[None]

    def points(Z: FloatArray) -> FloatArray:
        return task.project(task.x + np.asarray(Z, dtype=float) * unit)

    def one_hot(Z: FloatArray) -> FloatArray:
        return np.eye(2)[model.predict(points(Z))]

    # Same as in the package, whose random numbers for the start cannot be seeded.
    draws = np.random.default_rng(seed).uniform(low, high, (START_DRAWS, len(low))).astype(np.float32) * mask
    start = next((z for z in draws if model.is_hit(points(z))[0]), None)
    if start is None:
        return np.empty((0, len(low)))
    with isolated(seed):
        from art.attacks.evasion import HopSkipJump
        from art.estimators.classification import BlackBoxClassifier

        classifier = BlackBoxClassifier(one_hot, task.x.shape, 2, clip_values=(low, high))
        attack = HopSkipJump(
            classifier, norm=2, batch_size=10_000, verbose=False
        )  # the same queries, in larger batches
        return points(attack.generate(np.zeros_like(mask), mask=mask, x_adv_init=start[None]))
