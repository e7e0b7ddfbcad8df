"""Models as people have them: what asks a booster, a network or a bound method in the way that it wants.

Packages are known by the name of a model's class; none is imported unless such a model is there.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from acex.arrays import FloatArray, Rows
from acex.models.scores import Scored, likeliest
from acex.values import Label, listed


@dataclass(frozen=True, eq=False)
class Probable:
    """A model that is asked for probabilities, (n, labels): the decision is the likeliest label."""

    classes_: list[Label]
    predict_proba: Callable[[Rows], Any] = field(repr=False)
    feature_names_in_: list[str] | None = field(default=None, repr=False)  # the columns it was fitted with

    def predict(self, rows: Rows) -> Any:
        """One label a row, (n,)."""
        return likeliest(self.classes_, self.predict_proba(rows)).labels


@dataclass(frozen=True, eq=False)
class Outputs:
    """A network: as many numbers a row as there are labels, whose places are the labels; or one, after a sigmoid."""

    outputs: Callable[[Rows], Any] = field(repr=False)  # (n, k)
    ends_in_sigmoid: bool

    def predict(self, rows: Rows) -> Any:
        """One label a row, (n,): 0, 1, ..."""
        return self.predict_scored(rows).labels

    def predict_numbers(self, rows: Rows) -> Any:
        """What it gives, one number a row, (n, 1)."""
        return self._table(rows)

    def _table(self, rows: Rows) -> FloatArray:
        table = np.asarray(self.outputs(rows), dtype=float)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or len(table) != len(rows):
            raise ValueError(f"the network's output has the shape {table.shape}, not some numbers a row")
        return table

    def predict_scored(self, rows: Rows) -> Scored:
        """The same with probabilities."""
        table = self._table(rows)
        k = table.shape[1]
        if self.ends_in_sigmoid != (k == 1):
            raise ValueError(
                f"the network gives {k} numbers a row and {'ends' if k > 1 else 'does not end'} in a sigmoid: it "
                f"cannot be told what it decides. Say so in a function, such as lambda rows: network(rows) > 0"
            )
        if k == 1:
            return likeliest([0, 1], np.hstack([1 - table, table]))
        from scipy.special import softmax

        is_share = bool((table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-4))
        return likeliest(list(range(k)), table if is_share else softmax(table, axis=1))


@dataclass(frozen=True, eq=False)
class Numeric:
    """A model that gives a number a row, such as a booster that was trained for another purpose than labels."""

    predict: Callable[[Rows], Any] = field(repr=False)
    no_labels: str = field(repr=False)  # why it gives none
    feature_names_in_: list[str] | None = field(default=None, repr=False)  # the columns it was fitted with


def adapted(model: Any) -> Any:
    """What can be asked in the model's stead: the model itself, if it is an estimator, a function or unknown.

    Raises:
        TypeError: it is known, and does not give labels.
    """
    if inspect.ismethod(model) and model.__name__ == "predict":
        model = model.__self__
    if inspect.ismethod(model) and model.__name__ == "predict_proba":
        return _of_method(model)
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(model).__mro__}
    if "xgboost.Booster" in kinds:
        return _of_xgboost(model)
    if "lightgbm.Booster" in kinds:
        return _of_lightgbm(model)
    if "catboost.CatBoost" in kinds:
        return _of_catboost(model)
    if "keras.Model" in kinds:  # before torch, which may be what it runs on
        return _of_keras(model)
    if "torch.Module" in kinds and not callable(getattr(model, "predict", None)):
        return Outputs(partial(_ask_torch, model), _last_of_torch(model) == "Sigmoid")
    return model


def _of_method(method: Any) -> Probable:
    owner = method.__self__
    classes = getattr(owner, "classes_", None)
    if classes is None or np.ndim(classes) != 1:
        raise TypeError(
            f"{type(owner).__name__}.predict_proba gives probabilities, and without classes_ nobody knows of which "
            f"labels: pass a function that gives a DataFrame of them, a column for each label."
        )
    names = getattr(owner, "feature_names_in_", None)
    return Probable(np.asarray(classes).tolist(), method, None if names is None else list(names))


def _no_labels(package: str, objective: Any) -> str:
    return (
        f"This {package} model was trained for {objective!r}: its answers are not labels. Say what is wanted of its "
        f"numbers, such as target=acex.AtLeast(0.5), or what counts as a decision in a function, such as "
        f"lambda rows: model.predict(rows) > 0.5."
    )


# -- boosters --------------------------------------------------------------------------------------------


def _of_xgboost(booster: Any) -> Probable | Numeric:
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    # The estimator of XGBoost stops at its best round, a booster by itself does not.
    best = booster.attr("best_iteration") if booster.attr("scikit_learn") is not None else None
    rounds = (0, 0 if best is None else int(best) + 1)
    if objective not in ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax"):
        ask_number = partial(_ask_xgboost_number, booster, rounds)
        return Numeric(ask_number, _no_labels("XGBoost", objective), booster.feature_names)
    n_classes = max(int(learner["learner_model_param"].get("num_class", 0)), 2)
    ask = partial(_ask_xgboost, booster, objective, rounds)
    return Probable(list(range(n_classes)), ask, booster.feature_names)


def _ask_xgboost(booster: Any, objective: str, rounds: tuple[int, int], rows: Rows) -> FloatArray:
    import xgboost
    from scipy.special import expit, softmax

    table = xgboost.DMatrix(rows, enable_categorical=True)
    answer = booster.predict(table, iteration_range=rounds, output_margin=objective == "multi:softmax")
    match objective:
        case "multi:softprob":
            return np.asarray(answer)
        case "multi:softmax":
            return np.asarray(softmax(answer, axis=1))
        case "binary:logitraw":
            answer = expit(answer)
    return np.column_stack([1 - answer, answer])


def _ask_xgboost_number(booster: Any, rounds: tuple[int, int], rows: Rows) -> Any:
    import xgboost

    return booster.predict(xgboost.DMatrix(rows, enable_categorical=True), iteration_range=rounds)


def _of_lightgbm(booster: Any) -> Probable | Numeric:
    about = booster.dump_model(num_iteration=1)
    objective = about.get("objective", "a function of its own").partition(" ")[0]
    names = booster.feature_name()
    given = None if names == [f"Column_{j}" for j in range(len(names))] else names  # what it calls nameless columns
    if objective not in ("binary", "multiclass", "multiclassova"):
        return Numeric(partial(_ask_lightgbm_number, booster), _no_labels("LightGBM", objective), given)
    return Probable(list(range(max(about["num_class"], 2))), partial(_ask_lightgbm, booster), given)


def _ask_lightgbm_number(booster: Any, rows: Rows) -> FloatArray:
    # Without being told to, it takes columns in another order for those that it knows.
    return np.asarray(booster.predict(rows, validate_features=hasattr(rows, "columns")))


def _ask_lightgbm(booster: Any, rows: Rows) -> FloatArray:
    answer = _ask_lightgbm_number(booster, rows)
    return np.column_stack([1 - answer, answer]) if answer.ndim == 1 else answer


def _of_catboost(model: Any) -> Any:
    classes = np.asarray(model.classes_).tolist()
    if not classes:
        if not model.is_fitted():
            raise TypeError(_no_labels("CatBoost", "nothing yet"))
        why = _no_labels("CatBoost", model.get_all_params().get("loss_function"))
        return Numeric(model.predict, why, list(model.feature_names_))
    if hasattr(model, "predict_proba"):
        return model
    import catboost

    return catboost.to_classifier(model)


# -- networks --------------------------------------------------------------------------------------------


def _numbers(rows: Rows) -> Any:
    """The rows as a matrix of 32-bit floats, (n, d)."""
    try:
        return np.asarray(rows, dtype=np.float32)
    except (ValueError, TypeError):
        texts = [name for name, column in rows.items() if column.dtype.kind not in "biuf"]
        raise ValueError(
            f"a network takes numbers, and {listed(texts)} holds something else: encode the rows in a function, such "
            f"as lambda rows: network(encode(rows))"
        ) from None


def _last_of_torch(module: Any) -> str:
    last = [*module.modules()][-1]
    return str(getattr(last, "original_name", type(last).__name__))


def _ask_torch(module: Any, rows: Rows) -> Any:
    import torch

    weight = next(iter(module.parameters()), torch.zeros(0))
    table = torch.as_tensor(_numbers(rows), dtype=weight.dtype, device=weight.device)
    was_training = module.training
    module.eval()  # dropout would answer by chance
    try:
        with torch.no_grad():
            return module(table).float().cpu().numpy()
    finally:
        module.train(was_training)


def _of_keras(model: Any) -> Outputs:
    if len(model.inputs or [None]) > 1:
        raise TypeError(
            f"This Keras model has {len(model.inputs)} inputs: say in a function which columns go where, such as "
            f"lambda rows: model.predict([rows[numbers], rows[texts]]).argmax(axis=1)."
        )
    last = model.layers[-1]
    activation = getattr(last, "activation", None)
    return Outputs(
        partial(_ask_keras, model), getattr(activation, "__name__", type(last).__name__).lower() == "sigmoid"
    )


def _ask_keras(model: Any, rows: Rows) -> Any:
    import keras

    return keras.ops.convert_to_numpy(model(_numbers(rows), training=False))
