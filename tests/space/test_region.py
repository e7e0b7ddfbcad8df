"""What one factual may become."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal

from acex import Continuous, Integer, Nominal, Ordinal, Region, Space
from acex.arrays import FloatArray
from problems import PEOPLE
from strategies import modest, regions_with_points


@modest
@given(regions_with_points())
def test_snapped_points_are_in_the_region_and_stay_there(
    region_and_points: tuple[Region, FloatArray],
) -> None:
    region, X = region_and_points
    once = region.snap(X)
    assert region.contains(once).all()
    assert_array_equal(region.snap(once), once)
    # What a region holds, its space can write down.
    assert_array_equal(region.space.encode(region.space.decode(once)), once)


@modest
@given(regions_with_points())
def test_nothing_frozen_moves_and_directions_hold(region_and_points: tuple[Region, FloatArray]) -> None:
    region, X = region_and_points
    steps = region.snap(X) - region.factual
    for j, feature in enumerate(region.space.features):
        if feature.frozen:
            assert (steps[:, j] == 0).all()
        if feature.direction == "increase":
            assert (steps[:, j] >= 0).all()
        if feature.direction == "decrease":
            assert (steps[:, j] <= 0).all()


@modest
@given(regions_with_points())
def test_size_counts_the_points(region_and_points: tuple[Region, FloatArray]) -> None:
    region, _ = region_and_points
    values = [region.values(j) for j in range(len(region.space))]
    for j, listed in enumerate(values):
        if listed is not None:
            X = np.repeat(region.snap(region.factual), len(listed), axis=0)
            X[:, j] = listed
            assert region.contains(X).all()
    if all(v is not None for v in values):
        assert region.size == np.prod([float(len(v)) for v in values if v is not None])


def test_a_nominal_code_that_is_not_allowed_becomes_the_factuals() -> None:
    space = Space((Nominal("job", tuple("abcde")), Continuous("age", 0, 9)))
    factual = np.array([1.0, 5.0])
    everywhere = np.array([[code, 5.0] for code in range(5)])
    region = Region.of(space, factual, values={"job": ["a", "b", "d"]})
    assert region.snap(everywhere)[:, 0].tolist() == [0, 1, 1, 3, 1]
    region = Region.of(space, factual, values={"job": ["d", "c"]})  # the factual's own is not allowed
    assert region.snap(everywhere)[:, 0].tolist() == [2, 2, 2, 3, 2]


def test_zero_has_one_form() -> None:
    space = Space((Integer("n", -5, 5), Continuous("a", -5, 5)))
    assert not np.signbit(Region.of(space, np.ones(2)).snap(np.array([[-0.3, -0.0]]))).any()


def test_an_ordinal_code_that_is_not_allowed_becomes_the_nearest() -> None:
    space = Space((Ordinal("school", tuple("abcdef")),))
    region = Region.of(space, np.array([0.0]), values={"school": ["a", "e", "f"]})
    assert region.snap(np.arange(6.0)[:, None])[:, 0].tolist() == [0, 0, 0, 4, 4, 5]


def test_ranges_are_rounded_inwards() -> None:
    data = pd.DataFrame({"share": np.array([0.0, 1.0], dtype=np.float32), "n": [0, 10]})
    region = Region.of(Space.infer(data), np.array([0.75, 5.0]), ranges={"share": (0.7, 0.8), "n": (1.5, 7.5)})
    snapped = region.snap(np.array([[0.0, 0.0], [1.0, 10.0]]))
    assert float(np.float32(0.7)) < 0.7 and float(np.float32(0.8)) > 0.8  # the nearest would lie outside
    assert 0.7 <= snapped[0, 0] < 0.7 + 1e-7 and 0.8 - 1e-7 < snapped[1, 0] <= 0.8
    assert snapped[:, 1].tolist() == [2, 7]


def test_an_open_end_is_that_of_the_feature() -> None:
    region = Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), ranges={"age": (40, np.inf), "income": (-np.inf, 9)})
    assert region.low.tolist() == [40, 0, 0]
    assert region.high.tolist() == [99, 9, 1]


def test_a_frozen_feature_outside_its_range_leaves_nothing() -> None:
    x = np.array([30.0, 5.0, 0.0])
    limits: dict[str, Any] = {"age": {"ranges": {"age": (40, 50)}}, "job": {"values": {"job": ["clerk"]}}}
    for freeze, limit in limits.items():
        with pytest.raises(ValueError, match=f"'{freeze}': ranges and values allow .* it stays as it is; nothing"):
            Region.of(PEOPLE.adjust(freeze=[freeze]), x, **limit)
    with pytest.raises(ValueError, match="'age'"):
        Region.of(PEOPLE.adjust(directions={"age": "increase"}), x, ranges={"age": (18, 20)})


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"age": 5}, r"ranges\['age'\]: expected \(low, high\), got 5"),
        ({"age": "ab"}, r"ranges\['age'\]: expected \(low, high\)"),
        ({"age": "19"}, r"ranges\['age'\]: expected \(low, high\), got '19'"),
        ({"age": b"19"}, r"ranges\['age'\]: expected \(low, high\)"),
        ({"age": ("20", "30")}, r"ranges\['age'\]: expected \(low, high\), got \('20', '30'\)"),
        ({"age": {20, 30}}, r"ranges\['age'\]: expected \(low, high\)"),
        ({"age": {20: 1, 30: 2}}, r"ranges\['age'\]: expected \(low, high\)"),
        ({"age": (True, 30)}, r"ranges\['age'\]: expected \(low, high\)"),
        ({"age": (20, 30, 40)}, r"ranges\['age'\]: expected \(low, high\)"),
        ({"age": (50, 40)}, r"ranges\['age'\]: expected low <= high, got 50 and 40"),
        ({"age": (np.nan, 40)}, r"ranges\['age'\]: expected low <= high"),
        ({"age": (30.2, 30.8)}, r"ranges\['age'\]: no value of the feature lies within \(30.2, 30.8\)"),
        ({"age": (200, 300)}, r"ranges\['age'\]: no value of the feature lies within \(200, 300\)"),
        ({"age": [25, 33, 50]}, r"ranges\['age'\]: expected \(low, high\), got \[25, 33, 50\]; .* use values="),
        ({"job": ["cook"]}, r"ranges\['job'\]: .*, got \['cook'\]; for a list of allowed values use values="),
        ({"job": ("cook", "clerk")}, r"ranges\['job'\]: .* use values="),
        ({"jobs": ["cook"]}, "'jobs' is not a feature.*Did you mean 'job'"),
        ([("age", (1, 2))], "ranges takes a mapping"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(ranges: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), ranges=ranges)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"job": "cook"}, r"values\['job'\]: expected a list of allowed values, got 'cook'"),
        ({"age": 5}, r"values\['age'\]: expected a list of allowed values, got 5"),
        ({"age": {20: 1}}, r"values\['age'\]: expected a list of allowed values"),
        ({"job": ["cook", "pilot"]}, r"values\['job'\]: .*'pilot' is not known; there are 'cook'"),
        ({"job": []}, r"values\['job'\]: expected at least one value"),
        ({"age": ["old"]}, r"values\['age'\]: .* got 'old'"),
        ({"age": [20, 30.5]}, r"values\['age'\]: .*30.5 is not a whole number"),
        ({"age": [20, 300]}, r"values\['age'\]: 300 does not fit"),
        ({"age": [None]}, r"values\['age'\]: .* cannot be missing"),
        ({"shoe": [44]}, "'shoe' is not a feature"),
    ],
)
def test_values_that_make_no_sense_are_refused(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), values=values)


def test_a_number_takes_only_its_listed_values() -> None:
    x = np.array([30.0, 5.0, 0.0])
    region = Region.of(PEOPLE, x, values={"age": [50, 25, 30, 33]})
    everywhere = np.array([[age, 5.0, 0.0] for age in range(18, 99)])
    assert set(region.snap(everywhere)[:, 0]) == {25, 30, 33, 50}
    assert everywhere[region.contains(everywhere), 0].tolist() == [25, 30, 33, 50]
    assert_array_equal(region.values(0), [25, 30, 33, 50])
    two = Region.of(PEOPLE, x, values={"age": [18, 99]})  # both ends of the feature, and nothing between
    assert set(two.snap(everywhere)[:, 0]) == {18, 99}
    rising = Region.of(PEOPLE.adjust(directions={"age": "increase"}), x, values={"age": [25, 33, 50]})
    assert_array_equal(rising.values(0), [33, 50])


def test_values_beyond_the_data_widen_the_space_and_a_column_cannot_have_both_limits() -> None:
    assert PEOPLE.widened(values={"age": [25, 120]}).features[0].high == 120
    with pytest.raises(ValueError, match="'age'"):
        PEOPLE.widened({"age": (20, 30)}, {"age": [25]})


def test_several_functions_may_be_rules_beside_texts() -> None:
    rules = ["age >= 20", lambda rows: rows["age"] <= 40, lambda rows: rows["job"] == "cook"]
    region = Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), rules=rules)
    X = np.array([[19.0, 5.0, 0.0], [30.0, 5.0, 0.0], [41.0, 5.0, 0.0], [30.0, 5.0, 1.0]])
    assert region.contains(X).tolist() == [False, True, False, False]


def test_a_range_may_come_as_numbers_of_any_make() -> None:
    x = np.array([30.0, 5.0, 0.0])
    for wanted in (
        [20, 40.5],
        np.array([20, 40]),
        pd.Series([20, 40]),
        (np.float32(20), np.int8(40)),
        (Decimal(20), 40),
    ):
        region = Region.of(PEOPLE, x, ranges={"age": wanted})
        assert (region.low[0], region.high[0]) == (20, 40)


def test_allowed_categories_may_come_as_an_array_and_twice() -> None:
    x = np.array([30.0, 5.0, 0.0])
    for wanted in (np.array(["clerk", "clerk"]), pd.Series(["clerk"]), {"clerk"}):
        assert Region.of(PEOPLE, x, values={"job": wanted}).allowed[2].tolist() == [1]


def test_nothing_that_can_change_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="No feature can change"):
        Region.of(PEOPLE.adjust(freeze=PEOPLE.names), np.array([30.0, 5.0, 0.0]))
    with pytest.raises(ValueError, match="No feature can change"):
        Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), constant=np.array([True, True, True]))


def test_constant_features_stay() -> None:
    region = Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), constant=np.array([True, False, False]))
    assert region.movable.tolist() == [False, True, True]
    assert region.snap(np.array([[50.0, 7.0, 1.0]])).tolist() == [[30.0, 7.0, 1.0]]


def test_a_wide_integer_is_not_listed_value_by_value() -> None:
    region = Region.of(Space((Integer("n", 0, 2**40), Integer("m", 0, 3))), np.zeros(2))
    assert region.values(0) is None
    assert_array_equal(region.values(1), [0, 1, 2, 3])
    assert region.size == (2**40 + 1) * 4


def test_a_constraint_sees_rows_and_decides() -> None:
    seen = []

    def older_cooks(rows: pd.DataFrame) -> pd.Series[bool]:
        seen.append(rows)
        return (rows["age"] > 40) & (rows["job"] == "cook")

    region = Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), rules=older_cooks)
    X = np.array([[50.0, 5.0, 0.0], [50.0, 5.0, 1.0], [20.0, 5.0, 0.0], [500.0, 5.0, 0.0]])
    assert region.contains(X).tolist() == [True, False, False, False]
    assert list(seen[-1].columns) == PEOPLE.names
    assert seen[-1]["age"].max() == 50  # what lies outside the region is not shown to it


@pytest.mark.parametrize("dtype", ["Int64", "Float64"])
def test_a_constraint_may_answer_in_pandas_own_booleans(dtype: str) -> None:
    space = Space.infer(pd.DataFrame({"a": pd.array([1, 5], dtype=dtype)}))  # type: ignore[call-overload]
    region = Region.of(space, np.array([1.0]), rules=[lambda rows: rows["a"] > 2])
    assert region.contains(np.array([[1.0], [3.0]])).tolist() == [False, True]


@pytest.mark.parametrize("answer", [True, [True, True], np.ones(1), [[True]], None, ["yes"]])
def test_a_constraint_of_the_wrong_shape_is_refused_before_the_search(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"rules: .*function"):
        Region.of(PEOPLE, np.array([30.0, 5.0, 0.0]), rules=[lambda rows: answer])
