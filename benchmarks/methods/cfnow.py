"""CFNOW as its own package runs it (`make peers`). Without scores it would have no direction, so it gets them."""

from __future__ import annotations

import time
from datetime import datetime
from unittest.mock import patch

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from benchmarks.methods.isolated import isolated
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

SECONDS = 10  # of computing; bounds only its refining, which often runs in circles without a query


@method("cfnow", needs=("cfnow", "make peers"), given="scores", style={"color": "#CC79A7", "linestyle": "--"})
def cfnow(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """What CFNOW's greedy search finds with its defaults, given the model's scores, (1, d) or none.

    It cannot freeze features, so queries and answers are moved to the nearest point that the row may become.
    """
    names = [f.name for f in task.scenario.space.features]

    def scores(X: FloatArray) -> FloatArray:
        return model.scores(task.project(np.atleast_2d(np.asarray(X, dtype=float))))

    with isolated(seed):
        from cfnow import _cf_searchers, _fine_tune, find_tabular

        factual = pd.Series(task.x, index=names)
        kinds = dict.fromkeys(names, "num")
        with patch.object(_cf_searchers, "datetime", _Computing), patch.object(_fine_tune, "datetime", _Computing):
            found = find_tabular(factual, scores, feat_types=kinds, cf_strategy="greedy", limit_seconds=SECONDS)
    candidates = np.array(found.cfs, dtype=float).reshape(-1, len(names))
    return task.project(candidates)


class _Computing:
    """A clock of CPU time, so that CFNOW gets the same amount on a busy machine."""

    @staticmethod
    def now() -> datetime:
        return datetime.fromtimestamp(time.process_time())
