"""DiCE, NICE, CFNOW and HopSkipJump as their own packages run them, each behind the door.

The packages are no dependencies of acex: `make peers` installs them, and `missing` says what is not there. They want
probabilities and get the label, one-hot; CFNOW, which without them would have no direction, gets the scores. A point
that no row can hold, such as half a child, is asked and returned as the nearest one that can be. NICE cannot freeze
features, and what it finds is left as it is. Categories count as their codes, as everywhere in the benchmark.
"""

from __future__ import annotations

import contextlib
import io
import logging
import random
import time
import warnings
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from unittest.mock import patch

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, IntArray
from acex.bench.task import UNLIMITED, CapReached, Door, Task

GENETIC_LIMIT = 5000  # queries beyond the labels of the reference; without a counterfactual it would ask for ever
PACKAGES = {  # the module a method needs, and how it is installed
    "moc": ("pymoo", "pip install 'acex[bench]'"),
    "dice_random": ("dice_ml", "make peers"),
    "dice_genetic": ("dice_ml", "make peers"),
    "dice_kdtree": ("dice_ml", "make peers"),
    "nice": ("nice", "make peers"),
    "cfnow": ("cfnow", "make peers"),
    "treecf": ("treecf", "pip install 'acex[optimum]'"),
    "hopskipjump": ("art", "make peers"),
}
CFNOW_SECONDS = 10  # of computing, which bounds its refining alone: that often goes in circles and asks nothing
START_DRAWS = 100  # of HopSkipJump, as in the package
OUTCOME = "outcome of the row"  # no feature has this name


def missing(name: str) -> str | None:
    """Why this method cannot run here; None where it can."""
    module, command = PACKAGES.get(name, ("acex", ""))
    return None if find_spec(module) else f"{name} needs {module}, which is not installed: {command}"


def dice_random(task: Task, door: Door, seed: int) -> FloatArray:
    """What DiCE finds by random sampling with its defaults, (1, d) or none."""
    return _dice(task, _Classifier(task, door), seed, method="random", settings={"random_seed": seed})


def dice_genetic(task: Task, door: Door, seed: int) -> FloatArray:
    """What DiCE's genetic search finds with its defaults, (1, d) or none. It asks for all labels of the reference."""
    limit = len(task.ground.reference) + GENETIC_LIMIT
    return _dice(task, _Classifier(task, door, limit), seed, method="genetic", settings={})


def dice_kdtree(task: Task, door: Door, seed: int) -> FloatArray:
    """The row that DiCE finds in a k-d tree of the reference, (1, d) or none. It asks for all their labels."""
    return _dice(task, _Classifier(task, door), seed, method="kdtree", settings={})


def _dice(task: Task, classifier: _Classifier, seed: int, *, method: str, settings: dict[str, int]) -> FloatArray:
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    g = task.ground
    names = [f.name for f in g.space.features]
    whole = [f.name for f in g.space.features if f.is_whole]
    rows = pd.DataFrame(np.vstack([task.x, g.reference]), columns=names).astype(dict.fromkeys(whole, int))
    factual, reference = rows[:1], rows[1:].reset_index(drop=True)
    with _alone(seed):
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
    result = found.cf_examples_list[0].final_cfs_df_sparse  # what it shows
    return _points(task, result) if result is not None else np.empty((0, len(names)))


def nice(task: Task, door: Door, seed: int) -> FloatArray:
    """What NICE finds when it goes for sparsity, (1, d) or none. It asks for all labels of the reference."""
    from nice import NICE

    def one_hot(X: FloatArray) -> FloatArray:
        return np.eye(2)[door.predict(X)]

    g = task.ground
    explainer = NICE(one_hot, g.reference.copy(), cat_feat=[], y_train=g.labels, optimization="sparsity")
    known = explainer.data
    if not (known.candidates_mask & (known.X_train_class != door.before)).any():
        return np.empty((0, len(task.x)))  # no reference row to start from, and NICE would fail
    found: FloatArray = explainer.explain(task.x[None].copy())
    return found


def cfnow(task: Task, door: Door, seed: int) -> FloatArray:
    """What CFNOW's greedy search finds with its defaults, told the model's scores, (1, d) or none.

    It can freeze nothing, so it is asked and answered with the nearest point that the row may become.
    """
    names = [f.name for f in task.ground.space.features]

    def scores(X: FloatArray) -> FloatArray:
        return door.scores(task.project(np.atleast_2d(np.asarray(X, dtype=float))))

    with _alone(seed):
        from cfnow import _cf_searchers, _fine_tune, find_tabular

        factual = pd.Series(task.x, index=names)
        kinds = dict.fromkeys(names, "num")
        with patch.object(_cf_searchers, "datetime", _Computing), patch.object(_fine_tune, "datetime", _Computing):
            found = find_tabular(factual, scores, feat_types=kinds, cf_strategy="greedy", limit_seconds=CFNOW_SECONDS)
    candidates = np.array(found.cfs, dtype=float).reshape(-1, len(names))
    return task.project(candidates)


def hopskipjump(task: Task, door: Door, seed: int) -> FloatArray:
    """Where HopSkipJump ends with its defaults, on standardised features around the row, (1, d) or none.

    Made for continuous data: where features are codes, the boundary that it walks along is a staircase.
    """
    region, unit = task.region, task.ground.deviations
    # A feature that stays gets some width all the same: the attack divides by it.
    low = np.where(task.movable, (region.low - task.x) / unit, -1.0).astype(np.float32)
    high = np.where(task.movable, (region.high - task.x) / unit, 1.0).astype(np.float32)
    mask = task.movable.astype(np.float32)[None]

    def points(Z: FloatArray) -> FloatArray:
        return task.project(task.x + np.asarray(Z, dtype=float) * unit)

    def one_hot(Z: FloatArray) -> FloatArray:
        return np.eye(2)[door.predict(points(Z))]

    # The package would draw its start from numbers that cannot be seeded; else this is what it does.
    draws = np.random.default_rng(seed).uniform(low, high, (START_DRAWS, len(low))).astype(np.float32) * mask
    start = next((z for z in draws if door.is_hit(points(z))[0]), None)
    if start is None:
        return np.empty((0, len(low)))
    with _alone(seed):
        from art.attacks.evasion import HopSkipJump
        from art.estimators.classification import BlackBoxClassifier

        classifier = BlackBoxClassifier(one_hot, task.x.shape, 2, clip_values=(low, high))
        attack = HopSkipJump(classifier, norm=2, batch_size=10_000, verbose=False)  # asks the same, in larger batches
        return points(attack.generate(np.zeros_like(mask), mask=mask, x_adv_init=start[None]))


class _Computing:
    """A clock that counts what this process computes: on a busy machine CFNOW is given as much as on an idle one."""

    @staticmethod
    def now() -> datetime:
        return datetime.fromtimestamp(time.process_time())


class _Classifier:
    """A scikit-learn like classifier of frames that asks through the door, up to a limit."""

    def __init__(self, task: Task, door: Door, limit: int = UNLIMITED) -> None:
        self._task, self._door, self._limit = task, door, limit
        self.classes_ = np.array([0, 1])

    def predict(self, rows: pd.DataFrame) -> IntArray:
        if self._door.queries > self._limit:
            raise CapReached
        return self._door.predict(_points(self._task, rows))

    def predict_proba(self, rows: pd.DataFrame) -> FloatArray:
        return np.eye(2)[self.predict(rows)]


def _points(task: Task, rows: pd.DataFrame) -> FloatArray:
    """What DiCE means by these rows, (n, d): it keeps single precision, which would move features that stay."""
    space = task.ground.space
    X = rows[[f.name for f in space.features]].to_numpy(dtype=float)
    return space.snap(np.where(X.astype(np.float32) == task.x.astype(np.float32), task.x, X))


@contextlib.contextmanager
def _alone(seed: int) -> Iterator[None]:
    """Within, nothing is printed, and the global random numbers that the packages draw from begin at a seed."""
    before = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    loud = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    silence = io.StringIO()
    try:
        with contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(loud)
        np.random.set_state(before[0])  # noqa: NPY002
        random.setstate(before[1])
