"""NICE from its own package (`make peers`). It cannot freeze features; its answers are not changed."""

from __future__ import annotations

import numpy as np

from acex.arrays import FloatArray
from benchmarks.methods.feasible import OUTCOMES
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task


@method("nice", needs=("nice", "make peers"), given=OUTCOMES, labels_reference=True, style={"color": "#E69F00"})
def nice(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The result of NICE optimised for sparsity, (1, d) or none. It queries all labels of the reference."""
    from nice import NICE

    def one_hot(X: FloatArray) -> FloatArray:
        return np.eye(2)[model.predict(X)]

    g = task.scenario
    explainer = NICE(one_hot, g.reference.copy(), cat_feat=[], y_train=g.labels, optimization="sparsity")
    known = explainer.data
    if not (known.candidates_mask & (known.X_train_class != model.before)).any():
        return np.empty((0, len(task.x)))  # NICE fails without a reference row to start from
    found: FloatArray = explainer.explain(task.x[None].copy())
    return found
