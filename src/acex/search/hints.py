"""P(hit) of points from known outcomes of the reference, or from many answers of the model: a hint, never an answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search.problem import Hint, Problem
from acex.space.feature import MISSING_CODE
from acex.space.space import Space
from acex.values import is_missing

N_TREES, LEAF = 50, 2
LEAF_LEARNT = 5  # answers of a search are close together: smaller leaves would fit where it searched
SHRINKAGE = 10  # weight, in rows, of the overall share of hits in the share of a category
N_FOLDS = 5
MAX_SINGLE = 1e30  # largest input of trees, which sum float32 values
MAX_ROWS = 20_000  # a forest of more rows is slower and no better


def as_outcomes(given: Any, n: int) -> list[Hashable]:
    """One outcome for each of n reference rows, as plain values.

    Raises:
        ValueError: their number is wrong, or some are missing.
    """
    if isinstance(given, str):
        raise ValueError(f"outcomes: pass the column itself, such as table[{given!r}], not its name.")
    outcomes: list[Hashable] = np.asarray(given).tolist()
    if np.ndim(given) != 1 or len(outcomes) != n:
        raise ValueError(
            f"outcomes: expected one outcome for each of the {n} rows of data, got shape {np.shape(given)}."
        )
    missing = [i for i, outcome in enumerate(outcomes) if is_missing(outcome)]
    if missing:
        raise ValueError(
            f"outcomes: {len(missing)} of {n} are missing (first in row {missing[0]}). Remove those rows from "
            f"data, or omit outcomes."
        )
    return outcomes


def outcome_model(space: Space, reference: FloatArray, is_hit: BoolArray, leaf: int = LEAF) -> Hint | None:
    """P(hit) of points by a small forest fitted to the outcomes, (n, d) -> (n,); None if all outcomes are equal."""
    from sklearn.ensemble import RandomForestClassifier

    if is_hit.all() or not is_hit.any():
        return None
    if len(reference) > MAX_ROWS:
        chosen = np.random.default_rng(0).choice(len(reference), MAX_ROWS, replace=False)
        reference, is_hit = reference[chosen], is_hit[chosen]
    columns = _Columns(space, reference, is_hit)
    inputs = columns(reference)
    if columns.shares:  # shares of hits come from other folds, so that they do not contain the row's own outcome
        fold = np.arange(len(reference)) % N_FOLDS
        for held_out in (fold == k for k in range(N_FOLDS)):
            inputs[held_out] = _Columns(space, reference[~held_out], is_hit[~held_out])(reference[held_out])
    forest = RandomForestClassifier(N_TREES, min_samples_leaf=leaf, random_state=0, n_jobs=1)
    forest.fit(inputs, is_hit)

    def hint(X: FloatArray) -> FloatArray:
        # The same as predict_proba without its input checks, which take longer than the trees.
        codes = np.ascontiguousarray(columns(X), dtype=np.float32)
        total: FloatArray = sum(tree.tree_.predict(codes)[:, 1] for tree in forest.estimators_)
        return total / N_TREES

    return hint


def obstacles(problem: Problem, relaxed: Mapping[str, Problem], hint: Hint | None) -> dict[str, int]:
    """Which options exclude candidates: how many may be asked "as given", and without each option, by its name.

    Candidates are rows of the reference moved into the region; with a hint, those that it predicts to be hits. Only
    options without which more than twice as many may be asked are included. Nothing is asked.

    Args:
        relaxed: the problem without an option, by the name of the option.
    """
    n = {name: _n_admissible(p, hint) for name, p in {"as given": problem, **relaxed}.items()}
    found = {name: count for name, count in n.items() if count > 2 * n["as given"]}
    return {"as given": n["as given"], **found} if found else {}


def _n_admissible(problem: Problem, hint: Hint | None) -> int:
    X = problem.projected[problem.cost(problem.projected) > 0]
    if hint is not None and len(X):
        X = X[hint(X) > 0.5]
    return int(problem.admissible(X, ()).sum())


class _Columns:
    """Points as inputs of trees, which would treat nominal codes as ordered.

    Each category has a column of its own. A feature with very many categories has one column: the share of hits among
    the rows of a category, shrunk towards the share of all rows. Numbers too large for float32 are rescaled.
    """

    def __init__(self, space: Space, reference: FloatArray, is_hit: BoolArray) -> None:
        self.few = [j for j, f in enumerate(space.features) if not f.ordered and not f.has_many]
        self.n_codes = space.n_codes
        greatest = np.maximum(np.abs(space.low), np.abs(space.high))
        self.units = np.where(greatest > MAX_SINGLE, greatest, 1.0)
        self.shares: dict[int, FloatArray] = {}
        for j in (j for j, f in enumerate(space.features) if f.has_many):
            codes = reference[:, j].astype(int)
            rows, hits = (np.bincount(codes, weights, self.n_codes[j]) for weights in (None, is_hit))
            self.shares[j] = (hits + SHRINKAGE * is_hit.mean()) / (rows + SHRINKAGE)

    def __call__(self, X: FloatArray) -> FloatArray:
        blocks = [X[:, j, None] == np.arange(self.n_codes[j]) for j in self.few]
        X = np.where(X == MISSING_CODE, -MAX_SINGLE, X / self.units)
        for j, shares in self.shares.items():
            X[:, j] = shares[X[:, j].astype(int)]
        return np.hstack([np.delete(X, self.few, axis=1), *blocks])
