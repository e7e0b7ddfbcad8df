"""In which order many rows are explained, how a total budget is allocated to them, and the work itself.

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
    """The explanation of a row, and how many rows all runs together sent for it."""

    explanation: Explanation
    paid: int = 0


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


@dataclass(frozen=True)
class BatchRun:
    """The work on many rows.

    Args:
        keep, kept: store the explanation of a row so far, and read it back.
    """

    job: BatchJob
    rows: pd.DataFrame
    executor: Executor
    keep: Callable[[int, Explanation], None]
    kept: Callable[[int], Explanation]
    budget_total: int | None = None

    def __iter__(self) -> Iterator[tuple[int, Explanation, int]]:
        """Position, explanation and queries of each row that is finished."""
        order, twins = self._order()
        for position, (explanation, paid) in self._rounds(order, twins):
            yield position, explanation, paid
            for twin in twins[position]:  # nothing is sent for them
                yield twin, _with_sent(explanation, 0), 0

    def _order(self) -> tuple[list[int], dict[int, list[int]]]:
        """Positions in the order of work, each different row once, and by each of these the rows identical to it.

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
        # Not `isinstance`: whether pandas gives selected rows a RangeIndex depends on its version and on their number.
        has_names = not index.equals(pd.RangeIndex(len(index)))
        names = {i: (i, *twins[i]) if has_names else () for i in allowed}
        work = (
            Work(i, self.rows.iloc[[i]], n, tuple(str(as_json(index[j])) for j in names[i])) for i, n in allowed.items()
        )
        for item, result in self.executor.run(self.job, explain_row, work):
            if isinstance(result, Lost):
                # A dead worker cannot say what it sent: count all that was allowed, or what the ledger says.
                n = item.allowance or self._recorded(item.position)[0]
                result = Done(self.job.planner.failed(item.row, self.job.options, result.reason, sent=n), n)
            yield item.position, result

    def _recorded(self, i: int) -> tuple[int, bool]:
        """How many rows earlier runs have sent for a row, and whether one has begun it."""
        session = self.job.planner.session(self.rows.iloc[[i]], self.job.options)
        session.begin()
        return session.box.paid, bool(session.box.ledger.asks(session.identity))

    def _rounds(self, order: Sequence[int], twins: Mapping[int, Sequence[int]]) -> Iterator[tuple[int, Done]]:
        """The results of rows as they finish.

        Of a total budget each gets an equal share; what rows leave of theirs is shared among those that need more.

        Raises:
            LedgerFailed: the ledger cannot be read, so a total budget cannot be kept.
        """
        if self.budget_total is None:
            yield from self._pass(dict.fromkeys(order), twins)
            return
        failed, options, budget = self.job.planner.failed, self.job.options, self.job.options.budget
        paid: dict[int, int] = {}  # by all runs, for rows that are not finished
        begun = set()
        for i in order:
            try:
                paid[i], is_begun = self._recorded(i)
                begun |= {i} if is_begun else set()
            except LedgerFailed:
                raise
            except Exception as error:
                yield i, Done(failed(self.rows.iloc[[i]], options, f"{type(error).__name__}: {error}"))
        again = set(begun)  # these run also without a new query: everything they ask may already be known
        left, sent = self.budget_total - sum(paid.values()), Counter[int]()  # sent by this run
        while True:
            allowed = {i: n for i, n in allowances(paid, budget, left).items() if n > paid[i] or i in again}
            if not allowed:
                break
            finished, again = [], set()
            for i, (e, n_paid) in self._pass(allowed, twins):
                # A row that failed before it could read what was paid for it has not got it back.
                left -= max(n_paid - paid[i], 0)
                paid[i] = max(n_paid, paid[i])
                sent[i] += e.n_queries
                begun.add(i)
                self.keep(i, _with_sent(e, sent[i]))
                if e.outcome == "failed" or e.stopped_by != "budget" or paid[i] < allowed[i] or paid[i] >= budget:
                    finished.append(i)
            yield from ((i, Done(self.kept(i), paid.pop(i))) for i in finished)
        unasked = f"budget_total={self.budget_total} was spent before this row was sent, by this run or earlier ones."
        for i, n in paid.items():
            yield i, Done(self.kept(i) if i in begun else failed(self.rows.iloc[[i]], options, unasked), n)


def _with_sent(explanation: Explanation, sent: int) -> Explanation:
    """The explanation with the queries of all rounds of this run."""
    return replace(explanation, n_queries=sent, n_reused=max(len(explanation.steps) - sent, 0))
