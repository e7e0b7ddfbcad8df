"""Relations of the data are found among all columns, and kept in every row that is sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acex
from acex.audit.verify import verify
from acex.engine.certificate import parsed
from acex.space.region import Region
from acex.space.relations import find_relations
from acex.space.rules import Rule
from acex.space.schema import read_rules, read_schema, schema_text, with_schema
from acex.space.space import Space
from commands import run
from strategies import modest

N = 500


def bills() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 60, N), rng.integers(0, 40, N)
    net = rng.uniform(10, 90, N).round(1)
    return pd.DataFrame(
        {"a": a, "b": b, "total": a + b, "net": net, "gross": 1.2 * net, "age": rng.integers(18, 80, N)}
    )


def decide(rows: pd.DataFrame) -> Any:
    return rows["total"] + rows["gross"] / 4 > 90


def assert_kept(rows: pd.DataFrame) -> None:
    assert (rows["total"] == rows["a"] + rows["b"]).all()
    assert np.allclose(rows["gross"], 1.2 * rows["net"], rtol=1e-9)


def row(**values: Any) -> dict[Any, Any]:
    return bills().iloc[0].to_dict() | {"a": 20, "b": 10, "total": 30, "net": 40.0, "gross": 48.0} | values


def shares(digits: int, noise: float = 0.0) -> dict[str, Any]:
    """Percentages that were rounded one by one."""
    rng = np.random.default_rng(1)
    parts = rng.dirichlet([4, 3, 2], N) * 100 + noise * rng.normal(size=(N, 3))
    return dict(zip(("sand", "silt", "clay"), parts.round(digits).T, strict=True))


@pytest.mark.parametrize(
    ("columns", "texts"),
    [
        (lambda a, b, c: {"total": a + b, "a": a, "b": b}, ["total == a + b"]),
        (lambda a, b, c: {"a": a, "left": a - b, "b": b}, ["a == left + b"]),
        (lambda a, b, c: {"a": a, "b": b, "c": 100 - a - b}, ["sum(a, b, c) == 100"]),
        (lambda a, b, c: {"net": c, "gross": 1.19 * c}, ["gross == 1.19 * net"]),
        (lambda a, b, c: {"celsius": c, "fahrenheit": 1.8 * c + 32}, ["fahrenheit == 1.8 * celsius + 32"]),
        (lambda a, b, c: {"price": c, "n": a, "amount": a * c}, ["amount == price * n"]),
        (lambda a, b, c: {"year": a + 1950, "age at entry": 2020 - a - 1950}, ["`age at entry` == 2020 - year"]),
        (lambda a, b, c: {"x": a, "copy": a, "y": c}, ["copy == x"]),
        (lambda a, b, c: {"x": a, "w": 2 * a - 3 * b + c, "b": b, "c": c}, ["c == w + 3 * b - 2 * x"]),
        (lambda a, b, c: {"x": a, "y": b, "z": c, "u": a * b + c}, []),
        (lambda a, b, c: {"x": a, "almost": a + 3 * (np.arange(N) == 7)}, []),
        (lambda a, b, c: {"price": c, "n": b, "amount": b * c}, ["amount == price * n"]),  # n is 0 in some rows
        # Few orders have any items.
        (lambda a, b, c: {"price": c, "n": b * (a > 30), "amount": b * (a > 30) * c}, ["amount == price * n"]),
        (lambda a, b, c: {"n": b * (a > 30), "square": (b * (a > 30)) ** 2, "c": c}, ["square == n * n"]),
        (
            lambda a, b, c: {"price": c, "off": (b / 100) * (a > 30), "less": (b / 100 * (a > 30) * c).round(2)},
            ["abs(less - price * off) <= 0.005"],
        ),
        (lambda a, b, c: {"net": c, "gross": (1.19 * c).round(2)}, ["abs(gross - 1.19 * net) <= 0.005"]),
        (lambda a, b, c: {"year": 600 * a, "month": (50 * a + b / 24).round(2)}, []),
        (lambda a, b, c: {"year": 7 * a, "month": (7 * a / 12).round(2)}, ["abs(year - 12 * month) <= 0.04"]),
        (lambda a, b, c: {"c": c, "f": (1.8 * c + 32).round(1)}, ["abs(f - (1.8 * c + 32)) <= 0.05"]),
        (
            lambda a, b, c: {"a": a, "b": b, "sum": (a + 2 * b + c).round(), "c": c},
            ["abs(sum - (a + 2 * b + c)) <= 0.5"],
        ),
        (
            lambda a, b, c: {"age": a, "born": 85 - a - b % 2, "square": a**2},
            ["square == age * age", "abs(born - (84.5 - age)) <= 0.5"],
        ),
        (
            lambda a, b, c: {"square": c**2, "root": c, "half": c**2 / 2},
            ["half == 0.5 * square", "square == root * root"],
        ),
        (
            lambda a, b, c: {"n": a, "price": c, "net": (a * c).round(2), "tax": (0.19 * (a * c).round(2)).round(2)},
            ["net == n * price", "abs(tax - 0.19 * net) <= 0.005"],
        ),
        (lambda a, b, c: {"x": c, "cube": c**3, "y": a}, []),
        (lambda a, b, c: {"delta": a - 25, "square": (a - 25) ** 2}, ["square == delta * delta"]),
        (lambda a, b, c: {"gain": b - 15.5, "sales": a, "margin": (b - 15.5) / a}, ["gain == sales * margin"]),
        (lambda a, b, c: {"weight": c, "height": a, "bmi": c / a**2}, ["weight == height * height * bmi"]),
        (
            lambda a, b, c: {"weight": 4 * c, "cm": 150 + a, "bmi": (40_000 * c / (150 + a) ** 2).round(1)},
            ["abs(bmi - 10000 * weight / cm / cm) <= 0.05"],
        ),
        (
            lambda a, b, c: {"debt": 100 * b, "income": 50 + a, "ratio": (b * 100 / (50 + a)).round(2)},
            ["abs(ratio - debt / income) <= 0.005"],
        ),
        (lambda a, b, c: {"n": a, "price": c, "net": (0.9 * a * c).round(2)}, ["abs(net - 0.9 * n * price) <= 0.005"]),
        (lambda a, b, c: {"x": c - 9, "y": b - 15, "xy": ((c - 9) * (b - 15)).round(1)}, ["abs(xy - x * y) <= 0.05"]),
        (lambda a, b, c: {"r": c, "area": (np.pi * c**2).round(1)}, ["abs(area - 3.141594 * r * r) <= 0.05"]),
        (lambda a, b, c: {"mpg": 9 + c, "litres": (235.2 / (9 + c)).round(1)}, ["abs(litres - 235.2 / mpg) <= 0.05"]),
        (lambda a, b, c: {"a": a, "b": 1 + b, "c": (a / (1 + b)).round(1) + (np.arange(N) == 7)}, []),
        (lambda a, b, c: {"a": a, "b": b, "zero": 0 * c, "ab": (a * b * c).round()}, []),
        (lambda a, b, c: shares(1), ["abs(sum(sand, silt, clay) - 100) <= 0.1"]),
        (lambda a, b, c: shares(0), ["abs(sum(sand, silt, clay) - 100) <= 1"]),
        (lambda a, b, c: shares(1, noise=0.5), []),
        (lambda a, b, c: {"x": a, "rare": np.arange(N) == 7, "also": np.arange(N) == 7}, []),
    ],
)
def test_relations_are_found(columns: Any, texts: list[str]) -> None:
    rng = np.random.default_rng(0)
    made = columns(rng.integers(1, 50, N), rng.integers(0, 30, N), rng.uniform(1, 20, N).round(2))
    assert find_relations(list(made), np.column_stack(list(made.values())).astype(float)) == texts


def test_all_columns_are_searched() -> None:
    X = np.random.default_rng(0).normal(size=(400, 120)).round(3)
    X[:, 117] = X[:, 3] + X[:, 80]
    codes = np.eye(5)[np.arange(400) % 5]
    names = [f"x{j}" for j in range(125)]
    found = find_relations(names, np.hstack([X, codes]))
    assert found == ["x117 == x3 + x80", "sum(x120, x121, x122, x123, x124) == 1"]


def test_few_rows_and_unrelated_columns_show_none() -> None:
    rng = np.random.default_rng(0)
    assert find_relations(["a", "b"], np.tile(np.arange(15.0), (2, 1)).T) == []
    for n, d in ((20, 40), (30, 15), (100, 60)):
        for X in (rng.integers(0, 2, (n, d)), rng.random((n, d)) < 0.05, rng.integers(0, 6, (n, d))):
            assert find_relations([f"x{j}" for j in range(d)], X.astype(float)) == []


def test_columns_that_depend_on_others_in_a_complicated_way_do_no_harm() -> None:
    X = np.random.default_rng(0).integers(0, 100, (N, 5)).astype(float)
    strange = X @ np.random.default_rng(1).normal(size=(5, 3))
    twice = np.hstack([X, strange.round(4), X[:, :1] + strange.round(4)])
    texts = find_relations([f"x{j}" for j in range(twice.shape[1])], twice)
    assert all(re.fullmatch(r"x\d+ == x\d+ \+ x\d+", text) for text in texts) and len(texts) == 3


def test_no_answer_breaks_a_relation_and_a_remark_lists_them() -> None:
    data = bills()
    e = acex.explain(decide, row(), data, target=True, budget=25)
    assert e.outcome == "found"
    assert_kept(e.trace)
    [remark] = [r for r in e.remarks if r.code == "relations_kept"]
    assert "total == a + b" in str(remark) and set(remark.columns) == {"a", "b", "total", "net", "gross"}
    assert "that stay" not in str(remark)
    frozen = acex.explain(decide, row(), data, target=True, freeze=["a", "b"], budget=3)
    assert "The columns that stay as they are determine total." in str(frozen)
    changed = set(e.changes["feature"])
    assert ({"a", "b"} & changed) if "total" in changed else changed == {"net", "gross"}
    off = acex.explain(
        decide, row(), data, space=Space.infer(data, relations=False), target=True, budget=25, plausibility=None
    )
    assert not any("relations" in r.code for r in off.remarks)
    assert (off.trace["total"] != off.trace["a"] + off.trace["b"]).any()


def test_what_was_rounded_is_kept_within_rounding() -> None:
    data = pd.DataFrame(shares(1)).assign(ph=np.random.default_rng(2).normal(6.5, 0.6, N).round(1))
    e = acex.explain(lambda rows: rows["clay"] > 30, data[data["clay"] < 20].iloc[0], data, target=True, budget=25)
    assert e.outcome == "found"
    assert (np.abs(e.trace[["sand", "silt", "clay"]].sum(axis=1) - 100) <= 0.1 + 1e-9).all()
    assert (e.trace[["sand", "silt", "clay"]].round(1) == e.trace[["sand", "silt", "clay"]]).all(axis=None)
    assert "abs(sum(sand, silt, clay) - 100) <= 0.1" in " ".join(map(str, e.remarks))


def test_a_rounded_ratio_moves_with_its_parts() -> None:
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"debt": 10 * rng.integers(0, 4000, N), "income": 1000 * rng.integers(20, 120, N)})
    data["ratio"] = (data["debt"] / data["income"]).round(2)
    for freeze in ([], ["income"]):
        e = acex.explain(
            lambda rows: rows["ratio"] < 0.3,
            data[data["ratio"] > 0.4].iloc[0],
            data,
            target=True,
            freeze=freeze,
            budget=20,
        )
        asked = e.trace.iloc[1:]
        assert e.outcome == "found" and "debt" in set(e.changes["feature"])
        assert np.allclose(asked["ratio"], (asked["debt"] / asked["income"]), rtol=0, atol=0.005 + 1e-9)
        assert (asked["ratio"] == asked["ratio"].round(2)).all() and (asked[["debt", "income"]] % 10 == 0).all(
            axis=None
        )


@pytest.mark.parametrize(
    "options",
    [
        {"freeze": ["total"]},
        {"freeze": ["a", "gross"]},
        {"max_changes": 2},
        {"ranges": {"b": (5, 15)}, "directions": {"net": "increase"}},
        {"rules": ["a <= 2 * b", "age <= 90"]},
        {"values": {"a": [20, 35, 50]}},
    ],
)
def test_relations_hold_with_other_options(options: dict[str, Any]) -> None:
    e = acex.explain(decide, row(a=30, total=40, net=80.0, gross=96.0), bills(), target=True, budget=20, **options)
    assert len(e.trace) > 3
    assert_kept(e.trace)
    if "max_changes" in options or "values" in options:
        assert e.outcome == "found"


def test_a_row_that_breaks_a_relation_need_not_keep_it() -> None:
    e = acex.explain(decide, row(total=35), bills(), target=True, budget=15)
    assert [r.code for r in e.remarks if "relations" in r.code] == ["relations_kept", "relations_broken"]
    assert np.allclose(e.trace["gross"], 1.2 * e.trace["net"])


def test_identifiers_and_declared_columns_are_in_no_relation(tmp_path: Path) -> None:
    data = bills().assign(row=np.arange(N), customer_id=np.arange(N) + 100)
    assert Space.infer(data).relations == ("total == a + b", "gross == 1.2 * net")
    file = tmp_path / "schema.toml"
    file.write_text('features = [{ name = "total", kind = "integer" }]', encoding="utf-8")
    assert with_schema(data, read_schema(file))[1].relations == ("gross == 1.2 * net",)
    file.write_text(schema_text(Space.infer(bills())), encoding="utf-8")
    assert read_rules(file) == ["total == a + b", "gross == 1.2 * net"]


@pytest.mark.parametrize("dtype", [int, bool])
def test_one_of_several_dummies_is_set(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    site, size = rng.choice(["a", "b", "c"], N), rng.uniform(0, 9, N).round(2)
    data = pd.get_dummies(pd.DataFrame({"size": size, "site": site}), dtype=dtype).assign(old=rng.random(N) < 0.3)
    data["new"] = ~data["old"]
    names = ["site_a", "site_b", "site_c"]
    assert f"sum({', '.join(names)}) == 1" in Space.infer(data).relations

    def model(rows: pd.DataFrame) -> Any:
        asked = rows.astype(float)
        assert (asked[names].sum(axis=1) == 1).all() and (asked["old"] + asked["new"] == 1).all()
        return rows["size"] + 5 * asked["site_b"] + asked["new"] > 7

    e = acex.explain(model, data[~model(data)].iloc[0], data, budget=25, rules=["site_b + old <= 1"])
    assert e.outcome == "found"


def test_columns_without_gaps_are_related_whatever_the_others_lack() -> None:
    rng = np.random.default_rng(0)
    data = bills().assign(**{f"c{j}": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)) for j in range(30)})
    assert "total == a + b" in Space.infer(data, missing="keep").relations


def test_a_gap_breaks_no_relation() -> None:
    data = bills().astype(float)
    data.loc[::7, "b"] = np.nan
    space = Space.infer(data, missing="keep")
    assert "total == a + b" in space.relations
    e = acex.explain(decide, row(b=np.nan), data, space=space, target=True, budget=10)
    assert e.trace["b"].isna().all()


def test_the_ledger_and_documents_have_the_relations(tmp_path: Path) -> None:
    ledger, model = tmp_path / "answers.db", acex.Model(decide, name="bills")
    e = acex.explain(model, row(), bills(), target=True, budget=10, ledger=ledger)
    again = acex.explain(model, row(), bills(), target=True, budget=10, ledger=ledger)
    assert again.plan.identity == e.plan.identity and again.trace.equals(e.trace)
    assert Space.from_dict(e.plan.space.to_dict()) == e.plan.space
    without = acex.Explainer(model, bills(), space=Space.infer(bills(), relations=False)).search(row(), target=True)
    assert without.plan.identity != e.plan.identity
    for redact in ([], ["b"]):
        checked = verify(parsed(e.to_json(redact=redact)))
        assert checked.holds, checked.checks


def test_the_shell_turns_relations_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    bills().to_csv("rows.csv", index=False)
    Path("model_of_bills.py").write_text("def decide(rows):\n    return rows.total > 80\n")
    command = ["explain", "rows.csv", "--model", "model_of_bills:decide", "--row", 1, "--budget", 6]
    assert "total == a + b" in " ".join(run(*command).stdout.split())
    off = run(*command, "--no-relations")
    assert off.exit_code in (0, 1) and "all rows of data" not in off.stdout


def test_a_column_that_follows_from_others_has_no_noise_of_the_calculation() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"net": rng.uniform(10, 90, N).round(2), "tax": rng.uniform(1, 9, N).round(2)})
    table["gross"] = (table["net"] + table["tax"]).round(2)
    space = Space.infer(table)
    points = space.encode(table)
    region = Region.of(space, points[0])
    noisy = points.copy()
    noisy[:, space.index("gross")] *= 1 + 2e-16  # what interpolating between rows leaves
    snapped = space.decode(region.snap(noisy))["gross"]
    assert (snapped == snapped.round(2)).all()


@pytest.mark.parametrize("rule", ["", "wins == games * rate"])
def test_a_column_of_whole_numbers_keeps_to_them_where_a_ratio_follows(rule: str) -> None:
    """Whether the relation was found or is a rule of the caller: the finest column takes any value that fits."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"wins": rng.integers(0, 80, N), "games": rng.integers(80, 160, N)}).astype(float)
    table["rate"] = table["wins"] / table["games"]
    space = Space.infer(table, relations=not rule)
    points = space.encode(table)
    region = Region.of(space, points[0], rules=rule)
    points[:, space.index("rate")] *= rng.uniform(0.5, 1.5, N)
    points = region.snap(points)
    inside = space.decode(points[region.contains(points)])
    assert len(inside) > N / 2 and (inside[["wins", "games"]] % 1 == 0).all(axis=None)
    assert np.allclose(inside["rate"], inside["wins"] / inside["games"])


@modest
@given(st.data())
def test_every_point_of_a_region_keeps_the_relations(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    d = data.draw(st.integers(2, 5))
    parts = [rng.integers(0, 50, N), rng.uniform(0, 9, N).round(2), rng.choice([1, 5, 20], N), rng.normal(size=N)]
    X = np.column_stack([parts[k] for k in rng.integers(0, 4, d)]).astype(float)
    weights = rng.choice([-2, -1, 0, 0.5, 1, 1], (d, data.draw(st.integers(1, 2))))
    table = pd.DataFrame(np.hstack([X, X @ weights + rng.choice([0, 10])])).round(data.draw(st.sampled_from([1, 15])))
    table = table[rng.permutation(table.columns)].add_prefix("x")
    space = Space.infer(table)
    frozen = [name for name in space.names if rng.random() < 0.2]
    space, points = space.adjust(freeze=frozen).reaching(table)
    try:
        region = Region.of(space, points[0], min_step=0.01 * points.std(axis=0), constant=points.std(axis=0) == 0)
    except ValueError:  # nothing can move
        return
    drawn = points[0] + rng.normal(size=(60, len(space))) * points.std(axis=0) * (rng.random((60, len(space))) < 0.5)
    snapped = region.snap(drawn)
    inside = snapped[region.contains(snapped)]
    assert region.contains(points[:1]).all()
    for text in space.relations:
        assert Rule.of(text, space).holds(inside, points[0]).all()
    assert (inside[:, [space.index(name) for name in frozen]] == points[0, [space.index(n) for n in frozen]]).all()
