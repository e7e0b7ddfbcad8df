"""How well filters distinguish real rows from rows whose values do not go together.

    python -m benchmarks run --suite plausible --methods lof,joint

Each table is split: some rows are withheld, and a filter is fitted on up to 5,000 others. A withheld row is real; with
one or two values taken from another row it is a mixed row, although each single value is real. A raw line has the area
under the ROC curve (one half is guessing), the share of mixed rows that are rejected if 95% of the real ones pass, the
shares that pass at the default threshold, and the time to fit and apply it over that of the local outlier factor.

Tables: simulated, the bundled loans, and from packages diamonds (plotnine) and weather (vega_datasets); the paper's
eight data sets (ACEX_DATA) are a test only. Constants of src/acex/space/joint.py were chosen on simulated tables of
other seeds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from acex.arrays import BoolArray, FloatArray
from acex.space import joint as joint_module
from acex.space.joint import JointModel
from acex.space.plausibility import Plausibility
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space
from benchmarks.belief import simulated
from benchmarks.published import PAPER, load
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

MOST_REFERENCE, MOST_WITHHELD = 5000, 400
SHRINK = 0.02  # shrinkage of correlations towards 0, before the matrix is inverted
SIMULATED = tuple(map(str, range(simulated.TEST, simulated.TEST + 40)))
USERS = ("diamonds", "weather", "loan")

Strangeness = Callable[[FloatArray], FloatArray]
Filter = Callable[[Space, FloatArray], Strangeness]


# -- tables ------------------------------------------------------------------------------------------------


def table(name: str) -> tuple[Space, FloatArray]:
    """Space and points of a table."""
    if name in SIMULATED:
        return simulated.table(int(name))
    if name in PAPER:
        data = load(name)
        return data.space, data.codes
    rows = {"diamonds": diamonds, "weather": weather}.get(name, lambda: load("loan").rows)()
    space = Space.infer(rows)
    return space, space.encode(rows)


def diamonds() -> pd.DataFrame:
    """53,940 diamonds: weight, cut, colour, clarity, price and sizes."""
    return pd.read_csv(_folder("plotnine") / "data" / "diamonds.csv")


def weather() -> pd.DataFrame:
    """Four years of weather in Seattle, without the date."""
    return pd.read_csv(_folder("vega_datasets") / "_data" / "seattle-weather.csv").drop(columns="date")


def _folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed: pip install {package}")
    return Path(found.submodule_search_locations[0])


def mixed(rng: np.random.Generator, rows: FloatArray, others: FloatArray, varies: BoolArray, n: int) -> FloatArray:
    """The rows with up to n values each taken from another row, (k, d), without rows that do not change."""
    out = rows.copy()
    for x in out:
        for _ in range(20):
            other = others[rng.integers(len(others))]
            differs = np.flatnonzero((other != x) & varies)
            if len(differs) >= n:
                break
        chosen = rng.permutation(differs)[:n]
        x[chosen] = other[chosen]
    changed: FloatArray = out[(out != rows).any(axis=1)]
    return changed


# -- filters -----------------------------------------------------------------------------------------------


def lof(**settings: Any) -> Filter:
    """The local outlier factor of `acex.Plausibility`."""

    def fit(space: Space, R: FloatArray) -> Strangeness:
        density = Plausibility(kind="lof", **settings).fit(R, Scale.of(space, R))
        return lambda X: -density.score(X)

    return fit


def joint(space: Space, R: FloatArray) -> Strangeness:
    """The filter that predicts each column from the others."""
    density = Plausibility(kind="joint").fit(R, Scale.of(space, R))
    return lambda X: -density.score(X)


def linear(space: Space, R: FloatArray) -> Strangeness:
    """The same without nonlinear terms, products and a separate spread for each row."""
    usual = {name: getattr(joint_module, name) for name in ("MOST_BASIS", "SPREAD_ROWS")}
    try:
        joint_module.MOST_BASIS, joint_module.SPREAD_ROWS = 0, 1e12
        return JointModel.of(Scale.of(space, R), R).strangeness
    finally:
        for name, value in usual.items():
            setattr(joint_module, name, value)


class Whitened:
    """Normal scores of numbers and one-hot categories, made uncorrelated and of unit variance."""

    def __init__(self, space: Space, R: FloatArray) -> None:
        self.scale, self.m = Scale.of(space, R), len(R)
        self.quantiles = Quantiles.of(self.scale, R)
        Z = self._plain(R)
        self.mean, self.deviations = Z.mean(axis=0), Z.std(axis=0) + 1e-9
        Z = (Z - self.mean) / self.deviations
        values, vectors = np.linalg.eigh((1 - SHRINK) * Z.T @ Z / len(Z) + SHRINK * np.eye(Z.shape[1]))
        self.turn = vectors / np.sqrt(values)

    def _plain(self, X: FloatArray) -> FloatArray:
        ranks = self.quantiles.ranks(X)[:, self.scale.numeric]
        return np.hstack([ndtri(np.clip(ranks, 0.5 / self.m, 1 - 0.5 / self.m)), *self.scale.blocks(X)])

    def __call__(self, X: FloatArray) -> FloatArray:
        turned: FloatArray = (self._plain(X) - self.mean) / self.deviations @ self.turn
        return turned


def lof_whitened(space: Space, R: FloatArray) -> Strangeness:
    """The local outlier factor in whitened quantiles."""
    points = Whitened(space, R)
    factor = LocalOutlierFactor(n_neighbors=min(20, len(R) - 1), novelty=True).fit(points(R))
    return lambda X: -factor.score_samples(points(X))


def nearest_whitened(space: Space, R: FloatArray) -> Strangeness:
    """The mean distance to the five nearest rows in whitened quantiles."""
    points = Whitened(space, R)
    near = NearestNeighbors(n_neighbors=min(5, len(R) - 1)).fit(points(R))
    return lambda X: near.kneighbors(points(X))[0].mean(axis=1)


def isolation(space: Space, R: FloatArray) -> Strangeness:
    """An isolation forest in quantiles."""
    points = Quantiles.of(Scale.of(space, R), R).coordinates
    forest = IsolationForest(n_estimators=100, random_state=0).fit(points(R))
    return lambda X: -forest.score_samples(points(X))


def contrast(space: Space, R: FloatArray) -> Strangeness:
    """Boosted trees that learn to tell reference rows from mixtures of them."""
    rng, varies = np.random.default_rng(0), Scale.of(space, R).deviations > 0
    points = Quantiles.of(Scale.of(space, R), R).coordinates
    fakes = np.vstack([mixed(rng, R, R, varies, n) for n in (1, 2)])
    y = np.repeat([1, 0], [len(R), len(fakes)])
    trees = HistGradientBoostingClassifier(max_leaf_nodes=15, early_stopping=False, random_state=0)
    trees.fit(points(np.vstack([R, fakes])), y, sample_weight=np.where(y == 1, 2.0, 1.0))
    return lambda X: -trees.decision_function(points(X))


def forests(space: Space, R: FloatArray) -> Strangeness:
    """A forest for each column, from the others, and one for its errors; off in deviations, as in `joint`."""
    scale = Scale.of(space, R)
    quantiles = Quantiles.of(scale, R)
    codes = {j: np.unique(R[:, j]) for j in np.flatnonzero(space.is_nominal)}

    def others(X: FloatArray, j: Any) -> FloatArray:
        numbers = [k for k in scale.numeric if k != j]
        return np.hstack([quantiles.ranks(X)[:, numbers], *(X[:, [k]] == c for k, c in codes.items() if k != j)])

    parts: list[Callable[[FloatArray], FloatArray]] = []
    for j in np.flatnonzero(scale.deviations > 0):
        A = others(R, j)
        if space.is_nominal[j]:
            trees = ExtraTreesClassifier(40, min_samples_leaf=5, random_state=0).fit(A, R[:, j])
            parts.append(lambda X, j=j, trees=trees: _unlikely(trees, others(X, j), X[:, j]))  # type: ignore[misc]
            continue
        ranks = quantiles.ranks(R)[:, j]
        settings = {"n_estimators": 40, "max_features": 0.5, "random_state": 0}
        middle = RandomForestRegressor(min_samples_leaf=5, oob_score=True, **settings).fit(A, ranks)
        errors = np.abs(ranks - middle.oob_prediction_)
        spread = RandomForestRegressor(min_samples_leaf=10, **settings).fit(A, errors)

        def off(X: FloatArray, j: Any = j, middle: Any = middle, spread: Any = spread) -> FloatArray:
            A = others(X, j)
            out: FloatArray = np.abs(quantiles.ranks(X)[:, j] - middle.predict(A)) / (spread.predict(A) + 0.005)
            return out

        parts.append(off)
    return lambda X: (np.array([part(X) for part in parts]) ** joint_module.POWER).sum(axis=0)


def _unlikely(trees: Any, A: FloatArray, codes: FloatArray) -> FloatArray:
    chances = np.clip(trees.predict_proba(A), 0.003, 1.0)
    known = trees.classes_ == codes[:, None]
    own = np.where(known.any(axis=1), (chances * known).sum(axis=1), 0.003)
    unlikely: FloatArray = np.sqrt(2 * np.log(chances.max(axis=1) / own))
    return unlikely


FILTERS: dict[str, Filter] = {
    "lof": lof(),
    "lof raw": lof(scale=False),
    "lof whitened": lof_whitened,
    "nearest whitened": nearest_whitened,
    "isolation": isolation,
    "contrast": contrast,
    "forests": forests,
    "linear": linear,
    "joint": joint,
}


# -- measuring ---------------------------------------------------------------------------------------------


def measure(job: Job) -> list[Line]:
    """One filter on one table."""
    space, X = table(job.data)
    rng = np.random.default_rng(5)
    order = rng.permutation(len(X))
    n = min(MOST_WITHHELD, len(X) // 4)
    real, R = X[order[:n]], X[order[n : n + MOST_REFERENCE]]
    varies = Scale.of(space, R).deviations > 0
    mixtures = {kind: mixed(rng, real, R, varies, n) for kind, n in (("one", 1), ("two", 2))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, _, *of_lof = judged(FILTERS["lof"], space, R, real)
        strangeness, of_real, *seconds = judged(FILTERS[job.method], space, R, real)
        line: Line = {"n_rows": len(R), "n_columns": len(space), "passes_real": float((of_real < 1.5).mean())}
        for kind, mixture in mixtures.items():
            of_mixed = strangeness(mixture)
            is_mixed = np.repeat([False, True], [len(of_real), len(of_mixed)])
            line[f"auc_{kind}"] = roc_auc_score(is_mixed, np.concatenate([of_real, of_mixed]))
            line[f"refused_{kind}"] = float((of_mixed > np.quantile(of_real, 0.95)).mean())
            line[f"passes_{kind}"] = float((of_mixed < 1.5).mean())
    return [line | {"fit": seconds[0] / of_lof[0], "judge": seconds[1] / of_lof[1]}]


def judged(fit: Filter, space: Space, R: FloatArray, real: FloatArray) -> tuple[Strangeness, FloatArray, float, float]:
    """A fitted filter, its values for real rows, and CPU seconds to fit and to apply it."""
    start = time.process_time()
    strangeness = fit(space, R)
    fitted = time.process_time()
    of_real = strangeness(real)
    return strangeness, of_real, fitted - start, time.process_time() - fitted


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Area under the ROC curve with one value from another row / with two, filters by tables."""
    where = lines["data"].where(~lines["data"].isin(SIMULATED), "simulated")
    means = lines.assign(where=where).groupby(["method", "where"])[["auc_one", "auc_two"]].mean()
    cells = {place: " / ".join(f"{v:.2f}" for v in pair) for place, *pair in means.itertuples(name=None)}
    order = [name for name in ("simulated", *USERS, *ORDER) if name in set(where)]
    rows = [[name, *(cells[name, place] for place in order)] for name in FILTERS if name in set(lines["method"])]
    named = {"german_credit": "german credit", "tic_tac_toe": "tic-tac-toe"}
    return {"auc": Table("area under the ROC curve", ["filter", *(named.get(name, name) for name in order)], rows)}


def missing(data: str, method: str) -> str | None:
    """Why a table cannot be read; two of them come with packages."""
    package = {"diamonds": "plotnine", "weather": "vega_datasets"}.get(data)
    installed = package is None or find_spec(package)
    return None if installed else f"{data} needs {package}: pip install 'acex[tables]'"


ORDER = ("diabetes", "breast", "kc2", "blood", "german_credit", "cmc", "nursery", "tic_tac_toe")
SUITES = (
    Suite(
        "plausible",
        (*SIMULATED, *USERS, *PAPER),
        tuple(FILTERS),
        (
            *("n_rows", "n_columns", "auc_one", "refused_one", "passes_one", "auc_two", "refused_two", "passes_two"),
            *("passes_real", "fit", "judge"),
        ),
        measure,
        tables,
        missing=missing,
    ),
)
