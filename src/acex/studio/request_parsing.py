"""Rows and options of requests as `Explainer.search` takes them, and options as pages show them.

Options are held by name in one mapping: those of the row, of the cost and of the strategy, as `acex.options` declares
them. A page has a control of its own for those in `READERS` and for the budget. The other plain ones (counts, numbers
and texts) are shown, checked and passed on by their declaration alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pandas as pd

import acex
from acex.options import BY_NAME, DECLARED, Declaration, Options
from acex.plan.target import Measured, Target
from acex.search.search import as_strategy
from acex.space.feature import Feature
from acex.studio.serializers import YES_NO, titles
from acex.studio.workspace import Workspace
from acex.values import as_json, did_you_mean, is_count, is_finite, is_missing, listed

MAX_BUDGET = 10_000  # of one search
NAMES = [d.name for d in DECLARED if d.owner in ("row", "cost", "strategy") and d.kind != "object"]
# The seed is an argument of the explainer too, which does not change while the studio runs.
PLAIN = {n: BY_NAME[n] for n in NAMES if BY_NAME[n].kind in ("count", "number", "text") and n != "seed"}


# -- rows --------------------------------------------------------------------------------------------------------


def read_row(given: Any, workspace: Workspace) -> pd.DataFrame:
    """The row that a page names by its position or its values, as the model receives it.

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
    return as_frame({f.name: _read_value(f, values[f.name]) for f in workspace.space.features}, workspace)


def as_frame(row: Mapping[str, Any], workspace: Workspace) -> pd.DataFrame:
    """A row by feature as a frame, with the columns and dtypes of the data."""
    frame = pd.DataFrame([dict(row)], columns=pd.Index(workspace.space.names), dtype=object)
    space, points = workspace.space.reaching(frame)  # a typed value beyond the data is allowed
    decoded = space.decode(points)
    return decoded if isinstance(decoded, pd.DataFrame) else frame


def _read_value(feature: Feature, given: Any) -> Any:
    """The value that a text or a number of a page stands for; None and "" for a missing value."""
    if feature.gaps and given in (None, ""):
        return None
    try:
        return feature.value_in("" if given is None else str(given))
    except ValueError as error:
        raise ValueError(f"{feature.name}: {error}") from None


# -- options -----------------------------------------------------------------------------------------------------


def read_options(given: Any, workspace: Workspace) -> dict[str, Any]:
    """The options of a request; those that it does not name are the workspace's.

    Raises:
        ValueError: an option is unknown or wrong. What only the library can check, it checks in `Explainer.search`.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"options: expected a mapping, got {given!r}.")
    known = sorted({*PLAIN, *READERS})
    for name in given:
        if name not in known:
            raise ValueError(f"unknown option {name!r}; there are {listed(known, most=99)}.{did_you_mean(name, known)}")
    options = dict(workspace.options)
    for name, value in given.items():
        options[name] = READERS[name](value, workspace) if name in READERS else _read_plain(BY_NAME[name], value)
    check_budget(options.get("budget") or BY_NAME["budget"].default)
    if workspace.gives_numbers and options.get("target") is None:
        raise ValueError("target: which number is wanted? Expected at_least, at_most, between or relative.")
    return options


def check_budget(budget: Any) -> int:
    """The budget, if a page may ask for it."""
    if not (is_count(budget, least=2) and budget <= MAX_BUDGET):
        raise ValueError(f"budget: expected a whole number from 2 to {MAX_BUDGET}, got {budget!r}.")
    return int(budget)


def search_arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as `Explainer.search` takes them: those of the cost and of the strategy as objects."""
    given = {name: value for name, value in options.items() if value not in (None, [], {}, ())}
    strategy: Any = as_strategy(given.pop("strategy", BY_NAME["strategy"].default))
    of_strategy, of_cost = (
        {name: given.pop(name) for name in list(given) if BY_NAME[name].owner == owner}
        for owner in ("strategy", "cost")
    )
    for name in of_strategy:
        if not hasattr(strategy, name):
            raise ValueError(f"{name}: strategy {strategy.name!r} does not have this option.")
    return given | {"strategy": replace(strategy, **of_strategy), "cost": replace(default_cost(strategy), **of_cost)}


def default_cost(strategy: acex.Strategy) -> acex.Cost:
    """The cost that holds with a strategy if none is given."""
    return Options(strategy=strategy).cost_or_default


def options_by_name(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Options from the arguments of `Explainer.search`, or from the settings of a plan; defaults are left out."""
    cost, strategy = arguments.get("cost") or {}, arguments.get("strategy") or {}
    strategy = getattr(strategy, "described", strategy)
    usual = as_strategy(strategy.get("name", BY_NAME["strategy"].default))
    defaults = {name: BY_NAME[name].default for name in NAMES} | usual.described | asdict(default_cost(usual))
    of_cost = asdict(cost) if isinstance(cost, acex.Cost) else cost
    by_name = {**arguments, **of_cost, **strategy, "strategy": usual.name}
    return {name: value for name in NAMES if (value := by_name.get(name)) not in (None, defaults[name])}


def recorded_options(settings: Mapping[str, Any], space: acex.Space, workspace: Workspace) -> dict[str, Any]:
    """The options of an explanation in the ledger, from the settings and the space that it recorded.

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
    """Options as pages hold them; the inverse of `read_options`."""
    space, target = workspace.space, wanted(options, workspace)
    limits = {
        name: {
            column: [_value_json(space.feature(column), value) for value in wanted_values]
            for column, wanted_values in (options.get(name) or {}).items()
        }
        for name in ("ranges", "values")
    }
    return {
        **{name: options[name] for name in PLAIN if options.get(name) is not None},
        **limits,
        "target": target.described if isinstance(target, Measured) else list(getattr(target, "labels", ())),
        "budget": options.get("budget") or BY_NAME["budget"].default,
        "freeze": list(options.get("freeze") or ()),
        "directions": dict(options.get("directions") or {}),
        "weights": dict(options.get("weights") or {}),
    }


def declarations_json() -> list[dict[str, Any]]:
    """The plain options that the page has no control of its own for, for its form."""
    return [
        asdict(d) | {"title": _title(d.name), "choices": metavar.split("|") if "|" in metavar else None}
        for d, metavar in ((d, d.flag.partition(" ")[2]) for d in PLAIN.values())
        if d.name != "budget"
    ]


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _value_json(feature: Feature, value: Any) -> Any:
    if is_missing(value) or (isinstance(value, float) and not is_finite(value)):
        return None
    return as_json(value) if feature.is_number else feature.text(value)


def _read_plain(declared: Declaration, value: Any) -> Any:
    """The value of a plain option; None for its default."""
    fits = {"count": is_count(value, least=0), "number": is_finite(value), "text": isinstance(value, str)}
    if value is not None and (isinstance(value, bool) or not fits[declared.kind]):
        what = {"count": "a whole number", "number": "a number", "text": "a text"}[declared.kind]
        raise ValueError(f"{declared.name}: expected {what}, got {value!r}.")
    return value


def _read_target(given: Any, workspace: Workspace) -> Any:
    """Labels, a range of numbers, or None for any other label, as `explain` takes them."""

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


def _read_freeze(given: Any, workspace: Workspace) -> list[str]:
    if not isinstance(given, list):
        raise ValueError(f"freeze: expected a list of columns, got {given!r}.")
    return [workspace.space.feature(str(name)).name for name in given]


def _by_column(name: str, read: Callable[[Feature, Any], Any]) -> Callable[[Any, Workspace], dict[str, Any]]:
    """A reader of an option by column; `read` takes the feature and its value."""

    def read_all(given: Any, workspace: Workspace) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise ValueError(f"{name}: expected a mapping from columns, got {given!r}.")
        out = {}
        for column, value in given.items():
            feature = workspace.space.feature(column)
            try:
                out[feature.name] = read(feature, value)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}: {error}") from None
        return out

    return read_all


def _read_limits(feature: Feature, given: Any) -> tuple[Any, ...]:
    """Both ends of a range, or allowed values; None for no limit, or for a missing value."""
    if not isinstance(given, list):
        raise ValueError(f"{feature.name}: expected a list, got {given!r}.")
    return tuple(None if value is None else _read_value(feature, value) for value in given)


def _read_weight(feature: Feature, given: Any) -> float:
    if not is_finite(given) or isinstance(given, bool):
        raise ValueError(f"{feature.name}: expected a number, got {given!r}.")
    return float(given)  # 3 and 3.0 are the same option


READERS: dict[str, Callable[[Any, Workspace], Any]] = {
    "target": _read_target,
    "freeze": _read_freeze,
    "ranges": _by_column("ranges", _read_limits),
    "values": _by_column("values", _read_limits),
    "directions": _by_column("directions", lambda feature, given: given),
    "weights": _by_column("weights", _read_weight),
}


# -- in words ----------------------------------------------------------------------------------------------------


def wanted(options: Mapping[str, Any], workspace: Workspace) -> Target:
    """What is wanted, with the names of labels."""
    return Target.of(options.get("target")).named({label: workspace.label_text(label) for label in workspace.labels})


def option_sentences(options: Mapping[str, Any], row: Mapping[str, Any], workspace: Workspace) -> list[str]:
    """What must not change or only within limits, and the plain options that are set: a sentence each."""
    space, out, called = workspace.space, list[str](), titles(workspace.space)
    ranges, values, directions, weights = (
        options.get(name) or {} for name in ("ranges", "values", "directions", "weights")
    )
    frozen = {space.feature(name).name for name in options.get("freeze") or ()}
    for feature in space.features:
        name, title, now = feature.name, called[feature.name], feature.text(row[feature.name])
        unit = f" {feature.unit}" if feature.unit else ""
        if feature.frozen or name in frozen:
            out.append(f"{title} stays {YES_NO.get(now, now)}{unit}.")
            continue
        if name in values:
            out.append(f"{title} may become {feature.span([*values[name]])}{unit}, nothing else.")
        if name in ranges:
            ends = tuple(None if isinstance(v, float) and not is_finite(v) else v for v in ranges[name])
            out.append(f"{title} may become {feature.span(ends)}{unit}, nothing else.")
        if (way := directions.get(name, feature.direction)) is not None:
            out.append(f"{title} may only {'rise' if way == 'increase' else 'fall'}.")
        if (weight := weights.get(name, feature.weight)) != 1:
            harder = "harder" if weight > 1 else "easier"
            out.append(f"{title} is {harder} to change than others (counts × {weight:g}).")
    out += [
        f"{_title(name)}: {options[name]}."
        for name, declared in PLAIN.items()
        if name != "budget" and options.get(name) not in (None, declared.default)
    ]
    out = [sentence[0].upper() + sentence[1:] for sentence in out]
    return [*out, *(options.get("rules") or ())]
