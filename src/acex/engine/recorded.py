"""Loads an explanation from its ledger, without the model or the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf

import numpy as np

from acex.engine.explanation import Explanation
from acex.engine.session import contradictions, value_of
from acex.ledger import Ask, BaseLedger, without_vote
from acex.plan.plan import Plan
from acex.plan.step import Ending, Note, Step, all_judged
from acex.space.space import Space
from acex.values import Remark


def load_explanation(ledger: BaseLedger, explanation: str) -> Explanation:
    """The explanation with this identity, as recorded so far; `n_queries` counts the rows that all its runs paid for.

    Raises:
        ValueError: there is no such explanation, its factual has no answer yet, or acex 0.1 recorded it.
    """
    record = ledger.explanation(explanation)
    everything = ledger.asks(explanation)
    asks = list(takewhile(lambda ask: ask.answer is not None, everything))
    if not asks:
        raise ValueError(f"explanation {explanation} of {record.model!r} has no answer yet, not even for its own row.")
    if record.space is None:
        raise ValueError(
            f"explanation {explanation} of {record.model!r} was recorded by acex 0.1 without its features. Explain the "
            f"row again with the same ledger; the answers are reused."
        )
    # If more rows were asked since, the recorded result belongs to an earlier run with a smaller budget.
    result = record.result if record.result is not None and record.result["asked"] == len(asks) else None
    space, deviations = Space.from_dict(record.space), np.array(record.space["deviations"])
    factual = dict(zip(space.names, json.loads(asks[0].row), strict=True))
    plan = Plan.from_record(record.settings, factual, space, deviations)
    if result is not None:
        budget = result.get("budget", result.get("settings", {}).get("budget", plan.budget))
        plan = replace(plan, settings={**plan.settings, "budget": budget})
    steps = all_judged((_step(ask, plan) for ask in asks), plan.target)
    ending = Ending.so_far(steps, plan.target)
    if result is not None:
        ending = Ending.from_dict({"outcome": ending.outcome, **result})
    times = {"explanation": explanation, "started_at": record.started_at, "finished_at": record.finished_at}
    return Explanation.of(
        plan,
        steps,
        ending,
        unanswered=sum(ask.paid for ask in everything[len(asks) :]),
        remarks=(
            *([_unfinished(len(everything) - len(asks))] if result is None else ()),
            *contradictions(ledger, record.model, [ask.row for ask in asks]),
            *_corrections(ledger, record.model, asks),
        ),
        metadata=times | ({"id": ", ".join(record.names)} if record.names else {}),
    )


def n_corrected(ledger: BaseLedger, model: str, asks: Sequence[Ask]) -> int:
    """How many of the labels that an explanation used were corrected later."""
    newest = ledger.known(model, [ask.row for ask in asks])
    return sum(ask.answer is not None and ask.answer.label != newest[ask.row].label for ask in asks)


def _corrections(ledger: BaseLedger, model: str, asks: Sequence[Ask]) -> tuple[Remark, ...]:
    n = n_corrected(ledger, model, asks)
    if n == 0:
        return ()
    text = f"{n} of its labels {'was' if n == 1 else 'were'} corrected later; this explanation used the old ones."
    return (Remark("corrected", text, is_warning=True),)


def _step(ask: Ask, plan: Plan) -> Step:
    """The step of an answered question; `all_judged` sets `hit` and `best` later."""
    assert ask.answer is not None
    return Step(
        position=ask.position,
        row=dict(zip(plan.space.names, json.loads(without_vote(ask.row)), strict=True)),
        purpose=ask.purpose,
        label=value_of(ask.answer, plan.target),
        hit=False,
        best=inf,
        paid=ask.paid,
        at=ask.answered_at,
        seen=ask.seen,
        note=Note.from_dict(ask.note),
        scores=ask.answer.scores,
    )


def _unfinished(n_waiting: int) -> Remark:
    waiting = f", and {n_waiting} of its rows wait for a label" if n_waiting else ""
    return Remark("unfinished", f"This explanation has not ended{waiting}; this is its state so far.")
