"""What tests of the documentation share: the code in its pages, and the files and the endpoint that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import acex
from chats import chat
from servers import Handler

ROOT = Path(__file__).parents[1]


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each fenced block, in order."""
    return re.findall(r"```(\w+)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)


def set_up_files(folder: Path) -> None:
    """The files that commands in the pages name: loans.csv with its model, and samples.csv."""
    loans = acex.datasets.load("loan")
    texts = ["education", "purpose", "housing"]
    encoder = make_column_transformer((OneHotEncoder(), texts), remainder="passthrough")
    table = loans.rows.astype({"education": "str"})
    model = make_pipeline(encoder, RandomForestClassifier(30, random_state=0)).fit(table, loans.outcomes)
    table.assign(id=range(len(table)), decision=loans.outcomes).to_csv(folder / "loans.csv", index=False)
    skops.io.dump(model, folder / "loans.skops")
    rng = np.random.default_rng(0)
    pd.DataFrame({"temperature": rng.uniform(250, 400, 60), "pressure": rng.uniform(1, 9, 60)}).assign(
        temperature=lambda rows: rows["temperature"].where(rows.index != 17, 350.0)
    ).to_csv(folder / "samples.csv", index=False)


def decide(handler: Handler) -> None:
    """The endpoint of the pages: approves who scores enough or has a guarantor."""
    assert handler.headers["Authorization"] == "Bearer 0123456789"
    if handler.path.endswith("/chat/completions"):
        clerk(handler)
        return
    records = handler.body["instances"]
    labels = ["approved" if is_approved(record) else "rejected" for record in records]
    handler.reply(200, json.dumps({"predictions": [{"label": label} for label in labels]}))


def is_approved(record: dict[str, Any]) -> bool:
    return bool(record["credit_score"] > 640 or record["has_guarantor"])


clerk = chat(lambda record: {"approved": float(is_approved(record)), "rejected": float(not is_approved(record))})
