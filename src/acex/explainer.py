"""From a model, data and a row to an explanation: the loop, and the only place that sees rows and points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import ThreadpoolController

import acex
from acex.arrays import Rows
from acex.blackbox import BlackBox, Record
from acex.cost import Cost
from acex.explanation import Explanation, Outcome, StoppedBy
from acex.feasible import Feasible
from acex.features import Direction
from acex.hints import as_outcomes, outcome_model
from acex.models import Label, as_predict, known_labels
from acex.penalty import Penalty
from acex.plausibility import Plausibility
from acex.problem import Hint, Problem
from acex.quantiles import Quantiles
from acex.region import Constraint, Region
from acex.scale import Scale
from acex.search import Search, Strategy
from acex.space import Space
from acex.values import is_count

Callback = Callable[[Explanation], object]


def explain(
    model: Any,
    x: Rows,
    *,
    data: Rows,
    labels: Any = None,
    space: Space | None = None,
    target: Label = None,
    budget: int = 60,
    freeze: Iterable[str | int] = (),
    ranges: Mapping[Any, Any] | None = None,
    directions: Mapping[Any, Direction] | None = None,
    weights: Mapping[Any, float] | None = None,
    constraint: Constraint | None = None,
    strategy: Strategy | str = "feasible",
    beta: float = 5.0,
    plausibility: Plausibility | None = Plausibility(),  # noqa: B008 (frozen)
    callback: Callback | None = None,
    progress: bool | None = None,
    seed: int = 0,
) -> Explanation:
    """The smallest realistic change to the row x that changes the model's decision.

    Args:
        model: anything with `predict`, or a function from rows to labels. It receives what `data` is: a
            DataFrame with the same columns and dtypes, or a 2-D array.
        x: the row to explain: a Series, a mapping, a frame of one row, or a 1-D array.
        data: known rows of the domain. Scales, plausibility and first guesses come from it.
        labels: known true outcomes of `data`, one a row, in the words of the model's labels. Hints, not answers of
            the model: they tell strategy "feasible" where to look first, as far as the model turns out to agree.
        space: what each feature can hold; by default `Space.infer(data)`.
        target: the label wanted; by default any other than the one x has.
        budget: how many rows may be sent to the model, the first one (x itself) included. A hard cap.
        freeze: features that must stay as they are.
        ranges: (low, high) for numbers, a list of allowed categories for the others.
        directions: "increase" or "decrease" for features that may go one way only.
        weights: how dear a change of a feature is relative to others; 1 by default.
        constraint: from rows to one True or False a row; rows where it is False are never asked.
        strategy: "feasible"; "penalty", which is ACE as published; or `acex.Feasible(...)`, `acex.Penalty(...)` with
            settings of their own.
        beta: weight of sparsity (l1) against distance (l2) in the cost.
        plausibility: how much a counterfactual must look like data; None for not at all.
        callback: called with the explanation so far after each query.
        progress: a progress bar on stderr; by default when that is a terminal.
        seed: the same seed and answers give the same questions.

    Example:
        >>> import acex
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> loans = acex.datasets.load("loan")
        >>> forest = RandomForestClassifier(50, random_state=0)
        >>> codes = loans.codes                              # the forest wants numbers
        >>> forest = forest.fit(codes, loans.labels)
        >>> model = lambda rows: forest.predict(loans.space.encode(rows))
        >>> rejected = loans.rows[model(loans.rows) == "rejected"].iloc[0]
        >>> e = acex.explain(model, rejected, data=loans.rows, target="approved", freeze=["age"])
        >>> e.outcome, e.label_after
        ('found', 'approved')
    """
    return Explainer(model, data, labels=labels, space=space, plausibility=plausibility, seed=seed).explain(
        x,
        target=target,
        budget=budget,
        freeze=freeze,
        ranges=ranges,
        directions=directions,
        weights=weights,
        constraint=constraint,
        strategy=strategy,
        beta=beta,
        callback=callback,
        progress=progress,
        seed=seed,
    )


class Explainer:
    """Explains rows of one model with one reference: scales and plausibility are worked out once.

    Answers are kept for the life of the explainer: a row that was asked for one explanation is free in the
    next. The arguments are those of `explain`: what is about model and data here, what is about the row at
    `.explain`.
    """

    def __init__(
        self,
        model: Any,
        data: Rows,
        *,
        labels: Any = None,
        space: Space | None = None,
        plausibility: Plausibility | None = Plausibility(),  # noqa: B008 (frozen)
        seed: int = 0,
    ) -> None:
        self._predict = as_predict(model)
        self._known_labels = known_labels(model)
        if not (space is None or isinstance(space, Space)):
            raise TypeError(f"space must be an acex.Space or None, got {type(space).__name__}.")
        if not (plausibility is None or isinstance(plausibility, Plausibility)):
            raise TypeError(f"plausibility must be acex.Plausibility(...) or None, got {plausibility!r}.")
        if len(data) == 0:
            raise ValueError("data is empty: at least a few rows are needed to know what is usual.")
        self.space = Space.infer(data) if space is None else space.like(data)
        self.reference = self.space.encode(data)
        self.scale = Scale.of(self.space, self.reference)
        self._quantiles = Quantiles.of(self.scale, self.reference)
        self._outcomes = None if labels is None else as_outcomes(labels, len(self.reference))
        if self._outcomes is not None and self._known_labels is not None:
            self._refuse_foreign_outcomes(self._known_labels)
        self._hints: dict[tuple[Label, ...], Hint | None] = {}
        self.plausibility = plausibility
        with _one_blas_thread():
            self._density = None if plausibility is None else plausibility.fit(self.reference, self.scale, seed)
        self._record = Record()

    def explain(
        self,
        x: Rows,
        *,
        target: Label = None,
        budget: int = 60,
        freeze: Iterable[str | int] = (),
        ranges: Mapping[Any, Any] | None = None,
        directions: Mapping[Any, Direction] | None = None,
        weights: Mapping[Any, float] | None = None,
        constraint: Constraint | None = None,
        strategy: Strategy | str = "feasible",
        beta: float = 5.0,
        callback: Callback | None = None,
        progress: bool | None = None,
        seed: int = 0,
    ) -> Explanation:
        """The explanation of one row; see `acex.explain` for the arguments."""
        strategy = _as_strategy(strategy)
        self._check(target, budget, callback)
        space = self.space.widened(ranges).adjust(freeze=freeze, directions=directions, weights=weights)
        problem = self._problem(space, x, ranges, constraint, beta)
        box = BlackBox(self._predict, self._record, budget)
        run = _Run(self, space, problem, box, target, strategy, seed)
        with _progress_bar(progress, budget) as show:
            try:
                run.begin()
                while run.step():
                    show(run)
                    if callback is not None:
                        callback(run.explanation())
            except BaseException as failure:
                # Also after Ctrl-C or a callback that raises: what was paid for travels with the error.
                failure.explanation = run.explanation() if run.labels else None  # type: ignore[attr-defined]
                raise
        return run.explanation()

    def _check(self, target: Label, budget: int, callback: Callback | None) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of the explanation so far, got {callback!r}.")
        if not is_count(budget, least=2):
            raise ValueError(
                f"budget must be a whole number of at least 2 (the row itself, and one more), got {budget!r}."
            )
        if target is not None and self._known_labels is not None and target not in self._known_labels:
            raise ValueError(f"target {target!r} is not a label of the model, which gives {self._known_labels}.")
        if target is not None and self._outcomes is not None:
            self._refuse_foreign_outcomes([target])

    def _refuse_foreign_outcomes(self, words: list[Label]) -> None:
        """Outcomes in other words than the model's would be no hint, and nobody would notice."""
        outcomes = list(dict.fromkeys(self._outcomes or []))
        if not any(o in words for o in outcomes):
            raise ValueError(f"labels must use the model's words: expected some of {words}, got only {outcomes[:12]}.")

    def _problem(
        self,
        space: Space,
        x: Rows,
        ranges: Mapping[Any, Any] | None,
        constraint: Constraint | None,
        beta: float,
    ) -> Problem:
        factual = space.encode(x)
        if len(factual) != 1:
            raise ValueError(f"x must be one row, got {len(factual)}.")
        cost = Cost(self.scale, factual[0], space.weights, beta)
        constant = self.scale.deviations == 0
        region = Region.of(space, factual[0], ranges=ranges, constant=constant, constraint=constraint)
        return Problem(region, cost, self.scale, self.reference, self._density, self._quantiles)

    def _hint(self, target: Label, label_before: Label) -> Hint | None:
        """P(hit) by the known outcomes; None where there are none, or they know only one side."""
        if self._outcomes is None:
            return None
        wanted = (target,) if target is not None else (None, label_before)
        if wanted not in self._hints:
            hits = [o == target if target is not None else o != label_before for o in self._outcomes]
            self._hints[wanted] = outcome_model(self.space, self.reference, np.array(hits))
        return self._hints[wanted]


class _Run:
    """One explanation in the making: the search in points, and its rows and labels."""

    def __init__(
        self,
        explainer: Explainer,
        space: Space,
        problem: Problem,
        box: BlackBox,
        target: Label,
        strategy: Strategy,
        seed: int,
    ) -> None:
        self.explainer, self.space, self.problem, self.box = explainer, space, problem, box
        self.target = target
        self.search = Search.begin(problem, strategy, seed)
        self.labels: list[Label] = []  # of the search's queries, the factual's first
        self.stopped_by: StoppedBy = "budget"
        self.outcome: Outcome = "budget_spent"

    def begin(self) -> None:
        """Ask for the factual's own label."""
        self.labels = self.box.ask(self.space.decode(self.problem.factual))
        if self.target is not None and self.labels[0] == self.target:
            self.outcome, self.stopped_by = "already_target", "settled"
            return
        hint = self.explainer._hint(self.target, self.labels[0])
        if hint is not None:
            self.problem = replace(self.problem, hint=hint)
            self.search = Search.begin(self.problem, self.search.strategy, self.search.seed)

    def step(self) -> bool:
        """Ask once more; False when the explanation is complete."""
        if self.outcome == "already_target":
            return False
        with _one_blas_thread():
            query = self.search.ask()
        if query is None:
            reason = self.search.settled
            self.stopped_by = "exhausted" if reason == "exhausted" else "settled"
            self.outcome = "exhausted" if reason == "exhausted" else "unlikely"
            return False
        row = self.space.decode(query.point)
        if self.box.remaining < 1 and not self.box.knows(row):
            return False
        [label] = self.box.ask(row)
        self.labels.append(label)
        self.search = self.search.tell(query, self._is_hit(label))
        return True

    def _is_hit(self, label: Label) -> bool:
        return label == self.target if self.target is not None else label != self.labels[0]

    def explanation(self) -> Explanation:
        """The state so far."""
        history = self.search.history
        ranked = self.search.ranked
        costs = self.problem.cost(history.X)
        is_counterfactual = np.isin(np.arange(len(costs)), ranked)
        best_so_far = np.minimum.accumulate(np.where(is_counterfactual, costs, np.inf))
        best = ranked[:1]
        density = self.problem.density
        affinity = np.ones(len(best)) if density is None or not len(best) else density.affinity(history.X[best])
        asked = self.space.frame(history.X)
        return Explanation(
            factual=asked.iloc[0].rename(None),
            label_before=self.labels[0],
            label_after=self.labels[best[0]] if len(best) else None,
            target=self.target,
            outcome="found" if len(best) else self.outcome,
            stopped_by=self.stopped_by,
            counterfactuals=asked.iloc[best].reset_index(drop=True),
            costs=tuple(costs[best].tolist()),
            affinities=tuple(affinity.tolist()),
            n_queries=self.box.n_queries,
            n_reused=self.box.n_reused,
            queries=pd.DataFrame(
                {
                    "purpose": [q.purpose for q in history.queries],
                    "label": self.labels,
                    "hit": history.is_hit,
                    "cost": costs,
                    "best": best_so_far,
                }
            ),
            asked=asked,
            settings=self._settings(),
            space=self.space,
            scale=self.problem.scale,
        )

    def _settings(self) -> dict[str, Any]:
        plausibility = self.explainer.plausibility
        strategy = self.search.strategy
        return {
            "acex": acex.__version__,
            "target": self.target,
            "budget": int(self.box.budget),
            "seed": self.search.seed,
            "strategy": {"name": type(strategy).__name__.lower(), **asdict(strategy)},
            "beta": self.problem.cost.beta,
            "plausibility": None if plausibility is None else asdict(plausibility),
            "n_reference": len(self.problem.reference),
            "labels": self.problem.hint is not None,
            "constraint": self.problem.region.constraint is not None,
        }


def _as_strategy(strategy: Strategy | str) -> Strategy:
    match strategy:
        case "feasible":
            return Feasible()
        case "penalty":
            return Penalty()
        case Feasible() | Penalty():
            return strategy
    raise ValueError(
        f"strategy must be 'feasible', 'penalty', acex.Feasible(...) or acex.Penalty(...), got {strategy!r}."
    )


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Small matrices are slower on several threads, and much slower on a machine that is busy."""
    with _threads().limit(limits=1):
        yield


@contextmanager
def _progress_bar(wanted: bool | None, budget: int) -> Iterator[Callable[[_Run], None]]:
    """What shows a run's progress on stderr; by default only where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda run: None
        return
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("no counterfactual yet", total=budget)

        def show(run: _Run) -> None:
            best = run.search.ranked[:1]
            cost = run.problem.cost(run.search.history.X[best])
            words = f"best cost {cost[0]:.3g}" if len(cost) else "no counterfactual yet"
            progress.update(task, completed=run.box.n_queries, description=words)

        yield show
