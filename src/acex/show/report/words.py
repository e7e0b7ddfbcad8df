"""What the report says in sentences: what came of it, what was held fixed, and how sure it is."""

from __future__ import annotations

import numpy as np

from acex.engine.explanation import Explanation, is_reference_row, labels_as_text, labels_of
from acex.plan.target import Measured
from acex.space.rules import Rule
from acex.values import answer_text, is_missing, joined_words, readable

LATELY = 10  # queries at the end, over which progress is shown

ENDED = {
    "budget": "The budget was spent.",
    "settled": "The search settled: further queries were not expected to pay.",
    "exhausted": "There was nothing left to ask.",
}


def is_about_numbers(explanation: Explanation) -> bool:
    """Is a number wanted, and not a label?"""
    return isinstance(explanation.plan.target, Measured)


def wanted(explanation: Explanation) -> str:
    """The label that was wanted, or the range of numbers."""
    return joined_words(explanation.plan.target.named(explanation.plan.class_names).words, "or")


def price(explanation: Explanation, per_row: float | None) -> str:
    """What was asked and what it cost."""
    n, known = explanation.n_queries, explanation.n_reused
    budget = explanation.settings.get("budget")
    of = "" if budget is None else f" of at most {budget}"
    asked = f"The model was asked for {n}{of} {'row' if (budget or n) == 1 else 'rows'}"
    money = "" if per_row is None else f", at {per_row:g} each: {n * per_row:.6g} in all"
    reused = {0: "", 1: " One more answer was known before and free."}.get(
        known, f" {known} more answers were known before and free."
    )
    return f"{asked}{money}.{reused}"


# -- what was held fixed -------------------------------------------------------------------------------------------


def has_limits(explanation: Explanation) -> bool:
    """Is it known what was held fixed? Ledgers of an older acex do not tell, nor the standard deviations."""
    return bool(explanation.plan.scale.deviations.any())


def may_become(explanation: Explanation, j: int) -> str:
    """What feature j could become, and why no more than that."""
    feature, now = explanation.plan.space.features[j], explanation.factual.iloc[j]
    if not has_limits(explanation):
        return "not recorded"
    if feature.frozen:
        return "frozen: stays"
    if explanation.plan.scale.deviations[j] == 0:
        return "stays: the same in all known rows"
    limits = (explanation.settings.get("ranges") or {}).get(feature.name)
    if limits is None and is_missing(now):
        return "stays missing: no value was asked for"
    if limits is not None and all(map(is_missing, limits)) and len(limits) == 1:
        return "missing, as asked for"
    bounds = feature.span() if limits is None else f"limited to {feature.span(tuple(limits))}"
    if feature.direction is not None:
        way = "more" if feature.direction == "increase" else "less"
        return f"{bounds}; only {way} than {feature.text(now)}"
    return bounds


def held_fixed(explanation: Explanation) -> list[str]:
    """A sentence for each kind of limit that there was."""
    if not has_limits(explanation):
        return ["What was frozen or limited is not recorded."]
    features = explanation.plan.space.features
    frozen = [f.name for f in features if f.frozen]
    directed = {way: [f.name for f in features if f.direction == way] for way in ("increase", "decrease")}
    weighted = [f"{f.name} (× {readable(float(f.weight))})" for f in features if f.weight != 1]
    limited = list(explanation.settings.get("ranges") or {})
    out = [f"Frozen: {joined_words(frozen)}."] if frozen else ["No feature was frozen."]
    out += [f"Could only {way}: {joined_words(names)}." for way, names in directed.items() if names]
    if limited:
        out.append(f"Limited by the caller: {joined_words(limited)}.")
    if weighted:
        out.append(f"Changes counted more or less than others: {joined_words(weighted)}.")
    out += [
        f"Rule: {Rule.of(text, explanation.plan.space).sentence}" for text in explanation.settings.get("rules") or ()
    ]
    if n := explanation.settings.get("redacted_rules"):
        out.append(f"{n} {'rule is' if n == 1 else 'rules are'} left out with the columns that they name.")
    if explanation.settings.get("functions"):
        out.append("A rule of the caller's own over whole rows held in every query after the row itself.")
    return out


# -- how sure we are -----------------------------------------------------------------------------------------------


def certainty(explanation: Explanation) -> list[tuple[str, str]]:
    """What is known and what is not, each with a heading of a few words."""
    parts = [("Who decided", _whose_word(explanation)), ("Is there less to change?", _progress(explanation))]
    if explanation.outcome == "found":
        parts += [("Does it look real?", _plausibility(explanation)), ("Does it stay?", _steadiness(explanation))]
    parts.append(
        (
            "What it is not",
            "A counterfactual says how this model would decide, not what would happen in the world. It is no causal "
            "advice: a change made in life may bring other changes with it, and the decision may rest on something "
            "else by then.",
        )
    )
    return parts


def _whose_word(explanation: Explanation) -> str:
    if explanation.outcome == "found":
        others = " So was each alternative." if len(explanation.costs) > 1 else ""
        verb = "given the number" if is_about_numbers(explanation) else "labelled"
        return (
            f"The changed row was {verb} {labels_as_text(explanation)[1]} by the model itself, in one of the queries "
            f"below, not by an estimate of it.{others}{_votes(explanation)}"
        )
    labels = dict.fromkeys(labels_of(explanation))
    answers = joined_words([answer_text(label) for label in labels])
    n = len(explanation.steps)
    rows = "the row itself" if n == 1 else f"the row and {n - 1} changed versions of it"
    verb = "judged" if is_about_numbers(explanation) else "labelled"
    return f"The model itself {verb} {rows}: it answered {answers}. Wanted was {wanted(explanation)}."


def _votes(explanation: Explanation) -> str:
    """With noise, how sure the answer is."""
    if not explanation.ending.votes:
        return ""
    share = explanation.settings.get("noise")
    assumed = "repeated queries showed how often" if share == "auto" else f"it was assumed that {share:.3g} of"
    return (
        f" The model contradicts itself, and {assumed} its answers are wrong. By that the row is "
        f"{explanation.ending.sureness()}."
    )


def _progress(explanation: Explanation) -> str:
    if explanation.outcome == "already_target":
        return explanation.advice
    if explanation.outcome != "found":
        never = "That none was found does not prove that there is none."
        return f"{explanation.advice} {never}"
    best = np.array([step.best for step in explanation.steps], dtype=float)
    n, last = len(best), int(np.argmax(best == best[-1])) + 1
    earlier = best[max(n - 1 - LATELY, 0)]
    if np.isfinite(best).sum() == 1:
        trend = "The first hit came with the very last query: no smaller change was tried."
    elif last == n:
        trend = "The very last query still brought an improvement, so more queries may well bring another."
    elif np.isfinite(earlier) and earlier > best[-1]:
        trend = f"Over the last {min(LATELY, n - 1)} queries the cost fell from {earlier:.3g} to {best[-1]:.3g}."
    else:
        trend = f"The best was found with query {last}; the {n - last} after it brought nothing better."
    return f"{ENDED[explanation.stopped_by]} {trend} {_closer(explanation)}"


def _closer(explanation: Explanation) -> str:
    closer = explanation.ending.improvement_odds
    if not closer:
        return "A smaller change may exist: not every row was tried."
    tenth, quarter, half = (f"{chance:.0%}" for chance in closer)
    return (
        f"The chance that a counterfactual at least 10% cheaper exists, among what the search could reach, is about "
        f"{tenth}; 25% cheaper {quarter}, 50% cheaper {half}. These chances were learned on simulated tasks."
    )


def _plausibility(explanation: Explanation) -> str:
    settings = explanation.settings
    n = settings.get("n_reference")
    among = "the known rows" if n is None else f"the {n} known rows"
    if is_reference_row(explanation):
        return f"It is one of {among}, as it stands there."
    if "plausibility" in settings and settings["plausibility"] is None:
        return "Nobody checked: the filter for plausibility was turned off."
    joint = (settings.get("plausibility") or {}).get("kind") == "joint"
    how = f"its values fit each other as in {among}" if joint else f"local outlier factor among {among}"
    if not explanation.affinities:
        return f"It passed the filter ({how}); how clearly is not recorded."
    return (
        f"It is no outlier ({how}): affinity {explanation.affinities[0]:.2f}, where 1 is a row like others. That such "
        f"a person or thing can exist does not follow.{_least_usual(explanation)}"
    )


def _least_usual(explanation: Explanation) -> str:
    why = explanation.ending.rarest_values[0] if explanation.ending.rarest_values else ""
    return f" Least usual about it: {why}." if why else ""


def _steadiness(explanation: Explanation) -> str:
    own = ""
    if explanation.probabilities:
        own = f"The model itself gives the changed row a probability of {explanation.probabilities[0]:.2f} for this. "
    if not explanation.robustness:
        return own + (
            "No margin was asked for. The changed row may lie close to where the model changes its mind: a slightly "
            "different row, or the retrained model, may be decided otherwise."
        )
    margin = (explanation.settings.get("strategy") or {}).get("margin")
    asked = " No margin was asked for." if is_missing(margin) else f" A margin of {margin:g} was asked for."
    return own + (
        f"By the estimate of the search, {100 * explanation.robustness[0]:.0f}% of the rows close to it are decided "
        f"alike.{asked} An estimate, no promise."
    )
