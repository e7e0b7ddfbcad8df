"""The tables of cost against queries."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks import earlier
from benchmarks.suites import anytime


def lines(J: dict[tuple[str, int, str], float], name: str = "kc2") -> pd.DataFrame:
    """Lines with the same J at every budget, by data set, row and method."""
    values = [
        {"data": data, "row": row, "method": method, "limit": 2.0, "queries": 20}
        | {f"J{b}": j for b in anytime.BUDGETS}
        for (data, row, method), j in J.items()
    ]
    return pd.DataFrame(values)


def test_ratios_are_to_the_least_of_all_methods_and_the_limit_and_none_found_is_infinite() -> None:
    values = {("kc2", 0, "feasible"): 4.0, ("kc2", 0, "nearest"): 1.0, ("kc2", 1, "feasible"): 6.0}
    values |= {("kc2", 1, "nearest"): 8.0, ("kc2", 2, "feasible"): np.inf, ("kc2", 2, "nearest"): 2.0}
    table = anytime.medians(anytime.with_best_known(lines(values), has_known=False)).set_index("method")
    assert table.loc["feasible", "@10"] == "4.00 (67%)"  # 4 / 1, 6 / 2, none
    assert table.loc["nearest", "@10"] == "1.00"  # 1 / 1, 8 / 2, 2 / 2


def test_a_method_that_is_always_dearer_is_behind() -> None:
    values = {("kc2", row, method): J for row in range(12) for method, J in (("feasible", 5.0), ("nearest", 2.5))}
    values |= {("kc2", row, "shuffled"): 5.0 for row in range(12)}
    against = anytime.behind(anytime.with_best_known(lines(values), has_known=False))
    assert against["@10"].tolist() == ["+0.69>", ""] and against["@15"].tolist() == ["+0.69>", "+0.00"]


def test_stated_chances_are_compared_with_how_often_it_was_so() -> None:
    values = anytime.with_best_known(lines({("kc2", row, "feasible"): 2.0 + row % 2 for row in range(200)}), False)
    stated = pd.DataFrame({"data": "kc2", "row": range(200), "J": [2.0 + row % 2 for row in range(200)]})
    stated = stated.assign(**{f"chance{s}": [0.2 + 0.6 * (row % 2) for row in range(200)] for s in (0.1, 0.25, 0.5)})
    table = anytime.calibration(values, stated)
    assert table["stated"].tolist() == ["0.20", "0.80"] * 3
    assert table["actual"].tolist() == ["0.00", "1.00", "0.00", "1.00", "0.00", "0.00"]  # 2 is a third below 3
    assert table["holds"].tolist() == ["no"] * 6


def test_chances_stated_along_one_search_are_not_independent() -> None:
    values = anytime.with_best_known(lines({("kc2", row, "feasible"): 2.0 for row in range(200)}), False)
    widths = []
    for n_rows in (200, 10):  # 200 cases of so many rows; something cheaper exists for every second row
        row = np.arange(200) % n_rows
        stated = pd.DataFrame({"data": "kc2", "row": row, "J": np.where(row % 2, 4.0, 2.0)})
        stated = stated.assign(**{f"chance{s}": 0.5 for s in (0.1, 0.25, 0.5)})
        low, high = map(float, anytime.calibration(values, stated)["95%"].iloc[0].split(" to "))
        widths.append(high - low)
    assert widths[1] > 2 * widths[0] > 0.2


def test_what_is_significantly_costlier_is_named_and_the_number_of_comparisons_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def measured(model: str, seed: int) -> pd.DataFrame:
        if (model, seed) not in (("forest", 0), ("svc", 0)):
            return pd.DataFrame(columns=["data", "method"])
        cheaper = {"forest": 0, "svc": 10}[model]  # of ten rows of blood; of kc2 always eight
        values = {("blood", row, "feasible"): 1.0 if row < cheaper else np.inf for row in range(10)}
        values |= {("kc2", row, "feasible"): 1.0 if row < 8 else 3.0 for row in range(10)}
        values |= {(name, row, "nearest-filter"): 2.0 for name in ("blood", "kc2") for row in range(10)}
        return anytime.with_best_known(lines(values), has_known=False)

    monkeypatch.setattr(anytime, "current", measured)
    table = anytime.worse_anywhere("feasible", "nearest-filter", (30,))
    # 8 to 2 has p = 0.11; 10 to 0 has p = 0.002, times the four comparisons 0.008.
    assert table.rows == [["30", "4", "1", "blood forest 0 (0 to 10)"]]
    medians = anytime.by_setting("feasible", {"others": {10: 1.0, 60: 1.0}, "kc2": {10: 0.9, 60: 1.0}})
    assert medians.header == ["data", "forest 0", "svc"]
    assert ["blood", "**inf** / **inf**", "1.00 / 1.00"] in medians.rows
    assert ["kc2", "**1.00** / 1.00", "**1.00** / 1.00"] in medians.rows


def test_the_curve_of_points_that_were_asked_is_their_least_cost_so_far() -> None:
    curve = anytime.best_so_far(np.array([np.inf, 5.0, 7.0, 3.0]), 6)
    assert curve.tolist() == [np.inf, np.inf, 5.0, 5.0, 3.0, 3.0, 3.0]


def test_0_1_0_is_measured_with_its_own_models_only_and_needs_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(earlier.FOLDER, "somewhere")
    assert earlier.why_not("forest") is None and "neighbours" in str(earlier.why_not("neighbours"))
    monkeypatch.delenv(earlier.FOLDER)
    assert earlier.FOLDER in str(earlier.why_not("forest"))
