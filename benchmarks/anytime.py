"""The best cost so far against queries paid: strategy "feasible", alone and with help, and a rival.

    python benchmarks/anytime.py                             # the tables of what was measured, and committed
    python benchmarks/anytime.py --page                      # the same for docs/research.md, all models and seeds
    python benchmarks/anytime.py --measure                   # anew: forest, 50 withheld rows of each data set
    python benchmarks/anytime.py --measure --model svc --rows 20 --methods feasible,labels --data kc2,german_credit
    python benchmarks/anytime.py --measure --nominal         # categories without an order, as they are

First table, for each number of queries: the median over rows of J over the best known, a row without a hit counting as
infinite, and in brackets the share of rows with a hit where it is not all. J is the paper's, d2n + 5 g1n on codes; only
plausible hits count, for all methods. Best known is the least of all methods here, of a search with 100,000 queries
(`limit.py`) and, for the rows it holds, of `best_known.csv`. The whole budget is spent (`effort="spend"`), pruning
aside. The rival, "nearest", asks reference rows by increasing cost until one is a hit, bisects the way back and undoes
changes, dearest first. All queries count, the first included. Help is the true labels of the reference ("labels";
"shuffled": the same in random order, which must not hurt) or the model's probability ("scores").

Second table: where "feasible" is behind "nearest" (and "shuffled" behind "feasible") or ahead: the mean difference of
log J, none found counting as 50 times the best known, with ">" (behind) or "<" (ahead) where the 95% interval of a
paired bootstrap over rows leaves zero out.

Third table: what "feasible" does by itself: the share of rows with a hit at 10 and 15 queries, how many queries it asks
until it has settled, and the cost then over that at 60.

Fourth table: the chance that something at least 10%, 25%, 50% cheaper exists, as the search states it at these numbers
of queries, alone and with labels, in bins of at least 100 cases, beside how often it was so (the best known as truth).

Writes benchmarks/results/anytime-MODEL-SEED.csv, a line for each row and method, and outlook-MODEL-SEED.csv. Data sets
that are not run keep the lines they have. Needs the data sets: set ACEX_DATA.
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
BUDGETS = (10, 15, 20, 30, 40, 60, 100, 150)
METHODS = ("feasible", "labels", "shuffled", "scores", "nearest", "settled")
SPEND = acex.Feasible(effort="spend")
SHORT = 60  # queries with help, and where only some methods are measured
NONE_FOUND = 50.0  # J over the best known that stands for no hit
Line = dict[str, Any]
Curve = FloatArray  # the best J after 0, 1, ..., queries; infinite before the first hit


def searched(
    g: Ground,
    problem: Problem,
    is_hit: Callable[[FloatArray], BoolArray],
    n: int,
    seed: int,
    odds: Callable[[FloatArray], float | None] = lambda x: None,
    strategy: acex.Feasible = SPEND,
    note: list[Line] | None = None,
) -> tuple[Curve, Search]:
    """The curve of strategy "feasible", and the search at its end; by default it spends the whole budget.

    Args:
        note: where to note what the search states about cheaper counterfactuals at each budget.
    """
    search = Search.begin(problem, strategy, seed, odds=odds(problem.factual))
    curve = np.full(n + 1, np.inf)
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        hit = bool(is_hit(query.point[None])[0])
        search = search.tell(query, hit, odds(query.point))
        if hit and problem.plausible(query.point[None])[0]:
            asked = len(search.history.queries)
            curve[asked:] = np.minimum(curve[asked:], price(g, problem, query.point))
        if note is not None and (n_asked := len(search.history.queries)) in BUDGETS and np.isfinite(curve[n_asked]):
            closer = acex.Feasible().improvement_odds(problem, search.history)
            chances = {f"chance{s}": chance for s, chance in zip((0.1, 0.25, 0.5), closer, strict=True)}
            note.append({"hint": problem.hint is not None, "queries": n_asked, "J": curve[n_asked], **chances})
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


def measured(
    name: str, model: str, nominal: bool, seed: int, row: int, methods: list[str]
) -> tuple[list[Line], list[Line]]:
    """The lines of one row: J of each method at each budget, and what the search stated about cheaper ones."""
    g, problems = grounds(name, model, nominal, seed)
    problem, is_hit = problems.of(row), problems.is_hit(row)
    outcomes = g.labels != g.predict(g.rows[row : row + 1])[0]
    shuffled = np.random.default_rng(row).permutation(outcomes)
    with threadpool_limits(1):
        limit = least_cost(problem, is_hit)

        def hinted(told: BoolArray) -> Problem:
            return replace(problem, hint=outcome_model(g.space, g.reference, told))

        most, asked = max(BUDGETS) if set(METHODS) == set(methods) else SHORT, None
        stated: list[Line] = []
        curves: dict[str, Curve] = {}
        for method in methods:
            match method:
                case "feasible":
                    curves[method] = searched(g, problem, is_hit, most, row, note=stated)[0]
                case "labels":
                    curves[method] = searched(g, hinted(outcomes), is_hit, SHORT, row, note=stated)[0]
                case "shuffled":
                    curves[method] = searched(g, hinted(shuffled), is_hit, SHORT, row)[0]
                case "scores" if hasattr(g.model, "predict_proba"):
                    curves[method] = searched(g, problem, is_hit, SHORT, row, _odds(g, problem))[0]
                case "nearest":
                    curves[method] = nearest(g, problem, is_hit, most)
                case "settled":
                    curves[method], search = searched(g, problem, is_hit, most, row, strategy=acex.Feasible())
                    asked = len(search.history.queries)
    of = {"data": name, "row": row}
    lines = [
        of
        | {"method": method, "limit": limit, "asked": asked if method == "settled" else None}
        | {f"J{b}": curve[b] if b < len(curve) else None for b in BUDGETS}
        for method, curve in curves.items()
    ]
    return lines, [of | line for line in stated]


def _odds(g: Ground, problem: Problem) -> Callable[[FloatArray], float | None]:
    before = g.predict(problem.factual[None])[0]
    column = list(g.model.classes_).index(before)

    def odds(x: FloatArray) -> float:
        miss = g.model.predict_proba(x[None])[0, column]
        return float(np.log((1 - miss + 1e-6) / (miss + 1e-6)))

    return odds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--data", default=",".join(acex.datasets.PAPER))
    parser.add_argument("--model", default="forest", choices=sorted(MODELS))
    parser.add_argument("--methods", default=",".join(METHODS), help="some of them, up to 60 queries")
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nominal", action="store_true", help="categories without an order, and our scale")
    args = parser.parse_args()
    if args.page:
        print(page())
        return
    which = f"{args.model}{'-nominal' if args.nominal else ''}-{args.seed}.csv"
    path, path_stated = HERE / "results" / f"anytime-{which}", HERE / "results" / f"outlook-{which}"
    if args.measure:
        names = args.data.split(",")
        settings = (args.model, args.nominal, args.seed)
        jobs = [(name, *settings, row, args.methods.split(",")) for row in range(args.rows) for name in names]
        told = joblib.Parallel(n_jobs=-1)(joblib.delayed(measured)(*job) for job in jobs)
        update(path, pd.DataFrame([line for lines, _ in told for line in lines]))
        update(path_stated, pd.DataFrame([line for _, lines in told for line in lines]))
    lines = with_best_known(pd.read_csv(path), is_pinned(path))
    if args.measure and is_pinned(path):
        lower(HERE / "best_known.csv", lines)
    for table in (ratios(lines), behind(lines), by_itself(lines), calibration(lines, pd.read_csv(path_stated))):
        print(table.to_string(index=False), end="\n\n")


def is_pinned(path: Path) -> bool:
    """Does `best_known.csv` hold rows of this file's ground?"""
    return path.name == "anytime-forest-0.csv"


def lower(path: Path, lines: pd.DataFrame) -> None:
    """Write the least costs of these lines into the file of best known ones, which only ever gets lower."""
    new = lines.groupby(["data", "row"])["best"].first().rename_axis(["dataset", "row"]).rename("J")
    both = pd.concat([pd.read_csv(path).set_index(["dataset", "row"])["J"], new])
    both.groupby(level=[0, 1]).min().sort_index().to_csv(path, float_format="%.6g")


def page() -> str:
    """The tables of docs/research.md, "Where it stands", from the committed files."""
    results = HERE / "results"
    parts = []
    for seed in (0, 1):
        path = results / f"anytime-forest-{seed}.csv"
        lines = with_best_known(pd.read_csv(path), is_pinned(path))
        n = int(lines["row"].max()) + 1
        title = f"**Forest, seed {seed}, the first {n} withheld rows**: J over the best known, medians"
        parts += [title, markdown(ratios(lines))]
        parts += ["Behind (>) or ahead (<): mean difference of log J", markdown(behind(lines))]
        if "settled" in set(lines["method"]):
            parts += ["By itself", markdown(by_itself(lines))]
        stated = pd.read_csv(results / f"outlook-forest-{seed}.csv")
        parts += ["The chance of something cheaper, stated and actual", markdown(calibration(lines, stated))]
    title = "**Other models**, 20 rows: medians with labels at 15 / without at 60 queries"
    return "\n\n".join([*parts, title, markdown(other_models(results))])


def other_models(results: Path) -> pd.DataFrame:
    """A line for each data set, a column for each model besides the forest."""
    columns = {}
    for model in sorted(MODELS.keys() - {"forest"}):
        lines = with_best_known(pd.read_csv(results / f"anytime-{model}-0.csv"), has_known=False)
        columns[model] = {
            name: " / ".join(
                f"{np.median(ratio(part[part['method'] == method], b)):.2f}"
                for method, b in (("labels", 15), ("feasible", 60))
            )
            for name, part in lines.groupby("data", sort=False)
        }
    return pd.DataFrame(columns).rename_axis("data").reset_index()


def markdown(table: pd.DataFrame) -> str:
    """The table as Markdown."""
    rows = [list(table.columns), ["---"] * table.shape[1], *table.to_numpy().tolist()]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def with_best_known(lines: pd.DataFrame, has_known: bool) -> pd.DataFrame:
    """The lines of rows that have a counterfactual, with the least J known of each row."""
    J = lines.filter(regex=r"^(J\d+|limit)$").min(axis=1)
    best = J.groupby([lines["data"], lines["row"]]).transform("min")
    if has_known:
        known = pd.read_csv(HERE / "best_known.csv").set_index(["dataset", "row"])["J"]
        best = np.fmin(best, known.reindex(pd.MultiIndex.from_frame(lines[["data", "row"]])).to_numpy())
    kept: pd.DataFrame = lines.assign(best=best)[np.isfinite(best)]
    return kept


def ratio(lines: pd.DataFrame, budget: int) -> FloatArray:
    """J over the best known at a budget, (rows,); infinite where nothing was found."""
    return np.asarray((lines[f"J{budget}"] / lines["best"]).fillna(np.inf))


def ratios(lines: pd.DataFrame) -> pd.DataFrame:
    """The first table."""
    out = []
    for (name, method), part in lines.groupby(["data", "method"], sort=False):
        if method == "settled":
            continue
        line = {"data": name, "method": method, "rows": len(part)}
        for b in BUDGETS:
            if part[f"J{b}"].notna().any():
                found = np.isfinite(ratio(part, b)).mean()
                line[f"@{b}"] = f"{np.median(ratio(part, b)):.2f}" + ("" if found == 1 else f" ({found:.0%})")
        out.append(line)
    return pd.DataFrame(out).fillna("")


def behind(lines: pd.DataFrame) -> pd.DataFrame:
    """The second table."""
    out = []
    for name, part in lines.groupby("data", sort=False):
        of = {method: some.sort_values("row") for method, some in part.groupby("method")}
        for ours, rival in (("feasible", "nearest"), ("shuffled", "feasible")):
            if not {ours, rival} <= of.keys():
                continue
            line = {"data": name, "method": ours, "against": rival}
            both = pd.concat([of[ours], of[rival]])
            for b in [b for b in BUDGETS if both[f"J{b}"].notna().any()] if rival == "nearest" else (15, 30):
                logs = [np.log(np.minimum(ratio(of[m], b), NONE_FOUND)) for m in (ours, rival)]
                apart = logs[0] - logs[1]
                low, high = interval(apart)
                line[f"@{b}"] = f"{apart.mean():+.2f}{'>' if low > 0 else '<' if high < 0 else ''}"
            out.append(line)
    return pd.DataFrame(out).fillna("")


def interval(values: FloatArray) -> tuple[float, float]:
    """The 95% interval of the mean by the bootstrap."""
    chosen = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    low, high = np.percentile(values[chosen].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def by_itself(lines: pd.DataFrame) -> pd.DataFrame:
    """The third table."""
    out = []
    for name, part in lines.groupby("data", sort=False):
        alone, settled = (part[part["method"] == method].sort_values("row") for method in ("feasible", "settled"))
        if settled.empty:
            continue
        lost = ratio(settled, max(BUDGETS)) / ratio(alone, SHORT)
        hits = {f"hit@{b}": f"{np.isfinite(ratio(alone, b)).mean():.0%}" for b in (10, 15)}
        asked = f"{settled['asked'].mean():.1f}"
        out.append({"data": name, **hits, "settled after": asked, "cost over that at 60": f"{np.nanmedian(lost):.3f}"})
    return pd.DataFrame(out)


def calibration(lines: pd.DataFrame, stated: pd.DataFrame) -> pd.DataFrame:
    """The fourth table."""
    best = lines.groupby(["data", "row"])["best"].first().rename("best").reset_index()
    stated = stated.merge(best, on=["data", "row"])
    out = []
    for share in (0.1, 0.25, 0.5):
        told = stated[f"chance{share}"].to_numpy()
        actual = (stated["best"] <= (1 - share) * stated["J"]).to_numpy()
        order = np.argsort(told, kind="stable")
        for part in np.array_split(order, max(min(10, len(order) // 100), 1)):
            low, high = _wilson(int(actual[part].sum()), len(part))
            mean = float(told[part].mean())
            ok = low <= mean <= high or abs(mean - actual[part].mean()) <= 0.1
            cells = {"stated": f"{mean:.2f}", "actual": f"{actual[part].mean():.2f}", "95%": f"{low:.2f} to {high:.2f}"}
            out.append({"cheaper by": f"{share:.0%}", "cases": len(part), **cells, "holds": "yes" if ok else "no"})
    return pd.DataFrame(out)


def _wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% interval of a share."""
    middle, half = (k + z**2 / 2) / (n + z**2), z * np.sqrt(k * (n - k) / n + z**2 / 4) / (n + z**2)
    return middle - half, middle + half


def update(path: Path, lines: pd.DataFrame) -> None:
    """Write these lines into the file, in place of those of the same data sets; the others stay."""
    if path.exists():
        before = pd.read_csv(path)
        lines = pd.concat([before[~before["data"].isin(lines["data"])], lines])
    path.parent.mkdir(exist_ok=True)
    lines.to_csv(path, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
