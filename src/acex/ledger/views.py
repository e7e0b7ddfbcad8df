"""A ledger as tables for people."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from sqlalchemy import func, select

from acex.ledger.book import Book
from acex.ledger.tables import asks, contradictions, explanations, models, queries


class Views(Book):
    """Tables of what a ledger holds."""

    def stats(self) -> pd.DataFrame:
        """A line for each model: budget, rows charged, and how many rows are settled, in flight, asked again."""
        unsettled = queries.c.sequence.is_(None) & (queries.c.attempts > 0)
        counts = (
            select(
                queries.c.model_id,
                func.count(queries.c.sequence).label("settled"),
                func.count().filter(unsettled).label("unsettled"),
                func.count().filter(queries.c.purpose == "imported").label("imported"),
                func.count().filter(queries.c.attempts > 1).label("asked_again"),
            )
            .group_by(queries.c.model_id)
            .subquery()
        )
        differing = (
            select(queries.c.model_id, func.count().label("contradictions"))
            .join(contradictions, contradictions.c.query_id == queries.c.id)
            .group_by(queries.c.model_id)
            .subquery()
        )
        numbers = ("settled", "unsettled", "imported", "asked_again")
        frame = self._frame(
            select(
                models.c.id.label("model"),
                models.c.description,
                models.c.row_budget,
                models.c.price_per_row,
                models.c.n_charged.label("charged"),
                (models.c.n_charged * models.c.price_per_row).label("spent"),
                *(func.coalesce(counts.c[name], 0).label(name) for name in numbers),
                func.coalesce(differing.c.contradictions, 0).label("contradictions"),
            )
            .outerjoin(counts, counts.c.model_id == models.c.id)
            .outerjoin(differing, differing.c.model_id == models.c.id)
            .order_by(models.c.id)
        )
        return frame.astype({"row_budget": "Int64", "price_per_row": "Float64", "spent": "Float64"})

    def show(self, model: str | None = None, *, newest: int | None = None) -> pd.DataFrame:
        """Queries as they stand in the ledger, the latest at the end; labels as the model gave them."""
        happened = func.coalesce(queries.c.settled_at, queries.c.claimed_at)
        wanted = select(queries).order_by(happened.desc(), queries.c.sequence.desc()).limit(newest)
        if model is not None:
            wanted = wanted.where(queries.c.model_id == model)
        return _with_labels(self._frame(wanted).iloc[::-1].reset_index(drop=True))

    def export(self, model: str) -> pd.DataFrame:
        """Every settled answer of a model in order: sequence, row, label, scores, and where it came from."""
        names = ("sequence", "row", "label", "scores", "purpose", "explanation_id", "attempts", "settled_at")
        settled = (queries.c.model_id == model, queries.c.sequence.is_not(None))
        wanted = select(*(queries.c[name] for name in names)).where(*settled).order_by(queries.c.sequence)
        return _with_labels(self._frame(wanted))

    def explanations(self, model: str | None = None) -> pd.DataFrame:
        """A line for each explanation: when it ran, how it ended, what it asked and paid."""
        wanted = (
            select(
                explanations,
                func.count(asks.c.position).label("asked"),
                func.coalesce(func.sum(asks.c.paid), 0).label("paid"),
            )
            .outerjoin(asks, asks.c.explanation_id == explanations.c.id)
            .group_by(explanations.c.id)
            .order_by(explanations.c.started_at, explanations.c.id)
        )
        if model is not None:
            wanted = wanted.where(explanations.c.model_id == model)
        return self._frame(wanted)

    def contradictions(self, model: str) -> pd.DataFrame:
        """Rows to which the model gave another answer later: the label that stands, and the other."""
        wanted = (
            select(
                queries.c.row,
                queries.c.label,
                queries.c.settled_at,
                contradictions.c.label.label("other_label"),
                contradictions.c.told_at,
                contradictions.c.told_by,
            )
            .join(contradictions, contradictions.c.query_id == queries.c.id)
            .where(queries.c.model_id == model)
            .order_by(contradictions.c.id)
        )
        return _with_labels(self._frame(wanted))

    def _frame(self, wanted: Any) -> pd.DataFrame:
        with self._store.read() as connection:
            result = connection.execute(wanted)
            return pd.DataFrame(result.all(), columns=list(result.keys()))


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with labels as the model gave them; None where there is none."""
    for name in {"label", "other_label"} & set(frame.columns):
        labels = [json.loads(text) if isinstance(text, str) else None for text in frame[name]]
        frame[name] = pd.Series(labels, dtype=object, index=frame.index)
    return frame
