"""Random columns, frames, arrays, spaces and regions for property tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from hypothesis import assume, settings
from hypothesis import strategies as st

from acex.arrays import FloatArray
from acex.space.kinds import Continuous, Integer, Ordinal
from acex.space.region import Region
from acex.space.space import Space

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

modest = settings(max_examples=60, deadline=None)

FLOATS = ("float64", "float32", "float16", "Float64", "Float32")
INTEGERS = ("int64", "int32", "int8", "uint8", "Int64", "UInt8")
TEXTS = ("str", "object", "string")
words = st.text("abcdé ß<&", min_size=1, max_size=4)


@st.composite
def columns(draw: Draw, n: int) -> pd.Series[Any]:
    """A column of n values of any dtype that a space can be inferred from."""
    kind = draw(st.sampled_from(["float", "integer", "text", "bool", "category", "ordered", "numbers"]))
    match kind:
        case "float":
            dtype = draw(st.sampled_from(FLOATS))
            values = draw(st.lists(st.floats(-1000, 1000), min_size=n, max_size=n))
            return pd.Series(np.array(values, dtype=dtype.lower())).astype(dtype)
        case "integer":
            dtype = draw(st.sampled_from(INTEGERS))
            limits = np.iinfo(dtype.lower())
            whole = st.integers(max(limits.min, -(10**6)), min(limits.max, 10**6))
            return pd.Series(draw(st.lists(whole, min_size=n, max_size=n)), dtype=dtype)
        case "text":
            chosen = draw(st.lists(words, min_size=n, max_size=n))
            return pd.Series(chosen, dtype=draw(st.sampled_from(TEXTS)))
        case "bool":
            chosen = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            return pd.Series(chosen, dtype=draw(st.sampled_from(["bool", "boolean", "object"])))
        case "numbers":  # as objects, which is how they often come out of a mixed array
            chosen = draw(st.lists(st.integers(-9, 9), min_size=n, max_size=n))
            return pd.Series(chosen, dtype=object)
        case _:
            of = draw(st.sampled_from([words, st.integers(-5, 5), st.booleans()]))
            categories = draw(st.lists(of, min_size=1, max_size=5, unique=True))
            codes = draw(st.lists(st.integers(0, len(categories) - 1), min_size=n, max_size=n))
            dtype = pd.CategoricalDtype(categories, ordered=kind == "ordered")
            return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))


@st.composite
def frames(draw: Draw, max_rows: int = 6, max_columns: int = 4) -> pd.DataFrame:
    """Rows of mixed columns."""
    n = draw(st.integers(1, max_rows))
    labels = st.one_of(words, st.integers(0, 20))
    names = draw(st.lists(labels, min_size=1, max_size=max_columns, unique_by=str))
    frame = pd.DataFrame({i: draw(columns(n)) for i in range(len(names))})
    frame.columns = pd.Index(names)
    return frame


@st.composite
def arrays(draw: Draw, max_rows: int = 6, max_columns: int = 4) -> Any:
    """Rows as a 2-D array."""
    shape = (draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns)))
    size = shape[0] * shape[1]
    kind = draw(st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "object", "<U4"]))
    if kind == "object":
        by_column = [draw(columns(shape[0])).tolist() for _ in range(shape[1])]
        array = np.empty(shape, dtype=object)
        for j, column in enumerate(by_column):
            array[:, j] = column
        return array
    of: st.SearchStrategy[Any]
    match kind:
        case "bool":
            of = st.booleans()
        case "<U4":
            of = words
        case "int64" | "uint8":
            of = st.integers(0, 255)
        case _:
            of = st.floats(-1000, 1000, width=32)
    return np.array(draw(st.lists(of, min_size=size, max_size=size)), dtype=kind).reshape(shape)


@st.composite
def spaces(draw: Draw) -> Space:
    """A space with ranges beyond its data, frozen and directed features, weights and units."""
    data = draw(st.one_of(frames(), arrays()))
    space = Space.infer(data)
    ranges: dict[str | int, Any] = {}
    for feature in space.features:
        if isinstance(feature, (Continuous, Integer)) and draw(st.booleans()):
            ranges[feature.name] = (
                feature.low - draw(st.floats(0, 100)),
                feature.high + draw(st.floats(0, 100)),
            )
    space = space.widened(ranges)
    directed = [f.name for f in space.features if isinstance(f, (Continuous, Integer, Ordinal))]
    directions: dict[str | int, Any] = {
        n: draw(st.sampled_from(["increase", "decrease"])) for n in directed if draw(st.booleans())
    }
    numbers = [f.name for f in space.features if isinstance(f, (Continuous, Integer))]
    return space.adjust(
        units={n: draw(words) for n in numbers if draw(st.booleans())},
        freeze=[n for n in space.names if draw(st.integers(0, 3)) == 0],
        directions=directions,
        weights={n: draw(st.floats(0.1, 10)) for n in space.names if draw(st.booleans())},
    )


@st.composite
def points(draw: Draw, space: Space, max_points: int = 6) -> FloatArray:
    """Points in and around the box of a space, not snapped, (n, d)."""
    n = draw(st.integers(1, max_points))
    share = st.one_of(st.floats(-0.5, 1.5), st.sampled_from([0.0, 0.5, 1.0]))
    shares = np.array(draw(st.lists(share, min_size=n * len(space), max_size=n * len(space))))
    beyond = draw(st.sampled_from([0.0, 0.0, 1e3]))
    width = space.high - space.low + beyond
    return np.asarray(space.low + shares.reshape(n, len(space)) * width)


@st.composite
def spaces_with_points(draw: Draw) -> tuple[Space, FloatArray]:
    space = draw(spaces())
    return space, draw(points(space))


@st.composite
def regions_with_points(draw: Draw) -> tuple[Region, FloatArray]:
    """A factual, what it may become by its features, random ranges and lists of values, and points around."""
    space = draw(spaces())
    factual = space.snap(draw(points(space, max_points=1)))[0]
    ranges: dict[str | int, Any] = {}
    values: dict[str | int, Any] = {}
    for j, feature in enumerate(space.features):
        if feature.frozen or feature.direction is not None or draw(st.booleans()):
            continue
        if isinstance(feature, (Continuous, Integer)) and draw(st.booleans()):
            some_points = space.snap(draw(points(space)))
            values[feature.name] = [feature.value(code) for code in some_points[:, j]]
        elif isinstance(feature, (Continuous, Integer)):
            ends = [draw(st.floats(0, 1)) for _ in range(2)]
            low, high = (space.low[j] + end * (space.high[j] - space.low[j]) for end in sorted(ends))
            ranges[feature.name] = (np.floor(low), np.ceil(high))
        else:
            some = st.lists(st.sampled_from(feature.categories), min_size=1, unique=True)
            values[feature.name] = draw(some)
    try:
        region = Region.of(space, factual, ranges=ranges, values=values)
    except ValueError as error:
        assume("No feature can change" not in str(error))
        raise
    return region, draw(points(space))
