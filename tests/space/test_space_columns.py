"""What a column is, and what it can hold."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

from acex import Continuous, Integer, Nominal, Ordinal, Space
from acex.space.space import dtype_from_json, dtype_to_json


def test_an_encoded_row_of_a_float32_column_is_what_the_column_holds() -> None:
    data = pd.DataFrame({"share": np.array([0.1, 0.9], dtype=np.float32)})
    space = Space.infer(data)
    # 0.1 as people write it lies below the least float32 of the data: it is the same value all the same.
    assert_array_equal(space.encode({"share": 0.1}), space.encode(data.iloc[:1]))


def test_a_declared_end_holds_in_float32_too() -> None:
    data = pd.DataFrame({"share": np.array([0.1, 0.02], dtype=np.float32)})
    space = Space((Continuous("share", 0.0, 0.1),)).like(data)
    assert_array_equal(space.encode(data), data.to_numpy(dtype=float))


def test_sparse_columns_are_columns() -> None:
    data = pd.DataFrame({"c": pd.arrays.SparseArray([0.0, 0.0, 1.5])})
    space = Space.infer(data)
    assert_frame_equal(space.decode(space.encode(data)), data)


def test_integers_beyond_the_dtype_are_not_wrapped_round() -> None:
    space = Space.infer(pd.DataFrame({"n": np.array([0, 100], dtype=np.int8)})).widened({"n": (-1000, 1000)})
    assert space.decode(np.array([[1000.0], [-1000.0]]))["n"].tolist() == [127, -128]


def test_integers_in_a_float32_array_are_those_it_can_hold() -> None:
    data = np.array([[1.0], [2.0]], dtype=np.float32)
    space = Space((Integer("n", 0, 2**30),)).like(data)
    X = np.array([[2.0**24 + 1]])
    assert_array_equal(space.encode(space.decode(X)), space.snap(X))


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
        (pd.Series([1.5, None, 2.0]), Continuous("c", 1.5, 2.0)),
        (pd.Series([3, None, 1], dtype="Int64"), Integer("c", 1, 3)),
        (pd.Series(["b", None, "a"]), Nominal("c", ("a", "b"))),
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


def test_ints_at_the_edge_of_exact_floats_are_inferred_and_one_beyond_is_refused() -> None:
    edge = 2**53
    space = Space.infer(pd.DataFrame({"id": [0, edge]}))
    assert space.decode(space.encode({"id": edge}))["id"].tolist() == [edge]
    with pytest.raises(ValueError, match=r"'id'.*2\*\*53.*rescale"):
        Space.infer(pd.DataFrame({"id": [0, edge + 1]}))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([None, np.nan], "every row of data has a gap: c 2"),
        ([1.0, np.inf, 2.0, -np.inf], r"'c': 2 of 4 values are infinite \(first in row 1\).*np.nan"),
        (pd.array([0.5, -np.inf], dtype="Float64"), r"'c': 1 of 2 values are infinite"),
        (pd.period_range("2020", periods=2, freq="D"), r"'c': holds periods .period\[D\].*to_timestamp"),
        ([1, "a"], r"'c': expected numbers only or texts only, got 1 \(int\), 'a' \(str\)"),
        ([1j, 2j], "'c': expected numbers only or texts only"),
        ([[1], [2]], "'c': expected numbers only or texts only"),
        ([1e200, 1.0], "'c': numbers beyond .* are too large; rescale"),
        (pd.Series([2**70, 1], dtype=object), r"'c': integers beyond 2\*\*53 have no exact float; leave"),
        pytest.param(
            np.array([0.1, 0.2], dtype=np.longdouble),
            r"'c': float\d+ has digits that would be lost; convert it first: astype\('float64'\)",
            marks=pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="longdouble is float64 here"),
        ),
    ],
)
def test_a_column_that_is_no_feature_is_named(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space.infer(pd.DataFrame({"c": pd.Series(column)}))


def test_arrow_columns_are_supported_where_a_document_can_name_their_type() -> None:
    pa = pytest.importorskip("pyarrow")
    values = pd.Series(["u", "v"] * 20)
    for good in (pa.string(), pa.large_string()):
        dtype = pd.ArrowDtype(good)
        [feature] = Space.infer(pd.DataFrame({"c": values.astype(dtype)})).features
        assert feature == Nominal("c", ("u", "v"))
        assert values.astype(dtype_from_json(dtype_to_json(dtype))).tolist() == values.tolist()
    days = pd.Series([date(2020, 1, 1 + i % 28) for i in range(40)], dtype=pd.ArrowDtype(pa.date32()))
    for bad in (values.astype(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))), days):
        with pytest.raises(ValueError, match=r"'c': holds values of the type .*, which is not supported"):
            Space.infer(pd.DataFrame({"c": bad}))


@pytest.mark.parametrize(
    ("form", "advice"),
    [
        *(("person {}", "'who'.* Drop the column"), ("0{} Munich", "'who'.* Drop the column")),
        *(("${},950", "numbers"), ("{}.5%", "numbers"), ("EUR {}", "Drop the column"), ("-{}.5 kg", "numbers")),
    ],
)
def test_a_column_of_identifiers_is_refused(form: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice) as caught:
        Space.infer(pd.DataFrame({"who": [form.format(i) for i in range(150)]}))
    assert ("convert it to numbers" in str(caught.value)) == (advice == "numbers")


@pytest.mark.parametrize(
    ("feature", "column", "message"),
    [
        (Continuous("c", 0, 9), [1, 2], "'c': declared Continuous, but the column in data is int64.*Integer"),
        (Continuous("c", 0, 9), [True, False], "'c': declared Continuous, but .* bool.*Nominal"),
        (Integer("c", 0, 9), pd.Categorical([1, 2]), "'c': declared Integer, but .* category"),
        (Integer("c", 0, 9), pd.array(["1", "2"], dtype="string"), "'c': declared Integer, but .* str"),
        (Nominal("c", ("x", "y")), pd.Categorical(["x", "x"]), r"'c': .*category"),
        (Nominal("c", (1, 2.5)), [1, 1], r"'c': .*int64.* 2.5"),
        (Ordinal("c", (1, 300)), np.array([1, 1], dtype=np.int8), r"'c': .*int8.* 300"),
    ],
)
def test_a_column_that_cannot_hold_its_feature_is_refused(feature: Any, column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Space((feature,)).like(pd.DataFrame({"c": column}))


def test_an_array_that_cannot_hold_the_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="'c': declared Continuous"):
        Space((Continuous("c", 0, 9),)).like(np.array([[1], [2]]))
    with pytest.raises(ValueError, match=r"'c': .*'long'"):
        Space((Nominal("c", ("a", "long")),)).like(np.array([["a"], ["a"]]))
    with pytest.raises(ValueError, match="data has 2 columns"):
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


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="longdouble is float64 here")
def test_more_digits_than_a_point_has_are_refused_where_a_space_is_declared_too() -> None:
    for data in (pd.DataFrame({"c": np.array([1, 2], dtype=np.longdouble)}), np.array([[1]], dtype=np.longdouble)):
        with pytest.raises(ValueError, match="'c': float128"):
            Space((Continuous("c", 0, 9),)).like(data)


def test_whole_numbers_stay_whole_in_an_array_of_objects() -> None:
    data = np.array([[1, 0.5, "a"], [2, 0.25, "b"]], dtype=object)
    space = Space.infer(data)
    assert [[type(v) for v in row] for row in space.decode(space.encode(data)).tolist()] == [[int, float, str]] * 2
