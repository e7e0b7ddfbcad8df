"""Rows outside, points inside: what each feature can hold, and what one factual may become.

A *row* is what people read; a *point* is one float a feature: the value itself for continuous and
integer features, the position in `categories` for ordinal and nominal ones. `Space` crosses between
the two, `Region` says where the search for one factual may go.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
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
LARGEST = 1e150  # distances are sums of squares, and the square of more than this may overflow
MOST_LISTED = 10_000  # an integer feature with more values than this is not listed value by value


@dataclass(frozen=True)
class _Feature:
    """What all features have: a name, and how far they may be changed."""

    name: str
    frozen: bool = field(default=False, kw_only=True)
    direction: Direction | None = field(default=None, kw_only=True)
    weight: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        self._set(name=str(self.name), weight=_plain(self.weight))
        if self.direction is not None and self.direction not in get_args(Direction):
            raise ValueError(f"{self.name!r}: direction {self.direction!r} is neither 'increase' nor 'decrease'.")
        if not (is_finite(self.weight) and self.weight > 0):
            raise ValueError(f"{self.name!r}: weight must be a positive number, got {self.weight!r}.")

    def _set(self, **values: Any) -> None:
        """Replace what was passed by its plain form, while the feature is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class _Numeric(_Feature):
    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(low=_plain(self.low), high=_plain(self.high))
        if not (is_finite(self.low) and is_finite(self.high) and self.low <= self.high):
            raise ValueError(f"{self.name!r}: expected finite low <= high, got {self.low!r} and {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise ValueError(f"{self.name!r}: numbers beyond {LARGEST:g} are too large; rescale the column.")


@dataclass(frozen=True)
class Continuous(_Numeric):
    """A real number between `low` and `high`."""


@dataclass(frozen=True)
class Integer(_Numeric):
    """A whole number between `low` and `high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low != round(self.low) or self.high != round(self.high):
            raise ValueError(f"{self.name!r}: an integer's range must be whole, got {self.low!r} to {self.high!r}.")
        if max(abs(self.low), abs(self.high)) > LARGEST_EXACT_INTEGER:
            raise ValueError(f"{self.name!r}: integers beyond 2**53 have no exact float; rescale the column.")
        self._set(low=int(self.low), high=int(self.high))


@dataclass(frozen=True)
class _Categorical(_Feature):
    categories: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.categories, str):
            raise ValueError(f"{self.name!r}: expected a list of categories, got {self.categories!r}.")
        self._set(categories=tuple(_plain(c) for c in self.categories))
        if not self.categories:
            raise ValueError(f"{self.name!r}: expected at least one category.")
        for category in self.categories:
            if not _is_hashable(category) or is_missing(category):
                raise ValueError(f"{self.name!r}: {category!r} cannot be a category.")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError(f"{self.name!r}: a category appears twice in {_some(self.categories)}.")

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
        >>> school = acex.Ordinal("school", ("primary", "high"))
        >>> space = acex.Space((acex.Continuous("income", 0, 1e6), school))
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
        for feature in self.features:
            if not isinstance(feature, get_args(Feature)):
                raise TypeError(f"expected features such as acex.Continuous('age', 18, 99), got {feature!r}.")
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
        """Least value of each feature, as its column can hold it, (d,)."""
        return np.array([_held(f.low, self._number_dtype(j)) for j, f in enumerate(self.features)])

    @cached_property
    def high(self) -> FloatArray:
        """Greatest value of each feature, as its column can hold it, (d,)."""
        return np.array([_held(f.high, self._number_dtype(j)) for j, f in enumerate(self.features)])

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
        frame = _as_data(data).infer_objects()
        if frame.empty:
            raise ValueError(f"data is empty: expected rows and columns, got the shape {frame.shape}.")
        is_array = not isinstance(data, pd.DataFrame)
        names = [f"x{j}" for j in range(frame.shape[1])] if is_array else [str(c) for c in frame.columns]
        features = tuple(_infer_feature(name, frame.iloc[:, j]) for j, name in enumerate(names))
        return cls(features).like(data).adjust(freeze=freeze)

    def like(self, data: Rows) -> Space:
        """The same features, with rows written as in `data` (a DataFrame or a 2-D array).

        Raises:
            ValueError: a column is missing or unknown, or of a dtype that cannot hold the feature's values.
        """
        frame = _as_data(data)
        if isinstance(data, pd.DataFrame):
            columns = self._match_columns(frame.columns, "data")
            dtypes = tuple(frame[c].dtype for c in columns)
            written = replace(self, columns=columns, dtypes=dtypes, array_dtype=None)
        else:
            if frame.shape[1] != len(self):
                raise ValueError(f"data has {frame.shape[1]} columns, the space {len(self)} features.")
            dtypes = (np.asarray(data).dtype,) * len(self)
            written = replace(self, columns=None, dtypes=None, array_dtype=dtypes[0])
        for feature, dtype in zip(self.features, dtypes, strict=True):
            _refuse_dtype(feature, dtype)
        return written

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
        for name, direction in _pairs("directions", directions):
            j = self.index(name)
            features[j] = replace(features[j], direction=direction)
        for name, weight in _pairs("weights", weights):
            j = self.index(name)
            features[j] = replace(features[j], weight=weight)
        return replace(self, features=tuple(features))

    def index(self, name: str | int) -> int:
        """Position of a feature, by name, by the label of its column or (for arrays) by column number."""
        if name in self.names:
            return self.names.index(name)
        if self.columns is not None and name in self.columns:
            return self.columns.index(name)
        numbers = range(len(self)) if self.columns is None else ()
        if name in numbers and not isinstance(name, bool):
            return int(name)
        by_lower = {n.lower(): n for n in self.names}
        close = difflib.get_close_matches(str(name).lower(), by_lower, n=1)
        hint = f" Did you mean {by_lower[close[0]]!r}?" if close else ""
        raise ValueError(f"{name!r} is not a feature; there are {_some(self.names)}.{hint}")

    # -- rows to points and back -----------------------------------------------------------------

    def encode(self, rows: Rows) -> FloatArray:
        """Points for rows, (n, d); a single row gives (1, d).

        Raises:
            ValueError: a column is missing or unknown, a value is missing, infinite, of no known
                category or out of range. The message names column and value.
        """
        frame = _as_frame(rows)
        where, width = "the row" if len(frame) == 1 else "the rows", frame.shape[1]
        if self.columns is None and frame.columns.equals(pd.RangeIndex(width)):  # an array has no names
            if width != len(self):
                raise ValueError(f"{where}: expected {len(self)} values ({_some(self.names)}), got {width}.")
            frame.columns = pd.Index(self.names)
        columns = self._match_columns(frame.columns, where)
        X = np.empty((len(frame), len(self)))
        for j, (feature, column) in enumerate(zip(self.features, columns, strict=True)):
            X[:, j] = _encode_column(feature, frame[column], self._number_dtype(j))
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

        For each such point, `encode(decode(point))` is that point: also when the data are float32 or int8.
        """
        X = np.clip(X, self.low, self.high)
        X = np.where(self.is_discrete, np.rint(X), X)
        for j, dtype in self._narrow:
            X[:, j] = _held(X[:, j], dtype)
        return X

    @cached_property
    def _narrow(self) -> list[tuple[int, np.dtype[Any]]]:
        """The columns whose floats are coarser than a point's, with their dtypes."""
        dtypes = [self._number_dtype(j) for j in range(len(self))]
        return [(j, dtype) for j, dtype in enumerate(dtypes) if dtype.kind == "f" and dtype != np.float64]

    def _number_dtype(self, j: int) -> np.dtype[Any]:
        """How the column of a numeric feature is written: float64 unless data say otherwise."""
        dtype = self.array_dtype if self.dtypes is None else self.dtypes[j]
        dtype = getattr(dtype, "numpy_dtype", dtype)
        is_number = isinstance(dtype, np.dtype) and dtype.kind in "fiu"
        return dtype if is_number and isinstance(self.features[j], _Numeric) else np.dtype(np.float64)

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
        by_name: dict[str, Hashable] = {str(c): c for c in columns}
        if len(by_name) < len(columns):
            raise ValueError(f"{where}: column names must differ, got {_some(columns)}.")
        names = self.names
        missing = [name for name in names if name not in by_name]
        extra = by_name.keys() - set(names)
        if missing:
            raise ValueError(
                f"{where}: missing {_some(missing)}; expected the columns {_some(names)}, got {_some(columns)}."
            )
        if extra:
            raise ValueError(f"{where}: unknown column {_some(sorted(extra))}; expected only {_some(names)}.")
        return tuple(by_name[name] for name in names)

    def frame(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Rows with plain values, such as JSON holds, as a frame with the dtypes of this space."""
        decoded = self.decode(self.encode(rows)) if len(rows) else self.decode(np.empty((0, len(self))))
        return decoded if isinstance(decoded, pd.DataFrame) else pd.DataFrame(decoded, columns=self.names)

    # -- as JSON ---------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The space in plain values, as JSON holds them; `from_dict` reads it back.

        Categories that JSON does not know, such as intervals, are written as text and come back as text.
        """
        features = [{"kind": type(f).__name__.lower(), **asdict(f)} for f in self.features]
        for feature in features:
            if "categories" in feature:
                feature["categories"] = [as_json(c) for c in feature["categories"]]
        return {
            "features": features,
            "columns": None if self.columns is None else [as_json(c) for c in self.columns],
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
        """The same space, its numeric ranges widened to hold those of `ranges`.

        An infinite end widens nothing.
        """
        features = list(self.features)
        for name, wanted in _pairs("ranges", ranges):
            j = self.index(name)
            feature = features[j]
            if isinstance(feature, (Continuous, Integer)):
                ends = [end for end in _number_pair(feature, wanted) if np.isfinite(end)]
                features[j] = replace(feature, low=min([feature.low, *ends]), high=max([feature.high, *ends]))
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
            ranges: for numeric features a pair (low, high), either end of which may be infinite; for the
                others the categories allowed.
            constant: features that stay as they are because the reference never varies in them, (d,).
            constraint: from rows to one truth value a row; rows where it is false are never asked.
        """
        limits = {self.index(name): wanted for name, wanted in _pairs("ranges", ranges)}
        allowed = []
        for j, feature in enumerate(self.features):
            stays = feature.frozen or (constant is not None and bool(constant[j]))
            if isinstance(feature, (Continuous, Integer)):
                values = self._allowed_range(j, limits.get(j))
            else:
                values = _allowed_codes(feature, limits.get(j))
            allowed.append(_on_from(feature, values, float(factual[j]), stays, limits.get(j)))
        region = Region(space=self, factual=factual, allowed=tuple(allowed), constraint=constraint)
        if not region.movable.any():
            raise ValueError(
                "No feature can change: every one is frozen, constant in data, or left with a single "
                "value by ranges and directions. Free at least one."
            )
        if constraint is not None:
            region._meets_constraint(factual[None])  # what is wrong with it shows before anything is asked
        return region

    def _allowed_range(self, j: int, wanted: Any) -> FloatArray:
        """The least and the greatest value of a numeric feature within the range wanted."""
        feature = self.features[j]
        low, high = (-np.inf, np.inf) if wanted is None else _number_pair(feature, wanted)
        bounds = np.array([max(low, self.low[j]), min(high, self.high[j])])
        bounds = _inward(bounds, self._number_dtype(j))  # a bound such as 0.1 has no float32
        if bounds[0] > bounds[1]:
            raise ValueError(f"ranges[{feature.name!r}]: no value of the feature lies within {wanted!r}.")
        return bounds


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
        moves: BoolArray = (self.low != self.factual) | (self.high != self.factual)
        return moves

    def values(self, j: int) -> FloatArray | None:
        """All values feature j may take, ascending; None where they are too many to be listed."""
        if self.low[j] == self.high[j]:
            return self.low[j : j + 1]
        match self.space.features[j]:
            case Ordinal() | Nominal():
                return self.allowed[j]
            case Integer() if self._count(j) <= MOST_LISTED:
                return np.arange(self.low[j], self.high[j] + 1.0)
            case _:
                return None

    @cached_property
    def size(self) -> float:
        """How many points there are before the constraint; infinite with a continuous feature."""
        return float(np.prod([self._count(j) for j in range(len(self.space))]))

    def _count(self, j: int) -> float:
        """How many values feature j may take."""
        match self.space.features[j]:
            case Ordinal() | Nominal():
                return float(len(self.allowed[j]))
            case Continuous() if self.low[j] < self.high[j]:
                return np.inf
            case _:
                return float(self.high[j] - self.low[j] + 1)

    def snap(self, X: FloatArray) -> FloatArray:
        """The nearest points of the region (the constraint aside), (n, d).

        A nominal code that is not allowed becomes the factual's, or the first allowed one.
        """
        X = np.atleast_2d(X)
        X = self.space.snap(np.where(self.space.is_nominal, X, np.clip(X, self.low, self.high)))
        for j in np.flatnonzero(self._is_partial):
            codes = self.allowed[j]
            if self.space.is_nominal[j]:
                home = self.factual[j] if self.factual[j] in codes else codes[0]
                X[:, j] = np.where(np.isin(X[:, j], codes), X[:, j], home)
            else:
                X[:, j] = codes[np.abs(X[:, j, None] - codes).argmin(axis=1)]
        return X + 0.0  # -0.0 and 0.0 are one value

    @cached_property
    def _is_partial(self) -> BoolArray:
        """Which categorical features may take only some of their categories, (d,)."""
        features = zip(self.space.features, self.allowed, strict=True)
        return np.array([isinstance(f, _Categorical) and len(a) < len(f.categories) for f, a in features])

    def contains(self, X: FloatArray) -> BoolArray:
        """Which points keep to the region, the constraint included, (n,)."""
        X = np.atleast_2d(X)
        inside = np.asarray((self.snap(X) == X).all(axis=1), dtype=bool)
        if self.constraint is not None and inside.any():
            inside[inside] = self._meets_constraint(X[inside])
        return inside

    def _meets_constraint(self, X: FloatArray) -> BoolArray:
        """Which points the user's constraint lets pass, (n,)."""
        assert self.constraint is not None
        mask = np.asarray(self.constraint(self.space.decode(X)))
        if mask.shape != (len(X),) or mask.dtype != np.bool_:
            raise ValueError(
                f"constraint must give one True or False a row: expected a boolean array of shape "
                f"({len(X)},), got {mask.dtype} of shape {mask.shape}."
            )
        return mask


# -- helpers: frames, columns, ranges ------------------------------------------------------------------


def _pairs(what: str, given: Mapping[Any, Any] | None) -> Iterable[tuple[Any, Any]]:
    if given is not None and not isinstance(given, Mapping):
        raise ValueError(f"{what} takes a mapping from names to values, got {given!r}.")
    return (given or {}).items()


def _some(items: Iterable[Any], most: int = 12) -> str:
    """A readable list of at most a dozen items."""
    items = list(items)
    shown = ", ".join(repr(getattr(i, "item", lambda i=i: i)()) for i in items[:most])
    return shown if len(items) <= most else f"{shown}, ... ({len(items)} in all)"


def _plain(value: Any) -> Any:
    """A scalar of numpy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def as_json(value: Any) -> Any:
    """A value as JSON knows it: itself, or its text."""
    value = _plain(value)
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def is_finite(value: Any) -> bool:
    """Is this a number, and a finite one?"""
    return isinstance(value, (int, float, np.number)) and bool(np.abs(value) < np.inf)


def is_missing(value: Any) -> bool:
    """Is this None, NaN, NaT or pandas' NA?"""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _as_frame(rows: Rows) -> pd.DataFrame:
    """Rows of any accepted form as a new data frame; arrays get the columns 0, 1, ..."""
    match rows:
        case pd.DataFrame():
            return rows.copy(deep=False)
        case pd.Series():
            return pd.DataFrame([rows.tolist()], columns=rows.index)
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


def _as_data(data: Rows) -> pd.DataFrame:
    """Many rows, of the two forms that say how a model wants them, as a new data frame."""
    if not isinstance(data, pd.DataFrame) and np.ndim(data) != 2:
        raise ValueError(f"data must be a DataFrame or a 2-D array, got {type(data).__name__}.")
    return _as_frame(data)


def _dtype_to_json(dtype: Any) -> Any:
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    categories = dtype.categories.tolist()
    written = [as_json(c) for c in categories]
    of = str(dtype.categories.dtype) if written == categories else "str"
    return {"categories": written, "of": of, "ordered": bool(dtype.ordered)}


def _dtype_from_json(text: Any) -> Any:
    if not isinstance(text, dict):
        return pd.api.types.pandas_dtype(text)
    return pd.CategoricalDtype(pd.Index(text["categories"], dtype=text["of"]), ordered=text["ordered"])


def _refuse_dtype(feature: Feature, dtype: Any) -> None:
    """Refuse a column that cannot hold its feature's values: the model would be asked something else."""
    name, types = feature.name, pd.api.types
    if isinstance(feature, (Ordinal, Nominal)):
        unheld = [c for c in feature.categories if not _holds(dtype, c)]
        if unheld:
            raise ValueError(f"{name!r}: {_some(unheld)} has no place in the column in data, which is {dtype}.")
        return
    is_whole = types.is_integer_dtype(dtype)
    if types.is_float_dtype(dtype) or types.is_object_dtype(dtype) or (is_whole and isinstance(feature, Integer)):
        return
    raise ValueError(
        f"{name!r}: declared {type(feature).__name__}, but the column in data is {dtype}. Declare it "
        f"{'Integer' if is_whole else 'Nominal or Ordinal'}, or convert the column to float."
    )


def _holds(dtype: Any, category: Hashable) -> bool:
    if isinstance(dtype, pd.CategoricalDtype):
        return category in dtype.categories
    if pd.api.types.is_object_dtype(dtype):
        return True
    one = [category]
    try:
        array = np.array(one, dtype) if isinstance(dtype, np.dtype) else pd.array(one, dtype)
    except (ValueError, TypeError, OverflowError):
        return False
    return bool(array.tolist() == one)


def _refuse_missing(name: str, column: pd.Series[Any]) -> None:
    missing = column.isna().to_numpy()
    if len(column) == 1 and missing[0]:
        raise ValueError(f"{name!r}: the value is missing, got {_plain(column.iloc[0])!r}.")
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
            raise ValueError(f"{name!r}: holds an infinite value, {low if np.isinf(low) else high}.")
        return Continuous(name, low, high)
    examples = {type(v): v for v in column.tolist()}
    if not all(issubclass(kind, str) for kind in examples):
        found = ", ".join(f"{v!r} ({kind.__name__})" for kind, v in examples.items())
        raise ValueError(
            f"{name!r}: expected numbers only or texts only, got {found}. Convert the column, or declare it "
            f"as acex.Nominal({name!r}, (...))."
        )
    values = column.unique().tolist()
    if len(values) > 100 and len(values) > len(column) / 2:
        raise ValueError(
            f"{name!r}: {len(values)} different texts in {len(column)} rows look like an identifier. "
            f"Drop the column, or declare it as acex.Nominal({name!r}, (...))."
        )
    return Nominal(name, tuple(sorted(values)))


def _encode_column(feature: Feature, column: pd.Series[Any], dtype: np.dtype[Any]) -> FloatArray:
    """Codes or numbers of a column; numbers as a column of this dtype holds them."""
    name = feature.name
    _refuse_missing(name, column)
    if isinstance(feature, (Ordinal, Nominal)):
        codes = {category: code for code, category in enumerate(feature.categories)}
        try:
            return np.array([codes[v] for v in column.tolist()], dtype=float)
        except (KeyError, TypeError):
            unknown = next(v for v in column.tolist() if not _is_hashable(v) or v not in codes)
            raise ValueError(
                f"{name!r}: {unknown!r} is not a known category; there are {_some(feature.categories)}."
            ) from None
    if not pd.api.types.is_numeric_dtype(column.dtype):
        strange = [v for v in column.tolist() if not isinstance(v, (Real, Decimal))]
        if strange:
            raise ValueError(f"{name!r}: expected a number, got {_plain(strange[0])!r}.")
    values = np.asarray(column.astype("float64"), dtype=np.float64)
    _refuse(name, column, ~np.isfinite(values), "is not finite")
    if isinstance(feature, Integer):
        _refuse(name, column, values != np.rint(values), "is not a whole number")
    if dtype.kind == "f":
        values = _held(values, dtype)
    low, high = (float(_held(end, dtype)) for end in (feature.low, feature.high))
    _refuse(
        name,
        column,
        (values < low) | (values > high),
        f"is outside {low:.15g} to {high:.15g}",
        f" If it is a real value, widen the feature: ranges={{{name!r}: (low, high)}}, or a space of your own.",
    )
    return values


def _refuse(name: str, column: pd.Series[Any], bad: BoolArray, why: str, advice: str = "") -> None:
    if bad.any():
        raise ValueError(f"{name!r}: {_plain(column.iloc[int(bad.argmax())])!r} {why}.{advice}")


def _number_pair(feature: Feature, wanted: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in wanted)
    except (TypeError, ValueError):
        raise ValueError(f"ranges[{feature.name!r}]: expected a pair (low, high), got {wanted!r}.") from None
    if not low <= high:
        raise ValueError(f"ranges[{feature.name!r}]: expected low <= high, got {low:g} and {high:g}.")
    if isinstance(feature, Integer):
        low, high = float(np.ceil(low)), float(np.floor(high))
    return low, high


def _on_from(feature: Feature, allowed: FloatArray, value: float, stays: bool, wanted: Any) -> FloatArray:
    """What is left of (low, high), or of the codes allowed, for a feature that has this value now."""
    numeric = isinstance(feature, (Continuous, Integer))
    if stays or feature.direction == "increase":
        allowed = np.maximum(allowed, [value, -np.inf]) if numeric else allowed[allowed >= value]
    if stays or feature.direction == "decrease":
        allowed = np.minimum(allowed, [np.inf, value]) if numeric else allowed[allowed <= value]
    if len(allowed) == 0 or allowed[0] > allowed[-1]:
        held = "it stays as it is" if stays else f"it may only {feature.direction}"
        raise ValueError(
            f"{feature.name!r}: ranges allows {wanted!r}, but the factual's value lies outside and {held}; "
            f"nothing is left."
        )
    return allowed


def _held(values: Any, dtype: np.dtype[Any]) -> FloatArray:
    """The nearest values that a column of this dtype can hold."""
    if dtype == np.float64:
        return np.asarray(values, dtype=np.float64)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    held: FloatArray = np.clip(values, float(limits.min), float(limits.max)).astype(dtype).astype(np.float64)
    return held


def _inward(bounds: FloatArray, dtype: np.dtype[Any]) -> FloatArray:
    """The widest (low, high) within the bounds whose ends the dtype can hold; low > high if there is none."""
    low, high = _held(bounds, dtype)
    if low < bounds[0]:
        low = np.nextafter(dtype.type(low), dtype.type(np.inf))
    if high > bounds[1]:
        high = np.nextafter(dtype.type(high), dtype.type(-np.inf))
    return np.array([low, high], dtype=np.float64)


def _allowed_codes(feature: Feature, wanted: Any) -> FloatArray:
    assert isinstance(feature, (Ordinal, Nominal))
    if wanted is None:
        return np.arange(len(feature.categories), dtype=float)
    if isinstance(wanted, str) or not isinstance(wanted, Collection):
        raise ValueError(f"ranges[{feature.name!r}]: expected a list of the allowed categories, got {wanted!r}.")
    wanted = list(wanted)
    unknown = [c for c in wanted if c not in feature.categories]
    if unknown:
        raise ValueError(
            f"ranges[{feature.name!r}]: {_some(unknown)} is not a known category; there are "
            f"{_some(feature.categories)}."
        )
    if not wanted:
        raise ValueError(f"ranges[{feature.name!r}]: expected at least one category, got none.")
    return np.unique([float(feature.categories.index(c)) for c in wanted])
