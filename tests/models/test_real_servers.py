"""HttpModel against the real thing: MLflow and MLServer, each in an environment of its own.

The environments are made once, in ACEX_CACHE or ~/.cache/acex.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import numpy as np
import pandas as pd
import pytest

import acex
from acex import HttpModel, ModelFailed

pytestmark = pytest.mark.slow

CACHE = Path(os.environ.get("ACEX_CACHE", Path.home() / ".cache" / "acex"))
SECONDS_TO_START = 120

# Run by the server's own Python: two models saved where the server wants them, and what they answer.
TRAIN = """
import json, sys
import numpy as np, pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

rng = np.random.default_rng(0)
rows = pd.DataFrame({
    "age": rng.integers(18, 80, 200), "income": rng.normal(3000, 900, 200), "job": rng.choice(["clerk", "nurse"], 200)
})
good = rows["income"] + 400 * (rows["job"] == "nurse") > 3000
columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
mixed = make_pipeline(columns, RandomForestClassifier(5, random_state=0)).fit(rows, np.where(good, "good", "bad"))
matrix = rows[["age", "income"]].to_numpy()
numbers = RandomForestClassifier(5, random_state=0).fit(matrix, good.astype(int))
answers = {"mixed": mixed.predict(rows).tolist(), "numbers": numbers.predict(matrix).tolist()}
with open("truth.json", "w") as file:
    json.dump({"rows": rows.to_dict("list"), **answers}, file)
"""
FOR_MLFLOW = """
import mlflow
mlflow.sklearn.save_model(mixed, "mixed", serialization_format="cloudpickle")
"""
FOR_MLSERVER = """
import joblib, os
for name, model in (("mixed", mixed), ("numbers", numbers)):
    os.mkdir(name)
    joblib.dump(model, f"{name}/model.joblib")
    kind = "mlserver_sklearn.SKLearnModel"
    with open(f"{name}/model-settings.json", "w") as file:
        json.dump({"name": name, "implementation": kind, "parameters": {"uri": "./model.joblib"}}, file)
"""


def environment(name: str, *packages: str) -> Path:
    """The folder with the programs of an environment that holds these packages; it is made if need be."""
    folder = CACHE / "servers" / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests in other processes want the same
        if not (folder / "installed").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)
            pip = [str(folder / "venv/bin/pip"), "install", "--disable-pip-version-check", *packages]
            done = subprocess.run(pip, capture_output=True, text=True)
            if done.returncode:
                words = done.stderr.strip().splitlines() or [""]
                pytest.skip(f"{name} cannot be installed here: {words[-1]}")
            (folder / "installed").touch()
    return folder / "venv/bin"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def running(programs: Path, folder: Path, command: list[str], ready: str) -> Iterator[None]:
    """The server, from the moment it says that it is ready."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"  # mlflow looks for its helpers there
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(
            [programs / command[0], *command[1:]],
            cwd=folder, env={**os.environ, "PATH": path}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        _wait_until_ready(server, ready, folder / "log")
        yield
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], ready: str, log: Path) -> None:
    for _ in range(SECONDS_TO_START):
        try:
            if httpx2.get(ready).status_code == 200:
                return
        except httpx2.TransportError:
            pass
        if server.poll() is not None:
            break
        time.sleep(1)
    pytest.fail(f"The server did not start:\n{log.read_text()[-3000:]}")


def train(programs: Path, folder: Path, save: str) -> None:
    subprocess.run([programs / "python", "-c", TRAIN + save], cwd=folder, check=True)


class Truth:
    """Rows, and what the models answered before they went behind a server."""

    def __init__(self, folder: Path) -> None:
        truth = json.loads((folder / "truth.json").read_text())
        self.rows = pd.DataFrame(truth["rows"])
        self.numbers = self.rows[["age", "income"]]
        self.label_of_mixed, self.label_of_numbers = truth["mixed"], truth["numbers"]


# -- MLflow ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Truth]]:
    programs = environment("mlflow", "mlflow>=3,<4", "scikit-learn")
    folder, port = tmp_path_factory.mktemp("mlflow"), free_port()
    train(programs, folder, FOR_MLFLOW)
    command = ["mlflow", "models", "serve", "-m", "mixed", "--env-manager", "local", "-h", "127.0.0.1", "-p", str(port)]
    with running(programs, folder, command, f"http://127.0.0.1:{port}/ping"):
        yield f"http://127.0.0.1:{port}/invocations", Truth(folder)


def test_mlflow_answers_as_the_model_did(mlflow: tuple[str, Truth]) -> None:
    url, truth = mlflow
    model = HttpModel(url, protocol="mlflow", rows_per_request=64)
    assert model.predict(truth.rows) == truth.label_of_mixed


def test_a_model_behind_mlflow_is_explained(mlflow: tuple[str, Truth]) -> None:
    url, truth = mlflow
    row = truth.rows.iloc[truth.label_of_mixed.index("bad")]
    model = HttpModel(url, protocol="mlflow")
    explanation = acex.explain(model, row, data=truth.rows, target="good", freeze=["age"], budget=15)
    assert explanation.outcome == "found"
    assert model.predict(explanation.counterfactuals) == ["good"]


def test_what_mlflow_says_about_wrong_rows_is_repeated(mlflow: tuple[str, Truth]) -> None:
    url, truth = mlflow
    with pytest.raises(ModelFailed, match="BAD_REQUEST"):
        HttpModel(url, protocol="mlflow").predict(truth.numbers[:2])
    with pytest.raises(ModelFailed, match="answered"):
        HttpModel(url.replace("/invocations", "/no/invocations"), protocol="mlflow").predict(truth.rows[:2])


# -- MLServer ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Truth]]:
    programs = environment("mlserver", "mlserver>=1.7,<2", "mlserver-sklearn>=1.7,<2")
    folder, port = tmp_path_factory.mktemp("mlserver"), free_port()
    train(programs, folder, FOR_MLSERVER)
    settings = {"host": "127.0.0.1", "http_port": port, "grpc_port": free_port(), "metrics_port": free_port()}
    (folder / "settings.json").write_text(json.dumps({**settings, "parallel_workers": 0}))
    with running(programs, folder, ["mlserver", "start", "."], f"http://127.0.0.1:{port}/v2/health/ready"):
        yield f"http://127.0.0.1:{port}/v2/models", Truth(folder)


def test_mlserver_answers_a_matrix_as_the_model_did(mlserver: tuple[str, Truth]) -> None:
    url, truth = mlserver
    model = HttpModel(f"{url}/numbers/infer", protocol="v2", rows_per_request=64)
    assert model.predict(truth.numbers) == truth.label_of_numbers
    assert model.predict(truth.numbers.to_numpy()) == truth.label_of_numbers


def test_mlserver_answers_columns_with_texts_as_the_model_did(mlserver: tuple[str, Truth]) -> None:
    url, truth = mlserver
    model = HttpModel(f"{url}/mixed/infer", protocol="v2", inputs="columns", labels="predict")
    assert model.predict(truth.rows) == truth.label_of_mixed
    assert model.predict(truth.rows.assign(job=truth.rows["job"].astype("category"))) == truth.label_of_mixed


def test_a_model_behind_mlserver_is_explained(mlserver: tuple[str, Truth]) -> None:
    url, truth = mlserver
    row = truth.rows.iloc[truth.label_of_mixed.index("bad")]
    model = HttpModel(f"{url}/mixed/infer", protocol="v2", inputs="columns")
    explanation = acex.explain(model, row, data=truth.rows, target="good", freeze=["age"], budget=15)
    assert explanation.outcome == "found"
    assert model.predict(explanation.counterfactuals) == ["good"]


def test_mlserver_is_well_again_after_a_wrong_shape(mlserver: tuple[str, Truth]) -> None:
    url, truth = mlserver
    model = HttpModel(f"{url}/numbers/infer", protocol="v2")
    with pytest.raises(ModelFailed, match="answered"):
        model.predict(np.zeros((2, 5)))
    assert model.predict(truth.numbers) == truth.label_of_numbers  # it resets a connection that is used again


def test_a_model_that_mlserver_does_not_have_costs_nothing(mlserver: tuple[str, Truth]) -> None:
    url, truth = mlserver
    with pytest.raises(ModelFailed, match="answered"):
        HttpModel(f"{url}/nobody/infer", protocol="v2").predict(truth.numbers)
