"""The file of curves that benchmarks/anytime.py keeps."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
anytime = pytest.importorskip("anytime")


def test_a_run_of_some_data_sets_leaves_the_lines_of_the_others_alone(tmp_path: Path) -> None:
    path = tmp_path / "results" / "anytime.csv"
    for J in (2.0, 3.0):
        for name in ("blood", "kc2") if J == 2.0 else ("kc2",):
            curves = np.array([[np.inf, np.inf, J]])
            anytime.update(path, anytime.curve_frame(name, "feasible", curves, np.ones(1), np.ones(1)))
    lines = pd.read_csv(path).set_index(["data", "queries"])
    assert lines.loc[("blood", 2), "mean_J"] == 2.0 and lines.loc[("kc2", 2), "mean_J"] == 3.0
    assert len(lines) == 4


def test_a_line_has_the_share_of_rows_with_a_hit_and_ratios_to_the_best_known() -> None:
    curves = np.array([[np.inf, np.inf, 4.0], [np.inf, 6.0, 3.0], [np.inf, np.inf, 9.0]])
    lines = anytime.curve_frame("kc2", "feasible", curves, np.array([2.0, 3.0, 3.0]), np.array([1.0, 3.0, 3.0]))
    first, second = lines.to_dict("records")
    assert (first["found"], first["mean_J"], first["median_ratio"]) == (pytest.approx(1 / 3), 6.0, np.inf)
    assert (second["found"], second["mean_J"]) == (1.0, pytest.approx(16 / 3))
    assert (second["median_ratio"], second["any_ratio"]) == (2.0, 3.0)
