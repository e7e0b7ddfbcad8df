"""Does a comparison of groups find what is there, and nothing where nothing is?

    python benchmarks/groups.py                # 40 experiments of each kind, 40 rows each, 3 queries a row

Each experiment draws data, a model that asks for two things at once and approves few, and two groups of 20 rejected
rows. In the first three the names of groups are drawn by chance: whatever is found comes from the order of work.

    drawn   as `explain_many(by=...)` works: the order is drawn, each group spread evenly over it
    first   group x first, then group y
    alone   the same with Explainer(pool=False): nobody learns, but what was asked for one row is free for the next
    other   the order is drawn, and the rows of group y really are further from approval

Of the p values of `drawn` at most about 5 in 100 should be 0.05 or less. `first` and `other` are the controls: an
experiment that could find no difference would find none there either.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import acex
from acex.audit.groups import Groups
from acex.engine.row_result import Line

RESULTS = Path(__file__).parent / "results"
WAYS = ("drawn", "first", "alone", "other")
N = 20  # rows of a group
LEVEL = 0.05


def experiment(way: str, seed: int, budget: int) -> list[dict[str, Any]]:
    """The differences of one experiment: a line for each measure."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(rng.normal(size=(200, 4)).round(3), columns=list("abcd"))
    w = rng.normal(size=(2, 4))
    scores = data.to_numpy() @ w.T
    least = np.quantile(scores, 0.85, axis=0)

    def model(rows: pd.DataFrame) -> Any:
        return np.where((rows.to_numpy() @ w.T >= least).all(axis=1), "yes", "no")

    far = np.maximum(least - scores, 0.0).sum(axis=1)
    rejected = rng.permutation(np.flatnonzero(model(data) == "no"))[: 2 * N]
    if way == "other":  # the nearer half is group x
        rejected = rejected[np.argsort(far[rejected], kind="stable")]
    rows, names = data.iloc[rejected], pd.Series(np.repeat(["x", "y"], N), name="group")
    options: Any = {"target": "yes", "budget": budget, "n_jobs": 1, "seed": seed, "progress": False}
    explainer = acex.Explainer(model, data, pool=way != "alone")
    if way in ("drawn", "other"):
        told = explainer.explain_many(rows, by=names, **options).summary().groups
        assert told is not None
    else:
        lines = [
            Line.of(e, e.n_queries) for half in (rows[:N], rows[N:]) for e in explainer.explain_many(half, **options)
        ]
        told = Groups.of(lines, names, seed=seed)
    return [
        {"way": way, "seed": seed, "measure": d.measure, "difference": d.difference, "p": d.p}
        for d in told.differences.itertuples()
    ]


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """For each way and measure: how many p values are at most 0.05, of how many, and the mean difference."""
    known = lines.dropna(subset="p")
    by = known.assign(small=known.p <= LEVEL).groupby(["way", "measure"], sort=False)
    return by.agg(small=("small", "sum"), of=("small", "size"), difference=("difference", "mean")).reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=40)
    parser.add_argument("--budget", type=int, default=3)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=RESULTS / "groups.csv")
    args = parser.parse_args()
    wanted = [(way, seed) for way in args.ways.split(",") for seed in range(args.experiments)]
    jobs = [joblib.delayed(experiment)(way, seed, args.budget) for way, seed in wanted]
    told = pd.DataFrame([line for part in joblib.Parallel(n_jobs=args.jobs)(jobs) for line in part])
    told.to_csv(args.out, index=False, float_format="%.4g")
    print(summary(told).to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
