"""CFNOW from its own package (`make peers`). It uses the model's scores, without which it would have no direction."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from benchmarks.methods.isolated import isolated
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

SECONDS = 10  # CPU seconds; limits only the refinement of the first counterfactual
STUCK = 1  # CPU seconds without a query: the greedy search has no change left to try, and would loop forever


@method(
    "cfnow", needs=("cfnow", "make peers"), given="scores", revision=2, style={"color": "#CC79A7", "linestyle": "--"}
)
def cfnow(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The result of CFNOW's greedy search with its defaults, given the model's scores, (1, d) or none.

    It cannot freeze features, so queries and answers are moved to the nearest allowed point.
    """
    names = [f.name for f in task.scenario.space.features]
    clock = _Clock()

    def scores(X: FloatArray) -> FloatArray:
        clock.queried = time.process_time()
        return model.scores(task.project(np.atleast_2d(np.asarray(X, dtype=float))))

    with isolated(seed):
        from cfnow import _cf_searchers, _fine_tune, find_tabular

        factual = pd.Series(task.x, index=names)
        kinds = dict.fromkeys(names, "num")
        with (
            patch.object(_cf_searchers, "datetime", clock),
            patch.object(_fine_tune, "datetime", clock),
            patch.object(
                _cf_searchers,
                "_greedy_generator_stop_conditions",
                clock.checked(_cf_searchers._greedy_generator_stop_conditions),
            ),
            patch.object(_fine_tune, "_generate_change_vectors", of_neighbours(_fine_tune._generate_change_vectors)),
        ):
            found = find_tabular(factual, scores, feat_types=kinds, cf_strategy="greedy", limit_seconds=SECONDS)
    candidates = np.array(found.cfs, dtype=float).reshape(-1, len(names))
    return task.project(candidates)


class _Clock:
    """A clock of CPU time, so that CFNOW gets as much on a busy machine; it jumps ahead when the search is stuck."""

    def __init__(self) -> None:
        self.queried = time.process_time()

    def is_stuck(self) -> bool:
        return time.process_time() - self.queried > STUCK

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.process_time() + SECONDS * self.is_stuck())

    def checked(self, stop_conditions: Callable[..., bool]) -> Callable[..., bool]:
        """The same function; an error where it would never end, because the first search looks at no clock."""

        def check(*, ft_time: datetime | None, **others: Any) -> bool:
            if ft_time is None and self.is_stuck():
                raise RuntimeError("no change is left to try, and no counterfactual found")
            return stop_conditions(ft_time=ft_time, **others)

        return check


def of_neighbours(change_vectors: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, but faster: it only uses those points found so far that differ in at most one feature."""

    def quicker(factual: Any, factual_np: Any, point: FloatArray, *rest: Any) -> Any:
        found = np.asarray(rest[-1])
        return change_vectors(factual, factual_np, point, *rest[:-1], found[(found != point).sum(axis=1) <= 1])

    return quicker
