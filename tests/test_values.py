"""Single values: how they are checked and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from acex.values import is_missing, readable, readable_pair, records


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.0, "3"),
        (0.123456, "0.1235"),
        (np.float32(0.5), "0.5"),
        (12345.678, "12346"),
        (1e-12, "1e-12"),
        (7, "7"),
        ("cook", "cook"),
        (True, "True"),
    ],
)
def test_values_are_written_as_people_write_them(value: Any, text: str) -> None:
    assert readable(value) == text


@pytest.mark.parametrize(
    ("before", "after", "texts"),
    [
        (0.5, 0.75, ("0.5", "0.75")),
        (0.123456, 0.123461, ("0.123456", "0.123461")),
        (12345.6, 12345.8, ("12345.6", "12345.8")),
        (1 / 3, np.nextafter(1 / 3, 1), ("0.3333333333333333", "0.3333333333333334")),
        ("a", "b", ("a", "b")),
    ],
)
def test_a_change_is_written_with_the_digits_it_takes_to_see_it(before: Any, after: Any, texts: Any) -> None:
    assert readable_pair(before, after) == texts


@pytest.mark.parametrize("value", [None, np.nan, float("nan"), pd.NaT, pd.NA, np.float32("nan")])
def test_missing_values_of_every_kind_are_recognised(value: Any) -> None:
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", "nan", 0, False, 0.0, [], [None], np.str_("a"), pd.Timestamp(0)])
def test_other_values_are_not_missing(value: Any) -> None:
    assert not is_missing(value)


def test_records_hold_what_json_knows() -> None:
    frame = pd.DataFrame({"n": [1, 2], 0: [np.inf, np.nan], "x": pd.Series([np.int64(3), None], dtype=object)})
    assert records(frame) == [{"n": 1, "0": None, "x": 3}, {"n": 2, "0": None, "x": None}]
