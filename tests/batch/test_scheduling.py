"""The order of work covers the table, and rows without a counterfactual get queries first."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import acex
from acex.batch.scheduling import Standing, next_allocation, order_of_work
from toys import POINTS, sums


@given(st.integers(1, 90), st.integers(1, 4), st.integers(0, 3))
def test_every_row_has_one_place_in_the_order(n: int, d: int, seed: int) -> None:
    Z = np.random.default_rng(seed).integers(0, 4, size=(n, d)).astype(float)  # with rows that are the same
    assert sorted(order_of_work(Z).tolist()) == list(range(n))


def test_the_first_rows_cover_all_the_others() -> None:
    rng = np.random.default_rng(0)
    centres = 20 * rng.normal(size=(8, 2))
    Z = np.repeat(centres, 40, axis=0) + rng.normal(size=(320, 2))
    order = order_of_work(Z)
    assert len({i // 40 for i in order[:8].tolist()}) == 8  # one of each cluster
    assert cdist(Z, Z[order[:8]]).min(axis=1).max() < cdist(Z, Z[:8]).min(axis=1).max()


def test_rows_without_a_counterfactual_get_more_first() -> None:
    explainer = acex.Explainer(sums, POINTS)
    low = POINTS[sums(POINTS) == 0]
    far, session = explainer.explain(low[0], budget=2), explainer.search(low[1], budget=40)
    session.box.budget = 30  # its share of a total budget
    near = session.run()
    assert near.outcome == "found"
    assert far.ending.expected_saving == np.inf
    assert near.cost is not None and 0 < near.ending.expected_saving < near.cost
    state = {i: Standing.of(near, 10, 12) for i in range(40)}
    state |= {50: Standing.of(far, 9, 12), 51: Standing(0)}
    allocation = next_allocation(state, budget=12)
    assert list(allocation.items())[:3] == [(51, 5), (50, 3), (0, 2)]
    assert len(allocation) == 10
