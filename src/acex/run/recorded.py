"""An explanation back from its ledger, without the model and without the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from acex.ledger.ledger import Ask, Ledger, Record
from acex.plan.target import Target
from acex.run.explanation import Explanation, Outcome
from acex.space.scale import Scale
from acex.space.space import Space
from acex.values import Label

OLDER = (
    "an older acex began this explanation and did not record the features' ranges and standard deviations, nor what "
    "was frozen or limited: ranges are those of the rows asked, and steps are not known. Explaining the row again with "
    "the same ledger adds them and costs nothing."
)
ENDED_OLDER = (
    "an older acex ended this explanation and recorded only its outcome: the cheapest counterfactual is shown, and "
    "whether there were others is not known."
)


def recorded(ledger: Ledger, explanation: str) -> Explanation:
    """The explanation of this name as it stands in the ledger; what the record lacks is said in its warnings.

    `n_queries` is what all its runs have paid for.

    Raises:
        ValueError: there is no such explanation, or not even its first row has an answer.
    """
    record = ledger.record(explanation)
    everything = ledger.asks(explanation)
    asks = list(takewhile(lambda ask: ask.answer is not None, everything))
    if not asks:
        raise ValueError(f"explanation {explanation} of {record.model!r} has no answer yet, not even for its own row.")
    labels = [ask.answer.label for ask in asks if ask.answer is not None]
    space, scale, older = _space(ledger, record, asks)
    points = space.encode(pd.DataFrame([json.loads(ask.row) for ask in asks], columns=space.names))
    target = Target.of(record.settings["target"])
    hits = np.array([target.is_hit(label, labels[0]) for label in labels])
    costs = np.array([float(ask.note["cost"]) for ask in asks])
    hits[0] = False  # the factual is none, also where it has the label that was wanted
    counts = hits & np.array([bool(ask.note["counts"]) for ask in asks])
    # A result is that of an earlier, smaller budget when more was asked since.
    result = record.result if record.result is not None and record.result["asked"] == len(asks) else None
    if result is not None:
        chosen, steadiness = result["counterfactuals"], tuple(result["steadiness"])
    else:
        chosen, steadiness = [int(i) for i in np.argsort(np.where(counts, costs, np.inf))[: int(counts.any())]], ()
    affinities = [asks[i].note.get("affinity") for i in chosen]
    asked = space.frame(points)
    kept = {name: value for name, value in record.settings.items() if name != "form"}
    times = {"explanation": explanation, "started_at": record.started_at, "finished_at": record.finished_at}
    return Explanation(
        factual=asked.iloc[0].rename(None),
        label_before=labels[0],
        label_after=labels[chosen[0]] if chosen else None,
        target=record.settings["target"],
        outcome=_outcome(record, labels[0], target, bool(chosen)),
        stopped_by="budget" if result is None else result["stopped_by"],
        counterfactuals=asked.iloc[chosen].reset_index(drop=True),
        costs=tuple(costs[chosen].tolist()),
        affinities=() if None in affinities else tuple(affinities),
        steadiness=steadiness,
        n_queries=sum(ask.paid for ask in everything),
        n_reused=sum(ask.paid == 0 for ask in asks),
        queries=pd.DataFrame(
            {
                "purpose": [ask.purpose for ask in asks],
                "label": labels,
                "hit": hits,
                "cost": costs,
                "best": np.minimum.accumulate(np.where(counts, costs, np.inf)),
            }
        ),
        asked=asked,
        settings=kept | (result or {}).get("settings", {}) | times,
        warnings=(
            *older,
            *_unfinished(record, result, len(everything) - len(asks)),
            *(result or {}).get("warnings", ()),
            *contradictions(ledger, record.model, [ask.row for ask in asks]),
        ),
        space=space,
        scale=scale,
    )


def contradictions(ledger: Ledger, model: str, asked: Sequence[str]) -> tuple[str, ...]:
    """A warning where a model gave rows another label later; `asked` are the canonical rows of one explanation."""
    rows = set(ledger.contradictions(model)["row"])
    if not rows:
        return ()
    times = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return (
        f"the model contradicts itself: it gave {times} ({len(rows & set(asked))} asked here) another label later. The "
        f"first one stands; see Ledger.contradictions.",
    )


def _space(ledger: Ledger, record: Record, asks: Sequence[Ask]) -> tuple[Space, Scale, tuple[str, ...]]:
    """Space and scale as recorded; of an older record what its rows show, without a scale, and a warning."""
    if record.space is not None:
        space = Space.from_dict(record.space)
        return space, Scale(space, np.array(record.space["deviations"])), ()
    values = [json.loads(ask.row) for ask in asks]
    names = ledger.features(record.model) or [f"x{j}" for j in range(len(values[0]))]
    space = Space.infer(pd.DataFrame(values, columns=names))
    return space, Scale(space, np.zeros(len(space))), (OLDER,)


def _outcome(record: Record, before: Label, target: Target, found: bool) -> Outcome:
    if found:
        return "found"
    if target.wanted is not None and before in target.wanted:
        return "already_target"
    ends: dict[str | None, Outcome] = {"unlikely": "unlikely", "exhausted": "exhausted"}
    return ends.get(record.outcome, "budget_spent")


def _unfinished(record: Record, result: dict[str, Any] | None, n_waiting: int) -> tuple[str, ...]:
    if result is not None:
        return ()
    if record.finished_at is not None and record.result is None:
        return (ENDED_OLDER,)
    waiting = f", and {n_waiting} of its rows wait for a label" if n_waiting else ""
    return (f"this explanation has not ended{waiting}; this is its state so far.",)
