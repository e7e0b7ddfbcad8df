"""Everything that decides what an explanation asks, as a value; its fingerprint is the explanation's identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import FloatArray
from acex.plan.target import Target
from acex.search.votes import Noise
from acex.space.scale import Scale
from acex.space.space import Space
from acex.values import Label, Remark, fingerprint


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """The row to explain, the settings, and the largest number of queries: `Explainer.search(x).plan`.

    Attributes:
        factual: the row to explain, its values by feature.
        space: the features: their kinds, ranges and categories, which are frozen, their directions and weights.
        scale: the standard deviations of the reference.
        target: the answers that are hits.
        settings: all options as plain values, as reports and the ledger show them: those of `acex.options`, the name of
            the model (`model_id`) and the size of the reference (`n_reference`).
        allowed: for each feature (low, high), or, for those in `listed`, the codes it may take.
        decides: further parts of the identity: the settings that affect what is asked and are not at their defaults,
            and fingerprints of the reference and of functions among the rules.
        remarks: what a reader should know about the plan itself.
    """

    factual: Mapping[str, Any]
    space: Space
    scale: Scale
    target: Target
    settings: Mapping[str, Any]
    allowed: tuple[FloatArray, ...] = ()
    listed: frozenset[int] = frozenset()
    decides: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @property
    def model_id(self) -> str:
        """The model's name in the ledger."""
        return str(self.settings["model_id"])

    @property
    def budget(self) -> int:
        """The largest number of rows that may be sent to the model, including the factual."""
        return int(self.settings["budget"])

    @property
    def count(self) -> int:
        """Number of counterfactuals to look for."""
        return int(self.settings["count"])

    @cached_property
    def class_names(self) -> dict[Label, str]:
        """Display names of labels; the ledger and the target contain the labels themselves."""
        return dict(self.settings.get("class_names") or ())

    @cached_property
    def labels_by_name(self) -> dict[Label, Label]:
        """The label of each class name."""
        return {name: label for label, name in self.class_names.items()}

    @cached_property
    def noise(self) -> Noise | None:
        """The noise of a model whose answers vary; None for other models."""
        noise = self.settings.get("noise")
        return Noise.of(noise, self.settings["confirm"]) if noise else None

    @cached_property
    def identity(self) -> str:
        """A fingerprint that distinguishes this explanation from others, the same in every process.

        It excludes the budget, unless that is divided among several counterfactuals: an explanation whose budget is
        spent continues with a larger one. It also excludes answers to other explanations: each query records the newest
        one that it could see.
        """
        space = self.space.to_dict()
        for feature in space["features"]:
            feature.pop("unit", None)  # only for display
        # A column of strings is "object" in pandas 2 and "str" in pandas 3.
        space["dtypes"] = space["dtypes"] and ["str" if dtype == "object" else dtype for dtype in space["dtypes"]]
        allowed = [a.tolist() for a in self.allowed]
        budget = None if self.count == 1 else self.budget
        return fingerprint([dict(self.decides), budget, space, dict(self.factual), allowed, sorted(self.listed)])

    @property
    def may_become(self) -> dict[str, Any]:
        """What each feature may become: None if it cannot change, (lowest, highest), or a list of values."""
        x = self.space.encode(dict(self.factual))[0]
        out: dict[str, Any] = {}
        for j, (feature, allowed, value) in enumerate(zip(self.space.features, self.allowed, x, strict=True)):
            stays = allowed[0] == value == allowed[-1]
            out[feature.name] = None if stays else feature.limits(allowed, listed=j in self.listed)
        return out

    def described_space(self) -> dict[str, Any]:
        """The space and the standard deviations as JSON-compatible values; the same for most rows of a model."""
        return {**self.space.to_dict(), "deviations": self.scale.deviations.tolist()}

    @classmethod
    def from_record(
        cls, settings: Mapping[str, Any], factual: Mapping[str, Any], space: Space, deviations: FloatArray
    ) -> Plan:
        """The plan from recorded `settings` and `described_space`, including those of acex 0.1 and 0.2."""
        settings = _current(settings, space)
        return cls(
            factual=factual,
            space=space,
            scale=Scale(space, np.asarray(deviations, dtype=float)),
            target=Target.of(settings["target"]),
            settings=settings,
            remarks=tuple(Remark.of(remark) for remark in settings.pop("remarks", None) or ()),
        )


def _current(settings: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Recorded settings in the form of this version; those that an earlier version lacks get their defaults."""
    written = {name: value for name, value in settings.items() if name not in ("form", "known_labels")}
    for old, new in (("labels", "outcomes"), ("pool", "share_answers"), ("constraint", "functions")):
        if old in written:
            written.setdefault(new, written.pop(old))
    if "cost" not in written:
        names = (("beta", "beta"), ("category_cost", "per_category"), ("change_cost", "per_change"))
        written["cost"] = {new: written.pop(old, None) for old, new in names}
    ranges = written.get("ranges") or {}  # up to 0.2, also contains lists of allowed values
    lists = {name: v for name, v in ranges.items() if len(v) != 2 or space.feature(name).lists_codes}
    if lists:
        written["ranges"] = {name: limits for name, limits in ranges.items() if name not in lists}
        written["values"] = lists | (written.get("values") or {})
    usual = {"model_id": "", "target": None, "budget": 0, "count": 1, "seed": 0, "queries_per_round": 1}
    return written | {name: value for name, value in usual.items() if name not in written}
