"""Simulated heat exchanger with a lead-lag compensator, whose controller passes or fails five limits.

From the paper's conference version, section 5:

    G(s) = 5 e^-s / (90 s^2 + 33 s + 1)        F(s) = K (Td s + 1) / (beta Td s + 1) * (Ti s + 1) / (Ti s + gamma)

    theta = (K, Td, beta, Ti, gamma)           r = 1, a step          w, measurement noise that is fed back

Both are discretised by the bilinear transform, with L = F G and the dead time as a power of z^-1. The loop is linear,
so y = (L r + w) / (1 + L) and u = F (r - w) / (1 + L) are filters, and a trial takes milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import bilinear, lfilter

from acex.arrays import FloatArray, IntArray
from acex.space.kinds import Continuous
from acex.space.space import Space

STEP, SAMPLES = 0.1, 8000  # seconds between samples, number of samples
DEAD = 11  # samples: the plant's dead time, and one for closing the loop
NOISE = 0.01  # standard deviation; the variance would be 1e-4
BAND = 0.05  # the loop has settled when it stays within this band around the set point
START = np.array([4.7770, 2.4354, 0.0132, 27.5408, 0.3100])
PAPERS = np.array([3.4294, 2.2920, 0.0428, 28.9531, 0.1605])  # the counterfactual that the paper found
SPACE = Space(
    (
        Continuous("K", 2.0, 8.0),
        Continuous("Td", 1.0, 4.0),
        Continuous("beta", 0.005, 0.1),
        Continuous("Ti", 15.0, 45.0),
        Continuous("gamma", 0.05, 0.6),
    )
)
HISTORY = 30  # number of controllers tried before
NOISES = range(10)  # seeds of the noise for `robustness`


@dataclass(frozen=True)
class Response:
    """Step response of a closed loop, in seconds and fractions of the step; effort is the rms of u."""

    error: float  # steady state
    rise: float  # from 10 to 90 % of the step
    settling: float
    overshoot: float
    effort: float

    @property
    def passes(self) -> bool:
        """Whether the response is within the five limits of the paper."""
        limits = (0.01, 20.0, 50.0, 0.2, 2.0)
        return all(value <= limit for value, limit in zip(vars(self).values(), limits, strict=True))


def response(theta: FloatArray, noise: int = 0) -> Response:
    """The response of a controller, (5,), with noise from this seed."""
    y, u = simulated(theta, np.random.default_rng(noise).normal(0.0, NOISE, SAMPLES))
    outside = np.flatnonzero(~(np.abs(y - 1) <= BAND))
    reached = [int(np.argmax(y >= level)) if (y >= level).any() else SAMPLES for level in (0.1, 0.9)]
    return Response(
        error=float(abs(1 - y[-SAMPLES // 10 :].mean())),
        rise=(reached[1] - reached[0]) * STEP if reached[1] < SAMPLES else np.inf,
        settling=float(outside[-1] + 1) * STEP if len(outside) else 0.0,
        overshoot=float(y.max() - 1),
        effort=float(np.sqrt(np.mean(u**2))),
    )


def simulated(theta: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Measured output y and control signal u, (n,) each; not finite if the loop is unstable."""
    K, Td, beta, Ti, gamma = theta
    b_G, a_G = bilinear([5.0], [90.0, 33.0, 1.0], 1 / STEP)
    b_F, a_F = bilinear(K * np.polymul([Td, 1.0], [Ti, 1.0]), np.polymul([beta * Td, 1.0], [Ti, gamma]), 1 / STEP)
    L = np.concatenate([np.zeros(DEAD), np.polymul(b_G, b_F)])
    apart = np.polymul(a_G, a_F)
    closed = L + np.concatenate([apart, np.zeros(len(L) - len(apart))])
    r = np.ones_like(w)
    with np.errstate(over="ignore", invalid="ignore"):
        y = lfilter(L, closed, r) + lfilter(apart, closed, w)
        u = lfilter(np.polymul(b_F, a_G), closed, r - w)
    return y, u


class Plant:
    """The black box: label 1 for a controller that passes."""

    def predict(self, X: FloatArray) -> IntArray:
        """Labels of controllers, (n,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array([response(theta).passes for theta in X], dtype=np.intp)


def robustness(theta: FloatArray) -> float:
    """Share of ten noise seeds under which a controller passes."""
    return float(np.mean([response(theta, noise).passes for noise in NOISES]))


def history(n_passed: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Controllers drawn from the box, of which `n_passed` pass, (30, 5), and their labels, (30,)."""
    rng = np.random.default_rng(seed)
    wanted = {1: n_passed, 0: HISTORY - n_passed}
    rows: list[FloatArray] = []
    labels: list[int] = []
    while len(rows) < HISTORY:
        theta = SPACE.low + rng.random(len(SPACE)) * (SPACE.high - SPACE.low)
        label = int(Plant().predict(theta[None])[0])
        if wanted[label] > 0:
            wanted[label] -= 1
            rows.append(theta)
            labels.append(label)
    return np.array(rows), np.array(labels, dtype=np.intp)
