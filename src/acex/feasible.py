"""Strategy "feasible": the cost of a point is known before it is asked; only whether it is a hit is not.

1. *Until there is a hit*, reference rows moved into the region are asked, those of greatest
   P(hit) * (1 - rank of cost) first.
2. *The first hit is polished* by rule (see `polish`), and later the best one, when little else succeeds.
3. *Then* the next query is the likeliest hit among candidates that save one to three times a share `step` of the best
   cost. Each new best hit is also tried without its smallest change.
   A success makes the step longer, a miss shorter, as in an evolution strategy: where the surrogate hopes too
   much, the search comes back to what it knows. It has settled when the step is below `tolerance`.

P(hit) is a Gaussian-process classifier's, in quantile coordinates, with a prior mean that knows where the factual
is: near it a point is a miss. Known outcomes of the reference (`Problem.hint`) give another prior mean; the
evidence decides between the two by marginal likelihood. Misses close by, relative to the distance to the factual,
count against a point once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logit

from acex import polish
from acex.arrays import FloatArray
from acex.climb import best_position
from acex.families import everything, from_hits, from_reference
from acex.problem import Hint, History, Problem, Query, Stop, key
from acex.surrogate import Hyperprior, fit
from acex.values import is_finite

PRIOR_FAR, PRIOR_DEPTH = -0.7, 4.0  # latent prior mean a typical distance away, and how much lower at the factual
HYPERPRIOR = Hyperprior(variance=(9.0, 0.3))  # labels have no noise, but much larger variances are too sure
PART_OF_MISS = 0.1  # P(hit) of a point that changes less, in every feature, than a known miss
REPULSION = 0.5  # reach of a miss, as a share of the distance to the factual
STEP, LONGER, SHORTER, LONGEST = 0.25, 1.6, 0.85, 0.5  # share of the best cost to save next, and how it changes
SPAN = 3.0  # no more than so many steps at once: far below the best cost lies nothing but hope
STUCK = 0.05  # a step below this has seen many misses: time to polish the best hit too
HINT_CLIP = 0.03  # outcomes never make a point more certain than this
HINT_ODDS = 1.0  # log odds for the known outcomes before any evidence
IMAGINED_ROUNDS = 5
N_CANDIDATES = 1500  # of each family
MOST_ROWS = 4000  # of the reference are looked at for a first hit
UNLIKELY, PATIENCE = 0.02, 10  # give up when P(hit) stays below this for so many asks


@dataclass(frozen=True)
class Feasible:
    """The settings of strategy "feasible".

    Args:
        tolerance: the search ends when the share of the best cost that it tries to save next has shrunk below this.
            0 goes on until the budget is spent.
    """

    tolerance: float = 0.01

    def __post_init__(self) -> None:
        if not (is_finite(self.tolerance) and 0 <= self.tolerance < 1):
            raise ValueError(f"tolerance must be a share from 0 to below 1, such as 0.01, got {self.tolerance!r}.")


def next_query(problem: Problem, settings: Feasible, history: History, seed: int) -> Query | Stop:
    """What to ask next: a pure function of its arguments."""
    rng = np.random.default_rng([seed, len(history.queries)])
    good = history.is_hit & problem.plausible(history.X)
    if not good.any():
        return _towards_a_first_hit(problem, history, rng)
    answers = dict(zip((key(q.point) for q in history.queries), history.hits, strict=True))
    hits = history.X[good]
    best = hits[problem.cost(hits).argmin()]
    for hit in (hits[0], best) if _step(history) < STUCK else (hits[0],):
        point = polish.next_step(problem, hit, answers, history.X[~history.is_hit])
        if point is not None:
            return Query(point, "polish")
    point = polish.without_smallest(problem, best, answers)
    if point is not None:
        return Query(point, "polish")
    return _cheaper_hit(problem, settings, history, hits, rng)


def _towards_a_first_hit(problem: Problem, history: History, rng: np.random.Generator) -> Query | Stop:
    recent = [q.hope for q in history.queries[-PATIENCE:]]
    if len(recent) == PATIENCE and max(recent) < UNLIKELY:
        return Stop("unlikely")
    belief = _Belief(problem, history)
    X = _first_candidates(problem)
    costs = problem.cost(X)
    probability = belief.probability(X)
    rank = np.searchsorted(np.sort(costs), costs) / len(costs)
    score = probability * (1 - rank)
    score[costs == 0] = 0.0
    chosen = best_position(X, score, lambda A: problem.admissible(A, history.asked))
    if chosen is None:
        X = np.vstack([from_reference(problem, rng, N_CANDIDATES), X])
        chosen = best_position(X, belief.probability(X), lambda A: problem.admissible(A, history.asked))
    return Stop("exhausted") if chosen is None else Query(X[chosen], "first", hope=float(probability.max()))


def _cheaper_hit(
    problem: Problem, settings: Feasible, history: History, hits: FloatArray, rng: np.random.Generator
) -> Query | Stop:
    step = _step(history)
    if step < settings.tolerance:
        return Stop("settled")
    hits = hits[np.argsort(problem.cost(hits), kind="stable")][:5]
    best = float(problem.cost(hits[:1])[0])
    families = _families(problem, hits, rng)
    X = np.vstack(list(families.values()))
    purposes = np.repeat(list(families), [len(f) for f in families.values()])
    trust = np.repeat([_success(history, purpose) for purpose in families], [len(f) for f in families.values()])
    costs = problem.cost(X)
    belief = _Belief(problem, history)
    # Where nothing lies within these bounds, anything cheaper will do.
    for least, most in ((step, SPAN * step), (1e-3, 1.0)):
        saves = np.flatnonzero((costs <= (1 - least) * best) & (costs >= (1 - most) * best) & (costs > 0))
        if len(saves) == 0:
            continue
        score = trust[saves] * belief.probability(X[saves])
        chosen = best_position(X[saves], score, lambda A: problem.admissible(A, history.asked))
        if chosen is not None:
            return Query(X[saves[chosen]], str(purposes[saves[chosen]]), hope=float(score[chosen]))
    return Stop("settled")


def _families(problem: Problem, hits: FloatArray, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Candidates, (n, d), by the purpose of asking them."""
    X = everything(problem)
    if X is not None:
        return {"refine": X}
    parents = np.vstack([hits, _imagined_hits(problem)[:2]])
    return {
        "explore": from_reference(problem, rng, N_CANDIDATES),
        "refine": from_hits(problem, rng, parents, 2 * N_CANDIDATES),
    }


def _success(history: History, purpose: str) -> float:
    """How often asks of this purpose were hits so far, beginning with one in two."""
    answers = [hit for query, hit in zip(history.queries, history.hits, strict=True) if query.purpose == purpose]
    return (sum(answers) + 1) / (len(answers) + 2)


def _step(history: History) -> float:
    """The share of the best cost to save next, from how the asks for cheaper hits have gone so far."""
    step = STEP
    for query, hit in zip(history.queries, history.hits, strict=True):
        if query.purpose in ("explore", "refine"):
            step = min(step * LONGER, LONGEST) if hit else step * SHORTER
    return step


class _Belief:
    """P(hit), given the evidence."""

    def __init__(self, problem: Problem, history: History) -> None:
        self.problem, self.ground = problem, _Ground.of(problem)
        Z = problem.quantiles.coordinates(history.X)
        self.misses, self.missed = history.X[~history.is_hit], Z[~history.is_hit]
        t = history.is_hit.astype(float)
        size = {"typical": np.sqrt(len(problem.factual)), "hyperprior": HYPERPRIOR}
        self.hinted = False
        self.posterior = fit(Z, t, prior_mean=self.ground.prior(Z), **size)
        if problem.hint is not None:
            hinted = fit(Z, t, prior_mean=_hinted_prior(problem.hint, history.X), **size)
            self.hinted = hinted.log_marginal_likelihood + HINT_ODDS > self.posterior.log_marginal_likelihood
            self.posterior = hinted if self.hinted else self.posterior

    def probability(self, X: FloatArray) -> FloatArray:
        """P(hit) of points, (n,)."""
        Z = self.problem.quantiles.coordinates(X)
        hint = self.problem.hint
        prior = _hinted_prior(hint, X) if self.hinted and hint is not None else self.ground.prior(Z)
        reach = REPULSION * self.ground.distance(Z) + 1e-9
        nearest_miss = cdist(Z, self.missed).min(axis=1)
        apart: FloatArray = -np.expm1(-((nearest_miss / reach) ** 2))
        part = self.problem.is_part_of(X, self.misses)
        return self.posterior.probability(Z, prior) * apart * np.where(part, PART_OF_MISS, 1.0)


def _hinted_prior(hint: Hint, X: FloatArray) -> FloatArray:
    """The latent prior mean that known outcomes suggest, (n,)."""
    prior: FloatArray = logit(np.clip(hint(X), HINT_CLIP, 1 - HINT_CLIP))
    return prior


@dataclass(frozen=True, eq=False)
class _Ground:
    """What a problem looks like before anything is asked; worked out once."""

    factual: FloatArray  # in quantile coordinates, (D,)
    typical_distance: float  # of the reference from it

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, problem: Problem) -> _Ground:
        factual = problem.quantiles.coordinates(problem.factual[None])[0]
        distances = np.linalg.norm(problem.quantiles.coordinates(problem.reference) - factual, axis=1)
        return cls(factual, max(float(np.median(distances)), 1e-9))

    def distance(self, Z: FloatArray) -> FloatArray:
        """Distance to the factual, (n,)."""
        return np.asarray(np.linalg.norm(Z - self.factual, axis=1))

    def prior(self, Z: FloatArray) -> FloatArray:
        """The latent prior mean by distance alone, (n,): near the factual a point is a miss."""
        nearness = 1 - np.minimum(self.distance(Z) / self.typical_distance, 1.0)
        return PRIOR_FAR - PRIOR_DEPTH * nearness


@lru_cache(maxsize=16)
def _first_candidates(problem: Problem) -> FloatArray:
    """Where a first hit is looked for, (n, d): everywhere in a small region, else among reference rows and the
    hits that known outcomes suggest."""
    X = everything(problem)
    return np.vstack([_sample(problem.projected), _imagined_hits(problem)]) if X is None else X


def _sample(rows: FloatArray) -> FloatArray:
    """At most `MOST_ROWS` of the rows, the same each time."""
    if len(rows) <= MOST_ROWS:
        return rows
    return rows[np.random.default_rng(0).choice(len(rows), MOST_ROWS, replace=False)]


@lru_cache(maxsize=16)
def _imagined_hits(problem: Problem) -> FloatArray:
    """The cheapest plausible points that would be hits by the known outcomes, (n, d)."""
    hits = np.empty((0, len(problem.factual)))
    if problem.hint is None:
        return hits
    rng = np.random.default_rng(0)
    candidates = np.vstack([_sample(problem.projected), from_reference(problem, rng, N_CANDIDATES)])
    for _ in range(IMAGINED_ROUNDS):
        candidates = candidates[(problem.hint(candidates) > 0.5) & (problem.cost(candidates) > 0)]
        hits = np.unique(np.vstack([hits, candidates]), axis=0)
        hits = hits[np.argsort(problem.cost(hits), kind="stable")][:200]
        hits = hits[problem.region.contains(hits)]
        hits = hits[problem.plausible(hits)][:20]
        if len(hits) == 0:
            break
        candidates = from_hits(problem, rng, hits, 2 * N_CANDIDATES)
    return hits
