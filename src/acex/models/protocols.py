"""Protocols of model servers: request bodies from rows, and labels from responses.

Nothing is sent here; see `acex.models.http`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pandas as pd

from acex.arrays import Rows
from acex.ledger.row_keys import row_values
from acex.values import is_missing, json_value, listed

Inputs: TypeAlias = Literal["matrix", "columns"]


class WireProtocol(Protocol):
    """How requests to one kind of server are written and its answers read."""

    @property
    def one_by_one(self) -> bool:
        """Whether each request contains a single row."""

    def body(self, rows: Rows) -> Any:
        """The request body as JSON-compatible values."""

    def labels(self, answer: Any) -> Any:
        """The part of the server's response that contains the labels; ValueError if it is missing."""


# -- plain JSON, and MLflow ------------------------------------------------------------------------------

PLACEHOLDERS = {
    "$rows": "a list of lists",
    "$records": "a list of objects, by column",
    "$row": "one list, a request for each row",
    "$record": "one object, a request for each row",
    "$columns": "the names of the columns",
}
ONE_ROW = {"$row", "$record"}


@dataclass(frozen=True)
class JsonTemplate:
    """A request with placeholders for the rows (`PLACEHOLDERS`), and the path to the labels in the response."""

    request: Any
    path: str

    def __post_init__(self) -> None:
        if not _texts(self.request) & (PLACEHOLDERS.keys() - {"$columns"}):
            known = "; ".join(f"{name}: {what}" for name, what in PLACEHOLDERS.items())
            raise ValueError(
                f"request={self.request!r} has no placeholder for the rows: write one as in "
                f"{{'instances': '$rows'}}. ({known}.)"
            )
        json.dumps(self.request)  # fail now rather than on the first row if JSON cannot represent it

    @property
    def one_by_one(self) -> bool:
        return bool(_texts(self.request) & ONE_ROW)

    def body(self, rows: Rows) -> Any:
        table = [[json_value(value) for value in row] for row in row_values(rows)]
        values: dict[str, Any] = {"$rows": table, "$row": table[0]}
        if isinstance(rows, pd.DataFrame):
            names = [str(name) for name in rows.columns]
            records = [dict(zip(names, row, strict=True)) for row in table]
            values |= {"$records": records, "$record": records[0], "$columns": names}
        return _filled(self.request, values)

    def labels(self, answer: Any) -> Any:
        found = _follow(answer, self.path.split("."))
        return [found] if self.one_by_one and not isinstance(found, list) else found


@dataclass(frozen=True)
class MLflow:
    """MLflow's scoring server: a DataFrame is sent with its column names, an array as a tensor."""

    path: str = "predictions"
    one_by_one = False

    def body(self, rows: Rows) -> Any:
        by_name = {"dataframe_split": {"columns": "$columns", "data": "$rows"}}
        request = by_name if isinstance(rows, pd.DataFrame) else {"inputs": "$rows"}
        return JsonTemplate(request, self.path).body(rows)

    def labels(self, answer: Any) -> Any:
        return _follow(answer, self.path.split("."))


def _texts(template: Any) -> set[str]:
    """All strings that are values in the template."""
    match template:
        case str():
            return {template}
        case Mapping():
            return set().union(*map(_texts, template.values()))
        case list() | tuple():
            return set().union(*map(_texts, template))
    return set()


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    match template:
        case str() if template in values:
            return values[template]
        case str() if template in PLACEHOLDERS:
            raise ValueError(f"{template!r} needs names: data must be a DataFrame, or write '$rows' instead.")
        case Mapping():
            return {key: _filled(value, values) for key, value in template.items()}
        case list() | tuple():
            return [_filled(value, values) for value in template]
    return template


def _follow(value: Any, steps: list[str]) -> Any:
    """The value at a path of keys and list positions; in a list, a key is looked up in each item."""
    for i, step in enumerate(steps):
        if isinstance(value, list) and not step.isdecimal():
            return [_follow(item, steps[i:]) for item in value]
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"the answer has no {step!r} (path {'.'.join(steps)!r})") from None
    return value


# -- Open Inference Protocol v2 ----------------------------------------------------------------------------

DATATYPES = {
    "bool": "BOOL", "float16": "FP16", "float32": "FP32", "float64": "FP64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
}  # fmt: skip


@dataclass(frozen=True)
class OpenInference:
    """Version 2 of the protocol: rows as one 2-D tensor, or as one tensor per column.

    `output` is the name of the tensor with the labels; None if the response has a single output.
    """

    inputs: Inputs = "matrix"
    input_name: str = "input-0"
    output: str | None = None
    one_by_one = False

    def body(self, rows: Rows) -> Any:
        if self.inputs == "columns":
            if not isinstance(rows, pd.DataFrame):
                raise ValueError("inputs='columns' needs names: data must be a DataFrame.")
            tensors = [_tensor(str(name), column.to_numpy()[:, None]) for name, column in rows.items()]
            # For servers that build a DataFrame (MLServer, KServe); others ignore it.
            return {"parameters": {"content_type": "pd"}, "inputs": tensors}
        matrix = _unboxed(np.asarray(rows))
        if str(matrix.dtype) not in DATATYPES:
            raise ValueError("the rows contain text, which a matrix cannot: use inputs='columns'.")
        return {"inputs": [_tensor(self.input_name, matrix)]}

    def labels(self, answer: Any) -> Any:
        try:
            outputs = {output["name"]: output for output in answer["outputs"]}
        except (KeyError, TypeError):
            raise ValueError("the answer has no 'outputs' with names") from None
        if self.output is None and len(outputs) != 1:
            raise ValueError(f"the answer has the outputs {listed(outputs)}: name the one with the labels in labels=")
        output = outputs.get(next(iter(outputs)) if self.output is None else self.output)
        if output is None or "data" not in output:
            raise ValueError(
                f"the answer has no data for the output {self.output!r}; its outputs are {listed(outputs)}"
            )
        match output.get("shape"):
            case [_] | [_, 1]:
                return output["data"]
            case [_, _] as shape:
                raise ValueError(f"{output['name']!r} has the shape {shape}: these look like probabilities")
            case shape:
                raise ValueError(f"{output['name']!r} has the shape {shape!r}, not one label per row")


def _tensor(name: str, values: np.ndarray[Any, Any]) -> dict[str, Any]:
    values = _unboxed(values)
    tensor: dict[str, Any] = {"name": name, "shape": list(values.shape), "data": values.ravel().tolist()}
    if any(map(is_missing, tensor["data"])):
        raise ValueError(f"{name!r}: a tensor cannot have missing values; use protocol 'json' or 'mlflow'.")
    if str(values.dtype) in DATATYPES:
        return {**tensor, "datatype": DATATYPES[str(values.dtype)]}
    texts = [str(value) for value in tensor["data"]]
    return {**tensor, "datatype": "BYTES", "data": texts, "parameters": {"content_type": "str"}}


def _unboxed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array; an object array is converted to the dtype of its values: numbers, Booleans or text."""
    return np.array(values.tolist()) if values.dtype.kind == "O" else values
