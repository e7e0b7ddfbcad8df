"""Convert rows and options of requests to the arguments of `Explainer.search`, and options back to JSON.

One mapping holds all options of the row, the cost and the strategy by the names declared in `acex.options`. Here values
are only converted from and to JSON; `Explainer.search` validates them. Pages have their own controls for the target,
the budget and what may change; controls for the other options are generated from their declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import inf
from typing import Any, NamedTuple

import pandas as pd

import acex
from acex.options import BY_NAME, DECLARED, Options
from acex.plan.target import Measured, Target
from acex.search.search import as_strategy
from acex.space.feature import Feature
from acex.space.rules import Rule
from acex.studio.serializers import YES_NO, titles
from acex.studio.workspace import Workspace
from acex.values import as_json, did_you_mean, is_count, is_missing, listed

MAX_BUDGET = 10_000  # largest budget of one search
NAMES = [d.name for d in DECLARED if d.owner in ("row", "cost", "strategy") and d.kind != "object"]
# Rules and the seed are set on the command line only.
ON_PAGE = [name for name in NAMES if name not in ("rules", "seed")]
PLAIN = {name: BY_NAME[name] for name in ON_PAGE if BY_NAME[name].kind in ("count", "number", "text")}


# -- rows --------------------------------------------------------------------------------------------------------


def read_row(given: Any, workspace: Workspace) -> pd.DataFrame:
    """The row that a request gives by position or by values, in the format that the model receives.

    Raises:
        ValueError: there is no such row, or a value does not fit its feature.
    """
    if isinstance(given, Mapping) and isinstance(position := given.get("position"), int):
        if not 0 <= position < len(workspace.rows):
            raise ValueError(f"row {position}: there are the rows 0 to {len(workspace.rows) - 1}.")
        return workspace.rows.iloc[[position]]
    values, names = given.get("values") if isinstance(given, Mapping) else None, workspace.space.names
    if not isinstance(values, Mapping):
        raise ValueError("row: expected a position or values.")
    if set(values) != set(names):
        raise ValueError(f"row: expected the columns {listed(names)}, got {listed(values)}.")
    return workspace.frame({f.name: _read_value(f, values[f.name]) for f in workspace.space.features})


def _read_value(feature: Feature, given: Any) -> Any:
    """The value of a feature from a text or number in a request; None and "" mean a missing value."""
    if feature.gaps and given in (None, ""):
        return None
    try:
        return feature.value_in("" if given is None else str(given))
    except ValueError as error:
        raise ValueError(f"{feature.name}: {error}") from None


# -- options -----------------------------------------------------------------------------------------------------


def read_options(given: Any, workspace: Workspace) -> dict[str, Any]:
    """The options of a request; options that it does not contain are those of the workspace.

    Raises:
        ValueError: an option is unknown or malformed.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"options: expected a mapping, got {given!r}.")
    options = dict(workspace.options)
    for name, value in given.items():
        if name not in ON_PAGE:
            raise ValueError(f"unknown option {name!r}; expected {listed(ON_PAGE, 99)}.{did_you_mean(name, ON_PAGE)}")
        options[name] = _read_option(name, value, workspace)
    check_budget(budget_of(options))
    if workspace.gives_numbers and options.get("target") is None:
        raise ValueError("target: which number is wanted? Expected at_least, at_most, between or relative.")
    return options


def _read_option(name: str, value: Any, workspace: Workspace) -> Any:
    if name == "target":
        return _read_target(value, workspace)
    if BY_NAME[name].kind == "number":
        return _read_number(value)
    if name not in ("ranges", "values", "weights") or not isinstance(value, Mapping):
        return value
    if name == "weights":
        return {column: _read_number(weight) for column, weight in value.items()}
    for column, limits in value.items():
        if not isinstance(limits, list):
            raise ValueError(f"{name}[{column!r}]: expected a list, got {limits!r}.")
    features = {column: workspace.space.feature(column) for column in value}
    return {
        column: tuple(None if v is None else _read_value(feature, v) for v in value[column])
        for column, feature in features.items()
    }


def _read_number(value: Any) -> Any:
    return float(value) if isinstance(value, int) else value  # 3 and 3.0 are the same option


def _read_target(given: Any, workspace: Workspace) -> Any:
    """The target as `explain` takes it: labels, a range of numbers, or None for any other label."""

    def label(text: Any) -> Any:
        by_text = {workspace.label_text(label): label for label in workspace.labels}
        if by_text and str(text) not in by_text:
            raise ValueError(f"target: expected one of the labels {listed(by_text)}, got {text!r}.")
        return by_text.get(str(text), text)

    if isinstance(given, Mapping):
        named = {} if given.get("label") is None else {"label": label(given["label"])}
        return Target.of({**given, **named}).described
    if not isinstance(given, list):
        raise ValueError(f"target: expected a list of labels or a range of numbers, got {given!r}.")
    return [label(text) for text in given] or None


def budget_of(options: Mapping[str, Any]) -> Any:
    """The budget in the options, or the default."""
    return options.get("budget") or BY_NAME["budget"].default


def check_budget(budget: Any) -> int:
    """The budget as an integer; raises ValueError unless it is from 2 to `MAX_BUDGET`."""
    if not (is_count(budget, least=2) and budget <= MAX_BUDGET):
        raise ValueError(f"budget: expected a whole number from 2 to {MAX_BUDGET}, got {budget!r}.")
    return int(budget)


def options_by_name(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Options from arguments of `Explainer.search` or from the settings of a plan, without those at their defaults."""
    cost, strategy = arguments.get("cost") or {}, arguments.get("strategy") or {}
    strategy = getattr(strategy, "described", strategy)
    usual = as_strategy(strategy.get("name", BY_NAME["strategy"].default))
    usual_cost = asdict(Options(strategy=usual).cost_or_default)
    defaults = {name: BY_NAME[name].default for name in NAMES} | usual.described | usual_cost
    of_cost = asdict(cost) if isinstance(cost, acex.Cost) else cost
    by_name = {**arguments, **of_cost, **strategy, "strategy": usual.name}
    options = {name: value for name in NAMES if (value := by_name.get(name)) not in (None, defaults[name])}
    if "ranges" in options:  # None means unbounded
        ranges = options["ranges"].items()
        options["ranges"] = {c: tuple(None if end in (-inf, inf) else end for end in ends) for c, ends in ranges}
    return options


def recorded_options(settings: Mapping[str, Any], space: acex.Space, workspace: Workspace) -> dict[str, Any]:
    """The options of an explanation in the ledger, from its recorded settings and space.

    A recorded plan may depend on more than these options, so compare identities before continuing it.
    """
    own = {feature.name: feature for feature in workspace.space.features}
    features = [feature for feature in space.features if feature.name in own]
    return options_by_name(settings) | {
        "freeze": [f.name for f in features if f.frozen and not own[f.name].frozen],
        "directions": {f.name: f.direction for f in features if f.direction != own[f.name].direction},
        "weights": {f.name: f.weight for f in features if f.weight != own[f.name].weight},
    }


def options_json(options: Mapping[str, Any], workspace: Workspace) -> dict[str, Any]:
    """Options as JSON for pages; the inverse of `read_options`."""
    target, out = wanted(options, workspace), {name: options.get(name) for name in ON_PAGE}
    for name in ("ranges", "values", "directions", "weights"):
        out[name] = {
            column: _value_json(workspace.space.feature(column), value) for column, value in (out[name] or {}).items()
        }
    return {name: value for name, value in out.items() if value is not None} | {
        "target": target.described if isinstance(target, Measured) else list(getattr(target, "labels", ())),
        "budget": budget_of(options),
        "freeze": list(options.get("freeze") or ()),
    }


def _value_json(feature: Feature, value: Any) -> Any:
    """The value of an option for one feature, as JSON: a direction, a weight, or limits."""
    if not isinstance(value, (list, tuple)):
        return value
    write = as_json if feature.is_number else feature.text
    return [None if is_missing(v) else write(v) for v in value]


def declarations_json() -> list[dict[str, Any]]:
    """Declarations of the options for which the page generates a control."""
    return [
        asdict(d) | {"title": _title(d.name), "choices": metavar.split("|") if "|" in metavar else None}
        for d, metavar in ((d, d.flag.partition(" ")[2]) for d in PLAIN.values())
        if d.name != "budget"
    ]


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


# -- in words ----------------------------------------------------------------------------------------------------


def wanted(options: Mapping[str, Any], workspace: Workspace) -> Target:
    """The target, with class names for labels."""
    return Target.of(options.get("target")).named({label: workspace.label_text(label) for label in workspace.labels})


class Restriction(NamedTuple):
    """A restriction on answers, as a sentence, and the option of the page that relaxes it ("" if there is none)."""

    text: str
    option: str = ""
    column: str = ""


def restrictions(options: Mapping[str, Any], row: Mapping[str, Any], workspace: Workspace) -> list[Restriction]:
    """The restrictions that these options put on a row: frozen features, limits, and other options that are set."""
    given = {name: options.get(name) or {} for name in ("freeze", "directions", "weights", "ranges", "values")}
    space = workspace.space.adjust(**{name: given[name] for name in ("freeze", "directions", "weights")})
    out, called = list[Restriction](), titles(space)
    for feature, own in zip(space.features, workspace.space.features, strict=True):
        name, title, now = feature.name, called[feature.name], feature.text(row[feature.name])
        unit = f" {feature.unit}" if feature.unit else ""
        if feature.frozen:
            out.append(
                Restriction(f"{title} stays {YES_NO.get(now, now)}{unit}.", "" if own.frozen else "freeze", name)
            )
            continue
        for option in ("ranges", "values"):
            if (limits := given[option].get(name)) is not None:
                span = feature.span(limits if option == "ranges" else [*limits])
                out.append(Restriction(f"{title} may become {span}{unit}, nothing else.", option, name))
        if feature.direction is not None:
            way = "rise" if feature.direction == "increase" else "fall"
            out.append(Restriction(f"{title} may only {way}.", "" if own.direction else "directions", name))
        if feature.weight != 1:
            hard = f"{'harder' if feature.weight > 1 else 'easier'} to change than others"
            out.append(Restriction(f"{title} is {hard} (counts × {feature.weight:g}).", "weights", name))
    out += [
        Restriction(f"{_title(name)}: {options[name]}.", name)
        for name, declared in PLAIN.items()
        if name != "budget" and options.get(name) not in (None, declared.default)
    ]
    out = [rule._replace(text=rule.text[0].upper() + rule.text[1:]) for rule in out]
    return [*out, *map(Restriction, options.get("rules") or ())]


def broken(plan: acex.Plan, options: Mapping[str, Any], row: pd.DataFrame, workspace: Workspace) -> list[str]:
    """The restrictions that a changed row violates, as sentences."""
    space, [y] = plan.space.reaching(row)
    x = space.encode(dict(plan.factual))[0]
    columns = {
        name
        for j, (name, allowed) in enumerate(zip(space.names, plan.allowed, strict=True))
        if not (y[j] in allowed if j in plan.listed else allowed[0] <= y[j] <= allowed[-1])
    }
    every = [r for r in restrictions(options, plan.factual, workspace) if r.option != "weights"]
    names = {r.option for r in every if r.option == "max_changes" and (x != y).sum() > options["max_changes"]}
    texts = {text for text in options.get("rules") or () if not Rule.of(text, space).holds(y[None], x).all()}
    out = [r.text for r in every if r.column in columns or r.option in names or r.text in texts]
    # A typed value may lie outside the known rows, which is not due to any option.
    unsaid = columns - {r.column for r in every}
    return out + [
        f"{titles(space)[name]} is outside what the known rows show." for name in space.names if name in unsaid
    ]
