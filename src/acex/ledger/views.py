"""The contents of a ledger as data frames, for people."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from sqlalchemy import text

from acex.ledger.base import LARGEST
from acex.ledger.database import Database

MODELS = """
SELECT id AS model, description, row_budget, price_per_row, money_budget, n_charged AS charged, money_used AS spent,
  (SELECT count(*) FROM queries WHERE model_id = models.id AND sequence IS NOT NULL) AS answered,
  (SELECT count(*) FROM queries WHERE model_id = models.id AND sequence IS NULL AND attempts > 0) AS unanswered,
  (SELECT count(*) FROM queries WHERE model_id = models.id AND purpose = 'imported') AS imported,
  (SELECT count(*) FROM queries WHERE model_id = models.id AND attempts > 1) AS asked_again,
  (SELECT count(*) FROM contradictions JOIN queries ON queries.id = query_id WHERE model_id = models.id)
    AS contradictions
FROM models ORDER BY id"""

QUERIES = """
SELECT queries.*, label, scores, recorded_at AS answered_at
FROM queries LEFT JOIN answers ON answers.query_id = queries.id AND answers.sequence = queries.sequence
WHERE queries.model_id = :model OR :model = ''
ORDER BY coalesce(recorded_at, claimed_at) DESC, queries.sequence DESC LIMIT :newest"""

ANSWERS = """
SELECT answers.sequence, "row", label, scores, purpose, explanation_id, attempts, recorded_at AS answered_at,
  answers.sequence < queries.sequence AS superseded
FROM answers JOIN queries ON queries.id = query_id WHERE answers.model_id = :model ORDER BY answers.sequence"""

EXPLANATIONS = """
SELECT explanations.*,
  (SELECT count(*) FROM asks WHERE explanation_id = explanations.id) AS asked,
  (SELECT coalesce(sum(paid), 0) FROM asks WHERE explanation_id = explanations.id) AS paid
FROM explanations WHERE model_id = :model OR :model = '' ORDER BY started_at, id"""

STATE = """
SELECT count(*), count(finished_at), max(finished_at), (SELECT count(*) FROM asks),
  (SELECT sum(n_charged) FROM models)
FROM explanations"""


class Tables:
    """Data frames of the contents of a ledger; labels have their original types, None if there is none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def models(self) -> pd.DataFrame:
        """A line per model: budgets, rows charged, and how many rows are answered, unanswered or asked again."""
        frame = self._frame(MODELS).astype({"row_budget": "Int64", "price_per_row": "Float64"})
        for money, rows in (("money_budget", "row_budget"), ("spent", "charged")):
            stored = pd.to_numeric(frame[money]).astype("Float64")
            stored = stored.where((stored != 0) | (frame[rows].fillna(0) == 0))  # without a price it is not known
            frame[money] = (frame[rows] * frame["price_per_row"]).fillna(stored)
        return frame

    def queries(self, model: str | None = None, *, newest: int = LARGEST) -> pd.DataFrame:
        """Rows with their newest answer, the latest last."""
        return self._frame(QUERIES, model=model or "", newest=newest).iloc[::-1].reset_index(drop=True)

    def answers(self, model: str) -> pd.DataFrame:
        """Every answer of a model in order, its origin, and whether a correction has superseded it."""
        return self._frame(ANSWERS, model=model).astype({"superseded": bool})

    def explanations(self, model: str | None = None) -> pd.DataFrame:
        """A line per explanation: when it ran, how it ended, how many rows it asked and paid for, and its names.

        An explanation that continues with a larger budget has no outcome until it ends again.
        """
        frame = self._frame(EXPLANATIONS, model=model or "")
        at_end = [json.loads(r).get("asked", LARGEST) if isinstance(r, str) else LARGEST for r in frame["result"]]
        frame["outcome"] = frame["outcome"].mask(frame["asked"] > at_end, None)
        called = self._frame("SELECT explanation_id, name FROM names ORDER BY name").groupby("explanation_id")["name"]
        frame["names"] = [", ".join(called.get_group(key)) if key in called.groups else "" for key in frame["id"]]
        return frame

    def state(self) -> tuple[Any, ...]:
        """A value that changes whenever `explanations` does; read from indexes and the short table of models only."""
        with self._database.read() as connection:
            return tuple(connection.execute(text(STATE)).one())

    def _frame(self, query: str, **values: Any) -> pd.DataFrame:
        with self._database.read() as connection:
            result = connection.execute(text(query), values)
            frame = pd.DataFrame(result.all(), columns=list(result.keys()))
        if "label" in frame:
            labels = [json.loads(label) if isinstance(label, str) else None for label in frame["label"]]
            frame["label"] = pd.Series(labels, dtype=object, index=frame.index)
        return frame
