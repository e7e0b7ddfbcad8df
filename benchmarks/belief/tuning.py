"""Run strategy "feasible" on simulated tasks that its belief was not trained on, to choose constants of the search.

    python -m benchmarks tune                                          # as it is
    python -m benchmarks tune --set PATIENCE=0.1 --set MORE_PATIENCE=1 --help-kinds none,shuffled
    python -m benchmarks tune --tolerances 0.05,0.02                   # what stopping early costs
    python -m benchmarks tune --tolerances 0.05 --columns 60,150       # the same on wide tables

For each kind of help: J over the best known at several numbers of queries, as a geometric mean (50 if none was found)
and as a median; the share of rows without a hit; seconds per search. Best known is the least of all runs of the command
and of a search with 40,000 queries. The tasks are those for validation; `--test` uses tasks not used for any choice.

With `--tolerances`: for each of them, how much more the answer costs than with the whole budget of 60 (mean log ratio
over the rows with a hit), how many rows cost at least 20% more, the mean number of queries, the share of rows with more
than four changes, and the share of rows for which a short answer was found in addition to such a long one.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from acex.arrays import FloatArray
from acex.search import feasible
from acex.search.feasible import Feasible
from acex.search.problem import Query, Stop, key
from acex.search.search import Search
from benchmarks.belief.learn import Odds, begun, helped
from benchmarks.belief.simulated import TEST, VALIDATION, Case, Kind, least_cost, task

BUDGETS = (10, 15, 20, 30, 40, 60)
NONE = 50.0  # the ratio if there is no hit
Settings = dict[str, float]


def curve(case: Case, help_: str, seed: int, n: int = max(BUDGETS)) -> FloatArray:
    """The best cost after 0, 1, ..., n queries, (n + 1,); infinite before the first hit."""
    problem, known, odds = helped(case, help_, np.random.default_rng([9, seed]))
    history, strategy, out = begun(problem, known, odds), Feasible(effort="spend"), np.full(n + 1, np.inf)
    while len(history.queries) < n:
        query = strategy.next_query(problem, history, seed=seed)
        if isinstance(query, Stop):
            break
        hit = bool(case.is_hit(query.point[None])[0])
        history = history.with_answer(query, hit, odds(query.point) if odds else None)
        if hit and problem.plausible(query.point[None])[0]:
            asked = len(history.queries)
            out[asked:] = np.minimum(out[asked:], problem.cost(query.point[None])[0])
    return out


def ratios_of_task(seed: int, kinds: list[str], changed: Settings) -> list[tuple[str, str, FloatArray, float]]:
    """For each kind of help, with current and with changed constants: ratios to the best known, and seconds."""
    threadpool_limits(1)
    as_it_is = {name: getattr(feasible, name) for name in changed}
    runs = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = task(seed, 1)[0]
        least = least_cost(case)
        for label, settings in [("as it is", as_it_is), *([("changed", changed)] if changed else [])]:
            for name, value in settings.items():
                setattr(feasible, name, value)
            for help_ in kinds:
                start = time.process_time()
                runs.append((help_, label, curve(case, help_, seed), time.process_time() - start))
    least = min(least, *(c[-1] for _, _, c, _ in runs))
    return [(h, label, np.minimum(c / least, NONE), s) for h, label, c, s in runs] if 0 < least < np.inf else []


def stopped_early(
    seed: int, kinds: list[str], tolerances: list[float], columns: tuple[int, int] | None
) -> list[tuple[str, float, float, int, bool, bool]]:
    """For each kind of help and tolerance (0: the whole budget): the cost found, the number of queries, and whether the
    answer is long and a short one was found.

    Until it stops, a search sends the same queries as one with the whole budget, so each continues from a prefix of it.
    """
    threadpool_limits(1)
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = task(seed, 1, Kind(columns))[0]
        for help_ in kinds:
            problem, known, odds = helped(case, help_, np.random.default_rng([9, seed]))
            search = Search(problem, Feasible(effort="spend"), seed, begun(problem, known, odds), budget=max(BUDGETS))
            started: dict[float, Search] = {}
            waiting = sorted(tolerances)  # the largest tolerance stops first
            while True:
                query = search.ask()
                while waiting:
                    early = replace(search, strategy=Feasible(tolerance=waiting[-1]), offers_short=True)
                    next_ = early.propose(1)
                    if query is not None and next_ and key(query.point) == key(next_[0].point):
                        break
                    started[waiting.pop()] = early
                if query is None or len(search.history.queries) >= max(BUDGETS):
                    break
                search = _answered(search, query, case, odds)
            runs = {0.0: search} | {t: started.get(t, search) for t in tolerances}
            for tolerance, run in runs.items():
                while len(run.history.queries) < max(BUDGETS) and (queries := run.propose(1)):
                    run = _answered(run, queries[0], case, odds)
                cost = np.inf if run.best is None else float(problem.cost(run.best[None])[0])
                has_short = run.is_long and len(run.short().counterfactuals) > 0
                lines.append((help_, tolerance, cost, len(run.history.queries), run.is_long, has_short))
    return lines


def _answered(search: Search, query: Query, case: Case, odds: Odds) -> Search:
    return search.tell(query, bool(case.is_hit(query.point[None])[0]), odds(query.point) if odds else None)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m benchmarks tune`."""
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--help-kinds", default="none,outcomes,shuffled,learnt,scores")
    parser.add_argument("--set", action="append", default=[], help="a constant of search/feasible.py: PATIENCE=0.1")
    parser.add_argument("--tolerances", default="", help="compare stopping early with spending the budget: 0.05,0.02")
    parser.add_argument("--columns", default="", help="with --tolerances: least and largest number of columns: 60,150")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--test", action="store_true", help="tasks that nothing was chosen on")


def main(args: argparse.Namespace) -> None:
    """Print one line per kind of help."""
    changed = {name: float(value) for name, value in (pair.split("=") for pair in args.set)}
    first = TEST if args.test else VALIDATION
    if args.tolerances:
        _print_stopping(args, range(first, first + args.tasks))
        return
    work = partial(ratios_of_task, kinds=args.help_kinds.split(","), changed=changed)
    with ProcessPoolExecutor(args.processes) as pool:
        runs = [line for lines in pool.map(work, range(first, first + args.tasks)) for line in lines]
    lines = []
    for help_, label in dict.fromkeys((h, label) for h, label, _, _ in runs):
        chosen = [(r, s) for h, which, r, s in runs if (h, which) == (help_, label)]
        R = np.array([r for r, _ in chosen])
        cells = {f"@{b}": f"{np.exp(np.log(R[:, b]).mean()):.2f} ({np.median(R[:, b]):.2f})" for b in BUDGETS}
        none = " / ".join(f"{(R[:, b] >= NONE).mean():.0%}" for b in BUDGETS)
        seconds = f"{np.mean([s for _, s in chosen]):.2f}"
        lines.append({"help": help_, "": label, "rows": len(R), **cells, "no hit": none, "s": seconds})
    print(pd.DataFrame(lines).to_string(index=False))


def _print_stopping(args: argparse.Namespace, seeds: range) -> None:
    tolerances = [float(text) for text in args.tolerances.split(",")]
    least, most = map(int, args.columns.split(",")) if args.columns else (0, 0)
    columns = (least, most) if most else None
    work = partial(stopped_early, kinds=args.help_kinds.split(","), tolerances=tolerances, columns=columns)
    runs = []
    with ProcessPoolExecutor(args.processes) as pool:
        for n, lines in enumerate(pool.map(work, seeds), 1):
            runs += [(n, *line) for line in lines]
            if n % 10 == 0 or n == len(seeds):
                print(f"{n} tasks\n{_stopping_table(runs).to_string(index=False)}", flush=True)


def _stopping_table(runs: list[tuple[int, str, float, float, int, bool, bool]]) -> pd.DataFrame:
    frame = pd.DataFrame(runs, columns=["task", "help", "tolerance", "cost", "queries", "long", "short"])
    whole = frame[frame["tolerance"] == 0].set_index(["task", "help"])["cost"].rename("whole")
    frame = frame.join(whole, on=["task", "help"]).query("whole < inf and cost < inf")
    frame["more"] = np.log(frame["cost"] / frame["whole"])
    frame["much more"] = frame["more"] > np.log(1.2)
    by = frame.groupby(["help", "tolerance"], sort=False)
    columns = ("more", "much more", "queries", "long", "short")
    return pd.concat(
        [by.size().rename("rows"), *(by[column].mean().round(3) for column in columns)], axis=1
    ).reset_index()
