"""From single results to figures: means, the paper's CFE score, and the queries it takes to reach a cost."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.bench.methods import METHODS

WEIGHTS = {"queries": 0.35, "d2": 0.25, "g1": 0.15, "affinity": 0.125, "validity": 0.125}  # section 5.1
RATIOS = (2.0, 1.5, 1.25, 1.1)  # J over the best known
PAPERS_NAMES = {"ACE": "penalty", "BayCon": "baycon", "MOC": "moc", "GS": "growing-spheres"}
GROUPS = {"fixed": ["suite", "data", "label"]}  # what is averaged together; by data set in the other suites


NUMBERS = ("J", "d2", "g1", "d2n", "g1n", "affinity", "n_changed")


def frame(records: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """One row for each explanation; a job with several results counts with its last one."""
    table = pd.DataFrame(records)
    table["reference"] = [r.get("reference", r.get("settings", {}).get("reference", np.nan)) for r in records]
    table = table.drop_duplicates(["suite", "data", "row", "seed", "method", "cap"], keep="last")
    for name in (*NUMBERS, "is_reference_row", "steady", "label", "error"):
        if name not in table:
            table[name] = np.nan
    table["valid"] = table["valid"].astype(bool)
    return table.reset_index(drop=True)


def means(results: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of each measure, by suite, data, label (fixed test only) and method, with the score.

    Distances are those of the suite: raw in the fixed test, in standard deviations in the others. They, the affinity
    and the share of rows of the reference are means over valid explanations, as in the paper.
    """
    lines = []
    for suite, part in results.groupby("suite", sort=False):
        d2, g1 = ("d2", "g1") if suite == "fixed" else ("d2n", "g1n")
        for where, block in part.groupby(GROUPS.get(str(suite), ["suite", "data"]), sort=False):
            place = dict(zip(("suite", "data", "label"), where, strict=False))
            scored = []
            for method, runs in block.groupby("method", sort=False):
                line: dict[str, Any] = {**place, "method": method, "n": len(runs)}
                columns = {"queries": "queries", "d2": d2, "g1": g1, "affinity": "affinity", "J": "J"}
                for name, column in columns.items():
                    line |= {name: runs[column].mean(), f"{name}_std": runs[column].std(ddof=0)}
                line |= {"validity": runs["valid"].mean(), "validity_std": runs["valid"].std(ddof=0)}
                # Of a row that a method found in the reference it has made nothing.
                line["reference_rows"] = runs["is_reference_row"].astype(float).mean()
                # Labels of the reference, asked once, would serve for all rows.
                shared = runs["reference"].mean() if METHODS[str(method)].labels_reference else 0.0
                line["amortised"] = line["queries"] - shared * (1 - 1 / len(runs))
                line["seconds"] = runs["seconds"].mean()
                scored.append(line)
            table = pd.DataFrame(scored)
            table["score"] = scores(table)
            lines.append(table)
    return pd.concat(lines, ignore_index=True)


def scores(table: pd.DataFrame) -> FloatArray:
    """The CFE score of each row of means, 0 is best; NaN for a method without a valid explanation.

    Queries and distances are min-max normalised over the methods that have one, affinity and validity count as
    what is missing to 1: this reproduces the scores that the paper prints.
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


Known = dict[tuple[Any, ...], float]


def best_known(results: pd.DataFrame) -> Known:
    """The least J of any hit of any method, by suite, data and row; infinite where there is none."""
    known: Known = {}
    for *where, curve in results[["suite", "data", "row", "curve"]].itertuples(index=False):
        least = curve[-1][1] if curve else np.inf
        known[tuple(where)] = min(least, known.get(tuple(where), np.inf))
    return known


def ratios(results: pd.DataFrame, known: Known, queries: FloatArray) -> FloatArray:
    """The least J so far of each result over the best known, at each number of queries, (n, q); infinite at first."""
    out = np.full((len(results), len(queries)), np.inf)
    for i, (suite, data, row, curve) in enumerate(results[["suite", "data", "row", "curve"]].itertuples(index=False)):
        for asked, J in curve:
            out[i, queries >= asked] = J / known[(suite, data, row)]
    return out


def needed(results: pd.DataFrame) -> pd.DataFrame:
    """How many queries it takes until half of the rows are within each ratio of the best known; NaN for never.

    Rows for which no method found anything are left out.
    """
    known = best_known(results)
    lines = []
    for (suite, data, method), runs in results.groupby(["suite", "data", "method"], sort=False):
        possible = runs[[np.isfinite(known[(suite, data, row)]) for row in runs["row"]]]
        if possible.empty:
            continue
        line: dict[str, Any] = {"suite": suite, "data": data, "method": method, "n": len(possible)}
        for ratio in RATIOS:
            first = [
                next((asked for asked, J in curve if ratio * known[(suite, data, row)] + 1e-9 >= J), np.inf)
                for row, curve in possible[["row", "curve"]].itertuples(index=False)
            ]
            middle = float(np.median(first))
            line[f"{ratio:g}x"] = middle if np.isfinite(middle) else np.nan
        lines.append(line)
    return pd.DataFrame(lines)


def paper() -> pd.DataFrame:
    """The paper's tables, with our names of data sets and methods; `label` is 0 for its "Label 1", 1 for the other."""
    table = pd.read_csv(str(files("acex.bench") / "paper.csv"))
    return pd.DataFrame(
        {
            "suite": table["test"],
            "data": table["dataset"].str.lower().str.replace(r"[ -]", "_", regex=True),
            "label": table["label"] - 1,
            "method": table["method"].map(PAPERS_NAMES),
            "queries": table["queries"],
            "d2": table["d2"],
            "g1": table["g1"],
            "affinity": table["alpha"],
            "validity": table["validity"],
            "score": table["score"],
        }
    )
