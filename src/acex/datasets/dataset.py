"""A data set: readable rows, their true outcomes, and the space the rows live in; and the published tables.

`schemas.toml` describes the eight published tables.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from acex.arrays import FloatArray, IntArray
from acex.space.kinds import Integer, Nominal
from acex.space.schema import FeatureSchema, described
from acex.space.space import Space

OUTCOME = "target"  # the column of a table that holds the outcome


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with their true outcomes, ready to fit a model on and to explain.

    Example:
        >>> import acex.datasets
        >>> data = acex.datasets.loan()
        >>> data.target
        'approved'
    """

    name: str
    rows: pd.DataFrame  # features only
    outcomes: pd.Series[Any]
    space: Space
    target: Hashable  # the outcome people would want
    title: str
    positive: tuple[Hashable, ...]  # the outcomes that count as 1

    @cached_property
    def codes(self) -> FloatArray:
        """The rows as points, (n, d)."""
        return self.space.encode(self.rows)

    @cached_property
    def binary(self) -> IntArray:
        """1 where the outcome is a positive one and 0 elsewhere, (n,)."""
        return self.outcomes.isin(self.positive).to_numpy().astype(np.intp)


def images(
    name: str,
    pixels: npt.NDArray[Any],
    outcomes: npt.NDArray[Any],
    *,
    brightest: int,
    target: str,
    title: str,
) -> Dataset:
    """Square images, one a row of `pixels`, (n, side * side).

    Every pixel may take each value up to `brightest`, also where the data never light it.
    """
    side = round(pixels.shape[1] ** 0.5)
    names = [f"pixel_{i}_{j}" for i in range(side) for j in range(side)]
    rows = pd.DataFrame(pixels, columns=pd.Index(names))
    return Dataset(
        name=name,
        rows=rows,
        outcomes=pd.Series(outcomes, name=OUTCOME, dtype="str"),
        space=Space(tuple(Integer(pixel, 0, brightest) for pixel in names)).like(rows),
        target=target,
        title=title,
        positive=(target,),
    )


@dataclass(frozen=True)
class PublishedColumn(FeatureSchema):
    """One feature of a published table, and where OpenML keeps it."""

    source: str = ""  # OpenML's name, when it is another
    words: Mapping[str, str] = field(default_factory=dict)  # OpenML's values in our words

    def read(self, text: pd.Series[str]) -> pd.Series[Any]:
        """The column with its proper dtype, from text."""
        values = text.map(float) if self.kind.is_number else text
        feature = self.feature(values)
        return feature.decode(feature.encode(values), None)


@dataclass(frozen=True)
class PublishedTable:
    """A published table: its columns and its classes."""

    name: str
    title: str
    openml: int
    columns: tuple[PublishedColumn, ...]
    classes: tuple[str, ...]
    positive: tuple[str, ...]
    target: str
    label: Mapping[str, str]  # OpenML's classes in our words

    def dataset(self, table: pd.DataFrame) -> Dataset:
        """The data set in a table of text, whose last column is the outcome.

        Raises:
            ValueError: a column is missing or unknown, or a value is not in the schema.
        """
        expected = [*(column.name for column in self.columns), OUTCOME]
        if list(table.columns) != expected:
            raise ValueError(f"{self.name}: expected the columns {expected}, got {list(table.columns)}.")
        Nominal(OUTCOME, self.classes).encode(table[OUTCOME])  # refuses other words
        rows = pd.DataFrame({column.name: column.read(table[column.name]) for column in self.columns})
        features = tuple(column.feature(rows[column.name]) for column in self.columns)
        return Dataset(
            name=self.name,
            rows=rows,
            outcomes=table[OUTCOME].astype("str"),
            space=Space(features).like(rows),
            target=self.target,
            title=self.title,
            positive=self.positive,
        )


@cache
def schemas() -> Mapping[str, PublishedTable]:
    """The eight schemas by name."""
    text = resources.files("acex.datasets").joinpath("schemas.toml").read_text(encoding="utf-8")
    return {name: _schema(name, entry) for name, entry in tomllib.loads(text).items()}


def _column(entry: dict[str, Any]) -> PublishedColumn:
    own = {key: entry.pop(key) for key in ("source", "words") if key in entry}
    return PublishedColumn(**vars(described(entry)), **own)


def _schema(name: str, entry: dict[str, Any]) -> PublishedTable:
    return PublishedTable(
        name=name,
        title=entry["title"],
        openml=entry["openml"],
        columns=tuple(_column(feature) for feature in entry["features"]),
        classes=tuple(entry["classes"]),
        positive=tuple(entry["positive"]),
        target=entry["target"],
        label=entry.get("label", {}),
    )
