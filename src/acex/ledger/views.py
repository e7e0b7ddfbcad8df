"""A ledger as tables for people."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from sqlalchemy import Table, func, select

from acex.errors import LedgerFailed
from acex.ledger.book import MOST, Book, by_id
from acex.ledger.seal import ADVICE, described, lines
from acex.ledger.tables import asks, contradictions, explanations, models, names, queries


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
        names = ("id", "description", "row_budget", "price_per_row", "n_charged")
        accounts = self._lines(models, select(models).order_by(models.c.id))[[*names]]
        accounts = accounts.rename(columns={"id": "model", "n_charged": "charged"})
        accounts["spent"] = accounts["charged"] * accounts["price_per_row"].astype("Float64")
        frame = (
            accounts.merge(self._frame(select(counts)), "left", left_on="model", right_on="model_id")
            .merge(self._frame(select(differing)), "left", left_on="model", right_on="model_id", suffixes=("", "_"))
            .astype({"row_budget": "Int64", "price_per_row": "Float64"})
        )
        counted = [*numbers, "contradictions"]
        frame[counted] = frame[counted].astype("Float64").fillna(0).astype("int64")
        return frame[[*accounts.columns, *counted]]

    def show(self, model: str | None = None, *, newest: int | None = None) -> pd.DataFrame:
        """Queries as they stand in the ledger, the latest at the end; labels as the model gave them."""
        happened = func.coalesce(queries.c.settled_at, queries.c.claimed_at)
        most = None if newest is None else min(newest, MOST)
        wanted = select(queries).order_by(happened.desc(), queries.c.sequence.desc()).limit(most)
        if model is not None:
            wanted = wanted.where(queries.c.model_id == model)
        return _with_labels(self._lines(queries, wanted).iloc[::-1].reset_index(drop=True))

    def export(self, model: str) -> pd.DataFrame:
        """Every settled answer of a model in order: sequence, row, label, scores, and where it came from."""
        names = ("sequence", "row", "label", "scores", "purpose", "explanation_id", "attempts", "settled_at")
        settled = (queries.c.model_id == model, queries.c.sequence.is_not(None))
        wanted = select(queries).where(*settled).order_by(queries.c.sequence)
        return _with_labels(self._lines(queries, wanted)[[*names]])

    def explanations(self, model: str | None = None) -> pd.DataFrame:
        """A line for each explanation: when it ran, how it ended, what it asked and paid, and the names of its rows."""
        wanted = select(explanations).order_by(explanations.c.started_at, explanations.c.id)
        counts = select(asks.c.explanation_id, func.count().label("asked"), func.sum(asks.c.paid).label("paid"))
        if model is not None:
            wanted = wanted.where(explanations.c.model_id == model)
            counts = counts.join(explanations).where(explanations.c.model_id == model)
        frame = self._lines(explanations, wanted)
        counted = self._frame(counts.group_by(asks.c.explanation_id)).set_index("explanation_id").astype("Float64")
        for name in ("asked", "paid"):
            frame[name] = frame["id"].map(counted[name]).fillna(0).astype("int64")
        called: dict[str, list[str]] = {}
        for line in self._lines(names, select(names).order_by(names.c.name)).itertuples():
            called.setdefault(str(line.explanation_id), []).append(str(line.name))
        frame["names"] = [", ".join(called.get(key, [])) for key in frame["id"]]
        return frame

    def contradictions(self, model: str) -> pd.DataFrame:
        """Rows to which the model gave another answer later: the label that stands, and the other."""
        # Also those of no row: what they name may be damaged.
        of_model = (queries.c.model_id == model) | queries.c.id.is_(None)
        wanted = select(contradictions).outerjoin(queries).where(of_model).order_by(contradictions.c.id)
        with self._store.read() as connection:
            told = lines(connection, contradictions, wanted)
            standing = by_id(connection, [line.query_id for line in told])
            for line in told:
                if line.query_id not in standing:
                    raise LedgerFailed(f"the row of {described(contradictions, line)} is missing. {ADVICE}")
        names = ("row", "label", "settled_at", "other_label", "told_at", "told_by")
        pairs = ((standing[line.query_id], line) for line in told)
        found = [(q.row, q.label, q.settled_at, line.label, line.told_at, line.told_by) for q, line in pairs]
        return _with_labels(pd.DataFrame(found, columns=names))

    def _lines(self, table: Table, wanted: Any) -> pd.DataFrame:
        """Whole lines of a table, each as it was written."""
        with self._store.read() as connection:
            found = lines(connection, table, wanted)
        return pd.DataFrame(found, columns=table.c.keys()).drop(columns="checksum")

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
