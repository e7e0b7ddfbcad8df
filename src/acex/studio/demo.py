"""The demo: bundled loan applications and a small forest that decides on them."""

from __future__ import annotations

from typing import Any

import acex
from acex.studio.workspace import Workspace

NAME = "demo-forest"
PYTHON = f"""\
import acex
from sklearn.ensemble import RandomForestClassifier

loans = acex.datasets.loan()
forest = RandomForestClassifier(60, random_state=0).fit(loans.codes, loans.outcomes)
model = acex.Model(lambda rows: forest.predict(loans.space.encode(rows)), name="{NAME}")
rows = loans.rows
explainer = acex.Explainer(model, rows, outcomes=loans.outcomes, space=loans.space)
"""
OPTIONS: dict[str, Any] = {
    "target": ["approved"],
    "budget": 30,
    "freeze": ["education", "purpose"],
    "directions": {"employment_years": "increase"},
}


def demo_workspace(ledger: acex.Ledger, *, price: float | None = None) -> Workspace:
    """A workspace that needs no files."""
    from sklearn.ensemble import RandomForestClassifier

    loans = acex.datasets.loan()
    forest: Any = RandomForestClassifier(60, random_state=0).fit(loans.codes, loans.outcomes)
    model = acex.Model(lambda rows: forest.predict(loans.space.encode(rows)), name=NAME)
    outcomes = loans.outcomes.tolist()
    return Workspace(
        explainer=acex.Explainer(model, loans.rows, outcomes=outcomes, space=loans.space, ledger=ledger),
        model=model,
        table=loans.rows,
        rows=loans.rows,
        setup=PYTHON,
        outcomes=outcomes,
        options=OPTIONS,
        price=price,
        title="Loan applications (a demonstration)",
    )
