"""An explanation back from its ledger, without the model and without the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.engine.explanation import Explanation
from acex.ledger import Answer, Ask, BaseLedger, Record, without_vote
from acex.plan.plan import Plan
from acex.plan.step import Ending, Note, Outcome, Step, in_order
from acex.plan.target import Target
from acex.space.space import Space
from acex.values import Label, Remark

OLDER = Remark(
    "older_record",
    "An older version of acex recorded this explanation without the features' ranges, standard deviations and "
    "constraints: ranges are those of the rows asked, and steps are unknown. Explain the row again with "
    "the same ledger to record them; the answers are reused.",
    is_warning=True,
)
ENDED_OLDER = Remark(
    "older_result",
    "An older version of acex recorded only the outcome of this explanation: the cheapest counterfactual is shown, and "
    "whether there were others is unknown.",
    is_warning=True,
)


def load_explanation(ledger: BaseLedger, explanation: str) -> Explanation:
    """The explanation with this identity as it stands in the ledger; its remarks say what the record lacks.

    `n_queries` is what all its runs have paid for.

    Raises:
        ValueError: there is no such explanation, or not even its first row has an answer.
    """
    record = ledger.explanation(explanation)
    everything = ledger.asks(explanation)
    asks = list(takewhile(lambda ask: ask.answer is not None, everything))
    if not asks:
        raise ValueError(f"explanation {explanation} of {record.model!r} has no answer yet, not even for its own row.")
    # A result is that of an earlier, smaller budget when more was asked since.
    result = record.result if record.result is not None and record.result["asked"] == len(asks) else None
    plan, older = _plan(ledger, record, asks)
    if result is not None:
        budget = result.get("budget", result.get("settings", {}).get("budget", plan.budget))
        plan = replace(plan, settings={**plan.settings, "budget": budget})
    steps = in_order((_step(ask, plan) for ask in asks), plan.target)
    times = {"explanation": explanation, "started_at": record.started_at, "finished_at": record.finished_at}
    called = record.names
    return Explanation.of(
        plan,
        steps,
        _ending(record, result, Ending.so_far(steps, plan.target)),
        unanswered=sum(ask.paid for ask in everything[len(asks) :]),
        remarks=(
            *older,
            *_unfinished(record, result, len(everything) - len(asks)),
            *contradictions(ledger, record.model, [ask.row for ask in asks]),
            *_corrections(ledger, record.model, asks),
        ),
        metadata=times | ({"id": ", ".join(called)} if called else {}),
    )


def contradictions(ledger: BaseLedger, model: str, asked: Sequence[str]) -> tuple[Remark, ...]:
    """A warning where a model gave rows another label later; `asked` are the canonical rows of one explanation."""
    rows = ledger.contradicted(model)
    if not rows:
        return ()
    times = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    text = (
        f"The model contradicts itself: it gave {times} ({len(rows & set(asked))} asked here) another label later. The "
        f"first one stands; see BaseLedger.contradictions."
    )
    return (Remark("contradiction", text, is_warning=True),)


def n_corrected(ledger: BaseLedger, model: str, asks: Sequence[Ask]) -> int:
    """How many of the labels that an explanation has used were corrected later."""
    newest = ledger.known(model, [ask.row for ask in asks])
    return sum(ask.answer is not None and ask.answer.label != newest[ask.row].label for ask in asks)


def _corrections(ledger: BaseLedger, model: str, asks: Sequence[Ask]) -> tuple[Remark, ...]:
    n = n_corrected(ledger, model, asks)
    if n == 0:
        return ()
    text = f"{n} of its labels {'was' if n == 1 else 'were'} corrected later; this explanation used the old ones."
    return (Remark("corrected", text, is_warning=True),)


def value_of(answer: Answer, target: Target) -> Label:
    """What of an answer is judged.

    Raises:
        ValueError: the answer does not tell it.
    """
    value = target.value(answer.label, answer.scores)
    if value is None:
        raise ValueError(
            f"The row {answer.row} was answered {answer.label!r} before, without the probabilities that the target is "
            f"about. Begin with another model_id, so that they are asked for."
        )
    return value


def _step(ask: Ask, plan: Plan) -> Step:
    """The step of a question that was answered; what follows from the order is worked out later."""
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


def _plan(ledger: BaseLedger, record: Record, asks: Sequence[Ask]) -> tuple[Plan, tuple[Remark, ...]]:
    """The plan as recorded; of an older record with a space of what its rows show, no scale, and a warning."""
    deviations: FloatArray
    older: tuple[Remark, ...] = ()
    if record.space is not None:
        space, deviations = Space.from_dict(record.space), np.array(record.space["deviations"])
    else:
        values = [json.loads(without_vote(ask.row)) for ask in asks]
        names = ledger.account(record.model).features or [f"x{j}" for j in range(len(values[0]))]
        space = Space.infer(pd.DataFrame(values, columns=names), grid=False)
        deviations, older = np.zeros(len(space)), (OLDER,)
    factual = dict(zip(space.names, json.loads(asks[0].row), strict=True))
    return Plan.from_record(record.settings, factual, space, deviations), older


def _ending(record: Record, result: dict[str, Any] | None, so_far: Ending) -> Ending:
    """How it ended; before it has, or where an older acex did not say more than the outcome, how it stands."""
    ends: dict[str | None, Outcome] = {"unlikely": "unlikely", "exhausted": "exhausted", "time_spent": "time_spent"}
    outcome = so_far.outcome if so_far.outcome != "budget_spent" else ends.get(record.outcome, "budget_spent")
    if result is None:
        return replace(so_far, outcome=outcome, stopped_by="budget")
    return Ending.from_dict({"outcome": outcome, **result})


def _unfinished(record: Record, result: dict[str, Any] | None, n_waiting: int) -> tuple[Remark, ...]:
    if result is not None:
        return ()
    if record.finished_at is not None and record.result is None:
        return (ENDED_OLDER,)
    waiting = f", and {n_waiting} of its rows wait for a label" if n_waiting else ""
    return (Remark("unfinished", f"This explanation has not ended{waiting}; this is its state so far."),)
