"""The public interface: `explain` for one row, `Explainer` for several rows of one model.

`explain` and `Explainer.explain`, which people meet first, spell out the options of a row; other methods take the same
ones as `RowOptions`. `acex.options` declares them, and a test compares the three.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from acex.arrays import Rows
from acex.audit.feature_subsets import FeatureSubsets, find_feature_subsets
from acex.batch.explanations import Explanations
from acex.engine.explanation import Explanation
from acex.engine.planner import Planner
from acex.engine.reference import Reference
from acex.engine.session import Session, progress_bar
from acex.ledger import BaseLedger, MemoryLedger, canonical, open_ledger
from acex.models.fit_check import refuse_misfit
from acex.models.labels import refuse_other_kind
from acex.models.model import Model
from acex.options import Columns, Options, Preference, RowOptions, Rules, suggests_names
from acex.search.strategy import Strategy
from acex.space.cost import Cost
from acex.space.feature import Direction
from acex.space.mining import MinedRule, mine
from acex.space.plausibility import Plausibility
from acex.space.space import Space, drop_incomplete, refuse_reordered
from acex.values import Remark, check_count

if TYPE_CHECKING:
    from acex.batch.executors import Executor

Callback: TypeAlias = Callable[[Explanation], object]
DEFAULT = Plausibility()


@suggests_names
def explain(
    model: Any,
    x: Rows,
    data: Rows,
    *,
    outcomes: Any = None,
    target: Any = None,
    budget: int = 60,
    time_limit: float | None = None,
    count: int = 1,
    freeze: Columns = (),
    ranges: Mapping[Any, Any] | None = None,
    values: Mapping[Any, Any] | None = None,
    directions: Mapping[Any, Direction] | None = None,
    rules: Rules = (),
    max_changes: int | None = None,
    prefer: Preference | None = None,
    cost: Cost | None = None,
    plausibility: Plausibility | str | None = DEFAULT,
    space: Space | None = None,
    strategy: Strategy | str = "feasible",
    queries_per_round: int = 1,
    ledger: BaseLedger | str | Path | None = None,
    seed: int = 0,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Explanation:
    """The smallest realistic change to the row x that changes the model's decision.

    Args:
        model: anything with `predict`, a function from rows to labels or numbers, or `acex.Model(...)`. It receives
            what `data` is: a DataFrame with the same columns and dtypes, or a 2-D array.
        x: the row to explain: a Series, a mapping, a frame of one row, or a 1-D array.
        data: known rows of the domain. Scales, plausibility and candidates come from it.
        outcomes: known true outcomes of `data`, one per row, in the model's labels. They are hints where to look first,
            not answers of the model.
        target: the wanted label, or a list of labels; by default any other than the one x has. For a number,
            `acex.AtLeast(...)`, `acex.AtMost(...)`, `acex.Between(...)` or `acex.Relative(...)`.
        budget: how many rows may be sent to the model, including the first one (x itself). A hard cap.
        time_limit: seconds after which the search ends with what it has found.
        count: how many counterfactuals; each changes a feature that the others do not change.
        freeze: features that must not change.
        ranges: (low, high) by feature.
        values: a list of allowed values by feature; [None] for a missing value.
        directions: "increase" or "decrease" for features that may only increase or only decrease.
        rules: what must hold in every row sent after x: texts such as "duration <= 84 - age", or functions from rows
            to one True or False per row.
        max_changes: how many features may change.
        prefer: if the realistic answer changes more than four features, a short one with at most four is offered as
            well, which may be unusual: "realistic" or "short" says which comes first. None: realistic first, and no
            short answer if every feature is declared or the strategy has effort "spend".
        cost: how the size of a change is measured; by default `acex.Cost()`, or the paper's for strategy "penalty".
        plausibility: how similar a counterfactual must be to `data`, or a kind such as "lof"; None for no such limit.
        space: the features and the values they can hold; by default `acex.Space.infer(data)`.
        strategy: "feasible"; "penalty", which is ACE with repairs; or `acex.Feasible(...)`, `acex.Penalty(...)`.
        queries_per_round: rows that are sent together, if waiting costs more than a few additional queries.
        ledger: where answers are recorded, so that none is paid for twice: a path, a URL of PostgreSQL, an
            `acex.Ledger`, or None for the memory of this process. An interrupted explanation continues from there.
        seed: the same seed and answers give the same queries.
        callback: called with the explanation so far after each query, or each round of queries.
        progress: whether to show a progress bar on stderr; by default if stderr is a terminal.

    Returns:
        The explanation. `e.counterfactual` is the changed row; `print(e)` shows the changes.

    Raises:
        ValueError, TypeError: an argument is wrong; nothing was sent.
        ModelFailed, LedgerFailed: the explanation so far is the error's `explanation`.

    Example:
        >>> import acex
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> loans = acex.datasets.loan()
        >>> forest = RandomForestClassifier(50, random_state=0).fit(loans.codes, loans.outcomes)
        >>> model = lambda rows: forest.predict(loans.space.encode(rows))
        >>> rejected = loans.rows[model(loans.rows) == "rejected"].iloc[0]
        >>> e = acex.explain(model, rejected, loans.rows, target="approved", freeze=["age"])
        >>> e.outcome, e.label_after
        ('found', 'approved')
    """
    options = Options.of(locals())  # before the data are processed
    explainer = Explainer(
        model, data, outcomes=outcomes, plausibility=plausibility, space=space, ledger=ledger, seed=seed
    )
    try:
        return explainer._explain(x, options, callback, progress)
    finally:
        if not isinstance(ledger, BaseLedger):
            explainer.ledger.close()


class Explainer:
    """Explains rows of one model with one reference: scales and plausibility are computed once.

    Answers are kept in the ledger, by default for the life of the explainer: a row that was sent for one explanation
    is free in the next. The arguments are those of `acex.explain`.

    Args:
        share_answers: use the model's answers from other explanations; they cost nothing.
    """

    @suggests_names
    def __init__(
        self,
        model: Any,
        data: Rows,
        *,
        outcomes: Any = None,
        plausibility: Plausibility | str | None = DEFAULT,
        space: Space | None = None,
        ledger: BaseLedger | str | Path | None = None,
        share_answers: bool = True,
        seed: int = 0,
    ) -> None:
        check_count("seed", seed, least=0)
        self.seed = seed
        if not (space is None or isinstance(space, Space)):
            raise TypeError(f"space: expected an acex.Space or None, got {type(space).__name__}.")
        wrapped = Model.of(model)
        refuse_reordered(data, outcomes, "outcomes")
        space = Space.infer(data) if space is None else space
        rows, known, remarks = drop_incomplete(data, wrapped.to_labels(outcomes), space.missing)
        reference = Reference.of(rows, known, space, plausibility, seed)
        refuse_misfit(wrapped.wrapped, data, reference.outcomes)
        if wrapped.labels is not None:
            reference.refuse_foreign_outcomes(wrapped.labels)
        model_id = wrapped.identity(is_shared=ledger is not None)
        opened = MemoryLedger() if ledger is None else open_ledger(ledger)
        opened.register(model_id, description=wrapped.kind, features=reference.space.names)
        if wrapped.priced is not None and opened.account(model_id).price_per_row is not None:
            where = "token_prices of the HttpModel, price_per_row of the ledger"
            raise ValueError(f"The price of {model_id!r} is set twice: {where}. Use one of them, or another name.")
        if wrapped.priced is not None and (money := wrapped.priced.money) is not None:
            if (cap := opened.account(model_id).money_budget) not in (None, Decimal(str(money))):
                how = f"Change it with ledger.budget({model_id!r}, money={money:g}), or leave out money."
                raise ValueError(f"money={money:g}: the ledger has a cap of {cap:f} for {model_id!r}. {how}")
            opened.budget(model_id, money=money)
        remarks += reference.remarks
        self._planner = Planner(wrapped, reference, opened, model_id, share_answers=share_answers, remarks=remarks)

    @property
    def space(self) -> Space:
        """The features and the values they can hold."""
        return self._planner.space

    @property
    def ledger(self) -> BaseLedger:
        """Where answers are recorded."""
        return self._planner.ledger

    @property
    def model_id(self) -> str:
        """The model's name in the ledger."""
        return self._planner.model_id

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Remarks that apply to all rows, such as on rows of the data that were left out."""
        return self._planner.remarks

    # -- one row -------------------------------------------------------------------------------------------------

    @suggests_names
    def explain(
        self,
        x: Rows,
        *,
        target: Any = None,
        budget: int = 60,
        time_limit: float | None = None,
        count: int = 1,
        freeze: Columns = (),
        ranges: Mapping[Any, Any] | None = None,
        values: Mapping[Any, Any] | None = None,
        directions: Mapping[Any, Direction] | None = None,
        rules: Rules = (),
        max_changes: int | None = None,
        prefer: Preference | None = None,
        cost: Cost | None = None,
        strategy: Strategy | str = "feasible",
        queries_per_round: int = 1,
        seed: int | None = None,
        callback: Callback | None = None,
        progress: bool | None = None,
    ) -> Explanation:
        """The explanation of one row; the arguments are those of `acex.explain`."""
        return self._explain(x, self._options(locals()), callback, progress)

    def _options(self, arguments: Mapping[str, Any]) -> Options:
        seed = arguments.get("seed")
        return Options.of({**arguments, "seed": self.seed if seed is None else seed})

    def _explain(self, x: Rows, options: Options, callback: Callback | None, progress: bool | None) -> Explanation:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback: expected a function of the explanation so far, got {callback!r}.")
        session = self._planner.session(x, options)
        with progress_bar(progress, "asking", session.plan.budget) as show:

            def note(session: Session) -> None:
                best = session.best_cost
                show(session.box.n_queries, "no counterfactual yet" if best is None else f"best cost {best:.3g}")
                if callback is not None:
                    callback(session.explanation())

            return session.run(note)

    @suggests_names
    def search(self, x: Rows, **options: Unpack[RowOptions]) -> Session:
        """The queries of an explanation, step by step, or for code that queries the model itself.

        `for step in explainer.search(x)` queries the model; `ask` returns rows and `tell` takes their labels. Its
        `plan` is what the explanation would be; nothing is sent or recorded before the first query.

        Args:
            options: those of `acex.explain` about one row, from `target` to `seed`.
        """
        return self._planner.session(x, self._options(options))

    @suggests_names
    def feature_subsets(
        self, x: Rows, *, max_features: int = 2, queries_each: int = 6, **options: Unpack[RowOptions]
    ) -> FeatureSubsets:
        """For each feature, and each small set of features, whether changing these alone is enough.

        Args:
            max_features: how many features a set has at most (1 to 3).
            queries_each: how many rows may be sent for one set.
            options: those of `acex.explain` about one row, except `count`; the budget, by default 100, is that of all
                sets together.
        """
        if "count" in options:
            raise TypeError("Explainer.feature_subsets: unknown argument 'count'.")
        checked = self._options({"budget": 100, **options})
        return find_feature_subsets(self._planner, x, checked, max_features=max_features, queries_each=queries_each)

    def mine_rules(self, data: Rows | None = None) -> list[MinedRule]:
        """Rules that all rows of the reference satisfy, or all of `data`, the most surprising first.

        Pass the ones you accept to `rules=` as text. Relations of numbers are kept without that; see `Space.infer`.
        """
        points = self._planner.reference.points if data is None else self.space.encode(data)
        return mine(self.space, points)

    def import_answers(self, rows: Rows, labels: Any, *, new_labels: bool = False) -> int:
        """Record labels that the model itself gave elsewhere, as free evidence; return how many rows were new.

        Args:
            new_labels: if the model's labels are unknown, accept new texts even after it has given two labels.

        Raises:
            ValueError: a row does not fit the space, or a label cannot come from the model. Nothing was recorded.
        """
        planner = self._planner
        space, points = self.space.reaching(rows)
        read = planner.model.read(labels, len(points))
        for answer in self.ledger.answers(self.model_id, newest=1):
            refuse_other_kind("the imported label", read, answer.label)
        unknown = any(isinstance(label, str) and label not in planner.model.class_names for label in read)
        new_labels |= planner.model.labels is not None or not unknown
        n_new = self.ledger.import_answers(self.model_id, canonical(space.decode(points)), read, new_labels=new_labels)
        planner.imported += read
        return n_new

    # -- many rows -----------------------------------------------------------------------------------------------

    @suggests_names
    def explain_many(
        self,
        X: Rows,
        *,
        budget_total: int | None = None,
        n_jobs: int = -1,
        executor: Executor | None = None,
        progress: bool | None = None,
        **options: Unpack[RowOptions],
    ) -> Explanations:
        """The explanations of many rows, which share their answers; each is computed on access.

        Args:
            X: the rows: a DataFrame, a 2-D array or a list of mappings.
            budget_total: how many rows may be sent to the model for all of them together, in this run and those that
                it continues. A hard cap, shared equally.
            n_jobs: processes on this machine; -1 for one per core, 1 for this process only.
            executor: runs the work instead of processes, such as `acex.DaskExecutor("tcp://host:8786")`.
            progress: whether to show a progress bar on stderr; by default if stderr is a terminal.
            options: those of `acex.explain` about one row, from `target` to `seed`, the same for all rows.

        Example:
            >>> import acex
            >>> loans = acex.datasets.loan()
            >>> model = lambda rows: (rows["income"] > 3000).map({True: "approved", False: "rejected"})
            >>> explainer = acex.Explainer(model, loans.rows)
            >>> rejected = loans.rows[model(loans.rows) == "rejected"].head(3)
            >>> explainer.explain_many(rejected, target="approved", budget=10, n_jobs=1).frame()["outcome"].tolist()
            ['found', 'found', 'found']
        """
        from acex.batch.executors import InProcess, executor_for

        checked = self._options(options)
        self._planner.check(checked)  # report what is wrong for every row before any is sent
        chosen = executor_for(n_jobs, executor)
        check_count("budget_total", budget_total, optional=True)
        if budget_total is not None or not isinstance(chosen, InProcess):
            self._share_ledger()
        return Explanations(self._planner, X, checked, chosen, budget_total=budget_total, progress=progress)

    def _share_ledger(self) -> None:
        """Replace a ledger in memory by a temporary file that processes can share, deleted with its ledger."""
        if not isinstance(self.ledger, MemoryLedger):
            return
        folder = mkdtemp(prefix="acex-")
        shared = open_ledger(Path(folder) / "ledger.db")
        weakref.finalize(shared, rmtree, folder, ignore_errors=True)  # a batch may use it longer than the explainer
        self.ledger.copy_to(shared)
        self._planner.ledger = shared
