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
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal, assert_series_equal
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

from acex import datasets
from acex.datasets import PAPER, Dataset
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal

needs_files = pytest.mark.skipif(
    not os.environ.get("ACEX_DATA"), reason="set ACEX_DATA to the folder of the published data"
)

BUNDLED: list[Callable[[], Dataset]] = [
    datasets.loan,
    datasets.moons,
    datasets.tic_tac_toe,
    datasets.breast_cancer,
    datasets.digits,
]


def check(data: Dataset) -> None:
    """Everything that holds for every data set."""
    assert list(data.rows.columns) == data.space.names
    assert len(data.rows) == len(data.outcomes) == len(data.binary)
    assert data.codes.shape == data.rows.shape
    assert_frame_equal(data.space.decode(data.codes[:50]), data.rows[:50])
    assert data.target in set(data.outcomes)
    assert set(data.positive) < set(data.outcomes)
    assert_array_equal(data.binary, [label in data.positive for label in data.outcomes])


# -- without files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", BUNDLED)
def test_rows_labels_and_space_of_a_bundled_set_fit_together(make: Callable[[], Dataset]) -> None:
    check(make())


@pytest.mark.parametrize("name", ["loan", "moons", "breast-cancer", "breast_cancer", "tic-tac-toe", "digits"])
def test_load_takes_hyphens_and_underscores_alike_and_needs_no_files(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    assert datasets.load(name).name == name.replace("-", "_")


def test_load_knows_every_published_set_too() -> None:
    assert {*PAPER, "mnist", "loan", "moons", "digits", "breast_cancer"} == set(datasets.names())


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="german_credit"):
        datasets.load("iris")
    with pytest.raises(ValueError, match="german_credit"):
        datasets.paper("iris")


def test_loan_has_features_of_every_kind_and_keeps_the_age() -> None:
    space = datasets.loan().space
    assert {type(feature) for feature in space.features} == {Continuous, Integer, Ordinal, Nominal}
    assert [feature.name for feature in space.features if feature.frozen] == ["age"]


def test_loan_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    once, again, other = datasets.loan(seed=3), datasets.loan(seed=3), datasets.loan(seed=4)
    assert_frame_equal(once.rows, again.rows)
    assert_series_equal(once.outcomes, again.outcomes)
    assert not once.rows.equals(other.rows)


@pytest.mark.parametrize("seed", range(5))
def test_loan_rejects_between_30_and_45_percent(seed: int) -> None:
    assert 0.30 < (datasets.loan(seed=seed).outcomes == "rejected").mean() < 0.45


def test_loan_features_hang_together() -> None:
    rows = datasets.loan().rows
    assert rows["income"].corr(rows["employment_years"]) > 0.2
    assert rows["loan_amount"].corr(rows["duration_months"]) > 0.5
    assert (rows["employment_years"] <= rows["age"] - 18).all()


def test_a_random_forest_learns_the_loan_decision() -> None:
    data = datasets.loan()
    forest = RandomForestClassifier(50, random_state=0)
    accuracy = cross_val_score(forest, data.codes, data.binary, cv=3).mean()
    assert accuracy > data.binary.mean() + 0.15


def test_moons_are_scikit_learns_with_zero_mean_and_unit_variance() -> None:
    data = datasets.moons()
    X, y = make_moons(200, noise=0.2, random_state=0)
    assert list(data.rows.columns) == ["x0", "x1"]
    assert_allclose(data.codes.mean(axis=0), 0, atol=1e-12)
    assert_allclose(data.codes.std(axis=0), 1)
    assert_allclose(data.codes * X.std(axis=0) + X.mean(axis=0), X)
    assert_array_equal(data.outcomes, y)


def test_tic_tac_toe_ends_in_958_boards_of_which_x_wins_626() -> None:
    data = datasets.tic_tac_toe()
    assert data.outcomes.value_counts().to_dict() == {"positive": 626, "negative": 332}
    assert not data.rows.duplicated().any()
    assert "".join(data.rows.iloc[0]) == "xxxxooxoo"


def test_playing_every_game_of_tic_tac_toe_ends_on_the_same_boards() -> None:
    def ends(board: str, player: str) -> set[str]:
        rows = [
            board[0:3],
            board[3:6],
            board[6:9],
            board[0::3],
            board[1::3],
            board[2::3],
            board[0::4],
            board[2:7:2],
        ]
        if "xxx" in rows or "ooo" in rows or "b" not in board:
            return {board}
        moves = [board[:i] + player + board[i + 1 :] for i in range(9) if board[i] == "b"]
        return set().union(*(ends(move, "o" if player == "x" else "x") for move in moves))

    assert {"".join(row) for row in datasets.tic_tac_toe().rows.itertuples(index=False)} == ends("b" * 9, "x")


def test_breast_cancer_has_569_samples_of_30_measurements() -> None:
    data = datasets.breast_cancer()
    assert data.rows.shape == (569, 30)
    assert data.outcomes.value_counts().to_dict() == {"benign": 357, "malignant": 212}


def test_digits_hold_the_two_asked_for_and_pixels_from_0_to_16() -> None:
    data = datasets.digits(3, 5)
    assert set(data.outcomes) == {"3", "5"} and data.target == "5"
    assert data.rows.shape[1] == 64
    assert (data.space.low == 0).all() and (data.space.high == 16).all()


@pytest.mark.parametrize("pair", [(3, 3), (3, 12)])
def test_digits_that_are_no_pair_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="two different digits"):
        datasets.digits(*pair)


# -- the folder and the network ----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "file"), [("german-credit", "german_credit.csv"), ("mnist", "mnist.npz")])
def test_a_folder_without_the_file_is_named(
    name: str, file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="does not exist") as caught:
        datasets.load(name)
    assert str(tmp_path / file) in str(caught.value)


@pytest.mark.parametrize("name", ["diabetes", "mnist"])
def test_without_folder_and_network_the_message_names_both_ways_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(**_: Any) -> None:
        raise URLError("no route to host")

    monkeypatch.delenv("ACEX_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(FileNotFoundError, match=r"Set ACEX_DATA .* or go online"):
        datasets.load(name)


def test_a_word_the_schema_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    squares = ",".join(feature.name for feature in datasets.tic_tac_toe().space.features)
    (tmp_path / "tic_tac_toe.csv").write_text(f"{squares},target\nx,x,x,o,o,y,b,b,b,positive\n")
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="middle_right"):
        datasets.paper("tic_tac_toe")


def test_a_fraction_in_an_integer_column_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "blood.csv").write_text("recency,frequency,monetary,time,target\n1.5,1,250,2,donated\n")
    monkeypatch.setenv("ACEX_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="'recency'"):
        datasets.paper("blood")


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
    data = datasets.paper("german_credit")
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
    data = datasets.paper("breast")
    assert data.rows["bare_nuclei"].tolist() == [1, 3]
    assert data.rows.index.tolist() == data.outcomes.index.tolist() == [0, 1]
    assert data.binary.tolist() == [0, 1]
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
    data = datasets.paper("cmc")
    first = [24, "medium_low", "medium_high", 3, "islam", "no", "occupation_2", "medium_high", "good"]
    second = [45, "low", "high", 10, "non_islam", "yes", "occupation_3", "high", "not_good"]
    assert data.rows.to_numpy().tolist() == [first, second]
    assert data.outcomes.tolist() == ["no_use", "short_term"]
    assert data.positive == ("long_term", "short_term")


def test_an_openml_table_without_a_column_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, 1464, pd.DataFrame({"V1": [1], "V2": [1], "V3": [250]}), [1])
    with pytest.raises(ValueError, match="'V4'"):
        datasets.paper("blood")


def test_mnist_from_openml_is_split_and_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acex.datasets.published.MNIST_TRAIN_ROWS", 4)
    pixels = np.repeat(np.arange(6), 784).reshape(6, 784)
    serve(monkeypatch, 554, pd.DataFrame(pixels), [8, 5, 9, 8, 0, 9])
    train, test = datasets.mnist(), datasets.mnist("test")
    assert train.outcomes.tolist() == ["8", "9", "8"] and train.rows["pixel_0_0"].tolist() == [0, 2, 3]
    assert test.outcomes.tolist() == ["9"] and test.rows["pixel_27_27"].tolist() == [5]
    check(train)


def test_mnist_has_a_train_and_a_test_split_only() -> None:
    with pytest.raises(ValueError, match="'valid' is not one of"):
        datasets.mnist("valid")  # type: ignore[arg-type]


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


@needs_files
@pytest.mark.parametrize("name", PAPER)
def test_a_published_table_has_its_rows_columns_and_positives(name: str) -> None:
    data = datasets.paper(name)
    assert (*data.rows.shape, data.binary.sum()) == SHAPES[name]
    check(data)


@needs_files
def test_dtypes_of_a_published_table_say_the_kind() -> None:
    cmc, kc2 = datasets.paper("cmc"), datasets.paper("kc2")
    assert cmc.rows["wife_age"].dtype == "int64"
    assert cmc.rows["wife_religion"].dtype == pd.Series(["text"]).dtype
    assert cmc.rows["living_standard"].dtype == pd.CategoricalDtype(
        ["low", "medium_low", "medium_high", "high"], ordered=True
    )
    assert kc2.rows["loc"].dtype == "float64" and kc2.rows["lines_code"].dtype == "int64"


@needs_files
def test_enumerated_tic_tac_toe_equals_the_published_table() -> None:
    enumerated, published = datasets.tic_tac_toe(), datasets.paper("tic-tac-toe")
    assert_frame_equal(enumerated.rows, published.rows)
    assert_series_equal(enumerated.outcomes, published.outcomes)
    assert enumerated.space == published.space


@needs_files
@pytest.mark.parametrize(("split", "count"), [("train", (5851, 5949)), ("test", (974, 1009))])
def test_mnist_holds_the_official_eights_and_nines(split: Any, count: tuple[int, int]) -> None:
    data = datasets.mnist(split)
    assert (data.outcomes == "8").sum() == count[0] and (data.outcomes == "9").sum() == count[1]
    assert set(data.rows.dtypes) == {np.dtype("uint8")} and data.rows.shape[1] == 784
    check(data)


@needs_files
@pytest.mark.parametrize("name", PAPER)
def test_the_schema_agrees_with_the_description_beside_the_file(name: str) -> None:
    path = Path(os.environ["ACEX_DATA"]) / f"{name}.json"
    if not path.is_file():
        pytest.skip(f"ACEX_DATA holds no {path.name}")
    described = json.loads(path.read_text(encoding="utf-8"))
    data = datasets.paper(name)
    assert list(data.positive) == described["target"]["positive"]
    assert data.outcomes.value_counts().to_dict() == described["target"]["counts"]
    for feature, expected in zip(data.space.features, described["features"], strict=True):
        assert (feature.name, type(feature).__name__.lower()) == (expected["name"], expected["kind"])
        assert feature.frozen == expected["immutable"]
        if isinstance(feature, (Continuous, Integer)):
            assert [feature.low, feature.high] == expected["range"]
        else:
            assert isinstance(feature, (Ordinal, Nominal))
            assert list(feature.categories) == expected["categories"]
