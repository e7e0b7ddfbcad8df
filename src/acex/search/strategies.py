"""The strategies there are, by name."""

from __future__ import annotations

from typing import Any

from acex.search.feasible import Feasible
from acex.search.penalty import Penalty
from acex.search.strategy import Strategy
from acex.values import listed

STRATEGIES: dict[str, type[Strategy]] = {kind.name: kind for kind in (Feasible, Penalty)}


def as_strategy(said: Any) -> Strategy:
    """The strategy that a user means: one with settings of its own, or the name of one."""
    if isinstance(said, Strategy):
        return said
    if isinstance(said, str) and said in STRATEGIES:
        return STRATEGIES[said]()
    examples = " or ".join(f"acex.{kind.__name__}(...)" for kind in (Feasible, Penalty))
    raise ValueError(f"strategy must be one of {listed(STRATEGIES)}, or such as {examples}, got {said!r}.")
