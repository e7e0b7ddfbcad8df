"""The arguments of `explain` that are about a row: their names, defaults and checks, said once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from acex.plan.target import Target
from acex.search.strategies import as_strategy
from acex.search.strategy import Strategy
from acex.search.votes import Noise, Share
from acex.space.feature import Direction
from acex.space.rules import RuleFunction
from acex.values import did_you_mean, is_count, is_finite, listed

BUDGET = 60
CATEGORY_COST = 1.0  # standard deviations: not dearer than four small changes of numbers (docs/decisions.md)
EFFORTS = ("settle", "spend")


class RowOptions(TypedDict, total=False):
    """What may be said of a row, for type checkers; `Options` has the defaults."""

    target: Any
    budget: int
    count: int
    freeze: Iterable[str | int]
    ranges: Mapping[Any, Any] | None
    directions: Mapping[Any, Direction] | None
    weights: Mapping[Any, float] | None
    constraint: RuleFunction | None
    rules: Iterable[str]
    strategy: Strategy | str
    effort: str
    margin: float | None
    max_changes: int | None
    category_cost: float | None
    change_cost: float
    beta: float
    queries_per_round: int
    noise: Share
    confirm: int
    seed: int


@dataclass(frozen=True)
class Options:
    """What was said of a row, checked as far as it can be without the row and the model."""

    target: Target = field(default_factory=lambda: Target.of(None))
    budget: int = BUDGET
    count: int = 1
    freeze: tuple[str | int, ...] | str = ()
    ranges: Mapping[Any, Any] | None = None
    directions: Mapping[Any, Direction] | None = None
    weights: Mapping[Any, float] | None = None
    constraint: RuleFunction | None = None
    rules: tuple[str, ...] = ()
    strategy: Strategy = field(default_factory=lambda: as_strategy("feasible"))
    effort: str = "settle"
    margin: float | None = None
    max_changes: int | None = None
    category_cost: float | None = CATEGORY_COST
    change_cost: float = 0.0
    beta: float = 5.0
    queries_per_round: int = 1
    noise: Share = 0
    confirm: int = 3
    seed: int = 0

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Options:
        """What a caller said, by name.

        Raises:
            TypeError: there is no argument of this name.
            ValueError: one of them is wrong.
        """
        known = [f.name for f in fields(cls)]
        for name in said:
            if name not in known:
                hint = did_you_mean(name, known)
                raise TypeError(f"There is no argument {name!r}; see acex.explain for those of a row.{hint}")
        given = dict(said)
        if not isinstance(given.get("freeze"), str):  # a text is refused where features are known
            given["freeze"] = tuple(given.get("freeze", ()))
        given["rules"] = _texts(given.get("rules", ()))
        given["target"] = Target.of(given.get("target"))
        given["strategy"] = as_strategy(given.get("strategy", "feasible"))
        if given.get("effort") == "spend":
            given["strategy"] = given["strategy"].spending()
        strategy = given["strategy"]
        if strategy.steady is not None and given.get("margin") is None:
            words = f"margin={strategy.steady!r} as an argument of explain, not of the strategy"
            warnings.warn(f"Say {words}: there it will go.", DeprecationWarning, stacklevel=4)
            given["margin"] = strategy.steady
        elif given.get("margin") is not None:
            given["strategy"] = strategy.with_margin(given["margin"])
        if "category_cost" not in given and not strategy.prunes:
            given["category_cost"] = None  # the cost as the paper has it
        return cls(**given)

    def __post_init__(self) -> None:
        if not is_count(self.budget, least=2):
            raise ValueError(
                f"budget must be a whole number of at least 2 (the row itself, and one more), got {self.budget!r}."
            )
        for name in ("count", "queries_per_round"):
            if not is_count(getattr(self, name)):
                raise ValueError(f"{name} must be a whole number of at least 1, got {getattr(self, name)!r}.")
        if not is_count(self.seed, least=0):
            raise ValueError(f"seed must be a whole number, 0 or more, got {self.seed!r}.")
        if self.effort not in EFFORTS:
            raise ValueError(f"effort must be one of {listed(EFFORTS)}, got {self.effort!r}.")
        if not (self.max_changes is None or is_count(self.max_changes)):
            raise ValueError(f"max_changes must be None or a whole number of at least 1, got {self.max_changes!r}.")
        if self.max_changes is not None and not self.strategy.prunes:
            raise ValueError(f"max_changes needs strategy 'feasible', got strategy {self.strategy.name!r}.")
        if not (self.category_cost is None or (is_finite(self.category_cost) and self.category_cost > 0)):
            raise ValueError(f"category_cost must be None or a positive number, got {self.category_cost!r}.")
        if not (is_finite(self.change_cost) and self.change_cost >= 0):
            raise ValueError(f"change_cost must be zero or a positive number, got {self.change_cost!r}.")
        if self.change_cost and not self.strategy.prunes:
            raise ValueError(f"change_cost needs strategy 'feasible', got strategy {self.strategy.name!r}.")
        if not (is_finite(self.beta) and self.beta >= 0):
            raise ValueError(f"beta must be zero or a positive number, got {self.beta!r}.")
        if not (self.constraint is None or callable(self.constraint)):
            raise TypeError(
                f"constraint must be a function from rows to one True or False a row, got {self.constraint!r}."
            )
        if self.voting is not None and self.strategy.name != "feasible":
            raise ValueError(f"noise needs strategy 'feasible', got strategy {self.strategy.name!r}.")
        if self.count > 1 and not self.strategy.finds_several:
            raise ValueError(
                f"count above 1 needs strategy 'feasible'; strategy {self.strategy.name!r} finds one only."
            )

    @property
    def voting(self) -> Noise | None:
        """How a model that contradicts itself is to be asked; None for others."""
        return Noise.of(self.noise, self.confirm)


def _texts(rules: Any) -> tuple[str, ...]:
    """Rules as texts; what they mean is worked out where features are known."""
    texts = (rules,) if isinstance(rules, str) else tuple(rules) if isinstance(rules, Iterable) else (rules,)
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"rules: expected texts such as 'duration <= 84 - age', got {text!r}.")
    return texts
