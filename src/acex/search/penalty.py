"""Strategy "penalty": ACE, sections 3.1 to 3.5 of the paper, with the repairs of docs/readings.md.

    J(x) = c(x) + lambda |f(x) - 1/2|,     c = d + beta g,     f = sigma(latent), moments by the delta method

n0 initial points are followed by rounds. In each round lambda grows from lambda_0 to lambda_max as lambda^growth; for
each lambda the point of largest expected improvement of J is asked. The round ends with the Sobol step: of the points
whose posterior is closest to one half, the cheapest is asked. Rounds continue until they find no closer counterfactual.
Where text, pseudo-code and listing of the paper disagree, docs/readings.md says which one is implemented; R4 below is
its row 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, ndtr, ndtri

from acex.arrays import BoolArray, FloatArray, unique_rows
from acex.search.acquisition import Improvement, expected_improvement, improvement_bound
from acex.search.kernel import KernelName
from acex.search.maximise import maximise
from acex.search.problem import History, Problem, Query, Stop
from acex.search.strategy import Strategy
from acex.search.surrogate import JointPosterior, Posterior, fit
from acex.space.cost import CostFunction
from acex.space.plausibility import Kind
from acex.values import check_count, is_finite

N_STARTS = 96  # starts around the factual; L-BFGS-B climbs from the best
BOX_DIMENSIONS = 2  # up to here Sobol points fill the box; with more features, rays from the factual (R5)
BOUNDARY_BAND = 0.2  # Sobol points whose posterior is within this of one half are on the boundary (R5)
BOUNDARY_SHARE = 0.05  # least share of the Sobol points on the boundary, however certain the surrogate is
PCA_FEATURES = 64  # from this number of features on, starts are drawn along principal components (R21)
MAX_IDLE_ROUNDS = 2  # the search ends after this many rounds without a closer counterfactual (R3)
UNLIKELY, PATIENCE = 0.02, 10  # give up if P(hit) stays below this for this many queries


@dataclass(frozen=True)
class Penalty(Strategy):
    """Settings of strategy "penalty" (ACE). The defaults are the paper's values.

    Args:
        n0: number of initial points, the factual included (the paper: 30; 15 for blood, 4 for moons, 50 for images).
            The search starts after them, so the budget should be at least twice as large.
        lambda_0: penalty on `|f - 1/2|` at the start of each round; above 1.
        lambda_max: penalty at which a round ends; at least `lambda_0`.
        growth: exponent by which the penalty grows; above 1.
        epsilon: a round also ends when the point moves no farther than this, in standard deviations.
        sobol: number of points at which the posterior is evaluated when a round ends.
        kernel: covariance of the surrogate, "matern52" or "matern32".
        initial: "reference" rows, or "normal" draws around the factual.

    Raises:
        ValueError: a setting is invalid.
    """

    name: ClassVar[str] = "penalty"
    revision: ClassVar[int] = 3
    default_plausibility: ClassVar[Kind] = "lof"

    n0: int = 30
    lambda_0: float = 10.0
    lambda_max: float = 1e15
    growth: float = 1.5
    epsilon: float = 1e-3
    sobol: int = 8000
    kernel: KernelName = "matern52"
    initial: Literal["reference", "normal"] = "reference"

    def __post_init__(self) -> None:
        for name, count in (("n0", self.n0), ("sobol", self.sobol)):
            check_count(name, count)
        for name in ("lambda_0", "lambda_max", "growth", "epsilon"):
            if not is_finite(getattr(self, name)):
                raise ValueError(f"{name}: expected a finite number, got {getattr(self, name)!r}.")
        if not 1 < self.lambda_0 <= self.lambda_max:
            raise ValueError(
                f"lambda_0, lambda_max: expected 1 < lambda_0 <= lambda_max, got {self.lambda_0!r} and "
                f"{self.lambda_max!r}; the penalty grows as a power, so it must start above 1."
            )
        if not self.growth > 1:
            raise ValueError(f"growth: expected a number above 1, got {self.growth!r}.")
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon: expected zero or a positive number, got {self.epsilon!r}.")
        if self.kernel not in ("matern52", "matern32"):
            raise ValueError(f"kernel: expected 'matern52' or 'matern32', got {self.kernel!r}.")
        if self.initial not in ("reference", "normal"):
            raise ValueError(f"initial: expected 'reference' or 'normal', got {self.initial!r}.")

    def next_query(
        self, problem: Problem, history: History, *, seed: int, count: int = 1, budget: float = np.inf
    ) -> Query | Stop:
        """The next query: an initial point, then the rest of this round, then another round."""
        rng = np.random.default_rng([seed, len(history.queries)])
        last = history.queries[-1]
        if last.purpose in ("factual", "initial"):
            query = _initial(problem, self, history, seed, rng)
            if query is not None:
                return query
        if _hopeless(history):
            return Stop("unlikely")
        surrogate = _Surrogate(problem, self, history)
        if last.purpose == "acquire":
            query = _rest_of_round(surrogate, last.round, last.penalty**self.growth, rng)
            if query is not None:
                return query
        if _rounds_are_idle(problem, history):
            return Stop("settled")
        query = _rest_of_round(surrogate, last.round + 1, self.lambda_0, rng)
        if query is not None:
            return query
        if surrogate.best_hit is not None:
            return Stop("settled")
        return _unasked_reference_row(surrogate, last.round + 1) or Stop("exhausted")


def _hopeless(history: History) -> bool:
    recent = [q.max_p_hit for q in history.queries[-PATIENCE:]]
    return not history.is_hit.any() and len(recent) == PATIENCE and max(recent) < UNLIKELY


def _rounds_are_idle(problem: Problem, history: History) -> bool:
    """Whether the last rounds found no closer counterfactual (R3)."""
    rounds = np.array([q.round for q in history.queries])
    good = history.is_hit & problem.plausible(history.X)
    if not good.any():
        return False
    cost = np.where(good, problem.cost(history.X), np.inf)
    return bool(rounds[cost.argmin()] <= rounds[-1] - MAX_IDLE_ROUNDS)


# -- initial points ------------------------------------------------------------------------------------


def _initial(
    problem: Problem, settings: Penalty, history: History, seed: int, rng: np.random.Generator
) -> Query | None:
    if len(history.queries) >= settings.n0:
        return None
    if settings.initial == "reference":
        # One order for the whole search: the points do not depend on the answers.
        order = np.random.default_rng(seed).permutation(len(problem.projected))
        candidates = problem.projected[order[: 10 * settings.n0]]
    else:
        # The draw widens until the first hit (R17).
        widening = 1.0 if history.is_hit.any() else 1.0 + len(history.queries) / 8
        candidates = around_factual(problem, rng, 50, np.full(50, widening), np.ones(50))
    point = _first_admissible(problem, history, candidates, at_once=50)
    return None if point is None else Query(point, "initial")


def _first_admissible(problem: Problem, history: History, X: FloatArray, at_once: int = 400) -> FloatArray | None:
    """The first admissible point of X, (n, d); `at_once` points are checked together."""
    for chunk in np.array_split(X, 1 + len(X) // at_once):
        ok = problem.admissible(chunk, history.asked)
        if ok.any():
            point: FloatArray = chunk[ok.argmax()]
            return point
    return None


def around_factual(
    problem: Problem, rng: np.random.Generator, n: int, spread: FloatArray, share: FloatArray
) -> FloatArray:
    """Draws around the factual within the region, (n, d): truncated normals, uniform for nominal features.

    Args:
        spread: deviation of each draw in the reference's standard deviations, (n,) (R16).
        share: share of the movable features that each draw moves, (n,); at least one is moved.
    """
    region, d = problem.region, len(problem.factual)
    movable = np.flatnonzero(region.movable)
    moves = rng.random((n, d)) < share[:, None]
    moves[np.arange(n), rng.choice(movable, n)] = True
    deviation = np.maximum(spread[:, None] * problem.scale.deviations, 1e-300)
    # Smaller steps would be rounded away.
    deviation = np.maximum(deviation, 0.5 * np.array([f.grid for f in region.space.features]))
    low, high = (ndtr((b - problem.factual) / deviation) for b in (region.low, region.high))
    X = problem.factual + deviation * ndtri(low + (high - low) * rng.random((n, d)))
    for j in np.flatnonzero(region.space.is_nominal):
        values = region.values(int(j))
        assert values is not None  # a nominal feature has finitely many values
        X[:, j] = rng.choice(values, n)
    return region.snap(np.where(moves, X, problem.factual))


# -- one round -------------------------------------------------------------------------------------------


class _Surrogate:
    """The posterior given all answers, and the answers that may be the incumbent."""

    def __init__(self, problem: Problem, settings: Penalty, history: History) -> None:
        self.problem, self.settings, self.history = problem, settings, history
        self.Z = problem.scale.coordinates(history.X)
        self.costs = problem.cost(history.X)

    @cached_property
    def posterior(self) -> Posterior:
        metric = self.problem.scale.metric
        return fit(self.Z, self.history.is_hit.astype(float), kernel=self.settings.kernel, metric=metric)

    @cached_property
    def plausible(self) -> BoolArray:
        return self.problem.plausible(self.history.X)

    @cached_property
    def best_hit(self) -> FloatArray | None:
        """The cheapest plausible hit, (d,)."""
        good = self.history.is_hit & self.plausible
        return self.history.X[np.where(good, self.costs, np.inf).argmin()] if good.any() else None

    def improvement(self, penalty: float) -> ImprovementScore:
        """Expected improvement over the incumbent at this penalty (R22)."""
        mean = expit(self.posterior.latent(self.Z)[0])
        usable = self.plausible.copy()
        usable[0] = True  # the factual
        J = np.where(usable, self.costs + penalty * np.abs(mean - 0.5), np.inf)
        i = int(J.argmin())
        joint = self.posterior.joint(self.Z[i])
        return ImprovementScore(joint, self.problem.cost, penalty, self.history.X, float(self.costs[i]))


@dataclass(frozen=True, eq=False)
class ImprovementScore:
    """Expected improvement of J over the incumbent, divided by lambda (section 3.3); see `acquisition`."""

    joint: JointPosterior
    cost: CostFunction
    penalty: float
    evidence: FloatArray
    incumbent_cost: float

    @cached_property
    def _incumbent(self) -> tuple[float, float, float]:
        """Mean, variance and slope of f = sigma(latent) at the incumbent."""
        mean, variance, _ = self.joint.moments(self.joint.b)
        mu = float(expit(mean[0]))
        return mu, float(variance[0]) * (mu * (1 - mu)) ** 2, mu * (1 - mu)

    def _alpha(self, cost: FloatArray) -> FloatArray:
        return (self.incumbent_cost - cost) / self.penalty

    def __call__(self, X: FloatArray) -> FloatArray:
        moments = self.joint.moments(self.cost.scale.coordinates(X))
        return self._improvement(X, *moments)[0].value

    def _improvement(
        self, X: FloatArray, latent: FloatArray, variance: FloatArray, covariance: FloatArray
    ) -> tuple[Improvement, FloatArray]:
        """EI / lambda and its derivatives, and f's mean, (n,); delta method, the paper's appendix D."""
        mu = expit(latent)
        slope = mu * (1 - mu)
        mu_star, var_star, slope_star = self._incumbent
        spread = (variance * slope**2, covariance * slope * slope_star)
        return expected_improvement(self._alpha(self.cost(X)), mu, *spread, mu_star, var_star), mu

    def with_gradient(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        moments, gradients = self.joint.with_gradients(self.cost.scale.coordinates(X))
        latent, variance, covariance = moments
        by_latent, by_variance, by_covariance = gradients
        ei, mu = self._improvement(X, latent, variance, covariance)
        slope, slope_star = mu * (1 - mu), self._incumbent[2]
        bend = (1 - 2 * mu)[:, None] * by_latent  # slope' / slope
        gradient = (
            (ei.by_mean * slope)[:, None] * by_latent
            + (ei.by_variance * slope**2)[:, None] * (by_variance + 2 * variance[:, None] * bend)
            + (ei.by_covariance * slope * slope_star)[:, None] * (by_covariance + covariance[:, None] * bend)
        )
        return ei.value, -ei.by_alpha / self.penalty, self.cost.scale.pull_back(gradient)

    def bound(self, known_cost: FloatArray, nearest: FloatArray, farthest: FloatArray) -> FloatArray:
        posterior = self.joint.posterior
        most, least = (posterior.kernel.of_distance(q) for q in (nearest, farthest))
        positive, negative = np.maximum(posterior.a, 0), np.minimum(posterior.a, 0)
        low = expit(least @ positive + most @ negative)
        high = expit(most @ positive + least @ negative)
        closest = np.clip(0.5, low, high)  # value of f closest to one half
        deviation = np.sqrt(posterior.kernel.variance) * closest * (1 - closest)
        mu_star, var_star, _ = self._incumbent
        return improvement_bound(self._alpha(known_cost), mu_star, var_star, np.abs(closest - 0.5), deviation)


def _rest_of_round(surrogate: _Surrogate, round_: int, penalty: float, rng: np.random.Generator) -> Query | None:
    """The next acquisition of this round, or its Sobol step; None if both find nothing new."""
    problem, settings, history = surrogate.problem, surrogate.settings, surrogate.history
    last = len(history.queries) - 1  # the round's iterate so far, if it has one
    is_iterate = history.queries[last].round == round_ and history.queries[last].purpose == "acquire"
    starts, earlier = _starts(surrogate, rng), surrogate.Z
    if is_iterate:  # a point near the iterate may be proposed again: this is how a round converges
        starts, earlier = np.vstack([starts, history.X[last]]), earlier[:last]
    max_p_hit = 1.0  # needed only before the first hit
    if not history.is_hit.any():
        max_p_hit = float(surrogate.posterior.probability(problem.scale.coordinates(starts)).max())

    def accept(X: FloatArray) -> BoolArray:
        # A point within epsilon of an earlier query brings nothing new.
        squared = problem.scale.metric.squared(problem.scale.coordinates(X), earlier)
        apart: BoolArray = np.sqrt(squared.min(axis=1)) > settings.epsilon
        apart[apart] = problem.admissible(X[apart], history.asked)
        return apart

    while penalty < settings.lambda_max:
        found = maximise(surrogate.improvement(penalty), problem.cost, problem.region, starts, accept)
        if found is not None:
            point = found[0]
            step = problem.scale.metric.from_one(problem.scale.coordinates(point[None]), surrogate.Z[last])
            if is_iterate and step <= settings.epsilon:
                break  # |x_k - x_(k-1)| <= epsilon: the round has converged without a query (R2)
            return Query(point, "acquire", round_, penalty, max_p_hit)
        penalty = penalty**settings.growth  # no improvement at this penalty, so no query (R19)
    closest = _closest_boundary_point(surrogate, rng)
    return None if closest is None else Query(closest, "boundary", round_, settings.lambda_max, max_p_hit)


def _starts(surrogate: _Surrogate, rng: np.random.Generator) -> FloatArray:
    """Starts for the climb, (s, d): draws around the factual, and points between it and the best hits."""
    problem, history = surrogate.problem, surrogate.history
    spread = np.exp(rng.uniform(np.log(0.05), np.log(1.5), N_STARTS))
    drawn = around_factual(problem, rng, N_STARTS, spread, rng.random(N_STARTS))
    if problem.region.movable.sum() >= PCA_FEATURES:
        moves = problem.principal_moves
        along = rng.normal(size=(N_STARTS, len(moves))) * rng.random((N_STARTS, 1))
        drawn = np.vstack([drawn, problem.factual + along @ moves])
    hits = history.X[history.is_hit]
    hits = hits[np.argsort(surrogate.costs[history.is_hit], kind="stable")][:5]
    share = rng.random((len(hits), 8, 1))
    between = (problem.factual + share * (hits[:, None] - problem.factual)).reshape(-1, len(problem.factual))
    nearest = problem.projected[rng.integers(len(problem.projected), size=N_STARTS // 3)]
    return np.vstack([drawn, between, hits, nearest])


def _closest_boundary_point(surrogate: _Surrogate, rng: np.random.Generator) -> FloatArray | None:
    """The Sobol step: among points whose posterior is close to one half, the cheapest new one, (d,) (R5, R6)."""
    problem, n = surrogate.problem, surrogate.settings.sobol
    X = unique_rows(_sobol_points(problem, n, rng))
    distance = np.abs(surrogate.posterior.probability(problem.scale.coordinates(X)) - 0.5)
    n_close = max(int(BOUNDARY_SHARE * n), int((distance < BOUNDARY_BAND).sum()))
    X = X[np.argsort(distance, kind="stable")[:n_close]]
    return _first_admissible(problem, surrogate.history, X[np.argsort(problem.cost(X), kind="stable")])


def _sobol_points(problem: Problem, n: int, rng: np.random.Generator) -> FloatArray:
    """Scrambled Sobol points of the region, (n, d).

    With one or two features they fill the box. In more dimensions most of the box is empty, so they lie on rays from
    the factual, half of them to points of the box and half to reference rows.
    """
    from scipy.stats import qmc

    region, factual = problem.region, problem.factual
    movable = np.flatnonzero(region.movable)
    rays = len(movable) > BOX_DIMENSIONS
    sobol = qmc.Sobol(len(movable) + rays, scramble=True, rng=rng)
    u = sobol.random_base2(int(np.ceil(np.log2(n))))[:n]
    X = np.repeat(factual[None], n, axis=0)
    X[:, movable] = region.low[movable] + u[:, : len(movable)] * (region.high - region.low)[movable]
    if rays:
        X[::2] = problem.projected[rng.integers(len(problem.projected), size=len(X[::2]))]
        X = factual + u[:, -1:] * (X - factual)  # the last coordinate is the position on the ray
    return region.snap(X)


def _unasked_reference_row(surrogate: _Surrogate, round_: int) -> Query | None:
    """The cheapest reference row, moved into the region, that was not asked."""
    problem = surrogate.problem
    X = problem.projected[np.argsort(problem.cost(problem.projected), kind="stable")]
    point = _first_admissible(problem, surrogate.history, X)
    return None if point is None else Query(point, "boundary", round_)
