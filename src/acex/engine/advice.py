"""What to do where no counterfactual was found, for each way in which an explanation can end."""

from __future__ import annotations

ADVICE = {
    "already_target": "The factual already has the label that was asked for: there is nothing to change.",
    "budget_spent": "The budget ran out before a hit. Raise budget, {labels}unfreeze features, or loosen ranges "
    "and constraint.",
    "unlikely": "A hit became too unlikely to go on. Unfreeze features, loosen ranges or constraint, {labels}"
    "or choose another target.",
    "exhausted": "Every plausible point within the constraints was asked. Unfreeze features, widen ranges, "
    "or relax plausibility (a lower threshold, or None).",
    "failed": "The row could not be explained.",
}


def advice(outcome: str, *, has_outcomes: bool) -> str:
    """A few sentences; who has given known outcomes is not asked for them."""
    return ADVICE[outcome].format(labels="" if has_outcomes else "give known outcomes as labels, ")
