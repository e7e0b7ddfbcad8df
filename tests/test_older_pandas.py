"""The oldest pandas that acex takes, 2.2: texts are objects there, and frames share what they hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = "space columns schema explainer recorded spreadsheets docs"


@pytest.mark.slow
def test_acex_fits_beside_pandas_2_2_and_does_the_same_there(tmp_path: Path) -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    others = [line for line in constraints if not line.lower().startswith("pandas")]
    (tmp_path / "constraints.txt").write_text("\n".join(["pandas==2.2.*", *others]), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    wanted = (f"{ROOT}[http,files,postgres,dask,parquet,bench]", "pytest", "hypothesis")
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
