"""Rows to points and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

import acex
from acex import Continuous, Integer, Nominal, Ordinal, Region, Space
from acex.arrays import FloatArray
from acex.space.space import rows_in_form
from problems import PEOPLE
from strategies import arrays, frames, modest, spaces, spaces_with_points

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


def test_encoding_leaves_the_rows_alone() -> None:
    rows = pd.DataFrame([[1.0, "a"], [2.0, "b"]])
    before = rows.copy(deep=True)
    Space((Continuous("size", 0, 5), Nominal("kind", ("a", "b")))).encode(rows)
    assert_frame_equal(rows, before)


# -- inferring ---------------------------------------------------------------------------------------


def test_columns_of_an_array_are_called_by_number() -> None:
    space = Space.infer(np.array([[1, "a", 0.5], [2, "b", 0.7]], dtype=object)).adjust(freeze=[2])
    assert space.names == ["x0", "x1", "x2"]
    assert [type(f) for f in space.features] == [Integer, Nominal, Continuous]
    assert [f.frozen for f in space.features] == [False, False, True]


def test_columns_named_by_numbers_are_found_by_their_label() -> None:
    data = pd.DataFrame([[1, 2]], columns=pd.Index([7, ""]))
    space = Space.infer(data)
    assert space.names == ["7", ""]
    assert [space.index(label) for label in (7, "", "7")] == [0, 1, 0]
    with pytest.raises(ValueError, match="0 is not a feature"):
        space.index(0)  # a frame's columns are known by label, not by position


@pytest.mark.parametrize(
    "columns",
    [
        pd.Index([("p", "a"), ("p", 1)], tupleize_cols=False),
        pd.MultiIndex.from_tuples([("p", "a"), ("p", 1)]),
        pd.Index([None, "a"], dtype=object),
    ],
    ids=str,
)
def test_a_column_without_one_name_is_refused(columns: pd.Index[Any]) -> None:
    with pytest.raises(ValueError, match="every column needs one name"):
        Space.infer(pd.DataFrame([[1.5, "x"], [2.5, "y"]], columns=columns))


@pytest.mark.parametrize(
    "columns",
    [
        pd.Index([True, 1.5], dtype=object),
        pd.Index([3, 7]),
        pd.Index(["a", "b"]),
    ],
    ids=str,
)
def test_rows_come_back_under_the_very_same_labels(columns: pd.Index[Any]) -> None:
    data = pd.DataFrame([[1.5, "x"], [2.5, "y"]], columns=columns)
    space = Space.infer(data)
    for one in (space, Space.from_dict(json.loads(json.dumps(space.to_dict())))):
        rows = one.decode(one.encode(data))
        assert_frame_equal(rows, data)
        assert type(rows.columns) is type(data.columns)
        assert [type(c) for c in rows.columns] == [type(c) for c in data.columns]
        assert_array_equal(one.encode(data.iloc[0]), one.encode(data.iloc[:1]))
        again = rows_in_form(data.to_numpy(dtype=object).tolist(), json.loads(json.dumps(one.form())))
        assert_frame_equal(again, data)


@pytest.mark.parametrize("name", [np.nan, pd.NaT, pd.NA])
def test_a_column_without_a_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match=r"data: .*got .*'a'"):
        Space.infer(pd.DataFrame([[1, 2]], columns=pd.Index([name, "a"], dtype=object)))


@pytest.mark.parametrize("labels", [["a", "a"], [1, "1"]])
def test_columns_of_the_same_name_are_refused(labels: list[Any]) -> None:
    with pytest.raises(ValueError, match="names must differ"):
        Space.infer(pd.DataFrame([[1, 2]], columns=labels))


@pytest.mark.parametrize("data", [pd.DataFrame({"a": []}), pd.DataFrame(index=[0]), np.empty((0, 2))])
def test_empty_data_are_refused(data: Any) -> None:
    with pytest.raises(ValueError, match=r"data is empty: .*got the shape"):
        Space.infer(data)


@pytest.mark.parametrize("data", [pd.Series([1, 2]), np.arange(3), [{"a": 1}], None, np.zeros((2, 2, 2))])
def test_data_are_a_frame_or_an_array_of_two_dimensions(data: Any) -> None:
    with pytest.raises(ValueError, match=r"data .*got \w+\.$"):
        Space.infer(data)


# -- declaring ---------------------------------------------------------------------------------------


def test_a_space_needs_features_of_different_names() -> None:
    with pytest.raises(ValueError, match="at least one feature"):
        Space(())
    with pytest.raises(ValueError, match="names must differ, got 'a', 'a'"):
        Space((Continuous("a", 0, 1), Integer("a", 0, 1)))


def test_a_space_is_made_of_features() -> None:
    with pytest.raises(TypeError, match="'age'"):
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


def test_intervals_become_text_in_json() -> None:
    data = pd.DataFrame({"age": pd.cut([1, 5, 9], 3)})
    space = Space.infer(data)
    assert isinstance(space.features[0], Ordinal)
    back = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    texts = data.astype(str).astype(pd.CategoricalDtype([str(c) for c in data["age"].cat.categories], True))
    assert_array_equal(back.encode(texts), space.encode(data))


# -- encoding what does not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": 30, "income": 5.0}, "the row: missing 'job'; expected the columns 'age', 'income', 'job'"),
        ({"age": 30, "income": 5.0, "job": "cook", "zip": 1}, "the row: unknown 'zip'; expected"),
        (
            {"age": 30, "income": 5.0, "job": "pilot"},
            "'job': 'pilot' is not a known category; there are 'cook'",
        ),
        ({"age": 30, "income": 5.0, "job": ["cook"]}, r"'job': \['cook'\] is not a known category"),
        ({"age": 30, "income": 5.0, "job": None}, "'job': the value is missing"),
        ({"age": 30, "income": np.nan, "job": "cook"}, "'income': the value is missing"),
        ({"age": 30, "income": np.inf, "job": "cook"}, "'income': inf is not finite"),
        ({"age": 30.5, "income": 5.0, "job": "cook"}, "'age': 30.5 is not a whole number"),
        ({"age": 100, "income": 5.0, "job": "cook"}, "'age': 100 is outside 18 to 99.*--schema"),
        ({"age": "30", "income": 5.0, "job": "cook"}, "'age': expected a number, got '30'"),
        (
            {"age": pd.Timestamp("2020"), "income": 5.0, "job": "cook"},
            "'age': expected a number, got Timestamp",
        ),
        ([30, 5.0], "the row: expected 3 values .'age', 'income', 'job'., got 2"),
        (pd.Series([30, 5.0, "cook", 31], index=["age", "income", "job", "age"]), "column names must differ"),
        (np.zeros((1, 1, 3)), "Expected rows as a DataFrame, a Series, a mapping or a 2-D array, got ndarray of 3"),
    ],
)
def test_a_row_that_does_not_fit_says_what_was_expected(row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PEOPLE.encode(row)


@pytest.mark.parametrize("infer", [acex.Space.infer, PEOPLE.encode])
def test_a_table_of_another_library_is_refused(infer: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"to_pandas\(\)"):
        infer(pa.table({"age": [30, 31], "income": [5.0, 6.0], "job": ["cook", "cook"]}))


def test_the_first_of_many_bad_values_is_named() -> None:
    rows = pd.DataFrame({"age": [30, 17, 16], "income": 5.0, "job": "cook"})
    with pytest.raises(ValueError, match="'age': 17 is outside 18 to 99"):
        PEOPLE.encode(rows)


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(ValueError, match="'Incom'"):
        PEOPLE.adjust(freeze=["Incom"])
    with pytest.raises(ValueError, match="'age'"):
        PEOPLE.adjust(freeze="age")
    with pytest.raises(ValueError, match="'age'"):
        PEOPLE.adjust(directions=["age"])  # type: ignore[arg-type]


def test_a_space_reaches_rows_beyond_it_and_is_the_same_for_those_within() -> None:
    rows = pd.DataFrame({"age": [30, 17, 101], "income": [5.0, -2.5, 7.0], "job": "cook"})
    wide, points = PEOPLE.reaching(rows)
    assert_array_equal(points, wide.encode(rows))
    assert wide.low.tolist() == [17, -2.5, 0] and wide.high.tolist() == [101, 1e6, 1]
    assert wide.encode(rows)[:, 0].tolist() == [30, 17, 101]
    assert PEOPLE.reaching(rows.iloc[:1])[0] is PEOPLE
    with pytest.raises(ValueError, match="'job'"):
        PEOPLE.reaching({"age": 30, "income": 5.0, "job": "pilot"})


def test_ranges_beyond_the_data_widen_the_space() -> None:
    wide = PEOPLE.widened({"age": (10.5, 120), "income": (-np.inf, np.inf)}, {"job": ["cook"]})
    assert wide.low.tolist() == [11, 0, 0]
    assert wide.high.tolist() == [120, 1e6, 1]


def test_a_space_carries_what_to_do_about_gaps_and_unknown_categories() -> None:
    data = pd.DataFrame({"job": ["cook", "clerk", "other"] * 10, "age": [20.0, 30.0, None] * 10})
    space = Space.infer(data, missing="keep", other={"job": "other"})
    assert space.missing == "keep" and [f.gaps for f in space.features] == [True, True]
    assert space.encode({"job": "pilot", "age": 25.0})[0, 0] == space.encode({"job": "other", "age": 25.0})[0, 0]
    [remark] = space.remarks_on({"job": "pilot", "age": 25.0}, np.array([2.0, 25.0]))
    assert (remark.code, remark.columns) == ("unknown_category", ("job",)) and "'pilot'" in str(remark)
    row = {"job": "cook", "age": 99.0}
    [remark] = space.remarks_on(row, space.reaching(row)[1][0])
    assert (remark.code, remark.columns) == ("out_of_range", ("age",)) and str(remark) == remark.text
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    with pytest.raises(ValueError, match="missing must be 'drop' or 'keep'"):
        Space.infer(data, missing="fill")  # type: ignore[arg-type]


def test_a_space_written_by_0_2_can_be_read() -> None:
    data = pd.DataFrame({"job": ["cook", "clerk"] * 10, "age": [20.0, 30.0] * 10})
    written = Space.infer(data).to_dict()
    assert "missing" not in written and Space.from_dict(written) == Space.infer(data)


def test_the_explainer_drops_rows_by_its_space() -> None:
    data = pd.DataFrame({"size": np.arange(40.0), "age": [20.0, 30.0, None, 40.0] * 10})
    dropping, keeping = (acex.Explainer(len, data, space=Space.infer(data, missing=m)) for m in ("drop", "keep"))
    assert [remark.code for remark in dropping.remarks] == ["rows_dropped"] and "10 of 40" in str(dropping.remarks[0])
    assert not keeping.remarks


def test_dates_take_only_their_listed_values() -> None:
    data = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=60), "size": np.arange(60.0)})
    space = Space.infer(data)
    x = space.encode(data.iloc[0])[0]
    region = Region.of(space, x, values={"day": ["2026-02-01", pd.Timestamp("2026-01-15")]})
    days = space.frame(region.snap(space.encode(data)))["day"]
    assert sorted(set(days.dt.strftime("%Y-%m-%d"))) == ["2026-01-15", "2026-02-01"]
