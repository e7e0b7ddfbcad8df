"""Simulated tasks: random tables with random black boxes, used to tune the search and to train its belief.

A task is a table of one of many kinds (dependent or not, heavy tails, whole numbers, codes, categories, clusters,
duplicates), an outcome that depends on it, a classifier trained on both, and a few withheld rows to explain, with
features frozen, directed or limited to tight ranges. Nothing here uses the paper's data sets, which are a test.

    from benchmarks.belief.simulated import task
    for case in task(seed=7): ...       # the same seed gives the same task

Seeds below 1,000,000 are for training, the next million for validation (to choose constants), and the one after that
for tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from acex.arrays import BoolArray, FloatArray
from acex.search.hints import LEAF_LEARNT, outcome_model
from acex.search.problem import Hint, Known, Problem
from acex.space.cost import CostFunction
from acex.space.feature import Feature
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.plausibility import Plausibility
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space
from benchmarks import problems

VALIDATION, TEST = 1_000_000, 2_000_000  # first seeds
WITHHELD = 24  # rows that are neither in the training data nor in the reference
POOL_ROWS = 40  # maximum number of rows whose simulated explanations make up the pool of earlier answers

Score = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Kind:
    """Special properties of a task.

    Args:
        columns: least and largest number of columns; None for 2 to 60, small numbers more often.
        noisy: the model is a forest that has memorised outcomes of which 2 to 20% are random.
        sparse: on average one to six columns matter, regardless of their number.
        rare: the rarer class has 0.5 to 8% of the rows.
        apart: the model was trained on other rows than the reference.
    """

    columns: tuple[int, int] | None = None
    noisy: bool = False
    sparse: bool = False
    rare: bool = False
    apart: bool = False


USUAL = Kind()


@dataclass(frozen=True, eq=False)
class Case:
    """One row to explain."""

    problem: Problem
    odds: Score  # the model's log odds of a hit, (n, d) -> (n,); points with positive log odds are hits
    outcomes: BoolArray  # which reference rows have an outcome other than the factual's label, (m,)
    withheld: FloatArray  # other rows of the table, (k, d)
    gives_scores: bool  # whether the log odds have more information than a label

    def is_hit(self, X: FloatArray) -> BoolArray:
        """Which points are hits, (n,)."""
        return np.asarray(self.odds(X) > 0) if len(X) else np.zeros(0, dtype=bool)

    def with_outcomes(self, outcomes: BoolArray) -> Problem:
        """The problem with these outcomes of the reference known, (m,)."""
        space = self.problem.region.space
        return replace(self.problem, hint=outcome_model(space, self.problem.reference, outcomes))


def task(seed: int, n_rows: int = 3, kind: Kind = USUAL) -> list[Case]:
    """The cases of one task: up to `n_rows` rows with the same table and model."""
    rng = np.random.default_rng([77, seed])
    while True:
        made = _table_and_model(rng, kind)
        if made is not None:
            break
    X, y, features, odds, gives_scores = made
    n_withheld = _n_withheld(X)
    known = slice(_first_known(X, kind), None)
    withheld, reference, outcomes = X[:n_withheld], X[known], y[known]
    if rng.random() < 0.06:  # a reference with one label only
        side = odds(withheld[:1])[0] > 0
        same, among = (odds(rows) > 0 for rows in (withheld, reference))
        if (among == side).sum() >= 20:
            withheld, reference, outcomes = withheld[same == side], reference[among == side], outcomes[among == side]
    features = _limited(rng, features)
    space = Space(tuple(features))
    scale = Scale.of(space, reference)
    density = None
    if rng.random() > 0.07:
        density = _filter(rng.random()).fit(reference, scale)
    quantiles = Quantiles.of(scale, reference)
    beta = 5.0 if rng.random() < 0.85 else float(rng.choice([0.0, 1.0, 20.0]))
    tight = rng.random() < 0.15
    cases: list[Case] = []
    for x in withheld:
        if len(cases) == n_rows:
            break
        ranges = _ranges(rng, space, x, scale) if tight else None
        try:
            region = Region.of(space, x, ranges=ranges, constant=scale.deviations == 0)
        except ValueError:  # no feature can change
            continue
        problem = Problem(region, CostFunction(scale, x, space.weights, beta), scale, reference, density, quantiles)
        sign = -1.0 if odds(x[None])[0] > 0 else 1.0
        others = withheld[(withheld != x).any(axis=1)]
        cases.append(Case(problem, _signed(odds, sign), outcomes != (sign < 0), others, gives_scores))
    return cases


def table(seed: int) -> tuple[Space, FloatArray]:
    """A table without a model, (n, d), and its features; at least two of the columns vary."""
    rng = np.random.default_rng([78, seed])
    while True:
        X, features = _columns(rng, _latent(rng))
        if (X.std(axis=0) > 1e-9).sum() >= 2:
            return Space(tuple(features)), X


def _filter(u: float) -> Plausibility:
    """The default filter or the paper's local outlier factor, depending on u, 0 <= u < 1."""
    return Plausibility(kind="joint") if u < 0.55 else Plausibility(kind="lof", scale=u < 0.7)


def _signed(odds: Score, sign: float) -> Score:
    return lambda X: sign * odds(X)


def _table_and_model(
    rng: np.random.Generator, kind: Kind
) -> tuple[FloatArray, BoolArray, list[Feature], Score, bool] | None:
    """Points, outcomes, features, the model's log odds of class 1, and whether they are scores; None if degenerate."""
    Z = _latent(rng, kind.columns)
    X, features = _columns(rng, Z)
    varies = X.std(axis=0) > 1e-9
    if varies.sum() < 2:
        return None
    y = _outcome(rng, Z, kind)
    if kind.noisy:
        y = np.where(rng.random(len(y)) < rng.uniform(0.02, 0.2), rng.random(len(y)) < y.mean(), y)
    if min(y.mean(), 1 - y.mean()) < (0.005 if kind.rare else 0.04) or min(y.sum(), (~y).sum()) < 5:
        return None
    seen = slice(_n_withheld(X), _first_known(X, kind) if kind.apart else None)
    if len(np.unique(y[seen])) < 2:
        return None
    nominal = np.array([isinstance(f, Nominal) for f in features])
    make = _forest if kind.noisy else _model
    odds, gives_scores = make(rng, X[seen], y[seen], nominal)
    says = odds(X) > 0
    if min(says.mean(), 1 - says.mean()) < (0.003 if kind.rare else 0.02):
        return None
    return X, y, features, odds, gives_scores


def _n_withheld(X: FloatArray) -> int:
    """The number of rows, at the beginning, that are neither in the training data nor in the reference."""
    return min(WITHHELD, len(X) // 4)


def _first_known(X: FloatArray, kind: Kind) -> int:
    """The position of the first row of the reference; with `apart`, the model is trained on the rows before it."""
    return (len(X) + _n_withheld(X)) // 2 if kind.apart else _n_withheld(X)


def _latent(rng: np.random.Generator, columns: tuple[int, int] | None = None) -> FloatArray:
    """A table of unit variance, before its columns are converted to kinds of features, (n, d)."""
    d = int(rng.integers(3, 28)) if rng.random() < 0.5 else int(np.rint(np.exp(rng.uniform(np.log(2), np.log(60)))))
    if columns is not None:
        d = int(rng.integers(columns[0], columns[1] + 1))
    n = int(np.exp(rng.uniform(np.log(70), np.log(1500 if rng.random() < 0.9 else 5000))))
    k = int(rng.integers(1, d + 1)) if rng.random() < 0.6 else min(int(rng.integers(1, 4)), d)
    factors = rng.normal(size=(n, k))
    if rng.random() < 0.4:
        clusters = rng.integers(0, rng.integers(2, 7), size=n)
        factors += rng.normal(size=(7, k))[clusters] * rng.uniform(0.5, 2.5)
    loadings = rng.normal(size=(k, d)) * rng.exponential(size=(k, 1))
    Z = factors @ loadings / np.sqrt(k) + rng.uniform(0.05, 1.0) * rng.normal(size=(n, d))
    if rng.random() < 0.3:
        Z = np.tanh(Z @ rng.normal(size=(d, d)) / np.sqrt(d)) + 0.2 * rng.normal(size=(n, d))
    if rng.random() < 0.15:  # groups of almost redundant columns
        for j in range(1, d):
            if rng.random() < 0.5:
                Z[:, j] = Z[:, j - 1] * rng.choice([-1, 1]) + rng.uniform(0.02, 0.4) * rng.normal(size=n)
    if rng.random() < 0.15:  # one common factor: half of the variance of all columns, or nearly all of it
        share, size = rng.uniform(0.5, 0.95), rng.normal(size=(n, 1)) * rng.choice([-1, 1], p=[0.2, 0.8], size=d)
        Z = np.sqrt(1 - share) * (Z - Z.mean(axis=0)) / (Z.std(axis=0) + 1e-12) + np.sqrt(share) * size
    if rng.random() < 0.1:  # duplicates
        Z = Z[rng.integers(n, size=n)]
    return np.asarray((Z - Z.mean(axis=0)) / (Z.std(axis=0) + 1e-12))


def _columns(rng: np.random.Generator, Z: FloatArray) -> tuple[FloatArray, list[Feature]]:
    """The table with realistic kinds of columns, (n, d), and its features."""
    X = Z.copy()
    features: list[Feature] = []
    heavy, coded, n_nominal = rng.random() < 0.25, rng.random() < 0.2, 0
    may_be_nominal = rng.random() < 0.3
    for j, z in enumerate(Z.T):
        kind, name = rng.random(), f"f{j}"
        if may_be_nominal and kind < 0.4:
            X[:, j] = rng.permutation(10)[_codes(rng, z, 8).astype(int)]
            X[:, j] = np.unique(X[:, j], return_inverse=True)[1]
            features.append(Nominal(name, tuple(range(int(X[:, j].max()) + 1))))
            n_nominal += 1
            continue
        if coded or 0.65 <= kind < 0.85:
            X[:, j] = np.unique(_codes(rng, z, 9), return_inverse=True)[1]
            if rng.random() < 0.5:
                features.append(Ordinal(name, tuple(range(int(X[:, j].max()) + 1))))
            else:
                features.append(Integer(name, int(X[:, j].min()), int(X[:, j].max())))
            continue
        if heavy and kind < 0.8:
            X[:, j] = np.round(np.exp(rng.uniform(0.8, 2.2) * z), int(rng.integers(0, 3)))
        elif kind < 0.5 and kind > 0.35:
            X[:, j] = np.exp(rng.uniform(0.3, 1.2) * z)
        elif 0.5 <= kind < 0.65:
            X[:, j] = np.round(z * rng.uniform(1, 10))
        elif kind > 0.92:
            X[:, j] = np.maximum(z, 0.5 * rng.normal())
        if rng.random() < 0.5:
            X[:, j] *= 10.0 ** int(rng.integers(-2, 5))
        whole = bool((X[:, j] == np.rint(X[:, j])).all())
        low, high = float(X[:, j].min()), float(X[:, j].max())
        features.append(Integer(name, int(low), int(high)) if whole else Continuous(name, low, high))
    return X, features


def _codes(rng: np.random.Generator, z: FloatArray, most: int) -> FloatArray:
    """A column as a few levels, 0, 1, ..., with very different frequencies, (n,)."""
    cuts = np.quantile(z, np.sort(rng.random(int(rng.integers(1, most)))))
    return np.searchsorted(cuts, z).astype(float)


def _outcome(rng: np.random.Generator, Z: FloatArray, kind: Kind) -> BoolArray:
    """The outcome of each row, (n,): linear, smooth, by rules or by squares of some columns, with noise."""
    n, d = Z.shape
    relevant = np.asarray(rng.random(d) < (rng.uniform(1, 6) / d if kind.sparse else rng.uniform(0.2, 1)))
    relevant[rng.integers(d)] = True
    S = Z[:, relevant]
    m, form = S.shape[1], rng.random()
    if form < 0.3:
        f = S @ rng.normal(size=m)
    elif form < 0.6:
        f = np.tanh(2 * S @ rng.normal(size=(m, 16)) / np.sqrt(m) + rng.normal(size=16)) @ rng.normal(size=16)
    elif form < 0.8:
        f = 0.3 * S @ rng.normal(size=m) / np.sqrt(m)
        for _ in range(int(rng.integers(2, 8))):
            rule = np.ones(n, dtype=bool)
            for j in rng.integers(m, size=rng.integers(1, 4)):
                above = S[:, j] > np.quantile(S[:, j], rng.uniform(0.15, 0.85))
                rule &= above if rng.random() < 0.5 else ~above
            f += rng.normal() * rule
    else:
        f = S**2 @ rng.normal(size=m) + S @ rng.normal(size=m)
    f = f / (f.std() + 1e-12) + rng.normal(size=n) * rng.uniform(0, 1.2)
    most = rng.uniform(0.92, 0.995) if kind.rare else rng.uniform(0.2, 0.92)
    return np.asarray(f > np.quantile(f, most))


def _model(rng: np.random.Generator, X: FloatArray, y: BoolArray, nominal: BoolArray) -> tuple[Score, bool]:
    """The log odds of a trained classifier, (n, d) -> (n,), and whether they are scores rather than a label."""
    kind, state = rng.random(), int(rng.integers(1_000_000))
    one_hot = _one_hot(X, nominal)
    A = one_hot(X)
    if kind < 0.55:
        n_trees, leaf = int(rng.choice([40, 80])), int(rng.choice([1, 1, 1, 3, 5]))
        kinds: Any = RandomForestClassifier if kind < 0.47 else ExtraTreesClassifier
        return _share_of_trees(kinds(n_trees, min_samples_leaf=leaf, random_state=state).fit(A, y), one_hot), True
    if kind < 0.6:
        return _rules(rng, X), False
    model: Any
    if kind < 0.72:
        model = HistGradientBoostingClassifier(max_iter=50, random_state=state)
    elif kind < 0.82:
        model = make_pipeline(StandardScaler(), SVC(C=float(rng.choice([1.0, 10.0]))))
    elif kind < 0.9:
        model = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=150, random_state=state))
    elif kind < 0.95:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    else:
        model = make_pipeline(StandardScaler(), KNeighborsClassifier(int(rng.choice([5, 15]))))
    model.fit(A, y)
    if hasattr(model, "predict_proba"):
        return lambda B: _log_odds(model.predict_proba(one_hot(B))[:, 1]), True
    return lambda B: np.asarray(model.decision_function(one_hot(B))), False


def _forest(rng: np.random.Generator, X: FloatArray, y: BoolArray, nominal: BoolArray) -> tuple[Score, bool]:
    """The log odds of a forest with scikit-learn's defaults, (n, d) -> (n,)."""
    one_hot = _one_hot(X, nominal)
    return _share_of_trees(
        RandomForestClassifier(random_state=int(rng.integers(1_000_000))).fit(one_hot(X), y), one_hot
    ), True


def _share_of_trees(forest: Any, one_hot: Score) -> Score:
    """The log odds from the mean of the trees, without scikit-learn's overhead per call."""
    trees = [tree.tree_ for tree in forest.estimators_]

    def odds(B: FloatArray) -> FloatArray:
        B = np.ascontiguousarray(one_hot(B), dtype=np.float32)
        return _log_odds(np.asarray(sum(tree.predict(B)[:, 1] for tree in trees) / len(trees)))

    return odds


def _log_odds(share: FloatArray) -> FloatArray:
    return np.log((share + 1e-6) / (1 - share + 1e-6))


def _one_hot(X: FloatArray, nominal: BoolArray) -> Score:
    codes = {j: np.arange(10) for j in np.flatnonzero(nominal)}

    def encoded(B: FloatArray) -> FloatArray:
        return np.hstack([B[:, ~nominal], *((B[:, j, None] == c).astype(float) for j, c in codes.items())])

    return encoded if codes else lambda B: B


def _rules(rng: np.random.Generator, X: FloatArray) -> Score:
    """A score card with random thresholds: class 1 if those passed have enough weight."""
    features = rng.integers(X.shape[1], size=int(rng.integers(2, 7)))
    cuts = np.array([np.quantile(X[:, j], rng.uniform(0.2, 0.8)) for j in features])
    sign = rng.choice([-1.0, 1.0], size=len(features))
    weights = rng.exponential(size=len(features))

    def total(B: FloatArray) -> FloatArray:
        return np.asarray((sign * (B[:, features] - cuts) > 0) @ weights)

    least = np.quantile(total(X), rng.uniform(0.3, 0.8))
    return lambda B: np.where(total(B) > least, 1.0, -1.0)


def _limited(rng: np.random.Generator, features: list[Feature]) -> list[Feature]:
    """The features, in half of the tasks with some frozen, directed or weighted; never all frozen."""
    if rng.random() < 0.5:
        return features
    frozen, directed, weighted = rng.uniform(0, 0.4), rng.uniform(0, 0.3), rng.random() < 0.2
    out = []
    for feature in features:
        if rng.random() < frozen:
            feature = replace(feature, frozen=True)
        elif rng.random() < directed and not isinstance(feature, Nominal):
            feature = replace(feature, direction=str(rng.choice(["increase", "decrease"])))  # type: ignore[arg-type]
        if weighted:
            feature = replace(feature, weight=float(rng.choice([0.5, 1.0, 3.0])))
        out.append(feature)
    free = [f for f in out if not f.frozen]
    return out if len(free) >= min(2, len(out)) else features


def _ranges(rng: np.random.Generator, space: Space, x: FloatArray, scale: Scale) -> dict[str | int, Any]:
    """Tight ranges around the factual for some of the numbers."""
    ranges: dict[str | int, Any] = {}
    for j, feature in enumerate(space.features):
        if isinstance(feature, Continuous | Integer) and rng.random() < 0.5:
            reach = scale.deviations[j] * rng.uniform(0.5, 2.0, size=2)
            ranges[feature.name] = (float(x[j] - reach[0]), float(x[j] + reach[1]))
    return ranges


# -- other help -----------------------------------------------------------------------------------------


def earlier_answers(case: Case, rng: np.random.Generator, n_rows: int) -> tuple[Known, Hint | None]:
    """Simulated answers from explanations of other rows of the same model: the nearest 150, and a hint from all.

    No search is run: points lie between a row and reference rows of the other class, with some changes reverted.
    """
    problem = case.problem
    others = case.withheld[rng.integers(len(case.withheld), size=n_rows)]
    X = []
    for x in others:
        rows = problem.reference[rng.integers(len(problem.reference), size=60)]
        other_class = rows[case.is_hit(rows) != case.is_hit(x[None])[0]]
        rows = (other_class if len(other_class) else rows)[:4]
        rows = rows[rng.integers(len(rows), size=24)]
        share = np.clip(rng.beta(1.5, 1.5, size=(24, 1)), 0, 1)
        moved = problem.quantiles.between(x, rows, share, rng.random((24, 1)) < 0.5)
        undone = rng.random(moved.shape) < rng.random((24, 1))
        X.append(np.vstack([x[None], np.where(undone, x, moved)]))
    points = np.unique(problem.region.space.snap(np.vstack(X)), axis=0)
    points = points[(points != problem.factual).any(axis=1)]
    hits = case.is_hit(points)
    learnt = len(points) >= 200
    hint = outcome_model(problem.region.space, points, hits, LEAF_LEARNT) if learnt else None
    Z = problem.quantiles.coordinates(points) - problem.quantiles.coordinates(problem.factual[None])
    near = np.argsort(np.linalg.norm(Z, axis=1), kind="stable")[:150]
    return Known(points[near], hits[near]), hint


def least_cost(case: Case) -> float:
    """The least cost of a plausible hit found by a search with some 40,000 queries; infinite if none."""
    return problems.least_cost(case.problem, case.is_hit, rounds=12, n=2500, best_of=200)
