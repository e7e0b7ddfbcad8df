"""A column that only identifies a row is frozen, and nothing is learnt from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.space.schema import read_schema, with_schema
from acex.space.space import Space

N = 400
DAYS = np.sort(np.random.default_rng(0).integers(0, 1500, N))  # on which customers came
MINUTES = DAYS * 1440 + np.arange(N)
COLUMNS: dict[str, Any] = {
    "customer_id": 100_000 + 3 * np.arange(N),
    "row": np.arange(float(N)),
    "pid": 5000 + np.arange(N) // 2,
    "created": pd.Timestamp("2020-01-01") + pd.to_timedelta(MINUTES, unit="min"),
    "came": MINUTES / 1440,
}
RECOGNISED = ("customer_id", "row", "pid")  # by their names


def customers(column: str | None) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    spend, age = rng.gamma(4, 25, N).round(2), rng.integers(18, 80, N)
    rows = pd.DataFrame({"tenure_days": 1500 - DAYS, "spend": spend, "age": age})
    return rows if column is None else rows.assign(**{column: COLUMNS[column]})


def decide(rows: pd.DataFrame) -> Any:
    return np.where((rows["tenure_days"] >= 700) & (rows["spend"] > 120), "yes", "no")


def explained(column: str | None, n: int = 8, **options: Any) -> list[acex.Explanation]:
    data = customers(column)
    some = data[(data["tenure_days"] < 500) & (data["spend"] < 100)].iloc[:n]
    freeze = [column] if column is not None and column not in RECOGNISED else []
    explainer = acex.Explainer(decide, data, **options)
    return [explainer.explain(row, target="yes", budget=15, freeze=freeze) for _, row in some.iterrows()]


@pytest.mark.parametrize("column", [None, *COLUMNS])
def test_what_identifies_a_row_does_not_decide_what_is_plausible(column: str | None) -> None:
    n = 8 if column in (None, "customer_id") else 2
    found = explained(column, n)
    assert [e.outcome for e in found] == ["found"] * n
    naming = {remark.code for e in found for remark in e.remarks if column and column in str(remark)}
    assert naming == ({"identifier"} if column in RECOGNISED else set())


def test_a_hint_does_not_see_identifiers() -> None:
    with_ids, without = (explained(column, n=2, outcomes=decide(customers(None))) for column in ("customer_id", None))
    for a, b in zip(with_ids, without, strict=True):
        assert a.outcome == b.outcome == "found"
        assert a.n_queries <= b.n_queries + 3


def test_a_new_identifier_is_worth_no_remark() -> None:
    row = customers("customer_id").iloc[-1].copy()
    row["customer_id"] = 900_000
    e = acex.explain(decide, row, customers("customer_id"), target="yes", budget=20)
    assert not any("customer_id" in remark.columns for remark in e.remarks)


def test_a_declared_column_is_no_identifier(tmp_path: Path) -> None:
    data = customers("customer_id")
    (tmp_path / "s.toml").write_text(
        'features = [{ name = "customer_id", kind = "integer", frozen = true }]', encoding="utf-8"
    )
    _, declared = with_schema(data, read_schema(tmp_path / "s.toml"))
    X = declared.encode(data)
    assert declared.without_identifiers(X) is X
    inferred = Space.infer(data)
    hidden = inferred.without_identifiers(X)
    assert len(np.unique(hidden[:, 3])) == 1 and (hidden[:, :3] == X[:, :3]).all()
    assert Space(inferred.features).without_identifiers(X) is X
