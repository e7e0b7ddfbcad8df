"""Labels and keys as text."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acex.ledger.row_keys import label_text, query_id
from acex.values import fingerprint
from strategies import modest


@modest
@given(st.one_of(st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_labels_survive_being_written(label: Any) -> None:
    assert repr(json.loads(label_text(label))) == repr(label)


def test_numpy_labels_are_plain_ones() -> None:
    assert [label_text(v) for v in (np.int8(1), np.float32(1), np.bool_(True), np.str_("1"))] == [
        "1",
        "1.0",
        "true",
        '"1"',
    ]


def test_keys_are_written_down_here_so_that_they_never_change() -> None:
    assert query_id("loans-v1", "[1]") == "d77d450fab10c366f9f3b728b38d7727"
    assert fingerprint({"b": 1, "a": "é"}) == fingerprint({"a": "é", "b": 1})
