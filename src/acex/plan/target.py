"""Targets: which answers of the model are wanted. A new kind of target is one class.

A target says whether an answer is a *hit*, how far it is from one, and describes itself as text. It may depend on the
factual's label, `before`. Most targets are about labels; `Measured` targets are about a number: the output of a
regressor, or the probability of a label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd

from acex.values import Label, did_you_mean, is_finite, is_fraction, listed, plain, readable, spelling

SURE = 1e-6  # added to probabilities before taking their log odds

Scores: TypeAlias = Sequence[tuple[Label, float]]


class Target(ABC):
    """Which answers are hits."""

    @staticmethod
    def of(wanted: Any) -> Target:
        """The target given as a target, a label, several labels, None (any other), or the value of `described`."""
        if isinstance(wanted, Target):
            return wanted
        if wanted is None:
            return Labels()
        if isinstance(wanted, Mapping):
            return _measured(wanted)
        is_one = isinstance(wanted, (str, bytes)) or not isinstance(
            wanted, (Sequence, Set, np.ndarray, pd.Series, pd.Index)
        )
        if isinstance(wanted, Set):  # in the same order in all processes
            wanted = sorted(wanted, key=lambda label: (type(label).__name__, label))
        labels = tuple(plain(label) for label in ([wanted] if is_one else wanted))
        are_labels = [isinstance(label, (str, bool, int, float)) and not is_fraction(label) for label in labels]
        if not labels or not all(are_labels):
            raise ValueError(
                f"target: expected a label (text, a whole number or a Boolean), a list of labels, None for any other "
                f"than the one x has, or one range of numbers such as acex.AtLeast(0.5); got {wanted!r}."
            )
        return Labels(tuple(dict.fromkeys(labels)))

    @property
    @abstractmethod
    def described(self) -> Any:
        """The target as JSON-compatible values; `Target.of` reads them."""

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """The target as display text."""

    @property
    def range_text(self) -> str:
        """The range of numbers that are hits, as text; empty for targets about labels."""
        return ""

    def value(self, label: Label, scores: Scores | None) -> Label:
        """The part of an answer that decides whether it is a hit; None if the answer does not contain it.

        Raises:
            ValueError: the answer is of another kind.
        """
        if is_fraction(label):
            raise ValueError(
                f"the model answered {label!r}, a number and not a label: use a target for numbers, such as "
                f"acex.AtLeast(...), or give a model with labels another name."
            )
        return label

    def named(self, words: Mapping[Label, Label]) -> Target:
        """The same target with its labels replaced as in `words`."""
        return self

    @abstractmethod
    def is_hit(self, label: Label, before: Label) -> bool:
        """Whether this label is a hit for a factual with the label `before`."""

    def is_hinted(self, outcome: Label, before: Label) -> bool:
        """Whether a known outcome of a row suggests that the row is a hit."""
        return self.is_hit(outcome, before)

    def is_met(self, before: Label) -> bool:
        """Whether a factual with this label already meets the target."""
        return self.is_hit(before, before)

    @abstractmethod
    def same_hits(self, before: Label) -> Hashable:
        """A key that is equal for two factuals if the same labels are hits for both."""

    @abstractmethod
    def refuse_foreign(self, known: Sequence[Label]) -> None:
        """Raise if a model with these labels can never give a hit."""

    def probability(self, scores: Scores | None, before: Label) -> float | None:
        """The model's probability of a hit; None without scores."""
        return None if scores is None else float(sum(p for label, p in scores if self.is_hit(label, before)))

    def refuse_start(self, before: Label) -> None:  # noqa: B027 (most targets make sense for every factual)
        """Raise if the target makes no sense for a factual with this label."""

    def width(self, before: Label) -> float | None:
        """Width of the range of numbers that are hits; None if `odds` are log odds."""
        return None

    def odds(self, label: Label, scores: Scores | None, before: Label) -> float | None:
        """Log odds of the likeliest hit against the likeliest miss, positive if the label is a hit and negative if not.

        None without scores.
        """
        if scores is None:
            return None
        hit = max((p for other, p in scores if self.is_hit(other, before)), default=0.0)
        miss = max((p for other, p in scores if not self.is_hit(other, before)), default=0.0)
        odds = float(np.log((hit + SURE) / (miss + SURE)))
        # A model may use another threshold than the scores suggest; its label decides.
        return max(odds, SURE) if self.is_hit(label, before) else min(odds, -SURE)


@dataclass(frozen=True)
class Labels(Target):
    """One of these labels; without any, every label except the factual's."""

    labels: tuple[Label, ...] = ()

    @property
    def described(self) -> Any:
        return list(self.labels) if len(self.labels) > 1 else next(iter(self.labels), None)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(map(str, self.labels)) or ("any other",)

    def named(self, words: Mapping[Label, Label]) -> Labels:
        return Labels(tuple(words.get(label, label) for label in self.labels))

    def is_hit(self, label: Label, before: Label) -> bool:
        if self.labels:
            return label in self.labels
        return label != before and spelling(label) != spelling(before)  # 1 and 1.0 are equal, "No" and "no" one label

    def same_hits(self, before: Label) -> Hashable:
        return self.labels or (None, before)

    def refuse_start(self, before: Label) -> None:
        if before not in self.labels and spelling(before) in map(spelling, self.labels):
            raise ValueError(
                f"target {self.described!r} differs from the label of the row only in capitals or spaces. Did you mean "
                f"{before!r}? The row has that label already."
            )

    def refuse_foreign(self, known: Sequence[Label]) -> None:
        for label in self.labels:
            if label not in known:
                hint = did_you_mean(label, known)
                raise ValueError(f"target {label!r} is not a label of the model, which gives [{listed(known)}].{hint}")


class Measured(Target):
    """A target about a number: the model's answer, or the probability of the label `label`.

    The subclasses are dataclasses with one or two numbers and the label.
    """

    key: ClassVar[str]  # name in files
    label: Label | None  # the label whose probability is meant; None: the answer itself

    def __post_init__(self) -> None:
        """Converts numbers to floats, so that 100 and 100.0 are the same target."""
        kind = type(self).__name__
        for name, number in self._numbers.items():
            if isinstance(number, (bool, np.bool_)) or not is_finite(number):
                raise ValueError(f"{kind}: {name} must be a finite number, got {number!r}.")
            if self.label is not None and name != "change" and not 0 <= number <= 1:
                raise ValueError(f"{kind}: {name} is a probability: expected a number from 0 to 1, got {number!r}.")
            object.__setattr__(self, name, float(number))
        label = plain(self.label)
        if not (label is None or isinstance(label, (str, bool, int, float))):
            raise ValueError(f"{kind}: label must be one of the model's, got {label!r}.")
        object.__setattr__(self, "label", label)

    @property
    def _numbers(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if name != "label"}

    @abstractmethod
    def limits(self, before: float) -> tuple[float, float]:
        """The smallest and the largest number that is a hit; infinite if there is no limit."""

    @property
    def _range(self) -> str:
        """The range as text."""
        low, high = self.limits(0.0)
        one_end = f"at most {readable(high)}" if low == -inf else f"at least {readable(low)}"
        return one_end if inf in (-low, high) else f"{readable(low)} to {readable(high)}"

    @property
    def described(self) -> dict[str, Any]:
        numbers = list(self._numbers.values())
        limits = numbers if len(numbers) > 1 else numbers[0]
        return {self.key: limits} | ({} if self.label is None else {"label": self.label})

    @property
    def range_text(self) -> str:
        return self._range if self.label is None else f"{self.label} with a probability of {self._range}"

    @property
    def words(self) -> tuple[str, ...]:
        return (self.range_text,)

    def named(self, words: Mapping[Label, Label]) -> Target:
        return self if self.label not in words else Target.of(self.described | {"label": words[self.label]})

    def value(self, label: Label, scores: Scores | None) -> Label:
        if self.label is not None:
            return None if scores is None else dict(scores).get(self.label, 0.0)
        if isinstance(label, bool) or not isinstance(label, (int, float)):
            raise ValueError(
                f"the model answered {label!r}, which is not a number. For the probability of a label use "
                f"acex.{type(self).__name__}(..., label={label!r}) with scores=True; a model that also answers with "
                f"labels needs another name for its numbers."
            )
        return float(label)

    def is_hit(self, label: Label, before: Label) -> bool:
        low, high = self.limits(_number(before))
        return low <= _number(label) <= high

    def is_hinted(self, outcome: Label, before: Label) -> bool:
        return self.is_hit(outcome if self.label is None else float(outcome == self.label), before)

    def same_hits(self, before: Label) -> Hashable:
        return (self.label, *self.limits(_number(before)))

    def refuse_foreign(self, known: Sequence[Label]) -> None:
        if self.label is not None and self.label not in known:
            raise ValueError(f"target: {self.label!r} is not a label of the model, which gives [{listed(known)}].")
        if self.label is None and any(isinstance(label, (str, bool)) for label in known):
            raise ValueError(
                f"target: expected a number, but the model returns labels [{listed(known)}]. For the probability of "
                f"one use acex.{type(self).__name__}(..., label={known[0]!r}), with scores=True."
            )

    def probability(self, scores: Scores | None, before: Label) -> float | None:
        """None: the target is about a number, not about the probability of a hit."""
        return None

    def width(self, before: Label) -> float:
        low, high = self.limits(_number(before))
        return high - low

    def odds(self, label: Label, scores: Scores | None, before: Label) -> float:
        """How far the number is beyond the end of the range on the factual's side; negative if it is not reached.

        In the model's units, which the search rescales.
        """
        low, high = self.limits(_number(before))
        return high - _number(label) if _number(before) > high else _number(label) - low


@dataclass(frozen=True)
class Between(Measured):
    """A number from `low` to `high`, both included; `low` is below `high`.

    Args:
        label: the label whose probability is meant (with `scores=True`); by default the number is the model's answer.

    Example:
        >>> import acex
        >>> acex.Between(100, 120).words
        ('100 to 120',)
    """

    low: float
    high: float
    label: Label | None = None
    key = "between"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            what = "the first number must be below the second; one number alone is hardly ever hit"
            raise ValueError(f"Between({self.low!r}, {self.high!r}): {what}.")

    def limits(self, before: float) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True)
class AtLeast(Measured):
    """At least this number; `label` as in `Between`."""

    least: float
    label: Label | None = None
    key = "at_least"

    def limits(self, before: float) -> tuple[float, float]:
        return self.least, inf


@dataclass(frozen=True)
class AtMost(Measured):
    """At most this number; `label` as in `Between`."""

    most: float
    label: Label | None = None
    key = "at_most"

    def limits(self, before: float) -> tuple[float, float]:
        return -inf, self.most


@dataclass(frozen=True)
class Relative(Measured):
    """At least this share more than the factual's own number, or less if the share is negative: 0.1 is 10 % more.

    The share refers to the absolute value: 10 % more than -50 is -45. `label` as in `Between`.
    """

    change: float
    label: Label | None = None
    key = "relative"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.change == 0:
            raise ValueError("Relative(0): expected a change, such as Relative(0.1) for 10 % more.")
        if self.change < -1:
            raise ValueError(
                f"Relative({self.change!r}): {readable(-100 * self.change)} % less is below zero. For 15 % less use "
                f"Relative(-0.15); for a number below zero, acex.AtMost."
            )

    @property
    def _range(self) -> str:
        return f"at least {readable(100 * abs(self.change))} % {'more' if self.change > 0 else 'less'} than now"

    def limits(self, before: float) -> tuple[float, float]:
        end = before + self.change * abs(before)
        return (end, inf) if self.change > 0 else (-inf, end)

    def refuse_start(self, before: Label) -> None:
        if _number(before) == 0:
            raise ValueError(
                f"target {self._range}: undefined, because the model's answer for x is 0. Use the number itself, "
                f"such as acex.AtLeast(1)."
            )


def _number(label: Label) -> float:
    assert isinstance(label, (int, float))
    return label


MEASURED: dict[str, Callable[..., Measured]] = {kind.key: kind for kind in (Between, AtLeast, AtMost, Relative)}


def _measured(described: Mapping[str, Any]) -> Measured:
    """The target described by a mapping such as {"between": [100, 120]}."""
    given = dict(described)
    label = given.pop("label", None)
    if len(given) != 1 or (key := next(iter(given))) not in MEASURED:
        raise ValueError(
            f"target must have one of {listed(MEASURED)}, as in {{'between': [100, 120]}}, got {described!r}."
        )
    limits = given[key]
    try:
        return MEASURED[key](*(limits if key == Between.key else [limits]), label=label)
    except TypeError:
        raise ValueError(f"target: {key} cannot be {limits!r}; expected as in {{'between': [100, 120]}}.") from None
