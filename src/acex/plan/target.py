"""What is wanted of the model's answer. A new kind of target is one class.

A target says whether an answer is a *hit*, how far it is from being one, and in words what it wants. What is wanted may
depend on the label that the factual has: `before`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from acex.values import Label, listed, plain

SURE = 1e-6  # no probability is closer to 0 or 1 than this

Scores: TypeAlias = Sequence[tuple[Label, float]]


class Target(ABC):
    """Which answers are hits."""

    @staticmethod
    def of(said: Any) -> Target:
        """From what a user says, or a file: a target, a label, several of them, or None."""
        if isinstance(said, Target):
            return said
        if said is None:
            return AnyOther()
        several = isinstance(said, (Sequence, Set, np.ndarray)) and not isinstance(said, (str, bytes))
        wanted = tuple(plain(label) for label in (said if several else [said]))
        if not wanted:
            raise ValueError("target is empty: name a label, or None for any other than the one x has.")
        return OneOf(tuple(dict.fromkeys(wanted)))

    @property
    @abstractmethod
    def said(self) -> Any:
        """As a user would say it, and as JSON holds it."""

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """What would do, for people."""

    def named(self, words: Mapping[Label, Label]) -> Target:
        """The same in other words for the labels, as far as it names any."""
        return self

    @abstractmethod
    def is_hit(self, label: Label, before: Label) -> bool:
        """Is this label wanted, for a factual with the label `before`?"""

    @abstractmethod
    def is_met(self, before: Label) -> bool:
        """Does a factual with this label have what is wanted already?"""

    @abstractmethod
    def same_hits(self, before: Label) -> Hashable:
        """Equal for two factuals where the same labels are hits."""

    @abstractmethod
    def refuse_foreign(self, known: Sequence[Label]) -> None:
        """Raise when the model, which gives these labels, can never give what is wanted."""

    def odds(self, label: Label, scores: Scores | None, before: Label) -> float | None:
        """Log odds of the likeliest hit against the likeliest miss, on the side that the label is on: how far off.

        None without scores.
        """
        if scores is None:
            return None
        hit = max((p for other, p in scores if self.is_hit(other, before)), default=0.0)
        miss = max((p for other, p in scores if not self.is_hit(other, before)), default=0.0)
        odds = float(np.log((hit + SURE) / (miss + SURE)))
        # A model may decide by another threshold than the scores suggest; its label is what counts.
        return max(odds, SURE) if self.is_hit(label, before) else min(odds, -SURE)


@dataclass(frozen=True)
class AnyOther(Target):
    """Any label but the factual's."""

    @property
    def said(self) -> None:
        return None

    @property
    def words(self) -> tuple[str, ...]:
        return ("any other",)

    def is_hit(self, label: Label, before: Label) -> bool:
        return label != before

    def is_met(self, before: Label) -> bool:
        return False

    def same_hits(self, before: Label) -> Hashable:
        return (None, before)

    def refuse_foreign(self, known: Sequence[Label]) -> None:
        """There is always another."""


@dataclass(frozen=True)
class OneOf(Target):
    """One of some labels."""

    labels: tuple[Label, ...]

    @property
    def said(self) -> Any:
        return self.labels[0] if len(self.labels) == 1 else list(self.labels)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.labels)

    def named(self, words: Mapping[Label, Label]) -> OneOf:
        return OneOf(tuple(words.get(label, label) for label in self.labels))

    def is_hit(self, label: Label, before: Label) -> bool:
        return label in self.labels

    def is_met(self, before: Label) -> bool:
        return before in self.labels

    def same_hits(self, before: Label) -> Hashable:
        return self.labels

    def refuse_foreign(self, known: Sequence[Label]) -> None:
        for label in self.labels:
            if label not in known:
                raise ValueError(f"target {label!r} is not a label of the model, which gives [{listed(known)}].")
