"""A ledger as tables for people."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from sqlalchemy import func, select

from acex.ledger.base import LARGEST
from acex.ledger.database import Database
from acex.ledger.schema import answers, asks, contradictions, explanations, models, names, queries


class Tables:
    """Data frames of what a ledger holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def models(self) -> pd.DataFrame:
        """A line for each model: budgets, rows charged, and how many rows are answered, unanswered, asked again."""
        unanswered = queries.c.sequence.is_(None) & (queries.c.attempts > 0)
        counts = (
            select(
                queries.c.model_id,
                func.count(queries.c.sequence).label("answered"),
                func.count().filter(unanswered).label("unanswered"),
                func.count().filter(queries.c.purpose == "imported").label("imported"),
                func.count().filter(queries.c.attempts > 1).label("asked_again"),
            )
            .group_by(queries.c.model_id)
            .subquery()
        )
        different = (
            select(queries.c.model_id, func.count().label("contradictions"))
            .join(contradictions, contradictions.c.query_id == queries.c.id)
            .group_by(queries.c.model_id)
            .subquery()
        )
        counted = ["answered", "unanswered", "imported", "asked_again", "contradictions"]
        frame = self._frame(
            select(models, *(c for c in counts.c if c.name != "model_id"), different.c.contradictions)
            .outerjoin(counts, counts.c.model_id == models.c.id)
            .outerjoin(different, different.c.model_id == models.c.id)
            .order_by(models.c.id)
        ).rename(columns={"id": "model", "n_charged": "charged"})
        frame = frame.astype({"row_budget": "Int64", "price_per_row": "Float64"})
        used = pd.to_numeric(frame["money_used"]).astype("Float64")
        frame["spent"] = (frame["charged"] * frame["price_per_row"]).where(frame["price_per_row"].notna(), used)
        frame[counted] = frame[counted].astype("Float64").fillna(0).astype("int64")
        account = ["model", "description", "row_budget", "price_per_row", "money_budget", "charged", "spent"]
        return frame[[*account, *counted]]

    def queries(self, model: str | None = None, *, newest: int | None = None) -> pd.DataFrame:
        """Rows with their newest answer, the latest at the end; labels as the model gave them."""
        happened = func.coalesce(answers.c.recorded_at, queries.c.claimed_at)
        wanted = (
            select(queries, answers.c.label, answers.c.scores, answers.c.recorded_at.label("answered_at"))
            .outerjoin(answers, (answers.c.query_id == queries.c.id) & (answers.c.sequence == queries.c.sequence))
            .order_by(happened.desc(), queries.c.sequence.desc())
            .limit(None if newest is None else min(newest, LARGEST))
        )
        if model is not None:
            wanted = wanted.where(queries.c.model_id == model)
        return _with_labels(self._frame(wanted).iloc[::-1].reset_index(drop=True))

    def answers(self, model: str) -> pd.DataFrame:
        """Every answer of a model in order, corrected ones included, and where it came from."""
        columns = (queries.c.purpose, queries.c.explanation_id, queries.c.attempts)
        wanted = (
            select(answers.c.sequence, queries.c.row, answers.c.label, answers.c.scores, *columns)
            .add_columns(answers.c.recorded_at.label("answered_at"))
            .join(queries, queries.c.id == answers.c.query_id)
            .where(answers.c.model_id == model)
            .order_by(answers.c.sequence)
        )
        return _with_labels(self._frame(wanted))

    def explanations(self, model: str | None = None) -> pd.DataFrame:
        """A line for each explanation: when it ran, how it ended, what it asked and paid, and the names of its rows."""
        wanted = select(explanations).order_by(explanations.c.started_at, explanations.c.id)
        counts = select(asks.c.explanation_id, func.count().label("asked"), func.sum(asks.c.paid).label("paid"))
        if model is not None:
            wanted = wanted.where(explanations.c.model_id == model)
            counts = counts.join(explanations).where(explanations.c.model_id == model)
        frame = self._frame(wanted)
        counted = self._frame(counts.group_by(asks.c.explanation_id)).set_index("explanation_id").astype("Float64")
        for name in ("asked", "paid"):
            frame[name] = frame["id"].map(counted[name]).fillna(0).astype("int64")
        row_names: dict[str, list[str]] = {}
        for line in self._frame(select(names).order_by(names.c.name)).itertuples():
            row_names.setdefault(str(line.explanation_id), []).append(str(line.name))
        frame["names"] = [", ".join(row_names.get(key, [])) for key in frame["id"]]
        return frame

    def contradictions(self, model: str) -> pd.DataFrame:
        """Rows to which the model gave another answer later: the recorded label, and the other."""
        recorded = (answers.c.query_id == queries.c.id) & (answers.c.sequence == queries.c.sequence)
        wanted = (
            select(queries.c.row, answers.c.label, answers.c.recorded_at.label("answered_at"))
            .add_columns(
                contradictions.c.label.label("other_label"), contradictions.c.told_at, contradictions.c.told_by
            )
            .select_from(contradictions.join(queries).join(answers, recorded))
            .where(queries.c.model_id == model)
            .order_by(contradictions.c.id)
        )
        return _with_labels(self._frame(wanted))

    def _frame(self, wanted: Any) -> pd.DataFrame:
        with self._database.read() as connection:
            result = connection.execute(wanted)
            return pd.DataFrame(result.all(), columns=list(result.keys()))


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with labels as the model gave them; None where there is none."""
    for name in {"label", "other_label"} & set(frame.columns):
        labels = [json.loads(text) if isinstance(text, str) else None for text in frame[name]]
        frame[name] = pd.Series(labels, dtype=object, index=frame.index)
    return frame
