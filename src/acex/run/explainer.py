"""From a model, data and a row to an explanation: the loop, and the only place that sees rows and points."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, cached_property, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from acex._version import __version__
from acex.arrays import Rows
from acex.ledger import Ledger, canonical, fingerprint
from acex.models.labels import as_labels, as_predict, known_labels
from acex.plan.target import Target
from acex.run.blackbox import BlackBox
from acex.run.explanation import Explanation
from acex.run.pool import Pool
from acex.run.session import Session, one_blas_thread
from acex.search.feasible import Feasible
from acex.search.hints import as_outcomes, outcome_model
from acex.search.penalty import Penalty
from acex.search.problem import Hint, Problem
from acex.search.search import Strategy
from acex.space.cost import Cost
from acex.space.kinds import Direction
from acex.space.plausibility import Plausibility
from acex.space.quantiles import Quantiles
from acex.space.region import Constraint, Region
from acex.space.scale import Scale
from acex.space.space import Space
from acex.values import Label, as_json, is_count, is_finite

if TYPE_CHECKING:
    from acex.run.batch import Explanations
    from acex.run.executors import Executor

Callback = Callable[[Explanation], object]
MOST_POOLS = 4  # kinds of explanations whose pool is kept


class RowOptions(TypedDict, total=False):
    """The arguments of `explain` that are about a row."""

    target: Any
    budget: int
    count: int
    freeze: Iterable[str | int]
    ranges: Mapping[Any, Any] | None
    directions: Mapping[Any, Direction] | None
    weights: Mapping[Any, float] | None
    constraint: Constraint | None
    strategy: Strategy | str
    beta: float
    queries_per_round: int
    seed: int


def explain(
    model: Any,
    x: Rows,
    *,
    data: Rows,
    labels: Any = None,
    space: Space | None = None,
    target: Any = None,
    budget: int = 60,
    count: int = 1,
    freeze: Iterable[str | int] = (),
    ranges: Mapping[Any, Any] | None = None,
    directions: Mapping[Any, Direction] | None = None,
    weights: Mapping[Any, float] | None = None,
    constraint: Constraint | None = None,
    strategy: Strategy | str = "feasible",
    beta: float = 5.0,
    plausibility: Plausibility | None = Plausibility(),  # noqa: B008 (frozen)
    scores: bool = False,
    queries_per_round: int = 1,
    pool: bool = True,
    answers: tuple[Rows, Any] | None = None,
    ledger: Ledger | str | Path | None = None,
    model_id: str | None = None,
    timeout: float | None = None,
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
        target: the label wanted, or a list of labels that will do; by default any other than the one x has.
        budget: how many rows may be sent to the model, the first one (x itself) included. A hard cap.
        count: how many counterfactuals; each rests on a feature that the others do not rest on.
        freeze: features that must stay as they are.
        ranges: (low, high) for numbers, a list of allowed categories for the others.
        directions: "increase" or "decrease" for features that may go one way only.
        weights: how dear a change of a feature is relative to others; 1 by default.
        constraint: from rows to one True or False a row; rows where it is False are never asked.
        strategy: "feasible"; "penalty", which is ACE as published; or `acex.Feasible(...)`, `acex.Penalty(...)` with
            settings of their own.
        beta: weight of sparsity (l1) against distance (l2) in the cost.
        plausibility: how much a counterfactual must look like data; None for not at all.
        scores: the model gives probabilities (`predict_proba`, or a function that gives a frame with a column for
            each label): fewer queries than labels alone.
        queries_per_round: rows that are asked at once, where waiting is dearer than a few queries more.
        pool: use what the same model was asked for other explanations; it costs nothing.
        answers: rows, and the labels that the model itself gave them elsewhere: evidence, free of charge.
        ledger: where answers are written down so that none is paid for twice: a path, a URL of PostgreSQL, an
            `acex.Ledger`, or None for memory. An explanation that was interrupted goes on from there.
        model_id: the model's name in the ledger; models from files and endpoints have one of their own.
        timeout: seconds after which a request to the model counts as failed.
        callback: called with the explanation so far after each query, or round of them.
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
    explainer = Explainer(
        model,
        data,
        labels=labels,
        space=space,
        plausibility=plausibility,
        scores=scores,
        pool=pool,
        answers=answers,
        ledger=ledger,
        model_id=model_id,
        timeout=timeout,
        seed=seed,
    )
    try:
        return explainer.explain(
            x,
            target=target,
            budget=budget,
            count=count,
            freeze=freeze,
            ranges=ranges,
            directions=directions,
            weights=weights,
            constraint=constraint,
            strategy=strategy,
            beta=beta,
            queries_per_round=queries_per_round,
            callback=callback,
            progress=progress,
            seed=seed,
        )
    finally:
        if not isinstance(ledger, Ledger):  # who opened it closes it
            explainer.ledger.close()


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
        plausibility: Plausibility | None = Plausibility(),  # noqa: B008 (frozen)
        scores: bool = False,
        pool: bool = True,
        answers: tuple[Rows, Any] | None = None,
        ledger: Ledger | str | Path | None = None,
        model_id: str | None = None,
        timeout: float | None = None,
        seed: int = 0,
    ) -> None:
        self.model, self._predict = model, as_predict(model, scores)
        self._known_labels = known_labels(model)
        if not (space is None or isinstance(space, Space)):
            raise TypeError(f"space must be an acex.Space or None, got {type(space).__name__}.")
        if not (plausibility is None or isinstance(plausibility, Plausibility)):
            raise TypeError(f"plausibility must be acex.Plausibility(...) or None, got {plausibility!r}.")
        if not (timeout is None or (is_finite(timeout) and timeout > 0)):
            raise ValueError(f"timeout must be None or a positive number of seconds, got {timeout!r}.")
        if len(data) == 0:
            raise ValueError("data is empty: at least a few rows are needed to know what is usual.")
        self.space = Space.infer(data) if space is None else space.like(data)
        self.reference = self.space.encode(data)
        self.scale = Scale.of(self.space, self.reference)
        self.quantiles = Quantiles.of(self.scale, self.reference)
        self._outcomes = None if labels is None else as_outcomes(labels, len(self.reference))
        if self._outcomes is not None and self._known_labels is not None:
            self._refuse_foreign_outcomes(self._known_labels)
        self._hints: dict[tuple[Label, ...], Hint | None] = {}
        self._pools: dict[Space, Pool] = {}
        self.plausibility = plausibility
        with one_blas_thread():
            self._density = None if plausibility is None else plausibility.fit(self.reference, self.scale, seed)
        self._scores, self._pool, self._timeout, self._seed = scores, pool, timeout, seed
        self.model_id = self._named(model, model_id, is_shared=ledger is not None)
        self._owns_ledger = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self.ledger.register(self.model_id, description=type(model).__name__, features=self.space.names)
        self._told: list[Label] = [] if answers is None else self._import(answers)

    def _named(self, model: Any, model_id: str | None, is_shared: bool) -> str:
        model_id = model_id or getattr(model, "model_id", None)
        if model_id is None and is_shared:
            raise ValueError(
                f"A ledger that outlives this explainer needs model_id: a name for this {type(model).__name__}, and "
                f"another one whenever it is trained anew, such as model_id='loans-2026-11'."
            )
        if not (model_id is None or isinstance(model_id, str)):
            raise TypeError(f"model_id must be text, got {model_id!r}.")
        return model_id or "model"

    def _import(self, answers: Any) -> list[Label]:
        """The labels of answers that the model gave elsewhere; they are in the ledger now."""
        if not (isinstance(answers, (tuple, list)) and len(answers) == 2):
            raise TypeError(f"answers must be a pair, (rows, labels), got {type(answers).__name__}.")
        try:
            rows = self.space.decode(self.space.encode(answers[0]))
            labels = as_labels(answers[1], len(rows))
        except ValueError as error:
            raise ValueError(f"answers: {error}") from None
        foreign = [label for label in labels if self._known_labels is not None and label not in self._known_labels]
        if foreign:
            raise ValueError(f"answers: {foreign[0]!r} is not a label of the model, which gives {self._known_labels}.")
        for answer in self.ledger.answers(self.model_id, newest=1):
            _refuse_other_kind(labels, answer.label)
        self.ledger.import_answers(self.model_id, canonical(rows), labels, new_labels=True)
        return labels

    def explain(
        self,
        x: Rows,
        *,
        target: Any = None,
        budget: int = 60,
        count: int = 1,
        freeze: Iterable[str | int] = (),
        ranges: Mapping[Any, Any] | None = None,
        directions: Mapping[Any, Direction] | None = None,
        weights: Mapping[Any, float] | None = None,
        constraint: Constraint | None = None,
        strategy: Strategy | str = "feasible",
        beta: float = 5.0,
        queries_per_round: int = 1,
        callback: Callback | None = None,
        progress: bool | None = None,
        seed: int = 0,
    ) -> Explanation:
        """The explanation of one row; see `acex.explain` for the arguments."""
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be a function of the explanation so far, got {callback!r}.")
        session = self.search(
            x,
            target=target,
            budget=budget,
            count=count,
            freeze=freeze,
            ranges=ranges,
            directions=directions,
            weights=weights,
            constraint=constraint,
            strategy=strategy,
            beta=beta,
            queries_per_round=queries_per_round,
            seed=seed,
        )
        with _progress_bar(progress, budget) as show:

            def note(session: Session) -> None:
                show(session)
                if callback is not None:
                    callback(session.explanation())

            return session.run(note)

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
        """The explanations of many rows, which learn from each other; the work is done as they are asked for.

        Args:
            X: the rows: a DataFrame, a 2-D array or a list of mappings.
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
        from acex.run.batch import Explanations, executor_for

        unknown = options.keys() - RowOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"explain_many has no argument {min(unknown)!r}; see acex.explain for those of a row.")
        if not isinstance(options.get("freeze", ""), str):
            options["freeze"] = list(options["freeze"])  # it is read for each row
        self._settled(**options)
        chosen = executor_for(n_jobs, executor)
        if not (budget_total is None or is_count(budget_total)):
            raise ValueError(f"budget_total must be None or a whole number of at least 1, got {budget_total!r}.")
        if budget_total is not None or not chosen.is_here:
            self._move_to_file()
        return Explanations(self, X, dict(options), chosen, budget_total=budget_total, progress=progress)

    def _move_to_file(self) -> None:
        """Move a ledger that is in memory to a temporary file, where processes can share it and go on from it.

        Raises:
            ValueError: it is not this explainer's own.
        """
        if not self.ledger.is_memory:
            return
        if not self._owns_ledger:
            raise ValueError(
                "A ledger in memory cannot be shared by processes, or gone on from. Give it a file, such as "
                "Ledger('answers.db'), or explain with n_jobs=1 and without budget_total."
            )
        self._folder = TemporaryDirectory(prefix="acex-")  # gone with the explainer
        ledger = Ledger(Path(self._folder.name) / "ledger.db")
        self.ledger.copy_to(ledger)
        self.ledger = ledger

    def __getstate__(self) -> dict[str, Any]:
        # The folder stays with its owner, and what was read is read again.
        return {name: value for name, value in vars(self).items() if name != "_folder"} | {"_pools": {}}

    def search(
        self,
        x: Rows,
        *,
        target: Any = None,
        budget: int = 60,
        count: int = 1,
        freeze: Iterable[str | int] = (),
        ranges: Mapping[Any, Any] | None = None,
        directions: Mapping[Any, Direction] | None = None,
        weights: Mapping[Any, float] | None = None,
        constraint: Constraint | None = None,
        strategy: Strategy | str = "feasible",
        beta: float = 5.0,
        queries_per_round: int = 1,
        seed: int = 0,
    ) -> Session:
        """The questions of an explanation, for code that asks the model itself: `ask` gives rows, `tell` takes labels.

        See `acex.explain` for the arguments.
        """
        wanted, strategy, space = self._settled(
            target=target,
            budget=budget,
            count=count,
            freeze=freeze,
            ranges=ranges,
            directions=directions,
            weights=weights,
            strategy=strategy,
            queries_per_round=queries_per_round,
        )
        problem = self._problem(space, x, ranges, constraint, beta)
        settings = {
            "acex": __version__,
            "model_id": self.model_id,
            "target": wanted.said,
            "budget": int(budget),
            "count": int(count),
            "seed": seed,
            "strategy": {"name": type(strategy).__name__.lower(), **asdict(strategy)},
            "beta": beta,
            "plausibility": None if self.plausibility is None else asdict(self.plausibility),
            "n_reference": len(self.reference),
            "constraint": constraint is not None,
            "scores": self._scores,
            "pool": self._pool,
            "queries_per_round": int(queries_per_round),
        }
        identity = self._identity(space, problem, settings)
        # Worth telling, but not part of the identity: the ranges are in it as what they allow.
        limits = space.by_index("ranges", ranges)
        settings["ranges"] = {space.names[j]: _told(wanted) for j, wanted in limits.items()}
        settings["versions"] = _versions()
        explanation, recorded = None, []
        if not self.ledger.is_memory:
            explanation = identity
            row = space.frame(problem.factual[None]).iloc[0]
            factual = {str(name): value for name, value in row.items()}
            kept = settings | {"form": space.form()}  # to ask the rows again later, as they were asked
            described = {**space.to_dict(), "deviations": self.scale.deviations.tolist()}
            recorded = self.ledger.begin(explanation, self.model_id, factual=factual, settings=kept, space=described)
        box = BlackBox(
            self._predict,
            self.ledger,
            budget,
            model_id=self.model_id,
            explanation=explanation,
            timeout=self._timeout,
        )
        return Session(
            box,
            space,
            problem,
            wanted,
            strategy,
            settings,
            seed=seed,
            count=count,
            budget=budget,
            identity=identity,
            recorded=recorded,
            hint=lambda before: self._learn(wanted, before),
            pool=self._pool_of(space) if self._pool else None,
            per_round=queries_per_round,
        )

    def _pool_of(self, space: Space) -> Pool:
        """What the model was asked before, as points of this space; kept for the next explanation like this one."""
        pool = self._pools.pop(space, None)
        if pool is None or pool.ledger is not self.ledger:
            pool = Pool(self.ledger, self.model_id, space, self.quantiles)
        self._pools = dict([*self._pools.items(), (space, pool)][-MOST_POOLS:])
        return pool

    def _identity(self, space: Space, problem: Problem, settings: dict[str, Any]) -> str:
        """What tells this explanation from others: a hash of all that decides what is asked.

        The budget does not, unless it is divided among several counterfactuals: an explanation whose budget was spent
        goes on with a larger one.
        """
        decides = {name: value for name, value in settings.items() if name != "budget" or settings["count"] > 1}
        decides["factual"] = problem.factual.tolist()
        decides["space"] = space.to_dict()
        for feature in decides["space"]["features"]:
            feature.pop("unit", None)  # a word for people
        decides["allowed"] = [allowed.tolist() for allowed in problem.region.allowed]
        decides["data"] = self._data_identity
        if problem.region.constraint is not None:
            # How it is written, and, since that is not all there is to a function, what it says about known rows.
            passes = problem.region.contains(problem.region.snap(self.reference))
            decides["constraint"] = [_traits(problem.region.constraint), np.packbits(passes).tobytes().hex()]
        return fingerprint(decides)

    @cached_property
    def _data_identity(self) -> str:
        outcomes = None if self._outcomes is None else fingerprint(self._outcomes)
        return fingerprint([self.reference.astype("<f8").tobytes().hex(), self.reference.shape, outcomes, self._seed])

    def _settled(self, **options: Unpack[RowOptions]) -> tuple[Target, Strategy, Space]:
        """What follows from options alone, whatever the row.

        Raises:
            ValueError: one of them is wrong.
        """
        strategy = _as_strategy(options.get("strategy", "feasible"))
        target = Target.of(options.get("target"))
        self._check(
            target, options.get("budget", 60), options.get("count", 1), options.get("queries_per_round", 1), strategy
        )
        space = self.space.widened(options.get("ranges")).adjust(
            freeze=options.get("freeze", ()), directions=options.get("directions"), weights=options.get("weights")
        )
        return target, strategy, space

    def _check(self, target: Target, budget: int, count: int, per_round: int, strategy: Strategy) -> None:
        if not is_count(budget, least=2):
            raise ValueError(
                f"budget must be a whole number of at least 2 (the row itself, and one more), got {budget!r}."
            )
        if not is_count(count):
            raise ValueError(f"count must be a whole number of at least 1, got {count!r}.")
        if count > 1 and not isinstance(strategy, Feasible):
            raise ValueError("count above 1 needs strategy 'feasible'; the published algorithm finds one only.")
        if not is_count(per_round):
            raise ValueError(f"queries_per_round must be a whole number of at least 1, got {per_round!r}.")
        for label in target.wanted or ():
            if self._known_labels is not None and label not in self._known_labels:
                raise ValueError(f"target {label!r} is not a label of the model, which gives {self._known_labels}.")
        if target.wanted is not None and self._outcomes is not None:
            self._refuse_foreign_outcomes(list(target.wanted))

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
        return Problem(region, cost, self.scale, self.reference, self._density, self.quantiles)

    def _learn(self, target: Target, before: Label) -> Hint | None:
        """What follows from the factual's label: are `answers` in the model's words, and what do known outcomes say?"""
        _refuse_other_kind(self._told, before)
        return self._hint(target, before)

    def _hint(self, target: Target, before: Label) -> Hint | None:
        """P(hit) by the known outcomes; None where there are none, or they know only one side."""
        if self._outcomes is None:
            return None
        wanted = (None, before) if target.wanted is None else target.wanted
        if wanted not in self._hints:
            hits = [target.is_hit(outcome, before) for outcome in self._outcomes]
            self._hints[wanted] = outcome_model(self.space, self.reference, np.array(hits))
        return self._hints[wanted]


def _refuse_other_kind(labels: list[Label], label: Label) -> None:
    """Raise when these are texts and the model gives numbers, or the other way round: each would be a hit."""
    if labels and not any(isinstance(other, str) == isinstance(label, str) for other in labels):
        raise ValueError(f"answers: labels such as {labels[0]!r}, but the model gives labels such as {label!r}.")


def _told(values: Any) -> list[Any]:
    """What `ranges` wants of a feature, as JSON knows it: None for an end without a limit."""
    return [None if isinstance(value, float) and np.isinf(value) else as_json(value) for value in values]


@cache
def _versions() -> dict[str, str]:
    """Of what the numbers depend on, beside acex itself."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


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


def _traits(value: Any) -> Any:
    """What can be told of a function or of what it holds, the same in every process."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return [_traits(v) for v in value]
        case CodeType():
            return [value.co_code.hex(), list(value.co_names), _traits(value.co_consts)]
        case FunctionType():
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            return [_traits(value.__code__), _traits(value.__defaults__), _traits(held)]
        case partial():
            return [_traits(value.func), _traits(value.args), _traits(list(value.keywords.items()))]
    return type(value).__qualname__


@contextmanager
def _progress_bar(wanted: bool | None, budget: int) -> Iterator[Callable[[Session], None]]:
    """What shows a run's progress on stderr; by default only where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda session: None
        return
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("no counterfactual yet", total=budget)

        def show(session: Session) -> None:
            cost = session.best_cost
            words = "no counterfactual yet" if cost is None else f"best cost {cost:.3g}"
            progress.update(task, completed=session.box.n_queries, description=words)

        yield show
