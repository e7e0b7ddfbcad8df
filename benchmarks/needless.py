"""How many changes of a counterfactual are not needed?

    python benchmarks/needless.py                            # the table of the committed measurement
    python benchmarks/needless.py --measure                  # measure anew: 500 rows, with 15 and with 60 queries
    python benchmarks/needless.py --measure --data iris,kc2  # these alone; the lines of others are kept
    python benchmarks/needless.py --simulated 300            # simulated tasks, on which the constants were chosen

The paper's eight data sets (with ACEX_DATA) and five tables that ship with PyPI packages: wine, iris, breast cancer and
diabetes (above or below the median) of scikit-learn, and the loans of acex. A random forest, labels only, everything
else as `acex.explain` has it. A change is needless when the row without it is allowed, looks real and has the label
that was wanted; whether it has is asked of the model afterwards, beyond the budget. "not checked" is the share of
changes that the result marks so.

Writes benchmarks/results/needless.csv: a line for each row and budget.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from simulated import VALIDATION, task
from sklearn import datasets as tables
from sklearn.ensemble import RandomForestClassifier

import acex
from acex.search.search import Search

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "needless.csv"
GROUND = ("diabetes", "breast", "kc2", "blood", "german_credit", "cmc", "nursery", "tic_tac_toe")
TABLES = ("wine", "iris", "breast_cancer", "progression", "loan")
BUDGETS = (15, 60)
ROWS = {**dict.fromkeys(GROUND, 40), **dict.fromkeys(TABLES, 36)}  # 500 in all


def table(name: str) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """The rows of a table, as a user has them, and their outcomes."""
    if name in GROUND or name == "loan":
        known = acex.datasets.load(name)
        return known.rows, np.asarray(known.outcomes)
    loaders = {
        "wine": tables.load_wine,
        "iris": tables.load_iris,
        "breast_cancer": tables.load_breast_cancer,
        "progression": tables.load_diabetes,
    }
    rows, outcome = loaders[name](return_X_y=True, as_frame=True)
    return rows, np.asarray(outcome > outcome.median() if name == "progression" else outcome)


def explained(name: str, budget: int) -> list[dict[str, Any]]:
    """A line for each row of a table."""
    rows, outcomes = table(name)
    space = acex.Space.infer(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    withheld, known = order[: ROWS[name]], order[ROWS[name] :][:2000]
    codes = space.encode(rows)
    forest = RandomForestClassifier(100, random_state=0).fit(codes[known], outcomes[known])

    def model(asked: pd.DataFrame) -> Any:
        return forest.predict(space.encode(asked))

    explainer = acex.Explainer(model, rows.iloc[known], space=space, pool=False)
    lines = []
    for seed, i in enumerate(withheld):
        session = explainer.search(rows.iloc[i], budget=budget, seed=seed)
        e = session.run()
        line = {"data": name, "row": int(i), "budget": budget, "outcome": e.outcome, "queries": e.n_queries}
        if e.outcome == "found":
            x, best = (e.space.encode(row)[0] for row in (e.factual, e.counterfactual))
            changed = np.flatnonzero(best != x)
            undone = np.repeat(best[None], len(changed), axis=0)
            undone[np.arange(len(changed)), changed] = x[changed]
            still = model(e.space.decode(undone)) != e.label_before
            possible = session.problem.region.contains(undone) & session.problem.plausible(undone)
            marks = dict(zip(e.changes["feature"], e.changes["needed"], strict=True))
            line |= {
                "changes": len(changed),
                "needless": int((still & possible).sum()),
                "not_checked": sum(mark == "not checked" for mark in marks.values()),
                # A mark that says "needed" for a change that is not would be a lie.
                "wrong": sum(
                    bool(s and p) and marks[e.space.names[j]] != "not checked"
                    for s, p, j in zip(still, possible, changed, strict=True)
                ),
                "smallest": float(np.abs(e.changes["step"]).min()),
                "cost": e.costs[0],
            }
        lines.append(line)
    return lines


def simulated(seed: int, budget: int) -> list[dict[str, Any]]:
    """A line for the first row of a simulated task."""
    lines = []
    for row, case in enumerate(task(VALIDATION + seed, n_rows=1)):
        search = Search.begin(case.problem, acex.Feasible(), seed, budget=budget)
        while len(search.history.queries) < budget and (query := search.ask()) is not None:
            search = search.tell(query, bool(case.is_hit(query.point[None])[0]))
        line = {"data": f"task {seed}", "row": row, "budget": budget, "queries": len(search.history.queries)}
        if search.best is None:
            lines.append({**line, "outcome": "unlikely"})
            continue
        undone, p = search.reverts, case.problem
        still = case.is_hit(undone.X) & p.region.contains(undone.X) & p.plausible(undone.X)
        steps = np.abs(p.scale.differences(search.best[None], p.factual)[0])
        lines.append(
            line
            | {
                "outcome": "found",
                "changes": len(undone.X),
                "needless": int(still.sum()),
                "not_checked": int(undone.open.sum()),
                "wrong": int((still & ~undone.open).sum()),
                "smallest": float(steps[undone.features].min()),
            }
        )
    return lines


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """A line for each table and budget, and for all of them together."""
    found = results[results["outcome"] == "found"]
    whole = found.assign(data=np.where(found["data"].isin(GROUND), "the ground", "five tables"))
    groups = pd.concat([found, whole, found.assign(data="all")]).groupby(["budget", "data"], sort=False)
    sums = groups[["changes", "needless", "not_checked", "wrong"]].sum().astype(int)
    sums.insert(0, "rows", groups.size())
    for name in ("needless", "not_checked"):
        sums[f"{name} %"] = (100 * sums[name] / sums["changes"]).round(1)
    return sums.assign(smallest=groups["smallest"].min().round(3)).reset_index().sort_values("budget", kind="stable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure anew")
    parser.add_argument("--simulated", type=int, help="so many simulated tasks instead; nothing is written")
    parser.add_argument("--data", default=",".join((*GROUND, *TABLES)))
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    if args.simulated:
        jobs = [(seed, int(budget)) for budget in args.budgets.split(",") for seed in range(args.simulated)]
        told = joblib.Parallel(n_jobs=args.jobs)(joblib.delayed(simulated)(*job) for job in jobs)
        lines = pd.DataFrame([line for lines in told for line in lines])
        told_of = summary(lines.assign(data="simulated"))
        print(told_of[told_of["data"] == "simulated"].to_string(index=False))
        return
    if args.measure:
        jobs = [(name, int(budget)) for name in args.data.split(",") for budget in args.budgets.split(",")]
        told = joblib.Parallel(n_jobs=args.jobs)(joblib.delayed(explained)(*job) for job in jobs)
        new = pd.DataFrame([line for lines in told for line in lines])
        kept = pd.read_csv(RESULTS) if RESULTS.exists() else new[:0]
        again = pd.MultiIndex.from_frame(kept[["data", "budget"]]).isin(jobs)
        pd.concat([kept[~again], new]).to_csv(RESULTS, index=False, float_format="%.6g")
    print(summary(pd.read_csv(RESULTS)).to_string(index=False))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
