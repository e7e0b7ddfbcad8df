"""How well filters tell real rows from rows whose values do not fit each other.

    python benchmarks/plausible.py                          # all tables, into benchmarks/results/plausible.csv
    python benchmarks/plausible.py --filters lof,joint      # only these lines of it anew (lof: for the times)
    python benchmarks/plausible.py --only simulated --first 1000000 --set POWER=2 --set PRODUCT=0.3
    python benchmarks/plausible.py --table benchmarks/results/plausible.csv       # the table of docs/research.md

Each table is split: some rows are withheld, a filter is fitted on up to 5,000 others. A withheld row is real; with one
or two of its values taken from another row, it is not, though each value by itself is. Told for each filter: the area
under the ROC curve (one half is guessing), the share of mixed rows that are refused where 95% of real ones pass, the
shares that pass at the usual threshold, and the time to fit and to judge, in that of the local outlier factor.

Simulated tables, the bundled loans, and from packages diamonds (plotnine) and weather (vega_datasets); the paper's
eight data sets (ACEX_DATA) are a test only. Constants of src/acex/space/joint.py are chosen on simulated tables from
1,000,000 on; the figures are those from 2,000,000 on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import simulated
from scipy.special import ndtri
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestRegressor,
)
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from acex import datasets
from acex.arrays import BoolArray, FloatArray
from acex.space import joint as joint_module
from acex.space.joint import JointModel
from acex.space.plausibility import Plausibility
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space

RESULTS = Path(__file__).parent / "results" / "plausible.csv"
PAPER = ("diabetes", "breast", "kc2", "blood", "german_credit", "cmc", "nursery", "tic_tac_toe")
MOST_REFERENCE, MOST_WITHHELD = 5000, 400
N_SIMULATED = 40
SHRINK = 0.02  # of the correlations towards none, before they are inverted

Strangeness = Callable[[FloatArray], FloatArray]
Filter = Callable[[Space, FloatArray], Strangeness]


# -- tables ------------------------------------------------------------------------------------------------


def tables(first: int) -> Iterator[tuple[str, str, Space, FloatArray]]:
    """Group, name, space and points of each table."""
    for seed in range(first, first + N_SIMULATED):
        yield "simulated", str(seed), *simulated.table(seed)
    for name, rows in (("diamonds", diamonds()), ("weather", weather()), ("loan", datasets.load("loan").rows)):
        space = Space.infer(rows)
        yield "users", name, space, space.encode(rows)
    for name in PAPER:
        data = datasets.paper(name)
        yield "paper", name, data.space, data.codes


def diamonds() -> pd.DataFrame:
    """53,940 diamonds: weight, cut, colour, clarity, price and sizes."""
    return pd.read_csv(_folder("plotnine") / "data" / "diamonds.csv")


def weather() -> pd.DataFrame:
    """Four years of weather in Seattle, without the date."""
    return pd.read_csv(_folder("vega_datasets") / "_data" / "seattle-weather.csv").drop(columns="date")


def _folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"{package} is not installed: pip install {package}")
    return Path(found.submodule_search_locations[0])


def mixed(rng: np.random.Generator, rows: FloatArray, others: FloatArray, varies: BoolArray, n: int) -> FloatArray:
    """The rows with n values each from one other row, as far as it has others, (k, d); equal ones are left out."""
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
    """The filter that expects each column from the others."""
    density = Plausibility(kind="joint").fit(R, Scale.of(space, R))
    return lambda X: -density.score(X)


def linear(space: Space, R: FloatArray) -> Strangeness:
    """The same without bends, products and a spread of its own for each row."""
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


# -- figures -----------------------------------------------------------------------------------------------


def judged(space: Space, X: FloatArray, filters: dict[str, Filter]) -> list[dict[str, Any]]:
    """A record for each filter."""
    rng = np.random.default_rng(5)
    order = rng.permutation(len(X))
    n = min(MOST_WITHHELD, len(X) // 4)
    real, R = X[order[:n]], X[order[n : n + MOST_REFERENCE]]
    varies = Scale.of(space, R).deviations > 0
    one, two = (mixed(rng, real, R, varies, n) for n in (1, 2))
    records, of_lof = [], (1.0, 1.0)
    for name, fit in filters.items():
        start = time.process_time()
        strangeness = fit(space, R)
        fitted = time.process_time()
        of_real = strangeness(real)
        seconds = (fitted - start, time.process_time() - fitted)
        of_lof = seconds if name == "lof" else of_lof
        record: dict[str, Any] = {"filter": name, "rows": len(R), "columns": len(space)}
        for kind, X_mixed in (("one", one), ("two", two)):
            of_mixed = strangeness(X_mixed)
            is_mixed = np.repeat([False, True], [len(of_real), len(of_mixed)])
            record[f"auc {kind}"] = roc_auc_score(is_mixed, np.concatenate([of_real, of_mixed]))
            record[f"refused {kind}"] = float((of_mixed > np.quantile(of_real, 0.95)).mean())
            record[f"passes {kind}"] = float((of_mixed < 1.5).mean())
        record["passes real"] = float((of_real < 1.5).mean())
        record |= {"fit": seconds[0] / of_lof[0], "judge": seconds[1] / of_lof[1]}
        records.append(record)
    return records


def told(results: pd.DataFrame) -> str:
    """The table of docs/research.md: AUC with one value taken from another row / with two."""
    results = results.assign(where=results["table"].where(results["group"] != "simulated", "simulated"))
    order = list(dict.fromkeys(results["where"]))
    means = results.groupby(["filter", "where"], sort=False)[["auc one", "auc two"]].mean()
    cells = means.apply(lambda r: f"{r['auc one']:.2f} / {r['auc two']:.2f}", axis=1).unstack()[order]
    lines = ["| filter | " + " | ".join(order) + " |", "|---" * (1 + len(order)) + "|"]
    lines += [f"| {name} | " + " | ".join(cells.loc[name]) + " |" for name in dict.fromkeys(results["filter"])]
    by = results.groupby(["filter", "group"], sort=False)
    passes = by[["passes real", "passes one", "passes two"]].mean()
    times = results.groupby("filter", sort=False)[["fit", "judge"]].median()
    return "\n".join([*lines, "", passes.round(3).to_string(), "", times.round(2).to_string()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="simulated, users or paper")
    parser.add_argument("--first", type=int, default=simulated.TEST, help="first of the simulated tables")
    parser.add_argument("--filters", help="some of the filters, by name: lof,joint")
    parser.add_argument("--set", action="append", default=[], help="a constant of space/joint.py: POWER=2")
    parser.add_argument("--table", type=Path, help="only print the table of a file")
    args = parser.parse_args()
    if args.table:
        print(told(pd.read_csv(args.table, dtype={"table": str})))
        return
    for name, value in (pair.split("=") for pair in args.set):
        setattr(joint_module, name, type(getattr(joint_module, name))(value))
    chosen = args.filters.split(",") if args.filters else ["lof", "joint"] if args.set else list(FILTERS)
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for group, name, space, X in tables(args.first):
            if args.only in (None, group):
                found = judged(space, X, {name: FILTERS[name] for name in chosen})
                records += [{"group": group, "table": name, **record} for record in found]
    results = pd.DataFrame(records)
    if not (args.only or args.set or args.first != simulated.TEST):
        results = with_the_others(results)
        results.to_csv(RESULTS, index=False, float_format="%.4f")
    print(told(results))


def with_the_others(results: pd.DataFrame) -> pd.DataFrame:
    """The results, with those of the file for filters that were not run: each is judged by itself."""
    if not RESULTS.exists():
        return results
    before = pd.read_csv(RESULTS, dtype={"table": str})
    results = pd.concat([before[~before["filter"].isin(results["filter"])], results])
    order = {name: i for i, name in enumerate([*dict.fromkeys(before["table"]), *FILTERS])}
    return results.sort_values(["table", "filter"], key=lambda column: column.map(order), ignore_index=True)


if __name__ == "__main__":
    main()
