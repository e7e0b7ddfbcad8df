"""The best cost so far against queries paid: strategy "feasible", alone and with help, and a rival.

    python benchmarks/anytime.py                             # forest, 50 withheld rows of each data set
    python benchmarks/anytime.py --model svc --rows 20 --data kc2,german_credit
    python benchmarks/anytime.py --nominal                   # categories without an order, as they are

For each number of queries: the median over rows of J over the best known, a row without a hit counting as
infinite, and in brackets the share of rows with a hit. J is the paper's, d2n + 5 g1n on codes; only plausible hits
count, for all methods. Best known is the least of all methods here, of a search with 100,000 queries (`limit.py`)
and, for the rows it holds, of `best_known.csv`. The rival asks reference rows by increasing cost until one is a hit,
bisects the way back and undoes changes, dearest first. All queries count, the first included. Help is the true
labels of the reference ("labels"; "shuffled": the same in random order, which must not hurt) or the model's
probability ("scores"). "any" is the ratio at 60 queries to the least J of any hit, plausible or not.

A second table says how "feasible" does by itself: rows that have a counterfactual, the share with a hit within 10
queries, the mean number of queries when it may stop ("settled"; what that loses: median of the cost then over the cost
at 60), the mean affinity of what was found, and where there is no counterfactual how many queries it took to give up.

Writes the curves to benchmarks/results/anytime-MODEL-SEED.csv: for each number of queries the median ratio, the share
of rows with a hit, the mean J of those, and the median ratio to the least of any hit. Data sets that are not run keep
the lines they have. Needs the data sets: set ACEX_DATA.
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
from limit import MODELS, grounds, least_cost
from threadpoolctl import threadpool_limits

import acex
from acex.arrays import BoolArray, FloatArray
from acex.bench.ground import Ground
from acex.search.hints import outcome_model
from acex.search.problem import Problem, key
from acex.search.search import Search

HERE = Path(__file__).parent
BUDGETS = (10, 15, 20, 30, 40, 60)
Curve = FloatArray  # the best J after 0, 1, ..., queries; infinite before the first hit


def searched(
    g: Ground,
    problem: Problem,
    is_hit: Callable[[FloatArray], BoolArray],
    n: int,
    seed: int,
    odds: Callable[[FloatArray], float | None] = lambda x: None,
    tolerance: float = 0.0,
) -> tuple[Curve, Search]:
    """The curve of strategy "feasible", and the search at its end; without a tolerance it spends the whole budget."""
    search = Search.begin(problem, acex.Feasible(tolerance), seed, odds=odds(problem.factual))
    curve = np.full(n + 1, np.inf)
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        hit = bool(is_hit(query.point[None])[0])
        search = search.tell(query, hit, odds(query.point))
        if hit and problem.plausible(query.point[None])[0]:
            asked = len(search.history.queries)
            curve[asked:] = np.minimum(curve[asked:], price(g, problem, query.point))
    return curve, search


def price(g: Ground, problem: Problem, x: FloatArray) -> float:
    """J of a point: the paper's, or with nominal features ours."""
    if problem.scale.is_nominal.any():
        return float(problem.cost(x[None])[0])
    return float(g.cost(x[None], problem.factual)[0])


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
                curve[len(asked) :] = np.minimum(curve[len(asked) :], price(g, problem, point))
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


def curves_of_row(name: str, model: str, nominal: bool, seed: int, row: int, n: int) -> dict[str, Any]:
    g, problems = grounds(name, model, nominal, seed)
    problem, is_hit = problems.of(row), problems.is_hit(row)
    outcomes = g.labels != g.predict(g.rows[row : row + 1])[0]
    rng = np.random.default_rng(row)
    with threadpool_limits(1):
        limit = least_cost(problem, is_hit)
        any_hit = least_cost(replace(problem, density=None), is_hit)

        def helped(outcomes: BoolArray) -> Curve:
            hinted = replace(problem, hint=outcome_model(g.space, g.reference, outcomes))
            return searched(g, hinted, is_hit, n, row)[0]

        alone, _ = searched(g, problem, is_hit, n, row)
        curves = {"feasible": alone, "with labels": helped(outcomes), "shuffled": helped(rng.permutation(outcomes))}
        if hasattr(g.model, "predict_proba"):
            curves["with scores"] = searched(g, problem, is_hit, n, row, _odds(g, problem))[0]
        curves["nearest row"] = nearest(g, problem, is_hit, n)
        settled, search = searched(g, problem, is_hit, n, row, tolerance=acex.Feasible().tolerance)
    found = search.history.X[search.chosen]
    return {
        "row": row,
        "limit": limit,
        "any": any_hit,
        "curves": curves,
        "settled": (len(search.history.queries), settled[-1]),
        "affinity": float(problems.density.affinity(found)[0]) if len(found) else np.nan,
        "stopped": search.settled,
    }


def _odds(g: Ground, problem: Problem) -> Callable[[FloatArray], float | None]:
    before = g.predict(problem.factual[None])[0]
    column = list(g.model.classes_).index(before)

    def odds(x: FloatArray) -> float:
        miss = g.model.predict_proba(x[None])[0, column]
        return float(np.log((1 - miss + 1e-6) / (miss + 1e-6)))

    return odds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(acex.datasets.PAPER))
    parser.add_argument("--model", default="forest", choices=sorted(MODELS))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nominal", action="store_true", help="categories without an order, and our scale")
    args = parser.parse_args()
    known = {}
    if args.model == "forest" and args.seed == 0 and not args.nominal:
        known = pd.read_csv(HERE / "best_known.csv").set_index(["dataset", "row"])["J"].to_dict()
    curve_lines, alone = [], []
    for name in args.data.split(","):
        settings = (name, args.model, args.nominal, args.seed)
        jobs = (joblib.delayed(curves_of_row)(*settings, r, max(BUDGETS)) for r in range(args.rows))
        rows = joblib.Parallel(n_jobs=-1)(jobs)
        best = np.array(
            [min(r["limit"], known.get((name, r["row"]), np.inf), *(c[-1] for c in r["curves"].values())) for r in rows]
        )
        has_one = np.isfinite(best)
        lines = []
        for method in rows[0]["curves"]:
            curves = np.array([r["curves"][method] for r in rows])[has_one]
            ratios = curves / best[has_one, None]
            cells = {
                f"@{b}": f"{np.median(ratios[:, b]):.2f} ({np.isfinite(ratios[:, b]).mean():.0%})" for b in BUDGETS
            }
            least = np.minimum([r["any"] for r in rows], best)[has_one]
            J = {f"J@{b}": f"{np.mean(curves[np.isfinite(curves[:, b]), b]):.2f}" for b in (15, 30, 60)}
            worst = f"{np.median(curves[:, 60] / least):.2f}"
            lines.append({"data": name, "method": method, **cells, "any": worst, **J})
            curve_lines.append(curve_frame(name, method, curves, best[has_one], least))
        print(pd.DataFrame(lines).to_string(index=False), flush=True)
        alone.append(_alone(name, rows, has_one, best))
    print(pd.DataFrame(alone).to_string(index=False))
    out = HERE / "results" / f"anytime-{args.model}{'-nominal' if args.nominal else ''}-{args.seed}.csv"
    update(out, pd.concat(curve_lines))
    print(f"curves: {out.relative_to(HERE.parent)}")


def curve_frame(name: str, method: str, curves: FloatArray, best: FloatArray, least: FloatArray) -> pd.DataFrame:
    """A line for each number of queries of the curves of a method, (rows, queries + 1)."""
    found = np.isfinite(curves)
    total = np.where(found, curves, 0.0).sum(axis=0)
    columns = {
        "queries": np.arange(curves.shape[1]),
        "rows": len(curves),
        "median_ratio": np.median(curves / best[:, None], axis=0),
        "found": found.mean(axis=0),
        "mean_J": total / np.maximum(found.sum(axis=0), 1),
        "any_ratio": np.median(curves / least[:, None], axis=0),
    }
    return pd.DataFrame({"data": name, "method": method, **columns}).iloc[1:]


def update(path: Path, lines: pd.DataFrame) -> None:
    """Write these lines into the file, in place of those of the same data sets; the others stay."""
    if path.exists():
        before = pd.read_csv(path)
        lines = pd.concat([before[~before["data"].isin(lines["data"])], lines])
    path.parent.mkdir(exist_ok=True)
    lines.to_csv(path, index=False, float_format="%.6g")


def _alone(name: str, rows: list[dict[str, Any]], has_one: BoolArray, best: FloatArray) -> dict[str, Any]:
    """What "feasible" does by itself on one data set."""
    possible = [r for r, has in zip(rows, has_one, strict=True) if has]
    hopeless = [r for r, has in zip(rows, has_one, strict=True) if not has]
    queries = np.array([r["settled"][0] for r in possible])
    lost = np.array([r["settled"][1] / r["curves"]["feasible"][-1] for r in possible if np.isfinite(r["settled"][1])])
    J = np.array([r["curves"]["feasible"][30] for r in possible])
    gave_up = f"{np.mean([r['settled'][0] for r in hopeless]):.0f} ({len(hopeless)})" if hopeless else ""
    return {
        "data": name,
        "possible": len(possible),
        "hit@10": f"{np.mean([np.isfinite(r['curves']['feasible'][10]) for r in possible]):.0%}",
        "found": f"{np.mean([np.isfinite(r['settled'][1]) for r in possible]):.0%}",
        "mean J@30 / mean best": f"{J[np.isfinite(J)].mean() / best[has_one][np.isfinite(J)].mean():.3f}",
        "settled after": f"{queries.mean():.1f}",
        "loses": f"{np.median(lost):.3f} (mean {lost.mean():.3f})",
        "affinity": f"{np.nanmean([r['affinity'] for r in possible]):.2f}",
        "false alarms": sum(r["stopped"] in ("unlikely", "exhausted") for r in possible),
        "hopeless: queries": gave_up,
    }


if __name__ == "__main__":
    main()
