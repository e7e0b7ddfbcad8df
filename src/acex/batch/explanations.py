"""The explanations of many rows of one model, computed on access."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from acex.arrays import Rows
from acex.audit.common_changes import CommonChanges, RowToTurn, find_common_changes
from acex.audit.groups import By, Groups, grouping
from acex.audit.quote import Quote, quote
from acex.batch.executors import Executor
from acex.batch.results import WRITERS, Summary, frame_of, results_table
from acex.batch.scheduling import BatchJob, BatchRun
from acex.engine.certificate import certified
from acex.engine.explanation import Explanation, without
from acex.engine.planner import Planner
from acex.engine.recorded import load_explanation
from acex.engine.redaction import left_out as checked_columns
from acex.engine.redaction import redacted, saved
from acex.engine.row_result import NOT_DONE, RowResult
from acex.engine.session import progress_bar
from acex.ledger import BaseLedger
from acex.options import Options
from acex.plan.plan import Plan
from acex.space.space import as_frame
from acex.values import as_json, check_count, is_missing, listed, refuse_overwriting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = 2  # of the JSON form
MOST_KEPT = 256  # largest number of explanations kept in memory if a ledger on disk has them too


class Explanations(Sequence[Explanation]):
    """The explanations of many rows, computed on access.

    There is one per row, in the order of the rows. If a row could not be explained, the outcome is "failed", and
    `error` says why. `as_finished` yields them as they finish. Answers are always recorded in the ledger: after Ctrl-C,
    `explain_many` with the same arguments continues from there. With a ledger on disk, only the latest explanations are
    kept in memory, and the others are loaded again when needed.
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
    ) -> None:
        self._planner, self._options, self._rows = planner, options, as_frame(X)
        self._budget_total, self._progress = budget_total, progress
        self._space = planner.space.widened(options.ranges, options.values)
        planner.space.encode(self._rows.iloc[:0])  # raises if columns are wrong, before anything is sent
        self._index = self._rows.index
        self._ids = [as_json(name) for name in self._index]
        if missing := [i for i, name in enumerate(self._ids) if is_missing(name)]:
            raise ValueError(
                f"X: the index names the rows, and the name of {len(missing)} is missing (first in row {missing[0]}). "
                f"X.reset_index(drop=True) numbers the rows."
            )
        self._failed: dict[int, Explanation] = {}
        self._recent: dict[int, Explanation] = {}
        self._stored: dict[int, tuple[str, int, int]] = {}  # identity, n_queries, n_reused of those only in the ledger
        self._results: dict[int, RowResult] = {}  # of the finished rows, by position
        self._finished: list[int] = []  # positions in the order in which they finished
        run = BatchRun(
            BatchJob(planner, options),
            self._rows,
            executor,
            keep=self._keep,
            kept=self._kept,
            budget_total=budget_total,
        )
        self._work = self._run(run)

    # -- as a sequence -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: Any) -> Any:
        """The explanation of the row at this position, or for a slice a list of explanations."""
        if isinstance(position, slice):
            return [self[i] for i in range(len(self))[position]]
        if not -len(self) <= position < len(self):
            raise IndexError(f"{position}: there are {len(self)} rows.")
        position %= len(self)
        while position not in self._results and self._advance():
            pass
        if position not in self._results:
            why = f"Row {self._index[position]!r} was not explained: the work was stopped before."
            return self._named(position, self._planner.failed(self._rows.iloc[[position]], self._options, why))
        return self._kept(position)

    def as_finished(self) -> Iterator[tuple[int, Explanation]]:
        """Position and explanation of each row, as they finish."""
        n = 0
        while n < len(self._finished) or self._advance():
            yield self._finished[n], self._kept(self._finished[n])
            n += 1

    @property
    def errors(self) -> dict[int, str]:
        """The errors of the rows finished so far, by position."""
        return {i: result.error for i, result in sorted(self._results.items()) if result.error is not None}

    def _run(self, run: BatchRun) -> Iterator[None]:
        with progress_bar(self._progress, "explaining", len(self)) as show:
            found = queries = 0
            for n, (position, explanation, paid) in enumerate(run, start=1):
                found, queries = found + (explanation.outcome == "found"), queries + paid
                show(n, f"{found} found, {queries / n:.1f} queries a row")
                self._keep(position, explanation)
                self._results[position] = RowResult.of(explanation, paid)
                self._finished.append(position)
                yield

    def _advance(self) -> bool:
        """Finish one more row; False if all are finished."""
        return next(self._work, self) is None

    # -- where explanations are kept -----------------------------------------------------------------------------

    def _keep(self, position: int, explanation: Explanation) -> None:
        """Keep the explanation of a row; if a ledger on disk has the oldest one too, drop it from memory."""
        if explanation.outcome == "failed":  # a ledger does not keep these
            self._failed[position] = self._named(position, explanation)
            return
        self._recent.pop(position, None)
        self._recent[position] = self._named(position, explanation)
        if len(self._recent) > MOST_KEPT and not self._planner.ledger.is_memory:
            oldest = next(iter(self._recent))
            e = self._recent.pop(oldest)
            self._stored[oldest] = (e.plan.identity, e.n_queries, e.n_reused)

    def _kept(self, position: int) -> Explanation:
        """The kept explanation of a row, from memory or the ledger."""
        for kept in (self._failed, self._recent):
            if position in kept:
                return kept[position]
        identity, n_queries, n_reused = self._stored[position]
        e = load_explanation(self._planner.ledger, identity)
        return self._named(position, replace(e, n_queries=n_queries, n_reused=n_reused))

    def _named(self, position: int, explanation: Explanation) -> Explanation:
        """The explanation with the id of this row."""
        return replace(explanation, metadata={**explanation.metadata, "id": self._ids[position]})

    # -- tables --------------------------------------------------------------------------------------------------

    def _all_results(self, redact: Iterable[str] = ()) -> list[RowResult]:
        gone = checked_columns(redact, self._space.names)
        while self._advance():
            pass
        return [self._results.get(i, NOT_DONE).without(gone) for i in range(len(self))]

    def frame(self, *, redact: Iterable[str] = ()) -> pd.DataFrame:
        """A line for each factual, with the index of `X`.

        Columns: outcome ("failed" if there is an error), label_before, label_after, cost, n_changes, n_not_checked
        (changes that may not be needed), changes (a mapping from feature to before and after), queries (rows paid for,
        by all runs), reused (known before), error.

        Args:
            redact: features to leave out, as in all methods with this argument; errors are then left out as well.
        """
        return frame_of(self._all_results(redact), self._index)

    def summary(self, by: By | None = None, *, redact: Iterable[str] = ()) -> Summary:
        """What has to change most often, which rows have no counterfactual, and how groups compare.

        Args:
            by: compare groups of rows: a column, several columns crossed, or values, one per row.

        Raises:
            ValueError: a column of `by` is redacted.
        """
        gone, compared = list(redact), None
        groups = None if by is None else grouping(by, self._rows, redact=gone)
        results = self._all_results(gone)
        if groups is not None:
            unequal = "with budget_total rows may get different numbers of queries."
            warnings = [] if self._budget_total is None else [unequal]
            compared = Groups.of(results, groups, seed=self._options.seed, warnings=warnings)
        return Summary.of(results, self._index, compared)

    def table(self, *, redact: Iterable[str] = ()) -> pd.DataFrame:
        """A line for each factual, with plain columns, as `save` writes it.

        Columns: id, outcome, label_before, label_after, cost, n_changes, n_not_checked, queries, reused, error; then
        for each feature NAME its value ("NAME before"), that of the counterfactual ("NAME after") and the difference in
        standard deviations ("NAME step"). The last two are missing if there is no counterfactual.
        """
        gone = list(redact)
        return results_table(self._all_results(gone), self._rows, self._ids, self._space, gone)

    # -- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path, *, redact: Iterable[str] = ()) -> None:
        """Write `table()` to a .csv, .xlsx or .parquet file; no spreadsheet will run text in it as a formula.

        Raises:
            ValueError: the file has another suffix.
            MissingExtra: openpyxl (.xlsx) or pyarrow (.parquet) is not installed.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in WRITERS:
            raise ValueError(f"path: expected a file {listed(WRITERS)}, got {str(path)!r}.")
        WRITERS[suffix](self.table(redact=redact), Path(path))

    def to_json(
        self,
        path: str | Path | None = None,
        *,
        by: By | None = None,
        redact: Iterable[str] = (),
        left_out: str | Path | None = None,
        sign: str | Path | None = None,
    ) -> str:
        """All explanations and errors as JSON text with certificates, also written to `path` if given.

        Args:
            by: also compare groups of rows, as in `summary`.
            redact, left_out, sign: as in `Explanation.to_json`.
        """
        refuse_overwriting([path, left_out], [sign])
        gone, rows, private = list(redact), [], {}
        for i, result in enumerate(self._all_results(gone)):
            document = None
            if result.error is None:
                document, private[str(self._ids[i])] = redacted(self[i].to_dict(), gone)
                document = json.loads(certified(document, sign))
            rows.append({"row": self._ids[i], "paid": result.queries, "error": result.error, "explanation": document})
        groups = self.summary(by, redact=gone).groups
        compared = {} if groups is None else {"groups": groups.to_dict()}
        text = certified({"format": FORMAT, "rows": rows, **compared}, sign, indent=None)
        return saved(text, path, private, left_out)

    # -- prices, common changes, pictures ------------------------------------------------------------------------

    def quote(self, price_per_row: float | None = None, ledger: BaseLedger | None = None) -> Quote:
        """What explaining these rows would cost, from what the ledger knows. Sends nothing.

        Args:
            price_per_row: price of a query; by default the one in the ledger.
            ledger: the ledger to read; by default the explainer's.
        """
        plans, wrong = list[Plan](), dict[str, str]()
        for i in range(len(self)):
            try:
                plans.append(self._planner.plan(self._rows.iloc[[i]], self._options)[0])
            except ValueError as error:
                wrong[str(self._ids[i])] = str(error)
        return quote(
            plans,
            self._planner.ledger if ledger is None else ledger,
            self._planner.model_id,
            budget=self._options.budget,
            budget_total=self._budget_total,
            price_per_row=price_per_row,
            wrong=wrong,
        )

    def common_changes(self, *, budget: int = 200, count: int = 3) -> CommonChanges:
        """A few changes that flip the decision for many of the rows, each tested with real queries.

        Args:
            budget: how many rows may be sent to the model for this. A hard cap.
            count: how many changes.
        """
        check_count("budget", budget, least=2)
        planner, options, results = self._planner, self._options, self._all_results()

        def row(i: int) -> RowToTurn:
            plan, problem = planner.plan(self._rows.iloc[[i]], options)
            return plan, problem, plan.labels_by_name.get(results[i].label_before, results[i].label_before)

        box = planner.box(budget, options.target)
        return find_common_changes(results, row, self._space, box, count=count, seed=options.seed)

    def plot(self, *, redact: Iterable[str] = ()) -> Figure:
        """What has to change most often, how rows ended, what they cost and how many queries they took."""
        from acex.show.plots import draw_explanations

        gone = checked_columns(redact, self._space.names)
        return draw_explanations(without(e, gone) for e in self)

    def _repr_html_(self) -> str:
        """The rows finished so far, for a notebook: displaying them must not cost anything."""
        from acex.show.html import explanations_html

        done = [(self._index[i], self._kept(i)) for i in sorted(self._results)]
        return explanations_html([(name, e) for name, e in done if e.outcome != "failed"], len(self))

    def __repr__(self) -> str:
        return f"<acex.Explanations of {len(self)} rows, {len(self._results)} done>"
