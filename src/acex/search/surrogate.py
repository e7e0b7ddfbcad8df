"""Gaussian-process classifier by Laplace's approximation.

If the model gives scores, f is observed directly with a little noise: `regress` is Gaussian-process regression that
returns the same kind of posterior.

Lines refer to Rasmussen & Williams (2006): 3.1 the mode, 3.2 predictions, 5.1 the marginal likelihood
and its gradient. The paper's section 3.2 is the same method; its W, K and a_hat are W, K and f here.

    Z   evidence in coordinates, (n, D)     t    labels, 1 for a hit and 0 for a miss, (n,);
                                            P(hit) if labels may be wrong
    m   prior mean at Z, (n,)               f    mode of the latent function at Z, (n,)
    pi  sigma(f), (n,)                      W    pi (1 - pi), (n,)
    L   Cholesky factor of B = I + sqrt(W) K sqrt(W), (n, n); eigenvalues of B are at least 1
    a   K^-1 (f - m) = t - pi at the mode, (n,)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from acex.arrays import FloatArray
from acex.search.kernel import KernelName, Matern
from acex.space.scale import EUCLIDEAN, Metric

NEWTON_STEPS = 50  # 5 to 10 suffice; more means that it does not converge
NEWTON_TOLERANCE = 1e-9  # gain in the objective below which the mode is found
AT_ONCE = 30_000  # covariances that are computed together, so that they fit into the processor's cache
JITTER = 1e-8  # relative to the variance: keeps K positive definite if two points almost coincide

LOG_BOUND = 4.0  # bound on the hyperparameters, in deviations of their prior


@dataclass(frozen=True)
class Hyperprior:
    """Log-normal priors on the hyperparameters: (median, deviation of the logarithm).

    With a dozen labels, the marginal likelihood alone tends to a flat or a spiky function. The length scale is in units
    of a typical distance between points.
    """

    variance: tuple[float, float] = (4.0, 1.0)
    ell: tuple[float, float] = (0.7, 0.7)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the latent function f."""

    kernel: Matern
    Z: FloatArray
    a: FloatArray
    sqrt_W: FloatArray
    L: FloatArray
    log_marginal_likelihood: float

    def latent(
        self, A: FloatArray, prior_mean: FloatArray | float = 0.0, squared: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of f at A, (a,) each, given its prior mean there. Algorithm 3.2, lines 4 to 6.

        Args:
            squared: squared distances between A and the evidence, (a, n), if already computed.
        """
        n_parts = len(A) * len(self.Z) // AT_ONCE + 1
        if squared is None:
            parts = [self.kernel.metric.squared(part, self.Z) for part in np.array_split(A, n_parts)]
        else:
            parts = np.array_split(squared, n_parts)
        moments = []
        for part in parts:
            K_star = self.kernel.of_distance(part)
            V = dtrmm(1.0, self._half, K_star.T, lower=1)  # line 5
            moments.append((K_star @ self.a, np.maximum(self.kernel.variance - (V**2).sum(axis=0), 0.0)))  # line 6
        mean, variance = (np.concatenate(of_parts) for of_parts in zip(*moments, strict=True))
        return prior_mean + mean, variance

    @cached_property
    def _half(self) -> FloatArray:
        """L^-1 sqrt(W), (n, n), lower triangular: multiplying by it is faster than solving for L each time."""
        return _solve(self.L, np.diag(self.sqrt_W))

    def probability(self, A: FloatArray, prior_mean: FloatArray | float = 0.0) -> FloatArray:
        """P(hit) at A, (a,): sigma averaged over f by the probit approximation (MacKay 1992)."""
        return moderated(*self.latent(A, prior_mean))

    def joint(self, b: FloatArray) -> JointPosterior:
        """The joint posterior of f at one point b, (D,), and at other points."""
        K_b = self.kernel(self.Z, b[None])
        V_b = self._whiten(K_b)
        return JointPosterior(self, b[None], V_b[:, 0], self._unwhiten(V_b)[:, 0])

    def _moments(self, K_star: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, above the prior's, and variance of f, (a,) each, and L^-1 sqrt(W) K_star, (n, a)."""
        V = self._whiten(K_star)  # line 5
        return K_star.T @ self.a, np.maximum(self.kernel.variance - (V**2).sum(axis=0), 0.0), V  # line 6

    def _whiten(self, K_star: FloatArray) -> FloatArray:
        """L^-1 sqrt(W) K_star, (n, a)."""
        return _solve(self.L, self.sqrt_W[:, None] * K_star)

    def _unwhiten(self, V: FloatArray) -> FloatArray:
        """sqrt(W) L^-T V = (K + W^-1)^-1 K_star, (n, a)."""
        return self.sqrt_W[:, None] * _solve(self.L, V, transposed=True)


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """f at many points A, (a, D), together with f at one point b, for a prior mean of zero."""

    posterior: Posterior
    b: FloatArray  # (1, D)
    V_b: FloatArray  # L^-1 sqrt(W) k(b), (n,)
    w_b: FloatArray  # (K + W^-1)^-1 k(b), (n,)

    def moments(self, A: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and variance of f at A and its covariance with f at b, (a,) each. The paper's appendix D."""
        post = self.posterior
        mean, variance, V = post._moments(post.kernel(post.Z, A))
        return mean, variance, post.kernel(A, self.b)[:, 0] - V.T @ self.V_b

    def with_gradients(self, A: FloatArray) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """The moments, (a,) each, and their gradients by A, (a, D) each; those by nominal codes are meaningless."""
        post = self.posterior
        squared, squared_b = (post.kernel.metric.squared(A, B) for B in (post.Z, self.b))
        mean, variance, V = post._moments(post.kernel.of_distance(squared).T)
        moments = (mean, variance, post.kernel.of_distance(squared_b)[:, 0] - V.T @ self.V_b)
        slope = 2 * post.kernel.slope(squared)  # dk/dA_i = slope_ij (A_i - Z_j)

        def pull(weights: FloatArray) -> FloatArray:
            C = weights * slope
            pulled: FloatArray = C.sum(axis=1)[:, None] * A - C @ post.Z
            return pulled

        toward_b = 2 * post.kernel.slope(squared_b) * (A - self.b)
        return moments, (pull(post.a), pull(-2 * post._unwhiten(V).T), toward_b - pull(self.w_b))


def moderated(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """E[sigma(f)] for f ~ N(mean, variance), (n,), to about 0.02."""
    return expit(mean / np.sqrt(1 + np.pi * variance / 8))


def fit(
    Z: FloatArray,
    t: FloatArray,
    *,
    kernel: Matern | KernelName = "matern52",
    prior_mean: FloatArray | float = 0.0,
    typical: float | None = None,
    hyperprior: Hyperprior = Hyperprior(),  # noqa: B008 (frozen)
    n_tuning: int | None = None,
    metric: Metric = EUCLIDEAN,
) -> Posterior:
    """The posterior given labels t, (n,), at Z, (n, D); all labels may be equal.

    Args:
        kernel: a `Matern` with fixed hyperparameters, or a name, whose variance and length scale are fitted by
            marginal likelihood times `hyperprior`.
        prior_mean: of f at Z, (n,); pass the one at A to predict there.
        typical: distance between two unrelated points; by default that of Z.
        n_tuning: variance and length scale are fitted to the first `n_tuning` points; by default to all. Fitting takes
            time cubic in their number, and few points suffice. The mode of all points starts from theirs.
        metric: distance between coordinates, for a kernel given by name.
    """
    m = np.broadcast_to(prior_mean, t.shape)
    squared = (kernel.metric if isinstance(kernel, Matern) else metric).squared(Z, Z)
    a = np.zeros(len(t))
    if not isinstance(kernel, Matern):
        few = slice(n_tuning)
        modes = _warm_modes(squared[few, few], t[few], m[few], a[few] if n_tuning else a.copy())
        typical = typical or np.sqrt(2 * max(metric.total_variance(Z), 1.0))  # many coordinates hardly vary
        kernel = _best_kernel(modes, typical, hyperprior, Matern(1.0, 1.0, kernel, metric))
    mode = _Mode(kernel, squared, t, m, a)
    return Posterior(kernel, Z, mode.a, mode.sqrt_W, mode.L, mode.log_marginal_likelihood)


def regress(
    Z: FloatArray,
    y: FloatArray,
    *,
    noise: float,
    prior_mean: FloatArray | float = 0.0,
    typical: float,
    hyperprior: Hyperprior = Hyperprior(),  # noqa: B008 (frozen)
    n_tuning: int | None = None,
    metric: Metric = EUCLIDEAN,
) -> Posterior:
    """The posterior given values y, (n,), of f at Z, (n, D), with standard deviation `noise`; see `fit`."""
    squared = metric.squared(Z, Z)
    above = y - prior_mean
    few, tuning = squared[:n_tuning, :n_tuning], above[:n_tuning]
    form = Matern(1.0, 1.0, metric=metric)
    kernel = _best_kernel(lambda k: _Observed(k, few, tuning, noise), typical, hyperprior, form)
    seen = _Observed(kernel, squared, above, noise)
    return Posterior(kernel, Z, seen.a, seen.sqrt_W, seen.L, seen.log_marginal_likelihood)


def _cholesky(B: FloatArray) -> FloatArray:
    """The lower triangular L of B = L L', calling LAPACK directly as in `_solve`."""
    L, info = dpotrf(B, lower=1, clean=1)
    if info:
        raise ArithmeticError(f"A matrix of {len(B)} rows is not positive definite in row {info}.")
    out: FloatArray = L
    return out


def _solve(L: FloatArray, B: FloatArray, *, transposed: bool = False) -> FloatArray:
    """L^-1 B, or L^-T B, for a lower triangular L; calls LAPACK directly, since an `ask` needs thousands."""
    X, info = dtrtrs(L, B, lower=1, trans=int(transposed))
    if info:
        raise ArithmeticError(f"The Cholesky factor is singular in row {info}.")
    out: FloatArray = X
    return out


class _Mode:
    """The mode of f for one kernel, with the quantities that predictions and the marginal likelihood need."""

    def __init__(self, kernel: Matern, squared: FloatArray, t: FloatArray, m: FloatArray, a: FloatArray) -> None:
        self.kernel, self.squared, self.t, self.m = kernel, squared, t, m
        self.K = kernel.of_distance(squared)
        self.K.flat[:: len(t) + 1] += JITTER * kernel.variance
        self._climb(a)

    def _climb(self, a: FloatArray) -> None:
        """Newton's method from a, with steps halved if a full one would decrease the objective. Algorithm 3.1."""

        def value(a: FloatArray) -> tuple[FloatArray, float]:
            f = self.m + self.K @ a
            likelihood = self.t * log_expit(f) + (1 - self.t) * log_expit(-f)
            return f, -0.5 * a @ (f - self.m) + likelihood.sum()

        f, objective = value(a)
        for _ in range(NEWTON_STEPS):
            W = self._factor(f)
            b = W * (f - self.m) + self.t - self.pi  # line 6
            solved = _solve(self.L, _solve(self.L, self.sqrt_W * (self.K @ b)), transposed=True)
            step = b - self.sqrt_W * solved - a  # line 7
            shrink = 1.0
            while True:
                a_new = a + shrink * step
                f_new, new = value(a_new)
                if new >= objective - NEWTON_TOLERANCE or shrink < 1e-3:
                    break
                shrink /= 2
            gain, a, f, objective = new - objective, a_new, f_new, new
            if abs(gain) < NEWTON_TOLERANCE:
                break
        else:
            raise ArithmeticError(
                f"Laplace's approximation did not converge in {NEWTON_STEPS} steps on {len(a)} labels "
                f"with {self.kernel}."
            )
        self._factor(f)
        self.a = self.t - self.pi
        self.log_marginal_likelihood = float(objective - np.log(np.diag(self.L)).sum())  # line 10

    def _factor(self, f: FloatArray) -> FloatArray:
        """W at f, (n,); sets pi, sqrt(W) and L."""
        self.pi = expit(f)
        W: FloatArray = np.maximum(self.pi * (1 - self.pi), 1e-12)  # keeps W^-1 finite
        self.sqrt_W = np.sqrt(W)
        B = self.sqrt_W[:, None] * self.K * self.sqrt_W
        B.flat[:: len(B) + 1] += 1.0
        self.L = _cholesky(B)
        return W

    @cached_property
    def gradient(self) -> FloatArray:
        """d log marginal likelihood / d (log variance, log ell), (2,). Algorithm 5.1."""
        half = _solve(self.L, np.diag(self.sqrt_W))
        R = half.T @ half  # sqrt(W) B^-1 sqrt(W), line 5
        C = _solve(self.L, self.sqrt_W[:, None] * self.K)
        third = self.pi * (1 - self.pi) * (2 * self.pi - 1)
        s2 = 0.5 * (np.diag(self.K) - (C**2).sum(axis=0)) * third  # line 7, where W' = -third
        by_log_ell = -2 * self.squared * self.kernel.slope(self.squared)
        out = []
        for dK in (self.K, by_log_ell):
            s1 = 0.5 * self.a @ dK @ self.a - 0.5 * (R * dK).sum()  # line 10
            b = dK @ self.a  # line 11
            out.append(s1 + s2 @ (b - self.K @ (R @ b)))  # lines 12 and 13
        return np.array(out)


class _Observed:
    """f observed with noise: the counterpart of `_Mode`. Rasmussen & Williams, algorithm 2.1 and equation 5.9."""

    def __init__(self, kernel: Matern, squared: FloatArray, above: FloatArray, noise: float) -> None:
        K = kernel.of_distance(squared)
        n = len(above)
        self.sqrt_W = np.full(n, 1 / noise)
        self.L = _cholesky(np.eye(n) + K / noise**2)
        half = _solve(self.L, np.diag(self.sqrt_W))
        R = half.T @ half  # (K + noise^2 I)^-1
        self.a: FloatArray = R @ above
        log_det = np.log(np.diag(self.L)).sum() + n * np.log(noise)
        self.log_marginal_likelihood = float(-0.5 * above @ self.a - log_det - n / 2 * np.log(2 * np.pi))
        by_log_ell = -2 * squared * kernel.slope(squared)
        self.gradient = np.array([0.5 * (self.a @ dK @ self.a - (R * dK).sum()) for dK in (K, by_log_ell)])


def _warm_modes(squared: FloatArray, t: FloatArray, m: FloatArray, a: FloatArray) -> Callable[[Matern], _Mode]:
    """A function that finds the mode for a kernel, starting from the mode `a` of the kernel before, which is close."""

    def mode(kernel: Matern) -> _Mode:
        found = _Mode(kernel, squared, t, m, a)
        a[:] = found.a
        return found

    return mode


def _best_kernel(
    modes: Callable[[Matern], _Mode | _Observed], typical: float, hyperprior: Hyperprior, form: Matern
) -> Matern:
    """The kernel `form` with the hyperparameters of largest posterior density, by L-BFGS-B from the prior's median."""
    centre = np.log([hyperprior.variance[0], hyperprior.ell[0] * typical])
    width = np.array([hyperprior.variance[1], hyperprior.ell[1]])

    def loss(u: FloatArray) -> tuple[float, FloatArray]:
        variance, ell = np.exp(centre + width * u)
        mode = modes(replace(form, variance=float(variance), ell=float(ell)))
        return 0.5 * float(u @ u) - mode.log_marginal_likelihood, u - mode.gradient * width

    # A tolerance of 1e-3 in log likelihood: finer differences do not change a proposal.
    bounds = [(-LOG_BOUND, LOG_BOUND)] * 2
    found = minimize(
        loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-4, "maxiter": 20}
    )
    variance, ell = np.exp(centre + width * found.x)
    return replace(form, variance=float(variance), ell=float(ell))
