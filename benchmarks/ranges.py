"""What the number itself is worth: a range of numbers asked for as such, and the same range asked for by yes and no.

    python benchmarks/ranges.py --rows 12          # benchmarks/results/ranges.csv, and a table of it
    python benchmarks/ranges.py --table            # the table again, from the file
    python benchmarks/ranges.py --dice --rows 4    # DiCE's regression on the same rows: ranges-dice.csv (make peers)

Three tables: scikit-learn's diabetes, one that is made up to look like houses in California (skewed incomes, places,
prices that depend on both), and the cars of the package vega_datasets (pip install vega_datasets). On each a forest or
gradient boosting is trained on two thirds of the rows, which are the reference; rows of the last third are explained.
The range wanted is the upper third of the numbers of known rows for rows below, or a tenth of them around the median.

    number   target=acex.Between(low, high)
    yes/no   lambda rows: low <= model(rows) <= high, target=True

A line for each row, model, range and way: the query of the first hit, the cost after 10, 20 and 30 queries, and how
many queries it took to come within 10% of the best that either way found.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import acex

FILE = Path(__file__).parent / "results" / "ranges.csv"
BUDGET, AFTER, CLOSE = 30, (10, 20, 30), 1.1
MODELS = {"forest": RandomForestRegressor(60, random_state=0), "boosting": GradientBoostingRegressor(random_state=0)}


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


Compare = Callable[[Any, Any, pd.DataFrame, acex.Space, tuple[float, float], dict[str, Any]], Iterator[dict[str, Any]]]
TABLES: dict[str, Callable[[], tuple[pd.DataFrame, Any]]] = {"diabetes": diabetes, "houses": houses, "cars": cars}


def measured(rows: int, compare: Compare) -> Iterator[dict[str, Any]]:
    """The lines of `compare` for each row, model and range."""
    for name, load in TABLES.items():
        table, outcome = load()
        order = np.random.default_rng(0).permutation(len(table))
        known, withheld = (table.iloc[part].reset_index(drop=True) for part in np.split(order, [2 * len(order) // 3]))
        y = outcome[order[: len(known)]]
        for kind, model in MODELS.items():
            fitted = model.fit(coded(known, known), y)

            def predict(rows: pd.DataFrame, fitted: Any = fitted, known: pd.DataFrame = known) -> Any:
                return fitted.predict(coded(rows, known))

            says = predict(known)
            for wish, ends in {"upper third": (2 / 3, 1.0), "middle": (0.45, 0.55)}.items():
                low, high = np.quantile(says, ends).tolist()
                outside = withheld[predict(withheld) < low].head(rows)
                for i in range(len(outside)):
                    what = {"table": name, "model": kind, "range": wish, "row": i}
                    yield from compare(predict, outside.iloc[i], known, acex.Space.infer(table), (low, high), what)


def coded(rows: pd.DataFrame, known: pd.DataFrame) -> Any:
    """Numbers as they are, categories as their places in the alphabet."""
    columns = [rows[c] if rows[c].dtype.kind in "if" else rows[c].map(sorted(known[c].unique()).index) for c in rows]
    return np.column_stack(columns)


def compared(
    predict: Any, x: Any, known: pd.DataFrame, space: acex.Space, wish: tuple[float, float], what: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Both ways for one row."""
    low, high = wish

    def decide(rows: pd.DataFrame) -> Any:
        return (low <= predict(rows)) & (predict(rows) <= high)

    ways = {"number": (predict, acex.Between(low, high)), "yes/no": (decide, True)}
    keep_on = acex.Feasible(effort="spend")
    best = {}
    for way, (model, target) in ways.items():
        e = acex.explain(model, x, data=known, space=space, target=target, budget=BUDGET, strategy=keep_on)
        best[way] = e.queries["best"].to_numpy()
    limit = CLOSE * min(float(np.min(costs)) for costs in best.values())
    for way, costs in best.items():
        after = {f"after_{k}": float(costs[min(k, len(costs)) - 1]) for k in AFTER}
        first = int(np.argmax(np.isfinite(costs))) + 1 if np.isfinite(costs).any() else None
        close = int(np.argmax(costs <= limit)) + 1 if np.isfinite(limit) and (costs <= limit).any() else None
        yield {**what, "way": way, "first_hit": first, **after, "close": close}


def with_dice(
    predict: Any, x: Any, known: pd.DataFrame, space: acex.Space, wish: tuple[float, float], what: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """DiCE's random search with `desired_range` for one row: rows it asked for, and our cost of what it gives."""
    import dice_ml
    from raiutils.exceptions import UserConfigValidationException

    asked = 0

    class Counted:
        def predict(self, rows: pd.DataFrame) -> Any:
            nonlocal asked
            asked += len(rows)
            return predict(rows[known.columns].astype(known.dtypes))

    numbers = [c for c in known if known[c].dtype.kind in "if"]
    data = dice_ml.Data(
        dataframe=known.assign(number=predict(known)), continuous_features=numbers, outcome_name="number"
    )
    model = dice_ml.Model(model=Counted(), backend="sklearn", model_type="regressor")
    cost = np.inf
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            found = dice_ml.Dice(data, model, method="random").generate_counterfactuals(
                x.to_frame().T.astype(known.dtypes), total_CFs=1, desired_range=list(wish), random_seed=0
            )
            given = found.cf_examples_list[0].final_cfs_df
        except UserConfigValidationException:
            given = None
    if given is not None and len(given):
        row = given[known.columns].astype(known.dtypes).head(1)
        explainer = acex.Explainer(predict, known, space=space)
        problem = explainer.search(x, target=acex.Between(*wish)).problem
        reaching = space.reaching(row)
        inside = wish[0] <= predict(row)[0] <= wish[1]
        cost = float(problem.cost(reaching.encode(row))[0]) if inside else np.inf
    yield {**what, "way": "DiCE", "queries": asked, "cost": cost}


def dice_table(lines: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """For each table and range: rows that DiCE asked for, and its cost over ours after 30 queries."""
    cost = ours[ours["way"] == "number"].set_index(["table", "model", "range", "row"])["after_30"]
    lines = lines.set_index(["table", "model", "range", "row"]).join(cost).reset_index()
    out = []
    for (name, wish), part in lines.groupby(["table", "range"], sort=False):
        both = part[np.isfinite(part["cost"]) & np.isfinite(part["after_30"])]
        line = {"table": name, "range": wish, "rows": len(part), "found": float(np.isfinite(part["cost"]).mean())}
        line |= {"queries": float(part["queries"].median())}
        out.append(line | {"cost over ours at 30": round(float((both["cost"] / both["after_30"]).median()), 2)})
    return pd.DataFrame(out)


def table_of(lines: pd.DataFrame) -> pd.DataFrame:
    """For each table and range: shares found, queries to the first hit and to close, and the cost against the other."""
    out = []
    for (name, wish), group in lines.groupby(["table", "range"], sort=False):
        by_way = {way: part.set_index(["model", "row"]) for way, part in group.groupby("way")}
        for way, part in by_way.items():
            other = by_way["yes/no" if way == "number" else "number"]
            line = {"table": name, "range": wish, "way": way, "rows": len(part)}
            line |= {f"found_{k}": round(float(np.isfinite(part[f"after_{k}"]).mean()), 2) for k in AFTER}
            line["first_hit"] = float(part["first_hit"].fillna(BUDGET + 1).median())
            line["close"] = float(part["close"].fillna(BUDGET + 1).median())
            both = np.isfinite(part["after_30"]) & np.isfinite(other["after_30"])
            line["cost_ratio_30"] = round(float(np.exp(np.log(part["after_30"] / other["after_30"])[both].mean())), 2)
            out.append(line)
    return pd.DataFrame(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=12, help="of each table, model and range")
    parser.add_argument("--table", action="store_true", help="only show what the file says")
    parser.add_argument("--dice", action="store_true", help="DiCE instead")
    arguments = parser.parse_args()
    file, compare = (FILE.with_name("ranges-dice.csv"), with_dice) if arguments.dice else (FILE, compared)
    if not arguments.table:
        pd.DataFrame(measured(arguments.rows, compare)).to_csv(file, index=False, float_format="%.6g")
    if arguments.dice:
        print(dice_table(pd.read_csv(file), pd.read_csv(FILE)).to_string(index=False))
        raise SystemExit
    print(table_of(pd.read_csv(FILE)).to_string(index=False))
