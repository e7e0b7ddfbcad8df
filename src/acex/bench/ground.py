"""The ground of all comparisons: data, black box, rows to explain and scale, the same for every method.

Rows are arrays of codes, and categories count as their codes, as in the paper. 100 rows are withheld from
training; the first of them are explained. Standard deviations are those of the whole data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.bench.network import image_classifier
from acex.datasets import mnist, moons, paper
from acex.space.kinds import Integer
from acex.space.plausibility import Density, Plausibility
from acex.space.scale import Scale
from acex.space.space import Space

N_WITHHELD = 100
PAPERS_POINT = (0.55, 0.25)  # the instance of the paper's picture of moons, explained first
N_IMAGES = 2000  # of the train images are the reference


@dataclass(frozen=True, eq=False)
class Ground:
    """One data set with its black box."""

    name: str
    space: Space  # categories declared as integer codes
    model: Any  # fitted, hard labels 0 and 1
    rows: FloatArray  # withheld, in the order in which they are explained, (100, d) by default
    reference: FloatArray  # what the model was trained on, (m, d)
    labels: IntArray  # its true labels, (m,)
    deviations: FloatArray  # of the whole data set, (d,)
    is_category: BoolArray  # which features are, though their codes count as numbers here, (d,)
    is_history: bool = False  # the reference was asked before: its labels are the model's, known and free

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
        """Which features the reference never varies in, (d,)."""
        constant: BoolArray = np.ptp(self.reference, axis=0) == 0
        return constant

    def in_reference(self, x: FloatArray) -> bool:
        """Is this point, (d,), a row of the reference as it is?"""
        return bool((self.reference == x).all(axis=1).any())

    @cached_property
    def density(self) -> Density:
        """The paper's plausibility: the local outlier factor on raw codes."""
        return Plausibility(kind="lof", scale=False).fit(self.reference, Scale.of(self.space, self.reference))


def ground(name: str, seed: int = 0, model: Any = None, n_withheld: int = N_WITHHELD) -> Ground:
    """The ground of one of the paper's data sets, with a forest of 100 trees unless told otherwise.

    "moons" has the paper's support vector machine and begins with its instance. "mnist" has a network, its reference is
    a sample of the official train images, and its rows are official test images of an 8.
    """
    if name == "mnist":
        return _mnist(seed, model)
    data = moons() if name == "moons" else paper(name)
    X, y = data.codes, data.binary
    withheld = np.random.default_rng(seed).choice(len(X), n_withheld, replace=False)
    keep = np.ones(len(X), dtype=bool)
    keep[withheld] = False
    if model is None:
        model = SVC(gamma=1.0) if name == "moons" else RandomForestClassifier(100, random_state=seed, n_jobs=1)
    model.fit(X[keep], y[keep])
    is_category = np.array([not f.is_number for f in data.space.features])
    space = _coded(data.space).like(X)
    rows = np.vstack([PAPERS_POINT, X[withheld]]) if name == "moons" else X[withheld]
    return Ground(name, space, model, rows, X[keep], y[keep], _deviations(X), is_category)


def _mnist(seed: int, model: Any) -> Ground:
    train, test = mnist("train"), mnist("test")
    X, y = train.codes, train.binary
    model = image_classifier(seed) if model is None else model
    model.fit(X, y)
    rng = np.random.default_rng(seed)
    keep = rng.choice(len(X), N_IMAGES, replace=False)
    eights = test.codes[(test.binary == 0) & (model.predict(test.codes) == 0)]
    rows = rng.permutation(eights)[:N_WITHHELD]
    return Ground(
        "mnist", train.space.like(X), model, rows, X[keep], y[keep], _deviations(X), np.zeros(X.shape[1], bool)
    )


def _deviations(X: FloatArray) -> FloatArray:
    deviations = X.std(axis=0)
    return np.where(deviations > 1e-10, deviations, 1.0)


def _coded(space: Space) -> Space:
    """The space with each category replaced by its code."""
    features = [f if f.is_number else Integer(f.name, f.low, f.high, frozen=f.frozen) for f in space.features]
    return Space(tuple(features))
