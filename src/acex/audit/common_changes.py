"""Common changes: a few that turn the decision for many rows, each tried on rows by real queries.

Candidates come from the counterfactuals that were found: a set of features with the way each goes, and how far, by
quantiles of how far they went. Half of the budget chooses among them, on the same rows for all; the other half measures
those chosen on rows that had no part in the choice, so that the share they turn is not flattered. A row that a change
cannot be applied to, because of a range, a frozen feature or a rule, or that would not look real, counts as not turned,
and costs nothing. As in AReS and GLOBE-CE the answer is about many rows; other than these it needs labels only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.audit.groups import Interval, wilson
from acex.engine.blackbox import BlackBox
from acex.engine.recorded import value_of
from acex.engine.row_result import RowResult
from acex.ledger import canonical
from acex.plan.plan import Plan
from acex.search.problem import Problem
from acex.space.space import Space
from acex.values import is_missing, printable, readable

FAR = (0.5, 0.75, 0.9)  # quantiles of how far counterfactuals go: a longer change turns more rows
MOST_CANDIDATES = 24
MOST_FEATURES = 3  # of a change, so that people can remember it
LEAST_SHARE = 0.05  # of the counterfactuals, or it is not common


class Move(NamedTuple):
    """What happens to a feature: a number goes up or down by so much, a category becomes this one."""

    feature: str
    by: float | None
    to: Any = None

    def words(self) -> str:
        """As people write it."""
        if self.by is None:
            return f"{self.feature} = {self.to}"
        return f"{self.feature} {'+' if self.by > 0 else '-'}{readable(abs(self.by))}"


Moves: TypeAlias = tuple[Move, ...]


@dataclass(frozen=True)
class CommonChange:
    """A change, and what it does to rows that it was tried on.

    Attributes:
        tried: rows that had no part in its choice. turned: those to which the model then gave the label wanted.
        fitting: those it could be applied to. share: turned of tried, with a 95% interval.
        cost: the median cost of those turned.
    """

    moves: Moves
    tried: int
    fitting: int
    turned: int
    cost: float

    @property
    def share(self) -> Interval:
        return wilson(self.turned, self.tried)

    def words(self) -> str:
        """The change as people write it."""
        return ", ".join(move.words() for move in self.moves)


@dataclass(frozen=True)
class CommonChanges:
    """The common changes, those that turn most first, and how many rows and queries they come from."""

    changes: tuple[CommonChange, ...]
    rows: int
    queries: int

    def frame(self) -> pd.DataFrame:
        """A line for each change: change, tried, fitting, turned, share, low, high, cost."""
        lines = [(v.words(), v.tried, v.fitting, v.turned, *v.share, v.cost) for v in self.changes]
        return pd.DataFrame(
            lines, columns=pd.Index(["change", "tried", "fitting", "turned", "share", "low", "high", "cost"])
        )

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


class RowToTurn(NamedTuple):
    """A row to be turned: its plan, and the same as a search sees it."""

    plan: Plan
    problem: Problem
    before: Any  # its label


def find_common_changes(
    lines: Sequence[RowResult], row: Callable[[int], RowToTurn], space: Space, box: BlackBox, *, count: int, seed: int
) -> CommonChanges:
    """The common changes of these rows, within the budget of the box.

    Args:
        row: from a position to the row.
        count: how many changes are wanted.
    """
    rows = [i for i, line in enumerate(lines) if line.outcome in ("found", "budget_spent", "unlikely", "exhausted")]
    moves = candidates([line for line in lines if line.outcome == "found"], space)
    order = np.random.default_rng([seed, 0x6C]).permutation(rows).tolist()
    if not moves or not order:
        return CommonChanges((), len(rows), 0)
    trial = _Trial(row, box)
    half = box.budget // 2
    first = order[: max(min(half // len(moves), len(order) // 2), 1)]
    turned = {m: trial.on(m, first) for m in moves}
    chosen: list[Moves] = []
    while len(chosen) < count:
        best = max(moves, key=lambda m: (_adds(turned, chosen, m), len(turned[m]), -len(m)))
        if best in chosen or (_adds(turned, chosen, best) == 0 and chosen):
            break
        chosen.append(best)
    fresh = order[len(first) :] or first
    each = max((box.budget - box.n_queries) // len(chosen), 0)
    measured = [_measured(m, trial, fresh, each) for m in chosen]
    measured.sort(key=lambda change: (-change.share.value, change.cost))
    return CommonChanges(tuple(change for change in measured if change.tried), len(rows), box.n_queries)


def candidates(found: Sequence[RowResult], space: Space) -> list[Moves]:
    """Changes that are common to counterfactuals, most common first."""
    steps_by_signature: dict[tuple[tuple[str, Any], ...], list[dict[str, float]]] = {}
    for line in found:
        ways = [_way(space, name, *line.changes[name]) for name in sorted(line.changes)]
        whole = [tuple(ways)] if len(ways) <= MOST_FEATURES else []
        for signature in {*whole, *((way,) for way in ways)}:
            steps = {name: _step(space, name, *line.changes[name]) for name, _ in signature}
            steps_by_signature.setdefault(signature, []).append(steps)
    often = Counter({signature: len(lines) for signature, lines in steps_by_signature.items()})
    out: dict[Moves, None] = {}
    for signature, n in often.most_common():
        if n < max(LEAST_SHARE * len(found), 1):
            break
        for q in FAR:
            out[tuple(_move(space, name, way, steps_by_signature[signature], q) for name, way in signature)] = None
    return list(out)[:MOST_CANDIDATES]


def _way(space: Space, name: str, before: Any, after: Any) -> tuple[str, Any]:
    leaps = not space.feature(name).is_number or is_missing(before) or is_missing(after)
    return (name, after) if leaps else (name, bool(after > before))


def _step(space: Space, name: str, before: Any, after: Any) -> float:
    leaps = not space.feature(name).is_number or is_missing(before) or is_missing(after)
    return 0.0 if leaps else float(after) - float(before)


def _move(space: Space, name: str, way: Any, steps: Sequence[Mapping[str, float]], q: float) -> Move:
    feature = space.feature(name)
    if not (feature.is_number and isinstance(way, bool)):
        return Move(name, None, way)
    far = float(np.quantile([abs(step[name]) for step in steps], q))
    grid = float(feature.grid)
    # To three digits, upwards: people remember +80, not +79.6130912.
    unit = 10.0 ** (np.floor(np.log10(far)) - 2) if far > 0 else 1.0
    far = float(f"{np.ceil(far / unit - 1e-9) * unit:.10g}")
    far = float(np.ceil(far / grid - 1e-9) * grid) if grid else far
    return Move(name, far if way else -far)


class _Trial:
    """Changes tried on rows; the ledger of the box remembers the answers."""

    def __init__(self, row: Callable[[int], RowToTurn], box: BlackBox) -> None:
        self._row, self._box = cache(row), box

    def on(self, moves: Moves, rows: Sequence[int]) -> set[int]:
        """Which of the rows a change turns."""
        return {i for i, cost in self.each(moves, rows) if cost is not None and np.isfinite(cost)}

    def each(self, moves: Moves, rows: Sequence[int]) -> Iterator[tuple[int, float | None]]:
        """For each row the cost if it turns, infinity if it does not, None if the change does not fit it.

        Ends where the budget does.
        """
        for i in rows:
            plan, problem, before = self._row(i)
            x = problem.factual.copy()
            for move in moves:
                j = plan.space.index(move.feature)
                x[j] = plan.space.held[j].codes(pd.Series([move.to]))[0] if move.by is None else x[j] + move.by
            point = plan.space.snap(x[None])[0] if _within(plan.space, x) else x
            if not _fits(problem, point):
                yield i, None
                continue
            row = plan.space.decode(point[None])
            if self._box.affordable(canonical(row)) < 1:
                return
            [answer] = self._box.ask(row)
            hit = plan.target.is_hit(value_of(answer, plan.target), before)
            yield i, float(problem.cost(point[None])[0]) if hit else np.inf


def _within(space: Space, x: FloatArray) -> bool:
    return bool((((x >= space.low) & (x <= space.high)) | space.is_gap(x)).all())


def _fits(problem: Problem, x: FloatArray) -> bool:
    """Is this another row than the factual, one that it may become, and one that looks real?"""
    if np.array_equal(x, problem.factual) or not _within(problem.region.space, x):
        return False
    return bool(problem.region.contains(x[None])[0] and problem.plausible(x[None])[0])


def _adds(turned: Mapping[Moves, set[int]], chosen: Sequence[Moves], move: Moves) -> int:
    """How many rows a change turns that those chosen do not."""
    return len(turned[move].difference(*(turned[m] for m in chosen)))


def _measured(moves: Moves, trial: _Trial, rows: Sequence[int], budget: int) -> CommonChange:
    costs: list[float | None] = []
    sent = trial._box.n_queries
    for _, cost in trial.each(moves, rows):
        costs.append(cost)
        if trial._box.n_queries - sent >= budget:
            break
    fitting = [cost for cost in costs if cost is not None]
    hits = [cost for cost in fitting if np.isfinite(cost)]
    return CommonChange(moves, len(costs), len(fitting), len(hits), float(np.median(hits)) if hits else np.nan)
