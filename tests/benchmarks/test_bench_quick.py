"""`make bench-quick`: every method on two data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import score
from benchmarks.__main__ import main
from benchmarks.methods import METHODS
from benchmarks.suites import SUITES
from conftest import needs_data

pytestmark = [pytest.mark.slow, needs_data]


def test_all_methods_run_on_two_data_sets_within_a_cap(tmp_path: Path) -> None:
    options = ["--suite", "mixed", "--results", str(tmp_path), "--rows", "3", "--data", "diabetes,cmc"]
    main(["run", *options, "--cap", "2000"])
    lines = SUITES["mixed"].read(tmp_path)
    present = {name for name in SUITES["mixed"].methods if METHODS[name].missing() is None}
    assert set(lines["method"]) == present
    assert lines["queries"].max() <= 2000
    found = {(line["data"], line["method"]): line for line in score.means(lines).to_dict("records")}
    for data in ("diabetes", "cmc"):
        ours = found[data, "feasible"]
        assert ours["validity"] == 1.0
        # Orders of magnitude, not ranks: three rows are too few for more.
        for rival in present & {"growing-spheres", "baycon", "moc"}:
            assert found[data, rival]["queries"] > 5 * ours["queries"]
    main(["table", *options])
    main(["plot", *options])
