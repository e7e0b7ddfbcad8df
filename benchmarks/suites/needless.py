"""The number of unneeded changes of a counterfactual, with 15 and with 60 queries.

    python -m benchmarks run --suite needless

Data: the paper's eight data sets (with ACEX_DATA), four tables of scikit-learn and the loans of acex. Model: a random
forest, labels only, with the defaults of `acex.explain`. A change is needless if the row without it is allowed,
plausible and still has the target's label, which is queried afterwards, in addition to the budget.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as sklearn_tables
from sklearn.ensemble import RandomForestClassifier

import acex
from benchmarks.published import PAPER, load
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

OTHERS = {
    "wine": sklearn_tables.load_wine,
    "iris": sklearn_tables.load_iris,
    "breast_cancer": sklearn_tables.load_breast_cancer,
    "progression": sklearn_tables.load_diabetes,  # above or below the median
}
N_ROWS = {**dict.fromkeys(PAPER, 40), **dict.fromkeys((*OTHERS, "loan"), 36)}  # 500 in all


@cache
def forest_of(name: str) -> tuple[Any, pd.DataFrame, pd.DataFrame, acex.Space]:
    """A forest as a model, the rows it was trained on, the withheld rows, and the space of all rows."""
    if name in OTHERS:
        rows, outcome = OTHERS[name](return_X_y=True, as_frame=True)
        outcomes = np.asarray(outcome > outcome.median() if name == "progression" else outcome)
    else:
        data = load(name)
        rows, outcomes = data.rows, np.asarray(data.outcomes)
    space = acex.Space.infer(rows)
    order = np.random.default_rng(0).permutation(len(rows))
    withheld, known = order[: N_ROWS[name]], order[N_ROWS[name] :][:2000]
    forest = RandomForestClassifier(100, random_state=0).fit(space.encode(rows)[known], outcomes[known])

    def model(asked: pd.DataFrame) -> Any:
        return forest.predict(space.encode(asked))

    return model, rows.iloc[known], rows.iloc[withheld], space


def measure(job: Job) -> list[Line]:
    """The changes of one counterfactual, by an explainer that knows no answers to other rows."""
    model, known, withheld, space = forest_of(job.data)
    explainer = acex.Explainer(model, known, space=space)
    session = explainer.search(withheld.iloc[job.row], budget=int(job.method), seed=job.seed)
    e = session.run()
    line: Line = {"outcome": e.outcome, "queries": e.n_queries}
    if e.outcome != "found":
        return [line]
    x, best = (space.encode(row)[0] for row in (e.factual, e.counterfactual))
    changed = np.flatnonzero(best != x)
    reverted = np.repeat(best[None], len(changed), axis=0)
    reverted[np.arange(len(changed)), changed] = x[changed]
    possible = session.problem.region.contains(reverted) & session.problem.plausible(reverted)
    needless = (model(space.decode(reverted)) != e.label_before) & possible
    marks = dict(zip(e.changes["feature"], e.changes["needed"], strict=True))
    marked = np.array([marks[space.names[j]] != "not checked" for j in changed])
    return [
        line
        | {
            "changes": len(changed),
            "needless": int(needless.sum()),
            "not_checked": int((~marked).sum()),
            "wrong": int((needless & marked).sum()),  # marked as needed, but needless
            "smallest": float(np.abs(e.changes["step"]).min()),
            "cost": e.costs[0],
        }
    ]


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """One line per budget, and one per budget and table."""
    found = lines[lines["outcome"] == "found"]
    groups = pd.concat([found.assign(data="all"), found]).groupby(["method", "data"], sort=False)
    sums = groups[["changes", "needless", "not_checked", "wrong"]].sum().astype(int)
    sums.insert(0, "rows", groups.size())
    sums["needless, %"] = (100 * sums["needless"] / sums["changes"]).round(1)
    return {"sums": Table.of("needless changes", sums.reset_index().rename(columns={"method": "queries"}))}


def instances(data: str, step: int) -> list[tuple[int, int]]:
    """The first `N_ROWS` rows of a table, each with its position as the seed."""
    return [(step, step)] if step < N_ROWS[data] else []


COLUMNS = ("outcome", "queries", "changes", "needless", "not_checked", "wrong", "smallest", "cost")
SUITES = (Suite("needless", tuple(N_ROWS), ("15", "60"), COLUMNS, measure, tables, rows=40, instances=instances),)
