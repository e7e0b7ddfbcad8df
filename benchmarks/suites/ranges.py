"""A range of numbers as the target, compared with the same range as a yes/no label.

    python -m benchmarks run --suite ranges                     # "number" measures both; "dice" needs `make peers`

Three tables: scikit-learn's diabetes, a generated one that resembles houses in California, and the cars of the package
vega_datasets. On each a forest or gradient boosting is trained on two thirds of the rows, which are the reference; rows
of the last third are explained. The range is the upper third of the numbers of known rows for rows below it, or a tenth
around the median.

    number   target=acex.Between(low, high)
    yes/no   lambda rows: low <= model(rows) <= high, target=True
    dice     DiCE's random search with `desired_range`

A raw line has the query of the first hit, the cost after 10, 20 and 30 queries, and the number of queries to come
within 10% of the best cost found by "number" or "yes/no".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import acex
from benchmarks.methods.isolated import isolated
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table

BUDGET, AFTER, CLOSE = 30, (10, 20, 30), 1.1
MODELS = {"forest": RandomForestRegressor(60, random_state=0), "boosting": GradientBoostingRegressor(random_state=0)}
RANGES = {"upper third": (2 / 3, 1.0), "middle": (0.45, 0.55)}  # quantiles of the numbers of known rows


def diabetes() -> tuple[pd.DataFrame, Any]:
    table = load_diabetes(as_frame=True, scaled=False)
    return table.data, table.target.to_numpy()


def houses() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    n = 900
    place = rng.choice([0.0, 1.0], n) + rng.normal(0, 0.15, n)
    income = np.exp(rng.normal(1.2, 0.4, n)) * (1 + 0.3 * place)
    rooms, age = np.exp(rng.normal(1.65, 0.25, n)), rng.integers(1, 53, n)
    people = np.exp(rng.normal(1.05, 0.25, n))
    value = 40 * income + 60 * place * income**0.5 + 12 * rooms - 15 * people + 0.5 * age + rng.normal(0, 15, n)
    rows = {"income": income, "age": age, "rooms": rooms, "people": people, "place": place}
    return pd.DataFrame(rows).round(3), np.minimum(value, 500)


def cars() -> tuple[pd.DataFrame, Any]:
    from vega_datasets import local_data

    table = local_data.cars().dropna()
    return table.drop(columns=["Name", "Miles_per_Gallon", "Year"]), table["Miles_per_Gallon"].to_numpy()


TABLES: dict[str, Callable[[], tuple[pd.DataFrame, Any]]] = {"diabetes": diabetes, "houses": houses, "cars": cars}


@dataclass(frozen=True, eq=False)
class Setting:
    """A table with a fitted model and a range."""

    space: acex.Space
    known: pd.DataFrame
    outside: pd.DataFrame  # rows to explain, below the range
    model: Any
    low: float
    high: float

    def predict(self, rows: pd.DataFrame) -> Any:
        """The model's numbers."""
        return self.model.predict(coded(rows, self.known))


@cache
def setting(data: str) -> Setting:
    """The setting of "table, model, range"."""
    name, kind, which = data.split(", ")
    table, outcome = TABLES[name]()
    order = np.random.default_rng(0).permutation(len(table))
    known, withheld = (table.iloc[part].reset_index(drop=True) for part in np.split(order, [2 * len(order) // 3]))
    model = MODELS[kind].fit(coded(known, known), outcome[order[: len(known)]])
    low, high = np.quantile(model.predict(coded(known, known)), RANGES[which]).tolist()
    outside = withheld[model.predict(coded(withheld, known)) < low]
    return Setting(acex.Space.infer(table), known, outside, model, low, high)


def coded(rows: pd.DataFrame, known: pd.DataFrame) -> Any:
    """Numbers unchanged, categories as their positions in alphabetical order."""
    columns = [rows[c] if rows[c].dtype.kind in "if" else rows[c].map(sorted(known[c].unique()).index) for c in rows]
    return np.column_stack(columns)


def measure(job: Job) -> list[Line]:
    """The lines of one row: of "number" and "yes/no" together, or of DiCE."""
    s = setting(job.data)
    if job.row >= len(s.outside):
        return []
    x = s.outside.iloc[job.row]
    return [with_dice(s, x)] if job.method == "dice" else compared(s, x)


def compared(s: Setting, x: pd.Series[Any]) -> list[Line]:
    """Both kinds of target for one row."""

    def decide(rows: pd.DataFrame) -> Any:
        return (s.low <= s.predict(rows)) & (s.predict(rows) <= s.high)

    ways: dict[str, tuple[Any, Any]] = {"number": (s.predict, acex.Between(s.low, s.high)), "yes/no": (decide, True)}
    best = {}
    for way, (model, target) in ways.items():
        spend = acex.Feasible(effort="spend")
        e = acex.explain(model, x, s.known, space=s.space, target=target, budget=BUDGET, strategy=spend)
        best[way] = np.array([step.best for step in e.steps])
    limit = CLOSE * min(float(np.min(costs)) for costs in best.values())
    lines = []
    for way, costs in best.items():
        after = {f"after_{k}": float(costs[min(k, len(costs)) - 1]) for k in AFTER}
        first = int(np.argmax(np.isfinite(costs))) + 1 if np.isfinite(costs).any() else None
        close = int(np.argmax(costs <= limit)) + 1 if np.isfinite(limit) and (costs <= limit).any() else None
        lines.append({"method": way, "first_hit": first, **after, "close": close})
    return lines


def with_dice(s: Setting, x: pd.Series[Any]) -> Line:
    """DiCE's queries for one row, and our cost of its answer."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    queries, known = 0, s.known

    class Counted:
        def predict(self, rows: pd.DataFrame) -> Any:
            nonlocal queries
            queries += len(rows)
            return s.predict(rows[known.columns].astype(known.dtypes))

    numbers = [c for c in known if known[c].dtype.kind in "if"]
    table = known.assign(number=s.predict(known))
    data = dice_ml.Data(dataframe=table, continuous_features=numbers, outcome_name="number")
    model = dice_ml.Model(model=Counted(), backend="sklearn", model_type="regressor")
    cost, given = np.inf, None
    with isolated(0):
        try:
            found = dice_ml.Dice(data, model, method="random").generate_counterfactuals(
                x.to_frame().T.astype(known.dtypes), total_CFs=1, desired_range=[s.low, s.high], random_seed=0
            )
            given = found.cf_examples_list[0].final_cfs_df
        except UserConfigValidationException:
            pass
    if given is not None and len(given):
        row = given[known.columns].astype(known.dtypes).head(1)
        explainer = acex.Explainer(s.predict, known, space=s.space)
        problem = explainer.search(x, target=acex.Between(s.low, s.high)).problem
        if s.low <= s.predict(row)[0] <= s.high:
            cost = float(problem.cost(s.space.reaching(row)[1])[0])
    return {"queries": queries, "cost": cost}


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """For each table and range: "number" compared with "yes/no"."""
    parts = lines["data"].str.split(", ", expand=True)
    lines = lines.assign(table=parts[0], model=parts[1], range=parts[2])
    rows = []
    for (name, which), group in lines.groupby(["table", "range"], sort=False):
        number, label = (group[group["method"] == way].set_index(["model", "row"]) for way in ("number", "yes/no"))
        ratio = (number["after_30"] / label["after_30"]).to_numpy()
        cost = float(np.exp(np.log(ratio[np.isfinite(ratio) & (ratio > 0)]).mean()))
        close = [float(part["close"].fillna(np.inf).median()) for part in (number, label)]
        found = [float(np.isfinite(part["after_10"]).mean()) for part in (number, label)]
        rows.append(
            [
                {"houses": "houses, made up"}.get(str(name), str(name)),
                {"middle": "a tenth in the middle"}.get(str(which), str(which)),
                *("more than 30" if c > BUDGET else f"{c:g}" for c in close),
                f"{cost:.2f}",
                *(f"{f:.0%}" for f in found),
            ]
        )
    header = ["table", "wanted", "close: number", "close: yes/no", "cost: number"]
    header += ["found after 10: number", "found after 10: yes/no"]
    return {"number": Table("a number as the target, and yes/no", header, rows)}


def missing(data: str, method: str) -> str | None:
    """Why a setting cannot be measured; DiCE and the cars come with packages."""
    if method == "dice" and find_spec("dice_ml") is None:
        return "dice needs dice_ml: make peers"
    return "cars need vega_datasets" if data.startswith("cars") and find_spec("vega_datasets") is None else None


SUITES = (
    Suite(
        "ranges",
        tuple(map(", ".join, product(TABLES, MODELS, RANGES))),
        ("number", "dice"),
        ("first_hit", *(f"after_{k}" for k in AFTER), "close", "queries", "cost"),
        measure,
        tables,
        rows=8,
        missing=missing,
    ),
)
