"""Features that make no sense are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from acex import Continuous, Integer, Nominal, Ordinal


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
        (Integer, (0, 1), {"unit": 12}, "'a': unit must be text, such as 'months', got 12"),
        (Continuous, (0, 1), {"weight": np.nan}, "'a': weight must be a positive number, got nan"),
    ],
)
def test_a_feature_that_makes_no_sense_is_refused(
    kind: Any, values: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind("a", *values, **options)
