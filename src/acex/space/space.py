"""Rows outside, points inside: `Space` crosses between the two.

A *row* is what people read; a *point* is one float a feature, the code of its value (see `feature`): the number itself,
or the position in `categories`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from acex.arrays import BoolArray, FloatArray, IntArray, Rows
from acex.space.columns import (
    Column,
    Missing,
    all_at_once,
    as_data,
    as_frame,
    dtype_from_json,
    dtype_to_json,
    holds_gaps,
    index_of,
    infer_feature,
    known_values,
    labels_from_json,
    labels_to_json,
)
from acex.space.feature import MISSING_CODE, Direction, Feature, feature_from_json, feature_to_json
from acex.space.kinds import Categorical, Numeric
from acex.values import Remark, did_you_mean, is_missing, listed

Grids: TypeAlias = Mapping[str | int, float | None] | Literal[False] | None


@dataclass(frozen=True)
class Space:
    """The features of a row, in order, and how rows are written down.

    `columns` and `dtypes` are those of the data frame that rows come from, `nested` says whether the columns have
    several levels; `array_dtype` is set instead when rows come as a 2-D array. `Space.infer(data)` and
    `space.like(data)` fill them in, so that `decode` gives back exactly what the model is used to. `missing` says what
    happens to known rows with gaps: "drop" leaves them out, "keep" is for models that accept gaps.

    Example:
        >>> import acex
        >>> school = acex.Ordinal("school", ("primary", "high"))
        >>> space = acex.Space((acex.Continuous("income", 0, 1e6), school))
        >>> space.encode({"income": 1200.0, "school": "high"})
        array([[1.2e+03, 1.0e+00]])
    """

    features: tuple[Feature, ...]
    columns: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    dtypes: tuple[Any, ...] | None = field(default=None, kw_only=True)
    array_dtype: Any = field(default=None, kw_only=True)
    nested: bool = field(default=False, kw_only=True)
    nones: tuple[int, ...] = field(default=(), kw_only=True)  # columns of objects in which a gap is None
    missing: Missing = field(default="drop", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if self.missing not in get_args(Missing):
            raise ValueError(f"missing must be 'drop' or 'keep', got {self.missing!r}.")
        if not self.features:
            raise ValueError("A space needs at least one feature.")
        for feature in self.features:
            if not isinstance(feature, Feature):
                raise TypeError(f"expected features such as acex.Continuous('age', 18, 99), got {feature!r}.")
        if len(set(self.names)) < len(self):
            raise ValueError(f"Feature names must differ, got {listed(self.names)}.")

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.features]

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def is_nominal(self) -> BoolArray:
        """Which features have no order, (d,)."""
        return np.array([not f.ordered for f in self.features])

    @cached_property
    def n_codes(self) -> IntArray:
        """How many codes each feature without an order has, 0 for the others, (d,)."""
        return np.array([0 if f.ordered else int(f.high) + 1 for f in self.features])

    @cached_property
    def grid(self) -> FloatArray:
        """The step in which a search moves each feature, (d,); 0 for any float."""
        return np.array([float(f.grid) for f in self.features])

    @cached_property
    def is_whole(self) -> BoolArray:
        """Which features have whole numbers for codes, (d,)."""
        return np.array([f.is_whole for f in self.features])

    @cached_property
    def weights(self) -> FloatArray:
        """Price of a change relative to the other features, (d,)."""
        return np.array([f.weight for f in self.features])

    @cached_property
    def low(self) -> FloatArray:
        """Least value of each feature, as its column can hold it, (d,)."""
        return np.array([column.low for column in self.held])

    @cached_property
    def high(self) -> FloatArray:
        """Greatest value of each feature, as its column can hold it, (d,)."""
        return np.array([column.high for column in self.held])

    @cached_property
    def held(self) -> tuple[Column, ...]:
        """Each feature as its column holds it, (d,)."""
        dtypes = (self.array_dtype,) * len(self) if self.dtypes is None else self.dtypes
        return tuple(Column(f, t, j in self.nones) for j, (f, t) in enumerate(zip(self.features, dtypes, strict=True)))

    # -- values that are missing -----------------------------------------------------------------

    @cached_property
    def gap_codes(self) -> FloatArray:
        """The code of a gap in each feature, (d,); NaN where there are none."""
        return np.array([f.gap for f in self.features])

    @cached_property
    def gapped(self) -> IntArray:
        """The features with an order in which there may be gaps."""
        return np.flatnonzero(self.gap_codes == MISSING_CODE)

    def is_gap(self, X: FloatArray) -> BoolArray:
        """Which values are missing, of the shape of the points."""
        return np.asarray(self.gap_codes == X)

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def infer(
        cls,
        data: Rows,
        *,
        grid: Grids = None,
        missing: Missing = "drop",
        other: Mapping[str | int, Any] | None = None,
    ) -> Space:
        """The space that `data` lives in: kinds from its dtypes, ranges and categories from its values.

        Floats become continuous, integers integer, ordered categoricals ordinal; strings, booleans and
        other categoricals nominal. The columns of an array are called x0, x1, ...

        Args:
            grid: the steps in which numbers are moved, such as {"loan": 50, "rate": None} (None: any number); for the
                others, the steps in which the data come. False for none at all.
            missing: "drop" leaves out rows with gaps; "keep" is for models that accept gaps: where a column can hold
                gaps, so can the feature.
            other: for features with categories, the category that stands for all unknown values, such as
                {"job": "other"}.
        """
        frame = as_data(data)
        if frame.empty:
            raise ValueError(f"data is empty: expected rows and columns, got the shape {frame.shape}.")
        prefix = "" if isinstance(data, pd.DataFrame) else "x"
        columns = [(f"{prefix}{label}", column) for label, column in known_values(frame, missing)]
        features = all_at_once(partial(infer_feature, name, column) for name, column in columns)
        features = [feature.as_written(column) for feature, (_, column) in zip(features, columns, strict=True)]
        return cls(tuple(features), missing=missing).like(data).adjust(other=other).with_grid(grid)

    def like(self, data: Rows) -> Space:
        """The same features, with rows written as in `data` (a DataFrame or a 2-D array).

        With missing="keep", every feature whose column can hold gaps may have them.

        Raises:
            ValueError: a column is missing or unknown, or of a dtype that cannot hold the feature's values.
        """
        frame = as_data(data)
        if isinstance(data, pd.DataFrame):
            columns = self._match_columns(frame.columns, "data")
            dtypes, nested = tuple(frame[c].dtype for c in columns), isinstance(frame.columns, pd.MultiIndex)
            written = replace(self, columns=columns, dtypes=dtypes, nested=nested, array_dtype=None)
        else:
            if frame.shape[1] != len(self):
                raise ValueError(f"data has {frame.shape[1]} columns, the space {len(self)} features.")
            written = replace(self, columns=None, dtypes=None, nested=False, array_dtype=np.asarray(data).dtype)
        all_at_once(partial(column.feature.check, column.dtype) for column in written.held)
        if self.missing == "drop":
            return written
        features = tuple(replace(c.feature, gaps=True) if holds_gaps(c.dtype) else c.feature for c in written.held)
        values = [] if written.columns is None else [frame[column] for column in written.columns]
        nones = (j for j, column in enumerate(values) if column.dtype == object and any(v is None for v in column))
        return replace(written, features=features, nones=tuple(nones))

    def adjust(
        self,
        *,
        freeze: Iterable[str | int] = (),
        directions: Mapping[str | int, Direction] | None = None,
        weights: Mapping[str | int, float] | None = None,
        units: Mapping[str | int, str] | None = None,
        other: Mapping[str | int, Any] | None = None,
    ) -> Space:
        """The same space with some features frozen, directed, weighted, or numbers in units, such as "months".

        Args:
            other: for features with categories, the one that stands for all values that are none.
        """
        if isinstance(freeze, str):
            raise ValueError(f"freeze takes a list of names, got the text {freeze!r}; write [{freeze!r}].")
        features = list(self.features)
        for name in freeze:
            j = self.index(name)
            features[j] = replace(features[j], frozen=True)
        given: dict[str, Any] = {"direction": directions, "weight": weights, "unit": units}
        for what, by_name in given.items():
            for j, value in self.by_index(f"{what}s", by_name).items():
                if what == "unit" and not features[j].is_number:
                    raise ValueError(f"{features[j].name!r}: only numbers have a unit, got {value!r} for categories.")
                new: dict[str, Any] = {what: value}
                features[j] = replace(features[j], **new)
        for j, category in self.by_index("other", other).items():
            feature = features[j]
            if not isinstance(feature, Categorical):
                raise ValueError(f"other[{feature.name!r}]: only categories have one, and this is {feature.kind}.")
            features[j] = replace(feature, other=category)
        return replace(self, features=tuple(features))

    def with_grid(self, grid: Grids) -> Space:
        """The same space, its numbers moved in these steps; see `infer`."""
        if grid is None:
            return self
        features = list(self.features)
        steps = dict.fromkeys(range(len(self))) if grid is False else self.by_index("grid", grid)
        for j, step in steps.items():
            if isinstance(features[j], Numeric):
                off = {f.name: f.default for f in fields(features[j]) if f.name in ("grid", "digits")}
                features[j] = replace(features[j], **{**off, **({} if step is None else {"grid": step})})
            elif step is not None:
                raise ValueError(
                    f"grid[{features[j].name!r}]: only numbers have a grid, and this is {features[j].kind}."
                )
        return replace(self, features=tuple(features))

    def widened(
        self, ranges: Mapping[str | int, Any] | None = None, values: Mapping[str | int, Any] | None = None
    ) -> Space:
        """The same space with room for what `ranges` and `values` allow; an open end widens nothing.

        Raises:
            ValueError: a range is not a pair, values are not a list, or both name the same feature.
        """
        pairs, lists = self.by_index("ranges", ranges), self.by_index("values", values)
        features = list(self.features)
        for j in pairs.keys() & lists.keys():
            raise ValueError(f"values[{features[j].name!r}]: also limited by ranges; use one of the two.")
        for j, pair in pairs.items():
            ends = np.array(features[j].ends(pair))
            features[j] = features[j].reaching(ends[np.isfinite(ends)])
        for j, wanted in lists.items():
            known = [value for value in features[j].wanted(wanted) if value is not None]
            features[j] = features[j].reaching(features[j].choices(known)) if known else features[j]
        return replace(self, features=tuple(features))

    def split_limits(self, limits: Mapping[Any, Any] | None) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Ranges and values from one mapping that holds both, as acex 0.2 wrote it.

        Lists of categories, and [None] for a gap, are values; everything else is a range.
        """
        ranges: dict[Any, Any] = {}
        values: dict[Any, Any] = {}
        for j, wanted in self.by_index("ranges", limits).items():
            is_gap = isinstance(wanted, (list, tuple, Set)) and len(wanted) == 1 and all(map(is_missing, wanted))
            target = values if self.features[j].lists_codes or is_gap else ranges
            target[self.names[j]] = wanted
        return ranges, values

    def reaching(self, rows: Rows) -> tuple[Space, FloatArray]:
        """The same space, its numeric ranges widened to hold these rows, and their points in it, (n, d)."""
        pairs = list(zip(self.held, self._columns_of(rows), strict=True))
        codes = all_at_once(partial(column.codes, values) for column, values in pairs)
        features = [c.feature.reaching(x[x != c.feature.gap]) for (c, _), x in zip(pairs, codes, strict=True)]
        if features == list(self.features):
            return self, np.column_stack(codes)
        space = replace(self, features=tuple(features))
        return space, space.encode(rows)

    def out_of_range(self, x: FloatArray) -> tuple[Remark, ...]:
        """A remark for each value of a point, (d,), that lies outside the space."""
        is_outside = ((x < self.low) | (x > self.high)) & ~self.is_gap(x)
        outside = [(self.features[j], x[j]) for j in np.flatnonzero(is_outside)]
        return tuple(
            Remark(
                "out_of_range",
                f"{f.name!r}: {f.text(f.value(code), 15)} lies beyond {f.span()}, so its range was widened to hold it.",
                (f.name,),
            )
            for f, code in outside
        )

    def unknown_categories(self, rows: Rows) -> tuple[Remark, ...]:
        """A remark for each value of rows that is no known category and counts as `other`."""
        if not any(isinstance(f, Categorical) and f.other is not None for f in self.features):
            return ()
        pairs = zip(self.features, self._columns_of(rows), strict=True)
        found = [(f, v) for f, values in pairs if isinstance(f, Categorical) for v in f.unknown(values)]
        return tuple(
            Remark(
                "unknown_category", f"{f.name!r}: {v!r} is not a known category and counts as {f.other!r}.", (f.name,)
            )
            for f, v in found
        )

    def by_index(self, what: str, given: Mapping[str | int, Any] | None) -> dict[int, Any]:
        """What a mapping from names gives, such as `ranges`, by position of the feature."""
        if given is not None and not isinstance(given, Mapping):
            raise ValueError(f"{what} takes a mapping from names to values, got {given!r}.")
        return {self.index(name): value for name, value in (given or {}).items()}

    def index(self, name: str | int) -> int:
        """Position of a feature, by name, by the label of its column or (for arrays) by column number."""
        if name in self.names:
            return self.names.index(name)
        if self.columns is not None and name in self.columns:
            return self.columns.index(name)
        numbers = range(len(self)) if self.columns is None else ()
        if name in numbers and not isinstance(name, bool):
            return int(name)
        raise ValueError(f"{name!r} is not a feature; there are {listed(self.names)}.{did_you_mean(name, self.names)}")

    def feature(self, name: str | int) -> Feature:
        """The feature of this name; see `index`."""
        return self.features[self.index(name)]

    # -- rows to points and back -----------------------------------------------------------------

    def encode(self, rows: Rows) -> FloatArray:
        """Points for rows, (n, d); a single row gives (1, d).

        Raises:
            ValueError: a column is missing or unknown, a value is missing, infinite, of no known
                category or out of range. The message names column and value.
        """
        pairs = zip(self.held, self._columns_of(rows), strict=True)
        return np.column_stack(all_at_once(partial(column.encode, values) for column, values in pairs))

    def _columns_of(self, rows: Rows) -> list[pd.Series[Any]]:
        """The values of each feature, in the order of the features."""
        frame = as_frame(rows)
        where, width = "the row" if len(frame) == 1 else "the rows", frame.shape[1]
        if self.columns is None and frame.columns.equals(pd.RangeIndex(width)):  # an array has no names
            if width != len(self):
                raise ValueError(f"{where}: expected {len(self)} values ({listed(self.names)}), got {width}.")
            frame.columns = pd.Index(self.names)
        return [frame[label] for label in self._match_columns(frame.columns, where)]

    def _match_columns(self, columns: pd.Index[Any], where: str) -> tuple[Hashable, ...]:
        """The label of each feature's column among `columns`, in the order of the features."""
        if any(c is not None and is_missing(c) for c in columns):
            raise ValueError(f"{where}: every column needs a name, got {listed(columns)}.")
        by_name: dict[str, Hashable] = {str(c): c for c in columns}
        if len(by_name) < len(columns):
            raise ValueError(f"{where}: column names must differ, got {listed(columns)}.")
        names = self.names
        missing = [name for name in names if name not in by_name]
        extra = by_name.keys() - set(names)
        if missing:
            raise ValueError(
                f"{where}: missing {listed(missing)}; expected the columns {listed(names)}, got {listed(columns)}."
            )
        if extra:
            raise ValueError(f"{where}: unknown column {listed(sorted(extra))}; expected only {listed(names)}.")
        return tuple(by_name[name] for name in names)

    def decode(self, X: FloatArray) -> Rows:
        """Rows for points, snapped to values each feature can hold: a DataFrame, or a 2-D array."""
        X = self.snap(np.atleast_2d(X))
        if self.array_dtype is not None:
            out = np.empty(X.shape, dtype=self.array_dtype)
            for j, (column, x) in enumerate(zip(self.held, X.T, strict=True)):
                is_plain = column.feature.is_number and self.array_dtype.kind != "O"
                out[:, j] = np.where(x == column.feature.gap, np.nan, x) if is_plain else column.decode(x, None)
            return out
        columns = [column.decode(x, column.dtype) for column, x in zip(self.held, X.T, strict=True)]
        # Arrays need not be aligned; an array of objects would be looked through for another dtype.
        frame = pd.DataFrame({j: c if c.dtype == object else c.array for j, c in enumerate(columns)})
        frame.columns = self._index
        return frame

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return index_of(self.columns or self.names, nested=self.nested)

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points whose every value the feature can hold, (n, d).

        For each such point, `encode(decode(point))` is that point: also when the data are float32 or int8.
        """
        gaps = self.is_gap(X) if len(self.gapped) else None
        X = np.clip(X, self.low, self.high)
        X = np.where(self.is_whole, np.rint(X), X)
        for j in self._narrow:
            X[:, j] = self.held[j].nearest(X[:, j])
        return X if gaps is None else np.where(gaps, self.gap_codes, X)

    @cached_property
    def _narrow(self) -> list[int]:
        """The columns whose floats are coarser than a point's."""
        dtypes = [column.number_dtype for column in self.held]
        return [j for j, dtype in enumerate(dtypes) if dtype.kind == "f" and dtype != np.float64]

    def frame(self, X: FloatArray) -> pd.DataFrame:
        """Rows for points as a DataFrame, also where the model takes arrays."""
        rows = self.decode(X)
        return rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=self.names)

    def _repr_html_(self) -> str:
        from acex.show.report import space_html

        return space_html(self)

    # -- as JSON ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The space in plain values, as JSON holds them; `from_dict` reads it back.

        Categories that JSON does not know, such as intervals, are written as text and come back as text.
        """
        features = [feature_to_json(f) for f in self.features]
        return {"features": features, **({} if self.missing == "drop" else {"missing": self.missing}), **self.form()}

    def form(self) -> dict[str, Any]:
        """How rows are written down, in plain values; `rows_in_form` follows it."""
        return {
            "columns": None if self.columns is None else labels_to_json(self.columns),
            **({"nested": True} if self.nested else {}),
            **({"nones": list(self.nones)} if self.nones else {}),
            "dtypes": None if self.dtypes is None else [dtype_to_json(d) for d in self.dtypes],
            "array_dtype": None if self.array_dtype is None else str(self.array_dtype),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Space:
        """The space that `to_dict` wrote down."""
        columns, dtypes, array_dtype = data["columns"], data["dtypes"], data["array_dtype"]
        return cls(
            tuple(feature_from_json(f) for f in data["features"]),
            columns=None if columns is None else labels_from_json(columns),
            nested=data.get("nested", False),
            nones=tuple(data.get("nones", ())),
            missing=data.get("missing", "drop"),
            dtypes=None if dtypes is None else tuple(dtype_from_json(d) for d in dtypes),
            array_dtype=None if array_dtype is None else np.dtype(array_dtype),
        )
