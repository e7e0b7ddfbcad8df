"""acex: the smallest realistic change to a row that changes a classifier's decision, for few queries."""

__version__ = "0.1.0"

from acex import datasets
from acex.batch import Explanations
from acex.errors import (
    AcexError,
    BudgetSpent,
    ExecutorFailed,
    LedgerFailed,
    MissingExtra,
    ModelFailed,
    NoCounterfactual,
)
from acex.executors import DaskExecutor
from acex.explainer import Explainer, explain
from acex.explanation import Explanation
from acex.feasible import Feasible
from acex.features import Continuous, Integer, Nominal, Ordinal
from acex.ledger import Ledger
from acex.modelfiles import load_model
from acex.penalty import Penalty
from acex.plausibility import Plausibility
from acex.region import Region
from acex.remote import HttpModel
from acex.session import Session
from acex.space import Space

__all__ = [
    "AcexError",
    "BudgetSpent",
    "Continuous",
    "DaskExecutor",
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
    "ModelFailed",
    "NoCounterfactual",
    "Nominal",
    "Ordinal",
    "Penalty",
    "Plausibility",
    "Region",
    "Session",
    "Space",
    "__version__",
    "datasets",
    "explain",
    "load_model",
]
