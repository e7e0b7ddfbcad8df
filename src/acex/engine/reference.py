"""The known rows of a domain, and everything computed from them once for all explanations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import FloatArray, Rows, one_blas_thread
from acex.options import Options
from acex.plan.target import Target
from acex.search.hints import as_outcomes, outcome_model
from acex.search.problem import Hint, Problem
from acex.space.feature import MISSING_CODE
from acex.space.plausibility import Density, Kind, Plausibility
from acex.space.region import Region
from acex.space.scale import Quantiles, Scale
from acex.space.space import Space
from acex.values import Label, Remark, counted, did_you_mean, fingerprint, is_finite, joined_words, readable

VISIBLE = 0.01  # share of a feature's spread; smaller steps count as none
FAR_OFF = 10.0  # values are outliers if 1% of them make the standard deviation this many times as large
ENOUGH_ROWS = 20  # with fewer, standard deviations and plausibility are little more than guesses


@dataclass(frozen=True, eq=False)
class Reference:
    """Points of known rows, (m, d), with their scales, plausibility filters and true outcomes."""

    space: Space
    points: FloatArray
    scale: Scale
    quantiles: Quantiles
    plausibility: Plausibility | None
    outcomes: list[Label] | None  # None: not known
    seed: int
    _views: dict[tuple[int, ...], Reference] = field(default_factory=dict, init=False, repr=False)
    _densities: dict[Plausibility, Density] = field(default_factory=dict, init=False, repr=False)
    _hints: dict[Hashable, Hint | None] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, data: Rows, outcomes: Any, space: Space, plausibility: Plausibility | str | None = None, seed: int = 0
    ) -> Reference:
        """The reference of these rows and their true outcomes, one per row or None.

        Raises:
            ValueError: a value is missing or impossible, or there is not one outcome per row.
        """
        if isinstance(plausibility, str):
            plausibility = None if plausibility == "none" else Plausibility(kind=plausibility)  # type: ignore[arg-type]
        if not (plausibility is None or isinstance(plausibility, Plausibility)):
            raise TypeError(f"plausibility must be acex.Plausibility(...), its kind or None, got {plausibility!r}.")
        if len(data) == 0:
            raise ValueError("data is empty: at least a few rows are needed to learn what is usual.")
        space = space.like(data)
        try:
            points = space.without_identifiers(space.encode(data))
        except ValueError as error:
            raise ValueError(f"data: {error}") from None
        scale = Scale.of(space, points)
        known = None if outcomes is None else as_outcomes(outcomes, len(points))
        reference = cls(space, points, scale, Quantiles.of(scale, points), plausibility, known, seed)
        reference.density("joint")  # so that an error is raised here
        return reference

    def __len__(self) -> int:
        return len(self.points)

    def without_identifiers_of(self, space: Space) -> Reference:
        """These rows without the identifiers of this space, in which more features may be frozen."""
        points = space.without_identifiers(self.points)
        hidden = tuple(np.flatnonzero((points != self.points).any(axis=0)).tolist())
        if not hidden:
            return self
        if hidden not in self._views:
            scale = Scale.of(self.space, points)
            self._views[hidden] = replace(self, points=points, scale=scale, quantiles=Quantiles.of(scale, points))
        return self._views[hidden]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """Remarks on columns that identify rows, on outliers, and on too few rows."""
        space, out = self.space, []
        is_id = (space.high > space.low) & (self.scale.deviations == 0)  # see `Space.without_identifiers`
        numbers = [f for f, hidden in zip(space.features, is_id, strict=True) if hidden and f.is_number and f.frozen]
        if ids := [f.name for f in numbers if f.name in space.inferred]:
            out.append(Remark("identifier", f"{joined_words(ids)}: taken as an identifier of rows, and frozen."))
        if len(self) < ENOUGH_ROWS:
            what = "what is usual, and what a change costs, is uncertain below"
            out.append(Remark("few_rows", f"data has only {counted(len(self), 'row')}: {what} {ENOUGH_ROWS}."))
        for feature, x in zip(space.features, self.points.T, strict=True):
            if feature.is_number and not feature.frozen and (value := _far_off(x)) is not None:
                text = (
                    f"{feature.name}: because of outliers such as {readable(value)}, changing it costs next to nothing."
                )
                out.append(Remark("outliers", text, (feature.name,), True, "Correct or remove such rows of data."))
        return tuple(out)

    def density(self, kind: Kind) -> Density | None:
        """The plausibility filter, of this kind unless the settings name another; None if there is no filter."""
        if self.plausibility is None:
            return None
        settings = self.plausibility.or_else(kind)
        if settings not in self._densities:
            with one_blas_thread():
                self._densities[settings] = settings.fit(self.points, self.scale, self.seed)
        return self._densities[settings]

    @cached_property
    def identity(self) -> str:
        """A fingerprint of these rows and outcomes."""
        outcomes = None if self.outcomes is None else fingerprint(self.outcomes)
        # Equal to `fingerprint` of the list of these four values, without holding all points as text.
        digest = hashlib.sha256(b'["')
        for rows in np.array_split(self.points, len(self) // 1000 + 1):
            digest.update(rows.astype("<f8").tobytes().hex().encode())
        rest = json.dumps([self.points.shape, outcomes, int(self.seed)], separators=(",", ":"))
        digest.update(f'",{rest[1:]}'.encode())
        return digest.hexdigest()[:32]

    def refuse_foreign_outcomes(self, words: Sequence[Label], *, all_words: bool = True) -> None:
        """Raise if no outcome is a label of the model: the outcomes would silently be useless.

        Args:
            words: labels of the model.
            all_words: whether these are all its labels. If not, a single outcome of the same type is accepted, since
                the data may contain no success.
        """
        outcomes = list(dict.fromkeys(self.outcomes or words))
        one_sided = len(outcomes) == 1 and type(outcomes[0]) in {type(word) for word in words}
        if not (any(o in words for o in outcomes) or (one_sided and not all_words)):
            what = "outcomes" if all_words else "target and outcomes"
            raise ValueError(
                f"{what} must be labels of the model: expected some of {list(words)}, got only {outcomes[:12]}."
                f"{did_you_mean(words[0] if words else None, outcomes)}"
            )

    def refuse_outcomes_that_are_no_numbers(self) -> None:
        """Raise if an outcome is not a number, as a numeric target requires."""
        if foreign := [o for o in self.outcomes or () if isinstance(o, bool) or not is_finite(o)]:
            raise ValueError(f"outcomes must be numbers, as the answers of the model are, got {foreign[0]!r}.")

    def problem(self, space: Space, factual: FloatArray, options: Options, rules: Any = ()) -> Problem:
        """The problem that a search for one factual, (d,), solves.

        Args:
            space: the space of the reference, with the options for this row.
            rules: the rules of the options, as rules over this space.
        """
        strategy = options.strategy
        region = Region.of(
            space,
            factual,
            ranges=options.ranges,
            values=options.values,
            constant=self.scale.deviations == 0,
            rules=rules,
            min_step=self._min_step if strategy.limits_changes else None,
            max_changes=options.max_changes,
            middle=self.scale.middle,
        )
        if not strategy.limits_changes and (space.is_gap(factual) & region.movable).any():
            raise ValueError("ranges or values ask for a value in place of a gap, which needs strategy 'feasible'.")
        function = options.cost_or_default.function(space, self.scale, factual)
        density = self.density(strategy.default_plausibility)
        return Problem(region, function, self.scale, self.points, density, self.quantiles)

    @cached_property
    def _min_step(self) -> FloatArray:
        """The smallest visible step of each feature, (d,).

        If a few very large values inflate the standard deviation, the interquartile range is used instead.
        """
        lower, upper = np.quantile(self.scale.filled(self.points), [0.25, 0.75], axis=0)
        middle = (upper - lower) / 1.349  # equals the standard deviation of a normal distribution
        spread = np.where(middle > 0, np.minimum(middle, self.scale.deviations), self.scale.deviations)
        return np.where(self.scale.is_nominal, 0.0, VISIBLE * spread)

    def hint(self, target: Target, before: Label) -> Hint | None:
        """P(hit) as estimated from the known outcomes; None if there are none, or if all are hits or all misses."""
        if self.outcomes is None:
            return None
        wanted = target.same_hits(before)
        if wanted not in self._hints:
            hits = [target.is_hinted(outcome, before) for outcome in self.outcomes]
            self._hints[wanted] = outcome_model(self.space, self.points, np.array(hits))
        return self._hints[wanted]


def _far_off(x: FloatArray) -> float | None:
    """The value in x, (n,), farthest from the others, if it or 1% of the values inflate the deviation tenfold."""
    x = x[x != MISSING_CODE]
    if len(x) < ENOUGH_ROWS or np.ptp(x) == 0:
        return None
    apart, few = np.abs(x - np.median(x)), max(len(x) // 100, 1)
    farthest = float(x[apart.argmax()])  # such as 99999 for a missing value, in any number of rows
    inner = x[(apart <= np.sort(apart)[-1 - few]) & (x != farthest)]
    varies = (x == farthest).sum() <= few or np.ptp(np.quantile(inner, [0.25, 0.75])) > 0
    return farthest if varies and 0 < FAR_OFF * inner.std() < x.std() else None
