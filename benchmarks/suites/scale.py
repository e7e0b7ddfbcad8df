"""Time and memory of acex, on generated data with a model that takes no time.

    throughput     rows per second with 1, 2 and 4 processes
    ledger-size    an explanation with 10^3 to 10^6 answers in the ledger
    memory         memory of the process that calls a batch of generated records
    categories     ten thousand categories in one column compared with ten
    startup        CPU time of new processes over that of `import pandas`
    rows           an explanation on 200,000 rows over one on 20,000 of them: CPU and memory
    queries        CPU time of 300 queries over that of 60
    cap            cost found by a search that learns from at most 80 of its own queries, over one that learns from all

Run them on an idle machine.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import acex
from acex.arrays import FloatArray
from acex.batch import explanations, scheduling
from acex.search import evidence
from acex.search.search import Search
from benchmarks.belief.learn import begun, helped
from benchmarks.belief.simulated import VALIDATION, Case, task
from benchmarks.problems import problems
from benchmarks.suite import ROOT, Job, Line, Suite
from benchmarks.table import Table, number

N_FEATURES, QUERIES = 20, 30
MIXING = np.random.default_rng(1).normal(size=(N_FEATURES, N_FEATURES))
WEIGHTS = np.random.default_rng(2).normal(size=N_FEATURES)
SPEND = acex.Feasible(effort="spend")


def in_process(code: str) -> Any:
    """Run code in a new process, and parse the JSON that it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def peak_mb() -> float:
    """Peak resident memory of this process, on Linux; `ru_maxrss` would include that of the parent before exec."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


# -- throughput and the size of the ledger -----------------------------------------------------------------------


def generated(n: int, seed: int) -> FloatArray:
    """Rows with dependent features, (n, 20)."""
    rows: FloatArray = np.random.default_rng(seed).normal(size=(n, N_FEATURES)) @ (np.eye(N_FEATURES) + 0.3 * MIXING)
    return rows


def decide(X: FloatArray) -> Any:
    """The model: label 1 for few rows, otherwise 0."""
    return (X @ WEIGHTS + 2 * np.sin(X[:, 0]) > 2.0).astype(int)


def to_explain(n: int) -> FloatArray:
    """Rows with label 0."""
    rows = np.clip(generated(20 * n + 100, 4), generated(600, 0).min(axis=0), generated(600, 0).max(axis=0))
    chosen: FloatArray = rows[decide(rows) == 0][:n]
    return chosen


def with_answers(path: Path, n: int) -> acex.Explainer:
    """An explainer with a ledger of n answers to points between rows."""
    reference = generated(600, 0)
    explainer = acex.Explainer(acex.Model(decide, name="generated"), reference, ledger=path)
    rng = np.random.default_rng(3)
    done = sum(answer.sequence for answer in explainer.ledger.answers("generated", newest=1))
    while done < n:
        k = min(n - done, 20_000)
        pairs = reference[rng.integers(len(reference), size=(2, k))]
        X = explainer.space.snap(pairs[0] + rng.random((k, 1)) * (pairs[1] - pairs[0]) + rng.normal(size=(k, 1)) / 1e3)
        done += explainer.import_answers(X, decide(X))
    return explainer


def measure_throughput(job: Job) -> list[Line]:
    """Seconds for 60 rows with 30 queries each and this many processes, and the growth of the ledger."""
    rows = to_explain(60)
    n_jobs = int(job.method)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        explainer = with_answers(path, 500)
        explainer.explain_many(generated(8, 0), budget=2, n_jobs=n_jobs).frame()  # starts the processes
        before, start = path.stat().st_size, time.perf_counter()
        frame = explainer.explain_many(rows, budget=QUERIES, strategy=SPEND, n_jobs=n_jobs).frame()
        seconds = time.perf_counter() - start
        explainer.ledger.close()
        grown = path.stat().st_size - before
    assert frame["error"].isna().all()
    return [{"n_rows": len(rows), "seconds": seconds, "kb_a_query": grown / frame["queries"].sum() / 1e3}]


def throughput_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Rows per second by the number of processes."""
    a_second = (lines["n_rows"] / lines["seconds"]).tolist()
    rows = [[n, f"{v:.2f}", f"{v / a_second[0]:.2f}"] for n, v in zip(lines["method"], a_second, strict=True)]
    return {"processes": Table("throughput", ["processes", "rows a second", "times one"], rows)}


def measure_ledger_size(job: Job) -> list[Line]:
    """CPU seconds of the first explanation of a process, and of later ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        with_answers(path, int(job.method)).ledger.close()
        disk_mb, before, seconds = path.stat().st_size / 1e6, peak_mb(), []
        explainer = with_answers(path, int(job.method))
        for x in to_explain(16):
            start = time.process_time()
            explainer.search(x, budget=QUERIES, strategy=SPEND).run()
            seconds.append(time.process_time() - start)
        explainer.ledger.close()
    later = statistics.median(seconds[1:])
    return [{"disk_mb": disk_mb, "first_s": seconds[0], "later_s": later, "memory_mb": peak_mb() - before}]


def ledger_size_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Seconds and size on disk by the number of answers."""
    rows = {
        "first explanation of a process, s": [f"{v:.2f}" for v in lines["first_s"]],
        "each later one, s": [f"{v:.2f}" for v in lines["later_s"]],
        "MB on disk": [f"{v:.3g}" for v in lines["disk_mb"]],
    }
    header = ["answers in the ledger", *(number(int(n), 0) for n in lines["method"])]
    return {"answers": Table("size of the ledger", header, [[name, *cells] for name, cells in rows.items()])}


# -- memory of the caller ----------------------------------------------------------------------------------------


class Recorded:
    """An executor that returns one explanation for each row; no model is queried."""

    def __init__(self, explanation: acex.Explanation) -> None:
        self.explanation = explanation

    def run(self, tool: Any, task: Any, items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for item in items:
            steps = tuple(replace(step, row=dict(step.row)) for step in self.explanation.steps)
            yield item, scheduling.Done(replace(self.explanation, steps=steps), len(steps))


def batch_memory(n: int, keep: bool) -> None:
    """Print the peak memory of iterating twice over a batch of n rows."""
    rng = np.random.default_rng(0)
    columns = pd.Index([f"x{j}" for j in range(10)])
    data, rows = (pd.DataFrame(rng.uniform(size=(k, 10)), columns=columns) for k in (200, n))
    if keep:
        explanations.MOST_KEPT = n
    with tempfile.TemporaryDirectory() as folder:
        explainer = acex.Explainer(acex.Model(_above, name="m"), data, ledger=Path(folder) / "ledger.db")
        explanation = explainer.explain(data.iloc[0], target="yes", budget=10)
        many = explainer.explain_many(rows, executor=Recorded(explanation), progress=False)
        for _ in many.as_finished():
            pass
        assert many[0].steps[0].row == explanation.steps[0].row  # steps can be read
        many.summary()
        explainer.ledger.close()
    print(peak_mb())


def _above(rows: pd.DataFrame) -> Any:
    return np.where(rows["x0"] > 0.8, "yes", "no")


def measure_memory(job: Job) -> list[Line]:
    """Peak memory of a batch, and the increase per row over a batch of ten."""
    n, keep = int(job.data), job.method == "all kept"
    code = "from benchmarks.suites.scale import batch_memory; batch_memory({}, {})"
    base, peak = in_process(code.format(10, False)), in_process(code.format(n, keep))
    return [{"peak_mb": peak, "above_base_mb": peak - base, "kb_a_row": (peak - base) * 1024 / n}]


# -- categories --------------------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "feasible": {"strategy": "feasible"},
    "penalty": {"strategy": "penalty"},
    "feasible, with outcomes": {"strategy": "feasible", "outcomes": True},
}


def explain_categories(n_categories: int, way: str) -> None:
    """Print CPU seconds and memory of two explanations of a table with one column of many categories."""
    rng, n = np.random.default_rng(0), 30_000
    rows = pd.DataFrame(rng.normal(size=(n, 8)).round(3), columns=[f"x{j}" for j in range(8)])
    rows["plan"] = rng.choice(["small", "medium", "large"], n)
    towns = np.array([f"town {i}" for i in range(n_categories)])
    rows["town"] = pd.Categorical(rng.choice(towns, n), towns)
    wealth = pd.Series(rng.normal(size=n_categories), index=towns)

    def model(rows: pd.DataFrame) -> Any:
        score = rows["x0"] + rows["x1"] + (rows["plan"] == "large") + wealth[rows["town"]].to_numpy()
        return np.where(score > 1.5, "yes", "no")

    options = dict(OPTIONS[way])
    outcomes = model(rows) if options.pop("outcomes", False) else None
    before, start = peak_mb(), time.process_time()
    explainer = acex.Explainer(model, rows, outcomes=outcomes)
    ready = time.process_time()
    refused = np.flatnonzero(model(rows) == "no")[:2]
    found = [explainer.explain(rows.iloc[i], budget=30, progress=False, **options) for i in refused]
    done = time.process_time()
    line = {"prepare_s": ready - start, "explain_s": done - ready, "total_s": done - start}
    print(json.dumps({**line, "memory_mb": peak_mb() - before, "queries": sum(e.n_queries for e in found)}))


def measure_categories(job: Job) -> list[Line]:
    """Time and memory in a new process."""
    call = f"explain_categories({job.data}, {job.method!r})"
    return [in_process(f"from benchmarks.suites.scale import explain_categories; {call}")]


def categories_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The ratio of ten thousand categories to ten."""
    wide = lines.pivot_table(index="method", columns="data", values=["total_s", "memory_mb"])
    ratios = pd.DataFrame({name: wide[name]["10000"] / wide[name]["10"] for name in ("total_s", "memory_mb")})
    rows = [[str(way), *(f"{v:.2f}" for v in values)] for way, values in ratios.iterrows()]
    return {"ratios": Table("10,000 categories over 10", ["", "time", "memory"], rows)}


# -- start -------------------------------------------------------------------------------------------------------

PANDAS = ("-c", "import pandas")
EXPLAIN = """
import acex, pandas
data = pandas.DataFrame({"a": [float(i % 7) for i in range(40)], "b": [i % 5 for i in range(40)]})
acex.explain(lambda rows: rows["a"] + rows["b"] > 5, data.iloc[0], data, budget=6)
"""
STARTS = {
    "import pandas": PANDAS,
    "import acex": ("-c", "import acex"),
    "acex --help": ("-m", "acex", "--help"),
    "acex explain --help": ("-m", "acex", "explain", "--help"),
    "import acex; acex.Space": ("-c", "import acex; acex.Space"),
    "import acex; acex.Explainer": ("-c", "import acex; acex.Explainer"),
    "a first acex.explain": ("-c", EXPLAIN),
}
START_LIMITS = {"import acex": 1.3, "acex --help": 1.5}
HEAVY = ("numpy", "pandas", "scipy", "scipy.stats", "sqlalchemy", "sklearn", "matplotlib", "joblib", "rich", "typer")
ROUNDS = 7


def cpu_seconds(*arguments: str) -> float:
    """User and system time of one new process of this Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_startup(job: Job) -> list[Line]:
    """Median CPU seconds of new processes, alternating with `import pandas`; the first round fills the caches."""
    arguments = STARTS[job.method]
    pairs = [(cpu_seconds(*arguments), cpu_seconds(*PANDAS)) for _ in range(ROUNDS + 1)][1:]
    seconds, pandas_seconds = (statistics.median(part) for part in zip(*pairs, strict=True))
    command = [sys.executable, "-X", "importtime", *arguments]
    log = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip() for line in log.splitlines()}
    imports = ", ".join(name for name in HEAVY if name in imported)
    return [{"seconds": seconds, "ratio": seconds / pandas_seconds, "imports": imports}]


def startup_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """CPU seconds, their ratio, and its limit."""
    limits = [START_LIMITS.get(method, "") for method in lines["method"]]
    shown = lines[["method", "seconds", "ratio", "imports"]].assign(limit=limits)
    return {"processes": Table.of("CPU seconds of a new process, and over `import pandas`", shown)}


# -- rows --------------------------------------------------------------------------------------------------------

ALL_ROWS, SOME_ROWS = 200_000, 20_000
ROWS_RATIO, MEMORY_TIMES, MEMORY_MORE = 2.0, 4, 250  # limits: CPU ratio; memory is at most 4 times the data plus 250 MB


def explain_large(n: int) -> None:
    """Print CPU seconds and peak memory of an explanation on the first n rows of a table with 50 columns."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{j}": rng.normal(size=ALL_ROWS)[:n].round(3) for j in range(25)}
    columns |= {f"n{j}": rng.integers(0, 100, ALL_ROWS)[:n] for j in range(10)}
    names = np.array(list("abcdef"), dtype=object)
    columns |= {f"c{j}": names[rng.integers(0, 6, ALL_ROWS)[:n]] for j in range(15)}
    data = pd.DataFrame(columns)
    del columns

    def model(rows: pd.DataFrame) -> Any:
        return np.where(rows["x0"] + rows["n0"] / 50 + (rows["c0"] == "a") > 2.5, "yes", "no")

    data_mb = data.memory_usage().sum() / 2**20  # not deep, since strings of categories are shared
    x = data.head(100)[model(data.head(100)) == "no"].iloc[0]
    acex.explain(model, x, data.head(200), budget=4)  # so that imports are not counted
    start = time.process_time()
    explainer = acex.Explainer(model, data)
    ready = time.process_time()
    explanation = explainer.explain(x, target="yes", budget=20, strategy=SPEND, progress=False)
    line = {"prepare_s": ready - start, "explain_s": time.process_time() - ready}
    line |= {"data_mb": data_mb, "peak_mb": peak_mb(), "queries": explanation.n_queries}
    print(json.dumps(line))


def measure_rows(job: Job) -> list[Line]:
    """Time and memory in a new process."""
    return [in_process(f"from benchmarks.suites.scale import explain_large; explain_large({job.data})")]


def rows_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """All rows compared with some of them, with the limits."""
    few, many = (lines[lines["data"] == str(n)].iloc[-1] for n in (SOME_ROWS, ALL_ROWS))
    shown = [
        [name, f"{few[column]:.1f}", f"{many[column]:.1f}", f"{many[column] / few[column]:.2f}", limit]
        for name, column, limit in (
            ("set-up, s of CPU", "prepare_s", ""),
            ("an explanation of 20 queries, s of CPU", "explain_s", f"{ROWS_RATIO:.0f} times"),
            ("peak memory, MB", "peak_mb", f"{MEMORY_TIMES * many['data_mb'] + MEMORY_MORE:.0f} MB"),
            ("data, MB", "data_mb", ""),
        )
    ]
    header = ["", f"{number(SOME_ROWS, 0)} rows", f"{number(ALL_ROWS, 0)} rows", "ratio", "limit"]
    return {"rows": Table("rows of the data", header, shown)}


# -- queries -----------------------------------------------------------------------------------------------------

FEW_QUERIES, MANY_QUERIES, QUERIES_RATIO = 60, 300, 8.0
FOUR = ("diabetes", "kc2", "german_credit", "breast")


def measure_queries(job: Job) -> list[Line]:
    """CPU seconds until the 60th and the 300th query of one search; the model is not counted."""
    of = problems(job.data)
    search, is_hit, spent, few_s = Search.begin(of.of(job.row), SPEND), of.is_hit(job.row), 0.0, 0.0
    while len(search.history.queries) < MANY_QUERIES:
        start = time.process_time()
        query = search.ask()
        spent += time.process_time() - start
        if query is None:
            break
        label = bool(is_hit(query.point[None])[0])
        start = time.process_time()
        search = search.tell(query, label)
        spent += time.process_time() - start
        few_s = spent if len(search.history.queries) == FEW_QUERIES else few_s
    return [{"queries": len(search.history.queries), "few_s": few_s, "many_s": spent, "ratio": spent / few_s}]


def queries_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The ratio and its limit."""
    rows = [
        [line["data"], f"{line['few_s']:.2f}", f"{line['many_s']:.1f}", f"{line['ratio']:.1f}", f"{QUERIES_RATIO:.0f}"]
        for _, line in lines.iterrows()
    ]
    return {"queries": Table("300 queries over 60", ["", "60 queries, s", "300 queries, s", "ratio", "limit"], rows)}


CAP_QUERIES = 200


def measure_cap(job: Job) -> list[Line]:
    """The cost after 200 queries on a simulated task, with and without a limit on what the belief learns from."""
    costs, cap = {}, evidence.MAX_OWN
    case = task(VALIDATION + job.row, 1)[0]
    problem, known, odds = helped(case, "none", np.random.default_rng([9, job.row]))
    shared = Search(problem, SPEND, job.seed, begun(problem, known, odds), budget=CAP_QUERIES)
    shared = _continued(shared, case, cap)  # both are identical up to here
    for name, most in (("capped", cap), ("all", CAP_QUERIES)):
        with patch.object(evidence, "MAX_OWN", most):
            search = _continued(shared, case, CAP_QUERIES)
        costs[name] = np.inf if search.best is None else float(problem.cost(search.best[None])[0])
    return [costs]


def _continued(search: Search, case: Case, n: int) -> Search:
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        search = search.tell(query, bool(case.is_hit(query.point[None])[0]))
    return search


def cap_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The mean log ratio of the costs, with its standard error, over the tasks with a hit."""
    found = lines[np.isfinite(lines["capped"]) & np.isfinite(lines["all"])]
    more = np.log(found["capped"] / found["all"])
    worse, better = (more > 1e-9).sum(), (more < -1e-9).sum()
    cells = [str(len(more)), f"{more.mean():.3f}", f"{more.sem():.3f}", str(worse), str(better)]
    header = ["tasks", "mean log cost, 80 over all", "standard error", "80 costs more", "80 costs less"]
    return {"cap": Table("learning from 80 own queries", header, [cells])}


def memory_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Memory by the number of rows."""
    return {"batch": Table.of("memory of a batch", lines[["data", "method", "peak_mb", "above_base_mb", "kb_a_row"]])}


def no_such_batch(data: str, method: str) -> str | None:
    """Why a batch is not measured: keeping everything is measured with few rows only."""
    return "too many rows to keep" if method == "all kept" and data != "10000" else None


SUITES = (
    Suite(
        "throughput",
        ("generated",),
        ("1", "2", "4"),
        ("n_rows", "seconds", "kb_a_query"),
        measure_throughput,
        throughput_tables,
        parallel=False,
    ),
    Suite(
        "ledger-size",
        ("generated",),
        ("1000", "10000", "100000", "1000000"),
        ("disk_mb", "first_s", "later_s", "memory_mb"),
        measure_ledger_size,
        ledger_size_tables,
        parallel=False,
    ),
    Suite(
        "memory",
        ("10000", "100000"),
        ("ledger", "all kept"),
        ("peak_mb", "above_base_mb", "kb_a_row"),
        measure_memory,
        memory_tables,
        missing=no_such_batch,
        parallel=False,
    ),
    Suite(
        "categories",
        ("10", "10000"),
        tuple(OPTIONS),
        ("prepare_s", "explain_s", "total_s", "memory_mb", "queries"),
        measure_categories,
        categories_tables,
        parallel=False,
    ),
    Suite(
        "startup",
        ("new process",),
        tuple(STARTS),
        ("seconds", "ratio", "imports"),
        measure_startup,
        startup_tables,
        parallel=False,
    ),
    Suite(
        "rows",
        (str(SOME_ROWS), str(ALL_ROWS)),
        ("explanation",),
        ("prepare_s", "explain_s", "data_mb", "peak_mb", "queries"),
        measure_rows,
        rows_tables,
        parallel=False,
    ),
    Suite(
        "queries",
        FOUR,
        ("feasible",),
        ("queries", "few_s", "many_s", "ratio"),
        measure_queries,
        queries_tables,
        parallel=False,
    ),
    Suite("cap", ("simulated",), ("feasible",), ("capped", "all"), measure_cap, cap_tables, rows=20),
)
