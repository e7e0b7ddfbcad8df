"""Model objects: how estimators, functions, boosters and networks are queried.

A package is recognised by the name of the model's class, so that none is imported unless such a model is used.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, Rows, aligned_answer
from acex.errors import ModelFailed
from acex.models.labels import Predict, Scored, likeliest
from acex.values import Label, listed, plain

# -- what a model answers --------------------------------------------------------------------------------


def as_predict(model: Any, scores: bool = False) -> Predict:
    """The function from rows to labels: the model's `predict`, or the model itself if it is a function.

    With scores, it returns `Scored`: the probabilities from `predict_proba` or from a function that returns a
    DataFrame, and the likeliest label of each row. Each row is still sent only once.

    Raises:
        TypeError: this is not a fitted model, or it does not return labels (or probabilities, with scores).
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    if inspect.isclass(model):
        raise TypeError(f"model is the class {model.__name__}; pass a fitted {model.__name__}() instead.")
    model = adapted(model)
    predict = getattr(model, "predict", None)
    if callable(predict):
        if (why := no_labels(model)) is not None:
            raise TypeError(why)
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)  # fail now rather than on the first query
        return _estimator_scores(model) if scores else cast("Predict", predict)
    if callable(model):
        return partial(_likeliest_of_function, model) if scores else cast("Predict", model)
    raise TypeError(f"model must have a predict method or be callable, got {type(model).__name__}.")


def no_labels(model: Any) -> str | None:
    """Why the model returns numbers instead of labels; None if it returns labels, as far as is known."""
    model = adapted(model)
    why: str | None = getattr(model, "no_labels", None)
    if why is None and _is_regressor(model):
        why = (
            f"{type(model).__name__} is a regressor: it returns numbers, not labels. Use a target for numbers, such as "
            f"target=acex.AtLeast(0.5), in a shell --target-range 0.5.."
        )
    return why


def as_numeric(model: Any) -> Predict:
    """The function from rows to numbers: a regressor's `predict`, or the model itself if it is a function.

    Raises:
        TypeError: this is not a fitted model, or it returns probabilities of labels.
    """
    if no_labels(model) is None:
        as_predict(model)  # raises if this is not a fitted model
    model = adapted(model)
    if isinstance(model, ProbabilityModel) and model.classes_ is not None:
        raise TypeError(
            f"the model returns the probabilities of {listed(model.classes_)}: name the label in the target, such as "
            f"acex.AtLeast(0.8, label={model.classes_[-1]!r}), with scores=True."
        )
    predict = getattr(model, "predict_numbers", None) or getattr(model, "predict", model)
    return cast("Predict", predict)


def known_labels(model: Any) -> list[Label] | None:
    """The labels that the model can return if it lists them (`classes_`), otherwise None."""
    classes = getattr(adapted(model), "classes_", None)
    if classes is None:
        return None
    array = np.asarray(classes, dtype=object)
    if array.ndim != 1 or any(np.ndim(label) for label in array):  # several outputs, each with its own classes
        return None
    return [plain(label) for label in array.tolist()]


def _estimator_scores(model: Any) -> Predict:
    classes = known_labels(model)
    if not isinstance(model, ProbabilityModel):
        if classes is None or not callable(getattr(model, "predict_proba", None)):
            raise TypeError(
                f"scores=True needs a model with predict_proba and classes_, or a function that returns a DataFrame of "
                f"probabilities with a column for each label, got {type(model).__name__}."
            )
        if (decider := _own_decision_rule(model)) is not None:
            raise TypeError(
                f"{type(decider).__name__}.predict has its own decision rule, while scores=True decides by the "
                f"likeliest label of predict_proba: the two may disagree. Leave scores out, or pass a function that "
                f"returns a DataFrame of probabilities in which the likeliest label is the decision."
            )
    return partial(_likeliest_of_estimator, model, classes)


def _likeliest_of_estimator(model: Any, classes: list[Label] | None, rows: Rows) -> Scored:
    return likeliest(classes, model.predict_proba(rows))


# Classes that decide by a threshold other than 0.5, or by margins to which probabilities were fitted afterwards.
OWN_RULES = {"FixedThresholdClassifier", "TunedThresholdClassifierCV", "SVC", "NuSVC"}


def _own_decision_rule(model: Any) -> Any:
    """The inner estimator that decides, if its `predict` may differ from its likeliest label; otherwise None."""
    kinds = {kind.__name__ for kind in type(model).__mro__}
    threshold = getattr(model, "get_probability_threshold", None)  # CatBoost
    if OWN_RULES & kinds or (callable(threshold) and len(model.classes_) == 2 and threshold() != 0.5):
        return model
    inner = getattr(model, "best_estimator_", None)  # hyperparameter search
    if "Pipeline" in kinds:
        inner = model.steps[-1][1]
    elif "FrozenEstimator" in kinds:
        inner = model.estimator
    return None if inner is None else _own_decision_rule(inner)


def _likeliest_of_function(function: Predict, rows: Rows) -> Scored:
    answer = aligned_answer(function, rows)
    if not isinstance(answer, pd.DataFrame) or answer.shape[1] < 2:
        raise ModelFailed(
            f"scores=True needs a DataFrame of probabilities with a column for each label, and the model returned "
            f"{type(answer).__name__}."
        )
    return likeliest(answer.columns.tolist(), answer)


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    if not hasattr(model, "__sklearn_tags__"):  # not an estimator; scikit-learn 1.7 would warn
        return False
    try:
        return bool(is_regressor(model))
    except Exception:  # third-party estimator with incomplete tags
        return False


# -- adapters --------------------------------------------------------------------------------------------


@dataclass(eq=False)
class ProbabilityModel:
    """A model that returns probabilities, (n, labels); its decision is the likeliest label."""

    predict_proba: Callable[[Rows], Any] = field(repr=False)
    classes_: list[Label] | None  # None means 0, 1, ..., one per column of probabilities
    feature_names_in_: list[str] | None = field(default=None, repr=False)  # the columns it was fitted with
    predict_numbers: Callable[[Rows], Any] | None = field(default=None, repr=False)  # raw outputs of a network

    def predict(self, rows: Rows) -> Any:
        """One label per row, (n,)."""
        return likeliest(self.classes_, self.predict_proba(rows)).labels


@dataclass(eq=False)
class NumberModel:
    """A model that returns one number per row, such as a booster trained for regression or ranking."""

    predict: Callable[[Rows], Any] = field(repr=False)
    no_labels: str = field(repr=False)  # why it does not return labels
    feature_names_in_: list[str] | None = field(default=None, repr=False)  # the columns it was fitted with


def adapted(model: Any) -> Any:
    """The model wrapped in an object with `predict`; estimators, functions and unknown objects are returned as is.

    Raises:
        TypeError: the labels of this model cannot be determined.
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
    if "keras.Model" in kinds:  # before torch, which may be its backend
        return _of_keras(model)
    if "torch.Module" in kinds and not callable(getattr(model, "predict", None)):
        return _of_network(partial(_predict_torch, model), _last_of_torch(model) == "Sigmoid")
    return model


def _of_method(method: Any) -> ProbabilityModel:
    owner = method.__self__
    classes = known_labels(owner)
    if classes is None:
        raise TypeError(
            f"{type(owner).__name__}.predict_proba needs classes_ to name the labels. Without it, pass a function that "
            f"returns a DataFrame of probabilities with a column for each label."
        )
    return ProbabilityModel(method, classes, getattr(owner, "feature_names_in_", None))


def _no_labels(package: str, objective: Any) -> str:
    return (
        f"This {package} model was trained for {objective!r}: it does not return labels. Use a target for numbers, "
        f"such as target=acex.AtLeast(0.5) (in the shell --target-range 0.5..), or pass a function that decides: "
        f"lambda rows: model.predict(rows) > 0.5."
    )


# -- boosters --------------------------------------------------------------------------------------------


def _of_xgboost(booster: Any) -> ProbabilityModel | NumberModel:
    learner = json.loads(booster.save_config())["learner"]
    objective = learner["objective"]["name"]
    # XGBoost's estimators stop at their best round; a booster alone does not.
    best = booster.attr("best_iteration") if booster.attr("scikit_learn") is not None else None
    predict = partial(_predict_xgboost, booster, (0, 0 if best is None else int(best) + 1))
    if objective not in ("binary:logistic", "binary:logitraw", "multi:softprob", "multi:softmax"):
        return NumberModel(predict, _no_labels("XGBoost", objective), booster.feature_names)
    n_classes = max(int(learner["learner_model_param"].get("num_class", 0)), 2)
    return ProbabilityModel(partial(predict, output_margin=True), list(range(n_classes)), booster.feature_names)


def _predict_xgboost(booster: Any, rounds: tuple[int, int], rows: Rows, output_margin: bool = False) -> Any:
    """Numbers, or probabilities from the margins: log odds, (n,), or logits, (n, labels)."""
    import xgboost
    from scipy.special import expit, softmax

    table = xgboost.DMatrix(rows, enable_categorical=True)
    answer = booster.predict(table, iteration_range=rounds, output_margin=output_margin)
    if not output_margin:
        return answer
    return softmax(answer, axis=1) if answer.ndim == 2 else np.column_stack([expit(-answer), expit(answer)])


def _of_lightgbm(booster: Any) -> ProbabilityModel | NumberModel:
    dump = booster.dump_model(num_iteration=1)
    objective = dump.get("objective", "a custom objective").partition(" ")[0]
    if objective not in ("binary", "multiclass", "multiclassova"):
        no_labels = _no_labels("LightGBM", objective)
        return NumberModel(partial(_predict_lightgbm, booster), no_labels, booster.feature_name())
    classes: list[Label] = list(range(max(dump["num_class"], 2)))
    return ProbabilityModel(partial(_predict_lightgbm_classes, booster), classes, booster.feature_name())


def _predict_lightgbm(booster: Any, rows: Rows) -> FloatArray:
    # Without validation, LightGBM accepts columns in the wrong order and mixes them up.
    return np.asarray(booster.predict(rows, validate_features=hasattr(rows, "columns")))


def _predict_lightgbm_classes(booster: Any, rows: Rows) -> FloatArray:
    answer = _predict_lightgbm(booster, rows)
    return np.column_stack([1 - answer, answer]) if answer.ndim == 1 else answer


def _of_catboost(model: Any) -> Any:
    classes = np.asarray(model.classes_).tolist()
    if not classes:
        if not model.is_fitted():
            raise TypeError(_no_labels("CatBoost", "nothing yet"))
        why = _no_labels("CatBoost", model.get_all_params().get("loss_function"))
        return NumberModel(model.predict, why, list(model.feature_names_))
    if hasattr(model, "predict_proba"):
        return model
    import catboost

    return catboost.to_classifier(model)


# -- networks --------------------------------------------------------------------------------------------


def _of_network(outputs: Callable[[Rows], Any], ends_in_sigmoid: bool) -> ProbabilityModel:
    """A network with one output per label (the labels are 0, 1, ...), or with one output after a sigmoid."""
    predict = partial(_network_probabilities, outputs, ends_in_sigmoid)
    return ProbabilityModel(predict, None, predict_numbers=partial(_network_outputs, outputs))


def _network_outputs(outputs: Callable[[Rows], Any], rows: Rows) -> FloatArray:
    table = np.asarray(outputs(rows), dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != len(rows):
        raise ValueError(f"the network's output has the shape {table.shape}; expected (rows, outputs)")
    return table


def _network_probabilities(outputs: Callable[[Rows], Any], ends_in_sigmoid: bool, rows: Rows) -> FloatArray:
    from scipy.special import softmax

    table = _network_outputs(outputs, rows)
    k = table.shape[1]
    if ends_in_sigmoid != (k == 1):
        raise ValueError(
            f"the network returns {k} numbers per row and {'ends' if k > 1 else 'does not end'} in a sigmoid, so "
            f"its decision is not known. Pass a function that returns labels: lambda rows: network(rows) > 0"
        )
    if k == 1:
        return np.hstack([1 - table, table])
    is_share = bool((table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-4))
    return table if is_share else np.asarray(softmax(table, axis=1))


def _numbers(rows: Rows) -> Any:
    """The rows as a matrix of 32-bit floats, (n, d)."""
    try:
        return np.asarray(rows, dtype=np.float32)
    except (ValueError, TypeError):
        texts = [name for name, column in rows.items() if column.dtype.kind not in "biuf"]
        raise ValueError(
            f"a network takes numbers, and {listed(texts)} holds something else: pass a function that encodes the "
            f"rows, such as lambda rows: network(encode(rows))"
        ) from None


def _last_of_torch(module: Any) -> str:
    last = [*module.modules()][-1]
    return str(getattr(last, "original_name", type(last).__name__))


def _predict_torch(module: Any, rows: Rows) -> Any:
    import torch

    weight = next(iter(module.parameters()), torch.zeros(0))
    table = torch.as_tensor(_numbers(rows), dtype=weight.dtype, device=weight.device)
    was_training = module.training
    module.eval()  # turns off dropout
    try:
        with torch.no_grad():
            return module(table).float().cpu().numpy()
    finally:
        module.train(was_training)


def _of_keras(model: Any) -> ProbabilityModel:
    if len(model.inputs or [None]) > 1:
        raise TypeError(
            f"This Keras model has {len(model.inputs)} inputs: pass a function that selects the columns of each, such "
            f"as lambda rows: model.predict([rows[numbers], rows[texts]]).argmax(axis=1)."
        )
    last = model.layers[-1]
    activation = getattr(last, "activation", None)
    name = getattr(activation, "__name__", type(last).__name__)
    return _of_network(partial(_predict_keras, model), name.lower() == "sigmoid")


def _predict_keras(model: Any, rows: Rows) -> Any:
    import keras

    return keras.ops.convert_to_numpy(model(_numbers(rows), training=False))
