"""The changes as sentences, for letters and for the head of a report; other languages bring their own `Templates`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

from acex.engine.explanation import Explanation, labels_as_text
from acex.plan.target import Measured
from acex.space.feature import MISSING
from acex.values import is_missing, listed

MOST_IN_ONE = 6  # changes that one sentence can hold; the rest is counted
BARE = ("yes", "no", "true", "false", "y", "n")  # labels that need a verb
_CHANGE = ("feature", "before", "after", "unit")
_PLACES = {
    "increase": _CHANGE,
    "decrease": _CHANGE,
    "switch": _CHANGE,
    "condition": _CHANGE,
    "opening": ("label", "conditions"),
    "more": ("n",),
    "hidden": (),
    "label": ("label",),
    "measured": ("label",),
    "chance": ("label", "of"),
    "already": ("label",),
    "becomes": ("label",),
    "stays": ("label",),
    "nothing": ("label",),
    "failed": ("error",),
}


@dataclass(frozen=True)
class Templates:
    """How sentences are made: texts with places in braces, as `str.format` fills them.

    Of a change there are `{feature}`, `{before}`, `{after}` and `{unit}`, which brings its own space in front and is
    empty where there is none.

    Attributes:
        increase, decrease, switch: the sentence about one number that rises or falls, or one category.
        condition: one change within the opening.
        opening: the sentence about all changes, from `{label}` and `{conditions}`.
        comma, last: what stands between two conditions, and before the last one.
        more: the last condition where there are more than a reader can take in; `{n}` is at least 2.
        hidden: the condition where every change is left out, as `redact=` does.
        label: what stands for a label that is no text, such as 1.
        measured, chance: the same where a number was wanted: the model's answer, or the probability of label `{of}`.
        unchecked: after the sentence about a change that was not checked.
        already, nothing, failed: instead of the opening, when nothing had to be changed, nothing was found, or the
            row could not be explained.
        becomes, stays: what stands for a label in these sentences that is no word for a decision, such as "no".
        decimal, thousands: what stands in numbers at the decimal point and between groups of three digits.
        words: what features, categories, units and labels are called; those that are missing keep their name.

    Raises:
        ValueError: a text has a place that nothing fills.

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
    hidden: str = "what is left out here were different"
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
        for name, known in _PLACES.items():
            text = getattr(self, name)
            try:
                places = {place for _, place, _, _ in Formatter().parse(text) if place is not None}
            except ValueError as error:
                raise ValueError(f"{name}: {text!r}: {error}.") from None
            strange = sorted(places - set(known))
            if strange:
                raise ValueError(f"{name}: {text!r}: nothing fills {listed(strange)}; there are {listed(known)}.")

    def word(self, name: Any) -> str:
        """What this feature, category or unit is called."""
        return self.words.get(str(name), str(name))

    def labelled(self, label: Any) -> str:
        """What this label is called."""
        known = isinstance(label, str) or str(label) in self.words
        return self.word(label) if known else self.label.format(label=label)

    def decided(self, label: Any, sentence: str) -> str:
        """What this label is called at the head of a sentence: "No if ..." would be read as something else."""
        word = self.labelled(label)
        return sentence.format(label=word) if word.lower() in BARE else word

    def number(self, text: str) -> str:
        """A number, written with a decimal point, as it is written in this language."""
        digits, _, fraction = text.partition(".")
        digits = re.sub(r"(?<=\d)(?=(\d{3})+$)", lambda _: self.thousands, digits)
        return f"{digits}{self.decimal}{fraction}" if fraction else digits


ENGLISH = Templates()


def sentences(explanation: Explanation, templates: Templates = ENGLISH) -> list[str]:
    """A sentence for each change of the best counterfactual, largest step first; none when nothing was found."""
    known = explanation.ending.needed  # empty where it was not recorded
    marks = explanation.changes["needed"].tolist() if known else [""] * len(explanation.changes)
    return [
        _capital(getattr(templates, kind).format(**change)) + (templates.unchecked if mark == "not checked" else "")
        for (kind, change), mark in zip(_changes(explanation, templates), marks, strict=True)
    ]


def one_sentence(explanation: Explanation, templates: Templates = ENGLISH) -> str:
    """What it takes, as one sentence of plain text: "Approved if duration were 18 instead of 36 months."

    Where nothing was found, or nothing has to change, the sentence says so.
    """
    if explanation.outcome == "failed":
        return templates.failed.format(error=explanation.error)
    if explanation.outcome != "found":
        text = templates.already if explanation.outcome == "already_target" else templates.nothing
        return _capital(text.format(label=_labelled(explanation, templates, 0)))
    conditions = [templates.condition.format(**change) for _, change in _changes(explanation, templates)]
    if len(conditions) > MOST_IN_ONE + 1:  # not for a single one, which takes no more room than its count
        conditions[MOST_IN_ONE:] = [templates.more.format(n=len(conditions) - MOST_IN_ONE)]
    *others, last = conditions or [templates.hidden]
    joined = templates.comma.join(others) + (templates.last if others else "") + last
    return _capital(templates.opening.format(label=_labelled(explanation, templates, 1), conditions=joined))


def _labelled(explanation: Explanation, templates: Templates, which: int) -> str:
    """What the answer before (0) or after (1) is called."""
    target = explanation.plan.target
    if not isinstance(target, Measured):
        sentence = (templates.stays, templates.becomes)[which]
        return templates.decided((explanation.label_before, explanation.label_after)[which], sentence)
    number = templates.number(labels_as_text(explanation)[which])
    if target.label is None:
        return templates.measured.format(label=number)
    return templates.chance.format(label=number, of=templates.word(target.label))


def _changes(explanation: Explanation, templates: Templates) -> Iterator[tuple[str, dict[str, str]]]:
    """Each change of the best counterfactual: the name of its template, and what fills the places in it."""
    for name, before, after in explanation.changes[["feature", "before", "after"]].itertuples(index=False, name=None):
        feature = explanation.plan.space.feature(name)
        leaps = is_missing(before) or is_missing(after)
        write = templates.number if feature.is_number else templates.word
        unit = f" {templates.word(feature.unit)}" if feature.unit else ""
        first, second = (write(text) for text in feature.texts(before, after))
        if leaps:  # of the two, only a number has a unit
            first, second = (
                templates.word(MISSING) if is_missing(value) else f"{text}{unit}"
                for value, text in ((before, first), (after, second))
            )
            unit = ""
        change = {"feature": templates.word(name), "before": first, "after": second, "unit": unit}
        yield "switch" if leaps else feature.verb(before, after), change


def _capital(sentence: str) -> str:
    """The sentence with a capital in front, unless it begins with a name that is no plain word, such as pH or x0."""
    first = sentence.split(maxsplit=1)[:1]
    is_word = bool(first) and first[0].rstrip(".,:;").isalpha() and first[0].islower()
    return sentence[0].upper() + sentence[1:] if is_word else sentence
