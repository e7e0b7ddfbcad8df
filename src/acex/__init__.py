"""acex: the smallest realistic change to a row that changes a model's decision, for few queries.

The names listed here are public. Each is loaded when it is first used, so that `import acex` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acex._version import __version__

if TYPE_CHECKING:
    from acex import datasets
    from acex.api import Explainer, explain
    from acex.batch.executors import DaskExecutor
    from acex.batch.explanations import Explanations
    from acex.engine.explanation import Explanation
    from acex.engine.recorded import load_explanation
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
    from acex.values import Remark

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
    "Remark",
    "Session",
    "Space",
    "Step",
    "Strategy",
    "Target",
    "__version__",
    "datasets",
    "explain",
    "load_explanation",
    "load_model",
    "plots",
    "sentences",
]

_HOMES = {
    "api": "Explainer explain",
    "batch.executors": "DaskExecutor",
    "batch.explanations": "Explanations",
    "engine.explanation": "Explanation",
    "engine.recorded": "load_explanation",
    "engine.session": "Session",
    "errors": "AcexError BudgetSpent ExecutorFailed LedgerFailed MissingExtra ModelFailed NoCounterfactual",
    "ledger.sql": "Ledger",
    "models.files": "load_model",
    "models.http": "HttpModel",
    "models.model": "Model",
    "plan.plan": "Plan",
    "plan.step": "Step",
    "plan.target": "AtLeast AtMost Between Relative Target",
    "search.feasible": "Feasible",
    "search.penalty": "Penalty",
    "search.strategy": "Strategy",
    "space.cost": "Cost",
    "space.kinds": "Continuous Integer Nominal Ordinal",
    "space.plausibility": "Plausibility",
    "space.region": "Region",
    "space.space": "Space",
    "space.times": "Date Duration",
    "values": "Remark",
}
_HOME_OF = {name: f"acex.{home}" for home, names in _HOMES.items() for name in names.split()}
_PACKAGES = {"datasets": "acex.datasets", "plots": "acex.show.plots", "sentences": "acex.show.sentences"}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(_PACKAGES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'acex' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF, *_PACKAGES])
