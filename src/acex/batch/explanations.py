"""Many rows of one model: in which order, who gets how many queries, and what came of them.

Rows share the ledger, so each learns from the answers to those before it, and to those beside it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from acex.arrays import FloatArray, Rows
from acex.audit.common_changes import Case, Levers, find_levers
from acex.audit.groups import By, grouping, interleaved
from acex.batch.allocation import SHARE, Standing, allowances, next_grants
from acex.batch.executors import Executor, InProcess, JoblibExecutor, Lost, Task
from acex.batch.order import order_of_work
from acex.batch.results import Results, names_of
from acex.batch.shelf import Shelf
from acex.engine import progress
from acex.engine.blackbox import BlackBox
from acex.engine.certificate import certified
from acex.engine.explanation import Explanation
from acex.engine.redaction import message, redacted, saved
from acex.engine.row_result import NOT_DONE, Line
from acex.engine.session import Session
from acex.errors import LedgerFailed
from acex.ledger import BaseLedger
from acex.options import Options
from acex.plan.plan import Plan
from acex.plan.target import Target
from acex.search.problem import Problem
from acex.space.columns import as_frame
from acex.space.metric import Metric
from acex.space.space import Space
from acex.values import as_json, is_count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 1  # of the JSON form


class Desk(Protocol):
    """What explains any row of a batch; it travels to each worker once. An `Explainer` is one."""

    model: Any
    ledger: BaseLedger
    pools: bool  # do rows learn from answers to others?

    @property
    def space(self) -> Space:
        """What each feature can hold."""

    def session(self, x: Rows, options: Options) -> Session:
        """The questions of the explanation of one row."""

    def failed(
        self, x: Rows, options: Options, error: str, so_far: Explanation | None = None, sent: int = 0
    ) -> Explanation:
        """What came of a row that could not be explained, for which so many rows were sent."""

    def planned(self, x: Rows, options: Options) -> tuple[Plan, Problem]:
        """The plan for a row, and the same as a search sees it."""

    def box(self, budget: int, target: Target) -> BlackBox:
        """The model with a budget, asked for what a target is about, on behalf of no explanation."""

    def spread(self, X: FloatArray) -> tuple[FloatArray, Metric]:
        """Points, (n, d), in coordinates in which rows near each other have much to tell each other, (n, D)."""


@dataclass(frozen=True)
class Tool:
    """A desk, and what is the same for all rows."""

    desk: Desk
    options: Options

    def parts(self) -> Mapping[str, Any]:
        """What it is made of, by the names people know."""
        options = {name: getattr(self.options, name) for name in ("constraint", "strategy", "target")}
        return {"model": self.desk.model, **options, "ledger": self.desk.ledger}


class Work(NamedTuple):
    """A row to be explained.

    `allowance` is how many rows may be sent for it, by all runs together; None for as many as its budget says. `names`
    are what it and equal rows are called, if they have names.
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


def explain_row(tool: Tool, work: Work) -> Done:
    """What comes of a row; an error is that row's own."""
    paid, sent, desk = 0, 0, tool.desk
    try:
        session = desk.session(work.row, tool.options)
        if work.names and session.box.explanation is not None:
            desk.ledger.name(session.box.explanation, work.names)  # before anything is asked on its behalf
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
        return Done(desk.failed(work.row, tool.options, why, so_far, sent), paid + sent)


def look_up(tool: Tool, work: Work) -> Done:
    """What earlier runs have sent for a row; an error is that row's own, unless the ledger cannot be read.

    Raises:
        LedgerFailed: it cannot. A budget for all rows must not rest on a guess.
    """
    try:
        session = tool.desk.session(work.row, tool.options)
        return Done(None, session.box.paid, bool(session.box.ledger.asks(session.identity)))
    except LedgerFailed:
        raise
    except Exception as error:
        return Done(tool.desk.failed(work.row, tool.options, f"{type(error).__name__}: {error}"))


def executor_for(n_jobs: int, executor: Executor | None) -> Executor:
    """Who does the work."""
    from joblib import effective_n_jobs

    if executor is not None:
        if not callable(getattr(executor, "run", None)):
            raise TypeError(f"executor must be acex.DaskExecutor(...) or the like, got {type(executor).__name__}.")
        return executor
    if not (is_count(n_jobs) or n_jobs == -1):
        raise ValueError(f"n_jobs must be -1 (all cores) or a whole number of at least 1, got {n_jobs!r}.")
    return InProcess() if effective_n_jobs(n_jobs) == 1 else JoblibExecutor(n_jobs)


class Explanations(Results, Sequence[Explanation]):
    """The explanations of many rows, as lazy as they can be: a row is explained when its explanation is needed.

    One for each row, in their order: `zip(X, explanations)` is right whatever happened. A row that could not be
    explained has one too, with the outcome "failed" and its error. `as_finished` gives them as they are done. What
    has been answered is in the ledger at any moment: after Ctrl-C, `explain_many` with the same arguments goes on from
    there. With a ledger on disk only the latest are kept in memory, and the others read back when they are wanted.
    """

    def __init__(
        self,
        desk: Desk,
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
        self._tool, self._executor, self._progress = Tool(desk, options), executor, progress
        self._budget_total = budget_total
        desk.space.encode(self._rows.iloc[:0])  # the columns are right, or nothing is asked
        self._index = names_of(X, len(self._rows), ids)
        self._groups, self._seed = None if by is None else grouping(by, self._rows), options.seed
        self._ids = [as_json(name) for name in self._index]
        self._shelf = Shelf(desk.ledger, self._ids)
        self._lines: dict[int, Line] = {}  # of the rows that are done, by position
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
            failed = self._tool.desk.failed(self._rows.iloc[[position]], self._tool.options, why)
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
        self._lines[position] = Line.of(done.explanation, done.paid)
        self._finished.append(position)
        return True

    # -- the work ----------------------------------------------------------------------------------------

    def _run(self) -> Iterator[tuple[int, Done]]:
        """Position and result of each row that will not be worked on any more."""
        ledger = self._tool.desk.ledger
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
        desk, options = self._tool.desk, self._tool.options
        points = _points(desk.space.widened(options.ranges), self._rows)
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
        Z, metric = desk.spread(np.array([points[i] for i in good]))
        return [good[i] for i in order_of_work(Z, metric)] + bad, twins

    def _pass(self, allowed: Mapping[int, int | None], task: Task = explain_row) -> Iterator[tuple[int, Done]]:
        """What comes of these rows with these allowances, as they finish."""
        work = (Work(i, self._rows.iloc[[i]], n, self._names.get(i, ())) for i, n in allowed.items())
        for item, result in self._executor.run(self._tool, task, work):
            if not isinstance(result, Lost):
                yield item.position, result
                continue
            # Who died cannot say what was paid: perhaps all that was allowed; else what the ledger says.
            failed = self._tool.desk.failed(item.row, self._tool.options, result.reason)
            yield item.position, Done(failed, item.allowance or look_up(self._tool, item).paid)

    def _rounds(self, order: list[int], total: int) -> Iterator[tuple[int, Done]]:
        """A small share for each row, then more for those where it is worth most, until the total is spent."""
        budget = self._tool.options.budget
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
                yield i, Done(self._tool.desk.failed(self._rows.iloc[[i]], self._tool.options, unasked), standing.paid)

    # -- what came of it ---------------------------------------------------------------------------------

    def _all_lines(self) -> list[Line]:
        while self._advance():
            pass
        return [self._lines.get(i, NOT_DONE) for i in range(len(self))]

    def _remarks(self) -> list[str]:
        remarks = []
        if self._groups is None:
            learn = (
                "rows learn from those before them" if self._tool.desk.pools else "what was asked is free for others"
            )
            remarks.append(f"the order of work was not drawn for groups, and {learn}. Say explain_many(by=...).")
        if self._budget_total is not None:
            remarks.append("with budget_total rows get queries where these are worth most, not the same number each.")
        return remarks

    def _asked_space(self) -> Space:
        return self._tool.desk.space.widened(self._tool.options.ranges)

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
        for i, line in enumerate(self._all_lines()):
            document = None
            if line.error is None:
                document, private[str(self._ids[i])] = redacted(self[i].to_dict(), gone)
                document = json.loads(certified(document, sign))
            error = message(line.error, gone)
            rows.append({"row": self._ids[i], "paid": line.queries, "error": error, "explanation": document})
        text = certified({"format": FORMAT, "rows": rows}, sign, indent=None)
        return saved(text, path, private, left_out)

    def levers(self, *, budget_levers: int = 200, most: int = 3) -> Levers:
        """A few changes that turn many of the rows, each tried on rows by real queries.

        Args:
            budget_levers: how many rows may be sent to the model for this. A hard cap.
            most: how many levers are wanted.
        """
        if not is_count(budget_levers, least=2):
            raise ValueError(f"budget_levers must be a whole number of at least 2, got {budget_levers!r}.")
        desk, options = self._tool.desk, self._tool.options
        lines = self._all_lines()

        def case(i: int) -> Case:
            plan, problem = desk.planned(self._rows.iloc[[i]], options)
            return Case(plan, problem, plan.labels_by_word.get(lines[i].label_before, lines[i].label_before))

        box = desk.box(budget_levers, options.target)
        return find_levers(lines, case, self._asked_space(), box, most=most, seed=options.seed)

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
