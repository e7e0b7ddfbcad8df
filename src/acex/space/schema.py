"""What the columns of a table hold, as a TOML file says it: one format for users' files and the published tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import pandas as pd
from pandas.api import types

from acex.space.columns import infer_feature
from acex.space.kinds import Categorical, Continuous, Direction, Feature, Integer, Nominal, Numeric, Ordinal
from acex.space.space import Space
from acex.values import listed

Kind: TypeAlias = Literal["continuous", "integer", "ordinal", "nominal"]

HEADER = """\
# What each column holds. A column that is not listed here is taken as its values suggest.
#   kind        continuous, integer, ordinal (categories from lowest to highest) or nominal (no order)
#   range       [lowest, highest] that a number may ever have; by default as in the data
#   categories  the values there are; for an ordinal column in their order
#   frozen      true: stays as it is in every counterfactual
#   direction   "increase" or "decrease": may go one way only
#   weight      how dear a change is relative to other columns; 1 by default
#   unit        what a number counts, such as "months": a word for sentences and reports
"""


@dataclass(frozen=True)
class FeatureSchema:
    """What a file says about one column."""

    name: str
    kind: Kind
    categories: tuple[Any, ...] = ()
    range: tuple[float, float] | None = None
    frozen: bool = False
    direction: Direction | None = None
    weight: float = 1.0
    unit: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"{self.name!r}: kind {self.kind!r} is not one of {listed(get_args(Kind))}.")
        is_number = self.kind in ("continuous", "integer")
        if self.range is not None and not (is_number and len(self.range) == 2):
            what = "[lowest, highest]" if is_number else f"categories, not a range, for kind {self.kind!r}"
            raise ValueError(f"{self.name!r}: expected {what}, got range = {list(self.range)}.")
        if self.kind == "ordinal" and not self.categories:
            raise ValueError(f"{self.name!r}: an ordinal column needs categories, from lowest to highest.")
        if self.unit and not is_number:
            raise ValueError(
                f"{self.name!r}: only numbers have a unit, got unit = {self.unit!r} for kind {self.kind!r}."
            )

    def feature(self, values: pd.Series[Any]) -> Feature:
        """The feature; where the file does not say so, with the range or categories of these values."""
        limits: dict[str, Any] = {"frozen": self.frozen, "direction": self.direction, "weight": self.weight}
        if self.kind in ("continuous", "integer") and not types.is_numeric_dtype(values.dtype):
            raise ValueError(f"{self.name!r}: kind {self.kind!r} is for numbers, and the column is {values.dtype}.")
        match self.kind:
            case "continuous":
                low, high = self.range or (float(values.min()), float(values.max()))
                return Continuous(self.name, low, high, unit=self.unit, **limits)
            case "integer":
                low, high = self.range or (int(values.min()), int(values.max()))
                return Integer(self.name, low, high, unit=self.unit, **limits)
            case "ordinal":
                return Ordinal(self.name, self.categories, **limits)
            case "nominal":
                return Nominal(self.name, self.categories or tuple(sorted(values.unique().tolist())), **limits)


WRITTEN: dict[str, Any] = {
    "name": str, "kind": str, "categories": list, "range": list, "frozen": bool, "direction": str,
    "weight": (int, float), "unit": str,
}  # fmt: skip
Described = TypeVar("Described", bound=FeatureSchema)


def described(entry: Mapping[str, Any], kind: type[Described]) -> Described:
    """One column from its table in the file.

    Raises:
        ValueError: a key is missing or unknown.
    """
    known = [f.name for f in fields(kind)]
    if not isinstance(entry, Mapping):
        raise ValueError(f"features: expected a table such as {{ name = 'age', kind = 'integer' }}, got {entry!r}.")
    strange = [key for key in entry if key not in known]
    if strange or "name" not in entry or "kind" not in entry:
        what = f"unknown {listed(strange)}; there are {listed(known)}" if strange else "name and kind are needed"
        raise ValueError(f"features: {dict(entry)}: {what}.")
    for key, value in entry.items():
        if not isinstance(value, WRITTEN.get(key, object)):
            raise ValueError(f"features: {entry['name']!r}: {key} = {value!r} is of the wrong type; see acex schema.")
    values: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in entry.items()}
    return kind(**values)


def read_schema(path: Path) -> list[FeatureSchema]:
    """The columns that a file describes.

    Raises:
        ValueError: naming the file and what is wrong with it.
    """
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
        features = written.get("features")
        if not isinstance(features, list) or set(written) != {"features"}:
            raise ValueError(f"expected features = [...] and nothing else, got {listed(written)}.")
        columns = [described(entry, FeatureSchema) for entry in features]
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise ValueError(f"{max(names, key=names.count)!r} is described twice.")
        return columns
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def with_schema(frame: pd.DataFrame, schema: Iterable[FeatureSchema]) -> tuple[pd.DataFrame, Space]:
    """The data and their space: columns as the schema says, the others as their values suggest.

    Whole numbers that are declared continuous become floats.
    """
    by_name = {column.name: column for column in schema}
    strange = [name for name in by_name if name not in frame.columns]
    if strange:
        raise ValueError(f"schema: {listed(strange)} is not a column of the data; there are {listed(frame.columns)}.")
    whole = [n for n, c in by_name.items() if c.kind == "continuous" and types.is_integer_dtype(frame[n].dtype)]
    frame = frame.astype(dict.fromkeys(whole, "float64"))
    features = [
        by_name[name].feature(frame[name]) if name in by_name else infer_feature(str(name), frame[name])
        for name in frame.columns
    ]
    return frame, Space(tuple(features)).like(frame)


def schema_text(space: Space) -> str:
    """A file that describes this space, to be edited."""
    lines = [f"    {{ {', '.join(_entry(feature))} }}," for feature in space.features]
    return "\n".join([HEADER + "features = [", *lines, "]", ""])


def _entry(feature: Feature) -> list[str]:
    words = [f"name = {_toml(feature.name)}", f"kind = {_toml(type(feature).__name__.lower())}"]
    if isinstance(feature, Categorical):
        words.append(f"categories = [{', '.join(_toml(c) for c in feature.categories)}]")
    else:
        words.append(f"range = [{_toml(feature.low)}, {_toml(feature.high)}]")
    if feature.frozen:
        words.append("frozen = true")
    if feature.direction is not None:
        words.append(f"direction = {_toml(feature.direction)}")
    if feature.weight != 1:
        words.append(f"weight = {_toml(feature.weight)}")
    if isinstance(feature, Numeric) and feature.unit:
        words.append(f"unit = {_toml(feature.unit)}")
    return words


def _toml(value: Any) -> str:
    """A text, number or truth value: TOML writes them as JSON does, but for one character."""
    return json.dumps(value, default=str, ensure_ascii=False).replace("\x7f", "\\u007f")
