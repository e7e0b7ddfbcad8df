"""The examples run, say what they found, and leave something to look at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands import environment

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    saved = [word.rstrip(".,") for word in ran.stdout.split() if word.startswith("acex-example-")]
    for name in saved:
        assert (tmp_path / name).stat().st_size > 1000, name
    assert saved or "The bank's bill" in ran.stdout
