"""A model that contradicts itself: is what is returned right, and what does it cost?

    python benchmarks/noise.py                         # the ground: four data sets, 15 rows each, 60 queries
    python benchmarks/noise.py --simulated 40          # simulated tasks, on which the constants of `votes` were chosen
    python benchmarks/noise.py --auto                  # the share is not told but learnt

Each answer is flipped with the same probability, independently at each ask, votes included. *Valid* is a returned
counterfactual that the model without noise calls a hit; on simulated tasks a *careless* search, which knows nothing of
noise, is shown beside. Cost is compared with that of the same row without noise.

The ground needs the data sets: set ACEX_DATA.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from simulated import VALIDATION, Case, task

import acex
from acex.arrays import FloatArray
from acex.bench.ground import ground
from acex.search.feasible import Feasible
from acex.search.search import Search
from acex.search.votes import Noise, Share

SHARES = (0.0, 0.05, 0.1, 0.2)
DATA = ("diabetes", "blood", "breast", "kc2")
RESULTS = Path(__file__).parent / "results"
Line = dict[str, Any]


def searched(case: Case, seed: int, flipped: float, noise: Noise | None, budget: int) -> Line:
    """One simulated search; the factual's label is taken for known, and its votes for paid."""
    rng = np.random.default_rng([seed, 5])
    paid = 0 if noise is None else noise.confirm - 1
    search = Search.begin(case.problem, Feasible(), seed, budget=budget - paid, noise=noise)
    while len(search.history.queries) < search.budget and (query := search.ask()) is not None:
        hit = bool(case.is_hit(query.point[None])[0]) != (rng.random() < flipped)
        search = search.tell(query, hit)
    return _line(search.best, case, len(search.history.queries) + paid, search.votes)


def _line(x: FloatArray | None, case: Case, n_queries: int, votes: list[tuple[int, int, float]]) -> Line:
    found = x is not None
    return {
        "found": found,
        "valid": bool(case.is_hit(x[None])[0]) if x is not None else None,
        "cost": float(case.problem.cost(x[None])[0]) if x is not None else np.nan,
        "certainty": votes[0][2] if votes else None,
        "queries": n_queries,
    }


def simulated(seed: int, budget: int, auto: bool) -> list[Line]:
    """All shares, and both ways, for the cases of one task."""
    lines = []
    for row, case in enumerate(task(VALIDATION + seed, n_rows=1)):
        for share in SHARES:
            for way in ("careless", "noise"):
                told: Share = "auto" if auto else share
                noise = Noise.of(told, 3) if way == "noise" else None
                line = searched(case, seed, share, noise, budget)
                lines.append({"data": f"task {seed}", "row": row, "flipped": share, "way": way, **line})
    return lines


def explained(name: str, row: int, share: float, budget: int, auto: bool) -> list[Line]:
    """One withheld row of the ground, for a model with this share of its answers flipped."""
    g = ground(name)
    before = g.predict(g.rows[[row]])[0]
    rng = np.random.default_rng([row, 5])

    def model(X: FloatArray) -> FloatArray:
        right = g.predict(X)
        return np.where(rng.random(len(X)) < share, 1 - right, right)

    e = acex.explain(
        model,
        g.rows[row],
        data=g.reference,
        space=g.space,
        plausibility=acex.Plausibility(kind="lof", scale=False),
        target=1 - int(before),
        budget=budget,
        noise="auto" if auto else share,
        seed=row,
    )
    found = e.outcome == "found"
    x = e.counterfactuals.to_numpy(float)[:1]
    line = {
        "found": found,
        "valid": bool(g.predict(x)[0] != before) if found else None,
        "cost": e.costs[0] if found else np.nan,
        "certainty": e.certainty[0] if e.certainty else None,
        "queries": e.n_queries,
    }
    return [{"data": name, "row": row, "flipped": share, "way": "noise", **line}]


def summary(lines: pd.DataFrame) -> pd.DataFrame:
    """Found, valid and cost for each share and way; cost beside that of the same row without noise."""
    base = lines[lines.flipped == 0].drop_duplicates(["data", "row"]).set_index(["data", "row"]).cost
    out = []
    for (share, way), part in lines.groupby(["flipped", "way"]):
        found = part[part.found]
        right = found[found.valid.astype(bool)]
        ratio = right.set_index(["data", "row"]).cost / base
        out.append(
            {
                "flipped": share,
                "way": way,
                "rows": len(part),
                "found": part.found.mean(),
                "valid": found.valid.astype(bool).mean(),
                "told": pd.to_numeric(found.certainty).mean(),
                "cost, times": np.exp(np.log(ratio.dropna()).mean()),
                "queries": part.queries.mean(),
            }
        )
    return pd.DataFrame(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", type=int, help="so many simulated tasks instead of the ground")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--rows", type=int, default=15)
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--auto", action="store_true")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, default=RESULTS / "noise.csv")
    args = parser.parse_args()
    if args.simulated:
        seeds = range(args.first, args.first + args.simulated)
        jobs = [joblib.delayed(simulated)(seed, args.budget, args.auto) for seed in seeds]
    else:
        names = args.data.split(",")
        wanted = [(name, row, share) for row in range(args.rows) for name in names for share in SHARES]
        jobs = [joblib.delayed(explained)(*one, args.budget, args.auto) for one in wanted]
    told: list[Line] = []
    for part in joblib.Parallel(n_jobs=args.jobs, return_as="generator")(jobs):
        told += part
        if not args.simulated:  # what is done is kept, should it be stopped
            pd.DataFrame(told).to_csv(args.out, index=False, float_format="%.4g")
    print(summary(pd.DataFrame(told)).to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
