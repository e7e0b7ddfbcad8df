"""Rules as text: what they mean, what is wrong with them, and that they hold in every row that is asked."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acex
from acex.ledger.sql import Ledger
from acex.space.region import Region
from acex.space.rules import Rule
from ledgers import Bill, Seller, killed

SPACE = acex.Space(
    (
        acex.Continuous("a", 0, 100),
        acex.Continuous("b", 0, 100),
        acex.Integer("c", 0, 100),
        acex.Nominal("housing", ("own", "rent", "with parents")),
        acex.Ordinal("school", ("none", "primary", "high")),
        acex.Continuous("rent", 0, 2000),
        acex.Nominal("has car", (False, True)),
    )
)
FACTUAL = np.array([30.0, 30, 40, 1, 1, 500, 0])


def points(n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return SPACE.snap(SPACE.low + rng.random((n, len(SPACE))) * (SPACE.high - SPACE.low))


# What a rule means is checked against Python's own reading of it, which the rules themselves never use.
@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("a <= 84 - b", "a <= 84 - b"),
        ("a * 12 < rent", "a * 12 < rent"),
        ("a - (b - c) * 2 > -1.5e1", "a - (b - c) * 2 > -15"),
        ("10 <= a < b / 2", "10 <= a < b / 2"),
        ("a != b or a / c >= 2", "a != b or (a / c >= 2 if c else a > 0)"),
        ("not (a < 3 or b > 50) and c > 2", "not (a < 3 or b > 50) and c > 2"),
        ("max(a, b) - min(a, b) <= abs(c - 50)", "max(a, b) - min(a, b) <= abs(c - 50)"),
        ("mean(a, b, c) > 40", "(a + b + c) / 3 > 40"),
        ("if housing == 'own' then rent < 900", "housing != 'own' or rent < 900"),
        ("housing in ('own', \"rent\")", "housing in ('own', 'rent')"),
        ("c in (12, 24)", "c in (12, 24)"),
        ("housing not in ('own', 'rent')", "housing == 'with parents'"),
        ("school >= 'primary'", "school != 'none'"),
        ("'high' > school", "school != 'high'"),
        ("`has car` == true", "car"),
        ("housing: rent -> own is impossible", "housing != 'own'"),
        ("housing: own -> rent is impossible", "True"),
        ("housing: 'with parents' -> rent -> own only", "housing in ('rent', 'own')"),
    ],
)
def test_a_rule_says_what_its_text_says(text: str, python: str) -> None:
    rule, X = Rule.of(text, SPACE), points(300)
    rows: Any = SPACE.frame(X).rename(columns={"has car": "car"}).to_dict("records")
    expected = [bool(eval(python, {"max": max, "min": min, "abs": abs}, row)) for row in rows]
    assert rule.holds(X, FACTUAL).tolist() == expected
    assert len(set(expected)) == 2 or expected[0]


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("rate * 12 < a", "'rate' is not a feature", 0),
        ("a <= 84 - agee", "'agee' is not a feature", 10),
        ("a <", "invalid syntax", 3),
        ("a + b", "expected a comparison", 0),
        ("a < * b", "invalid syntax", 4),
        ("a $ 3", "'$' is unexpected here", 2),
        ("housing == 'castle'", "'housing': 'castle' is not known; there are 'own'", 12),
        ("housing == 'rnt'", "Did you mean 'rent'?", 12),
        ("housing < 'own'", "have no order", 0),
        ("housing == school", "compare it with one of its values, in quotes", 11),
        ("2 * housing < 3", "'housing' holds categories, which cannot be used in arithmetic", 4),
        ("a == 'x'", "a value in quotes is compared with a column", 6),
        ("sum(a, b", "never closed", 3),
        ("(a < 3", "never closed", 0),
        ("if a < 3", "expected 'then' after the condition", 8),
        ("a < 3 b", "invalid syntax", 6),
        ("3 < 4", "this comparison contains no column", 0),
        ("'abc < 3", "this quote does not end", 0),
        ("a in ()", "expected at least one value", 5),
        ("3a < b", "is unexpected here", 0),
        ("then in a", "'then' is unexpected here", 0),
        ("a => 3", "write >= instead of =>", 2),
        ("a =< 3", "write <= instead of =<", 2),
        ("a'own' < 3", "invalid syntax", 2),
        ("a < 3)", "unmatched ')'", 5),
        ("housing in ('own', 'castle')", "'castle' is not known", 20),
        ("a, b", "expected a comparison", 0),
        ("sum(*a) < 3", "expected a number or a column", 4),
        ("abs(a, b) < 3", "abs takes one number", 0),
        ("nothing: a -> b is impossible", "'nothing' is not a feature", 0),
        ("a: 1 -> 2 is impossible", "holds numbers", 2),
        ("housing: own -> castle is impossible", "'castle' is not known", 15),
        ("housing: own is impossible", "expected two values with '->' between", 8),
        ("__import__('os') < 3", "expected one of the functions 'sum'", 0),
    ],
)
def test_what_is_wrong_is_said_and_pointed_at(text: str, words: str, at: int) -> None:
    with pytest.raises(ValueError, match="rule: ") as caught:
        Rule.of(text, SPACE)
    message, shown, pointer = str(caught.value).split("\n")
    assert words in message and shown == f"  {text}" and pointer == f"  {' ' * at}^"


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["a"] * 5000) + " < 3",
        " + ".join(["a"] * 200) + " < 3",
        "(" * 1000 + "a" + ")" * 1000 + " < 3",
        "not " * 400 + "a < 3",
        "- " * 400 + "a < 3",
        " and ".join(["a < 3"] * 5000),
    ],
    ids=["terms", "left-deep", "brackets", "not", "minus", "and"],
)
def test_a_rule_that_is_too_long_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|longer than"):
        Rule.of(text, SPACE)


def test_a_long_list_of_arguments_is_no_deep_rule() -> None:
    rule = Rule.of(f"sum({', '.join(['a'] * 200)}) <= 200 * b", SPACE)
    assert rule.holds(FACTUAL[None], FACTUAL).tolist() == [True]


@given(st.text(max_size=40))
@settings(max_examples=150, deadline=None)
def test_any_text_is_a_rule_or_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert Rule.of(text, SPACE).text == text


PIECES = ["a", "b", "c", "housing", "school", "`has car`", "'own'", "true", "3", "0.5", "(", ")", ",", "if", "then"]
SIGNS = ["and", "or", "not", "in", "<", "<=", "=", "==", "!=", "+", "-", "*", "/", "sum(", "abs(", "nothing"]


@given(st.lists(st.sampled_from(PIECES + SIGNS), max_size=12))
@settings(max_examples=300, deadline=None)
def test_any_sequence_of_words_and_signs_is_a_rule_or_a_value_error(words: list[str]) -> None:
    with suppress(ValueError):
        rule = Rule.of(" ".join(words), SPACE)
        assert rule.holds(FACTUAL[None], FACTUAL).dtype == bool


# -- equalities ----------------------------------------------------------------------------------------------


def region(*rules: str, **options: Any) -> Region:
    return Region.of(SPACE, FACTUAL, rules=tuple(Rule.of(text, SPACE) for text in rules), **options)


@pytest.mark.parametrize(
    "rules",
    [
        ["sum(a, b, c) == 100"],
        ["a + 2 * b == c"],
        ["rent == a * c"],
        ["a * b = 800"],
        ["abs(a + b - c) <= 0.5"],
        ["if housing == 'own' then rent == 0"],
        ["if a > 50 then housing == 'rent'"],
        ["sum(a, b, c) == 100", "if housing == 'own' then rent == 0", "housing: rent -> 'with parents' is impossible"],
    ],
)
def test_points_are_moved_along_equalities_not_thrown_away(rules: list[str]) -> None:
    where, X = region(*rules), points(400)
    held = [np.all([r.holds(Y, FACTUAL) for r in where.rules if r.equalities], axis=0) for Y in (X, where.snap(X))]
    assert held[0].mean() < 0.9 < 0.95 <= held[1].mean()
    moved = where.snap(X)[held[1]]
    assert np.array_equal(where.snap(moved), moved)
    assert np.array_equal(where._snapped(moved), moved)  # still values that the features can have


def test_one_change_is_made_up_for_by_one_other_and_each_gets_its_turn() -> None:
    where = region("sum(a, b, c) == 100")
    one = np.tile(FACTUAL, (6, 1))
    one[:, 0] += 10
    moved = where.snap(one)
    assert (moved[:, 0] == 40).all()
    assert ((moved != FACTUAL).sum(axis=1) == 2).all()
    assert {tuple(row) for row in moved[:, :3]} == {(40.0, 20.0, 40.0), (40.0, 30.0, 30.0)}


def test_nearly_equal_sides_stay_as_they_are_and_others_are_made_equal() -> None:
    rule = Rule.of("abs(rent - 10 * a) <= 5", SPACE)
    near = np.tile(FACTUAL, (3, 1))
    near[:, 5] = [296, 305, 310]
    assert rule.holds(near, FACTUAL).tolist() == [True, True, False]
    where = region(rule.text)
    assert (where.snap(near)[:2] == near[:2]).all() and where.contains(where.snap(near)).all()


@pytest.mark.parametrize("text", ["a / b > 2", "a / b >= 2", "not a / b <= 2", "not a / b < 2", "not a / b == 2"])
@pytest.mark.filterwarnings("error")
def test_a_number_divided_by_zero_is_larger_than_others_and_equal_to_none(text: str) -> None:
    space = acex.Space((acex.Continuous("a", 0, 1), acex.Continuous("b", 0, 1)))
    x = np.array([1.0, 0.0])
    assert Rule.of(text, space).holds(x[None], x).all()
    assert not Rule.of("a / b == a / b", space).holds(x[None], x).any()


@pytest.mark.parametrize("text", ["a + b <= 0.3", "a + b >= 0.3", "not a + b < 0.3", "not a + b > 0.3"])
def test_sums_of_decimals_are_compared_as_written(text: str) -> None:
    space = acex.Space((acex.Continuous("a", 0, 1), acex.Continuous("b", 0, 1)))
    x = np.array([0.1, 0.2])  # their sum is 0.30000000000000004
    assert Rule.of(text, space).holds(x[None], x).all()


def test_dates_are_compared_with_dates() -> None:
    space = acex.Space(
        (
            acex.Date("begin", "2024-01-01", "2024-12-31"),
            acex.Date("end", "2023-06-01", "2025-12-31"),
            acex.Nominal("x", ("a", "b")),
        )
    )
    X = np.array([[19800.0, 19800.0, 0.0], [19800.0, 19799.0, 0.0]])
    assert Rule.of("begin <= end", space).holds(X, X[0]).tolist() == [True, False]
    assert Rule.of("end == begin", space).holds(X, X[0]).tolist() == [True, False]
    with pytest.raises(ValueError, match="holds no numbers"):
        Rule.of("begin == x", space)


def test_what_may_not_move_makes_up_for_nothing() -> None:
    frozen = SPACE.adjust(freeze=["b"])
    where = Region.of(frozen, FACTUAL, rules=(Rule.of("sum(a, b, c) == 100", frozen),), ranges={"c": (35, 45)})
    moved = where.snap(points(200))
    assert (moved[:, 1] == 30).all() and ((moved[:, 2] >= 35) & (moved[:, 2] <= 45)).all()
    assert where.contains(moved).all()


# -- in explanations -----------------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
MIX = pd.DataFrame(RNG.dirichlet([4, 4, 4], 150) * 100, columns=["sand", "clay", "lime"]).round(1)
MIX["lime"] = (100 - MIX["sand"] - MIX["clay"]).round(1)
MIX["oven"] = RNG.choice(["gas", "wood"], 150)
RULES = ["sum(sand, clay, lime) == 100", "if oven == 'wood' then sand <= 60"]
X = MIX[MIX["sand"] < 35].iloc[0]


def strong(rows: pd.DataFrame) -> Any:
    return np.where(rows["sand"] + 0.2 * rows["lime"] > 52, "strong", "weak")


@pytest.mark.parametrize("strategy", ["feasible", acex.Penalty(n0=5)], ids=["feasible", "penalty"])
def test_rules_hold_in_every_row_that_is_asked(strategy: Any) -> None:
    e = acex.explain(strong, X, data=MIX, target="strong", budget=14, rules=RULES, strategy=strategy)
    assert e.outcome == "found"
    assert np.allclose(e.trace[["sand", "clay", "lime"]].sum(axis=1), 100)
    assert ((e.trace["oven"] != "wood") | (e.trace["sand"] <= 60))[1:].all()
    assert e.settings["rules"] == RULES
    page = e.to_html()
    assert "Rule: sum(sand, clay, lime) == 100" in page


def test_another_rule_is_another_explanation_and_none_is_as_before() -> None:
    explainer = acex.Explainer(strong, MIX)
    plain, ruled, other = (explainer.search(X, rules=r).plan.identity for r in ([], RULES, RULES[0]))
    assert len({plain, ruled, other}) == 3
    assert plain == explainer.search(X).plan.identity


@pytest.mark.parametrize(
    ("rules", "words"),
    [([""], "expected texts"), (3, "expected texts"), ([1], "got 1"), (["x < 3"], "'x' is not a feature")],
)
def test_invalid_rules_are_refused_before_anything_is_asked(rules: Any, words: str) -> None:
    def nobody(rows: Any) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match=words):
        acex.explain(nobody, X, data=MIX, rules=rules)
    with pytest.raises(ValueError, match=words):
        acex.Explainer(nobody, MIX).explain_many(MIX.head(2), rules=rules)


def explain_for_money(folder: Path, at: int = 0) -> acex.Explanation:
    seller = Seller(strong, Bill(folder / "bill"), at)
    options: Any = {"target": "strong", "rules": RULES, "budget": 8}
    return acex.explain(acex.Model(seller, name="m"), X, data=MIX, ledger=folder / "l.db", **options)


def test_killed_in_the_middle_it_goes_on_under_the_same_rules(tmp_path: Path) -> None:
    killed(lambda: explain_for_money(tmp_path, at=4))
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.abandon("m")
        e = explain_for_money(tmp_path)
        again = acex.load_explanation(ledger, e.plan.identity)
    assert again.plan.settings["rules"] == RULES and again.trace.equals(e.trace)
    bill = Counter(Bill(tmp_path / "bill").lines())
    assert bill.total() <= 8 and sorted(bill.values())[-2:] == [1, 2]
    sent = np.array([json.loads(row)[:3] for row in bill])
    assert np.allclose(sent.sum(axis=1), 100)


def test_the_shell_takes_rules_from_its_options_and_from_a_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from commands import run

    monkeypatch.chdir(tmp_path)
    code = "def strong(rows):\n    return [s + 0.2 * k > 52 for s, k in zip(rows.sand, rows.lime)]\n"
    Path("acex_test_bricks.py").write_text(code, encoding="utf-8")
    MIX.to_csv("mix.csv", index=False)
    features = 'features = [{ name = "oven", kind = "nominal" }]\n'
    Path("mix.toml").write_text(f"rules = {json.dumps(RULES[:1])}\n{features}", encoding="utf-8")
    words = ("explain", "mix.csv", "--model", "acex_test_bricks:strong", "--row", MIX.index.get_loc(X.name))
    done = run(*words, "--schema", "mix.toml", "--rule", RULES[1], "--budget", 6, "--json")
    assert done.exit_code in (0, 1), done.stderr
    answer = json.loads(done.stdout)
    assert answer["settings"]["rules"] == RULES
    assert np.allclose([sum(row[:3]) for row in answer["asked"]], 100)
    wrong = run(*words, "--rule", "sand <= clai")
    assert wrong.exit_code == 2 and "Did you mean 'clay'?" in wrong.stderr and "        ^" in wrong.stderr
    Path("mix.toml").write_text(f"rules = 3\n{features}", encoding="utf-8")
    wrong = run(*words, "--schema", "mix.toml")
    assert wrong.exit_code == 2 and "rules: expected texts" in wrong.stderr
