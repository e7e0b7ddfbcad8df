"""What is computed from known rows once for all explanations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from acex import Plausibility
from acex.engine.reference import VISIBLE, Reference
from acex.options import Options
from acex.space.space import Space
from acex.values import fingerprint

DATA = pd.DataFrame({"income": [*np.linspace(0, 1, 99), 1e6], "job": ["cook", "clerk"] * 50})


def reference(outcomes: list[str] | None = None) -> Reference:
    return Reference.of(DATA, outcomes, Space.infer(DATA), Plausibility())


def test_a_few_very_large_values_do_not_make_small_steps_invisible() -> None:
    r = reference()
    region = r.problem(r.space, r.points[0], Options()).region
    assert r.scale.deviations[0] > 1e4
    seen = region.snap(np.array([[0.5, 0.0]]))  # far below VISIBLE standard deviations
    assert seen[0, 0] == pytest.approx(0.5) and VISIBLE * r.scale.deviations[0] > 100


def test_invisible_steps_of_a_column_that_is_mostly_constant_are_undone() -> None:
    amounts = np.where(np.arange(100) % 10 == 0, np.linspace(0.5, 99.37, 100), 0.0)  # no interquartile range
    data = pd.DataFrame({"amount": amounts, "other": np.linspace(0, 1, 100)})
    r = Reference.of(data, None, Space.infer(data, grid={"amount": None}), Plausibility())
    region = r.problem(r.space, np.array([0.0, 0.5]), Options()).region
    step = VISIBLE * amounts.std()
    assert region.snap(np.array([[0.4 * step, 0.5], [2 * step, 0.5]]))[:, 0] == pytest.approx([0.0, 2 * step], abs=1e-2)


def test_outcomes_have_to_be_labels_of_the_model() -> None:
    r = reference(["good", "bad"] * 50)
    r.refuse_foreign_outcomes(["good", "bad"])
    with pytest.raises(ValueError, match=r"^outcomes must be"):
        r.refuse_foreign_outcomes(["yes", "no"])
    with pytest.raises(ValueError, match=r"^target and outcomes must be.* Did you mean 'good'"):
        r.refuse_foreign_outcomes(["god"], all_words=False)
    with pytest.raises(ValueError, match="outcomes"):
        r.refuse_outcomes_that_are_no_numbers()


def test_the_identity_depends_on_rows_and_outcomes() -> None:
    assert reference().identity == reference().identity
    assert len({reference().identity, reference(["a", "b"] * 50).identity, reference(["b", "a"] * 50).identity}) == 3


def test_the_identity_is_the_one_that_earlier_versions_wrote_down() -> None:
    r = reference(["good", "bad"] * 50)
    points, outcomes = r.points.astype("<f8").tobytes().hex(), fingerprint(r.outcomes)
    assert r.identity == fingerprint([points, r.points.shape, outcomes, r.seed])
