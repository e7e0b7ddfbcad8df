"""The effect of each repair of ACE, and of its hyperparameters.

    python -m benchmarks run --suite ablation,sweep

ablation   ACE as published, with each repair alone, and with all of them, on rows of the mixed test
sweep      ACE as published with the values of the paper's appendix G, one at a time, and with other seeds only

Two repairs are only in "all repairs", because they have no effect alone: `gives_up` needs a search without a hit, which
`one_class` allows, and `falls_back` a Sobol step that finds nothing, which `sobol_rays` allows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.methods.ace_published import explained
from benchmarks.published import PAPER
from benchmarks.published_ace import REPAIRS, PublishedAce
from benchmarks.statistics import bootstrap
from benchmarks.suite import RESULTS, Job, Line, Suite, read
from benchmarks.suites.paper import COLUMNS, measure_by
from benchmarks.table import Table, number
from benchmarks.task import CountedModel, Task

AS_PUBLISHED, ALL = "as published", "all repairs"
NO_EFFECT_ALONE = ("gives_up", "falls_back")
VARIANTS: dict[str, tuple[str, ...]] = {
    AS_PUBLISHED: (),
    **{name: (name,) for name in REPAIRS if name not in NO_EFFECT_ALONE},
    ALL: tuple(REPAIRS),
}
SWEPT: dict[str, tuple[float, ...]] = {  # the ranges of appendix G; the paper's choice is the default of PublishedAce
    "lambda_0": (2, 4, 6, 8, 12),
    "nu": (0.5, 1.5),
    "mc": (800, 1400, 2000),
    "growth": (1.1, 1.3, 1.7, 1.9),
    "sobol": (1000, 4000, 10000),
    "beta": (0.1, 1, 3, 7, 10, 100),
    "seed": (100, 200, 300, 400, 500),  # not a hyperparameter: the effect of chance alone
}
SETTINGS = {"default": {}, **{f"{name}={value:g}": {name: value} for name, values in SWEPT.items() for value in values}}
SWEPT_DATA = ("diabetes", "breast")  # numbers only: a run takes seconds


def measure(job: Job) -> list[Line]:
    """The result of ACE with some repairs on a row."""
    return timed(job, VARIANTS[job.method], {})


def measure_setting(job: Job) -> list[Line]:
    """The result of ACE as published on a row, with other values of its hyperparameters."""
    return timed(job, (), SETTINGS[job.method])


def timed(job: Job, repairs: Sequence[str], settings: dict[str, Any]) -> list[Line]:
    """The line of one run, with its CPU time."""
    settings = dict(settings)
    shift = int(settings.pop("seed", 0))

    def explain(task: Task, model: CountedModel, seed: int) -> Any:
        return explained(task, model, seed + shift, *repairs, **settings)

    started = time.process_time()
    (line,) = measure_by(explain, job)
    return [line | {"cpu": round(time.process_time() - started, 2)}]


# -- tables ------------------------------------------------------------------------------------------------------


def complete(lines: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """The lines of rows for which all of these methods have results."""
    lines = lines[lines["method"].isin(list(methods))]
    counts = lines.groupby(["data", "row"])["method"].transform("nunique")
    return lines[counts == len(methods)]


def ratio(lines: pd.DataFrame, method: str, base: str) -> tuple[float, float, float]:
    """The geometric mean of J over that of another method, over rows where both have an answer, with 95% interval."""
    wide = lines.pivot_table(index=["data", "row"], columns="method", values="J")
    logs = np.log((wide[method] / wide[base]).dropna().to_numpy())
    low, high = bootstrap(logs, np.arange(len(logs), dtype=float))
    return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))


def ablation_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """One line per variant over the rows that all variants have, and cost and queries by data set."""
    shared = complete(lines, list(VARIANTS))
    if shared.empty:
        return {}
    core = read(RESULTS / "mixed.csv")
    keys = set(zip(shared["data"], shared["row"], strict=True))
    core = core[[at in keys for at in zip(core["data"], core["row"], strict=True)]]
    core = core[core["method"] == "penalty"].drop_duplicates(["data", "row"], keep="last")
    everything = pd.concat([shared, core], ignore_index=True)
    rows = []
    for method in (*VARIANTS, "penalty"):
        runs = everything[everything["method"] == method]
        if runs.empty:
            continue
        words = "`penalty` of acex, beside it" if method == "penalty" else REPAIRS.get(method, method)
        cpu = runs["cpu"].mean() if method != "penalty" else np.nan
        over = "{:.2f} ({:.2f}–{:.2f})".format(*ratio(everything, method, AS_PUBLISHED))
        rows.append(
            [
                f"`{method}`" if method in REPAIRS else method,
                words if method in REPAIRS or method == "penalty" else "",
                str(len(runs)),
                number(runs["queries"].mean(), 0),
                f"{runs['valid'].astype(float).mean():.0%}",
                over if method != AS_PUBLISHED else "1",
                number(runs["affinity"].mean(), 2),
                number(cpu, 1),
            ]
        )
    header = [
        "variant",
        "what it changes",
        "rows",
        "queries",
        "valid",
        "J over as published (95%)",
        "affinity",
        "cpu seconds",
    ]
    tables = {"repairs": Table("ablation: ACE as published with each repair", header, rows)}
    for name, digits in (("queries", 0), ("J", 1), ("valid", 2), ("cpu", 1)):
        values = shared.assign(**{name: shared[name].astype(float)})
        wide = values.pivot_table(index="method", columns="data", values=name, dropna=False)
        wide = wide.reindex(index=list(VARIANTS), columns=[d for d in PAPER if d in wide.columns])
        n = shared[shared["method"] == AS_PUBLISHED].groupby("data").size()
        cells = [
            [str(method), *(number(v, digits) for v in row)]
            for method, row in zip(wide.index, wide.to_numpy(), strict=True)
        ]
        columns = [f"{d.replace('_', ' ')} ({n[d]} rows)" for d in wide.columns]
        tables[name] = Table(f"ablation: mean {name}", ["variant", *columns], cells)
    return tables


def sweep_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The range of means for each hyperparameter, compared with that for seeds alone."""
    shared = complete(lines, list(SETTINGS))
    if shared.empty:
        return {}
    rows = []
    for name, values in SWEPT.items():
        methods = ["default", *(f"{name}={value:g}" for value in values)]
        part = shared[shared["method"].isin(methods)]
        mean = part.groupby("method")[["queries", "J"]].mean()
        wide = part.pivot_table(index=["data", "row"], columns="method", values="J")
        spread = float((wide.max(axis=1) / wide.min(axis=1)).median())
        ends = [f"{number(mean[m].min(), d)} to {number(mean[m].max(), d)}" for m, d in (("queries", 0), ("J", 1))]
        shown = ", ".join(f"{value:g}" for value in values)
        rows.append([f"`{name}`", shown, *ends, number(spread, 2), f"{part['valid'].astype(float).mean():.0%}"])
    n = len(shared[shared["method"] == "default"])
    title = f"sweep: ACE as published, {n} rows of {', '.join(sorted(shared['data'].unique()))}"
    header = [
        "setting",
        "values, beside the paper's",
        "mean queries",
        "mean J",
        "largest J over least, median of rows",
        "valid",
    ]
    return {"sweep": Table(title, header, rows)}


def suite(name: str, **fields: Any) -> Suite:
    """A suite of runs of `PublishedAce`."""
    return Suite(name, columns=(*COLUMNS, "cpu"), revision=lambda method: PublishedAce.revision, **fields)


SUITES = (
    suite("ablation", data=PAPER, methods=tuple(VARIANTS), measure=measure, tables=ablation_tables, rows=20),
    suite("sweep", data=SWEPT_DATA, methods=tuple(SETTINGS), measure=measure_setting, tables=sweep_tables, rows=5),
)
