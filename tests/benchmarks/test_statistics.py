"""The statistics of the comparison against scipy and statsmodels, and failures in ranks and tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks import statistics


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 17), (50, 100), (99, 100), (7, 7)])
def test_wilson_interval_is_that_of_scipy(k: int, n: int) -> None:
    expected = stats.binomtest(k, n).proportion_ci(method="wilson")
    assert statistics.wilson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_bootstrap_of_single_rows_is_that_of_scipy() -> None:
    values = np.random.default_rng(3).exponential(size=60)
    expected = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=4000, rng=1).confidence_interval
    low, high = statistics.bootstrap(values, np.arange(60.0))
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.03)


def test_repeating_a_row_does_not_narrow_the_interval() -> None:
    values, rows = np.random.default_rng(3).normal(size=40), np.arange(40.0)
    once = statistics.bootstrap(values, rows)
    repeated = statistics.bootstrap(np.repeat(values, 10), np.repeat(rows, 10))
    assert repeated == pytest.approx(once)
    low, high = statistics.bootstrap(np.repeat(values, 10), np.arange(400.0))
    assert high - low < 0.5 * (once[1] - once[0])


def test_holm_by_hand() -> None:
    assert statistics.holm(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert statistics.holm(np.array([0.5, 0.9])).tolist() == [1.0, 1.0]


def test_holm_is_that_of_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(0).uniform(size=25) ** 3
    assert statistics.holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])


def test_failures_share_the_last_rank() -> None:
    J = pd.DataFrame({"a": [1.0, np.inf], "b": [np.inf, np.inf], "c": [np.inf, 2.0]})
    assert statistics.ranks(J).to_numpy().tolist() == [[1.0, 2.5, 2.5], [2.5, 2.5, 1.0]]


def test_sign_test_counts_failures_and_leaves_ties_out() -> None:
    ours = np.array([1.0, 2.0, np.inf, np.inf, 3.0, 1.0])
    theirs = np.array([2.0, np.inf, np.inf, 5.0, 3.0001, 2.0])
    less, more, p = statistics.sign_test(ours, theirs)
    assert (less, more) == (3, 1) and p == pytest.approx(stats.binomtest(3, 4).pvalue)
    assert statistics.sign_test(ours[:0], theirs[:0]) == (0, 0, 1.0)
