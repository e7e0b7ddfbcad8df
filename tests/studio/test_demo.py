"""The demonstration."""

from __future__ import annotations

from pathlib import Path

import acex
from acex.studio.demo import PYTHON as DEMO_PYTHON
from acex.studio.demo import demo_workspace
from studios import begin, ended, visiting


def test_the_demonstration_needs_nothing(tmp_path: Path) -> None:
    workspace = demo_workspace(acex.Ledger(tmp_path / "demo.db"))
    with visiting(workspace) as client:
        identity = begin(client, {"position": 17}, budget=4)["id"]
        result = ended(client, identity)
        code = client.get(f"/api/searches/{identity}/exports/code").json()
    assert result["state"] == "ended" and result["explanation"]["before"] == "rejected"
    assert code["python"].startswith(DEMO_PYTHON)
