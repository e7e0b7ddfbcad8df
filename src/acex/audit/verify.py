"""Verifies the document of an explanation from its rows and labels and, optionally, two queries of the model.

What follows from the plan, the rows and their labels is recomputed and compared. The rest is listed as stated, not
checked: it is as trustworthy as the signer of the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acex.arrays import FloatArray
from acex.engine.blackbox import BlackBox
from acex.engine.certificate import canonical_form, faults, parsed, signer
from acex.engine.explanation import Explanation, asked_rows
from acex.engine.redaction import hash_of
from acex.engine.session import value_of
from acex.ledger import MemoryLedger
from acex.models.model import Model
from acex.plan.step import Outcome, all_judged, factual_label, leading
from acex.plan.target import Measured
from acex.space.cost import Cost, n_changed
from acex.space.region import Region
from acex.space.rules import Rule
from acex.values import Label, as_json, counted, listed

TOLERANCE = 1e-9  # relative and absolute: sums of floats depend on their order
OUTCOMES: dict[str, Outcome] = {  # outcome without a counterfactual, by `stopped_by`
    "budget": "budget_spent",
    "time": "time_spent",
    "settled": "unlikely",
    "exhausted": "exhausted",
    "unfinished": "unfinished",
}
STATED = (
    *("stopped_by", "affinities", "robustness", "improvement_odds"),
    *("kinds", "excluded", "needed", "votes", "remarks"),
)


class Check(NamedTuple):
    """A promise, whether it holds (None: it cannot be checked), and the reason."""

    promise: str
    holds: bool | None
    words: str


@dataclass(frozen=True)
class Verified:
    """The checks of one explanation; `row` is the name of its row, if it has one."""

    row: Any
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether no check has failed."""
        return not any(check.holds is False for check in self.checks)


def verify(
    document: Mapping[str, Any],
    *,
    model: Any = None,
    key: str | Path | None = None,
    left_out: Mapping[str, Any] | None = None,
) -> Verified:
    """The checks of an explanation's document, as `acex.engine.certificate.parsed` returns it.

    Args:
        model: the row and its counterfactual are sent to it again, two paid queries; None sends nothing.
        key: a file with the public key (PEM) of the expected signer.
        left_out: the redacted columns with their salts, as the owner of the document kept them.

    Raises:
        ValueError: the document cannot be read as an explanation, or the file of the key is not a key.
    """
    try:
        e = Explanation.from_json(json.dumps(document))
        checks = [*promises(e), *_record(document, e)]
        checks += [] if left_out is None else [_left_out(e, left_out)]
    except Exception as error:  # the document may be malformed anywhere
        raise ValueError(f"cannot be read as an explanation: {type(error).__name__}: {str(error)[:200]}") from error
    checks = [checksum(document, key), *checks, *(() if model is None else _asked_again(e, model))]
    return Verified(e.settings.get("id"), tuple(checks))


def n_queries(document: Any) -> int:
    """How many rows `verify` sends to a model."""
    return sum(bool(document.get(name)) for name in ("positions", "asked")) if isinstance(document, Mapping) else 0


def checksum(document: Mapping[str, Any], key: str | Path | None = None) -> Check:
    """Whether checksum and signature of a document match, also for a batch; `key` as in `verify`."""
    wrong = faults(document, key)
    by = signer(document)
    if wrong:
        return Check("sum", False, " ".join(wrong))
    if by is None:
        return Check("sum", True, "the checksum matches. It is not signed, so it could have been forged.")
    if key is None:
        return Check("sum", True, f"checksum and signature match. Signed with the key {by}; to check whose, use --key.")
    return Check("sum", True, f"checksum and signature match, and it was signed with the key in {key}.")


def _record(document: Mapping[str, Any], e: Explanation) -> Iterator[Check]:
    """Whether the document agrees with what follows from its plan, its rows and their labels."""
    again = parsed(_recomputed(e).to_json())
    names = sorted({*document, *again} - {"certificate", "page"})  # a page also holds the options it was rendered with
    differs = [name for name in names if canonical_form(document.get(name)) != canonical_form(again.get(name))]
    words = f"{listed(differs)} does not follow from the rows and their labels." if differs else ""
    yield Check("record", not differs, words or "everything recomputed follows from the rows and their labels.")
    stated = [name for name in STATED if document.get(name)]
    more = "the labels of the rows, when and why they were sent, and settings such as model_id"
    yield Check("stated", None, f"stated, not checked: {', '.join([*stated, more])}.")


def _recomputed(e: Explanation) -> Explanation:
    """The explanation with hits, best costs, outcome and number of reused answers recomputed."""
    steps, target = e.steps, e.plan.target
    if e.plan.noise is None or "redacted" not in e.settings:
        steps = tuple(all_judged(steps, target))
    outcome: Outcome
    if e.error is not None:
        outcome = "failed"
    elif e.ending.counterfactuals:
        outcome = "found"
    elif steps and target.is_met(factual_label(steps, target)):
        outcome = "already_target"
    else:
        outcome = OUTCOMES[e.stopped_by]
    reused = sum(step.paid == 0 for step in steps)
    if e.n_reused == max(len(steps) - e.n_queries, 0):  # steps that earlier runs paid for count as reused
        reused = e.n_reused
    return replace(e, steps=steps, ending=replace(e.ending, outcome=outcome), n_reused=reused)


def promises(e: Explanation) -> Iterator[Check]:
    """Whether the plan, the rows and their labels keep each promise; nothing is sent."""
    steps, chosen, budget = e.steps, e.ending.counterfactuals, e.plan.budget
    if not steps:
        yield Check("labels", None, f"the row was not explained: {e.error}")
        return
    yield _labels(e)
    paid = max(e.n_queries, sum(step.paid for step in steps))
    counted = e.n_queries + e.n_reused  # steps that earlier runs paid for count as reused
    words = f"{paid} rows were paid for, of at most {budget}."
    if counted < len(steps):
        words = f"{len(steps)} rows were sent, and only {counted} are accounted for."
    yield Check("budget", paid <= budget and counted >= len(steps), words)
    if not chosen:
        return
    x, *points = e.plan.space.encode(asked_rows(e).iloc[[0, *chosen]])
    yield _limits(e, x, np.array(points))
    if n := len(e.settings.get("redacted", ())):
        yield Check("limits", None, f"{n} redacted {'column was' if n == 1 else 'columns were'} not checked.")
    yield from _changes(e, x, np.array(points))
    yield _cost(e, x)
    yield from _rules(e, x, np.array(points))


def _labels(e: Explanation) -> Check:
    """Whether each counterfactual is a hit by its answers, and `hit` agrees with the label of each row."""
    target, steps, chosen = e.plan.target, e.steps, e.ending.counterfactuals
    what = "number" if isinstance(target, Measured) else "label"
    before = factual_label(steps, target)
    hits = {s.position for s in steps if s.purpose != "factual" and target.is_hit(s.label, before)} - {0}
    called = {s.position for s in steps if s.hit}
    if wrong := sorted((called ^ hits) | (set(chosen) - hits)):
        return Check("labels", False, f"rows {wrong}: hit and label contradict each other.")
    is_voted = e.plan.noise is not None and "redacted" not in e.settings  # votes are counted by complete rows
    if is_voted and (outvoted := sorted(set(chosen) - {s.position for s in leading(steps)})):
        return Check("labels", False, f"rows {outvoted}: counterfactuals that most answers contradict.")
    which = "each counterfactual is as" if chosen else "no row was as"
    return Check("labels", True, f"the {what} of {which} wanted.")


def _rules(e: Explanation, x: FloatArray, points: FloatArray) -> Iterator[Check]:
    """Whether rules hold that are texts; functions cannot be checked."""
    relations = [text for text in e.plan.space.relations if Rule.of(text, e.plan.space).holds(x[None], x).all()]
    rules = [*relations, *(e.plan.settings.get("rules") or [])]
    if broken := [text for text in rules if not _holds(text, e, x, points)]:
        yield Check("rules", False, f"{listed(broken)} is broken, or is not a rule over these columns.")
    else:
        idle = [text for text in rules if not Rule.of(text, e.plan.space).applies(points).any()]
        if applied := [text for text in rules if text not in idle]:
            yield Check("rules", True, f"{listed(applied)} holds.")
        if idle:
            yield Check("rules", None, f"{listed(idle)} does not apply: a value is missing.")
    if n := e.settings.get("redacted_rules", 0):
        yield Check("rules", None, f"not checked for {counted(n, 'rule')} over redacted columns.")
    if functions := e.plan.settings.get("functions"):
        words = f"not checked: rules that are functions; the document has only their fingerprint {functions}."
        yield Check("rules", None, words)


def _holds(text: str, e: Explanation, x: FloatArray, points: FloatArray) -> bool:
    try:
        return bool(Rule.of(text, e.plan.space).holds(points, x).all())
    except ValueError:
        return False


def _limits(e: Explanation, x: FloatArray, points: FloatArray) -> Check:
    """Whether frozen features, directions, ranges and allowed values are respected."""
    space, settings = e.plan.space, e.plan.settings
    given = {name: settings.get(name) for name in ("ranges", "values")}
    try:
        region = Region.of(space, x, **given, constant=e.plan.scale.deviations == 0)
    except ValueError as error:
        return Check("limits", bool((points == x).all()), str(error))  # it holds if all changes are redacted
    if region.contains(points).all() or (points == x).all():
        return Check("limits", True, "every value is within its limits.")
    broken = []
    for j, (feature, allowed) in enumerate(zip(space.features, region.allowed, strict=True)):
        within = np.isin(points[:, j], allowed) | ((j not in region.listed) & (points[:, j] >= allowed[0]))
        within &= points[:, j] <= allowed[-1]
        if not within.all():
            limit = "frozen" if feature.frozen else feature.direction or "range or values"
            broken.append(f"{feature.name!r} ({limit})")
    return Check("limits", False, f"outside: {', '.join(broken) or 'the grid of a feature'}.")


def _changes(e: Explanation, x: FloatArray, points: FloatArray) -> Iterator[Check]:
    most = e.plan.settings.get("max_changes")
    if most is None:
        return
    n = int(n_changed(points, x).max())
    holds = n <= most and (None if "redacted" in e.settings else True)
    more = "; redacted columns are not counted" if holds is None else ""
    yield Check("changes", holds, f"{counted(n, 'changed feature')}, of at most {most}{more}.")


def _cost(e: Explanation, x: FloatArray) -> Check:
    if "redacted" in e.settings:
        return Check("cost", None, "not recomputed: redacted columns are part of the cost.")
    written = e.plan.settings["cost"]
    cost = Cost(written["beta"], None, written["per_category"], written["per_change"] or 0.0)
    J = cost.function(e.plan.space, e.plan.scale, x)(e.plan.space.encode(asked_rows(e)))
    wrong = np.flatnonzero(~np.isclose(J, [step.cost for step in e.steps], rtol=TOLERANCE, atol=TOLERANCE))
    if len(wrong):
        i = int(wrong[0])
        return Check("cost", False, f"the cost of row {i} is {J[i]:.6g}, not {e.steps[i].cost:.6g}.")
    return Check("cost", True, f"the cost is {J[e.ending.counterfactuals[0]]:.6g}.")


def _asked_again(e: Explanation, model: Any) -> Iterator[Check]:
    if "redacted" in e.settings:
        raise ValueError("model: columns are redacted, so the rows cannot be sent; verify the whole document.")
    places = [0, *e.ending.counterfactuals[:1]] if e.steps else []
    if not places:
        return
    rows = e.plan.space.decode(e.plan.space.encode(asked_rows(e).iloc[places]))
    target = e.plan.target
    is_number = isinstance(target, Measured) and target.label is None
    given = Model.of(model)
    if e.plan.settings.get("scores") and not given.scores:
        given = Model(given.wrapped, scores=True, timeout=given.timeout)
    box = BlackBox(given, MemoryLedger(), len(places), model_id="verify", numbers=is_number)
    answers = [value_of(answer, target) for answer in box.ask(rows)]
    before = (factual_label(e.steps, target), *(e.steps[place].label for place in places[1:]))
    for what, was, now in zip(("the row", "its counterfactual"), before, answers, strict=False):
        same = _is_as_before(now, was)
        words = f"the model answers {now!r} for {what}" + (", as before." if same else f"; it was {was!r}.")
        if not same and e.plan.noise is not None:  # one answer of such a model proves nothing
            yield Check("model", None, f"{words} This model's answers vary.")
        else:
            yield Check("model", same, words)


def _is_as_before(now: Label, was: Label) -> bool:
    """Whether the label is the same, or the number is the same up to rounding on another machine."""
    if isinstance(now, float) and isinstance(was, (int, float)) and not isinstance(was, bool):
        return bool(np.isclose(now, was, rtol=TOLERANCE, atol=TOLERANCE))
    return bool(as_json(now) == as_json(was))


def _left_out(e: Explanation, left_out: Mapping[str, Any]) -> Check:
    hashes: Mapping[str, str] = e.settings.get("redacted", {})
    try:
        wrong = [name for name, mark in hashes.items() if hash_of(**left_out[name]) != mark]
    except (LookupError, TypeError) as error:
        return Check("left out", False, f"what was left out cannot be read: {type(error).__name__}: {error}")
    if not hashes:
        return Check("left out", False, "nothing was left out.")
    if wrong:
        return Check("left out", False, f"{listed(wrong)} is not what was left out.")
    return Check("left out", True, f"{listed(hashes)} is what was left out.")
