"""What a counterfactual is worth, against plain sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import acex
from acex import Explanation, Penalty
from acex.engine.reference import Reference

QUICK = Penalty(n0=5, sobol=64)


def data() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "size": rng.normal(0, 2, 60),
            "rooms": rng.integers(0, 9, 60),
            "colour": rng.choice(["red", "green", "blue"], 60),
        }
    )


def rule(rows: pd.DataFrame) -> Any:
    return rows["size"] + rows["rooms"] - 4 * (rows["colour"] == "red") > 4


def explain(**options: Any) -> Explanation:
    rows = data()
    x = rows[(~rule(rows)) & (rows["colour"] == "red")].iloc[0]
    return acex.explain(rule, x, data=rows, **{"budget": 15, "strategy": QUICK, **options})


@pytest.mark.parametrize("beta", [0.0, 5.0])
def test_measures_are_what_plain_sums_give(beta: float) -> None:
    e = explain(cost=acex.Cost(beta=beta, per_category=None))
    rows = data()
    shares = rows["colour"].value_counts(normalize=True)
    deviation = {
        "size": rows["size"].std(ddof=0),
        "rooms": rows["rooms"].std(ddof=0),
        "colour": math.sqrt((1 - (shares**2).sum()) / 2),
    }
    raw, scaled = [], []
    for name in rows.columns:
        before, after = e.factual[name], e.counterfactual[name]
        step = float(before != after) if name == "colour" else float(after - before)
        raw.append(step)
        scaled.append(step / deviation[name])
    m = e.measures()
    assert_allclose(m["d2"], math.hypot(*raw))
    assert_allclose(m["g1"], sum(abs(step) for step in raw))
    assert_allclose(m["d2n"], math.hypot(*scaled))
    assert_allclose(m["g1n"], sum(abs(step) for step in scaled))
    assert_allclose(m["cost"], m["d2n"] + beta * m["g1n"])
    assert m["n_changed"] == sum(step != 0 for step in raw) == len(e.changes)
    assert (m["queries"], m["validity"]) == (e.n_queries, 1.0)


def test_weights_are_in_the_cost_and_not_in_the_distances() -> None:
    plain = explain(freeze=["size", "colour"])
    weighted = explain(freeze=["size", "colour"], cost=acex.Cost(weights={"rooms": 3.0}))
    assert plain.counterfactual["rooms"] == weighted.counterfactual["rooms"]
    assert_allclose(weighted.measures()["cost"], 3 * plain.measures()["cost"])
    assert_allclose(weighted.measures()["d2n"], plain.measures()["d2n"])


def test_affinity_is_that_of_the_filter_and_one_without() -> None:
    e = explain()
    reference = Reference.of(data(), None, acex.Space.infer(data()), acex.Plausibility())
    density = reference.density("lof")
    assert density is not None
    assert_allclose(e.measures()["affinity"], density.affinity(reference.space.encode(e.counterfactuals))[0])
    assert explain(plausibility=None).measures()["affinity"] == 1.0


def test_without_a_counterfactual_there_is_nothing_to_measure() -> None:
    rows = data()
    e = acex.explain(lambda r: [0] * len(r), rows.iloc[0], data=rows, budget=4, strategy=QUICK)
    m = e.measures()
    assert (m.pop("queries"), m.pop("validity")) == (4.0, 0.0)
    assert all(math.isnan(value) for value in m.values())
    assert set(m) | {"queries", "validity"} == set(explain().measures())
