"""Schema files: a description of the columns of a table in TOML, for users' files and the published tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from acex.space.feature import Feature, kind_named
from acex.space.kinds import Continuous, Nominal, Ordinal
from acex.space.space import Missing, Space, all_at_once, inferring, known_values
from acex.values import listed

HEADER = """\
# What each column holds. A column that is not listed here is inferred from its values.
#   kind        continuous, integer, ordinal (categories from lowest to highest), nominal (no order) or date
#   range       [lowest, highest] that a number may ever have; by default as in the data
#   first, last of a date: the first and the last there may ever be; form: how texts are written, such as "%Y-%m-%d"
#   categories  the values there are; for an ordinal column in their order
#   frozen      true: stays as it is in every counterfactual
#   direction   "increase" or "decrease": may only increase or only decrease
#   weight      relative cost of changing this column; 1 by default
#   unit        of a number, such as "months", for sentences and reports
#   grid        the step in which a number is moved, such as 50 or 0.001; any number without it
#   values      the only numbers or dates that a search uses, such as [25, 33, 50]; any within the range without it
#   digits      the significant digits of a number that has no step
#   other       the category that stands for all unknown values
#   gaps        true: values may be missing, for a model that accepts that; see --missing keep
# Rules over several columns stand before the features: rules = ["duration <= 84 - age"]
"""


@dataclass(frozen=True)
class FeatureSchema:
    """One column of a file: its kind, and some of the kind's fields."""

    name: str
    kind: type[Feature]
    given: Mapping[str, Any]

    @property
    def missing(self) -> list[str]:
        """The required fields that are not given."""
        return [f.name for f in fields(self.kind)[1:] if f.default is MISSING and f.name not in self.given]

    def feature(self, values: pd.Series[Any]) -> Feature:
        """The feature; a range or categories that the file omits are taken from these values."""
        if self.kind.is_number and not types.is_numeric_dtype(values.dtype):
            word = self.kind.__name__.lower()
            raise ValueError(f"{self.name!r}: kind {word!r} is for numbers, and the column is {values.dtype}.")
        inferred: dict[str, Any] = {}
        if self.missing and self.kind.is_number:
            inferred = {"low": float(values.min()), "high": float(values.max())}
        elif self.missing and self.kind is Nominal:
            inferred = {"categories": tuple(sorted(values.unique().tolist()))}
        elif self.missing and (found := self.kind.infer(self.name, values)) is not None:
            inferred = {name: getattr(found, name) for name in self.missing}
        return self.kind(self.name, **{**inferred, **self.given})


def described(entry: Any) -> FeatureSchema:
    """One column from its table in the file, in which `range` replaces `low` and `high`.

    Raises:
        ValueError: a key is missing or unknown, or does not fit the kind.
    """
    if not isinstance(entry, Mapping) or "kind" not in entry or not isinstance(entry.get("name"), str):
        raise ValueError(f"features: expected a table such as {{ name = 'age', kind = 'integer' }}, got {entry!r}.")
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items() if v != []}
    name, word = given.pop("name"), given.pop("kind")
    kind = kind_named(name, word)
    keys = [f.name for f in fields(kind)[1:]]
    if "range" in given and "low" in keys:
        limits = given.pop("range")
        if not isinstance(limits, tuple) or len(limits) != 2:
            raise ValueError(f"{name!r}: expected range = [lowest, highest], got {entry['range']!r}.")
        given["low"], given["high"] = limits
    if unknown := [key for key in given if key not in keys]:
        known = ["name", "kind", *dict.fromkeys("range" if key in ("low", "high") else key for key in keys)]
        raise ValueError(f"{name!r}: kind {word!r} has no {listed(unknown)}; there are {listed(known)}.")
    schema = FeatureSchema(name, kind, given)
    if schema.missing and issubclass(kind, Ordinal):
        raise ValueError(f"{name!r}: an {word} column needs {', '.join(schema.missing)}, from lowest to highest.")
    return schema


def read_schema(path: Path) -> list[FeatureSchema]:
    """The columns that a file describes.

    Raises:
        ValueError: the file is invalid; the message names it.
    """
    try:
        written = tomllib.loads(path.read_text(encoding="utf-8"))
        features = written.get("features", [])
        if not isinstance(features, list) or not written or set(written) - {"features", "rules"}:
            raise ValueError(f"expected features = [...], rules = [...] or both, got {listed(written) or 'neither'}.")
        columns = [described(entry) for entry in features]
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise ValueError(f"{max(names, key=names.count)!r} is described twice.")
        return columns
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_rules(path: Path) -> list[str]:
    """The rules in a schema file."""
    rules = tomllib.loads(path.read_text(encoding="utf-8")).get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise ValueError(f"{path}: rules: expected texts, such as rules = ['duration <= 84 - age'], got {rules!r}.")
    return rules


def with_schema(
    frame: pd.DataFrame,
    schema: Iterable[FeatureSchema],
    missing: Missing = "drop",
    *,
    text: Iterable[str] = (),
    dates: Iterable[str] | Mapping[str, str | None] = (),
    relations: bool = True,
) -> tuple[pd.DataFrame, Space]:
    """The data and their space: columns as in the schema, the others inferred from their values; see `Space.infer`.

    Integer columns that are declared continuous become floats. Relations are kept between inferred columns only.
    """
    by_name = {column.name: column for column in schema}
    if unknown := [name for name in by_name if name not in frame.columns]:
        raise ValueError(f"schema: {listed(unknown)} is not a column of the data; there are {listed(frame.columns)}.")
    frame = frame.copy(deep=False)
    for name, column in by_name.items():
        if column.kind is Continuous and types.is_integer_dtype(frame[name].dtype):
            frame[name] = frame[name].astype("float64")
    infer_as = inferring(text, dates, [str(name) for name in frame.columns])
    features = all_at_once(
        partial(by_name[str(name)].feature, c) if str(name) in by_name else partial(infer_as, str(name), c)
        for name, c in known_values(frame, missing)
    )
    inferred = frozenset(map(str, frame.columns)) - by_name.keys()
    space = Space(tuple(features), missing=missing, inferred=inferred).like(frame)
    return frame, space.with_relations(frame) if relations else space


def schema_text(space: Space) -> str:
    """The text of a schema file that describes this space, to be edited."""
    lines = [f"    {{ {', '.join(_entry(feature))} }}," for feature in space.features]
    rules = [f"rules = {_toml(space.relations)}"] if space.relations else []
    return HEADER + "\n".join([*rules, "features = [", *lines, "]", ""])


def _entry(feature: Feature) -> list[str]:
    """The fields of a feature that differ from their defaults, in TOML; those without a default come first."""
    ordered = sorted(fields(feature)[1:], key=lambda f: f.default is not MISSING)
    entry = {f.name: getattr(feature, f.name) for f in ordered if getattr(feature, f.name) != f.default}
    if "low" in entry:
        entry = {"range": (entry.pop("low"), entry.pop("high")), **entry}
    return [f"{key} = {_toml(value)}" for key, value in {"name": feature.name, "kind": feature.kind, **entry}.items()]


def _toml(value: Any) -> str:
    """A value or a list as TOML, which agrees with JSON except for the character DEL."""
    return json.dumps(value, default=str, ensure_ascii=False).replace("\x7f", "\\u007f")
