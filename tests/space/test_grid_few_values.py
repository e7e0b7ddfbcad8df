"""Numbers with few values take only values that occur, unless a caller frees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acex
from acex.space.region import Region
from acex.space.schema import read_schema, schema_text, with_schema
from acex.space.space import Space
from commands import run
from strategies import modest

N = 500
FEW: dict[str, Any] = {
    "speed": [25, 33, 50, 66, 75, 100],
    "term": [12, 24, 36, 48, 60],
    "discount": [0.0, 0.05, 0.1, 0.15, 0.2, 0.25],
    "code": [1, 2, 3, 7, 9],
    "ram": [2.0, 4.0, 8.0, 16.0, 32.0],
}


def laptops(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: rng.choice(values, n) for name, values in FEW.items()})
    many = {"age": rng.integers(18, 80, n), "income": rng.lognormal(10, 1, n).round(-1), "visits": rng.poisson(60, n)}
    return rows.assign(**many, rating=rng.integers(1, 6, n), noise=rng.normal(size=n))


def decide(rows: pd.DataFrame) -> Any:
    return rows["speed"] / 25 + rows["term"] / 12 + rows["discount"] * 10 + rows["ram"] / 4 + rows["age"] / 20 > 15


def row(**values: Any) -> dict[Any, Any]:
    return laptops().iloc[0].to_dict() | {"speed": 33, "term": 24, "discount": 0.05, "ram": 4.0, "age": 30} | values


def test_columns_with_few_values_are_recognised() -> None:
    space = Space.infer(laptops())
    assert {f.name: [*f.values] for f in space.features if f.values} == FEW
    assert not any(f.values for f in Space.infer(laptops(), grid=False).features)
    assert not any(f.values for f in Space.infer(laptops(10)).features)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).poisson(2, 400),
        np.random.default_rng(1).integers(0, 201, 300),
        np.random.default_rng(2).normal(40, 12, 60).round(),
        np.random.default_rng(3).normal(size=25).round(1),
        17 + np.random.default_rng(4).gamma(2, 2, 300).round(),
        np.where(np.arange(300) % 10 > 0, 0, np.random.default_rng(5).integers(1, 200, 300)),
        np.repeat([1.0, 2.0, 3.0], 50),
        np.repeat([0, 1], 50),
    ],
)
def test_ages_counts_and_small_samples_are_free(values: Any) -> None:
    assert Space.infer(pd.DataFrame({"x": values, "y": np.arange(len(values))})).feature("x").values == ()


@pytest.mark.parametrize("form", ["", "%d.%m.%Y", "date", "Europe/Berlin"])
def test_dates_with_few_values_take_only_dates_that_occur(form: str, tmp_path: Path) -> None:
    rng, ends = np.random.default_rng(0), pd.date_range("2025-01-31", periods=20, freq="ME")
    due = pd.Series(rng.choice(ends, 200))
    limit = pd.Timestamp("2025-10-10", tz=form if "/" in form else None)
    if "/" in form:
        due = due.dt.tz_localize(form)
    elif form:
        due = due.dt.date if form == "date" else due.dt.strftime(form)
    data = pd.DataFrame({"due": due, "paid": pd.date_range("2025-01-01", periods=200), "x": rng.normal(size=200)})
    space = Space.infer(data)
    assert [len(f.values) for f in space.features] == [20, 0, 0] and space.feature("due").values[1] == "2025-02-28"
    assert Space.from_dict(space.to_dict()) == space
    (tmp_path / "schema.toml").write_text(schema_text(space), encoding="utf-8")
    assert with_schema(data, read_schema(tmp_path / "schema.toml"))[1].features == space.features

    def late(rows: pd.DataFrame) -> Any:
        return pd.to_datetime(rows["due"], format="%d.%m.%Y" if "%" in form else None) > limit

    row = data[~late(data)].iloc[0]
    e = acex.explain(late, row, data, target=True, budget=15)
    assert e.outcome == "found" and set(e.trace["due"]) <= set(due) and e.remarks[0].columns == ("due",)
    free = Space.infer(data, grid={"due": None})
    assert not set(acex.explain(late, row, data, space=free, target=True, budget=15).trace["due"]) <= set(due)


@pytest.mark.parametrize("values", [5, "soon", ["2025-01-31", 5], [None]])
def test_values_of_a_date_are_dates(values: Any) -> None:
    with pytest.raises(ValueError, match="'due': expected a date"):
        acex.Date("due", "2025-01-01", "2026-01-01", values=values)


def test_days_that_leave_out_few_are_free() -> None:
    days = pd.Series(pd.date_range("2025-01-01", periods=30))
    assert Space.infer(pd.DataFrame({"day": [*days, *days, *days, *days]})).feature("day").values == ()
    assert Space.infer(pd.DataFrame({"day": days.repeat(6)[::6]})).feature("day").values == ()


def test_an_answer_uses_values_that_occur_and_a_remark_says_so() -> None:
    data = laptops()
    e = acex.explain(decide, row(), data, target=True, budget=25)
    assert e.outcome == "found"
    for name, values in FEW.items():
        assert set(e.trace[name]) <= set(values)
    [remark] = [r for r in e.remarks if r.code == "few_values"]
    assert remark.columns == tuple(FEW) and "grid={'speed': None}" in str(remark)
    assert "--grid speed=off" in str(remark)
    free = acex.Space.infer(data, grid=dict.fromkeys(FEW))
    freed = acex.explain(decide, row(), data, space=free, target=True, budget=25)
    assert not any(r.code == "few_values" for r in freed.remarks)
    assert any(not set(freed.trace[name]) <= set(values) for name, values in FEW.items())


def test_the_own_value_of_the_row_may_stay() -> None:
    e = acex.explain(decide, row(speed=40, term=120), laptops(), target=True, budget=25)
    assert set(e.trace["speed"]) <= {40, *FEW["speed"]} and set(e.trace["term"]) <= {120, *FEW["term"]}
    assert e.plan.may_become["speed"] == [25, 33, 40, 50, 66, 75, 100]


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        ({"ranges": {"speed": (30, 70)}}, [33, 50, 66]),
        ({"ranges": {"speed": (34, 49)}}, (34, 49)),  # no value occurs in it
        ({"ranges": {"speed": (26, 49)}}, (26, 49)),
        ({"values": {"speed": [40, 45]}}, [40, 45]),
        ({"directions": {"speed": "increase"}}, [33, 50, 66, 75, 100]),
        ({"freeze": ["speed"]}, None),
        ({"rules": ["speed in (25, 100)"]}, FEW["speed"]),
    ],
)
def test_options_limit_the_values(options: dict[str, Any], allowed: Any) -> None:
    plan = acex.Explainer(decide, laptops()).search(row(), target=True, **options).plan
    assert plan.may_become["speed"] == allowed
    is_inferred = isinstance(allowed, list) and "values" not in options
    assert any("speed" in r.columns for r in plan.remarks if r.code == "few_values") == is_inferred


def test_rules_and_few_changes_work_on_few_values() -> None:
    options: dict[str, Any] = {"rules": ["term in (12, 24, 60)"], "max_changes": 2, "freeze": ["code"]}
    e = acex.explain(decide, row(age=60), laptops(), target=True, budget=25, **options)
    assert e.outcome == "found" and len(e.changes) <= 2
    assert set(e.trace["term"]) <= {12, 24, 60} and e.trace["code"].nunique() == 1


def test_a_declared_column_is_free_and_a_file_can_list_values(tmp_path: Path) -> None:
    data = laptops()[["speed", "age"]]
    file = tmp_path / "schema.toml"
    file.write_text('features = [{ name = "speed", kind = "integer" }]', encoding="utf-8")
    assert with_schema(data, read_schema(file))[1].feature("speed").values == ()
    file.write_text(schema_text(Space.infer(data)), encoding="utf-8")
    _, declared = with_schema(data, read_schema(file))
    assert declared == Space.infer(data)
    plan = acex.Explainer(lambda rows: rows["age"] > 30, data, space=declared).search(data.iloc[0]).plan
    assert not any(r.code == "few_values" for r in plan.remarks)


def test_the_ledger_has_the_values(tmp_path: Path) -> None:
    ledger = tmp_path / "answers.db"
    model = acex.Model(decide, name="laptops")
    e = acex.explain(model, row(), laptops(), target=True, budget=8, ledger=ledger)
    again = acex.explain(model, row(), laptops(), target=True, budget=8, ledger=ledger)
    assert again.plan.identity == e.plan.identity and again.trace.equals(e.trace)
    assert Space.from_dict(e.plan.space.to_dict()) == e.plan.space
    freed = acex.Explainer(model, laptops(), space=Space.infer(laptops(), grid=False)).search(row(), target=True)
    assert freed.plan.identity != e.plan.identity


@pytest.mark.parametrize("values", [("a",), (True,), (0.5,), (7,), "12", (np.nan,), 3])
def test_wrong_values_are_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="'a'"):
        acex.Integer("a", 0, 5, values=values)


def test_the_shell_frees_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    laptops().to_csv("rows.csv", index=False)
    Path("few_valued_model.py").write_text("def decide(rows):\n    return rows.speed + rows.term > 120\n")
    command = ["explain", "rows.csv", "--model", "few_valued_model:decide", "--row", 1, "--budget", 6]
    assert "only values that occur" in run(*command).stdout
    freed = run(*command, *(part for name in FEW for part in ("--grid", f"{name}=off")))
    assert freed.exit_code == 0 and "only values that occur" not in freed.stdout


@st.composite
def regions(draw: Any) -> tuple[Region, list[float]]:
    """A region with a few-valued column x, which may have gaps, and the values that x may take."""
    whole = draw(st.booleans())
    number = st.integers(-50, 50) if whole else st.integers(-50, 50).map(lambda v: v / 8)
    values = draw(st.lists(number, min_size=3, max_size=8, unique=True).filter(lambda v: max(v) - min(v) > len(v)))
    gaps = not whole and draw(st.booleans())
    column = [*values * 10, *([np.nan] * 5 if gaps else [])]
    data = pd.DataFrame({"x": column, "y": np.linspace(0, 1, len(column))})
    space = Space.infer(data, missing="keep" if gaps else "drop")
    direction = draw(st.sampled_from([None, "increase", "decrease"]))
    space = space.adjust(directions={} if direction is None else {"x": direction})
    home = draw(st.sampled_from([*values, draw(number), *([None] if gaps else [])]))
    space, [point] = space.reaching(pd.DataFrame({"x": [home], "y": [0.5]}).astype(data.dtypes))
    allowed = {None} if home is None else {*values, home}
    if direction is not None and home is not None:
        allowed = {v for v in allowed if (v >= home if direction == "increase" else v <= home)}
    return Region.of(space, point, min_step=np.array([0.01, 0.01])), [point[0] if v is None else v for v in allowed]


@modest
@given(st.data())
def test_every_point_has_values_that_occur(data: st.DataObject) -> None:
    region, allowed = data.draw(regions())
    numbers = st.floats(-60, 60)
    X = np.array(data.draw(st.lists(st.tuples(numbers, st.floats(0, 1)), min_size=1, max_size=20)))
    snapped = region.snap(X)
    if region.space.feature("x").values:
        assert set(snapped[:, 0]) <= set(allowed)
        assert set(X[region.contains(X), 0]) <= set(allowed)
    assert region.contains(snapped).all()
    assert region.contains(region.factual[None]).all()
