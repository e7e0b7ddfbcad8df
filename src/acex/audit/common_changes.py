"""Common changes: a few that turn the decision for many rows, each tested on rows with real queries.

Candidates come from the counterfactuals that were found: a set of features with a direction for each, and sizes that
are quantiles of the sizes found. Half of the budget is used to choose among them, all on the same rows. The other half
measures the chosen ones on rows that were not used for the choice, so that their shares are unbiased. A row to which a
change cannot be applied, because of a range, a frozen feature, a rule or plausibility, counts as not turned and costs
nothing. As in AReS and GLOBE-CE the answer is about many rows; unlike these methods it needs only labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from acex.audit.groups import Interval, wilson
from acex.engine.blackbox import BlackBox
from acex.engine.row_result import RowResult
from acex.engine.session import value_of
from acex.ledger import canonical
from acex.plan.plan import Plan
from acex.search.problem import Problem
from acex.space.space import Space
from acex.values import is_missing, printable, readable

SIZES = (0.5, 0.75, 0.9)  # quantiles of the sizes found; a larger change turns more rows
MOST_CANDIDATES = 24
MOST_FEATURES = 3  # largest number of features in a change, so that people can remember it
LEAST_SHARE = 0.05  # smallest share of the counterfactuals that contain a common change


class Move(NamedTuple):
    """The change of a feature: a number changes by a difference, a category to another one."""

    feature: str
    by: float | None
    to: Any = None

    def words(self) -> str:
        """The change as text for people."""
        if self.by is None:
            return f"{self.feature} = {self.to}"
        return f"{self.feature} {'+' if self.by > 0 else '-'}{readable(abs(self.by))}"


Moves: TypeAlias = tuple[Move, ...]


class CommonChange(NamedTuple):
    """A change, and its effect on rows that were not used to choose it.

    Attributes:
        tried: number of rows. turned: how many of them got the wanted label. cost: median cost of the rows turned.
    """

    moves: Moves
    tried: int
    turned: int
    cost: float

    @property
    def share(self) -> Interval:
        """The share of rows turned, with a 95% interval."""
        return wilson(self.turned, self.tried)

    def words(self) -> str:
        """The change as text for people."""
        return ", ".join(move.words() for move in self.moves)


@dataclass(frozen=True)
class CommonChanges:
    """The common changes, those that turn most rows first, and the numbers of rows and queries behind them."""

    changes: tuple[CommonChange, ...]
    rows: int
    queries: int

    def without(self, columns: Collection[str]) -> CommonChanges:
        """The common changes that do not involve these features."""
        shown = (change for change in self.changes if not {move.feature for move in change.moves} & set(columns))
        return replace(self, changes=tuple(shown))

    def frame(self) -> pd.DataFrame:
        """A line per change: change, tried, turned, share, low, high, cost."""
        columns = ["change", "tried", "turned", "share", "low", "high", "cost"]
        lines = [(c.words(), c.tried, c.turned, *c.share, c.cost) for c in self.changes]
        return pd.DataFrame(lines, columns=pd.Index(columns))

    def __str__(self) -> str:
        if not self.changes:
            return f"No change is common to these {self.rows} rows ({self.queries} queries)."
        out = [f"Common changes, tried on some of {self.rows} rows with {self.queries} queries:"]
        for change in self.changes:
            value, low, high = (f"{100 * v:.0f}%" for v in change.share)
            out.append(
                f"  {change.words()} turns {value} ({low} to {high}): {change.turned} of {change.tried} rows"
                + (f", median cost {change.cost:.3g}" if change.turned else "")
            )
        return printable("\n".join(out))

    __repr__ = __str__


RowToTurn: TypeAlias = tuple[Plan, Problem, Any]  # a row's plan, its problem as a search sees it, its label


def find_common_changes(
    results: Sequence[RowResult], row: Callable[[int], RowToTurn], space: Space, box: BlackBox, *, count: int, seed: int
) -> CommonChanges:
    """The common changes of these rows, within the budget of the box.

    Args:
        row: returns the row at a position.
        count: largest number of changes.
    """
    rows = [i for i, r in enumerate(results) if r.outcome not in ("already_target", "failed", "unfinished")]
    options = candidates([result for result in results if result.outcome == "found"], space)
    order = np.random.default_rng([seed, 0x6C]).permutation(rows).tolist()
    if not options or not order:
        return CommonChanges((), len(rows), 0)
    row = cache(row)
    first = order[: max(min(box.budget // 2 // len(options), len(order) // 2), 1)]
    turned = {}
    for moves in options:
        costs = _costs(moves, first, row, box)
        turned[moves] = {i for i, cost in zip(first, costs, strict=False) if np.isfinite(cost)}
    chosen: list[Moves] = []
    while len(chosen) < count:  # greedily: add the change that turns most rows not turned so far
        known = set[int]().union(*(turned[moves] for moves in chosen))
        best = max(options, key=lambda m: (len(turned[m] - known), len(turned[m]), -len(m)))
        if best in chosen or (chosen and turned[best] <= known):
            break
        chosen.append(best)
    each = max((box.budget - box.n_queries) // len(chosen), 0)
    measured = []
    for moves in chosen:
        costs = _costs(moves, order[len(first) :] or first, row, box, each)
        hits = [cost for cost in costs if np.isfinite(cost)]
        measured.append(CommonChange(moves, len(costs), len(hits), float(np.median(hits)) if hits else np.nan))
    measured.sort(key=lambda change: (-change.share.value, change.cost))
    return CommonChanges(tuple(change for change in measured if change.tried), len(rows), box.n_queries)


def candidates(found: Sequence[RowResult], space: Space) -> list[Moves]:
    """Changes that many counterfactuals have in common, most frequent first."""
    steps_by_signature: dict[tuple[tuple[str, Any], ...], list[dict[str, float]]] = {}
    for result in found:
        ways = {name: _way(space, name, *result.changes[name]) for name in sorted(result.changes)}
        pairs = [(name, way) for name, (way, _) in ways.items()]
        whole = [tuple(pairs)] if len(pairs) <= MOST_FEATURES else []
        for signature in {*whole, *((pair,) for pair in pairs)}:
            steps_by_signature.setdefault(signature, []).append({name: ways[name][1] for name, _ in signature})
    often = Counter({signature: len(steps) for signature, steps in steps_by_signature.items()})
    out: dict[Moves, None] = {}
    for signature, n in often.most_common():
        if n < max(LEAST_SHARE * len(found), 1):
            break
        for q in SIZES:
            out[tuple(_move(space, name, way, steps_by_signature[signature], q) for name, way in signature)] = None
    return list(out)[:MOST_CANDIDATES]


def _way(space: Space, name: str, before: Any, after: Any) -> tuple[Any, float]:
    """Whether a number increases, and by how much; for categories and numbers with few values, the new value and 0."""
    feature = space.feature(name)
    if not feature.is_number or feature.values or is_missing(before) or is_missing(after):
        return after, 0.0
    return bool(after > before), float(after) - float(before)


def _move(space: Space, name: str, way: Any, steps: Sequence[Mapping[str, float]], q: float) -> Move:
    feature = space.feature(name)
    if not (feature.is_number and isinstance(way, bool)):
        return Move(name, None, way)
    far = float(np.quantile([abs(step[name]) for step in steps], q))
    grid = float(feature.grid)
    # Rounded up to three digits: people remember +80, not +79.6130912.
    unit = 10.0 ** (np.floor(np.log10(far)) - 2) if far > 0 else 1.0
    far = float(f"{np.ceil(far / unit - 1e-9) * unit:.10g}")
    far = float(np.ceil(far / grid - 1e-9) * grid) if grid else far
    return Move(name, far if way else -far)


def _costs(
    moves: Moves, rows: Sequence[int], row: Callable[[int], RowToTurn], box: BlackBox, budget: float = np.inf
) -> list[float]:
    """For each row the cost if the change turns it, otherwise infinity, also if it cannot be applied.

    The list is shorter if the budget is spent first.
    """
    costs: list[float] = []
    sent = box.n_queries
    for i in rows:
        plan, problem, before = row(i)
        space, x = plan.space, problem.factual.copy()
        for move in moves:
            j = space.index(move.feature)
            x[j] = space.held[j].codes(pd.Series([move.to]))[0] if move.by is None else x[j] + move.by
        is_within = (((x >= space.low) & (x <= space.high)) | space.is_gap(x)).all()
        point = space.snap(x[None])
        is_other = (point[0] != problem.factual).any()
        cost = np.inf
        if is_within and is_other and problem.region.contains(point)[0] and problem.plausible(point)[0]:
            asked = space.decode(point)
            if box.affordable(canonical(asked)) < 1:
                break
            [answer] = box.ask(asked)
            if plan.target.is_hit(value_of(answer, plan.target), before):
                cost = float(problem.cost(point)[0])
        costs.append(cost)
        if box.n_queries - sent >= budget:
            break
    return costs
