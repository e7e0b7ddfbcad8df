"""A comparison of what groups of rows would have to change, with intervals and tests of the differences.

Shares have Wilson's interval, and differences of shares Newcombe's, since a bootstrap interval of a share of 100% has
no width. Medians and means have percentile bootstrap intervals. Differences of shares are tested with Fisher's exact
test, other differences with a permutation test. Nothing is sent to the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.engine.row_result import RowResult
from acex.space.space import refuse_reordered
from acex.values import is_missing, listed, printable, records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESAMPLES = 2000
SMALL = 30  # number of rows; with fewer, intervals are rough and tests have little power
MOST_GROUPS = 20  # a column with more distinct values is not a useful grouping
APART = 0.1  # if the shares found differ by more than this, costs compare different kinds of rows
AT_ONCE = 1_000_000  # largest number of resampled values in memory
MEASURES = ("found", "cost", "changes", "queries")

By: TypeAlias = "str | Sequence[str] | pd.Series[Any] | pd.DataFrame | np.ndarray[Any, Any]"
Samples: TypeAlias = "Mapping[str, pd.Series[Any]]"  # the values of each measure, by group


class Interval(NamedTuple):
    """An estimate with a 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Groups:
    """A comparison of groups of rows.

    Attributes:
        by: what the rows are grouped by.
        table: a line per group: rows; explained (neither failed nor already as wanted); found, and their share of those
            explained; the median cost, with its interval, and the quartiles; the mean numbers of changes and of
            queries. NAME_low and NAME_high are 95% intervals.
        features: for each group and feature, in how many counterfactuals of the group the feature changes, their share
            and its interval.
        differences: each group against the other, or against all others, in the share found, the median cost, and the
            mean numbers of changes and of queries: with an interval, a p value, and the p value adjusted for all these
            tests (Holm).
        warnings: what a reader should know before reading the numbers.
    """

    by: str
    table: pd.DataFrame
    features: pd.DataFrame
    differences: pd.DataFrame
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, results: Sequence[RowResult], groups: pd.Series[Any], *, seed: int = 0, warnings: Sequence[str] = ()
    ) -> Groups:
        """The comparison of these results; `groups` has the group of each, and is named after the grouping."""
        rows = pd.DataFrame(results, columns=RowResult._fields, index=pd.Index(groups, dtype=object))
        explained = rows[~rows["outcome"].isin(["already_target", "failed", "unfinished"])]
        found = rows[rows["outcome"] == "found"]
        samples = {
            "found": explained["outcome"] == "found",
            "cost": found["cost"],
            "changes": found["n_changes"],
            "queries": explained["queries"],
        }
        rng = np.random.default_rng([seed, 0x67])
        sizes = Counter(rows.index)
        names = sorted(sizes, key=str)
        table = pd.DataFrame([_line(samples, name, sizes[name], rng) for name in names]).set_index("group")
        remarks = (*warnings, *_remarks(table))
        features = _features(found["changes"], names)
        return cls(str(groups.name), table, features, _differences(samples, names, rng), remarks)

    def __str__(self) -> str:
        table, shares = self.table, self.features

        def cells(name: str, text: Callable[[float], str]) -> list[str]:
            columns = table[[name, f"{name}_low", f"{name}_high"]].to_numpy(dtype=float)
            return [
                "-" if np.isnan(value) else text(value) + ("" if np.isnan(low) else f" ({text(low)} to {text(high)})")
                for value, low, high in columns
            ]

        estimates = {name: cells(name, "{:.3g}".format) for name in ("cost", "changes", "queries")}
        shown = table[["rows"]].assign(found=cells("share", _percent), **estimates)
        shown.columns = pd.Index(["rows", "found", "median cost (95%)", "changes (95%)", "queries (95%)"])
        parts = [f"By {self.by}:", shown.to_string()]
        if len(shares):
            wide = shares.pivot(index="feature", columns="group", values="share")
            wide = wide.loc[wide.mean(axis=1).sort_values(ascending=False, kind="stable").index].head(12)
            parts += ["", "Share of counterfactuals that change it:", wide.map(_percent).to_string()]
        if len(self.differences):
            parts += ["", "Differences:", self.differences.round(4).to_string(index=False, na_rep="-")]
        parts += [f"Note: {warning}" for warning in self.warnings]
        return printable("\n".join(parts))

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON-compatible values; null if a group has too few rows."""
        frames = {"table": self.table.reset_index(), "features": self.features, "differences": self.differences}
        tables = {name: records(frame) for name, frame in frames.items()}
        return {"by": self.by, **tables, "warnings": list(self.warnings)}

    def plot(self) -> Figure:
        """Costs by group, and which features change in which group."""
        from acex.show.plots import draw_groups

        return draw_groups(self)


def grouping(by: By, rows: pd.DataFrame, *, redact: Collection[str] = ()) -> pd.Series[Any]:
    """The group of each row: by one column, by several columns crossed, or by values, one per row.

    Raises:
        ValueError: a column is unknown or redacted, there is not one value per row, or there are too many groups.
    """
    if isinstance(by, (str, tuple, list)) and all(isinstance(name, str) for name in by):
        wanted = [by] if isinstance(by, str) else list(by)
        if not wanted or (unknown := set(wanted) - set(rows.columns)):
            raise ValueError(
                f"by: {listed(sorted(unknown) if wanted else [])} is not a column of the rows; there are "
                f"{listed(rows.columns)}. Columns that the model does not see can be given as values: by=table['sex']."
            )
        by = rows[wanted]
    refuse_reordered(rows, by, "by", "X")
    if not isinstance(by, pd.DataFrame):
        by = pd.Series(by)
        by = by.to_frame("group" if by.name is None else by.name)
    columns = {str(name): column for name, column in by.items()}
    if hidden := [name for name in columns if name in redact]:
        raise ValueError(f"by: {listed(hidden)} is redacted, and its groups would show its values.")
    if wrong := [len(column) for column in columns.values() if len(column) != len(rows)]:
        raise ValueError(f"by: expected one value for each of {len(rows)} rows, got {wrong[0]}.")
    texts = [["(missing)" if is_missing(v) else str(v) for v in column.tolist()] for column in columns.values()]
    groups = [" / ".join(values) for values in zip(*texts, strict=True)]
    title, n = " and ".join(columns), len(set(groups))
    if n > MOST_GROUPS:
        raise ValueError(
            f"by: {title} has {n} groups of {len(rows)} rows, more than {MOST_GROUPS}. Use bands, such as "
            f"pd.cut(table['age'], [0, 30, 50, 120])."
        )
    return pd.Series(groups, index=rows.index, name=title, dtype=object)


def _line(samples: Samples, name: str, n_rows: int, rng: np.random.Generator) -> dict[str, Any]:
    values = {measure: _of(sample, name) for measure, sample in samples.items()}
    n, found, costs = len(values["found"]), int(values["found"].sum()), values["cost"]
    line: dict[str, Any] = {"group": name, "rows": n_rows, "explained": n, "found": found}
    for measure in MEASURES:
        what = "share" if measure == "found" else measure
        value, low, high = estimate(measure, rng, values[measure])
        line |= {what: value, f"{what}_low": low, f"{what}_high": high}
        if measure == "cost":
            q1, q3 = np.quantile(costs, [0.25, 0.75]) if len(costs) else (np.nan, np.nan)
            line |= {"cost_q1": float(q1), "cost_q3": float(q3)}
    return line


def _of(sample: pd.Series[Any], name: str, *, others: bool = False) -> FloatArray:
    """The values of a group, or of all other groups."""
    is_mine = sample.index == name
    values: FloatArray = sample[~is_mine if others else is_mine].to_numpy(dtype=float)
    return values


def _differences(samples: Samples, names: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """Each group against the other or, if there are more than two, against all others."""
    lines = []
    for name in names[:1] if len(names) == 2 else names if len(names) > 2 else ():
        other = names[1] if len(names) == 2 else "all others"
        for measure in MEASURES:
            x, y = _of(samples[measure], name), _of(samples[measure], name, others=True)
            lines.append((name, other, measure, *estimate(measure, rng, x, y), p_value(measure, rng, x, y)))
    columns = ["group", "other", "measure", "difference", "low", "high", "p"]
    frame = pd.DataFrame(lines, columns=pd.Index(columns))
    return frame.assign(p_adjusted=holm(frame["p"].to_numpy(dtype=float)))


def _features(changes: pd.Series[Any], names: Sequence[str]) -> pd.DataFrame:
    """In how many counterfactuals of each group a feature changes."""
    counts = Counter((name, feature) for name, changed in changes.items() for feature in changed)
    n_found = Counter(changes.index)
    shares = [
        (name, feature, counts[name, feature], *wilson(counts[name, feature], n_found[name]))
        for name in names
        for feature in sorted({feature for _, feature in counts})
    ]
    return pd.DataFrame(shares, columns=pd.Index(["group", "feature", "rows", "share", "low", "high"]))


def _remarks(table: pd.DataFrame) -> list[str]:
    remarks = ["there is only one group, so there is nothing to compare."] if len(table) < 2 else []
    if empty := [str(name) for name, n in table["explained"].items() if n == 0]:
        remarks.append(f"groups without an explained row, which cannot be compared: {', '.join(empty)}.")
    if small := [f"{name} ({n})" for name, n in table["explained"].items() if 0 < n < SMALL]:
        remarks.append(f"groups of fewer than {SMALL} explained rows: {', '.join(small)}. Their intervals are rough.")
    if len(table) > 1 and table["share"].max() - table["share"].min() > APART:
        remarks.append("the shares of rows with a counterfactual differ much; costs and changes are of those with one.")
    return remarks


# -- statistics ------------------------------------------------------------------------------------------------


def wilson(k: int, n: int) -> Interval:
    """The share k of n with Wilson's interval; NaN for n = 0."""
    from scipy.stats import binomtest

    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    return Interval(k / n, *map(float, binomtest(k, n).proportion_ci(method="wilson")))


def estimate(measure: str, rng: np.random.Generator, *samples: FloatArray) -> Interval:
    """The share, median or mean of a measure, or its difference between two groups, with its interval."""
    if measure == "found":
        shares = [wilson(int(x.sum()), len(x)) for x in samples]
        return shares[0] if len(shares) == 1 else _newcombe(*shares)
    statistic = _statistic(measure, len(samples))
    if min(map(len, samples)) == 0:
        return Interval(np.nan, np.nan, np.nan)
    if min(map(len, samples)) == 1:
        return Interval(float(statistic(*samples)), np.nan, np.nan)
    from scipy.stats import bootstrap

    found = bootstrap(samples, statistic, method="percentile", **_resampling(rng, *samples)).confidence_interval
    return Interval(float(statistic(*samples)), float(found.low), float(found.high))


def _newcombe(x: Interval, y: Interval) -> Interval:
    """The difference of two shares; Newcombe 1998, method 10."""
    difference = x.value - y.value
    below = np.hypot(x.value - x.low, y.high - y.value)
    above = np.hypot(x.high - x.value, y.value - y.low)
    return Interval(difference, float(difference - below), float(difference + above))


def p_value(measure: str, rng: np.random.Generator, x: FloatArray, y: FloatArray) -> float:
    """The p value of the difference between two groups; NaN if one has too few values.

    A share needs one value in each group, other measures two.
    """
    from scipy.stats import fisher_exact, permutation_test

    if min(len(x), len(y)) < (1 if measure == "found" else 2):
        return np.nan
    if measure == "found":
        return float(fisher_exact(np.array([[v.sum(), len(v) - v.sum()] for v in (x, y)])).pvalue)
    statistic = _statistic(measure, 2)
    test = permutation_test(
        (x, y), lambda *v, axis: np.abs(statistic(*v, axis=axis)), alternative="greater", **_resampling(rng, x, y)
    )
    return float(test.pvalue)


def _statistic(measure: str, n: int) -> Any:
    """The median or mean of one sample, or the difference of two."""
    center = np.median if measure == "cost" else np.mean
    return center if n == 1 else lambda x, y, axis=None: center(x, axis=axis) - center(y, axis=axis)


def _resampling(rng: np.random.Generator, *samples: FloatArray) -> dict[str, Any]:
    """Arguments of scipy's resampling functions; `batch` limits the memory."""
    batch = max(AT_ONCE // sum(map(len, samples)), 1)
    return {"n_resamples": RESAMPLES, "batch": batch, "vectorized": True, "rng": rng}


def holm(p: FloatArray) -> FloatArray:
    """P values adjusted for their number, (k,), by Holm's method; NaN is kept and not counted."""
    out = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0) if len(order) else []
    return out


def _percent(share: float) -> str:
    return "-" if np.isnan(share) else f"{100 * share:.0f}%"
