"""Few changes: what a category counts, and what a charge for every change does.

    python benchmarks/few.py                 # the table of the committed measurement
    python benchmarks/few.py --measure       # measure anew

Withheld rows of simulated tasks that have categories, of the loans of acex and of the penguins of palmerpenguins are
explained with 40 queries by different costs: `category_cost=None` (one over the deviation of the one-hot code, as in
the paper), the default (1), `beta=50`, and `change_cost=1`, the fewest first. Told for each, over the rows where all
of them found something:

    changes, one    changes of an answer, on average, and the share of answers with a single one
    sd              the sum of an answer's steps, a category counting 1: what fewer changes cost
    category        the median cost J of one change of category, beside J of four steps of 0.3 standard deviations
    missed          of the rows where one change of category alone would do (asked of the model afterwards, beyond the
                    budget), those whose answer changes four features or more

Writes benchmarks/results/few.csv: a line for each row and cost.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from simulated import VALIDATION, task
from sklearn.ensemble import RandomForestClassifier

import acex
from acex.arrays import BoolArray, FloatArray
from acex.search.feasible import Feasible
from acex.search.problem import Problem
from acex.search.search import Search
from acex.space.cost import CostFunction

RESULTS = Path(__file__).parent / "results" / "few.csv"
WAYS: dict[str, dict[str, Any]] = {
    "category_cost=None": {"category_cost": None},
    "default": {},
    "beta=50": {"beta": 50.0},
    "change_cost=1": {"change_cost": 1.0},
}
BUDGET, SMALL, FEW = 40, 0.3, 4
TABLES = ("loan", "penguins")
Line = dict[str, Any]
IsHit = Callable[[FloatArray], BoolArray]


def line(problem: Problem, is_hit: IsHit, seed: int) -> Line:
    """One search, and what its answer is like."""
    search = Search.begin(problem, Feasible(), seed, budget=BUDGET)
    while len(search.history.queries) < BUDGET and (query := search.ask()) is not None:
        search = search.tell(query, bool(is_hit(query.point[None])[0]))
    nominal, weights = problem.scale.is_nominal, problem.cost.weights
    of_category = (problem.cost.per_unit * (1 + problem.cost.beta))[nominal]
    crumbs = SMALL * (np.sqrt(FEW) + problem.cost.beta * FEW)
    charge = (1 + problem.cost.beta) * problem.cost.per_change
    told: Line = {
        "found": search.best is not None,
        "queries": len(search.history.queries),
        "category": float(np.median(of_category)) + charge,
        "crumbs": float(crumbs) + FEW * charge,
        "one_category": bool(_one_category(problem, is_hit)),
    }
    if search.best is not None:
        moved = np.abs(problem.scale.differences(search.best[None], problem.factual)[0])
        changed = search.best != problem.factual
        told |= {
            "changes": int(changed.sum()),
            "categories": int((changed & nominal).sum()),
            "sd": float(np.where(nominal, changed, moved)[weights > 0].sum()),
        }
    return told


def _one_category(problem: Problem, is_hit: IsHit) -> bool:
    """Is there a hit that changes one category and nothing else, is allowed and looks real?"""
    X = []
    for j in np.flatnonzero(problem.scale.is_nominal & problem.region.movable):
        values = np.asarray(problem.region.values(int(j)))
        alone = np.repeat(problem.factual[None], len(values), axis=0)
        alone[:, j] = values
        X.append(alone[values != problem.factual[j]])
    points = np.vstack(X) if X else np.empty((0, len(problem.factual)))
    points = points[problem.region.contains(points) & problem.plausible(points)] if len(points) else points
    return bool(is_hit(points).any()) if len(points) else False


def simulated(seed: int) -> list[Line]:
    """The first row of a task by all costs; nothing for a task without categories."""
    lines = []
    for case in task(VALIDATION + seed, n_rows=1):
        p = case.problem
        nominal = p.scale.is_nominal
        if not nominal.any() or nominal.all():
            continue
        for way, said in WAYS.items():
            category = said.get("category_cost", 1.0)
            # The task has the paper's weights; those of `Reference.problem` besides.
            weights = p.cost.weights if category is None else np.where(nominal, p.scale.deviations, 1) * p.cost.weights
            cost = CostFunction(p.scale, p.factual, weights, said.get("beta", 5.0), said.get("change_cost", 0.0))
            told = line(replace(p, cost=cost), case.is_hit, seed)
            lines.append({"data": "simulated", "row": seed, "way": way, **told})
    return lines


def table(name: str, n_rows: int) -> Iterator[Line]:
    """Withheld rows of a table by all costs."""
    if name == "loan":
        known = acex.datasets.load("loan")
        rows, outcomes = known.rows, np.asarray(known.outcomes)
    else:
        whole = pd.read_csv(str(files("palmerpenguins") / "data/penguins.csv")).dropna()
        rows, outcomes = whole.drop(columns=["species", "year"]), np.asarray(whole["species"])
    space = acex.Space.infer(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    withheld, seen = order[:n_rows], order[n_rows:]
    forest = RandomForestClassifier(100, random_state=0).fit(space.encode(rows)[seen], outcomes[seen])

    def model(asked: pd.DataFrame) -> Any:
        return forest.predict(space.encode(asked))

    explainer = acex.Explainer(model, rows.iloc[seen], space=space, pool=False)
    for seed, i in enumerate(withheld):
        for way, said in WAYS.items():
            problem = explainer.search(rows.iloc[i], budget=BUDGET, seed=seed, **said).problem
            before = forest.predict(problem.factual[None])[0]

            def is_hit(X: FloatArray, before: Any = before) -> BoolArray:
                return np.asarray(forest.predict(X) != before)

            yield {"data": name, "row": int(i), "way": way, **line(problem, is_hit, seed)}


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """A line for each table and cost."""
    everywhere = results.groupby(["data", "row"])["found"].transform("all")
    out = []
    for (data, way), part in results[everywhere].groupby(["data", "way"], sort=False):
        would_do = part[part["one_category"]]
        out.append(
            {
                "data": data,
                "cost": way,
                "rows": len(part),
                "changes": part["changes"].mean(),
                "one": (part["changes"] == 1).mean(),
                "sd": part["sd"].mean(),
                "category": part["category"].median(),
                "four small": part["crumbs"].median(),
                "missed": f"{(would_do['changes'] >= FEW).sum()} of {len(would_do)}",
                "queries": part["queries"].mean(),
            }
        )
    return pd.DataFrame(out).round(2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure anew")
    parser.add_argument("--tasks", type=int, default=60, help="simulated ones; a third has categories")
    parser.add_argument("--rows", type=int, default=12, help="of each table")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    if args.measure:
        made = joblib.Parallel(n_jobs=args.jobs)(joblib.delayed(simulated)(seed) for seed in range(args.tasks))
        told = [one for lines in made for one in lines]
        for name in TABLES:
            told += table(name, args.rows)
        pd.DataFrame(told).to_csv(RESULTS, index=False, float_format="%.6g")
    print(summary(pd.read_csv(RESULTS)).to_string(index=False))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
