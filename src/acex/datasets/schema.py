"""The eight published tables as `schemas.toml` describes them, and how a table becomes a data set."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import pandas as pd

from acex.datasets.dataset import Dataset
from acex.space.kinds import Nominal
from acex.space.schema import FeatureSchema, described
from acex.space.space import Space

LABEL = "target"  # the column of a table that holds the label


@dataclass(frozen=True)
class Column(FeatureSchema):
    """One feature of a published table, and where OpenML keeps it."""

    source: str = ""  # OpenML's name, when it is another
    words: Mapping[str, str] = field(default_factory=dict)  # OpenML's values in our words

    def read(self, text: pd.Series[str]) -> pd.Series[Any]:
        """The column with its proper dtype, from text."""
        values = text.map(float) if self.kind.is_number else text
        feature = self.feature(values)
        return feature.decode(feature.encode(values), None)


@dataclass(frozen=True)
class Schema:
    """A published table: its columns and its classes."""

    name: str
    title: str
    openml: int
    columns: tuple[Column, ...]
    classes: tuple[str, ...]
    positive: tuple[str, ...]
    target: str
    label: Mapping[str, str]  # OpenML's classes in our words

    def dataset(self, table: pd.DataFrame) -> Dataset:
        """The data set in a table of text, whose last column is the label.

        Raises:
            ValueError: a column is missing or unknown, or a value is none of the schema's words.
        """
        expected = [*(column.name for column in self.columns), LABEL]
        if list(table.columns) != expected:
            raise ValueError(f"{self.name}: expected the columns {expected}, got {list(table.columns)}.")
        Nominal(LABEL, self.classes).encode(table[LABEL])  # refuses other words
        rows = pd.DataFrame({column.name: column.read(table[column.name]) for column in self.columns})
        features = tuple(column.feature(rows[column.name]) for column in self.columns)
        return Dataset(
            name=self.name,
            rows=rows,
            labels=table[LABEL].astype("str"),
            space=Space(features).like(rows),
            target=self.target,
            title=self.title,
            positive=self.positive,
        )


@cache
def schemas() -> Mapping[str, Schema]:
    """The eight schemas by name."""
    text = resources.files("acex.datasets").joinpath("schemas.toml").read_text(encoding="utf-8")
    return {name: _schema(name, entry) for name, entry in tomllib.loads(text).items()}


def _column(entry: dict[str, Any]) -> Column:
    own = {key: entry.pop(key) for key in ("source", "words") if key in entry}
    return Column(**vars(described(entry)), **own)


def _schema(name: str, entry: dict[str, Any]) -> Schema:
    return Schema(
        name=name,
        title=entry["title"],
        openml=entry["openml"],
        columns=tuple(_column(feature) for feature in entry["features"]),
        classes=tuple(entry["classes"]),
        positive=tuple(entry["positive"]),
        target=entry["target"],
        label=entry.get("label", {}),
    )
