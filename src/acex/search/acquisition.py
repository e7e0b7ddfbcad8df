"""Expected improvement of a point and its upper bound.

Expected improvement of the paper's J = c + lambda |f - 1/2| over the incumbent x*, section 3.3, exactly.
Divided by lambda, and with

    U = f(x*) - 1/2 = mu_u + s_u W,     V = f(x) - 1/2 = mu_v + b W + s Z,     W, Z ~ N(0, 1) independent,
    b = Cov(U, V) / s_u,                s^2 = Var V - b^2,                     alpha = (c* - c) / lambda,

the improvement is EI / lambda = E[(alpha + |U| - |V|)+]. Where U has one sign, alpha + |U| is linear in W,
and (A - |V|)+ = (A - V)+ - 2 (-V)+ + (-A - V)+ for A >= 0: three positive parts of normal variables T
over a half-line of W, each of which has a closed form:

    E[T+; W > k] = p P(T > 0, W > k) + tau (phi(h) Phi((r h - k) tau/s) + r phi(k) Phi((r k - h) tau/s)),
    T = p + q W + s Z,     tau^2 = q^2 + s^2,     h = -p / tau,     r = q / tau.

So there is no Monte Carlo noise and no quadrature, and the gradients are exact. Everything is in units of lambda,
because at lambda = 1e15 double precision would lose the cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, owens_t

from acex.arrays import FloatArray

MIN_DEVIATION = 1e-9  # of V given U: at x = x* it is zero, and h and r would be undefined
SIDE = np.array([1.0, -1.0])[:, None, None]  # U > 0 and U < 0
TOWARD = np.array([1.0, 0.0, -1.0])[:, None]  # (A - V)+, (-V)+, (-A - V)+
TIMES = np.array([1.0, -2.0, 1.0])[:, None]


class Improvement(NamedTuple):
    """EI / lambda of each point, (n,), and its derivatives."""

    value: FloatArray
    by_alpha: FloatArray
    by_mean: FloatArray
    by_variance: FloatArray
    by_covariance: FloatArray


def expected_improvement(
    alpha: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    covariance: FloatArray,
    incumbent_mean: float,
    incumbent_variance: float,
) -> Improvement:
    """E[(alpha + |f* - 1/2| - |f - 1/2|)+] of n points, (n,).

    Args:
        alpha: (cost of the incumbent - cost of the point) / lambda, (n,).
        mean, variance, covariance: of f, and with f*, in probabilities, (n,) each.
    """
    s_u = np.sqrt(max(incumbent_variance, MIN_DEVIATION**2))
    mu_u, mu_v = incumbent_mean - 0.5, mean - 0.5
    b = covariance / s_u
    s = np.sqrt(np.maximum(variance - b**2, MIN_DEVIATION**2))
    # Axes: the sign of U (W is negated for U < 0), the three parts, the points.
    A = alpha + SIDE * mu_u  # alpha + |U| at W = 0; it grows by s_u per unit of W
    k = (np.maximum(-alpha, 0.0) - SIDE * mu_u) / s_u  # beyond this both |U| and alpha + |U| are positive
    part = _positive_part(TOWARD * A - mu_v, TOWARD * s_u - SIDE * b, s, k)
    value, by_alpha, by_mean, by_b, by_s = (
        (TIMES * term).sum(axis=(0, 1))
        for term in (part.value, TOWARD * part.by_p, -part.by_p, -SIDE * part.by_q, part.by_s)
    )
    return Improvement(
        value=np.maximum(value, 0.0),
        by_alpha=by_alpha,
        by_mean=by_mean,
        by_variance=by_s / (2 * s),
        by_covariance=(by_b - by_s * b / s) / s_u,
    )


def improvement_bound(
    alpha: FloatArray,
    incumbent_mean: float,
    incumbent_variance: float,
    distance: FloatArray,
    deviation: FloatArray,
) -> FloatArray:
    """An upper bound on EI / lambda where |E f - 1/2| >= distance and f deviates by at most `deviation`, (n,).

    With N = (V - E V) / deviation, |V| >= distance - deviation |N|, and (x + y)+ <= x+ + y+, so for any
    split 0 <= theta <= 1 of the distance

        EI / lambda <= E[(alpha - theta distance + |U|)+] + E[(deviation |N| - (1 - theta) distance)+].

    The result is the smallest over a few splits and the simple bound E[(alpha + |U|)+], which ignores V.
    """
    bound = _positive_part_of_modulus(alpha, incumbent_mean - 0.5, incumbent_variance)
    for theta in (0.25, 0.5, 0.75, 1.0):
        near = _positive_part_of_modulus(alpha - theta * distance, incumbent_mean - 0.5, incumbent_variance)
        spread = 2 * deviation * _partial_mean((1 - theta) * distance / np.maximum(deviation, 1e-300))
        bound = np.minimum(bound, near + spread)
    return bound


def _positive_part_of_modulus(alpha: FloatArray, mean: float, variance: float) -> FloatArray:
    """E[(alpha + |U|)+] for U ~ N(mean, variance), (n,)."""
    deviation = np.sqrt(max(variance, MIN_DEVIATION**2))
    gap = np.maximum(-alpha, 0.0)
    out = np.zeros_like(alpha)
    for side in (1.0, -1.0):
        k = (gap - side * mean) / deviation
        out += (alpha + side * mean) * ndtr(-k) + deviation * _phi(k)
    return out


def _partial_mean(k: FloatArray) -> FloatArray:
    """E[(N - k)+] of a standard normal N, (n,)."""
    return np.maximum(_phi(k) - k * ndtr(-k), 0.0)


class _Part(NamedTuple):
    value: FloatArray
    by_p: FloatArray
    by_q: FloatArray
    by_s: FloatArray


def _positive_part(p: FloatArray, q: FloatArray, s: FloatArray, k: FloatArray) -> _Part:
    """E[(p + q W + s Z)+; W > k] and its derivatives by p, q and s, (n,) each."""
    tau = np.hypot(q, s)
    h, r = -p / tau, q / tau
    both = _upper_orthant(h, k, r, s / tau)
    at_h = _phi(h) * ndtr((r * h - k) * tau / s)
    at_k = _phi(k) * ndtr((r * k - h) * tau / s)
    return _Part(
        value=p * both + tau * (at_h + r * at_k),
        by_p=both,
        by_q=at_k + r * at_h,  # E[W; T > 0, W > k]
        by_s=at_h * s / tau,  # E[Z; T > 0, W > k]
    )


def _upper_orthant(h: FloatArray, k: FloatArray, r: FloatArray, root: FloatArray) -> FloatArray:
    """P(Y > h, W > k) for standard normal Y, W of correlation r, root = sqrt(1 - r^2) > 0, (n,).

    Owen (1956): with a_h = (k/h - r) / root and a_k = (h/k - r) / root,
    P(Y <= h, W <= k) = (Phi(h) + Phi(k)) / 2 - T(h, a_h) - T(k, a_k) - [1/2 if h k < 0, or h k = 0 and
    h + k < 0]; the upper orthant at (h, k) is the lower one at (-h, -k).
    """
    h, k = -h, -k
    h = np.where(h == 0, 1e-300, h)  # keeps k / h defined; Owen's T is continuous at 0
    k = np.where(k == 0, 1e-300, k)
    with np.errstate(over="ignore"):
        T = owens_t(h, (k / h - r) / root) + owens_t(k, (h / k - r) / root)
    opposite = (h < 0) != (k < 0)
    orthant: FloatArray = np.clip((ndtr(h) + ndtr(k)) / 2 - T - 0.5 * opposite, 0.0, 1.0)
    return orthant


def _phi(x: FloatArray) -> FloatArray:
    density: FloatArray = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
    return density
