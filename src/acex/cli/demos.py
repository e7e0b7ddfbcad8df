"""`acex demo`: a rejected loan application, explained with a model that is trained here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import acex
from acex.cli.program import NOTHING_FOUND
from acex.cli.show import console
from acex.cli.tables import PICTURES, writable

MAY_CHANGE = ("debt_ratio", "loan_amount", "duration_months")
QUESTION = (
    "This application was rejected. What can the applicant do? Debts and amount may decrease, the duration may change."
)


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Use another seed for other queries.")] = 0,
    budget: Annotated[int, typer.Option(min=2, help="Most rows to send to the model.")] = 60,
    out: Annotated[
        Path, typer.Option(dir_okay=False, callback=writable(*PICTURES), help="Where to save the picture.")
    ] = Path("acex-demo.png"),
) -> None:
    """Explain a rejected loan with a small model that is trained here, and draw it.

    Example: acex demo --seed 1 --out loan.png
    """
    from sklearn.ensemble import RandomForestClassifier

    loans = acex.datasets.load("loan")
    forest = RandomForestClassifier(100, random_state=0).fit(loans.codes, loans.outcomes)
    console().print(f"{loans.title}. {QUESTION}\n")
    explanation = acex.explain(
        lambda rows: forest.predict(loans.space.encode(rows)),
        loans.rows.iloc[17],
        loans.rows,
        space=loans.space,
        target="approved",
        freeze=[name for name in loans.space.names if name not in MAY_CHANGE],
        directions={"debt_ratio": "decrease", "loan_amount": "decrease"},
        budget=budget,
        seed=seed,
    )
    console().print(str(explanation))
    if explanation.outcome != "found":
        raise typer.Exit(NOTHING_FOUND)
    explanation.plot().savefig(out)
    console().print(f"Picture: {out}", soft_wrap=True)
