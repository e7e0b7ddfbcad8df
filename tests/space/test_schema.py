from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import acex
from acex.space.schema import read_rules, read_schema, schema_text, with_schema

PEOPLE = pd.DataFrame(
    {
        "income": [1200, 900, 2500],
        "school": ["high", "primary", "uni"],
        "job": ["cook", "clerk", "cook"],
        "debt": [0.5, 0.1, 0.9],
        "married": [True, False, True],
    }
)
FILE = """
features = [
    { name = "income", kind = "continuous", range = [0, 90000], weight = 2, unit = "EUR" },
    { name = "school", kind = "ordinal", categories = ["primary", "high", "uni"], direction = "increase" },
    { name = "job", kind = "nominal", frozen = true },
]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_what_columns_hold_and_the_rest_is_inferred(tmp_path: Path) -> None:
    frame, space = with_schema(PEOPLE, read_schema(write(tmp_path, FILE)))
    assert space.features == (
        acex.Continuous("income", 0, 90000, weight=2, unit="EUR"),
        acex.Ordinal("school", ("primary", "high", "uni"), direction="increase"),
        acex.Nominal("job", ("clerk", "cook"), frozen=True),
        acex.Continuous("debt", 0.1, 0.9),
        acex.Nominal("married", (False, True)),
    )
    assert frame["income"].dtype == "float64"
    assert space.columns == tuple(PEOPLE.columns)  # the model's order, whatever the file's


def test_what_is_written_reads_back_as_the_same_space(tmp_path: Path) -> None:
    _, space = with_schema(PEOPLE, read_schema(write(tmp_path, FILE)))
    text = schema_text(space)
    assert "frozen " in text and "direction " in text and "weight " in text and "range " in text  # it explains itself
    assert with_schema(PEOPLE, read_schema(write(tmp_path, text)))[1] == space


@given(name=st.text(min_size=1), words=st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True))
def test_any_name_and_category_can_be_written(
    name: str, words: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = pd.DataFrame({name: words})
    space = acex.Space.infer(frame)
    path = write(tmp_path_factory.mktemp("schema"), schema_text(space))
    assert with_schema(frame, read_schema(path))[1] == space


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("features = [", "Invalid value"),
        ("columns = []", "expected features"),
        ("", "expected features = [...], rules = [...] or both, got neither"),
        ('features = [{ name = "a" }]', "expected a table"),
        ('features = [{ name = "a", kind = "integer", frozzen = true }]', "no 'frozzen'; there are 'name'"),
        ('features = [{ name = "a", kind = "whole" }]', "'a': kind 'whole' is not one of 'continuous'"),
        ('features = [{ name = "a", kind = "ordinal" }]', "'a': an ordinal column needs categories"),
        ('features = [{ name = "a", kind = "integer", range = [1] }]', "'a': expected range = [lowest, highest], got"),
        ('features = [{ name = "a", kind = "nominal", unit = "EUR" }]', "'a': kind 'nominal' has no 'unit'"),
        ('features = [{ name = "a", kind = "nominal", range = [1, 2] }]', "'a': kind 'nominal' has no 'range'"),
        ('features = [{ name = ["a"], kind = "nominal" }]', "expected a table"),
        ('features = [{ name = { a = 1 }, kind = "nominal" }]', "expected a table"),
        ('features = [{ name = "a", kind = { a = 1 } }]', "'a': kind {'a': 1} is not one of"),
        ('features = [{ name = "a", kind = "integer" }, { name = "a", kind = "nominal" }]', "'a' is described twice"),
        ("features = []\nfeatures = []", "overwrite"),
        (f"features = {'[' * 5000}{']' * 5000}", "recursion"),
        (f"features = [{{ name = 'a', kind = 'integer', range = [0, {'9' * 5000}] }}]", "4300 digits"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"s.toml: .*{re.escape(words)}"):
        read_schema(write(tmp_path, text))


@pytest.mark.parametrize(
    "given",
    [
        *("weight = 1e999", f"weight = {'9' * 400}", "weight = {}", "range = [0.0, nan]", f"range = [0, {'9' * 400}]"),
        *("range = [[1], [2]]", "range = [2020-01-01, 2021-01-01]", "grid = [1]", "unit = ['a']", "gaps = 'x'"),
    ],
)
def test_a_value_that_does_not_fit_its_feature_is_refused(given: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"features = [{{ name = 'a', kind = 'continuous', {given} }}]")
    with pytest.raises(ValueError, match="'a': "):
        with_schema(pd.DataFrame({"a": [0.5, 1.5, 2.25]}), read_schema(path))


def test_a_file_may_have_rules_only(tmp_path: Path) -> None:
    path = write(tmp_path, "rules = ['a < 3']")
    assert read_schema(path) == [] and read_rules(path) == ["a < 3"]


def test_values_beyond_the_range_of_the_data_are_refused_with_the_range(tmp_path: Path) -> None:
    path = write(tmp_path, 'features = [{ name = "a", kind = "integer", values = [1, 9] }]')
    with pytest.raises(ValueError, match=r"'a': values must be whole numbers from 0.* to 5.*, got 9"):
        with_schema(pd.DataFrame({"a": [0, 1, 5]}), read_schema(path))


def test_a_column_that_the_data_lack_is_named(tmp_path: Path) -> None:
    schema = read_schema(write(tmp_path, 'features = [{ name = "agee", kind = "integer" }]'))
    with pytest.raises(ValueError, match="'agee'"):
        with_schema(PEOPLE, schema)
