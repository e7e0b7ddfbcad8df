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
from acex.models.adapters import no_labels
from acex.plan.target import Measured, Target
from acex.space.feature import Feature
from acex.studio.serializers import titles
from acex.values import Label, answer_text, is_missing, plain

BINS = 28  # bars of a distribution
PLACES = 200  # of a slider, the first one aside
STEADY = 0.7  # how probable a hit must be close by, where an answer is to hold there too
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
        outcomes: what is on file for each row, by the model's labels or their names; None where nothing is.
        labels: the labels the model can give, as far as anybody knows.
        scores: does the model give probabilities, which may be wanted then?
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
    scores: bool = False
    wishes: Mapping[str, Any] = field(default_factory=dict)
    price: float | None = None
    is_kept: bool = True
    title: str = ""
    _lock: Lock = field(default_factory=Lock)
    _answers: dict[str, Any] = field(default_factory=dict)  # what the model said of rows, as far as it was read
    _read: list[int] = field(default_factory=lambda: [0])  # and up to which number

    @property
    def ledger(self) -> acex.Ledger:
        """Where answers are recorded."""
        assert isinstance(self.explainer.ledger, acex.Ledger)
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
        return self.ledger.account(self.explainer.model_id).price_per_row

    def money(self, rows: int) -> float | None:
        """What so many rows cost."""
        return None if self.price_per_row is None else rows * self.price_per_row

    @property
    def remaining(self) -> int | None:
        """How many rows the model's budget still allows; None without one."""
        left = self.ledger.account(self.explainer.model_id).remaining
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
            "answers": "numbers" if self.gives_numbers else "labels",
            "labels": [] if self.gives_numbers else [self.spoken(label) for label in self.labels],
            "scores": self.scores,
            "margin": self.wishes.get("margin") or STEADY,
            "features": self.cards,
        }

    @cached_property
    def gives_numbers(self) -> bool:
        """Are the model's answers numbers, and no labels?"""
        target = Target.of(self.wishes.get("target"))
        return no_labels(self.explainer.model) is not None or (isinstance(target, Measured) and target.label is None)

    def spoken(self, label: Label) -> str | None:
        """An answer of the model as pages say it: by its name where it has one; None where there is none."""
        return None if label is None or is_missing(label) else answer_text(self.explainer.class_names.get(label, label))

    # -- what may change ---------------------------------------------------------------------------------------

    @cached_property
    def cards(self) -> list[dict[str, Any]]:
        """Each feature in plain values: what it can hold, and how the known rows are spread over that."""
        return [self._card(feature, self.explainer.reference[:, j]) for j, feature in enumerate(self.space.features)]

    def _card(self, feature: Feature, x: Any) -> dict[str, Any]:
        x = x[x != feature.gap]
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
        places = feature.snap(np.linspace(low, high, PLACES + 1))
        # Only the feature knows how to write them; no two places stand for the same value.
        texts = list(dict.fromkeys(feature.text(feature.value(code)) for code in places))
        card |= {"places": texts, "low": texts[0], "high": texts[-1], "middle": feature.text(card["middle"])}
        return card

    # -- the rows ----------------------------------------------------------------------------------------------

    @cached_property
    def columns(self) -> list[str]:
        """The names of what is shown of a row."""
        return [str(name) for name in self.table.columns]

    @cached_property
    def texts(self) -> list[list[str]]:
        """Every cell as people write it, a list for each column; nothing where nothing is known."""
        known = dict(zip(self.space.names, self.space.features, strict=True))
        return [
            [
                "" if is_missing(v) else known[name].text(v) if name in known else str(v)
                for v in self.table.iloc[:, j].tolist()
            ]
            for j, name in enumerate(self.columns)
        ]

    @cached_property
    def _lowered(self) -> dict[str, list[str]]:
        """The same to look for words in, by the name of the column."""
        return {name.lower(): [t.lower() for t in texts] for name, texts in zip(self.columns, self.texts, strict=True)}

    @cached_property
    def forms(self) -> list[str | None]:
        """Each row as the ledger knows it; None for one that the model cannot be asked."""
        return self.forms_of(self.rows)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each row is, by its form; the first of several that are alike."""
        return {form: i for i, form in reversed(list(enumerate(self.forms))) if form is not None}

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
            return self._answers

    def decision(self, position: int, decided: Mapping[str, Label]) -> dict[str, Any]:
        """What is known of a row's decision, and whose word it is: the model's, or what is on file."""
        form = self.forms[position]
        if form is not None and form in decided:
            return {"label": self.spoken(decided[form]), "source": "model"}
        if self.outcomes is not None and (on_file := self.spoken(self.outcomes[position])) is not None:
            return {"label": on_file, "source": "file"}
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
        return [(i, known) for i, known in told if not decision or known["label"] == decision]

    def _holds(self, i: int, words: Sequence[str]) -> bool:
        for word in words:
            name, _, value = word.partition(":")
            in_column = name in self._lowered and value in self._lowered[name][i]
            if not in_column and not any(word in texts[i] for texts in self._lowered.values()):
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
            "values": {n: "" if is_missing(v) else self.space.feature(n).text(v) for n, v in values.items()},
            "others": others,
            "decision": self.decision(position, self.decided()),
        }
