"""From raw lines of explanations to means, the paper's CFE score, and the queries needed to reach a cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from benchmarks.methods import METHODS
from benchmarks.suite import RESULTS

WEIGHTS = {"queries": 0.35, "d2": 0.25, "g1": 0.15, "affinity": 0.125, "validity": 0.125}  # section 5.1
NAMES = {"ACE": "penalty", "BayCon": "baycon", "MOC": "moc", "GS": "growing-spheres"}  # the paper's names, and ours

Known = dict[tuple[str, int], float]


def means(lines: pd.DataFrame, by: Sequence[str] = ("data",), raw: bool = False) -> pd.DataFrame:
    """Mean and standard deviation of each measure, by data set and method, with the score.

    Distances, affinity and the share of reference rows are means over valid explanations, as in the paper.

    Args:
        by: columns to group by; methods of one group are scored together.
        raw: use distances on raw codes instead of standard deviations.
    """
    d2, g1 = ("d2", "g1") if raw else ("d2n", "g1n")
    columns = {"queries": "queries", "d2": d2, "g1": g1, "affinity": "affinity", "J": "J", "validity": "valid"}
    blocks = []
    for where, block in lines.groupby(list(by), sort=False):
        scored = []
        for method, runs in block.groupby("method", sort=False):
            line: dict[str, Any] = {**dict(zip(by, where, strict=True)), "method": method, "n": len(runs)}
            for name, column in columns.items():
                line |= {name: runs[column].mean(), f"{name}_std": runs[column].std(ddof=0)}
            line["reference_rows"] = runs["is_reference_row"].astype(float).mean()
            # Labels of the reference, queried once, would serve all rows.
            shared = runs["reference"].mean() if METHODS[str(method)].labels_reference else 0.0
            line["amortised"] = line["queries"] - shared * (1 - 1 / len(runs))
            scored.append(line)
        table = pd.DataFrame(scored)
        blocks.append(table.assign(score=scores(table)))
    return pd.concat(blocks, ignore_index=True)


def scores(table: pd.DataFrame) -> FloatArray:
    """The CFE score of each row of means, 0 is best; NaN for a method without a valid explanation.

    Queries and distances are min-max normalised over the methods with a valid explanation; of affinity and validity,
    the difference to 1 is used. This reproduces the scores printed in the paper.
    """
    counted = table["validity"] > 0
    total = np.where(counted, 0.0, np.nan)
    for name, weight in WEIGHTS.items():
        values = table[name].to_numpy(dtype=float)
        if name in ("affinity", "validity"):
            total += weight * (1 - values)
        else:
            low, high = values[counted].min(initial=np.inf), values[counted].max(initial=-np.inf)
            total += weight * (values - low) / (high - low if high > low else 1.0)
    return total


def best_known(lines: pd.DataFrame) -> Known:
    """The least J of any hit of any method, by data set and row; infinite if there is none."""
    known: Known = {}
    for data, row, curve in lines[["data", "row", "curve"]].itertuples(index=False):
        known[data, row] = min(curve[-1][1] if curve else np.inf, known.get((data, row), np.inf))
    return known


def ratios(lines: pd.DataFrame, known: Known, queries: FloatArray) -> FloatArray:
    """The least J so far over the best known at each number of queries, (n, q); infinite before the first hit."""
    out = np.full((len(lines), len(queries)), np.inf)
    for i, (data, row, curve) in enumerate(lines[["data", "row", "curve"]].itertuples(index=False)):
        for asked, J in curve:
            out[i, queries >= asked] = J / known[data, row]
    return out


def needed(lines: pd.DataFrame, within: float) -> pd.DataFrame:
    """Queries until half of the rows are within a ratio of the best known; NaN if that never happens.

    Rows for which no method found anything are left out.
    """
    known = best_known(lines)
    possible = lines[[np.isfinite(known[key]) for key in zip(lines["data"], lines["row"], strict=True)]]
    out = []
    for (data, method), runs in possible.groupby(["data", "method"], sort=False):
        first = [
            next((asked for asked, J in curve if within * known[str(data), row] + 1e-9 >= J), np.inf)
            for row, curve in runs[["row", "curve"]].itertuples(index=False)
        ]
        middle = float(np.median(first))
        out.append({"data": data, "method": method, "queries": middle if np.isfinite(middle) else np.nan})
    return pd.DataFrame(out)


def published() -> pd.DataFrame:
    """The paper's tables with our names; `label` is 0 for its "Label 1" and 1 for the other one."""
    table = pd.read_csv(RESULTS / "published.csv")
    return table.assign(
        suite=table["test"],
        data=table["dataset"].str.lower().str.replace(r"[ -]", "_", regex=True),
        label=table["label"] - 1,
        method=table["method"].map(NAMES),
        affinity=table["alpha"],
    )
