"""All methods on all tasks at fixed numbers of queries, with the plausibility filter and without.

    python -m benchmarks run --suite comparison --data diabetes,cmc --methods feasible,nearest --rows 10
    python -m benchmarks table --suite comparison
    python -m benchmarks run --suite comparison --dry-run            # how much is missing

Every row is explained twice by every method: in panel "none" any hit counts; in panel "filter" only plausible hits
count and every method has the filter (`task.Panel`). J at a budget of n is the least cost of a hit among the first n
*distinct* rows that a method queries, infinite if there is none. A method that uses more CPU time than `LIMIT_S` on a
row is stopped; hits until then count at the budgets, but it has no answer of its own. Errors are treated alike.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.methods import METHODS
from benchmarks.statistics import bootstrap, holm, ranks, sign_test, wilson
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import NOTHING, Table, number
from benchmarks.task import CapReached, CountedModel, Panel, Task
from benchmarks.tasks import TASKS, missing_table, task_scenario

BUDGETS = (15, 30, 60, 150, 1000)
SHOWN = (30, 60)  # budgets of the first table
PANELS: tuple[Panel, ...] = ("none", "filter")
LIMIT_S = 20  # CPU seconds per row
OURS = "feasible"
NAMES = {  # names in tables, if different from the method's
    "feasible": "acex",
    "feasible-labels": "acex with outcomes",
    "feasible-150": "acex, 150 queries",
    "penalty": "ACE",
}
COMPARED = (
    *("feasible", "feasible-labels", "feasible-150", "penalty", "nearest", "random", "growing-spheres", "nice"),
    *("dice-random", "dice-genetic", "dice-kdtree", "cfnow", "hopskipjump", "baycon", "moc-stop", "moc", "gradient"),
)
COLUMNS = (
    *("cap", "panel", "ended", "queries", "distinct", "valid", "J", *(f"J{b}" for b in BUDGETS), "cpu", "error"),
)
ENOUGH = 0.8  # least share of the rows of acex for a method to be in the first table


# -- measuring ---------------------------------------------------------------------------------------------------


class TimeLimit(BaseException):
    """The CPU time of a row is spent. Not an Exception: other packages catch those."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeLimit` in this block after this much CPU time, and again each second if it is caught."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def measure(job: Job) -> list[Line]:
    """One line per panel."""
    return [measured(job, panel) for panel in PANELS]


def measured(job: Job, panel: Panel, limit_s: float = LIMIT_S) -> Line:
    """The result of a method on a row in a panel."""
    s = task_scenario(job.data)
    task = Task(s, s.rows[job.row], panel)
    s.density.plausible(task.x[None])  # fitted before the clock starts
    model = CountedModel(task, job.cap)
    candidates, ended, error = np.empty((0, len(task.x))), "itself", None
    started = time.process_time()
    try:
        with cpu_limit(limit_s):
            candidates = METHODS[job.method].explain(task, model, job.seed)
    except CapReached:
        ended = "cap"
        candidates = candidates if model.best is None else model.best[None]
    except TimeLimit:
        ended = "time"
    except ImportError:
        raise
    except Exception as problem:  # often in another package: a crash is a result
        ended, error = "error", f"{type(problem).__name__}: {problem}"[:200]
    cpu = time.process_time() - started
    J = answer(task, candidates)
    best = {f"J{b}": min((cost for asked, cost in model.distinct_curve if asked <= b), default=np.inf) for b in BUDGETS}
    counts = {"queries": model.queries, "distinct": model.distinct, "cpu": round(cpu, 3)}
    return {"panel": panel, "ended": ended, "valid": bool(np.isfinite(J)), "J": J, "error": error, **counts, **best}


def answer(task: Task, candidates: np.ndarray[Any, Any]) -> float:
    """The least cost of a candidate that is allowed, a hit, and plausible in panel "filter"; infinite for none."""
    if len(candidates) == 0:
        return np.inf
    s = task.scenario
    hits = s.predict(candidates) != s.predict(task.x[None])[0]
    valid = candidates[task.allowed(candidates) & hits & task.plausible(candidates)]
    return float(task.cost(valid).min()) if len(valid) else np.inf


def missing(data: str, method: str) -> str | None:
    """Why a method cannot run on a task; None if it can."""
    reason = missing_table(data) or METHODS[method].missing()
    if reason or not METHODS[method].numbers_only:
        return reason
    return METHODS[method].refuses(task_scenario(data))


# -- tables ------------------------------------------------------------------------------------------------------


def shown(method: str) -> str:
    """The name of a method in tables."""
    return NAMES.get(method, method)


def costs(lines: pd.DataFrame, panel: str, column: str) -> pd.DataFrame:
    """J of a column ("J30", ...): one line per task and row, one column per method; NaN if it was not run."""
    part = lines[lines["panel"] == panel]
    return part.pivot_table(index=["data", "row"], columns="method", values=column, aggfunc="mean", dropna=False)


def common(J: pd.DataFrame) -> pd.DataFrame:
    """The rows shared by all methods that have most of the rows of acex; "feasible-150" is left out."""
    n = J.notna().sum()
    methods = [method for method in COMPARED if method in J and method != "feasible-150"]
    J = J[[method for method in methods if n[method] >= ENOUGH * n[OURS]]]
    return J.dropna()


def mean_over_tasks(values: pd.Series[Any]) -> float:
    """The mean over tasks of the mean over their rows: each task counts the same."""
    return float(values.groupby(level="data").mean().mean())


def share(k: int, n: int) -> str:
    """A share in percent with its 95% interval."""
    low, high = wilson(k, n)
    return f"{k / n:.0%} ({low * 100:.0f}–{high * 100:.0f})"


def summary(lines: pd.DataFrame) -> Table:
    """Mean rank and success at 30 / 60 queries in both panels, on the same rows of all tasks."""
    cells: dict[str, list[str]] = {}
    n_rows = 0
    for panel in PANELS:
        found = {budget: common(costs(lines, panel, f"J{budget}")) for budget in SHOWN}
        places = {budget: ranks(J) for budget, J in found.items()}
        n_rows = len(found[SHOWN[0]])
        for method in map(str, found[SHOWN[0]]):
            rank = " / ".join(f"{mean_over_tasks(places[b][method]):.1f}" for b in SHOWN)
            success = " / ".join(f"{np.isfinite(found[b][method]).mean():.0%}" for b in SHOWN)
            cells.setdefault(method, []).extend([rank, success])
    words = {"none": "any hit", "filter": "plausible hits"}
    header = ["method", "given beside labels", "rows"]
    header += [f"{words[panel]}: {what}" for panel in PANELS for what in ("rank", "success")]
    rows = [[shown(m), METHODS[m].given, f"{n_rows}", *cells[m]] for m in COMPARED if m in cells]
    return Table(f"mean rank among {len(rows)} methods, and success, at 30 / 60 queries", header, rows)


def against(lines: pd.DataFrame, panel: str) -> Table:
    """acex against each method on the same rows: wins, losses, and cost where both have found something."""
    out = []
    for budget in SHOWN:
        J = costs(lines, panel, f"J{budget}")
        for method in [m for m in COMPARED if m in J and m != OURS]:
            pair = J[[OURS, method]].dropna()
            less, more, _ = sign_test(pair[OURS].to_numpy(), pair[method].to_numpy())
            ahead, behind = significant(pair, method)
            both = pair[np.isfinite(pair).all(axis=1)]
            ratios = [NOTHING] * 3
            if len(both):
                logs = np.log(both[OURS].to_numpy() / both[method].to_numpy())
                tables = both.index.get_level_values("data").str.partition("-").get_level_values(0)
                clusters = np.arange(len(logs), dtype=float), pd.factorize(tables)[0].astype(float)
                ends = np.exp([bootstrap(logs, of) for of in clusters])
                ratios = [f"{np.exp(logs.mean()):.2f}", *(f"{low:.2f}–{high:.2f}" for low, high in ends)]
            tasks = pair.index.get_level_values("data").nunique()
            cells = [f"{budget}", f"{len(pair)}", f"{tasks}", f"{less}", f"{more}", f"{len(both)}", *ratios]
            out.append([shown(method), *cells, f"{ahead} / {behind}"])
    header = [
        *("acex against", "queries", "rows", "tasks", "acex cheaper", "acex costlier", "both found"),
        *("ratio of costs", "95%", "95% over tables", "tasks ahead / behind (Holm)"),
    ]
    return Table("acex against each method on the same rows", header, out)


def significant(pair: pd.DataFrame, method: str) -> tuple[int, int]:
    """On how many tasks acex is ahead and behind by a sign test, corrected for the number of tasks at 5%."""
    tests = [
        sign_test(part[OURS].to_numpy(), part[method].to_numpy()) for _, part in pair.groupby(level="data", sort=False)
    ]
    p = holm(np.array([test[2] for test in tests])) if tests else np.empty(0)
    ahead = sum(test[0] > test[1] and value < 0.05 for test, value in zip(tests, p, strict=True))
    behind = sum(test[0] < test[1] and value < 0.05 for test, value in zip(tests, p, strict=True))
    return ahead, behind


def by_task(lines: pd.DataFrame, panel: str) -> Table:
    """For each task, acex at 60 queries and the best other method by mean rank."""
    J = common(costs(lines, panel, "J60"))
    rows = []
    for name, part in J.groupby(level="data", sort=False):
        place = ranks(part).mean()
        order = [m for m in place.sort_values(kind="stable").index if not str(m).startswith(OURS)]
        if not order:
            continue
        best = order[0]
        less, more, p = sign_test(part[OURS].to_numpy(), part[best].to_numpy())
        found = share(int(np.isfinite(part[OURS]).sum()), len(part))
        cells = [f"{len(part)}", found, f"{place[OURS]:.1f}", shown(best), f"{place[best]:.1f}", f"{less} / {more}"]
        rows.append([str(name).replace("_", " "), *cells, f"{p:.2f}"])
    header = ["task", "rows", "acex: success", "rank", "best other", "its rank", "acex cheaper / costlier", "p"]
    return Table(f"acex and the best other method on each task at 60 queries, panel {panel}", header, rows)


def by_method(lines: pd.DataFrame, panel: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The methods of a panel by their names in tables, with their lines."""
    part = lines[lines["panel"] == panel]
    for method in COMPARED:
        if method in set(part["method"]):
            yield shown(method), part[part["method"] == method]


def own_stop(lines: pd.DataFrame, panel: str) -> Table:
    """The result of each method when it ends by itself."""
    rows = []
    for method, of in by_method(lines, panel):
        ends = of["ended"].value_counts()
        cells = [f"{len(of)}", f"{of['data'].nunique()}", share(int(of["valid"].sum()), len(of))]
        cells += [number(of[name].mean(), 0) for name in ("distinct", "queries")]
        cells += [number(of["cpu"].median(), 2), *(f"{ends.get(why, 0)}" for why in ("cap", "time", "error"))]
        rows.append([method, *cells])
    header = [
        *("method", "rows", "tasks", "valid answers", "different queries", "queries", "CPU seconds (median)"),
        *("ended by the cap", "by the time limit", "by an error"),
    ]
    return Table(f"answers at each method's own stop, panel {panel}", header, rows)


def at_budgets(lines: pd.DataFrame, panel: str) -> Table:
    """Success of each method at each budget, on all rows it has."""
    rows = []
    for method, of in by_method(lines, panel):
        cells = [share(int(np.isfinite(of[f"J{b}"]).sum()), len(of)) for b in BUDGETS]
        rows.append([method, f"{len(of)}", *cells])
    return Table(f"success at each budget, panel {panel}", ["method", "rows", *map(str, BUDGETS)], rows)


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The first table, then the details of each panel."""
    lines = lines[lines["method"].isin(COMPARED)]
    out = {"summary": summary(lines)}
    for panel in PANELS:
        out |= {
            f"against-{panel}": against(lines, panel),
            f"tasks-{panel}": by_task(lines, panel),
            f"budgets-{panel}": at_budgets(lines, panel),
            f"stop-{panel}": own_stop(lines, panel),
        }
    return out


# -- picture -----------------------------------------------------------------------------------------------------


def pictures(lines: pd.DataFrame) -> dict[str, Figure]:
    """Mean rank against queries in both panels: acex, acex with outcomes, ACE and the best of the other methods."""
    figure = Figure(figsize=(8, 3.6), dpi=120, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    words = {"none": "any hit counts", "filter": "plausible hits count"}
    for axes, panel in zip(panels, PANELS, strict=True):
        places = {b: ranks(common(costs(lines, panel, f"J{b}"))) for b in BUDGETS}
        ranked = {str(m): mean_over_tasks(places[SHOWN[-1]][str(m)]) for m in places[SHOWN[-1]]}
        best = min((m for m in ranked if m not in NAMES), key=ranked.__getitem__, default=OURS)
        for method in [m for m in (OURS, "feasible-labels", "penalty", best) if m in ranked]:
            means = [mean_over_tasks(places[b][method]) for b in BUDGETS]
            style = METHODS[method].style
            axes.plot(range(len(BUDGETS)), means, marker="o", markersize=3.5, label=shown(method), **style)
        axes.set_xticks(range(len(BUDGETS)), [f"{b:,}" for b in BUDGETS])
        axes.set(title=words[panel], xlabel="different queries")
        axes.grid(color="#E4E4E4", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    drawn = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    figure.legend(handles=list(drawn.values()), loc="outside lower center", ncols=len(drawn), frameon=False)
    panels[0].invert_yaxis()  # the best on top
    panels[0].set_ylabel(f"mean rank of {places[SHOWN[-1]].shape[1]} methods (1 is best)")
    return {"comparison": figure}


SUITES = (
    Suite(
        "comparison",
        tuple(TASKS),
        COMPARED,
        COLUMNS,
        measure,
        tables,
        rows=20,
        pictures=pictures,
        revision=lambda method: METHODS[method].revision,
        missing=missing,
        packed=True,
    ),
)
