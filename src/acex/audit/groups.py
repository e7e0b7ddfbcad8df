"""What groups of rows would have to change, side by side, and how sure the differences are.

    n   rows of a group that were explained     B   resamples

Shares have Wilson's interval, and differences of shares Newcombe's: a bootstrap of a share of 100% has no width.
Medians and means have percentile bootstrap intervals. A bootstrap sample is never drawn whole: the k-th of n draws from
n values is the value number n U, where U has the distribution Beta(k, n - k + 1), and a mean of few different values
needs only how often each was drawn. Differences are tested by permutation: were names of groups given to rows by
chance, how often would the difference be as large? Of shares that is a hypergeometric distribution, and exact.

Nothing is asked, and memory does not grow with B.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.engine.row_result import RowResult
from acex.values import is_missing, listed, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESAMPLES = 2000
SMALL = 30  # rows: below, intervals are rough and tests find little
MOST_GROUPS = 20  # or it is no grouping
APART = 0.1  # shares this far apart: costs then compare different kinds of rows
Z = 1.959963984540054  # of a normal distribution, for 95%
AT_ONCE = 2_000_000  # numbers in memory
MEASURES = ("found", "cost", "changes", "queries")
WAITED = "(missing)"

By: TypeAlias = "str | Sequence[str] | pd.Series[Any] | pd.DataFrame | np.ndarray[Any, Any]"


class Interval(NamedTuple):
    """An estimate with a 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows side by side.

    Attributes:
        by: what they are grouped by.
        table: a line for each group: rows; explained (neither failed nor decided as wanted before); found, and their
            share of those explained; of the costs found the median, with its interval, and the quartiles; means of
            changes and of queries. NAME_low and NAME_high are 95% intervals.
        features: for each group and feature in how many of its counterfactuals the feature changes, the share and its
            interval.
        differences: each group against the other, or against all others, in the share found, the median cost, the mean
            number of changes and of queries: with an interval, the p value of a permutation test, and the p value
            adjusted for all tests of this table (Holm).
        warnings: what a reader should know before the numbers.
    """

    by: str
    table: pd.DataFrame
    features: pd.DataFrame
    differences: pd.DataFrame
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        lines: Sequence[RowResult],
        groups: pd.Series[Any],
        *,
        seed: int = 0,
        warnings: Sequence[str] = (),
        resamples: int = RESAMPLES,
    ) -> Groups:
        """The groups of these lines, whose names, one a line, are a Series that is named by what they mean."""
        rows = _Rows.of(lines, groups.tolist())
        rng = np.random.default_rng([seed, 0x67])
        names = sorted(dict.fromkeys(rows.group), key=str)
        table = pd.DataFrame([_line(rows.only(name), name, rng, resamples) for name in names]).set_index("group")
        differences = _differences(rows, names, rng, resamples)
        remarks = (*warnings, *_remarks(table))
        return cls(str(groups.name), table, _features(lines, rows, names), differences, remarks)

    def __str__(self) -> str:
        table, shares = self.table, self.features
        shown = pd.DataFrame(
            {
                "rows": table["rows"],
                "found": [
                    f"{_percent(value)} ({_percent(low)} to {_percent(high)})"
                    for value, low, high in table[["share", "share_low", "share_high"]].to_numpy(dtype=float)
                ],
                **{
                    f"{name} (95%)": [
                        f"{value:.3g} ({low:.3g} to {high:.3g})"
                        for value, low, high in table[[name, f"{name}_low", f"{name}_high"]].itertuples(index=False)
                    ]
                    for name in ("cost", "changes", "queries")
                },
            }
        ).rename(columns={"cost (95%)": "median cost (95%)"})
        parts = [f"By {self.by}:", shown.to_string()]
        if len(shares):
            wide = shares.pivot(index="feature", columns="group", values="share").fillna(0.0)
            wide = wide.loc[wide.mean(axis=1).sort_values(ascending=False, kind="stable").index].head(12)
            parts += ["", "Share of counterfactuals that change it:", wide.map(_percent).to_string()]
        if len(self.differences):
            parts += ["", "Differences:", self.differences.round(4).to_string(index=False)]
        parts += [f"Note: {warning}" for warning in self.warnings]
        return printable("\n".join(parts))

    __repr__ = __str__

    def plot(self) -> Figure:
        """Costs by group, and which features change in which group."""
        from acex.show.plots import draw_groups

        return draw_groups(self)


def grouping(by: By, rows: pd.DataFrame) -> pd.Series[Any]:
    """The group of each row, by one column of the rows or several crossed, or by values given one a row.

    Raises:
        ValueError: there is no such column, not one value a row, or there are too many groups.
    """
    if isinstance(by, (str, tuple, list)) and all(isinstance(name, str) for name in by):
        names = [by] if isinstance(by, str) else list(by)
        known = {str(label): label for label in rows.columns}
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise ValueError(
                f"by: {listed(unknown or names)} is not a column of the rows; there are {listed(known)}. Columns that "
                f"the model does not see can be given as values: by=table['sex']."
            )
        columns = [rows[known[name]] for name in names]
    elif isinstance(by, pd.DataFrame):
        names, columns = [str(name) for name in by.columns], [by.iloc[:, j] for j in range(by.shape[1])]
    else:
        columns = [pd.Series(by)]
        names = ["group" if columns[0].name is None else str(columns[0].name)]
    if any(len(column) != len(rows) for column in columns):
        raise ValueError(f"by: expected one value for each of {len(rows)} rows, got {len(columns[0])}.")
    texts = [[WAITED if is_missing(v) else str(v) for v in column.tolist()] for column in columns]
    groups = [" / ".join(values) for values in zip(*texts, strict=True)]
    n = len(set(groups))
    if n > MOST_GROUPS:
        raise ValueError(
            f"by: {' and '.join(names)} make {n} groups of {len(rows)} rows, more than {MOST_GROUPS}. Give bands, such "
            f"as pd.cut(table['age'], [0, 30, 50, 120])."
        )
    return pd.Series(groups, name=" and ".join(names), dtype=object)


def interleaved(groups: Sequence[Hashable], seed: int) -> IntArray:
    """An order of rows, (n,), in which each group is spread evenly, and within a group by chance.

    Rows that come later learn from those before them: so no group comes first.
    """
    rng = np.random.default_rng([seed, 0x69])
    names = np.array([str(group) for group in groups], dtype=object)
    place = np.empty(len(names))
    for name in sorted(set(names.tolist())):
        mine = np.flatnonzero(names == name)
        place[mine] = (rng.permutation(len(mine)) + rng.uniform(size=len(mine))) / len(mine)
    return np.argsort(place, kind="stable")


# -- the numbers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is compared, (n,) each; `cost` and `changes` are NaN where nothing was found."""

    group: list[str]
    is_explained: BoolArray
    is_found: BoolArray
    cost: FloatArray
    changes: FloatArray
    queries: FloatArray

    @classmethod
    def of(cls, lines: Sequence[RowResult], group: list[str]) -> _Rows:
        outcome = np.array([line.outcome for line in lines], dtype=object)
        found = outcome == "found"
        changes = np.array([float(line.n_changes) for line in lines])
        return cls(
            group,
            ~np.isin(outcome, ["already_target", "failed", "unfinished"]),
            found,
            np.array([line.cost for line in lines], dtype=float),
            np.where(found, changes, np.nan),
            np.array([float(line.queries) for line in lines]),
        )

    def only(self, name: str | None, but: str | None = None) -> _Rows:
        """The rows of a group, or all but those of one."""
        mine = np.array([g == name if name is not None else g != but for g in self.group], dtype=bool)
        group = [g for g, is_mine in zip(self.group, mine, strict=True) if is_mine]
        columns = (self.is_explained, self.is_found, self.cost, self.changes, self.queries)
        return _Rows(group, *(column[mine] for column in columns))

    def values(self, measure: str) -> FloatArray:
        """What a measure is taken of: costs and changes of those found, queries of those explained."""
        if measure == "found":
            return self.is_found[self.is_explained].astype(float)
        column: FloatArray = getattr(self, measure)
        return column[self.is_explained if measure == "queries" else self.is_found]


def _line(rows: _Rows, name: str, rng: np.random.Generator, resamples: int) -> dict[str, Any]:
    costs = rows.cost[rows.is_found]
    q1, q3 = np.quantile(costs, [0.25, 0.75]) if len(costs) else (np.nan, np.nan)
    n, found = int(rows.is_explained.sum()), int(rows.is_found.sum())
    line: dict[str, Any] = {"group": name, "rows": len(rows.group), "explained": n, "found": found}
    estimates = {"share": wilson(found, n)}
    for measure in ("cost", "changes", "queries"):
        values = rows.values(measure)
        estimates[measure] = percentile(statistic(measure)(values), resampled(measure, values, rng, resamples))
    for what, (value, low, high) in estimates.items():
        line |= {what: value, f"{what}_low": low, f"{what}_high": high}
        if what == "cost":
            line |= {"cost_q1": float(q1), "cost_q3": float(q3)}
    return line


def _differences(rows: _Rows, names: list[str], rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Each group against the other, or against the rest where there are more than two."""
    pairs = [(names[0], names[1])] if len(names) == 2 else [(name, None) for name in names] if len(names) > 2 else []
    lines = []
    for one, other in pairs:
        a, b = rows.only(one), rows.only(other, but=one)
        for measure in MEASURES:
            x, y = a.values(measure), b.values(measure)
            value, low, high = difference(measure, x, y, rng, resamples)
            p = permutation_p(measure, x, y, rng, resamples)
            lines.append((one, other or "all others", measure, value, low, high, p))
    columns = ["group", "other", "measure", "difference", "low", "high", "p"]
    frame = pd.DataFrame(lines, columns=pd.Index(columns))
    return frame.assign(p_adjusted=holm(frame["p"].to_numpy(dtype=float)))


def _features(lines: Sequence[RowResult], rows: _Rows, names: list[str]) -> pd.DataFrame:
    """In how many counterfactuals of each group a feature changes."""
    of_found = {name: int(rows.only(name).is_found.sum()) for name in names}
    counts: dict[tuple[str, str], int] = {}
    for line, group in zip(lines, rows.group, strict=True):
        for feature in line.changes if line.outcome == "found" else ():
            counts[group, feature] = counts.get((group, feature), 0) + 1
    features = sorted({feature for _, feature in counts})
    shares = []
    for name in names:
        for feature in features:
            n = counts.get((name, feature), 0)
            shares.append((name, feature, n, *wilson(n, of_found[name])))
    return pd.DataFrame(shares, columns=pd.Index(["group", "feature", "rows", "share", "low", "high"]))


def _remarks(table: pd.DataFrame) -> list[str]:
    small = [f"{name} ({n})" for name, n in table["explained"].items() if n < SMALL]
    remarks = []
    if len(table) < 2:
        remarks.append("there is one group only: nothing to compare.")
    if small:
        remarks.append(
            f"groups of fewer than {SMALL} explained rows: {', '.join(small)}. Their intervals are rough, and that no "
            f"difference was found means little."
        )
    if len(table) > 1 and table["share"].max() - table["share"].min() > APART:
        remarks.append(
            "a counterfactual was found for quite different shares of the groups; costs and changes are of those "
            "found, so they do not compare the same kinds of rows."
        )
    return remarks


# -- statistics ------------------------------------------------------------------------------------------------


def statistic(measure: str) -> Any:
    """What is compared of a measure's values: the median of costs, the mean of others; NaN of none."""
    take = np.median if measure == "cost" else np.mean
    return lambda values: float(take(values)) if len(values) else np.nan


def wilson(k: int, n: int) -> Interval:
    """The share k of n with Wilson's interval; NaN for n = 0."""
    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    p = k / n
    centre, half = p + Z**2 / (2 * n), Z * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    low, high = (centre - half) / (1 + Z**2 / n), (centre + half) / (1 + Z**2 / n)
    return Interval(p, 0.0 if k == 0 else float(low), 1.0 if k == n else float(high))


def percentile(value: float, draws: FloatArray) -> Interval:
    """An estimate with the interval that holds 95% of its resamples."""
    if not len(draws):
        return Interval(value, np.nan, np.nan)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def resampled(measure: str, values: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """The measure's statistic of bootstrap samples of the values, (B,); empty for fewer than two values."""
    n = len(values)
    if n < 2:
        return np.empty(0)
    if measure != "cost":
        distinct, counts = np.unique(values, return_counts=True)
        means: FloatArray = rng.multinomial(n, counts / n, size=resamples) @ distinct / n
        return means
    k = (n + 1) // 2  # the median is the mean of number k and, of an even number of values, the next
    u = rng.beta(k, n - k + 1, size=resamples)
    in_order = np.sort(values)
    first: FloatArray = in_order[np.minimum((n * u).astype(int), n - 1)]
    if n % 2:
        return first
    v = u + (1 - u) * rng.beta(1, n - k, size=resamples)
    second: FloatArray = in_order[np.minimum((n * v).astype(int), n - 1)]
    return (first + second) / 2


def difference(measure: str, x: FloatArray, y: FloatArray, rng: np.random.Generator, resamples: int) -> Interval:
    """The difference of a measure between two groups."""
    if measure == "found":
        (p, p_low, p_high), (q, q_low, q_high) = (wilson(int(v.sum()), len(v)) for v in (x, y))
        low = p - q - np.sqrt((p - p_low) ** 2 + (q_high - q) ** 2)  # Newcombe 1998, method 10
        high = p - q + np.sqrt((p_high - p) ** 2 + (q - q_low) ** 2)
        return Interval(p - q, float(low), float(high))
    value = statistic(measure)(x) - statistic(measure)(y)
    a, b = (resampled(measure, v, rng, resamples) for v in (x, y))
    return percentile(value, a - b if len(a) and len(b) else np.empty(0))


def permutation_p(measure: str, x: FloatArray, y: FloatArray, rng: np.random.Generator, resamples: int) -> float:
    """How often the difference would be as large if the names of the groups were given by chance; NaN without rows."""
    n, m = len(x), len(y)
    if min(n, m) == 0:
        return np.nan
    seen = abs(statistic(measure)(x) - statistic(measure)(y))
    tie = 1e-9 * max(seen, 1e-300)  # equal differences differ by rounding
    pooled = np.concatenate([x, y])
    if measure == "found":
        from scipy.stats import hypergeom

        total = int(pooled.sum())
        k = np.arange(max(0, total - m), min(n, total) + 1)
        as_large = np.abs(k / n - (total - k) / m) >= seen - tie
        return float(min(hypergeom(n + m, total, n).pmf(k[as_large]).sum(), 1.0))
    n_as_large = 0
    if measure == "cost":
        block = max(AT_ONCE // (n + m), 1)
        for start in range(0, resamples, block):
            shuffled = rng.permuted(np.tile(pooled, (min(block, resamples - start), 1)), axis=1)
            apart = np.median(shuffled[:, :n], axis=1) - np.median(shuffled[:, n:], axis=1)
            n_as_large += int((np.abs(apart) >= seen - tie).sum())
    else:
        distinct, counts = np.unique(pooled, return_counts=True)
        drawn = rng.multivariate_hypergeometric(counts, n, size=resamples, method="marginals") @ distinct
        n_as_large = int((np.abs(drawn / n - (pooled.sum() - drawn) / m) >= seen - tie).sum())
    return (1 + n_as_large) / (1 + resamples)


def holm(p: FloatArray) -> FloatArray:
    """P values adjusted for their number, by Holm's method, (k,); NaN stays, and does not count."""
    out = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0) if len(order) else []
    return out


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{100 * share:.0f}%"
