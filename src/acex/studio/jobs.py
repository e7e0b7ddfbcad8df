"""Work that takes a while, as values that travel to a process: each gives messages while it is done.

`stopped` says whether the person has had enough; it is asked between two answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pandas as pd

import acex
from acex.studio.serializers import explanation_told, step_told

Message: TypeAlias = tuple[str, Any]
Stopped: TypeAlias = Callable[[], bool]


class Job(Protocol):
    """Whatever a process can be given to do."""

    def messages(self, explainer: acex.Explainer, stopped: Stopped) -> Iterator[Message]:
        """What is to be told while it is done."""


@dataclass(frozen=True)
class WarmUp:
    """Nothing: whoever has done it has started, and read the explainer."""

    def messages(self, explainer: acex.Explainer, stopped: Stopped) -> Iterator[Message]:
        return iter(())


@dataclass(frozen=True)
class OneRow:
    """The search for one row, from where the ledger has it."""

    row: pd.DataFrame
    options: Mapping[str, Any]

    def messages(self, explainer: acex.Explainer, stopped: Stopped) -> Iterator[Message]:
        session = explainer.search(self.row, **self.options)
        best = float("inf")
        for step in session:
            yield "step", step_told(step, session.plan)
            yield "paid", session.box.paid
            if step.best < best:
                best = step.best
                yield "told", explanation_told(session.explanation())
            if stopped():
                yield "stopped", explanation_told(session.explanation())
                return
        yield "ended", explanation_told(session.explanation())


@dataclass(frozen=True)
class ManyRows:
    """Many rows, one after the other, which learn from each other; what comes of them is in the ledger."""

    rows: pd.DataFrame
    options: Mapping[str, Any]
    budget_total: int | None

    def messages(self, explainer: acex.Explainer, stopped: Stopped) -> Iterator[Message]:
        many = explainer.explain_many(
            self.rows, budget_total=self.budget_total, n_jobs=1, progress=False, **self.options
        )
        for position, e in many.as_finished():
            yield "row", {"position": position, "outcome": e.outcome, "paid": e.n_queries, "error": e.error}
            if stopped():
                yield "stopped", None
                return
        yield "ended", None
