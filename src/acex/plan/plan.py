"""All that decides what an explanation asks, as a value; its fingerprint is the explanation's identity."""

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
from acex.values import Label, fingerprint

LATER = ("max_changes", "category_cost", "change_cost")  # settings that plans did not always have


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """What is to be explained, how, and at most for how much. Made by `Explainer.plan`, which asks nothing.

    Attributes:
        model_id: the model's name in the ledger.
        factual: the row to explain, its values by feature.
        target: what is wanted.
        budget: how many rows may be sent to the model, the factual included.
        space: what each feature can hold, which are frozen, directed, weighted.
        scale: the standard deviations of the reference.
        allowed: for each feature (low, high), or the codes that it may take.
        ranges: the limits that the caller set, by feature, in the caller's words.
        constraint: a fingerprint of the caller's function over rows; None without one. rules: the caller's, as text.
        strategy: name, revision and settings. A strategy that would ask other rows has another revision.
        plausibility: settings of the filter; None where there is none.
        count, beta, scores, pool, queries_per_round, seed: as in `acex.explain`.
        n_reference: rows of the reference. reference: a fingerprint of them, and of their outcomes.
        outcomes: are true outcomes of the reference known?
        max_changes, category_cost, change_cost: as in `acex.explain`; None in records of an older acex.
        class_names: what the labels are called, for people; the ledger and the target have the labels.
        noise: for a model that contradicts itself; None for others.
        remarks: what a reader should know of the plan itself.
    """

    model_id: str
    factual: Mapping[str, Any]
    target: Target
    budget: int
    space: Space
    scale: Scale
    allowed: tuple[FloatArray, ...] = ()
    ranges: Mapping[str, Any]
    constraint: str | None
    rules: tuple[str, ...] = ()
    strategy: Mapping[str, Any]
    plausibility: Mapping[str, Any] | None
    count: int
    beta: float
    scores: bool
    pool: bool
    queries_per_round: int
    seed: int
    n_reference: int | None
    reference: str | None
    outcomes: bool
    max_changes: int | None = None
    category_cost: float | None = None
    change_cost: float | None = None  # and where there is none
    class_names: Mapping[Label, str] = field(default_factory=dict)
    noise: Noise | None = None
    remarks: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> str:
        """What tells this explanation from others: the same in every process, and for every version of acex.

        The budget is no part of it, unless it is divided among several counterfactuals: an explanation whose budget
        was spent goes on with a larger one. Nor are answers to other explanations: each question records the newest
        one that it could see.
        """
        decides = self.settings
        for name in ("ranges", "n_reference", "labels", "class_names"):
            del decides[name]  # said by `allowed` and `reference`, or words for people
        decides = {name: value for name, value in decides.items() if name not in LATER or value is not None}
        if self.count == 1:
            del decides["budget"]
        if not self.rules:
            del decides["rules"]  # as it was before there were any
        space = self.space.to_dict()
        for feature in space["features"]:
            feature.pop("unit", None)  # a word for people
        # A column of texts is "object" to pandas 2 and "str" to pandas 3.
        space["dtypes"] = space["dtypes"] and ["str" if dtype == "object" else dtype for dtype in space["dtypes"]]
        decides |= {"space": space, "factual": dict(self.factual), "allowed": [a.tolist() for a in self.allowed]}
        return fingerprint(decides | {"reference": self.reference})

    @property
    def settings(self) -> dict[str, Any]:
        """The plan in plain values, factual and features aside: what a report and the ledger say of it."""
        return {
            "model_id": self.model_id,
            "target": self.target.said,
            "budget": self.budget,
            "count": self.count,
            "seed": self.seed,
            "strategy": dict(self.strategy),
            "beta": self.beta,
            "max_changes": self.max_changes,
            "class_names": [[label, word] for label, word in self.class_names.items()] or None,
            "category_cost": self.category_cost,
            "change_cost": self.change_cost,
            "plausibility": None if self.plausibility is None else dict(self.plausibility),
            "n_reference": self.n_reference,
            "labels": self.outcomes,
            "constraint": self.constraint,
            "rules": list(self.rules),
            "scores": self.scores,
            "pool": self.pool,
            "queries_per_round": self.queries_per_round,
            "ranges": dict(self.ranges),
            # Only where there is some: without it an explanation is the one that it always was.
            **({} if self.noise is None else {"noise": self.noise.share, "confirm": self.noise.confirm}),
        }

    @property
    def may_become(self) -> dict[str, Any]:
        """For each feature what it may become: None where it stays, (lowest, highest), or a list of categories."""
        x = self.space.encode(dict(self.factual))[0]
        out: dict[str, Any] = {}
        for feature, allowed, value in zip(self.space.features, self.allowed, x, strict=True):
            out[feature.name] = None if allowed[0] == value == allowed[-1] else feature.limits(allowed)
        return out

    @cached_property
    def labels_by_word(self) -> dict[Label, Label]:
        """What the class names stand for."""
        return {word: label for label, word in self.class_names.items()}

    def described_space(self) -> dict[str, Any]:
        """What rows hold, in plain values, with the standard deviations; the same for most rows of a model."""
        return {**self.space.to_dict(), "deviations": self.scale.deviations.tolist()}

    @classmethod
    def from_record(
        cls, settings: Mapping[str, Any], factual: Mapping[str, Any], space: Space, deviations: FloatArray
    ) -> Plan:
        """The plan that `settings` and `described_space` tell of, as far as it is told: also by acex 0.1.0."""
        return cls(
            model_id=str(settings.get("model_id", "")),
            factual=factual,
            target=Target.of(settings.get("target")),
            budget=settings.get("budget", 0),
            space=space,
            scale=Scale(space, np.asarray(deviations, dtype=float)),
            ranges=settings.get("ranges") or {},
            constraint=settings.get("constraint") or None,
            rules=tuple(settings.get("rules") or ()),
            strategy=settings.get("strategy") or {},
            plausibility=settings.get("plausibility"),
            count=settings.get("count", 1),
            beta=settings.get("beta", 5.0),
            max_changes=settings.get("max_changes"),
            class_names=dict(settings.get("class_names") or ()),
            category_cost=settings.get("category_cost"),
            change_cost=settings.get("change_cost"),
            scores=bool(settings.get("scores", False)),
            pool=bool(settings.get("pool", False)),
            queries_per_round=settings.get("queries_per_round", 1),
            seed=settings.get("seed", 0),
            n_reference=settings.get("n_reference"),
            reference=None,
            outcomes=bool(settings.get("labels", False)),
            noise=Noise.of(settings.get("noise", 0), settings.get("confirm", 3)),
            remarks=tuple(settings.get("remarks") or ()),
        )
