"""Conversion between rows and points: `Space`.

A *row* is what people read. A *point* has one float per feature, the code of its value (see `feature`): the number
itself, or the position in `categories`. A column's dtype limits what it can *hold*: 0.1 becomes the nearest float32,
300 the largest int8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
import pandas as pd
from pandas.api import types

from acex.arrays import BoolArray, FloatArray, IntArray, Rows, rows_at
from acex.space.feature import KINDS, MISSING_CODE, Direction, Feature, feature_from_json, feature_to_json
from acex.space.kinds import ENOUGH_IDS, Categorical, Date, Nominal, Numeric, identifies_rows, refuse
from acex.space.relations import find_relations
from acex.values import Remark, as_json, did_you_mean, is_missing, joined_words, listed

T = TypeVar("T")
Missing: TypeAlias = Literal["drop", "keep"]

Grids: TypeAlias = Mapping[str | int, float | None] | Literal[False] | None

# Arrow types that columns may have: pandas can restore these dtypes from their names, which documents store.
ARROW = re.compile(r"(u?int\d+|float|double|halffloat|bool|(large_)?string|timestamp\[.*\])\[pyarrow\]")


@dataclass(frozen=True)
class Column:
    """A feature and the dtype of its column; None: the feature's default dtype."""

    feature: Feature
    dtype: Any = None
    none: bool = False  # whether a gap is written as None, in a column of dtype object

    @cached_property
    def number_dtype(self) -> np.dtype[Any]:
        """The dtype of the numbers: the column's if that is a float or an integer dtype, otherwise float64."""
        dtype = getattr(self.dtype, "numpy_dtype", self.dtype)
        is_number = isinstance(dtype, np.dtype) and dtype.kind in "fiu"
        return dtype if is_number and self.feature.is_number else np.dtype(np.float64)

    @cached_property
    def low(self) -> float:
        """The feature's lower bound, rounded to the column's dtype."""
        return float(self.nearest(self.feature.low))

    @cached_property
    def high(self) -> float:
        """The feature's upper bound, rounded to the column's dtype."""
        return float(self.nearest(self.feature.high))

    def nearest(self, values: Any) -> FloatArray:
        """The nearest values that the column's dtype can hold."""
        dtype = self.number_dtype
        if dtype == np.float64:
            return np.asarray(values, dtype=np.float64)
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        held: FloatArray = np.clip(values, float(limits.min), float(limits.max)).astype(dtype).astype(np.float64)
        return np.where(np.equal(values, self.feature.gap), values, held) if self.feature.gaps else held

    @property
    def every(self) -> FloatArray:
        """The codes allowed if nothing limits the feature, rounded to the column's dtype; see `Feature.every`."""
        return self.feature.every(self.low, self.high)

    def within(self, pair: Any) -> FloatArray:
        """Lower and upper bound given a pair of `ranges`; a bound that the dtype cannot hold moves inwards."""
        least, most = self.feature.ends(pair)
        wanted = np.array([max(least, self.low), min(most, self.high)])
        held, number = self.nearest(wanted), self.number_dtype.type
        if held[0] < wanted[0]:
            held[0] = np.nextafter(number(held[0]), number(np.inf))
        if held[-1] > wanted[-1]:
            held[-1] = np.nextafter(number(held[-1]), number(-np.inf))
        if held[0] > held[-1]:
            raise ValueError(f"ranges[{self.feature.name!r}]: no value of the feature lies within {pair!r}.")
        return held

    def listed(self, values: Any) -> FloatArray:
        """The codes of a list of allowed `values`, ascending; fractions are rounded to the column's dtype."""
        codes = self.feature.choices(values)
        held = self.nearest(codes)
        is_lost = (held < self.low) | (held > self.high) | ((held != codes) & (self.number_dtype.kind != "f"))
        lost = codes[is_lost & (codes != self.feature.gap)]
        if len(lost):
            raise ValueError(
                f"values[{self.feature.name!r}]: {self.feature.text(self.feature.value(lost[0]), 15)} does not fit "
                f"the column ({self.dtype}), whose values are {self.feature.span()}."
            )
        return np.unique(held)

    def codes(self, values: pd.Series[Any]) -> FloatArray:
        """The codes of values, rounded to the column's dtype, (n,); they may lie outside the feature's bounds."""
        missing = np.asarray(values.array.isna(), dtype=bool)
        if missing.any() and self.feature.gaps:
            x = np.full(len(values), self.feature.gap)
            x[~missing] = self.codes(values[~missing])
            return x
        if missing.any():
            count = f"{int(missing.sum())} of {len(values)} values are missing (first in row {int(missing.argmax())})"
            keep = 'missing="keep" (in the shell --missing keep)'
            raise ValueError(
                f"{self.feature.name!r}: {'the value is missing' if len(values) == 1 else count}. Fill in values, or "
                f"drop the column; or, for a model that accepts missing values and a column that has them, {keep}."
            )
        x = self.feature.encode(values)
        return self.nearest(x) if self.number_dtype.kind == "f" else x

    def decode(self, x: FloatArray, dtype: Any) -> pd.Series[Any]:
        """The column for codes, (n,); gaps become the missing value of the dtype."""
        known = np.flatnonzero(x != self.feature.gap)
        if len(known) == len(x):
            return self.feature.decode(x, dtype)
        column = self.feature.decode(x[known], dtype).set_axis(known).reindex(range(len(x)))
        return column.where(column.notna(), None) if self.none else column

    def encode(self, values: pd.Series[Any]) -> FloatArray:
        """The codes of values, rounded to the column's dtype, (n,); ValueError for one outside the bounds."""
        name, low, high = self.feature.name, self.low, self.high
        x = self.codes(values)
        bad = ((x < low) | (x > high)) & (x != self.feature.gap)
        if bad.any():
            ends = " to ".join(self.feature.text(self.feature.value(end), 15) for end in (low, high))
            advice = "If it is a real value, widen the range in the space (in the shell in --schema)."
            refuse(name, values, bad, f"is outside {ends}. {advice}")
        return x


@dataclass(frozen=True)
class Space:
    """The features of a row, in order, and the format of rows.

    `columns` and `dtypes` are those of the data frame that rows come from; `array_dtype` is set instead if rows come
    as a 2-D array. `Space.infer(data)` and `space.like(data)` fill them in, so that `decode` returns rows in exactly
    the format that the model expects. `missing` says what happens to known rows with gaps (missing values): "drop"
    leaves them out, "keep" is for models that accept gaps.

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
    nones: tuple[int, ...] = field(default=(), kw_only=True)  # positions of object columns with None for a gap
    missing: Missing = field(default="drop", kw_only=True)
    relations: tuple[str, ...] = field(default=(), kw_only=True)  # rules for every row that satisfies them
    inferred: frozenset[str] = field(
        default=frozenset(), kw_only=True, compare=False
    )  # features that were not declared

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        object.__setattr__(self, "relations", tuple(self.relations))
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
        """Number of codes of each nominal feature, 0 for the others, (d,)."""
        return np.array([0 if f.ordered else int(f.high) + 1 for f in self.features])

    @cached_property
    def is_whole(self) -> BoolArray:
        """Which features have integer codes, (d,)."""
        return np.array([f.is_whole for f in self.features])

    @cached_property
    def weights(self) -> FloatArray:
        """Relative cost of changing each feature, (d,)."""
        return np.array([f.weight for f in self.features])

    @cached_property
    def low(self) -> FloatArray:
        """Lower bound of each feature, rounded to the dtype of its column, (d,)."""
        return np.array([column.low for column in self.held])

    @cached_property
    def high(self) -> FloatArray:
        """Upper bound of each feature, rounded to the dtype of its column, (d,)."""
        return np.array([column.high for column in self.held])

    @cached_property
    def held(self) -> tuple[Column, ...]:
        """Each feature with the dtype of its column."""
        dtypes = (self.array_dtype,) * len(self) if self.dtypes is None else self.dtypes
        return tuple(Column(f, t, j in self.nones) for j, (f, t) in enumerate(zip(self.features, dtypes, strict=True)))

    # -- missing values --------------------------------------------------------------------------

    @cached_property
    def gap_codes(self) -> FloatArray:
        """The code of a gap in each feature, (d,); NaN for features without gaps."""
        return np.array([f.gap for f in self.features])

    @cached_property
    def gapped(self) -> IntArray:
        """Positions of the ordered features that may have gaps."""
        return np.flatnonzero(self.gap_codes == MISSING_CODE)

    def is_gap(self, X: FloatArray) -> BoolArray:
        """Which values are missing, in the shape of X."""
        return np.asarray(self.gap_codes == X)

    def without_identifiers(self, X: FloatArray) -> FloatArray:
        """Known points, (m, d), with a constant in every column that only identifies rows.

        Such a column is frozen and inferred, and all its values are distinct, or it has the name and the many values
        of an identifier. Whatever correlates with an identifier, such as the time at which it was assigned, would
        otherwise look like a property of the row.
        """
        for j, feature in enumerate(self.features):
            if not (feature.frozen and feature.name in self.inferred):
                continue
            known = X[X[:, j] != feature.gap, j]
            n = len(np.unique(known))
            if n == len(known) >= ENOUGH_IDS or identifies_rows(feature.name, n, len(known)):
                X = np.where(np.arange(len(self)) == j, known[0], X)
        return X

    # -- construction ----------------------------------------------------------------------------

    @classmethod
    def infer(
        cls,
        data: Rows,
        *,
        grid: Grids = None,
        missing: Missing = "drop",
        other: Mapping[str | int, Any] | None = None,
        text: Iterable[str] = (),
        dates: Iterable[str] | Mapping[str, str | None] = (),
        relations: bool = True,
    ) -> Space:
        """The space of `data`: kinds of features from its dtypes, ranges and categories from its values.

        Floats become continuous, integers integer, ordered categoricals ordinal; strings, booleans and
        other categoricals nominal. The columns of an array are called x0, x1, ...

        Args:
            grid: steps by which a search changes numbers, such as {"loan": 50, "rate": None} (None: any number). By
                default they are inferred from the data; a column with few distinct values takes only those. False:
                no grid at all.
            missing: "drop" leaves out rows with gaps (missing values); "keep" is for models that accept gaps: a feature
                may have them if its column can hold them.
            other: for categorical features, the category used for unknown values, such as {"job": "other"}.
            text: columns to treat as categories even if they hold numbers, such as codes.
            dates: columns of dates; a mapping gives formats, such as {"day": "%d/%m/%Y"}.
            relations: keep numeric relations that hold in every row of data, such as total == a + b.
        """
        frame = as_data(data)
        if frame.empty:
            raise ValueError(f"data is empty: expected rows and columns, got the shape {frame.shape}.")
        prefix = "" if isinstance(data, pd.DataFrame) else "x"
        columns = [(f"{prefix}{label}", column) for label, column in known_values(frame, missing)]
        infer_as = inferring(text, dates, [name for name, _ in columns])
        features = all_at_once(partial(infer_as, name, column) for name, column in columns)
        space = cls(tuple(features), missing=missing, inferred=frozenset(name for name, _ in columns))
        space = space.like(data).adjust(other=other).with_grid(grid)
        return space.with_relations(frame) if relations else space

    def with_relations(self, frame: pd.DataFrame) -> Space:
        """The same space with the relations in this table between inferred numbers and days that are not frozen."""
        rows = frame[is_complete(frame)] if self.missing == "drop" else frame
        use = [j for j, f in enumerate(self.features) if f.is_counted and not f.frozen and f.name in self.inferred]
        if not use:
            return self
        X = np.column_stack([self.held[j].codes(rows.iloc[:, j]) for j in use])
        is_gap, names = self.gap_codes[use] == X, np.array([self.names[j] for j in use], dtype=object)
        full = ~is_gap.any(axis=0)  # columns without gaps: all rows can be used
        found = find_relations(names[full].tolist(), X[:, full])
        if not full.all():
            found += find_relations(names.tolist(), X[~is_gap.any(axis=1)])
        return replace(self, relations=tuple(dict.fromkeys(found)))

    def like(self, data: Rows) -> Space:
        """The same features, with the row format of `data` (a DataFrame or a 2-D array).

        With missing="keep", every feature whose column can hold gaps may have them.

        Raises:
            ValueError: a column is missing or unknown, or of a dtype that cannot hold the feature's values.
        """
        frame = as_data(data)
        if isinstance(data, pd.DataFrame):
            at = self._match_columns(frame.columns, "data")
            columns, dtypes = tuple(frame.columns[at]), tuple(frame.dtypes.iloc[at])
            written = replace(self, columns=columns, dtypes=dtypes, array_dtype=None)
        else:
            if frame.shape[1] != len(self):
                raise ValueError(f"data has {frame.shape[1]} columns, the space {len(self)} features.")
            written = replace(self, columns=None, dtypes=None, array_dtype=np.asarray(data).dtype)
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
        """The same space with features frozen, limited to a direction, weighted, or given a unit such as "months".

        Args:
            other: for categorical features, the category used for unknown values.
        """
        if isinstance(freeze, str):
            raise ValueError(f"freeze takes a list of names, got the text {freeze!r}; write [{freeze!r}].")
        given: dict[str, Mapping[str | int, Any] | None] = {
            "frozen": dict.fromkeys(freeze, True), "direction": directions, "weight": weights,
            "unit": units, "other": other,
        }  # fmt: skip
        features = list(self.features)
        for what, by_name in given.items():
            for j, value in self.by_index(what, by_name).items():
                if what not in (f.name for f in fields(features[j])):
                    raise ValueError(f"{features[j].name!r}: a feature of kind {features[j].kind} has no {what}.")
                new: dict[str, Any] = {what: value}
                features[j] = replace(features[j], **new)
        return replace(self, features=tuple(features))

    def with_grid(self, grid: Grids) -> Space:
        """The same space with these steps for numbers; see `infer`."""
        if grid is None:
            return self
        features = list(self.features)
        steps = dict.fromkeys(range(len(self))) if grid is False else self.by_index("grid", grid)
        for j, step in steps.items():
            if step is not None and not isinstance(features[j], Numeric):
                raise ValueError(
                    f"grid[{features[j].name!r}]: only numbers have a grid, and this is {features[j].kind}."
                )
            off = {f.name: f.default for f in fields(features[j]) if f.name in ("grid", "digits", "values")}
            features[j] = replace(features[j], **{**off, **({} if step is None else {"grid": step})})
        return replace(self, features=tuple(features))

    def widened(
        self, ranges: Mapping[str | int, Any] | None = None, values: Mapping[str | int, Any] | None = None
    ) -> Space:
        """The same space, with features widened to what `ranges` and `values` allow; an open end widens nothing.

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
            codes = features[j].choices(wanted)
            features[j] = features[j].reaching(codes[codes != features[j].gap])
        return replace(self, features=tuple(features))

    def reaching(self, rows: Rows) -> tuple[Space, FloatArray]:
        """The same space with ranges widened to contain these rows, and their points in it, (n, d)."""
        pairs = list(zip(self.held, self.columns_of(rows), strict=True))
        codes = all_at_once(partial(column.codes, values) for column, values in pairs)
        features = [c.feature.reaching(x[x != c.feature.gap]) for (c, _), x in zip(pairs, codes, strict=True)]
        if features == list(self.features):
            return self, np.column_stack(codes)
        space = replace(self, features=tuple(features))
        return space, space.encode(rows)

    def remarks_on(self, row: Rows, x: FloatArray) -> tuple[Remark, ...]:
        """A remark for each value of a row with point x, (d,), that is out of range or an unknown category."""
        out = []
        # Without `other`, an unknown category has already raised an error.
        others = {j for j, f in enumerate(self.features) if isinstance(f, Categorical) and f.other is not None}
        columns = self.columns_of(row) if others else []
        for j, (f, code, low, high) in enumerate(zip(self.features, x, self.low, self.high, strict=True)):
            if not low <= code <= high and code != f.gap:
                what = f"{f.text(f.value(code), 15)} lies beyond {f.span()}, so its range was widened to hold it"
                out.append(Remark("out_of_range", f"{f.name!r}: {what}.", (f.name,)))
            if isinstance(f, Categorical) and j in others:
                what = f"is not a known category and counts as {f.other!r}."
                unknown = f.unknown(columns[j].dropna())
                out += [Remark("unknown_category", f"{f.name!r}: {value!r} {what}", (f.name,)) for value in unknown]
        return tuple(out)

    def by_index(self, what: str, given: Mapping[str | int, Any] | None) -> dict[int, Any]:
        """A mapping by feature name, such as `ranges`, as a mapping by feature position."""
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
        pairs = zip(self.held, self.columns_of(rows), strict=True)
        return np.column_stack(all_at_once(partial(column.encode, values) for column, values in pairs))

    def columns_of(self, rows: Rows) -> list[pd.Series[Any]]:
        """The values of each feature, in the order of the features."""
        frame = as_frame(rows)
        where, width = "the row" if len(frame) == 1 else "the rows", frame.shape[1]
        # Avoid `equals` and `frame[label]`: for string labels both compare a pandas dtype with a NumPy dtype, which
        # swallows a KeyboardInterrupt.
        labels: list[Hashable] = list(frame.columns)
        if self.columns is None and labels == list(range(width)):  # an array has no names
            if width != len(self):
                raise ValueError(f"{where}: expected {len(self)} values ({listed(self.names)}), got {width}.")
            frame.columns = pd.Index(self.names)
        columns = [column for _, column in frame.items()]
        return [columns[k] for k in self._match_columns(frame.columns, where)]

    def _match_columns(self, columns: pd.Index[Any], where: str) -> list[int]:
        """The position of each feature's column among `columns`, in the order of the features."""
        if any(is_missing(label) or isinstance(label, tuple) for label in columns):
            raise ValueError(f"{where}: every column needs one name, got {listed(columns)}.")
        by_name = {str(label): k for k, label in enumerate(columns)}
        if len(by_name) < len(columns):
            raise ValueError(f"{where}: column names must differ, got {listed(columns)}.")
        names = self.names
        differ = {"missing": [n for n in names if n not in by_name], "unknown": sorted(by_name.keys() - set(names))}
        if any(differ.values()):
            what = ", ".join(f"{word} {listed(some)}" for word, some in differ.items() if some)
            raise ValueError(f"{where}: {what}; expected the columns {listed(names)}, got {listed(columns)}.")
        return [by_name[name] for name in names]

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
        # Arrays need no index alignment, but pandas would infer another dtype from an object array.
        frame = pd.DataFrame({j: c if c.dtype == object else c.array for j, c in enumerate(columns)})
        frame.columns = self._index
        return frame

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return pd.Index(self.columns or self.names)

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points with only values that the columns can hold, (n, d).

        For such a point, `encode(decode(point))` returns the same point, even if the data are float32 or int8.
        """
        gaps = self.is_gap(X) if len(self.gapped) else None
        X = np.clip(X, self.low, self.high)
        X = np.where(self.is_whole, np.rint(X), X)
        for j in self._narrow:
            X[:, j] = self.held[j].nearest(X[:, j])
        return X if gaps is None else np.where(gaps, self.gap_codes, X)

    @cached_property
    def _narrow(self) -> list[int]:
        """Positions of the columns with floats of lower precision than float64."""
        dtypes = [column.number_dtype for column in self.held]
        return [j for j, dtype in enumerate(dtypes) if dtype.kind == "f" and dtype != np.float64]

    def frame(self, X: FloatArray) -> pd.DataFrame:
        """Rows for points as a DataFrame, even if the model takes arrays."""
        rows = self.decode(X)
        return rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=self.names)

    def _repr_html_(self) -> str:
        from acex.show.html import space_html

        return space_html(self)

    # -- as JSON ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The space as JSON-compatible values; `from_dict` reads it back.

        Categories that JSON cannot represent, such as intervals, are written and read back as text.
        """
        features = [feature_to_json(f) for f in self.features]
        later: dict[str, Any] = {} if self.missing == "drop" else {"missing": self.missing}
        later |= {"relations": list(self.relations)} if self.relations else {}
        return {"features": features, **later, **self.form()}

    def form(self) -> dict[str, Any]:
        """The format of rows as JSON-compatible values; `rows_in_form` applies it."""
        return {
            "columns": None if self.columns is None else [as_json(label) for label in self.columns],
            **({"nones": list(self.nones)} if self.nones else {}),
            "dtypes": None if self.dtypes is None else [dtype_to_json(d) for d in self.dtypes],
            "array_dtype": None if self.array_dtype is None else str(self.array_dtype),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Space:
        """The space that `to_dict` wrote."""
        columns, dtypes, array_dtype = data["columns"], data["dtypes"], data["array_dtype"]
        return cls(
            tuple(feature_from_json(f) for f in data["features"]),
            columns=None if columns is None else tuple(columns),
            nones=tuple(data.get("nones", ())),
            missing=data.get("missing", "drop"),
            relations=tuple(data.get("relations", ())),
            dtypes=None if dtypes is None else tuple(dtype_from_json(d) for d in dtypes),
            array_dtype=None if array_dtype is None else np.dtype(array_dtype),
        )


# -- tables and their columns ---------------------------------------------------------------------------------


def _refuse_infinite(name: str, values: pd.Series[Any]) -> None:
    infinite = np.isinf(values.to_numpy()) if types.is_float_dtype(values.dtype) else np.zeros(1, dtype=bool)
    if infinite.any():
        raise ValueError(
            f"{name!r}: {int(infinite.sum())} of {len(values)} values are infinite (first in row "
            f"{int(infinite.argmax())}). Replace them by numbers or NaN: .replace([np.inf, -np.inf], np.nan)."
        )


def holds_gaps(dtype: Any) -> bool:
    """Whether a column of this dtype can hold a gap."""
    return not (isinstance(dtype, np.dtype) and dtype.kind in "iub")


def inferring(
    text: Iterable[str], dates: Iterable[str] | Mapping[str, str | None], names: Sequence[str]
) -> Callable[[str, pd.Series[Any]], Feature]:
    """A variant of `infer_feature` that treats these columns as categories or as dates."""
    texts, forms = list(text), dict(dates) if isinstance(dates, Mapping) else dict.fromkeys(dates)
    for name in (*texts, *forms):
        if name not in names:
            raise ValueError(f"text, dates: {name!r} is not a column; there are {listed(names)}.")

    def infer(name: str, column: pd.Series[Any]) -> Feature:
        if name in texts:
            return Nominal(name, tuple(sorted(column.unique().tolist())))
        return Date.declared(name, column, forms[name]) if name in forms else infer_feature(name, column)

    return infer


def infer_feature(name: str, column: pd.Series[Any]) -> Feature:
    """The feature inferred from values, none of which is missing; see `Space.infer`."""
    _refuse_infinite(name, column)
    if isinstance(column.dtype, pd.ArrowDtype) and not ARROW.fullmatch(str(column.dtype)):
        advice = "Convert the column, such as with .astype('category'), .astype(float) or pd.to_datetime(...)."
        raise ValueError(f"{name!r}: holds values of the type {column.dtype}, which is not supported. {advice}")
    for kind in reversed(KINDS.values()):
        feature = kind.infer(name, column)
        if feature is not None:
            has_whole_numbers = feature.is_number and feature.grid >= 1 and float(feature.grid).is_integer()
            is_id = has_whole_numbers and identifies_rows(name, column.nunique(), len(column))
            return replace(feature, frozen=True) if is_id else feature
    dtype = column.dtype
    if isinstance(dtype, pd.PeriodDtype):
        raise ValueError(f"{name!r}: holds periods ({dtype}). Convert them to dates: .dt.to_timestamp().")
    if types.is_timedelta64_dtype(dtype):
        raise ValueError(f"{name!r}: holds durations ({dtype}). Convert them to numbers: .dt.total_seconds().")
    found = ", ".join(f"{v!r} ({kind.__name__})" for kind, v in {type(v): v for v in column.tolist()}.items())
    raise ValueError(
        f"{name!r}: expected numbers only or texts only, got {found}. Convert the column, or declare it as "
        f"acex.Nominal({name!r}, (...))."
    )


def as_frame(rows: Rows) -> pd.DataFrame:
    """Rows of any accepted type as a new data frame; arrays get the columns 0, 1, ..."""
    match rows:
        case pd.DataFrame():
            return rows.copy(deep=False)
        case pd.Series():
            return pd.DataFrame([rows.tolist()], columns=rows.index)
        case Mapping():
            return pd.DataFrame({name: [value] for name, value in rows.items()})
    if isinstance(rows, list) and rows and all(isinstance(r, Mapping) for r in rows):
        return pd.DataFrame(rows)
    if hasattr(rows, "to_pandas"):  # Polars, Arrow: as an array they would lose their names
        raise ValueError(f"Expected a DataFrame of pandas, got {type(rows).__module__}; pass its to_pandas().")
    array = np.asarray(rows)
    if array.ndim not in (1, 2):
        what = f"{type(rows).__name__} of {array.ndim} dimensions"
        raise ValueError(f"Expected rows as a DataFrame, a Series, a mapping or a 2-D array, got {what}.")
    return pd.DataFrame(np.atleast_2d(array))


def as_data(data: Rows) -> pd.DataFrame:
    """Known rows, a DataFrame or a 2-D array, as a new data frame."""
    if not isinstance(data, pd.DataFrame) and np.ndim(data) != 2:
        raise ValueError(f"data must be a DataFrame or a 2-D array, got {type(data).__name__}.")
    return as_frame(data)


def dtype_to_json(dtype: Any) -> Any:
    """The dtype as JSON-compatible values."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    categories = dtype.categories.tolist()
    written = [as_json(c) for c in categories]
    of = str(dtype.categories.dtype)
    if written != categories or (of == "object" and all(isinstance(c, str) for c in categories)):
        of = "str"  # pandas 2 calls it object
    return {"categories": written, "of": of, "ordered": bool(dtype.ordered)}


def dtype_from_json(written: Any) -> Any:
    """The dtype that `dtype_to_json` wrote."""
    if written == "str":
        return pd.Series([""]).dtype  # object before pandas 3
    if not isinstance(written, dict):
        return types.pandas_dtype(written)
    return pd.CategoricalDtype(pd.Index(written["categories"], dtype=written["of"]), ordered=written["ordered"])


def rows_in_form(values: list[list[Any]], form: Mapping[str, Any]) -> Rows:
    """Rows in the format that `Space.form` describes, from JSON-compatible values."""
    if form["array_dtype"] is not None:
        return np.array(values, dtype=form["array_dtype"])
    frame = pd.DataFrame(values)
    if form["dtypes"] is not None:
        dtypes = [dtype_from_json(written) for written in form["dtypes"]]
        frame = pd.DataFrame({c: frame[c].astype(d) for c, d in zip(frame.columns, dtypes, strict=True)})
        for j in form.get("nones", ()):
            frame[j] = frame[j].where(frame[j].notna(), None)
    if form["columns"] is not None:
        frame.columns = pd.Index(form["columns"])
    return frame


# -- missing values, and errors of several columns -------------------------------------------------------------


def is_complete(data: Rows) -> BoolArray:
    """Which rows of a frame or an array have no gap, (n,)."""
    gaps = data.isna().to_numpy() if isinstance(data, pd.DataFrame) else pd.isna(np.asarray(data))
    return np.asarray(~gaps.any(axis=1), dtype=bool)


def known_values(data: pd.DataFrame, missing: Missing) -> Iterator[tuple[Hashable, pd.Series[Any]]]:
    """The label of each column, and its values that are not missing.

    Raises:
        ValueError: a column has no such values, or no row is complete and `missing` is "drop".
    """
    rows = data[is_complete(data)] if missing == "drop" and len(data) else data
    if len(rows) < min(len(data), 1):
        raise ValueError(
            f"every row of data has a gap: {_gap_counts(data)}. Leave out the columns that have most of them (in the "
            f"shell --drop), or fill them in."
        )
    empty = [label for label, column in rows.items() if len(rows) and column.isna().all()]
    if empty:
        raise ValueError(f"{listed(empty)}: every value is missing. Leave out the column (in the shell --drop).")
    for label, column in rows.items():
        yield label, column.dropna().infer_objects()


def drop_incomplete(data: Rows, outcomes: Any, missing: Missing) -> tuple[Rows, Any, tuple[Remark, ...]]:
    """The rows that a space with this `missing` keeps, with their outcomes, and a remark about those dropped.

    If every row has a gap, all are kept: `Space.infer` and `Space.encode` raise the error.
    """
    if missing == "keep" or not (isinstance(data, pd.DataFrame) or np.ndim(data) == 2):
        return data, outcomes, ()
    complete = is_complete(data)
    if complete.all() or not complete.any():
        return data, outcomes, ()
    n = int((~complete).sum())
    counts = _gap_counts(data if isinstance(data, pd.DataFrame) else pd.DataFrame(data))
    what = f"{n} of {len(complete)} rows of data {'has a gap and was' if n == 1 else 'have gaps and were'} left out"
    if outcomes is not None and np.ndim(outcomes) == 1:
        if len(outcomes) != len(complete):
            raise ValueError(
                f"outcomes: expected one outcome for each of the {len(complete)} rows of data, the {n} with gaps "
                f"included, got {len(outcomes)}."
            )
        outcomes = [outcome for outcome, keep in zip(outcomes, complete, strict=True) if keep]
    return data[complete], outcomes, (Remark("rows_dropped", f"{what} ({counts})."),)


def refuse_reordered(rows: Rows, values: Any, name: str, of_rows: str = "data") -> None:
    """Raise if values have the index of the rows in another order: it is ambiguous which order is meant."""
    is_indexed = isinstance(rows, pd.DataFrame) and isinstance(values, (pd.Series, pd.DataFrame))
    if not is_indexed or values.index.equals(rows.index):
        return
    if values.index.is_unique and len(values) == len(rows) and values.index.isin(rows.index).all():
        raise ValueError(
            f"{name}: the index is that of {of_rows} in another order. Pass {name}.loc[{of_rows}.index], or "
            f"{name}.to_numpy() if they are in the order of the rows."
        )


def _gap_counts(table: pd.DataFrame) -> str:
    """The columns with missing values and the number of these in each, as text."""
    counts = table.isna().sum().sort_values(ascending=False, kind="stable")
    return joined_words([f"{name} {n}" for name, n in counts[counts > 0].items()], most=6)


def each_that_fits(work: Callable[[Any], Iterable[T]], rows: Any) -> list[T | None]:
    """One result of `work` per row; None for rows that do not fit the space, for which it raises."""
    try:
        return list(work(rows)) if len(rows) else []
    except (ValueError, TypeError):
        half = len(rows) // 2  # bisection finds a few bad rows among thousands in few calls
        parts = (rows_at(rows, slice(half)), rows_at(rows, slice(half, None)))
        return [result for part in parts for result in each_that_fits(work, part)] if half else [None]


def all_at_once(work: Iterable[Callable[[], T]]) -> list[T]:
    """The results of all functions; their errors are raised as one.

    Raises:
        ValueError: with the message of each function that failed.
    """
    done: list[T] = []
    problems: list[str] = []
    for piece in work:
        try:
            done.append(piece())
        except ValueError as error:
            problems.append(str(error))
    if len(problems) == 1:
        raise ValueError(problems[0])
    if problems:
        raise ValueError("\n- ".join([f"{len(problems)} columns cannot be used as they are:", *problems]))
    return done
