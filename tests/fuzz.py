"""Random tables, models and options for the public interface, each case from its number alone.

`test_fuzz.py` runs the cases and checks the promises. What it must know about a case, such as what a column may become,
is computed here from the table itself, not by the library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.values import plain

NAMES = ["a", "b c", "label", "cost", "Äge", "x1", 0, 7, "target", "hit"]
WORDS = ["red", "green", "blue", "grey", "", "1", "none", "yes & <no>"]
LABELS: list[list[Any]] = [["no", "yes"], [0, 1], [False, True], ["bad", "fair", "good"], [1, 2, 3]]
MODES = ["explain", "explain", "explain", "steps", "ask and tell", "two rows", "many"]

Key = tuple[Any, ...]  # a row, its values as Python has them


class Dice:
    """Choices that follow from a number."""

    def __init__(self, number: int) -> None:
        self.rng = np.random.default_rng([2026, number])

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def whole(self, least: int, most: int) -> int:
        return int(self.rng.integers(least, most + 1))

    def one(self, items: Sequence[Any]) -> Any:
        return items[self.whole(0, len(items) - 1)]

    def some(self, items: Sequence[Any], least: int = 1) -> list[Any]:
        n = self.whole(min(least, len(items)), len(items))
        return [items[i] for i in self.rng.permutation(len(items))[:n]]


# -- tables --------------------------------------------------------------------------------------------------


def column(dice: Dice, n: int) -> pd.Series[Any]:
    """Values of a random kind, often with few different ones."""
    rng = dice.rng
    numbers = np.round(rng.normal(dice.one([0, 100]), dice.one([0.01, 1, 1000]), n), dice.whole(0, 4))
    low, high = dice.one([(0, 2), (0, 9), (-50, 50), (0, 127)])
    wholes = rng.integers(low, high, n)
    words = rng.choice(np.array(dice.some(WORDS, 2), dtype=object), n)
    kinds = ["float", "float", "int", "int", "float32", "small", "nullable", "bool", "word", "word", "category"]
    match dice.one(kinds):
        case "float":
            return pd.Series(numbers)
        case "float32":
            return pd.Series(numbers, dtype="float32")
        case "int":
            return pd.Series(wholes)
        case "small":
            return pd.Series(wholes, dtype="int8")
        case "nullable":
            return pd.Series(wholes, dtype="Int64") if dice.chance(0.5) else pd.Series(numbers, dtype="Float64")
        case "bool":
            return pd.Series(rng.random(n) < 0.5)
        case "word":
            return pd.Series(words, dtype="str" if dice.chance(0.5) else "object")
        case _:
            levels = dice.one([["low", "mid", "high"], [3, 2, 1], ["only", "these"]])
            kind = pd.CategoricalDtype(levels, ordered=dice.chance(0.5))
            return pd.Series(rng.choice(np.array(levels, dtype=object), n)).astype(kind)


def frame(dice: Dice, n: int) -> pd.DataFrame:
    names = dice.some(NAMES)[:6]
    table = pd.concat([column(dice, n) for _ in names], axis=1)
    table.columns = pd.Index(names, dtype=object)
    return table


def array(dice: Dice, n: int) -> Any:
    shape = (n, dice.whole(1, 6))
    numbers = np.round(dice.rng.normal(0, dice.one([1, 100]), shape), 2)
    match dice.one(["float64", "float32", "int64", "uint8", "bool", "object", "<U4"]):
        case "object":
            mixed = np.empty(shape, dtype=object)
            for j in range(shape[1]):
                mixed[:, j] = column(dice, n).tolist()
            return mixed
        case "<U4":
            return dice.rng.choice(np.array(["aa", "b", "cccc"]), shape)
        case "uint8":
            return np.abs(numbers).astype("uint8")
        case dtype:
            return (numbers > 0) if dtype == "bool" else numbers.astype(dtype)


def table(dice: Dice) -> Any:
    """Few rows, often the same ones, sometimes with a column that never varies."""
    n = dice.whole(2, 36)
    data = array(dice, n) if dice.chance(0.3) else frame(dice, n)
    if dice.chance(0.3):
        data = part(data, dice.rng.integers(0, n, n))
    if dice.chance(0.2):
        j = dice.whole(0, data.shape[1] - 1)
        if isinstance(data, pd.DataFrame):
            same = [data.iloc[:, k].take(np.arange(n) * (k != j)).reset_index(drop=True) for k in range(data.shape[1])]
            data = pd.concat(same, axis=1)
        else:
            data[:, j] = data[0, j]
    return data.reset_index(drop=True) if isinstance(data, pd.DataFrame) else data


def part(rows: Any, places: Any) -> Any:
    return rows.iloc[places] if isinstance(rows, pd.DataFrame) else rows[places]


def columns_of(rows: Any) -> list[list[Any]]:
    if isinstance(rows, pd.DataFrame):
        return [rows.iloc[:, j].tolist() for j in range(rows.shape[1])]
    return [rows[:, j].tolist() for j in range(rows.shape[1])]


def keys(rows: Any) -> list[Key]:
    """Each row by its values; 1, 1.0 and True are one value."""
    return [tuple(map(plain, row)) for row in zip(*columns_of(rows), strict=True)]


# -- what a column may become --------------------------------------------------------------------------------


@dataclass
class Limit:
    """What the caller allows one column to be, from the table and the options alone."""

    name: Any
    numeric: bool
    whole: bool
    low: float
    high: float
    known: list[Any]  # values that are allowed, for categories and where `listed`
    order: list[Any]  # all categories, from low to high where they have an order
    ordered: bool
    stays: bool
    direction: str | None = None
    listed: bool = False  # are the allowed numbers listed one by one?

    def breach(self, value: Any, before: Any) -> str | None:
        """How a value of a row that was sent breaks the limit; None if it does not."""
        if self.stays and value != before:
            return "is frozen, or never varies"
        if (self.listed or not self.numeric) and value not in self.known:
            return "is not one of the allowed values"
        if self.numeric and not self.listed and not self.low <= value <= self.high:
            return f"is outside {self.low} to {self.high}"
        if self.whole and value != int(value):
            return "is not whole"
        if self.direction is not None:
            rank: Callable[[Any], Any] = plain if self.numeric else self.order.index
            if (rank(value) < rank(before)) if self.direction == "increase" else (rank(value) > rank(before)):
                return f"may only {self.direction}"
        return None


def limits(data: Any) -> list[Limit]:
    """What each column may become without options: what the table contains."""
    found = []
    for j, values in enumerate(columns_of(data)):
        numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
        name = data.columns[j] if isinstance(data, pd.DataFrame) else f"x{j}"
        dtype = data.dtypes.iloc[j] if isinstance(data, pd.DataFrame) else None
        known, ordered = sorted(set(values), key=str), False
        if isinstance(dtype, pd.CategoricalDtype):
            numeric, known, ordered = False, dtype.categories.tolist(), bool(dtype.ordered)
        whole = numeric and all(isinstance(value, int) for value in values)
        low, high = (min(values), max(values)) if numeric else (0, 0)
        found.append(Limit(name, numeric, whole, low, high, known, known, ordered, stays=len(set(values)) == 1))
    return found


def restrictions(dice: Dice, found: list[Limit]) -> dict[str, Any]:
    """Random options about columns; `found` is changed accordingly."""
    options: dict[str, Any] = {}
    if dice.chance(0.3):
        options["freeze"] = []
        for limit in dice.some(found)[: len(found) - 1]:
            options["freeze"].append(limit.name)
            limit.stays = True
    if dice.chance(0.4):
        ranges, values = options["ranges"], options["values"] = {}, {}
        for limit in dice.some(found)[:2]:
            if limit.numeric and dice.chance(0.8):
                width = limit.high - limit.low
                ends = (limit.low + dice.one([-0.5, 0, 0.1]) * width, limit.high - dice.one([-0.5, 0, 0.3]) * width)
                limit.low, limit.high = ranges[limit.name] = ends
            else:
                limit.known, limit.listed = dice.some(limit.known), True
                values[limit.name] = list(limit.known)
    if dice.chance(0.3):
        options["directions"] = {}
        for limit in dice.some([f for f in found if f.numeric or f.ordered])[:2]:
            limit.direction = options["directions"][limit.name] = dice.one(["increase", "decrease"])
    return options


@dataclass
class Rule:
    """A rule of the caller: the most that a number may be, or a category that is not allowed."""

    column: int
    most: float | None
    never: Any

    def allows(self, key: Key) -> bool:
        value = key[self.column]
        return bool(value != self.never if self.most is None else value <= self.most)

    def __call__(self, rows: Any) -> Any:
        return np.array([self.allows(key) for key in keys(rows)], dtype=bool)


def rule(dice: Dice, data: Any, found: list[Limit]) -> Rule:
    j = dice.whole(0, len(found) - 1)
    value = dice.one(columns_of(data)[j])
    return Rule(j, value if found[j].numeric else None, value)


# -- models --------------------------------------------------------------------------------------------------


class Interrupted(BaseException):
    """Like KeyboardInterrupt: not an error of the model."""


class Model:
    """Decides by a sum over the columns, records every row that it is sent, and may fail at one of the calls."""

    def __init__(self, case: Case, healthy: bool = False) -> None:
        self.case, self.fails = case, None if healthy else case.fails
        self.sent: list[Key] = []
        self.answered: dict[Key, Any] = {}  # the first answer to each row, imported ones included
        self.complaints: list[str] = []
        self.calls = 0

    def answer(self, rows: Any) -> list[Any]:
        """The labels of rows that are paid for."""
        data, asked = self.case.data, keys(rows)
        if self.answered.keys() & set(asked) or len(set(asked)) < len(asked):
            self.complaints.append(f"a row that has an answer is paid for again: {rows!r}")
        as_known = rows.dtypes.equals(data.dtypes) if isinstance(data, pd.DataFrame) else rows.dtype == data.dtype
        if type(rows) is not type(data) or not as_known:
            self.complaints.append(f"the model got rows of another form than data: {rows!r}")
        self.sent += asked
        self.calls += 1
        if self.fails is not None and self.calls == self.fails[0]:
            return self._fail(len(asked))
        labels = self.case.decide(asked)
        for key, label in zip(asked, labels, strict=True):
            self.answered.setdefault(key, label)
        if isinstance(rows, np.ndarray):
            rows[:] = rows[:1]  # a model may change the rows it gets
        return labels

    def _fail(self, n: int) -> list[Any]:
        match self.fails:
            case (_, "raise"):
                raise RuntimeError("out of order")
            case (_, "interrupt"):
                raise Interrupted
            case (_, "short"):
                return [self.case.labels[0]] * (n + 1)
            case _:
                return [None] * n

    def probabilities(self, labels: list[Any]) -> Any:
        known = self.case.labels
        table = np.array([[0.9 if label == other else 0.1 / len(known) for other in known] for label in labels])
        return table * (np.nan if None in labels else 1.0)

    def __call__(self, rows: Any) -> Any:
        labels = self.answer(rows)
        match self.case.form:
            case "scores":
                if len(labels) != len(rows) or None in labels:
                    return labels  # the planned failure
                return pd.DataFrame(self.probabilities(labels), columns=self.case.labels)
            case "array":
                return np.array(labels)
            case "column" if None not in labels:
                return np.array(labels).reshape(-1, 1)
            case _:
                return labels


class Estimator(Model):
    """The same with the methods of a scikit-learn classifier."""

    @property
    def classes_(self) -> Any:
        return np.array(self.case.labels)

    def predict(self, rows: Any) -> Any:
        return np.array(self.answer(rows))

    def predict_proba(self, rows: Any) -> Any:
        return self.probabilities(self.answer(rows))


# -- cases ---------------------------------------------------------------------------------------------------


class Case:
    """Everything that a run needs; the same number gives the same case."""

    def __init__(self, number: int) -> None:
        self.number, dice = number, Dice(number)
        self.data = table(dice)
        self.labels = dice.one(LABELS)
        self._weights = dice.rng.normal(size=(self.data.shape[1], 97))
        self._cuts = np.array([0.0])
        scores = np.sort([self._score(key) for key in keys(self.data)])
        shares = np.arange(1, len(self.labels)) / len(self.labels)
        self._cuts = np.quantile(scores, shares)
        self.mode = dice.one(MODES)
        self.limits = limits(self.data)
        self.rule: Rule | None = None
        self.cost: dict[str, Any] = {}  # arguments of acex.Cost
        self.options = self._options(dice)  # of explain
        self.model_options: dict[str, Any] = {"scores": True} if dice.chance(0.2) else {}  # of acex.Model
        self.setup = self._setup(dice)  # of Explainer
        self.answers = self._answers(dice) if dice.chance(0.2) else None  # to import: rows and labels
        self.form = "scores" if self.model_options else dice.one(["list", "array", "column"])
        self.estimator = dice.chance(0.3)
        fails = dice.whole(1, 5), dice.one(["raise", "interrupt", "short", "none"])
        self.fails = fails if dice.chance(0.25) else None
        self.on_disk = dice.chance(0.3)
        self.lifetime = dice.whole(1, 8) if dice.chance(0.1) else None
        self.stop_after = dice.whole(1, 4) if self.mode == "steps" and self.on_disk else None
        if self.mode == "ask and tell" or self.stop_after is not None:
            self.fails = None
        if self.stop_after is not None:
            self.lifetime = None
        n = {"many": dice.whole(1, 3), "two rows": 2}.get(self.mode, 1)
        self.rows = part(self.data, dice.rng.integers(0, len(self.data), n))  # to be explained
        total = dice.whole(1, 12) if dice.chance(0.5) else None
        self.budget_total = total if self.mode == "many" and self.on_disk else None
        self.is_repeated = self.on_disk or dice.chance(0.3)
        self.in_parts = dice.chance(0.5)  # session.tell gets labels one by one
        self.mistake = mistake(dice, self) if dice.chance(0.12) else None
        if self.mistake is not None:  # nothing else may be wrong
            self.setup, self.options = {}, {"budget": 4, "seed": 0}
            self.model_options, self.cost, self.answers = {}, {}, None
            if self.mistake.owner == "import_answers":
                self.answers = self.mistake.value
            else:
                self.arguments(self.mistake.owner)[self.mistake.name] = self.mistake.value

    def arguments(self, owner: str) -> dict[str, Any]:
        """The arguments that the case passes to this function or class."""
        return {"explain": self.options, "Explainer": self.setup, "Model": self.model_options, "Cost": self.cost}[owner]

    def _options(self, dice: Dice) -> dict[str, Any]:
        options = restrictions(dice, self.limits)
        if dice.chance(0.2):
            self.cost["weights"] = {limit.name: dice.one([0.1, 1, 3.5]) for limit in dice.some(self.limits)}
        options["budget"] = dice.one([2, 3, 3, 4, 4, 5, 7])
        options["seed"] = dice.whole(0, 3)
        if dice.chance(0.5):
            options["target"] = dice.one([dice.one(self.labels), dice.some(self.labels)])
        if dice.chance(0.3):
            self.rule = rule(dice, self.data, self.limits)
            options["rules"] = dice.one([self.rule, [self.rule]])
        if dice.chance(0.15):
            options["count"] = 2
        if dice.chance(0.3):
            options["queries_per_round"] = dice.whole(1, 4)
        if dice.chance(0.1):
            self.cost["beta"] = dice.one([0, 0.5, 20])
        if dice.chance(0.3):
            begins = dice.one(["reference", "normal"])
            small = acex.Penalty(n0=dice.whole(1, 4), sobol=16, lambda_max=1e3, initial=begins)
            options["strategy"] = dice.one([small, acex.Feasible(tolerance=0.3), acex.Feasible(margin=0.7)])
        return options

    def _setup(self, dice: Dice) -> dict[str, Any]:
        setup: dict[str, Any] = {}
        if dice.chance(0.3):
            setup["plausibility"] = dice.one([None, acex.Plausibility(threshold=-3.0, neighbours=3)])
        if dice.chance(0.03):  # training a forest on them takes a while
            setup["outcomes"] = [dice.one(self.labels) if dice.chance(0.1) else x for x in self.decide(keys(self.data))]
        if dice.chance(0.3) and self.mode != "explain":
            setup["share_answers"] = False
        return setup

    def _answers(self, dice: Dice) -> tuple[Any, list[Any]]:
        """Rows and labels to import, sometimes not what the model would answer now: the recorded answer holds."""
        rows = part(self.data, dice.rng.integers(0, len(self.data), dice.whole(1, 5)))
        labels = {
            key: dice.one(self.labels) if dice.chance(0.2) else self.decide([key])[0]
            for key in dict.fromkeys(keys(rows))
        }
        return rows, [labels[key] for key in keys(rows)]

    @property
    def answered(self) -> dict[Key, Any]:
        """The answers that are known before the model is queried."""
        if self.answers is None or self.mistake is not None:
            return {}
        rows, labels = self.answers
        return dict(zip(keys(rows), labels, strict=True))

    def x(self, i: int) -> Any:
        """Row i of those to be explained, in one of the accepted forms."""
        row = part(self.rows, [i])
        if isinstance(row, pd.DataFrame):
            return [row, row.iloc[0], dict(zip(row.columns, keys(row)[0], strict=True))][self.number % 3]
        return [row, row[0], row[0].tolist()][self.number % 3]

    def _score(self, key: Key) -> float:
        total = 0.0
        for j, value in enumerate(key):
            w = self._weights[j]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                total += w[0] * np.arctan(value / 30)
            else:
                total += w[sum(map(ord, str(value))) % 97]
        return float(total)

    def decide(self, asked: Sequence[Key]) -> list[Any]:
        """What the model answers for these rows; costs nothing."""
        return [self.labels[int((self._score(key) > self._cuts).sum())] for key in asked]

    def model(self, healthy: bool = False) -> Model:
        return (Estimator if self.estimator else Model)(self, healthy)

    def __str__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if name[0] != "_" and name not in ("data", "limits")}
        return "\n".join([f"case {self.number}:", *(f"  {n} = {v!r}" for n, v in shown.items()), repr(self.data)])


@dataclass
class Mistake:
    """A wrong argument of a function or class, and a word that the error must contain."""

    owner: str
    name: str
    value: Any
    word: str


def mistake(dice: Dice, case: Case) -> Mistake:
    name, n = case.limits[0].name, len(case.data)
    wrong: list[tuple[str, str, Any, str]] = [
        ("explain", "budget", dice.one([1, 0, -3, 2.5, "4", None, True]), "budget"),
        ("explain", "budgett", 5, "budgett"),
        ("explain", "count", dice.one([0, -1, 1.5, "2"]), "count"),
        ("explain", "queries_per_round", dice.one([0, 1.5, None]), "queries_per_round"),
        ("explain", "time_limit", dice.one([0, -1, np.nan, "x"]), "time_limit"),
        ("explain", "max_changes", dice.one([0, 1.5, "2"]), "max_changes"),
        ("explain", "seed", dice.one([-1, 0.5, "a"]), "seed"),
        ("explain", "freeze", dice.one([["nonsense"], "nonsense"]), "nonsense"),
        ("explain", "freeze", 5, "freeze"),
        ("explain", "ranges", {"nonsense": (0, 1)}, "nonsense"),
        ("explain", "ranges", dice.one([[1, 2], {name: 5}, {name: (3,)}]), "ranges"),
        ("explain", "values", {"nonsense": [0, 1]}, "nonsense"),
        ("explain", "values", dice.one([[1, 2], {name: 5}, {name: []}]), "values"),
        ("explain", "directions", {"nonsense": "increase"}, "nonsense"),
        ("explain", "directions", {name: "sideways"}, "sideways"),
        ("explain", "target", [], "target"),
        ("explain", "strategy", dice.one(["best", None, 3]), "strategy"),
        ("explain", "cost", dice.one([3, {"beta": 1}]), "cost"),
        ("explain", "rules", lambda rows: np.zeros(len(rows) + 1, dtype=bool), "rules"),
        ("explain", "rules", dice.one([5, [None], ""]), "rules"),
        ("explain", "rule", lambda rows: np.ones(len(rows), dtype=bool), "rules"),
        ("explain", "effort", "spend", "Feasible(effort"),
        ("Explainer", "outcome", ["no"] * n, "outcomes"),
        ("Explainer", "scores", True, "acex.Model("),
        ("Explainer", "plausibility", dice.one([0.3, "no"]), "plausibility"),
        ("Explainer", "space", dice.one([5, "space"]), "space"),
        ("Explainer", "outcomes", dice.one([["no"], 5, [None] * n]), "outcomes"),
        ("Model", "timeout", dice.one([0, -1, np.nan, "x"]), "timeout"),
        ("Model", "noise", dice.one([0.5, -0.1, "x", np.nan]), "noise"),
        ("Model", "name", dice.one([5, ""]), "name"),
        ("Cost", "weights", {name: dice.one([0, -1, np.nan, "x"])}, "weight"),
        ("Cost", "weights", {"nonsense": 2}, "nonsense"),
        ("Cost", "beta", dice.one([-1, np.nan, np.inf, "x"]), "beta"),
        ("Cost", "per_category", dice.one([0, np.inf, "x"]), "per_category"),
        ("import_answers", "labels", (case.data, dice.one([["no"], 5, [None] * n])), "label"),
        ("import_answers", "rows", (dice.one([5, None, pd.DataFrame({"nonsense": [1]})]), ["no"]), "row"),
    ]
    return Mistake(*dice.one(wrong))
