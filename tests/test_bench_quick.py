"""`make bench-quick`: every method on two data sets, as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
from acex.bench import records, score
from acex.bench.methods import METHODS

from commands import run as command
from conftest import needs_data

pytestmark = [pytest.mark.slow, needs_data]


def test_all_methods_run_on_two_data_sets_within_a_cap(tmp_path: Path) -> None:
    out = tmp_path / "results"
    line = ("bench", "run", "--data", "diabetes,cmc", "--rows", "3", "--cap", "2000", "--out", str(out))
    assert command(*line).exit_code == 0
    results = score.frame(records.read(out))
    present = {name for name, method in METHODS.items() if method.missing() is None}
    assert set(results["method"]) == present and results["error"].isna().all()
    assert results["queries"].max() <= 2000
    found = {(line["data"], line["method"]): line for line in score.means(results).to_dict("records")}
    for data in ("diabetes", "cmc"):
        ours = found[data, "feasible"]
        assert ours["validity"] == 1.0
        # Orders of magnitude, not ranks: three rows are too few for more.
        for rival in present & {"growing-spheres", "baycon", "moc"}:
            assert found[data, rival]["queries"] > 5 * ours["queries"]
    assert command("bench", "table", str(out)).exit_code == 0
    assert command("bench", "plot", str(out)).exit_code == 0
