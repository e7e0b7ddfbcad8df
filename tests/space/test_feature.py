"""Invalid features are refused, and a new kind of feature is one class."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest

from acex import Continuous, Integer, Nominal, Ordinal, Region, Space
from acex.space.feature import KINDS
from acex.space.schema import read_schema, schema_text, with_schema


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
        (Continuous, (0, 1), {"weight": 0}, "'a': weight: expected a positive number, got 0"),
        (Continuous, (0, 1), {"weight": "1"}, "'a': weight: expected a positive number, got '1'"),
        (Integer, (0, 1), {"unit": 12}, "'a': unit must be text, such as 'months', got 12"),
        (Continuous, (0, 1), {"weight": np.nan}, "'a': weight: expected a positive number, got nan"),
    ],
)
def test_an_invalid_feature_is_refused(
    kind: Any, values: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind("a", *values, **options)


def test_a_kind_of_feature_is_one_registered_class(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Quarter(Continuous):
        """A number that moves in quarters."""

        grid: float = field(default=0.25, kw_only=True)

        @classmethod
        def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
            return super().infer(name, column) if name.startswith("hours") else None

        def as_written(self, column: pd.Series[Any]) -> Quarter:
            return self

    monkeypatch.setitem(KINDS, "quarter", Quarter)
    data = pd.DataFrame({"hours": np.linspace(0, 10, 41), "pay": np.linspace(7, 9, 41) ** 2})
    space = Space.infer(data)
    assert [feature.kind for feature in space.features] == ["quarter", "continuous"]
    region = Region.of(space, space.encode(data)[0])
    assert region.snap(np.array([[3.3, 8.0]]))[0, 0] == 3.25
    (tmp_path / "schema.toml").write_text(schema_text(space))
    assert with_schema(data, read_schema(tmp_path / "schema.toml"))[1] == space
    assert Space.from_dict(space.to_dict()) == space
