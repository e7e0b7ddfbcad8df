"""What known outcomes of the reference say about a point: a hint, never an answer of the model."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search.problem import Hint, Problem
from acex.space.feature import MISSING_CODE
from acex.space.space import Space
from acex.values import is_missing

N_TREES, LEAF = 50, 2
LEAF_LEARNT = 5  # answers of a search lie close together: smaller leaves would learn where it went
DRAWN, PARTS = 10, 5  # rows' worth that a category's share of hits is drawn to that of all; parts of the reference
MOST_SINGLE = 1e30  # greatest number that trees are given, as float32: they add them up
MOST_ROWS = 20_000  # a forest of more rows than these is slow to ask and no better a hint


def as_outcomes(labels: Any, n: int) -> list[Hashable]:
    """One plain outcome for each of n reference rows."""
    outcomes: list[Hashable] = np.asarray(labels).tolist()
    if np.ndim(labels) != 1 or len(outcomes) != n:
        raise ValueError(f"labels must be one outcome for each of the {n} rows of data, got shape {np.shape(labels)}.")
    missing = [i for i, outcome in enumerate(outcomes) if is_missing(outcome)]
    if missing:
        raise ValueError(
            f"labels: {len(missing)} of {n} outcomes are missing (first in row {missing[0]}). Leave out those rows of "
            f"data, or all labels."
        )
    return outcomes


def outcome_model(space: Space, reference: FloatArray, is_hit: BoolArray, leaf: int = LEAF) -> Hint | None:
    """P(hit) of points by a small forest of the outcomes, (n, d) -> (n,); None if only one side is known."""
    from sklearn.ensemble import RandomForestClassifier

    if is_hit.all() or not is_hit.any():
        return None
    if len(reference) > MOST_ROWS:
        chosen = np.random.default_rng(0).choice(len(reference), MOST_ROWS, replace=False)
        reference, is_hit = reference[chosen], is_hit[chosen]
    columns = _Columns(space, reference, is_hit)
    learnt = columns(reference)
    if columns.shares:  # a row must not know its own outcome: what it is shown comes from other parts of the reference
        part = np.arange(len(reference)) % PARTS
        for mine in (part == p for p in range(PARTS)):
            learnt[mine] = _Columns(space, reference[~mine], is_hit[~mine])(reference[mine])
    forest = RandomForestClassifier(N_TREES, min_samples_leaf=leaf, random_state=0, n_jobs=1)
    forest.fit(learnt, is_hit)

    def hint(X: FloatArray) -> FloatArray:
        # What predict_proba gives, without its checks, which take longer than the trees.
        codes = np.ascontiguousarray(columns(X), dtype=np.float32)
        total: FloatArray = sum(tree.tree_.predict(codes)[:, 1] for tree in forest.estimators_)
        return total / N_TREES

    return hint


def excluded_hits(problem: Problem, hint: Hint | None) -> tuple[str, ...]:
    """A word on rows that known outcomes call hits and plausibility excludes; empty where there are none."""
    if hint is None or problem.density is None:
        return ()
    hits = problem.projected[hint(problem.projected) > 0.5]
    n = int((~problem.plausible(hits)).sum()) if len(hits) else 0
    if n == 0:
        return ()
    return (
        f"{n} of {len(hits)} rows that known outcomes call hits are unusual, and plausibility excludes them. A lower "
        f"threshold lets them count: plausibility=Plausibility(threshold=...), or plausibility=None.",
    )


class _Columns:
    """Points as trees can take them, which would take nominal codes for an order.

    Each category has a column of its own. A feature with very many of them has one column: the share of hits among the
    rows of a category, drawn towards that of all rows. Huge numbers, of which a float32 knows nothing, are taken in
    units that it knows.
    """

    def __init__(self, space: Space, reference: FloatArray, is_hit: BoolArray) -> None:
        self.few = [j for j, f in enumerate(space.features) if not f.ordered and not f.has_many]
        self.n_codes = space.n_codes
        greatest = np.maximum(np.abs(space.low), np.abs(space.high))
        self.units = np.where(greatest > MOST_SINGLE, greatest, 1.0)
        self.shares: dict[int, FloatArray] = {}
        for j in (j for j, f in enumerate(space.features) if f.has_many):
            codes = reference[:, j].astype(int)
            rows, hits = (np.bincount(codes, weights, self.n_codes[j]) for weights in (None, is_hit))
            self.shares[j] = (hits + DRAWN * is_hit.mean()) / (rows + DRAWN)

    def __call__(self, X: FloatArray) -> FloatArray:
        blocks = [X[:, j, None] == np.arange(self.n_codes[j]) for j in self.few]
        X = np.where(X == MISSING_CODE, -MOST_SINGLE, X / self.units)
        for j, shares in self.shares.items():
            X[:, j] = shares[X[:, j].astype(int)]
        return np.hstack([np.delete(X, self.few, axis=1), *blocks])
