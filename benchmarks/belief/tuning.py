"""Strategy "feasible" on simulated tasks that its belief was not trained on: where constants of the search are chosen.

    python -m benchmarks tune                                          # as it is
    python -m benchmarks tune --set PATIENCE=0.1 --set MORE_PATIENCE=1 --help-kinds none,shuffled

For each kind of help: J over the best known after so many queries, as a geometric mean (none found counts as 50) and as
a median; the share of rows without a hit; seconds of a search. Best known is the least of all runs of the command and
of a search with 40,000 queries. The tasks are those of validation; `--test` takes those that nothing was chosen on.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from acex.arrays import FloatArray
from acex.search import feasible
from acex.search.feasible import Feasible
from acex.search.problem import Stop
from benchmarks.belief.learn import begun, helped
from benchmarks.belief.simulated import TEST, VALIDATION, Case, least_cost, task

BUDGETS = (10, 15, 20, 30, 40, 60)
NONE = 50.0  # the ratio that stands for no hit
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
    """For each kind of help, with the constants as they are and as changed: ratios to the best known, and seconds."""
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m benchmarks tune`."""
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--help-kinds", default="none,outcomes,shuffled,learnt,scores")
    parser.add_argument("--set", action="append", default=[], help="a constant of search/feasible.py: PATIENCE=0.1")
    parser.add_argument("--test", action="store_true", help="tasks that nothing was chosen on")


def main(args: argparse.Namespace) -> None:
    """Print a line for each kind of help."""
    changed = {name: float(value) for name, value in (pair.split("=") for pair in args.set)}
    first = TEST if args.test else VALIDATION
    work = partial(ratios_of_task, kinds=args.help_kinds.split(","), changed=changed)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
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
