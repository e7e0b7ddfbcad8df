"""A server that fails by chance: what it charged is what the ledger says, and what it answered is not asked again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import acex
from servers import Unreliable, half, hang_up, raw, reset, says, serving

DATA = np.random.default_rng(0).normal(size=(60, 2)).round(3)
LOW = DATA[DATA[:, 0] < 0][:3]
FREE = [says(429, "busy"), says(503, "starting"), says(401, "who are you?"), says(404, "nobody here")]
SPOILT = [
    half,
    reset,
    hang_up,
    raw(b"what?\r\n"),
    says(500, "broken"),
    says(200, "<html>"),
    says(200, '{"labels": []}'),
]
BUDGET = 9


def keep_explaining(model: acex.HttpModel, path: Path, seed: int) -> tuple[acex.Explanation, int]:
    """The explanation that comes at last, and how many rows were paid for on the way."""
    paid = 0
    for _ in range(50):
        try:
            e = acex.explain(
                model,
                LOW[seed % 3],
                data=DATA,
                ledger=path,
                budget=BUDGET,
                queries_per_round=1 + seed % 4,
                target="yes",
            )
            return e, paid + e.n_queries
        except acex.ModelFailed as failure:
            paid += 0 if failure.explanation is None else failure.explanation.n_queries
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_server_does_the_bill_is_right(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acex.models.http.sleep", lambda seconds: None)
    path, fate = tmp_path / "ledger.db", Unreliable(seed, FREE, SPOILT)
    with serving(fate) as server:
        model = acex.HttpModel(
            server.url,
            protocol="json",
            request={"rows": "$rows"},
            labels="labels",
            rows_per_request=1 + seed % 2,
            retries=seed % 3,
        )
        e, paid = keep_explaining(model, path, seed)
    assert len(fate.bill) <= BUDGET
    assert set(Counter(fate.answered).values()) == {1}
    for row in fate.answered:  # the answer ended it
        assert max(i for i, other in enumerate(fate.bill) if other == row) == fate.places[row]
    with acex.Ledger(path) as ledger:
        stats = ledger.tables.models().iloc[0]
        assert stats["charged"] == len(fate.bill)
        assert len(ledger.answers(model.model_id)) == len(fate.answered)
    assert e.outcome in ("found", "budget_spent")
    assert paid <= len(fate.bill)
