"""acex: the smallest realistic change to a row that changes a model's decision, for few queries.

The names listed here are public. Each is loaded when it is first used, so that `import acex` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acex._version import __version__ as __version__

if TYPE_CHECKING:
    from acex import datasets as datasets
    from acex.api import Explainer as Explainer
    from acex.api import explain as explain
    from acex.batch.executors import DaskExecutor as DaskExecutor
    from acex.batch.explanations import Explanations as Explanations
    from acex.engine.explanation import Explanation as Explanation
    from acex.engine.recorded import load_explanation as load_explanation
    from acex.engine.session import Session as Session
    from acex.errors import AcexError as AcexError
    from acex.errors import BudgetSpent as BudgetSpent
    from acex.errors import ExecutorFailed as ExecutorFailed
    from acex.errors import LedgerFailed as LedgerFailed
    from acex.errors import MissingExtra as MissingExtra
    from acex.errors import ModelFailed as ModelFailed
    from acex.errors import NoCounterfactual as NoCounterfactual
    from acex.ledger.sql import Ledger as Ledger
    from acex.models.files import load_model as load_model
    from acex.models.http import HttpModel as HttpModel
    from acex.models.model import Model as Model
    from acex.plan.plan import Plan as Plan
    from acex.plan.step import Step as Step
    from acex.plan.target import AtLeast as AtLeast
    from acex.plan.target import AtMost as AtMost
    from acex.plan.target import Between as Between
    from acex.plan.target import Relative as Relative
    from acex.plan.target import Target as Target
    from acex.search.feasible import Feasible as Feasible
    from acex.search.penalty import Penalty as Penalty
    from acex.search.strategy import Strategy as Strategy
    from acex.show import plots as plots
    from acex.show import sentences as sentences
    from acex.space.cost import Cost as Cost
    from acex.space.kinds import Continuous as Continuous
    from acex.space.kinds import Date as Date
    from acex.space.kinds import Integer as Integer
    from acex.space.kinds import Nominal as Nominal
    from acex.space.kinds import Ordinal as Ordinal
    from acex.space.plausibility import Plausibility as Plausibility
    from acex.space.region import Region as Region
    from acex.space.space import Space as Space
    from acex.values import Remark as Remark

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
    "space.kinds": "Continuous Date Integer Nominal Ordinal",
    "space.plausibility": "Plausibility",
    "space.region": "Region",
    "space.space": "Space",
    "values": "Remark",
}
_HOME_OF = {name: f"acex.{home}" for home, names in _HOMES.items() for name in names.split()}
_PACKAGES = {"datasets": "acex.datasets", "plots": "acex.show.plots", "sentences": "acex.show.sentences"}
__all__ = sorted(["__version__", *_HOME_OF, *_PACKAGES])


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(_PACKAGES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'acex' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF, *_PACKAGES])
