"""Few changes: the effect of the cost of a category change, and of a fixed cost per change.

    python -m benchmarks run --suite few

Withheld rows of simulated tasks with categories, of the loans of acex and of the penguins of palmerpenguins are
explained with 40 queries and different costs: `per_category=None` (one over the deviation of the one-hot code, as in
the paper), the default (1), `beta=50`, and `per_change=1`. Columns of the table, over the rows for which all of these
found something:

    changes, one    changes of an answer, on average, and the share of answers with a single one
    sd              the sum of an answer's steps, a category counting 1
    category        the median cost J of one change of category, beside J of four steps of 0.3 standard deviations
    missed          of the rows where one change of category alone would be enough (queried afterwards, beyond the
                    budget), those whose answer changes four features or more
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import acex
from acex.arrays import BoolArray, FloatArray
from acex.search.feasible import Feasible
from acex.search.problem import Problem
from acex.search.search import Search
from benchmarks.belief.simulated import VALIDATION, task
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

WAYS = {
    "per_category=None": acex.Cost(per_category=None),
    "default": acex.Cost(),
    "beta=50": acex.Cost(beta=50.0),
    "per_change=1": acex.Cost(per_change=1.0),
}
BUDGET, SMALL, FEW = 40, 0.3, 4
N_WITHHELD = 12  # rows per table
IsHit = Callable[[FloatArray], BoolArray]


def measure(job: Job) -> list[Line]:
    """One row with one cost; a simulated task without categories has no lines."""
    cost = WAYS[job.method]
    if job.data == "simulated":
        return simulated(job.row, cost)
    explainer, rows, codes = explainer_of(job.data)
    problem = explainer.search(rows.iloc[job.row], budget=BUDGET, seed=job.seed, cost=cost).problem
    before = codes(problem.factual[None])[0]
    return [line(problem, lambda X: np.asarray(codes(X) != before), job.seed)]


def simulated(seed: int, cost: acex.Cost) -> list[Line]:
    """The first row of a task."""
    case = task(VALIDATION + seed, n_rows=1)[0]
    p = case.problem
    nominal = p.scale.is_nominal
    if not nominal.any() or nominal.all():
        return []
    return [line(replace(p, cost=cost.function(p.region.space, p.scale, p.factual)), case.is_hit, seed)]


@cache
def explainer_of(name: str) -> tuple[acex.Explainer, pd.DataFrame, Callable[[FloatArray], Any]]:
    """An explainer of a forest, the withheld rows, and the forest as a function of points."""
    if name == "loan":
        loans = acex.datasets.loan()
        rows, outcomes = loans.rows, np.asarray(loans.outcomes)
    else:
        whole = pd.read_csv(str(files("palmerpenguins") / "data/penguins.csv")).dropna()
        rows, outcomes = whole.drop(columns=["species", "year"]), np.asarray(whole["species"])
    space = acex.Space.infer(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    withheld, seen = order[:N_WITHHELD], order[N_WITHHELD:]
    forest = RandomForestClassifier(100, random_state=0).fit(space.encode(rows)[seen], outcomes[seen])

    def model(asked: pd.DataFrame) -> Any:
        return forest.predict(space.encode(asked))

    explainer = acex.Explainer(model, rows.iloc[seen], space=space, share_answers=False)
    return explainer, rows.iloc[withheld], forest.predict


def line(problem: Problem, is_hit: IsHit, seed: int) -> Line:
    """One search, and the size of its answer."""
    search = Search.begin(problem, Feasible(), seed, budget=BUDGET)
    while len(search.history.queries) < BUDGET and (query := search.ask()) is not None:
        search = search.tell(query, bool(is_hit(query.point[None])[0]))
    nominal, weights = problem.scale.is_nominal, problem.cost.weights
    of_category = (problem.cost.per_unit * (1 + problem.cost.beta))[nominal]
    small = SMALL * (np.sqrt(FEW) + problem.cost.beta * FEW)
    charge = (1 + problem.cost.beta) * problem.cost.per_change
    values: Line = {
        "found": search.best is not None,
        "queries": len(search.history.queries),
        "category": float(np.median(of_category)) + charge,
        "small_steps": float(small) + FEW * charge,
        "one_category": bool(_one_category(problem, is_hit)),
    }
    if search.best is not None:
        moved = np.abs(problem.scale.differences(search.best[None], problem.factual)[0])
        changed = search.best != problem.factual
        values |= {
            "changes": int(changed.sum()),
            "categories": int((changed & nominal).sum()),
            "sd": float(np.where(nominal, changed, moved)[weights > 0].sum()),
        }
    return values


def _one_category(problem: Problem, is_hit: IsHit) -> bool:
    """Whether an allowed and plausible hit exists that changes one category only."""
    X = []
    for j in np.flatnonzero(problem.scale.is_nominal & problem.region.movable):
        values = np.asarray(problem.region.values(int(j)))
        alone = np.repeat(problem.factual[None], len(values), axis=0)
        alone[:, j] = values
        X.append(alone[values != problem.factual[j]])
    points = np.vstack(X) if X else np.empty((0, len(problem.factual)))
    points = points[problem.region.contains(points) & problem.plausible(points)] if len(points) else points
    return bool(is_hit(points).any()) if len(points) else False


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """One line per table and cost."""
    everywhere = lines.groupby(["data", "row"])["found"].transform("all")
    out = []
    for (data, way), part in lines[everywhere].groupby(["data", "method"], sort=False):
        enough = part[part["one_category"]]
        means = {name: f"{part[name].mean():.2f}" for name in ("changes", "sd", "queries")}
        out.append(
            {
                "data": data,
                "cost": way,
                "rows": len(part),
                "changes": means["changes"],
                "one": f"{(part['changes'] == 1).mean():.2f}",
                "sd": means["sd"],
                "category": f"{part['category'].median():.2f}",
                "four small": f"{part['small_steps'].median():.2f}",
                "missed": f"{(enough['changes'] >= FEW).sum()} of {len(enough)}",
                "queries": means["queries"],
            }
        )
    return {"costs": Table.of("changes by cost", pd.DataFrame(out)), "changes": changes(lines[everywhere])}


def changes(lines: pd.DataFrame) -> Table:
    """Changes of an answer, and in brackets the sum of its steps, tables by costs."""
    rows = []
    for data, name in {"simulated": "simulated, with categories", "loan": "loans", "penguins": "penguins"}.items():
        parts = [lines[(lines["data"] == data) & (lines["method"] == way)] for way in list(WAYS)[1:]]
        cells = [f"{part['changes'].mean():.1f} ({part['sd'].mean():.1f})" for part in parts]
        rows.append([name, str(len(parts[0])), *cells])
    return Table("changes of an answer", ["table", "rows", "default", "`beta=50`", "`per_change=1`"], rows)


def missing(data: str, method: str) -> str | None:
    """The penguins come with a package."""
    installed = data != "penguins" or find_spec("palmerpenguins")
    return None if installed else "penguins need palmerpenguins: pip install 'acex[tables]'"


def instances(data: str, step: int) -> list[tuple[int, int]]:
    """Tables have fewer rows than there are simulated tasks."""
    return [(step, step)] if data == "simulated" or step < N_WITHHELD else []


DATA = ("simulated", "loan", "penguins")
COLUMNS = ("found", "queries", "category", "small_steps", "one_category", "changes", "categories", "sd")
SUITES = (Suite("few", DATA, tuple(WAYS), COLUMNS, measure, tables, rows=60, instances=instances, missing=missing),)
