"""Numbers as people write them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import acex
from acex import Continuous, Integer, Region, Space
from acex.space.grid import Grid, digits_of, step_of, with_digits, within_digits
from acex.space.schema import read_schema, schema_text, with_schema
from strategies import modest

RNG = np.random.default_rng(0)


@modest
@given(st.integers(-(10**6), 10**6), st.integers(1, 999), st.integers(0, 6))
def test_multiples_are_the_floats_that_their_digits_stand_for(k: int, top: int, decimals: int) -> None:
    step = float(Decimal(top).scaleb(-decimals))
    exact = float(Decimal(top).scaleb(-decimals) * k)
    assert Grid(step).at(k) == exact
    assert Grid(step).nearest(np.array([exact, exact + 0.4 * step])).tolist() == [exact, exact]
    assert float(Grid(step).text(exact)) == exact


@modest
@given(st.floats(-1e12, 1e12).filter(lambda v: v == 0 or abs(v) > 1e-12), st.integers(1, 14))
def test_digits_are_those_that_python_writes(value: float, digits: int) -> None:
    [rounded] = with_digits(np.array([value]), digits)
    assert (
        abs(rounded - float(f"{value:.{digits}g}")) <= 10.0 ** (1 - digits) * abs(value) * 1.0001
    )  # halves go either way
    assert len(f"{rounded:.15g}".replace("-", "").replace(".", "").split("e")[0].strip("0")) <= digits
    assert with_digits(np.array([rounded]), digits).tolist() == [rounded]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (RNG.integers(1, 7, 200).astype(float), 1.0),  # scores stored as floats
        (RNG.integers(0, 2, 200).astype(float), 1.0),
        (RNG.integers(0, 200, 300) * 50.0, 50.0),
        (RNG.integers(0, 200, 300) * 50, 50.0),
        (np.round(RNG.random(300), 3), 0.001),
        (np.round(RNG.random(300), 3).astype("float32"), 0.001),
        (RNG.integers(0, 40, 300) * 0.1 + 0.2, 0.1),  # computed: 0.30000000000000004
        (np.append(np.round(RNG.random(300) * 9, 2), [3.849999, 9.899999]), 0.01),
        (RNG.normal(size=300), 0.0),
        (RNG.normal(size=300).astype("float32"), 0.0),
        (np.append(np.zeros(300), RNG.normal(size=10)), 0.0),
        (np.array([1.5, 2.0]), 0.0),  # too few to tell
        (RNG.choice([0.0, 100.0], 200), 1.0),  # two values show no step
        (np.round(10 ** RNG.uniform(-12, 6, 300), 14), 0.0),
        (np.zeros(20), 1.0),
        (np.random.default_rng(7).normal(50, 15, 300) * 1e-12, 0.0),  # small is not nothing
    ],
)
def test_a_column_shows_the_step_in_which_it_comes(values: Any, step: float) -> None:
    assert step_of(pd.Series(values)) == pytest.approx(step, abs=0)
    assert step_of(pd.Series(values).astype("Float64" if values.dtype.kind == "f" else "Int64")) == step


@pytest.mark.parametrize("digits", [3, 4, 6])
def test_numbers_of_all_sizes_have_the_digits_of_their_column(digits: int) -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"dose": with_digits(10 ** rng.uniform(-4, 0, 300), digits), "x": rng.normal(size=300)})
    feature: Any = Space.infer(data).feature("dose")
    assert (feature.grid, feature.digits) == (0, digits)
    row = data[data["dose"] < 0.001].iloc[0]
    e = acex.explain(lambda rows: rows["dose"] > 0.1631, row, data, target=True, budget=12)
    asked = e.trace["dose"]
    assert_array_equal(asked, with_digits(asked.to_numpy(), digits))
    assert float(feature.text(e.counterfactual["dose"])) == e.counterfactual["dose"]


def test_a_few_round_numbers_show_no_digits() -> None:
    values = pd.Series([0.5, 0.125, 0.007, 1.25, 0.031, 0.256, 0.75, 0.018, 0.4, 12.5])
    feature: Any = Space.infer(pd.DataFrame({"x": values})).feature("x")
    assert (feature.grid, feature.digits) == (0.001, 0)


@pytest.mark.parametrize("seed", range(4))
def test_prices_in_cents_are_in_cents_though_most_have_five_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prices = rng.gamma(2.0, 200.0, 300).round(2)
    feature: Any = Space.infer(pd.DataFrame({"price": prices, "x": rng.normal(size=300)})).feature("price")
    assert (prices >= 1000).sum() >= 6 and (feature.grid, feature.digits) == (0.01, 0)


def test_a_column_without_a_step_shows_its_digits() -> None:
    values = 10 ** RNG.uniform(-9, 6, 300)
    assert digits_of(pd.Series(with_digits(values, 4))) == 4
    assert digits_of(pd.Series(values)) == 0
    assert digits_of(pd.Series(values.astype("float32"))) == 0
    space = Space.infer(pd.DataFrame({"dose": with_digits(values, 4)}))
    assert space.feature("dose") == Continuous("dose", *with_digits(np.sort(values)[[0, -1]], 4), digits=4)
    region = Region.of(space, space.low)
    X = region.snap(RNG.uniform(0, 1, (50, 1)) ** 9)
    assert_array_equal(X[:, 0], with_digits(X[:, 0], 4))
    assert region.contains(X).all()


LOANS = pd.DataFrame(
    {
        "loan": RNG.integers(1, 200, 300) * 50,
        "rate": np.round(RNG.uniform(0.01, 0.2, 300), 3),
        "score": RNG.integers(1, 7, 300).astype(float),
        "size": RNG.normal(size=300),
    }
)


def test_a_space_says_the_steps_it_took() -> None:
    space = Space.infer(LOANS)
    assert [f.grid for f in space.features] == [50, 0.001, 1, 0]
    assert "grid=0.001" in repr(space)
    assert type(space.feature("score")) is Continuous  # whole, while the column keeps its floats
    assert [f.grid for f in Space.infer(LOANS, grid=False).features] == [1, 0, 0, 0]
    assert [f.grid for f in Space.infer(LOANS, grid={"loan": 10, "rate": None}).features] == [10, 0, 1, 0]
    assert Space.from_dict(space.to_dict()) == space


def test_without_a_grid_a_feature_is_written_as_before_there_were_any() -> None:
    written = Space.infer(LOANS, grid=False).to_dict()["features"]
    assert not any("grid" in feature or "digits" in feature for feature in written)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"size": -1}, "'size': grid must be a step such as 50 or 0.001, got -1"),
        ({"size": "1"}, "'size': grid must be a step such as 50 or 0.001, got '1'"),
        ({"loan": 0.5}, "'loan': the grid of an integer: expected a whole number of at least 1, got 0.5"),
        ({"rate": 1e-30}, "'rate': a grid of 1e-30 is too fine"),
        ({"job": 1}, "'job' is not a feature"),
        (True, "grid takes a mapping"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(grid: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space.infer(LOANS, grid=grid)


def test_only_numbers_have_a_grid() -> None:
    with pytest.raises(ValueError, match="'job'"):
        Space.infer(pd.DataFrame({"job": ["cook", "clerk"]}), grid={"job": 1})


# -- where a search moves ------------------------------------------------------------------------------


def region_of(feature: Any, value: float, **options: Any) -> Region:
    return Region.of(Space((feature, Continuous("other", 0, 1))), np.array([value, 0.5]), **options)


def values_of(region: Region) -> list[float]:
    values = region.values(0)
    assert values is not None
    return [*map(float, values)]


def test_the_factual_s_own_value_stands_in_place_of_the_step_nearest_to_it() -> None:
    region = region_of(Continuous("a", 0, 1, grid=0.25), 0.3)
    assert values_of(region) == [0.0, 0.3, 0.5, 0.75, 1.0]
    moved = region.snap(np.array([[0.24, 0.5], [0.3, 0.5], [0.38, 0.5], [0.9, 0.5], [7.0, 0.5]]))
    assert moved[:, 0].tolist() == [0.3, 0.3, 0.5, 1.0, 1.0]
    assert region.space.decode(moved)["a"].tolist() == moved[:, 0].tolist()


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (0.7, {"direction": "increase"}, [0.7, 2.0, 3.0]),
        (0.4, {"direction": "increase"}, [0.4, 1.0, 2.0, 3.0]),
        (2.7, {"direction": "decrease"}, [0.0, 1.0, 2.0, 2.7]),
        (3.2, {}, [0.0, 1.0, 2.0, 3.2]),
    ],
)
def test_directions_and_ends_hold_on_a_grid(value: float, options: Any, expected: list[float]) -> None:
    assert values_of(region_of(Continuous("a", 0, 3.4, grid=1, **options), value)) == expected


def test_limits_hold_on_a_grid_and_make_it_finer_where_they_leave_nothing_of_it() -> None:
    feature = Integer("a", 0, 1000, grid=50)
    assert values_of(region_of(feature, 210, ranges={"a": (120, 320)})) == [150, 210, 250, 300]
    assert values_of(region_of(feature, 900, ranges={"a": (120, 320)})) == [150, 200, 250, 300]
    only = region_of(feature, 900, ranges={"a": (110, 120)})
    assert (only.low[0], only.high[0]) == (110, 120)
    assert only.snap(np.array([[113.2, 0.5]])).tolist() == [[113, 0.5]]


@st.composite
def gridded_regions(draw: Any) -> tuple[Region, np.ndarray]:
    dtype = draw(st.sampled_from(["float64", "float32", "Float64", "int64", "int16"]))
    is_float = "loat" in dtype
    step = draw(st.sampled_from([0.001, 0.05, 0.25, 1, 3, 50] if is_float else [2, 5, 50]))
    low, high = sorted(draw(st.tuples(st.integers(-90, 90), st.integers(-90, 90))))
    feature = (Continuous if is_float else Integer)("a", low, high, grid=step)
    data = pd.DataFrame({"a": pd.Series([low, high]).astype(dtype), "other": [0.0, 1.0]})
    space = Space((feature, Continuous("other", 0, 1))).like(data)
    factual = space.snap(np.array([[draw(st.floats(low, high)), 0.5]]))[0]
    ends = sorted(draw(st.tuples(st.floats(low, high), st.floats(low, high))))
    ranges: Any = {"a": ends} if draw(st.booleans()) else None
    try:
        region = Region.of(space, factual, ranges=ranges)
    except ValueError:  # no value lies within
        region = Region.of(space, factual)
    x = draw(st.lists(st.floats(low - 5, high + 5), min_size=1, max_size=8))
    return region, np.column_stack([x, np.full(len(x), 0.5)])


@modest
@given(gridded_regions())
def test_points_on_a_grid_stay_there_and_come_back_as_they_are(region_and_points: tuple[Region, np.ndarray]) -> None:
    region, X = region_and_points
    snapped = region.snap(X)
    assert_array_equal(region.snap(snapped), snapped)
    assert region.contains(snapped).all()
    assert_array_equal(region.space.encode(region.space.decode(snapped)), snapped)
    assert ((snapped[:, 0] >= region.low[0]) & (snapped[:, 0] <= region.high[0])).all()
    values = region.values(0)
    if values is not None:
        assert set(snapped[:, 0]) <= set(values.tolist())


# -- from end to end ----------------------------------------------------------------------------------


def model(rows: pd.DataFrame) -> Any:
    return np.where(rows["loan"] * rows["rate"] + rows["score"] * 100 > 800, "good", "bad")


@pytest.mark.parametrize("strategy", ["feasible", "penalty"])
def test_a_counterfactual_looks_like_a_row_of_the_data(strategy: str) -> None:
    bad = LOANS[model(LOANS) == "bad"].iloc[3]
    e = acex.explain(model, bad, data=LOANS, budget=25, strategy=strategy)
    assert e.outcome == "found"
    assert (e.trace["loan"] % 50 == 0).all() and (e.trace["score"] % 1 == 0).all()
    assert (e.trace["rate"] == e.trace["rate"].round(3)).all()
    assert e.counterfactuals.dtypes.tolist() == LOANS.dtypes.tolist()


def test_steps_can_be_set_or_turned_off_and_a_row_off_the_grid_keeps_its_value() -> None:
    bad = LOANS[model(LOANS) == "bad"].iloc[3]
    e = acex.explain(model, bad, data=LOANS, budget=15, space=acex.Space.infer(LOANS, grid={"rate": 0.01, "loan": 500}))
    others = e.trace.iloc[1:]
    moved = others["rate"] != bad["rate"]
    assert moved.any() and (others["rate"][moved] == others["rate"][moved].round(2)).all()
    free = acex.explain(model, bad, data=LOANS, budget=15, space=acex.Space.infer(LOANS, grid=False))
    assert (free.trace["rate"] != free.trace["rate"].round(3)).any()
    odd = acex.explain(model, {**bad, "rate": 0.12345, "score": 1.5}, data=LOANS, budget=15)
    assert odd.factual["rate"] == 0.12345 and odd.factual["score"] == 1.5
    assert set(odd.trace["rate"]) - {0.12345} <= set(np.round(odd.trace["rate"], 3))


def test_a_grid_can_be_written_in_a_schema(tmp_path: Path) -> None:
    space = Space.infer(LOANS)
    text = schema_text(space)
    assert '{ name = "loan", kind = "integer", range = [50, 9950], grid = 50 }' in text
    (tmp_path / "s.toml").write_text(text)
    assert with_schema(LOANS, read_schema(tmp_path / "s.toml"))[1] == space
    (tmp_path / "t.toml").write_text('features = [{ name = "rate", kind = "continuous" }]')
    assert with_schema(LOANS, read_schema(tmp_path / "t.toml"))[1].feature("rate").grid == 0  # only what it says


def test_values_on_a_grid_are_written_in_full() -> None:
    rate = Continuous("rate", 0, 100, grid=0.001)
    assert rate.texts(12.436, 12.5) == ("12.436", "12.5")
    assert rate.text(12.43612) == "12.44"  # not on it
    assert Integer("loan", 0, 10**6, grid=50).text(123450) == "123450"


@pytest.mark.parametrize("make", [lambda x: x.round(2), lambda x: with_digits(x, 4), np.round])
def test_a_few_longer_numbers_do_not_change_the_digits(make: Any) -> None:
    rng = np.random.default_rng(0)
    values = make(rng.lognormal(3, 1.5, 400))
    usual: Any = Space.infer(pd.DataFrame({"x": values})).feature("x")
    values[:8] = rng.lognormal(3, 1.5, 8)
    data = pd.DataFrame({"x": values, "y": rng.normal(size=400)})
    feature: Any = Space.infer(data).feature("x")
    assert (feature.grid, feature.digits) == (usual.grid, usual.digits) != (0, 0)
    e = acex.explain(lambda rows: rows["x"] > 30, data.iloc[data["x"].argmin()], data, target=True, budget=12)
    moved = e.trace["x"].to_numpy()[1:]
    own = data["x"].min()
    assert_array_equal(moved, np.where(moved == own, own, make(moved)))
    assert float(feature.text(e.counterfactual["x"])) == e.counterfactual["x"]


def test_what_is_shown_is_what_is_sent() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"z": rng.normal(size=300), "pressure": rng.normal(1013, 5, 300), "price": rng.lognormal(0, 3, 300)}
    )
    e = acex.explain(
        lambda rows: rows["z"] + rows["pressure"] / 5 > 204, data.iloc[data["z"].argmin()], data, target=True, budget=20
    )
    space = e.plan.space
    assert e.outcome == "found"
    for name, before, after in e.changes[["feature", "before", "after"]].itertuples(index=False):
        assert float(space.feature(name).texts(before, after)[1]) == after
    for name in space.names:
        own, feature = e.factual[name], space.feature(name)
        assert all(value == own or float(feature.text(value)) == value for value in e.trace[name][1:])


@modest
@given(st.integers(-(10**9), 10**9), st.integers(0, 10**6), st.integers(1, 8))
def test_ends_with_few_digits_lie_inside(start: int, width: int, digits: int) -> None:
    low, high = start / 1000, (start + width) / 1000
    first, last = within_digits(low, high, digits)
    inside = with_digits(np.linspace(low, high, 9), digits)
    inside = inside[(inside >= low) & (inside <= high)]
    if first <= last:
        assert low <= first and last <= high
        assert_array_equal(with_digits(np.array([first, last]), digits), [first, last])
    assert len(inside) == 0 or (first <= inside.min() and last >= inside.max())


def test_a_number_that_follows_from_others_is_shown_in_full() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3)).round(3)
    X[:, 2] = X[:, 0] * 0.1 + X[:, 1]
    e = acex.explain(lambda rows: rows[:, 2] > 1.5, X[0], X, target=True, budget=12)
    feature = e.plan.space.feature("x2")
    assert e.outcome == "found"
    assert float(feature.text(e.counterfactual["x2"])) == e.counterfactual["x2"]
