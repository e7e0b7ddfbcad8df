"""Which labels are wanted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from acex.plan.target import AnyOther, OneOf, Target


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (None, None),
        ("good", ("good",)),
        (np.int64(2), (2,)),
        (["good", "fair", "good"], ("good", "fair")),
        (np.array([1, 2]), (1, 2)),
        (("a",), ("a",)),
        (True, (True,)),
    ],
)
def test_one_label_several_or_any_other(said: Any, wanted: Any) -> None:
    target = Target.of(said)
    assert target == (AnyOther() if wanted is None else OneOf(wanted))
    assert Target.of(target.said) == target


def test_hits_are_the_wanted_labels_or_all_but_the_factuals() -> None:
    assert [Target.of(["b", "c"]).is_hit(label, "a") for label in "abc"] == [False, True, True]
    assert [Target.of(None).is_hit(label, "a") for label in "abc"] == [False, True, True]


def test_an_empty_list_of_targets_is_refused() -> None:
    with pytest.raises(ValueError, match="target is empty"):
        Target.of([])


def test_odds_are_of_the_likeliest_wanted_label_against_the_likeliest_other() -> None:
    scores = [("a", 0.5), ("b", 0.3), ("c", 0.2)]
    assert_allclose(Target.of(None).odds("a", scores, "a"), np.log(0.3 / 0.5), atol=1e-4)  # type: ignore[arg-type]
    assert_allclose(Target.of("c").odds("a", scores, "a"), np.log(0.2 / 0.5), atol=1e-4)  # type: ignore[arg-type]
    assert_allclose(Target.of(["b", "a"]).odds("a", scores, "c"), np.log(0.5 / 0.2), atol=1e-4)  # type: ignore[arg-type]
    assert Target.of("c").odds("a", None, "a") is None


def test_where_label_and_scores_disagree_the_label_decides() -> None:
    assert Target.of("b").odds("b", [("a", 0.7), ("b", 0.3)], "a") > 0  # type: ignore[operator]
    assert Target.of("b").odds("a", [("a", 0.3), ("b", 0.7)], "a") < 0  # type: ignore[operator]
