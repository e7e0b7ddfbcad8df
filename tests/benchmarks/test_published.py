"""The paper's data sets, from files and from OpenML."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

from acex.datasets import Dataset
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from benchmarks.generated import tic_tac_toe
from benchmarks.published import PAPER, binary, load, mnist, schemas
from conftest import needs_data


def check(data: Dataset) -> None:
    """What holds for every data set."""
    assert list(data.rows.columns) == data.space.names
    assert len(data.rows) == len(data.outcomes)
    assert_frame_equal(data.space.decode(data.codes[:50]), data.rows[:50])
    assert data.target in set(data.outcomes)


# -- the folder and the network ----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "file"), [("german_credit", "german_credit.csv"), ("mnist", "mnist.npz")])
def test_a_folder_without_the_file_is_named(
    name: str, file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="does not exist") as caught:
        load(name)
    assert str(tmp_path / file) in str(caught.value)


@pytest.mark.parametrize("name", ["diabetes", "mnist"])
def test_without_folder_and_network_the_message_names_both_ways_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**_: Any) -> None:
        raise URLError("no route to host")

    monkeypatch.delenv("ACEX_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(FileNotFoundError, match=r"Set ACEX_DATA .* or go online"):
        load(name)


def test_a_category_that_is_not_in_the_schema_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "blood.csv").write_text("recency,frequency,monetary,time,target\n1,1,250,2,maybe\n")
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="maybe"):
        load("blood")


def test_a_fraction_in_an_integer_column_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "blood.csv").write_text("recency,frequency,monetary,time,target\n1.5,1,250,2,donated\n")
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="'recency'"):
        load("blood")


def serve(monkeypatch: pytest.MonkeyPatch, data_id: int, data: pd.DataFrame, labels: list[Any]) -> None:
    """OpenML, holding one data set."""

    def fetch_openml(*, data_id: int, as_frame: bool, parser: str, read_csv_kwargs: dict[str, Any]) -> SimpleNamespace:
        assert as_frame and parser == "auto" and read_csv_kwargs == {"dtype": None}
        return shelf[data_id]

    shelf = {data_id: SimpleNamespace(data=data, target=pd.Series(labels))}
    monkeypatch.delenv("ACEX_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)


def test_german_credit_from_openml_becomes_the_nine_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    openml = pd.DataFrame(
        {
            "checking_status": ["<0", "0<=X<200", "no checking", ">=200"],
            "duration": [6, 48, 12, 24],
            "purpose": ["radio/tv", "used car", "retraining", "other"],
            "credit_amount": [1169.0, 5951.0, 2096.0, 700.0],
            "savings_status": ["no known savings", "<100", "500<=X<1000", "'>=1000'"],
            "personal_status": ["male single", "female div/dep/mar", "male mar/wid", "male div/sep"],
            "age": [67, 22, 49, 30],
            "housing": ["own", "for free", "rent", "own"],
            "existing_credits": [2, 1, 1, 1],
            "job": ["skilled", "unemp/unskilled non res", "unskilled resident", "high qualif/self emp/mgmt"],
        }
    )
    serve(
        monkeypatch,
        31,
        openml.astype({"purpose": "category", "job": "category"}),
        ["good", "bad", "good", "bad"],
    )
    data = load("german_credit")
    expected = pd.DataFrame(
        {
            "age": [67, 22, 49, 30],
            "sex": ["male", "female", "male", "male"],
            "job": [2, 0, 1, 3],
            "housing": ["own", "free", "rent", "own"],
            "saving_accounts": ["unknown", "little", "quite rich", "rich"],
            "checking_account": ["little", "moderate", "none", "rich"],
            "credit_amount": [1169, 5951, 2096, 700],
            "duration": [6, 48, 12, 24],
            "purpose": ["radio/TV", "car", "education", "vacation/others"],
        }
    )
    assert_frame_equal(data.rows, expected)
    assert data.outcomes.tolist() == ["good", "bad", "good", "bad"]
    check(data)


def test_openml_rows_with_a_missing_value_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = ["Clump_Thickness", "Cell_Size_Uniformity", "Cell_Shape_Uniformity", "Marginal_Adhesion"]
    sources += ["Single_Epi_Cell_Size", "Bare_Nuclei", "Bland_Chromatin", "Normal_Nucleoli", "Mitoses"]
    openml = pd.DataFrame([[1] * 9, [2] * 9, [3] * 9], columns=pd.Index(sources), dtype="Int64")
    openml.loc[1, "Bare_Nuclei"] = pd.NA
    serve(monkeypatch, 15, openml, ["benign", "benign", "malignant"])
    data = load("breast")
    assert data.rows["bare_nuclei"].tolist() == [1, 3]
    assert data.rows.index.tolist() == data.outcomes.index.tolist() == [0, 1]
    assert binary(data).tolist() == [0, 1]
    assert set(data.rows.dtypes) == {np.dtype("int64")}


@pytest.mark.parametrize("code", [int, str])
def test_openml_codes_become_words_whether_numbers_or_text(
    code: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    openml = pd.DataFrame(
        {
            "Wifes_age": [24, 45],
            "Wifes_education": [code(2), code(1)],
            "Husbands_education": [code(3), code(4)],
            "Number_of_children_ever_born": [3, 10],
            "Wifes_religion": [code(1), code(0)],
            "Wifes_now_working%3F": [code(1), code(0)],
            "Husbands_occupation": [code(2), code(3)],
            "Standard-of-living_index": [code(3), code(4)],
            "Media_exposure": [code(0), code(1)],
        }
    )
    serve(monkeypatch, 23, openml, [code(1), code(3)])
    data = load("cmc")
    first = [24, "medium_low", "medium_high", 3, "islam", "no", "occupation_2", "medium_high", "good"]
    second = [45, "low", "high", 10, "non_islam", "yes", "occupation_3", "high", "not_good"]
    assert data.rows.to_numpy().tolist() == [first, second]
    assert data.outcomes.tolist() == ["no_use", "short_term"]
    assert schemas()["cmc"].positive == ("long_term", "short_term")


def test_an_openml_table_without_a_column_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, 1464, pd.DataFrame({"V1": [1], "V2": [1], "V3": [250]}), [1])
    with pytest.raises(ValueError, match="'V4'"):
        load("blood")


def test_mnist_from_openml_is_split_and_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.published.MNIST_TRAIN_ROWS", 4)
    pixels = np.repeat(np.arange(6), 784).reshape(6, 784)
    serve(monkeypatch, 554, pd.DataFrame(pixels), [8, 5, 9, 8, 0, 9])
    train, test = mnist(), mnist("test")
    assert train.outcomes.tolist() == ["8", "9", "8"] and train.rows["pixel_0_0"].tolist() == [0, 2, 3]
    assert test.outcomes.tolist() == ["9"] and test.rows["pixel_27_27"].tolist() == [5]
    check(train)


def test_mnist_has_a_train_and_a_test_split_only() -> None:
    with pytest.raises(ValueError, match="'valid' is not one of"):
        mnist("valid")  # type: ignore[arg-type]


# -- the published files -----------------------------------------------------------------------------

SHAPES = {
    "diabetes": (768, 8, 268),
    "breast": (683, 9, 239),
    "kc2": (522, 21, 107),
    "blood": (748, 4, 178),
    "cmc": (1473, 9, 844),
    "nursery": (12960, 8, 8640),
    "german_credit": (1000, 9, 700),
    "tic_tac_toe": (958, 9, 626),
}


@needs_data
@pytest.mark.parametrize("name", PAPER)
def test_a_published_table_has_its_rows_columns_and_positives(name: str) -> None:
    data = load(name)
    assert (*data.rows.shape, binary(data).sum()) == SHAPES[name]
    check(data)


@needs_data
def test_dtypes_of_a_published_table_say_the_kind() -> None:
    cmc, kc2 = load("cmc"), load("kc2")
    assert cmc.rows["wife_age"].dtype == "int64"
    assert cmc.rows["wife_religion"].dtype == pd.Series(["text"]).dtype
    assert cmc.rows["living_standard"].dtype == pd.CategoricalDtype(
        ["low", "medium_low", "medium_high", "high"], ordered=True
    )
    assert kc2.rows["loc"].dtype == "float64" and kc2.rows["lines_code"].dtype == "int64"


@needs_data
def test_enumerated_tic_tac_toe_equals_the_published_table() -> None:
    data = tic_tac_toe()
    published = pd.read_csv(Path(os.environ["ACEX_DATA"]) / "tic_tac_toe.csv", dtype="str")
    assert_series_equal(data.outcomes, published.pop("target"))
    assert_frame_equal(data.rows, published)


@needs_data
@pytest.mark.parametrize(("split", "count"), [("train", (5851, 5949)), ("test", (974, 1009))])
def test_mnist_holds_the_official_eights_and_nines(split: Any, count: tuple[int, int]) -> None:
    data = mnist(split)
    assert (data.outcomes == "8").sum() == count[0] and (data.outcomes == "9").sum() == count[1]
    assert set(data.rows.dtypes) == {np.dtype("uint8")} and data.rows.shape[1] == 784
    check(data)


@needs_data
@pytest.mark.parametrize("name", PAPER)
def test_the_schema_agrees_with_the_description_beside_the_file(name: str) -> None:
    path = Path(os.environ["ACEX_DATA"]) / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"ACEX_DATA holds no {path.name}")
    described = json.loads(path.read_text(encoding="utf-8"))
    data = load(name)
    assert set(data.outcomes[binary(data) == 1]) == set(described["target"]["positive"])
    assert data.outcomes.value_counts().to_dict() == described["target"]["counts"]
    for feature, expected in zip(data.space.features, described["features"], strict=True):
        assert (feature.name, type(feature).__name__.lower()) == (expected["name"], expected["kind"])
        assert feature.frozen == expected["immutable"]
        if isinstance(feature, (Continuous, Integer)):
            assert [feature.low, feature.high] == expected["range"]
        else:
            assert isinstance(feature, (Ordinal, Nominal))
            assert list(feature.categories) == expected["categories"]
