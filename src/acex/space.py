"""Rows outside, points inside: what each feature can hold, and what one factual may become.

A *row* is what people read; a *point* is one float a feature: the value itself for continuous and
integer features, the position in `categories` for ordinal and nominal ones. `Space` crosses between
the two, `Region` says where the search for one factual may go.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.intp]
Direction: TypeAlias = Literal["increase", "decrease"]
Rows: TypeAlias = Any  # DataFrame, Series, mapping, list of mappings, 1-D or 2-D array
Constraint: TypeAlias = Callable[[Rows], Any]

LARGEST_EXACT_INTEGER = 2**53  # beyond it a float no longer tells neighbouring integers apart


@dataclass(frozen=True)
class _Feature:
    """What all features have: a name, and how far they may be changed."""

    name: str
    frozen: bool = field(default=False, kw_only=True)
    direction: Direction | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.direction is not None and self.direction not in get_args(Direction):
            raise ValueError(
                f"{self.name!r}: direction {self.direction!r} is neither 'increase' nor 'decrease'."
            )
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"{self.name!r}: weight must be a positive number, got {self.weight!r}.")


@dataclass(frozen=True)
class _Numeric(_Feature):
    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low <= self.high):
            raise ValueError(
                f"{self.name!r}: expected finite low <= high, got {self.low!r} and {self.high!r}."
            )


@dataclass(frozen=True)
class Continuous(_Numeric):
    """A real number between `low` and `high`."""


@dataclass(frozen=True)
class Integer(_Numeric):
    """A whole number between `low` and `high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != round(self.low) or self.high != round(self.high):
            raise ValueError(
                f"{self.name!r}: an integer's range must be whole, got {self.low!r} to {self.high!r}."
            )
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: integers beyond 2**53 have no exact float; rescale the column.")


@dataclass(frozen=True)
class _Categorical(_Feature):
    categories: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "categories", tuple(self.categories))
        if not self.categories:
            raise ValueError(f"{self.name!r}: expected at least one category.")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"{self.name!r}: a category appears twice in {self.categories}.")

    @property
    def low(self) -> float:
        return 0.0

    @property
    def high(self) -> float:
        return len(self.categories) - 1.0


@dataclass(frozen=True)
class Ordinal(_Categorical):
    """One of `categories`, listed from lowest to highest."""


@dataclass(frozen=True)
class Nominal(_Categorical):
    """One of `categories`, in no order."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.direction is not None:
            raise ValueError(f"{self.name!r}: a nominal feature has no order, so no direction; use Ordinal.")


Feature: TypeAlias = Continuous | Integer | Ordinal | Nominal


@dataclass(frozen=True)
class Space:
    """The features of a row, in order, and how rows are written down.

    `columns` and `dtypes` are those of the data frame that rows come from; `array_dtype` is set instead
    when rows come as a 2-D array. `Space.infer(data)` and `space.like(data)` fill them in, so that
    `decode` gives back exactly what the model is used to.

    Example:
        >>> import acex
        >>> space = acex.Space((acex.Continuous("income", 0, 1e6), acex.Ordinal("school", ("primary", "high"))))
        >>> space.encode({"income": 1200.0, "school": "high"})
        array([[1.2e+03, 1.0e+00]])
    """

    features: tuple[Feature, ...]
    columns: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    dtypes: tuple[Any, ...] | None = field(default=None, kw_only=True)
    array_dtype: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        if not self.features:
            raise ValueError("A space needs at least one feature.")
        names = self.names
        if len(set(names)) < len(names):
            raise ValueError(f"Feature names must differ, got {_some(names)}.")

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.features]

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def is_nominal(self) -> BoolArray:
        """Which features have no order, (d,)."""
        return np.array([isinstance(f, Nominal) for f in self.features])

    @cached_property
    def is_discrete(self) -> BoolArray:
        """Which features hold whole codes or numbers only, (d,)."""
        return np.array([not isinstance(f, Continuous) for f in self.features])

    @cached_property
    def low(self) -> FloatArray:
        """Least value of each feature, (d,)."""
        return np.array([f.low for f in self.features], dtype=float)

    @cached_property
    def high(self) -> FloatArray:
        """Greatest value of each feature, (d,)."""
        return np.array([f.high for f in self.features], dtype=float)

    @cached_property
    def weights(self) -> FloatArray:
        """Price of a change relative to the other features, (d,)."""
        return np.array([f.weight for f in self.features])

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def infer(cls, data: Rows, freeze: Iterable[str | int] = ()) -> Space:
        """The space that `data` lives in: kinds from its dtypes, ranges and categories from its values.

        Floats become continuous, integers integer, ordered categoricals ordinal; strings, booleans and
        other categoricals nominal. The columns of an array are called x0, x1, ...
        """
        frame = _as_frame(data)
        if frame.empty:
            raise ValueError(f"data is empty: expected rows and columns, got the shape {frame.shape}.")
        is_array = not isinstance(data, pd.DataFrame)
        if is_array:
            frame = frame.infer_objects()
        names = [f"x{j}" for j in range(frame.shape[1])] if is_array else [str(c) for c in frame.columns]
        features = tuple(_infer_feature(name, frame.iloc[:, j]) for j, name in enumerate(names))
        return cls(features).like(data).adjust(freeze=freeze)

    def like(self, data: Rows) -> Space:
        """The same features, with rows written as in `data` (a DataFrame or a 2-D array)."""
        frame = _as_frame(data)
        if not isinstance(data, pd.DataFrame):
            if frame.shape[1] != len(self):
                raise ValueError(f"data has {frame.shape[1]} columns, the space {len(self)} features.")
            return replace(self, columns=None, dtypes=None, array_dtype=np.asarray(data).dtype)
        columns = self._match_columns(frame.columns, "data")
        dtypes = tuple(frame[c].dtype for c in columns)
        for feature, dtype in zip(self.features, dtypes, strict=True):
            if isinstance(dtype, pd.CategoricalDtype) and isinstance(feature, _Categorical):
                unknown = [c for c in feature.categories if c not in dtype.categories]
                if unknown:
                    raise ValueError(
                        f"{feature.name!r}: {_some(unknown)} is not a category of the column in data, "
                        f"which has {_some(dtype.categories)}."
                    )
        return replace(self, columns=columns, dtypes=dtypes, array_dtype=None)

    def adjust(
        self,
        *,
        freeze: Iterable[str | int] = (),
        directions: Mapping[str | int, Direction] | None = None,
        weights: Mapping[str | int, float] | None = None,
    ) -> Space:
        """The same space with some features frozen, directed or weighted."""
        if isinstance(freeze, str):
            raise ValueError(f"freeze takes a list of names, got the text {freeze!r}; write [{freeze!r}].")
        features = list(self.features)
        for name in freeze:
            j = self.index(name)
            features[j] = replace(features[j], frozen=True)
        for name, direction in (directions or {}).items():
            j = self.index(name)
            features[j] = replace(features[j], direction=direction)
        for name, weight in (weights or {}).items():
            j = self.index(name)
            features[j] = replace(features[j], weight=weight)
        return replace(self, features=tuple(features))

    def index(self, name: str | int) -> int:
        """Position of a feature, by name or (for arrays) by column number."""
        if name in self.names:
            return self.names.index(name)
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
            if self.columns is not None and name in self.columns:
                return self.columns.index(name)
            if self.columns is None and 0 <= name < len(self):
                return int(name)
        close = difflib.get_close_matches(str(name), self.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{name!r} is not a feature; there are {_some(self.names)}.{hint}")

    # -- rows to points and back -----------------------------------------------------------------

    def encode(self, rows: Rows) -> FloatArray:
        """Points for rows, (n, d); a single row gives (1, d).

        Raises:
            ValueError: a column is missing or unknown, a value is missing, infinite, of no known
                category or out of range. The message names column and value.
        """
        frame = _as_frame(rows)
        if frame.columns.equals(pd.RangeIndex(len(self))) and self.columns is None:
            frame.columns = pd.Index(self.names)
        columns = self._match_columns(frame.columns, "the row" if len(frame) == 1 else "the rows")
        X = np.empty((len(frame), len(self)))
        for j, (feature, column) in enumerate(zip(self.features, columns, strict=True)):
            X[:, j] = _encode_column(feature, frame[column])
        return X

    def decode(self, X: FloatArray) -> Rows:
        """Rows for points, snapped to values each feature can hold: a DataFrame, or a 2-D array."""
        X = self.snap(np.atleast_2d(X))
        values = [self._decode_column(j, X[:, j]) for j in range(len(self))]
        if self.array_dtype is not None:
            out = np.empty(X.shape, dtype=self.array_dtype)
            for j, column in enumerate(values):
                out[:, j] = column.to_numpy()
            return out
        frame = pd.DataFrame(dict(enumerate(values)))
        frame.columns = pd.Index(self.columns or self.names)
        return frame

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points whose every value the feature can hold, (n, d).

        For each such point, `encode(decode(point))` is that point: also when the data are float32.
        """
        X = np.clip(X, self.low, self.high)
        X = np.where(self.is_discrete, np.rint(X), X)
        for j, feature in enumerate(self.features):
            if isinstance(feature, Continuous):
                X[:, j] = self._representable(j, X[:, j])
        return X

    def _representable(self, j: int, values: FloatArray) -> FloatArray:
        """The values of a continuous column as its dtype can hold them, still within the range."""
        dtype = self._float_dtype(j)
        if dtype == np.float64:
            return values
        low, high = _inward(np.array([self.low[j], self.high[j]]), dtype)
        return np.clip(values.astype(dtype).astype(np.float64), low, high)

    def _float_dtype(self, j: int) -> np.dtype[Any]:
        dtype = self.array_dtype if self.dtypes is None else self.dtypes[j]
        dtype = getattr(dtype, "numpy_dtype", dtype)
        return dtype if isinstance(dtype, np.dtype) and dtype.kind == "f" else np.dtype(np.float64)

    def _decode_column(self, j: int, values: FloatArray) -> pd.Series[Any]:
        feature = self.features[j]
        dtype = None if self.dtypes is None else self.dtypes[j]
        match feature:
            case Continuous():
                return pd.Series(values, dtype=dtype or "float64")
            case Integer():
                return pd.Series(values.astype(np.int64)).astype(dtype or "int64")
            case Ordinal() | Nominal():
                chosen = [feature.categories[int(code)] for code in values]
                return pd.Series(chosen, dtype=dtype)

    def _match_columns(self, columns: pd.Index[Any], where: str) -> tuple[Hashable, ...]:
        """The label of each feature's column among `columns`, in the order of the features."""
        wanted: Sequence[Hashable] = self.columns or self.names
        by_name: dict[str, Hashable] = {str(c): c for c in columns}
        missing = [str(w) for w in wanted if str(w) not in by_name]
        extra = [c for c in by_name if c not in {str(w) for w in wanted}]
        if missing:
            raise ValueError(f"{where}: missing {_some(missing)}; expected the columns {_some(wanted)}.")
        if extra:
            raise ValueError(f"{where}: unknown column {_some(extra)}; expected only {_some(wanted)}.")
        return tuple(by_name[str(w)] for w in wanted)

    def frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows with plain values, such as JSON holds, as a frame with the dtypes of this space."""
        decoded = self.decode(self.encode(rows)) if len(rows) else self.decode(np.empty((0, len(self))))
        return decoded if isinstance(decoded, pd.DataFrame) else pd.DataFrame(decoded, columns=self.names)

    # -- as JSON ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The space in plain values, as JSON holds them; `from_dict` reads it back."""
        features = [{"kind": type(f).__name__.lower(), **asdict(f)} for f in self.features]
        return {
            "features": features,
            "columns": None if self.columns is None else list(self.columns),
            "dtypes": None if self.dtypes is None else [_dtype_to_json(d) for d in self.dtypes],
            "array_dtype": None if self.array_dtype is None else str(self.array_dtype),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Space:
        """The space that `to_dict` wrote down."""
        kinds: dict[str, type[Feature]] = {k.__name__.lower(): k for k in get_args(Feature)}
        features = [kinds[f["kind"]](**{k: v for k, v in f.items() if k != "kind"}) for f in data["features"]]
        dtypes, array_dtype = data["dtypes"], data["array_dtype"]
        return cls(
            tuple(features),
            columns=None if data["columns"] is None else tuple(data["columns"]),
            dtypes=None if dtypes is None else tuple(_dtype_from_json(d) for d in dtypes),
            array_dtype=None if array_dtype is None else np.dtype(array_dtype),
        )

    # -- what one factual may become -------------------------------------------------------------

    def widened(self, ranges: Mapping[str | int, Any] | None) -> Space:
        """The same space, its numeric ranges widened to hold those of `ranges`."""
        features = list(self.features)
        for name, wanted in (ranges or {}).items():
            j = self.index(name)
            feature = features[j]
            if isinstance(feature, (Continuous, Integer)):
                low, high = _number_pair(feature, wanted)
                features[j] = replace(feature, low=min(feature.low, low), high=max(feature.high, high))
        return replace(self, features=tuple(features))

    def region(
        self,
        factual: FloatArray,
        *,
        ranges: Mapping[str | int, Any] | None = None,
        constant: BoolArray | None = None,
        constraint: Constraint | None = None,
    ) -> Region:
        """What this factual, (d,), may become.

        Args:
            ranges: for numeric features a pair (low, high), for the others the categories allowed.
            constant: features that stay as they are because the reference never varies in them, (d,).
            constraint: from rows to one truth value a row; rows where it is false are never asked.
        """
        limits = {self.index(name): wanted for name, wanted in (ranges or {}).items()}
        allowed = []
        for j, feature in enumerate(self.features):
            stays = feature.frozen or (constant is not None and bool(constant[j]))
            bounds = _allowed(feature, float(factual[j]), limits.get(j), stays)
            if isinstance(feature, Continuous):  # a bound such as 0.1 has no float32: round it inwards
                bounds = _inward(bounds, self._float_dtype(j))
            allowed.append(bounds)
        region = Region(space=self, factual=factual, allowed=tuple(allowed), constraint=constraint)
        if not region.movable.any():
            raise ValueError(
                "No feature can change: every one is frozen, constant in data, or left with a single "
                "value by ranges and directions. Free at least one."
            )
        return region


@dataclass(frozen=True, eq=False)
class Region:
    """The points that one factual may become: a box or a set of codes for each feature, and a constraint.

    `allowed[j]` is a pair (low, high) for continuous and integer features, and the sorted allowed codes
    for ordinal and nominal ones.
    """

    space: Space
    factual: FloatArray
    allowed: tuple[FloatArray, ...]
    constraint: Constraint | None = None

    @cached_property
    def low(self) -> FloatArray:
        """Least allowed value of each feature, (d,)."""
        return np.array([a[0] for a in self.allowed])

    @cached_property
    def high(self) -> FloatArray:
        """Greatest allowed value of each feature, (d,)."""
        return np.array([a[-1] for a in self.allowed])

    @cached_property
    def movable(self) -> BoolArray:
        """Which features can take a value other than the factual's, (d,)."""
        return (self.low != self.factual) | (self.high != self.factual)

    def values(self, j: int) -> FloatArray | None:
        """All values feature j may take, ascending; None for a continuous feature that can move."""
        if self.low[j] == self.high[j]:
            return self.low[j : j + 1]
        match self.space.features[j]:
            case Continuous():
                return None
            case Integer():
                return np.arange(self.low[j], self.high[j] + 1.0)
            case _:
                return self.allowed[j]

    @cached_property
    def size(self) -> float:
        """How many points there are before the constraint; infinite with a continuous feature."""
        counts = [self.values(j) for j in range(len(self.space))]
        return float(np.prod([np.inf if c is None else len(c) for c in counts]))

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points of the region (the constraint aside), (n, d).

        A nominal code that is not allowed becomes the factual's, or the first allowed one.
        """
        X = self.space.snap(np.clip(np.atleast_2d(X), self.low, self.high))
        for j in np.flatnonzero(self._has_gaps):
            codes = self.allowed[j]
            if self.space.is_nominal[j]:
                home = self.factual[j] if self.factual[j] in codes else codes[0]
                X[:, j] = np.where(np.isin(X[:, j], codes), X[:, j], home)
            else:
                X[:, j] = codes[np.abs(X[:, j, None] - codes).argmin(axis=1)]
        return np.clip(X, self.low, self.high) + 0.0  # -0.0 and 0.0 are one value

    @cached_property
    def _has_gaps(self) -> BoolArray:
        categorical = [isinstance(f, _Categorical) for f in self.space.features]
        return np.array([c and len(a) < a[-1] - a[0] + 1 for c, a in zip(categorical, self.allowed, strict=True)])

    def contains(self, X: FloatArray) -> BoolArray:
        """Which points keep to the region, the constraint included, (n,)."""
        X = np.atleast_2d(X)
        inside = np.asarray((self.snap(X) == X).all(axis=1), dtype=bool)
        if self.constraint is not None and inside.any():
            inside[inside] = self._constraint_mask(X[inside])
        return inside

    def _constraint_mask(self, X: FloatArray) -> BoolArray:
        assert self.constraint is not None
        mask = np.asarray(self.constraint(self.space.decode(X)))
        if mask.shape != (len(X),) or mask.dtype != np.bool_:
            raise ValueError(
                f"constraint must give one True or False a row: expected a boolean array of shape "
                f"({len(X)},), got {mask.dtype} of shape {mask.shape}."
            )
        return mask


# -- helpers: frames, columns, ranges ------------------------------------------------------------------


def _some(items: Iterable[Any], most: int = 12) -> str:
    """A readable list of at most a dozen items."""
    items = list(items)
    shown = ", ".join(repr(getattr(i, "item", lambda i=i: i)()) for i in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"


def _as_frame(rows: Rows) -> pd.DataFrame:
    """Rows of any accepted form as a new data frame; arrays get the columns 0, 1, ..."""
    match rows:
        case pd.DataFrame():
            return rows.copy(deep=False)
        case pd.Series():
            return pd.DataFrame({name: [value] for name, value in rows.items()})
        case Mapping():
            return pd.DataFrame({name: [value] for name, value in rows.items()})
    if isinstance(rows, list) and rows and all(isinstance(r, Mapping) for r in rows):
        return pd.DataFrame(rows)
    array = np.asarray(rows)
    if array.ndim == 1:
        array = array[None]
    if array.ndim != 2:
        raise ValueError(
            f"Expected a DataFrame, a Series, a mapping or a 2-D array, got "
            f"{type(rows).__name__} of {array.ndim} dimensions."
        )
    return pd.DataFrame(array)


def _dtype_to_json(dtype: Any) -> Any:
    if isinstance(dtype, pd.CategoricalDtype):
        return {"categories": dtype.categories.tolist(), "ordered": bool(dtype.ordered)}
    return str(dtype)


def _dtype_from_json(text: Any) -> Any:
    return pd.CategoricalDtype(**text) if isinstance(text, dict) else pd.api.types.pandas_dtype(text)


def _refuse_missing(name: str, column: pd.Series[Any]) -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"{name!r}: {int(missing.sum())} of {len(column)} values are missing (first in row "
            f"{int(missing.argmax())}). Fill them in or drop the column."
        )


def _infer_feature(name: str, column: pd.Series[Any]) -> Feature:
    dtype = column.dtype
    types = pd.api.types
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype) or dtype.kind == "m":
        raise ValueError(
            f"{name!r}: holds dates or times ({dtype}). Turn it into a number first, such as days since a fixed day."
        )
    _refuse_missing(name, column)
    if isinstance(dtype, pd.CategoricalDtype):
        kind = Ordinal if dtype.ordered else Nominal
        return kind(name, tuple(dtype.categories.tolist()))
    if types.is_bool_dtype(dtype):
        return Nominal(name, (False, True))
    if types.is_integer_dtype(dtype):
        return Integer(name, int(column.min()), int(column.max()))
    if types.is_float_dtype(dtype):
        low, high = float(column.min()), float(column.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{name!r}: holds an infinite value.")
        return Continuous(name, low, high)
    values = column.unique().tolist()
    if not all(isinstance(v, (str, bool)) for v in values):
        strange = next(v for v in values if not isinstance(v, (str, bool)))
        raise ValueError(
            f"{name!r}: {strange!r} ({type(strange).__name__}) is neither a number nor a text. "
            f"Convert the column, or declare it as acex.Nominal({name!r}, (...))."
        )
    if len(values) > 100 and len(values) > len(column) / 2:
        raise ValueError(
            f"{name!r}: {len(values)} different texts in {len(column)} rows look like an identifier. "
            f"Drop the column, or declare it as acex.Nominal({name!r}, (...))."
        )
    return Nominal(name, tuple(sorted(values, key=str)))


def _encode_column(feature: Feature, column: pd.Series[Any]) -> FloatArray:
    name = feature.name
    _refuse_missing(name, column)
    if isinstance(feature, (Ordinal, Nominal)):
        codes = {category: code for code, category in enumerate(feature.categories)}
        try:
            return np.array([codes[v] for v in column.tolist()], dtype=float)
        except (KeyError, TypeError):
            unknown = next(v for v in column.tolist() if not isinstance(v, Hashable) or v not in codes)
            raise ValueError(
                f"{name!r}: {unknown!r} is not a known category; there are {_some(feature.categories)}."
            ) from None
    try:
        values = column.astype("float64").to_numpy()
    except (ValueError, TypeError):
        strange = next(v for v in column if not isinstance(v, (int, float, np.number)))
        raise ValueError(f"{name!r}: expected a number, got {strange!r}.") from None
    _refuse(name, column, ~np.isfinite(values), "is not finite")
    if isinstance(feature, Integer):
        _refuse(name, column, values != np.rint(values), "is not a whole number")
    _refuse(
        name,
        column,
        (values < feature.low) | (values > feature.high),
        f"is outside {feature.low:g} to {feature.high:g}",
        f" If it is a real value, widen the feature: ranges={{{name!r}: (low, high)}}, or a space of your own.",
    )
    return values


def _refuse(name: str, column: pd.Series[Any], bad: BoolArray, why: str, advice: str = "") -> None:
    if bad.any():
        raise ValueError(f"{name!r}: {column.iloc[int(bad.argmax())]!r} {why}.{advice}")


def _number_pair(feature: Feature, wanted: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in wanted)
    except (TypeError, ValueError):
        raise ValueError(f"ranges[{feature.name!r}]: expected a pair (low, high), got {wanted!r}.") from None
    if not low <= high:
        raise ValueError(f"ranges[{feature.name!r}]: expected low <= high, got {low:g} and {high:g}.")
    return low, high


def _allowed(feature: Feature, value: float, wanted: Any, stays: bool) -> FloatArray:
    """(low, high) or the codes that a feature with this value may take."""
    numeric = isinstance(feature, (Continuous, Integer))
    if numeric:
        low, high = (feature.low, feature.high) if wanted is None else _number_pair(feature, wanted)
        if isinstance(feature, Integer):
            low, high = np.ceil(low), np.floor(high)
        allowed = np.array([max(low, feature.low), min(high, feature.high)])
        if stays or feature.direction == "increase":
            allowed[0] = max(allowed[0], value)
        if stays or feature.direction == "decrease":
            allowed[1] = min(allowed[1], value)
        empty = allowed[0] > allowed[1]
    else:
        allowed = _allowed_codes(feature, wanted)
        if stays or feature.direction == "increase":
            allowed = allowed[allowed >= value]
        if stays or feature.direction == "decrease":
            allowed = allowed[allowed <= value]
        empty = len(allowed) == 0
    if empty:
        held = "it stays as it is" if stays else f"it may only {feature.direction}"
        raise ValueError(
            f"{feature.name!r}: ranges allows {wanted!r}, but the factual's value lies outside and {held}; "
            f"nothing is left."
        )
    return allowed


def _inward(bounds: FloatArray, dtype: np.dtype[Any]) -> FloatArray:
    """The widest (low, high) within the bounds whose ends the dtype can hold."""
    low, high = bounds.astype(dtype)
    if low < bounds[0]:
        low = np.nextafter(low, dtype.type(np.inf))
    if high > bounds[1]:
        high = np.nextafter(high, dtype.type(-np.inf))
    return np.array([low, high], dtype=np.float64) if low <= high else bounds


def _allowed_codes(feature: Feature, wanted: Any) -> FloatArray:
    assert isinstance(feature, (Ordinal, Nominal))
    if wanted is None:
        return np.arange(len(feature.categories), dtype=float)
    if isinstance(wanted, str) or not isinstance(wanted, Collection):
        raise ValueError(
            f"ranges[{feature.name!r}]: expected a list of the allowed categories, got {wanted!r}."
        )
    unknown = [c for c in wanted if c not in feature.categories]
    if unknown or not wanted:
        raise ValueError(
            f"ranges[{feature.name!r}]: {_some(unknown)} is not a known category; there are "
            f"{_some(feature.categories)}."
        )
    return np.array(sorted(feature.categories.index(c) for c in wanted), dtype=float)
