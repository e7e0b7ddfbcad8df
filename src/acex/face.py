"""The face of the library: from a model, data and a row to an explanation, in one call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Unpack

from acex.api import Callback, Explainer
from acex.arrays import Rows
from acex.engine.explanation import Explanation
from acex.ledger import BaseLedger
from acex.options import Options, RowOptions
from acex.space.gaps import Missing
from acex.space.plausibility import Plausibility
from acex.space.space import Grids, Space


class EveryOption(RowOptions, total=False):
    """What may be said to `explain`, for type checkers: of the row, and of the model and its data."""

    labels: Any
    space: Space | None
    grid: Grids
    missing: Missing
    other: Mapping[Any, Any] | None
    plausibility: Plausibility | None
    scores: bool
    pool: bool
    answers: tuple[Rows, Any] | None
    ledger: BaseLedger | str | Path | None
    model_id: str | None
    timeout: float | None
    class_names: Any


def explain(
    model: Any,
    x: Rows,
    *,
    data: Rows,
    callback: Callback | None = None,
    progress: bool | None = None,
    **options: Unpack[EveryOption],
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
        grid: the steps in which numbers are moved, {"loan": 50, "rate": 0.001, "weight": None} (None: any number). By
            default those in which the data come, so that a counterfactual looks like a row of them; False for none.
        missing: "drop" leaves out rows of data with gaps, and says how many. "keep" is for models that take gaps: a gap
            of x stays one unless `ranges` asks for values, and a value a value unless it asks for a gap ([None]).
        other: categories that stand for all values that nobody has declared, {"job": "other"}; without it such a value
            is refused.
        target: the label wanted, or a list of labels that will do; by default any other than the one x has.
        budget: how many rows may be sent to the model, the first one (x itself) included. A hard cap.
        count: how many counterfactuals; each rests on a feature that the others do not rest on.
        freeze: features that must stay as they are.
        ranges: (low, high) for numbers, a list of allowed categories for the others; [None] for no value.
        directions: "increase" or "decrease" for features that may go one way only.
        weights: how dear a change of a feature is relative to others; 1 by default.
        constraint: from rows to one True or False a row; rows where it is False are never asked.
        rules: rules as text that hold in every row after x, such as "duration <= 84 - age" or "sum(a, b, c) == 100".
        strategy: "feasible"; "penalty", which is ACE with repairs; or `acex.Feasible(...)`, `acex.Penalty(...)` with
            settings of their own.
        effort: "settle" stops when ten more queries are unlikely to save 5%; "spend" goes on until the budget is
            spent. Needs strategy "feasible".
        margin: how probable a hit must be, by the surrogate, close to a counterfactual; 0.7 is a useful value. The
            surrogate's word, not the model's. Where no hit comes up to it, the steadiest one is given.
        max_changes: how many features may change, in every query after the first; None for any number.
        category_cost: what a change of category, or between a value and none, counts against numbers, in standard
            deviations; None for 1 over the deviation of its one-hot code, as in comparisons with the paper.
        change_cost: what every change counts besides its length, in standard deviations; 1 for the fewest first.
        beta: weight of sparsity (l1) against distance (l2) in the cost.
        plausibility: how much a counterfactual must look like data; None for not at all.
        scores: the model gives probabilities (`predict_proba`, or a function that gives a frame with a column for
            each label): fewer queries than labels alone.
        queries_per_round: rows that are asked at once, where waiting is dearer than a few queries more.
        noise: the share of answers that a model which contradicts itself gets wrong, below 0.5, or "auto" to learn it:
            answers then count as votes, and rows are asked again. 0 for a model that always says the same.
        confirm: with noise, how many more votes for than against the row that is returned has.
        pool: use what the same model was asked for other explanations; it costs nothing.
        answers: rows, and the labels that the model itself gave them elsewhere: evidence, free of charge.
        ledger: where answers are written down so that none is paid for twice: a path, a URL of PostgreSQL, an
            `acex.Ledger`, or None for memory. An explanation that was interrupted goes on from there.
        model_id: the model's name in the ledger; models from files and endpoints have one of their own.
        timeout: seconds after which a request to the model counts as failed.
        class_names: what the labels are called, everywhere: a mapping such as {0: "rejected", 1: "approved"}, or a list
            in the order of the model's `classes_`. A target may be said by its name.
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
    setup = {name: options.pop(name) for name in SETUP if name in options}  # type: ignore[misc]
    Options.of(options)  # what is wrong with them is said before the data are worked through
    explainer = Explainer(model, data, seed=options.get("seed", 0), **setup)
    try:
        return explainer.explain(x, callback=callback, progress=progress, **options)  # type: ignore[misc]
    finally:
        if not isinstance(setup.get("ledger"), BaseLedger):  # who opened it closes it
            explainer.ledger.close()


SETUP = EveryOption.__annotations__.keys() - RowOptions.__annotations__.keys()


def _signature() -> inspect.Signature:
    """Every argument of `explain` by its name, with its default, for people and their editors."""
    own = [p for p in inspect.signature(explain).parameters.values() if p.kind is not p.VAR_KEYWORD]
    about_model = [p for name, p in inspect.signature(Explainer).parameters.items() if name in SETUP]
    defaults = {f.name: f.default for f in fields(Options)} | {"target": None, "strategy": "feasible"}
    kinds = {name: kind.__forward_arg__ for name, kind in RowOptions.__annotations__.items()}
    about_row = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
        for name, default in defaults.items()
    ]
    return inspect.Signature([*own[:3], *about_model, *about_row, *own[3:]], return_annotation="Explanation")


explain.__signature__ = _signature()  # type: ignore[attr-defined]
