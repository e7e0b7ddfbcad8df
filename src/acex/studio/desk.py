"""What a studio is about: an explainer, the rows people pick from, and what is known of both without asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.ledger import canonical
from acex.space.feature import Feature
from acex.studio.told import titles
from acex.values import Label, as_json, is_missing, plain

BINS = 28  # bars of a distribution
MOST_CATEGORIES = 60  # of a feature that are offered one by one
PAGE = 25  # rows of a page


@dataclass(frozen=True)
class Recipe:
    """How to come to the same explainer elsewhere.

    Attributes:
        python: lines that define `explainer`, and `rows` as the page counts them.
        shell: words of `acex explain` besides the row and what may change; None where no command leads there.
        why_not: a sentence instead of the command.
        environment: is the ledger an address, which may hold a password, and so left to the variable ACEX_LEDGER?
    """

    python: str
    shell: tuple[str, ...] | None = None
    why_not: str = ""
    environment: bool = False


@dataclass(frozen=True, eq=False)
class Desk:
    """All that pages rest on.

    Args:
        explainer: with a ledger that other processes can read.
        table: the rows people pick from, with every column of theirs; `rows`: as the model sees them.
        outcomes: what is on file for each row, in the words of the model's labels; None where nothing is.
        labels: the labels the model can give, as far as anybody knows.
        wishes: what may change unless a person says otherwise, as `Explainer.plan` takes it.
        price: what a row costs; by default as the ledger has it.
        is_kept: does the ledger outlive the studio?
    """

    explainer: acex.Explainer
    table: pd.DataFrame
    rows: pd.DataFrame
    recipe: Recipe
    outcomes: Sequence[Label] | None = None
    labels: tuple[Label, ...] = ()
    wishes: Mapping[str, Any] = field(default_factory=dict)
    price: float | None = None
    is_kept: bool = True
    title: str = ""
    _lock: Lock = field(default_factory=Lock)
    _answers: dict[str, Any] = field(default_factory=dict)  # what the model said of rows, as far as it was read
    _read: list[int] = field(default_factory=lambda: [0])  # and up to which number

    @property
    def ledger(self) -> acex.Ledger:
        """Where answers are written down."""
        return self.explainer.ledger

    @property
    def space(self) -> acex.Space:
        """What each feature can hold."""
        return self.explainer.space

    @cached_property
    def price_per_row(self) -> float | None:
        """What a row costs; None where nobody has said so."""
        if self.price is not None:
            return self.price
        prices = self.ledger.stats().set_index("model")["price_per_row"]
        told: Any = prices.get(self.explainer.model_id)
        return None if is_missing(told) else float(told)

    def money(self, rows: int) -> float | None:
        """What so many rows cost."""
        return None if self.price_per_row is None else rows * self.price_per_row

    @property
    def remaining(self) -> int | None:
        """How many rows the model's budget still allows; None without one."""
        left = self.ledger.remaining(self.explainer.model_id)
        return None if np.isinf(left) else int(left)

    def about(self) -> dict[str, Any]:
        """What pages say of the model and its data."""
        return {
            "title": self.title,
            "model": self.explainer.model_id,
            "version": acex.__version__,
            "n_rows": len(self.rows),
            "is_kept": self.is_kept,
            "price": self.price_per_row,
            "labels": [as_json(label) for label in self.labels],
            "has_outcomes": self.outcomes is not None,
            "features": self.cards,
        }

    # -- what may change ---------------------------------------------------------------------------------------

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """Each feature in plain values: what it can hold, and how the known rows are spread over that."""
        return [self._card(feature, self.explainer.reference[:, j]) for j, feature in enumerate(self.space.features)]

    def _card(self, feature: Feature, x: Any) -> dict[str, Any]:
        card: dict[str, Any] = {
            "name": feature.name,
            "title": titles(self.space)[feature.name],
            "kind": "number" if feature.is_number else "category" if _has_categories(feature) else "other",
            "ordered": feature.ordered,
            "unit": feature.unit,
            "frozen": feature.frozen,
            "direction": feature.direction,
            "weight": feature.weight,
            "constant": bool(len(x) == 0 or (x == x[0]).all()),
        }
        if feature.is_number:
            low, high = float(feature.low), float(feature.high)
            counts, _ = np.histogram(x, BINS, (low, high if high > low else low + 1))
            card |= {"low": plain(feature.low), "high": plain(feature.high), "grid": feature.grid}
            card |= {"bars": counts.tolist(), "middle": feature.value(feature.snap(np.array([np.median(x)]))[0])}
        elif _has_categories(feature):
            categories: Any = getattr(feature, "categories")  # noqa: B009 (of some kinds only)
            counts = np.bincount(x.astype(int), minlength=len(categories))
            card |= {"categories": [feature.text(c) for c in categories], "bars": counts.tolist()}
            card |= {"middle": feature.text(categories[int(counts.argmax())])}
        return card

    # -- the rows ----------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> list[str]:
        """The names of what is shown of a row."""
        return [str(name) for name in self.table.columns]

    @cached_property
    def texts(self) -> list[list[str]]:
        """Every cell as people write it, a list for each column."""
        known = dict(zip(self.space.names, self.space.features, strict=True))
        return [
            [
                known[name].text(v) if name in known and not is_missing(v) else str(v)
                for v in self.table.iloc[:, j].tolist()
            ]
            for j, name in enumerate(self.columns)
        ]

    @cached_property
    def forms(self) -> list[str | None]:
        """Each row as the ledger knows it; None for one that the model cannot be asked."""
        return self.forms_of(self.rows)

    def forms_of(self, rows: pd.DataFrame) -> list[str | None]:
        """Rows as the ledger knows them; None for those that the model cannot be asked."""
        try:
            space = self.space.reaching(rows)
            return list(canonical(space.decode(space.encode(rows))))
        except ValueError:
            half = len(rows) // 2
            return [*self.forms_of(rows.iloc[:half]), *self.forms_of(rows.iloc[half:])] if half else [None]

    def decided(self) -> dict[str, Label]:
        """What the model has said so far, by row as the ledger knows it."""
        with self._lock:
            for answer in self.ledger.answers(self.explainer.model_id, after=self._read[0]):
                self._answers[answer.row], self._read[0] = answer.label, answer.sequence
            return dict(self._answers)

    def decision(self, position: int, decided: Mapping[str, Label]) -> dict[str, Any]:
        """What is known of a row's decision, and whose word it is: the model's, or what is on file."""
        form = self.forms[position]
        if form is not None and form in decided:
            return {"label": as_json(decided[form]), "source": "model"}
        if self.outcomes is not None:
            return {"label": as_json(self.outcomes[position]), "source": "file"}
        return {"label": None, "source": None}

    def find(self, text: str, decision: str, page: int) -> dict[str, Any]:
        """A page of the rows that fit."""
        told = self.matching(text, decision)
        shown = told[page * PAGE : (page + 1) * PAGE]
        lines = [{"position": i, "cells": [c[i] for c in self.texts], "decision": known} for i, known in shown]
        return {"columns": self.columns, "lines": lines, "total": len(told), "page": page, "size": PAGE}

    def matching(self, text: str, decision: str) -> list[tuple[int, dict[str, Any]]]:
        """Rows that hold every word of a text and were decided so, with their decisions.

        `column:word` looks in one column only.
        """
        decided, words = self.decided(), text.lower().split()
        told = ((i, self.decision(i, decided)) for i in range(len(self.rows)) if self._holds(i, words))
        return [(i, known) for i, known in told if not decision or str(known["label"]) == decision]

    def _holds(self, i: int, words: Sequence[str]) -> bool:
        for word in words:
            name, colon, value = word.partition(":")
            columns = (
                [c for c, own in zip(self.texts, self.columns, strict=True) if own.lower() == name] if colon else []
            )
            if not any(value in c[i].lower() for c in columns) and not any(word in c[i].lower() for c in self.texts):
                return False
        return True

    def row(self, position: int) -> dict[str, Any]:
        """One of the rows in plain values.

        Raises:
            LookupError: there is none at this position.
        """
        if not 0 <= position < len(self.rows):
            raise LookupError(f"row {position}: there are the rows 0 to {len(self.rows) - 1}.")
        names = self.space.names
        values = dict(zip(names, self.rows.iloc[position].tolist(), strict=True))
        others = [(c, t[position]) for c, t in zip(self.columns, self.texts, strict=True) if c not in names]
        return {
            "position": position,
            "values": {name: self.space.feature(name).text(value) for name, value in values.items()},
            "others": others,
            "decision": self.decision(position, self.decided()),
        }


def _has_categories(feature: Feature) -> bool:
    """Are its values a list that can be offered one by one?"""
    return not feature.is_number and hasattr(feature, "categories")
