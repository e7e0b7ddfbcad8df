"""Evaluate the rule of `acex.space.grid.few_values`, which finds numeric columns with few values, on simulated columns.

    python -m benchmarks.few_values     # writes results/few_values.csv; prints shares by number of rows and by kind

Kinds in FEW should be recognised, kinds in MANY should not. Columns that leave no value out are not counted, since
for them a list of values and a range mean the same. The constants of the rule were chosen on columns of an earlier
generator with fewer kinds; none was changed after the results on these columns were known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.space.grid import few_values, step_of
from benchmarks.suite import RESULTS

Rng = np.random.Generator

FEW: dict[str, Callable[[Rng], Any]] = {
    "codes": lambda r: r.choice(np.arange(r.choice([10, 20, 100])), r.integers(3, 9), replace=False),
    "terms": lambda r: 12 * np.arange(1, r.integers(4, 8)),
    "discounts": lambda r: (0.05 * r.choice(12, r.integers(4, 9), replace=False)).round(2),
    "speeds": lambda r: np.array([25, 33, 50, 66, 75, 100]),
    "powers of two": lambda r: 2.0 ** np.arange(r.integers(0, 3), r.integers(5, 9)),
    "doses": lambda r: np.array([0, 0.5, 1, 2, 5, 10, 20])[: r.integers(4, 8)],
    "sizes": lambda r: r.choice(np.arange(20, 400, 5), r.integers(5, 15), replace=False),
    "rates": lambda r: r.uniform(1, 9, r.integers(4, 12)).round(2),
    "years": lambda r: np.arange(1990, 2024, r.integers(2, 6)),
    "15 to 29 numbers": lambda r: r.choice(np.arange(1, 500), r.integers(15, 30), replace=False),
}
MANY: dict[str, Callable[[Rng, int], Any]] = {
    "ages": lambda r, n: r.normal(r.uniform(25, 50), r.uniform(4, 15), n).round().clip(18, 90),
    "ages, uniform": lambda r, n: r.integers(18, r.integers(60, 95), n),
    "ages of students": lambda r, n: 17 + r.gamma(2, r.uniform(0.8, 3), n).round(),
    "ages, often rounded to 5": lambda r, n: _heaped(r, r.uniform(18, 80, n).round(), 5, r.uniform(0.2, 0.7)),
    "incomes": lambda r, n: r.lognormal(10, 0.7, n).round(-int(r.integers(0, 4))),
    "incomes, often rounded to 500": lambda r, n: _heaped(
        r, r.lognormal(8, 0.6, n).round(-1), 500, r.uniform(0.3, 0.8)
    ),
    "counts, Poisson": lambda r, n: r.poisson(np.exp(r.uniform(-1, 5)), n),
    "counts, negative binomial": lambda r, n: r.negative_binomial(r.choice([0.3, 1, 3]), r.uniform(0.01, 0.4), n),
    "counts 0 to 200": lambda r, n: r.integers(0, 201, n),
    "counts, Zipf": lambda r, n: np.minimum(r.zipf(r.uniform(1.5, 3), n), 5000),
    "counts, binomial": lambda r, n: r.binomial(r.integers(5, 40), r.uniform(0.05, 0.9), n),
    "scores": lambda r, n: (100 * r.beta(5, 2, n)).round(),
    "mostly zero": lambda r, n: np.where(r.random(n) < r.uniform(0.5, 0.95), 0, r.gamma(2, 20, n).round()),
    "hours, half of them 40": lambda r, n: np.where(r.random(n) < 0.5, 40, r.normal(38, 12, n).round()).clip(1, 99),
    "continuous": lambda r, n: r.normal(size=n),
    "rounded": lambda r, n: (r.normal(size=n) * 10 ** r.uniform(-1, 2)).round(int(r.integers(0, 3))),
    "capped": lambda r, n: r.lognormal(3, 1, n).clip(5, r.uniform(30, 100)).round(int(r.integers(0, 2))),
    "two clusters": lambda r, n: np.where(r.random(n) < 0.5, r.normal(20, 2, n), r.normal(80, 3, n)).round(),
    "years": lambda r, n: r.integers(1950, 2020, n),
}


def column(seed: int) -> tuple[bool, str, FloatArray]:
    """Whether a column should be recognised, its kind, and 12 to 20,000 values."""
    rng = np.random.default_rng([79, seed])
    n = int(np.exp(rng.uniform(np.log(12), np.log(20_000))))
    if rng.random() < 0.5:
        kind = str(rng.choice(list(FEW)))
        values = np.asarray(FEW[kind](rng), dtype=float)
        return True, kind, rng.choice(values, n, p=rng.dirichlet(np.full(len(values), rng.choice([0.5, 1, 5]))))
    kind = str(rng.choice(list(MANY)))
    return False, kind, np.asarray(MANY[kind](rng, n), dtype=float)


def _heaped(rng: Rng, x: FloatArray, unit: float, share: float) -> FloatArray:
    return np.where(rng.random(len(x)) < share, (x / unit).round() * unit, x)


def results(seeds: range) -> pd.DataFrame:
    """One line per column that leaves a value out."""
    lines = []
    for seed in seeds:
        is_few, kind, x = column(seed)
        values = pd.Series(x)
        step = step_of(values)
        if (np.diff(np.unique(x)) > 1.5 * step).any():
            size = "12 to 49" if len(x) < 50 else "50 to 199" if len(x) < 200 else "200 and more"
            lines.append((is_few, kind, size, bool(few_values(values, step))))
    return pd.DataFrame(lines, columns=pd.Index(["is few", "kind", "rows", "recognised"]))


if __name__ == "__main__":
    lines = results(range(1, 12_000, 2))
    lines.groupby(["is few", "kind", "rows"])["recognised"].agg(["sum", "size"]).to_csv(RESULTS / "few_values.csv")
    for by in ("rows", "kind"):
        print(lines.groupby(["is few", by])["recognised"].agg(["mean", "size"]).round(4).to_string(), end="\n\n")
