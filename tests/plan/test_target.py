"""Which labels are wanted."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from acex.plan.target import AtLeast, AtMost, Between, Labels, Measured, Relative, Target


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (None, None),
        ("good", ("good",)),
        (np.int64(2), (2,)),
        (["good", "fair", "good"], ("good", "fair")),
        (np.array([1, 2]), (1, 2)),
        (pd.Series([1, 2]), (1, 2)),
        (("a",), ("a",)),
        (True, (True,)),
        ({"silver", "gold", 3, "bronze", 1}, (1, 3, "bronze", "gold", "silver")),  # in every process
    ],
)
def test_one_label_several_or_any_other(said: Any, wanted: Any) -> None:
    target = Target.of(said)
    assert target == Labels(wanted or ())
    assert Target.of(target.described) == target


def test_hits_are_the_wanted_labels_or_all_but_the_factuals() -> None:
    assert [Target.of(["b", "c"]).is_hit(label, "a") for label in "abc"] == [False, True, True]
    assert [Target.of(None).is_hit(label, "a") for label in "abc"] == [False, True, True]
    assert [Target.of(None).is_hit(label, "no") for label in ("No", " no", "yes")] == [False, False, True]
    assert [Target.of(None).is_hit(label, 1) for label in (1.0, True, 2)] == [False, False, True]


@pytest.mark.parametrize(
    "wanted",
    [[], 5.5, ["good", 0.5], [None, "good"], float("nan"), b"good", len, [AtLeast(3), AtMost(1)], [["a", "b"]]],
)
def test_what_no_label_can_be_is_refused(wanted: Any) -> None:
    with pytest.raises(ValueError, match="target: expected a label"):
        Target.of(wanted)


def test_a_probability_is_between_0_and_1() -> None:
    for refused in (
        lambda: AtLeast(70, label="good"),
        lambda: AtMost(-1, label="good"),
        lambda: Between(0, 2, label=1),
    ):
        with pytest.raises(ValueError, match="is a probability: expected a number from 0 to 1"):
            refused()
    assert Relative(2, label="a").change == 2  # three times as probable as now


def test_odds_are_of_the_likeliest_wanted_label_against_the_likeliest_other() -> None:
    scores = [("a", 0.5), ("b", 0.3), ("c", 0.2)]
    assert_allclose(Target.of(None).odds("a", scores, "a"), np.log(0.3 / 0.5), atol=1e-4)  # type: ignore[arg-type]
    assert_allclose(Target.of("c").odds("a", scores, "a"), np.log(0.2 / 0.5), atol=1e-4)  # type: ignore[arg-type]
    assert_allclose(Target.of(["b", "a"]).odds("a", scores, "c"), np.log(0.5 / 0.2), atol=1e-4)  # type: ignore[arg-type]
    assert Target.of("c").odds("a", None, "a") is None


def test_where_label_and_scores_disagree_the_label_decides() -> None:
    assert Target.of("b").odds("b", [("a", 0.7), ("b", 0.3)], "a") > 0  # type: ignore[operator]
    assert Target.of("b").odds("a", [("a", 0.3), ("b", 0.7)], "a") < 0  # type: ignore[operator]


# -- numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "hits", "words"),
    [
        (Between(100, 120), [100.0, 110, 120.0], "100 to 120"),
        (AtLeast(np.float64(110)), [110, 120.0, 121.0], "at least 110"),
        (AtMost(100), [99.9, 100.0], "at most 100"),
        (Relative(0.1), [110, 120.0, 121.0], "at least 10 % more than now"),
        (Relative(-0.001), [99.9], "at least 0.1 % less than now"),
    ],
)
def test_a_range_holds_its_ends(target: Measured, hits: list[float], words: str) -> None:
    assert [n for n in (99.9, 100.0, 110, 120.0, 121.0) if target.is_hit(n, 100.0)] == hits
    assert target.words == (words,)
    assert Target.of(json.loads(json.dumps(target.described))) == target


def test_relative_to_a_negative_number_more_is_still_more() -> None:
    assert Relative(0.1).limits(-50.0) == (-45.0, np.inf)
    assert Relative(-0.1).limits(-50.0) == (-np.inf, -55.0)
    with pytest.raises(ValueError, match=r"is 0.*AtLeast"):
        Relative(0.1).refuse_start(0.0)


def test_the_number_may_be_the_probability_of_a_label() -> None:
    target = AtLeast(0.8, label="good")
    assert target.value("bad", [("good", 0.3), ("bad", 0.7)]) == 0.3
    assert target.value("bad", None) is None
    assert target.described == {"at_least": 0.8, "label": "good"}
    assert target.words == ("good with a probability of at least 0.8",)
    assert target.is_hinted("good", 0.1) and not target.is_hinted("bad", 0.1)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_odds_of_numbers_are_within_the_width_for_hits_alone(low: float, w: float, before: float, n: float) -> None:
    assume(low < low + w)
    target = Between(low, low + w)
    if target.is_met(before):
        return
    odds, width = target.odds(n, None, before), target.width(before)
    close = 1e-9 * (abs(low) + w + abs(n))
    assert target.odds(before, None, before) < close
    assert (-close <= odds <= width + close) or not target.is_hit(n, before)
    assert target.is_hit(n, before) or not (close < odds < width - close)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Between(2, 1), "the first number must be below the second"),
        (lambda: Between(3, 3.0), "the first number must be below the second; one number alone is hardly ever hit"),
        (lambda: Target.of({"between": ["1", 2]}), "low must be a finite number, got '1'"),
        (lambda: AtLeast(np.nan), "least must be a finite number, got nan"),
        (lambda: AtMost(np.inf), "most must be a finite number"),
        (lambda: AtLeast(True), "got True"),
        (lambda: Relative(0), "Relative"),
        (lambda: Relative(-15), "Relative"),
        (lambda: Target.of({"at_least": 1, "label": ["a"]}), "label must be one of the model's"),
        (lambda: Target.of({}), "target must have one of 'between'"),
        (lambda: Target.of({"near": 3}), "target must have one of 'between'"),
        (lambda: Target.of({"between": 3}), "between cannot be 3"),
        (lambda: Target.of({"at_least": [1, 2]}), "least must be a finite number"),
        (lambda: AtLeast(1).refuse_foreign(["a", "b"]), r"returns labels \['a', 'b'\]. .*label='a'"),
        (lambda: AtLeast(1, label="c").refuse_foreign(["a", "b"]), "'c' is not a label of the model"),
        (lambda: AtLeast(1).value("a", None), "'a'"),
        (lambda: AtLeast(1).value(True, None), "True"),
        (lambda: Target.of("a").value(0.5, None), "0.5"),
    ],
)
def test_what_is_wrong_with_a_range_is_said(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
