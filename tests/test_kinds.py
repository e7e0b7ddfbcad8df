"""Features that make no sense are refused, and a kind that nobody has thought of is one class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal

import acex
from acex import Continuous, Integer, Nominal, Ordinal, Region, Space
from acex.arrays import FloatArray
from acex.show.plots import boundary_record, changes_record
from acex.space.cost import CostFunction
from acex.space.feature import KINDS, Feature, register
from acex.space.kinds import Numeric
from acex.space.scale import Scale
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


# -- kinds from outside: one class and one line of registration ------------------------------------------


@dataclass(frozen=True)
class Gridded(Numeric):
    """A number in steps, such as quarters of an hour."""

    grid: float = field(default=0.25, kw_only=True)


@dataclass(frozen=True)
class Hour(Feature):
    """An hour of the day, "00h" to "23h": after the last comes the first."""

    ordered = False
    low = 0.0
    high = 23.0

    @classmethod
    def infer(cls, name: str, column: pd.Series[Any]) -> Self | None:
        is_text = pd.api.types.is_string_dtype(column.dtype)
        return cls(name) if is_text and column.str.fullmatch(r"\d\dh").all() else None

    def check(self, dtype: Any) -> None:
        if not pd.api.types.is_string_dtype(dtype):
            raise ValueError(f"{self.name!r}: expected hours such as '07h', got a column of {dtype}.")

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        return np.array([float(v[:2]) for v in values.tolist()])

    def value(self, code: float) -> str:
        return f"{int(code):02d}h"

    # A circle of 24 hours: two of them are as far apart as the straight line between them is long.

    def steps(self, x: FloatArray | float, y: FloatArray | float) -> FloatArray:
        return np.asarray(24 / np.pi * np.abs(np.sin(np.pi * (x - y) / 24)))

    def deviation(self, x: FloatArray) -> float:
        return float(np.sqrt(np.mean(self.steps(x[:, None], x[None]) ** 2) / 2))

    def block(self, x: FloatArray, unit: float) -> FloatArray:
        angle = 2 * np.pi * x / 24
        return unit * 12 / np.pi * np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.fixture(autouse=True, scope="module")
def known_kinds() -> Iterator[None]:
    register(Gridded)
    register(Hour)
    yield
    del KINDS["gridded"], KINDS["hour"]  # other tests infer columns too


def shifts(n: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "start": [f"{hour:02d}h" for hour in rng.integers(0, 24, n)],
            "length": rng.integers(8, 41, n) / 4,
            "age": rng.integers(18, 66, n),
        }
    )


DATA = shifts()
SPACE = Space((Hour("start"), Gridded("length", 1.0, 12.0, unit="hours"), Integer("age", 18, 70))).like(DATA)
POINTS = SPACE.encode(DATA)


def awake(rows: pd.DataFrame) -> Any:
    """Night shifts, and long ones, are tiring."""
    hour = rows["start"].str[:2].astype(int)
    return np.where(hour.between(6, 20) & (rows["length"] <= 8), "awake", "tired")


def tired_row() -> pd.Series[Any]:
    night = DATA[(DATA["start"] == "23h") | (DATA["start"] == "22h")]
    return night[night["length"] < 8].iloc[0]


def test_a_kind_from_outside_is_inferred_encoded_and_decoded() -> None:
    assert Space.infer(DATA).features[0] == Hour("start")
    assert Space.infer(DATA).features[1] == Continuous("length", 2.0, 10.0, grid=0.25)
    assert_frame_equal(SPACE.decode(POINTS), DATA)
    assert SPACE.snap(np.array([[30.0, 2.4, 20.2]])).tolist() == [[23.0, 2.4, 20.0]]  # a row may hold 2.4
    assert Region.of(SPACE, POINTS[0]).snap(np.array([[30.0, 2.4, 20.2]])).tolist() == [[23.0, 2.5, 20.0]]
    assert SPACE.is_nominal.tolist() == [True, False, False]
    with pytest.raises(ValueError, match="'start': expected hours such as '07h', got a column of int64"):
        SPACE.like(DATA.assign(start=7))


def test_a_region_keeps_to_what_a_kind_from_outside_allows() -> None:
    region = Region.of(SPACE, POINTS[0], ranges={"start": ("06h", "09h"), "length": (1.1, 2.1)})
    starts, lengths = region.values(0), region.values(1)
    assert starts is not None and starts.tolist() == [6, 7, 8, 9]
    assert lengths is not None and lengths.tolist() == [1.25, 1.5, 1.75, 2.0]
    X = region.snap(np.random.default_rng(0).uniform(-5, 50, (200, 3)))
    assert region.contains(X).all() and set(X[:, 0]) <= set(starts) and set(X[:, 1]) <= set(lengths)
    assert region.size == 4 * 4 * 53
    stays = Region.of(SPACE.adjust(freeze=["start"], directions={"length": "increase"}), POINTS[0])
    assert stays.movable.tolist() == [False, True, True]
    assert stays.low[1] == POINTS[0, 1]
    with pytest.raises(ValueError, match="'start': a hour feature has no order"):
        SPACE.adjust(directions={"start": "increase"})


def test_a_kind_from_outside_says_how_far_its_values_are_apart() -> None:
    scale = Scale.of(SPACE, POINTS)
    squares = np.mean([scale.differences(POINTS, x) ** 2 for x in POINTS], axis=(0, 1))
    assert_allclose(squares, 2.0)  # as for every kind, see test_scale
    Z = scale.coordinates(POINTS)
    assert_allclose(np.linalg.norm(Z - Z[0], axis=1), np.linalg.norm(scale.differences(POINTS, POINTS[0]), axis=1))
    cost = CostFunction(scale, np.array([23.0, 4.0, 30.0]), SPACE.weights)
    one_later, one_earlier, noon = cost(np.array([[0.0, 4.0, 30.0], [22.0, 4.0, 30.0], [11.0, 4.0, 30.0]]))
    assert one_later == pytest.approx(one_earlier)
    assert noon > 7 * one_later


@pytest.mark.parametrize("strategy", ["feasible", "penalty"])
def test_a_row_with_kinds_from_outside_is_explained(strategy: Any) -> None:
    e = acex.explain(awake, tired_row(), data=DATA, space=SPACE, target="awake", budget=60, strategy=strategy)
    assert e.outcome == "found"
    assert awake(e.counterfactuals).tolist() == ["awake"]
    assert (e.asked["length"] * 4 % 1 == 0).all()
    assert e.changes["feature"].tolist() == ["start"]
    back = acex.Explanation.from_json(e.to_json())
    assert_frame_equal(back.counterfactuals, e.counterfactuals)
    assert str(back) == str(e)


def test_a_kind_from_outside_has_words_and_pictures(tmp_path: Path) -> None:
    e = acex.explain(awake, tired_row(), data=DATA, space=SPACE, budget=60, freeze=["age"], ranges={"length": (1, 9)})
    [line] = changes_record(e).shown
    assert (line.before, line.low, line.high) == (tired_row()["start"], "", "")
    assert SPACE.feature("start").way(line.step) == "other" and SPACE.feature("length").way(-1.0) == "down"
    assert e.sentences() == [f"Start would have to change from {line.before} to {line.after}."]
    assert SPACE.feature("length").verb(2.0, 2.5) == "increase"
    words, numbers = boundary_record(e, ["start", "length"]).axes
    assert {line.before, line.after} <= set(words.words) and len(words.words) == 12
    assert not numbers.words
    for kind in ("changes", "counterfactuals", "boundary"):
        e.plot(kind).savefig(tmp_path / f"{kind}.png")
    page = e.to_html()
    assert "00h to 23h" in page and "limited to 1 to 9" in page
    assert "00h to 23h" in SPACE._repr_html_()


def test_a_kind_from_outside_can_be_written_down_and_read(tmp_path: Path) -> None:
    assert Space.from_dict(json.loads(json.dumps(SPACE.to_dict()))) == SPACE
    text = schema_text(SPACE.adjust(freeze=["start"]))
    assert '{ name = "start", kind = "hour", frozen = true }' in text
    assert '{ name = "length", kind = "gridded", range = [1.0, 12.0], unit = "hours" }' in text
    (tmp_path / "s.toml").write_text(text)
    assert with_schema(DATA, read_schema(tmp_path / "s.toml"))[1] == SPACE.adjust(freeze=["start"])
    (tmp_path / "s.toml").write_text('features = [{ name = "length", kind = "gridded", grid = 0.5, step = 2 }]')
    with pytest.raises(ValueError, match=r"unknown 'step'; there are 'name', 'kind', .*'range', 'unit', 'grid'"):
        read_schema(tmp_path / "s.toml")
