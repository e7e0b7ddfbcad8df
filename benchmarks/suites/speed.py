"""CPU time of one `ask` over that of one fit of scikit-learn's Gaussian-process classifier on the same evidence.

    python -m benchmarks run --suite speed
    python -m benchmarks run --suite overhead    # of `Explainer.explain`, outside model and search, over the search

Searches of up to 60 points on the paper's data sets and on simulated tables of 90 columns ("wide"); calls that need no
surrogate, for initial points and polishing, are left out. Both are timed one after the other with BLAS on one thread,
so that other load on the machine has little influence.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import acex
from acex.search.problem import Problem
from acex.search.search import Search
from acex.search.strategy import Strategy
from benchmarks.belief.simulated import VALIDATION, Kind, task
from benchmarks.problems import IsHit, problems
from benchmarks.published import PAPER, load
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

N_ROWS, N_POINTS = 5, 60
STRATEGIES: dict[str, Strategy] = {"penalty": acex.Penalty(), "feasible": acex.Feasible(effort="spend")}
WIDE = "wide"
LIMITS = {  # 3 elsewhere
    "penalty": {"diabetes": 1, "kc2": 1, "blood": 1},
    "feasible": dict.fromkeys(PAPER, 1) | {WIDE: 2},
}


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def scikit_learn_fit(search: Search) -> float:
    """Seconds of one optimised fit on the evidence of this search."""
    Z, t = search.problem.scale.coordinates(search.history.X), search.history.is_hit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seconds(lambda: GaussianProcessClassifier(ConstantKernel() * Matern(nu=2.5)).fit(Z, t))


def rows_of(data: str) -> Iterator[tuple[Problem, IsHit]]:
    """A few rows to explain."""
    for row in range(N_ROWS):
        if data == WIDE:
            case = task(VALIDATION + row, 1, Kind((90, 90)))[0]
            yield case.problem, case.is_hit
        else:
            yield problems(data).of(row), problems(data).is_hit(row)


def measure(job: Job) -> list[Line]:
    """Medians over the calls of `ask` in a few searches that need the surrogate."""
    pairs = []
    for problem, is_hit in rows_of(job.data):
        search = Search.begin(problem, STRATEGIES[job.method])
        while len(search.history.queries) < N_POINTS:
            took = seconds(search.ask)
            query = search.ask()
            if query is None:
                break
            if query.purpose not in ("initial", "polish") and search.history.is_hit.any():
                pairs.append((took, scikit_learn_fit(search)))
            search = search.tell(query, bool(is_hit(query.point[None])[0]))
    ask, fit = np.median(pairs, axis=0)
    return [{"ask_ms": 1e3 * ask, "fit_ms": 1e3 * fit, "ratio": np.median([a / f for a, f in pairs])}]


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The ratio and its limit."""
    shown = lines[["data", "method", "ask_ms", "fit_ms", "ratio"]]
    limits = [LIMITS[method].get(data, 3) for data, method in zip(lines["data"], lines["method"], strict=True)]
    return {"asks": Table.of("one ask over one fit", shown.assign(limit=limits))}


BATCH, N_BATCH = "batch", 400
# Rows sent, and the largest ratio aimed at.
BUDGETS = {"budget 4": (4, 1.0), "budget 15": (15, 0.5), "budget 60": (60, 0.5), BATCH: (4, 1.0)}


def overhead(job: Job) -> list[Line]:
    """CPU time of explanations outside the model and `next_query`, over that of `next_query`; set-up is left out.

    For a batch in one process without a ledger, over that of model and `next_query` together.
    """
    spent = {"search": 0.0, "model": 0.0}

    def timed(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return work(*args, **options)
            finally:
                spent[what] += time.thread_time() - start

        return run

    data = load(job.data)
    forest = RandomForestClassifier(50, random_state=0).fit(data.codes, data.outcomes)
    model = timed("model", lambda rows: forest.predict(data.space.encode(rows)))
    explainer = acex.Explainer(model, data.rows, space=data.space)
    rows, budget = data.rows[forest.predict(data.codes) != data.target], BUDGETS[job.method][0]
    is_batch, n = job.method == BATCH, N_BATCH if job.method == BATCH else N_ROWS
    explainer.explain(rows.iloc[N_ROWS], target=data.target, budget=budget)  # load everything that is loaded once
    with patch.object(acex.Feasible, "next_query", timed("search", acex.Feasible.next_query)):
        spent.update(search=0.0, model=0.0)
        start = time.thread_time()
        if is_batch:
            many = pd.concat([rows, data.rows.drop(rows.index)]).head(n)
            for _ in explainer.explain_many(many, target=data.target, budget=budget, n_jobs=1, progress=False):
                pass
        else:
            for row in range(n):
                explainer.explain(rows.iloc[row], target=data.target, budget=budget)
        total = time.thread_time() - start
    rest = total - spent["search"] - spent["model"]
    ratio = rest / (spent["search"] + (spent["model"] if is_batch else 0.0))
    return [{"search_ms": 1e3 * spent["search"] / n, "rest_ms": 1e3 * rest / n, "ratio": ratio}]


def overhead_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The ratio and the one aimed at."""
    shown = lines[["data", "method", "search_ms", "rest_ms", "ratio"]]
    return {"overhead": Table.of("overhead", shown.assign(wanted=[BUDGETS[method][1] for method in lines["method"]]))}


SUITES = (
    Suite("speed", (*PAPER, WIDE), tuple(STRATEGIES), ("ask_ms", "fit_ms", "ratio"), measure, tables, parallel=False),
    Suite(
        "overhead",
        ("loan", "german_credit"),
        tuple(BUDGETS),
        ("search_ms", "rest_ms", "ratio"),
        overhead,
        overhead_tables,
        parallel=False,
    ),
)
