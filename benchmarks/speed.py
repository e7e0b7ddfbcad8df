"""What one `ask` costs, as a ratio to one fit of scikit-learn's Gaussian-process classifier on the same evidence.

    python benchmarks/speed.py
    python benchmarks/speed.py --first     # what the first ask of a process takes longer, five processes

Both are timed in the same run, one after the other, with BLAS on one thread, in time of the processor, so that other
work on the machine hardly counts; the first ask, which reads files, by the clock. The first rows are real searches up
to 60 points (asks that need no surrogate, for initial points and polishing, are left out); the others ask, with
strategy "penalty", once the evidence is 150 points, and with 784 features. Needs the data sets: set ACEX_DATA or be
online.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import acex
from acex.arrays import FloatArray, IntArray
from acex.bench.ground import ground
from acex.search.problem import History, Problem, Query
from acex.search.search import Search
from acex.search.strategy import Strategy
from acex.space.cost import CostFunction
from acex.space.plausibility import Plausibility
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space

Decide = Callable[[FloatArray], IntArray]


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def scikit_learn_fit(search: Search) -> float:
    """Seconds of one optimised fit on the evidence of this search."""
    Z, t = search.problem.scale.coordinates(search.history.X), search.history.is_hit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seconds(lambda: GaussianProcessClassifier(ConstantKernel() * Matern(nu=2.5)).fit(Z, t))


def problem_of(space: Space, reference: FloatArray, x: FloatArray, plausibility: Plausibility) -> Problem:
    scale = Scale.of(space, reference)
    region = Region.of(space, x, constant=scale.deviations == 0)
    density = plausibility.fit(reference, scale)
    cost, quantiles = CostFunction(scale, x, space.weights), Quantiles.of(scale, reference)
    return Problem(region, cost, scale, reference, density, quantiles)


def while_searching(problem: Problem, decide: Decide, n: int, strategy: Strategy) -> Iterator[tuple[float, float]]:
    """(ask, fit) in seconds for each ask of a real search that needs the surrogate, up to n points."""
    search = Search.begin(problem, strategy)
    before = decide(problem.factual[None])[0]
    while len(search.history.queries) < n:
        asked = seconds(search.ask)
        query = search.ask()
        if query is None:
            return
        if query.purpose not in ("initial", "polish") and search.history.is_hit.any():
            yield asked, scikit_learn_fit(search)
        search = search.tell(query, bool(decide(query.point[None])[0] != before))


def with_evidence(problem: Problem, decide: Decide, n: int, times: int = 8) -> Iterator[tuple[float, float]]:
    """(ask, fit) in seconds, each time with n - 1 other reference rows as evidence."""
    before = decide(problem.factual[None])[0]
    for seed in range(times):
        rows = np.random.default_rng(seed).choice(problem.projected, n - 1, replace=False)
        queries = (Query(problem.factual, "factual"), *(Query(x, "initial") for x in rows))
        history = History(queries, (False, *(decide(rows) != before).tolist()))
        search = Search(problem, acex.Penalty(n0=n), seed, history)
        yield seconds(search.ask), scikit_learn_fit(search)


def mnist_problem() -> tuple[Problem, Decide]:
    data = acex.datasets.mnist()
    reference, labels = data.codes[:2000], data.binary[:2000]
    model = LogisticRegression(max_iter=200).fit(reference, labels)
    x = reference[np.flatnonzero(model.predict(reference) == 0)[0]]
    return problem_of(data.space, reference, x, Plausibility()), model.predict


def asks_of_a_new_process(n: int = 8) -> list[float]:
    """Seconds of each of the first asks of "feasible", on the loans that come with the package."""
    loans = acex.datasets.load("loan")
    reference, approved = loans.codes, loans.outcomes == "approved"
    x = reference[np.flatnonzero(~approved)[0]]
    search = Search.begin(problem_of(loans.space, reference, x, Plausibility()), acex.Feasible(effort="spend"))
    asked: list[float] = []
    decide = LogisticRegression(max_iter=1000).fit(reference, approved).predict
    while len(asked) < n:
        start = time.perf_counter()
        query = search.ask()
        asked.append(time.perf_counter() - start)
        assert query is not None
        search = search.tell(query, bool(decide(query.point[None])[0]))
    return asked


def first_asks() -> None:
    """Print what the first ask of a process takes beside the later ones."""
    told = [
        subprocess.run([sys.executable, __file__, "--one"], capture_output=True, text=True, check=True).stdout
        for _ in range(5)
    ]
    asks = np.array([[float(word) for word in line.split()] for line in told])
    first, later = np.median(asks[:, 0]), np.median(asks[:, 1:])
    print(f"first ask of a process {1e3 * first:.0f} ms, later ones {1e3 * later:.0f} ms: {first / later:.1f} times")


def main() -> None:
    if "--one" in sys.argv:
        with threadpool_limits(1):
            print(*asks_of_a_new_process())
        return
    if "--first" in sys.argv:
        first_asks()
        return
    lines = []

    def report(what: str, limit: str, pairs: list[tuple[float, float]]) -> None:
        ask, fit = np.median(pairs, axis=0)
        ratio = float(np.median([a / f for a, f in pairs]))
        lines.append((what, f"{1e3 * ask:.0f}", f"{1e3 * fit:.0f}", f"{ratio:.2f}", limit))
        print(pd.DataFrame(lines[-1:]).to_string(index=False, header=False), flush=True)

    with threadpool_limits(1):
        for name, limit in (
            ("diabetes", "1"), ("breast", "3"), ("kc2", "1"), ("blood", "1"), ("cmc", "3"),
            ("nursery", "3"), ("german_credit", "3"), ("tic_tac_toe", "3"),
        ):  # fmt: skip
            g = ground(name)
            problems = [problem_of(g.space, g.reference, x, Plausibility(kind="lof", scale=False)) for x in g.rows[:5]]
            for strategy, most in ((acex.Penalty(), limit), (acex.Feasible(effort="spend"), "1")):
                pairs = [p for problem in problems for p in while_searching(problem, g.predict, 60, strategy)]
                report(f"{name}, {type(strategy).__name__.lower()} to 60 points", most, pairs)
            if name in ("kc2", "german_credit"):
                report(f"{name}, 150 points", "", list(with_evidence(problems[0], g.predict, 150)))
        report("mnist, 784 features, 60 points", "", list(with_evidence(*mnist_problem(), 60)))
    columns = ["work", "ask ms", "scikit-learn fit ms", "median ratio", "limit"]
    print()
    print(pd.DataFrame(lines, columns=columns).to_string(index=False))


if __name__ == "__main__":
    main()
