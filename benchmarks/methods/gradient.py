"""Gradient descent (Wachter et al. 2017) on a network that is trained on some labels.

    z      a point, in steps from the factual, (d,)
    f(z)   logit of a small network that z is a hit: w2 . tanh(W1' z + b1) + b2

The real model does not provide gradients, so a network replaces it. The network is trained on the labels of random
reference rows, about as many as ACE queries for one image in its paper, and these count as queries.

gradient   lambda * max(kappa - f(z), 0) + |z|^2, in deviations. Lambda doubles, and each descent starts where the last
           one ended; if the network predicts a hit, the real model is queried, until it agrees
omnixai    as the package OmniXAI does it on images (its image explainer and its defaults): c * max(kappa - f(z), 0) +
           |z|_1, in ranges. 1000 steps of plain descent from the factual for each of five c, found by bisection; the
           answer is the point nearest in l1 that the network calls a hit, and the real model is queried once.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from acex.arrays import BoolArray, FloatArray
from benchmarks.methods.gower import widths
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

LABELLED = 60
HIDDEN = 32  # units of the network
KAPPA = 10.0  # as in OmniXAI: how far beyond the boundary the hinge still pulls
FIRST_LAMBDA, DOUBLINGS = 0.05, 15
STEPS, RATE = 100, 0.05  # of Adam, per value of lambda
OMNIXAI_WEIGHT, OMNIXAI_BISECTIONS, OMNIXAI_STEPS, OMNIXAI_RATE, OMNIXAI_CLIP = 10.0, 5, 1000, 0.01, 1e3


@method("gradient", style={"color": "#8A6D00", "linestyle": "-."})
def gradient(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The first point at which the model agrees with the network that it is a hit, (1, d) or none."""
    unit = task.scenario.deviations
    rows = np.unique(task.project(task.scenario.reference), axis=0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))[:LABELLED]]
    is_hit = model.is_hit(rows)
    if is_hit.any():  # without a hit in the training data, the network gives no direction
        network = Network.fit((np.vstack([task.x, rows]) - task.x) / unit, np.append(False, is_hit), seed)
        z, asked = np.zeros_like(task.x), task.x
        for weight in FIRST_LAMBDA * 2.0 ** np.arange(DOUBLINGS):
            z = descended(task, network, z, weight)
            point = task.project((task.x + z * unit)[None])
            is_new = (point[0] != asked).any() and (point[0] != task.x).any()
            if is_new and network.logit((point[0] - task.x) / unit)[0] > 0:
                if model.is_hit(point)[0]:
                    return point
                asked = point[0]
    return np.empty((0, len(task.x)))


@method("omnixai", style={"color": "#8A6D00", "linestyle": ":"})
def omnixai(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The package's descent on a network, (1, d), if the model agrees that it is a hit."""
    rows = np.unique(task.project(task.scenario.reference), axis=0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))[: LABELLED - 1]]
    is_hit = model.is_hit(rows)
    nothing = np.empty((0, len(task.x)))
    if not is_hit.any():
        return nothing
    unit = widths(task)
    network = Network.fit((np.vstack([task.x, rows]) - task.x) / unit, np.append(False, is_hit), seed)
    low, high = ((end - task.x) / unit for end in (task.region.low, task.region.high))
    found = bisected(network, low, high)
    if found is None:
        return nothing
    point = task.project((task.x + found * unit)[None])
    return point if (point[0] != task.x).any() and model.is_hit(point)[0] else nothing


def bisected(network: Network, low: FloatArray, high: FloatArray) -> FloatArray | None:
    """The step of least l1 norm to a point that the network calls a hit, (d,), within bounds; None if there is none."""
    least, most, weight = 0.0, np.inf, OMNIXAI_WEIGHT
    best: FloatArray | None = None
    for _ in range(OMNIXAI_BISECTIONS):
        z, found = np.zeros_like(low), False
        for step in range(OMNIXAI_STEPS):
            logit, slope = network.logit(z)
            if logit > 0:
                found = True
                if best is None or np.abs(z).sum() < np.abs(best).sum():
                    best = z
            pull = slope if logit < KAPPA else np.zeros_like(slope)
            descent = np.clip(np.sign(z) - weight * pull, -OMNIXAI_CLIP, OMNIXAI_CLIP)
            moved = np.clip(z - OMNIXAI_RATE * np.sqrt(1 - step / OMNIXAI_STEPS) * descent, low, high)
            if np.abs(moved - z).sum() < 1e-6:
                break
            z = moved
        least, most = (least, min(most, weight)) if found else (max(least, weight), most)
        weight = (least + most) / 2 if np.isfinite(most) else 10 * weight
    return best


@dataclass(frozen=True, eq=False)
class Network:
    """One hidden layer."""

    W1: FloatArray  # (d, h)
    b1: FloatArray  # (h,)
    w2: FloatArray  # (h,)
    b2: float

    @classmethod
    def fit(cls, Z: FloatArray, is_hit: BoolArray, seed: int) -> Network:
        """A network trained to tell these hits from these misses."""
        classifier = MLPClassifier((HIDDEN,), activation="tanh", solver="lbfgs", alpha=0.1, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # accurate enough for a direction
            classifier.fit(Z, is_hit)
        (W1, w2), (b1, b2) = classifier.coefs_, classifier.intercepts_
        return cls(W1, b1, w2[:, 0], float(b2[0]))

    def logit(self, z: FloatArray) -> tuple[float, FloatArray]:
        """f(z) and its gradient, (d,)."""
        hidden = np.tanh(z @ self.W1 + self.b1)
        slope: FloatArray = self.W1 @ ((1 - hidden**2) * self.w2)
        return float(hidden @ self.w2 + self.b2), slope


def descended(task: Task, network: Network, z: FloatArray, weight: float) -> FloatArray:
    """The result of Adam (Kingma & Ba 2015) started at z with this lambda, within the allowed region, (d,)."""
    low, high = ((end - task.x) / task.scenario.deviations for end in (task.region.low, task.region.high))
    first, second = np.zeros_like(z), np.zeros_like(z)
    for t in range(1, STEPS + 1):
        logit, slope = network.logit(z)
        g = 2 * z - weight * slope * (logit < KAPPA)
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
        step = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        z = np.clip(z - RATE * step, low, high)
    return z
