"""Check before the first query that the columns of the data fit the model."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.models.adapters import adapted, known_labels
from acex.values import Label, listed

ENOUGH_ROWS = 20  # in fewer rows, a column with two values may equal the outcome by chance
SEPARATORS = ("_", "=", "-", ".", ":", " ", "__")  # between a column and a value in the name of a one-hot column


def refuse_misfit(model: Any, data: Rows, labels: Any = None) -> None:
    """Raise when the model was fitted with other columns than data has, or when a column of data is the outcome.

    Args:
        model: any model; not checked if its columns are not known.
        data: known rows, a DataFrame or a 2-D array.
        labels: known outcomes of data, or None.

    Raises:
        ValueError: names the columns that are extra, missing, in another order or not one-hot, and what to do.
    """
    has_names = isinstance(data, pd.DataFrame)
    if not has_names and np.ndim(data) != 2:
        return  # reported where the rows are read
    model = _receiver(model)
    names = _fitted_names(model)
    table = data if has_names else pd.DataFrame(np.asarray(data))
    if names is not None and has_names:
        _refuse_other_columns(model, names, table, labels)
        return
    count = _fitted_count(model) if names is None else len(names)
    outcomes = _outcomes(table, labels) if count is None or count < table.shape[1] else []
    which = listed(outcomes) if has_names else f"number {listed(outcomes)} (from 0)"
    if outcomes:
        raise ValueError(
            f"The column {which} of data equals the outcomes, which a model does not see. Drop it (in a shell --drop)."
        )
    if count is not None and count != table.shape[1]:
        raise ValueError(
            f"The model was fitted with {count} columns, and data has {table.shape[1]}"
            f"{f': {listed(table.columns)}' if has_names else ''}. Pass the same columns in the same order; if "
            f"the model needs them encoded, pass a function: lambda rows: model.predict(encode(rows))."
        )


def _refuse_other_columns(model: Any, names: list[str], data: pd.DataFrame, labels: Any) -> None:
    """Raise when the model would fail on these columns or mix them up."""
    own = {_spelled(name): name for name in data.columns}
    wanted = [_spelled(name) for name in names]
    missing = [name for name in _needed(model, names) if _spelled(name) not in own]
    extra = [name for spelled, name in own.items() if spelled not in wanted]
    if one_hot := [name for column in extra for name in _one_hot(data[column], column) if name in missing]:
        raise ValueError(
            f"The model was fitted with one-hot columns, such as {listed(one_hot[:3])}, and data has the original "
            f"column. Keep data as it is and pass a function that encodes: lambda rows: "
            f"model.predict(pd.get_dummies(rows).reindex(columns=model.feature_names_in_, fill_value=0))."
        )
    outcomes = _outcomes(data[extra], labels) or _columns_of_labels(data[extra], model)
    picks = _picks_by_name(model)
    if missing or (extra and (outcomes or not picks)):
        lacks = f" lacks {listed(missing)}" if missing else ""
        has = f" also has {listed(extra)}" if extra and not (picks and not outcomes) else ""
        outcome = f" ({listed(outcomes)} is the outcome, which a model does not see)" if outcomes else ""
        what = " and".join(filter(None, (lacks, has)))
        drop = listed(outcomes if picks else extra)
        fix = "" if missing else f" Drop the extra columns: data.drop(columns=[{drop}]), in a shell --drop."
        raise ValueError(f"The model was fitted with the columns {listed(names)}; data{what}{outcome}.{fix}")
    if not picks and list(own) != wanted:
        raise ValueError(
            f"The model was fitted with the same columns in another order: pass data in that order, "
            f"data[[{listed(own[name] for name in wanted)}]]."
        )


def _receiver(model: Any) -> Any:
    """The model that receives the rows: the one inside a file model, the owner of a method."""
    if inspect.ismethod(model):
        model = model.__self__
    model = adapted(model)
    owner = getattr(getattr(model, "predict", None), "__self__", model)
    return model if owner is model else _receiver(owner)


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


def _fitted_count(model: Any) -> int | None:
    count = getattr(model, "n_features_in_", None)
    if count is None:
        names = getattr(model, "feature_names_", None)
        count = None if names is None else len(names)
    return None if count is None else int(count)


# -- models that select columns by name -------------------------------------------------------------------------------


def _picks_by_name(model: Any) -> bool:
    """Does the model select its columns by name, so that extra columns and another order do no harm?

    Estimators that use the table itself do not. One that passes the table to inner estimators might.
    """
    first = _first(model)
    if type(first).__module__.partition(".")[0] not in ("sklearn", "xgboost", "lightgbm", "catboost", "acex"):
        return True
    if type(first).__name__ == "OnnxModel":
        return True
    inner = first.get_params(deep=False).values() if hasattr(first, "get_params") else ()
    return type(first).__name__ == "FunctionTransformer" or any(_is_estimator(value) for value in inner)


def _first(model: Any) -> Any:
    """The first step of a pipeline or of the best pipeline of a search; otherwise the model itself."""
    inner = getattr(model, "best_estimator_", None)
    if inner is None and isinstance(getattr(model, "steps", None), list):
        inner = model.steps[0][1]
    return model if inner is None else _first(inner)


def _is_estimator(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_estimator(item) for item in value)
    return hasattr(value, "fit")


def _needed(model: Any, names: list[str]) -> list[str]:
    """The names without which the model certainly fails."""
    first = _first(model)
    if type(first).__name__ == "ColumnTransformer":
        used = {c for _, step, some in first.transformers_ if step != "drop" and isinstance(some, list) for c in some}
        return [name for name in names if name in used]
    return names if type(first).__name__ == "OnnxModel" or not _picks_by_name(model) else []


# -- outcomes and encodings ----------------------------------------------------------------------------------


def _outcomes(data: pd.DataFrame, labels: Any) -> list[Any]:
    """The columns whose values equal the outcomes."""
    values = [] if labels is None else list(labels)
    if len(values) < ENOUGH_ROWS or len(values) != len(data) or len(set(values)) < 2:
        return []
    return [name for j, name in enumerate(data.columns) if data.iloc[:, j].tolist() == values]


def _columns_of_labels(data: pd.DataFrame, model: Any) -> list[Any]:
    """The columns that contain only labels of the model, where these are text."""
    known: list[Label] = known_labels(model) or []
    if not known or not all(isinstance(label, str) for label in known):
        return []
    return [name for j, name in enumerate(data.columns) if set(data.iloc[:, j].tolist()) <= set(known)]


def _one_hot(column: pd.Series[Any], name: Any) -> Iterator[str]:
    """Possible names of the one-hot columns of a column."""
    if column.dtype.kind in "fc":
        return
    for value in column.unique()[:100]:
        yield from (f"{name}{separator}{value}" for separator in SEPARATORS)
