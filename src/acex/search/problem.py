"""Everything that stays the same while one factual is explained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.space.cost import CostFunction
from acex.space.plausibility import Density
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale

T = TypeVar("T")
Hint: TypeAlias = Callable[[FloatArray], FloatArray]

PCA_ROWS = 1000  # of the reference, evenly spaced, are enough for its principal components
PCA_COMPONENTS = 30
CRUMB = 0.05  # a smaller share of all steps than this does not make two counterfactuals different


def key(x: FloatArray) -> bytes:
    """What tells one snapped point, (d,), from another."""
    return (x + 0.0).tobytes()  # -0.0 and 0.0 are one value


@dataclass(frozen=True, eq=False)
class Query:
    """One point to ask, (d,), and why.

    `purpose` is a word for people and the ledger; `round`, `penalty`, `hope` and `chance` are what the strategy
    needs to know when it goes on from here.
    """

    point: FloatArray
    purpose: str
    round: int = 0
    penalty: float = 0.0  # lambda of strategy "penalty"
    hope: float = 1.0  # greatest P(hit) in sight when it was chosen
    chance: float = 0.5  # P(hit) of the point itself then


@dataclass(frozen=True)
class Stop:
    """Why there is nothing more to ask."""

    reason: Literal["settled", "exhausted", "unlikely"]


@dataclass(frozen=True, eq=False)
class Known:
    """What the same model was asked for other reasons: points, (k, d), and which of them would be hits, (k,)."""

    X: FloatArray
    is_hit: BoolArray
    odds: tuple[float, ...] = ()

    @cached_property
    def answers(self) -> dict[bytes, bool]:
        """Is it a hit? By the key of the point."""
        return dict(zip(map(key, self.X), self.is_hit.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class History:
    """What one search has asked, in order, and which of it were hits."""

    queries: tuple[Query, ...]
    hits: tuple[bool, ...]
    # Log odds of a hit, where the model gives scores, or numbers (see `Problem.width`): for every query, or none
    odds: tuple[float, ...] = ()
    known: Known | None = None  # from elsewhere
    certainty: tuple[float, ...] = ()  # P(hit) of each point, where answers may be wrong (see `votes`)
    noise: float = 0.0  # share of answers that are

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
    def useless(self) -> frozenset[bytes]:
        """The keys of points that need not be asked: those asked, and known misses."""
        known = () if self.known is None else (k for k, hit in self.known.answers.items() if not hit)
        return self.asked.union(known)

    def once(self, what: Hashable, work: Callable[[], T]) -> T:
        """What this work makes of the history: done once, and kept as long as the history lives."""
        if what not in self._made:
            self._made[what] = work()
        made: T = self._made[what]
        return made

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    def told(self, query: Query, hit: bool, odds: float | None = None) -> History:
        """The history with one more answer."""
        more = () if odds is None else (odds,)
        queries, hits = (*self.queries, query), (*self.hits, bool(hit))
        return replace(self, queries=queries, hits=hits, odds=(*self.odds, *more))

    def until(self, n: int) -> History:
        """The first n queries."""
        first = {name: getattr(self, name)[:n] for name in ("queries", "hits", "odds", "certainty")}
        return replace(self, **first)


@dataclass(frozen=True, eq=False)
class Problem:
    """Where the search may go, what a point costs, and what looks real."""

    region: Region
    cost: CostFunction
    scale: Scale
    reference: FloatArray  # (m, d)
    density: Density | None  # None: everything is plausible
    quantiles: Quantiles
    hint: Hint | None = None  # P(hit) of points by known outcomes of the reference or many answers
    learnt: bool = False  # the hint comes from many answers of the model itself
    # Where the model's answer is a number, hits are those in a range of this width (infinite: beyond a limit), and the
    # odds in a history say how far beyond its near end a number is. None: they are log odds.
    width: float | None = None
    taken: tuple[frozenset[int], ...] = ()  # what counterfactuals rest on that a new one must differ from

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
        """The factual with usual values in place of gaps: where the way to other numbers begins, (d,)."""
        return self.scale.filled(self.factual)

    @cached_property
    def filled(self) -> FloatArray:
        """The reference with usual values in place of gaps, (m, d)."""
        return self.scale.filled(self.reference)

    @cached_property
    def projected(self) -> FloatArray:
        """The different points that reference rows become in the region, (k, d)."""
        return np.unique(self.released(self.region.snap(self.reference)), axis=0)

    def in_reference(self, X: FloatArray) -> BoolArray:
        """Which points are rows of the reference as they are, (n,)."""
        return np.array([key(x) in self._reference_keys for x in X], dtype=bool)

    @cached_property
    def _reference_keys(self) -> frozenset[bytes]:
        return frozenset(map(key, self.reference))

    def once(self, work: Callable[[Problem], T]) -> T:
        """What this makes of the problem: worked out once, and kept as long as the problem lives."""
        if work not in self._made:
            self._made[work] = work(self)
        made: T = self._made[work]
        return made

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}

    @cached_property
    def principal_moves(self) -> FloatArray:
        """Steps along the reference's principal components, one standard deviation long, (k, d)."""
        use = np.flatnonzero(self.region.movable & ~self.scale.is_nominal)
        rows = self.filled[:: 1 + len(self.reference) // PCA_ROWS, use] * self.scale.per_unit[use]
        _, lengths, components = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        moves = np.zeros((min(PCA_COMPONENTS, len(lengths)), len(self.factual)))
        moves[:, use] = (components.T * lengths / np.sqrt(len(rows))).T[: len(moves)]
        return moves * self.scale.deviations

    def plausible(self, X: FloatArray) -> BoolArray:
        """Which points look like the reference, (n,). Each point is judged once and remembered."""
        if self.density is None:
            return np.ones(len(X), dtype=bool)
        keys = [key(x) for x in X]
        new = [i for i, k in enumerate(keys) if k not in self._judged]
        judged = self.density.plausible(X[new], self._least)
        self._judged.update(zip((keys[i] for i in new), judged.tolist(), strict=True))
        return np.array([self._judged[k] for k in keys], dtype=bool)

    @cached_property
    def _least(self) -> float:
        """What the score of a plausible point has to exceed."""
        return -np.inf if self.density is None else self.density.least(self.factual)

    @cached_property
    def _judged(self) -> dict[bytes, bool]:
        return {}

    def admissible(self, X: FloatArray, asked: Collection[bytes]) -> BoolArray:
        """Which points may be asked: in the region, plausible, different, and not among those asked, (n,)."""
        ok = np.array([key(x) not in asked for x in X], dtype=bool) & self.region.contains(X) & self.different(X)
        ok[ok] = self.plausible(X[ok])
        return ok

    def is_part_of(self, X: FloatArray, wholes: FloatArray) -> BoolArray:
        """Which points change nothing that one of the wholes, (w, d), does not change at least as far, (n,)."""
        out = np.zeros(len(X), dtype=bool)
        nominal = self.scale.is_nominal
        # A number that moves the other way than in the whole, or moves where the whole does not, rules a pair out. One
        # product finds these for all pairs, which are most of them.
        steps, reach = (X - self.factual)[:, ~nominal], (wholes - self.factual)[:, ~nominal]
        strays = np.hstack([steps > 0, steps < 0]).astype(np.float32)
        strays = strays @ np.hstack([reach <= 0, reach >= 0]).astype(np.float32).T
        for k in np.flatnonzero((strays == 0).any(axis=0)):
            pair, whole = np.flatnonzero((strays[:, k] == 0) & ~out), wholes[k]
            x, low, high = X[pair], np.minimum(self.factual, whole), np.maximum(self.factual, whole)
            within = (low <= x) & (high >= x)
            if nominal.any():
                within = np.where(nominal, (x == self.factual) | (x == whole), within)
            out[pair] = within.all(axis=1)
        return out

    # -- alternatives ----------------------------------------------------------------------------------------
    # Two counterfactuals are different when each rests on a feature that the other does not rest on. Otherwise one
    # asks for all that the other asks for, and more: no way out for somebody who cannot make the change.

    def rests_on(self, x: FloatArray) -> frozenset[int]:
        """The features that matter in a point, (d,): those with a share of its steps that is no crumb."""
        steps = np.abs(self.cost.steps(x[None])[0])
        return frozenset(np.flatnonzero((steps > CRUMB * steps.sum()) & (x != self.home)).tolist())

    def different(self, X: FloatArray, sets: Collection[frozenset[int]] | None = None) -> BoolArray:
        """Which points are different from every one of these sets, by default of those taken, (n,)."""
        sets = self.taken if sets is None else sets
        if not sets:
            return np.ones(len(X), dtype=bool)
        return np.array([all(_differ(self.rests_on(x), s) for s in sets) for x in X], dtype=bool)

    def released(self, X: FloatArray) -> FloatArray:
        """The points with one feature of every set taken left alone, each point another one in turn, (n, d).

        Where only so many features may change, as many of the others are left alone too, whichever these are.
        """
        X = X.copy()
        for taken in self.taken:
            features = np.array(sorted(taken), dtype=int)
            covers = np.flatnonzero((X[:, features] != self.home[features]).all(axis=1))
            left_alone = features[np.arange(len(covers)) % len(features)] if len(features) else features
            X[covers[: len(left_alone)], left_alone] = self.home[left_alone]
        most = self.region.max_changes
        if most is not None:
            # What may not stay as it is comes first, then what changes, in any order, then the rest.
            order = np.random.default_rng(0).random(X.shape) + (self.home == X) - 2.0 * (self.home != self.factual)
            X = np.where(order.argsort(axis=1).argsort(axis=1) < most, X, self.home)
        return X

    def alternatives(self, X: FloatArray, count: int) -> list[int]:
        """Positions of up to `count` points, the first that are different from all before them."""
        chosen: list[int] = []
        sets: list[frozenset[int]] = []
        for i, x in enumerate(X):
            features = self.rests_on(x)
            if all(_differ(features, s) for s in sets):
                chosen.append(i)
                sets.append(features)
            if len(chosen) == count:
                break
        return chosen

    def apart_from(self, sets: tuple[frozenset[int], ...]) -> Problem:
        """The problem of finding something different from these sets; the same object each time."""
        if sets not in self._apart:
            problem = replace(self, taken=sets)
            problem.__dict__["_judged"] = self._judged  # plausibility is the same there
            self._apart[sets] = problem
        return self._apart[sets]

    @cached_property
    def _apart(self) -> dict[tuple[frozenset[int], ...], Problem]:
        return {self.taken: self}


def _differ(a: frozenset[int], b: frozenset[int]) -> bool:
    return not (a <= b or b <= a)
