"""Many rows of one model: in which order, who gets how many queries, and what came of them.

Rows share the ledger, so each learns from the answers to those before it, and to those beside it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from acex.arrays import FloatArray, IntArray, Rows
from acex.errors import MissingExtra, NoCounterfactual
from acex.run.executors import Executor, InProcess, JoblibExecutor, Lost
from acex.run.explainer import Explainer
from acex.run.explanation import Explanation
from acex.search.feasible import step_after
from acex.space.columns import as_frame
from acex.space.space import Space
from acex.values import as_json, is_count, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LEADERS = 64  # rows that are explained first, one for each part of the domain
SAMPLE = 1000  # rows among which they are chosen
SHARE = 5  # queries of a budget for all rows that a row gets at a time
ROUND = 4  # one in so many of the rows that could use more gets more in a round
LEAST_ROUND = 8  # rows, so that several workers have something to do
BLOCKS = 10  # of rows, in the order in which they finished, in a summary
MOST_LINES = 12  # of a table of a summary are shown
FORMAT = 1  # of the JSON form


class Work(NamedTuple):
    """A row to be explained.

    `allowance` is how many rows may be sent for it, by all runs together; None for as many as its budget says.
    """

    position: int
    row: pd.DataFrame
    allowance: int | None


class Done(NamedTuple):
    """What came of a row."""

    explanation: Explanation | None
    error: str | None = None
    paid: int = 0  # rows sent for it, by all runs together


class Line(NamedTuple):
    """What the frame says about a row."""

    outcome: str
    label_before: Any
    label_after: Any
    cost: float
    n_changes: int
    changes: dict[str, tuple[Any, Any]]
    queries: int
    reused: int
    error: str | None


@dataclass(frozen=True)
class Desk:
    """What is needed to explain any row; it travels to each worker once."""

    explainer: Explainer
    options: dict[str, Any]

    def parts(self) -> Mapping[str, Any]:
        """What it is made of, by the names people know."""
        return {"model": self.explainer.model, **self.options, "ledger": self.explainer.ledger}


def explain_row(desk: Desk, work: Work) -> Done:
    """What comes of a row; an error is that row's own."""
    paid = 0
    try:
        session = desk.explainer.search(work.row, **desk.options)
        paid = session.box.paid
        if work.allowance == 0:  # only what was paid before
            return Done(None, None, paid)
        if work.allowance is not None:
            session.box.budget = work.allowance
        try:
            explanation = session.run()
        finally:
            paid += session.box.n_queries
        return Done(explanation, None, paid)
    except Exception as error:
        return Done(None, f"{type(error).__name__}: {error}", paid)


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


class Explanations(Sequence[Explanation]):
    """The explanations of many rows, as lazy as they can be: a row is explained when somebody wants to see it.

    Iterating gives them in the order of the rows, `as_finished` as they are done; `explanations[3]` is that of the row
    at position 3. Rows that failed are in `errors` and left out when iterating; `len` counts all rows. What has been
    answered is in the ledger at any moment: after Ctrl-C, `explain_many` with the same arguments goes on from there.
    """

    def __init__(
        self,
        explainer: Explainer,
        X: Rows,
        options: dict[str, Any],
        executor: Executor,
        *,
        budget_total: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self._rows = as_frame(X)
        self._desk, self._executor, self._progress = Desk(explainer, options), executor, progress
        self._budget_total = budget_total
        explainer.space.encode(self._rows.iloc[:0])  # the columns are right, or nothing is asked
        self._index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(self._rows))
        self._done: dict[int, Done] = {}  # by position
        self._finished: list[int] = []  # positions in the order in which they were done
        self._work = self._run()

    # -- as a sequence -----------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: Any) -> Any:
        """The explanation of the row at this position, or a list of those of a slice that did not fail."""
        if isinstance(position, slice):
            chosen = range(len(self))[position]
            return [self[i] for i in chosen if self._is_explained(i)]
        if not -len(self) <= position < len(self):
            raise IndexError(f"{position}: there are {len(self)} rows.")
        done = self._wait_for(position % len(self))
        if done is None or done.explanation is None:
            why = "it was not explained: the work was stopped before" if done is None else done.error
            raise NoCounterfactual(f"Row {self._index[position]!r} (position {position % len(self)}): {why}.")
        return done.explanation

    def __iter__(self) -> Iterator[Explanation]:
        """The explanations in the order of the rows, without those that failed."""
        return (self[i] for i in range(len(self)) if self._is_explained(i))

    def as_finished(self) -> Iterator[tuple[int, Explanation]]:
        """Position and explanation of each row, as they are done; without those that failed."""
        n = 0
        while n < len(self._finished) or self._advance():
            position = self._finished[n]
            n += 1
            explanation = self._done[position].explanation
            if explanation is not None:
                yield position, explanation

    @property
    def errors(self) -> dict[int, str]:
        """What went wrong with rows so far, by position."""
        return {position: done.error for position, done in sorted(self._done.items()) if done.error is not None}

    def _is_explained(self, position: int) -> bool:
        done = self._wait_for(position)
        return done is not None and done.explanation is not None

    def _wait_for(self, position: int) -> Done | None:
        while position not in self._done and self._advance():
            pass
        return self._done.get(position)

    def _advance(self) -> bool:
        """One row more is done; False when there are none."""
        try:
            position, done = next(self._work)
        except StopIteration:
            return False
        self._done[position] = done
        self._finished.append(position)
        return True

    # -- the work ----------------------------------------------------------------------------------------

    def _run(self) -> Iterator[tuple[int, Done]]:
        """Position and result of each row that will not be worked on any more."""
        ledger = self._desk.explainer.ledger
        if ledger.path is not None:
            self._executor.refuse_file(ledger.path)
        order = self._order()
        with _progress_bar(self._progress, len(order)) as show:
            total = self._budget_total
            for position, done in self._pass(dict.fromkeys(order)) if total is None else self._rounds(order, total):
                show(done)
                yield position, done

    def _order(self) -> list[int]:
        """Positions in the order of work; rows that are no points come last, and fail then."""
        explainer = self._desk.explainer
        points = _points(explainer.space.widened(self._desk.options.get("ranges")), self._rows)
        good = [i for i, x in enumerate(points) if x is not None]
        bad = [i for i, x in enumerate(points) if x is None]
        if not good:
            return bad
        Z = explainer.quantiles.coordinates(np.array([points[i] for i in good]))
        return [good[i] for i in order_of_work(Z)] + bad

    def _pass(self, allowances: Mapping[int, int | None]) -> Iterator[tuple[int, Done]]:
        """What comes of these rows with these allowances, as they finish."""
        work = (Work(i, self._rows.iloc[[i]], allowance) for i, allowance in allowances.items())
        for item, result in self._executor.run(self._desk, explain_row, work):
            # Who died cannot say what was paid: perhaps all that was allowed.
            lost = isinstance(result, Lost)
            yield item.position, Done(None, result.reason, item.allowance or 0) if lost else result

    def _rounds(self, order: list[int], total: int) -> Iterator[tuple[int, Done]]:
        """A small share for each row, then more for those where it is worth most, until the total is spent."""
        budget = self._desk.options.get("budget", 60)
        begun: dict[int, Done] = {}
        for i, done in self._pass(dict.fromkeys(order, 0)):  # what earlier runs have paid counts
            if done.error is None:
                begun[i] = done
            else:
                yield i, done
        state = {i: begun[i] for i in order if i in begun}
        spent = sum(done.paid for done in state.values())
        sent: Counter[int] = Counter()  # by this run
        share = max(min(SHARE, budget, total // max(len(order), 1)), 1)
        grants = {i: max(share - done.paid, 0) for i, done in state.items()}
        while grants:
            for i, done in self._pass(_allowances(grants, state, total - spent)):
                spent += done.paid - state[i].paid
                state[i] = _with_sent(done, sent, i)
            for i in [i for i, done in state.items() if _is_over(done, budget)]:
                yield i, state.pop(i)
            grants = next_grants(state, budget) if spent < total else {}
        unasked = Done(None, f"budget_total={total} was spent before this row was asked.")
        for i, done in state.items():
            yield i, unasked if done.explanation is None else done

    # -- what came of it ---------------------------------------------------------------------------------

    def frame(self) -> pd.DataFrame:
        """A row for each factual, by its name in the data.

        Columns: outcome ("error" where it failed), label_before, label_after, cost, n_changes, changes (a mapping from
        feature to before and after), queries (rows paid for, by all runs), reused (known before), error.
        """
        self._finish()
        lines = [_line(self._done.get(i)) for i in range(len(self))]
        return pd.DataFrame(lines, index=self._index, columns=Line._fields)

    def summary(self) -> Summary:
        """What has to change most often, for whom nothing was found, and what it cost as the work went on."""
        frame = self.frame()
        return Summary.of(frame, {i: self._done[i] for i in self._finished})

    def to_json(self, path: str | Path | None = None) -> str:
        """All explanations and errors as JSON text, also written to `path` if given."""
        self._finish()
        rows = []
        for i in range(len(self)):
            done = self._done.get(i, Done(None))
            whole = None if done.explanation is None else json.loads(done.explanation.to_json())
            rows.append({"row": as_json(self._index[i]), "paid": done.paid, "error": done.error, "explanation": whole})
        text = json.dumps({"format": FORMAT, "rows": rows}, ensure_ascii=False, allow_nan=False)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def to_parquet(self, path: str | Path) -> None:
        """Write the frame to a Parquet file, changes as JSON text.

        Raises:
            MissingExtra: pyarrow is not installed.
        """
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtra("to_parquet", "parquet") from None
        frame = self.frame()
        frame["changes"] = [json.dumps(changes, ensure_ascii=False, default=as_json) for changes in frame["changes"]]
        frame.to_parquet(path, engine="pyarrow")

    def plot(self) -> Figure:
        """What has to change most often, how rows ended, what they cost and how many queries they took."""
        from acex.show.plots import draw_explanations

        return draw_explanations(self)

    def _repr_html_(self) -> str:
        """What is done so far, for a notebook: to look at it must not cost anything."""
        from acex.show.report import explanations_html

        done = [(self._index[i], d.explanation) for i, d in sorted(self._done.items()) if d.explanation is not None]
        return explanations_html(done, len(self))

    def __repr__(self) -> str:
        return f"<acex.Explanations of {len(self)} rows, {len(self._done)} done>"

    def _finish(self) -> None:
        while self._advance():
            pass


@dataclass(frozen=True, eq=False)
class Summary:
    """What many explanations say together.

    Attributes:
        outcomes: how many rows ended how.
        changes: a line for each feature that has to change, most often first: in how many rows, their share of those
            found, how often up, down or to another category, and the median step in standard deviations.
        not_found: the names of rows for which nothing was found, with the outcome or the error.
        progress: blocks of rows in the order in which they finished: rows, queries a row, mean cost, share found.
        queries: rows sent to the model for all of them.
    """

    outcomes: pd.Series[int]
    changes: pd.DataFrame
    not_found: pd.Series[str]
    progress: pd.DataFrame
    queries: int

    @classmethod
    def of(cls, frame: pd.DataFrame, finished: Mapping[int, Done]) -> Summary:
        """The summary of a frame of `Explanations`, and of its rows in the order in which they finished."""
        missed = frame[~frame["outcome"].isin(["found", "already_target"])]
        explained = [done.explanation for done in finished.values() if done.explanation is not None]
        return cls(
            outcomes=frame["outcome"].value_counts(),
            changes=_changes(explained),
            not_found=missed["error"].fillna(missed["outcome"]),
            progress=_progress(frame.iloc[list(finished)]),
            queries=int(frame["queries"].sum()),
        )

    def __str__(self) -> str:
        n = int(self.outcomes.sum())
        ends = ", ".join(f"{count} {outcome}" for outcome, count in self.outcomes.items())
        parts = [f"{n} rows: {ends}. {self.queries} queries, {self.queries / max(n, 1):.1f} a row."]
        if len(self.changes):
            parts += ["", "What has to change:", self.changes.head(MOST_LINES).to_string(index=False)]
        if len(self.not_found):
            shown = [f"  {name}: {why}" for name, why in self.not_found.head(MOST_LINES).items()]
            more = len(self.not_found) - len(shown)
            parts += ["", "Nothing was found for:", *shown, *([f"  ... and {more} more"] if more else [])]
        if len(self.progress) > 1:
            parts += ["", "As the work went on:", self.progress.to_string(index=False)]
        return printable("\n".join(parts))

    __repr__ = __str__


def order_of_work(Z: FloatArray) -> IntArray:
    """The order in which points with these coordinates, (n, D), are best explained, (n,).

    First the leaders: rows that together are near to all others, each chosen for what it adds. Then, leader by leader,
    the rows nearest to it, near ones first: each has a neighbour from which to learn, and the newest answers, which are
    the ones that are read, are from close by.
    """
    n = len(Z)
    sample = np.sort(np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False))
    apart = cdist(Z[sample], Z[sample])
    nearest = np.full(len(sample), apart.max(initial=0.0) + 1.0)  # distance to the nearest leader so far
    chosen: list[int] = []
    for _ in range(min(MOST_LEADERS, len(sample))):
        left_over = np.minimum(apart, nearest).sum(axis=1)
        left_over[chosen] = np.inf
        chosen.append(int(left_over.argmin()))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    leaders = sample[chosen]
    rest = np.setdiff1d(np.arange(n), leaders)
    blocks = (cdist(Z[part], Z[leaders]) for part in np.array_split(rest, len(rest) // 10_000 + 1))
    nearest_leader = [(block.min(axis=1), block.argmin(axis=1)) for block in blocks]
    distances, leader = (np.concatenate(parts) for parts in zip(*nearest_leader, strict=True))
    return np.concatenate([leaders, rest[np.lexsort((distances, leader))]])


def expected_gain(explanation: Explanation | None) -> float:
    """What more queries may save: the share of the best cost that the search tries to save next, times that cost.

    The share follows success (see `feasible`). Infinite without a counterfactual.
    """
    if explanation is None or not explanation.costs:
        return math.inf
    tries = explanation.queries[explanation.queries["purpose"].isin(["explore", "refine"])]
    return explanation.costs[0] * step_after(tries["hit"])


def next_grants(state: Mapping[int, Done], budget: int) -> dict[int, int]:
    """How many more queries rows get in the next round: a share for those with the largest expected gain."""
    ranked = sorted(state, key=lambda i: (-expected_gain(state[i].explanation), state[i].paid))
    return {i: min(SHARE, budget - state[i].paid) for i in ranked[: max(len(ranked) // ROUND, LEAST_ROUND)]}


def _allowances(grants: Mapping[int, int], state: Mapping[int, Done], left: int) -> dict[int, int | None]:
    """What each row may send, by all runs together; grants are cut where the money ends."""
    allowances: dict[int, int | None] = {}
    for i, grant in grants.items():
        given = min(grant, left)
        left -= given
        if given + state[i].paid > 0:
            allowances[i] = given + state[i].paid
    return allowances


def _is_over(done: Done, budget: int) -> bool:
    """Will this row never get more?"""
    if done.explanation is None:
        return done.error is not None
    return done.explanation.stopped_by != "budget" or done.paid >= budget


def _with_sent(done: Done, sent: Counter[int], position: int) -> Done:
    """The result with the queries of all rounds of this run."""
    if done.explanation is None:
        return done
    sent[position] += done.explanation.n_queries
    n_reused = max(len(done.explanation.queries) - sent[position], 0)
    return done._replace(explanation=replace(done.explanation, n_queries=sent[position], n_reused=n_reused))


def _points(space: Space, rows: pd.DataFrame) -> list[FloatArray | None]:
    """The points of rows, None for those that do not fit the space."""
    try:
        return list(space.encode(rows))
    except ValueError:
        half = len(rows) // 2  # a few that do not fit are found without looking at each of thousands
        return [*_points(space, rows.iloc[:half]), *_points(space, rows.iloc[half:])] if half else [None]


def _line(done: Done | None) -> Line:
    """A row of the frame."""
    if done is None:
        return Line("unfinished", None, None, math.nan, 0, {}, 0, 0, None)
    e = done.explanation
    if e is None:
        return Line("error", None, None, math.nan, 0, {}, done.paid, 0, done.error)
    changes = {f: (b, a) for f, b, a in e.changes[["feature", "before", "after"]].itertuples(index=False)}
    cost = e.costs[0] if e.costs else math.nan
    return Line(
        e.outcome, e.label_before, e.label_after, cost, len(changes), changes, done.paid, e.n_reused, done.error
    )


def _changes(explained: list[Explanation]) -> pd.DataFrame:
    """How often each feature has to change, which way, and how far."""
    from acex.show.plots.changes import direction

    found = [e for e in explained if e.outcome == "found"]
    steps = [
        (name, direction(e.space.features[e.space.index(name)], step), abs(step))
        for e in found
        for name, step in zip(e.changes["feature"], e.changes["step"], strict=True)
    ]
    lines = []
    for name, group in pd.DataFrame(steps, columns=pd.Index(["feature", "way", "size"])).groupby("feature"):
        ways = Counter(group["way"])
        share, median = round(len(group) / len(found), 3), round(float(group["size"].median()), 3)
        lines.append((name, len(group), share, ways["up"], ways["down"], ways["other"], median))
    columns = pd.Index(["feature", "rows", "share", "up", "down", "other", "median_step"])
    return pd.DataFrame(lines, columns=columns).sort_values("rows", ascending=False, kind="stable", ignore_index=True)


def _progress(frame: pd.DataFrame) -> pd.DataFrame:
    """What rows cost as the work went on, a line for each block of them; `frame` is in the order of finishing."""
    edges = np.linspace(0, len(frame), min(BLOCKS, len(frame)) + 1).astype(int)
    blocks = [(a, b, frame.iloc[a:b]) for a, b in pairwise(edges.tolist())]
    return pd.DataFrame(
        {
            "rows": [f"{a + 1}-{b}" for a, b, _ in blocks],
            "queries": [round(float(block["queries"].mean()), 2) for *_, block in blocks],
            "reused": [round(float(block["reused"].mean()), 2) for *_, block in blocks],
            "mean_cost": [round(float(block["cost"].mean()), 4) for *_, block in blocks],
            "found": [round(float((block["outcome"] == "found").mean()), 3) for *_, block in blocks],
        }
    )


@contextmanager
def _progress_bar(wanted: bool | None, n: int) -> Iterator[Callable[[Done], None]]:
    """What shows the progress of a batch on stderr, with rate and time left; by default where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda done: None
        return
    told, left = TextColumn("{task.description}"), TimeRemainingColumn()
    columns = (TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), told, left, TextColumn("left"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=n)
        queries = found = failed = 0

        def show(done: Done) -> None:
            nonlocal queries, found, failed
            queries += done.paid
            found += done.explanation is not None and done.explanation.outcome == "found"
            failed += done.error is not None
            progress.advance(task)
            now = progress.tasks[0]
            rate = "" if not now.speed else f", {now.speed:.2g} rows/s"
            errors = f", {failed} failed" if failed else ""
            words = f"{found} found{errors}, {queries / now.completed:.1f} queries a row{rate}"
            progress.update(task, description=words)

        yield show
