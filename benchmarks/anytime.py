"""The best cost so far against queries paid: strategy "feasible", without and with known outcomes, and a rival.

    python benchmarks/anytime.py                             # forest, 50 withheld rows of each data set
    python benchmarks/anytime.py --model svc --rows 20 --data kc2,german_credit

For each number of queries: the median over rows of J over the best known, a row without a hit counting as
infinite, and in brackets the share of rows with a hit. J is the paper's, d2n + 5 g1n on codes; only plausible hits
count, for all methods. Best known is the least of all methods here, of a search with 100,000 queries (`limit.py`)
and, for the rows it holds, of `best_known.csv`. The rival asks reference rows by increasing cost until one is a hit,
bisects the way back and undoes changes, dearest first. All queries count, the first included.

Writes the median curves to benchmarks/results/anytime-MODEL-SEED.csv. Needs the data sets: set ACEX_DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from limit import Problems, least_cost
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import acex
from acex.arrays import BoolArray, FloatArray
from acex.bench.ground import Ground, ground
from acex.hints import outcome_model
from acex.problem import Problem, key
from acex.search import Search

HERE = Path(__file__).parent
BUDGETS = (10, 15, 20, 30, 40, 60)
MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: None,  # the ground's own
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "svc": lambda: make_pipeline(StandardScaler(), SVC()),
    "mlp": lambda: make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=500, random_state=0)),
}
Curve = FloatArray  # the best J after 0, 1, ..., queries; infinite before the first hit


def searched(g: Ground, problem: Problem, is_hit: Callable[[FloatArray], BoolArray], n: int, seed: int) -> Curve:
    """The curve of strategy "feasible", which goes on until the budget is spent."""
    search = Search.begin(problem, acex.Feasible(tolerance=0.0), seed)
    curve = np.full(n + 1, np.inf)
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        hit = bool(is_hit(query.point[None])[0])
        search = search.tell(query, hit)
        if hit and problem.plausible(query.point[None])[0]:
            asked = len(search.history.queries)
            curve[asked:] = np.minimum(curve[asked:], g.cost(query.point[None], problem.factual)[0])
    return curve


def nearest(g: Ground, problem: Problem, is_hit: Callable[[FloatArray], BoolArray], n: int) -> Curve:
    """The curve of the rival."""
    curve = np.full(n + 1, np.inf)
    asked: dict[bytes, bool] = {key(problem.factual): False}
    plan = _nearest_plan(problem)
    answer = None
    while True:
        try:
            point = plan.send(answer)  # type: ignore[arg-type]
        except StopIteration:
            return curve
        if key(point) not in asked:
            if len(asked) == n:
                return curve
            asked[key(point)] = bool(is_hit(point[None])[0])
            if asked[key(point)] and problem.plausible(point[None])[0]:
                curve[len(asked) :] = np.minimum(curve[len(asked) :], g.cost(point[None], problem.factual)[0])
        answer = asked[key(point)]


def _nearest_plan(problem: Problem) -> Generator[FloatArray, bool, None]:
    x, rows = problem.factual, problem.projected
    best = None
    for row in rows[np.argsort(problem.cost(rows), kind="stable")]:
        if (row != x).any() and (yield row):
            best = row
            break
    if best is None:
        return
    for steps in (8, 5):
        far, low, high = best, 0.0, 1.0
        for _ in range(steps):
            middle = (low + high) / 2
            point = problem.region.snap((x + middle * (far - x))[None])[0]
            if (yield point):
                high, best = middle, point
            else:
                low = middle
        for j in np.argsort(-np.abs(problem.cost.steps(best[None])[0])) if steps == 8 else ():
            point = best.copy()
            point[j] = x[j]
            if (point != best).any() and (yield point):
                best = point


def curves_of_row(name: str, model: str, seed: int, row: int, n: int) -> dict[str, Any]:
    g = _ground(name, model, seed)
    problems = _problems(name, model, seed)
    problem, is_hit = problems.of(row), problems.is_hit(row)
    outcomes = g.labels != g.predict(g.rows[row : row + 1])[0]
    hint = outcome_model(g.space, g.reference, outcomes)
    with threadpool_limits(1):
        curves = {
            "feasible": searched(g, problem, is_hit, n, row),
            "feasible with labels": searched(g, replace(problem, hint=hint), is_hit, n, row),
            "nearest unlike row": nearest(g, problem, is_hit, n),
        }
        limit = least_cost(problem, is_hit)
    return {"data": name, "row": row, "limit": limit, **curves}


_GROUNDS: dict[tuple[str, str, int], tuple[Ground, Problems]] = {}


def _ground(name: str, model: str, seed: int) -> Ground:
    if (name, model, seed) not in _GROUNDS:
        g = ground(name, seed, MODELS[model]())
        _GROUNDS[name, model, seed] = (g, Problems(g))
    return _GROUNDS[name, model, seed][0]


def _problems(name: str, model: str, seed: int) -> Problems:
    _ground(name, model, seed)
    return _GROUNDS[name, model, seed][1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(acex.datasets.PAPER))
    parser.add_argument("--model", default="forest", choices=sorted(MODELS))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    known = pd.read_csv(HERE / "best_known.csv").set_index(["dataset", "row"])["J"].to_dict()
    lines, medians = [], []
    for name in args.data.split(","):
        jobs = (joblib.delayed(curves_of_row)(name, args.model, args.seed, r, max(BUDGETS)) for r in range(args.rows))
        rows = joblib.Parallel(n_jobs=-1)(jobs)
        methods = [m for m in rows[0] if m not in ("data", "row", "limit")]
        best = np.array([min(r["limit"], *(r[m][-1] for m in methods)) for r in rows])
        if args.model == "forest" and args.seed == 0:
            best = np.minimum(best, [known.get((name, r["row"]), np.inf) for r in rows])
        has_one = np.isfinite(best)
        for method in methods:
            ratios = np.array([r[method] for r in rows])[has_one] / best[has_one, None]
            cells = {
                f"@{b}": f"{np.median(ratios[:, b]):.2f} ({np.isfinite(ratios[:, b]).mean():.0%})" for b in BUDGETS
            }
            mean_J = {b: np.mean([r[method][b] for r in rows if np.isfinite(r[method][b])]) for b in (15, 30, 60)}
            lines.append({"data": name, "method": method, **cells} | {f"J@{b}": f"{j:.2f}" for b, j in mean_J.items()})
            medians += [(name, method, q, np.median(ratios[:, q])) for q in range(1, max(BUDGETS) + 1)]
        print(pd.DataFrame(lines[-len(methods) :]).to_string(index=False), flush=True)
    out = HERE / "results" / f"anytime-{args.model}-{args.seed}.csv"
    out.parent.mkdir(exist_ok=True)
    pd.DataFrame(medians, columns=["data", "method", "queries", "median_ratio"]).to_csv(out, index=False)
    print(f"curves: {out.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
