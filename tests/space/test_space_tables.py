"""Tables as users have them: gaps, identifiers, yes and no, and all problems at once."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import acex
from acex import Space
from acex.space.schema import read_schema, schema_text, with_schema
from strategies import columns, modest

# -- gaps ------------------------------------------------------------------------------------------------


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {"age": rng.integers(18, 80, n), "income": rng.normal(50, 15, n), "smoker": rng.choice(["yes", "no"], n)}
    )


def rule(rows: pd.DataFrame) -> Any:
    return np.where(rows["income"] > 50, "good", "bad")


def test_rows_with_gaps_are_left_out_counted_and_said() -> None:
    data, labels = people(), rule(people())
    whole = acex.explain(rule, data.iloc[9], data=data.iloc[3:], outcomes=labels[3:], budget=6)
    data.loc[[0, 1], "income"] = np.nan
    data.loc[[1, 2], "smoker"] = None
    e = acex.explain(rule, data.iloc[9], data=data, outcomes=labels, budget=6)
    assert "3 of 60 rows of data have gaps and were left out (income 2 and smoker 2)." in map(str, e.remarks)
    assert e.settings["n_reference"] == 57
    assert_frame_equal(e.trace, whole.trace)


def test_gaps_in_an_array_are_left_out_too() -> None:
    data = np.random.default_rng(0).normal(size=(50, 2))
    data[4, 1] = np.nan
    e = acex.explain(lambda X: (X[:, 0] > 0).astype(int), data[0], data=data, budget=5)
    assert "1 of 50 rows of data has a gap and was left out (1 1)." in map(str, e.remarks)


def test_a_table_without_a_whole_row_says_where_the_gaps_are() -> None:
    data = people()
    data["income"] = np.nan
    with pytest.raises(ValueError, match="data has a gap: income 60"):
        acex.explain(rule, people().iloc[0], data=data)


# -- identifiers, yes and no, numbers in other countries ---------------------------------------------------


def test_a_number_for_each_row_stays_as_it_is() -> None:
    data = people().assign(customer_id=np.arange(60) + 1000, cycle=np.arange(60), row=np.arange(60.0))
    assert [f.name for f in Space.infer(data).features if f.frozen] == ["customer_id", "row"]


IDS = (
    *("pid", "uid", "idno", "psu", "caseid", "PassengerId", "customerID", "id_cliente"),
    *("Kundennummer", "kundennr", "record_no", "account_number"),
)
AMOUNTS = ["paid", "bid", "valid", "covid", "grid", "income", "snr", "number", "stratum", "price_index"]


@pytest.mark.parametrize("name", [*IDS, *AMOUNTS])
def test_an_id_that_repeats_in_some_rows_stays_as_it_is(name: str) -> None:
    values = np.random.default_rng(0).permutation(9000)[:300]
    for n_repeated in (20, 180):
        values[:n_repeated] = values[-n_repeated:]
        [feature, _] = Space.infer(pd.DataFrame({name: values, "x": np.arange(300) * 1.5})).features
        assert feature.frozen == (name in IDS)


def test_a_number_of_a_shop_may_change() -> None:
    shops = np.random.default_rng(0).integers(1, 40, 300)
    assert not Space.infer(pd.DataFrame({"shop_id": shops, "x": np.arange(300) * 1.5})).features[0].frozen


@pytest.mark.parametrize("texts", [[f"S-{i}" for i in range(60)], [f"C-{i % 200}" for i in range(900)]])
def test_texts_that_identify_rows_are_refused(texts: list[str]) -> None:
    with pytest.raises(ValueError, match="--drop 'sample_id'"):
        Space.infer(pd.DataFrame({"sample_id": texts, "x": np.arange(len(texts)) * 1.5}))
    with pytest.raises(ValueError, match="identifier") if len(texts) == 60 else nullcontext():
        Space.infer(pd.DataFrame({"place": texts, "x": np.arange(len(texts)) * 1.5}))


def test_dates_in_an_unusual_format_are_refused_with_the_option_that_reads_them() -> None:
    days = pd.date_range("2024-01-01", periods=60).strftime("%d/%m/%y")
    with pytest.raises(ValueError, match="--date 'day="):
        Space.infer(pd.DataFrame({"day": days, "x": np.arange(60) * 1.5}))


def test_all_problems_of_a_table_are_told_at_once() -> None:
    n = 150
    data = pd.DataFrame(
        {
            "who": [f"person {i}" for i in range(n)],
            "mixed": [1, "a", 2.5] * 50,
            "price": ["1.250,75", "3,50", "12"] * 50,
            "ok": np.arange(n) * 1.5,
            "big": np.append(np.ones(n - 1), 1e300),
        }
    )
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (each line is looked at)
        Space.infer(data)
    first, *lines = str(caught.value).split("\n")
    assert first == "4 columns cannot be used as they are:"
    assert [line.split(":")[0] for line in lines] == ["- 'who'", "- 'mixed'", "- 'price'", "- 'big'"]
    for line, advice in zip(lines, ("--drop 'who'", "Convert the column", "--decimal ','", "rescale"), strict=True):
        assert advice in line


def test_all_problems_of_a_row_are_told_at_once() -> None:
    with pytest.raises(ValueError, match="'age'"):
        Space.infer(people()).encode({"age": "old", "income": 50.0, "smoker": "maybe"})


def test_decimal_commas_and_semicolons_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run

    monkeypatch.chdir(tmp_path)
    Path("werte.csv").write_text("preis;menge\n" + "\n".join(f"{1000 + i},5;{i}" for i in range(30)), encoding="utf-8")
    shown = run("schema", "werte.csv", "--decimal", ",").stdout
    assert 'name = "preis", kind = "continuous", range = [1000.5, 1029.5]' in shown
    assert 'name = "menge", kind = "integer", range = [0, 29]' in shown
    wrong = run("schema", "werte.csv")
    assert wrong.exit_code == 2 and "decimal commas" in wrong.stderr


@pytest.mark.parametrize(("texts", "is_doubtful"), [(["950", "1,250"], True), (["950", "1,250", "3,5"], False)])
def test_commas_that_may_separate_thousands_are_not_taken_for_decimal_commas(texts: Any, is_doubtful: bool) -> None:
    with pytest.raises(ValueError, match=r"'income': texts such as '1,250'.*decimal=','") as caught:
        Space.infer(pd.DataFrame({"income": texts * 10, "x": np.arange(len(texts) * 10)}))
    assert ("thousands=','" in str(caught.value)) == is_doubtful


# -- round trips ---------------------------------------------------------------------------------------------

STAMPS = st.datetimes(pd.Timestamp("1900").to_pydatetime(), pd.Timestamp("2100").to_pydatetime())


@st.composite
def any_column(draw: Any, n: int) -> Any:
    """A column of any dtype that there is, dates of any resolution included."""
    kind = draw(st.sampled_from(["plain", "date", "zone"]))
    if kind == "plain":
        return draw(columns(n))
    unit = draw(st.sampled_from(["s", "ms", "us", "ns"]))
    stamps: Any = pd.Series(pd.to_datetime(draw(st.lists(STAMPS, min_size=n, max_size=n))))
    stamps = stamps.dt.floor(draw(st.sampled_from(["D", "h", "s"]))).astype(f"datetime64[{unit}]")
    return stamps.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo") if kind == "zone" else stamps


@st.composite
def any_frame(draw: Any) -> pd.DataFrame:
    n = draw(st.integers(1, 9))
    return pd.DataFrame({f"c{j}": draw(any_column(n)) for j in range(draw(st.integers(1, 4)))})


@modest
@given(any_frame())
def test_rows_of_any_dtype_come_back_with_exactly_that_dtype(data: pd.DataFrame) -> None:
    space = Space.infer(data)
    assert_frame_equal(space.decode(space.encode(data)), data)
    moved = space.decode(np.vstack([space.low, space.high]))
    assert moved.dtypes.tolist() == data.dtypes.tolist()
    row = space.encode(data.iloc[0])  # as a Series, which may hold objects
    assert (row == space.encode(data)[:1]).all()


# -- categories that nobody has declared -----------------------------------------------------------------

JOBS = pd.DataFrame({"job": ["clerk", "cook", "other"] * 20, "x": np.arange(60.0)})


def busy(rows: pd.DataFrame) -> Any:
    assert set(rows["job"]) <= {"clerk", "cook", "other"}
    return np.where(rows["x"] > 30, "yes", "no")


def test_an_unknown_category_counts_as_the_one_that_stands_for_others() -> None:
    row = {"job": "pilot", "x": 5.0}
    with pytest.raises(ValueError, match="'pilot'"):
        acex.explain(busy, row, data=JOBS)
    e = acex.explain(busy, row, data=JOBS, budget=12, space=acex.Space.infer(JOBS, other={"job": "other"}))
    assert e.outcome == "found" and e.factual["job"] == "other"
    assert "'job': 'pilot' is not a known category and counts as 'other'." in map(str, e.remarks)
    known = acex.explain(
        busy, row | {"job": "cook"}, data=JOBS, budget=2, space=acex.Space.infer(JOBS, other={"job": "other"})
    )
    assert not any("counts as" in warning for warning in map(str, known.remarks))


def test_what_stands_for_others_is_a_category_of_the_column() -> None:
    with pytest.raises(
        ValueError, match="'job': other must be one of the categories, 'clerk', 'cook', 'other', got 'x'"
    ):
        Space.infer(JOBS).adjust(other={"job": "x"})
    with pytest.raises(ValueError, match="'x'"):
        Space.infer(JOBS).adjust(other={"x": "other"})


def test_a_schema_and_the_shell_say_what_stands_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    JOBS.to_csv("jobs.csv", index=False)
    Path("row.json").write_text('{"job": "pilot", "x": 5.0}')
    Path("busy_model.py").write_text("def decide(rows):\n    return ['yes' if x > 30 else 'no' for x in rows.x]\n")
    command = ["explain", "jobs.csv", "--model", "busy_model:decide", "--x", "row.json", "--budget", 10]
    assert "other=" in run(*command).stderr
    done = run(*command, "--other", "job=other")
    assert done.exit_code == 0 and "counts as 'other'" in done.stdout + done.stderr
    _, space = with_schema(JOBS, ())
    Path("schema.toml").write_text(schema_text(space.adjust(other={"job": "other"})))
    assert read_schema(Path("schema.toml"))[0].given["other"] == "other"
    assert run(*command, "--schema", "schema.toml").exit_code == 0
