"""Models with random errors: whether the counterfactual is valid, and how many queries it takes.

    python -m benchmarks run --suite noise

Each answer is flipped with the same probability (in the name of the method), independently for each query, including
repeated ones; with "ignored" in the name, the search trusts every answer. A counterfactual is *valid* if it is a hit
for the model without noise.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import acex
from acex.arrays import FloatArray
from benchmarks.scenario import scenario
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

BUDGET = 60


def measure(job: Job) -> list[Line]:
    """One row, for a model with this share of its answers flipped."""
    s, share, ignored = scenario(job.data), float(job.method.split()[0]), "ignored" in job.method
    before = s.predict(s.rows[[job.row]])[0]
    rng = np.random.default_rng([job.row, 5])

    def model(X: FloatArray) -> FloatArray:
        right = s.predict(X)
        return np.where(rng.random(len(X)) < share, 1 - right, right)

    e = acex.explain(
        acex.Model(model, noise=0 if ignored else share),
        s.rows[job.row],
        s.reference,
        space=s.space,
        plausibility=acex.Plausibility(kind="lof", scale=False),
        target=1 - int(before),
        budget=BUDGET,
        seed=job.seed,
    )
    line: Line = {"found": e.outcome == "found", "queries": e.n_queries}
    if line["found"]:
        x = e.counterfactuals.to_numpy(float)[:1]
        line |= {"valid": bool(s.predict(x)[0] != before), "cost": e.costs[0]}
        line["certainty"] = e.certainty[0] if e.certainty else None
    return [line]


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Found, right, cost and queries by the share of flipped answers."""
    base = lines[lines["method"] == "0"].set_index(["data", "row"])["cost"]
    rows = []
    for method, part in lines.groupby("method"):
        share, *ignored = str(method).split()
        right = part[part["found"] & (part["valid"].astype(str) == "True")].set_index(["data", "row"])["cost"]
        times = np.exp(np.log((right / base).dropna()).mean())
        found, queries = f"{part['found'].sum()} of {len(part)}", f"{part['queries'].mean():.0f}"
        setting = "0" if ignored else share
        rows.append([f"{float(share):.0%}", f"`noise={setting}`", found, str(len(right)), f"{times:.2f}", queries])
    header = ["flipped", "setting", "found", "right", "cost, times that without noise", "queries"]
    return {"flipped": Table("flipped answers", header, rows)}


SUITES = (
    Suite(
        "noise",
        ("diabetes", "blood", "breast", "kc2"),
        ("0", "0.05", "0.05 ignored", "0.1", "0.1 ignored", "0.2", "0.2 ignored"),
        ("found", "valid", "cost", "certainty", "queries"),
        measure,
        tables,
        rows=15,
    ),
)
