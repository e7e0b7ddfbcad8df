"""What to do about an explanation without a counterfactual, by its outcome."""

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
