"""Known outcomes as trees can take them: many categories as shares of hits, huge numbers in units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from acex.search.hints import SHRINKAGE, _Columns
from acex.space.feature import MOST_ONE_HOT
from acex.space.kinds import Continuous, Nominal
from acex.space.space import Space


def test_each_of_many_categories_is_its_share_of_hits_drawn_towards_that_of_all() -> None:
    rng = np.random.default_rng(0)
    n = MOST_ONE_HOT + 1
    space = Space((Nominal("town", tuple(f"t{i}" for i in range(n))), Continuous("age", 0.0, 100.0)))
    reference = np.column_stack([rng.integers(n, size=400), rng.uniform(0, 100, 400)])
    is_hit = rng.random(400) < 0.3
    towns = pd.Series(is_hit).groupby(reference[:, 0]).agg(["sum", "size"]).reindex(range(n), fill_value=0)
    expected = (towns["sum"] + SHRINKAGE * is_hit.mean()) / (towns["size"] + SHRINKAGE)
    X = np.column_stack([np.arange(n), np.linspace(0, 100, n)])
    columns = _Columns(space, reference, is_hit)(X)
    assert_allclose(columns, np.column_stack([expected, X[:, 1]]))


@pytest.mark.parametrize("greatest", [1e20, 1e120])
def test_numbers_beyond_what_a_float32_knows_are_taken_in_units_that_it_knows(greatest: float) -> None:
    space = Space((Continuous("mass", -greatest, greatest),))
    X = greatest * np.linspace(-1, 1, 5)[:, None]
    columns = _Columns(space, X, np.array([True, False, True, False, True]))(X)
    assert np.isfinite(columns.astype(np.float32)).all()
    assert_allclose(columns / columns.max(), X / greatest)
