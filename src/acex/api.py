"""Explains rows of one model with one reference."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from acex._version import __version__
from acex.arrays import FloatArray, Rows
from acex.audit.feature_subsets import Menu, checked, menu
from acex.audit.groups import By
from acex.audit.quote import Quote, plans_of, quote
from acex.batch.explanations import Explanations, executor_for
from acex.engine import progress as progress_bars
from acex.engine.blackbox import BlackBox, prices_of
from acex.engine.explanation import Explanation
from acex.engine.imported import import_answers, refuse_other_kind
from acex.engine.metadata import named, versions
from acex.engine.pool import Lessons, Pool
from acex.engine.rarity import unusual_row
from acex.engine.reference import Reference
from acex.engine.session import Session
from acex.engine.wishes import refuse_foreign, told
from acex.ledger import BaseLedger, MemoryLedger, open_ledger
from acex.models.adapters import as_numeric, as_predict, known_labels, no_labels
from acex.models.fit_check import refuse_misfit
from acex.models.labels import as_labels, as_numbers, class_words, refuse_lookalike, unworded
from acex.options import Options, RowOptions
from acex.plan.fingerprint import pinned
from acex.plan.plan import Plan
from acex.plan.step import Ending
from acex.plan.target import Measured, OneOf, Target
from acex.search.problem import Hint, Problem
from acex.space.columns import as_frame
from acex.space.gaps import Missing, without_gaps
from acex.space.metric import Metric
from acex.space.mining import Mined, mine
from acex.space.plausibility import Plausibility
from acex.space.rules import Rule
from acex.space.scale import Scale
from acex.space.space import Grids, Space
from acex.values import Label, fingerprint, is_count, is_finite, is_missing

if TYPE_CHECKING:
    from acex.batch.executors import Executor

Callback = Callable[[Explanation], object]
MOST_POOLS = 4  # kinds of explanations whose pool is kept
NOT_PINNED = (
    "the constraint uses something whose content cannot be written down, so that a later run cannot tell whether it is "
    "still the same rule: nobody can go on from this explanation. Answers paid for stay free."
)


class Explainer:
    """Explains rows of one model with one reference: scales and plausibility are worked out once.

    Answers are kept in the ledger, by default for the life of the explainer: a row that was asked for one explanation
    is free in the next, and tells it where to look. The arguments are those of `explain`: what is about model and data
    here, what is about the row at `.explain`.
    """

    def __init__(
        self,
        model: Any,
        data: Rows,
        *,
        labels: Any = None,
        space: Space | None = None,
        grid: Grids = None,
        missing: Missing = "drop",
        other: Mapping[Any, Any] | None = None,
        plausibility: Plausibility | None = Plausibility(),  # noqa: B008 (frozen)
        scores: bool = False,
        pool: bool = True,
        answers: tuple[Rows, Any] | None = None,
        ledger: BaseLedger | str | Path | None = None,
        model_id: str | None = None,
        timeout: float | None = None,
        class_names: Any = None,
        seed: int = 0,
    ) -> None:
        self._no_labels = no_labels(model)  # why there are none; None for a model that gives labels
        self.model = model
        self._predict = as_predict(model, scores) if self._no_labels is None else as_numeric(model)
        self._known_labels = known_labels(model)
        self.class_names = {} if class_names is None else class_words(class_names, self._known_labels)
        self._by_word: dict[Label, Label] = {word: label for label, word in self.class_names.items()}
        labels = unworded(labels, self._by_word)
        if not (timeout is None or (is_finite(timeout) and timeout > 0)):
            raise ValueError(f"timeout must be None or a positive number of seconds, got {timeout!r}.")
        if not is_count(seed, least=0):
            raise ValueError(f"seed must be a whole number, 0 or more, got {seed!r}.")
        data, labels, left_out = without_gaps(data, labels, missing)
        self.remarks: tuple[str, ...] = (left_out,) if left_out else ()
        self._reference = Reference.of(data, labels, space, grid, plausibility, seed, missing, other)
        refuse_misfit(model, data, self._reference.outcomes)
        if self._known_labels is not None:
            self._reference.refuse_foreign_outcomes(self._known_labels)
        self._pools: dict[Space, Pool] = {}
        self._scores, self.pools, self._timeout = scores, pool, timeout
        self.model_id = named(model, model_id, is_shared=ledger is not None)
        self.ledger = open_ledger(ledger)
        self.ledger.register(self.model_id, description=type(model).__name__, features=self.space.names)
        prices = prices_of(model)
        if prices is not None and prices.money is not None:
            self.ledger.budget(self.model_id, money=prices.money)
        self._told: list[Label] = []
        if answers is not None:
            said: Any = {"known": self._known_labels, "by_word": self._by_word, "numbers": self._no_labels is not None}
            self._told = import_answers(answers, self.ledger, self.model_id, self.space, **said)

    @property
    def space(self) -> Space:
        """What each feature can hold."""
        return self._reference.space

    @property
    def scale(self) -> Scale:
        """The standard deviations of the data."""
        return self._reference.scale

    @property
    def reference(self) -> FloatArray:
        """The data as points, (m, d)."""
        return self._reference.points

    # -- one row -------------------------------------------------------------------------------------------------

    def explain(
        self,
        x: Rows,
        *,
        callback: Callback | None = None,
        progress: bool | None = None,
        **options: Unpack[RowOptions],
    ) -> Explanation:
        """The explanation of one row; see `acex.explain` for the arguments."""
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of the explanation so far, got {callback!r}.")
        session = self.search(x, **options)
        with progress_bars.of_queries(progress, session.plan.budget) as show:

            def note(session: Session) -> None:
                show(session)
                if callback is not None:
                    callback(session.explanation())

            return session.run(note)

    def plan(self, x: Rows, **options: Unpack[RowOptions]) -> Plan:
        """What an explanation of this row would be, with all that decides what is asked. Asks nothing.

        See `acex.explain` for the arguments.
        """
        return self.planned(x, self._options(options))[0]

    def search(self, x: Rows, **options: Unpack[RowOptions]) -> Session:
        """The questions of an explanation, step by step, or for code that asks the model itself.

        `for step in explainer.search(x)` asks the model; `ask` gives rows, `tell` takes labels. See `acex.explain` for
        the arguments.
        """
        return self.session(x, self._options(options))

    def _options(self, said: RowOptions) -> Options:
        """What was said of a row, checked; a target by its class name is the label."""
        options = Options.of(said)
        return replace(options, target=options.target.named(self._by_word))

    def session(self, x: Rows, options: Options) -> Session:
        """The same, for options that were checked before."""
        plan, problem = self.planned(x, options)
        about = {"acex": __version__, "versions": versions()}
        explanation, recorded = None, []
        if not self.ledger.is_memory:
            explanation = plan.identity
            # To ask the rows again later, as they were asked, and to say again what was said of them.
            form = {"form": plan.space.form(), **({"remarks": list(plan.remarks)} if plan.remarks else {})}
            recorded = self.ledger.begin(
                explanation,
                self.model_id,
                factual=plan.factual,
                settings=plan.settings | about | form,
                space=plan.described_space(),
            )
        box = self.box(plan.budget, plan.target, explanation)
        home = problem.quantiles.coordinates(problem.factual[None])
        return Session(
            plan,
            problem,
            options.strategy,
            box,
            recorded=recorded,
            learn=lambda before: self._learn(plan.target, before),
            lessons=Lessons(self._pool_of(plan.space), home, plan.target) if self.pools else None,
            about=about,
        )

    def planned(self, x: Rows, options: Options) -> tuple[Plan, Problem]:
        """The plan for a row, and the same as a search sees it.

        Raises:
            ValueError: the row or one of the options is wrong: whatever no query could mend.
        """
        known = self._space_for(options)
        space = known.reaching(x)
        encoded = space.encode(x)
        if len(encoded) != 1:
            raise ValueError(f"x must be one row, got {len(encoded)}.")
        problem = self._reference.problem(
            space,
            encoded[0],
            ranges=options.ranges,
            constraint=options.constraint,
            rules=options.rules,
            beta=options.beta,
            crumbs=not options.strategy.prunes,
            max_changes=options.max_changes,
            category_cost=options.category_cost,
            change_cost=options.change_cost,
            kind=options.strategy.plausibility,
        )
        constraint, remarks = self._constraint_of(problem)
        row = space.frame(problem.factual[None]).iloc[0]
        plan = Plan(
            factual={str(name): None if is_missing(value) else value for name, value in row.items()},
            space=space,
            allowed=problem.region.allowed,
            constraint=constraint,
            remarks=(*self.remarks, *known.beyond(encoded[0]), *known.others(x), *unusual_row(problem), *remarks),
            **self._said(options, space),
        )
        return plan, problem

    def _said(self, options: Options, space: Space) -> dict[str, Any]:
        """The part of a plan that is the same for all rows."""
        reference, plausibility, kind = self._reference, self._reference.plausibility, options.strategy.plausibility
        limits = space.by_index("ranges", options.ranges)
        return {
            "model_id": self.model_id,
            "target": options.target,
            "budget": int(options.budget),
            "scale": reference.scale,
            "ranges": {space.names[j]: told(wanted) for j, wanted in limits.items()},
            "rules": options.rules,
            "strategy": options.strategy.described,
            "plausibility": None if plausibility is None else plausibility.or_else(kind).described,
            "count": int(options.count),
            "beta": options.beta,
            "max_changes": options.max_changes,
            "class_names": self.class_names,
            "category_cost": options.category_cost,
            "change_cost": options.change_cost or None,
            "scores": self._scores,
            "pool": self.pools,
            "queries_per_round": int(options.queries_per_round),
            "seed": int(options.seed),
            "n_reference": len(reference),
            "reference": reference.identity,
            "outcomes": reference.outcomes is not None,
            "noise": options.voting,
        }

    def _space_for(self, options: Options) -> Space:
        """The space with the wishes for a row; what can be checked without the row is checked."""
        if options.voting is not None and (self._scores or isinstance(options.target, Measured)):
            raise ValueError("noise needs labels: numbers and probabilities (scores=True) are not voted on.")
        refuse_foreign(
            options.target,
            self._reference,
            known=self._known_labels,
            no_labels=self._no_labels,
            scores=self._scores,
        )
        space = self.space.widened(options.ranges).adjust(
            freeze=options.freeze, directions=options.directions, weights=options.weights
        )
        for text in options.rules:
            Rule.of(text, space)
        return space

    def _constraint_of(self, problem: Problem) -> tuple[str | None, tuple[str, ...]]:
        """What tells the caller's rule from others, and what is to be said about that.

        How it is written, and, since that is not all there is to a function, what it says about known rows. A rule that
        cannot be pinned down is like no other, also not like itself in a later run.
        """
        rule = problem.region.constraint
        if rule is None:
            return None, ()
        traits, complete = pinned(rule)
        passes = problem.region.contains(problem.region.snap(self.reference))
        told = [traits, np.packbits(passes).tobytes().hex(), None if complete else uuid.uuid4().hex]
        return fingerprint(told), () if complete else (NOT_PINNED,)

    def _pool_of(self, space: Space) -> Pool:
        """What the model was asked before, as points of this space; kept for the next explanation like this one."""
        pool = self._pools.pop(space, None)
        if pool is None or pool.ledger is not self.ledger:
            pool = Pool(self.ledger, self.model_id, space, self._reference.quantiles)
        self._pools = dict([*self._pools.items(), (space, pool)][-MOST_POOLS:])
        return pool

    def _learn(self, target: Target, before: Label) -> Hint | None:
        """What follows from the factual's label: are `answers` in the model's words, and what do known outcomes say?"""
        refuse_other_kind(self._told, before)
        if isinstance(target, OneOf):
            refuse_lookalike(before, target.labels)
            self._reference.refuse_foreign_outcomes([*target.labels, before])
        target.refuse_start(before)
        return self._reference.hint(target, before)

    def failed(
        self, x: Rows, options: Options, error: str, so_far: Explanation | None = None, sent: int = 0
    ) -> Explanation:
        """What came of a row that could not be explained, with the steps there were and what was sent for it."""
        space = self._space_for(options)
        row = as_frame(x).iloc[0]
        factual = {str(name): value for name, value in row.items()}
        rule = None if options.constraint is None else ""  # there was one
        plan = Plan(factual=factual, space=space, constraint=rule, **self._said(options, space))
        told = Explanation.of(plan, () if so_far is None else so_far.steps, Ending("failed", error=error))
        return replace(told, n_queries=sent)

    def spread(self, X: FloatArray) -> tuple[FloatArray, Metric]:
        """Points, (n, d), in coordinates in which rows near each other have much to tell each other, (n, D)."""
        return self._reference.quantiles.coordinates(X), self._reference.scale.metric

    def menu(self, x: Rows, *, most: int = 2, each: int = 6, **options: Unpack[RowOptions]) -> Menu:
        """For each feature, and each pair, whether changing these alone can do, within one budget (100 by default).

        Args:
            most: how many features may change together. each: how many rows may be sent for one set of them.
            options: as for `explain`; `budget` is for all sets together.
        """
        said = checked(options, most, each)
        return menu(self.plan(x, **said), lambda part: self.search(x, **part), said, most=most, each=each)

    def mine_rules(self, data: Rows | None = None) -> list[Mined]:
        """Rules that all known rows keep, or all of `data`, the most surprising first: for a person to accept.

        Nothing is applied: what is accepted goes to `rules=` as text.
        """
        return mine(self.space, self.reference if data is None else self.space.encode(data))

    # -- many rows -----------------------------------------------------------------------------------------------

    def explain_many(
        self,
        X: Rows,
        *,
        ids: Sequence[Any] | None = None,
        by: By | None = None,
        budget_total: int | None = None,
        n_jobs: int = -1,
        executor: Executor | None = None,
        progress: bool | None = None,
        **options: Unpack[RowOptions],
    ) -> Explanations:
        """The explanations of many rows, which learn from each other; the work is done as they are asked for.

        Args:
            X: the rows: a DataFrame, a 2-D array or a list of mappings.
            ids: what the rows are called, in tables, reports and the ledger; by default the index of X.
            by: groups that `summary` shall compare: a column of X, several, or values, one a row. The order of work is
                then drawn so that no group comes first, for rows learn from those before them.
            budget_total: how many rows may be sent to the model for all of them together, in this run and those that
                it goes on from. A hard cap; it goes where it is worth most, to rows without a counterfactual first.
            n_jobs: processes on this machine; -1 for one on each core, 1 for none but this.
            executor: who does the work instead, such as `acex.DaskExecutor("tcp://host:8786")`.
            progress: a progress bar on stderr; by default when that is a terminal.
            options: what is the same for all rows, such as `target` and `budget` (of each row): see `acex.explain`.

        Example:
            >>> import acex
            >>> loans = acex.datasets.load("loan")
            >>> model = lambda rows: (rows["income"] > 3000).map({True: "approved", False: "rejected"})
            >>> explainer = acex.Explainer(model, loans.rows)
            >>> rejected = loans.rows[model(loans.rows) == "rejected"].head(3)
            >>> explainer.explain_many(rejected, target="approved", budget=10, n_jobs=1).frame()["outcome"].tolist()
            ['found', 'found', 'found']
        """
        told = self._options(options)
        self._space_for(told)  # what is wrong for every row is said before any is asked
        chosen = executor_for(n_jobs, executor)
        if not (budget_total is None or is_count(budget_total)):
            raise ValueError(f"budget_total must be None or a whole number of at least 1, got {budget_total!r}.")
        if budget_total is not None or not chosen.is_here:
            self._move_to_file()
        return Explanations(self, X, told, chosen, budget_total=budget_total, progress=progress, ids=ids, by=by)

    def quote(self, X: Rows, *, budget_total: int | None = None, **options: Unpack[RowOptions]) -> Quote:
        """What `explain_many` with the same arguments would cost, from what the ledger knows. Asks nothing."""
        told = self._options(options)
        self._space_for(told)
        plans = plans_of(lambda x: self.planned(x, told)[0], X)
        return quote(plans, self.ledger, self.model_id, budget=told.budget, budget_total=budget_total)

    def box(self, budget: int, target: Target, explanation: str | None = None) -> BlackBox:
        """The model with a budget, asked for what a target is about; on behalf of an explanation, if one is named."""
        is_number = isinstance(target, Measured) and target.label is None
        return BlackBox(
            as_numeric(self.model) if is_number else self._predict,
            self.ledger,
            budget,
            model_id=self.model_id,
            explanation=explanation,
            timeout=self._timeout,
            read=as_numbers if is_number else as_labels,
            prices=prices_of(self.model),
        )

    def _move_to_file(self) -> None:
        """Move a ledger in memory to a temporary file, which processes can share and runs can resume from."""
        if not isinstance(self.ledger, MemoryLedger):
            return
        self._folder = TemporaryDirectory(prefix="acex-")  # deleted with the explainer
        ledger = open_ledger(Path(self._folder.name) / "ledger.db")
        self.ledger.copy_to(ledger)
        self.ledger = ledger

    def __getstate__(self) -> dict[str, Any]:
        # The folder stays with its owner, and what was read is read again.
        return {name: value for name, value in vars(self).items() if name != "_folder"} | {"_pools": {}}
