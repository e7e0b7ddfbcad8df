"""`acex demo`: decisions of small models that are trained here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import acex
from acex.cli.program import NOTHING_FOUND
from acex.cli.show import console, print_explanation
from acex.cli.tables import PICTURES, writable

if TYPE_CHECKING:
    from acex.arrays import Rows
    from acex.datasets import Dataset
    from acex.models.labels import Predict
    from acex.show.plots import Picture


class Demo(StrEnum):
    """The demonstrations, by the name of their data."""

    LOAN = "loan"
    MOONS = "moons"
    BREAST_CANCER = "breast-cancer"
    TIC_TAC_TOE = "tic-tac-toe"
    DIGITS = "digits"


class DemoQuestion(NamedTuple):
    """What a demonstration asks, about which row (a position in the data, or values), with which options."""

    text: str
    row: int | Mapping[str, float]
    options: Mapping[str, Any]


def is_board(boards: Rows) -> Any:
    """Which boards of tic-tac-toe can occur, with as many x as o or one more, (n,)."""
    return ((boards == "x").sum(axis=1) - (boards == "o").sum(axis=1)).isin((0, 1))


def question(name: Demo, data: Dataset) -> DemoQuestion:
    """The question of a demonstration."""
    match name:
        case Demo.LOAN:
            may_change = ["debt_ratio", "loan_amount", "duration_months", "has_guarantor"]
            directions = {"debt_ratio": "decrease", "loan_amount": "decrease"}
            return DemoQuestion(
                "This application was rejected. What can the applicant do to have it approved? Debts and amount may "
                "decrease, the duration and whether there is a guarantor may change.",
                17,
                {"target": "approved", "freeze": _others(data, may_change), "directions": directions},
            )
        case Demo.MOONS:
            return DemoQuestion(
                "This point lies in one of two moons. What is the shortest way into the other?",
                {"x0": 0.55, "x1": 0.25},
                {"cost": acex.Cost(beta=0.0), "strategy": acex.Penalty(n0=4, initial="normal")},
            )
        case Demo.BREAST_CANCER:
            may_change = [name for name in data.space.names if name.startswith("worst ")]
            return DemoQuestion(
                "This sample was classified as malignant. Which of its worst values would have to differ for benign? "
                "Means and errors stay as they are.",
                73,
                {"target": "benign", "freeze": _others(data, may_change)},
            )
        case Demo.TIC_TAC_TOE:
            return DemoQuestion(
                "According to the model, x has won this game (positive). Which square decides that?",
                100,
                {"target": "negative", "rules": [is_board]},
            )
        case Demo.DIGITS:
            cost, strategy = acex.Cost(beta=0.0), acex.Penalty(n0=50)
            return DemoQuestion(
                "This image was read as an 8. Which pixels would make it a 9?",
                0,
                {"target": "9", "cost": cost, "budget": 80, "strategy": strategy},
            )


def _others(data: Dataset, names: list[str]) -> list[str]:
    return [name for name in data.space.names if name not in names]


def demo(
    name: Annotated[Demo, typer.Argument(help="What to explain.")] = Demo.LOAN,
    seed: Annotated[int, typer.Option(min=0, help="Use another seed for other queries.")] = 0,
    budget: Annotated[int | None, typer.Option(min=2, help="Most rows to send to the model.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            callback=writable(*PICTURES),
            show_default="acex-demo-NAME.png",
            help="Where to save the picture.",
        ),
    ] = None,
) -> None:
    """Explain a decision of a small model that is trained here, with a picture.

    Example: acex demo moons --seed 1 --out moons.png
    """
    from acex.show.plots import draw_explanation

    data = acex.datasets.load(name)
    text, row, options = question(name, data)
    console().print(f"{data.title}. {text}\n")
    model = _model(name, data)
    x = data.rows.iloc[row] if isinstance(row, int) else row
    options = {**options, "seed": seed} | ({} if budget is None else {"budget": budget})
    explanation = acex.explain(model, x, data.rows, space=data.space, **options)
    print_explanation(explanation)
    if explanation.outcome != "found":
        raise typer.Exit(NOTHING_FOUND)
    path = out or Path(f"acex-demo-{name}.png")
    draw_explanation(explanation, _picture(name, explanation)).savefig(path)
    console().print(f"Picture: {path}", soft_wrap=True)


def _model(name: Demo, data: Dataset) -> Predict:
    """A small model of the data, as a function from rows to labels."""
    if name is Demo.MOONS:
        from sklearn.svm import SVC

        model = SVC(kernel="rbf", gamma=1)
    else:
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(100, random_state=0)
    model.fit(data.codes, data.outcomes)
    return lambda rows: model.predict(data.space.encode(rows))


def _picture(name: Demo, explanation: acex.Explanation) -> Picture:
    """The picture that shows this explanation best."""
    from acex.show import plots

    match name:
        case Demo.MOONS:
            return plots.boundary_record(explanation)
        case Demo.DIGITS:
            return plots.images_record(explanation, (8, 8))
        case _:
            return plots.changes_record(explanation)
