"""A data set for examples, which needs no file and no network: `loan()`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import FloatArray
from acex.space.space import Space

OUTCOME = "target"  # name of the Series of outcomes


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with their true outcomes, for fitting a model and explaining it.

    Example:
        >>> import acex.datasets
        >>> data = acex.datasets.loan()
        >>> data.target
        'approved'
    """

    name: str
    rows: pd.DataFrame  # features only
    outcomes: pd.Series[Any]
    space: Space
    target: Hashable  # the outcome that people prefer
    title: str

    @cached_property
    def codes(self) -> FloatArray:
        """The rows as points, (n, d)."""
        return self.space.encode(self.rows)


def loan(n: int = 1000, seed: int = 0) -> Dataset:
    """Generated loan applications, "approved" or "rejected", with features of every kind.

    The features depend on each other: income rises with education and experience, the amount with the income, and the
    duration with the amount. The decision depends on the credit score, the share of the income spent on the instalment
    and debts, and the stability of job and housing, plus a little noise.
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
    debt_ratio = np.round(rng.beta(1.6, 6.0, n), 3)  # share of the income spent on other debts
    score = 620 + 2.5 * np.minimum(employment_years, 20) - 180 * debt_ratio + rng.normal(0, 65, n)
    credit_score = np.clip(np.round(score), 300, 850).astype(np.int64)
    has_guarantor = rng.random(n) < np.where(age < 28, 0.3, 0.12)

    burden = loan_amount / duration_months / income + debt_ratio  # share of the monthly income
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

    schools = pd.CategoricalDtype(["primary", "secondary", "bachelor", "master"], ordered=True)
    rows = pd.DataFrame(
        {
            "age": age,
            "education": pd.Categorical.from_codes(school, dtype=schools),
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
    )
