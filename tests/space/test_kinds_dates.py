"""Dates."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import acex
from acex import Date, Region, Space
from acex.cli.flags import allowed_values, limits
from acex.space.rules import Rule
from acex.space.schema import read_schema, schema_text, with_schema

RNG = np.random.default_rng(0)
DAYS = pd.date_range("2012-01-01", periods=60, freq="D")
MOMENTS = {
    "datetime64[ns]": pd.Series(DAYS).astype("datetime64[ns]"),
    "datetime64[s]": pd.Series(DAYS).astype("datetime64[s]"),
    "hours": pd.Series(pd.date_range("2012-01-01 03:00", periods=60, freq="h")),
    "milliseconds": pd.Series(pd.date_range("2012-01-01", periods=60, freq="123ms")),
    "with a zone": pd.Series(pd.date_range("2012-03-20", periods=60, freq="h", tz="Europe/Zurich")),
    "days with a zone": pd.Series(pd.date_range("2012-03-01", periods=60, freq="D", tz="Europe/Zurich")),
    "days with an offset": pd.Series(pd.to_datetime(DAYS.strftime("%Y-%m-%dT00:00:00-03:30"))),
    "iso texts": pd.Series(DAYS.strftime("%Y-%m-%d")),
    "german texts": pd.Series(DAYS.strftime("%d.%m.%Y"), dtype=object),
    "american texts": pd.Series(DAYS.strftime("%m/%d/%Y"), dtype="string"),
    "texts with a time": pd.Series(pd.date_range("2012-01-01", periods=60, freq="90min").strftime("%Y-%m-%d %H:%M")),
    "iso texts in UTC": pd.Series(
        pd.date_range("2021-09-10 10:04:36", periods=60, freq="97s").strftime("%Y-%m-%dT%H:%M:%SZ")
    ),
    "iso texts of JavaScript": pd.Series(DAYS.strftime("%Y-%m-%dT10:04:36.000Z")),
    "dates of Python": pd.Series([d.date() for d in DAYS], dtype=object),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_dates_are_a_kind_of_their_own_and_come_back_as_they_were(name: str) -> None:
    data = pd.DataFrame({"day": MOMENTS[name], "x": np.arange(60.0)})
    space = Space.infer(data)
    assert type(space.feature("day")) is Date
    X = space.encode(data)
    assert (np.diff(X[:, 0]) > 0).all()
    assert_frame_equal(space.decode(X), data)
    between = space.decode((X[:-1] + X[1:]) / 2)
    assert between.dtypes.tolist() == data.dtypes.tolist()
    assert Space.from_dict(space.to_dict()) == space


def test_dates_are_counted_as_finely_as_the_data_are() -> None:
    steps = {name: Space.infer(pd.DataFrame({"day": values})).features[0].step for name, values in MOMENTS.items()}  # type: ignore[attr-defined]
    assert steps["datetime64[ns]"] == steps["iso texts"] == "D"
    assert steps["days with a zone"] == steps["days with an offset"] == "D"  # also across a change of the clock
    assert (steps["hours"], steps["milliseconds"], steps["texts with a time"]) == ("h", "ms", "min")


def test_months_and_days_that_could_be_exchanged_are_categories() -> None:
    [feature] = Space.infer(pd.DataFrame({"day": ["01/02/2012", "03/04/2012"] * 10})).features
    assert type(feature) is acex.Nominal


@pytest.mark.parametrize("rule", ["", "end - start == days"])
def test_days_between_two_dates_are_kept(rule: str) -> None:
    days, start = RNG.integers(1, 60, 200), RNG.integers(0, 700, 200)
    data = pd.DataFrame({"start": DAYS[0] + pd.to_timedelta(start, "D"), "days": days})
    data["end"] = data["start"] + pd.to_timedelta(days, "D")
    space = Space.infer(data, relations=not rule)
    assert space.relations == (() if rule else ("end == start + days",))
    row = data[data["days"] < 30].iloc[0]
    rules = [rule] if rule else []
    e = acex.explain(lambda rows: rows["days"] > 40, row, data, space=space, rules=rules, target=True, budget=12)
    assert e.outcome == "found"
    assert ((e.trace["end"] - e.trace["start"]).dt.days == e.trace["days"]).all()


@pytest.mark.parametrize(
    ("rule", "message"),
    [("hours + 1 == day", "dates with a time, which cannot be used"), ("day == 3", "expected a date")],
)
def test_a_date_that_cannot_be_counted_in_days_is_refused_in_arithmetic(rule: str, message: str) -> None:
    data = pd.DataFrame({"day": MOMENTS["datetime64[ns]"], "hours": MOMENTS["hours"]})
    with pytest.raises(ValueError, match=message):
        Rule.of(rule, Space.infer(data))


def test_days_of_a_time_zone_stay_days() -> None:
    day = MOMENTS["days with a zone"]
    data = pd.DataFrame({"day": day, "x": RNG.normal(size=60)})
    limits = {"day": ("2012-03-05", pd.Timestamp("2012-04-20", tz="Europe/Zurich"))}
    e = acex.explain(
        lambda rows: rows["day"] >= pd.Timestamp("2012-04-10", tz="Europe/Zurich"),
        data.iloc[5], data, target=True, ranges=limits, freeze=["x"], budget=20, plausibility=None,
    )  # fmt: skip
    assert e.outcome == "found" and e.trace["day"].max() <= limits["day"][1]
    assert (e.trace["day"].dt.hour == 0).all() and e.trace["day"].dtype == day.dtype
    back = acex.Explanation.from_json(e.to_json())
    assert_frame_equal(back.counterfactuals, e.counterfactuals)


def test_durations_are_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"'wait'.*total_seconds"):
        Space.infer(pd.DataFrame({"wait": pd.to_timedelta(np.arange(40), unit="h")}))


@pytest.mark.parametrize("form", ["datetime64[ns]", "german texts"])
def test_a_date_is_moved_within_its_limits_and_shown_as_a_date(form: str) -> None:
    data = pd.DataFrame({"day": MOMENTS[form], "x": RNG.normal(size=60)})

    def late(rows: pd.DataFrame) -> Any:
        return np.where(pd.to_datetime(rows["day"], dayfirst=True) >= pd.Timestamp("2012-02-10"), "late", "early")

    e = acex.explain(late, data.iloc[5], data=data, target="late", budget=25, plausibility=None, freeze=["x"])
    assert e.outcome == "found"
    assert pd.to_datetime(e.counterfactual["day"], dayfirst=True) == pd.Timestamp("2012-02-10")
    assert e.counterfactuals.dtypes.tolist() == data.dtypes.tolist()
    assert ("2012-01-06" if form.startswith("d") else "06.01.2012") in e.sentences()[0]
    back = acex.Explanation.from_json(e.to_json())
    assert_frame_equal(back.counterfactuals, e.counterfactuals)
    assert "2012" in e.to_html()
    region = Region.of(e.plan.space, e.plan.space.encode(data.iloc[5])[0], ranges={"day": ("2012-01-03", "2012-01-20")})
    assert e.plan.space.feature("day").span(("2012-01-03", "2012-01-20")) == "2012-01-03 to 2012-01-20"
    assert region.high[0] - region.low[0] == 17


def test_limits_of_dates_can_be_said_in_the_shell() -> None:
    day = Date("day", "2012-01-01", "2012-12-31")
    assert day.ends(limits(day, "2012-02-01..2012-03-01")) == (15371, 15400)
    assert day.ends(limits(day, "2012-02-01:")) == (15371, np.inf)
    assert day.choices(allowed_values(day, "2012-03-01|2012-02-01")).tolist() == [15371, 15400]
    with pytest.raises(ValueError, match=r"expected LOW:HIGH or LOW\.\.HIGH"):
        limits(day, "2012-02-01")
    with pytest.raises(ValueError, match="'day'"):
        day.ends(("soon", "later"))
    with pytest.raises(ValueError, match=r"expected \(low, high\)"):
        day.ends("2012-01-01")


def test_a_date_beyond_the_data_widens_the_range() -> None:
    data = pd.DataFrame({"day": DAYS, "x": np.arange(60.0)})
    space = Space.infer(data).reaching({"day": date(2013, 5, 1), "x": 1.0})[0]
    assert space.feature("day") == Date("day", "2012-01-01", "2013-05-01")


def test_dates_in_a_schema(tmp_path: Path) -> None:
    data = pd.DataFrame({"day": MOMENTS["german texts"], "x": np.arange(60.0) % 7})
    space = Space.infer(data)
    (tmp_path / "s.toml").write_text(schema_text(space))
    assert with_schema(data, read_schema(tmp_path / "s.toml"))[1] == space


@pytest.mark.parametrize(
    ("texts", "form"),
    [
        (["3.4.2026", "13.4.2026"], "%d.%m.%Y"),
        (["13/4/2026", "01/12/2026"], "%d/%m/%Y"),
        (["4/13/2026", "01/12/2026"], "%m/%d/%Y"),
        (["20260403", "20261130"], "%Y%m%d"),
        (["3.4.26", "30.11.26"], "%d.%m.%y"),
        (["3.4.2026 9:30", "30.11.2026 23:11"], "%d.%m.%Y %H:%M"),
    ],
)
def test_a_declared_column_of_dates_has_the_format_that_its_values_show(texts: list[str], form: str) -> None:
    [day, _] = Space.infer(pd.DataFrame({"day": texts, "n": [0.5, 1.5]}), dates=["day"]).features
    assert isinstance(day, Date) and day.form == form


def test_a_declared_column_of_dates_is_refused_where_its_format_is_unknown() -> None:
    either = pd.DataFrame({"day": ["03/04/2026", "01/12/2026"]})
    with pytest.raises(ValueError, match=r"'day': '03/04/2026' may be .* dates="):
        Space.infer(either, dates=["day"])
    [day] = Space.infer(either, dates={"day": "%d/%m/%Y"}).features
    assert isinstance(day, Date) and day.first == "2026-04-03"
    with pytest.raises(ValueError, match=r"'day': expected dates .*'soon'"):
        Space.infer(pd.DataFrame({"day": ["2026-01-01", "soon"]}), dates=["day"])
    with pytest.raises(ValueError, match="'day': expected dates, got int64"):
        Space.infer(pd.DataFrame({"day": [20260101, 20260102]}), dates=["day"])


@pytest.mark.parametrize("text", ["03/04/2012", "13/04/2012", "01.02.2012", "June 1 2012", "2012-02"])
@pytest.mark.parametrize("name", ["datetime64[s]", "iso texts"])
def test_a_date_in_a_form_of_another_country_is_refused(text: str, name: str) -> None:
    data = pd.DataFrame({"day": MOMENTS[name], "x": np.arange(60.0)})
    space = Space.infer(data)
    for refused in (
        lambda: space.feature("day").ends((text, None)),
        lambda: Rule.of(f"day >= '{text}'", space),
        lambda: space.encode(pd.DataFrame({"day": [text], "x": [0.0]})),
    ):
        with pytest.raises(ValueError, match=f"'day': expected a date .*such as .* got '{text}'"):
            refused()


def test_a_text_in_another_format_than_the_declared_one_is_refused_with_the_format() -> None:
    day = Date("day", "2012-01-01", "2012-12-31", form="%m.%d.%Y")
    with pytest.raises(ValueError, match=r"expected a date in the format %m.%d.%Y, or such as .* got '13.01.2012'"):
        day.encode(pd.Series(["13.01.2012"]))


def test_a_moment_of_numpy_in_any_unit_is_a_date() -> None:
    day = Space.infer(pd.DataFrame({"day": DAYS})).feature("day")
    assert {day.limit(np.datetime64("2012-01-05", unit)) for unit in ("D", "us", "ns")} == {day.limit("2012-01-05")}


def test_a_column_declared_as_text_holds_categories() -> None:
    data = pd.DataFrame({"plz": [1067, 1069, 1067], "day": ["2026-01-01", "2026-01-02", "2026-01-03"]})
    space = Space.infer(data, text=["plz", "day"])
    assert [feature.kind for feature in space.features] == ["nominal", "nominal"]
    assert_frame_equal(space.decode(space.encode(data)), data)  # the model sees the same numbers
    with pytest.raises(ValueError, match="'zip' is not a column"):
        Space.infer(data, text=["zip"])
