"""Which labels are wanted."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from acex.values import Label, plain

SURE = 1e-6  # no probability is closer to 0 or 1 than this


@dataclass(frozen=True)
class Target:
    """The labels that are hits: those `wanted`, or by default all but the factual's."""

    wanted: tuple[Label, ...] | None

    @classmethod
    def of(cls, target: Any) -> Target:
        """From what a user says: a label, several of them, or None."""
        if target is None:
            return cls(None)
        several = isinstance(target, (Sequence, Set, np.ndarray)) and not isinstance(target, (str, bytes))
        wanted = tuple(plain(label) for label in (target if several else [target]))
        if not wanted:
            raise ValueError("target is empty: name a label, or None for any other than the one x has.")
        return cls(tuple(dict.fromkeys(wanted)))

    @property
    def said(self) -> Any:
        """As a user would say it: a label, a list of them, or None."""
        return self.wanted[0] if self.wanted and len(self.wanted) == 1 else self.wanted and list(self.wanted)

    def is_hit(self, label: Label, before: Label) -> bool:
        """Is this label wanted, for a factual with the label `before`?"""
        return label != before if self.wanted is None else label in self.wanted

    def odds(self, label: Label, scores: Sequence[tuple[Label, float]] | None, before: Label) -> float | None:
        """Log odds of the likeliest wanted label against the likeliest other, on the side that the label is on.

        None without scores.
        """
        if scores is None:
            return None
        hit = max((p for other, p in scores if self.is_hit(other, before)), default=0.0)
        miss = max((p for other, p in scores if not self.is_hit(other, before)), default=0.0)
        odds = float(np.log((hit + SURE) / (miss + SURE)))
        # A model may decide by another threshold than the scores suggest; its label is what counts.
        return max(odds, SURE) if self.is_hit(label, before) else min(odds, -SURE)
