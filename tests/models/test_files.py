"""Models from files: what goes in comes out, and nothing runs that was not allowed to."""

from __future__ import annotations

import functools
import hashlib
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from numpy.testing import assert_allclose
from skl2onnx import to_onnx
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import acex
from acex import MissingExtra, load_model
from acex.models.adapters import as_numeric, as_predict

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)).astype(np.float32).astype(float)  # as ONNX will see them
Y = np.where(X[:, 0] > 0, "yes", "no")
MIXED = pd.DataFrame({"income": X[:, 0], "age": RNG.integers(18, 80, 60), "job": RNG.choice(["clerk", "nurse"], 60)})


def mixed_pipeline() -> Pipeline:
    columns = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["income", "age"]))
    return make_pipeline(columns, RandomForestClassifier(3, random_state=0)).fit(MIXED, Y)


def saved_onnx(path: Path, *what: Any, **options: Any) -> Path:
    path.write_bytes(to_onnx(*what, **options).SerializeToString())
    return path


# -- skops -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(3, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_skops_file_answers_as_the_model_did(model: Any, tmp_path: Path) -> None:
    model.fit(X, Y)
    skops.io.dump(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert list(loaded.classes_) == ["no", "yes"]
    assert_allclose(loaded.predict_proba(X), model.predict_proba(X))


def test_a_pipeline_for_mixed_columns_comes_back_from_skops(tmp_path: Path) -> None:
    encoder = make_column_transformer((OrdinalEncoder(), ["job"]), remainder="passthrough")
    for model in (mixed_pipeline(), make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=3)).fit(MIXED, Y)):
        skops.io.dump(model, tmp_path / "m.skops")
        assert load_model(tmp_path / "m.skops").predict(MIXED).tolist() == model.predict(MIXED).tolist()


def home_made(rows: Any) -> Any:
    return rows


def test_unknown_types_are_refused_by_name_with_advice(tmp_path: Path) -> None:
    model = make_pipeline(FunctionTransformer(home_made), DecisionTreeClassifier()).fit(X, Y)
    skops.io.dump(model, tmp_path / "m.skops")
    with pytest.raises(ValueError, match="test_files"):
        load_model(tmp_path / "m.skops")


# -- ONNX ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zipmap", [True, False])
def test_an_onnx_file_answers_as_the_model_did(dtype: Any, zipmap: bool, tmp_path: Path) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    path = saved_onnx(tmp_path / "m.onnx", model, X[:1].astype(dtype), options={"zipmap": zipmap})
    loaded = load_model(path)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.predict(pd.DataFrame(X)).tolist() == model.predict(X).tolist()


def test_whole_numbers_as_labels_come_back_from_onnx(tmp_path: Path) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, (X[:, 0] > 0) * 2)
    path = saved_onnx(tmp_path / "m.onnx", model, X[:1].astype(np.float32))
    assert load_model(path).predict(X).tolist() == model.predict(X).tolist()


def test_an_onnx_model_with_an_input_for_each_column_takes_frames(tmp_path: Path) -> None:
    model = mixed_pipeline()
    loaded = load_model(saved_onnx(tmp_path / "m.onnx", model, MIXED[:1]))
    assert loaded.predict(MIXED).tolist() == model.predict(MIXED).tolist()
    assert loaded.predict(MIXED[["job", "age", "income"]]).tolist() == model.predict(MIXED).tolist()
    categories = MIXED.assign(job=MIXED["job"].astype("category"))
    assert loaded.predict(categories).tolist() == model.predict(MIXED).tolist()
    with pytest.raises(ValueError, match="'income'"):
        loaded.predict(MIXED.to_numpy())
    with pytest.raises(ValueError, match="needs 'job', which are not columns"):
        loaded.predict(MIXED.drop(columns="job"))
    with pytest.raises(ValueError, match="'age'"):
        loaded.predict(MIXED[:1].assign(age=30.5))


def test_an_onnx_model_without_labels_gives_numbers_and_says_so(tmp_path: Path) -> None:
    regressor = RandomForestRegressor(3).fit(X, X[:, 0])
    loaded = load_model(saved_onnx(tmp_path / "m.onnx", regressor, X[:1].astype(np.float32)))
    assert_allclose(np.ravel(as_numeric(loaded)(X)), regressor.predict(X), atol=1e-5)
    with pytest.raises(TypeError, match=r"ONNX .*no output for labels"):
        as_predict(loaded)


# -- pickles ---------------------------------------------------------------------------------------------


class Trap:
    """Leaves a file behind when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["m.joblib", "m.pkl", "m.pickle", "M.PKL"])
def test_a_pickle_is_not_opened_unless_allowed(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(ValueError, match=r"arbitrary code.*allow_pickle=True"):
        load_model(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


def test_an_allowed_pickle_comes_with_a_warning(tmp_path: Path) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    joblib.dump(model, tmp_path / "m.joblib", compress=3)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(model))
    for name in ("m.joblib", "m.pkl"):
        with pytest.warns(UserWarning, match="arbitrary code") as caught:
            loaded = load_model(tmp_path / name, allow_pickle=True)
        assert caught[0].filename == __file__
        assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_a_pickled_regressor_gives_numbers_as_any_other(tmp_path: Path) -> None:
    regressor = RandomForestRegressor(3).fit(X, X[:, 0])
    joblib.dump(regressor, tmp_path / "m.joblib")
    with pytest.warns(UserWarning, match="arbitrary code"):
        loaded = load_model(tmp_path / "m.joblib", allow_pickle=True)
    assert loaded.predict(X).tolist() == regressor.predict(X).tolist()
    with pytest.raises(ValueError, match="is a regressor"):
        acex.explain(loaded, X[0], data=X)


# -- from code -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and the search path and modules as they were afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


CODE = """
from sklearn.dummy import DummyClassifier
def decide(rows):
    return ["yes"] * len(rows)
always = DummyClassifier().fit([[0]], ["a"])
limit = 3
"""


def test_code_in_the_current_folder_is_a_model(folder: Path) -> None:
    (folder / "my_model_here.py").write_text(CODE)
    assert load_model("my_model_here:decide")(X[:2]) == ["yes", "yes"]
    assert load_model("my_model_here:always").predict([[1]]).tolist() == ["a"]
    assert getattr(load_model("my_model_here:decide"), "model_id", None) is None
    with pytest.raises(ValueError, match="my_model_here"):
        load_model("my_model_here:missing")
    with pytest.raises(TypeError, match="callable"):
        load_model("my_model_here:limit")


def test_a_module_that_is_not_there_is_told_apart_from_one_that_fails(folder: Path) -> None:
    with pytest.raises(ValueError, match="no module 'nowhere_to_be_seen' in"):
        load_model("nowhere_to_be_seen:decide")
    (folder / "needs_more.py").write_text("import not_installed_at_all")
    with pytest.raises(ModuleNotFoundError, match="not_installed_at_all"):
        load_model("needs_more:decide")


# -- all of them -----------------------------------------------------------------------------------------


def test_the_id_of_a_file_is_the_hash_of_its_content(tmp_path: Path) -> None:
    path = saved_onnx(tmp_path / "m.onnx", RandomForestClassifier(3).fit(X, Y), X[:1].astype(np.float32))
    expected = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    assert load_model(path).model_id == load_model(str(path)).model_id == expected


@pytest.mark.parametrize("spec", ["model", "model.csv", "module:", "", "m.h5"])
def test_what_names_no_model_is_refused_with_what_would(spec: str) -> None:
    with pytest.raises(ValueError, match=r"is not a model: .*module:name"):
        load_model(spec)


def test_a_missing_file_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone\.skops"):
        load_model(tmp_path / "gone.skops")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "garbage": lambda content: b"garbage",
    "truncated": lambda content: content[: len(content) // 2],
    "zeros in the middle": lambda content: content[:200] + bytes(len(content) - 400) + content[-200:],
    "another kind of file": lambda content: b"PK\x03\x04" + content[4:],
}


@pytest.mark.filterwarnings("ignore:.*arbitrary code")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("name", ["m.skops", "m.onnx", "m.joblib", "m.pkl"])
def test_a_damaged_file_is_named_with_a_short_reason(
    name: str, damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    model = DecisionTreeClassifier().fit(X, Y)
    path = tmp_path / name
    if name == "m.skops":
        skops.io.dump(model, path)
    elif name == "m.onnx":
        saved_onnx(path, model, X[:1].astype(np.float32))
    else:
        joblib.dump(model, path)
    content = damage(path.read_bytes())
    if name == "m.skops" and content.startswith(b"PK") and len(content) == path.stat().st_size:
        content = content.replace(b"schema.json", b"schemu.json")  # PK is how a .skops file begins
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} cannot be read as {path.suffix}") as caught:
        load_model(path, allow_pickle=True)
    assert len(str(caught.value)) < 1000 and "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*arbitrary code")
@pytest.mark.parametrize("content", [{"weights": [1, 2]}, [1.0], "yes", DecisionTreeClassifier()])
def test_a_pickle_without_a_fitted_model_is_refused(content: Any, tmp_path: Path) -> None:
    joblib.dump(content, tmp_path / "m.pkl")
    with pytest.raises(ValueError, match=r"m\.pkl .*(predict|fitted)"):
        load_model(tmp_path / "m.pkl", allow_pickle=True)


@pytest.mark.parametrize(
    ("module", "name"), [("os", "system"), ("builtins", "eval"), ("subprocess", "Popen"), ("acex.models.files", "sys")]
)
def test_a_skops_file_cannot_name_code_to_run(module: str, name: str, tmp_path: Path) -> None:
    """The schema of a harmless file is changed to one that calls a function with an argument."""
    skops.io.dump(functools.partial(sorted, ["touch sprung"]), tmp_path / "m.skops")
    with zipfile.ZipFile(tmp_path / "m.skops") as harmless:
        files = {entry: harmless.read(entry) for entry in harmless.namelist()}
    schema = files["schema.json"].replace(b'"builtins"', f'"{module}"'.encode())
    files["schema.json"] = schema.replace(b'"sorted"', f'"{name}"'.encode())
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as hostile:
        for entry, content in files.items():
            hostile.writestr(entry, content)
    with pytest.raises(ValueError, match=r"m\.skops .*not known to be safe"):
        load_model(tmp_path / "m.skops")
    assert not (tmp_path / "sprung").exists()


def test_an_onnx_file_cannot_read_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx

    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(np.ones(3, dtype=np.float32).tobytes())
    proto = to_onnx(StandardScaler().fit(X), X[:1].astype(np.float32))
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [3], np.ones(3, dtype=np.float32).tobytes(), raw=True)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    proto.graph.initializer.append(tensor)
    proto.graph.node.append(onnx.helper.make_node("Add", [proto.graph.input[0].name, "w"], ["stolen"]))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("stolen", onnx.TensorProto.FLOAT, [None, 3]))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ValueError, match=r"m\.onnx .*path"):
        load_model(tmp_path / "m.onnx")


@pytest.mark.parametrize(("name", "needs"), [("m.skops", "skops.io"), ("m.onnx", "onnxruntime")])
def test_a_missing_extra_is_named(name: str, needs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, needs, None)
    with pytest.raises(MissingExtra, match=r"acex\[files\]") as caught:
        load_model(tmp_path / name)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_loaded_model_travels_to_a_worker(tmp_path: Path) -> None:
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    skops.io.dump(model, tmp_path / "m.skops")
    for path in (tmp_path / "m.skops", saved_onnx(tmp_path / "m.onnx", model, X[:1].astype(np.float32))):
        loaded = load_model(path)
        copy = pickle.loads(pickle.dumps(loaded))
        assert copy.predict(X).tolist() == model.predict(X).tolist()
        assert copy.model_id == loaded.model_id


def test_a_loaded_model_can_be_explained(tmp_path: Path) -> None:
    loaded = load_model(saved_onnx(tmp_path / "m.onnx", mixed_pipeline(), MIXED[:1]))
    row = MIXED[Y == "no"].iloc[0]
    explanation = acex.explain(loaded, row, data=MIXED, target="yes", budget=15)
    assert explanation.outcome == "found"
    assert loaded.predict(explanation.counterfactuals).tolist() == ["yes"]
