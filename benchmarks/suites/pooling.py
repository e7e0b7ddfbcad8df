"""Many rows of one model: how many queries are saved by sharing answers.

    python -m benchmarks run --suite pooling --data diabetes
    python -m benchmarks table --suite pooling && python -m benchmarks plot --suite pooling
    python -m benchmarks run --suite sharing    # CPU time of an explanation that uses earlier answers

200 withheld rows of a data set are explained in a random order, as in `explain_many`, in five ways:

    alone    60 queries per row, nothing shared
    pooled   60 queries per row, each row uses the answers of all rows before it
    taught   the second hundred with 10 queries per row, after the first hundred with 60
    taught20 the same with 20
    ten      10 queries per row from the first row on

A raw line has the best J (the paper's, d2n + 5 g1n on codes) after 10 and after all queries.
"""

from __future__ import annotations

import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import acex
from acex.arrays import FloatArray
from benchmarks.scenario import Scenario, published
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

DATA = ("diabetes", "breast", "kc2", "blood", "german_credit")
N_ROWS, FEW, MORE, ENOUGH = 200, 10, 20, 60
SPEND = acex.Feasible(effort="spend")
WAYS = {  # queries per row, for the first and second half of the rows
    "alone": (ENOUGH, ENOUGH),
    "pooled": (ENOUGH, ENOUGH),
    "taught": (ENOUGH, FEW),
    "taught20": (ENOUGH, MORE),
    "ten": (FEW, FEW),
}


def explainer_of(s: Scenario, shares: bool, ledger: Path) -> acex.Explainer:
    """An explainer of the scenario's model with the paper's filter."""
    return acex.Explainer(
        acex.Model(s.predict, name=s.name),
        s.reference,
        space=s.space,
        plausibility=acex.Plausibility(kind="lof", scale=False),
        share_answers=shares,
        ledger=ledger,
    )


@cache
def curves(data: str, way: str) -> list[FloatArray]:
    """The best J of each row after 0, 1, ... paid queries; infinite before the first hit."""
    s = published(data, n_withheld=N_ROWS)
    first, second = WAYS[way]
    out = []
    with tempfile.TemporaryDirectory() as folder:
        explainer = explainer_of(s, way != "alone", Path(folder) / "ledger.db")
        for i, x in enumerate(np.random.default_rng(0).permutation(s.rows)):
            budget = first if i < N_ROWS // 2 else second
            session = explainer.search(x, budget=budget, strategy=SPEND)
            e = session.run()
            X = np.array([list(step.row.values()) for step in e.steps], dtype=float)
            J = np.where([step.hit for step in e.steps] & session.problem.plausible(X), s.cost(X, x), np.inf)
            paid = np.cumsum([step.paid > 0 for step in e.steps])
            best = np.full(budget + 1, np.inf)
            np.minimum.at(best, np.minimum(paid, budget), J)
            out.append(np.minimum.accumulate(best))
        explainer.ledger.close()
    return out


def measure(job: Job) -> list[Line]:
    """One line per row; `needed` is the number of queries to reach the cost of "alone", or up to one percent more."""
    lines = []
    for i, (J, alone) in enumerate(zip(curves(job.data, job.method), curves(job.data, "alone"), strict=True)):
        needed = np.where(1.01 * alone[-1] >= J, np.arange(len(J)), len(J)).min()
        lines.append({"row": i, "seed": 0, "J_few": J[FEW], "J": J[-1], "needed": int(needed)})
    return lines


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """10 and 20 queries with shared answers compared with 60 alone, over the second hundred rows."""
    columns: dict[str, list[str]] = {}
    for name in (n for n in DATA if n in set(lines["data"])):
        second = lines[(lines["data"] == name) & (lines["row"] >= N_ROWS // 2)]
        ways = {way: part.set_index("row") for way, part in second.groupby("method")}
        alone = ways["alone"]["J"]
        taught = {FEW: ways["taught"]["J_few"], MORE: ways["taught20"]["J"]}
        columns[name.replace("_", " ")] = [
            f"{alone[np.isfinite(alone)].mean():.1f}",
            *(_found(J) for J in (ways["alone"]["J_few"], taught[FEW], taught[MORE], ways["ten"]["J_few"])),
            *(_beside(J, alone) for J in taught.values()),
        ]
    names = (
        *("60 queries alone", "10 queries alone", "10 queries, *taught*", "20 queries, *taught*", "10 queries, *ten*"),
        *("10 queries, *taught*, over 60 alone", "20 queries, *taught*, over 60 alone"),
    )
    rows = [[name, *(cells[i] for cells in columns.values())] for i, name in enumerate(names)]
    return {"second-hundred": Table("mean J over the second hundred rows", ["", *columns], rows)}


def _beside(J: pd.Series[float], alone: pd.Series[float]) -> str:
    """Mean over mean, median of the ratios, and the share of rows that cost more than twice as much."""
    ratio = (J / alone)[np.isfinite(J) & np.isfinite(alone)]
    mean = J[ratio.index].mean() / alone[ratio.index].mean()
    return f"{mean:.2f} / {ratio.median():.2f} / {(ratio > 2).mean():.0%}"


def _found(J: pd.Series[float]) -> str:
    found = np.isfinite(J)
    return f"{J[found].mean():.1f} ({found.mean():.0%})"


def pictures(lines: pd.DataFrame) -> dict[str, Figure]:
    """Queries needed for the cost of 60 queries without sharing, against rows explained."""
    names = [name for name in DATA if name in set(lines["data"])]
    figure = Figure(figsize=(3.2 * len(names), 3.0), dpi=130, layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        for way, colour in (("alone", "0.6"), ("pooled", "C0")):
            needed = lines[(lines["data"] == name) & (lines["method"] == way)].set_index("row")["needed"]
            smooth = needed.rolling(25, min_periods=10, center=True).mean()
            axes.plot(needed.index + 1, smooth, color=colour, label=way)
        axes.set(title=name.replace("_", " "), xlabel="rows explained", ylim=(0, ENOUGH))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("queries needed for the cost\nthat 60 queries alone reach")
    panels[0].legend(frameon=False)
    return {"many": figure}


N_BEFORE, QUERIES = 30, 30


def measure_sharing(job: Job) -> list[Line]:
    """CPU seconds of 30 explanations of 30 queries after 30 others, alternately without and with their answers."""
    s = published(job.data)
    with tempfile.TemporaryDirectory() as folder:
        explainers = [explainer_of(s, shares, Path(folder) / f"{shares}.db") for shares in (False, True)]
        seconds = np.zeros((2 * N_BEFORE, 2))
        for i, j in np.ndindex(*seconds.shape):
            start = time.process_time()
            explainers[j].search(s.rows[i], budget=QUERIES, strategy=SPEND).run()
            seconds[i, j] = time.process_time() - start
        for explainer in explainers:
            explainer.ledger.close()
    alone, pooled = seconds[N_BEFORE:].mean(axis=0)
    return [{"alone_s": alone, "pooled_s": pooled, "ratio": pooled / alone}]


def sharing_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Seconds of an explanation of 30 queries."""
    rows = [
        [line["data"].replace("_", " "), f"{line['alone_s']:.2f}", f"{line['pooled_s']:.2f}", f"{line['ratio']:.2f}"]
        for _, line in lines.iterrows()
    ]
    return {"sharing": Table("CPU seconds of 30 queries", ["", "alone, s", "with earlier answers, s", "ratio"], rows)}


SUITES = (
    Suite(
        "pooling",
        DATA,
        tuple(WAYS),
        ("J_few", "J", "needed"),
        measure,
        tables,
        pictures=pictures,
        revision=lambda method: acex.Feasible.revision,
    ),
    Suite("sharing", DATA, ("pooled",), ("alone_s", "pooled_s", "ratio"), measure_sharing, sharing_tables),
)
