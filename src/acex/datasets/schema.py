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
        match self.kind:
            case "continuous":
                return text.map(float).astype("float64")
            case "integer":
                numbers = text.map(float)
                broken = text[numbers != numbers.round()]
                if len(broken):
                    raise ValueError(f"{self.name!r}: {broken.iloc[0]!r} is not a whole number.")
                return numbers.astype("int64")
            case "ordinal":
                check_words(self.name, text, self.categories)
                return text.astype(pd.CategoricalDtype(list(self.categories), ordered=True))
            case "nominal":
                check_words(self.name, text, self.categories)
                return text.astype("str")


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
        check_words(LABEL, table[LABEL], self.classes)
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


def check_words(name: str, text: pd.Series[str], known: tuple[str, ...]) -> None:
    """Nothing, when each value is a known word.

    Raises:
        ValueError: naming the first value that is not.
    """
    unknown = text[~text.isin(known)]
    if len(unknown):
        raise ValueError(f"{name!r}: {unknown.iloc[0]!r} is not one of {known}.")


@cache
def schemas() -> Mapping[str, Schema]:
    """The eight schemas by name."""
    text = resources.files("acex.datasets").joinpath("schemas.toml").read_text(encoding="utf-8")
    return {name: _schema(name, entry) for name, entry in tomllib.loads(text).items()}


def _schema(name: str, entry: dict[str, Any]) -> Schema:
    return Schema(
        name=name,
        title=entry["title"],
        openml=entry["openml"],
        columns=tuple(described(feature, Column) for feature in entry["features"]),
        classes=tuple(entry["classes"]),
        positive=tuple(entry["positive"]),
        target=entry["target"],
        label=entry.get("label", {}),
    )
