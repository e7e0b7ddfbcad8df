"""Explanations that the tests of reports show."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.engine.explanation import Explanation
from acex.values import Remark
from explanations import ended, written


def data(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(50, 15, n).round(1),
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "school": pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "high"], ordered=True),
        }
    )


ROW = {"age": 30, "income": 40.0, "job": "cook", "school": "low"}


def model(rows: pd.DataFrame) -> Any:
    return np.where((rows["income"] > 50) & (rows["job"] != "cook") | (rows["age"] > 75), "good", "bad")


def explain(predict: Any = model, **options: Any) -> Explanation:
    return acex.explain(predict, ROW, data=data(), **{"budget": 25, "target": "good", **options})


@cache
def found() -> Explanation:
    return explain(
        acex.Model(model, name="bank-1"),
        count=2,
        freeze=["school"],
        ranges={"income": (0.0, 90.0)},
        values={"job": ["cook", "nurse"]},
        directions={"age": "increase"},
        rules=[lambda rows: np.asarray(rows["income"] < 500)],
        cost=acex.Cost(weights={"job": 2.0}),
    )


@cache
def outcomes() -> dict[str, Explanation]:
    missed = explain(lambda rows: ["bad"] * len(rows), budget=4)
    made = {"found": found(), "budget_spent": missed, "already_target": explain(target="bad")}
    ends = {"unlikely": "settled", "exhausted": "exhausted", "unfinished": "unfinished"}
    return made | {o: ended(missed, outcome=o, stopped_by=s) for o, s in ends.items()}


def renamed(names: list[str], categories: list[str], labels: tuple[str, str], model_id: str) -> Explanation:
    """An explanation with two alternatives whose every text is given."""
    space = acex.Space((acex.Integer(names[0], 0, 9), acex.Nominal(names[1], tuple(categories))))
    rows = [dict(zip(names, row, strict=True)) for row in ((1, categories[0]), (5, categories[0]), (1, categories[1]))]
    options = {"model_id": model_id, "ranges": {names[1]: categories}, "strategy": {"name": model_id}}
    return written(
        space,
        rows,
        labels=[labels[0], labels[1], labels[1]],
        costs=(0.0, 3.0, 4.0),
        chosen=(1, 2),
        target=labels[1],
        deviations=np.array([2.0, 0.5]),
        settings=options,
        remarks=(Remark("test", model_id, is_warning=True),),
    )
