"""Every option of an explanation, declared once.

`Options` holds the options of one row; the metadata of each field says how it is checked and described. The
options of a cost, a strategy, a model and the data are arguments of `acex.Cost`, `acex.Feasible`, `acex.Model`,
`acex.Space.infer` and `acex.Explainer`; `NESTED` describes these. Derived from the declarations: validation, the plan's
settings and fingerprint, the flags of the command line, the studio's form and code, the report's settings, and
docs/settings.md.

A new option is a field here, an argument in `api.py`, and the place that uses it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from math import isinf
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar, get_args

from acex.values import as_json, check_count, check_positive, did_you_mean, is_missing

if TYPE_CHECKING:  # `acex --help` reads the declarations and nothing else
    from acex.plan.target import Target
    from acex.search.strategy import Strategy
    from acex.space.cost import Cost
    from acex.space.feature import Direction
    from acex.space.rules import RuleFunction
    from acex.space.space import Space

Columns: TypeAlias = Iterable[str | int]
Rules: TypeAlias = "str | RuleFunction | Iterable[str | RuleFunction]"
Owner: TypeAlias = Literal["row", "cost", "strategy", "model", "data"]
Preference: TypeAlias = Literal["realistic", "short"]
Kind: TypeAlias = Literal["number", "count", "text", "switch", "texts", "columns", "by column", "object"]

WANTED, ALLOWED, SEARCH = "What is wanted", "What may change", "How to search"
COST, MODEL, DATA, ANSWERS = "What a change costs", "The model", "The data", "Answers"
GROUPS = (WANTED, ALLOWED, COST, SEARCH, MODEL, DATA, ANSWERS)


@dataclass(frozen=True)
class Declaration:
    """One option.

    Attributes:
        name: name of the argument.
        kind: kind of its value, for forms and flags; "object" if it can only be given in Python.
        group: the heading under which help lists it.
        flag: its flag on the command line, with a placeholder for the value; empty if there is none.
        owner: what takes the argument: "row" for `explain`, "cost" for `Cost`, and so on.
        decides: whether it decides which rows are sent. The plan's fingerprint then includes it, unless at its default.
        recorded: whether it is part of the plan's settings. Frozen columns and directions are not: the space has them.
    """

    name: str
    kind: Kind
    default: Any
    group: str
    flag: str
    help: str
    owner: Owner = "row"
    decides: bool = True
    recorded: bool = True


def _option(check: Callable[[str, Any], Any], kind: Kind, default: Any, *declared: str, **more: bool) -> Any:
    """A field of `Options`: `check` takes its name and the caller's value, and returns the value of the field."""
    metadata = {"check": check, "declared": (kind, default, *declared), "more": more}
    return field(default_factory=lambda: check("", default), metadata=metadata)


# -- checks: each returns the value as it is used ----------------------------------------------------------------


def _count(least: int, optional: bool = False) -> Callable[[str, Any], int | None]:
    def check(name: str, value: Any) -> int | None:
        check_count(name, value, least, optional=optional)
        return None if value is None else int(value)

    return check


def _seconds(name: str, value: Any) -> float | None:
    check_positive(name, value, "number of seconds", optional=True)
    return None if value is None else float(value)


def _preference(name: str, value: Any) -> Preference | None:
    if not (value is None or value in get_args(Preference)):
        raise ValueError(f"{name}: expected 'realistic', 'short' or None, got {value!r}.")
    preference: Preference | None = value
    return preference


def _target(name: str, value: Any) -> Target:
    from acex.plan.target import Target

    return Target.of(value)


def _columns(name: str, value: Any) -> tuple[str | int, ...]:
    if isinstance(value, str):
        raise ValueError(f"{name}: expected a list of features, got the text {value!r}; write {name}=[{value!r}].")
    if not isinstance(value, Iterable):
        raise ValueError(f"{name}: expected a list of features, got {value!r}.")
    return tuple(value)


def _by_column(name: str, value: Any) -> Mapping[Any, Any]:
    if not (value is None or isinstance(value, Mapping)):
        raise ValueError(f"{name}: expected a mapping from features, got {value!r}.")
    return {} if value is None else dict(value)


def _rules(name: str, value: Any) -> tuple[str | RuleFunction, ...]:
    rules = (value,) if isinstance(value, str) or callable(value) else value
    for rule in rules if isinstance(rules, Iterable) else (rules,):
        if not (callable(rule) or (isinstance(rule, str) and rule.strip())):
            raise ValueError(
                f"{name}: expected texts such as 'duration <= 84 - age', or functions from rows to one True or False "
                f"per row, got {rule!r}."
            )
    return tuple(rules)


def _cost(name: str, value: Any) -> Cost | None:
    from acex.space.cost import Cost

    if not (value is None or isinstance(value, Cost)):
        raise TypeError(f"{name}: expected acex.Cost(...) or None, got {value!r}.")
    return value


def _strategy(name: str, value: Any) -> Strategy:
    from acex.search.search import as_strategy

    return as_strategy(value)


class RowOptions(TypedDict, total=False):
    """The options of a row as arguments; `acex.explain` describes them."""

    target: Any
    budget: int
    time_limit: float | None
    count: int
    freeze: Columns
    ranges: Mapping[Any, Any] | None
    values: Mapping[Any, Any] | None
    directions: Mapping[Any, Direction] | None
    rules: Rules
    max_changes: int | None
    prefer: Preference | None
    cost: Cost | None
    strategy: Strategy | str
    queries_per_round: int
    seed: int | None


# -- the options of a row ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    """The options of one row, checked as far as possible without the row and the model."""

    target: Target = _option(
        _target,
        "texts",
        None,
        WANTED,
        "--target LABEL",
        "Wanted label or labels (default: any other), or a range of numbers.",
    )
    budget: int = _option(
        _count(2), "count", 60, WANTED, "--budget N", "Maximum number of rows to send, including the row itself."
    )
    time_limit: float | None = _option(
        _seconds, "number", None, WANTED, "--time-limit SECONDS", "Send no more rows after this time.", decides=False
    )
    count: int = _option(
        _count(1), "count", 1, WANTED, "--count N", "Number of counterfactuals; each changes something else."
    )
    freeze: tuple[str | int, ...] = _option(
        _columns, "columns", (), ALLOWED, "--freeze COLUMNS", "Columns that must not change.", recorded=False
    )
    ranges: Mapping[Any, Any] = _option(
        _by_column, "by column", None, ALLOWED, "--range COLUMN=LOW:HIGH", "Limits of a column.", decides=False
    )
    values: Mapping[Any, Any] = _option(
        _by_column, "by column", None, ALLOWED, "--values COLUMN=A|B", "Allowed values of a column.", decides=False
    )
    directions: Mapping[Any, Direction] = _option(
        _by_column, "by column", None, ALLOWED, "", "'increase' or 'decrease' for a column.", recorded=False
    )
    rules: tuple[str | RuleFunction, ...] = _option(
        _rules, "texts", (), ALLOWED, "--rule RULE", "Rule that every row sent must satisfy: 'duration <= 84 - age'."
    )
    max_changes: int | None = _option(
        _count(1, optional=True), "count", None, ALLOWED, "--max-changes N", "Maximum number of changed columns."
    )
    prefer: Preference | None = _option(
        _preference, "text", None, ALLOWED, "--prefer realistic|short", "Which answer comes first if both are offered."
    )
    cost: Cost | None = _option(
        _cost, "object", None, COST, "", "What a change costs (acex.Cost); by default the strategy's."
    )
    strategy: Strategy = _option(
        _strategy, "text", "feasible", SEARCH, "--strategy NAME", "'feasible', or 'penalty' (ACE with repairs)."
    )
    queries_per_round: int = _option(
        _count(1), "count", 1, SEARCH, "--queries-per-round N", "Number of rows to send together."
    )
    seed: int = _option(_count(0), "count", 0, SEARCH, "--seed N", "Use another seed to start over.")

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Options:
        """The options among the arguments of a call (`locals()`), by name.

        Raises:
            ValueError, TypeError: one of them is wrong, or two of them conflict.
        """
        held = {f.name: f.metadata["check"](f.name, arguments[f.name]) for f in fields(cls) if f.name in arguments}
        options = cls(**held)
        options._check_strategy()
        return options

    @property
    def cost_or_default(self) -> Cost:
        """The cost given, or the strategy's own."""
        from acex.space.cost import Cost

        return self.cost or Cost(per_category=self.strategy.default_per_category)

    def _check_strategy(self) -> None:
        needs = {
            "max_changes": self.max_changes is not None,
            "Cost(per_change=...)": self.cost is not None and self.cost.per_change > 0,
            "count above 1": self.count > 1,
            "prefer": self.prefer is not None,
        }
        for what, is_used in needs.items():
            if is_used and not self.strategy.limits_changes:
                raise ValueError(f"{what} needs strategy 'feasible', got strategy {self.strategy.name!r}.")
        if self.prefer is not None and (self.count > 1 or self.max_changes is not None):
            raise ValueError("prefer: a short answer beside a realistic one needs count=1 and no max_changes.")

    def settings(self, space: Space) -> dict[str, Any]:
        """The recorded options as JSON-compatible values; columns are given by the names of the space."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if BY_NAME[f.name].recorded}
        for name in ("ranges", "values"):
            by_index = space.by_index(name, getattr(self, name))
            plain[name] = {space.names[j]: [_limit(v) for v in wanted] for j, wanted in by_index.items()}
        return plain | {
            "target": self.target.described,
            "strategy": self.strategy.described,
            "cost": self.cost_or_default.described,
            "rules": [rule for rule in self.rules if isinstance(rule, str)],
        }


def _limit(value: Any) -> Any:
    """A value of `ranges` or `values` for JSON: None for an end without a limit, and for a missing value."""
    return None if is_missing(value) or (isinstance(value, float) and isinf(value)) else as_json(value)


# -- the options of cost, strategy, model and data ---------------------------------------------------------------

_EFFORT = "'settle' stops when further queries are unlikely to pay off; 'spend' uses the whole budget."
_TOLERANCE = "Stop when the chance that ten more queries save 5% is smaller than this."
_MARGIN = "Required share of hits, as estimated, among rows close to a counterfactual, such as 0.7."
_VERSION = "Version of the model; each version has its own answers."
_NOISE = "Share of wrong answers of a model that contradicts itself, or 'auto'."
_OUTCOMES = "True outcomes of the data, where known: hints, not answers of the model."
_PLAUSIBLE = "What is realistic: joint (values go together as in the data), lof, none."

NESTED = (
    Declaration("beta", "number", 5.0, COST, "--beta NUMBER", "Weight of sparsity (l1) against distance (l2).", "cost"),
    Declaration("weights", "by column", None, COST, "--weight COLUMN=NUMBER", "Relative cost of a column (1).", "cost"),
    Declaration("per_category", "number", 1.0, COST, "--per-category SD", "Cost of changing a category.", "cost"),
    Declaration("per_change", "number", 0.0, COST, "--per-change SD", "Fixed cost per changed column.", "cost"),
    Declaration("effort", "text", "settle", SEARCH, "--effort settle|spend", _EFFORT, "strategy"),
    Declaration("tolerance", "number", 0.05, SEARCH, "--tolerance P", _TOLERANCE, "strategy"),
    Declaration("margin", "number", None, SEARCH, "--margin P", _MARGIN, "strategy"),
    Declaration("name", "text", None, MODEL, "--model-name NAME", "Name of the model in the ledger.", "model"),
    Declaration("version", "text", None, MODEL, "--model-version TEXT", _VERSION, "model"),
    Declaration("class_names", "texts", None, MODEL, "--class-name LABEL=NAME", "Display name of a label.", "model"),
    Declaration("scores", "switch", False, MODEL, "--scores", "The model gives probabilities; use them.", "model"),
    Declaration("noise", "text", 0, MODEL, "--noise SHARE|auto", _NOISE, "model"),
    Declaration("confirm", "count", 3, MODEL, "--confirm N", "With noise: required lead in votes.", "model"),
    Declaration("timeout", "number", None, MODEL, "--timeout SECONDS", "Time limit for one request.", "model", False),
    Declaration("outcomes", "text", None, DATA, "--outcomes COLUMN", _OUTCOMES, "data"),
    Declaration("plausibility", "text", "joint", DATA, "--plausibility KIND", _PLAUSIBLE, "data"),
    Declaration("grid", "by column", None, DATA, "--grid COLUMN=STEP", "Unit of a number's changes, or off.", "data"),
    Declaration("missing", "text", "drop", DATA, "--missing drop|keep", "Drop or keep rows with missing data.", "data"),
    Declaration("other", "by column", None, DATA, "--other COLUMN=CATEGORY", "Category for unknown values.", "data"),
    Declaration("relations", "switch", True, DATA, "--no-relations", "Keep relations such as total == a + b.", "data"),
    Declaration(
        "share_answers", "switch", True, ANSWERS, "--no-share-answers", "Use answers from other explanations.", "data"
    ),
    Declaration("ledger", "text", None, ANSWERS, "--ledger FILE|URL", "Where answers are recorded.", "data", False),
)
DECLARED = (*(Declaration(f.name, *f.metadata["declared"], **f.metadata["more"]) for f in fields(Options)), *NESTED)
BY_NAME = {declaration.name: declaration for declaration in DECLARED}


def search_arguments(by_name: Mapping[str, Any]) -> dict[str, Any]:
    """Options by name as `Explainer.search` takes them: those of strategy and cost are merged into objects.

    Raises:
        ValueError: the strategy does not have one of these options, or a value is wrong.
    """
    from acex.search.search import as_strategy

    given = {name: value for name, value in by_name.items() if value not in (None, [], {}, ())}
    strategy: Any = as_strategy(given.pop("strategy", BY_NAME["strategy"].default))
    of_strategy, of_cost = (
        {name: given.pop(name) for name in list(given) if BY_NAME[name].owner == owner}
        for owner in ("strategy", "cost")
    )
    for name in of_strategy:
        if not hasattr(strategy, name):
            raise ValueError(f"{name}: strategy {strategy.name!r} does not have this option.")
    strategy = replace(strategy, **of_strategy)
    return given | {"strategy": strategy, "cost": replace(Options(strategy=strategy).cost_or_default, **of_cost)}


# -- unknown arguments -------------------------------------------------------------------------------------------

PLACES = {  # where to pass options that are not arguments
    "cost": "cost=acex.Cost({}=...)",
    "strategy": "strategy=acex.Feasible({}=...)",
    "model": "acex.Model(..., {}=...)",
    "data": "acex.Explainer(..., {}=...)",
} | dict.fromkeys(("grid", "missing", "other", "relations"), "space=acex.Space.infer(data, {}=...)")
P = ParamSpec("P")
T = TypeVar("T")


def suggests_names(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: the error about an unknown argument suggests a name or where to pass it."""
    parameters = inspect.signature(function).parameters
    takes_options = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    known = [*parameters, *(RowOptions.__annotations__ if takes_options else ())]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in kwargs:
            if name not in known:
                place = PLACES.get(name) or PLACES.get(BY_NAME[name].owner if name in BY_NAME else "")
                hint = did_you_mean(name, known) if place is None else f" Did you mean {place.format(name)!r}?"
                raise TypeError(f"{function.__qualname__}: unknown argument {name!r}.{hint}")
        return function(*args, **kwargs)

    return checked
