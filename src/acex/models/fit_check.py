"""Do the columns of the data fit the model? Told before a query is spent."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.models.adapters import adapted
from acex.models.labels import known_labels
from acex.values import Label, listed

ENOUGH = 20  # rows: in fewer, a column with two values may equal the outcome by chance
SEPARATORS = ("_", "=", "-", ".", ":", " ", "__")  # between a column and a value in the name of a one-hot column


def refuse_misfit(model: Any, data: Rows, labels: Any = None) -> None:
    """Raise when the model was fitted with other columns than data has, or one of data's is the outcome.

    Args:
        model: any model; one that does not say what it was fitted with is believed.
        data: known rows, a DataFrame or a 2-D array.
        labels: known outcomes of data, where there are some.

    Raises:
        ValueError: which columns are too many, missing, in another order or not one-hot, and what to do.
    """
    has_names = isinstance(data, pd.DataFrame)
    if not has_names and np.ndim(data) != 2:
        return  # whoever reads the rows says what is wrong with them
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
            f"The column {which} of data equals labels: it is the outcome, which a model does not see. Leave it out "
            f"(in a shell --drop)."
        )
    if count is not None and count != table.shape[1]:
        raise ValueError(
            f"The model was fitted with {count} columns, and data has {table.shape[1]}"
            f"{f': {listed(table.columns)}' if has_names else ''}. Give it the same, in the same order; where it wants "
            f"them encoded, pass a function: lambda rows: model.predict(encode(rows))."
        )


def _refuse_other_columns(model: Any, names: list[str], data: pd.DataFrame, labels: Any) -> None:
    """Raise when the model would fail, or worse, on these columns."""
    own = {_spelled(name): name for name in data.columns}
    wanted = [_spelled(name) for name in names]
    missing = [name for name in _needed(model, names) if _spelled(name) not in own]
    extra = [name for spelled, name in own.items() if spelled not in wanted]
    if one_hot := [name for column in extra for name in _one_hot(data[column], column) if name in missing]:
        raise ValueError(
            f"The model was fitted with one-hot columns, such as {listed(one_hot[:3])}, and data has the column as it "
            f"is read. Keep data like that and encode on the way: lambda rows: model.predict(pd.get_dummies(rows)"
            f".reindex(columns=model.feature_names_in_, fill_value=0))."
        )
    outcomes = _outcomes(data[extra], labels) or _words_of_the_model(data[extra], model)
    picks = _picks_by_name(model)
    if missing or (extra and (outcomes or not picks)):
        lacks = f" lacks {listed(missing)}" if missing else ""
        has = f" also has {listed(extra)}" if extra and not (picks and not outcomes) else ""
        outcome = f" ({listed(outcomes)} is the outcome, which the model does not see)" if outcomes else ""
        what = " and".join(filter(None, (lacks, has)))
        drop = listed(outcomes if picks else extra)
        fix = "" if missing else f" Leave out what it does not know: data.drop(columns=[{drop}]), in a shell --drop."
        raise ValueError(f"The model was fitted with the columns {listed(names)}; data{what}{outcome}.{fix}")
    if not picks and list(own) != wanted:
        raise ValueError(
            f"The model was fitted with the same columns in another order: pass data in that order, "
            f"data[[{listed(own[name] for name in wanted)}]]."
        )


def _receiver(model: Any) -> Any:
    """The model that gets the rows as they are: what a file holds, the owner of a method."""
    if inspect.ismethod(model):
        model = model.__self__
    model = adapted(model)
    owner = getattr(getattr(model, "predict", None), "__self__", model)
    return model if owner is model else _receiver(owner)


def _fitted_names(model: Any) -> list[str] | None:
    """The names of the columns that the model was fitted with; None where it had or tells none."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = getattr(model, "feature_names_", None)  # CatBoost
    if names is None:
        return None
    names = [str(name) for name in names]
    places = range(len(names))
    nameless = ([str(j) for j in places], [f"Column_{j}" for j in places])  # as CatBoost and LightGBM count columns
    return None if names in nameless else names


def _spelled(name: Any) -> str:
    """The name as LightGBM spells it; others do not mind."""
    return str(name).replace(" ", "_")


def _fitted_count(model: Any) -> int | None:
    count = getattr(model, "n_features_in_", None)
    if count is None:
        names = getattr(model, "feature_names_", None)
        count = None if names is None else len(names)
    return None if count is None else int(count)


# -- who picks columns by name -------------------------------------------------------------------------------


def _picks_by_name(model: Any) -> bool:
    """Does the model find its columns by name, so that others and another order do no harm?

    Estimators that work on the table itself do not. Of what hands the table on to others nobody can be sure.
    """
    first = _first(model)
    if type(first).__module__.partition(".")[0] not in ("sklearn", "xgboost", "lightgbm", "catboost", "acex"):
        return True
    if type(first).__name__ == "OnnxModel":
        return True
    inner = first.get_params(deep=False).values() if hasattr(first, "get_params") else ()
    return type(first).__name__ == "FunctionTransformer" or any(_is_estimator(value) for value in inner)


def _first(model: Any) -> Any:
    """The first of a pipeline, or of the best one that a search has found."""
    inner = getattr(model, "best_estimator_", None)
    if inner is None and isinstance(getattr(model, "steps", None), list):
        inner = model.steps[0][1]
    return model if inner is None else _first(inner)


def _is_estimator(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_estimator(item) for item in value)
    return hasattr(value, "fit")


def _needed(model: Any, names: list[str]) -> list[str]:
    """Those of the names without which the model fails for certain."""
    first = _first(model)
    if type(first).__name__ == "ColumnTransformer":
        used = {c for _, step, some in first.transformers_ if step != "drop" and isinstance(some, list) for c in some}
        return [name for name in names if name in used]
    return names if type(first).__name__ == "OnnxModel" or not _picks_by_name(model) else []


# -- outcomes and encodings ----------------------------------------------------------------------------------


def _outcomes(data: pd.DataFrame, labels: Any) -> list[Any]:
    """The columns that equal the labels, value by value."""
    values = [] if labels is None else list(labels)
    if len(values) < ENOUGH or len(values) != len(data) or len(set(values)) < 2:
        return []
    return [name for j, name in enumerate(data.columns) if data.iloc[:, j].tolist() == values]


def _words_of_the_model(data: pd.DataFrame, model: Any) -> list[Any]:
    """The columns that hold nothing but the model's labels, where these are words."""
    words: list[Label] = known_labels(model) or []
    if not words or not all(isinstance(word, str) for word in words):
        return []
    return [name for j, name in enumerate(data.columns) if set(data.iloc[:, j].tolist()) <= set(words)]


def _one_hot(column: pd.Series[Any], name: Any) -> Iterator[str]:
    """What the one-hot columns of a column may be called."""
    if column.dtype.kind in "fc":
        return
    for value in column.unique()[:100]:
        yield from (f"{name}{separator}{value}" for separator in SEPARATORS)
