"""The exported script gives the same explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from commands import set_up as set_up_bank
from studios import begin, ended, same_elsewhere, visiting, workspace_of


def test_the_exported_script_gives_the_same_explanation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up_bank(tmp_path)
    given: dict[str, Any] = {"outcomes": "outcome", "drop": ["id"], "budget": 6, "seed": 3}
    workspace = workspace_of("loans.csv", "acex_test_bank:decide", **given)
    options: dict[str, Any] = {"target": ["good"], "freeze": ["age"], "ranges": {"income": [None, 3500]}}
    options |= {"values": {"job": ["clerk", "cook"]}, "weights": {"debt": 3}, "directions": {"income": "increase"}}
    typed = {"age": 30, "income": 900, "debt": 0.25, "job": "cook"}
    with visiting(workspace) as client:
        for row in ({"position": 0}, {"values": typed}):
            identity = begin(client, row, **options)["id"]
            ended(client, identity)
            same_elsewhere(client, identity)
