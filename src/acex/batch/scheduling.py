"""In which order many rows are explained, how a total budget is allocated to them, and the work itself.

Rows share the ledger, so each learns from the answers to those before it.
"""

from __future__ import annotations

import heapq
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
from acex.space.space import Space

MOST_LEADERS = 64  # rows that are explained first, one for each part of the domain


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


def allowances(paid: Mapping[int, int], budget: int, left: int) -> dict[int, int]:
    """How many rows may be sent for each row, by all runs together: one more for the row that has least, and again."""
    allowed = dict(paid)
    heap = [(n, i) for i, n in paid.items() if n < budget]
    heapq.heapify(heap)
    while left > 0 and heap:
        n, i = heapq.heappop(heap)
        allowed[i], left = n + 1, left - 1
        if n + 1 < budget:
            heapq.heappush(heap, (n + 1, i))
    return allowed


def order_of_work(Z: FloatArray) -> IntArray:
    """The order in which points with these coordinates, (n, D), are best explained, (n,).

    First the leaders, spread over all points (k-means++). Then, leader by leader, the rows nearest to it, near ones
    first: each has a neighbour from which to learn, and the newest answers, which are the ones that are read, are from
    close by.
    """
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin_min

    _, chosen = kmeans_plusplus(Z, min(MOST_LEADERS, len(Z)), random_state=0)
    leaders = np.array(list(dict.fromkeys(chosen.tolist())))  # where points coincide, one is chosen twice
    rest = np.setdiff1d(np.arange(len(Z)), leaders)
    if not len(rest):
        return leaders
    leader, distance = pairwise_distances_argmin_min(Z[rest], Z[leaders])
    return np.concatenate([leaders, rest[np.lexsort((distance, leader))]])


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
            order = order_of_work(planner.coordinates(np.array([points[i] for i in good])))
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
        """Equal shares of the total; what rows leave of theirs is shared among those that need more."""
        looked_up = {}
        for i, done in self._pass(dict.fromkeys(order), names, look_up):  # what earlier runs have paid counts
            if done.explanation is None:
                looked_up[i] = done
            else:
                yield i, done
        paid = {i: looked_up[i].paid for i in order if i in looked_up}  # by all runs, for rows that are not finished
        begun = {i for i in paid if looked_up[i].is_begun}
        again = set(begun)  # these run also without a new query: everything they ask may already be known
        left = total - sum(paid.values())
        budget, sent = self.job.options.budget, Counter[int]()  # sent by this run
        while True:
            allowed = {i: n for i, n in allowances(paid, budget, left).items() if n > paid[i] or i in again}
            if not allowed:
                break
            finished, again = [], set()
            for i, (e, n_paid, _) in self._pass(allowed, names):
                assert e is not None
                # A row that failed before it could read what was paid for it has not got it back.
                left -= max(n_paid - paid[i], 0)
                paid[i] = max(n_paid, paid[i])
                sent[i] += e.n_queries
                begun.add(i)
                self.keep(i, _with_sent(e, sent[i]))
                if e.outcome == "failed" or e.stopped_by != "budget" or paid[i] >= budget:
                    finished.append(i)
            yield from ((i, Done(self.kept(i), paid.pop(i))) for i in finished)
        unasked = f"budget_total={total} was spent before this row was sent."
        for i, n in paid.items():
            failed = self.job.planner.failed
            e = self.kept(i) if i in begun else failed(self.rows.iloc[[i]], self.job.options, unasked)
            yield i, Done(e, n)


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
