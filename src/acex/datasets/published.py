"""Published data: read from the folder that ACEX_DATA names, or downloaded from OpenML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from acex.datasets.dataset import OUTCOME, Dataset, PublishedTable, images, schemas

PAPER = ("diabetes", "breast", "kc2", "blood", "cmc", "nursery", "german_credit", "tic_tac_toe")
Split: TypeAlias = Literal["train", "test"]

FOLDER = "ACEX_DATA"
MNIST_OPENML = 554
MNIST_DIGITS = ("8", "9")
MNIST_TRAIN_ROWS = 60_000  # OpenML lists the official train images first


def paper(name: str) -> Dataset:
    """One of the eight tables in `PAPER`.

    Raises:
        FileNotFoundError: `<name>.csv` is not in the folder ACEX_DATA names, or there is neither such a
            folder nor a network.
    """
    schema = schemas().get(name.replace("-", "_"))
    if schema is None:
        raise ValueError(f"{name!r} is not one of {PAPER}.")
    path = _file(f"{schema.name}.csv")
    if path is None:
        return schema.dataset(_table_from_openml(schema))
    return schema.dataset(pd.read_csv(path, dtype="str", keep_default_na=False))


def mnist(split: Split = "train") -> Dataset:
    """All official train (or test) images of the handwritten digits 8 and 9, 28 x 28 pixels of 0 to 255.

    Raises:
        FileNotFoundError: `mnist.npz` is not in the folder ACEX_DATA names, or there is neither such a
            folder nor a network.
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
    except OSError as error:  # what urllib raises when there is no way to the server
        raise FileNotFoundError(
            f"{name}: could not be downloaded from OpenML ({error}). "
            f"Set {FOLDER} to the folder that holds its file, or go online."
        ) from error
    return bunch.data, bunch.target


def _table_from_openml(schema: PublishedTable) -> pd.DataFrame:
    """The same table of text as in the csv file: our columns, our words, no row with a missing value."""
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
    """The values as text, OpenML's words replaced by ours."""
    # A category may come as 1 or "1", and in the single quotes of OpenML's file.
    text = [str(value).strip("' ") for value in values.tolist()]
    return pd.Series([words.get(word, word) for word in text], index=values.index, dtype="str")


def _mnist_from_openml(split: Split) -> tuple[npt.NDArray[np.uint8], npt.NDArray[Any]]:
    data, digits = _fetch(MNIST_OPENML, "mnist")
    part = slice(None, MNIST_TRAIN_ROWS) if split == "train" else slice(MNIST_TRAIN_ROWS, None)
    outcomes = _in_words(digits.iloc[part], {}).to_numpy()
    wanted = np.isin(outcomes, MNIST_DIGITS)
    return data.iloc[part].to_numpy()[wanted].astype(np.uint8), outcomes[wanted]
