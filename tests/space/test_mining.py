"""Rules that known rows keep, for a person to accept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import acex
from acex.space.rules import Rule

RNG = np.random.default_rng(0)


def table(n: int = 200) -> pd.DataFrame:
    parts = RNG.dirichlet([3, 3, 3], n).round(3) * 100
    first = RNG.integers(18, 60, n)
    housing = RNG.choice(["own", "rent"], n)
    frame = pd.DataFrame({"sand": parts[:, 0], "clay": parts[:, 1], "start": first})
    frame["lime"] = 100 - frame["sand"] - frame["clay"]
    frame["end age"] = first + RNG.integers(0, 20, n)
    frame["net"] = RNG.integers(100, 900, n).astype(float)
    frame["gross"] = 1.19 * frame["net"]
    frame["housing"] = housing
    frame["rent"] = np.where(housing == "own", 0.0, RNG.integers(300, 900, n))
    frame["noise"] = RNG.normal(size=n)
    return frame


def test_what_was_built_into_a_table_is_found_with_its_support() -> None:
    rows = table()
    mined = {m.rule.text: m for m in acex.Explainer(lambda rows: rows["noise"] > 0, rows).mine_rules()}
    n_owners = int((rows["housing"] == "own").sum())
    assert mined["sum(sand, clay, lime) == 100"].support == 200
    assert mined["start <= `end age`"].support == 200
    assert mined["gross == 1.19 * net"].support == 200
    assert mined["if housing == 'own' then rent == 0"].support == n_owners
    assert not any("noise" in text for text in mined)
    surprises = [m.surprise for m in mined.values()]
    assert surprises == sorted(surprises, reverse=True) and min(surprises) > 0
    assert "200 rows keep it" in str(mined["sum(sand, clay, lime) == 100"])


def test_every_rule_that_is_proposed_is_one_and_holds_for_all_rows() -> None:
    rows = table(60)
    explainer = acex.Explainer(lambda rows: rows["noise"] > 0, rows)
    X = explainer.space.encode(rows)
    for mined in explainer.mine_rules(rows):
        assert Rule.of(mined.rule.text, explainer.space).holds(X, X[0]).all()


def test_mining_applies_nothing_and_few_rows_prove_nothing() -> None:
    rows = table(60)
    explainer = acex.Explainer(lambda rows: rows["noise"] > 0, rows)
    before = explainer.search(rows.iloc[0]).plan.identity
    assert explainer.mine_rules()
    after = explainer.search(rows.iloc[0]).plan
    assert after.identity == before
    assert explainer.mine_rules(rows.head(5)) == []
    with pytest.raises(ValueError, match="sand"):
        explainer.mine_rules(rows.drop(columns="sand"))
