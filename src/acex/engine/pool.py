"""Earlier answers of a model, as points: evidence for later explanations of the same model.

A process reads and decodes each answer once and keeps only the newest, so neither time nor memory grows with a ledger
of millions of answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import NamedTuple

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, IntArray
from acex.ledger import Answer, BaseLedger
from acex.plan.target import Target
from acex.search.hints import LEAF_LEARNT, outcome_model
from acex.search.problem import Hint, Known, key
from acex.search.search import Search
from acex.space.scale import Quantiles
from acex.space.space import Space, each_that_fits
from acex.values import Label

MOST_KNOWN = 150  # largest number of answers from elsewhere that a search uses: the nearest ones
NEWEST = 5000  # number of latest answers that evidence comes from
ENOUGH = 200  # with this many answers a hint predicts hits better than the distance to the factual does
REFRESH_SHARE, MOST_NEW = 0.2, 500  # a hint is recomputed after this share of new answers, or after this many

IsHit = Callable[[Answer], tuple[bool, float | None] | None]  # None: the answer cannot be judged


@dataclass(frozen=True, eq=False)
class _Newest:
    """Answers numbered `first` + 1 to `last`, in order, without those whose row does not fit the space."""

    first: int
    last: int
    answers: tuple[Answer, ...]
    numbers: IntArray  # (n,)
    keys: tuple[bytes, ...]
    X: FloatArray  # (n, d)
    Z: FloatArray  # in quantile coordinates, (n, D)

    @cached_property
    def corrected(self) -> bool:
        """Whether any row occurs more than once."""
        return len(set(self.keys)) < len(self.keys)

    def part(self, seen: int) -> IntArray:
        """Positions of the newest answers up to number `seen`; of a corrected row, only its newest one by then."""
        start, stop = np.searchsorted(self.numbers, [seen - NEWEST, seen], side="right")
        places = range(int(start), int(stop))
        return np.array(sorted({self.keys[i]: i for i in places}.values()) if self.corrected else places, dtype=int)


class _Nearest(NamedTuple):
    """Answers from elsewhere, nearest first, as points, (k, d)."""

    X: FloatArray
    answers: tuple[Answer, ...]

    def known(self, is_hit: IsHit) -> Known | None:
        """These answers for a search, with which of them are hits; None if none can be judged."""
        judged = {i: hit for i, answer in enumerate(self.answers) if (hit := is_hit(answer)) is not None}
        if not judged:
            return None
        odds = tuple(o for _, o in judged.values() if o is not None)
        hits = np.array([hit for hit, _ in judged.values()])
        return Known(self.X[list(judged)], hits, odds if len(odds) == len(judged) else ())


class Pool:
    """The newest answers of one model as points of one space."""

    def __init__(self, ledger: BaseLedger, model_id: str, space: Space, quantiles: Quantiles) -> None:
        self.ledger, self.model_id, self.space, self.quantiles = ledger, model_id, space, quantiles
        self._newest = self._decoded(0, 0)
        self._hints: dict[tuple[int, Hashable], Hint | None] = {}
        self._lock = RLock()  # a worker may have several threads

    def nearest(self, home: FloatArray, seen: int, asked: Collection[bytes], own: Collection[int]) -> _Nearest:
        """The answers nearest to `home`, (1, D), among those up to number `seen` that are not the search's own.

        Args:
            asked: keys of the points that the search itself has asked.
            own: numbers of the answers to these, which need not be read.
        """
        newest = self._up_to(seen, own)
        part = newest.part(seen)
        distances = self.quantiles.scale.metric.from_one(newest.Z[part], home[0])
        nearest = part[np.argsort(distances, kind="stable")[: MOST_KNOWN + len(asked)]]
        others = [i for i in nearest.tolist() if newest.keys[i] not in asked][:MOST_KNOWN]
        return _Nearest(newest.X[others], tuple(newest.answers[i] for i in others))

    def hint(self, seen: int, wanted: Hashable, is_hit: IsHit) -> Hint | None:
        """A hint learned from the answers up to about number `seen` (see `hint_cutoff`); None if they are too few.

        `wanted` identifies what `is_hit` counts as a hit: searches with an equal value share the hint.
        """
        seen = hint_cutoff(seen)
        with self._lock:
            if (seen, wanted) not in self._hints:
                newest = self._up_to(seen)
                part = newest.part(seen)
                judged = [is_hit(newest.answers[i]) for i in part]
                X = newest.X[part][[i for i, hit in enumerate(judged) if hit is not None]]
                X = np.where(self.quantiles.scale.deviations > 0, X, X[:1])  # learn nothing from constant features
                hits = np.array([hit[0] for hit in judged if hit is not None], dtype=bool)
                hint = outcome_model(self.space, X, hits, LEAF_LEARNT) if len(hits) >= ENOUGH else None
                self._hints = {k: v for k, v in self._hints.items() if k[0] == seen} | {(seen, wanted): hint}
            return self._hints[seen, wanted]

    def _up_to(self, seen: int, own: Collection[int] = ()) -> _Newest:
        """The newest answers up to this number, and possibly others; the latest may be missing if all are `own`."""
        with self._lock:
            kept = self._newest
            first = max(seen - NEWEST, 0)
            if first < kept.first or first > kept.last:  # another part of the ledger
                self._newest = self._decoded(first, seen)
            elif any(number not in own for number in range(kept.last + 1, seen + 1)):
                self._newest = self._extended(kept, self._decoded(kept.last, seen))
            return self._newest

    def _decoded(self, first: int, last: int) -> _Newest:
        answers = self.ledger.answers(self.model_id, after=first, up_to=last) if last > first else []
        points = points_of(self.space, [answer.row for answer in answers])
        fitting = [(answer, x) for answer, x in zip(answers, points, strict=True) if x is not None]
        X = np.array([x for _, x in fitting]).reshape(-1, len(self.space))
        numbers = np.array([answer.sequence for answer, _ in fitting], dtype=int)
        answers_, keys = tuple(answer for answer, _ in fitting), tuple(key(x) for x in X)
        return _Newest(first, last, answers_, numbers, keys, X, self.quantiles.coordinates(X))

    def _extended(self, old: _Newest, new: _Newest) -> _Newest:
        """Both, without answers that are too old for a search that begins now."""
        first = max(old.first, new.last - 2 * NEWEST)
        cut = int(np.searchsorted(old.numbers, first, side="right"))
        return _Newest(
            first,
            new.last,
            old.answers[cut:] + new.answers,
            np.append(old.numbers[cut:], new.numbers),
            old.keys[cut:] + new.keys,
            np.vstack([old.X[cut:], new.X]),
            np.vstack([old.Z[cut:], new.Z]),
        )


class PoolEvidence:
    """The evidence of one search from the pool: a hint at its start, then the answers nearest to its factual.

    Args:
        home: the factual in quantile coordinates, (1, D).
        target: decides which answers are hits.
    """

    def __init__(self, pool: Pool, home: FloatArray, target: Target) -> None:
        self._pool, self._home, self._target = pool, home, target
        self._nearest: tuple[Answer, ...] = ()
        self._has_begun = False
        self.own: set[int] = set()  # numbers of the answers to the search's own queries

    def added_to(self, search: Search, begun: int, seen: int, is_hit: IsHit, before: Label) -> Search:
        """The search with a hint from the answers up to number `begun`, and the nearest answers up to `seen`.

        The hint is added only at the start, and only if known outcomes give none.
        """
        if not self._has_begun and search.problem.hint is None and search.strategy.uses_hints:
            hint = self._pool.hint(begun, self._target.same_hits(before), is_hit)
            if hint is not None:
                search = replace(search, problem=replace(search.problem, hint=hint, hint_from_model=True))
        self._has_begun = True
        nearest = self._pool.nearest(self._home, seen, search.history.asked, self.own)
        if nearest.answers != self._nearest:
            self._nearest = nearest.answers
            search = search.with_known(nearest.known(is_hit))
        return search


def hint_cutoff(seen: int) -> int:
    """The number of the newest answer that a hint uses: at most `seen`, and equal for many values of `seen`."""
    number = ENOUGH
    while (further := number + int(min(REFRESH_SHARE * number, MOST_NEW))) <= seen:
        number = further
    return number if seen >= ENOUGH else seen


def points_of(space: Space, canonical_rows: list[str]) -> list[FloatArray | None]:
    """The points of canonical rows; None for those that do not fit the space."""
    rows = [json.loads(text) for text in canonical_rows]
    fitting = [i for i, row in enumerate(rows) if isinstance(row, list) and len(row) == len(space)]
    known = [rows[i] for i in fitting]
    encoded = each_that_fits(lambda some: space.encode(pd.DataFrame(some, columns=space.names)), known)
    points = dict(zip(fitting, encoded, strict=True))
    return [points.get(i) for i in range(len(rows))]
