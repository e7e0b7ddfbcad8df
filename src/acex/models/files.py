"""Models from files and from Python code: `load_model`."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.errors import MissingExtra, optional
from acex.models.adapters import adapted
from acex.models.model import Model
from acex.values import listed

PICKLES = (".joblib", ".pkl", ".pickle")

# Types used by scikit-learn that skops does not trust by default. They hold arrays and numbers and do not call
# anything named in the file (as `functools.partial` would). A crafted file may still crash the process:
# scikit-learn follows the indices in a tree without checking them.
TRUSTED = frozenset(
    {
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
    }
)


def load_model(spec: str | os.PathLike[str], *, allow_pickle: bool = False) -> Any:
    """Load a model from a file, or from Python code with "module:name".

    A model from a file has a `model_id`, the hash of the file. A model from code has one only if it defines it.

    Args:
        spec: a path ending in .skops or .onnx; in .json or .ubj (XGBoost), .txt (LightGBM) or .cbm (CatBoost); in
            .joblib, .pkl or .pickle; or "module:name", where the module may be in the current folder.
        allow_pickle: also load .joblib, .pkl and .pickle. Loading such a file runs the code in it.

    Raises:
        ValueError: the file is damaged, does not match its suffix, or contains types that are not trusted.
    """
    path = Path(spec)
    kind = path.suffix.lower()
    if kind not in LOADERS:
        module, colon, name = str(spec).partition(":")
        if colon and name:
            model = _from_code(module, name)
            Model.of(model)  # raises if it cannot be queried
            return model
        raise ValueError(
            f"{str(spec)!r} is not a model: expected a file ending in {', '.join(LOADERS)}, or module:name for a model "
            f"in Python code, which may load other files, such as the weights of a network."
        )
    if kind in PICKLES and not allow_pickle:
        raise ValueError(
            f"{path}: loading a {kind} file can run arbitrary code. Allow it with allow_pickle=True "
            f"(--allow-pickle), or save the model as .skops or .onnx, which cannot."
        )
    if kind in PICKLES:
        warnings.warn(
            f"{path}: loading a {kind} file can run arbitrary code. Load only files from people you trust, or save the "
            f"model as .skops or .onnx.",
            stacklevel=2,
        )
        _look_in_current_folder()  # a pickle may refer to the caller's own modules
    content = path.read_bytes()  # read once, so that the hash matches the loaded model
    try:
        model = adapted(LOADERS[kind](content))
        Model.of(model)
        model.model_id = f"sha256:{hashlib.sha256(content).hexdigest()}"
    except MissingExtra:
        raise
    except Exception as error:  # each package raises its own types
        lines = str(error).splitlines() or [""]
        why = lines[0] if isinstance(error, ValueError) else f"{type(error).__name__}: {lines[0]}"
        raise ValueError(f"{path} cannot be read as {kind}: {why}") from error
    return model


def _look_in_current_folder() -> str:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return folder


def _from_code(module: str, name: str) -> Any:
    folder = _look_in_current_folder()
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, but one that it imports does not
        raise ValueError(f"{module}:{name}: no module {module!r} in {folder} or installed.") from None
    try:
        return getattr(found, name)
    except AttributeError:
        raise ValueError(f"{module}:{name}: the module {module!r} has no {name!r}.") from None


def _from_skops(content: bytes) -> Any:
    skops_io = optional("skops.io", "A .skops file", "files")
    found = skops_io.get_untrusted_types(data=content)
    if unknown := sorted(set(found) - TRUSTED):
        raise ValueError(
            f"it contains types that are not known to be safe: {listed(unknown)}. If you trust them, write a module "
            f"with model = skops.io.load(path, trusted={unknown!r}) and pass module:model."
        )
    return skops_io.loads(content, trusted=found)


def _from_pickle(content: bytes) -> Any:
    import joblib

    return joblib.load(io.BytesIO(content))  # also reads plain pickles


def _from_xgboost(content: bytes) -> Any:
    booster = optional("xgboost", "A .json or .ubj file", "models").Booster()
    if not content:
        raise ValueError("it is empty")  # XGBoost would terminate the process
    booster.load_model(bytearray(content))
    return booster


def _from_xgboost_json(content: bytes) -> Any:
    json.loads(content)  # raises for deep nesting, which would crash XGBoost
    return _from_xgboost(content)


def _from_lightgbm(content: bytes) -> Any:
    return optional("lightgbm", "A .txt file", "models").Booster(model_str=content.decode())


def _from_catboost(content: bytes) -> Any:
    model = optional("catboost", "A .cbm file", "models").CatBoost()
    model.load_model(blob=content)
    return model


# -- ONNX ------------------------------------------------------------------------------------------------

ELEMENTS = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}
LABELS = ("tensor(string)", "tensor(int64)", "tensor(int32)", "tensor(bool)")
NUMBERS = ("tensor(float)", "tensor(double)")


class OnnxModel:
    """An ONNX model whose input is a 2-D tensor of rows, or one tensor per column."""

    model_id: str | None = None
    no_labels: str | None = None  # why it returns numbers; None if it returns labels

    def __init__(self, content: bytes) -> None:
        onnxruntime = optional("onnxruntime", "An .onnx file", "files")
        self._content = content
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a query has few rows
        self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._inputs = {tensor.name: tensor.type for tensor in self._session.get_inputs()}
        if len(self._inputs) > 1:
            self.feature_names_in_ = list(self._inputs)
        outputs = self._session.get_outputs()
        labels = [output for output in outputs if output.type in LABELS]
        numbers = [output for output in outputs if output.type in NUMBERS and output.shape[1:] in ([], [1])]
        if not labels and not (len(outputs) == len(numbers) == 1):
            kinds = ", ".join(f"{output.name}: {output.type}" for output in outputs)
            raise ValueError(f"the ONNX model has no output that can be a label (text or whole numbers): {kinds}")
        self._output = (labels or numbers)[0].name
        if not labels:
            self.no_labels = (
                "This ONNX model returns one number per row and has no output for labels (text or whole numbers). Use "
                "a target for numbers, such as target=acex.AtLeast(0.5) (in the shell --target-range 0.5..)."
            )

    def __reduce__(self) -> tuple[type[OnnxModel], tuple[bytes], dict[str, Any]]:
        return OnnxModel, (self._content,), {"model_id": self.model_id}  # a session cannot be pickled

    def predict(self, rows: Rows) -> Any:
        """One label or one number per row, (n,) or (n, 1)."""
        return self._session.run([self._output], self._feed(rows))[0]

    def _feed(self, rows: Rows) -> dict[str, Any]:
        if len(self._inputs) == 1:
            ((name, kind),) = self._inputs.items()
            return {name: _as_tensor(name, np.asarray(rows), kind)}
        if not isinstance(rows, pd.DataFrame):
            raise ValueError(
                f"The ONNX model needs the columns {listed(self._inputs)} by name: data must be a DataFrame."
            )
        missing = [name for name in self._inputs if name not in rows.columns]
        if missing:
            raise ValueError(f"The ONNX model needs {listed(missing)}, which are not columns of the rows.")
        return {name: _as_tensor(name, rows[[name]].to_numpy(), kind) for name, kind in self._inputs.items()}


def _as_tensor(name: str, values: Any, kind: str) -> Any:
    if kind not in ELEMENTS:
        raise ValueError(f"The input {name!r} of the ONNX model is a {kind}, to which rows cannot be converted.")
    if kind == "tensor(string)":
        return np.array([[str(value) for value in row] for row in values], dtype=object)
    tensor = values.astype(ELEMENTS[kind])
    if tensor.dtype.kind in "ib" and not np.array_equal(tensor, values):
        raise ValueError(
            f"The input {name!r} of the ONNX model holds whole numbers only, got {listed(values.ravel())}."
        )
    return tensor


LOADERS: dict[str, Callable[[bytes], Any]] = {
    ".skops": _from_skops,
    ".onnx": OnnxModel,
    ".json": _from_xgboost_json,
    ".ubj": _from_xgboost,
    ".txt": _from_lightgbm,
    ".cbm": _from_catboost,
    **dict.fromkeys(PICKLES, _from_pickle),
}
