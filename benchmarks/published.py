"""The paper's data sets: generated, read from the folder that ACEX_DATA names, or downloaded from OpenML.

`published.toml` describes the tables.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from acex.arrays import IntArray
from acex.datasets import OUTCOME, Dataset, loan
from acex.space.kinds import Nominal
from acex.space.schema import FeatureSchema, described
from acex.space.space import Space
from benchmarks.generated import images, moons, tic_tac_toe

PAPER = ("diabetes", "breast", "kc2", "blood", "cmc", "nursery", "german_credit", "tic_tac_toe")
Split: TypeAlias = Literal["train", "test"]

FOLDER = "ACEX_DATA"
MNIST_OPENML = 554
MNIST_DIGITS = ("8", "9")
MNIST_TRAIN_ROWS = 60_000  # OpenML lists the official train images first


def load(name: str) -> Dataset:
    """A table in `PAPER`, "loan", "mnist" or "moons".

    Raises:
        FileNotFoundError: the file is not in the folder that ACEX_DATA names, or there is neither such a folder nor a
            network.
    """
    made: dict[str, Callable[[], Dataset]] = {"loan": loan, "mnist": mnist, "moons": moons, "tic_tac_toe": tic_tac_toe}
    if name in made:
        return made[name]()
    schema = schemas()[name]
    path = _file(f"{schema.name}.csv")
    if path is None:
        return schema.dataset(_table_from_openml(schema))
    return schema.dataset(pd.read_csv(path, dtype="str", keep_default_na=False))


def binary(data: Dataset) -> IntArray:
    """1 for positive outcomes and 0 for others, (n,)."""
    schema = schemas().get(data.name)
    positive = [data.target] if schema is None else schema.positive
    return data.outcomes.isin(positive).to_numpy().astype(np.intp)


def mnist(split: Split = "train") -> Dataset:
    """All official train (or test) images of the handwritten digits 8 and 9, 28 x 28 pixels of 0 to 255.

    Raises:
        FileNotFoundError: `mnist.npz` is not in the folder that ACEX_DATA names, or there is neither such a folder nor
            a network.
    """
    if split not in get_args(Split):
        raise ValueError(f"split: {split!r} is not one of {get_args(Split)}.")
    path = _file("mnist.npz")
    if path is None:
        pixels, outcomes = _mnist_from_openml(split)
    else:
        with np.load(path) as arrays:
            pixels = arrays[f"X_{split}"]
            outcomes = np.array(MNIST_DIGITS)[arrays[f"y_{split}"]]
    return images("mnist", pixels, outcomes, brightest=255, target=MNIST_DIGITS[1], title="MNIST, 8 against 9")


@dataclass(frozen=True)
class PublishedColumn(FeatureSchema):
    """One feature of a published table, and where OpenML keeps it."""

    source: str = ""  # OpenML's name, if different
    words: Mapping[str, str] = field(default_factory=dict)  # maps OpenML's values to ours

    def read(self, text: pd.Series[str]) -> pd.Series[Any]:
        """Convert the column from text to its dtype."""
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
    label: Mapping[str, str]  # maps OpenML's classes to ours

    def dataset(self, table: pd.DataFrame) -> Dataset:
        """The data set from a table of text, whose last column is the outcome.

        Raises:
            ValueError: a column is missing or unknown, or a value is not in the schema.
        """
        expected = [*(column.name for column in self.columns), OUTCOME]
        if list(table.columns) != expected:
            raise ValueError(f"{self.name}: expected the columns {expected}, got {list(table.columns)}.")
        Nominal(OUTCOME, self.classes).encode(table[OUTCOME])  # raises for other outcomes
        rows = pd.DataFrame({column.name: column.read(table[column.name]) for column in self.columns})
        features = tuple(column.feature(rows[column.name]) for column in self.columns)
        return Dataset(
            name=self.name,
            rows=rows,
            outcomes=table[OUTCOME].astype("str"),
            space=Space(features).like(rows),
            target=self.target,
            title=self.title,
        )


@cache
def schemas() -> Mapping[str, PublishedTable]:
    """The schemas by name."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
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


def _file(name: str) -> Path | None:
    """The file in the folder that ACEX_DATA names, None when it names no folder."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. {FOLDER} must name the folder that holds {name}.")
    return path


def _fetch(data_id: int, name: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Features and outcomes of an OpenML data set; scikit-learn keeps a copy."""
    from sklearn.datasets import fetch_openml

    try:
        # Without a dtype, columns get the type of their values. With the one scikit-learn asks for, its
        # release 1.9 trips over numeric classes in pandas 3.1 (scikit-learn/scikit-learn#34892).
        bunch = fetch_openml(data_id=data_id, as_frame=True, parser="auto", read_csv_kwargs={"dtype": None})
    except OSError as error:  # raised by urllib without a network
        raise FileNotFoundError(
            f"{name}: could not be downloaded from OpenML ({error}). "
            f"Set {FOLDER} to the folder that holds its file, or go online."
        ) from error
    return bunch.data, bunch.target


def _table_from_openml(schema: PublishedTable) -> pd.DataFrame:
    """The table of text as in the csv file: with our columns and values, without rows with missing values."""
    data, outcomes = _fetch(schema.openml, schema.name)
    sources = [column.source or column.name for column in schema.columns]
    missing = [source for source in sources if source not in data.columns]
    if missing:
        raise ValueError(f"{schema.name}: OpenML {schema.openml} has {list(data.columns)}, but not {missing}.")
    complete = data[sources].notna().all(axis=1) & outcomes.notna()
    table = {
        column.name: _in_words(data.loc[complete, source], column.words)
        for column, source in zip(schema.columns, sources, strict=True)
    }
    table[OUTCOME] = _in_words(outcomes[complete], schema.label)
    return pd.DataFrame(table).reset_index(drop=True)


def _in_words(values: pd.Series[Any], words: Mapping[str, str]) -> pd.Series[str]:
    """The values as text, with OpenML's values replaced by ours."""
    # A category may come as 1 or "1", and in the single quotes of OpenML's file.
    text = [str(value).strip("' ") for value in values.tolist()]
    return pd.Series([words.get(word, word) for word in text], index=values.index, dtype="str")


def _mnist_from_openml(split: Split) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    data, digits = _fetch(MNIST_OPENML, "mnist")
    part = slice(None, MNIST_TRAIN_ROWS) if split == "train" else slice(MNIST_TRAIN_ROWS, None)
    outcomes = _in_words(digits.iloc[part], {}).to_numpy()
    wanted = np.isin(outcomes, MNIST_DIGITS)
    return data.iloc[part].to_numpy()[wanted].astype(np.uint8), outcomes[wanted]
