"""What users get wrong: one table for the library, the command line and the studio.

Each door refuses a mistake before a row is sent, with a message that contains `named`. A door that a mistake cannot
reach is None: a page has no flags, Python has no files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression, LogisticRegression

import acex
from commands import MODEL, loans_table

LOANS = loans_table().drop(columns=["id", "outcome"])
OUTCOMES = loans_table()["outcome"].tolist()
X = LOANS.iloc[0]  # a row without a mistake

DATA = ("loans.csv", "--drop", "id,outcome")
ROW = (*DATA, "--row", "0", *MODEL)
HUGE = "9" * 30
LONG = "x" * 300
REMOTE = ("explain", *DATA, "--row", "0", "--model", "http://127.0.0.1:9/x")
LEDGER = ("ledger", "budget", "l.db", "--model-name", "a")


class BadInput(NamedTuple):
    """A mistake at each door.

    Attributes:
        named: what the message contains.
        library: arguments of `acex.explain`, or a function that returns them.
        shell: words after `acex`.
        studio: the body of a request.
        error: what the library raises.
        code: what the command ends in.
    """

    named: str
    library: dict[str, Any] | Callable[[], dict[str, Any]] | None = None
    shell: tuple[str, ...] | None = None
    studio: Any = None
    error: type[Exception] = ValueError
    code: int = 2

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `acex.explain`; making them may be the mistake."""
        return (self.library() if callable(self.library) else self.library) or {}

    @property
    def name(self) -> str:
        """For the names of tests."""
        return f"{self.named} {' '.join(self.shell or ())[-40:]}"


def explain(*words: str) -> tuple[str, ...]:
    """The command with these words."""
    return ("explain", *ROW, *words)


def page(**options: Any) -> dict[str, Any]:
    """A request for row 0 with these options."""
    return {"row": {"position": 0}, "options": options}


def with_value(column: str, value: Any) -> pd.DataFrame:
    """The data with one strange value in row 3."""
    data = LOANS.astype({column: object})
    data.loc[3, column] = value
    return data.infer_objects()


def cost(**arguments: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"cost": acex.Cost(**arguments)}


def feasible(**arguments: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"strategy": acex.Feasible(**arguments)}


def penalty(**arguments: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"strategy": acex.Penalty(**arguments)}


def plausibility(**arguments: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"plausibility": acex.Plausibility(**arguments)}


def answers(value: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"rules": lambda rows: value}


ALL = list(LOANS.columns)
FEATURES = acex.Space.infer(LOANS).features
VALUES = {"age": 30, "income": 1500, "debt": 0.5, "job": "cook"}  # of a row on a page

OPTIONS = [
    BadInput("budget", {"budget": 1}, explain("--budget", "1"), page(budget=1)),
    BadInput("budget", {"budget": -5}, explain("--budget", "-5"), page(budget=-5)),
    BadInput("budget", {"budget": 2.5}, explain("--budget", "2.5"), page(budget=2.5)),
    BadInput("budget", {"budget": "10"}, explain("--budget", "ten"), page(budget="10")),
    BadInput("budget", {"budget": True}, studio=page(budget=True)),
    BadInput("budget", {"budget": None}),
    BadInput("count", {"count": 0}, explain("--count", "0"), page(count=0)),
    BadInput("time_limit", {"time_limit": 0}, explain("--time-limit", "0"), page(time_limit=0)),
    BadInput("queries_per_round", {"queries_per_round": 0}, explain("--queries-per-round", "0"),
             page(queries_per_round=0)),
    BadInput("max_changes", {"max_changes": 0}, explain("--max-changes", "0"), page(max_changes=0)),
    BadInput("seed", {"seed": -1}, explain("--seed", "-1")),
    BadInput("seed", {"seed": 1.5}, explain("--seed", "1.5")),
    BadInput("seed", {"seed": None}),
    BadInput("seed", {"seed": True}),
    BadInput("luck", {"strategy": "luck"}, explain("--strategy", "luck"), page(strategy="luck")),
    BadInput("strategy", {"strategy": None}, studio=page(strategy=5)),
    BadInput("strategy", {"strategy": acex.Penalty}),
    BadInput("effort", shell=explain("--strategy", "penalty", "--effort", "spend"),
             studio=page(strategy="penalty", effort="spend")),
    BadInput("effort", feasible(effort="none"), explain("--effort", "none"), page(effort="none")),
    BadInput("margin", feasible(margin=2), explain("--margin", "2"), page(margin=2)),
    BadInput("margin", feasible(margin="much"), explain("--margin", "much"), page(margin="much")),
    BadInput("margin", studio=page(margin=True)),
    BadInput("tolerance", feasible(tolerance=-1), explain("--tolerance", "-1"), page(tolerance=-1)),
    BadInput("beta", cost(beta=-1), explain("--beta", "-1"), page(beta=-1)),
    BadInput("beta", cost(beta=np.nan), explain("--beta", "nan"), page(beta="nan")),
    BadInput("beta", cost(beta="5")),
    BadInput("weights", cost(weights={"age": -1}), studio=page(weights={"age": -1})),
    BadInput("age", cost(weights={"age": 0}), explain("--weight", "age=0"), page(weights={"age": 0})),
    BadInput("high", cost(weights={"age": "high"}), explain("--weight", "age=high"), page(weights={"age": "high"})),
    BadInput("weights", cost(weights=["age"]), studio=page(weights=["age"])),
    BadInput("jobs", cost(weights={"jobs": 2}), explain("--weight", "jobs=2"), page(weights={"jobs": 2})),
    BadInput("cost", {"cost": {"beta": 1}}, studio=page(cost={"beta": 1}), error=TypeError),
    BadInput("agee", {"freeze": ["agee"]}, explain("--freeze", "agee"), page(freeze=["agee"])),
    BadInput("Did you mean 'age'?", {"freeze": ["agee"]}, explain("--freeze", "agee"), page(freeze=["agee"])),
    BadInput("freeze", {"freeze": "age"}, studio=page(freeze="age")),
    BadInput("freeze", {"freeze": 5}, studio=page(freeze=5)),
    BadInput("7", {"freeze": [7]}),
    BadInput("No feature can change", {"freeze": ALL}, explain("--freeze", ",".join(ALL)), page(freeze=ALL)),
    BadInput("income", {"ranges": {"income": (5, 1)}}, explain("--range", "income=5:1"),
             page(ranges={"income": [5, 1]})),
    BadInput("age", {"ranges": {"age": (18.2, 18.7)}}, explain("--range", "age=18.2:18.7")),
    BadInput("Income", {"ranges": {"Income": (0, 1)}}, explain("--range", "Income=0:1"),
             page(ranges={"Income": [0, 1]})),
    BadInput("decimal point", shell=explain("--range", "income=100,5:2000,75")),
    BadInput("age", {"ranges": {"age": 30}}, studio=page(ranges={"age": 30})),
    BadInput("job", {"ranges": {"job": ["cook", "clerk"]}}, studio=page(ranges={"job": ["cook"]})),
    BadInput("ranges", {"ranges": ["age"]}, studio=page(ranges=["age"])),
    BadInput("king", {"values": {"job": ["king"]}}, explain("--values", "job=king"), page(values={"job": ["king"]})),
    BadInput("job", {"values": {"job": []}}, explain("--values", "job="), page(values={"job": []})),
    BadInput("job", {"values": {"job": "cook"}}, studio=page(values={"job": "cook"})),
    BadInput("old", {"values": {"age": ["old"]}}, explain("--values", "age=old"), page(values={"age": ["old"]})),
    BadInput("values", {"values": ["age"]}, studio=page(values=["age"])),
    BadInput("job", {"directions": {"job": "increase"}}, explain("--increase", "job"),
             page(directions={"job": "increase"})),
    BadInput("up", {"directions": {"age": "up"}}, studio=page(directions={"age": "up"})),
    BadInput("incom", {"directions": {"incom": "increase"}}, explain("--increase", "incom"),
             page(directions={"incom": "increase"})),
    BadInput("directions", {"directions": ["age"]}, studio=page(directions=["age"])),
    BadInput("stays as it is", {"freeze": ["age"], "ranges": {"age": (X["age"] + 1, 99)}},
             explain("--freeze", "age", "--range", f"age={X['age'] + 1}:99"),
             page(freeze=["age"], ranges={"age": [int(X["age"]) + 1, 99]})),
    BadInput("may only decrease", {"directions": {"age": "decrease"}, "ranges": {"age": (X["age"] + 1, 99)}},
             explain("--decrease", "age", "--range", f"age={X['age'] + 1}:99"),
             page(directions={"age": "decrease"}, ranges={"age": [int(X["age"]) + 1, 99]})),
    BadInput("splendid", {"target": "splendid", "outcomes": OUTCOMES},
             explain("--outcomes", "outcome", "--target", "splendid"),
             page(target=["splendid"])),
    BadInput("many", {"target": {"at_least": "many"}}, studio=page(target={"at_least": "many"})),
    BadInput("between", {"target": {"between": [3]}}, studio=page(target={"between": [3]})),
    BadInput("Between(3.0, 3.0)", {"target": {"between": [3, 3]}}, studio=page(target={"between": [3, 3]})),
    BadInput("target", {"target": {"about": 3}}, studio=page(target={"about": 3})),
    BadInput("target", {"target": {}}, studio=page(target={})),
    BadInput("target", {"target": pd.NA}, studio=page(target="high")),
    BadInput("rule", {"rules": "height > 3"}, explain("--rule", "height > 3")),
    BadInput("rule", {"rules": ""}, explain("--rule", "")),
    BadInput("rule", {"rules": 5}),
    BadInput("rule", {"rules": [None]}),
    BadInput("rules", studio=page(rules="__import__('os')")),  # a page cannot set rules
    *(BadInput("boolean", answers(value)) for value in (True, [True] * 1000, np.ones(1), ["yes"])),
    BadInput("wage", {"rules": [lambda rows: rows["wage"] > 0]}, error=KeyError),
    BadInput("max_change", studio=page(max_change=1)),
    BadInput("callback", {"callback": 3}, error=TypeError),
    BadInput("plausibility", {"plausibility": -1.5}, error=TypeError),
    BadInput("looks", plausibility(kind="looks"), explain("--plausibility", "looks")),
    *(BadInput(name, plausibility(**{name: value}))
      for name, value in (("threshold", 1.5), ("threshold", np.nan), ("neighbours", 0), ("neighbours", 1.5))),
    *(BadInput(name, penalty(**{name: value}))
      for name, value in (("n0", 0), ("sobol", 0), ("lambda_0", 1.0), ("lambda_0", 1e16), ("lambda_max", np.inf),
                          ("growth", 1.0), ("growth", np.nan), ("epsilon", -1e-3), ("kernel", "rbf"),
                          ("initial", "uniform"))),
]  # fmt: skip

# The data, the row and the model as Python objects: for the library only, unless a file or a page can hold them.
OBJECTS = [
    BadInput("income", {"data": LOANS.assign(income=np.nan)}),
    BadInput("inf", {"data": with_value("debt", np.inf)}),
    BadInput("date", {"data": LOANS.assign(age=pd.date_range("2020-01-01", periods=len(LOANS)))}),
    BadInput("7 (int)", {"data": with_value("job", 7)}),
    BadInput("data is empty", {"data": LOANS.iloc[:0]}),
    BadInput("plausibility=None", {"data": LOANS.iloc[:1]}),
    BadInput("No feature can change", {"data": LOANS.iloc[:1], "plausibility": None}),
    BadInput("got list", {"data": LOANS.to_dict("records")}),
    BadInput("got Series", {"data": LOANS["age"]}),
    BadInput("'age', 'age'", {"data": LOANS.set_axis(["age", "age", "debt", "job"], axis=1)}),
    BadInput("2**53", {"data": LOANS.assign(age=2**53 + LOANS["age"])}),
    BadInput("acex.Space", {"space": {"a": 1}}, error=TypeError),
    BadInput("'job'", {"space": acex.Space(FEATURES[:3])}),
    BadInput("'nurse'", {"space": acex.Space((*FEATURES[:3], acex.Nominal("job", ("clerk", "cook"))))}),
    BadInput("Continuous", {"space": acex.Space((acex.Continuous("age", 18, 80), *FEATURES[1:]))}),
    BadInput("outcomes", {"outcomes": np.arange(len(LOANS)) % 2, "target": "good"}),
    BadInput("outcomes", {"outcomes": ["good"]}),
    BadInput("outcomes", {"outcomes": [None, *OUTCOMES[1:]]}),
    BadInput("'income'", {"x": {**X, "income": np.nan}}),
    BadInput("'job'", {"x": {**X, "job": None}}, studio={"row": {"values": VALUES | {"job": None}}}),
    BadInput("-inf", {"x": {**X, "income": -np.inf}}),
    BadInput("'job'", {"x": X.drop("job")}, studio={"row": {"values": {"age": 3, "income": 1500, "debt": 0.5}}}),
    BadInput("'zip'", {"x": {**X, "zip": 3000}}),
    BadInput("'pilot'", {"x": {**X, "job": "pilot"}}, studio={"row": {"values": VALUES | {"job": "pilot"}}}),
    BadInput("'age'", {"x": {**X, "age": 300}, "data": LOANS.astype({"age": "int8"})}),
    BadInput("'age'", {"x": {**X, "age": 1e200}}),
    BadInput("30.5", {"x": {**X, "age": 30.5}}, studio={"row": {"values": VALUES | {"age": "30.5"}}}),
    BadInput("'30'", {"x": {**X, "age": "30"}}),
    BadInput("missing 'age'", {"x": X.tolist()}),
    BadInput("names", {"x": pd.concat([X, X[["age"]]])}),
    BadInput("got 2", {"x": LOANS.iloc[:2]}, ("explain", *DATA, *MODEL, "--row", "0", "--row", "3")),
    BadInput("got 0", {"x": LOANS.iloc[:0]}),
    BadInput("NoneType", {"x": None}),
    BadInput("row 99", studio={"row": {"position": 99}}),
    BadInput("row", studio={"row": {}}),
    BadInput("columns", studio={"row": {"values": {"age": 3}}}),
    BadInput("object", studio=[]),
    BadInput("regressor", {"model": LinearRegression()}),
    BadInput("class LogisticRegression", {"model": LogisticRegression}, error=TypeError),
    BadInput("got str", {"model": "model.pkl"}, error=TypeError),
]  # fmt: skip

SCHEMAS = {
    "no features": ("features = 5", "expected features = [...]"),
    "a number": ("features = [5]", "features: expected a table such as { name"),
    "nothing": ("features = [{}]", "features: expected a table such as { name"),
    "kind 5": ("features = [{name = 'age', kind = 5}]", "kind 5"),
    "name 5": ("features = [{name = 5, kind = 'integer'}]", "'name': 5"),
    "range 5": ("features = [{name = 'age', kind = 'integer', range = 5}]", "range = [lowest, highest], got 5"),
    "range of texts": ("features = [{name = 'age', kind = 'integer', range = ['a', 'b']}]", "expected finite low"),
    "range nan": ("features = [{name = 'age', kind = 'integer', range = [nan, 5]}]", "expected finite low"),
    "range of dates": ("features = [{name = 'age', kind = 'integer', range = [1979-05-27, 5]}]", "expected finite low"),
    "weight text": ("features = [{name = 'age', kind = 'integer', weight = 'x'}]", "weight: expected a positive"),
    "frozen text": ("features = [{name = 'age', kind = 'integer', frozen = 'no'}]", "frozen must be True"),
    "unit 5": ("features = [{name = 'age', kind = 'integer', unit = 5}]", "unit must be text"),
    "categories 5": ("features = [{name = 'job', kind = 'ordinal', categories = 5}]", "list of categories, got 5"),
    "lists": ("features = [{name = 'job', kind = 'ordinal', categories = [[1]]}]", "[1] cannot be a category"),
    "texts": ("features = [{name = 'job', kind = 'integer'}]", "'job': kind 'integer' is for numbers"),
    "twice": ("features = [{name = 'age', kind = 'integer'}, {name = 'age', kind = 'integer'}]", "described twice"),
    "deep": (f"features = {'[' * 3000}{']' * 3000}", "recursion"),
    "no toml": ("this is no toml", "Expected '='"),
}
CONFIGS = {
    "classes 5": ("classes = 5", "classes: expected"),
    "classes text": ("classes = 'ab'", "classes: expected"),
    "labels 5": ("labels = 5", "labels: expected"),
    "version 5": ("version = 5", "version: expected"),
    "headers 5": ("headers_from_env = 5", "headers_from_env: expected"),
    "header 5": ("headers_from_env = {a = 5}", "headers_from_env['a'] must be the name of an environment variable"),
    "timeout nan": ("timeout = nan", "timeout: expected a positive number"),
    "retries": ("retries = 1.5", "retries: expected a whole number of at least 0"),
    "url": ("url = 'x'", "'url'"),
    "deep": (f"a = {'[' * 3000}{']' * 3000}", "recursion"),
    "no toml": ("this is no toml", "Expected '='"),
}
REPORTS = {
    "number": ("5", "expected an object"),
    "list": ("[]", "expected an object"),
    "nothing": ("{}", "got format None"),
    "hollow": ('{"format": 1}', "cannot be read"),
    "rows 5": ('{"format": 1, "rows": 5}', "cannot be read"),
    "row 5": ('{"format": 1, "rows": [5]}', "cannot be read"),
    "no rows": ('{"format": 1, "rows": []}', "none of its 0 rows has an explanation"),
    "space 5": ('{"format": 1, "space": 5}', "cannot be read"),
    "newer": ('{"format": 99}', "got format 99"),
    "deep": ("[" * 100_000, "cannot be read"),
    "no json": ("no json", "Expecting value"),
}
ROWS = {
    "number": ("5", "cannot be read as a table"),
    "list": ("[1, 2]", "cannot be read as a table"),
    "other columns": ('{"format": 1}', "missing 'age'"),
    "null": ('{"age": null, "income": 1500, "debt": 0.2, "job": "cook"}', "'age': the value is missing"),
    "infinite": ('{"age": 1e999, "income": 1500, "debt": 0.2, "job": "cook"}', "'age': inf is not finite"),
    "in a list": ('{"age": [1], "income": 1500, "debt": 0.2, "job": "cook"}', "'age': expected a number, got [1]"),
    "deep": ("[" * 100_000, "recursion"),
}
LABELS = {
    "NaN": "'NaN' is not a label",
    "nan": "'nan' is not a label",
    "-Infinity": "'-Infinity' is not a label",
    "1e999": "'1e999' is not a label",
    "0.018": "0.018, which is a score, not a label",
    '"\\ud800"': "unpaired surrogate",
}

# Files and flags: for the command line only.
COMMANDS: list[tuple[tuple[str, ...], int, str]] = [
    *((("explain", *ROW, "--schema", f"schema {name}.toml"), 2, named) for name, (_, named) in SCHEMAS.items()),
    *(
        ((*REMOTE, "--protocol", "json", "--model-config", f"config {name}.toml"), 2, named)
        for name, (_, named) in CONFIGS.items()
    ),
    *((("report", f"report {name}.json"), 2, named) for name, (_, named) in REPORTS.items()),
    *((("explain", *DATA, *MODEL, "--x", f"row {name}.json"), 2, named) for name, (_, named) in ROWS.items()),
    *((("tell", f"labels {i}.csv", "--ledger", "l.db"), 2, named) for i, named in enumerate(LABELS.values())),
    *((("explain", *ROW, "--target", label), 2, "not a label") for label in ("", "NaN", "inf", '"\\ud800"', "\udcff")),
    # the row
    (("explain", "none.csv", "--row", "0", *MODEL), 2, "none.csv"),
    (("explain", "empty.csv", "--row", "0", *MODEL), 2, "empty.csv"),
    (("explain", "binary.csv", "--row", "0", *MODEL), 2, "binary.csv"),
    (("explain", "folder.csv", "--row", "0", *MODEL), 2, "folder.csv"),
    (("explain", LONG, "--row", "0", *MODEL), 2, "File name too long"),
    (("explain", *DATA, *MODEL), 2, "--row, --where and --x"),
    (("batch", *ROW, "--where", "id == 100"), 2, "--row and --where"),
    (("explain", *DATA, *MODEL, "--row", "80"), 2, "--row 80"),
    (("explain", *DATA, *MODEL, "--row", "-1"), 2, "--row -1"),
    (("explain", *DATA, *MODEL, "--row", HUGE), 2, "0 to 79"),
    (("explain", *DATA, *MODEL, "--row", "0", "--row", "3"), 2, "exactly one row, got 2"),
    (("explain", *DATA, *MODEL, "--where", "id > 100"), 2, "exactly one row, got 79"),
    (("explain", *DATA, *MODEL, "--where", "idd == 100"), 2, "idd"),
    (("explain", *DATA, *MODEL, "--where", ""), 2, "--where ''"),
    (("explain", *DATA, *MODEL, "--where", "id"), 2, "--where 'id'"),
    (("explain", *DATA, *MODEL, "--where", "__import__('os')"), 2, "not a supported function"),
    (("batch", *DATA, *MODEL, "--where", "1"), 2, "--where '1'"),
    (("batch", *DATA, *MODEL, "--where", "outcome == 'odd'"), 2, "no row of loans.csv"),
    (("explain", *DATA, *MODEL, "--x", "none.json"), 2, "none.json"),
    (("explain", *ROW, "--id-column", "ids"), 2, "--id-column: 'ids'"),
    (("batch", "loans.csv", "--drop", "outcome", *MODEL, "--id-column", "job", "--where", "id < 110"), 2, "repeated"),
    # what may change
    (("explain", *ROW, "--freeze", "incme"), 2, "Did you mean 'income'?"),
    (("explain", *ROW, "--freeze", ","), 2, "--freeze"),
    (("explain", *ROW, "--drop", "ids"), 2, "--drop: 'ids'"),
    (("explain", *ROW, "--outcomes", "truth"), 2, "--outcomes: 'truth'"),
    (("explain", *ROW, "--increase", "age", "--decrease", "age"), 2, "'age' can be in --increase or in --decrease"),
    (("explain", *ROW, "--range", "income"), 2, "expected COLUMN=LOW:HIGH"),
    (("explain", *ROW, "--range", "income=5"), 2, "expected LOW:HIGH"),
    (("explain", *ROW, "--range", "income=inf:inf"), 2, "income"),
    (("explain", *ROW, "--range", "income=nan:5"), 2, "income"),
    (("explain", *ROW, "--range", "income=1:2:3"), 2, "income=1:2:3"),
    (("explain", *ROW, "--range", "="), 2, "--range '='"),
    (("explain", *ROW, "--weight", "income"), 2, "--weight 'income'"),
    (("explain", *ROW, "--other", "job"), 2, "--other 'job'"),
    (("explain", *ROW, "--grid", "income=fine"), 2, "--grid 'income=fine'"),
    # options
    (("explain", *ROW, "--target-range", "high"), 2, "--target-range 'high'"),
    (("explain", *ROW, "--seed", "1.5"), 2, "--seed"),
    (("explain", *ROW, "--plausibility", "looks"), 2, "looks"),
    (("explain", *ROW, "--missing", "guess"), 2, "missing"),
    (("explain", *ROW, "--noise", "some"), 2, "--noise"),
    (("explain", *ROW, "--class-name", "good"), 2, "--class-name"),
    (("explain", *ROW, "--timeout", "inf"), 2, "timeout"),
    (("explain", *ROW, "--timeout", "nan"), 2, "timeout"),
    (("explain", *ROW, "--decimal", ";"), 2, "--decimal"),
    (("explain", *ROW, "--schema", "none.toml"), 2, "none.toml"),
    (("explain", *ROW, "--price-per-row", "inf", "--dry-run"), 2, "--price-per-row"),
    (("explain", *ROW, "--redact", "agee"), 2, "'agee'"),
    (("explain", *ROW, "--redact", "age,income,debt,job"), 2, "redact"),
    (("explain", *ROW, "--sign", "none.pem"), 2, "none.pem"),
    (("explain", *ROW, "--sign", "loans.csv"), 2, "loans.csv: expected an Ed25519 private key"),
    (("batch", *ROW, "--redact", "agee"), 2, "'agee'"),
    (("batch", *ROW, "--sign", "none.pem"), 2, "none.pem"),
    (("batch", *ROW, "--jobs", "0"), 2, "n_jobs"),
    (("batch", *ROW, "--by", "age_band"), 2, "--by: 'age_band'"),
    # the model
    (("explain", *DATA, "--row", "0"), 2, "--model"),
    (("explain", *ROW, "--protocol", "v2"), 2, "--protocol"),
    (("explain", *DATA, "--row", "0", "--model", "none.skops"), 2, "none.skops"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_bank:missing"), 2, "'missing'"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_bank:number"), 2, "predict"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_broken:decide"), 2, "ZeroDivisionError"),
    (("explain", *DATA, "--row", "0", "--model", "acex_test_bank:broken"), 3, "out of order"),
    (("explain", *DATA, "--row", "0", "--model", "loans.csv"), 2, "loans.csv"),
    (("explain", *DATA, "--row", "0", "--model", ""), 2, "--model"),
    (("explain", *DATA, "--row", "0", "--model", ":b"), 2, "odule"),
    (("explain", *DATA, "--row", "0", "--model", LONG), 2, "not a model"),
    (("explain", *DATA, "--row", "0", "--model", "http://", "--protocol", "json"), 2, "http://"),
    (("explain", *DATA, "--row", "0", "--model", "http://host/score"), 2, "--protocol"),
    ((*REMOTE, "--protocol", "json"), 2, "request"),
    ((*REMOTE, "--protocol", "mlflow", "--header-from-env", "A"), 2, "HEADER=VARIABLE"),
    ((*REMOTE, "--protocol", "mlflow", "--model-config", "none.toml"), 2, "none.toml"),
    # ledgers
    (("explain", *ROW, "--ledger", "new.db"), 2, "name"),
    (("explain", *ROW, "--ledger", LONG, "--model-name", "a"), 3, "unable to open"),
    (("explain", *ROW, "--ledger", ".", "--model-name", "a"), 3, "unable to open"),
    (("explain", *ROW, "--ledger", "", "--model-name", "a"), 3, "unable to open"),
    (("explain", *ROW, "--ledger", "mysql://h/d", "--model-name", "a"), 2, "sqlite"),
    (("explain", *ROW, "--ledger", "://", "--model-name", "a"), 2, "URL"),
    (("explain", *ROW, "--ledger", "loans.csv", "--model-name", "a"), 3, "SQLite"),
    (("ledger",), 2, "Missing command"),
    (("ledger", "show", "none.db"), 2, "none.db"),
    (("ledger", "show", "loans.csv"), 3, "SQLite"),
    (("ledger", "show", "two.db", "--model-name", "c"), 2, "'c' is not a model"),
    (("ledger", "show", "l.db", "--newest", HUGE), 2, "--newest"),
    (("ledger", "export", "two.db"), 2, "--model-name"),
    (("ledger", "abandon", "none.db"), 2, "none.db"),
    (("ledger", "import", "two.db", "loans.csv", "--model-name", "a"), 2, "--label: 'label'"),
    (("ledger", "import", "two.db", "loans.csv", "--model-name", "a", "--label", "outcome"), 2, "'wage'"),
    (("ledger", "import", "two.db", "none.csv", "--model-name", "a"), 2, "none.csv"),
    (("ledger", "purge", "l.db"), 2, "--id or --before"),
    ((*LEDGER, "--money", "3"), 2, "--price-per-row"),
    ((*LEDGER, "--rows", HUGE), 2, "rows"),
    ((*LEDGER, "--rows", "-1"), 2, "rows"),
    ((*LEDGER, "--rows", "1.5"), 2, "--rows"),
    ((*LEDGER, "--rows", "1", "--money", "2", "--price-per-row", "1"), 2, "rows or money"),
    ((*LEDGER, "--money", "1e300", "--price-per-row", "1e-300"), 2, "the budget is more"),
    ((*LEDGER, "--money", "inf", "--price-per-row", "1"), 2, "money"),
    ((*LEDGER, "--money", "nan", "--price-per-row", "1"), 2, "money"),
    ((*LEDGER, "--money", "5", "--price-per-row", "nan"), 2, "price_per_row"),
    ((*LEDGER, "--rows", "5", "--price-per-row", "1e999"), 2, "price_per_row"),
    (("audit", "none.db", *MODEL), 2, "none.db"),
    (("audit", "two.db", *MODEL), 2, "--model-name"),
    (("audit", "two.db", *MODEL, "--model-name", "a"), 2, "'a' has no answers yet"),
    (("audit", "l.db", *MODEL, "--seed", "-1"), 2, "--seed"),
    # ask and tell
    (("ask", *DATA, "--row", "0"), 2, "--ledger and --model-name"),
    (("ask", *DATA, "--row", "0", "--ledger", "l.db", "--model-name", "a", "--out", "loans.csv"), 2, "loans.csv"),
    (("tell", "none.csv", "--ledger", "l.db"), 2, "none.csv"),
    (("tell", "loans.csv", "--ledger", "l.db"), 2, "'acex_id'"),
    (("tell", "strange.csv", "--ledger", "l.db"), 2, "'abc'"),
    (("tell", "twice.csv", "--ledger", "l.db"), 2, "'abc'"),
    (("tell", "strange.csv", "--ledger", "none.db"), 2, "none.db"),
    (("tell", "strange.csv"), 2, "--ledger"),
    (("tell", "binary.csv", "--ledger", "l.db"), 2, "binary.csv"),
    # reports and certificates
    (("report", "none.db"), 2, "none.db"),
    (("report", "none.json"), 2, "none.json"),
    (("report", "loans.csv"), 3, "SQLite"),
    (("report", "two.db"), 2, "there are none"),
    (("report", "two.db", "--id", "c"), 2, "there are none"),
    (("verify", "none.json"), 2, "none.json"),
    (("verify", "folder.csv"), 2, "folder"),
    (("verify", "report list.json"), 2, "expected an object"),
    (("verify", "page.html"), 2, "no certificate"),
    (("verify", "loans.csv"), 2, "loans.csv"),
    # files to write
    (("explain", *ROW, "--out", "nowhere/why.json"), 2, "nowhere"),
    (("explain", *ROW, "--out", "why.html"), 2, ".json"),
    (("explain", *ROW, "--out", "."), 2, "--out"),
    (("batch", *ROW, "--out", "why.doc"), 2, ".parquet"),
    (("demo", "--out", "loans.csv"), 2, "loans.csv"),
    (("explain", *ROW, "--schema", "schema.json", "--out", "schema.json"), 2, "schema.json has another use"),
    (("explain", *ROW, "--schema", "schema.json", "--out", "./schema.json"), 2, "schema.json has another use"),
    (("batch", *ROW, "--out", "loans.csv"), 2, "loans.csv has another use"),
    (("report", "l.db", "--out", "l.db"), 2, "l.db has another use"),
    (("report", "report newer.json", "--out", "report newer.json"), 2, "has another use"),
    (("ledger", "export", "l.db", "--out", "l.db"), 2, "l.db has another use"),
    # flags and commands
    (("explain", *ROW, "--labels", "outcome"), 2, "No such option: --labels"),
    (("explain", *ROW, "--model-id", "a"), 2, "--model-name"),
    (("explain", *ROW, "--category-cost", "1"), 2, "--category-cost"),
    (("batch", *ROW, "--levers", "5"), 2, "--levers"),
    (("expalin",), 2, "Did you mean 'explain'? See "),
    (("menu", *ROW), 2, "No such command 'menu'"),
    (("demo", "nonsense"), 2, "nonsense"),
    (("--nonsense",), 2, "--nonsense"),
    (("--version=3",), 2, "--version"),
    (("",), 2, "No such command ''"),
    (("-",), 2, "No such command '-'"),
    (("--",), 2, "Missing command"),
    (("explain", "--", "--row"), 2, "--model"),
    (("ledger", "show", "l.db", "extra"), 2, "extra"),
    (("demo", "loan", "extra"), 2, "extra"),
]  # fmt: skip

BAD_INPUTS = [*OPTIONS, *OBJECTS, *(BadInput(named, shell=words, code=code) for words, code, named in COMMANDS)]
