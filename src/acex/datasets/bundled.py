"""Data that need no file and no network: generated here, enumerated, or shipped with scikit-learn."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from acex.datasets.dataset import OUTCOME, Dataset, images, schemas
from acex.space.space import Space

EDUCATION = ("primary", "secondary", "bachelor", "master")
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def loan(n: int = 1000, seed: int = 0) -> Dataset:
    """Generated loan applications, "approved" or "rejected", with features of every kind.

    The features hang together: schooling and experience raise the income, the income the amount asked
    for, the amount the duration. The bank looks at the credit score, at what instalment and debts take
    of the income, and at how steady the applicant lives; its decisions are a little noisy.
    """
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(4.0, 5.5, n) + 19, 19, 75).astype(np.int64)
    school = np.clip(rng.binomial(3, 0.45, n), 0, np.where(age < 22, 1, 3))
    employment_years = (rng.beta(1.3, 2.2, n) * (age - 18)).astype(np.int64)
    log_income = 7.35 + 0.2 * school + 0.02 * np.minimum(employment_years, 25) + rng.normal(0, 0.25, n)
    income = np.round(np.exp(log_income), -1).astype(np.int64)

    purposes = np.array(["car", "education", "furniture", "home improvement", "small business"])
    purpose = rng.choice(len(purposes), n, p=[0.35, 0.1, 0.25, 0.2, 0.1])
    typical_amount = np.array([5.0, 3.0, 1.8, 6.0, 8.0])[purpose]  # in monthly incomes
    amount = income * typical_amount * rng.lognormal(0, 0.45, n)
    loan_amount = np.clip(np.round(amount, -2), 500, 60_000).astype(np.int64)
    months = 10 + 7 * loan_amount / income + rng.normal(0, 8, n)
    duration_months = np.clip(np.round(months / 6) * 6, 6, 84).astype(np.int64)

    owns = rng.random(n) < 1 / (1 + np.exp(-(0.07 * (age - 45) + 0.0004 * (income - 2500))))
    stays = ~owns & (age < 30) & (rng.random(n) < 0.7)
    housing = np.select([owns, stays], ["own", "with parents"], default="rent")
    debt_ratio = np.round(rng.beta(1.6, 6.0, n), 3)  # share of the income that other debts take
    score = 620 + 2.5 * np.minimum(employment_years, 20) - 180 * debt_ratio + rng.normal(0, 65, n)
    credit_score = np.clip(np.round(score), 300, 850).astype(np.int64)
    has_guarantor = rng.random(n) < np.where(age < 28, 0.3, 0.12)

    burden = loan_amount / duration_months / income + debt_ratio  # of the income, month by month
    leaning = (
        0.028 * (credit_score - 590)
        - 9.0 * (burden - 0.38)
        + 0.12 * np.minimum(employment_years, 10)
        + 1.6 * has_guarantor
        + 0.7 * owns
        - 0.8 * (purposes[purpose] == "small business")
        - 1.4
    )
    approved = leaning + rng.logistic(0, 0.35, n) > 0

    rows = pd.DataFrame(
        {
            "age": age,
            "education": pd.Categorical.from_codes(school, dtype=pd.CategoricalDtype(list(EDUCATION), ordered=True)),
            "employment_years": employment_years,
            "income": income,
            "debt_ratio": debt_ratio,
            "credit_score": credit_score,
            "loan_amount": loan_amount,
            "duration_months": duration_months,
            "purpose": pd.Series(purposes[purpose], dtype="str"),
            "housing": pd.Series(housing, dtype="str"),
            "has_guarantor": has_guarantor,
        }
    )
    return Dataset(
        name="loan",
        rows=rows,
        outcomes=pd.Series(np.where(approved, "approved", "rejected"), name=OUTCOME, dtype="str"),
        space=Space.infer(rows).adjust(freeze=["age"]),
        target="approved",
        title="Loan applications (generated)",
        positive=("approved",),
    )


def moons() -> Dataset:
    """Two interleaved half circles, 200 points in the plane, zero mean and unit variance."""
    from sklearn.datasets import make_moons

    X, y = make_moons(200, noise=0.2, random_state=0)
    rows = pd.DataFrame((X - X.mean(axis=0)) / X.std(axis=0), columns=pd.Index(["x0", "x1"]))
    return Dataset(
        name="moons",
        rows=rows,
        outcomes=pd.Series(y, name=OUTCOME),
        space=Space.infer(rows),
        target=1,
        title="Two moons (generated)",
        positive=(1,),
    )


def tic_tac_toe() -> Dataset:
    """The 958 boards at which a game of tic-tac-toe can end, "positive" where x has won; x moves first.

    The x wins come first, then the o wins, then the draws, each sorted with x before o before b (blank).
    """
    boards = [(_outcome(board), board) for board in product("xob", repeat=9)]
    final = [(*board, outcome) for wanted in ("x", "o", "draw") for outcome, board in boards if outcome == wanted]
    schema = schemas()["tic_tac_toe"]
    table = pd.DataFrame(final, columns=pd.Index([*(column.name for column in schema.columns), OUTCOME]))
    table[OUTCOME] = table[OUTCOME].map({"x": "positive", "o": "negative", "draw": "negative"})
    return schema.dataset(table)


def _outcome(board: tuple[str, ...]) -> str | None:
    """Who has won, "x" or "o", or "draw"; None where no game can end."""
    lead = board.count("x") - board.count("o")
    has_line = {player: any(all(board[i] == player for i in line) for line in LINES) for player in "xo"}
    # The player who completes a line has just moved, and the game stops: the other has no line.
    if has_line["x"] and lead == 1 and not has_line["o"]:
        return "x"
    if has_line["o"] and lead == 0 and not has_line["x"]:
        return "o"
    if "b" not in board and lead == 1 and not any(has_line.values()):
        return "draw"
    return None


def breast_cancer() -> Dataset:
    """Thirty measurements of cell nuclei in 569 samples, "malignant" or "benign"."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    return Dataset(
        name="breast_cancer",
        rows=bunch.data,
        outcomes=pd.Series(bunch.target_names[bunch.target], name=OUTCOME, dtype="str"),
        space=Space.infer(bunch.data, grid=False),
        target="benign",
        title="Breast Cancer Wisconsin (Diagnostic)",
        positive=("malignant",),
    )


def digits(first: int = 8, second: int = 9) -> Dataset:
    """Images of two handwritten digits, 8 x 8 pixels of 0 to 16; the wanted one is `second`."""
    from sklearn.datasets import load_digits

    if first == second or not {first, second} <= set(range(10)):
        raise ValueError(f"Expected two different digits from 0 to 9, got {first!r} and {second!r}.")
    bunch = load_digits()
    wanted = np.isin(bunch.target, (first, second))
    return images(
        "digits",
        bunch.data[wanted].astype(np.int64),
        bunch.target[wanted].astype(str),
        brightest=16,
        target=str(second),
        title=f"Handwritten digits, {first} against {second}",
    )
