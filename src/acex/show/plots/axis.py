"""One side of a picture: the codes of a feature that it shows, and where they lie."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.space.feature import Feature

STEPS = 101  # values of a number that an axis has
MARGIN = 0.15  # around the points, as a share of what they span
MOST_WORDS = 12  # on an axis


@dataclass(frozen=True, eq=False)
class Axis:
    """A feature and the values shown; for categories their codes, and their words."""

    name: str
    values: FloatArray  # ascending, (k,)
    words: tuple[str, ...] = ()  # one a value; empty for numbers

    @classmethod
    def of(cls, feature: Feature, x: FloatArray, low: float, high: float, *, whole: bool) -> Axis:
        """An axis for codes x, (n,), of a feature, among those from low to high; the first and the last are shown.

        Args:
            whole: show all numbers from low to high, not only those around x.
        """
        if not feature.is_number:
            codes = feature.codes(feature.every(low, high))
            often = [code for code, _ in Counter([x[0], x[-1]] * len(x) + x.tolist()).most_common()]
            shown = sorted([*often, *np.setdiff1d(x if codes is None else codes, often)][:MOST_WORDS])
            return cls(feature.name, np.array(shown, dtype=float), tuple(feature.text(feature.value(c)) for c in shown))
        if not whole:
            room = MARGIN * float(np.ptp(x)) or MARGIN * (high - low)
            low, high = max(low, float(x.min()) - room), min(high, float(x.max()) + room)
        if low == high:
            low, high = low - 0.5, high + 0.5
        return cls(feature.name, np.linspace(low, high, STEPS))

    def places(self, values: FloatArray) -> FloatArray:
        """Where values lie on the axis: numbers as they are, categories by their position among those shown."""
        return np.searchsorted(self.values, values).astype(float) if self.words else values

    @property
    def edges(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        return (-0.5, len(self.values) - 0.5) if self.words else (float(self.values[0]), float(self.values[-1]))

    def shows(self, values: FloatArray) -> BoolArray:
        """Which values the axis shows, (n,)."""
        if self.words:
            return np.isin(values, self.values)
        return np.asarray((values >= self.values[0]) & (values <= self.values[-1]))
