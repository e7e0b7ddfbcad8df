"""Helpers for arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info

from acex.arrays import one_blas_thread, row_wise_advice, sampled, unique_rows


@given(st.integers(0, 30), st.integers(1, 4), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_unique_rows_are_those_of_numpy(n: int, d: int, seed: int) -> None:
    X = np.random.default_rng(seed).integers(-1, 2, (n, d)).astype(float)
    assert_array_equal(unique_rows(X), np.unique(X, axis=0))


def test_a_sample_has_rows_of_the_table_without_repeats_and_is_always_the_same() -> None:
    X = np.arange(200.0).reshape(100, 2)
    assert_array_equal(sampled(X, 100), X)
    some = sampled(X, 10)
    assert len(np.unique(some, axis=0)) == 10 and np.isin(some, X).all()
    assert_array_equal(some, sampled(X, 10))
    assert not np.array_equal(some, sampled(X, 10, seed=1))


@pytest.mark.parametrize("function", [lambda rows: rows["a"] > 3 and rows["a"] < 9, lambda rows: float(rows["a"])])
def test_a_function_of_one_row_gets_advice(function) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((TypeError, ValueError)) as caught:
        function(pd.DataFrame({"a": [1.0, 5.0]}))
    assert "iterrows" in row_wise_advice(caught.value)
    assert row_wise_advice(ValueError("out of order")) == ""


def test_one_thread_inside_and_as_before_outside() -> None:
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    with one_blas_thread():
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
    assert [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"] == before
