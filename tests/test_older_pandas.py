"""The oldest pandas that acex takes, 2.2: texts are objects there, and frames share what they hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import acex
from acex.space.space import dtype_from_json, dtype_to_json

ROOT = Path(__file__).parents[1]
TESTS = "space columns schema explainer recorded spreadsheets docs"


def test_texts_as_objects_and_as_texts_make_the_same_explanation() -> None:
    rows = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0], "job": ["clerk", "cook", "cook", "clerk"]})
    forms = rows, rows.astype({"job": object}), rows.astype({"job": "category"})
    names = [acex.Explainer(lambda x: x["income"] > 2, form).search(form.iloc[0]).identity for form in forms]
    assert names[0] == names[1] != names[2]


def test_categories_of_texts_are_written_down_the_same() -> None:
    as_objects = pd.CategoricalDtype(pd.Index(["low", "high"], dtype=object), ordered=True)
    as_texts = pd.CategoricalDtype(["low", "high"], ordered=True)
    assert dtype_to_json(as_objects) == dtype_to_json(as_texts)
    assert dtype_from_json(dtype_to_json(as_texts)) == as_texts
    assert dtype_from_json("str") == pd.Series(["text"]).dtype


@pytest.mark.slow
def test_acex_fits_beside_pandas_2_2_and_does_the_same_there(tmp_path: Path) -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    others = [line for line in constraints if not line.lower().startswith("pandas")]
    (tmp_path / "constraints.txt").write_text("\n".join(["pandas==2.2.*", *others]), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    wanted = (f"{ROOT}[http,files,postgres,dask,parquet]", "pytest", "hypothesis")
    install = [python, "-m", "pip", "install", "-q", "-c", str(tmp_path / "constraints.txt"), *wanted]
    installed = subprocess.run(install, capture_output=True, text=True)
    assert "conflicting dependencies" not in installed.stderr, installed.stderr
    if installed.returncode != 0:
        pytest.skip(f"packages cannot be installed here: {installed.stderr.strip().splitlines()[-1]}")
    # What was installed is tested, not the source beside the tests.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    files = [f"tests/test_{name}.py" for name in TESTS.split()]
    check, run = ("-m", "pip", "check"), ("-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    for words in (check, run):
        done = subprocess.run([python, *words], capture_output=True, text=True, cwd=ROOT, env=environment)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
