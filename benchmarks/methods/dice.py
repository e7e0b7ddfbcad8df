"""DiCE from its own package (`make peers`), with one-hot labels in place of probabilities.

For an impossible point, such as half a child, the nearest possible one is queried and returned. Categories count as
their codes, as everywhere in the benchmark.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, IntArray
from benchmarks.methods.feasible import OUTCOMES
from benchmarks.methods.isolated import isolated
from benchmarks.methods.method import method
from benchmarks.task import UNLIMITED, CapReached, CountedModel, Task

GENETIC_LIMIT = 5000  # queries in addition to the labels of the reference; without a counterfactual it would never stop
OUTCOME = "outcome of the row"  # no feature has this name
NEEDS = ("dice_ml", "make peers")


@method("dice-random", needs=NEEDS, given="ranges", style={"color": "#56B4E9"})
def dice_random(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The result of DiCE's random sampling with its defaults, (1, d) or none."""
    return _dice(task, _Classifier(task, model), seed, method="random", settings={"random_seed": seed})


@method(
    "dice-genetic", needs=NEEDS, given=OUTCOMES, labels_reference=True, style={"color": "#56B4E9", "linestyle": "--"}
)
def dice_genetic(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The result of DiCE's genetic search with its defaults, (1, d) or none. It queries all labels of the reference."""
    limit = len(task.scenario.reference) + GENETIC_LIMIT
    return _dice(task, _Classifier(task, model, limit), seed, method="genetic", settings={})


@method("dice-kdtree", needs=NEEDS, given=OUTCOMES, labels_reference=True, style={"color": "#56B4E9", "linestyle": ":"})
def dice_kdtree(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The row that DiCE finds in a k-d tree of the reference, (1, d) or none. It queries all their labels."""
    return _dice(task, _Classifier(task, model), seed, method="kdtree", settings={})


def _dice(task: Task, classifier: _Classifier, seed: int, *, method: str, settings: dict[str, int]) -> FloatArray:
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    g = task.scenario
    names = [f.name for f in g.space.features]
    whole = [f.name for f in g.space.features if f.is_whole]
    rows = pd.DataFrame(np.vstack([task.x, g.reference]), columns=names).astype(dict.fromkeys(whole, int))
    factual, reference = rows[:1], rows[1:].reset_index(drop=True)
    with isolated(seed):
        data = dice_ml.Data(
            dataframe=reference.assign(**{OUTCOME: g.labels}), continuous_features=names, outcome_name=OUTCOME
        )
        model = dice_ml.Model(model=classifier, backend="sklearn", model_type="classifier")
        try:
            found = dice_ml.Dice(data, model, method=method).generate_counterfactuals(
                factual,
                total_CFs=1,
                features_to_vary=[n for n, moves in zip(names, task.movable, strict=True) if moves],
                **settings,
            )
        except UserConfigValidationException as error:
            if "No counterfactuals found" not in str(error):
                raise
            return np.empty((0, len(names)))
    result = found.cf_examples_list[0].final_cfs_df_sparse  # what DiCE displays
    return _points(task, result) if result is not None else np.empty((0, len(names)))


class _Classifier:
    """A classifier of data frames, as in scikit-learn, that queries the counted model, up to a limit."""

    def __init__(self, task: Task, model: CountedModel, limit: int = UNLIMITED) -> None:
        self._task, self._model, self._limit = task, model, limit
        self.classes_ = np.array([0, 1])

    def predict(self, rows: pd.DataFrame) -> IntArray:
        if self._model.queries > self._limit:
            raise CapReached
        return self._model.predict(_points(self._task, rows))

    def predict_proba(self, rows: pd.DataFrame) -> FloatArray:
        return np.eye(2)[self.predict(rows)]


def _points(task: Task, rows: pd.DataFrame) -> FloatArray:
    """The points for rows of DiCE, (n, d); its single precision would otherwise change features that stay."""
    space = task.scenario.space
    X = rows[[f.name for f in space.features]].to_numpy(dtype=float)
    return space.snap(np.where(X.astype(np.float32) == task.x.astype(np.float32), task.x, X))
