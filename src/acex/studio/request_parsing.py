"""From what a page says to what `Explainer` takes, and back from what a ledger recorded.

A page says a row by its position or by its values, and wishes in JSON: a target (labels, or a range of numbers as
`Target.of` takes it), a budget, and by feature what is locked, within which limits it stays, which way it may go, how
dear it is. Labels and categories are said by their text, and so are dates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

import acex
from acex.ledger import Record
from acex.plan.target import Measured, Target
from acex.space.feature import Feature
from acex.space.rules import Rule
from acex.studio.serializers import YES_NO, titles
from acex.studio.workspace import Desk
from acex.values import as_json, is_finite, is_missing, joined_words, listed

MOST_QUERIES = 10_000  # a budget that a page may ask for
KNOWN = {"target", "budget", "count", "freeze", "ranges", "directions", "weights"}
PLAIN = {"margin", "max_changes", "effort"}  # as `Explainer.plan` takes and checks them


def row_of(said: Any, desk: Desk) -> pd.DataFrame:
    """The row that a page means, as the model sees it.

    Raises:
        ValueError: there is no such row, or a value does not fit its feature.
    """
    if isinstance(said, Mapping) and isinstance(position := said.get("position"), int):
        if not 0 <= position < len(desk.rows):
            raise ValueError(f"row {position}: there are the rows 0 to {len(desk.rows) - 1}.")
        return desk.rows.iloc[[position]]
    values = said.get("values") if isinstance(said, Mapping) else None
    if not isinstance(values, Mapping):
        raise ValueError("which row? Expected a position or values.")
    unknown = [name for name in values if name not in desk.space.names]
    lacking = [name for name in desk.space.names if name not in values]
    if unknown or lacking:
        raise ValueError(f"a row has the columns {listed(desk.space.names)}; got {listed(values)}.")
    row = {feature.name: value_of(feature, values[feature.name]) for feature in desk.space.features}
    return frame_of(row, desk)


def frame_of(row: Mapping[str, Any], desk: Desk) -> pd.DataFrame:
    """A row by feature as a frame, with the columns and dtypes of the data."""
    frame = pd.DataFrame([dict(row)], columns=pd.Index(desk.space.names), dtype=object)
    space = desk.space.reaching(frame)  # a value beyond the data is a real one
    told = space.decode(space.encode(frame))
    return told if isinstance(told, pd.DataFrame) else frame


def value_of(feature: Feature, said: Any) -> Any:
    """The value that a text or a number of a page stands for.

    Raises:
        ValueError: none that this feature can hold.
    """
    if feature.gaps and said in (None, ""):
        return None
    if feature.is_number:
        try:
            number = float(said) if not isinstance(said, bool) else None
        except (TypeError, ValueError):
            number = None
        if number is None or not is_finite(number):
            raise ValueError(f"{feature.name}: expected a number, got {said!r}.")
        if feature.grid == 1 and number != round(number):
            raise ValueError(f"{feature.name}: expected a whole number, got {said!r}.")
        return int(number) if number == round(number) and feature.grid else number
    if not hasattr(feature, "categories"):
        return feature.value(feature.encode(pd.Series([str(said)]))[0])
    categories: Any = feature.categories
    by_text = {feature.text(category): category for category in categories}
    if str(said) not in by_text:
        raise ValueError(f"{feature.name}: {said!r} is not one of {listed(by_text)}.")
    return by_text[str(said)]


def options_of(said: Any, desk: Desk) -> dict[str, Any]:
    """The wishes of a page as `Explainer.plan` takes them; what it does not say is as the studio was told.

    Raises:
        ValueError: one of them is none.
    """
    if not isinstance(said, Mapping):
        raise ValueError("expected wishes: a target, a budget, what may change.")
    strange = sorted(set(said) - KNOWN - PLAIN)
    if strange:
        raise ValueError(f"{listed(strange)}: there is no such wish; there are {listed(sorted(KNOWN | PLAIN))}.")
    space, options = desk.space, {**desk.wishes}
    if "target" in said:
        options["target"] = _target(said["target"], desk)
    for name in ("budget", "count"):
        if name in said:
            number = said[name]
            if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MOST_QUERIES:
                raise ValueError(f"{name}: expected a whole number up to {MOST_QUERIES}, got {number!r}.")
            options[name] = number
    if "freeze" in said:
        options["freeze"] = [space.feature(str(name)).name for name in _a(list, said, "freeze")]
    if "directions" in said:
        options["directions"] = {space.feature(n).name: way for n, way in _a(dict, said, "directions").items()}
    if "ranges" in said:
        limits = _a(dict, said, "ranges")
        unsaid = {n: wish for n, wish in (desk.wishes.get("ranges") or {}).items() if not _can_be_said(wish)}
        options["ranges"] = unsaid | {name: _limits(space.feature(name), values) for name, values in limits.items()}
    if "weights" in said:
        options["weights"] = {space.feature(n).name: _weight(n, w) for n, w in _a(dict, said, "weights").items()}
    options |= {name: said[name] for name in PLAIN & set(said)}
    if desk.gives_numbers and options.get("target") is None:
        raise ValueError("which number is wanted? Say at least how much, at most, or between which two.")
    return options


def _a(kind: type, said: Mapping[str, Any], name: str) -> Any:
    if not isinstance(said[name], kind):
        raise ValueError(f"{name}: expected a {'list' if kind is list else 'mapping'}, got {said[name]!r}.")
    return said[name]


def _weight(name: str, said: Any) -> float:
    if not is_finite(said) or isinstance(said, bool):
        raise ValueError(f"weights: {name}: expected a number, got {said!r}.")
    return float(said)  # 3 and 3.0 are the same wish


def _target(said: Any, desk: Desk) -> Any:
    """Labels, a range of numbers, or None for any other label, as `explain` takes them."""
    if isinstance(said, Mapping):
        label = {} if said.get("label") is None else {"label": _label(said["label"], desk)}
        return Target.of({**said, **label}).said
    if not isinstance(said, list):
        raise ValueError(f"target: expected labels or a range of numbers, got {said!r}.")
    return [_label(label, desk) for label in said] or None


def _label(said: Any, desk: Desk) -> Any:
    by_text = {desk.spoken(label): label for label in desk.labels}
    if by_text and str(said) not in by_text:
        raise ValueError(f"target: {said!r} is not a label; there are {listed(by_text)}.")
    return by_text.get(str(said), said)


def wanted(options: Mapping[str, Any], desk: Desk) -> Target:
    """What is wanted, in the words of pages."""
    return Target.of(options.get("target")).named({label: desk.spoken(label) for label in desk.labels})


def _can_be_said(limits: Any) -> bool:
    """Has a page words for them? Not for what may become a gap, which is left as the studio was told."""
    return len(limits) == 2 or not any(map(is_missing, limits))


def _limits(feature: Feature, said: Any) -> Any:
    if not isinstance(said, list):
        raise ValueError(f"ranges: {feature.name}: expected a list, got {said!r}.")
    if feature.gaps and said == [None]:
        return said
    if hasattr(feature, "categories"):
        return [value_of(feature, category) for category in said]
    if len(said) != 2:
        raise ValueError(f"ranges: {feature.name}: expected the lowest and the highest value, got {said!r}.")
    low, high = said
    if not feature.is_number:
        return [None if end is None else feature.text(value_of(feature, end)) for end in said]
    return (
        float("-inf") if low is None else float(value_of(feature, low)),
        float("inf") if high is None else float(value_of(feature, high)),
    )


def recorded_options(record: Record, desk: Desk) -> dict[str, Any]:
    """The wishes of an explanation in the ledger, as far as the studio knows such wishes.

    Whoever goes on with them compares the identity of the plan: what is not among them makes it another.
    """
    settings, space = record.settings, acex.Space.from_dict(record.space) if record.space else desk.space
    base = desk.space
    options: dict[str, Any] = {**desk.wishes}
    options |= {name: settings[name] for name in ("target", "budget", "count", "seed") if name in settings}
    options["ranges"] = {
        name: _limits(base.feature(name), [None if v is None else as_json(v) for v in limits])
        for name, limits in (settings.get("ranges") or {}).items()
    }
    strategy = settings.get("strategy") or {}
    options["margin"] = strategy.get("margin")
    options["effort"] = strategy.get("effort", "spend" if strategy.get("tolerance") == 0 else "settle")
    options["max_changes"] = settings.get("max_changes")
    own = {feature.name: feature for feature in base.features}
    features = [feature for feature in space.features if feature.name in own]
    options["freeze"] = [f.name for f in features if f.frozen and not own[f.name].frozen]
    options["directions"] = {f.name: f.direction for f in features if f.direction != own[f.name].direction}
    options["weights"] = {f.name: f.weight for f in features if f.weight != own[f.name].weight}
    return options


def in_words(options: Mapping[str, Any], row: Mapping[str, Any], desk: Desk) -> list[str]:
    """What may not change, or only within limits: a sentence each."""
    space, told, called = desk.space, list[str](), titles(desk.space)
    ranges, directions, weights = (options.get(name) or {} for name in ("ranges", "directions", "weights"))
    frozen = {*(space.feature(name).name for name in options.get("freeze") or ())}
    for feature in space.features:
        name, title, now = feature.name, called[feature.name], feature.text(row[feature.name])
        now = YES_NO.get(now, now)
        unit = f" {feature.unit}" if feature.unit else ""
        way = directions.get(name, feature.direction)
        if feature.frozen or name in frozen:
            told.append(f"{title} stays {now}{unit}.")
            continue
        if name in ranges and not _can_be_said(ranges[name]):
            told.append(
                f"{title} may become {joined_words([feature.text(v) for v in ranges[name]], 'or')}, nothing else."
            )
        elif name in ranges:
            ends = tuple(None if isinstance(v, float) and not is_finite(v) else v for v in ranges[name])
            told.append(f"{title} may become {feature.span(ends)}{unit}, nothing else.")
        if way is not None:
            told.append(f"{title} may only {'rise' if way == 'increase' else 'fall'}.")
        weight = weights.get(name, feature.weight)
        if weight != 1:
            told.append(
                f"{title} is {'harder' if weight > 1 else 'easier'} to change than others (counts × {weight:g})."
            )
    if (margin := options.get("margin")) is not None:
        told.append(f"rows close to an answer are decided alike too, with a probability of about {margin:g}.")
    if (most := options.get("max_changes")) is not None:
        told.append(f"at most {most} {'feature changes' if most == 1 else 'features change'}.")
    told += [Rule.of(text, space).sentence for text in options.get("rules") or ()]
    return [sentence[0].upper() + sentence[1:] for sentence in told]


def as_said(options: Mapping[str, Any], desk: Desk) -> dict[str, Any]:
    """Options back in the words of a page."""
    space, target = desk.space, wanted(options, desk)
    ranges: dict[str, Any] = {}
    for name, limits in (options.get("ranges") or {}).items():
        if not _can_be_said(limits):
            continue
        feature = space.feature(name)
        ends = [None if isinstance(v, float) and not is_finite(v) else as_json(v) for v in limits]
        ranges[name] = ends if feature.is_number else [None if v is None else feature.text(v) for v in limits]
    return {
        "target": target.said if isinstance(target, Measured) else list(getattr(target, "labels", ())),
        "budget": options.get("budget", 30),
        "count": options.get("count", 1),
        "freeze": list(options.get("freeze") or ()),
        "directions": dict(options.get("directions") or {}),
        "ranges": ranges,
        "weights": dict(options.get("weights") or {}),
        "margin": options.get("margin"),
        "max_changes": options.get("max_changes"),
        "effort": options.get("effort", "settle"),
    }


def same_row(factual: str, row: Mapping[str, Any]) -> bool:
    """Is this the row that a ledger wrote down?"""
    return bool(json.loads(factual) == json.loads(json.dumps(dict(row), default=as_json)))
