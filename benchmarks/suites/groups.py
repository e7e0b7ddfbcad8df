"""Whether a comparison of groups finds a difference if there is one, and only then.

    python -m benchmarks run --suite groups    # 40 experiments of each kind, 40 rows each, 3 queries per row

Each experiment draws data, a model with two conditions that approves few, and two groups of 20 rejected
rows. In the first three kinds the groups are drawn at random, so any difference is due to the order of work.

    drawn   as in `explain_many`: random order
    first   group x first, then group y
    alone   the same with Explainer(share_answers=False): nothing is shared, but a row queried before is free
    other   random order, and the rows of group y are further from approval

At most about 5 in 100 p values of `drawn` should be 0.05 or less. `first` and `other` are the controls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.audit.groups import Groups
from acex.engine.row_result import RowResult
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

N, BUDGET, LEVEL = 20, 3, 0.05  # rows per group, queries per row, significance level


def measure(job: Job) -> list[Line]:
    """The differences of one experiment, one line per measure."""
    rng = np.random.default_rng(job.seed)
    data = pd.DataFrame(rng.normal(size=(200, 4)).round(3), columns=list("abcd"))
    w = rng.normal(size=(2, 4))
    scores = data.to_numpy() @ w.T
    least = np.quantile(scores, 0.85, axis=0)

    def model(rows: pd.DataFrame) -> Any:
        return np.where((rows.to_numpy() @ w.T >= least).all(axis=1), "yes", "no")

    far = np.maximum(least - scores, 0.0).sum(axis=1)
    rejected = rng.permutation(np.flatnonzero(model(data) == "no"))[: 2 * N]
    if job.method == "other":  # the nearer half is group x
        rejected = rejected[np.argsort(far[rejected], kind="stable")]
    rows, names = data.iloc[rejected], pd.Series(np.repeat(["x", "y"], N), name="group")
    options: Any = {"target": "yes", "budget": BUDGET, "n_jobs": 1, "seed": job.seed, "progress": False}
    explainer = acex.Explainer(model, data, share_answers=job.method != "alone")
    if job.method in ("drawn", "other"):
        groups = explainer.explain_many(rows, **options).summary(by=names).groups
        assert groups is not None
    else:
        lines = [
            RowResult.of(e, e.n_queries)
            for half in (rows[:N], rows[N:])
            for e in explainer.explain_many(half, **options)
        ]
        groups = Groups.of(lines, names, seed=job.seed)
    return [{"measure": d.measure, "difference": d.difference, "p": d.p} for d in groups.differences.itertuples()]


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """How often a difference is found, and how large it is on average."""
    known = lines.dropna(subset="p").query("measure != 'queries'")  # all of them spend their budget
    rows = []
    for way in known["method"].unique():
        parts = dict(iter(known[known["method"] == way].groupby("measure")))
        small = [f"{int((parts[m]['p'] <= LEVEL).sum())} of {len(parts[m])}" for m in ("found", "cost", "changes")]
        rows.append([way, *small, f"{parts['found']['difference'].mean():+.2f}"])
    header = ["experiment", "share found", "cost", "changes", "difference in the share found"]
    return {"differences": Table("differences with p of at most 0.05", header, rows)}


WAYS = ("drawn", "first", "alone", "other")
SUITES = (Suite("groups", ("simulated",), WAYS, ("measure", "difference", "p"), measure, tables, rows=40),)
