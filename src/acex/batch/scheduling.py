"""The order in which many rows are explained, the allocation of a total budget to them, and the run itself.

Rows share the ledger, so each learns from the answers to those before it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.batch.executors import Executor, Lost
from acex.engine.explanation import Explanation
from acex.engine.planner import Planner
from acex.errors import LedgerFailed
from acex.options import Options
from acex.space.space import each_that_fits
from acex.values import as_json


@dataclass(frozen=True)
class BatchJob:
    """The part that is the same for all rows; it is sent to each worker once."""

    planner: Planner
    options: Options


class Work(NamedTuple):
    """A row to explain.

    `allowance` is how many rows all runs together may send for it; None for its whole budget. `names` are the names of
    this row and of identical rows, if they have any.
    """

    position: int
    row: pd.DataFrame
    allowance: int | None
    names: tuple[str, ...] = ()


class Done(NamedTuple):
    """The explanation of a row, and how many rows all runs together have sent for it."""

    explanation: Explanation
    paid: int = 0


def explain_row(job: BatchJob, work: Work) -> Done:
    """The explanation of a row; if it raises, one with the outcome "failed" and the error."""
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


def allowances(paid: Mapping[int, int], budget: int, left: int) -> dict[int, int]:
    """How many rows all runs may send for each row: the row with the fewest repeatedly gets one more."""
    allowed = dict(paid)
    heap = [(n, i) for i, n in paid.items() if n < budget]
    heapq.heapify(heap)
    while left > 0 and heap:
        n, i = heapq.heappop(heap)
        allowed[i], left = n + 1, left - 1
        if n + 1 < budget:
            heapq.heappush(heap, (n + 1, i))
    return allowed


@dataclass(frozen=True)
class BatchRun:
    """A run over many rows.

    Args:
        keep, kept: functions that store the explanation of a row so far, and load it again.
    """

    job: BatchJob
    rows: pd.DataFrame
    executor: Executor
    keep: Callable[[int, Explanation], None]
    kept: Callable[[int], Explanation]
    budget_total: int | None = None

    def __iter__(self) -> Iterator[tuple[int, Explanation, int]]:
        """Position, explanation and queries of each row, as they finish."""
        order, twins = self._order()
        for position, (explanation, paid) in self._rounds(order, twins):
            yield position, explanation, paid
            for twin in twins[position]:  # nothing was sent for these
                yield twin, _with_sent(explanation, 0), 0

    def _order(self) -> tuple[list[int], dict[int, list[int]]]:
        """Positions of distinct rows in the order of work, and for each of them the positions of identical rows.

        Rows learn from those before them, so the order is random: no group of rows may come first. Rows that do not fit
        the space come last; they will fail.
        """
        planner, options = self.job.planner, self.job.options
        space = planner.space.widened(options.ranges, options.values)
        points: list[FloatArray | None] = each_that_fits(lambda rows: space.reaching(rows)[1], self.rows)
        same: dict[bytes | int, list[int]] = {}
        for i, x in enumerate(points):
            same.setdefault(i if x is None else (x + 0.0).tobytes(), []).append(i)
        twins = {first: others for first, *others in same.values()}
        good = np.random.default_rng([options.seed, 0x69]).permutation([i for i in twins if points[i] is not None])
        return good.tolist() + [i for i in twins if points[i] is None], twins

    def _pass(
        self, allowed: Mapping[int, int | None], twins: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[int, Done]]:
        """The results of these rows with these allowances, as they finish."""
        index = self.rows.index
        # Not `isinstance`: whether selected rows have a RangeIndex depends on their number and the version of pandas.
        has_names = not index.equals(pd.RangeIndex(len(index)))
        names = {i: (i, *twins[i]) if has_names else () for i in allowed}
        work = (
            Work(i, self.rows.iloc[[i]], n, tuple(str(as_json(index[j])) for j in names[i])) for i, n in allowed.items()
        )
        for item, result in self.executor.run(self.job, explain_row, work):
            if isinstance(result, Lost):
                # A dead worker cannot report what it sent: assume its allowance, or else what the ledger has.
                n = item.allowance or self._recorded(item.position)[0]
                result = Done(self.job.planner.failed(item.row, self.job.options, result.reason, sent=n), n)
            yield item.position, result

    def _recorded(self, i: int) -> tuple[int, bool]:
        """How many rows earlier runs have sent for a row, and whether any run has asked a question for it."""
        session = self.job.planner.session(self.rows.iloc[[i]], self.job.options)
        session.begin()
        return session.box.paid, bool(session.box.ledger.asks(session.identity))

    def _rounds(self, order: Sequence[int], twins: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, Done]]:
        """The results of rows, as they finish.

        Each row gets an equal share of a total budget; what some rows do not use is divided among those that need more.

        Raises:
            LedgerFailed: the ledger cannot be read, so a total budget cannot be enforced.
        """
        if self.budget_total is None:
            yield from self._pass(dict.fromkeys(order), twins)
            return
        failed, options, budget = self.job.planner.failed, self.job.options, self.job.options.budget
        paid: dict[int, int] = {}  # by all runs, for rows that are not finished
        started = set()
        for i in order:
            try:
                paid[i], is_started = self._recorded(i)
                started |= {i} if is_started else set()
            except LedgerFailed:
                raise
            except Exception as error:
                yield i, Done(failed(self.rows.iloc[[i]], options, f"{type(error).__name__}: {error}"))
        again = set(started)  # they run even without an allowance: all their answers may be known
        left, sent = self.budget_total - sum(paid.values()), Counter[int]()  # sent by this run
        while True:
            allowed = {i: n for i, n in allowances(paid, budget, left).items() if n > paid[i] or i in again}
            if not allowed:
                break
            finished, again = [], set()
            for i, (e, n_paid) in self._pass(allowed, twins):
                # `n_paid` is smaller if a row failed before it could read what earlier runs paid; that is no refund.
                left -= max(n_paid - paid[i], 0)
                paid[i] = max(n_paid, paid[i])
                sent[i] += e.n_queries
                started.add(i)
                self.keep(i, _with_sent(e, sent[i]))
                if e.outcome == "failed" or e.stopped_by != "budget" or paid[i] < allowed[i] or paid[i] >= budget:
                    finished.append(i)
            yield from ((i, Done(self.kept(i), paid.pop(i))) for i in finished)
        unasked = f"budget_total={self.budget_total} was spent before this row was sent, by this run or earlier ones."
        for i, n in paid.items():
            yield i, Done(self.kept(i) if i in started else failed(self.rows.iloc[[i]], options, unasked), n)


def _with_sent(explanation: Explanation, sent: int) -> Explanation:
    """The explanation with the number of rows that all passes of this run have sent."""
    return replace(explanation, n_queries=sent, n_reused=max(len(explanation.steps) - sent, 0))
