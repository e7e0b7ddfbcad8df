"""Searches whose questions are written down in `questions.json`: plain labels ask the same rows as ever.

`python tests/questions.py` writes them anew, for a strategy whose revision has changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.search.strategies import STRATEGIES

RECORD = Path(__file__).with_suffix(".json")


def rows() -> pd.DataFrame:
    """Forty rows with every kind of column."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "income": rng.normal(3000, 800, 40).round(),
            "children": rng.integers(0, 5, 40),
            "job": np.array(["cook", "clerk", "judge"])[rng.integers(0, 3, 40)],
        }
    )


def score(table: pd.DataFrame) -> Any:
    return (table["income"] - 400 * table["children"] + 500 * (table["job"] == "judge")).to_numpy() - 3200


def labels(table: pd.DataFrame) -> Any:
    return np.where(score(table) > 0, "yes", "no")


def probabilities(table: pd.DataFrame) -> pd.DataFrame:
    p = 1 / (1 + np.exp(-score(table) / 500))
    return pd.DataFrame({"no": 1 - p, "yes": p})


def searches() -> dict[str, Any]:
    """Each kind of search, by name: the explanation that it ends with."""
    data = rows()
    x = data[labels(data) == "no"].iloc[0]
    outcomes = np.where(score(data) + np.random.default_rng(1).normal(0, 300, 40) > 0, "yes", "no")
    explainer = acex.Explainer(labels, data)
    return {
        "labels": explainer.explain(x, target="yes", budget=8),
        "pooled, with a rule": explainer.explain(
            data[labels(data) == "no"].iloc[1],
            budget=8,
            count=2,
            freeze=["children"],
            constraint=lambda table: table["income"] < 4800,
        ),
        "outcomes": acex.explain(labels, x, data=data, labels=outcomes, target="yes", budget=8),
        "scores": acex.explain(probabilities, x, data=data, target="yes", scores=True, budget=8, queries_per_round=2),
        "penalty": acex.explain(labels, x, data=data, strategy=acex.Penalty(n0=4), budget=7),
    }


def asked() -> dict[str, Any]:
    """The revisions of the strategies, and the rows of each search."""
    revisions = {name: kind.revision for name, kind in STRATEGIES.items()}
    return {"revisions": revisions, "rows": {n: e.asked.to_numpy().tolist() for n, e in searches().items()}}


if __name__ == "__main__":
    RECORD.write_text(json.dumps(asked()) + "\n")
