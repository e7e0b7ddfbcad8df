"""The problem that a search solves (`Problem`), and what it has asked so far (`History`).

d   features     m   reference rows     n   points
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray, sampled, unique_rows
from acex.space.cost import CostFunction
from acex.space.plausibility import Density
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale

T = TypeVar("T")
Hint: TypeAlias = Callable[[FloatArray], FloatArray]

MAX_REFERENCE = 10_000  # largest number of reference rows that candidates are made from; of more, a random sample
PCA_ROWS = 1000  # number of evenly spaced reference rows that the principal components are computed from
PCA_COMPONENTS = 30
MIN_STEP_SHARE = 0.05  # a feature with a smaller share of all steps does not make two counterfactuals different


def key(x: FloatArray) -> bytes:
    """A hashable key of a snapped point, (d,)."""
    return (x + 0.0).tobytes()  # -0.0 and 0.0 are one value


def keys(X: FloatArray) -> list[bytes]:
    """The keys of points, (n, d)."""
    raw, width = key(X), X.shape[1] * X.itemsize
    return [raw[start : start + width] for start in range(0, len(raw), width)]


@dataclass(frozen=True, eq=False)
class Query:
    """One point to ask, (d,), and why.

    `purpose` is a word for reports and the ledger; the strategy needs `round`, `penalty`, `max_p_hit` and `p_hit` to
    continue from here.
    """

    point: FloatArray
    purpose: str
    round: int = 0
    penalty: float = 0.0  # lambda of strategy "penalty"
    max_p_hit: float = 1.0  # largest P(hit) of all candidates when the point was chosen
    p_hit: float = 0.5  # P(hit) of the point itself when it was chosen


@dataclass(frozen=True)
class Stop:
    """Why a search stops."""

    reason: Literal["settled", "exhausted", "unlikely", "budget"]


@dataclass(frozen=True, eq=False)
class Known:
    """Answers of the same model in other searches: points, (k, d), and which of them would be hits, (k,)."""

    X: FloatArray
    is_hit: BoolArray
    odds: tuple[float, ...] = ()

    @cached_property
    def answers(self) -> dict[bytes, bool]:
        """Whether each point is a hit, by key."""
        return dict(zip(map(key, self.X), self.is_hit.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class History:
    """The queries of one search, in order, and which of them were hits."""

    queries: tuple[Query, ...]
    hits: tuple[bool, ...]
    # Log odds of a hit if the model gives scores or numbers (see `Problem.width`): one per query, or empty
    odds: tuple[float, ...] = ()
    known: Known | None = None  # answers of other searches
    certainty: tuple[float, ...] = ()  # P(hit) of each point if answers may be wrong (see `votes`)
    noise: float = 0.0  # share of answers that are wrong
    _cache: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def X(self) -> FloatArray:
        """The points asked, (n, d)."""
        return np.array([q.point for q in self.queries])

    @cached_property
    def is_hit(self) -> BoolArray:
        """Which of them were hits, (n,)."""
        return np.array(self.hits, dtype=bool)

    @cached_property
    def asked(self) -> frozenset[bytes]:
        """The keys of the points asked."""
        return frozenset(key(q.point) for q in self.queries)

    @cached_property
    def redundant(self) -> frozenset[bytes]:
        """The keys of points that need not be asked: those already asked, and known misses."""
        known = () if self.known is None else (k for k, hit in self.known.answers.items() if not hit)
        return self.asked.union(known)

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """The result of `compute`, computed once per key and kept with the history."""
        if key not in self._cache:
            self._cache[key] = compute()
        result: T = self._cache[key]
        return result

    def with_answer(self, query: Query, hit: bool, odds: float | None = None) -> History:
        """The history with one more answer."""
        more = () if odds is None else (odds,)
        queries, hits = (*self.queries, query), (*self.hits, bool(hit))
        return replace(self, queries=queries, hits=hits, odds=(*self.odds, *more))

    def only(self, positions: IntArray) -> History:
        """The queries at these positions."""
        chosen: dict[str, Any] = {}
        for name in ("queries", "hits", "odds", "certainty"):
            values = getattr(self, name)  # odds and certainty may be empty
            chosen[name] = tuple(values[i] for i in positions if i < len(values))
        return replace(self, **chosen)


@dataclass(frozen=True, eq=False)
class Problem:
    """Where a search may go, what a point costs, and what is plausible."""

    region: Region
    cost: CostFunction
    scale: Scale
    reference: FloatArray  # (m, d)
    density: Density | None  # None: everything is plausible
    quantiles: Quantiles
    hint: Hint | None = None  # P(hit) of points, learned from known outcomes of the reference or many answers
    hint_from_model: bool = False  # the hint was learned from many answers of the model itself
    # For a model whose answer is a number, hits lie in a range of this width (infinite: above or below a limit), and
    # the odds of a history are distances beyond the near end of the range. None: they are log odds.
    width: float | None = None
    taken_sets: tuple[frozenset[int], ...] = ()  # main features of earlier counterfactuals; a new one must differ
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    _judged: dict[bytes, bool] = field(default_factory=dict, init=False, repr=False)  # plausibility, by key

    @property
    def factual(self) -> FloatArray:
        """The point to explain, (d,)."""
        return self.region.factual

    @cached_property
    def home(self) -> FloatArray:
        """The factual, or the point of the region nearest to it, (d,)."""
        home: FloatArray = self.region.snap(self.factual[None])[0]
        return home

    @cached_property
    def origin(self) -> FloatArray:
        """The factual with typical values in place of gaps, (d,): the start of moves to other numbers."""
        return self.scale.filled(self.factual)

    @cached_property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest value of each feature in the reference, ignoring gaps, (d,) each."""
        middle = self.scale.middle
        known = [values if len(values) else middle[[j]] for j, (values, _) in enumerate(self.quantiles.knots)]
        return np.array([values[0] for values in known]), np.array([values[-1] for values in known])

    @cached_property
    def sample(self) -> FloatArray:
        """The reference, or a sample of its rows if there are more than `MAX_REFERENCE`, (s, d)."""
        return sampled(self.reference, MAX_REFERENCE)

    @cached_property
    def projected(self) -> FloatArray:
        """The rows of the sample moved into the region, without duplicates, (k, d)."""
        return unique_rows(self.made_different(self.region.snap(self.sample)))

    def in_reference(self, X: FloatArray) -> BoolArray:
        """Which points are unchanged rows of the reference, (n,)."""
        found = []
        for x in X:
            rows = np.arange(len(self.reference))
            for j, value in enumerate(x):  # column by column, because few rows remain after the first ones
                rows = rows[self.reference[rows, j] == value]
            found.append(len(rows) > 0)
        return np.array(found, dtype=bool)

    def cached(self, compute: Callable[[Problem], T]) -> T:
        """The result of `compute(self)`, computed once and kept with the problem."""
        if compute not in self._cache:
            self._cache[compute] = compute(self)
        result: T = self._cache[compute]
        return result

    @cached_property
    def principal_moves(self) -> FloatArray:
        """Steps along the reference's principal components, one standard deviation long, (k, d)."""
        use = np.flatnonzero(self.region.movable & ~self.scale.is_nominal)
        rows = self.scale.filled(self.reference[:: 1 + len(self.reference) // PCA_ROWS])[:, use]
        rows = rows * self.scale.per_unit[use]
        _, lengths, components = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        moves = np.zeros((min(PCA_COMPONENTS, len(lengths)), len(self.factual)))
        moves[:, use] = (components.T * lengths / np.sqrt(len(rows))).T[: len(moves)]
        return moves * self.scale.deviations

    def plausible(self, X: FloatArray) -> BoolArray:
        """Which points are plausible, (n,). Each point is evaluated once."""
        if self.density is None:
            return np.ones(len(X), dtype=bool)
        of_points = keys(X)
        new = [i for i, k in enumerate(of_points) if k not in self._judged]
        judged = self.density.plausible(X[new], self.least_score)
        self._judged.update(zip((of_points[i] for i in new), judged.tolist(), strict=True))
        return np.array([self._judged[k] for k in of_points], dtype=bool)

    @cached_property
    def least_score(self) -> float:
        """The score that a plausible point must exceed."""
        return -np.inf if self.density is None else self.density.least(self.factual)

    def admissible(self, X: FloatArray, asked: Collection[bytes]) -> BoolArray:
        """Which points may be asked: in the region, plausible, different, and not among those asked, (n,)."""
        ok = np.array([k not in asked for k in keys(X)], dtype=bool) & self.region.contains(X) & self.is_different(X)
        ok[ok] = self.plausible(X[ok])
        return ok

    # -- alternatives ----------------------------------------------------------------------------------------
    # Two counterfactuals are different if each has a main feature that the other does not have. Otherwise one requires
    # all that the other requires, and is no alternative for a person who cannot make those changes.

    def main_features(self, x: FloatArray) -> frozenset[int]:
        """The features of a point, (d,), with a share of its steps above `MIN_STEP_SHARE`."""
        steps = np.abs(self.cost.steps(x[None])[0])
        return frozenset(np.flatnonzero((steps > MIN_STEP_SHARE * steps.sum()) & (x != self.home)).tolist())

    def is_different(self, X: FloatArray, sets: Collection[frozenset[int]] | None = None) -> BoolArray:
        """Which points are different from each of these sets of main features, by default the taken ones, (n,)."""
        sets = self.taken_sets if sets is None else sets
        if not sets:
            return np.ones(len(X), dtype=bool)
        return np.array([all(_differ(self.main_features(x), s) for s in sets) for x in X], dtype=bool)

    def made_different(self, X: FloatArray) -> FloatArray:
        """The points with one feature of each taken set reset, a different one for each point in turn, (n, d).

        With `max_changes`, random further features are reset until the limit holds.
        """
        X = X.copy()
        for taken in self.taken_sets:
            features = np.array(sorted(taken), dtype=int)
            covers = np.flatnonzero((X[:, features] != self.home[features]).all(axis=1))
            reset = features[np.arange(len(covers)) % len(features)] if len(features) else features
            X[covers[: len(reset)], reset] = self.home[reset]
        most = self.region.max_changes
        if most is not None:
            # Features that must change come first, then those that change, in random order, then the rest.
            order = np.random.default_rng(0).random(X.shape) + (self.home == X) - 2.0 * (self.home != self.factual)
            X = np.where(order.argsort(axis=1).argsort(axis=1) < most, X, self.home)
        return X

    def alternatives(self, X: FloatArray, count: int) -> list[int]:
        """Positions of up to `count` points: the first ones that are different from all chosen before them."""
        chosen: list[int] = []
        sets: list[frozenset[int]] = []
        for i, x in enumerate(X):
            features = self.main_features(x)
            if all(_differ(features, s) for s in sets):
                chosen.append(i)
                sets.append(features)
            if len(chosen) == count:
                break
        return chosen

    def excluding(self, sets: tuple[frozenset[int], ...]) -> Problem:
        """The problem of finding something different from these sets; the same object on every call."""
        if sets not in self._apart:
            problem = replace(self, taken_sets=sets)
            problem.__dict__["_judged"] = self._judged  # plausibility does not depend on the sets
            self._apart[sets] = problem
        return self._apart[sets]

    @cached_property
    def _apart(self) -> dict[tuple[frozenset[int], ...], Problem]:
        return {self.taken_sets: self}


def _differ(a: frozenset[int], b: frozenset[int]) -> bool:
    return not (a <= b or b <= a)
