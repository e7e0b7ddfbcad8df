"""ACE exactly as in sections 3.1 to 3.5 of the paper and its listing, with an option for each repair.

    x~   factual, (d,)          X, t     points queried and their labels, 1 for a hit, (n, d) and (n,)
    a    mode of the latent function at X, (n,)         W   sigma(a) (1 - sigma(a)), (n,)
    f    sigma(latent): mean mu = sigma(mu_a), variance sigma_a^2 (mu (1 - mu))^2 (delta method, appendix D)
    J    d + beta g + lambda |f - 1/2|, d and g the l2 and l1 norm of (x - x~) / deviation

n0 points from a truncated normal distribution are followed by rounds. In a round, lambda grows from lambda_0 as
lambda^growth while it is below lambda_max and points still move by more than epsilon; for each lambda, the point with
the largest Monte-Carlo expected improvement is queried. The Sobol step ends the round: of the points whose posterior is
closest to one half, the nearest is queried. The search ends when a round finds a counterfactual that is not nearer than
the one before; this last one is its answer.

`PublishedAce()` has no repairs: `answer` returns what the paper returns. The fields of `REPAIRS` are the points of
docs/readings.md that change the algorithm (R4 is its row 4). Where the paper is ambiguous, the reading given there is
used: R1 (the power), R2 ("and" instead of "or", which never ends), R3 (the text instead of the loop's condition), R9
(sigma(mu_a) in the improvement, the moderated probability in the Sobol step), R10 (a misprint), R15, R18, R19, R21.

Where the paper gives no number: "closest to one half" means 5% of the Sobol points; at most 11 rounds, as in the
authors' code, since a round may repeat rows that were queried before, which are free; mean and deviation of the first
points are those of the reference. The paper fits the length scale "to the initial dataset"; here it is fitted at the
start of each round, since four points alone, as on moons, can leave it a thousand times too small.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import cho_factor
from scipy.linalg.lapack import dpotrs
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import expit, ndtr, ndtri
from scipy.stats import qmc

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.plan.step import Step
from acex.search import acquisition, surrogate
from acex.search.problem import History, Problem, Query, Stop, key
from acex.search.strategy import Strategy
from acex.space.plausibility import Kind
from acex.values import is_count, is_finite

REPAIRS = {
    "new_points_only": "R2: a point within epsilon of an earlier one is not asked",
    "two_idle_rounds": "R3: the search ends after two rounds in a row without a closer counterfactual, not one",
    "best_asked": "R4: the answer is the best hit of all points asked, not the last Sobol point",
    "sobol_rays": "R5: Sobol points on rays from the factual; only new and plausible ones are asked",
    "choose_by_cost": "R6: nearest means least cost J, not least raw Euclidean distance",
    "reference_scale": "R7: J is measured in deviations of the reference, not of the points asked",
    "standardised_kernel": "R8: the kernel sees standardised coordinates, not raw features",
    "fitted_kernel": "R8: amplitude and length scale with a weak prior, fitted at each ask, not amplitude 1",
    "exact_improvement": "R11: the exact expectation, not the mean of random draws",
    "best_start": "R12: the best of ten starts, not the first acceptable one",
    "all_categories": "R13: branch over every category, plausible ones only, not floor and ceiling",
    "reference_lof": "R14: the local outlier factor is fitted on the reference, not on the points asked",
    "reference_spread": "R16: starts spread by the deviation of the reference, not by the root of the factual's value",
    "one_class": "R17: continue if the first points have one class, with wider draws, instead of ending",
    "gives_up": "end as 'unlikely' if no point has a probability of a hit above 2% for ten queries",
    "falls_back": "ask the cheapest new reference row if a round finds nothing to ask and there is no hit",
}
STARTS = ("normal", "lhs", "random", "test")
JITTER = 1e-6  # added to a covariance that is not positive definite, as in the listing
DIFFERENCE = 1e-8  # step of L-BFGS-B's forward differences: SciPy's default
MAX_ITERATIONS = 100  # of L-BFGS-B; because of Monte-Carlo noise it stops after one or two
CLOSEST = 0.05  # share of the Sobol points that count as closest to one half
BAND = 0.2  # with `sobol_rays`, also the points within this distance of one half
BOX_DIMENSIONS = 2  # with `sobol_rays`, the points fill the box up to this dimension
MIN_SPREAD = 1e-3  # least deviation of a start, as in the listing
PCA_FEATURES = 64  # with this many features or more, starts are drawn in principal components (R21)
MAX_DRAWS = 2_000_000  # maximum number of pairs of random numbers drawn at once
MAX_LEAVES = 50_000  # with `all_categories`, maximum number of combinations compared
LEAF_CLIMBS = 3  # number of best leaves whose numbers are optimised
UNLIKELY, PATIENCE = 0.02, 10
VARIANCE_LIMIT = 1e-12

Objective = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class PublishedAce(Strategy):
    """Settings of ACE as published; the defaults are the paper's values, and no repair is on.

    Args:
        n0: number of first points, the factual included.
        lambda_0, lambda_max, growth, epsilon, sobol: as in the paper's table of hyperparameters.
        mc: draws of the Monte-Carlo expected improvement.
        nu: smoothness of the Matern kernel: 0.5, 1.5 or 2.5.
        start: where L-BFGS-B starts: a truncated "normal" around the factual (the text), "lhs", "random" in the box, or
            "test", a known row.
        initial: first points from a truncated "normal", or "reference" rows.
        n_starts: maximum number of starts of one acquisition.
        neighbours: of the local outlier factor on the points queried.
        max_rounds: maximum number of rounds.
        categorical: names of the features that branch and bound fixes; None for all that are not numbers. Whole numbers
            among the others are optimised as real numbers and rounded.

    The fields that `REPAIRS` describes are off by default.
    """

    name: ClassVar[str] = "ace-published"
    revision: ClassVar[int] = 1
    default_plausibility: ClassVar[Kind] = "lof"

    n0: int = 30
    lambda_0: float = 10.0
    lambda_max: float = 1e15
    growth: float = 1.5
    epsilon: float = 1e-3
    mc: int = 1000
    sobol: int = 8000
    nu: float = 2.5
    start: Literal["normal", "lhs", "random", "test"] = "normal"
    initial: Literal["normal", "reference"] = "normal"
    n_starts: int = 10
    neighbours: int = 20
    max_rounds: int = 11
    categorical: tuple[str, ...] | None = None
    new_points_only: bool = False
    two_idle_rounds: bool = False
    best_asked: bool = False
    sobol_rays: bool = False
    choose_by_cost: bool = False
    reference_scale: bool = False
    standardised_kernel: bool = False
    fitted_kernel: bool = False
    exact_improvement: bool = False
    best_start: bool = False
    all_categories: bool = False
    reference_lof: bool = False
    reference_spread: bool = False
    one_class: bool = False
    gives_up: bool = False
    falls_back: bool = False

    @classmethod
    def with_repairs(cls, *names: str, **settings: Any) -> PublishedAce:
        """The algorithm with these repairs switched on."""
        switches: dict[str, Any] = dict.fromkeys(names, True)
        return cls(**switches, **settings)

    def __post_init__(self) -> None:
        for name in ("n0", "mc", "sobol", "n_starts", "neighbours", "max_rounds"):
            if not is_count(getattr(self, name)):
                raise ValueError(f"{name}: expected a whole number of at least 1, got {getattr(self, name)!r}.")
        for name in ("lambda_0", "lambda_max", "growth", "epsilon"):
            if not is_finite(getattr(self, name)):
                raise ValueError(f"{name}: expected a finite number, got {getattr(self, name)!r}.")
        if not (1 < self.lambda_0 <= self.lambda_max and self.growth > 1 and self.epsilon >= 0):
            raise ValueError("expected 1 < lambda_0 <= lambda_max, growth above 1 and epsilon of at least 0.")
        for name, allowed in (("nu", (0.5, 1.5, 2.5)), ("start", STARTS), ("initial", ("normal", "reference"))):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name}: expected one of {', '.join(map(str, allowed))}, got {getattr(self, name)!r}."
                )
        if self.fitted_kernel and self.nu == 0.5:
            raise ValueError("fitted_kernel: expected nu 1.5 or 2.5, got nu 0.5.")

    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """The next query: a first point, then rounds of acquisitions, each ended by the Sobol step."""
        rng = np.random.default_rng([seed, len(history.queries)])
        last = history.queries[-1]
        if last.purpose in ("factual", "initial"):
            if len(history.queries) < self.n0:
                return Query(_first_point(self, problem, history, seed, rng), "initial")
            if not history.is_hit.any() and not self.one_class:
                return Stop("exhausted")
        if self.gives_up and _is_unlikely(history):
            return Stop("unlikely")
        state = _State(self, problem, history)
        if last.purpose == "acquire":
            query = _rest_of_round(state, last.round, self._next_penalty(history), rng)
        elif _is_over(self, problem, history):
            return Stop("settled")
        elif last.round == self.max_rounds:
            return Stop("exhausted")
        else:
            query = _rest_of_round(state, last.round + 1, self.lambda_0, rng)
        return query or Stop("settled" if history.is_hit.any() else "exhausted")

    def _next_penalty(self, history: History) -> float:
        """The penalty of the next acquisition; infinite if the last two points of the round are within epsilon."""
        before, last = history.queries[-2:]  # the factual comes first, so there are two
        in_round = (before.purpose, before.round) == ("acquire", last.round)
        if in_round and np.linalg.norm(last.point - before.point) <= self.epsilon:
            return np.inf
        return float(last.penalty**self.growth)


def _distance(settings: PublishedAce, problem: Problem, X: FloatArray) -> FloatArray:
    """The distance by which counterfactuals are compared, (n,): raw Euclidean distance, or cost (R6)."""
    return problem.cost(X) if settings.choose_by_cost else np.linalg.norm(X - problem.factual, axis=1)


def answer(settings: PublishedAce, steps: Sequence[Step], X: FloatArray) -> FloatArray | None:
    """The answer of the algorithm, (d,): the last Sobol point that is a hit, or the best hit of all (R4).

    Args:
        steps: the steps of the explanation, the factual first.
        X: their rows as points, (n, d).
    """
    if not settings.best_asked:
        found = [x for x, step in zip(X, steps, strict=True) if step.hit and step.purpose == "boundary"]
        return found[-1] if found else None
    hits = [i for i, step in enumerate(steps) if step.is_counterfactual]
    costs = [steps[i].cost for i in hits] if settings.choose_by_cost else np.linalg.norm(X[hits] - X[0], axis=1)
    return X[hits[int(np.argmin(costs))]] if hits else None


def _is_over(settings: PublishedAce, problem: Problem, history: History) -> bool:
    """Whether the last rounds found no closer counterfactual (R3)."""
    rounds = np.array([q.round for q in history.queries])
    counts = history.is_hit.copy()
    if not settings.best_asked:
        counts &= np.array([q.purpose == "boundary" for q in history.queries])
    elif settings.reference_lof:
        counts &= problem.plausible(history.X)
    distance = np.where(counts, _distance(settings, problem, history.X), np.inf)
    nearest, idle = distance[rounds == 0].min(initial=np.inf), 0
    for r in range(1, int(rounds[-1]) + 1):
        found = distance[rounds == r].min(initial=np.inf)
        if found < nearest:
            nearest, idle = found, 0
        elif np.isfinite(found) or (settings.best_asked and np.isfinite(nearest)):
            idle += 1  # a round whose Sobol point is a miss does not end the search (section 3.5)
    return idle >= (2 if settings.two_idle_rounds else 1)


def _is_unlikely(history: History) -> bool:
    recent = [q.max_p_hit for q in history.queries[-PATIENCE:]]
    return not history.is_hit.any() and len(recent) == PATIENCE and max(recent) < UNLIKELY


# -- surrogate (section 3.2) -----------------------------------------------------------------------------------


def matern(squared: FloatArray, nu: float, ell: float = 1.0, variance: float = 1.0) -> FloatArray:
    """The Matern covariance at squared distances; the result has the same shape."""
    r = np.sqrt(2 * nu * np.maximum(squared, 0.0)) / ell
    if nu == 0.5:
        return np.asarray(variance * np.exp(-r))
    polynomial = 1 + r if nu == 1.5 else 1 + r + r**2 / 3
    return np.asarray(variance * polynomial * np.exp(-r))


@lru_cache(maxsize=32)
def fitted_length_scale(points: bytes, labels: bytes, n: int, nu: float) -> float:
    """The length scale of largest marginal likelihood with amplitude 1, as fitted by scikit-learn; 1 for one class."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import Matern

    X, t = np.frombuffer(points).reshape(n, -1), np.frombuffer(labels)
    if len(np.unique(t)) < 2:
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = GaussianProcessClassifier(Matern(length_scale=1.0, nu=nu)).fit(X, t)
    return float(fitted.kernel_.length_scale)


class Laplace:
    """The posterior of the latent function given labels, for fixed hyperparameters.

    Args:
        Z: points, (n, D).
        t: labels, 0 or 1, (n,).
        squared: squared distances of two sets of points.
    """

    def __init__(
        self,
        Z: FloatArray,
        t: FloatArray,
        *,
        nu: float,
        ell: float = 1.0,
        variance: float = 1.0,
        squared: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
    ) -> None:
        self.Z, self.nu, self.ell, self.variance = Z, nu, ell, variance
        self._squared = squared or (lambda A, B: cdist(A, B, "sqeuclidean"))
        K = self.kernel(Z, Z)
        a = np.zeros(len(t))
        for _ in range(100):  # the listing stops after 10, which is usually enough
            W = expit(a) * expit(-a)
            new = K @ np.linalg.solve(np.eye(len(t)) + W[:, None] * K, t - expit(a) + W * a)
            moved, a = np.linalg.norm(new - a), new
            if moved < 1e-6:
                break
        self.residual = t - expit(a)  # (n,)
        self.root_W = np.sqrt(expit(a) * expit(-a))
        self._B = cho_factor(np.eye(len(t)) + self.root_W[:, None] * K * self.root_W, lower=True)

    def kernel(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Covariances of points, (a, b)."""
        return matern(self._squared(A, B), self.nu, self.ell, self.variance)

    def solved(self, K_star: FloatArray) -> FloatArray:
        """(W^-1 + K)^-1 K_star, (n, a)."""
        # LAPACK is called directly, since for single points the checks of cho_solve take longer than the solution.
        solution, _ = dpotrs(self._B[0], self.root_W[:, None] * K_star, lower=True)
        out: FloatArray = self.root_W[:, None] * solution
        return out

    def latent(
        self, A: FloatArray, b: FloatArray, solved_b: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and variance at A, and covariance with the latent function at one point b, (D,), (a,) each.

        Args:
            solved_b: `solved` of the covariances with b, (n,), to reuse if many calls have the same b.
        """
        K_star = self.kernel(self.Z, A)
        if solved_b is None:
            solved_b = self.solved(self.kernel(self.Z, b[None]))[:, 0]
        variance = self.variance - (K_star * self.solved(K_star)).sum(axis=0)
        covariance = self.kernel(A, b[None])[:, 0] - K_star.T @ solved_b
        return K_star.T @ self.residual, np.maximum(variance, VARIANCE_LIMIT), covariance

    def probability(self, A: FloatArray) -> FloatArray:
        """The moderated probability of a hit, (a,)."""
        out = []
        for part in np.array_split(A, len(A) // 2000 + 1):
            K_star = self.kernel(self.Z, part)
            variance = np.maximum(self.variance - (K_star * self.solved(K_star)).sum(axis=0), 0.0)
            out.append(expit(K_star.T @ self.residual / np.sqrt(1 + np.pi * variance / 8)))
        return np.concatenate(out)


# -- expected improvement (section 3.3) ------------------------------------------------------------------------


def monte_carlo_improvement(
    gain: FloatArray,
    penalty: float,
    moments: tuple[FloatArray, FloatArray, FloatArray],
    mean_star: float,
    variance_star: float,
    draws: FloatArray,
) -> FloatArray:
    """The mean over draws of the improvement of J, (n,).

    Args:
        gain: cost of the incumbent minus that of each point, (n,).
        moments: mean and variance of f at each point, and its covariance with f at the incumbent, (n,) each.
        draws: standard normal numbers, (n, m, 2).
    """
    mean, variance, covariance = moments
    first = np.sqrt(variance)
    second = covariance / first
    rest = variance_star - second**2
    is_singular = rest <= 0  # the Cholesky factor needs a positive pivot
    first = np.where(is_singular, np.sqrt(variance + JITTER), first)
    second = np.where(is_singular, covariance / first, second)
    rest = np.sqrt(np.maximum(np.where(is_singular, variance_star + JITTER - second**2, rest), 0.0))
    f = mean[:, None] + first[:, None] * draws[..., 0]
    f_star = mean_star + second[:, None] * draws[..., 0] + rest[:, None] * draws[..., 1]
    J_difference = gain[:, None] + penalty * (np.abs(f_star - 0.5) - np.abs(f - 0.5))
    improvement: FloatArray = np.maximum(J_difference, 0.0).mean(axis=1)
    return improvement


class _State:
    """The surrogate and the cost, given all answers."""

    def __init__(self, settings: PublishedAce, problem: Problem, history: History) -> None:
        self.settings, self.problem, self.history = settings, problem, history
        self.labels = history.is_hit.astype(float)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """The inputs of the kernel, (n, D) (R8)."""
        scale = self.problem.scale
        return scale.coordinates(X) if self.settings.standardised_kernel else scale.filled(X)

    def squared(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Squared distances of coordinates, (a, b)."""
        if self.settings.standardised_kernel:
            return self.problem.scale.metric.squared(A, B)
        return np.asarray(cdist(A, B, "sqeuclidean"))

    @cached_property
    def posterior(self) -> Laplace:
        settings, Z = self.settings, self.coordinates(self.history.X)
        hyper: dict[str, float]
        if settings.fitted_kernel:
            name: Any = "matern32" if settings.nu == 1.5 else "matern52"
            metric: Any = {"metric": self.problem.scale.metric} if settings.standardised_kernel else {}
            kernel = surrogate.fit(Z, self.labels, kernel=name, **metric).kernel
            hyper = {"ell": kernel.ell, "variance": kernel.variance}
        else:  # fitted when the round begins
            queries = self.history.queries
            current = queries[-1].round + (queries[-1].purpose != "acquire")
            n = sum(query.round < current for query in queries)
            hyper = {"ell": fitted_length_scale(Z[:n].tobytes(), self.labels[:n].tobytes(), n, settings.nu)}
        return Laplace(Z, self.labels, nu=settings.nu, squared=self.squared, **hyper)

    @cached_property
    def deviations(self) -> FloatArray:
        """Standard deviations of the points queried, (d,); infinite if constant, so that changes are free (R7)."""
        deviations = self.history.X.std(axis=0)
        return np.where(deviations > 1e-10, deviations, np.inf)

    def cost(self, X: FloatArray) -> FloatArray:
        """d + beta g, (n,)."""
        if self.settings.reference_scale:
            return self.problem.cost(X)
        z = (X - self.problem.factual) / self.deviations
        return np.asarray(np.sqrt((z**2).sum(axis=1)) + self.problem.cost.beta * np.abs(z).sum(axis=1))

    def is_inlier(self, X: FloatArray) -> BoolArray:
        """Which points pass the filter, (n,) (R14)."""
        if self.settings.reference_lof:
            return self.problem.plausible(self.problem.region.snap(X))
        return np.asarray(self._outlier_factor.predict(X) == 1)

    @cached_property
    def _outlier_factor(self) -> Any:
        from sklearn.neighbors import LocalOutlierFactor

        X = self.history.X
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Duplicate values", category=UserWarning)
            neighbours = min(self.settings.neighbours, len(X) - 1)
            return LocalOutlierFactor(n_neighbors=neighbours, novelty=True).fit(X)

    def improvement(self, penalty: float, rng: np.random.Generator) -> Objective:
        """Expected improvement of J over the incumbent, with new random draws in every call (R11, R22)."""
        history, posterior, settings = self.history, self.posterior, self.settings
        mean = expit(posterior.kernel(posterior.Z, posterior.Z) @ posterior.residual)
        costs = self.cost(history.X)
        J = costs + penalty * np.abs(mean - 0.5)
        if settings.reference_lof:  # the incumbent may be the factual, but no other outlier
            J = np.where(self.problem.plausible(history.X) | (np.arange(len(J)) == 0), J, np.inf)
        i = int(J.argmin())
        b = posterior.Z[i]
        solved_b = posterior.solved(posterior.kernel(posterior.Z, b[None]))[:, 0]
        _, variance, _ = posterior.latent(b[None], b, solved_b)
        slope_star = mean[i] * (1 - mean[i])
        variance_star = float(variance[0]) * slope_star**2

        def value(X: FloatArray) -> FloatArray:
            latent, variance, covariance = posterior.latent(self.coordinates(X), b, solved_b)
            mu = expit(latent)
            slope = mu * (1 - mu)
            gain = costs[i] - self.cost(X)
            moments = (mu, variance * slope**2, covariance * slope * slope_star)
            if settings.exact_improvement:
                found = acquisition.expected_improvement(gain / penalty, *moments, float(mean[i]), variance_star)
                return penalty * found.value
            out = []
            n_at_once = max(MAX_DRAWS // settings.mc, 1)
            for part in (slice(start, start + n_at_once) for start in range(0, len(X), n_at_once)):
                draws = rng.standard_normal((len(gain[part]), settings.mc, 2))
                some = (moments[0][part], moments[1][part], moments[2][part])
                out.append(monte_carlo_improvement(gain[part], penalty, some, float(mean[i]), variance_star, draws))
            return np.concatenate(out)

        return value


# -- maximising it (section 3.4) -------------------------------------------------------------------------------


def climb(value: Objective, x: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, float]:
    """The result of L-BFGS-B started at x, (d,), with its default forward differences, and the value there."""
    free = np.flatnonzero(low < high)
    if len(free) == 0:
        return x, float(value(x[None])[0])

    def loss(part: FloatArray) -> tuple[float, FloatArray]:
        X = np.repeat(x[None], len(free) + 1, axis=0)
        X[:, free] = part
        step = np.where(part + DIFFERENCE > high[free], -DIFFERENCE, DIFFERENCE)
        X[1 + np.arange(len(free)), free] += step
        values = -value(X)
        return float(values[0]), (values[1:] - values[0]) / step

    bounds = list(zip(low[free], high[free], strict=True))
    found = minimize(
        loss, x[free], jac=True, method="L-BFGS-B", bounds=bounds, options={"gtol": 1e-20, "maxiter": MAX_ITERATIONS}
    )
    end = x.copy()
    end[free] = found.x
    return end, -float(found.fun)


def greedy_branching(
    value: Objective, root: FloatArray, low: FloatArray, high: FloatArray, columns: IntArray
) -> FloatArray:
    """The best leaf of the listing's tree, (d,): each category is rounded down or up, and the rest optimised again.

    No branch is pruned, and leaves may be implausible.
    """
    if len(columns) == 0:
        return climb(value, root, low, high)[0]
    best, best_value = root, -np.inf
    stack = [(root, low, high, 0)]
    while stack:
        point, low, high, level = stack.pop()
        if level == len(columns):
            leaf, found = climb(value, point, low, high)
            if found > best_value:
                best, best_value = leaf, found
            continue
        column = columns[level]
        for code in sorted({np.ceil(point[column]), np.floor(point[column])}, reverse=True):  # the floor comes first
            fixed, least, most = point.copy(), low.copy(), high.copy()
            fixed[column] = least[column] = most[column] = code
            stack.append((climb(value, fixed, least, most)[0], least, most, level + 1))
    return best


def full_branching(
    value: Objective,
    root: FloatArray,
    low: FloatArray,
    high: FloatArray,
    columns: IntArray,
    codes: list[FloatArray],
    accept: Callable[[FloatArray], BoolArray],
) -> FloatArray | None:
    """The best acceptable combination of categories, (d,), with optimised numbers; None if none is acceptable.

    Raises:
        ValueError: there are too many combinations.
    """
    size = np.prod([len(values) for values in codes], dtype=float)
    if size > MAX_LEAVES:
        raise ValueError(f"all_categories: at most {MAX_LEAVES:,} combinations of categories, got {size:,.0f}.")
    X = np.repeat(root[None], int(size), axis=0)
    X[:, columns] = list(product(*codes)) if len(columns) else np.zeros((1, 0))
    leaves = []
    for i in np.argsort(-value(X), kind="stable"):
        if accept(X[i][None])[0]:
            leaves.append(X[i])
        if len(leaves) == LEAF_CLIMBS:
            break
    best, best_value = None, -np.inf
    for leaf in leaves:
        least, most = low.copy(), high.copy()
        least[columns] = most[columns] = leaf[columns]
        point, found = climb(value, leaf, least, most)
        if found > best_value and accept(point[None])[0]:
            best, best_value = point, found
    return leaves[0] if best is None and leaves else best


def _acquired(state: _State, penalty: float, rng: np.random.Generator) -> FloatArray | None:
    """The point of largest expected improvement, (d,), snapped to the region; None if no start leads to one."""
    settings, problem, history = state.settings, state.problem, state.history
    region, value = problem.region, state.improvement(penalty, rng)
    low, high = (np.where(region.movable, end, problem.factual) for end in (region.low, region.high))
    columns = _categorical(settings, problem)

    def is_new(X: FloatArray) -> BoolArray:
        if not settings.new_points_only:
            return np.ones(len(X), dtype=bool)
        points = problem.scale.coordinates(np.vstack([region.snap(X), history.X]))
        squared = problem.scale.metric.squared(points[: len(X)], points[len(X) :])
        return np.asarray(np.sqrt(squared.min(axis=1)) > settings.epsilon)

    def accept(X: FloatArray) -> BoolArray:
        return state.is_inlier(X) & is_new(X)

    root, best = None, 0.0
    for start in _starts(state, rng):
        if key(start) in history.asked:
            continue
        point, found = climb(value, start, low, high)
        if found > best and state.is_inlier(point[None])[0] and is_new(point[None])[0]:
            root, best = point, found
            if not settings.best_start:
                break
    if root is None:
        return None
    if settings.all_categories:
        codes = [region.values(int(j)) for j in columns]
        listed = [values for values in codes if values is not None]
        leaf = full_branching(value, root, low, high, columns, listed, accept)
    else:
        leaf = greedy_branching(value, root, low, high, columns)
    if leaf is None:
        return None
    snapped: FloatArray = region.snap(leaf[None])[0]
    return snapped if is_new(snapped[None])[0] else None


def _categorical(settings: PublishedAce, problem: Problem) -> IntArray:
    """Positions of the features that branch and bound fixes."""
    space = problem.region.space
    chosen = settings.categorical
    if chosen is None:
        is_category = np.array([not feature.is_number for feature in space.features])
    else:
        is_category = np.isin([str(name) for name in space.names], chosen)
    return np.flatnonzero(is_category & problem.region.movable)


def _starts(state: _State, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Up to `n_starts` starts of L-BFGS-B, (d,) each."""
    settings, problem = state.settings, state.problem
    region, x = problem.region, problem.factual
    movable = region.movable
    for _ in range(settings.n_starts):
        if settings.start == "test":
            yield problem.projected[rng.integers(len(problem.projected))]
            continue
        if settings.start == "normal" and movable.sum() >= PCA_FEATURES:
            moves = problem.principal_moves
            drawn = problem.reference.mean(axis=0) + rng.normal(size=len(moves)) @ moves
        elif settings.start == "normal":
            spread = problem.scale.deviations if settings.reference_spread else np.sqrt(np.abs(x))
            drawn = truncated_normal(rng, x, np.maximum(spread, MIN_SPREAD), region.low, region.high)
        elif settings.start == "lhs":
            u = qmc.LatinHypercube(len(x), rng=rng).random(1)[0]
            drawn = region.low + u * (region.high - region.low)
        else:
            drawn = rng.uniform(region.low, region.high)
        yield np.where(movable, np.clip(drawn, region.low, region.high), x)


def truncated_normal(
    rng: np.random.Generator, mean: FloatArray, deviation: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """One draw of independent normals within bounds, (d,)."""
    least, most = ndtr((low - mean) / deviation), ndtr((high - mean) / deviation)
    u = np.clip(least + (most - least) * rng.random(len(mean)), 1e-16, 1 - 1e-16)
    return np.asarray(np.clip(mean + deviation * ndtri(u), low, high))


# -- the rounds (section 3.5) ----------------------------------------------------------------------------------


def _first_point(
    settings: PublishedAce, problem: Problem, history: History, seed: int, rng: np.random.Generator
) -> FloatArray:
    """One of the n0 first points, (d,): truncated normals, uniform for categories; or a row of the reference."""
    region, scale = problem.region, problem.scale
    if settings.initial == "reference":
        order = np.random.default_rng(seed).permutation(len(problem.projected))
        rows: FloatArray = problem.projected[order[len(history.queries) % len(order)]]
        return rows
    known = scale.filled(problem.reference)
    # With one class only, the distribution widens until there is a hit (R17).
    widening = 1 + len(history.queries) / 8 if settings.one_class and not history.is_hit.any() else 1.0
    deviation = np.maximum(widening * known.std(axis=0), MIN_SPREAD)
    drawn = truncated_normal(rng, known.mean(axis=0), deviation, region.low, region.high)
    for j in _categorical(settings, problem):
        values = region.values(int(j))
        drawn[j] = rng.choice(values) if values is not None else drawn[j]
    point: FloatArray = region.snap(np.where(region.movable, drawn, problem.factual)[None])[0]
    return point


def _rest_of_round(state: _State, round_: int, penalty: float, rng: np.random.Generator) -> Query | None:
    """The next acquisition of the round, or its Sobol step; None if there is nothing to query."""
    settings = state.settings
    max_p_hit = _largest_probability(state, rng) if settings.gives_up else 1.0
    while penalty < settings.lambda_max:
        point = _acquired(state, penalty, rng)
        if point is not None:
            return Query(point, "acquire", round_, penalty, max_p_hit)
        penalty = penalty**settings.growth  # nothing to query at this penalty (R19)
    found = boundary_point(state, rng)
    if found is None and settings.falls_back and not state.history.is_hit.any():
        rows = state.problem.projected[np.argsort(state.problem.cost(state.problem.projected), kind="stable")]
        found = _first_admissible(state, rows)
    return None if found is None else Query(found, "boundary", round_, settings.lambda_max, max_p_hit)


def boundary_point(state: _State, rng: np.random.Generator) -> FloatArray | None:
    """The Sobol step: among the points whose posterior is closest to one half, the nearest one, (d,) (R5, R6)."""
    settings, problem = state.settings, state.problem
    X = np.unique(sobol_points(settings, problem, rng), axis=0)
    off = np.abs(state.posterior.probability(state.coordinates(X)) - 0.5)
    limit = np.quantile(off, CLOSEST)  # far from all evidence the posterior is one half: many points may tie
    X = X[off <= (max(limit, BAND) if settings.sobol_rays else limit)]
    X = X[np.argsort(_distance(settings, problem, X), kind="stable")]
    return _first_admissible(state, X) if settings.sobol_rays else X[0]


def _first_admissible(state: _State, X: FloatArray) -> FloatArray | None:
    """The first plausible point that was not queried before, (d,)."""
    for part in np.array_split(X, 1 + len(X) // 200):
        is_new = np.array([key(x) not in state.history.asked for x in part], dtype=bool)
        is_new[is_new] = state.is_inlier(part[is_new]) if is_new.any() else False
        if is_new.any():
            point: FloatArray = part[is_new.argmax()]
            return point
    return None


def sobol_points(settings: PublishedAce, problem: Problem, rng: np.random.Generator) -> FloatArray:
    """Newly scrambled Sobol points, (n, d): numbers fill the box, categories are rounded to their codes."""
    region, factual, n = problem.region, problem.factual, settings.sobol
    movable = np.flatnonzero(region.movable)
    rays = settings.sobol_rays and len(movable) > BOX_DIMENSIONS
    u = qmc.Sobol(len(movable) + rays, scramble=True, rng=rng).random_base2(int(np.ceil(np.log2(n))))[:n]
    X = np.repeat(factual[None], n, axis=0)
    X[:, movable] = region.low[movable] + u[:, : len(movable)] * (region.high - region.low)[movable]
    for j in _categorical(settings, problem):
        values = region.values(int(j))
        if values is not None:
            column = u[:, np.searchsorted(movable, j)]
            X[:, j] = values[np.round(column * (len(values) - 1)).astype(int)]
    if rays:
        X[::2] = problem.projected[rng.integers(len(problem.projected), size=len(X[::2]))]
        X = factual + u[:, -1:] * (X - factual)  # the last coordinate is the position on the ray
    return region.snap(X)


def _largest_probability(state: _State, rng: np.random.Generator) -> float:
    """The largest probability of a hit among reference rows; 1 once there is a hit."""
    if state.history.is_hit.any():
        return 1.0
    rows = state.problem.projected
    rows = rows[rng.permutation(len(rows))[:400]]
    return float(state.posterior.probability(state.coordinates(rows)).max())
