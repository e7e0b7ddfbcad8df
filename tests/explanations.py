"""Explanations written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from acex.arrays import FloatArray
from acex.engine.explanation import Explanation
from acex.plan.plan import Plan
from acex.plan.step import Ending, Note, Step, all_judged
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.space import Space

SCHOOLS = ("primary", "high", "university")
PERSON = Space(
    (
        Continuous("debt", 0.0, 2.0),
        Integer("income", 1000, 5000),
        Ordinal("school", SCHOOLS),
        Nominal("housing", ("own", "parents", "rent")),
        Continuous("age", 18.0, 98.0),
    )
)
BEFORE = (1.5, 2000, "high", "rent", 40.0)
AFTER = (0.5, 3000, "university", "own", 40.0)
DEVIATIONS = np.array([0.25, 2000.0, 1.0, 0.5, 10.0])


def written(
    space: Space,
    rows: Sequence[Mapping[str, Any]],
    *,
    labels: Sequence[Any],
    costs: Sequence[float],
    chosen: Sequence[int],
    target: Any = "yes",
    deviations: FloatArray | None = None,
    affinity: float | None = 1.0,
    n_known: int = 0,
    settings: Mapping[str, Any] | None = None,
    **ending: Any,
) -> Explanation:
    """An explanation written by hand: these rows were asked, got these labels, and some are the answer."""
    told = {"target": target, "budget": len(rows), "model_id": "model", **(settings or {})}
    spread = np.ones(len(space)) if deviations is None else deviations
    plan = Plan.from_record(told, dict(rows[0]), space, spread)
    steps = all_judged(
        (
            Step(i, row, "initial", label, False, np.inf, int(i >= n_known), None, 0, Note(i, cost, True, affinity))
            for i, (row, label, cost) in enumerate(zip(rows, labels, costs, strict=True))
        ),
        plan.target,
    )
    outcome = "found" if chosen else "budget_spent"
    return Explanation.of(plan, steps, Ending(**{"outcome": outcome, "counterfactuals": tuple(chosen), **ending}))


def explained(
    space: Space,
    before: tuple[Any, ...],
    after: tuple[Any, ...] | None,
    *others: tuple[Any, ...],
    deviations: FloatArray | None = None,
    costs: tuple[float, ...] = (0.0, 30.0, 7.0, 2.0, 5.0),
    hits: tuple[bool, ...] = (False, True, True, False, True),
    asked: FloatArray | None = None,
    n_reused: int = 0,
) -> Explanation:
    """An explanation written by hand: a factual, five queries, and at the end a counterfactual or more."""
    found = [row for row in (after, *others) if row is not None]
    if len(found) >= len(costs):  # more than queries: as many dear misses more
        costs, hits = costs + (99.0,) * len(found), hits + (False,) * len(found)
    rows = [dict(zip(space.names, before, strict=True))] * len(costs)
    if asked is not None:
        rows = [dict(zip(space.names, row, strict=True)) for row in space.frame(asked).itertuples(index=False)]
    best = min((cost for cost, hit in zip(costs, hits, strict=True) if hit), default=np.inf)
    n = len(costs)
    # The queries before the last ones are as given; the answer takes their place from the end on.
    rows[n - len(found) :] = [dict(zip(space.names, row, strict=True)) for row in found]
    labels = ["yes" if hit else "no" for hit in hits]
    labels[n - len(found) :] = ["yes"] * len(found)
    prices = list(costs)
    prices[n - len(found) :] = [best + i for i in range(len(found))]
    return written(
        space,
        rows,
        labels=labels,
        costs=prices,
        chosen=range(n - len(found), n),
        deviations=deviations,
        n_known=n_reused,
    )


def ended(e: Explanation, **ending: Any) -> Explanation:
    """The explanation with another ending."""
    return replace(e, ending=replace(e.ending, **ending))


def person(**options: Any) -> Explanation:
    return explained(PERSON, BEFORE, AFTER, deviations=DEVIATIONS, **options)


def nothing_found() -> Explanation:
    misses = (False,) * 5
    return explained(PERSON, BEFORE, None, deviations=DEVIATIONS, hits=misses)
