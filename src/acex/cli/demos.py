"""`acex demo`: decisions of small models that are trained on the spot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import acex
from acex.cli.explaining import picture_path
from acex.cli.program import NOTHING_FOUND
from acex.cli.show import changes_table, console

if TYPE_CHECKING:
    from acex.arrays import Rows
    from acex.datasets import Dataset
    from acex.models.labels import Predict
    from acex.show.plots import Picture
    from acex.show.plots.explanation import Changes

MOST_CHANGES = 8  # of the changes are listed; the picture shows more


class Demo(StrEnum):
    """The demonstrations, by the name of their data."""

    LOAN = "loan"
    MOONS = "moons"
    BREAST_CANCER = "breast-cancer"
    TIC_TAC_TOE = "tic-tac-toe"
    DIGITS = "digits"


@dataclass(frozen=True)
class _Question:
    """What a demonstration asks: about which row, and what may change."""

    words: str
    row: int | Mapping[str, float]  # a position in the data, or a row of its own
    options: Mapping[str, Any] = field(default_factory=dict)  # of acex.explain
    penalty: Mapping[str, Any] | None = None  # of acex.Penalty, where that strategy shows more


MEASURED = (
    "radius", "texture", "perimeter", "area", "smoothness",
    "compactness", "concavity", "concave points", "symmetry", "fractal dimension",
)  # fmt: skip


def _could_come_up(boards: Rows) -> Any:
    """Which boards of tic-tac-toe have as many x as o, or one more, (n,)."""
    return ((boards == "x").sum(axis=1) - (boards == "o").sum(axis=1)).isin((0, 1))


QUESTIONS = {
    Demo.LOAN: _Question(
        "This application was rejected. What can the applicant do to have it approved? "
        "Debts and amount may fall, the duration and whether there is a guarantor may change.",
        row=17,
        options={
            "target": "approved",
            "freeze": [
                "age",
                "education",
                "employment_years",
                "income",
                "credit_score",
                "purpose",
                "housing",
            ],
            "directions": {"debt_ratio": "decrease", "loan_amount": "decrease"},
        },
    ),
    Demo.MOONS: _Question(
        "This point lies in one of two moons. What is the shortest way into the other?",
        row={"x0": 0.55, "x1": 0.25},
        options={"beta": 0.0},
        penalty={"n0": 4, "initial": "normal"},
    ),
    Demo.BREAST_CANCER: _Question(
        "This sample was called malignant. Which of its worst values would have to differ for benign? "
        "Means and errors stay as they are.",
        row=73,
        options={
            "target": "benign",
            "freeze": [*(f"mean {name}" for name in MEASURED), *(f"{name} error" for name in MEASURED)],
        },
    ),
    Demo.TIC_TAC_TOE: _Question(
        "The model says that x has won this game (positive). Which square decides that?",
        row=100,
        options={"target": "negative", "constraint": _could_come_up},
    ),
    Demo.DIGITS: _Question(
        "This image was read as an 8. Which pixels would make it a 9?",
        row=0,
        options={"target": "9", "beta": 0.0, "budget": 80},
        penalty={"n0": 50},
    ),
}


def demo(
    name: Annotated[Demo, typer.Argument(help="What to explain.")] = Demo.LOAN,
    seed: Annotated[int, typer.Option(min=0, help="Another seed asks other questions.")] = 0,
    budget: Annotated[int | None, typer.Option(min=2, help="Most rows to send to the model.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            callback=picture_path,
            show_default="acex-demo-NAME.png",
            help="Where to save the picture.",
        ),
    ] = None,
) -> None:
    """Explain a decision of a small model that is trained here, with a picture.

    Example: acex demo moons --seed 1 --out moons.png
    """
    from acex.show.plots import changes_record, draw_explanation

    question, data = QUESTIONS[name], acex.datasets.load(name)
    terminal = console()
    terminal.print(f"{data.title}. {question.words}\n")
    predict = _model(name, data)
    row = data.rows.iloc[question.row] if isinstance(question.row, int) else question.row
    options = {**question.options} | ({} if budget is None else {"budget": budget})
    strategy = "feasible" if question.penalty is None else acex.Penalty(**question.penalty)
    explanation = acex.explain(predict, row, data=data.rows, space=data.space, strategy=strategy, seed=seed, **options)
    if explanation.outcome != "found":
        terminal.print(explanation.summary())
        raise typer.Exit(NOTHING_FOUND)
    path = out or Path(f"acex-demo-{name}.png")
    draw_explanation(explanation, _picture(name, explanation)).savefig(path)

    n_changes = len(explanation.changes)
    terminal.print(
        f"{explanation.label_before} becomes {explanation.label_after} "
        f"with {n_changes} of {len(data.space)} features changed:",
        style="bold",
    )
    if name is Demo.DIGITS:
        terminal.print(_as_sentence(changes_record(explanation, most=MOST_CHANGES)))
    else:
        terminal.print(changes_table(explanation, most=MOST_CHANGES))
    terminal.print(f"The model was asked {explanation.n_queries} times.")
    terminal.print(f"Picture: {path}", soft_wrap=True)


def _model(name: Demo, data: Dataset) -> Predict:
    """From rows to labels: a small model of the data. From here on it can only be asked."""
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


def _as_sentence(changes: Changes) -> str:
    """The largest changes in a line: for pixels, which say little one by one."""
    largest = ", ".join(f"{change.feature} ({change.before} to {change.after})" for change in changes.shown)
    rest = f", and {changes.n_more} less" if changes.n_more else ""
    return f"Most of all: {largest}{rest}.\n"
