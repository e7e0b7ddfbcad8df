"""In which order many rows are explained, how a total budget is allocated to them, and the work itself.

Rows share the ledger, so each learns from the answers to those before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, IntArray
from acex.audit.groups import interleaved
from acex.batch.executors import Executor, Lost, Task
from acex.engine.explanation import Explanation
from acex.engine.planner import Planner
from acex.errors import LedgerFailed
from acex.options import Options
from acex.space.scale import EUCLIDEAN, Metric
from acex.space.space import Space

SHARE = 5  # queries of the total budget that a row gets at a time
ROUND = 4  # one in so many of the rows that could use more gets more in a round
LEAST_ROUND = 8  # rows, so that several workers have something to do
MOST_LEADERS = 64  # rows that are explained first, one for each part of the domain
SAMPLE = 1000  # rows among which they are chosen


@dataclass(frozen=True)
class BatchJob:
    """What is the same for all rows; it is sent to each worker once."""

    planner: Planner
    options: Options


class Work(NamedTuple):
    """A row to be explained.

    `allowance` is how many rows may be sent for it, by all runs together; None for its whole budget. `names` are those
    of the row and of identical rows, where they have any.
    """

    position: int
    row: pd.DataFrame
    allowance: int | None
    names: tuple[str, ...] = ()


class Done(NamedTuple):
    """The explanation of a row, None if it was only looked up, and how many rows all runs together sent for it."""

    explanation: Explanation | None
    paid: int = 0
    is_begun: bool = True  # by this run or an earlier one


def explain_row(job: BatchJob, work: Work) -> Done:
    """The explanation of a row; an error is recorded as that of the row."""
    paid, sent, planner = 0, 0, job.planner
    try:
        session = planner.session(work.row, job.options)
        session.begin(work.names)
        paid = session.box.paid
        if work.allowance is not None:
            session.box.budget = work.allowance
        try:
            explanation = session.run()
        finally:
            sent = session.box.n_queries
        return Done(explanation, paid + sent)
    except Exception as error:
        so_far, why = getattr(error, "explanation", None), f"{type(error).__name__}: {error}"
        return Done(planner.failed(work.row, job.options, why, so_far, sent), paid + sent)


def look_up(job: BatchJob, work: Work) -> Done:
    """What earlier runs have sent for a row; an error is recorded as that of the row.

    Raises:
        LedgerFailed: the ledger cannot be read, so a total budget cannot be kept.
    """
    try:
        session = job.planner.session(work.row, job.options)
        session.begin()
        return Done(None, session.box.paid, bool(session.box.ledger.asks(session.identity)))
    except LedgerFailed:
        raise
    except Exception as error:
        return Done(job.planner.failed(work.row, job.options, f"{type(error).__name__}: {error}"))


class Standing(NamedTuple):
    """What a row has used of its share of the total budget."""

    paid: int
    expected_saving: float = np.inf  # of one more query
    is_begun: bool = False
    is_over: bool = False  # no more queries are needed

    @classmethod
    def of(cls, e: Explanation, paid: int, budget: int) -> Standing:
        """Where a row stands after this explanation."""
        over = e.outcome == "failed" or e.stopped_by != "budget" or paid >= budget
        return cls(paid, e.ending.expected_saving, is_begun=True, is_over=over)


def next_allocation(state: Mapping[int, Standing], budget: int) -> dict[int, int]:
    """How many more queries rows get in the next round: a share for those where one more saves most."""
    ranked = sorted(state, key=lambda i: (-state[i].expected_saving, state[i].paid))
    return {i: min(SHARE, budget - state[i].paid) for i in ranked[: max(len(ranked) // ROUND, LEAST_ROUND)]}


def allowances(allocation: Mapping[int, int], state: Mapping[int, Standing], left: int) -> dict[int, int | None]:
    """How many rows each row may send, in all runs together, within what is left of the total.

    A row that was begun runs again even without a new query: everything it asks may already be known.
    """
    allowed: dict[int, int | None] = {}
    for i, share in allocation.items():
        given = min(share, left)
        left -= given
        if given > 0 or state[i].is_begun:
            allowed[i] = given + state[i].paid
    return allowed


def order_of_work(Z: FloatArray, metric: Metric = EUCLIDEAN) -> IntArray:
    """The order in which points with these coordinates, (n, D), are best explained, (n,).

    First the leaders: rows that together are near to all others, each chosen for what it adds. Then, leader by leader,
    the rows nearest to it, near ones first: each has a neighbour from which to learn, and the newest answers, which are
    the ones that are read, are from close by.
    """
    n = len(Z)
    sample = np.sort(np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False))
    apart = np.sqrt(metric.squared(Z[sample], Z[sample]))
    nearest = np.full(len(sample), apart.max(initial=0.0) + 1.0)  # distance to the nearest leader so far
    chosen: list[int] = []
    for _ in range(min(MOST_LEADERS, len(sample))):
        left_over = np.minimum(apart, nearest).sum(axis=1)
        left_over[chosen] = np.inf
        chosen.append(int(left_over.argmin()))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    leaders = sample[chosen]
    rest = np.setdiff1d(np.arange(n), leaders)
    blocks = (np.sqrt(metric.squared(Z[part], Z[leaders])) for part in np.array_split(rest, len(rest) // 10_000 + 1))
    nearest_leader = [(block.min(axis=1), block.argmin(axis=1)) for block in blocks]
    distances, leader = (np.concatenate(parts) for parts in zip(*nearest_leader, strict=True))
    return np.concatenate([leaders, rest[np.lexsort((distances, leader))]])


@dataclass(frozen=True)
class BatchRun:
    """The work on many rows.

    Args:
        keep, kept: store the explanation of a row so far, and read it back.
        ids: names of the rows for the ledger; None where they have none.
        groups: the group of each row; rows are then explained in an order in which no group comes first.
    """

    job: BatchJob
    rows: pd.DataFrame
    executor: Executor
    keep: Callable[[int, Explanation], None]
    kept: Callable[[int], Explanation]
    budget_total: int | None = None
    ids: Sequence[Any] | None = None
    groups: Sequence[str] | None = None

    def __iter__(self) -> Iterator[tuple[int, Explanation, int]]:
        """Position, explanation and queries of each row that is finished."""
        order, twins = self._order()
        names: dict[int, tuple[str, ...]] = {}
        if self.ids is not None:
            names = {i: tuple(str(self.ids[j]) for j in (i, *twins.get(i, []))) for i in order}
        total = self.budget_total
        finished = self._pass(dict.fromkeys(order), names) if total is None else self._rounds(order, names, total)
        for position, (explanation, paid, _) in finished:
            assert explanation is not None
            yield position, explanation, paid
            for twin in twins.get(position, []):  # nothing is sent for them
                yield twin, _with_sent(explanation, 0), 0

    def _order(self) -> tuple[list[int], dict[int, list[int]]]:
        """Positions in the order of work, each different row once, and by each of these the rows identical to it.

        Rows that do not fit the space come last; they will fail.
        """
        planner, options = self.job.planner, self.job.options
        points = _points(planner.space.widened(options.ranges, options.values), self.rows)
        first: dict[bytes, int] = {}
        twins: dict[int, list[int]] = {}
        for i, x in enumerate(points):
            leader = i if x is None else first.setdefault((x + 0.0).tobytes(), i)
            if leader != i:
                twins.setdefault(leader, []).append(i)
        good = list(first.values())
        bad = [i for i, x in enumerate(points) if x is None]
        if not good:
            return bad, twins
        if self.groups is not None:
            order = interleaved([self.groups[i] for i in good], options.seed)
        else:
            order = order_of_work(*planner.coordinates(np.array([points[i] for i in good])))
        return [good[i] for i in order] + bad, twins

    def _pass(
        self, allowed: Mapping[int, int | None], names: Mapping[int, tuple[str, ...]], task: Task = explain_row
    ) -> Iterator[tuple[int, Done]]:
        """The results of these rows with these allowances, as they finish."""
        work = (Work(i, self.rows.iloc[[i]], n, names.get(i, ())) for i, n in allowed.items())
        for item, result in self.executor.run(self.job, task, work):
            if isinstance(result, Lost):
                # A dead worker cannot say what it sent: count all that was allowed, or what the ledger says.
                failed = self.job.planner.failed(item.row, self.job.options, result.reason)
                result = Done(failed, item.allowance or look_up(self.job, item).paid)
            yield item.position, result

    def _rounds(
        self, order: Sequence[int], names: Mapping[int, tuple[str, ...]], total: int
    ) -> Iterator[tuple[int, Done]]:
        """A small share for each row, then more for those where it saves most, until the total is spent."""
        budget = self.job.options.budget
        state: dict[int, Standing] = {}
        spent = 0
        for i, done in self._pass(dict.fromkeys(order), names, look_up):  # what earlier runs have paid counts
            spent += done.paid
            if done.explanation is None:
                state[i] = Standing(done.paid, is_begun=done.is_begun)
            else:
                yield i, done
        state = {i: state[i] for i in order if i in state}
        sent: Counter[int] = Counter()  # by this run
        share = max(min(SHARE, budget, total // max(len(order), 1)), 1)
        allocation = {i: max(share - standing.paid, 0) for i, standing in state.items()}
        while allocation:
            for i, done in self._pass(allowances(allocation, state, total - spent), names):
                # A row that failed before it could read what was paid for it has not got it back.
                paid = max(done.paid, state[i].paid)
                assert done.explanation is not None
                spent += paid - state[i].paid
                sent[i] += done.explanation.n_queries
                self.keep(i, _with_sent(done.explanation, sent[i]))
                state[i] = Standing.of(done.explanation, paid, budget)
            for i in [i for i, standing in state.items() if standing.is_over]:
                yield i, Done(self.kept(i), state.pop(i).paid)
            allocation = next_allocation(state, budget) if spent < total else {}
        unasked = f"budget_total={total} was spent before this row was sent."
        for i, standing in state.items():
            if standing.is_begun:
                yield i, Done(self.kept(i), standing.paid)
            else:
                yield i, Done(self.job.planner.failed(self.rows.iloc[[i]], self.job.options, unasked), standing.paid)


def _with_sent(explanation: Explanation, sent: int) -> Explanation:
    """The explanation with the queries of all rounds of this run."""
    return replace(explanation, n_queries=sent, n_reused=max(len(explanation.steps) - sent, 0))


def _points(space: Space, rows: pd.DataFrame) -> list[FloatArray | None]:
    """The points of rows, None for those that do not fit the space."""
    try:
        return list(space.reaching(rows)[1])
    except ValueError:
        half = len(rows) // 2  # a few that do not fit are found without looking at each of thousands
        return [*_points(space, rows.iloc[:half]), *_points(space, rows.iloc[half:])] if half else [None]
