"""Something to look at: the bundled loan applications, and a small forest that decides on them."""

from __future__ import annotations

from typing import Any

import acex
from acex.studio.workspace import Desk, Recipe

MODEL = "demo-forest"
PYTHON = f"""\
import acex
from sklearn.ensemble import RandomForestClassifier

loans = acex.datasets.load("loan")
forest = RandomForestClassifier(60, random_state=0).fit(loans.codes, loans.outcomes)
model = lambda rows: forest.predict(loans.space.encode(rows))
rows = loans.rows
explainer = acex.Explainer(model, rows, labels=loans.outcomes, space=loans.space, model_id="{MODEL}")
"""
WISHES: dict[str, Any] = {
    "target": ["approved"],
    "budget": 30,
    "freeze": ["education", "purpose"],
    "directions": {"employment_years": "increase"},
}


class Forest:
    """A small random forest of loan applications: rows in, labels out."""

    def __init__(self) -> None:
        from sklearn.ensemble import RandomForestClassifier

        loans = acex.datasets.load("loan")
        self._space = loans.space
        self._forest: Any = RandomForestClassifier(60, random_state=0).fit(loans.codes, loans.outcomes)
        self.classes_ = self._forest.classes_

    def predict(self, rows: Any) -> Any:
        """One label a row."""
        return self._forest.predict(self._space.encode(rows))


def demo_desk(ledger: acex.Ledger, *, price: float | None = None, is_kept: bool = False) -> Desk:
    """A desk with nothing to prepare."""
    loans = acex.datasets.load("loan")
    outcomes = loans.outcomes.tolist()
    explainer = acex.Explainer(Forest(), loans.rows, labels=outcomes, space=loans.space, ledger=ledger, model_id=MODEL)
    return Desk(
        explainer=explainer,
        table=loans.rows,
        rows=loans.rows,
        recipe=Recipe(PYTHON, None, "The demonstration has no files of its own; with yours, the command stands here."),
        outcomes=outcomes,
        labels=("approved", "rejected"),
        wishes=WISHES,
        price=price,
        is_kept=is_kept,
        title="Loan applications (a demonstration)",
    )
