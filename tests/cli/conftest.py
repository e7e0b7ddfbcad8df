"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import set_up


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a folder with loans.csv and a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up(tmp_path)
