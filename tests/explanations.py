"""Explanations written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.run.explanation import Explanation
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.scale import Scale
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
    """An explanation written by hand: a factual, a counterfactual or more, each 1 dearer, and five queries."""
    rows = space.decode(np.vstack([space.encode(dict(zip(space.names, before, strict=True)))] * len(costs)))
    if asked is not None:
        rows = space.decode(asked)
    best = np.minimum.accumulate(np.where(hits, costs, np.inf))
    found = after is not None
    return Explanation(
        factual=rows.iloc[0].rename(None),
        label_before="no",
        label_after="yes" if found else None,
        target="yes",
        outcome="found" if found else "budget_spent",
        stopped_by="budget",
        counterfactuals=pd.DataFrame([after, *others] if after else [], columns=pd.Index(space.names)),
        costs=tuple(float(best[-1]) + i for i in range(1 + len(others))) if found else (),
        affinities=(1.0,) * (1 + len(others)) if found else (),
        n_queries=len(costs) - n_reused,
        n_reused=n_reused,
        queries=pd.DataFrame(
            {
                "purpose": "initial",
                "label": ["yes" if hit else "no" for hit in hits],
                "hit": hits,
                "cost": costs,
                "best": best,
            }
        ),
        asked=rows,
        settings={},
        space=space,
        scale=Scale(space, np.ones(len(space)) if deviations is None else deviations),
    )


def person(**options: Any) -> Explanation:
    return explained(PERSON, BEFORE, AFTER, deviations=DEVIATIONS, **options)


def nothing_found() -> Explanation:
    misses = (False,) * 5
    return explained(PERSON, BEFORE, None, deviations=DEVIATIONS, hits=misses)
