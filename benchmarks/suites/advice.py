"""When an explanation should remark that it is long or can be improved: `FEW_CHANGES` and `HIGH_ODDS`.

    python -m benchmarks run --suite advice

One row of each simulated validation task (`benchmarks.belief.simulated`) is searched with a budget of 60, with or
without known outcomes. Columns of a raw line:

    features, changes    number of features of the table, and of changes of the answer
    odds                 the stated probability that a counterfactual at half the cost exists
    cost, best           cost of the answer, and the least cost known, from it or a search with 40,000 queries
    shortest             the fewest changes of a known hit within the rules, plausible or not, from up to 40,000 queries
                         for each number of changes
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

from acex.search.feasible import Feasible
from acex.search.search import Search
from acex.space.cost import n_changed
from benchmarks.belief.learn import begun, helped
from benchmarks.belief.simulated import VALIDATION, least_cost, task
from benchmarks.problems import least_cost as least_cost_of
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table, number

BUDGET = 60
CHANGES = range(2, 8)  # values of FEW_CHANGES that are compared
ODDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)  # values of HIGH_ODDS that are compared


def measure(job: Job) -> list[Line]:
    """One search, compared with a long one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = task(VALIDATION + job.row, 1)[0]
        problem, known, odds = helped(case, job.method, np.random.default_rng([9, job.row]))
        search = Search(problem, Feasible(), job.seed, begun(problem, known, odds), budget=BUDGET)
        while len(search.history.queries) < BUDGET and (query := search.ask()) is not None:
            search = search.tell(query, bool(case.is_hit(query.point[None])[0]))
        if search.best is None:
            return [{"outcome": "none"}]
        cost = float(problem.cost(search.best[None])[0])
        changes = shortest = int(n_changed(search.best[None], problem.factual)[0])
        for most in range(1, min(changes, CHANGES.stop)):
            short = replace(problem, region=replace(problem.region, max_changes=most), density=None)
            if np.isfinite(least_cost_of(short, case.is_hit, rounds=12, n=2500, best_of=200)):
                shortest = most
                break
        return [
            {
                "outcome": "found",
                "features": len(problem.factual),
                "changes": changes,
                "odds": search.improvement_odds[-1],
                "cost": cost,
                "best": min(cost, least_cost(case)),
                "shortest": shortest,
            }
        ]


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The consequences of each value of both constants."""
    found = lines[lines["outcome"] == "found"]
    is_far = found["best"] <= found["cost"] / 2
    long, high = [], []
    for most in CHANGES:
        is_long = found["changes"] > most
        long.append(
            {
                "more changes than": most,
                "answers": is_long.sum(),
                "a hit with at most so many exists": share(found["shortest"][is_long] <= most),
                "one at half the cost exists": share(is_far[is_long]),
            }
        )
    for odds, following in zip(ODDS, (*ODDS[1:], 1.01), strict=True):
        warned = found["odds"] >= odds
        high.append(
            {
                "stated chance at least": f"{odds:.0%}",
                "answers": warned.sum(),
                "one at half the cost exists": share(is_far[warned]),
                "of these below the next line": share(is_far[warned & (found["odds"] < following)]),
                "of all such answers": share(warned[is_far]),
            }
        )
    return {
        "changes": Table.of("answers with many changes", pd.DataFrame(long)),
        "odds": Table.of("answers that may be improved", pd.DataFrame(high)),
    }


def share(which: pd.Series[bool]) -> str:
    """The share of these that is true, in percent and as counts."""
    return f"{number(100 * which.mean(), 0)}% ({which.sum()} of {len(which)})" if len(which) else "–"


COLUMNS = ("outcome", "features", "changes", "odds", "cost", "best", "shortest")
SUITES = (Suite("advice", ("validation",), ("none", "outcomes"), COLUMNS, measure, tables, 300),)
