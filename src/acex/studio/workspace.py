"""The data of a studio: an explainer, the rows to pick from, and what is known about them without a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from operator import eq, ge, gt, le, lt
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

import acex
from acex.ledger import Answer, canonical
from acex.plan.target import Measured, Target
from acex.show.sentences import OUTCOMES
from acex.space.feature import Feature
from acex.space.space import each_that_fits
from acex.studio.serializers import titles
from acex.values import Label, answer_text, is_missing, plain

BINS = 28  # bars of a histogram
PLACES = 200  # steps of a slider
PAGE_SIZE = 25  # rows per page
CONDITIONS: dict[str, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge, "=": eq}


@dataclass(frozen=True, eq=False)
class Workspace:
    """Everything that pages show and search.

    Args:
        explainer: must have a ledger that other processes can read.
        model: the model of the explainer.
        table: the rows to pick from, with all columns; `rows`: the same rows as the model receives them.
        setup: Python code that defines the same `explainer`, and `rows` in the order of the page.
        outcomes: the known outcome of each row, as a label or its class name; None if there are none.
        names: the name of each row; by default its position.
        options: default options by name (see `request_parsing`), which pages can override.
        price: price per row; by default the ledger's.
    """

    explainer: acex.Explainer
    model: acex.Model
    table: pd.DataFrame
    rows: pd.DataFrame
    setup: str
    outcomes: Sequence[Label] | None = None
    names: Sequence[str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    price: float | None = None
    title: str = ""
    _lock: Lock = field(default_factory=Lock)
    _answers: dict[str, Any] = field(default_factory=dict)  # cache of the model's labels, by row key
    _last_read: list[int] = field(default_factory=lambda: [0])  # sequence number of the last answer in the cache

    @property
    def ledger(self) -> acex.Ledger:
        """The ledger of the explainer."""
        assert isinstance(self.explainer.ledger, acex.Ledger)
        return self.explainer.ledger

    @property
    def space(self) -> acex.Space:
        """The space of the explainer."""
        return self.explainer.space

    @cached_property
    def price_per_row(self) -> float | None:
        """Price per row; None if unknown."""
        if self.price is not None:
            return self.price
        return self.ledger.account(self.explainer.model_id).price_per_row

    @property
    def remaining(self) -> int | None:
        """How many rows the model's budget still allows; None if it has no budget."""
        left = self.ledger.account(self.explainer.model_id).remaining
        return None if np.isinf(left) else int(left)

    def to_json(self) -> dict[str, Any]:
        """The model and its data as JSON for pages."""
        return {
            "title": self.title,
            "model": self.explainer.model_id,
            "price": self.price_per_row,
            "answers": "numbers" if self.gives_numbers else "labels",
            "labels": [] if self.gives_numbers else [self.label_text(label) for label in self.labels],
            "scores": self.model.scores,
            "features": self.cards,
            "outcomes": OUTCOMES,
            "remaining": self.remaining,
        }

    @cached_property
    def gives_numbers(self) -> bool:
        """Whether the model returns numbers instead of labels."""
        target = Target.of(self.options.get("target"))
        return self.model.no_labels is not None or (isinstance(target, Measured) and target.label is None)

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The labels that the model can return, as far as they are known."""
        if self.model.labels is not None or self.outcomes is None:
            return tuple(self.model.labels or ())
        by_name = self.model.labels_by_name
        return tuple(dict.fromkeys(by_name.get(label, label) for label in self.outcomes if not is_missing(label)))

    def label_text(self, label: Label) -> str | None:
        """A label as shown on pages, by its class name if it has one; None if there is no label."""
        return None if label is None or is_missing(label) else answer_text(self.model.class_names.get(label, label))

    # -- what may change ---------------------------------------------------------------------------------------

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """Each feature as JSON: its possible values, and the distribution of the known rows over them."""
        columns = [self.rows.iloc[:, j].dropna() for j in range(len(self.space))]
        return [self._card(f, f.encode(column)) for f, column in zip(self.space.features, columns, strict=True)]

    def _card(self, feature: Feature, x: Any) -> dict[str, Any]:
        card: dict[str, Any] = {
            "name": feature.name,
            "title": titles(self.space)[feature.name],
            "kind": "number" if feature.is_number else "category" if hasattr(feature, "categories") else "moment",
            "ordered": feature.ordered,
            "unit": feature.unit,
            "frozen": feature.frozen,
            "direction": feature.direction,
            "weight": feature.weight,
            "gaps": feature.gaps,
            "constant": bool(len(x) == 0 or (x == x[0]).all()),
        }
        if hasattr(feature, "categories"):
            categories: Any = feature.categories
            counts = np.bincount(x.astype(int), minlength=len(categories))
            card |= {"categories": [feature.text(c) for c in categories], "bars": counts.tolist()}
            return card | {"middle": feature.text(categories[int(counts.argmax())])}
        low, high = float(feature.low), float(feature.high)
        counts, _ = np.histogram(x, BINS, (low, high if high > low else low + 1))
        card |= {"bars": counts.tolist(), "middle": feature.value(feature.rounded(np.array([np.median(x)]))[0])}
        if feature.is_number:
            return card | {"low": plain(feature.low), "high": plain(feature.high), "grid": feature.grid}
        places = feature.rounded(np.linspace(low, high, PLACES + 1))
        # Formatted by the feature; distinct, so that no two places have the same value.
        texts = list(dict.fromkeys(feature.text(feature.value(code)) for code in places))
        card |= {"places": texts, "low": texts[0], "high": texts[-1], "middle": feature.text(card["middle"])}
        return card

    # -- the rows ----------------------------------------------------------------------------------------------

    @cached_property
    def texts(self) -> list[tuple[str, list[str]]]:
        """Name and cells of each column of the table, as text; a missing value is empty."""
        write = {name: self.space.feature(name).text for name in self.space.names}
        columns = [(str(name), self.table.iloc[:, j].tolist()) for j, name in enumerate(self.table.columns)]
        return [(name, ["" if is_missing(v) else write.get(name, str)(v) for v in cells]) for name, cells in columns]

    def name(self, position: int | None) -> str:
        """The name of a row; "" if it was typed in."""
        return "" if position is None else self.names[position] if self.names is not None else str(position)

    @cached_property
    def _places(self) -> dict[str, int]:
        """The position of each column of the table, by its name or its display name, in lower case."""
        called = {name: i for i, (name, _) in enumerate(self.texts)}
        titled = {title: called[name] for name, title in titles(self.space).items() if name in called}
        return {name.lower(): i for name, i in (called | titled).items()}

    @cached_property
    def _lowered(self) -> list[list[str]]:
        """The cells of each column in lower case, as shown on pages."""
        words = {"true": "yes", "false": "no", "": "missing"}
        return [[words.get(text.lower(), text.lower()) for text in cells] for _, cells in self.texts]

    @cached_property
    def _whole_rows(self) -> list[str]:
        """All cells of each row as one text."""
        cells = [[self.name(i).lower() for i in range(len(self.rows))], *self._lowered]
        return ["\n".join(row) for row in zip(*cells, strict=True)]

    @cached_property
    def _condition(self) -> re.Pattern[str]:
        """A pattern for conditions on columns in a search text."""
        names = "|".join(re.escape(name) for name in sorted(self._places, key=len, reverse=True))
        return re.compile(rf'(?<!\S)({names})\s*(<=|>=|[<>=:])\s*("[^"]*"|\S+)')

    def _holds(self, place: int, sign: str, value: str) -> Sequence[bool]:
        """Which rows satisfy a condition on a column; numbers are compared as numbers, other values as text."""
        column, cells = self.table.iloc[:, place], self._lowered[place]
        if sign == ":":
            return [value in cell for cell in cells]
        with suppress(ValueError):
            number = float(value)
            values = column if is_numeric_dtype(column) else pd.Series(cells, dtype=object)
            numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
            return list(CONDITIONS[sign](numbers, number).tolist())
        return [CONDITIONS[sign](cell, value) and (sign == "=" or cell != "missing") for cell in cells]

    def frame(self, row: Mapping[str, Any]) -> pd.DataFrame:
        """A row, given by feature, as a data frame with the columns and dtypes of the data."""
        frame = pd.DataFrame([dict(row)], columns=pd.Index(self.space.names), dtype=object)
        space, points = self.space.reaching(frame)  # a typed value beyond the data is allowed
        return space.frame(points)

    @cached_property
    def keys(self) -> list[str | None]:
        """The key of each row in the ledger; None for a row that cannot be sent to the model."""
        return each_that_fits(self._keys_of, self.rows)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each row by its key; for equal rows, the first position."""
        return {key: i for i, key in reversed(list(enumerate(self.keys))) if key is not None}

    def position_of(self, row: Mapping[str, Any]) -> int | None:
        """The position of a row; None if it is not in `rows`."""
        try:
            [key] = self._keys_of(self.frame(row))
        except ValueError:  # different columns
            return None
        return self.positions.get(key)

    def _keys_of(self, rows: pd.DataFrame) -> list[str]:
        space, points = self.space.reaching(rows)
        return canonical(space.decode(points))

    def known(self, rows: pd.DataFrame) -> list[Answer | None]:
        """The model's cached answer to each of these rows; None if the ledger has none."""
        keys = canonical(rows)
        answers = self.ledger.known(self.explainer.model_id, keys)
        return [answers.get(key) for key in keys]

    def answers(self) -> dict[str, Label]:
        """The labels of all answers in the ledger, by row key."""
        with self._lock:
            for answer in self.ledger.answers(self.explainer.model_id, after=self._last_read[0]):
                self._answers[answer.row], self._last_read[0] = answer.label, answer.sequence
            return self._answers

    def decision(self, position: int, answers: Mapping[str, Label]) -> dict[str, Any]:
        """The known decision on a row and its source: the model, or the outcome in the file."""
        key = self.keys[position]
        if key is not None and key in answers:
            return {"label": self.label_text(answers[key]), "source": "model"}
        if self.outcomes is not None and (on_file := self.label_text(self.outcomes[position])) is not None:
            return {"label": on_file, "source": "file"}
        return {"label": None, "source": None}

    def find(self, text: str, decision: str, page: int) -> dict[str, Any]:
        """One page of the matching rows."""
        found = self.matching(text, decision)
        answers, shown = self.answers(), found[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]
        cells, called = [cells for _, cells in self.texts], self.name
        lines = [
            {"position": i, "name": called(i), "cells": [c[i] for c in cells], "decision": self.decision(i, answers)}
            for i in shown
        ]
        columns = [name for name, _ in self.texts]
        return {"columns": columns, "lines": lines, "total": len(found), "page": page, "size": PAGE_SIZE}

    def matching(self, text: str, decision: str) -> list[int]:
        """The positions of rows that contain every word of a text and have this decision ("" for any).

        `column:word` searches one column only, `column > 3000` compares; display names of columns are allowed.
        """
        found, lowered = list(range(len(self.rows))), text.lower()
        for name, sign, value in self._condition.findall(lowered):
            holds = self._holds(self._places[name], sign, value.strip('"'))
            found = [i for i in found if holds[i]]
        for word in self._condition.sub(" ", lowered).split():
            found = [i for i in found if word in self._whole_rows[i]]
        if not decision:
            return found
        answers = self.answers()
        return [i for i in found if self.decision(i, answers)["label"] == decision]

    def row_json(self, position: int) -> dict[str, Any]:
        """One of the rows as JSON.

        Raises:
            LookupError: there is no such position.
        """
        if not 0 <= position < len(self.rows):
            raise LookupError(f"row {position}: there are the rows 0 to {len(self.rows) - 1}.")
        names = self.space.names
        values = dict(zip(names, self.rows.iloc[position].tolist(), strict=True))
        others = [(name, cells[position]) for name, cells in self.texts if name not in names]
        return {
            "position": position,
            "name": self.name(position),
            "values": {n: "" if is_missing(v) else self.space.feature(n).text(v) for n, v in values.items()},
            "others": others,
            "decision": self.decision(position, self.answers()),
        }
