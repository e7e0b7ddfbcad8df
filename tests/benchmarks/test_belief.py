"""The suite that measures candidates and belief of strategy "feasible"."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks.belief.simulated import TEST, Case, Kind, task
from benchmarks.suite import Job
from benchmarks.suites import belief
from benchmarks.suites.belief import BINS, area_under_curve, binned


def asks(n: int = 4) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [(rng.random(60), rng.random(60) < 0.4) for _ in range(n)]


def test_the_area_is_that_of_scikit_learn_and_unknown_without_hits_or_misses() -> None:
    for p_hit, hits in asks():
        assert area_under_curve(p_hit, hits) == pytest.approx(roc_auc_score(hits, p_hit))
    assert area_under_curve(np.ones(3), np.ones(3, dtype=bool)) is None


def test_bins_add_up_to_all_candidates_and_their_log_loss() -> None:
    lines = pd.DataFrame(binned(asks()))
    p, hits = (np.concatenate(part) for part in zip(*asks(), strict=True))
    assert lines["n"].sum() == len(p) and lines["hits"].sum() == hits.sum()
    assert (lines["loss"] * lines["n"]).sum() / len(p) == pytest.approx(log_loss(hits, p))
    assert ((lines["p_hit"] >= lines["bin"]) & (lines["bin"].isin(BINS))).all()
    assert binned([]) == []


def test_stated_odds_come_with_the_least_cost_known() -> None:
    lines = pd.DataFrame(belief.measure_outlook(Job("usual", "none", 2, 2)))
    assert lines["queries"].is_monotonic_increasing and lines["J"].is_monotonic_decreasing
    assert (lines["least"] <= lines["J"]).all() and lines["least"].nunique() == 1
    assert (lines["chance0.1"] >= lines["chance0.25"]).all() and (lines["chance0.25"] >= lines["chance0.5"]).all()
    [*_, last] = belief.outlook_tables(lines.assign(data="usual", method="none", row=2))["calibration"].rows
    assert last[1] == str(len(lines))


def test_tables_compare_costs_with_the_least_of_a_row_and_with_searches_without_groups() -> None:
    search = {"phase": "search", "least": 1.0, "J15": 4.0, "J30": 2.0, "J60": 1.0, "changes": 3, "least_changes": 2}
    lines = [
        {"data": "wide", "method": method, "row": row, "columns": 70, **search}
        for method in ("ceiling", "none", "no groups")
        for row in (0, 1)
    ]
    lines[0] = lines[0] | {"J60": 0.5, "least": 0.5}
    lines[4] = lines[4] | {"J15": 4.0 * np.e**2, "changes": 8}
    lines += [
        {"data": "wide", "method": "none", "row": 0, "columns": 70, "phase": "after", **b} for b in binned(asks())
    ]
    tables = belief.tables(pd.DataFrame(lines))
    costs = {(row[0], row[1]): row[3:] for row in tables["costs"].rows}
    assert costs["wide", "none"] == ["5.66", "2.83", "1.41"]  # the geometric mean of 8 and 4, ...
    assert tables["quality"].rows[0][2:4] == ["after", "240"]
    assert tables["groups"].rows == [
        ["wide", "2", "-0.92 (0.92)", "+0.00 (0.00)", "+0.00 (0.00)", "3.0 instead of 5.5"]
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_kinds_of_simulated_tasks_are_what_they_are_called() -> None:
    def cases(kind: Kind) -> list[Case]:
        return [task(TEST + seed, 1, kind)[0] for seed in (1, 2, 4)]

    def agreement(kind: Kind) -> float:
        of = [(case.is_hit(case.problem.reference) == case.outcomes).mean() for case in cases(kind)]
        return float(np.mean(of))

    # A forest with single rows in its leaves knows the outcomes of the rows that it has seen, random ones included.
    assert agreement(Kind((3, 8), noisy=True)) > 0.97 > 0.9 > agreement(Kind((3, 8), noisy=True, apart=True))
    for case in cases(Kind((30, 40), rare=True)):
        share = case.outcomes.mean()
        assert 30 <= len(case.problem.factual) <= 40 and min(share, 1 - share) <= 0.1
