"""acex: the smallest realistic change to a row that changes a classifier's decision, for few queries.

What is listed here is public. Each name is loaded when it is first used: whoever only wants the version, or a space,
does not wait for databases, estimators and pictures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acex._version import __version__

if TYPE_CHECKING:
    from acex import datasets
    from acex.api import Explainer
    from acex.batch.executors import DaskExecutor
    from acex.batch.explanations import Explanations
    from acex.engine.explanation import Explanation
    from acex.engine.recorded import recorded
    from acex.engine.session import Session
    from acex.errors import (
        AcexError,
        BudgetSpent,
        ExecutorFailed,
        LedgerFailed,
        MissingExtra,
        ModelFailed,
        NoCounterfactual,
    )
    from acex.face import explain
    from acex.ledger.sql import Ledger
    from acex.models.files import load_model
    from acex.models.http import HttpModel
    from acex.models.model import Model
    from acex.plan.plan import Plan
    from acex.plan.step import Step
    from acex.plan.target import AtLeast, AtMost, Between, Relative, Target
    from acex.search.feasible import Feasible
    from acex.search.penalty import Penalty
    from acex.search.strategy import Strategy
    from acex.show import plots, sentences
    from acex.space.cost import Cost
    from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
    from acex.space.plausibility import Plausibility
    from acex.space.region import Region
    from acex.space.space import Space
    from acex.space.times import Date, Duration

_ERRORS = ("AcexError", "BudgetSpent", "ExecutorFailed", "LedgerFailed", "MissingExtra", "ModelFailed")
_HOMES = {
    **dict.fromkeys((*_ERRORS, "NoCounterfactual"), "acex.errors"),
    **dict.fromkeys(("AtLeast", "AtMost", "Between", "Relative", "Target"), "acex.plan.target"),
    **dict.fromkeys(("Continuous", "Integer", "Nominal", "Ordinal"), "acex.space.kinds"),
    **dict.fromkeys(("Date", "Duration"), "acex.space.times"),
    "Cost": "acex.space.cost",
    "DaskExecutor": "acex.batch.executors",
    "Explainer": "acex.api",
    "Explanation": "acex.engine.explanation",
    "Explanations": "acex.batch.explanations",
    "Feasible": "acex.search.feasible",
    "HttpModel": "acex.models.http",
    "Ledger": "acex.ledger.sql",
    "Model": "acex.models.model",
    "Penalty": "acex.search.penalty",
    "Plan": "acex.plan.plan",
    "Plausibility": "acex.space.plausibility",
    "Region": "acex.space.region",
    "Session": "acex.engine.session",
    "Space": "acex.space.space",
    "Step": "acex.plan.step",
    "Strategy": "acex.search.strategy",
    "explain": "acex.face",
    "load_model": "acex.models.files",
    "recorded": "acex.engine.recorded",
}
_ROOMS = {"datasets": "acex.datasets", "plots": "acex.show.plots", "sentences": "acex.show.sentences"}

__all__ = [
    "AcexError",
    "AtLeast",
    "AtMost",
    "Between",
    "BudgetSpent",
    "Continuous",
    "Cost",
    "DaskExecutor",
    "Date",
    "Duration",
    "ExecutorFailed",
    "Explainer",
    "Explanation",
    "Explanations",
    "Feasible",
    "HttpModel",
    "Integer",
    "Ledger",
    "LedgerFailed",
    "MissingExtra",
    "Model",
    "ModelFailed",
    "NoCounterfactual",
    "Nominal",
    "Ordinal",
    "Penalty",
    "Plan",
    "Plausibility",
    "Region",
    "Relative",
    "Session",
    "Space",
    "Step",
    "Strategy",
    "Target",
    "__version__",
    "datasets",
    "explain",
    "load_model",
    "plots",
    "recorded",
    "sentences",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'acex' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_ROOMS])
