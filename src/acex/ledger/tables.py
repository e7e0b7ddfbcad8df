"""The tables of a ledger, the same in SQLite and PostgreSQL.

Everything is text or a number, so that `sqlite3` or `psql` and a reader's eyes are enough: times are ISO 8601 in UTC,
and rows, labels, settings and notes are JSON as text, which keeps 1, 1.0, true and "1" apart. The last column is the
checksum of the line (see `seal`); a space needs none, for its key is a hash of all it says.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, MetaData, Table, Text

metadata = MetaData()

versions = Table(
    "ledger_versions",  # a line for each step this ledger has gone through
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("acex", Text, nullable=False),  # the version of acex that took the step
    Column("migrated_at", Text, nullable=False),
)

identity = Table(
    "ledger_identity",  # one line
    metadata,
    Column("id", Text, primary_key=True),  # what tells this ledger from others, wherever it is moved
    Column("checksum", BigInteger),
)

models = Table(
    "models",
    metadata,
    Column("id", Text, primary_key=True),
    Column("description", Text, nullable=False),
    Column("features", Text),  # JSON list: what the values of a row are called, in order
    Column("row_budget", BigInteger),  # over the model's lifetime; null: no limit
    Column("price_per_row", Float),
    Column("n_charged", BigInteger, nullable=False),  # rows that were sent, or may have been
    Column("last_sequence", BigInteger, nullable=False),  # number of the newest answer
    Column("created_at", Text, nullable=False),
    Column("checksum", BigInteger),
)

spaces = Table(
    "spaces",  # what the rows of explanations hold: mostly one for all of a model's
    metadata,
    Column("id", Text, primary_key=True),  # hash of the description
    Column("description", Text, nullable=False),  # JSON: features, how rows are written, standard deviations
)

explanations = Table(
    "explanations",
    metadata,
    Column("id", Text, primary_key=True),  # hash of all that decides what is asked
    Column("model_id", Text, ForeignKey("models.id"), nullable=False),
    Column("factual", Text, nullable=False),  # JSON
    Column("settings", Text, nullable=False),  # JSON
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text),
    Column("outcome", Text),
    Column("space_id", Text, ForeignKey("spaces.id")),  # null where an acex before version 2 began it
    Column("result", Text),  # JSON: what was found, and how sure it is; null until it ended
    Column("seen_at_end", BigInteger),  # the newest answer there was when it ended
    Column("checksum", BigInteger),
    Index("explanations_of_model", "model_id"),
)

names = Table(
    "names",  # what the rows that were explained are called; one explanation serves all rows that are the same
    metadata,
    Column("explanation_id", Text, ForeignKey("explanations.id"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("checksum", BigInteger),
)

queries = Table(
    "queries",
    metadata,
    # A hash of model and row: PostgreSQL cannot index a row of a thousand values itself.
    Column("id", Text, primary_key=True),
    Column("model_id", Text, ForeignKey("models.id"), nullable=False),
    Column("row", Text, nullable=False),  # its canonical form
    Column("label", Text),  # JSON; null until settled
    Column("scores", Text),  # JSON: pairs of label and probability, where the model gives them
    Column("purpose", Text, nullable=False),
    Column("explanation_id", Text, ForeignKey("explanations.id")),  # on whose behalf it was last claimed
    Column("attempts", Integer, nullable=False),  # how often it was sent, or may have been; 0: imported or released
    Column("claimed_by", Text),
    Column("claimed_at", Text),
    Column("leased_until", Text),
    Column("settled_at", Text),
    Column("sequence", BigInteger),  # 1, 2, 3, ... for each model, in the order of settling
    Column("lease_clock", Text),  # whose ticks `lease_ends` counts; null: only `leased_until` is known
    Column("lease_ends", Float),  # in seconds of that clock, which no one sets
    Column("checksum", BigInteger),
    # Finds the newest answers of a model without reading the others.
    Index("queries_by_sequence", "model_id", "sequence", unique=True),
)

asks = Table(
    "asks",  # what an explanation asked, in order: enough to replay it
    metadata,
    Column("explanation_id", Text, ForeignKey("explanations.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("purpose", Text, nullable=False),
    Column("seen", BigInteger, nullable=False),  # the newest answer it could know of
    Column("note", Text, nullable=False),  # JSON: what else is worth keeping, such as the cost of the row
    Column("paid", Integer, nullable=False),  # how often this explanation paid for it; 0: it was known
    Column("checksum", BigInteger),
)

contradictions = Table(
    "contradictions",  # answers that differ from the one settled first, which stands
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("label", Text, nullable=False),
    Column("told_by", Text, nullable=False),
    Column("told_at", Text, nullable=False),
    Column("checksum", BigInteger),
)
