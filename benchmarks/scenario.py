"""Data sets with their black boxes: reference, rows to explain and scale, the same for every method.

Rows are arrays of codes, and categories count as their codes, as in the paper. 100 rows are withheld from
training; the first of them are explained. Standard deviations are those of the whole data set.

`SCENARIOS` has one entry per name; to add a table, add a function that returns its `Scenario`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.kinds import Integer
from acex.space.plausibility import Density, Plausibility
from acex.space.scale import Scale
from acex.space.space import Space
from benchmarks import heat_exchanger
from benchmarks.network import image_classifier
from benchmarks.published import PAPER, binary, load, mnist

N_WITHHELD = 100
PAPERS_POINT = (0.55, 0.25)  # the instance in the paper's figure of moons, explained first
N_IMAGES = 2000  # number of train images in the reference


class Forest(RandomForestClassifier):  # type: ignore[misc]
    """The same forest with a faster prediction.

    scikit-learn takes milliseconds for a single row, which dominates the run time of methods that query row by row.
    """

    def predict_proba(self, X: Any) -> FloatArray:
        """The mean of the trees' class probabilities, (n, classes)."""
        codes = np.ascontiguousarray(X, dtype=np.float32)
        total = np.zeros((len(codes), len(self.classes_)))
        for tree in self.estimators_:
            total += tree.tree_.predict(codes)
        return total / len(self.estimators_)


@dataclass(frozen=True, eq=False)
class Scenario:
    """One data set with its black box."""

    name: str
    space: Space  # categories declared as integer codes
    model: Any  # fitted, hard labels 0 and 1
    rows: FloatArray  # withheld, in the order in which they are explained, (100, d) by default
    reference: FloatArray  # training data of the model, (m, d)
    labels: IntArray  # its true labels, (m,)
    deviations: FloatArray  # of the whole data set, (d,)
    is_category: BoolArray  # which features are categories, although codes count as numbers here, (d,)
    is_history: bool = False  # the reference was queried before: its labels are the model's, and free

    def predict(self, X: FloatArray) -> IntArray:
        """Hard labels of points, (n,)."""
        labels: IntArray = self.model.predict(X)
        return labels

    def cost(self, X: FloatArray, x: FloatArray) -> FloatArray:
        """J = d2n + 5 g1n of points around x on the paper's scale, (n,)."""
        z = (X - x) / self.deviations
        J: FloatArray = np.sqrt((z**2).sum(axis=1)) + 5 * np.abs(z).sum(axis=1)
        return J

    @property
    def is_constant(self) -> BoolArray:
        """Which features are constant in the reference, (d,)."""
        constant: BoolArray = np.ptp(self.reference, axis=0) == 0
        return constant

    def in_reference(self, x: FloatArray) -> bool:
        """Whether this point, (d,), equals a row of the reference."""
        return bool((self.reference == x).all(axis=1).any())

    @cached_property
    def density(self) -> Density:
        """The paper's plausibility: the local outlier factor on raw codes."""
        return Plausibility(kind="lof", scale=False).fit(self.reference, Scale.of(self.space, self.reference))


def published(
    name: str, seed: int = 0, model: Any = None, n_withheld: int = N_WITHHELD, apart: bool = False
) -> Scenario:
    """One of the paper's data sets with a forest of 100 trees unless another model is given.

    "moons" has the paper's support vector machine, and its first row is the paper's instance.

    Args:
        apart: the model is trained on half of the rows that are not withheld; the other half is the reference.
    """
    data = load(name)
    X, y = data.codes, binary(data)
    withheld = np.random.default_rng(seed).choice(len(X), n_withheld, replace=False)
    keep = np.ones(len(X), dtype=bool)
    keep[withheld] = False
    if model is None:
        model = SVC(gamma=1.0) if name == "moons" else Forest(100, random_state=seed)
    trained = known = np.flatnonzero(keep)
    if apart:
        known = np.random.default_rng(seed).permutation(known)
        trained, known = np.sort(known[: len(known) // 2]), np.sort(known[len(known) // 2 :])
    model.fit(X[trained], y[trained])
    is_category = np.array([not f.is_number for f in data.space.features])
    space = coded(data.space).like(X)
    rows = np.vstack([PAPERS_POINT, X[withheld]]) if name == "moons" else X[withheld]
    return Scenario(name, space, model, rows, X[known], y[known], deviations(X), is_category)


def images(seed: int = 0, model: Any = None) -> Scenario:
    """MNIST with a network: the reference is a sample of the train images, the rows are test images of the digit 8."""
    train, test = mnist("train"), mnist("test")
    X, y = train.codes, binary(train)
    model = image_classifier(seed) if model is None else model
    model.fit(X, y)
    rng = np.random.default_rng(seed)
    keep = rng.choice(len(X), N_IMAGES, replace=False)
    eights = test.codes[(binary(test) == 0) & (model.predict(test.codes) == 0)]
    rows = rng.permutation(eights)[:N_WITHHELD]
    return Scenario(
        "mnist", train.space.like(X), model, rows, X[keep], y[keep], deviations(X), np.zeros(X.shape[1], bool)
    )


def controllers(n_passed: int, seed: int = 0) -> Scenario:
    """The heat exchanger: the start is the only row, and each seed has its own history of labelled controllers.

    J uses the standard deviations of a uniform distribution on the box, which are the same for all histories.
    """
    reference, labels = heat_exchanger.history(n_passed, seed)
    space = heat_exchanger.SPACE
    deviations = (space.high - space.low) / np.sqrt(12)
    is_category = np.zeros(len(space), dtype=bool)
    name, rows = f"control-{n_passed}", heat_exchanger.START[None]
    return Scenario(name, space, heat_exchanger.Plant(), rows, reference, labels, deviations, is_category, True)


def deviations(X: FloatArray) -> FloatArray:
    deviations = X.std(axis=0)
    return np.where(deviations > 1e-10, deviations, 1.0)


def coded(space: Space) -> Space:
    """The space with each category replaced by its code."""
    features = [f if f.is_number else Integer(f.name, f.low, f.high, frozen=f.frozen) for f in space.features]
    return Space(tuple(features))


SCENARIOS: dict[str, Callable[[int], Scenario]] = {
    **{name: partial(published, name) for name in (*PAPER, "moons")},
    "mnist": images,
    **{f"control-{n}": partial(controllers, n) for n in (10, 1, 0)},
}


@cache
def scenario(name: str, seed: int = 0) -> Scenario:
    """The scenario with this name; each process builds it once."""
    return SCENARIOS[name](seed)
