"""Ten thousand categories in one column against ten in the same column: time and memory, as ratios within one run.

    python benchmarks/categories.py                  # 30,000 rows of ten features

Each table is explained in a process of its own, so that the peak of its memory can be told: two rows by either
strategy, and one with known outcomes as hints. Times are CPU seconds. The target is three at most.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import acex

FEW_AND_MANY, MOST = (10, 10_000), 3.0
WAYS: dict[str, dict[str, Any]] = {
    "feasible": {"strategy": "feasible"},
    "penalty": {"strategy": "penalty"},
    "feasible, with outcomes": {"strategy": "feasible", "labels": True},
}


def table(n: int, n_categories: int) -> tuple[pd.DataFrame, Any]:
    """Eight numbers, a column of three words, and a town, which counts for a third of what the decision hangs on."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(n, 8)).round(3), columns=[f"x{j}" for j in range(8)])
    rows["plan"] = rng.choice(["small", "medium", "large"], n)
    towns = np.array([f"town {i}" for i in range(n_categories)])
    rows["town"] = pd.Categorical(rng.choice(towns, n), towns)
    wealth = pd.Series(rng.normal(size=n_categories), index=towns)

    def decide(rows: pd.DataFrame) -> Any:
        leaning = rows["x0"] + rows["x1"] + (rows["plan"] == "large") + wealth[rows["town"]].to_numpy()
        return np.where(leaning > 1.5, "yes", "no")

    return rows, decide


def work(n: int, n_categories: int, way: str) -> None:
    """Explain two rows and print what it took, as JSON."""
    rows, decide = table(n, n_categories)
    options = dict(WAYS[way])
    labels = decide(rows) if options.pop("labels", False) else None
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.process_time()
    explainer = acex.Explainer(decide, rows, labels=labels, model_id="towns")
    ready = time.process_time()
    refused = np.flatnonzero(decide(rows) == "no")[:2]
    found = [explainer.explain(rows.iloc[i], budget=30, progress=False, **options) for i in refused]
    took = {"prepare": ready - start, "explain": time.process_time() - ready}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
    print(json.dumps({**took, "MB": peak / 1024, "queries": sum(e.n_queries for e in found)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--one", nargs=2, metavar=("WAY", "CATEGORIES"), help="one measurement, in this process")
    options = parser.parse_args()
    if options.one:
        work(options.rows, int(options.one[1]), options.one[0])
        return
    lines = []
    for way in WAYS:
        for n_categories in FEW_AND_MANY:
            words = [sys.executable, __file__, "--rows", str(options.rows), "--one", way, str(n_categories)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            lines.append({"way": way, "categories": n_categories, **json.loads(done.stdout)})
    taken = pd.DataFrame(lines)
    taken["total"] = taken["prepare"] + taken["explain"]
    print(taken.round(2).to_string(index=False))
    taken.round(3).to_csv(Path(__file__).parent / "results" / "categories.csv", index=False)
    by_way = taken.set_index("way")[["categories", "prepare", "explain", "total", "MB"]]
    few, many = (by_way[by_way["categories"] == n].drop(columns="categories") for n in FEW_AND_MANY)
    print(f"\nmany over few (the target is {MOST:g} at most, of total and MB)")
    print((many / few).round(2).to_string())


if __name__ == "__main__":
    main()
