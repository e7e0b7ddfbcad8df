"""Models from files and from Python code: `load_model`."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, Rows
from acex.errors import MissingExtra
from acex.models.adapters import adapted, as_numeric, as_predict, known_labels, no_labels
from acex.models.labels import Predict
from acex.values import Label, listed

PICKLES = (".joblib", ".pkl", ".pickle")
BOOSTERS = (".json", ".ubj", ".txt", ".cbm")  # native files of XGBoost (two), LightGBM, CatBoost
TORCH = (".pt", ".pth")

# Types of scikit-learn that skops does not trust by default. They hold arrays and numbers and call nothing
# that the file names (as `functools.partial` would). A crafted file may still crash the process:
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


@dataclass(frozen=True)
class FileModel:
    """A model from a file; its name in the ledger is the hash of the file's content."""

    model_id: str  # "sha256:..."
    predict: Predict = field(repr=False)
    classes_: list[Label] | None = field(repr=False)
    predict_proba: Callable[[Rows], Any] | None = field(repr=False)
    no_labels: str | None = field(default=None, repr=False)  # why it returns numbers instead


def load_model(spec: str | os.PathLike[str], *, allow_pickle: bool = False) -> Any:
    """Load a model from a file, or from Python code with "module:name".

    A model from a file has a `model_id`, the hash of the file. A model from code has one only if it defines it.

    Args:
        spec: a path ending in .skops or .onnx; in .json or .ubj (XGBoost), .txt (LightGBM) or .cbm (CatBoost); in
            .joblib, .pkl or .pickle; or "module:name", where the module may be in the current folder.
        allow_pickle: also load .joblib, .pkl and .pickle, which can run arbitrary code.
    """
    path = Path(spec)
    if path.suffix.lower() in TORCH:
        raise ValueError(
            f"{path}: a {path.suffix} file is a pickle, which can run arbitrary code, and usually holds weights "
            f"without the network. Build the network and load its weights in a module, and pass module:name; or save "
            f"the model as .onnx."
        )
    if path.suffix.lower() not in (".skops", ".onnx", *BOOSTERS, *PICKLES):
        module, colon, name = str(spec).partition(":")
        if colon and name:
            return _from_code(module, name)
        raise ValueError(
            f"{str(spec)!r} is not a model: expected a file ending in .skops, .onnx, "
            f"{', '.join((*BOOSTERS, *PICKLES))}, or module:name for a model in Python code."
        )
    if path.suffix.lower() in PICKLES and not allow_pickle:
        raise ValueError(
            f"{path}: loading a {path.suffix} file can run arbitrary code. Allow it with allow_pickle=True "
            f"(--allow-pickle), or save the model as .skops or .onnx, which cannot."
        )
    content = path.read_bytes()  # read once, so that the hash is that of the loaded model
    match path.suffix.lower():
        case ".skops":
            model = _from_skops(content, path)
        case ".onnx":
            model = OnnxModel(content)
        case ".json" | ".ubj":
            model = _from_xgboost(content, path)
        case ".txt":
            model = _from_lightgbm(content, path)
        case ".cbm":
            model = _from_catboost(content, path)
        case _:
            model = _from_pickle(content, path)
    model = adapted(model)
    return FileModel(
        model_id=f"sha256:{hashlib.sha256(content).hexdigest()}",
        predict=as_predict(model) if no_labels(model) is None else as_numeric(model),
        classes_=known_labels(model),
        predict_proba=getattr(model, "predict_proba", None),
        no_labels=no_labels(model),
    )


def _from_code(module: str, name: str) -> Any:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module exists, and one that it imports does not
        raise ValueError(f"{module}:{name}: no module {module!r} in {folder} or installed.") from None
    try:
        model = getattr(found, name)
    except AttributeError:
        raise ValueError(f"{module}:{name}: the module {module!r} has no {name!r}.") from None
    if no_labels(model) is None:
        as_predict(model)  # raises if this is not a model
    return model


def _from_skops(content: bytes, path: Path) -> Any:
    try:
        import skops.io
    except ImportError:
        raise MissingExtra("A .skops file", "files") from None
    try:
        found = skops.io.get_untrusted_types(data=content)
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a .skops file: {error}") from error
    unknown = sorted(set(found) - TRUSTED)
    if unknown:
        raise ValueError(
            f"{path} contains types that are not known to be safe: {listed(unknown)}. If you trust them, write a "
            f"module with model = skops.io.load({path.name!r}, trusted={unknown!r}) and pass module:model."
        )
    return skops.io.loads(content, trusted=found)


def _from_pickle(content: bytes, path: Path) -> Any:
    import joblib

    warnings.warn(
        f"{path}: loading a {path.suffix} file can run arbitrary code. Load only files from people you trust, or save "
        f"the model as .skops or .onnx.",
        stacklevel=3,
    )
    return joblib.load(io.BytesIO(content))  # also reads plain pickles


# -- native files of boosters ----------------------------------------------------------------


def _from_xgboost(content: bytes, path: Path) -> Any:
    xgboost = _booster_package("xgboost", path)
    if path.suffix.lower() == ".json" and b'"learner"' not in content:
        raise ValueError(f"{path} is not an XGBoost model: it has no 'learner'.")
    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(content))
    except Exception as error:
        raise ValueError(f"{path} cannot be read as an XGBoost model: {str(error).splitlines()[0]}") from error
    return booster


def _from_lightgbm(content: bytes, path: Path) -> Any:
    lightgbm = _booster_package("lightgbm", path)
    if not content.startswith(b"tree"):
        raise ValueError(f"{path} is not a LightGBM model: its first line is not 'tree'.")
    try:
        return lightgbm.Booster(model_str=content.decode())
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a LightGBM model: {error}") from error


def _from_catboost(content: bytes, path: Path) -> Any:
    model = _booster_package("catboost", path).CatBoostClassifier()
    try:
        model.load_model(blob=content)
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a CatBoost model: {error}") from error
    return model


def _booster_package(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"A {path.suffix} file", "models") from None


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
SCORES = ("tensor(float)", "tensor(double)")


class OnnxModel:
    """An ONNX model whose input is a 2-D tensor of rows, or one tensor per column."""

    no_labels: str | None = None  # why it returns numbers instead

    def __init__(self, content: bytes) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise MissingExtra("An .onnx file", "files") from None
        self._content = content
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # a query has few rows
        try:
            self._session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ValueError(f"The file cannot be read as ONNX: {error}") from error
        self._inputs = {tensor.name: tensor.type for tensor in self._session.get_inputs()}
        if len(self._inputs) > 1:
            self.feature_names_in_ = list(self._inputs)
        outputs = self._session.get_outputs()
        self._label = next((output.name for output in outputs if output.type in LABELS), None)
        if (
            self._label is None
            and len(outputs) == 1
            and outputs[0].type in SCORES
            and outputs[0].shape[1:] in ([], [1])
        ):
            self._label = outputs[0].name
            self.no_labels = (
                "This ONNX model returns one number per row and has no output for labels (text or whole numbers). Use "
                "a target for numbers, such as target=acex.AtLeast(0.5)."
            )
            return
        if self._label is None:
            kinds = ", ".join(f"{output.name}: {output.type}" for output in outputs)
            raise ValueError(f"The ONNX model has no output that can be a label (text or whole numbers): {kinds}.")
        scores = [o.name for o in outputs if o.type.startswith("seq(map(") or (o.type in SCORES and len(o.shape) == 2)]
        if scores:
            self._scores = scores[0]
            self.predict_proba = self._predict_proba

    def __reduce__(self) -> tuple[type[OnnxModel], tuple[bytes]]:
        return OnnxModel, (self._content,)  # a session cannot be pickled

    def predict(self, rows: Rows) -> Any:
        """One label or one number per row, (n,) or (n, 1)."""
        return self._session.run([self._label], self._feed(rows))[0]

    def _predict_proba(self, rows: Rows) -> FloatArray:
        """The probability of each label, in the model's order, (n, labels)."""
        scores = self._session.run([self._scores], self._feed(rows))[0]
        if isinstance(scores, list):  # a mapping from label to probability for each row
            scores = [list(row.values()) for row in scores]
        return np.asarray(scores, dtype=float)

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
