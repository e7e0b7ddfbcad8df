"""Does an explanation hold what it promises? Checked from its document, and with two queries by the model itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acex.ledger import Ledger
from acex.models.labels import as_predict
from acex.run.blackbox import BlackBox
from acex.run.certificate import canonical_form, faults, parsed, signer
from acex.run.explanation import Explanation
from acex.run.redaction import hash_of
from acex.space.cost import Cost
from acex.space.region import Region
from acex.values import as_json, listed

TOLERANCE = 1e-9  # of a cost: sums of floats depend on their order


class Check(NamedTuple):
    """A promise, whether it holds (None: that cannot be seen from here), and why, in words."""

    promise: str
    holds: bool | None
    words: str


@dataclass(frozen=True)
class Verified:
    """What was checked of one explanation; `row` is what its row is called, where somebody has said so."""

    row: Any
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Did no check fail?"""
        return not any(check.holds is False for check in self.checks)


def verify(
    document: Mapping[str, Any],
    *,
    model: Any = None,
    key: str | Path | None = None,
    left_out: Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Verified:
    """What holds of an explanation's document, as `acex.run.certificate.parsed` gives it.

    Args:
        model: what is asked for the row and for its counterfactual once more, two queries that are paid for; None asks
            nothing.
        key: a file with the public key (PEM) of the one who should have signed it.
        left_out: what was left out of the document when columns were redacted, as the one who did that kept it.
    """
    return Verified(_name(document), tuple(_checks(document, model, key, left_out, timeout)))


def n_queries(document: Mapping[str, Any]) -> int:
    """How many rows `verify` asks a model for."""
    return len(document.get("positions", [])[:1]) + bool(document.get("asked"))


def _name(document: Mapping[str, Any]) -> Any:
    settings = document.get("settings")
    return settings.get("id") if isinstance(settings, dict) else None


def _checks(
    document: Mapping[str, Any],
    model: Any,
    key: str | Path | None,
    left_out: Mapping[str, Any] | None,
    timeout: float | None,
) -> Iterator[Check]:
    wrong = faults(document, key)
    yield Check("sum", not wrong, " ".join(wrong) or _sealed(document, key))
    try:
        e = Explanation.from_json(json.dumps(_plain(document)))
        again = parsed(e.to_json())
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        yield Check("form", False, f"it is no explanation as acex writes it: {type(error).__name__}: {error}")
        return
    yield from promises(e)
    differs = [name for name in again if name != "certificate" and not _same(document.get(name), again[name])]
    words = f"{listed(differs)} does not follow from the rows asked and their labels." if differs else ""
    yield Check("record", not differs, words or "all that is said follows from the rows asked and their labels.")
    if left_out is not None:
        yield _left_out(e, left_out)
    if model is not None:
        yield from _asked_again(e, model, timeout)


def promises(e: Explanation) -> Iterator[Check]:
    """What the rows asked, their labels and the plan say of each promise; nothing is asked."""
    target, steps, chosen = e.plan.target, e.steps, e.ending.counterfactuals
    budget = e.plan.budget
    if not steps:
        yield Check("labels", None, f"the row was not explained: {e.error}")
        return
    wrong = [i for i in chosen if not target.is_hit(steps[i].label, steps[0].label)]
    hits = [s.position for s in steps[1:] if s.hit != target.is_hit(s.label, steps[0].label)]
    if wrong or hits:
        yield Check("labels", False, f"rows {wrong or hits} are called hits and are none, or the other way round.")
    else:
        which = "each counterfactual is" if chosen else "no row asked was"
        yield Check("labels", True, f"the model's label of {which} the one that was wanted.")
    paid = sum(step.paid for step in steps)
    within = e.n_queries <= budget and paid <= e.n_queries
    yield Check("budget", within, f"{e.n_queries} rows were paid for, of at most {budget}.")
    if not chosen:
        return
    x, *points = e.space.encode(e.asked.iloc[[0, *chosen]])
    yield from _limits(e, x, np.array(points))
    rule = e.plan.constraint
    if rule:
        yield Check(
            "rule", None, f"a rule of the caller's own held; it is code, of which this file has only the mark {rule}."
        )


def _limits(e: Explanation, x: Any, points: Any) -> Iterator[Check]:
    """Frozen features, directions, ranges, values and costs of the counterfactuals."""
    space, features = e.space, e.space.features
    if not e.scale.deviations.any():
        yield Check("limits", None, "an older acex did not record what was frozen or limited.")
        return
    moved = [(f, x[j], point[j]) for point in points for j, f in enumerate(features) if point[j] != x[j]]
    frozen = sorted({f.name for f, _, _ in moved if f.frozen})
    yield Check("frozen", not frozen, f"{listed(frozen)} was frozen and changed." if frozen else _kept(e, "frozen"))
    ways = {"increase": 1, "decrease": -1}
    ordered = [(f, b - a) for f, a, b in moved if f.direction and f.gap not in (a, b)]
    against = sorted({f.name for f, step in ordered if f.direction and step * ways[f.direction] < 0})
    words = f"{listed(against)} went the way that it may not." if against else _kept(e, "direction")
    yield Check("directions", not against, words)
    if e.plan.max_changes is not None:
        n = int((points != x).sum(axis=1).max())
        yield Check("changes", n <= e.plan.max_changes, f"{n} features change, of at most {e.plan.max_changes}.")
    try:
        if (points == x).all():  # every change is left out
            inside = True
        else:
            region = Region.of(space, x, ranges=_ranges(e), constant=e.scale.deviations == 0)
            inside = bool(region.contains(points).all())
        words = "every value lies within its range and is one that the feature can hold."
    except ValueError as error:
        inside, words = False, str(error)
    yield Check("ranges", inside, words if inside else "a value lies outside its range, or is none of the feature's.")
    if "redacted" in e.settings:
        yield Check("cost", None, "columns are left out, so the cost cannot be reckoned again.")
        return
    J = Cost.of(e.scale, x, space.weights, e.plan.beta, e.plan.category_cost, e.plan.change_cost or 0.0)(points)
    fits = bool(np.allclose(J, e.costs, rtol=TOLERANCE))
    yield Check("cost", fits, f"the cost is {J[0]:.6g}" + ("." if fits else f", and {e.costs[0]:.6g} is said."))


def _kept(e: Explanation, what: str) -> str:
    names = [f.name for f in e.space.features if getattr(f, what)]
    return f"{listed(names)} kept to it." if names else "there is none."


def _ranges(e: Explanation) -> dict[str | int, Any]:
    """The caller's limits as `Region` takes them; an open end is None in a file."""
    out: dict[str | int, Any] = {}
    for name, limits in e.plan.ranges.items():
        is_pair = e.space.feature(name).is_number and len(limits) == 2
        out[name] = [end if v is None else v for v, end in zip(limits, (-inf, inf), strict=True)] if is_pair else limits
    return out


def _asked_again(e: Explanation, model: Any, timeout: float | None) -> Iterator[Check]:
    if "redacted" in e.settings:
        raise ValueError("columns are left out of it, so that its rows cannot be asked; verify the whole document.")
    places = [0, *e.ending.counterfactuals[:1]] if e.steps else []
    if not places:
        return
    rows = e.space.decode(e.space.encode(e.asked.iloc[places]))
    box = BlackBox(as_predict(model, e.plan.scores), Ledger(), len(places), model_id="verify", timeout=timeout)
    labels = [answer.label for answer in box.ask(rows)]
    for what, place, label in zip(("the row", "its counterfactual"), places, labels, strict=False):
        was = e.steps[place].label
        same = as_json(label) == as_json(was)
        yield Check(
            "model", same, f"{what} is {label!r} to the model" + (", as before." if same else f"; it was {was!r}.")
        )


def _left_out(e: Explanation, left_out: Mapping[str, Any]) -> Check:
    hashes: Mapping[str, str] = e.settings.get("redacted", {})
    try:
        wrong = [name for name, mark in hashes.items() if hash_of(**_plain(left_out[name])) != mark]
    except (LookupError, TypeError) as error:
        return Check("left out", False, f"what was left out cannot be read: {type(error).__name__}: {error}")
    if wrong or not hashes:
        return Check(
            "left out", False, f"{listed(wrong)} is not what was left out." if wrong else "nothing was left out."
        )
    return Check("left out", True, f"{listed(hashes)} is what was left out.")


def _sealed(document: Mapping[str, Any], key: str | Path | None) -> str:
    by = signer(document)
    if by is None:
        return "nothing was changed by accident since it was written. It is not signed: who wants to forge it can."
    if key is None:
        return f"the sum and the signature fit. Signed with the key {by}; whose that is, only --key can tell."
    return f"the sum and the signature fit, and it was signed with the key in {key}."


def _same(one: Any, other: Any) -> bool:
    return canonical_form(one) == canonical_form(other)


def _plain(document: Any) -> Any:
    """The document with numbers as numbers."""
    return json.loads(canonical_form(document))
