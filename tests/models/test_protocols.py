"""Requests to model servers and how their answers are read. Bodies are written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from acex.models.protocols import JsonTemplate, MLflow, OpenInference

ROWS = pd.DataFrame({"age": [30, 41], "income": [1.5, 2.0], "job": ["clerk", "nurse"]})
LISTS = [[30, 1.5, "clerk"], [41, 2.0, "nurse"]]
RECORDS = [{"age": 30, "income": 1.5, "job": "clerk"}, {"age": 41, "income": 2.0, "job": "nurse"}]


# -- plain JSON, and MLflow ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("$rows", LISTS),
        ({"instances": "$rows"}, {"instances": LISTS}),
        ({"instances": "$records"}, {"instances": RECORDS}),
        ({"a": [{"b": "$rows"}], "model": "m7"}, {"a": [{"b": LISTS}], "model": "m7"}),
        ({"head": "$columns", "data": "$rows"}, {"head": ["age", "income", "job"], "data": LISTS}),
        ({"features": "$record", "$row": 1}, {"features": RECORDS[0], "$row": 1}),
        (["$row"], [LISTS[0]]),
    ],
)
def test_rows_go_where_the_template_says(request_: Any, expected: Any) -> None:
    assert JsonTemplate(request_, "labels").body(ROWS) == expected


def test_values_are_written_in_full_and_as_json_knows_them() -> None:
    rows = pd.DataFrame(
        {
            "a": np.array([0.1], dtype=np.float32),
            "b": pd.Categorical(["x"]),
            "c": [True],
            "d": pd.array([7], dtype="Int64"),
        }
    )
    [row] = JsonTemplate("$rows", "labels").body(rows)
    assert row == [float(np.float32(0.1)), "x", True, 7]
    assert [type(value) for value in row] == [float, str, bool, int]


def test_an_array_has_rows_but_no_names() -> None:
    array = np.array([[1.0, 2.0]])
    assert JsonTemplate({"x": "$rows"}, "labels").body(array) == {"x": [[1.0, 2.0]]}
    with pytest.raises(ValueError, match=r"'\$records'.*data"):
        JsonTemplate({"x": "$records"}, "labels").body(array)


@pytest.mark.parametrize("request_", [{}, {"instances": "rows"}, {"$rows": 1}, "$columns", None])
def test_a_template_without_a_place_for_the_rows_is_refused(request_: Any) -> None:
    with pytest.raises(ValueError, match="'instances'"):
        JsonTemplate(request_, "labels")


def test_a_template_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="serializable"):
        JsonTemplate({"rows": "$rows", "wanted": {"label"}}, "labels")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("predictions", {"predictions": ["a", "b"]}),
        ("data.0.labels", {"data": [{"labels": ["a", "b"]}]}),
        ("results.label", {"results": [{"label": "a"}, {"label": "b"}]}),
        ("label.name", [{"label": {"name": "a"}}, {"label": {"name": "b"}}]),
        ("rows.0", {"rows": [["a", "b"], ["c", "d"]]}),
    ],
)
def test_labels_are_found_along_the_path(path: str, answer: Any) -> None:
    assert JsonTemplate("$rows", path).labels(answer) == ["a", "b"]


@pytest.mark.parametrize("answer", [{}, {"results": {}}, {"results": [{"label": 1}, {}]}, "results", None, 3])
def test_a_path_that_leads_nowhere_is_told(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"no '\w+' \(path "):
        JsonTemplate("$rows", "results.label").labels(answer)


def test_a_single_answer_to_a_single_row_is_one_label() -> None:
    template = JsonTemplate({"features": "$row"}, "label")
    assert template.one_by_one and not JsonTemplate("$rows", "label").one_by_one
    assert template.labels({"label": "a"}) == ["a"]
    assert template.labels({"label": ["a"]}) == ["a"]


def test_mlflow_gets_frames_by_name_and_arrays_as_tensors() -> None:
    split = {"columns": ["age", "income", "job"], "data": LISTS}
    assert MLflow().body(ROWS) == {"dataframe_split": split}
    assert MLflow().body(np.array([[1.0]])) == {"inputs": [[1.0]]}
    assert MLflow().labels({"predictions": ["a"]}) == ["a"]
    assert MLflow("predictions.label").labels({"predictions": [{"label": "a"}]}) == ["a"]


# -- Open Inference Protocol v2 ----------------------------------------------------------------------------


def test_a_matrix_is_one_tensor_of_the_dtype_of_the_data() -> None:
    tensor = {"name": "input-0", "shape": [2, 2], "datatype": "FP64", "data": [30.0, 1.5, 41.0, 2.0]}
    assert OpenInference().body(ROWS[["age", "income"]]) == {"inputs": [tensor]}
    body = OpenInference(input_name="x").body(np.array([[1, 2]], dtype=np.uint8))
    assert body == {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "UINT8", "data": [1, 2]}]}
    flags = pd.DataFrame({"a": [True], "b": [1.5]})
    assert OpenInference().body(flags)["inputs"][0]["data"] == [1.0, 1.5]
    assert OpenInference().body(np.zeros((1, 1), dtype=np.float32))["inputs"][0]["datatype"] == "FP32"


def test_columns_are_a_tensor_each_and_texts_are_bytes() -> None:
    rows = ROWS.assign(
        kind=pd.Categorical(["x", "y"]), member=[True, False], n=pd.array([1, 2], dtype="Int8"), mixed=["a", 1]
    )
    body = OpenInference("columns").body(rows)
    assert body["parameters"] == {"content_type": "pd"}
    assert [(t["name"], t["datatype"], t["data"]) for t in body["inputs"]] == [
        ("age", "INT64", [30, 41]),
        ("income", "FP64", [1.5, 2.0]),
        ("job", "BYTES", ["clerk", "nurse"]),
        ("kind", "BYTES", ["x", "y"]),
        ("member", "BOOL", [True, False]),
        ("n", "INT8", [1, 2]),
        ("mixed", "BYTES", ["a", "1"]),
    ]
    assert all(t["shape"] == [2, 1] for t in body["inputs"])
    assert body["inputs"][2]["parameters"] == {"content_type": "str"}


def test_what_a_tensor_cannot_hold_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="'columns'"):
        OpenInference().body(ROWS)
    with pytest.raises(ValueError, match="inputs='columns'"):
        OpenInference("columns").body(np.zeros((1, 1)))


def output(name: str, *data: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": list(data), **more}


def test_the_only_output_or_the_named_one_holds_the_labels() -> None:
    one, two = output("predict", "a", "b"), output("scores", 0.1, 0.9)
    assert OpenInference().labels({"outputs": [one]}) == ["a", "b"]
    assert OpenInference().labels({"outputs": [output("predict", 0, 1, shape=[2, 1])]}) == [0, 1]
    assert OpenInference(output="predict").labels({"outputs": [two, one]}) == ["a", "b"]
    with pytest.raises(ValueError, match="'scores'"):
        OpenInference().labels({"outputs": [two, one]})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, "no 'outputs' with names"),
        ([], "no 'outputs' with names"),
        ({"outputs": None}, "no 'outputs' with names"),
        ({"outputs": ["a"]}, "no 'outputs' with names"),
        ({"outputs": [{"data": [1]}]}, "no 'outputs' with names"),
        ({"outputs": [{"name": "predict"}]}, "no data for the output 'predict'"),
        ({"outputs": [output("other", 1)]}, "no data for the output 'predict'"),
        ({"outputs": [output("predict", 1, 2, shape=[1, 2])]}, r"has the shape \[1, 2\]: these look like prob"),
        ({"outputs": [output("predict", 1, shape=None)]}, "shape None"),
        ({"outputs": [output("predict", 1, shape="1x1")]}, "shape '1x1'"),
    ],
)
def test_half_an_answer_is_none(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OpenInference(output="predict").labels(answer)
