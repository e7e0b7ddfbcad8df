"""Many rows of one model: in which order, who gets how many queries, and what came of them.

Rows share the ledger, so each learns from the answers to those before it, and to those beside it.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, Rows
from acex.audit.common_changes import CommonChanges, RowToTurn, find_common_changes
from acex.audit.groups import By, grouping, interleaved
from acex.audit.quote import Quote, quote
from acex.batch.executors import Executor, Lost, Task
from acex.batch.results import Results, names_of
from acex.batch.scheduling import SHARE, Standing, allowances, next_grants, order_of_work
from acex.engine import progress
from acex.engine.certificate import certified
from acex.engine.explanation import Explanation
from acex.engine.planner import Planner
from acex.engine.recorded import recorded
from acex.engine.redaction import message, redacted, saved
from acex.engine.row_result import NOT_DONE, RowResult
from acex.errors import LedgerFailed
from acex.ledger import BaseLedger
from acex.options import Options
from acex.plan.plan import Plan
from acex.space.columns import as_frame
from acex.space.space import Space
from acex.values import as_json, is_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 2  # of the JSON form
MOST_KEPT = 256  # explanations kept in memory where a ledger on disk has them too


@dataclass(frozen=True)
class BatchJob:
    """What is the same for all rows; it is sent to each worker once."""

    planner: Planner
    options: Options

    def parts(self) -> Mapping[str, Any]:
        """Its parts by their public names, to find the one that cannot be sent to another process."""
        named = {name: getattr(self.options, name) for name in ("rules", "strategy", "target")}
        return {"model": self.planner.model.wrapped, **named, "ledger": self.planner.ledger}


class Work(NamedTuple):
    """A row to be explained.

    `allowance` is how many rows may be sent for it, by all runs together; None for as many as its budget says. `names`
    are those of the row and of identical rows, where they have any.
    """

    position: int
    row: pd.DataFrame
    allowance: int | None
    names: tuple[str, ...] = ()


class Done(NamedTuple):
    """What came of a row, None if it was only looked up, and how many rows were sent for it by all runs together."""

    explanation: Explanation | None
    paid: int = 0
    is_begun: bool = True  # by this run or an earlier one


def explain_row(job: BatchJob, work: Work) -> Done:
    """What comes of a row; an error is that row's own."""
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
    """What earlier runs have sent for a row; an error is that row's own, unless the ledger cannot be read.

    Raises:
        LedgerFailed: it cannot. A budget for all rows must not rest on a guess.
    """
    try:
        session = job.planner.session(work.row, job.options)
        session.begin()
        return Done(None, session.box.paid, bool(session.box.ledger.asks(session.identity)))
    except LedgerFailed:
        raise
    except Exception as error:
        return Done(job.planner.failed(work.row, job.options, f"{type(error).__name__}: {error}"))


class Explanations(Results, Sequence[Explanation]):
    """The explanations of many rows, computed when they are read.

    One for each row, in their order: `zip(X, explanations)` is right whatever happened. A row that could not be
    explained has one too, with the outcome "failed" and its error. `as_finished` gives them as they are done. What
    has been answered is in the ledger at any moment: after Ctrl-C, `explain_many` with the same arguments goes on from
    there. With a ledger on disk only the latest are kept in memory, and the others read back when they are wanted.
    """

    def __init__(
        self,
        planner: Planner,
        X: Rows,
        options: Options,
        executor: Executor,
        *,
        budget_total: int | None = None,
        progress: bool | None = None,
        ids: Sequence[Any] | None = None,
        by: By | None = None,
    ) -> None:
        self._rows = as_frame(X)
        self._job, self._executor, self._progress = BatchJob(planner, options), executor, progress
        self._budget_total = budget_total
        planner.space.encode(self._rows.iloc[:0])  # the columns are right, or nothing is asked
        self._index = names_of(X, len(self._rows), ids)
        self._groups, self._seed = None if by is None else grouping(by, self._rows), options.seed
        self._ids = [as_json(name) for name in self._index]
        self._shelf = _Shelf(planner.ledger, self._ids)
        self._lines: dict[int, RowResult] = {}  # of the rows that are done, by position
        self._finished: list[int] = []  # positions in the order in which they were done
        self._names: dict[int, tuple[str, ...]] = {}  # of the rows that are worked on, and of those that are the same
        self._work = self._run()

    # -- as a sequence -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: Any) -> Any:
        """The explanation of the row at this position, or a list of those of a slice."""
        if isinstance(position, slice):
            return [self[i] for i in range(len(self))[position]]
        if not -len(self) <= position < len(self):
            raise IndexError(f"{position}: there are {len(self)} rows.")
        position %= len(self)
        while position not in self._lines and self._advance():
            pass
        if position not in self._lines:
            why = f"Row {self._index[position]!r} was not explained: the work was stopped before."
            failed = self._job.planner.failed(self._rows.iloc[[position]], self._job.options, why)
            return self._shelf.named(position, failed)
        return self._shelf.get(position)

    def __iter__(self) -> Iterator[Explanation]:
        """One explanation for each row, in their order."""
        return (self[i] for i in range(len(self)))

    def as_finished(self) -> Iterator[tuple[int, Explanation]]:
        """Position and explanation of each row, as they are done."""
        n = 0
        while n < len(self._finished) or self._advance():
            yield self._finished[n], self._shelf.get(self._finished[n])
            n += 1

    @property
    def errors(self) -> dict[int, str]:
        """What went wrong with rows so far, by position."""
        return {i: line.error for i, line in sorted(self._lines.items()) if line.error is not None}

    def _advance(self) -> bool:
        """One row more is done; False when there are none."""
        try:
            position, done = next(self._work)
        except StopIteration:
            return False
        assert done.explanation is not None
        self._shelf.put(position, done.explanation)
        self._lines[position] = RowResult.of(done.explanation, done.paid)
        self._finished.append(position)
        return True

    # -- the work ----------------------------------------------------------------------------------------

    def _run(self) -> Iterator[tuple[int, Done]]:
        """Position and result of each row that will not be worked on any more."""
        ledger = self._job.planner.ledger
        if ledger.path is not None:
            self._executor.refuse_file(ledger.path)
        order, twins = self._order()
        if not isinstance(self._index, pd.RangeIndex):  # otherwise they have no names
            self._names = {i: tuple(str(self._ids[j]) for j in (i, *twins.get(i, []))) for i in order}
        with progress.of_rows(self._progress, len(self)) as show:
            total = self._budget_total
            for position, done in self._pass(dict.fromkeys(order)) if total is None else self._rounds(order, total):
                assert done.explanation is not None
                others = twins.get(position, [])  # nothing is sent for them
                same = [Done(_with_sent(done.explanation, 0))] * len(others)
                for i, one in zip((position, *others), (done, *same), strict=True):
                    assert one.explanation is not None
                    show(one.explanation, one.paid)
                    yield i, one

    def _order(self) -> tuple[list[int], dict[int, list[int]]]:
        """Positions in the order of work, each different row once, and the rows that are the same as one of these.

        Rows that are no points come last, and fail then.
        """
        planner, options = self._job.planner, self._job.options
        points = _points(planner.space.widened(options.ranges, options.values), self._rows)
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
        if self._groups is not None:  # none of them shall learn from the others only, nor teach only
            return [good[i] for i in interleaved(self._groups.iloc[good].tolist(), options.seed)] + bad, twins
        Z, metric = planner.coordinates(np.array([points[i] for i in good]))
        return [good[i] for i in order_of_work(Z, metric)] + bad, twins

    def _pass(self, allowed: Mapping[int, int | None], task: Task = explain_row) -> Iterator[tuple[int, Done]]:
        """What comes of these rows with these allowances, as they finish."""
        work = (Work(i, self._rows.iloc[[i]], n, self._names.get(i, ())) for i, n in allowed.items())
        for item, result in self._executor.run(self._job, task, work):
            if not isinstance(result, Lost):
                yield item.position, result
                continue
            # Who died cannot say what was paid: perhaps all that was allowed; else what the ledger says.
            failed = self._job.planner.failed(item.row, self._job.options, result.reason)
            yield item.position, Done(failed, item.allowance or look_up(self._job, item).paid)

    def _rounds(self, order: list[int], total: int) -> Iterator[tuple[int, Done]]:
        """A small share for each row, then more for those where it is worth most, until the total is spent."""
        budget = self._job.options.budget
        state: dict[int, Standing] = {}
        spent = 0
        for i, done in self._pass(dict.fromkeys(order), look_up):  # what earlier runs have paid counts
            spent += done.paid
            if done.explanation is None:
                state[i] = Standing(done.paid, is_begun=done.is_begun)
            else:
                yield i, done
        state = {i: state[i] for i in order if i in state}
        sent: Counter[int] = Counter()  # by this run
        share = max(min(SHARE, budget, total // max(len(order), 1)), 1)
        grants = {i: max(share - standing.paid, 0) for i, standing in state.items()}
        while grants:
            for i, done in self._pass(allowances(grants, state, total - spent)):
                # A row that failed before it could read what was paid for it has not got it back.
                done = done._replace(paid=max(done.paid, state[i].paid))
                assert done.explanation is not None
                spent += done.paid - state[i].paid
                sent[i] += done.explanation.n_queries
                self._shelf.put(i, _with_sent(done.explanation, sent[i]))
                state[i] = Standing.of(done.explanation, done.paid, budget)
            for i in [i for i, standing in state.items() if standing.is_over]:
                yield i, Done(self._shelf.get(i), state.pop(i).paid)
            grants = next_grants(state, budget) if spent < total else {}
        unasked = f"budget_total={total} was spent before this row was asked."
        for i, standing in state.items():
            if standing.is_begun:
                yield i, Done(self._shelf.get(i), standing.paid)
            else:
                yield i, Done(self._job.planner.failed(self._rows.iloc[[i]], self._job.options, unasked), standing.paid)

    # -- what came of it ---------------------------------------------------------------------------------

    def _all_results(self) -> list[RowResult]:
        while self._advance():
            pass
        return [self._lines.get(i, NOT_DONE) for i in range(len(self))]

    def _remarks(self) -> list[str]:
        remarks = []
        if self._groups is None:
            learn = (
                "rows learn from those before them"
                if self._job.planner.share_answers
                else "what was asked is free for others"
            )
            remarks.append(f"the order of work was not randomised over groups, and {learn}. Use explain_many(by=...).")
        if self._budget_total is not None:
            remarks.append("with budget_total rows get different numbers of queries, where these save most.")
        return remarks

    def _asked_space(self) -> Space:
        return self._job.planner.space.widened(self._job.options.ranges, self._job.options.values)

    def to_json(
        self,
        path: str | Path | None = None,
        *,
        redact: Iterable[str] = (),
        left_out: str | Path | None = None,
        sign: str | Path | None = None,
    ) -> str:
        """All explanations and errors as JSON text with certificates, also written to `path` if given.

        Args:
            redact, left_out, sign: as in `Explanation.to_json`.
        """
        gone, rows, private = list(redact), [], {}
        for i, line in enumerate(self._all_results()):
            document = None
            if line.error is None:
                document, private[str(self._ids[i])] = redacted(self[i].to_dict(), gone)
                document = json.loads(certified(document, sign))
            error = message(line.error, gone)
            rows.append({"row": self._ids[i], "paid": line.queries, "error": error, "explanation": document})
        text = certified({"format": FORMAT, "rows": rows}, sign, indent=None)
        return saved(text, path, private, left_out)

    def quote(self, price_per_row: float | None = None, ledger: BaseLedger | None = None) -> Quote:
        """What explaining these rows would cost, from what the ledger knows. Sends nothing.

        Args:
            price_per_row: price of a query; by default the one the ledger has.
            ledger: where to look; by default the explainer's.
        """
        planner, options = self._job.planner, self._job.options
        return quote(
            (self._plan(i) for i in range(len(self))),
            planner.ledger if ledger is None else ledger,
            planner.model_id,
            budget=options.budget,
            budget_total=self._budget_total,
            price_per_row=price_per_row,
        )

    def _plan(self, i: int) -> Plan | None:
        """The plan for the row at this position; None where it does not fit."""
        try:
            return self._job.planner.plan(self._rows.iloc[[i]], self._job.options)[0]
        except ValueError:
            return None

    def common_changes(self, *, budget: int = 200, count: int = 3) -> CommonChanges:
        """A few changes that turn many of the rows, each tried on rows by real queries.

        Args:
            budget: how many rows may be sent to the model for this. A hard cap.
            count: how many changes are wanted.
        """
        if not is_count(budget, least=2):
            raise ValueError(f"budget: expected a whole number of at least 2, got {budget!r}.")
        planner, options = self._job.planner, self._job.options
        results = self._all_results()

        def row(i: int) -> RowToTurn:
            plan, problem = planner.plan(self._rows.iloc[[i]], options)
            return RowToTurn(plan, problem, plan.labels_by_name.get(results[i].label_before, results[i].label_before))

        box = planner.box(budget, options.target)
        return find_common_changes(results, row, self._asked_space(), box, count=count, seed=options.seed)

    def plot(self) -> Figure:
        """What has to change most often, how rows ended, what they cost and how many queries they took."""
        from acex.show.plots import draw_explanations

        return draw_explanations(self)

    def _repr_html_(self) -> str:
        """What is done so far, for a notebook: to look at it must not cost anything."""
        from acex.show.report import explanations_html

        done = [(self._index[i], self._shelf.get(i)) for i in sorted(self._lines)]
        return explanations_html([(name, e) for name, e in done if e.outcome != "failed"], len(self))

    def __repr__(self) -> str:
        return f"<acex.Explanations of {len(self)} rows, {len(self._lines)} done>"


def _with_sent(explanation: Explanation, sent: int) -> Explanation:
    """The explanation with the queries of all rounds of this run."""
    return replace(explanation, n_queries=sent, n_reused=max(len(explanation.steps) - sent, 0))


def _points(space: Space, rows: pd.DataFrame) -> list[FloatArray | None]:
    """The points of rows, None for those that do not fit the space."""
    try:
        return list(space.reaching(rows).encode(rows))
    except ValueError:
        half = len(rows) // 2  # a few that do not fit are found without looking at each of thousands
        return [*_points(space, rows.iloc[:half]), *_points(space, rows.iloc[half:])] if half else [None]


class _Shelf:
    """Explanations by position: the latest in memory, the others read back from a ledger on disk.

    Each says what its row is called, as the id in its settings.
    """

    def __init__(self, ledger: BaseLedger, ids: Sequence[Any]) -> None:
        self._ledger, self._ids = ledger, ids
        self._kept: OrderedDict[int, Explanation] = OrderedDict()
        self._put_away: dict[int, tuple[str, int, int]] = {}  # identity, and what this run paid

    def put(self, position: int, explanation: Explanation) -> None:
        self._kept[position] = self.named(position, explanation)
        self._kept.move_to_end(position)
        while len(self._kept) > MOST_KEPT and not self._ledger.is_memory:
            i, e = self._kept.popitem(last=False)
            if e.outcome != "failed":
                self._put_away[i] = (e.plan.identity, e.n_queries, e.n_reused)
                continue
            self._kept[i] = e  # no ledger has it, and it holds next to nothing
            if all(other.outcome == "failed" for other in self._kept.values()):
                break

    def get(self, position: int) -> Explanation:
        if position in self._kept:
            return self._kept[position]
        name, n_queries, n_reused = self._put_away[position]
        e = recorded(self._ledger, name)
        return self.named(position, replace(e, n_queries=n_queries, n_reused=n_reused))

    def named(self, position: int, explanation: Explanation) -> Explanation:
        """The explanation with the id of this row."""
        name = self._ids[position]
        return replace(explanation, metadata={**explanation.metadata, "id": name})
