"""Rows and points, and what one factual may become."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

from acex import Continuous, Integer, Nominal, Ordinal, Space
from acex.space import FloatArray, Region
from strategies import arrays, frames, modest, regions_with_points, spaces, spaces_with_points

# -- rows to points and back, for any space -----------------------------------------------------------


@modest
@given(frames())
def test_rows_of_a_frame_come_back_with_values_and_dtypes(rows: pd.DataFrame) -> None:
    space = Space.infer(rows)
    assert_frame_equal(space.decode(space.encode(rows)), rows, check_exact=True)


@modest
@given(arrays())
def test_rows_of_an_array_come_back_with_values_and_dtype(rows: Any) -> None:
    space = Space.infer(rows)
    back = space.decode(space.encode(rows))
    assert back.dtype == rows.dtype
    assert back.tolist() == rows.tolist()


@modest
@given(frames())
def test_one_row_in_any_form_is_the_same_point(rows: pd.DataFrame) -> None:
    space = Space.infer(rows)
    row = rows.iloc[0]
    as_dict = dict(zip(rows.columns, [rows[c].tolist()[0] for c in rows.columns], strict=True))
    expected = space.encode(rows)[:1]
    for form in (row, as_dict, [as_dict], rows.iloc[:1], row[::-1], rows.iloc[:1, ::-1]):
        assert_array_equal(space.encode(form), expected)


@modest
@given(spaces_with_points())
def test_a_point_comes_back_snapped(space_and_points: tuple[Space, FloatArray]) -> None:
    space, X = space_and_points
    assert_array_equal(space.encode(space.decode(X)), space.snap(X))


@modest
@given(spaces_with_points())
def test_snapping_twice_changes_nothing_and_stays_in_range(
    space_and_points: tuple[Space, FloatArray],
) -> None:
    space, X = space_and_points
    once = space.snap(X)
    assert_array_equal(space.snap(once), once)
    assert ((once >= space.low) & (once <= space.high)).all()


@modest
@given(spaces_with_points())
def test_snapping_moves_no_value_further_than_needed(space_and_points: tuple[Space, FloatArray]) -> None:
    space, X = space_and_points
    inside = np.clip(X, space.low, space.high)
    # Half a step of an integer, and of a float16 between 1024 and 2048.
    assert (np.abs(space.snap(X) - inside) <= 0.5).all()


@modest
@given(spaces())
def test_a_space_comes_back_from_json(space: Space) -> None:
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space


def test_an_encoded_row_of_a_float32_column_is_what_the_column_holds() -> None:
    data = pd.DataFrame({"share": np.array([0.1, 0.9], dtype=np.float32)})
    space = Space.infer(data)
    # 0.1 as people write it lies below the least float32 of the data: it is the same value all the same.
    assert_array_equal(space.encode({"share": 0.1}), space.encode(data.iloc[:1]))


def test_a_declared_end_holds_in_float32_too() -> None:
    data = pd.DataFrame({"share": np.array([0.1, 0.02], dtype=np.float32)})
    space = Space((Continuous("share", 0.0, 0.1),)).like(data)
    assert_array_equal(space.encode(data), data.to_numpy(dtype=float))


def test_integers_beyond_the_dtype_are_not_wrapped_round() -> None:
    space = Space.infer(pd.DataFrame({"n": np.array([0, 100], dtype=np.int8)})).widened({"n": (-1000, 1000)})
    assert space.decode(np.array([[1000.0], [-1000.0]]))["n"].tolist() == [127, -128]


def test_integers_in_a_float32_array_are_those_it_can_hold() -> None:
    data = np.array([[1.0], [2.0]], dtype=np.float32)
    space = Space((Integer("n", 0, 2**30),)).like(data)
    X = np.array([[2.0**24 + 1]])
    assert_array_equal(space.encode(space.decode(X)), space.snap(X))


def test_encoding_leaves_the_rows_alone() -> None:
    rows = pd.DataFrame([[1.0, "a"], [2.0, "b"]])
    before = rows.copy(deep=True)
    Space((Continuous("size", 0, 5), Nominal("kind", ("a", "b")))).encode(rows)
    assert_frame_equal(rows, before)


# -- inferring ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1.5, 2.0]), Continuous("c", 1.5, 2.0)),
        (pd.Series([1.5, 2.0], dtype="float32"), Continuous("c", 1.5, 2.0)),
        (pd.Series([1.5, 2.0], dtype="Float64"), Continuous("c", 1.5, 2.0)),
        (pd.Series([3, -1]), Integer("c", -1, 3)),
        (pd.Series([3, -1], dtype="int8"), Integer("c", -1, 3)),
        (pd.Series([3, 1], dtype="uint8"), Integer("c", 1, 3)),
        (pd.Series([3, 1], dtype="Int64"), Integer("c", 1, 3)),
        (pd.Series([3, 1], dtype=object), Integer("c", 1, 3)),
        (pd.Series([3, 1.5], dtype=object), Continuous("c", 1.5, 3.0)),
        (pd.Series(["b", "a"]), Nominal("c", ("a", "b"))),
        (pd.Series(["b", "a"], dtype=object), Nominal("c", ("a", "b"))),
        (pd.Series(["b", "a"], dtype="string"), Nominal("c", ("a", "b"))),
        (pd.Series([True, True]), Nominal("c", (False, True))),
        (pd.Series([True, True], dtype="boolean"), Nominal("c", (False, True))),
        (pd.Series([np.True_, np.False_], dtype=object), Nominal("c", (False, True))),
        (pd.Series(pd.Categorical(["b"], ["b", "a", "z"])), Nominal("c", ("b", "a", "z"))),
        (pd.Series(pd.Categorical(["b"], ["b", "a"], ordered=True)), Ordinal("c", ("b", "a"))),
        (pd.Series(pd.Categorical([2, 1])), Nominal("c", (1, 2))),
    ],
)
def test_kinds_come_from_dtypes(column: pd.Series[Any], expected: Any) -> None:
    [feature] = Space.infer(pd.DataFrame({"c": column})).features
    assert feature == expected
    assert type(feature) is type(expected)


def test_columns_of_an_array_are_called_by_number() -> None:
    space = Space.infer(np.array([[1, "a", 0.5], [2, "b", 0.7]], dtype=object), freeze=[2])
    assert space.names == ["x0", "x1", "x2"]
    assert [type(f) for f in space.features] == [Integer, Nominal, Continuous]
    assert [f.frozen for f in space.features] == [False, False, True]


def test_columns_named_by_numbers_and_tuples_are_found_by_their_label() -> None:
    data = pd.DataFrame([[1, 2, 3]], columns=pd.Index([7, ("a", "b"), ""]))
    space = Space.infer(data)
    assert space.names == ["7", "('a', 'b')", ""]
    assert [space.index(label) for label in (7, ("a", "b"), "", "7")] == [0, 1, 2, 0]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 is not a feature"):
        space.index(0)  # a frame's columns are known by label, not by position


def test_ints_at_the_edge_of_exact_floats_are_inferred_and_one_beyond_is_refused() -> None:
    edge = 2**53
    space = Space.infer(pd.DataFrame({"id": [0, edge]}))
    assert space.decode(space.encode({"id": edge}))["id"].tolist() == [edge]
    with pytest.raises(ValueError, match=r"'id'.*2\*\*53.*rescale"):
        Space.infer(pd.DataFrame({"id": [0, edge + 1]}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, None], "'c': 1 of 2 values are missing .first in row 1"),
        (pd.array([1, None], dtype="Int64"), "'c': 1 of 2 values are missing"),
        (["a", None], "'c': 1 of 2 values are missing"),
        (pd.Categorical(["a", None]), "'c': 1 of 2 values are missing"),
        ([1.0, np.inf], "'c': holds an infinite value, inf"),
        ([1.0, -np.inf], "'c': holds an infinite value, -inf"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "'c': holds dates or times .datetime64"),
        (pd.to_timedelta([1, 2]), "'c': holds dates or times .timedelta64"),
        (pd.period_range("2020", periods=2, freq="D"), "'c': holds dates or times .period"),
        ([1, "a"], r"'c': expected numbers only or texts only, got 1 \(int\), 'a' \(str\)"),
        ([1j, 2j], "'c': expected numbers only or texts only"),
        ([[1], [2]], "'c': expected numbers only or texts only"),
        ([1e200, 1.0], "'c': numbers beyond .* are too large; rescale"),
    ],
)
def test_a_column_that_is_no_feature_is_named(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space.infer(pd.DataFrame({"c": pd.Series(column)}))


def test_a_column_of_identifiers_is_refused() -> None:
    names = [f"person {i}" for i in range(150)]
    with pytest.raises(ValueError, match="'who': 150 different texts in 150 rows look like an identifier"):
        Space.infer(pd.DataFrame({"who": names}))


@pytest.mark.parametrize("labels", [["a", "a"], [1, "1"]])
def test_columns_of_the_same_name_are_refused(labels: list[Any]) -> None:
    with pytest.raises(ValueError, match="names must differ"):
        Space.infer(pd.DataFrame([[1, 2]], columns=labels))


@pytest.mark.parametrize("data", [pd.DataFrame({"a": []}), pd.DataFrame(index=[0]), np.empty((0, 2))])
def test_empty_data_are_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="data is empty: expected rows and columns, got the shape"):
        Space.infer(data)


@pytest.mark.parametrize("data", [pd.Series([1, 2]), np.arange(3), [{"a": 1}], None, np.zeros((2, 2, 2))])
def test_data_are_a_frame_or_an_array_of_two_dimensions(data: Any) -> None:
    with pytest.raises(ValueError, match="data must be a DataFrame or a 2-D array"):
        Space.infer(data)


# -- declaring ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "options", "message"),
    [
        (Continuous, (2, 1), {}, "'a': expected finite low <= high, got 2 and 1"),
        (Continuous, (0, np.inf), {}, "'a': expected finite low <= high, got 0 and inf"),
        (Continuous, ("0", 1), {}, "'a': expected finite low <= high, got '0' and 1"),
        (Continuous, (0, 10**400), {}, "'a': numbers beyond .* are too large"),
        (Integer, (0.5, 2), {}, "'a': an integer's range must be whole, got 0.5"),
        (Nominal, ((),), {}, "'a': expected at least one category"),
        (Nominal, (("x", "x"),), {}, "'a': a category appears twice in 'x', 'x'"),
        (Nominal, ("xyz",), {}, "'a': expected a list of categories, got 'xyz'"),
        (Nominal, ((float("nan"), "x"),), {}, "'a': nan cannot be a category"),
        (Nominal, (([1], "x"),), {}, r"'a': \[1\] cannot be a category"),
        (Nominal, (("x", "y"),), {"direction": "increase"}, "'a': a nominal feature has no order"),
        (Ordinal, (("x", "y"),), {"direction": "up"}, "'a': direction 'up' is neither 'increase' nor"),
        (Continuous, (0, 1), {"weight": 0}, "'a': weight must be a positive number, got 0"),
        (Continuous, (0, 1), {"weight": "1"}, "'a': weight must be a positive number, got '1'"),
        (Continuous, (0, 1), {"weight": np.nan}, "'a': weight must be a positive number, got nan"),
    ],
)
def test_a_feature_that_makes_no_sense_is_refused(
    kind: Any, values: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind("a", *values, **options)


def test_a_space_needs_features_of_different_names() -> None:
    with pytest.raises(ValueError, match="at least one feature"):
        Space(())
    with pytest.raises(ValueError, match="names must differ, got 'a', 'a'"):
        Space((Continuous("a", 0, 1), Integer("a", 0, 1)))


def test_a_space_is_made_of_features() -> None:
    with pytest.raises(TypeError, match=r"expected features such as .* got 'age'"):
        Space(("age",))  # type: ignore[arg-type]


def test_features_take_numbers_and_names_of_any_make_and_hold_plain_ones() -> None:
    space = Space(
        (
            Continuous(5, np.float32(0.5), np.int64(2)),  # type: ignore[arg-type]
            Integer("n", 0.0, np.int8(4)),  # type: ignore[arg-type]
            Nominal("c", np.array([1, 2]), weight=np.float64(2)),  # type: ignore[arg-type]
        )
    )
    assert space.names == ["5", "n", "c"]
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space


@pytest.mark.parametrize(
    ("feature", "column", "message"),
    [
        (Continuous("c", 0, 9), [1, 2], "'c': declared Continuous, but the column in data is int64.*Integer"),
        (Continuous("c", 0, 9), [True, False], "'c': declared Continuous, but .* bool.*Nominal"),
        (Integer("c", 0, 9), pd.Categorical([1, 2]), "'c': declared Integer, but .* category"),
        (Integer("c", 0, 9), ["1", "2"], "'c': declared Integer, but .* str"),
        (Nominal("c", ("x", "y")), pd.Categorical(["x", "x"]), "'c': 'y' has no place in the column"),
        (Nominal("c", (1, 2.5)), [1, 1], "'c': 2.5 has no place in the column in data, which is int64"),
        (Ordinal("c", (1, 300)), np.array([1, 1], dtype=np.int8), "'c': 300 has no place .* int8"),
    ],
)
def test_a_column_that_cannot_hold_its_feature_is_refused(feature: Any, column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space((feature,)).like(pd.DataFrame({"c": column}))


def test_an_array_that_cannot_hold_the_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="'c': declared Continuous, but the column in data is int64"):
        Space((Continuous("c", 0, 9),)).like(np.array([[1], [2]]))
    with pytest.raises(ValueError, match="'c': 'long' has no place"):
        Space((Nominal("c", ("a", "long")),)).like(np.array([["a"], ["a"]]))
    with pytest.raises(ValueError, match="data has 2 columns, the space 1 features"):
        Space((Continuous("c", 0, 9),)).like(np.zeros((3, 2)))


def test_a_declared_integer_may_stand_in_a_float_column() -> None:
    data = pd.DataFrame({"n": [1.0, 2.0]})
    rows = Space((Integer("n", 0, 5),)).like(data).decode(np.array([[2.7]]))
    assert_frame_equal(rows, pd.DataFrame({"n": [3.0]}))


def test_categories_of_mixed_types_can_be_declared() -> None:
    data = pd.DataFrame({"c": pd.Series([1, "a", 2.5, (3, "b")], dtype=object)})
    space = Space((Nominal("c", (1, "a", 2.5, (3, "b"))),)).like(data)
    assert_array_equal(space.encode(data)[:, 0], [0, 1, 2, 3])
    assert space.decode(space.encode(data))["c"].tolist() == data["c"].tolist()


def test_intervals_become_text_in_json() -> None:
    data = pd.DataFrame({"age": pd.cut([1, 5, 9], 3)})
    space = Space.infer(data)
    assert isinstance(space.features[0], Ordinal)
    back = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    texts = data.astype(str).astype(pd.CategoricalDtype([str(c) for c in data["age"].cat.categories], True))
    assert_array_equal(back.encode(texts), space.encode(data))


# -- encoding what does not fit ------------------------------------------------------------------------

PEOPLE = Space((Integer("age", 18, 99), Continuous("income", 0, 1e6), Nominal("job", ("cook", "clerk"))))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": 30, "income": 5.0}, "the row: missing 'job'; expected the columns 'age', 'income', 'job'"),
        ({"age": 30, "income": 5.0, "job": "cook", "zip": 1}, "the row: unknown column 'zip'; expected only"),
        (
            {"age": 30, "income": 5.0, "job": "pilot"},
            "'job': 'pilot' is not a known category; there are 'cook'",
        ),
        ({"age": 30, "income": 5.0, "job": ["cook"]}, r"'job': \['cook'\] is not a known category"),
        ({"age": 30, "income": 5.0, "job": None}, "'job': the value is missing, got None"),
        ({"age": 30, "income": np.nan, "job": "cook"}, "'income': the value is missing, got nan"),
        ({"age": 30, "income": np.inf, "job": "cook"}, "'income': inf is not finite"),
        ({"age": 30.5, "income": 5.0, "job": "cook"}, "'age': 30.5 is not a whole number"),
        ({"age": 100, "income": 5.0, "job": "cook"}, "'age': 100 is outside 18 to 99.*ranges="),
        ({"age": "30", "income": 5.0, "job": "cook"}, "'age': expected a number, got '30'"),
        (
            {"age": pd.Timestamp("2020"), "income": 5.0, "job": "cook"},
            "'age': expected a number, got Timestamp",
        ),
        ([30, 5.0], "the row: expected 3 values .'age', 'income', 'job'., got 2"),
        (pd.Series([30, 5.0, "cook", 31], index=["age", "income", "job", "age"]), "column names must differ"),
        (np.zeros((1, 1, 3)), "Expected a DataFrame, a Series, a mapping or a 2-D array, got ndarray of 3"),
    ],
)
def test_a_row_that_does_not_fit_says_what_was_expected(row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PEOPLE.encode(row)


def test_the_first_of_many_bad_values_is_named() -> None:
    rows = pd.DataFrame({"age": [30, 17, 16], "income": 5.0, "job": "cook"})
    with pytest.raises(ValueError, match="'age': 17 is outside 18 to 99"):
        PEOPLE.encode(rows)


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(ValueError, match=r"'Incom' is not a feature.*Did you mean 'income'"):
        PEOPLE.adjust(freeze=["Incom"])
    with pytest.raises(ValueError, match="freeze takes a list of names, got the text 'age'"):
        PEOPLE.adjust(freeze="age")
    with pytest.raises(ValueError, match=r"directions takes a mapping .* got \['age'\]"):
        PEOPLE.adjust(directions=["age"])  # type: ignore[arg-type]


# -- the region of one factual -------------------------------------------------------------------------


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
    region = space.region(factual, ranges={"job": ["a", "b", "d"]})
    assert region.snap(everywhere)[:, 0].tolist() == [0, 1, 1, 3, 1]
    region = space.region(factual, ranges={"job": ["d", "c"]})  # the factual's own is not allowed
    assert region.snap(everywhere)[:, 0].tolist() == [2, 2, 2, 3, 2]


def test_zero_has_one_form() -> None:
    space = Space((Integer("n", -5, 5), Continuous("a", -5, 5)))
    assert not np.signbit(space.region(np.ones(2)).snap(np.array([[-0.3, -0.0]]))).any()


def test_an_ordinal_code_that_is_not_allowed_becomes_the_nearest() -> None:
    space = Space((Ordinal("school", tuple("abcdef")),))
    region = space.region(np.array([0.0]), ranges={"school": ["a", "e", "f"]})
    assert region.snap(np.arange(6.0)[:, None])[:, 0].tolist() == [0, 0, 0, 4, 4, 5]


def test_ranges_are_rounded_inwards() -> None:
    data = pd.DataFrame({"share": np.array([0.0, 1.0], dtype=np.float32), "n": [0, 10]})
    region = Space.infer(data).region(np.array([0.75, 5.0]), ranges={"share": (0.7, 0.8), "n": (1.5, 7.5)})
    snapped = region.snap(np.array([[0.0, 0.0], [1.0, 10.0]]))
    assert float(np.float32(0.7)) < 0.7 and float(np.float32(0.8)) > 0.8  # the nearest would lie outside
    assert 0.7 <= snapped[0, 0] < 0.7 + 1e-7 and 0.8 - 1e-7 < snapped[1, 0] <= 0.8
    assert snapped[:, 1].tolist() == [2, 7]


def test_an_open_end_is_that_of_the_feature() -> None:
    region = PEOPLE.region(np.array([30.0, 5.0, 0.0]), ranges={"age": (40, np.inf), "income": (-np.inf, 9)})
    assert region.low.tolist() == [40, 0, 0]
    assert region.high.tolist() == [99, 9, 1]


def test_ranges_beyond_the_data_widen_the_space() -> None:
    wide = PEOPLE.widened({"age": (10.5, 120), "income": (-np.inf, np.inf), "job": ["cook"]})
    assert wide.low.tolist() == [11, 0, 0]
    assert wide.high.tolist() == [120, 1e6, 1]


def test_a_frozen_feature_outside_its_range_leaves_nothing() -> None:
    x = np.array([30.0, 5.0, 0.0])
    for freeze, ranges in (("age", {"age": (40, 50)}), ("job", {"job": ["clerk"]})):
        with pytest.raises(ValueError, match=f"'{freeze}': ranges allows .* it stays as it is; nothing is left"):
            PEOPLE.adjust(freeze=[freeze]).region(x, ranges=ranges)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'age': ranges allows .* it may only increase; nothing is left"):
        PEOPLE.adjust(directions={"age": "increase"}).region(x, ranges={"age": (18, 20)})


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"age": 5}, r"ranges\['age'\]: expected a pair \(low, high\), got 5"),
        ({"age": "ab"}, r"ranges\['age'\]: expected a pair"),
        ({"age": (50, 40)}, r"ranges\['age'\]: expected low <= high, got 50 and 40"),
        ({"age": (np.nan, 40)}, r"ranges\['age'\]: expected low <= high"),
        ({"age": (30.2, 30.8)}, r"ranges\['age'\]: no value of the feature lies within \(30.2, 30.8\)"),
        ({"age": (200, 300)}, r"ranges\['age'\]: no value of the feature lies within \(200, 300\)"),
        ({"job": "cook"}, r"ranges\['job'\]: expected a list of the allowed categories, got 'cook'"),
        ({"job": ["cook", "pilot"]}, r"ranges\['job'\]: 'pilot' is not a known category; there are 'cook'"),
        ({"job": []}, r"ranges\['job'\]: expected at least one category"),
        ({"jobs": ["cook"]}, "'jobs' is not a feature.*Did you mean 'job'"),
        ([("age", (1, 2))], "ranges takes a mapping"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(ranges: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PEOPLE.region(np.array([30.0, 5.0, 0.0]), ranges=ranges)


def test_allowed_categories_may_come_as_an_array_and_twice() -> None:
    x = np.array([30.0, 5.0, 0.0])
    for wanted in (np.array(["clerk", "clerk"]), pd.Series(["clerk"]), {"clerk"}):
        assert PEOPLE.region(x, ranges={"job": wanted}).allowed[2].tolist() == [1]


def test_nothing_that_can_change_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="No feature can change"):
        PEOPLE.adjust(freeze=PEOPLE.names).region(np.array([30.0, 5.0, 0.0]))
    with pytest.raises(ValueError, match="No feature can change"):
        PEOPLE.region(np.array([30.0, 5.0, 0.0]), constant=np.array([True, True, True]))


def test_constant_features_stay() -> None:
    region = PEOPLE.region(np.array([30.0, 5.0, 0.0]), constant=np.array([True, False, False]))
    assert region.movable.tolist() == [False, True, True]
    assert region.snap(np.array([[50.0, 7.0, 1.0]])).tolist() == [[30.0, 7.0, 1.0]]


def test_a_wide_integer_is_not_listed_value_by_value() -> None:
    region = Space((Integer("n", 0, 2**40), Integer("m", 0, 3))).region(np.zeros(2))
    assert region.values(0) is None
    assert_array_equal(region.values(1), [0, 1, 2, 3])
    assert region.size == (2**40 + 1) * 4


def test_a_constraint_sees_rows_and_decides() -> None:
    seen = []

    def older_cooks(rows: pd.DataFrame) -> pd.Series[bool]:
        seen.append(rows)
        return (rows["age"] > 40) & (rows["job"] == "cook")

    region = PEOPLE.region(np.array([30.0, 5.0, 0.0]), constraint=older_cooks)
    X = np.array([[50.0, 5.0, 0.0], [50.0, 5.0, 1.0], [20.0, 5.0, 0.0], [500.0, 5.0, 0.0]])
    assert region.contains(X).tolist() == [True, False, False, False]
    assert list(seen[-1].columns) == PEOPLE.names
    assert seen[-1]["age"].max() == 50  # what lies outside the region is not shown to it


@pytest.mark.parametrize("dtype", ["Int64", "Float64"])
def test_a_constraint_may_answer_in_pandas_own_booleans(dtype: str) -> None:
    space = Space.infer(pd.DataFrame({"a": pd.array([1, 5], dtype=dtype)}))  # type: ignore[call-overload]
    region = space.region(np.array([1.0]), constraint=lambda rows: rows["a"] > 2)
    assert region.contains(np.array([[1.0], [3.0]])).tolist() == [False, True]


@pytest.mark.parametrize("answer", [True, [True, True], np.ones(1), [[True]], None, ["yes"]])
def test_a_constraint_of_the_wrong_shape_is_refused_before_the_search(answer: Any) -> None:
    with pytest.raises(ValueError, match="constraint must give one True or False a row: expected a boolean"):
        PEOPLE.region(np.array([30.0, 5.0, 0.0]), constraint=lambda rows: answer)
