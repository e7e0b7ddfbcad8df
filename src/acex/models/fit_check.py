"""Check before the first query that the columns of the data are those that the model was fitted with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.models.adapters import adapted
from acex.values import listed

ENOUGH_ROWS = 20  # in fewer rows, a column with two values may equal the outcome by chance


def refuse_misfit(model: Any, data: Rows, outcomes: Any = None) -> None:
    """Raise when the model was fitted with other columns than data has, or when a column of data is the outcome.

    Args:
        model: any model; only the outcome is looked for if its columns are not known.
        data: known rows, a DataFrame or a 2-D array.
        outcomes: known outcomes of data, or None.

    Raises:
        ValueError: names the columns that are extra, missing or in another order, and what to do.
    """
    if np.ndim(data) != 2:
        return  # reported where the rows are read
    model = adapted(model)
    names = _fitted_names(model)
    count = getattr(model, "n_features_in_", None) if names is None else len(names)
    if names is not None and isinstance(data, pd.DataFrame):
        _refuse_other_columns(names, data)
        return
    table = pd.DataFrame(data)
    equal = _equal_columns(table, outcomes) if count is None or count < table.shape[1] else []
    if equal:
        raise ValueError(
            f"The column {listed(equal)} of data equals the outcomes, which a model does not see. Drop it (in a shell "
            f"--drop)."
        )
    if count is not None and count != table.shape[1]:
        raise ValueError(
            f"The model was fitted with {count} columns, and data has {table.shape[1]}: {listed(table.columns)}. Pass "
            f"the same columns in the same order, or a function that selects or encodes them."
        )


def _refuse_other_columns(names: list[str], data: pd.DataFrame) -> None:
    own = {_spelled(name): name for name in data.columns}
    wanted = {_spelled(name): name for name in names}
    if list(own) == list(wanted):
        return
    missing = [name for spelled, name in wanted.items() if spelled not in own]
    extra = [name for spelled, name in own.items() if spelled not in wanted]
    lacks = f" lacks {listed(missing)}" if missing else ""
    has = f" also has {listed(extra)}" if extra else ""
    what = " and".join(filter(None, (lacks, has))) or " has them in another order"
    how = (
        "data.drop(columns=...), in a shell --drop"
        if extra
        else "a column that names rows, --id-column, is not one of them"
    )
    raise ValueError(
        f"The model was fitted with the columns {listed(names)}; data{what}. Pass the same columns in the same order "
        f"({how}), or a function that selects or encodes them, such as lambda rows: model.predict(encode(rows))."
    )


def _fitted_names(model: Any) -> list[str] | None:
    """The names of the columns that the model was fitted with; None if they are not known."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(model, "feature_names_", None)  # CatBoost
    if names is None:
        return None
    names = [str(name) for name in names]
    places = range(len(names))
    nameless = ([str(j) for j in places], [f"Column_{j}" for j in places])  # made up by CatBoost and LightGBM
    return None if names in nameless else names


def _spelled(name: Any) -> str:
    """The name as LightGBM writes it, for comparisons."""
    return str(name).replace(" ", "_")


def _equal_columns(data: pd.DataFrame, outcomes: Any) -> list[Any]:
    """The columns whose values equal the outcomes."""
    values = [] if outcomes is None else list(outcomes)
    if len(values) < ENOUGH_ROWS or len(values) != len(data) or len(set(values)) < 2:
        return []
    return [name for j, name in enumerate(data.columns) if data.iloc[:, j].tolist() == values]
