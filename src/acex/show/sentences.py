"""Changes as sentences, for letters and the title of a report; `Templates` holds the sentences of a language."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from acex.engine.explanation import Explanation, labels_as_text, n_redacted_changes
from acex.plan.target import Measured
from acex.space.feature import MISSING
from acex.values import is_missing, listed

OUTCOMES = {  # as shown in the tables of all pages
    "found": "found",
    "already_target": "nothing to change",
    "budget_spent": "not found: budget spent",
    "time_spent": "not found: time limit",
    "unlikely": "not found: unlikely",
    "exhausted": "not found: nothing left to send",
    "failed": "failed",
    "unfinished": "unfinished",
}
ROBUST = 0.8  # small differences hardly matter if at least this share of close rows has the same answer
MOST_IN_ONE = 6  # maximum number of changes named in one sentence; the others are only counted
BARE = ("yes", "no", "true", "false", "y", "n")  # labels that cannot start a sentence
PLACES = {
    **dict.fromkeys(("increase", "decrease", "switch", "condition"), ("feature", "before", "after", "unit")),
    **dict.fromkeys(("label", "measured", "already", "becomes", "stays", "nothing"), ("label",)),
    "opening": ("label", "conditions"),
    "chance": ("label", "of"),
    "more": ("n",),
    "hidden": (),
    "failed": ("error",),
}


def check_places(where: str, text: str, known: Collection[str]) -> None:
    """Raise unless every placeholder of the text, as in `str.format`, is one of the known names."""
    try:
        places = {place for _, place, _, _ in Formatter().parse(text) if place is not None}
    except ValueError as error:
        raise ValueError(f"{where}: {text!r}: {error}.") from None
    if unknown := sorted(places - set(known)):
        raise ValueError(f"{where}: {text!r}: unknown place {listed(unknown)}; expected {listed(known)}.")


@dataclass(frozen=True)
class Templates:
    """The sentences of a language: texts with placeholders in braces, filled by `str.format`.

    Those of a change are `{feature}`, `{before}`, `{after}` and `{unit}`, which starts with a space or is empty.

    Attributes:
        increase, decrease, switch: the sentence about a number that rises or falls, or a category.
        condition: one change within the opening.
        opening: the sentence about all changes, from `{label}` and `{conditions}`.
        comma, last: between two conditions, and before the last one.
        more: the last condition if there are too many for one sentence; `{n}` is at least 2.
        hidden: the condition that replaces redacted changes.
        label: a label that is not a text, such as 1.
        measured, chance: if the target is a number: the model's answer, or the probability of label `{of}`.
        unchecked: follows the sentence about a change that was not checked.
        already, nothing, failed: replaces the opening if nothing has to change, nothing was found, or the row could
            not be explained.
        becomes, stays: replaces a label that cannot start a sentence, such as "no".
        decimal, thousands: the decimal point, and the separator of groups of three digits.
        words: translations of features, categories, units and labels; names without one are used as they are.

    Raises:
        ValueError: a text has an unknown placeholder.

    Example:
        >>> import acex
        >>> german = acex.sentences.Templates(switch="{feature}: {after} statt {before}", words={"housing": "Wohnung"})
        >>> german.words["housing"]
        'Wohnung'
    """

    increase: str = "{feature} would have to rise from {before} to {after}{unit}."
    decrease: str = "{feature} would have to fall from {before} to {after}{unit}."
    switch: str = "{feature} would have to change from {before} to {after}."
    condition: str = "{feature} were {after} instead of {before}{unit}"
    opening: str = "{label} if {conditions}."
    comma: str = ", "
    last: str = " and "
    more: str = "{n} more features changed"
    hidden: str = "features that are left out here were different"
    label: str = "label {label}"
    measured: str = "an answer of {label}"
    chance: str = "a probability of {label} for {of}"
    unchecked: str = " Whether this is needed was not checked."
    already: str = "{label} as it is: nothing has to change."
    nothing: str = "{label} as before: no change was found that alters the decision."
    becomes: str = "the decision becomes {label}"
    stays: str = "the decision is {label}"
    failed: str = "This row could not be explained. {error}"
    decimal: str = "."
    thousands: str = ""
    words: Mapping[str, str] = field(default_factory=lambda: {"True": "yes", "False": "no"})

    def __post_init__(self) -> None:
        for name, known in PLACES.items():
            check_places(name, getattr(self, name), known)

    def word(self, name: Any) -> str:
        """The name of a feature, category or unit in this language."""
        return self.words.get(str(name), str(name))

    def labelled(self, label: Any) -> str:
        """The name of a label in this language."""
        known = isinstance(label, str) or str(label) in self.words
        return self.word(label) if known else self.label.format(label=label)

    def number(self, text: str) -> str:
        """A number with a decimal point, as this language writes it."""
        digits, _, fraction = text.partition(".")
        digits = re.sub(r"(?<=\d)(?=(\d{3})+$)", lambda _: self.thousands, digits)
        return f"{digits}{self.decimal}{fraction}" if fraction else digits


ENGLISH = Templates()


def sentences(explanation: Explanation, templates: Templates = ENGLISH) -> list[str]:
    """A sentence for each change of the best counterfactual, largest step first; empty if none was found."""
    known = explanation.ending.needed  # empty if it was not recorded
    marks = explanation.changes["needed"].tolist() if known else [""] * len(explanation.changes)
    return [
        _capital(getattr(templates, kind).format(**change)) + (templates.unchecked if mark == "not checked" else "")
        for (kind, change), mark in zip(_changes(explanation, templates), marks, strict=True)
    ]


def one_sentence(explanation: Explanation, templates: Templates = ENGLISH) -> str:
    """The explanation as one sentence: "Approved if duration were 18 instead of 36 months." """
    if explanation.outcome == "failed":
        return templates.failed.format(error=explanation.error)
    if explanation.outcome != "found":
        text = templates.already if explanation.outcome == "already_target" else templates.nothing
        return _capital(text.format(label=_labelled(explanation, templates, 0)))
    conditions = [templates.condition.format(**change) for _, change in _changes(explanation, templates)]
    if len(conditions) > MOST_IN_ONE + 1:  # a single further change is named instead of counted
        conditions[MOST_IN_ONE:] = [templates.more.format(n=len(conditions) - MOST_IN_ONE)]
    if not conditions or n_redacted_changes(explanation):
        conditions.append(templates.hidden)
    *others, last = conditions
    joined = templates.comma.join(others) + (templates.last if others else "") + last
    return _capital(templates.opening.format(label=_labelled(explanation, templates, 1), conditions=joined))


def robustness_sentence(share: float) -> str:
    """How much small differences matter, in words, from the estimated share of close rows with the same answer."""
    n = round(100 * share)
    if share >= ROBUST:
        return f"Small differences hardly matter: of 100 rows almost like this, about {n} would be decided the same."
    close = f"Close to the limit: of 100 rows almost like this, only about {n} would be decided the same."
    return f"{close} A somewhat larger change is safer."


def cost_texts(costs: Sequence[float]) -> list[str]:
    """Costs with their unit, with enough digits to tell different costs apart."""
    texts = list[str]()
    for digits in range(3, 10):
        texts = [f"{cost:.{digits}g} sd" for cost in costs]
        if len(set(texts)) == len(set(costs)):
            break
    return texts


def answer(explanation: Explanation, templates: Templates, which: int) -> str:
    """The model's answer before (0) or after (1), as text: the name of a label, or a number."""
    if isinstance(explanation.plan.target, Measured):
        return templates.number(labels_as_text(explanation)[which])
    return templates.labelled((explanation.label_before, explanation.label_after)[which])


def _labelled(explanation: Explanation, templates: Templates, which: int) -> str:
    """Like `answer`, worded as the beginning of a sentence."""
    target, text = explanation.plan.target, answer(explanation, templates, which)
    if not isinstance(target, Measured):
        sentence = (templates.stays, templates.becomes)[which]
        return sentence.format(label=text) if text.lower() in BARE else text  # "No if ..." would be misread
    if target.label is None:
        return templates.measured.format(label=text)
    return templates.chance.format(label=text, of=templates.word(target.label))


def _changes(explanation: Explanation, templates: Templates) -> Iterator[tuple[str, dict[str, str]]]:
    """For each change of the best counterfactual, the name of its template and the values of the placeholders."""
    for name, before, after in explanation.changes[["feature", "before", "after"]].itertuples(index=False, name=None):
        feature = explanation.plan.space.feature(name)
        has_gap = is_missing(before) or is_missing(after)
        write = templates.number if feature.is_number else templates.word
        unit = f" {templates.word(feature.unit)}" if feature.unit else ""
        first, second = (write(text) for text in feature.texts(before, after))
        if has_gap:  # only the value that is not missing has a unit
            first, second = (
                templates.word(MISSING) if is_missing(value) else f"{text}{unit}"
                for value, text in ((before, first), (after, second))
            )
            unit = ""
        change = {"feature": templates.word(name), "before": first, "after": second, "unit": unit}
        is_switch = has_gap or not feature.is_number
        yield "switch" if is_switch else "increase" if after > before else "decrease", change


def _capital(sentence: str) -> str:
    """The sentence with a capital letter, unless it starts with a name such as pH or x0."""
    first = sentence.split(maxsplit=1)[:1]
    is_word = bool(first) and first[0].rstrip(".,:;").isalpha() and first[0].islower()
    return sentence[0].upper() + sentence[1:] if is_word else sentence
